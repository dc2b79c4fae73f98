//! Elections without a common time: a scheduler says which link delivers next, and each link keeps
//! its order.
//!
//! Every message gets a number when it is sent; of all links the one whose first message has the
//! smallest number delivers next. The choice of the number makes the scheduler:
//!
//! | schedule | the number is | so that |
//! |---|---|---|
//! | [`Schedule::Unit`] | when it was sent | every message takes one unit: as in [`rounds`](super::rounds) |
//! | [`Schedule::Delays`] | when it arrives | a message takes up to one unit, drawn evenly |
//! | [`Schedule::Chaos`] | drawn | links are as slow as they like |
//! | [`Schedule::Newest`] | smaller for later ones | one chain of messages runs as far as it can while all others wait |
//! | [`Schedule::Priority`] | its link's | some links are always slower than others: what the search for bad schedules tries |
//!
//! Time is the arrival of the last message with random delays, and else the longest chain of
//! messages that caused one another, as if each took one unit.

use std::collections::{BTreeSet, VecDeque};

use tenure_proto::classic::{Node, Port, Standing, Turn};

use super::outcome::{Outcome, Tally};
use super::place::Place;
use super::rounds::{Start, Wake};
use super::watch::{Trace, Watch};
use super::wiring::{Ring, Wiring};
use crate::random::Random;

/// The scheduler: which message is delivered next.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// The link whose message was sent first.
    Unit,
    /// Every message takes a time of its own, at most one unit.
    Delays(Random),
    /// Any.
    Chaos(Random),
    /// The link whose message was sent last.
    Newest,
    /// The link with the smallest number here: twice a node's place for its left port, and one more
    /// for its right.
    Priority(Vec<u32>),
}

/// How many parts of a unit random delays are drawn in.
pub const UNIT: u64 = 1000;

struct Flight<M> {
    message: M,
    number: u64,
    /// When it arrives, or how long the chain is that it ends.
    arrives: u64,
}

struct Links<'a, N: Node> {
    ring: Ring,
    places: Vec<Place<N>>,
    /// By the end at which they are heard.
    links: Vec<VecDeque<Flight<N::Message>>>,
    /// The first message of each link that has one.
    ready: BTreeSet<(u64, u32)>,
    schedule: Schedule,
    sequence: u64,
    chance: &'a mut dyn tenure_proto::Chooser,
    sent: Vec<(Port, N::Message)>,
    tally: Tally,
    /// For each node when it was last told something, as time is counted.
    clocks: Vec<u64>,
    /// Written down, if that is wanted.
    trace: Option<&'a mut Trace>,
}

/// Runs an election on a ring to its end.
pub fn run<N: Node>(schedule: Schedule, start: Start<'_>, trace: Option<&mut Trace>) -> Outcome {
    assert!(!N::ROUNDS, "an algorithm that counts rounds needs rounds");
    let size = u32::try_from(start.ids.len()).unwrap_or(u32::MAX);
    let unit = if matches!(schedule, Schedule::Delays(_)) { UNIT } else { 1 };
    let mut links: Links<'_, N> = Links {
        ring: Ring(size),
        places: Place::all(start.ids, |_| 2),
        links: (0..2 * size).map(|_| VecDeque::new()).collect(),
        ready: BTreeSet::new(),
        schedule,
        sequence: 0,
        chance: start.chance,
        sent: Vec::new(),
        tally: Tally::new(),
        clocks: vec![0; start.ids.len()],
        trace,
    };
    match start.wake {
        Wake::All => (0..size).for_each(|node| links.wake(node)),
        Wake::Some(list) => list.iter().for_each(|(_, node)| links.wake(*node)),
    }
    while links.deliver() {
        if links.tally.events >= start.limit {
            links.tally.cut_off = true;
            break;
        }
    }
    Outcome { unit, ..Outcome::judge(&links.tally, start.ids, &links.places, start.winner) }
}

impl<N: Node> Links<'_, N> {
    fn wake(&mut self, node: u32) {
        if self.places[node as usize].node.standing() == Standing::Asleep {
            if let Some(trace) = &mut self.trace {
                trace.woke(0, node);
            }
            self.step(node, N::wake);
        }
    }

    /// The next message; nothing if there is none.
    fn deliver(&mut self) -> bool {
        let Some((_, link)) = self.ready.pop_first() else { return false };
        let queue = &mut self.links[link as usize];
        let Some(flight) = queue.pop_front() else { return false };
        if let Some(next) = queue.front() {
            self.ready.insert((next.number, link));
        }
        let (node, port) = (link / 2, Port(link % 2));
        let clock = &mut self.clocks[node as usize];
        *clock = flight.arrives.max(*clock);
        let now = *clock;
        self.tally.time = self.tally.time.max(now);
        if let Some(trace) = &mut self.trace {
            trace.received(now, node, port, &flight.message);
        }
        self.step(node, |node, turn| node.receive(port, flight.message, turn));
        true
    }

    fn step(&mut self, at: u32, act: impl FnOnce(&mut N, &mut Turn<'_, N::Message>)) {
        let (place, now) = (&mut self.places[at as usize], self.clocks[at as usize]);
        place.step(now, &mut self.tally, Turn::new(None, self.chance, &mut self.sent), act);
        let standing = place.node.standing();
        for (port, message) in std::mem::take(&mut self.sent) {
            let end = self.ring.far_end(at, port);
            let (to, heard) = (Ring::node(end), Ring::port(end));
            self.tally.sent(&message);
            if let Some(trace) = &mut self.trace {
                trace.sent(now, (at, port), (to, heard), &message);
            }
            self.enqueue(2 * to + heard.0, now, message);
        }
        if let Some(trace) = &mut self.trace {
            trace.stands(now, at, standing);
        }
    }

    fn enqueue(&mut self, link: u32, now: u64, message: N::Message) {
        self.sequence += 1;
        let queue = &mut self.links[link as usize];
        let before = queue.back().map_or(0, |flight| flight.arrives);
        let (number, arrives) = match &mut self.schedule {
            Schedule::Unit => (self.sequence, now + 1),
            Schedule::Delays(random) => {
                // A later message on the same link arrives later, or at the same time.
                let arrives = before.max(now + random.between(1, UNIT));
                (arrives, arrives)
            }
            Schedule::Chaos(random) => (random.bits() >> 1, now + 1),
            Schedule::Newest => (u64::MAX - self.sequence, now + 1),
            Schedule::Priority(priorities) => (u64::from(priorities[link as usize]), now + 1),
        };
        if queue.is_empty() {
            self.ready.insert((number, link));
        }
        queue.push_back(Flight { message, number, arrives });
    }
}
