//! The judge's questions besides what processes publish: real time, and what clocks show when.
//!
//! In the laboratory's own world all of it is known exactly. Of real processes only traces are
//! left: there an instant is known to lie between two readings, and what was not written down is
//! not known. Each question says which way its answer must err, so that whatever the judge calls
//! broken *is* broken.

use tenure_proto::strong::{Holder, Nerio, Rules};
use tenure_proto::time::Stamp;
use tenure_proto::{Elects, GroupId, LocalTime, NodeId};

use crate::property::Mark;
use crate::world::{RealTime, World};

/// An instant that is known to lie between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// It was not before.
    pub earliest: RealTime,
    /// It was not after.
    pub latest: RealTime,
}

impl Moment {
    /// An instant that is known.
    pub const fn exact(at: RealTime) -> Self {
        Self { earliest: at, latest: at }
    }

    /// Whether this was certainly before the other.
    pub fn is_before(self, other: Self) -> bool {
        self.latest < other.earliest
    }
}

/// A view of processes and their clocks.
pub trait Sight {
    /// The present: not later than the step that is being judged, and not earlier than its input.
    fn now(&self) -> RealTime;
    /// The present, at the latest.
    fn latest(&self) -> RealTime;
    /// The first instant at which a process's *reading* is no longer below `until`, at the
    /// earliest.
    fn stops(&self, node: NodeId, until: LocalTime) -> RealTime;
    /// Until when the judge would know of it, if this process had stopped to lead: who has said
    /// nothing since may have.
    fn heard_until(&self, node: NodeId) -> RealTime;
    /// The first instant at which a process's clock reaches `until`: the paper's c_q.
    fn ends(&self, node: NodeId, until: LocalTime) -> Moment;
    /// Until when a process may lead a group by a reading of its clock, if at all; it has just said
    /// `until`.
    fn leadership(
        &self,
        node: NodeId,
        group: GroupId,
        reading: LocalTime,
        until: LocalTime,
    ) -> Option<LocalTime>;
    /// Whether nothing is hidden: every process is seen, and all that it does.
    fn sees_all(&self) -> bool;
    /// Whether the judge knows all that a node has done up to an instant.
    fn knows(&self, node: NodeId, at: RealTime) -> bool;
    /// Whether the judge knows all that this life of a node has done up to now.
    fn follows(&self, life: Holder) -> bool;
    /// Whether the judge would know of a grant with this stamp.
    fn has_stamped(&self, grantor: NodeId, stamp: Stamp) -> bool;
    /// Where what is being judged was said, if that has a place.
    fn mark(&self) -> Option<Mark>;
}

impl<R: Rules> Sight for World<Nerio<R>> {
    fn now(&self) -> RealTime {
        self.now
    }

    fn latest(&self) -> RealTime {
        self.now
    }

    fn stops(&self, node: NodeId, until: LocalTime) -> RealTime {
        self.host(node).reading_reaches(until)
    }

    fn heard_until(&self, _node: NodeId) -> RealTime {
        RealTime(u64::MAX)
    }

    fn ends(&self, node: NodeId, until: LocalTime) -> Moment {
        Moment::exact(self.host(node).instant(until))
    }

    /// The machine itself is asked, by the clock that it would ask: an event is not authority.
    fn leadership(
        &self,
        node: NodeId,
        group: GroupId,
        reading: LocalTime,
        _until: LocalTime,
    ) -> Option<LocalTime> {
        self.host(node).process.as_ref()?.leadership(group, reading)
    }

    fn sees_all(&self) -> bool {
        true
    }

    fn knows(&self, _node: NodeId, _at: RealTime) -> bool {
        true
    }

    fn follows(&self, _life: Holder) -> bool {
        true
    }

    fn has_stamped(&self, _grantor: NodeId, _stamp: Stamp) -> bool {
        true
    }

    fn mark(&self) -> Option<Mark> {
        None
    }
}
