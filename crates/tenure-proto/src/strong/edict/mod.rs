//! Edicts: the acts of leaders, stamped so that any two compare as they were created (3).
//!
//! A message may arrive after any time, so an old leader's word may come in after a new leader's.
//! At most one process leads at any instant, yet the receiver cannot see instants; it sees stamps.
//! An edict carries a **tag**, which says from which leadership it comes, and a **number**, which
//! counts within that leadership. Edicts compare by tag, then by number. There are three tags:
//!
//! | tag | what it is | carries | needs |
//! |---|---|---|---|
//! | [`ByInstance`] | (epoch, QT): the run that last completed | a stamp of each grantor | a lock at creation |
//! | [`ByTerm`] | (epoch, QT0): the run that began the term | a stamp of each grantor | rule U |
//! | [`Term`] | the term's number | 64 bits | rule U, durable terms |
//!
//! The running service uses the last: `(term, number)` is one whole number ([`Token`]), which a
//! database can compare. The first is the paper's; the second shows that the paper's needs no
//! change within a term. The laboratory judges all three on the same runs.
//!
//! # Why they order
//!
//! **(epoch, QT, EC)**, Lemma 7.1. Let X complete before X' in one epoch. Their quorums share a
//! grantor q, which stamped both. Same owner: it began X' after X had completed, so q stamped X'
//! later. Different owners: q supported the owner of X from its stamp until X completed, and the
//! owner of X' from its stamp until X' completed. Had it stamped X' first, it would have supported
//! both when X completed. So the stamps of *every* common grantor agree: see
//! [`QuorumStamp::order`]. Over epochs: no run of an older epoch completes after one of a newer (a
//! common grantor refuses it where the epochs are neighbours, its lease is over where they are
//! not), so the epoch decides first.
//!
//! **(epoch, QT0, counter)**. A term is runs X0, X1 .. Xk of one process, each completing while the
//! one before is in force (rule U). So that process leads without a gap from X0's completion to the
//! end, and the first run of any other term completes outside of that interval: all edicts of one
//! term lie before all of the other, and X0 and Y0 are ordered by the lemma. The tag keeps the
//! epoch *of X0*, also after a renewal in a later epoch: QT0 of one epoch and the QT0 of a rival
//! two epochs later need not share a grantor.
//!
//! **(term, counter)**. A grantor accepts an acquisition only with a term above all that it
//! accepted before. Two acquisitions share a grantor, so their terms differ; it accepted them in
//! the order of their completion, as above, so the later has the larger term. Rule U puts all
//! edicts of a term before the next completion. Floors carry this over epochs.
//!
//! # How an edict is created
//!
//! By three steps, in this order: [take a number](Counter::take), sample the clock, load E; then
//! [`create`] judges. There it is shown why the orders that come to mind first let a paused thread
//! break everything above.
//!
//! # Example
//!
//! ```
//! use tenure_proto::LocalTime;
//! use tenure_proto::strong::Term;
//! use tenure_proto::strong::edict::{Authority, Counter, Token, create};
//!
//! let mut counter = Counter::packed();
//! let number = counter.take()?;                                               // this instant is the creation
//! let reading = LocalTime::from_nanos(500);                                   // sampled after
//! let loaded = Authority { until: LocalTime::from_nanos(900), closed: false }; // loaded after
//! let edict = create(Term(7), number, reading, loaded)?;
//! assert!(edict.token() > Token::of_term(Term(7)));
//! assert_eq!(edict.token().pack()?.as_i64(), 7 * (1 << 32) + 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod creation;
#[cfg(test)]
mod histories;
mod quorum_stamp;
#[cfg(test)]
mod tests;
mod token;

use std::cmp::Ordering;

pub use creation::{Authority, Counter, NotLeader, create};
pub use quorum_stamp::{Incomparable, QuorumStamp};
pub use token::{Exhausted, Form, PackedToken, Part, Token, TokenError};

pub use super::epoch::Epoch;
use super::message::Term;
use crate::Data;

/// The stamp of an edict: from which leadership, and its sequence number there. Without a
/// parameter, the (term, counter) of the running service; that form alone is totally ordered
/// whatever it holds, and has the operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edict<T = Term> {
    /// From which leadership. First: edicts compare by it before they compare by number.
    pub tag: T,
    /// Counts edicts within the tag, at least; it may count on over tags (the paper's EC does).
    pub number: u64,
}

impl<T: Tag> Edict<T> {
    /// Compares two edicts by which was created first; `Equal` for one edict and itself.
    pub fn order(&self, other: &Self) -> Result<Ordering, Incomparable> {
        Ok(self.tag.order(&other.tag)?.then(self.number.cmp(&other.number)))
    }
}

impl Edict {
    /// The edict's stamp as one number, for a [fence](crate::fence).
    pub fn token(self) -> Token {
        Token::new(self.tag, self.number)
    }
}

/// The tag that says from which leadership an edict comes.
pub trait Tag: Data {
    /// Compares two leaderships by which was first. Total, antisymmetric and transitive on the tags
    /// of one election's history.
    fn order(&self, other: &Self) -> Result<Ordering, Incomparable>;
}

/// (epoch, QT): tags with the run that completed last, so that a renewal changes the tag. Reading
/// tag and number and comparing sample and E must then be one step under one lock: see [`create`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ByInstance {
    /// The epoch of that run.
    pub epoch: Epoch,
    /// The grantors of the lease, and when each granted it.
    pub quorum: QuorumStamp,
}

impl Tag for ByInstance {
    fn order(&self, other: &Self) -> Result<Ordering, Incomparable> {
        order_in_epoch((self.epoch, &self.quorum), (other.epoch, &other.quorum))
    }
}

/// (epoch, QT0): tags with the run that began the term. Renewals keep it, also over epochs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ByTerm {
    /// The epoch of that first run, never a later one.
    pub epoch: Epoch,
    /// The grantors of the first lease, and when each granted it.
    pub first: QuorumStamp,
}

impl Tag for ByTerm {
    fn order(&self, other: &Self) -> Result<Ordering, Incomparable> {
        order_in_epoch((self.epoch, &self.first), (other.epoch, &other.first))
    }
}

impl Tag for Term {
    fn order(&self, other: &Self) -> Result<Ordering, Incomparable> {
        Ok(self.cmp(other))
    }
}

/// By epoch; within one, by the grantors that both have. Over epochs there need be none.
fn order_in_epoch(a: (Epoch, &QuorumStamp), b: (Epoch, &QuorumStamp)) -> Result<Ordering, Incomparable> {
    match a.0.cmp(&b.0) {
        Ordering::Equal => a.1.order(b.1),
        decided => Ok(decided),
    }
}
