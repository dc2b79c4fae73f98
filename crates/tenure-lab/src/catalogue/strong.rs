//! Nerio in the catalogue: the sound machine, or one of its mutants.

use tenure_proto::strong::Sound;

use super::bench::Bench;
use super::{About, ConstantAbout, Error, Experiment, MutantAbout, Replay, Report, Seeds, Small, Trial};
use crate::mutant::{self, Broken, Mutant};
use crate::property::{Property, strong};
use crate::script;
use crate::subject::Subject;
use crate::subject::strong::Strong;
use crate::sweep::Swept;

/// OQwBD: clocks with bounded drift.
pub(super) const NERIO_DRIFT: Nerio<false> = Nerio {
    about: About {
        name: "nerio-drift",
        model: "quorum of grantors, clocks with bounded drift, any message delay and loss, crash and restart",
        promises: "at most one leader at any instant; a leader in the end, and a stable one",
        source: "van Renesse, Schneider, Gehrke: Nerio, section 3 (OQwBD)",
    },
};

/// OQwBS: clocks with bounded skew.
pub(super) const NERIO_SKEW: Nerio<true> = Nerio {
    about: About {
        name: "nerio-skew",
        model: "quorum of grantors, clocks synchronised to within a bound, any message delay and loss, crash and restart",
        promises: "as nerio-drift; and a request that was long on its way blocks nobody for long",
        source: "van Renesse, Schneider, Gehrke: Nerio, section 4 (OQwBS)",
    },
};

/// Section 10.6, and recovery from lost disks.
pub(super) const NERIO_WEDGE: Nerio<false, true> = Nerio {
    about: About {
        name: "nerio-wedge",
        model: "as nerio-drift; members change by ending an epoch, or are fixed and lost disks recover",
        promises: "as nerio-drift, over epochs with any members; without a leader between two epochs",
        source: "van Renesse, Schneider, Gehrke: Nerio, section 10.6",
    },
};

pub(super) struct Nerio<const SKEW: bool, const ENDED: bool = false> {
    about: About,
}

/// The subject to run: a choice of types that must not leak out.
enum Chosen {
    Sound,
    Mutant(&'static Mutant),
}

/// The mutants of a protocol. A mutant that is wrong on drifting clocks anyway need not be tried
/// once more where epochs are ended.
fn mutants<const SKEW: bool, const ENDED: bool>() -> impl Iterator<Item = &'static Mutant> {
    let (ended, carried) = if ENDED { (Some(mutant::wedge()), None) } else { (None, Some(mutant::strong())) };
    let all = ended.into_iter().flatten().chain(carried.into_iter().flatten());
    all.filter(|mutant| mutant.is_wrong_on(SKEW))
}

fn choose<const SKEW: bool, const ENDED: bool>(mutant: Option<&str>) -> Result<Chosen, Error> {
    let Some(name) = mutant else { return Ok(Chosen::Sound) };
    let mutants = mutants::<SKEW, ENDED>;
    let found = mutants().find(|mutant| mutant.name == name);
    let known = mutants().map(|mutant| mutant.name);
    found.map(Chosen::Mutant).ok_or_else(|| Error::unknown("mutant", name, known))
}

impl<const SKEW: bool, const ENDED: bool> Experiment for Nerio<SKEW, ENDED> {
    fn about(&self) -> About {
        self.about
    }

    fn properties(&self) -> &'static [Property] {
        if ENDED { &strong::WEDGE_ALL } else { &strong::ALL }
    }

    fn mutants(&self) -> Vec<MutantAbout> {
        mutants::<SKEW, ENDED>().map(|mutant| MutantAbout { name: mutant.name, says: mutant.says }).collect()
    }

    fn constants(&self) -> Vec<ConstantAbout> {
        let keys = <Strong<Broken, SKEW, ENDED> as Subject>::KEYS;
        keys.iter().map(|key| ConstantAbout { name: key.name, says: key.says }).collect()
    }

    fn run(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        match choose::<SKEW, ENDED>(trial.mutant.as_deref())? {
            Chosen::Sound => self.sound().run(trial, seed),
            Chosen::Mutant(mutant) => self.broken(mutant, &mutant.subject()).run(trial, seed),
        }
    }

    fn watch(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        match choose::<SKEW, ENDED>(trial.mutant.as_deref())? {
            Chosen::Sound => self.sound().unrecorded(trial, seed),
            Chosen::Mutant(mutant) => self.broken(mutant, &mutant.subject()).unrecorded(trial, seed),
        }
    }

    fn sweep(&self, trial: &Trial, seeds: Seeds, progress: &(dyn Fn(u64) + Sync)) -> Result<Swept, Error> {
        match choose::<SKEW, ENDED>(trial.mutant.as_deref())? {
            Chosen::Sound => self.sound().sweep(trial, seeds, progress),
            Chosen::Mutant(mutant) => self.broken(mutant, &mutant.subject()).sweep(trial, seeds, progress),
        }
    }

    fn shrink(&self, trial: &Trial, seed: u64, property: &str) -> Result<Small, Error> {
        match choose::<SKEW, ENDED>(trial.mutant.as_deref())? {
            Chosen::Sound => self.sound().shrink(trial, seed, property),
            Chosen::Mutant(mutant) => self.broken(mutant, &mutant.subject()).shrink(trial, seed, property),
        }
    }

    fn replay(&self, text: &str, instead: Option<Option<&str>>) -> Result<Replay, Error> {
        let (_, named) = script::subject_of(text).map_err(|error| Error::new(error.to_string()))?;
        let name = instead.map_or(named.as_deref(), |instead| instead);
        match choose::<SKEW, ENDED>(name)? {
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

impl<const SKEW: bool, const ENDED: bool> Nerio<SKEW, ENDED> {
    /// The machine that nodes run.
    fn sound(&self) -> Bench<'_, Strong<Sound, SKEW, ENDED>> {
        Bench { about: &self.about, subject: &const { Strong::sound() }, wrong: None }
    }

    fn broken<'a>(
        &'a self,
        mutant: &Mutant,
        subject: &'a Strong<Broken, SKEW, ENDED>,
    ) -> Bench<'a, Strong<Broken, SKEW, ENDED>> {
        Bench { about: &self.about, subject, wrong: Some(mutant.says) }
    }
}
