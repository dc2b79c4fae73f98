//! Elections among named processes in the catalogue.

use tenure_proto::classic::named::{Bully, ByConsensus, ByElection, Ring, Trivial};

use super::bench::Bench;
use super::{About, ConstantAbout, Error, Experiment, MutantAbout, Replay, Report, Seeds, Small, Trial};
use crate::mutant::named::{NAMED, Wrong};
use crate::property::Property;
use crate::script;
use crate::simulate::{Fault, Faults};
use crate::subject::Subject;
use crate::subject::named::{Class, Lesson};
use crate::sweep::Swept;

use std::marker::PhantomData;

const MODEL: &str =
    "processes that know each other's names, links that lose nothing and take at most D, crashes";

/// Everybody tells everybody.
pub(super) const TRIVIAL: Course<Trivial> = Course {
    about: About {
        name: "trivial",
        model: MODEL,
        promises: "the best by (attribute, id) of those that live is elected by all of them; N²-1 messages, time 2",
        source: "ECEN 757, Elections: the trivial solution",
    },
    mutants: &[Wrong::ByNameAlone, Wrong::OpensAgain, Wrong::WaitsForTheDead],
    algorithm: PhantomData,
};

/// The ring.
pub(super) const RING: Course<Ring> = Course {
    about: About {
        name: "ring",
        model: MODEL,
        promises: "as trivial; j+2N messages and time, called j hops before the best: 2N to 3N-1",
        source: "ECEN 757, Elections: the ring election, with several initiators and both repairs",
    },
    mutants: &[Wrong::ByNameAlone, Wrong::OpensAgain, Wrong::BareCallers],
    algorithm: PhantomData,
};

/// The bully.
pub(super) const BULLY: Course<Bully> = Course {
    about: About {
        name: "bully",
        model: "as trivial; everybody knows how good everybody is",
        promises: "as trivial; N²-N-1 messages in 4D at most, N-2 in one at least, N counting the crashed one",
        source: "Garcia-Molina (1982); ECEN 757, Elections: the bully algorithm",
    },
    mutants: &[Wrong::ByNameAlone, Wrong::OpensAgain, Wrong::AnswersInOneD, Wrong::ComesBackAtOnce],
    algorithm: PhantomData,
};

/// Election by consensus.
pub(super) const BY_CONSENSUS: Course<ByConsensus> = Course {
    about: About {
        name: "by-consensus",
        model: "as trivial, with disks; agreement on each term's winner needs no bound on delays",
        promises: "never two winners of one term; the best of those that live in the end; 5(N-1) messages, time 5",
        source: "ECEN 757, Elections: consensus to solve election; Lamport, The Part-Time Parliament (1998)",
    },
    mutants: &[Wrong::ByNameAlone, Wrong::OpensAgain, Wrong::HalfSuffices, Wrong::OwnValue],
    algorithm: PhantomData,
};

/// Consensus by election.
pub(super) const BY_ELECTION: Course<ByElection> = Course {
    about: About {
        name: "consensus-by-election",
        model: "as bully; who crashed stays away",
        promises: "agreement, validity and termination: the last bit of the elected id decides",
        source: "ECEN 757, Elections: if we could solve election, we could solve consensus",
    },
    mutants: &[Wrong::AnswersInOneD],
    algorithm: PhantomData,
};

/// The faults that elections of the synchronous model must tolerate.
pub(crate) fn synchronous() -> Faults {
    Faults::NONE.with(Fault::Crash).with(Fault::Amnesia).with(Fault::Clock)
}

/// An election and what is known of it.
pub(super) struct Course<A> {
    about: About,
    mutants: &'static [Wrong],
    algorithm: PhantomData<fn() -> A>,
}

impl<A: Lesson> Course<A> {
    fn list(&self) -> impl Iterator<Item = &'static (Wrong, &'static str, &'static str)> + '_ {
        NAMED.iter().filter(|(wrong, ..)| self.mutants.contains(wrong))
    }

    /// The rules of a name, and what is wrong with them.
    fn class(&self, mutant: Option<&str>) -> Result<(Class<A>, Option<&'static str>), Error> {
        let Some(name) = mutant else { return Ok((Class::new(Wrong::Nothing), None)) };
        let found = self.list().find(|(_, known, _)| *known == name);
        let (wrong, _, says) =
            found.ok_or_else(|| Error::unknown("mutant", name, self.list().map(|(_, known, _)| *known)))?;
        Ok((Class::new(*wrong), Some(says)))
    }
}

impl<A: Lesson> Experiment for Course<A> {
    fn about(&self) -> About {
        self.about
    }

    fn properties(&self) -> &'static [Property] {
        A::PROPERTIES
    }

    fn mutants(&self) -> Vec<MutantAbout> {
        self.list().map(|(_, name, says)| MutantAbout { name, says }).collect()
    }

    fn constants(&self) -> Vec<ConstantAbout> {
        let keys = <Class<A> as Subject>::KEYS;
        keys.iter().map(|key| ConstantAbout { name: key.name, says: key.says }).collect()
    }

    fn bears(&self) -> Faults {
        synchronous()
    }

    fn run(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        let (subject, wrong) = self.class(trial.mutant.as_deref())?;
        Bench { about: &self.about, subject: &subject, wrong }.run(trial, seed)
    }

    fn watch(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        let (subject, wrong) = self.class(trial.mutant.as_deref())?;
        Bench { about: &self.about, subject: &subject, wrong }.unrecorded(trial, seed)
    }

    fn sweep(&self, trial: &Trial, seeds: Seeds, progress: &(dyn Fn(u64) + Sync)) -> Result<Swept, Error> {
        let (subject, wrong) = self.class(trial.mutant.as_deref())?;
        Bench { about: &self.about, subject: &subject, wrong }.sweep(trial, seeds, progress)
    }

    fn shrink(&self, trial: &Trial, seed: u64, property: &str) -> Result<Small, Error> {
        let (subject, wrong) = self.class(trial.mutant.as_deref())?;
        Bench { about: &self.about, subject: &subject, wrong }.shrink(trial, seed, property)
    }

    fn replay(&self, text: &str, instead: Option<Option<&str>>) -> Result<Replay, Error> {
        let (_, named) = script::subject_of(text).map_err(|error| Error::new(error.to_string()))?;
        let name = instead.map_or(named.as_deref(), |instead| instead);
        let (subject, wrong) = self.class(name)?;
        Bench { about: &self.about, subject: &subject, wrong }.replay(text, name, instead.is_some())
    }

    fn exercise(&self, trial: &Trial, first: u64, seeds: u64, properties: bool) -> Result<u64, Error> {
        let (subject, wrong) = self.class(None)?;
        Bench { about: &self.about, subject: &subject, wrong }.exercise(trial, first, seeds, properties)
    }
}
