//! `tenure lab mutants`: does a property notice each known mistake?

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tenure_lab::catalogue::{self, Error, Experiment, Seeds, Showcase, Trial};
use tenure_lab::simulate::Faults;
use tenure_lab::sweep::Swept;

use super::options::{self, Common, faults_text};
use super::replay;
use crate::clock::clock;
use crate::failure::{Failure, messages};
use crate::output::{Answer, Format, Progress, Table, Verdict, grouped, many};

/// How many seeds are tried if nobody says so.
const SEEDS: u64 = 3000;

/// How many of them are tried before a saved scenario is: most mutants show within these.
const FEW: u64 = 300;

/// Try known-wrong variants: does a property notice each of them, and is the sound protocol silent
/// on the same seeds?
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab mutants
  tenure lab mutants nerio-drift --seeds 1000
  tenure lab mutants nerio-drift --mutant swap-rho -o json

Each mutant is swept until a property notices; one that is known to show in a world or by seeds of
its own there first, unless --world, --faults, --nodes, --quorums, --seed or --seeds say where to
look. One that no seed shows is tried on DIR/mutants/PROTOCOL/MUTANT.scenario; where nothing says
where to look, after the first 300 seeds.
Exit codes: 0 all are killed and the sound protocols silent, 1 not so, 2 error.")]
pub(super) struct Mutants {
    /// The protocol [default: all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// How many seeds to try for each
    #[arg(long, value_name = "K", default_value_t = SEEDS, value_parser = options::at_least_one, allow_negative_numbers = true)]
    seeds: u64,
    /// The folder of scenarios
    #[arg(long, value_name = "DIR", default_value = "scenarios")]
    scenarios: PathBuf,
    #[command(flatten)]
    common: Common,
    /// On how many cores [default: all]
    #[arg(long, value_name = "N", value_parser = options::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
}

/// The outcome of a mutant.
struct Fate {
    protocol: &'static str,
    mutant: &'static str,
    /// The property that noticed.
    property: Option<&'static str>,
    /// The evidence.
    by: Option<By>,
    schedules: u64,
    seconds: f64,
}

/// The kinds of evidence against a mutant.
enum By {
    Sweep,
    Showcase(Showcase),
    Scenario(PathBuf),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sweep => f.write_str("sweep"),
            Self::Showcase(case) => {
                let Showcase { world, nodes, sets, seeds: Range { start, end }, .. } = case;
                let sets: String = sets.iter().map(|(key, value)| format!(", {key}={value}")).collect();
                let (world, last) = (world.unwrap_or("chaos"), end.saturating_sub(1));
                write!(f, "sweep of {world}, {nodes} nodes{sets}, seeds {start} to {last}")
            }
            Self::Scenario(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The result of the sound protocol under the same trial.
struct Sound {
    protocol: &'static str,
    schedules: u64,
    scenarios: u64,
    /// The violations that it should not have.
    said: Vec<String>,
}

impl Mutants {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        let experiments = match &self.name {
            Some(name) => vec![catalogue::find(name)?],
            None => catalogue::all().to_vec(),
        };
        let faults = self.common.faults_or(Faults::all());
        self.check_mutant(&experiments)?;
        let (mut fates, mut sounds) = (Vec::new(), Vec::new());
        for experiment in experiments {
            let common = self.common.at_home(experiment);
            let first = fates.len();
            let trial = common.trial(common.faults_or(experiment.bears()))?;
            for mutant in experiment.mutants() {
                if trial.mutant.as_deref().is_none_or(|only| only == mutant.name) {
                    fates.push(self.fate(experiment, &trial, mutant.name)?);
                }
            }
            if fates.len() > first {
                sounds.push(self.sound(experiment, &trial, &fates[first..])?);
            }
        }
        let bad =
            fates.iter().any(|fate| !fate.is_killed()) || sounds.iter().any(|sound| !sound.said.is_empty());
        let faults = faults_text(faults);
        let answer = Answer::new(format, || self.json(&fates, &sounds, &faults), || text(&fates, &sounds));
        Ok(Answer { verdict: Verdict::broken_if(bad), ..answer })
    }

    /// A mutant that none of the protocols has would make an empty table, and a verdict of nothing.
    fn check_mutant(&self, experiments: &[&dyn Experiment]) -> Result<(), Failure> {
        let known: Vec<&str> = experiments
            .iter()
            .flat_map(|experiment| experiment.mutants())
            .map(|mutant| mutant.name)
            .collect();
        match &self.common.mutant {
            Some(name) if !known.contains(&name.as_str()) => {
                Err(Error::unknown("mutant", name, known.into_iter()).into())
            }
            _ => Ok(()),
        }
    }

    fn sweep_seeds(&self, count: u64) -> Seeds {
        let threads = self.threads.unwrap_or_else(options::all_cores);
        Seeds { first: self.common.seed.unwrap_or(0), count, stop_at_first: true, threads }
    }

    /// Whether nothing says where to look.
    fn is_free(&self) -> bool {
        let common = &self.common;
        let free = common.world.is_none() && common.faults.is_none() && common.seed.is_none();
        let free = free && common.quorums == "majority";
        free && common.nodes == options::NODES && self.seeds == SEEDS
    }

    /// Where a mutant is known to show, unless it was said where to look.
    fn showcase(&self, experiment: &dyn Experiment, mutant: &str) -> Option<Showcase> {
        experiment.showcase(mutant).filter(|_| self.is_free())
    }

    /// Sweeps a protocol or a mutant of it where that mutant shows.
    fn sweep_showcase(
        &self,
        experiment: &dyn Experiment,
        trial: &Trial,
        case: &Showcase,
    ) -> Result<Swept, Failure> {
        let trial = case.trial(trial)?;
        let Range { start: first, end } = case.seeds;
        Ok(experiment.sweep(&trial, Seeds { first, ..self.sweep_seeds(end - first) }, &|_| ())?)
    }

    fn fate(
        &self,
        experiment: &dyn Experiment,
        trial: &Trial,
        mutant: &'static str,
    ) -> Result<Fate, Failure> {
        let start = clock();
        let trial = Trial { mutant: Some(mutant.to_owned()), ..trial.clone() };
        let mut schedules = 0;
        let shown = self.kill(experiment, &trial, mutant, &mut schedules)?;
        let seconds = start.elapsed().as_secs_f64();
        let (property, by) = shown.unzip();
        Ok(Fate { protocol: experiment.about().name, mutant, property, by, schedules, seconds })
    }

    /// Looks for a property that notices, where that is cheapest first, and counts the seeds that
    /// it took.
    fn kill(
        &self,
        experiment: &dyn Experiment,
        trial: &Trial,
        mutant: &'static str,
        schedules: &mut u64,
    ) -> Result<Option<(&'static str, By)>, Failure> {
        let noticed = |swept: &Swept| swept.violations.first().map(|(_, violation)| violation.property);
        if let Some(case) = self.showcase(experiment, mutant) {
            let swept = self.sweep_showcase(experiment, trial, &case)?;
            *schedules += swept.schedules;
            if let Some(property) = noticed(&swept) {
                return Ok(Some((property, By::Showcase(case))));
            }
        }
        let path = Some(self.scenario(experiment, mutant)).filter(|path| path.is_file());
        let few = if self.is_free() && path.is_some() { FEW.min(self.seeds) } else { self.seeds };
        let bar = Progress::new(self.seeds, mutant);
        let swept = experiment.sweep(trial, self.sweep_seeds(few), &|done| bar.add(done));
        bar.end();
        let swept = swept?;
        *schedules += swept.schedules;
        if let Some(property) = noticed(&swept) {
            return Ok(Some((property, By::Sweep)));
        }
        if let Some(path) = path
            && let Some(property) = killed_by(&path, experiment, mutant, trial.property.as_deref())?
        {
            return Ok(Some((property, By::Scenario(path))));
        }
        if few == self.seeds {
            return Ok(None);
        }
        let Seeds { first, .. } = self.sweep_seeds(0);
        let rest = Seeds { first: first.wrapping_add(few), ..self.sweep_seeds(self.seeds - few) };
        let swept = experiment.sweep(trial, rest, &|_| ())?;
        *schedules += swept.schedules;
        Ok(noticed(&swept).map(|property| (property, By::Sweep)))
    }

    fn scenario(&self, experiment: &dyn Experiment, mutant: &str) -> PathBuf {
        let folder = self.scenarios.join("mutants").join(experiment.about().name);
        folder.join(format!("{mutant}.scenario"))
    }

    /// Everything that was tried on the mutants, tried on the sound protocol: it must say nothing.
    fn sound(&self, experiment: &dyn Experiment, trial: &Trial, fates: &[Fate]) -> Result<Sound, Failure> {
        let trial = Trial { mutant: None, ..trial.clone() };
        // A scenario spares a mutant its seeds, and not the sound protocol.
        let tried = |fate: &Fate| match fate.by {
            Some(By::Showcase(_)) => 0,
            Some(By::Scenario(_)) => self.seeds,
            Some(By::Sweep) | None => fate.schedules,
        };
        let most = fates.iter().map(tried).max().unwrap_or(0);
        let bar = Progress::new(most, "sound");
        let swept = experiment.sweep(&trial, self.sweep_seeds(most), &|done| bar.add(done));
        bar.end();
        let swept = swept?;
        let (mut schedules, mut scenarios) = (swept.schedules, 0);
        let mut said = broken_by(&swept);
        for case in cases(fates) {
            let case = Showcase { property: None, ..case.clone() }; // No property may speak.
            let swept = self.sweep_showcase(experiment, &trial, &case)?;
            schedules += swept.schedules;
            said.extend(broken_by(&swept));
        }
        for fate in fates {
            match &fate.by {
                Some(By::Scenario(path)) => {
                    let (_, text) = replay::open(path)?;
                    let violation = replay::replay(experiment, path, &text, Some(None))?.report.violation;
                    let text =
                        violation.map(|v| format!("{} breaks {}: {}", path.display(), v.property, v.text));
                    said.extend(text);
                    scenarios += 1;
                }
                Some(By::Sweep | By::Showcase(_)) | None => {}
            }
        }
        Ok(Sound { protocol: experiment.about().name, schedules, scenarios, said })
    }

    fn json(&self, fates: &[Fate], sounds: &[Sound], faults: &str) -> Value {
        json!({
            "nodes": self.common.nodes,
            "quorums": self.common.quorums,
            "faults": faults,
            "seeds": self.seeds,
            "mutants": fates.iter().map(Fate::json).collect::<Vec<_>>(),
            "killed": fates.iter().filter(|fate| fate.is_killed()).count(),
            "survived": fates.iter().filter(|fate| !fate.is_killed()).count(),
            "sound": sounds.iter().map(Sound::json).collect::<Vec<_>>(),
        })
    }
}

/// Where mutants were shown that take a world of their own, each place once.
fn cases(fates: &[Fate]) -> Vec<&Showcase> {
    let mut cases: Vec<&Showcase> = Vec::new();
    for fate in fates {
        if let Some(By::Showcase(case)) = &fate.by
            && !cases.contains(&case)
        {
            cases.push(case);
        }
    }
    cases
}

/// The violations in a sweep of the sound protocol.
fn broken_by(swept: &Swept) -> Vec<String> {
    let violations = swept.violations.iter();
    violations.map(|(seed, v)| format!("seed {seed} breaks {}: {}", v.property, v.text)).collect()
}

/// The property that a scenario shows to be broken. It must be a scenario of this mutant, and come
/// out as it says.
fn killed_by(
    path: &Path,
    experiment: &dyn Experiment,
    mutant: &str,
    only: Option<&str>,
) -> Result<Option<&'static str>, Failure> {
    let (named, text) = replay::open(path)?;
    let replayed = replay::replay(experiment, path, &text, None)?;
    let of = replayed.report.mutant.as_deref().unwrap_or("none");
    if named.about().name != experiment.about().name || of != mutant {
        let of = format!("{}, mutant {of}", named.about().name);
        return Err(messages::lab_other_scenario(path.display(), of, mutant));
    }
    let property = replayed.report.violation.map(|violation| violation.property);
    Ok(property.filter(|property| only.is_none_or(|only| only == *property)))
}

impl Fate {
    fn is_killed(&self) -> bool {
        self.property.is_some()
    }

    fn json(&self) -> Value {
        json!({
            "mutant": self.mutant,
            "protocol": self.protocol,
            "killed": self.is_killed(),
            "property": self.property,
            "by": self.by.as_ref().map(By::to_string),
            "schedules": self.schedules,
            "seconds": (self.seconds * 1000.0).round() / 1000.0,
        })
    }
}

impl Sound {
    fn json(&self) -> Value {
        json!({
            "protocol": self.protocol,
            "silent": self.said.is_empty(),
            "schedules": self.schedules,
            "scenarios": self.scenarios,
            "said": self.said,
        })
    }

    fn text(&self) -> String {
        let seeds = many(self.schedules, "seed", "seeds");
        let scenarios = many(self.scenarios, "scenario", "scenarios");
        let tried = format!("the sound {} on the same {seeds} and {scenarios}", self.protocol);
        match self.said.first() {
            None => format!("  {tried}: silent\n"),
            Some(first) => format!("  {tried}: NOT SILENT: {first}\n"),
        }
    }
}

fn text(fates: &[Fate], sounds: &[Sound]) -> String {
    let killed = fates.iter().filter(|fate| fate.is_killed()).count();
    let survivors: Vec<&str> =
        fates.iter().filter(|fate| !fate.is_killed()).map(|fate| fate.mutant).collect();
    let survived = match survivors.is_empty() {
        true => String::new(),
        false => format!("; SURVIVED: {}", survivors.join(", ")),
    };
    let mut table = Table::new(["MUTANT", "PROTOCOL", "KILLED BY", "SHOWN BY", "SCHEDULES", "SECONDS"]);
    for fate in fates {
        table.row([
            fate.mutant.to_owned(),
            fate.protocol.to_owned(),
            fate.property.unwrap_or("nothing").to_owned(),
            fate.by.as_ref().map_or_else(|| "-".to_owned(), By::to_string),
            grouped(fate.schedules),
            format!("{:.2}", fate.seconds),
        ]);
    }
    let sounds: String = sounds.iter().map(Sound::text).collect();
    format!("{killed} of {} mutants killed{survived}\n\n{}\n{sounds}", fates.len(), table.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(by: Option<By>) -> Fate {
        Fate { protocol: "local", mutant: "wrong", property: None, by, schedules: 1, seconds: 0.0 }
    }

    #[test]
    fn a_place_that_shows_two_mutants_is_put_to_the_sound_protocol_once() {
        let case = |first: u64| {
            let (world, sets, seeds): (_, &[_], _) = (Some("graph"), &[("tree", "3")], first..first + 64);
            Showcase { world, nodes: 5, sets, property: None, seeds }
        };
        let shown = [case(0), case(64), case(0)].map(|case| fate(Some(By::Showcase(case))));
        let fates: Vec<Fate> = shown.into_iter().chain([fate(Some(By::Sweep)), fate(None)]).collect();
        assert_eq!(cases(&fates), [&case(0), &case(64)]);
        let by = fates[1].by.as_ref().map(By::to_string);
        assert_eq!(by.as_deref(), Some("sweep of graph, 5 nodes, tree=3, seeds 64 to 127"));
    }
}
