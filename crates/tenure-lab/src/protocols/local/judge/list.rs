//! The properties of local leaders.

use crate::property::{Kind, Property};

const fn always(name: &'static str, says: &'static str) -> Property {
    Property { name, kind: Kind::Always, says }
}

const fn sometimes(name: &'static str, says: &'static str) -> Property {
    Property { name, kind: Kind::Sometimes, says }
}

const fn eventually(name: &'static str, says: &'static str) -> Property {
    Property { name, kind: Kind::Eventually, says }
}

pub(crate) const SUPPORT_ONE: Property =
    always("support-one", "nobody supports two leaders at an instant: support sets are disjoint (SO)");
pub(super) const SELF_SUPPORT: Property = always("self-support", "a leader supports itself (LS)");
pub(super) const ONE_A_PARTITION: Property =
    always("one-leader-a-partition", "a class of the closure of `supports` has at most one leader");
pub(super) const BOUND: Property = always(
    "bound",
    "whom a leader counts on is bound to it until its lease ends: neither free nor bound to another before",
);
pub(super) const ONE_LEADER: Property =
    always("one-leader", "at most one leader at an instant, supported by more than half of all members");
pub(super) const FAST_IS_FAST: Property =
    always("fast-is-fast", "no datagram takes longer than its bound: fast implies at most Delta");
pub(super) const CONNECTED_IS_FAST: Property =
    always("connected-is-fast", "between connected processes every reply is fast");
pub(super) const MEMBERS_TRUE: Property = always(
    "members-true",
    "the members that a process is told of are a support set that its leader had, with itself in it",
);
pub(super) const IN_TIME: Property =
    eventually("leader-in-time", "a stable partition is never without a leader for longer than kappa_T (T)");
pub(super) const CONNECTED_SUPPORT: Property = eventually(
    "connected-support",
    "a process that has been connected to a leader for kappa_BI supports it (BI)",
);
pub(super) const KEPT: Property = eventually(
    "kept",
    "who must lead does so within kappa and without a gap; who will lead in the end, likewise (MUST, PERM)",
);
pub(super) const NOBODY_ELSE: Property =
    eventually("nobody-else", "nobody is elected who may not be (elected in MAY)");
pub(super) const APART: Property =
    sometimes("two-partitions", "two processes lead at once, in partitions of their own");
pub(super) const CROWDED: Property =
    sometimes("rivals", "a process is asked by one while it is bound to another, and declines");
pub(super) const SLOW: Property = sometimes("slow", "a datagram is slow");
pub(super) const FREED: Property = sometimes("freed", "a Release frees somebody");
pub(super) const WAITED: Property = sometimes("waited", "a process that has forgotten its lock waits");
pub(super) const STOOD: Property = sometimes("stood", "a partition is stable for kappa, and has a leader");
pub(super) const LEARNT: Property = sometimes("learnt", "a process is told the members of its partition");

/// The properties that traces of real processes can be judged by: they tell neither which datagrams
/// came, nor who reached whom.
pub const TRACED: [Property; 11] = [
    SUPPORT_ONE,
    SELF_SUPPORT,
    ONE_A_PARTITION,
    BOUND,
    MEMBERS_TRUE,
    ONE_LEADER,
    APART,
    CROWDED,
    FREED,
    WAITED,
    LEARNT,
];

/// Those of them that compare the times of different processes.
pub const COMPARED: [Property; 6] = [SUPPORT_ONE, ONE_A_PARTITION, BOUND, MEMBERS_TRUE, ONE_LEADER, APART];

/// Of leaders of partitions.
pub const LOCAL: [Property; 18] = [
    SUPPORT_ONE,
    SELF_SUPPORT,
    ONE_A_PARTITION,
    BOUND,
    FAST_IS_FAST,
    CONNECTED_IS_FAST,
    MEMBERS_TRUE,
    IN_TIME,
    CONNECTED_SUPPORT,
    KEPT,
    NOBODY_ELSE,
    APART,
    CROWDED,
    SLOW,
    FREED,
    WAITED,
    STOOD,
    LEARNT,
];

/// Of leaders with a majority.
pub const MAJORITY: [Property; 18] = [
    SUPPORT_ONE,
    SELF_SUPPORT,
    ONE_A_PARTITION,
    BOUND,
    ONE_LEADER,
    FAST_IS_FAST,
    CONNECTED_IS_FAST,
    MEMBERS_TRUE,
    IN_TIME,
    CONNECTED_SUPPORT,
    KEPT,
    NOBODY_ELSE,
    CROWDED,
    SLOW,
    FREED,
    WAITED,
    STOOD,
    LEARNT,
];
