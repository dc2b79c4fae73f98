//! Every protocol of the laboratory by name, behind one face that does not know its types.

mod bench;

use std::fmt;
use std::ops::Range;

use tenure_proto::NodeId;

use crate::count::Counts;
use crate::draw::Picture;
use crate::explore::{self, Checked, ScopeAbout, Wanted};
use crate::property::{Property, Status, Tenure, Violation};
use crate::protocols::{eventual, local, log, named, strong};
use crate::script;
use crate::simulate::{Faults, Named, Setup};
use crate::stage::Calm;
use crate::subject::Subject;
use crate::sweep::Swept;
use crate::world::RealTime;

use bench::Bench;

/// All protocols.
// A function as small as this would be inlined into other crates, and with its tables every
// simulator would be compiled again there: that doubled the build.
#[inline(never)]
pub fn all() -> &'static [&'static dyn Experiment] {
    &[
        &strong::entry::NERIO_DRIFT,
        &strong::entry::NERIO_SKEW,
        &strong::entry::NERIO_WEDGE,
        &named::entry::TRIVIAL,
        &named::entry::RING,
        &named::entry::BULLY,
        &named::entry::BY_CONSENSUS,
        &named::entry::BY_ELECTION,
        &eventual::entry::OMEGA_BASIC,
        &eventual::entry::OMEGA_LEAN,
        &eventual::entry::OMEGA_STABLE,
        &eventual::entry::LOWEST_ID,
        &eventual::entry::ACCUSATION,
        &local::entry::LOCAL,
        &local::entry::MAJORITY,
        &log::entry::PAXOS,
    ]
}

/// The protocol of a name, or the nearest names.
pub fn find(name: &str) -> Result<&'static dyn Experiment, Error> {
    let found = all().iter().find(|experiment| experiment.about().name == name);
    let names = all().iter().map(|experiment| experiment.about().name);
    found.copied().ok_or_else(|| Error::unknown("protocol", name, names))
}

/// A protocol as the list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// The model that it assumes.
    pub model: &'static str,
    /// The guarantees that it gives.
    pub promises: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// A known-wrong variant, for the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutantAbout {
    /// Its name.
    pub name: &'static str,
    /// Its mistake.
    pub says: &'static str,
}

/// Seeds that show a mutant which the first ones of a storm hardly ever do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Showcase {
    /// The name of the world, if it is not a storm.
    pub world: Option<&'static str>,
    /// How many members.
    pub nodes: usize,
    /// Constants that the seeds do not draw.
    pub sets: &'static [(&'static str, &'static str)],
    /// The property that says what is wrong, if others notice too.
    pub property: Option<&'static str>,
    /// One of these is enough.
    pub seeds: Range<u64>,
}

impl Showcase {
    /// A trial, moved to where the mutant shows.
    pub fn trial(&self, trial: &Trial) -> Result<Trial, Error> {
        let mut trial = trial.clone();
        trial.setup.world = self.world.map(Named::find).transpose()?;
        trial.setup.nodes = self.nodes;
        let sets = self.sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        trial.setup.sets.extend(sets);
        trial.property = trial.property.or_else(|| self.property.map(str::to_owned));
        Ok(trial)
    }
}

/// A constant that `--set` can change, for the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantAbout {
    /// Its name.
    pub name: &'static str,
    /// Its effect, in words.
    pub says: &'static str,
}

/// A run to carry out.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Processes, quorums, faults, constants, horizon.
    pub setup: Setup,
    /// The rule that is broken on purpose.
    pub mutant: Option<String>,
    /// Look for a violation of this property alone.
    pub property: Option<String>,
}

/// Which seeds to sweep.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Stop at the first violation.
    pub stop_at_first: bool,
    /// On how many cores.
    pub threads: usize,
}

/// A protocol that can be run without knowing its types.
pub trait Experiment: Sync {
    /// The protocol's entry in the list.
    fn about(&self) -> About;
    /// Its properties.
    fn properties(&self) -> &'static [Property];
    /// Its known-wrong variants.
    fn mutants(&self) -> Vec<MutantAbout>;
    /// Its constants.
    fn constants(&self) -> Vec<ConstantAbout>;
    /// The faults that it tolerates: `sweep` and `mutants` try these if nothing else is asked for.
    fn bears(&self) -> Faults {
        Faults::all()
    }
    /// The world in which it is tried where nothing is said, and what goes wrong there; if not the
    /// storm that a seed draws.
    fn home(&self) -> Option<(&'static Named, Faults)> {
        None
    }
    /// Where one of its mutants shows, if that takes a world or seeds of its own.
    fn showcase(&self, _mutant: &str) -> Option<Showcase> {
        None
    }
    /// Runs one seed, recorded.
    fn run(&self, trial: &Trial, seed: u64) -> Result<Report, Error>;
    /// Runs one seed without writing it down: the same run, but its report has neither picture nor
    /// trace, and no length of run takes much memory.
    fn watch(&self, trial: &Trial, seed: u64) -> Result<Report, Error>;
    /// Runs many seeds; `progress` is told how many more are done.
    fn sweep(&self, trial: &Trial, seeds: Seeds, progress: &(dyn Fn(u64) + Sync)) -> Result<Swept, Error>;
    /// Runs one seed that breaks `property`, and makes the script small.
    fn shrink(&self, trial: &Trial, seed: u64, property: &str) -> Result<Small, Error>;
    /// Repeats a script or performs a [play](crate::play), as it stands or with another mutant
    /// (`Some(None)`: the sound protocol).
    fn replay(&self, text: &str, instead: Option<Option<&str>>) -> Result<Replay, Error>;
    /// The scopes in which the explorer can walk it, the smallest first; none where it cannot.
    fn scopes(&self) -> Vec<ScopeAbout>;
    /// Walks every reachable state of a scope; `report` is told now and then how far it has come.
    fn check(
        &self,
        mutant: Option<&str>,
        wanted: &Wanted,
        report: &mut explore::Report<'_>,
    ) -> Result<Checked, Error>;
    /// Runs seeds one after the other without recording; returns how many events there were. For
    /// benchmarks.
    fn exercise(&self, trial: &Trial, first: u64, seeds: u64, properties: bool) -> Result<u64, Error>;
}

/// A protocol as it enters the catalogue: its machine with its judge, and how it can be wrong.
/// Whatever implements this is an [`Experiment`].
pub trait Entry: Sync {
    /// The machine in the laboratory, sound or wrong.
    type Subject: Subject + Sync;

    /// The protocol's entry in the list.
    fn about(&self) -> About;
    /// The protocol as it should be.
    fn sound(&self) -> Self::Subject;
    /// The known-wrong variants, in the order of the list.
    fn mutants(&self) -> Vec<(MutantAbout, Self::Subject)>;
    /// The properties that the list shows: those that the judge owes this protocol.
    fn properties(&self) -> &'static [Property] {
        self.sound().properties()
    }
    /// The scopes in which the explorer can walk it, the smallest first.
    fn scopes(&self) -> Vec<ScopeAbout> {
        Vec::new()
    }
    /// Walks a scope of that name.
    fn check(
        &self,
        _subject: Self::Subject,
        _scope: &str,
        _named: (&str, Option<&str>),
        _wanted: &Wanted,
        _report: &mut explore::Report<'_>,
    ) -> Result<Checked, String> {
        Err("this protocol cannot be walked".to_owned())
    }
    /// The faults that it tolerates.
    fn bears(&self) -> Faults {
        Faults::all()
    }
    /// The world in which it is tried where nothing is said, and what goes wrong there.
    fn home(&self) -> Option<(&'static Named, Faults)> {
        None
    }
    /// Where one of its mutants shows, if that takes a world or seeds of its own.
    fn showcase(&self, _mutant: &str) -> Option<Showcase> {
        None
    }
}

/// The protocol, or the mutant of a name, ready to be tried.
fn bench<E: Entry>(entry: &E, mutant: Option<&str>) -> Result<Bench<E::Subject>, Error> {
    let about = entry.about();
    let Some(name) = mutant else { return Ok(Bench { about, subject: entry.sound(), wrong: None }) };
    let mut mutants = entry.mutants();
    match mutants.iter().position(|(mutant, _)| mutant.name == name) {
        Some(found) => {
            let (MutantAbout { says, .. }, subject) = mutants.swap_remove(found);
            Ok(Bench { about, subject, wrong: Some(says) })
        }
        None => Err(Error::unknown("mutant", name, mutants.iter().map(|(mutant, _)| mutant.name))),
    }
}

impl<E: Entry> Experiment for E {
    fn about(&self) -> About {
        Entry::about(self)
    }

    fn properties(&self) -> &'static [Property] {
        Entry::properties(self)
    }

    fn mutants(&self) -> Vec<MutantAbout> {
        Entry::mutants(self).into_iter().map(|(mutant, _)| mutant).collect()
    }

    fn constants(&self) -> Vec<ConstantAbout> {
        let keys = self.sound().keys();
        keys.iter().map(|key| ConstantAbout { name: key.name, says: key.says }).collect()
    }

    fn bears(&self) -> Faults {
        Entry::bears(self)
    }

    fn home(&self) -> Option<(&'static Named, Faults)> {
        Entry::home(self)
    }

    fn showcase(&self, mutant: &str) -> Option<Showcase> {
        Entry::showcase(self, mutant)
    }

    fn run(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        bench(self, trial.mutant.as_deref())?.run(trial, seed)
    }

    fn watch(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        bench(self, trial.mutant.as_deref())?.unrecorded(trial, seed)
    }

    fn sweep(&self, trial: &Trial, seeds: Seeds, progress: &(dyn Fn(u64) + Sync)) -> Result<Swept, Error> {
        bench(self, trial.mutant.as_deref())?.sweep(trial, seeds, progress)
    }

    fn shrink(&self, trial: &Trial, seed: u64, property: &str) -> Result<Small, Error> {
        bench(self, trial.mutant.as_deref())?.shrink(trial, seed, property)
    }

    fn replay(&self, text: &str, instead: Option<Option<&str>>) -> Result<Replay, Error> {
        let (_, named) = script::subject_of(text).map_err(|error| Error::new(error.to_string()))?;
        let name = instead.map_or(named.as_deref(), |instead| instead);
        bench(self, name)?.replay(text, name, instead.is_some())
    }

    fn scopes(&self) -> Vec<ScopeAbout> {
        Entry::scopes(self)
    }

    fn check(
        &self,
        mutant: Option<&str>,
        wanted: &Wanted,
        report: &mut explore::Report<'_>,
    ) -> Result<Checked, Error> {
        let (about, scopes) = (Entry::about(self), Entry::scopes(self));
        let Some(first) = scopes.first() else {
            return Err(Error::new(format!("{} cannot be walked yet: nerio-drift can", about.name)));
        };
        let name = wanted.scope.as_deref().unwrap_or(first.name);
        if !scopes.iter().any(|scope| scope.name == name) {
            return Err(Error::unknown("scope", name, scopes.iter().map(|scope| scope.name)));
        }
        let subject = bench(self, mutant)?.subject;
        Ok(Entry::check(self, subject, name, (about.name, mutant), wanted, report)?)
    }

    fn exercise(&self, trial: &Trial, first: u64, seeds: u64, properties: bool) -> Result<u64, Error> {
        bench(self, None)?.exercise(trial, first, seeds, properties)
    }
}

/// The outcome of one run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The protocol's name.
    pub protocol: &'static str,
    /// The rule that was broken on purpose.
    pub mutant: Option<String>,
    /// How many founding members.
    pub nodes: usize,
    /// How many hosts, with those that are no members.
    pub hosts: usize,
    /// The quorum system as text.
    pub quorums: String,
    /// The seed, if it came from one.
    pub seed: Option<u64>,
    /// The protocol's constants as text.
    pub constants: String,
    /// The violation that was looked for.
    pub violation: Option<Violation>,
    /// An assumption that the clocks broke: then a violation says nothing about the protocol.
    pub assumption: Option<String>,
    /// The outcome of each property.
    pub properties: Vec<(Property, Status)>,
    /// The leader at the end.
    pub leader: Option<NodeId>,
    /// The leaders of the first group, and when each led.
    pub tenures: Vec<Tenure>,
    /// The traffic in the time in which leaders must stay, if it came.
    pub calm: Option<Calm>,
    /// Messages between different nodes, by kind.
    pub messages: Counts,
    /// The counts of events.
    pub counts: Counts,
    /// How long it lasted, in real time of the world.
    pub time: RealTime,
    /// How many actions there were.
    pub events: u64,
    /// The run in a few words.
    pub title: String,
    /// The drawing; empty if the run was not recorded.
    pub picture: Picture,
    /// The trace: every choice, with readable text; empty if the run was not recorded.
    pub trace: String,
}

/// A violation made small.
#[derive(Clone, Debug)]
pub struct Small {
    /// The seed.
    pub seed: u64,
    /// The violation, as the small script shows it.
    pub violation: Violation,
    /// The script.
    pub script: String,
    /// How many lines it has, and how many the whole run had.
    pub lines: (usize, usize),
    /// How many replays it took.
    pub replays: u64,
    /// An assumption that the clocks broke.
    pub assumption: Option<String>,
}

/// The outcome of a replay.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The run.
    pub report: Report,
    /// The outcome that the script expects, if it was replayed as it stands.
    pub expected: Option<String>,
    /// Whether that came.
    pub as_expected: bool,
    /// The outcome that came, in words.
    pub came: String,
    /// How many lines could not be carried out (only where another mutant was chosen).
    pub skipped: usize,
}

/// Why nothing was run. Nothing was written either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    /// An error in words.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// A name that does not exist, with the nearest ones that do.
    pub fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self::not_found(what, name, &known.collect::<Vec<_>>())
    }

    fn not_found(what: &str, name: &str, known: &[&str]) -> Self {
        let far = |known: &str| if known.contains(name) { 0 } else { distance(name, known) };
        let mut near: Vec<(usize, &str)> = known.iter().map(|known| (far(known), *known)).collect();
        near.sort_unstable();
        let best = near.first().map_or(0, |(distance, _)| *distance);
        let hopeless = best > 2 + name.len() / 3;
        let close = near.iter().filter(|(distance, _)| hopeless || *distance <= 2 * best).take(8);
        let names: Vec<&str> = close.map(|(_, name)| *name).collect();
        if hopeless {
            return Self(format!("there is no {what} '{name}'; try one of {}", names.join(", ")));
        }
        Self(format!("there is no {what} '{name}'; did you mean {}?", names.join(" or ")))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<String> for Error {
    fn from(what: String) -> Self {
        Self(what)
    }
}

/// How many letters must be changed, added or left out to get from one word to the other.
pub fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, candidate) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *candidate);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest_right_one() {
        let error = find("nerio-drft").err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error, "there is no protocol 'nerio-drft'; did you mean nerio-drift?");
    }

    #[test]
    fn the_distance_of_words_counts_letters() {
        assert_eq!((distance("kitten", "sitting"), distance("", "abc"), distance("a", "a")), (3, 3, 0));
    }
}
