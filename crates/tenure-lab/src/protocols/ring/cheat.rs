//! An algorithm that cheats on uniformity, for the adversary to catch.
//!
//! It says that it does not know n, and on a ring of four it is always right: who has seen four ids
//! picks the largest. On a larger ring a fifth id may sit where it did not look, and that is just
//! where the adversary keeps an edge open.

use tenure_proto::classic::lelann::Token;
use tenure_proto::classic::{Id, Node, Port, RIGHT, Standing, Turn};

/// A node that takes every ring for one of four.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AssumesFour {
    id: u32,
    largest: u32,
    seen: u32,
}

impl Node for AssumesFour {
    type Knows = Id;
    type Message = Token;

    fn new(Id(id): Id, _ports: u32) -> Self {
        Self { id, largest: id, seen: 0 }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Token>) {
        self.seen = 1;
        turn.send(RIGHT, Token(self.id));
    }

    fn receive(&mut self, _from: Port, Token(id): Token, turn: &mut Turn<'_, Token>) {
        if self.seen == 0 {
            self.wake(turn);
        }
        if id != self.id {
            (self.seen, self.largest) = (self.seen + 1, self.largest.max(id));
            turn.send(RIGHT, Token(id));
        }
    }

    fn standing(&self) -> Standing {
        match (self.seen, self.largest == self.id) {
            (0, _) => Standing::Asleep,
            (1..4, true) => Standing::Candidate,
            (1..4, false) => Standing::Passive,
            (_, true) => Standing::Leader,
            (_, false) => Standing::Follower(Some(self.largest)),
        }
    }
}
