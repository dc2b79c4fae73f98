//! The log in the catalogue: the sound machine, or one of its mutants.

use crate::catalogue::{About, Entry, MutantAbout, Showcase};
use crate::protocols::log::judge;
use crate::protocols::log::mutants::{BrokenLog, LOG, LogMutant};
use crate::protocols::log::subject::Log;

/// Multi-decree Paxos, with clients.
pub(crate) const PAXOS: Paxos = Paxos {
    about: About {
        name: "paxos",
        model: "n acceptors, at most f of them failing, any message delay and loss, crash and restart; an election that may be wrong for any time",
        promises: "one log, the same everywhere, and clients that see one store; in the end all of them are answered",
        source: "Malkhi, Oprea, Zhou: Omega Meets Paxos, section 6; Lamport: Paxos",
    },
};

pub(crate) struct Paxos {
    about: About,
}

impl Entry for Paxos {
    type Subject = Log<BrokenLog>;

    fn about(&self) -> About {
        self.about
    }

    fn sound(&self) -> Self::Subject {
        Log { rules: BrokenLog::Nothing }
    }

    fn mutants(&self) -> Vec<(MutantAbout, Self::Subject)> {
        let ready = |mutant: &LogMutant| {
            (MutantAbout { name: mutant.name, says: mutant.says }, Log { rules: mutant.rules })
        };
        LOG.iter().map(ready).collect()
    }

    /// The mutants that seeds show best; the others have plays. How soon commits come can only be
    /// seen where an adversary grants something, and where fewer may fail than could.
    fn showcase(&self, mutant: &str) -> Option<Showcase> {
        let (property, first) = match mutant {
            "accept-large-quorum" => (judge::TIMELY, 0),
            "ignore-promises"
            | "promise-any"
            | "prepare-small-quorum"
            | "promise-in-part"
            | "accept-small-quorum" => (judge::AGREEMENT, 0),
            "commit-any-ballot" | "propose-forgotten" => (judge::AGREEMENT, 30),
            "apply-over-gap" => (judge::ORDER, 0),
            "snapshot-loses-sessions" => (judge::OUTCOME, 0),
            "session-forgotten" | "closed-session" => (judge::LINEARIZABLE, 0),
            "read-no-round" => (judge::LINEARIZABLE, 40),
            "read-without-lease" => (judge::LINEARIZABLE, 240),
            "truncate-unapplied" => (judge::DURABILITY, 10),
            _ => return None,
        };
        let (world, sets): (_, &[_]) = match property {
            judge::TIMELY => (Some("moving-set"), &[("election", "stable"), ("faults", "1")]),
            _ => (None, &[]),
        };
        Some(Showcase { world, nodes: 5, sets, property: Some(property), seeds: first..first + 64 })
    }
}
