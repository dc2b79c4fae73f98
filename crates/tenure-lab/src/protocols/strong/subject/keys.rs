//! The constants that a run of Nerio fixes, in the order in which files list them.

use crate::subject::{Key, Unit};

const fn key(name: &'static str, unit: Unit, says: &'static str) -> Key {
    Key { name, unit, says, otherwise: None }
}

/// Whether members are fixed, so that a member that lost its disk can recover; else they change,
/// and it takes no part any more.
const RECOVERY: Key = key("recovery", Unit::Count, "1: members never change, lost disks recover; 0: not so");
pub(super) const WEDGE_KEYS: [Key; 15] = {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = DRIFT_KEYS;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, RECOVERY]
};

/// A constant that is zero where nothing is said: as it was before there was such a thing.
const fn extra(name: &'static str, unit: Unit, says: &'static str) -> Key {
    Key { otherwise: Some(0), ..key(name, unit, says) }
}

/// How many hosts are something else than a member that grants and campaigns: none, where nothing
/// is said.
const fn few(name: &'static str, says: &'static str) -> Key {
    extra(name, Unit::Count, says)
}

pub(super) const SKEW_KEYS: [Key; 14] =
    keys(key("skew", Unit::Time, "the most that two clocks differ (Delta)"));
pub(super) const DRIFT_KEYS: [Key; 14] =
    keys(key("drift", Unit::Ppm, "the bound on a clock's rate error (rho)"));

const fn keys(bound: Key) -> [Key; 14] {
    [
        bound,
        key("tick", Unit::Time, "the step in which clocks advance"),
        key("lease", Unit::Time, "how long a lease lasts (delta)"),
        key("longest-lease", Unit::Time, "the longest lease a grantor promises (delta_max)"),
        key("window", Unit::Time, "candidates start at a random time in this window (W)"),
        key("retry", Unit::Time, "how long to wait for an answer before asking again"),
        key("block", Unit::Count, "by how many terms the durable ceiling is raised"),
        key("groups", Unit::Count, "how many elections the same processes hold"),
        few("witnesses", "how many of the members, the last ones, never campaign"),
        few("outsiders", "how many processes campaign that are no members"),
        few("observers", "how many processes neither grant nor campaign, and only ask"),
        few(
            "weak",
            "who tries first: 0 chance, 1 a ring by heartbeats, 2 a ring by phi accrual, 3 omega, 4 a local leader",
        ),
        few("adapt", "whether the length of leases follows the network: 0 no, 1 yes"),
        extra(
            "hold",
            Unit::Time,
            "how long a preferred process must be steady to be handed the lead (0: never)",
        ),
    ]
}
