//! The properties of strong leadership, named after the paper's equations.

use crate::property::{Kind, Property};

const fn property(name: &'static str, kind: Kind, says: &'static str) -> Property {
    Property { name, kind, says }
}

/// (1), I1.
pub const UNIQUENESS: Property =
    property("leader-uniqueness", Kind::Always, "at most one process of a group believes that it leads (1)");
/// (14), I2.
pub const SUPPORT: Property = property(
    "quorum-behind-leader",
    Kind::Always,
    "while p believes, each grantor of some quorum has promised p its support and the promise has not run out (14)",
);
/// Lemma 3.1, I3.
pub const INSIDE: Property = property(
    "lease-inside-grants",
    Kind::Always,
    "when a run completes, c_p(E) <= c_q(F_q) for every q that granted, by the true clocks (lemma 3.1)",
);
/// (16), I6.
pub const KEPT: Property = property(
    "grants-kept",
    Kind::Always,
    "a grantor gives nothing to another, and takes nothing back, before what it promised has run out or was given back (16)",
);
/// I7.
pub const TERMS: Property = property(
    "terms-rise",
    Kind::Always,
    "the terms of completed acquisitions are unique and rise in the order of completion",
);
/// I10.
pub const INSTANCES: Property = property(
    "instances-unique",
    Kind::Always,
    "no run ever has the name of an earlier one, over restarts too",
);
/// I10.
pub const STAMPS: Property =
    property("stamps-rise", Kind::Always, "the stamps of a grantor rise, over restarts and reboots too");

/// Step 8.
pub const IN_TIME: Property = property(
    "elected-in-time",
    Kind::Always,
    "a run completes only while the lease that it asked for lasts (step 8)",
);
/// Rule U.
pub const UNBROKEN: Property = property(
    "terms-unbroken",
    Kind::Always,
    "a renewal completes only while the leadership that it extends has not lapsed (rule U)",
);

/// (2), I4.
pub const VALID: Property = property(
    "edicts-by-leaders",
    Kind::Always,
    "a process that creates a valid edict leads at that instant (2)",
);
/// (3), I5.
pub const ORDERED: Property = property(
    "edicts-ordered",
    Kind::Always,
    "edicts are ordered as they were created, by (epoch, QT, EC), by (epoch, QT0, counter) and by (term, counter) (3)",
);

/// I9.
pub const CERTAIN: Property = property(
    "verified-is-true",
    Kind::Always,
    "as long as somebody is certain that p leads, a quorum supports p (12, section 10.5)",
);

/// I10.
pub const COUNTED: Property = property(
    "lease-from-a-run",
    Kind::Always,
    "E is at most Start + (1-rho) delta (skew: Start + delta) of some completed run of the term (step 8)",
);
/// I10.
pub const PLEDGED: Property = property(
    "pledge-kept",
    Kind::Always,
    "a process that has said for how long it is certain to lead gives nothing back before then (10.5)",
);
/// L4.
pub const ENDS: Property = property(
    "grants-end",
    Kind::Always,
    "a grant, new or remembered, ends at most (1+rho) delta_max and a tick from now (skew: Start + delta_max + Delta), and what was given back is forgotten in twice delta_max",
);
/// I6.
pub const GIVEN_TERMS: Property = property(
    "granted-terms-rise",
    Kind::Always,
    "the terms of the acquisitions to which a grantor's Ok has left rise, over restarts too",
);

/// Service 2: idle groups are dropped from memory.
pub const FORGOTTEN: Property = property(
    "forgotten-is-over",
    Kind::Always,
    "a process forgets a group only when its grant has run out, no release of it counts, and no pledge stands",
);
pub(super) const FORGETS: Property =
    property("group-forgotten", Kind::Sometimes, "a process forgets a group (beside forgotten-is-over)");

/// T6, I8.
pub const ONE_CHARTER: Property = property(
    "one-charter-an-epoch",
    Kind::Always,
    "all who go by an epoch go by the same charter, which a quorum of the epoch before has accepted (T6)",
);
/// T1.
pub const SPACED: Property = property(
    "epochs-spaced",
    Kind::Always,
    "while a lease of an epoch is in force, at most the next epoch is decided (T1)",
);
/// W.
pub const WAITED: Property = property(
    "wait-kept",
    Kind::Always,
    "a member accepts a charter only when it has been in the epoch before it for a longest lease (W)",
);
pub(super) const SECOND_CHANGE: Property = property(
    "second-change",
    Kind::Sometimes,
    "a member accepts a charter in an epoch after the founding one (beside wait-kept)",
);
/// T3.
pub const EPOCHS_FOLLOW: Property = property(
    "epochs-follow",
    Kind::Always,
    "the epochs of a group's completed runs follow the order of completion (T3)",
);
/// T4.
pub const FLOORS: Property = property(
    "floors-cover",
    Kind::Always,
    "a charter's floor is at least every term completed two epochs before it or earlier (T4)",
);

/// Section 10.4.
pub const FOUND: Property = property(
    "found-leader-led",
    Kind::Always,
    "a process that is found to lead, by its own word, led at some instant since the question (10.4)",
);
/// Section 10.4.
pub const HOPS: Property =
    property("hops-bounded", Kind::Always, "no search follows more hints than it was allowed (10.4)");

pub(super) const FINDS: Property = property(
    "leader-found-by-hints",
    Kind::Sometimes,
    "a search that followed a hint finds a leader (beside found-leader-led and hops-bounded)",
);
pub(super) const EPOCH_DECIDED: Property = property(
    "epoch-decided",
    Kind::Sometimes,
    "a charter is decided (beside one-charter-an-epoch, epochs-spaced and floors-cover)",
);
pub(super) const CARRIED: Property = property(
    "renewed-into-epoch",
    Kind::Sometimes,
    "a leader renews in an epoch after the founding one (beside epochs-follow)",
);
pub(super) const LEASE_KEPT: Property = property(
    "longer-lease-kept",
    Kind::Sometimes,
    "a shorter renewal leaves E as it is (beside lease-from-a-run)",
);
pub(super) const PLEDGE_OVER: Property = property(
    "given-back-after-pledge",
    Kind::Sometimes,
    "one whose pledge is over gives its grants back (beside pledge-kept)",
);
pub(super) const LONGEST: Property =
    property("longest-grant", Kind::Sometimes, "a grant lasts for as long as any may (beside grants-end)");
pub(super) const GIVEN_AGAIN: Property = property(
    "grantor-reborn",
    Kind::Sometimes,
    "a restarted grantor gives a larger term away than before (beside granted-terms-rise)",
);
pub(super) const INTERRUPTED: Property = property(
    "change-interrupted",
    Kind::Sometimes,
    "when the faults have healed a member holds a charter, and nobody knows whether it is decided (beside change-ends)",
);
pub(super) const MOVES: Property = property(
    "leadership-moves",
    Kind::Sometimes,
    "another process leads than before (beside leader-uniqueness)",
);
pub(super) const OUTSIDE: Property = property(
    "leader-from-outside",
    Kind::Sometimes,
    "a process leads that is no grantor (beside quorum-behind-leader)",
);
pub(super) const LAPSES: Property = property(
    "lease-runs-out",
    Kind::Sometimes,
    "a lease is judged at its last instant (beside quorum-behind-leader and elected-in-time)",
);
pub(super) const RENEWS: Property = property(
    "tenure-renewed",
    Kind::Sometimes,
    "a renewal completes (beside lease-inside-grants and terms-unbroken)",
);
pub(super) const REFUSES: Property = property(
    "grant-refused",
    Kind::Sometimes,
    "a grantor refuses because its grant to another stands (beside grants-kept)",
);
pub(super) const PASSES: Property = property(
    "grant-passes-on",
    Kind::Sometimes,
    "a grantor supports another than before (beside grants-kept)",
);
pub(super) const EDICTS: Property = property(
    "edicts-of-two-leaders",
    Kind::Sometimes,
    "edicts of different leaders are compared (beside edicts-by-leaders and edicts-ordered)",
);
pub(super) const VERIFIES: Property = property(
    "verification-runs-out",
    Kind::Sometimes,
    "a certainty is judged at its last instant (beside verified-is-true)",
);
pub(super) const FREED: Property = property(
    "grant-given-back",
    Kind::Sometimes,
    "a holder gives a grant back before its end (beside grants-kept)",
);
pub(super) const SECOND_TERM: Property =
    property("second-term", Kind::Sometimes, "a second acquisition completes (beside terms-rise)");
pub(super) const SECOND_LIFE: Property = property(
    "second-life",
    Kind::Sometimes,
    "a restarted process asks and a restarted grantor grants (beside instances-unique and stamps-rise)",
);

/// (5), L1.
pub const ELECTED: Property = property(
    "leader-after-healing",
    Kind::Eventually,
    "ten longest leases after the healing somebody leads (5)",
);
/// (4), L2.
pub const STABLE: Property = property(
    "leader-stays",
    Kind::Eventually,
    "from then on it is the same process in the same term, without a gap (4)",
);

/// L3.
pub const CHANGE_ENDS: Property = property(
    "change-ends",
    Kind::Eventually,
    "no member holds an accepted charter for more than five longest leases without learning what was decided",
);

/// I8, where epochs are ended.
pub const ENDED: Property = property(
    "one-running-epoch",
    Kind::Always,
    "a leader leads in the newest epoch that is decided (section 10.6)",
);
/// I8.
pub const WEDGED: Property = property(
    "wedged-for-ever",
    Kind::Always,
    "a grantor that has said that it is wedged grants nothing in that epoch again, over restarts too (section 10.6)",
);
/// I7, over epochs that are ended.
const ENDED_FLOORS: Property = property(
    FLOORS.name,
    Kind::Always,
    "a charter's floor is at least every term completed in the epochs before it",
);
pub(super) const WEDGES: Property = property(
    "member-wedged",
    Kind::Sometimes,
    "a member is wedged (beside wedged-for-ever and one-running-epoch)",
);
pub(super) const RECOVERED: Property = property(
    "disk-recovered",
    Kind::Sometimes,
    "a grantor that lost its disk grants again (beside terms-rise and edicts-ordered)",
);
/// L3, where epochs are ended.
const WEDGE_ENDS: Property = property(
    CHANGE_ENDS.name,
    Kind::Eventually,
    "ten longest leases after the healing no member of the newest epoch is wedged",
);

const WEDGE_INTERRUPTED: Property = property(
    INTERRUPTED.name,
    Kind::Sometimes,
    "when the faults have healed a member is wedged and does not know the next epoch (beside change-ends)",
);

/// HEIGHT.
pub const HEIGHTS: Property = property(
    "heights-bounded",
    Kind::Always,
    "one grant raises the terms by no more than its holder may: a bucket for an outsider, 2^24 for a member",
);
/// Beside it.
pub const CLIMBS: Property = property(
    "outsider-raises-terms",
    Kind::Sometimes,
    "an outsider is granted a term above all before (beside heights-bounded)",
);

/// Properties that hold however epochs follow one another.
const COMMON: [Property; 44] = [
    UNIQUENESS,
    SUPPORT,
    INSIDE,
    KEPT,
    TERMS,
    UNBROKEN,
    IN_TIME,
    INSTANCES,
    STAMPS,
    COUNTED,
    LEASE_KEPT,
    PLEDGED,
    PLEDGE_OVER,
    ENDS,
    LONGEST,
    GIVEN_TERMS,
    GIVEN_AGAIN,
    FORGOTTEN,
    FORGETS,
    VALID,
    ORDERED,
    EDICTS,
    CERTAIN,
    VERIFIES,
    ONE_CHARTER,
    EPOCHS_FOLLOW,
    FOUND,
    HOPS,
    FINDS,
    EPOCH_DECIDED,
    CARRIED,
    MOVES,
    OUTSIDE,
    LAPSES,
    RENEWS,
    REFUSES,
    PASSES,
    FREED,
    SECOND_TERM,
    SECOND_LIFE,
    ELECTED,
    STABLE,
    HEIGHTS,
    CLIMBS,
];

/// The common properties and some more.
const fn with<const OWN: usize, const ALL: usize>(own: [Property; OWN]) -> [Property; ALL] {
    assert!(COMMON.len() + OWN == ALL, "the length is that of both");
    let mut all = [UNIQUENESS; ALL];
    let mut i = 0;
    while i < ALL {
        all[i] = if i < COMMON.len() { COMMON[i] } else { own[i - COMMON.len()] };
        i += 1;
    }
    all
}

/// All properties of strong leadership.
pub const ALL: [Property; 50] = with([SPACED, WAITED, SECOND_CHANGE, FLOORS, INTERRUPTED, CHANGE_ENDS]);

/// All properties where epochs are ended before the next begins, and where lost disks recover.
pub const WEDGE_ALL: [Property; 51] =
    with([ENDED, WEDGED, ENDED_FLOORS, WEDGES, RECOVERED, WEDGE_INTERRUPTED, WEDGE_ENDS]);
