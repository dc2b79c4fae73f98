//! Mutants where an epoch is ended before the next begins, and where a lost disk recovers.

use super::{Broken, Mutant, driver, rule};
use crate::world::Flaws;

/// All mutants of the paper's own change of members, and of recovery.
pub(super) const WEDGE: &[Mutant] = &[
    rule("wedge-ignores-grant", Broken::WedgeIgnoresGrant, "a member is wedged although a grant stands"),
    rule("wedge-volatile", Broken::WedgeVolatile, "a restart forgets what is wedged and accepted"),
    rule("reconf-no-adopt", Broken::NoValueAdopt, "who ends an epoch ignores what others may have decided"),
    rule("reconf-keep-e", Broken::ReconfKeepE, "a leader that ends its epoch leads on until its lease ends"),
    rule("epoch-term-reset", Broken::EpochTermReset, "terms begin anew in a new epoch"),
    rule("epoch-no-wait", Broken::ActOnAccepted, "a member enters the next epoch before that is decided"),
    rule("amnesia-no-read", Broken::AmnesiaNoRead, "a lost disk is followed by a silence, but no reading"),
    rule("amnesia-read-early", Broken::AmnesiaReadEarly, "the largest term is read before the silence"),
    rule("speaks-for-others", Broken::SpeaksForOthers, "anybody may give back what another holds"),
    rule("counts-unknown", Broken::CountsUnknown, "the answer of a process that is no member counts"),
    driver(
        "amnesia-qt",
        Flaws { trusts_lost_stamps: true, ..Flaws::NONE },
        "edicts are ordered by stamps of grantors that lost their disks",
    ),
];
