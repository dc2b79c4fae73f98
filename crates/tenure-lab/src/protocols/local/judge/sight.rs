//! The judge's questions besides what processes publish: real time, and until when a process leads
//! or is bound.
//!
//! In the laboratory's own world all of it is known exactly. Of real processes only traces are
//! left. Each question says which way its answer must err, so that whatever the judge calls broken
//! *is* broken.

use tenure_proto::LocalTime;
use tenure_proto::local::{Lease, Local, Rules};

use crate::property::Mark;
use crate::world::{RealTime, World, node_id};

/// A view of processes and their clocks. Processes are named by their positions in the member list.
pub trait Sight {
    /// The present: not later than the step that is being judged.
    fn now(&self) -> RealTime;
    /// The present, at the latest.
    fn latest(&self) -> RealTime;
    /// The lease by which a process leads now, by its own clock.
    fn lease(&self, node: usize) -> Option<Lease>;
    /// The first instant at which a process's reading is no longer below `until`, at the earliest:
    /// so long it leads for certain.
    fn stops(&self, node: usize, until: LocalTime) -> RealTime;
    /// The same, at the latest: so long it may be bound.
    fn ends(&self, node: usize, until: LocalTime) -> RealTime;
    /// Whether the judge knows all that a process has promised so far.
    fn knows(&self, node: usize) -> bool;
    /// Where what is being judged was said, if that has a place.
    fn mark(&self) -> Option<Mark>;
}

impl<R: Rules> Sight for World<Local<R>> {
    fn now(&self) -> RealTime {
        self.now
    }

    fn latest(&self) -> RealTime {
        self.now
    }

    /// The machine itself is asked: an event is not authority.
    fn lease(&self, node: usize) -> Option<Lease> {
        let host = self.host(node_id(node));
        host.process.as_ref()?.lease(host.reading(self.now))
    }

    fn stops(&self, node: usize, until: LocalTime) -> RealTime {
        self.host(node_id(node)).reading_reaches(until)
    }

    fn ends(&self, node: usize, until: LocalTime) -> RealTime {
        self.host(node_id(node)).reading_reaches(until)
    }

    fn knows(&self, _node: usize) -> bool {
        true
    }

    fn mark(&self) -> Option<Mark> {
        None
    }
}
