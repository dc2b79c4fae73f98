//! Eventual leadership: Omega, from "Omega Meets Paxos" (Malkhi, Oprea and Zhou, 2005).
//!
//! Each process always has a hint who leads. Hints may differ and may be wrong for any length of time; in the end all that live have the same
//! one. No link need be timely for ever: it is enough that one process, with every message, reaches some f others that answer within
//! delta, and these may be others each time.
//!
//! A process keeps its *epoch*, (serial, id), as long as its rounds are answered in time, and takes a higher one when they are not. Everybody
//! reads which epochs are still being refreshed, and follows the lowest.

use crate::NodeId;
use std::fmt;

/// A leadership that a process stands for: the lowest one that is alive leads. Ordered by serial, then by process.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    /// How often its process, or one that it knew of, gave an epoch up.
    pub serial: u64,
    /// Its process; `None` only in the epoch that stands for nobody, which is below all others of its serial.
    pub process: Option<NodeId>,
}

impl Epoch {
    /// The epoch of nobody.
    pub const NOBODY: Self = Self { serial: 0, process: None };

    /// An epoch of `process`.
    pub fn of(serial: u64, process: NodeId) -> Self {
        Self { serial, process: Some(process) }
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "({}, {process})", self.serial),
            None => write!(f, "({}, nobody)", self.serial),
        }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Whom a process takes for leader, and by which epoch. Of a stable Omega the epochs of successive leaders rise: the epoch can be the
/// first ballot of a consensus protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hint {
    /// The leader, if there seems to be one.
    pub leader: Option<NodeId>,
    /// Its epoch.
    pub epoch: Epoch,
}
