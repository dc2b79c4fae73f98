//! Groups of kind `local`: a leader for every partition.
//!
//! Members that can talk to each other *in time* have one leader, however few they are; those
//! beyond a cut, or beyond a link that has become too slow, have one of their own. Each knows who
//! is in its **logical partition**, and logical partitions never overlap: nobody is in two at any
//! instant. There is no edict: two local leaders of one group may act at the same time, on either
//! side of a cut, and nothing could order what they do. With [`Locality::majority`] more than half
//! of all members must support a leader, and there is at most one in the whole system.
//!
//! The assumptions (ρ, δ, σ) stand in [`Locality`] and must be the same on every member: a member
//! ignores messages of members with other assumptions. Where it does not hold for a while, leaders
//! are lost and found later; only a clock that is worse than ρ can make partitions overlap.

use std::time::Duration;

use tenure_proto::LocalTime;
use tokio::sync::{mpsc, watch};

use crate::clock::Forward;
use crate::driver::{Mailbox, Request};
use crate::name::{GroupName, NodeName};

/// The assumptions about a local group, and how its leader is chosen.
///
/// They must be the same on all members. To change them, leave the group on every member first:
/// members with different assumptions ignore each other, and a member that restarts does not know
/// how long the lock was that bound it before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Locality {
    /// ρ: how far the rate of a clock may be off, in parts per million. 1,000 by default.
    ///
    /// That is twice what time daemons slew by. Larger is safer, and makes locks longer. If a clock
    /// is worse, partitions may overlap.
    pub drift_ppm: u32,
    /// δ: a message that takes longer is late. 10 ms by default.
    ///
    /// Larger: slower elections. Smaller: more messages are late, and leaders are lost. Choose a
    /// delay that the network rarely exceeds.
    pub delay: Duration,
    /// δmin: no message takes less time. Zero by default, which is always true.
    ///
    /// Larger: delays are measured more exactly. If a message is faster, the measurement is wrong.
    pub least_delay: Duration,
    /// Δ: a member whose messages take longer is outside of the partition.
    ///
    /// Default `None`: the least that δ and ρ allow. Larger: slow members stay in the partition,
    /// and locks are longer.
    pub fast: Option<Duration>,
    /// σ: how late a process is woken, when all goes well. 50 ms by default.
    ///
    /// Larger: slower elections. Smaller: a busy host loses its leadership.
    pub hole: Duration,
    /// EP: the period at which a leader asks for support.
    ///
    /// Default `None`: the shortest that the other settings allow. Larger: fewer messages and
    /// slower elections.
    pub pace: Option<Duration>,
    /// Whether more than half of all members must support a leader. False by default.
    ///
    /// If true, there is at most one leader in the whole system, and none in a minority partition.
    pub majority: bool,
    /// The time after which a leader lets the next member have its turn. Default `None`: it stays.
    pub turn: Option<Duration>,
    /// The number of children of an inner node in the tree along which answers travel.
    ///
    /// Default `None`: each member answers the leader itself. Set it in large groups, where many
    /// answers at once burden the leader.
    pub tree: Option<usize>,
}

impl Default for Locality {
    fn default() -> Self {
        Self {
            drift_ppm: 1_000,
            delay: Duration::from_millis(10),
            least_delay: Duration::ZERO,
            fast: None,
            hole: Duration::from_millis(50),
            pace: None,
            majority: false,
            turn: None,
            tree: None,
        }
    }
}

/// A logical partition: its leader and its members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Partition {
    /// Its leader.
    pub leader: NodeName,
    /// Its members, the leader among them, sorted.
    pub members: Vec<NodeName>,
}

/// The partition that the driver shows, and the time until which it is certain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    pub(crate) partition: Option<(Partition, LocalTime)>,
    /// Until when this process leads.
    pub(crate) leads: Option<LocalTime>,
}

/// A handle of a local group, as this member sees it: see [`Node::local`](crate::Node::local).
///
/// When the last clone is dropped, this process no longer takes part, and others lead without it.
#[derive(Clone, Debug)]
pub struct Local {
    pub(crate) group: GroupName,
    pub(crate) surroundings: watch::Receiver<Surroundings>,
    /// The partition that `changed` returned last.
    pub(crate) told: Option<Partition>,
    pub(crate) clock: Forward,
    pub(crate) mailbox: Mailbox,
    /// Closed when the last clone is gone.
    pub(crate) _held: mpsc::Sender<()>,
}

impl Local {
    /// Returns the name of the group.
    pub fn group(&self) -> &GroupName {
        &self.group
    }

    /// Returns the partition of this process, as of now, by a comparison of clocks.
    ///
    /// `None` if it is not known, for example while there is no leader.
    pub fn partition(&self) -> Option<Partition> {
        let surroundings = self.surroundings.borrow();
        let (partition, until) = surroundings.partition.as_ref()?;
        self.clock.is_before(*until).then(|| partition.clone())
    }

    /// Returns the leader of this process's partition now, if it is known.
    ///
    /// The strong leader of a group of the same name is another question: see
    /// [`Node::observe`](crate::Node::observe).
    pub fn local_leader(&self) -> Option<NodeName> {
        self.partition().map(|partition| partition.leader)
    }

    /// Returns the members of this process's partition now, sorted, itself included.
    ///
    /// Empty if the partition is not known.
    pub fn members(&self) -> Vec<NodeName> {
        self.partition().map_or_else(Vec::new, |partition| partition.members)
    }

    /// Returns whether this process leads its partition now, by a comparison of clocks.
    pub fn leads(&self) -> bool {
        self.surroundings.borrow().leads.is_some_and(|until| self.clock.is_before(until))
    }

    /// Stops leading, if this process leads, and frees its supporters.
    ///
    /// The next leader may be another process, or this one again.
    pub fn resign(&self) {
        self.mailbox.send(Request::ResignLocal { group: self.group.id() });
    }

    /// Waits for a partition that differs from the last one that this call returned.
    ///
    /// The leader or the members differ, or there is no partition any more (`None`). The first call
    /// waits for the first partition. The future may be dropped and the call repeated: no change is
    /// lost.
    ///
    /// # Errors
    /// [`LocalOver`] when the node has stopped.
    pub async fn changed(&mut self) -> Result<Option<Partition>, LocalOver> {
        loop {
            let now = shown(&self.surroundings.borrow_and_update());
            if now != self.told {
                self.told = now.clone();
                return Ok(now);
            }
            self.surroundings.changed().await.map_err(|_| LocalOver)?;
        }
    }
}

/// The error of a local group whose node has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node has stopped")]
pub struct LocalOver;

fn shown(surroundings: &Surroundings) -> Option<Partition> {
    surroundings.partition.as_ref().map(|(partition, _)| partition.clone())
}
