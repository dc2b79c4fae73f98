//! Local leadership in the catalogue: the sound machine, or one of its mutants.

use crate::catalogue::{About, Entry, MutantAbout, Showcase};
use crate::protocols::local::mutants::{ALL, Mutant, Wrong};
use crate::protocols::local::subject::Locals;

/// A leader for every partition.
pub(crate) const LOCAL: Locally = Locally {
    about: About {
        name: "local",
        model: "clocks with bounded drift; where messages take at most delta and wake-ups at most sigma, a leader is owed",
        promises: "a leader in each stable partition, supported by all processes in it, and logical partitions never overlap",
        source: "Fetzer, Cristian: A highly available local leader election service (1999)",
    },
    majority: false,
};

/// The same, with a majority.
pub(crate) const MAJORITY: Locally = Locally {
    about: About {
        name: "local-majority",
        model: "as local; a leader needs the support of more than half of all members",
        promises: "as local, and at most one leader in the whole system; a leader is owed to majorities alone",
        source: "Fetzer, Cristian: A highly available local leader election service (1999), global mode",
    },
    majority: true,
};

/// Local leadership, with or without a majority.
pub(crate) struct Locally {
    about: About,
    majority: bool,
}

impl Entry for Locally {
    type Subject = Locals<Wrong>;

    fn about(&self) -> About {
        self.about
    }

    fn sound(&self) -> Self::Subject {
        Locals { rules: Wrong::Nothing, majority: self.majority }
    }

    fn mutants(&self) -> Vec<(MutantAbout, Self::Subject)> {
        let ready = |mutant: &Mutant| {
            let subject = Locals { rules: mutant.wrong, majority: self.majority };
            (MutantAbout { name: mutant.name, says: mutant.says }, subject)
        };
        ALL.iter().filter(|mutant| self.majority || !mutant.majority).map(ready).collect()
    }

    /// Liveness is owed on firm ground, and mistakes along a tree take a tree.
    fn showcase(&self, mutant: &str) -> Option<Showcase> {
        let (world, nodes, first) = match (mutant, self.majority) {
            ("accept-slow" | "renew-at-lead", _) => ("partition", 5, 0),
            ("slow-is-alive", _) => ("partition", 16, 640),
            ("own-entry-by-receipt", true) => ("graph", 5, 19_000),
            ("skip-self-target" | "skip-alive-check" | "own-entry-by-receipt" | "support-non-minimum", _) => {
                ("graph", 5, 0)
            }
            _ => return None,
        };
        let (world, seeds) = (Some(world), first..first + 64);
        Some(Showcase { world, nodes, sets: &[], property: None, seeds })
    }
}
