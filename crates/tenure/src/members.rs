//! Changing the members, their quorums and their bounds while every group goes on being led.
//!
//! A change is decided by a quorum of the present members and takes effect by epochs: one for a
//! small step, several where the quorums of now and then need not meet. It is safe when it is
//! interrupted anywhere; some member finishes it. Each step waits for about a longest lease after
//! the one before.

use std::time::Duration;

use tenure_proto::NodeId;
use tenure_proto::quorum::Quorums;
use tenure_proto::strong::Term;
use tenure_proto::strong::epoch::{Change, Epoch};
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};
use tokio::sync::mpsc;

use crate::chance;
use crate::clock::nanos;
use crate::config::{ClockBound, Peer};
use crate::contact::Contact;
use crate::error::MembersError;
use crate::name::NodeName;
use crate::node::term_floor;
use crate::repair::group_id;

/// A change of the members, their quorums or their bounds: see
/// [`Node::change_members`](crate::Node::change_members).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberChange {
    /// Adds one member. It must run already, with a store that was made by joining, and it grants
    /// from the epoch on that names it.
    Add(Peer),
    /// Removes one member.
    Remove(String),
    /// Replaces one member by another, for example after a lost disk.
    Replace {
        /// The member that leaves.
        old: String,
        /// The process that takes its place. It must run already.
        new: Peer,
    },
    /// Sets all members and their quorums at once. New members must run already.
    Set {
        /// The members, in the order that `quorums` speaks of.
        members: Vec<Peer>,
        /// As in the configuration: `majority`, `weights:3,1,1`, `grid:2x3`, `list:01,12,02`.
        quorums: String,
    },
    /// Another bound on the clocks.
    Bound(ClockBound),
    /// Another longest lease.
    LongestLease(Duration),
    /// Changes several settings together, in as few epochs as possible. A setting of `None` stays.
    Adjust {
        /// Other quorums of the present members, in the order of
        /// [`Status::members`](crate::Status::members): as in the configuration.
        quorums: Option<String>,
        /// Sets another bound on the clocks.
        bound: Option<ClockBound>,
        /// Another longest lease.
        longest_lease: Option<Duration>,
    },
    /// For a lost quorum only: goes on without members that are powered off and will *never run
    /// again* with their stores. All others must answer. Takes about a longest lease more.
    ///
    /// Then only your word and a wait keep two leaders apart. A split brain is possible if one of
    /// the named members runs on, or if members were added that none of the remaining ones has
    /// heard of: two clusters may each elect a leader, and their tokens may even be equal.
    ForceRemove {
        /// The members that are powered off.
        powered_off: Vec<String>,
        /// Terms go on above this. Without it: above all that the others have granted, above the
        /// seconds since 2024, and by a margin besides, for nobody knows what those who are gone
        /// have granted among themselves.
        floor: Option<Term>,
    },
    /// Lets a group be led again that a repair of terms has [barred](crate::repair). Reset the
    /// fences of its resources first: new tokens are smaller than the absurd one.
    LiftBar(String),
}

/// By how much terms jump when nobody can say how far they got: far more elections than any cluster
/// holds while it loses its quorum.
pub(crate) const MARGIN: u64 = 1 << 16;

/// The progress of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A step is done: this epoch is in force now.
    Epoch(Epoch),
    /// The next step waits until leases of before are over.
    Waiting {
        /// For how long still, as of now.
        left: Duration,
    },
    /// These members were asked and have not answered yet. A quorum must answer, or all of them if
    /// members are removed by force.
    Unheard {
        /// The members that have not answered.
        members: Vec<NodeName>,
    },
    /// The whole change is done.
    Done(Epoch),
    /// The change stopped. Steps that were done stay.
    Failed(MembersError),
}

/// A change of the members under way. Dropping it does not stop the change.
#[derive(Debug)]
pub struct Changing(pub(crate) mpsc::UnboundedReceiver<Progress>);

impl Changing {
    /// Waits for the next step; returns `None` after the last.
    ///
    /// The future may be dropped and the call repeated: no step is lost.
    pub async fn next(&mut self) -> Option<Progress> {
        self.0.recv().await
    }

    /// Waits for the end of the change, and returns the last epoch.
    ///
    /// A dropped future does not stop the change.
    ///
    /// # Errors
    /// A [`MembersError`] if the change stopped. Steps that were done stay.
    pub async fn done(mut self) -> Result<Epoch, MembersError> {
        loop {
            match self.next().await {
                Some(Progress::Done(epoch)) => return Ok(epoch),
                Some(Progress::Failed(error)) => return Err(error),
                Some(Progress::Epoch(_) | Progress::Waiting { .. } | Progress::Unheard { .. }) => {}
                None => return Err(MembersError::Stopped(crate::error::Stopped::ShutDown)),
            }
        }
    }
}

/// A change, as far as it can be made out without the present members.
pub(crate) struct Wanted {
    pub(crate) change: Change,
    /// Those who are new, and where they are.
    pub(crate) contacts: Vec<Contact>,
    /// Quorums of the present members, as they were written.
    pub(crate) quorums: Option<String>,
    /// All whom the change names.
    names: Vec<NodeName>,
}

impl Wanted {
    /// How somebody was named who may not be known otherwise.
    pub(crate) fn name(&self, node: NodeId) -> Option<NodeName> {
        self.names.iter().find(|name| name.id() == node).cloned()
    }
}

impl MemberChange {
    /// As the machine wants it, with the names and addresses of those who are new.
    pub(crate) fn resolve(&self) -> Result<Wanted, MembersError> {
        let (change, contacts) = self.parts()?;
        let quorums = if let Self::Adjust { quorums, .. } = self { quorums.clone() } else { None };
        let old = match self {
            Self::Remove(name) | Self::Replace { old: name, .. } => vec![node(name)?],
            Self::ForceRemove { powered_off, .. } => {
                powered_off.iter().map(|name| node(name)).collect::<Result<_, _>>()?
            }
            _ => Vec::new(),
        };
        let names = contacts.iter().map(|contact| contact.name.clone()).chain(old).collect();
        Ok(Wanted { change, contacts, quorums, names })
    }

    fn parts(&self) -> Result<(Change, Vec<Contact>), MembersError> {
        match self {
            Self::Add(peer) => {
                let contact = contact(peer)?;
                Ok((Change::Add(contact.name.id()), vec![contact]))
            }
            Self::Remove(name) => Ok((Change::Remove(node(name)?.id()), Vec::new())),
            Self::Replace { old, new } => {
                let contact = contact(new)?;
                Ok((Change::Replace { old: node(old)?.id(), new: contact.name.id() }, vec![contact]))
            }
            Self::Set { members, quorums } => {
                let contacts = members.iter().map(contact).collect::<Result<Vec<_>, _>>()?;
                let ids = contacts.iter().map(|contact| contact.name.id()).collect();
                let quorums = Quorums::parse(quorums, ids).map_err(|error| halted(&error))?;
                Ok((Change::Quorums(quorums), contacts))
            }
            Self::Bound(bound) => Ok((Change::Clocks(clocks(*bound)?), Vec::new())),
            Self::LongestLease(length) => {
                Ok((Change::LongestLease(Span::from_nanos(nanos(*length))), Vec::new()))
            }
            Self::Adjust { bound, longest_lease, .. } => {
                let clocks = bound.map(clocks).transpose()?;
                let longest_lease = longest_lease.map(|length| Span::from_nanos(nanos(length)));
                Ok((Change::Set { quorums: None, clocks, longest_lease }, Vec::new()))
            }
            Self::ForceRemove { powered_off, floor } => {
                let gone = powered_off.iter().map(|name| Ok(node(name)?.id()));
                let gone = gone.collect::<Result<Vec<_>, MembersError>>()?;
                let (least, margin) = floor.map_or_else(|| (term_floor(), MARGIN), |floor| (floor, 0));
                let draw = chance::wide();
                Ok((Change::ForceRemove { gone, least, margin, draw }, Vec::new()))
            }
            Self::LiftBar(group) => {
                let id = group_id(group).map_err(|error| halted(&error))?;
                Ok((Change::LiftBar(id), Vec::new()))
            }
        }
    }
}

fn clocks(bound: ClockBound) -> Result<Clockwork, MembersError> {
    let bound = match bound {
        ClockBound::Drift { ppm } => {
            let drift = Drift::from_ppm(ppm);
            Bound::Drift(
                drift.ok_or_else(|| halted(&"a drift of a million or more parts per million is no clock"))?,
            )
        }
        ClockBound::Skew { bound } => Bound::Skew(LocalSpan::from_nanos(nanos(bound))),
    };
    Ok(Clockwork { bound, tick: LocalSpan::from_nanos(1) })
}

fn contact(peer: &Peer) -> Result<Contact, MembersError> {
    Ok(Contact { name: node(&peer.name)?, address: Some(peer.address.clone()) })
}

fn node(name: &str) -> Result<NodeName, MembersError> {
    NodeName::new(name).map_err(|error| halted(&error))
}

fn halted(reason: &dyn ToString) -> MembersError {
    MembersError::Halted { reason: reason.to_string() }
}
