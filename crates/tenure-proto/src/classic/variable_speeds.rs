//! Variable speeds: the smaller the id, the faster it runs.
//!
//! G. N. Frederickson and N. A. Lynch: Electing a leader in a synchronous ring (JACM 34, 1987); P.
//! Vitányi (STOC 1984). Lynch, section 3.6.2 (`VariableSpeeds`).
//!
//! In rounds, with a common start, but without knowing n: the token of id v takes one step in 2^v
//! rounds. A node remembers the smallest id it has seen and stops every larger token. While the
//! smallest token makes its n steps, the next can make at most n/2, the next n/4, and so on: fewer
//! than 2n messages, and n to tell. It takes n·2^min rounds: fewer messages than any asynchronous
//! algorithm can do with, for a time that has no bound in n.

use std::fmt;

use super::{Id, Node, Port, RIGHT, Standing, Turn, bits};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VariableSpeeds {
    id: u32,
    /// The smallest id that it has seen.
    smallest: u32,
    /// In which round the token of that id leaves, if it is here.
    leaves: Option<u64>,
    standing: Standing,
}

/// A message between neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// An id on its way.
    Token(u32),
    /// The leader's id.
    Leader(u32),
}

impl super::Message for Message {
    const KINDS: &'static [&'static str] = &["token", "leader"];

    fn kind(&self) -> usize {
        match self {
            Self::Token(_) => 0,
            Self::Leader(_) => 1,
        }
    }

    fn bits(&self) -> u32 {
        let (Self::Token(id) | Self::Leader(id)) = self;
        2 + bits(*id)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(id) => write!(f, "token {id}"),
            Self::Leader(id) => write!(f, "leader {id}"),
        }
    }
}

impl Node for VariableSpeeds {
    type Knows = Id;
    type Message = Message;
    const ROUNDS: bool = true;

    fn new(Id(id): Id, _ports: u32) -> Self {
        Self { id, smallest: u32::MAX, leaves: None, standing: Standing::Asleep }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Message>) {
        self.standing = Standing::Candidate;
        self.hold(self.id, turn);
    }

    fn receive(&mut self, _from: Port, message: Message, turn: &mut Turn<'_, Message>) {
        match message {
            Message::Token(id) if id == self.id => {
                self.standing = Standing::Leader;
                turn.send(RIGHT, Message::Leader(id));
            }
            Message::Token(id) if id < self.smallest => {
                self.standing = Standing::Passive;
                self.hold(id, turn);
            }
            Message::Token(_) => {}
            Message::Leader(id) => {
                if self.standing != Standing::Leader {
                    (self.standing, self.leaves) = (Standing::Follower(Some(id)), None);
                    turn.send(RIGHT, message);
                }
            }
        }
    }

    fn alarm(&mut self, turn: &mut Turn<'_, Message>) {
        if self.leaves.is_some_and(|round| round <= turn.round()) {
            self.leaves = None;
            turn.send(RIGHT, Message::Token(self.smallest));
        }
    }

    fn standing(&self) -> Standing {
        self.standing
    }
}

impl VariableSpeeds {
    /// Keeps the token here for 2^id rounds, the step included. One that would leave after the end
    /// of all time stays.
    fn hold(&mut self, id: u32, turn: &mut Turn<'_, Message>) {
        self.smallest = id;
        let rest = 1_u64.checked_shl(id).map(|rounds| rounds - 1);
        self.leaves = rest.and_then(|rest| turn.round().checked_add(rest));
        match self.leaves {
            Some(round) if round > turn.round() => turn.alarm(round),
            _ => self.alarm(turn),
        }
    }
}
