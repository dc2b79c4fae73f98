//! Groups of kind `local`: a leader for every partition.
//!
//! Members that can talk to each other *in time* have one leader, however few they are; those
//! beyond a cut, or beyond a link that has become too slow, have one of their own. Each knows who
//! is in its **logical partition**, and logical partitions never overlap: nobody is in two at any
//! instant. There is no edict: two local leaders of one group may act at the same time, on either
//! side of a cut, and nothing could order what they do. With [`Locality::majority`] more than half
//! of all members must support a leader, and there is at most one in the whole system.
//!
//! What is assumed (ρ, δ, σ) is said in [`Locality`], and must be the same on every member: those
//! who say something else are not heard. Where it does not hold for a while, leaders are lost and
//! found later; only a clock that is worse than ρ can make partitions overlap.

use std::time::Duration;

use tenure_proto::LocalTime;
use tokio::sync::{mpsc, watch};

use crate::clock::Forward;
use crate::driver::{Mailbox, Request};
use crate::name::{GroupName, NodeName};

/// The assumptions about the members of a local group, and how their leader is chosen. The same on
/// all of them. To assume something else, leave the group on every member first: those who assume
/// different things do not hear each other, and one that is started anew does not know how long a
/// lock it was bound by before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Locality {
    /// ρ, in parts per million: how wrong the rate of a clock may be. A thousandth by default:
    /// twice what time daemons slew by.
    pub drift_ppm: u32,
    /// δ: a message that takes longer is late. 10 ms by default.
    pub delay: Duration,
    /// δmin: no message takes less. Nothing by default, which is always true.
    pub least_delay: Duration,
    /// Δ: whoever's messages take longer is beyond the partition. `None` for the least that δ and ρ
    /// allow.
    pub fast: Option<Duration>,
    /// σ: how late a process is woken, when all goes well. 50 ms by default.
    pub hole: Duration,
    /// EP: how often a leader asks for support. `None` for the most often that the others allow.
    pub pace: Option<Duration>,
    /// Whether more than half of all members must support a leader.
    pub majority: bool,
    /// After how long a leader lets the next one have its turn; `None` if it stays.
    pub turn: Option<Duration>,
    /// How many children an inner node of the tree has along which answers come; `None` if each
    /// answers the leader itself.
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

/// A logical partition: who leads it, and who is in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// Its leader.
    pub leader: NodeName,
    /// Its members, the leader among them, sorted.
    pub members: Vec<NodeName>,
}

/// What the driver shows, and until when it may be relied upon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    pub(crate) partition: Option<(Partition, LocalTime)>,
    /// Until when this process leads.
    pub(crate) leads: Option<LocalTime>,
}

/// A group of kind `local`, as this member sees it: see [`Node::local`](crate::Node::local). When
/// the last clone is dropped this process takes no part any more, and others lead without it.
#[derive(Clone, Debug)]
pub struct Local {
    pub(crate) group: GroupName,
    pub(crate) surroundings: watch::Receiver<Surroundings>,
    /// What `changed` gave last.
    pub(crate) told: Option<Partition>,
    pub(crate) clock: Forward,
    pub(crate) mailbox: Mailbox,
    /// Closed when the last clone is gone.
    pub(crate) _held: mpsc::Sender<()>,
}

impl Local {
    /// Which group.
    pub fn group(&self) -> &GroupName {
        &self.group
    }

    /// Who leads this process's partition, and who is in it: as of now, by a comparison of clocks.
    /// `None` if that is not known, as while there is no leader.
    pub fn partition(&self) -> Option<Partition> {
        let surroundings = self.surroundings.borrow();
        let (partition, until) = surroundings.partition.as_ref()?;
        self.clock.is_before(*until).then(|| partition.clone())
    }

    /// Who leads this process's partition now, if that is known. The strong leader of a group of
    /// the same name is another question: see [`Node::observe`](crate::Node::observe).
    pub fn local_leader(&self) -> Option<NodeName> {
        self.partition().map(|partition| partition.leader)
    }

    /// Who is in this process's partition now, itself included, sorted; nobody if that is not
    /// known.
    pub fn members(&self) -> Vec<NodeName> {
        self.partition().map_or_else(Vec::new, |partition| partition.members)
    }

    /// Whether this process leads its partition now, by a comparison of clocks.
    pub fn leads(&self) -> bool {
        self.surroundings.borrow().leads.is_some_and(|until| self.clock.is_before(until))
    }

    /// Stops leading, if it does, and frees its supporters. The next may be another, or the same
    /// one again.
    pub fn resign(&self) {
        self.mailbox.send(Request::ResignLocal { group: self.group.id() });
    }

    /// Waits until the partition is another one than this handle gave last by this call, at first:
    /// than none. Another leader, other members, or none. `Err` when the node has stopped. May be
    /// dropped and called again: nothing is lost.
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

/// The node has stopped, and nobody looks at the group any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node has stopped")]
pub struct LocalOver;

fn shown(surroundings: &Surroundings) -> Option<Partition> {
    surroundings.partition.as_ref().map(|(partition, _)| partition.clone())
}
