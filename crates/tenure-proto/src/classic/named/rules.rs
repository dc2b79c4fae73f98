//! The rules of elections among named processes: each rule is one function, and the laboratory has
//! a wrong one for each.

use super::Rank;
use crate::time::LocalSpan;
use crate::{Data, NodeId};

/// The rules. The provided functions are the sound ones; a type that overrides one of them is a
/// mutant.
pub trait Rules: Data {
    /// Whether `one` is better than `other`: by attribute, and by name where those are equal. A
    /// total order, so that all who compare the same processes find the same best.
    fn outranks(&self, one: Rank, other: Rank) -> bool {
        one > other
    }

    /// Whether a process may open an election: at most one at a time.
    fn may_open(&self, open: bool) -> bool {
        !open
    }

    /// The term of a new run: larger than any that the caller knows of. With the caller's name
    /// alone, as on the slides, a run of a caller that has died suppresses those of lesser names
    /// forever.
    fn next_term(&self, known: u64) -> u64 {
        known.saturating_add(1)
    }

    /// Whether an answer is still awaited: none will come from a process that seems to have
    /// crashed.
    fn awaits(&self, suspected: bool) -> bool {
        !suspected
    }

    /// How long a bully waits for an answer: its question takes D at most, and the answer as long.
    fn answer_time(&self, delay: LocalSpan) -> LocalSpan {
        delay.times(2)
    }

    /// Whether a bully that finds nobody higher may announce itself without waiting; `back` says
    /// that it has just come back.
    fn may_announce(&self, back: bool) -> bool {
        !back
    }

    /// How many votes decide: any two such sets have a voter in common.
    fn quorum(&self, voters: usize) -> usize {
        voters / 2 + 1
    }

    /// The value that a ballot proposes: one that an earlier ballot may have decided, else the
    /// proposer's own wish.
    fn proposal(&self, own: NodeId, accepted: Option<NodeId>) -> NodeId {
        accepted.unwrap_or(own)
    }
}

/// The rules as they should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sound;

impl Rules for Sound {}
