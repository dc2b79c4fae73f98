//! Mistakes that others shipped, carried over to this machine: leases, locks and elections have
//! known diseases.
//!
//! Each is what went wrong elsewhere, in the place of ours where it could go wrong again: a rule, a
//! driver, or the order in which a leader's threads work. Some break no safety property: they keep
//! a cluster that could elect from electing, a leader from staying, a change from ending. Those are
//! shown by plays, for a schedule in which too little happens cannot be made small by leaving
//! things out. The two whose names begin with `liveness` are two reports of that kind, told apart
//! by what was done: one refused a former leader, the other took a refused candidate for a sign of
//! the leader's life.

use super::{Broken, Mutant, On, driver, rule, thread};
use crate::subject::Order;
use crate::world::Flaws;

/// Mutants after mistakes in the field.
pub(super) const FIELD: &[Mutant] = &[
    rule("late-ok-merged", Broken::LateOkMerged, "late answers become part of a completed run's stamps"),
    thread(
        "check-then-act",
        Order::CheckedOnce,
        "a thread looks at E once a term, and creates edicts without looking again",
    ),
    rule(
        "zombie-authority",
        Broken::ZombieAuthority,
        "a leader that resigns gives its grants back and leads on until its lease ends",
    ),
    rule(
        "expiry-moved-forward",
        Broken::ExpiryMovedForward,
        "each renewal lengthens a grant by its whole lease, so that it may never end",
    ),
    driver(
        "tick-is-not-time",
        Flaws { clock_stops_in_pause: true, ..Flaws::NONE },
        "time is counted in wake-ups, which a paused process does not have",
    ),
    rule(
        "early-grant",
        Broken::EarlyGrant,
        "a hand-over frees the grantors when it is asked for, before the leader has given up",
    ),
    rule("coarse-check", Broken::CoarseCheck, "E is looked at every half lease, and counts until then"),
    driver(
        "restart-epoch",
        Flaws { memory_of_any_boot: true, ..Flaws::NONE },
        "readings of a former boot are compared with a clock that began anew",
    )
    .only(On::Drift),
    rule(
        "expiry-moved-back",
        Broken::ExpiryMovedBack,
        "a renewal that asks for less takes back what an election was promised",
    ),
    rule(
        "no-wait-on-takeover",
        Broken::NoWaitOnTakeover,
        "a larger term is granted at once, though the lease of the smaller one runs",
    ),
    rule(
        "liveness-former-leader-refused",
        Broken::FormerLeaderRefused,
        "who has given something back is refused, whatever it asks next: nobody leads though a quorum is up",
    ),
    rule(
        "liveness-refresh-starves",
        Broken::RefreshStarves,
        "a refused request counts as a sign of life of the holder: those who ask keep a dead leader's grants alive",
    ),
    rule(
        "partial-connectivity",
        Broken::PartialConnectivity,
        "a leader that has lost its quorum holds on to those it reaches, and asks on",
    ),
    rule(
        "reconnect-race",
        Broken::ReconnectRace,
        "answers to an earlier life of a process count for this one",
    ),
    rule(
        "commands-lost",
        Broken::CommandsLost,
        "what a process is told while its clock is behind is dropped",
    ),
    rule("volatile-promise", Broken::VolatilePromise, "a grant is not remembered before its Ok leaves"),
    rule(
        "term-inflation",
        Broken::TermInflation,
        "the term of a refused candidate counts as granted, and deposes the leader at its next renewal",
    ),
    rule(
        "change-abandoned",
        Broken::ChangeAbandoned,
        "nobody finishes a change of members whose proposer is gone",
    ),
];
