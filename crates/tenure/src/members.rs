//! Changing the members, their quorums and their bounds while every group goes on being led.
//!
//! A change is decided by a quorum of the present members and takes effect by epochs: one for a small step, several where the
//! quorums of now and then need not meet. It is safe when it is interrupted anywhere; some member finishes it. Each step waits
//! for about a longest lease after the one before.

use std::time::Duration;

use tenure_proto::quorum::Quorums;
use tenure_proto::strong::epoch::{Change, Epoch};
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};
use tokio::sync::mpsc;

use crate::clock::nanos;
use crate::config::{ClockBound, Peer};
use crate::contact::Contact;
use crate::error::MembersError;
use crate::name::NodeName;

/// What is to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// One member more. It must run already, with a store that was made by joining, and it grants from the epoch on that names it.
    Add(Peer),
    /// One member less.
    Remove(String),
    /// One for another: after a lost disk, say.
    Replace {
        /// Who goes.
        old: String,
        /// Who comes.
        new: Peer,
    },
    /// All members and their quorums at once. Those who are new must run already.
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
}

/// How a change goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A step is done: the cluster goes by this epoch now.
    Epoch(Epoch),
    /// All of it is done.
    Done(Epoch),
    /// It stopped. Steps that were done stay.
    Failed(MembersError),
}

/// A change under way. To drop it does not stop the change.
#[derive(Debug)]
pub struct Changing(pub(crate) mpsc::UnboundedReceiver<Progress>);

impl Changing {
    /// Waits for the next step. `None` after the last.
    pub async fn next(&mut self) -> Option<Progress> {
        self.0.recv().await
    }

    /// Waits for the end.
    pub async fn done(mut self) -> Result<Epoch, MembersError> {
        loop {
            match self.next().await {
                Some(Progress::Done(epoch)) => return Ok(epoch),
                Some(Progress::Failed(error)) => return Err(error),
                Some(Progress::Epoch(_)) => {}
                None => return Err(MembersError::Stopped(crate::error::Stopped::ShutDown)),
            }
        }
    }
}

impl MemberChange {
    /// As the machine wants it, with the names and addresses of those who are new.
    pub(crate) fn resolve(&self) -> Result<(Change, Vec<Contact>), MembersError> {
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
