//! Mutants of local leadership: each breaks one rule.

use tenure_proto::LocalTime;
use tenure_proto::detect::fail_aware::{Estimate, Exact, Link, Stamps};
use tenure_proto::local::{Lock, RequestId, Rules, Sound};
use tenure_proto::quorum::NodeSet;
use tenure_proto::time::{Drift, Incarnation, LocalSpan, Span};

/// Which rule of the local machine is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// None.
    Nothing,
    /// The lease lasts as long as the lock, whatever clocks do.
    DropDriftFactor,
    /// The lease is counted from the last reply, not from the request.
    ExpiryFromNow,
    /// A bound process supports others.
    IgnoreLocks,
    /// A process that supports itself is not bound by that.
    SelfNoLock,
    /// Any Release of the holder frees.
    ReleaseAny,
    /// A failed renewal is released while the older lease stands.
    ReleaseUnderLease,
    /// A process acts while its clock is behind.
    ActsWhileBehind,
    /// A lease counts again when a clock that went back has caught up.
    LeadsAfterStepBack,
    /// A process that has forgotten its lock supports others at once.
    RestartNoWait,
    /// Replies to earlier requests count.
    OldReplies,
    /// Members are learnt from requests that were overtaken.
    OldMembers,
    /// A majority of those alive suffices.
    MajorityOfAlive,
    /// Stamps of former lives count.
    NoIncarnation,
    /// A delay is taken for half of the round trip.
    HalfRoundTrip,
    /// Delays are bounded as if clocks did not drift.
    NoDriftInBound,
    /// Slow messages count like fast ones.
    AcceptSlow,
    /// Along a tree slow answers are signs of life.
    SlowIsAlive,
    /// The first request may succeed.
    SkipSelfTarget,
    /// A process that was heard of since the request left need not support it.
    SkipAliveCheck,
    /// The own entry is dated by when the own request came back.
    OwnEntryByReceipt,
    /// Anybody is supported, the first of all or not.
    SupportNonMinimum,
    /// A leader asks again only before its lease ends.
    RenewAtLead,
}

/// A mutant: what is wrong, and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// Its mistake.
    pub says: &'static str,
    /// The broken rule.
    pub wrong: Wrong,
    /// Whether that is wrong only where majorities lead.
    pub majority: bool,
}

const fn mutant(name: &'static str, wrong: Wrong, says: &'static str) -> Mutant {
    Mutant { name, says, wrong, majority: false }
}

/// All mutants of local leadership.
pub const ALL: &[Mutant] = &[
    mutant(
        "drop-drift-factor",
        Wrong::DropDriftFactor,
        "a lease lasts as long as the lock, without the factor 1-2rho",
    ),
    mutant(
        "expiry-from-now",
        Wrong::ExpiryFromNow,
        "a lease is counted from the last reply, not from the request",
    ),
    mutant("ignore-locks", Wrong::IgnoreLocks, "who is bound to one supports others"),
    mutant("self-no-lock", Wrong::SelfNoLock, "who supports itself is not bound by that"),
    mutant(
        "release-any",
        Wrong::ReleaseAny,
        "a Release of any request frees all that are bound to its sender",
    ),
    mutant(
        "release-under-lease",
        Wrong::ReleaseUnderLease,
        "a failed renewal is released while the older lease stands (F1)",
    ),
    mutant(
        "acts-while-behind",
        Wrong::ActsWhileBehind,
        "a process whose clock went back asks, binds itself and sets others free by it",
    ),
    mutant(
        "leads-after-step-back",
        Wrong::LeadsAfterStepBack,
        "a lease counts again when a clock that went back has caught up",
    ),
    mutant("restart-no-wait", Wrong::RestartNoWait, "who has forgotten its lock supports others at once"),
    mutant("old-replies", Wrong::OldReplies, "replies to earlier requests count for the present one"),
    mutant(
        "old-members",
        Wrong::OldMembers,
        "who is in a partition is learnt from requests that were overtaken",
    ),
    Mutant {
        majority: true,
        ..mutant("majority-of-alive", Wrong::MajorityOfAlive, "more than half of those alive suffice")
    },
    mutant("no-incarnation", Wrong::NoIncarnation, "stamps of a former life count in the bound"),
    mutant("half-round-trip", Wrong::HalfRoundTrip, "a delay is taken for half of the round trip"),
    mutant("no-drift-in-bound", Wrong::NoDriftInBound, "delays are bounded as if clocks did not drift"),
    mutant("accept-slow", Wrong::AcceptSlow, "slow messages count like fast ones"),
    mutant("slow-is-alive", Wrong::SlowIsAlive, "along a tree a slow answer is a sign of life"),
    mutant(
        "skip-self-target",
        Wrong::SkipSelfTarget,
        "the first request may succeed: nobody need have answered one before",
    ),
    mutant(
        "skip-alive-check",
        Wrong::SkipAliveCheck,
        "who was heard of since the request left need not support it",
    ),
    mutant(
        "own-entry-by-receipt",
        Wrong::OwnEntryByReceipt,
        "the own entry is dated by when the own request came back (F2)",
    ),
    mutant(
        "support-non-minimum",
        Wrong::SupportNonMinimum,
        "anybody is supported, the first of those alive or not",
    ),
    mutant(
        "renew-at-lead",
        Wrong::RenewAtLead,
        "a leader asks again only shortly before its lease ends (F4)",
    ),
];

impl Estimate for Wrong {
    fn bound(&self, link: Link, stamps: Stamps) -> Span {
        let Stamps { helper_sent, helper_received, sent, received } = stamps;
        let (round, between) = (received.remaining(helper_sent), sent.remaining(helper_received));
        match self {
            Self::HalfRoundTrip => Span::from_nanos(round.minus(between).as_nanos() / 2),
            Self::NoDriftInBound => {
                Span::from_nanos(round.minus(between).plus(link.tick.times(2)).as_nanos())
                    .minus(link.least_delay)
            }
            _ => Exact.bound(link, stamps),
        }
    }

    fn is_of_this_life(&self, mine: Incarnation, named: Incarnation) -> bool {
        *self == Self::NoIncarnation || mine == named
    }
}

impl Rules for Wrong {
    fn asserts(&self) -> bool {
        false
    }

    fn counts(&self, fast: bool) -> bool {
        fast || *self == Self::AcceptSlow
    }

    fn vouches(&self, fast: bool) -> bool {
        fast || *self == Self::SlowIsAlive
    }

    fn lease_end(&self, drift: Drift, sent: LocalTime, now: LocalTime, lock: LocalSpan) -> LocalTime {
        match self {
            Self::DropDriftFactor => sent.after(lock),
            Self::ExpiryFromNow => now.after(drift.within(lock)),
            _ => Sound.lease_end(drift, sent, now, lock),
        }
    }

    fn is_free(&self, lock: Option<&Lock>, asker: usize, received: LocalTime) -> bool {
        *self == Self::IgnoreLocks || Sound.is_free(lock, asker, received)
    }

    fn binds(&self, to_itself: bool) -> bool {
        *self != Self::SelfNoLock || !to_itself
    }

    fn frees(&self, lock: &Lock, from: usize, request: RequestId) -> bool {
        match self {
            Self::ReleaseAny => lock.to == from,
            _ => Sound.frees(lock, from, request),
        }
    }

    fn learns_members(&self, newest: bool) -> bool {
        *self == Self::OldMembers || newest
    }

    fn may_release(&self, leads: bool) -> bool {
        *self == Self::ReleaseUnderLease || !leads
    }

    fn acts_while_behind(&self) -> bool {
        *self == Self::ActsWhileBehind
    }

    fn leads_after_step_back(&self) -> bool {
        *self == Self::LeadsAfterStepBack
    }

    fn may_support(&self, received: LocalTime, silent_until: LocalTime) -> bool {
        *self == Self::RestartNoWait || received >= silent_until
    }

    fn answers(&self, present: RequestId, answered: RequestId) -> bool {
        *self == Self::OldReplies || present == answered
    }

    fn needed(&self, majority: bool, members: usize, alive: usize) -> usize {
        match self {
            Self::MajorityOfAlive if majority => alive / 2 + 1,
            _ => Sound.needed(majority, members, alive),
        }
    }

    fn was_asked_before(&self, targets: NodeSet, me: usize) -> bool {
        *self == Self::SkipSelfTarget || targets.contains(me)
    }

    fn all_support(&self, alive: NodeSet, replies: NodeSet) -> bool {
        *self == Self::SkipAliveCheck || replies.is_superset(alive)
    }

    fn own_entry(&self, sent: LocalTime, received: LocalTime) -> LocalTime {
        if *self == Self::OwnEntryByReceipt { received } else { sent }
    }

    fn is_first(&self, first: bool) -> bool {
        *self == Self::SupportNonMinimum || first
    }

    fn next_request(&self, paced: LocalTime, before_end: LocalTime) -> LocalTime {
        if *self == Self::RenewAtLead { before_end } else { paced.min(before_end) }
    }
}
