//! Epochs: how the grantors change while every group goes on being led.
//!
//! The members, their quorums and the bounds on clocks and leases are fixed by a [`Charter`].
//! Charters follow one another, one an epoch, and each is decided by a quorum of the one before
//! (`proposer`, `acceptor`: single-decree Paxos). Nothing is stopped for it: grants live on, and a
//! leader renews into the next epoch. Two leaders are kept apart because neighbouring epochs share
//! a grantor, and because epochs further apart share no time.
//!
//! | rule | says | where |
//! |---|---|---|
//! | ADJ | every quorum of an epoch meets every quorum of the next | [`Rules::adjacent`] |
//! | ONE | a run belongs to one epoch, and counts answers of that epoch alone | [`Rules::counts`] |
//! | MONO | a grantor's epoch is durable and never falls; it refuses requests of older ones | `member` |
//! | KEEP | adopting an epoch leaves grants, tombs and terms as they are | `member` |
//! | W | a charter is accepted only when its acceptor has been in the epoch before it for longer than any lease | [`Rules::may_accept_from`] |
//! | FLOOR | a charter's floor is at least every term that the quorum which promised had granted | [`Rules::floor`] |
//! | SEAL | who has accepted a charter by an operator's word grants nothing before it goes by it | `force`, [`Rules::seals`] |
//! | LINEAGE | a member that hears of a charter which is neither ancestor nor descendant of its own stops | `lineage`, [`Rules::stops_for_foreign`] |
//! | BAR | a group that holds a term above the floor of a repair is granted to nobody | `barred`, [`Rules::is_barred`] |
//! | Y | a member that has just joined refuses acquisitions for a longest lease, not renewals (availability only) | [`Rules::young_until`] |
//!
//! # Why no two lead
//!
//! **Spacing (T1).** When e+2 is decided, no lease of an epoch up to e is in force, nor can one
//! begin. The quorum R that accepted it meets every quorum S of e (ADJ): some q in both granted
//! before it adopted e+1 (MONO), so the lease ends at most δ_max after that, and q accepted no
//! sooner than δ_max after that (W; (1+ρ)δ_max on any legal clock).
//!
//! **One leader (T2).** Let X and Y, of different processes, both be in force. In one epoch: the
//! paper. In neighbours: some q granted both (ADJ), that of the older epoch first (MONO), and when
//! it granted the other, the first had run out or was given back (KEEP, lemma 3.1 has no epoch in
//! it). Further apart: spacing.
//!
//! **Terms (T4, T5).** Between neighbours the common grantor's largest term orders them. Over two
//! epochs or more the floor does: who granted t in e and promised in e+1 adopted in between, so its
//! promise reports at least t.
//!
//! **One charter an epoch (T6).** Paxos with durable promises; the value includes the floor.
//!
//! Where a quorum is lost no charter can be decided, and an operator's word must do: see `force`.
//! Where terms are absurd already, members that are all stopped get a new charter with lower terms:
//! see [`repair`].
//!
//! A member is a *store*, not a host (`stores`): one that lost its disk has lost its promises and
//! never comes back under its name unless it was removed before, and then as a new one.

mod acceptor;
mod barred;
mod change;
mod force;
pub(super) mod lineage;
mod member;
mod proposer;
pub mod repair;
mod stores;
mod talk;

impl Charter {
    /// See [`Explore`](crate::explore::Explore). There is one founding charter; any other is named
    /// by all that it says.
    pub(super) fn view(&self, v: &mut View<'_>) {
        v.num(self.epoch.0);
        if self.epoch > Epoch(0) {
            v.wide(self.digest());
        }
    }
}

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

pub use acceptor::Ballot;
pub(super) use acceptor::view_accepted;
pub use barred::Barred;
pub use change::{Change, ChangeError};
pub use lineage::{CharterId, Lineage, Relation};
pub(super) use member::Membership;
pub use proposer::{Halt, Stage};
pub use stores::{StoreId, Stores};

use super::message::Term;
use crate::explore::View;
use crate::quorum::Quorums;
use crate::time::{Clockwork, LocalSpan, Span};
use crate::{LocalTime, NodeId};

#[allow(unused_imports, reason = "named in the documentation above")]
use super::rules::Rules;

/// The number of a charter. Neighbours have quorums that meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The grantors, and the bounds under which they grant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Body {
    /// The members, and which sets of them suffice.
    pub quorums: Quorums,
    /// The bound on the clocks and their tick.
    pub clocks: Clockwork,
    /// δ_max.
    pub longest_lease: Span,
    /// Which store holds the promises of each member.
    pub stores: Stores,
    /// The groups that are granted to nobody: see `barred`.
    pub barred: Barred,
}

impl Body {
    /// A wait on any legal clock after which no lease is in force that began before it: (1+ρ)δ_max
    /// and a tick.
    fn spacing(&self, from: LocalTime) -> LocalTime {
        self.clocks.silence_end(from, self.longest_lease)
    }
}

/// The definition of one epoch. Decided once, the same for all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Charter {
    /// Its number.
    pub epoch: Epoch,
    /// Which founding it comes from, and which force-removes.
    pub lineage: Lineage,
    /// The grantors.
    pub body: Body,
    /// The grantors before: leases of theirs may still be in force. The founding charter has none
    /// before it.
    pub before: Option<Body>,
    /// No term up to this is granted in this epoch.
    pub floor: Term,
}

impl Charter {
    /// The first charter, of a cluster that nobody else founds: with a lineage of its own where
    /// others may.
    pub fn founding(body: Body) -> Arc<Self> {
        Self::founded(Lineage::founding(0), body)
    }

    /// The first charter of a lineage.
    pub fn founded(lineage: Lineage, body: Body) -> Arc<Self> {
        Arc::new(Self { epoch: Epoch(0), lineage, body, before: None, floor: Term(0) })
    }

    /// The charter that follows this one.
    pub(super) fn next(&self, body: Body, floor: Term) -> Arc<Self> {
        let (epoch, lineage) = (self.epoch.next(), self.lineage.clone());
        Arc::new(Self { epoch, lineage, body, before: Some(self.body.clone()), floor })
    }

    /// Those who grant now.
    pub fn members(&self) -> &[NodeId] {
        self.body.quorums.members()
    }

    /// Whether a node grants in this epoch.
    pub fn has(&self, node: NodeId) -> bool {
        self.body.quorums.position(node).is_some()
    }

    /// Those who grant or may still be bound by a grant of the epoch before.
    pub fn members_and_former(&self) -> impl Iterator<Item = NodeId> {
        let former = self.before.iter().flat_map(|before| before.quorums.members());
        let gone = former.filter(|node| !self.has(**node));
        self.members().iter().chain(gone).copied()
    }

    /// When whatever was promised up to `from`, in this epoch or the one before, is over: for the
    /// silence after a restart and for rule W. The longer of the two: a lease runs by the bounds of
    /// its own epoch.
    pub fn spacing(&self, from: LocalTime) -> LocalTime {
        let now = self.body.spacing(from);
        self.before.as_ref().map_or(now, |before| before.spacing(from).max(now))
    }
}

/// The messages among the deciders of the next charter, and those that tell everybody the present
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EpochTalk {
    /// This is decided.
    Decided(Arc<Charter>),
    /// This is what the sender goes by: so that two clusters of one name and key find out.
    GoesBy(CharterId),
    /// You speak of an epoch that I do not know: tell me.
    Unknown {
        /// The newest that I know.
        newest: Epoch,
    },
    /// Phase 1: promise to answer no lower ballot, and tell what you accepted.
    Prepare {
        /// The epoch whose members decide.
        epoch: Epoch,
        /// The ballot.
        ballot: Ballot,
    },
    /// The promise.
    Promise {
        /// The epoch.
        epoch: Epoch,
        /// The ballot.
        ballot: Ballot,
        /// The charter accepted under the highest ballot so far, with that ballot.
        accepted: Option<(Ballot, Arc<Charter>)>,
        /// The largest term that this member may have granted, in any group, and its epoch's floor.
        top: Term,
    },
    /// Phase 2: accept this charter.
    Accept {
        /// The epoch.
        epoch: Epoch,
        /// The ballot.
        ballot: Ballot,
        /// What.
        charter: Arc<Charter>,
    },
    /// It is accepted.
    Accepted {
        /// The epoch.
        epoch: Epoch,
        /// The ballot.
        ballot: Ballot,
    },
    /// Not now.
    Denied {
        /// The epoch.
        epoch: Epoch,
        /// The ballot that is denied.
        ballot: Ballot,
        /// Why.
        denial: Denial,
    },
}

/// Why a member does not promise or accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Denial {
    /// It has promised a higher ballot.
    Outbid(Ballot),
    /// Leases of the epoch before may still be in force (rule W).
    TooSoon {
        /// How much longer, on its clock.
        remaining: LocalSpan,
    },
    /// The charter's quorums need not meet the present ones.
    NotAdjacent,
    /// It has accepted a charter by an operator's word, and nothing before that or beside it.
    Sealed(Epoch),
    /// It has granted a term above the charter's floor.
    Granted(Term),
    /// The charter's floor lies so far above all that it knows that an operator must confirm it.
    Implausible(Term),
}
