//! Time slice: silence is information too.
//!
//! "Sync Leader Election" of the lecture; Attiya and Welch, section 3.4.1; Lynch, section 3.6.1
//! (`TimeSlice`).
//!
//! In rounds, with n known and a common start, time is divided into phases of n rounds. Phase v
//! belongs to id v: if node v has heard nothing when its phase begins, nobody with a smaller id
//! exists, and it leads and says so. That message has come all the way round before the next phase
//! begins. So there are n messages, all of them the announcement, in n·min+n rounds. The bound of n
//! log n holds for algorithms that cannot count rounds; this one may have to wait for long.

use std::fmt;

use super::{IdAndSize, Node, Port, RIGHT, Standing, Turn, bits};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TimeSlice {
    knows: IdAndSize,
    standing: Standing,
}

/// Announces the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leader(pub u32);

impl super::Message for Leader {
    const KINDS: &'static [&'static str] = &["leader"];

    fn kind(&self) -> usize {
        0
    }

    fn bits(&self) -> u32 {
        2 + bits(self.0)
    }
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "leader {}", self.0)
    }
}

impl Node for TimeSlice {
    type Knows = IdAndSize;
    type Message = Leader;
    const ROUNDS: bool = true;

    fn new(knows: IdAndSize, _ports: u32) -> Self {
        Self { knows, standing: Standing::Asleep }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Leader>) {
        self.standing = Standing::Candidate;
        let phase = u64::from(self.knows.id) * u64::from(self.knows.size);
        if phase > turn.round() {
            turn.alarm(phase);
        } else {
            self.alarm(turn);
        }
    }

    fn receive(&mut self, _from: Port, message: Leader, turn: &mut Turn<'_, Leader>) {
        if self.standing != Standing::Leader {
            self.standing = Standing::Follower(Some(message.0));
            turn.send(RIGHT, message);
        }
    }

    fn alarm(&mut self, turn: &mut Turn<'_, Leader>) {
        if self.standing == Standing::Candidate {
            self.standing = Standing::Leader;
            turn.send(RIGHT, Leader(self.knows.id));
        }
    }

    fn standing(&self) -> Standing {
        self.standing
    }
}
