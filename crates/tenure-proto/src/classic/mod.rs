//! The classics: elections of the lectures, on ports instead of addresses.
//!
//! A [`Node`] here has no address book. It has ports, on a ring [`LEFT`] and [`RIGHT`] (clockwise),
//! and it can say something into a port and hear something out of one: that is all. Its knowledge
//! at the start is a type ([`Knows`]), so that an anonymous algorithm cannot look at an id and a
//! uniform one cannot look at the size of the ring, not even by mistake.
//!
//! | algorithm | knows | ring | messages | time |
//! |---|---|---|---|---|
//! | [`clockwise`] | id | one way | n(n+1)/2 at most, n·H_n on average | n |
//! | [`lelann`] | id | one way | n² always | n |
//! | [`radius_growth`] | id | both ways | 8n(1+⌈log2 n⌉) | 2(2^⌈log2 n⌉-1)+n |
//! | [`franklin`] | id | both ways | 2n(⌊log2 n⌋+1) | O(n) |
//! | [`peterson`] | id | one way | 2n(⌊log2 n⌋+1) | O(n) |
//! | [`higham_przytycka`] | id | one way | 1.271 n log2 n + O(n) | O(n) |
//! | [`time_slice`] | id, n | one way, rounds | n | n·min+n |
//! | [`variable_speeds`] | id | one way, rounds | 3n | n·2^min |
//! | [`itai_rodeh`] | n, coins | one way | O(n log n) expected | O(n) a round |
//! | [`star`] | nothing | a star | n-1 | 1 |
//!
//! All of them end with every node knowing the leader; the messages that announce it
//! ([`Message::ANNOUNCEMENT`]) are counted apart, n of them on a ring. Links lose nothing and keep
//! the order (FIFO); how long a message takes is the driver's choice.
//!
//! Elections among processes that know each other's names, and that may crash, are in [`named`].
//!
//! To write an algorithm takes a struct, a message and three functions: see [`clockwise`], the
//! shortest.

pub mod clockwise;
pub mod franklin;
pub mod higham_przytycka;
pub mod ids;
pub mod itai_rodeh;
pub mod lelann;
pub mod named;
pub mod peterson;
pub mod radius_growth;
pub mod star;
#[cfg(test)]
mod tests;
pub mod time_slice;
pub mod variable_speeds;

use std::fmt::{Debug, Display};

use crate::{Chooser, Data};

/// One of a node's ends: all that it ever sees of its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u32);

/// On a ring, counter-clockwise.
pub const LEFT: Port = Port(0);
/// On a ring, clockwise: a message said into this port is heard by the next node on its left.
pub const RIGHT: Port = Port(1);

impl Port {
    /// The other port, on a ring.
    pub fn opposite(self) -> Self {
        Self(1 - self.0)
    }
}

/// Everything that a node is told before the start, and no more.
pub trait Knows: Data + Copy {
    /// Whether a node has an id of its own. Without one it is anonymous.
    const ID: bool;
    /// Whether a node knows how many nodes there are. Without that its algorithm is uniform.
    const SIZE: bool;
    /// The knowledge of the node with this id, on a ring of this size.
    fn told(id: u32, size: u32) -> Self;
}

/// An anonymous node of a uniform algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nothing;

/// A node with an id that no other has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(pub u32);

/// An anonymous node that knows how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size(pub u32);

/// A node with an id that knows how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdAndSize {
    /// Its own id.
    pub id: u32,
    /// How many nodes there are.
    pub size: u32,
}

impl Knows for Nothing {
    const ID: bool = false;
    const SIZE: bool = false;
    fn told(_id: u32, _size: u32) -> Self {
        Self
    }
}

impl Knows for Id {
    const ID: bool = true;
    const SIZE: bool = false;
    fn told(id: u32, _size: u32) -> Self {
        Self(id)
    }
}

impl Knows for Size {
    const ID: bool = false;
    const SIZE: bool = true;
    fn told(_id: u32, size: u32) -> Self {
        Self(size)
    }
}

impl Knows for IdAndSize {
    const ID: bool = true;
    const SIZE: bool = true;
    fn told(id: u32, size: u32) -> Self {
        Self { id, size }
    }
}

/// A message between neighbours.
pub trait Message: Data + Copy + Display {
    /// The kinds of message there are.
    const KINDS: &'static [&'static str];
    /// The kind that tells the outcome of an election that is over: counted apart.
    const ANNOUNCEMENT: &'static str = "leader";
    /// Which of the kinds it is.
    fn kind(&self) -> usize;
    /// How long it is: two bits for the kind, and each number in it in binary.
    fn bits(&self) -> u32;
}

/// The length of a number in binary.
pub fn bits(number: u32) -> u32 {
    (u32::BITS - number.leading_zeros()).max(1)
}

/// The standing of a node in the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It has not begun.
    Asleep,
    /// It may still become the leader.
    Candidate,
    /// It will not become the leader, and does not know who does.
    Passive,
    /// It is the leader.
    Leader,
    /// It knows that another leads, and where nodes have ids, which.
    Follower(Option<u32>),
}

/// A [`Standing`] in one byte: the node keeps the leader's id beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Asleep,
    Candidate,
    Passive,
    Leader,
    Follower,
}

impl State {
    fn standing(self, leader: u32) -> Standing {
        match self {
            Self::Asleep => Standing::Asleep,
            Self::Candidate => Standing::Candidate,
            Self::Passive => Standing::Passive,
            Self::Leader => Standing::Leader,
            Self::Follower => Standing::Follower(Some(leader)),
        }
    }
}

/// An algorithm, as every node runs it. One state machine, the same for all; only what a node
/// [`Knows`] differs.
///
/// A step takes no time. Its messages leave in order; a link keeps the order and loses nothing.
pub trait Node: Data {
    /// The node's knowledge at the start.
    type Knows: Knows;
    /// A message between neighbours.
    type Message: Message;
    /// Whether the algorithm counts rounds: all wake in round 0, and a message sent in one round is
    /// heard in the next.
    const ROUNDS: bool = false;
    /// Whether it says everything to the right and tosses no coins. Then the messages that a node
    /// hears do not depend on the schedule, and a driver may go round the ring node by node.
    const ONE_WAY: bool = false;

    /// Makes a node that sleeps, with so many ports.
    fn new(knows: Self::Knows, ports: u32) -> Self;
    /// Wakes the node by itself: at the start, or later. At most once, and not after it was woken
    /// by a message.
    fn wake(&mut self, turn: &mut Turn<'_, Self::Message>);
    /// Handles a message, which wakes the node if it sleeps.
    fn receive(&mut self, from: Port, message: Self::Message, turn: &mut Turn<'_, Self::Message>);
    /// Handles the round that the node asked for: only in rounds, and after all messages of that
    /// round.
    fn alarm(&mut self, _turn: &mut Turn<'_, Self::Message>) {}
    /// The standing of the node.
    fn standing(&self) -> Standing;
}

/// One step of a node: its questions and its acts.
pub struct Turn<'a, M> {
    round: Option<u64>,
    chooser: &'a mut dyn Chooser,
    sent: &'a mut Vec<(Port, M)>,
    alarm: Option<u64>,
}

impl<'a, M> Turn<'a, M> {
    /// Makes a step in this round, if rounds are counted, with room for messages. For drivers.
    pub fn new(round: Option<u64>, chooser: &'a mut dyn Chooser, sent: &'a mut Vec<(Port, M)>) -> Self {
        Self { round, chooser, sent, alarm: None }
    }

    /// Sends a message into a port.
    pub fn send(&mut self, port: Port, message: M) {
        self.sent.push((port, message));
    }

    /// Draws a number below `bound`, evenly.
    pub fn choose(&mut self, bound: u32) -> u32 {
        self.chooser.choose(bound)
    }

    /// The number of the round, from 0.
    ///
    /// # Panics
    ///
    /// If the algorithm does not say that it counts rounds: an asynchronous node has no clock.
    pub fn round(&self) -> u64 {
        self.round.expect("an asynchronous node has no clock: set Node::ROUNDS to count rounds")
    }

    /// Asks to be called in a later round. It may still be called in rounds that it asked for
    /// before.
    pub fn alarm(&mut self, round: u64) {
        self.alarm = Some(round);
    }

    /// The round that was asked for in this step. For drivers.
    pub fn wanted(&self) -> Option<u64> {
        self.alarm
    }
}
