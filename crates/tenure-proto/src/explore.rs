//! The needs of an explorer of all states: how to tell two states apart, and how to
//! move a clock.
//!
//! An explorer calls a machine again and again from states that it has seen. Two of them are one if
//! they have the same future. `Eq` does not say that: two machines that differ only in how long
//! they have run are unequal, and walks would never end. So each machine writes down what decides
//! its future, and nothing else: its **view**. Times are written as what is left of them; then a
//! machine at any reading looks like one at another.
//!
//! A view is a claim, and a wrong one merges states that differ: the walk would prove nothing. So
//! the laboratory compares, whenever two machines look alike, what they do with every input. There
//! is no `cfg`: the machine that is explored is the machine that ships.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::quorum::NodeSet;
use crate::time::{LocalSpan, Stamp};
use crate::{LocalTime, NodeId, Protocol, Ticket};

/// A protocol whose states can be explored.
pub trait Explore: Protocol {
    /// Writes down all that decides the future of this machine, and nothing else.
    fn view(&self, v: &mut View<'_>);

    /// Moves the zero of this host's clock by `by`: see [`LocalTime::shifted`]. Every reading that
    /// the machine keeps moves along.
    fn shift(&mut self, by: LocalSpan);

    /// Forgets state that serves liveness alone, where a run without it is a run of the same
    /// machine on a network that loses more.
    fn forget(&mut self) {}

    /// Writes down what a record can still mean to a later life.
    fn view_record(record: &Self::Record, v: &mut View<'_>);

    /// Moves the readings in a record, as [`Explore::shift`] does.
    fn shift_record(record: &mut Self::Record, by: LocalSpan);

    /// Writes down a message that `from` has sent.
    fn view_message(message: &Self::Message, from: NodeId, v: &mut View<'_>);

    /// Sets to zero what no receiver of a message can use, such as the reading of a foreign clock
    /// where clocks are not synchronised. This machine is its sender.
    fn plain(&self, message: &mut Self::Message);

    /// Whether a message has no effect on this machine, now or ever.
    fn is_dead(&self, message: &Self::Message) -> bool;
}

/// A deadline further away than this never comes in an exploration: retransmissions, which an
/// explorer tries at any time by duplicating messages.
const FAR: LocalSpan = LocalSpan::from_nanos(10_000_000_000);

/// Collects what decides the future of one host, or what a message says.
#[derive(Debug)]
pub struct View<'a> {
    now: LocalTime,
    step: LocalSpan,
    durable: Ticket,
    names: &'a [u8],
    bytes: Vec<u8>,
    stamps: Vec<(u8, Stamp)>,
    is_timed: bool,
    broken: Option<&'static str>,
}

impl<'a> View<'a> {
    /// An empty view of a host whose clock shows `now` and moves by whole `step`s, and whose disk
    /// has written all records up to `durable`. Node `i` is written as `names[i]`: hosts that play
    /// the same part may be swapped.
    pub fn new((now, step): (LocalTime, LocalSpan), durable: Ticket, names: &'a [u8]) -> Self {
        let (bytes, stamps) = (Vec::with_capacity(128), Vec::new());
        Self { now, step, durable, names, bytes, stamps, is_timed: false, broken: None }
    }

    /// The reading of the clock to which the times belong.
    pub fn now(&self) -> LocalTime {
        self.now
    }

    /// All that was written down.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The stamps, each with the new name of its grantor: only their order among all stamps of that
    /// grantor matters.
    pub fn stamps(&self) -> &[(u8, Stamp)] {
        &self.stamps
    }

    /// Whether anything depends on how far this clock goes.
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// The first assumption of the view that does not hold: then it says too little.
    pub fn broken(&self) -> Option<&'static str> {
        self.broken
    }

    /// The new name of a node.
    pub fn name(&self, node: NodeId) -> u8 {
        let unnamed = u8::try_from(node.0).unwrap_or(u8::MAX);
        self.names.get(node.index()).copied().unwrap_or(unnamed)
    }

    /// A number that means itself.
    pub fn num(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
            number >>= 7;
        }
        self.bytes.push(u8::try_from(number).unwrap_or(0));
    }

    /// A wide number, such as that of a life.
    pub fn wide(&mut self, number: u128) {
        self.num(u64::try_from(number & u128::from(u64::MAX)).unwrap_or(0));
        self.num(u64::try_from(number >> 64).unwrap_or(0));
    }

    /// Yes or no.
    pub fn flag(&mut self, flag: bool) {
        self.bytes.push(u8::from(flag));
    }

    /// A node.
    pub fn node(&mut self, node: NodeId) {
        let name = self.name(node);
        self.bytes.push(name);
    }

    /// Members by position. Where nodes are renamed a member's position is its name.
    pub fn set(&mut self, set: NodeSet) {
        let renamed = |position: usize| self.name(NodeId(position as u64));
        let bits = set.positions().fold(0, |bits, position| bits | 1 << renamed(position));
        self.num(bits);
    }

    /// A reading that is only ever compared with later ones: after how many steps of the clock it
    /// has come. All that have come are alike.
    pub fn deadline(&mut self, at: LocalTime) {
        let left = at.remaining(self.now).as_nanos();
        self.is_timed |= left > 0;
        self.num(left.div_ceil(self.step.as_nanos().max(1)));
    }

    /// The same, which may be absent.
    pub fn deadline_opt(&mut self, at: Option<LocalTime>) {
        self.flag(at.is_some());
        at.into_iter().for_each(|at| self.deadline(at));
    }

    /// A deadline after which the machine only says something again.
    pub fn far(&mut self, at: Option<LocalTime>) {
        match at {
            None => self.num(0),
            Some(at) if at.remaining(self.now) > FAR => self.num(1),
            Some(at) => {
                self.num(2);
                self.deadline(at);
            }
        }
    }

    /// A reading from which time is counted: beyond `most` all are alike.
    pub fn age(&mut self, at: LocalTime, most: LocalSpan) {
        let age = self.now.remaining(at).min(most);
        self.is_timed |= age < most;
        self.num(age.as_nanos());
    }

    /// A write, as seen from what is durable.
    pub fn ticket(&mut self, ticket: Option<Ticket>) {
        self.num(ticket.map_or(0, |ticket| ticket.0.saturating_sub(self.durable.0)));
    }

    /// A stamp of a grantor: see [`View::stamps`].
    pub fn stamp(&mut self, owner: NodeId, stamp: Stamp) {
        let name = self.name(owner);
        self.stamps.push((name, stamp));
    }

    /// Anything, as it is. It may name no node where nodes are renamed, and no reading.
    pub fn opaque(&mut self, value: &impl Hash) {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        self.num(hasher.finish());
    }

    /// States what this view relies on where it leaves something out.
    pub fn assume(&mut self, holds: bool, what: &'static str) {
        if !holds {
            self.broken.get_or_insert(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> LocalTime {
        LocalTime::from_nanos(nanos)
    }

    fn written(now: u64, names: &[u8], write: impl FnOnce(&mut View<'_>)) -> (Vec<u8>, bool) {
        let mut view = View::new((at(now), LocalSpan::from_nanos(1)), Ticket(0), names);
        write(&mut view);
        (view.bytes().to_vec(), view.is_timed())
    }

    #[test]
    fn deadlines_look_alike_when_as_much_is_left_and_when_they_have_come() {
        let left = |now, until| written(now, &[], |v| v.deadline(at(until)));
        assert_eq!(left(10, 25), left(30, 45));
        assert_eq!(left(10, 3), left(10, 10));
        assert_ne!(left(10, 11), left(10, 12));
        assert!(left(10, 25).1 && !left(10, 10).1, "only a deadline to come makes the clock matter");
    }

    #[test]
    fn deadlines_between_two_steps_of_the_clock_look_like_the_later_step() {
        let left = |until| {
            let mut view = View::new((at(100), LocalSpan::from_nanos(10)), Ticket(0), &[]);
            view.deadline(at(until));
            view.bytes().to_vec()
        };
        assert_eq!(left(121), left(130));
        assert_ne!(left(120), left(121));
    }

    #[test]
    fn swapped_nodes_swap_their_places_in_sets() {
        let set = NodeSet::from_bits(0b011);
        assert_eq!(
            written(0, &[2, 1, 0], |v| v.set(set)),
            written(0, &[0, 1, 2], |v| v.set(NodeSet::from_bits(0b110)))
        );
    }

    #[test]
    fn a_view_says_which_of_its_assumptions_does_not_hold() {
        let mut view = View::new((at(0), LocalSpan::from_nanos(1)), Ticket(0), &[]);
        view.assume(true, "first");
        view.assume(false, "second");
        view.assume(false, "third");
        assert_eq!(view.broken(), Some("second"));
    }
}
