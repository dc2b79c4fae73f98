//! Le Lann: every id runs all the way round the ring, and everybody picks the largest it has seen.
//!
//! G. Le Lann: Distributed systems, towards a formal approach (IFIP 1977): the first election on a
//! ring.
//!
//! A node sends its id before it passes on any other. Links keep the order; so when its own id
//! comes back, every other node has sent its id before passing this one on, and all of them have
//! been seen. Always n² messages, and time n if all wake at once. Nobody needs to be told:
//! everybody has seen everything. [`clockwise`](super::clockwise) is this with the hopeless ids
//! swallowed.

use std::fmt;

use super::{Id, Node, Port, RIGHT, Standing, Turn, bits};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeLann {
    id: u32,
    largest: u32,
    awake: bool,
    done: bool,
}

/// An id on its way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u32);

impl super::Message for Token {
    const KINDS: &'static [&'static str] = &["id"];

    fn kind(&self) -> usize {
        0
    }

    fn bits(&self) -> u32 {
        2 + bits(self.0)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "id {}", self.0)
    }
}

impl Node for LeLann {
    type Knows = Id;
    type Message = Token;
    const ONE_WAY: bool = true;

    fn new(Id(id): Id, _ports: u32) -> Self {
        Self { id, largest: id, awake: false, done: false }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Token>) {
        self.awake = true;
        turn.send(RIGHT, Token(self.id));
    }

    fn receive(&mut self, _from: Port, Token(id): Token, turn: &mut Turn<'_, Token>) {
        if !self.awake {
            self.wake(turn);
        }
        self.largest = self.largest.max(id);
        if id == self.id {
            self.done = true;
        } else {
            turn.send(RIGHT, Token(id));
        }
    }

    fn standing(&self) -> Standing {
        match (self.done, self.largest == self.id) {
            (true, true) => Standing::Leader,
            (true, false) => Standing::Follower(Some(self.largest)),
            (false, true) if !self.awake => Standing::Asleep,
            (false, true) => Standing::Candidate,
            (false, false) => Standing::Passive,
        }
    }
}
