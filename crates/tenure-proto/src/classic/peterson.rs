//! Peterson: Franklin's rounds on a ring with one direction.
//!
//! Dolev, Klawe and Rodeh (J. Algorithms 3, 1982) and G. L. Peterson (TOPLAS 4, 1982),
//! independently.
//!
//! A node cannot look to its right, but it can judge in its left neighbour's place: it sends its id
//! on (`One`) and then the id that it got (`Two`), so that it knows its own, its neighbour's and
//! the one behind. If the middle one is the largest, the node goes on with that id in its hands;
//! else it only relays. As in Franklin's algorithm at least half give up in a round, and a round
//! costs 2n: at most 2n(⌊log2 n⌋+1) messages. A node that hears the id that it holds itself is
//! alone.
//!
//! That node is usually not the owner of the id. The announcement tells the owner.

use std::fmt;

use super::{Id, Node, Port, RIGHT, Standing, Turn, bits};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peterson {
    id: u32,
    /// The id in its hands: later the leader's.
    held: u32,
    /// The neighbour's.
    first: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Asleep,
    /// Waits for the neighbour's id.
    One,
    /// Waits for the one behind.
    Two,
    Relay,
    /// Found out, and tells the others.
    Announcer,
    Told,
}

/// A message to the right neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The id that the sender holds.
    One(u32),
    /// The id that its neighbour holds.
    Two(u32),
    /// The leader's id.
    Leader(u32),
}

impl super::Message for Message {
    const KINDS: &'static [&'static str] = &["one", "two", "leader"];

    fn kind(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Two(_) => 1,
            Self::Leader(_) => 2,
        }
    }

    fn bits(&self) -> u32 {
        let (Self::One(id) | Self::Two(id) | Self::Leader(id)) = self;
        2 + bits(*id)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(id) => write!(f, "one {id}"),
            Self::Two(id) => write!(f, "two {id}"),
            Self::Leader(id) => write!(f, "leader {id}"),
        }
    }
}

impl Node for Peterson {
    type Knows = Id;
    type Message = Message;
    const ONE_WAY: bool = true;

    fn new(Id(id): Id, _ports: u32) -> Self {
        Self { id, held: id, first: 0, state: State::Asleep }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Message>) {
        self.state = State::One;
        turn.send(RIGHT, Message::One(self.held));
    }

    fn receive(&mut self, _from: Port, message: Message, turn: &mut Turn<'_, Message>) {
        if self.state == State::Asleep {
            self.wake(turn);
        }
        match (self.state, message) {
            (State::One, Message::One(id)) if id == self.held => {
                self.state = State::Announcer;
                turn.send(RIGHT, Message::Leader(id));
            }
            (State::One, Message::One(id)) => {
                (self.first, self.state) = (id, State::Two);
                turn.send(RIGHT, Message::Two(id));
            }
            (State::Two, Message::Two(id)) if self.first > self.held.max(id) => {
                (self.held, self.state) = (self.first, State::One);
                turn.send(RIGHT, Message::One(self.held));
            }
            (State::Two, Message::Two(_)) => self.state = State::Relay,
            (State::Announcer, Message::Leader(_)) => {}
            (_, Message::Leader(id)) => {
                (self.held, self.state) = (id, State::Told);
                turn.send(RIGHT, message);
            }
            _ => turn.send(RIGHT, message),
        }
    }

    fn standing(&self) -> Standing {
        match self.state {
            State::Asleep => Standing::Asleep,
            State::One | State::Two => Standing::Candidate,
            State::Relay => Standing::Passive,
            State::Announcer | State::Told if self.held == self.id => Standing::Leader,
            State::Announcer | State::Told => Standing::Follower(Some(self.held)),
        }
    }
}
