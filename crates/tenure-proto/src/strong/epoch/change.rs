//! The change of members that an operator wants, and the next step on the way there.

use std::fmt;

use super::force::remaining;
use super::{Barred, Body, Lineage, Stores};
use crate::quorum::{QuorumError, Quorums};
use crate::strong::message::Term;
use crate::strong::rules::Rules;
use crate::time::{Clockwork, Span};
use crate::{GroupId, NodeId};

/// A change of the members or their bounds, relative to the charter that its proposer knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// One member more.
    Add(NodeId),
    /// One member less.
    Remove(NodeId),
    /// One for another: after a lost disk, say.
    Replace {
        /// The member that leaves.
        old: NodeId,
        /// The member that takes its place.
        new: NodeId,
    },
    /// Other quorums, of the same or other members.
    Quorums(Quorums),
    /// Another bound on the clocks (ρ or Δ, and the tick).
    Clocks(Clockwork),
    /// Another longest lease (δ_max).
    LongestLease(Span),
    /// All of this at once: whatever is given is changed, the rest stays.
    Set {
        /// Other quorums.
        quorums: Option<Quorums>,
        /// Another bound on the clocks.
        clocks: Option<Clockwork>,
        /// Another longest lease.
        longest_lease: Option<Span>,
    },
    /// A quorum is lost: go on without these, who are powered off forever. See `force` for what
    /// rests on that word.
    ForceRemove {
        /// Those who are powered off.
        gone: Vec<NodeId>,
        /// Terms begin above this at least: the dead may have granted some that nobody else knows
        /// of.
        least: Term,
        /// And by so much above it, and above all that the others granted.
        margin: u64,
        /// A random number, drawn for this word alone: it tells this remainder from any other
        /// (`lineage`).
        draw: u128,
    },
    /// A group that a repair of terms has barred may be granted again: the fences of its resources
    /// no longer hold the absurd term. See `barred`.
    LiftBar(GroupId),
    /// Any of these changes; its new members have these stores.
    Named(Box<Change>, Stores),
}

impl Change {
    /// Returns `body` with this change made to it.
    pub fn applied(&self, body: &Body, rules: &impl Rules) -> Result<Body, ChangeError> {
        if let Self::Named(change, stores) = self {
            let goal = change.applied(body, rules)?;
            let stores = body.stores.with(stores, goal.quorums.members(), rules);
            return Ok(Body { stores, ..goal });
        }
        let now = &body.quorums;
        let quorums = match self {
            Self::Add(node) => now.with(*node)?,
            Self::Remove(node) => now.without(*node)?,
            Self::Replace { old, new } => now.with(*new)?.without(*old)?,
            Self::Quorums(quorums) => quorums.clone(),
            Self::Set { quorums: Some(quorums), .. } => quorums.clone(),
            Self::ForceRemove { gone, .. } => remaining(now, gone)?,
            Self::Clocks(_)
            | Self::LongestLease(_)
            | Self::Set { .. }
            | Self::LiftBar(_)
            | Self::Named(..) => now.clone(),
        };
        let clocks = match self {
            Self::Clocks(clocks) | Self::Set { clocks: Some(clocks), .. } => *clocks,
            _ => body.clocks,
        };
        let longest_lease = match self {
            Self::LongestLease(span) | Self::Set { longest_lease: Some(span), .. } => *span,
            _ => body.longest_lease,
        };
        let stores = body.stores.with(&Stores::default(), quorums.members(), rules);
        let barred = match self {
            Self::LiftBar(group) => body.barred.without(*group),
            _ => body.barred.clone(),
        };
        Ok(Body { quorums, clocks, longest_lease, stores, barred })
    }
}

impl Body {
    /// The next step from here to `target`: as far as neighbours may be apart. Bounds change with
    /// the first step.
    pub fn step_towards(&self, target: &Self, rules: &impl Rules) -> Result<Self, ChangeError> {
        if rules.adjacent(&self.quorums, &target.quorums) {
            return Ok(target.clone());
        }
        let quorums = self.quorums.step_towards(&target.quorums).ok_or(ChangeError::NoChain)?;
        let stores = self.stores.with(&target.stores, quorums.members(), rules);
        Ok(Self { quorums, stores, ..target.clone() })
    }
}

/// Why a change cannot be begun.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeError {
    /// The quorum system that would result is none.
    Quorums(QuorumError),
    /// No chain of steps leads there, each of whose quorums meet those of the step before.
    NoChain,
    /// The era has no epochs left: a million changes were made in it.
    LastOfEra,
    /// The cluster has lost its quorum too often to tell one more remainder from others.
    LineageFull,
    /// More groups would be barred than a charter can name.
    TooManyBarred,
}

impl From<QuorumError> for ChangeError {
    fn from(error: QuorumError) -> Self {
        Self::Quorums(error)
    }
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quorums(error) => error.fmt(f),
            Self::LastOfEra => f.write_str("no epoch is left before the next era"),
            Self::LineageFull => write!(
                f,
                "the quorum was given up or terms were repaired {} times, and no more can be told apart: found a new cluster",
                Lineage::MOST - 1
            ),
            Self::TooManyBarred => write!(
                f,
                "at most {} groups can be barred: reset the fences of the others before the members start again",
                Barred::MOST
            ),
            Self::NoChain => f.write_str(
                "no chain of steps leads there in which every quorum of one meets every quorum of the next: \
                 go by way of a majority or of weights",
            ),
        }
    }
}

impl std::error::Error for ChangeError {}
