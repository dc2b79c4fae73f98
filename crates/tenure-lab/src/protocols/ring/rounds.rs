//! Elections in rounds: every message takes one unit of time.
//!
//! All messages are in one queue, in the order in which they were sent. Messages in it at the
//! beginning of a round are heard in that round; messages sent meanwhile are heard in the next. On
//! a ring each link keeps its order so, and the schedule is one that an asynchronous scheduler may
//! choose too: the one in which time is counted.
//!
//! Nothing is kept but the nodes and the messages under way, so that rings of millions are no
//! matter; where a ring has one direction alone, [`laps`](super::laps) carries many more.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tenure_proto::Chooser;
use tenure_proto::classic::{Node, Port, Standing, Turn};

use super::outcome::{Outcome, Tally, Winner};
use super::place::Place;
use super::watch::Watch;
use super::wiring::Wiring;

/// The nodes that wake by themselves, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// All, at the start.
    All,
    /// These nodes in these rounds, in order of the rounds; the others are woken by messages.
    Some(Vec<(u64, u32)>),
}

/// The run to carry out.
pub struct Start<'a> {
    /// The ids, clockwise. Told only to nodes that have ids; but there are as many nodes as ids.
    pub ids: &'a [u32],
    /// The nodes that wake, and when.
    pub wake: &'a Wake,
    /// Where chance comes from.
    pub chance: &'a mut dyn Chooser,
    /// After so many events the run is cut off.
    pub limit: u64,
    /// The algorithm's promise about its leader.
    pub winner: Winner,
}

/// A message on its way.
struct Flight<E, M> {
    to: E,
    message: M,
}

struct Rounds<'a, N: Node, W: Wiring, V: Watch> {
    wiring: W,
    places: Vec<Place<N>>,
    queue: VecDeque<Flight<W::End, N::Message>>,
    alarms: BinaryHeap<Reverse<(u64, u32)>>,
    sent: Vec<(Port, N::Message)>,
    chance: &'a mut dyn Chooser,
    round: u64,
    tally: Tally,
    watch: &'a mut V,
}

/// How many messages are handled between two reports of progress.
const REPORT: u64 = 1 << 22;

/// Runs an election to its end.
pub fn run<N: Node, W: Wiring, V: Watch>(wiring: W, start: Start<'_>, watch: &mut V) -> Outcome {
    debug_assert_eq!(wiring.nodes() as usize, start.ids.len());
    let mut rounds: Rounds<'_, N, W, V> = Rounds {
        wiring,
        places: Place::all(start.ids, |node| wiring.ports(node)),
        queue: VecDeque::with_capacity(start.ids.len()),
        alarms: BinaryHeap::new(),
        sent: Vec::new(),
        chance: start.chance,
        round: 0,
        tally: Tally::new(),
        watch,
    };
    rounds.run(start.wake, start.limit);
    let memory = rounds.memory();
    Outcome { memory, ..Outcome::judge(&rounds.tally, start.ids, &rounds.places, start.winner) }
}

impl<N: Node, W: Wiring, V: Watch> Rounds<'_, N, W, V> {
    fn run(&mut self, wake: &Wake, limit: u64) {
        let mut late: &[(u64, u32)] = &[];
        match wake {
            Wake::All => (0..self.wiring.nodes()).for_each(|node| self.wake(node)),
            Wake::Some(list) => late = list,
        }
        loop {
            while let Some(((_, node), rest)) = late.split_first().filter(|((at, _), _)| *at <= self.round) {
                late = rest;
                if self.places[*node as usize].node.standing() == Standing::Asleep {
                    self.wake(*node);
                }
            }
            self.ring_alarms();
            if self.tally.events >= limit {
                self.tally.cut_off = true;
                return;
            }
            let next_alarm = self.alarms.peek().map(|Reverse((round, _))| *round);
            let next_wake = late.first().map(|(round, _)| *round);
            let idle = [next_alarm, next_wake].into_iter().flatten().min();
            match (self.queue.is_empty(), idle) {
                (true, None) => return,
                (true, Some(round)) => self.round = round,
                (false, _) => self.deliver(),
            }
        }
    }

    /// One round: all that was sent in the last one is heard.
    fn deliver(&mut self) {
        self.round += 1;
        let mut left = self.queue.len() as u64;
        while left > 0 {
            let batch = left.min(REPORT);
            for _ in 0..batch {
                let Some(flight) = self.queue.pop_front() else { break };
                self.hear(flight);
            }
            self.watch.progress(batch);
            left -= batch;
        }
        self.tally.time = self.round;
    }

    fn hear(&mut self, flight: Flight<W::End, N::Message>) {
        let (node, port) = (W::node(flight.to), W::port(flight.to));
        self.watch.received(self.round, node, port, &flight.message);
        self.step(node, |node, turn| node.receive(port, flight.message, turn));
    }

    fn wake(&mut self, node: u32) {
        self.watch.woke(self.round, node);
        self.step(node, N::wake);
    }

    fn ring_alarms(&mut self) {
        while let Some(Reverse((round, node))) = self.alarms.peek().copied() {
            if round > self.round {
                return;
            }
            self.alarms.pop();
            self.step(node, N::alarm);
        }
    }

    /// One step of one node, and all that comes of it.
    fn step(&mut self, at: u32, act: impl FnOnce(&mut N, &mut Turn<'_, N::Message>)) {
        let place = &mut self.places[at as usize];
        let turn = Turn::new(N::ROUNDS.then_some(self.round), self.chance, &mut self.sent);
        if let Some(round) = place.step(self.round, &mut self.tally, turn, act) {
            self.alarms.push(Reverse((round, at)));
        }
        let standing = place.node.standing();
        for (port, message) in self.sent.drain(..) {
            let to = self.wiring.far_end(at, port);
            self.tally.sent(&message);
            self.watch.sent(self.round, (at, port), (W::node(to), W::port(to)), &message);
            self.queue.push_back(Flight { to, message });
        }
        self.watch.stands(self.round, at, standing);
    }

    /// The memory of the nodes and the queue at their largest. A queue never shrinks.
    fn memory(&self) -> u64 {
        let queue = self.queue.capacity() * size_of::<Flight<W::End, N::Message>>();
        let places = self.places.capacity() * size_of::<Place<N>>();
        let alarms = self.alarms.capacity() * size_of::<Reverse<(u64, u32)>>();
        (queue + places + alarms) as u64
    }
}
