//! The reverse: consensus from an election. The last bit of the elected name decides.
//!
//! Each process proposes the last bit of its own name. All elect; the first that a process elects
//! decides for it. If elections are safe and live, this is consensus: **agreement** (all elect the
//! same), **validity** (the bit is the one that some process proposed: the elected one),
//! **termination** (all elect). So where consensus is impossible, in an asynchronous system with
//! one crash, election is impossible too: the laboratory shows the run in which a late answer of
//! the `bully` below makes two processes decide differently.
//!
//! The lecture's processes that crash stay crashed. One that comes back here is taken at that word:
//! it takes no part, for it has forgotten what it decided.

use super::bully::{self, Bully};
use super::{Algorithm, Cell, Config, Desk, Event, Rules};
use crate::boot::{Boot, BootKind};
use crate::time::LocalSpan;
use crate::{LocalTime, NodeId};

/// A process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ByElection {
    bully: Bully,
    decided: Option<bool>,
    /// Whether this is its first life.
    takes_part: bool,
}

type D<'a, R> = Desk<'a, bully::Message, R>;

impl ByElection {
    fn decide<R: Rules>(&mut self, desk: &mut D<'_, R>) {
        if let (None, Some(elected)) = (self.decided, desk.elected()) {
            let value = elected.0 % 2 == 1;
            self.decided = Some(value);
            desk.tell(Event::Decided { value });
        }
    }
}

impl<R: Rules> Algorithm<R> for ByElection {
    type Message = bully::Message;

    fn new(_config: &Config<R>, _me: NodeId, boot: &Boot<Cell>) -> Self {
        Self { bully: Bully::normal(false), decided: None, takes_part: boot.kind == BootKind::Founding }
    }

    fn call(&mut self, desk: &mut D<'_, R>) {
        self.bully.call(desk);
        self.decide(desk);
    }

    fn hear(&mut self, from: NodeId, message: bully::Message, desk: &mut D<'_, R>) {
        self.bully.hear(from, message, desk);
        self.decide(desk);
    }

    fn suspect(&mut self, whom: NodeId, desk: &mut D<'_, R>) {
        self.bully.suspect(whom, desk);
        self.decide(desk);
    }

    fn trust(&mut self, whom: NodeId, desk: &mut D<'_, R>) {
        self.bully.trust(whom, desk);
        self.decide(desk);
    }

    fn deadline(&mut self, desk: &mut D<'_, R>) {
        self.bully.deadline(desk);
        self.decide(desk);
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        self.bully.next_deadline()
    }

    fn takes_part(&self) -> bool {
        self.takes_part
    }

    fn settle(config: &Config<R>) -> LocalSpan {
        bully::settle(config)
    }
}
