//! The rules of local leadership, one function each, with the violation that follows without it.
//!
//! The machine asks these functions and decides nothing of the kind by itself. [`Sound`] takes them
//! as they stand here. The laboratory has types of its own that break one rule at a time; no other
//! crate can see them.

use crate::LocalTime;
use crate::detect::fail_aware::Estimate;
use crate::quorum::NodeSet;
use crate::time::{Drift, LocalSpan};

use super::message::{Lock, RequestId};

/// The rules. Those of the datagrams come with [`Estimate`].
pub trait Rules: Estimate {
    /// Whether the invariants that follow from these rules are asserted. A mutant is judged by
    /// properties, not by a stop.
    fn asserts(&self) -> bool {
        true
    }

    /// A slow message is neither answered nor counted. Not needed for SO, since locks are judged by
    /// clocks alone; but outsiders beyond Δ would keep a partition without a leader forever (T).
    fn counts(&self, fast: bool) -> bool {
        fast
    }

    /// Along a tree a slow answer is a vote, since a vote is a lock, but no sign of life: else an
    /// outsider that is beyond Δ for everybody would be passed on as alive by a parent that waits
    /// long enough, and be waited for by the asker (T).
    fn vouches(&self, fast: bool) -> bool {
        fast
    }

    /// A lease ends `lockTime·(1-2ρ)` after its request was *sent*. A supporter is bound for
    /// `lockTime` on its own clock from the receipt, which is later; in that time it shows at most
    /// `lockTime·(1-2ρ)(1+ρ)/(1-ρ) <= lockTime` (SO).
    fn lease_end(&self, drift: Drift, sent: LocalTime, _now: LocalTime, lock: LocalSpan) -> LocalTime {
        sent.after(drift.within(lock))
    }

    /// A bound process supports no other before its lock ends, by the reading at which the request
    /// *came* (SO).
    fn is_free(&self, lock: Option<&Lock>, asker: usize, received: LocalTime) -> bool {
        lock.is_none_or(|lock| lock.to == asker || received >= lock.until)
    }

    /// A supportive reply binds, also the one that a process gives to itself (SO, LS).
    fn binds(&self, _to_itself: bool) -> bool {
        true
    }

    /// A Release frees a process that is bound by *that* request; a late one of an earlier request
    /// must not (SO).
    fn frees(&self, lock: &Lock, from: usize, request: RequestId) -> bool {
        lock.to == from && lock.request == request
    }

    /// A supporter learns the members of its partition from the newest request that it supported. A
    /// request handled after that one, because it came late or the process slept, may tell of a
    /// leadership that is over.
    fn learns_members(&self, newest: bool) -> bool {
        newest
    }

    /// A request that failed is released only if no older lease stands: its supporters are counted
    /// on until its end (SO, flaw F1 of the paper's text).
    fn may_release(&self, leads: bool) -> bool {
        !leads
    }

    /// Whether a process acts while its clock is behind a reading that it has seen. It must not. If
    /// the clock is set right again, a lock that was taken in between ends too early, and
    /// supporters were set free although an older lease counts again (SO).
    fn acts_while_behind(&self) -> bool {
        false
    }

    /// Whether a lease counts again when a clock that went back has caught up. It must not: by as
    /// much as the clock went back it lasts longer than the locks of its supporters (SO).
    fn leads_after_step_back(&self) -> bool {
        false
    }

    /// A process that has forgotten its promise supports nobody, not even itself, for as long as a
    /// lock lasts (SO).
    fn may_support(&self, received: LocalTime, silent_until: LocalTime) -> bool {
        received >= silent_until
    }

    /// Only answers to the present request count: others were given for an earlier lock (SO).
    fn answers(&self, present: RequestId, answered: RequestId) -> bool {
        present == answered
    }

    /// The number of supporters that are needed: in majority mode more than half of the
    /// *configured* members, never of those that happen to be alive, or two sets need not meet.
    fn needed(&self, majority: bool, members: usize, _alive: usize) -> usize {
        if majority { members / 2 + 1 } else { 1 }
    }

    /// Only the second request within `expires` may succeed: then every connected process has
    /// answered one before, and is alive here (BI).
    fn was_asked_before(&self, targets: NodeSet, me: usize) -> bool {
        targets.contains(me)
    }

    /// Every member that is held for alive must support, also those that were heard of since the
    /// request left (BI).
    fn all_support(&self, alive: NodeSet, replies: NodeSet) -> bool {
        replies.is_superset(alive)
    }

    /// A process's own entry in its alive set is dated by when its request *left*: all that
    /// answered it were heard of later, so while the own entry lasts theirs do (BI, flaw F2 of the
    /// paper's text).
    fn own_entry(&self, sent: LocalTime, _received: LocalTime) -> LocalTime {
        sent
    }

    /// Only the first of the living members is supported, in an order that all share: else
    /// processes that block each other may do so forever (T).
    fn is_first(&self, first: bool) -> bool {
        first
    }

    /// The time at which a leader asks again: as often as a process that does not lead, and early
    /// enough for the lease. The lease alone may be so long that all entries of the alive set run
    /// out before it, the own one too; then the renewal is a mere probe, and the lead has a gap in
    /// every term (flaw F4).
    fn next_request(&self, paced: LocalTime, before_end: LocalTime) -> LocalTime {
        paced.min(before_end)
    }
}

/// The rules as they must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sound;

impl Estimate for Sound {}
impl Rules for Sound {}
