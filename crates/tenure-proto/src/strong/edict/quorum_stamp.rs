//! The paper's quorum timestamp, and when two of them compare.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use crate::NodeId;
use crate::time::Stamp;

/// QT: the grantors of a run, each with the stamp of its own clock (T_q). Frozen when the run
/// completes: an Ok that comes later is no part of it (erratum E14).
///
/// Stamps of different grantors do not compare, so two of these compare only by the grantors that
/// they share, and quorums of one epoch share at least one. A grantor's stamps rise forever, also
/// within one tick and over restarts: no two grants have the same (erratum E13).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuorumStamp(BTreeMap<NodeId, Stamp>);

impl FromIterator<(NodeId, Stamp)> for QuorumStamp {
    /// From the answers in the order in which they came: the first of a grantor counts.
    fn from_iter<I: IntoIterator<Item = (NodeId, Stamp)>>(oks: I) -> Self {
        let mut stamps = BTreeMap::new();
        for (grantor, stamp) in oks {
            stamps.entry(grantor).or_insert(stamp);
        }
        Self(stamps)
    }
}

impl QuorumStamp {
    /// When `grantor` granted, by its own clock, if it is one of these.
    pub fn get(&self, grantor: NodeId) -> Option<Stamp> {
        self.0.get(&grantor).copied()
    }

    /// The grantors and their stamps, by name.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, Stamp)> {
        self.0.iter().map(|(grantor, stamp)| (*grantor, *stamp))
    }

    /// Which run completed first (21), by any grantor of both; all of them say the same, and it is
    /// checked that they do.
    ///
    /// Not an operator: `<` must be transitive for all values, and this is for the runs of one
    /// epoch only. Of `a`, `b` and `c` where `a` and `c` share no grantor, `b` may lie between.
    ///
    /// ```
    /// # use std::cmp::Ordering;
    /// # use tenure_proto::strong::edict::{Incomparable, QuorumStamp};
    /// # use tenure_proto::time::Stamp;
    /// # use tenure_proto::{Incarnation, LocalTime, NodeId};
    /// let at = |nanos| Stamp { incarnation: Incarnation(1), at: LocalTime::from_nanos(nanos), count: 0 };
    /// let first = QuorumStamp::from_iter([(NodeId(0), at(900)), (NodeId(1), at(20))]);
    /// let second = QuorumStamp::from_iter([(NodeId(1), at(30)), (NodeId(2), at(5))]);
    /// assert_eq!(first.order(&second), Ok(Ordering::Less)); // n1 stamped both, 20 before 30
    ///
    /// let stranger = QuorumStamp::from_iter([(NodeId(2), at(7))]);
    /// assert_eq!(first.order(&stranger), Err(Incomparable::NothingShared));
    /// ```
    pub fn order(&self, other: &Self) -> Result<Ordering, Incomparable> {
        let (mut before, mut after, mut same) = (None, None, None);
        for (grantor, stamp) in &self.0 {
            let Some(others) = other.0.get(grantor) else { continue };
            match stamp.cmp(others) {
                Ordering::Less => before = Some(*grantor),
                Ordering::Greater => after = Some(*grantor),
                Ordering::Equal => same = Some(*grantor),
            }
        }
        match (before, after, same) {
            (Some(_), None, None) => Ok(Ordering::Less),
            (None, Some(_), None) => Ok(Ordering::Greater),
            (None, None, Some(_)) if self == other => Ok(Ordering::Equal),
            (None, None, None) => Err(Incomparable::NothingShared),
            (Some(before), Some(after), _) => Err(Incomparable::Contradiction { before, after }),
            (_, _, Some(grantor)) => Err(Incomparable::SharedStamp { grantor }),
        }
    }
}

/// Why two edicts do not compare. Never the case within one election's history: something is
/// broken, or they are not of one election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Incomparable {
    /// No grantor is in both: they are not quorums of one epoch.
    NothingShared,
    /// Two grantors say opposite things: one supported two processes at once, or its stamps went
    /// back (a lost disk).
    Contradiction {
        /// Stamped the one first.
        before: NodeId,
        /// Stamped the other first.
        after: NodeId,
    },
    /// Two runs have one stamp of a grantor: its clock gave out a stamp twice, or a late Ok was
    /// added to a run.
    SharedStamp {
        /// The grantor.
        grantor: NodeId,
    },
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingShared => {
                f.write_str("the edicts share no grantor: they are not of one epoch of one election")
            }
            Self::Contradiction { before, after } => write!(
                f,
                "grantors {before} and {after} put the edicts in opposite orders: one supported two leaders at \
                 once, or its stamps went back"
            ),
            Self::SharedStamp { grantor } => {
                write!(f, "the edicts are of different runs but carry the same stamp of grantor {grantor}")
            }
        }
    }
}

impl std::error::Error for Incomparable {}
