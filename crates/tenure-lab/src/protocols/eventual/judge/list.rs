//! The properties of eventual leaders.

use crate::property::{Kind, Property};

const fn always(name: &'static str, says: &'static str) -> Property {
    Property { name, kind: Kind::Always, says }
}

const fn sometimes(name: &'static str, says: &'static str) -> Property {
    Property { name, kind: Kind::Sometimes, says }
}

pub(super) const AGREEMENT: Property = Property {
    name: "agreement",
    kind: Kind::Eventually,
    says: "all that live take the same one for leader, one that lives, and none has changed its mind in the last tenth of the time",
};
pub(super) const KEEPS_EPOCH: Property = always(
    "access-keeps-epoch",
    "a process all of whose rounds can be answered in time does not give its epoch up",
);
pub(super) const OWN_EPOCH: Property =
    always("own-epoch", "who takes itself for leader does so by the epoch that it stands for");
pub(super) const ALONE: Property =
    always("one-self-leader", "at any instant at most one process takes itself for leader (C.1)");
pub(super) const RISING: Property = always(
    "rising-epochs",
    "each leader leads by a higher epoch than all before it, unless more processes than may fail had forgotten everything at once",
);
pub(super) const STABLE: Property =
    always("stable-leader", "a leader that has access goes on to lead (Def. 6)");
pub(super) const SELDOM: Property =
    always("asks-seldom", "who gets no epoch asks for one a few times at once, and then once a period (C7)");
pub(super) const SUCCEEDED: Property = sometimes("leader-succeeded", "a leader is followed by another");
pub(super) const RIVALS: Property =
    sometimes("rivals", "somebody becomes leader while others stand for epochs of their own");
pub(super) const LOST_ACCESS: Property =
    sometimes("access-lost", "a leader without access stops leading by itself");

/// All of them.
pub const ALL: [Property; 10] =
    [AGREEMENT, KEEPS_EPOCH, OWN_EPOCH, ALONE, RISING, STABLE, SELDOM, SUCCEEDED, RIVALS, LOST_ACCESS];

/// The properties promised at every instant to a process that is granted access, and to no other.
pub(crate) const GRANTED: [Property; 2] = [KEEPS_EPOCH, STABLE];

/// How much an election promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promises {
    /// Agreement in the end, and nothing else.
    Agreement,
    /// That an epoch is kept by who has access.
    Omega,
    /// That there is one leader at a time, and that a good one stays.
    Stable,
}

impl Promises {
    /// Whether a property is among what is promised.
    pub fn include(self, property: Property) -> bool {
        let stable = [ALONE, RISING, STABLE, SELDOM, RIVALS];
        match self {
            Self::Agreement => property == AGREEMENT,
            Self::Omega => !stable.contains(&property),
            Self::Stable => true,
        }
    }

    /// The properties that are promised.
    pub fn properties(self) -> &'static [Property] {
        match self {
            Self::Agreement => &[AGREEMENT],
            Self::Omega => &[AGREEMENT, KEEPS_EPOCH, OWN_EPOCH, SUCCEEDED, LOST_ACCESS],
            Self::Stable => &ALL,
        }
    }
}
