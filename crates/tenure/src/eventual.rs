//! Groups of kind `eventual`: a hint who leads, which in the end is the same everywhere.
//!
//! Every member has an opinion at any time. Opinions may differ, and may be wrong for as long as
//! the network is bad; once some member reaches enough others in time, each time perhaps others,
//! all agree, and stay with a leader that does its part. Enough are a quorum: a leader asks one for
//! its epoch and is written down by one in every period, so with two of three down nobody leads.
//! Nothing is written to a disk, and no quorum checks what a leader *does*. So **a hint is no
//! authority**: there is no edict, and whatever is done on a hint must be decided by something
//! behind it, a consensus protocol say.
//!
//! Still it is more than a guess. As long as clocks keep to the cluster's bound, of all members at
//! most one at a time [says of itself](Eventual::leads) that it leads, and each has a larger
//! [epoch](Hint::epoch) than the one before, also while members are added and removed. Nothing
//! being kept, that ends where so many members were restarted at once that too few are left who
//! know: those begin anew, with low epochs, after the longest lease. After a change of the
//! cluster's members or bounds, too, nobody leads for a while: if some member does not answer, for
//! the longest lease and half of it, and where the bounds change for the longest lease of before as
//! well.

use tenure_proto::LocalTime;
use tokio::sync::watch;

use crate::clock::Forward;
use crate::name::{GroupName, NodeName};

/// A hint: the process that seems to lead, without authority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hint {
    /// The leader's name; `None` if this member has no opinion yet, or if its round trips are too
    /// slow.
    pub leader: Option<NodeName>,
    /// The number of its leadership: larger than that of any that [led](Eventual::leads) before,
    /// also by other members; zero without a leader. The number of the cluster's epoch comes
    /// first in it. It can be the first ballot of a consensus protocol, which must not rest on more
    /// than that it is nobody else's: after a restart of so many members that too few know of it
    /// (of all of them, say), it begins anew.
    pub epoch: u128,
}

/// The opinion that the driver shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opinion {
    pub(crate) hint: Hint,
    /// Until when this process may say that it leads.
    pub(crate) until: Option<LocalTime>,
}

/// A handle of an eventual group: this member's opinion of its leader.
///
/// See [`Node::eventual`](crate::Node::eventual). Dropping it changes nothing: a member that has
/// begun to take part goes on.
#[derive(Clone, Debug)]
pub struct Eventual {
    pub(crate) group: GroupName,
    pub(crate) opinion: watch::Receiver<Opinion>,
    /// The hint that `changed` returned last.
    pub(crate) told: Hint,
    pub(crate) clock: Forward,
}

impl Eventual {
    /// Returns the name of the group.
    pub fn group(&self) -> &GroupName {
        &self.group
    }

    /// Returns the process that seems to lead now.
    pub fn hint(&self) -> Hint {
        self.opinion.borrow().hint.clone()
    }

    /// Returns whether this very process leads, by a comparison of clocks at the moment of the
    /// call.
    pub fn leads(&self) -> bool {
        self.opinion.borrow().until.is_some_and(|until| self.clock.is_before(until))
    }

    /// Waits for a hint that differs from the last one that this call returned.
    ///
    /// The first call waits for the first hint. It returns `None` when the node has stopped or is
    /// no longer a member: a node that becomes a member again gives a new handle. The future may be
    /// dropped and the call repeated: no hint is lost.
    pub async fn changed(&mut self) -> Option<Hint> {
        loop {
            let hint = self.opinion.borrow_and_update().hint.clone();
            if hint != self.told {
                self.told = hint.clone();
                return Some(hint);
            }
            self.opinion.changed().await.ok()?;
        }
    }

    /// Waits until some process seems to lead, and returns its name.
    ///
    /// `None` as by [`changed`](Self::changed). A dropped future changes nothing.
    pub async fn leader(&mut self) -> Option<NodeName> {
        let opinion = self.opinion.wait_for(|opinion| opinion.hint.leader.is_some()).await.ok()?;
        opinion.hint.leader.clone()
    }
}
