//! Higham and Przytycka: envelopes that are promoted as early as possible.
//!
//! L. Higham and T. Przytycka: A simple, efficient algorithm for maximum finding on rings (IPL 58,
//! 1996; WDAG 1993). 1.271 n log2 n + O(n) messages in one direction: the least that is known for
//! an asynchronous ring.
//!
//! Ids travel in envelopes (label, round, counter). A node remembers the label and the round of the
//! last envelope that it sent on, and each envelope is compared with that memory:
//!
//! * the same label and round: the envelope is alone, its label is the leader's;
//! * the same round: in odd rounds the larger label is destroyed, in even rounds the smaller one;
//! * in an odd round an envelope is promoted to the next if it met its round and survived, or when
//!   its counter is spent: after as many steps as a Fibonacci number says, which is how far apart
//!   envelopes of its round are expected to be;
//! * in an even round it is promoted as soon as it meets a smaller label of the round before: a
//!   witness that it would survive.
//!
//! The label that survives need not be the largest: what is minimal in one round is maximal among
//! them in the next. The node that finds out tells everybody, and the owner of the label leads.

use std::fmt;

use super::{Id, Node, Port, RIGHT, Standing, Turn, bits};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HighamPrzytycka {
    id: u32,
    /// The label that it sent on last: in the end, the leader's.
    label: u32,
    /// The round of that envelope; nothing while it sleeps.
    round: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Asleep,
    Awake,
    Announcer,
    Told,
}

/// A message between neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// An id that still competes.
    Envelope {
        /// The id.
        label: u32,
        /// Its round, from 1.
        round: u32,
        /// Steps until it is promoted by distance, in odd rounds.
        counter: u32,
    },
    /// The leader's id.
    Leader(u32),
}

impl super::Message for Message {
    const KINDS: &'static [&'static str] = &["envelope", "leader"];

    fn kind(&self) -> usize {
        match self {
            Self::Envelope { .. } => 0,
            Self::Leader(_) => 1,
        }
    }

    fn bits(&self) -> u32 {
        match self {
            Self::Envelope { label, round, counter } => 2 + bits(*label) + bits(*round) + bits(*counter),
            Self::Leader(id) => 2 + bits(*id),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Envelope { label, round, counter } => {
                write!(f, "envelope {label}, round {round}, counter {counter}")
            }
            Self::Leader(id) => write!(f, "leader {id}"),
        }
    }
}

/// The k-th Fibonacci number, from F(1) = F(2) = 1.
fn fibonacci(k: u32) -> u32 {
    let (mut this, mut next) = (0_u32, 1_u32);
    for _ in 0..k {
        (this, next) = (next, this.saturating_add(next));
    }
    this
}

impl Node for HighamPrzytycka {
    type Knows = Id;
    type Message = Message;
    const ONE_WAY: bool = true;

    fn new(Id(id): Id, _ports: u32) -> Self {
        Self { id, label: id, round: 0, state: State::Asleep }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Message>) {
        self.state = State::Awake;
        self.send_on(self.id, 1, fibonacci(3), turn);
    }

    fn receive(&mut self, _from: Port, message: Message, turn: &mut Turn<'_, Message>) {
        if self.state == State::Asleep {
            self.wake(turn);
        }
        match message {
            Message::Envelope { label, round, counter } => self.on_envelope(label, round, counter, turn),
            Message::Leader(id) => {
                if self.state != State::Announcer {
                    (self.label, self.state) = (id, State::Told);
                    turn.send(RIGHT, message);
                }
            }
        }
    }

    fn standing(&self) -> Standing {
        match self.state {
            State::Asleep => Standing::Asleep,
            State::Awake if self.label == self.id => Standing::Candidate,
            State::Awake => Standing::Passive,
            State::Announcer | State::Told if self.label == self.id => Standing::Leader,
            State::Announcer | State::Told => Standing::Follower(Some(self.label)),
        }
    }
}

impl HighamPrzytycka {
    fn on_envelope(&mut self, label: u32, round: u32, counter: u32, turn: &mut Turn<'_, Message>) {
        let (met, odd) = (self.round == round, round % 2 == 1);
        if met && label == self.label {
            self.state = State::Announcer;
            return turn.send(RIGHT, Message::Leader(label));
        }
        if met && (label > self.label) == odd {
            return;
        }
        let promoted = if odd { met || counter == 0 } else { self.round + 1 == round && label > self.label };
        let (round, counter) = if promoted { (round + 1, fibonacci(round + 3)) } else { (round, counter) };
        self.send_on(label, round, counter, turn);
    }

    fn send_on(&mut self, label: u32, round: u32, counter: u32, turn: &mut Turn<'_, Message>) {
        (self.label, self.round) = (label, round);
        turn.send(RIGHT, Message::Envelope { label, round, counter: counter.saturating_sub(1) });
    }
}
