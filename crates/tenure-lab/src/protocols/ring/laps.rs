//! Elections on a ring with one direction, node by node: the driver of the largest rings.
//!
//! Where everything goes to the right and no coin is tossed, a node hears one link alone, and links
//! keep their order: what each node hears, and in which order, is the same under every schedule. So
//! the driver may choose the one that suits the machine. It goes round the ring and lets each node
//! hear all that waits for it, which leaves the next node's share in a small buffer; after a few
//! laps nothing waits any more. Every message is a step of its receiver, as in
//! [`rounds`](super::rounds); but memory is read from one end to the other, lap after lap, instead
//! of once for every round.
//!
//! Messages carry the time at which they arrive if each takes one unit, so that times and counts
//! are those of rounds, to the message. A hundred million nodes of `clockwise` take twelve bytes
//! each, four for the count of their steps, and four for their place in the order.

use tenure_proto::classic::{Node, Port, RIGHT, Turn};

use super::outcome::{Outcome, Tally};
use super::place::Place;
use super::rounds::Start;
use super::watch::Watch;

/// A message and when it is heard.
type Heard<M> = (u64, M);

struct Laps<'a, N: Node> {
    places: Vec<Place<N>>,
    /// Messages that wait for the next node, in order.
    waiting: Vec<Heard<N::Message>>,
    /// Messages that this node sends meanwhile.
    said: Vec<Heard<N::Message>>,
    sent: Vec<(Port, N::Message)>,
    chance: &'a mut dyn tenure_proto::Chooser,
    tally: Tally,
}

/// How many nodes are passed between two reports of progress.
const REPORT: usize = 1 << 18;

/// Runs an election in which all wake at once to its end.
pub fn run<N: Node, V: Watch>(start: Start<'_>, watch: &mut V) -> Outcome {
    assert!(N::ONE_WAY && !N::ROUNDS, "laps are for asynchronous algorithms with one direction");
    let mut laps: Laps<'_, N> = Laps {
        places: Place::all(start.ids, |_| 2),
        waiting: Vec::new(),
        said: Vec::new(),
        sent: Vec::new(),
        chance: start.chance,
        tally: Tally::new(),
    };
    laps.run(start.limit, watch);
    let streams = laps.waiting.capacity() + laps.said.capacity();
    let memory = laps.places.capacity() * size_of::<Place<N>>() + streams * size_of::<Heard<N::Message>>();
    Outcome { memory: memory as u64, ..Outcome::judge(&laps.tally, start.ids, &laps.places, start.winner) }
}

impl<N: Node> Laps<'_, N> {
    fn run(&mut self, limit: u64, watch: &mut impl Watch) {
        let mut reported = 0;
        for lap in 0_u64.. {
            for at in 0..self.places.len() {
                if lap == 0 {
                    self.step(at, 0, N::wake);
                } else if self.waiting.is_empty() {
                    return;
                }
                self.hear(at);
                if at % REPORT == 0 {
                    watch.progress(self.tally.events - reported);
                    reported = self.tally.events;
                    if reported >= limit {
                        self.tally.cut_off = true;
                        return;
                    }
                }
            }
        }
    }

    /// The node hears all that waits; what it says waits for the next.
    fn hear(&mut self, at: usize) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (time, message) in waiting.drain(..) {
            self.tally.time = self.tally.time.max(time);
            self.step(at, time, |node, turn| node.receive(RIGHT.opposite(), message, turn));
        }
        self.waiting = std::mem::replace(&mut self.said, waiting);
    }

    fn step(&mut self, at: usize, time: u64, act: impl FnOnce(&mut N, &mut Turn<'_, N::Message>)) {
        let turn = Turn::new(None, self.chance, &mut self.sent);
        self.places[at].step(time, &mut self.tally, turn, act);
        for &(port, message) in &self.sent {
            assert!(port == RIGHT, "an algorithm with one direction says nothing to the left");
            self.tally.sent(&message);
            self.said.push((time + 1, message));
        }
        self.sent.clear();
    }
}
