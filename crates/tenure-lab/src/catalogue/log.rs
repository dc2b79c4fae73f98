//! The log in the catalogue: the sound machine, or one of its mutants.

use tenure_proto::log::Sound;

use super::bench::Bench;
use super::{
    About, ConstantAbout, Error, Experiment, MutantAbout, Replay, Report, Seeds, Showcase, Small, Trial,
};
use crate::mutant::log::{BrokenLog, LOG, LogMutant};
use crate::property::{Property, log};
use crate::script;
use crate::subject::Subject;
use crate::subject::log::Log;
use crate::sweep::Swept;

/// Multi-decree Paxos, with clients.
pub(super) const PAXOS: Paxos = Paxos {
    about: About {
        name: "paxos",
        model: "n acceptors of which f may fail, any message delay and loss, crash and restart; an election that may be wrong for any time",
        promises: "one log, the same everywhere, and clients that see one store; in the end all of them are answered",
        source: "Malkhi, Oprea, Zhou: Omega Meets Paxos, section 6; Lamport: Paxos",
    },
};

pub(super) struct Paxos {
    about: About,
}

/// The subject to run: a choice of types that must not leak out.
enum Chosen {
    Sound,
    Mutant(&'static LogMutant),
}

fn choose(mutant: Option<&str>) -> Result<Chosen, Error> {
    let Some(name) = mutant else { return Ok(Chosen::Sound) };
    let found = LOG.iter().find(|mutant| mutant.name == name);
    let known = LOG.iter().map(|mutant| mutant.name);
    found.map(Chosen::Mutant).ok_or_else(|| Error::unknown("mutant", name, known))
}

impl Paxos {
    fn sound(&self) -> Bench<'_, Log<Sound>> {
        Bench { about: &self.about, subject: &const { Log::sound() }, wrong: None }
    }

    fn broken<'a>(&'a self, mutant: &LogMutant, subject: &'a Log<BrokenLog>) -> Bench<'a, Log<BrokenLog>> {
        Bench { about: &self.about, subject, wrong: Some(mutant.says) }
    }
}

impl Experiment for Paxos {
    fn about(&self) -> About {
        self.about
    }

    fn properties(&self) -> &'static [Property] {
        &log::ALL
    }

    fn mutants(&self) -> Vec<MutantAbout> {
        LOG.iter().map(|mutant| MutantAbout { name: mutant.name, says: mutant.says }).collect()
    }

    /// The mutants that seeds show best; the others have plays. How soon commits come can only be
    /// seen where an adversary grants something, and where fewer may fail than could.
    fn showcase(&self, mutant: &str) -> Option<Showcase> {
        let (property, first) = match mutant {
            "accept-large-quorum" => (log::TIMELY, 0),
            "ignore-promises"
            | "promise-any"
            | "prepare-small-quorum"
            | "promise-in-part"
            | "accept-small-quorum" => (log::AGREEMENT, 0),
            "commit-any-ballot" | "propose-forgotten" => (log::AGREEMENT, 30),
            "apply-over-gap" => (log::ORDER, 0),
            "snapshot-loses-sessions" => (log::OUTCOME, 0),
            "session-forgotten" | "closed-session" => (log::LINEARIZABLE, 0),
            "read-no-round" => (log::LINEARIZABLE, 40),
            "read-without-lease" => (log::LINEARIZABLE, 240),
            "truncate-unapplied" => (log::DURABILITY, 10),
            _ => return None,
        };
        let (world, sets): (_, &[_]) = match property {
            log::TIMELY => (Some("moving-set"), &[("election", "stable"), ("faults", "1")]),
            _ => (None, &[]),
        };
        Some(Showcase { world, nodes: 5, sets, property: Some(property), seeds: first..first + 64 })
    }

    fn constants(&self) -> Vec<ConstantAbout> {
        let keys = <Log<Sound> as Subject>::KEYS;
        keys.iter().map(|key| ConstantAbout { name: key.name, says: key.says }).collect()
    }

    fn run(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        match choose(trial.mutant.as_deref())? {
            Chosen::Sound => self.sound().run(trial, seed),
            Chosen::Mutant(mutant) => self.broken(mutant, &mutant.subject()).run(trial, seed),
        }
    }

    fn watch(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        match choose(trial.mutant.as_deref())? {
            Chosen::Sound => self.sound().unrecorded(trial, seed),
            Chosen::Mutant(mutant) => self.broken(mutant, &mutant.subject()).unrecorded(trial, seed),
        }
    }

    fn sweep(&self, trial: &Trial, seeds: Seeds, progress: &(dyn Fn(u64) + Sync)) -> Result<Swept, Error> {
        match choose(trial.mutant.as_deref())? {
            Chosen::Sound => self.sound().sweep(trial, seeds, progress),
            Chosen::Mutant(mutant) => self.broken(mutant, &mutant.subject()).sweep(trial, seeds, progress),
        }
    }

    fn shrink(&self, trial: &Trial, seed: u64, property: &str) -> Result<Small, Error> {
        match choose(trial.mutant.as_deref())? {
            Chosen::Sound => self.sound().shrink(trial, seed, property),
            Chosen::Mutant(mutant) => self.broken(mutant, &mutant.subject()).shrink(trial, seed, property),
        }
    }

    fn replay(&self, text: &str, instead: Option<Option<&str>>) -> Result<Replay, Error> {
        let (_, named) = script::subject_of(text).map_err(|error| Error::new(error.to_string()))?;
        let name = instead.map_or(named.as_deref(), |instead| instead);
        match choose(name)? {
            Chosen::Sound => self.sound().replay(text, name, instead.is_some()),
            Chosen::Mutant(mutant) => {
                self.broken(mutant, &mutant.subject()).replay(text, name, instead.is_some())
            }
        }
    }

    fn exercise(&self, trial: &Trial, first: u64, seeds: u64, properties: bool) -> Result<u64, Error> {
        self.sound().exercise(trial, first, seeds, properties)
    }
}
