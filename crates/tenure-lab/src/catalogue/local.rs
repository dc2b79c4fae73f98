//! Local leadership in the catalogue: the sound machine, or one of its mutants.

use tenure_proto::local::Sound;

use super::bench::Bench;
use super::{
    About, ConstantAbout, Error, Experiment, MutantAbout, Replay, Report, Seeds, Showcase, Small, Trial,
};
use crate::mutant::local::{self as mutant, Mutant, Wrong};
use crate::property::{Property, local};
use crate::script;
use crate::subject::Subject;
use crate::subject::local::Locals;
use crate::sweep::Swept;

/// A leader for every partition.
pub(super) const LOCAL: Locally<false> = Locally {
    about: About {
        name: "local",
        model: "clocks with bounded drift; where messages take at most delta and wake-ups at most sigma, a leader is owed",
        promises: "a leader in each stable partition, whoever is in it supports it, and logical partitions never overlap",
        source: "Fetzer, Cristian: A highly available local leader election service (1999)",
    },
};

/// The same, with a majority.
pub(super) const MAJORITY: Locally<true> = Locally {
    about: About {
        name: "local-majority",
        model: "as local; a leader needs the support of more than half of all members",
        promises: "as local, and at most one leader in the whole system; a leader is owed to majorities alone",
        source: "Fetzer, Cristian: A highly available local leader election service (1999), global mode",
    },
};

pub(super) struct Locally<const GLOBAL: bool> {
    about: About,
}

fn mutants<const GLOBAL: bool>() -> impl Iterator<Item = &'static Mutant> {
    mutant::ALL.iter().filter(|mutant| GLOBAL || !mutant.majority)
}

fn choose<const GLOBAL: bool>(mutant: Option<&str>) -> Result<Option<&'static Mutant>, Error> {
    let Some(name) = mutant else { return Ok(None) };
    let found = mutants::<GLOBAL>().find(|mutant| mutant.name == name);
    let known = mutants::<GLOBAL>().map(|mutant| mutant.name);
    found.map(Some).ok_or_else(|| Error::unknown("mutant", name, known))
}

impl<const GLOBAL: bool> Locally<GLOBAL> {
    fn sound(&self) -> Bench<'_, Locals<Sound, GLOBAL>> {
        Bench { about: &self.about, subject: &Locals { rules: Sound }, wrong: None }
    }

    fn broken<'a>(
        &'a self,
        mutant: &Mutant,
        subject: &'a Locals<Wrong, GLOBAL>,
    ) -> Bench<'a, Locals<Wrong, GLOBAL>> {
        Bench { about: &self.about, subject, wrong: Some(mutant.says) }
    }
}

impl<const GLOBAL: bool> Experiment for Locally<GLOBAL> {
    fn about(&self) -> About {
        self.about
    }

    fn properties(&self) -> &'static [Property] {
        if GLOBAL { &local::MAJORITY } else { &local::LOCAL }
    }

    fn mutants(&self) -> Vec<MutantAbout> {
        mutants::<GLOBAL>().map(|mutant| MutantAbout { name: mutant.name, says: mutant.says }).collect()
    }

    /// Liveness is owed on firm ground, and mistakes along a tree take a tree.
    fn showcase(&self, mutant: &str) -> Option<Showcase> {
        let (world, nodes, first) = match (mutant, GLOBAL) {
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

    fn constants(&self) -> Vec<ConstantAbout> {
        let keys = <Locals<Sound, GLOBAL> as Subject>::KEYS;
        keys.iter().map(|key| ConstantAbout { name: key.name, says: key.says }).collect()
    }

    fn run(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        match choose::<GLOBAL>(trial.mutant.as_deref())? {
            None => self.sound().run(trial, seed),
            Some(mutant) => self.broken(mutant, &Locals { rules: mutant.wrong }).run(trial, seed),
        }
    }

    fn watch(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        match choose::<GLOBAL>(trial.mutant.as_deref())? {
            None => self.sound().unrecorded(trial, seed),
            Some(mutant) => self.broken(mutant, &Locals { rules: mutant.wrong }).unrecorded(trial, seed),
        }
    }

    fn sweep(&self, trial: &Trial, seeds: Seeds, progress: &(dyn Fn(u64) + Sync)) -> Result<Swept, Error> {
        match choose::<GLOBAL>(trial.mutant.as_deref())? {
            None => self.sound().sweep(trial, seeds, progress),
            Some(mutant) => {
                self.broken(mutant, &Locals { rules: mutant.wrong }).sweep(trial, seeds, progress)
            }
        }
    }

    fn shrink(&self, trial: &Trial, seed: u64, property: &str) -> Result<Small, Error> {
        match choose::<GLOBAL>(trial.mutant.as_deref())? {
            None => self.sound().shrink(trial, seed, property),
            Some(mutant) => {
                self.broken(mutant, &Locals { rules: mutant.wrong }).shrink(trial, seed, property)
            }
        }
    }

    fn replay(&self, text: &str, instead: Option<Option<&str>>) -> Result<Replay, Error> {
        let (_, named) = script::subject_of(text).map_err(|error| Error::new(error.to_string()))?;
        let name = instead.map_or(named.as_deref(), |instead| instead);
        match choose::<GLOBAL>(name)? {
            None => self.sound().replay(text, name, instead.is_some()),
            Some(mutant) => {
                self.broken(mutant, &Locals { rules: mutant.wrong }).replay(text, name, instead.is_some())
            }
        }
    }

    fn exercise(&self, trial: &Trial, first: u64, seeds: u64, properties: bool) -> Result<u64, Error> {
        self.sound().exercise(trial, first, seeds, properties)
    }
}
