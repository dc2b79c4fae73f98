//! The star elects its centre: where the network is not symmetric, no ids are needed.
//!
//! "How to elect a leader in a star?" asks the lecture. A node with more than one port is the
//! centre: it leads and says so, n-1 messages in one unit of time. A leaf waits.
//!
//! With two nodes the star is as symmetric as a ring: each has one port, neither can know that it
//! is the centre, and both wait forever. That is no fault of this algorithm: in lock step they
//! stay equal, whatever they do.

use std::fmt;

use super::{Node, Nothing, Port, Standing, Turn};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Star {
    ports: u32,
    standing: Standing,
}

/// Announces the centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leader;

impl super::Message for Leader {
    const KINDS: &'static [&'static str] = &["leader"];

    fn kind(&self) -> usize {
        0
    }

    fn bits(&self) -> u32 {
        2
    }
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("leader")
    }
}

impl Node for Star {
    type Knows = Nothing;
    type Message = Leader;

    fn new(_knows: Nothing, ports: u32) -> Self {
        Self { ports, standing: Standing::Asleep }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Leader>) {
        self.standing = Standing::Candidate;
        if self.ports != 1 {
            self.standing = Standing::Leader;
            (0..self.ports).for_each(|port| turn.send(Port(port), Leader));
        }
    }

    fn receive(&mut self, _from: Port, _message: Leader, _turn: &mut Turn<'_, Leader>) {
        self.standing = Standing::Follower(None);
    }

    fn standing(&self) -> Standing {
        self.standing
    }
}
