//! `tenure lab run`: one seed, or one scenario.

use std::path::{Path, PathBuf};

use clap::Args;
use tenure_lab::catalogue::{self, Error, Report};
use tenure_lab::draw::{Picture, html, svg};
use tenure_lab::protocols::ring::{self, Order};

use super::options::{Common, drawn_faults, faults_text};
use super::replay;
use super::report::{Scenario, Told};
use super::rings::{Case, Trial, order};
use crate::failure::{Failure, messages};
use crate::files::Outputs;
use crate::output::{Answer, Format, quoted};

/// Where scenarios with a name are.
const SCENARIOS: &str = "scenarios";

/// Run one seed: verdict, leader, counts, drawings. The same seed prints the same bytes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab run nerio-drift
  tenure lab run nerio-drift --seed 7 --nodes 3 --html run.html
  tenure lab run nerio-drift --faults crash,partition --set lease=200ms
  tenure lab run nerio-drift --world calm --svg run.svg
  tenure lab run nerio-drift --seed 3 --trace run.trace && tenure lab replay run.trace
  tenure lab run nerio-drift --scenario paused-leader
  tenure lab run nerio-drift --scenario mutants/nerio-drift/swap-rho
  tenure lab run clockwise --nodes 1024 --order worst            a ring; messages counted exactly
  tenure lab run clockwise --nodes 8 --order all                 all circular orders, exactly
  tenure lab run radius-growth --nodes 16 --html ring.html       messages move round the ring
  tenure lab run clockwise --nodes 8 --set ids=same              anonymous nodes stay equal

Rings: --order, --nodes, --seed, drawings and --trace; --set delays=unit|random|chaos|newest,
wake=all|some|PLACE, first-id=K, ids=same, runs=K and schedules=yes (for --order search),
rounds=K (in lock step).

Faults, if none are named: each kind of `all` is in with one chance in two, drawn from the seed.

Exit codes: 0 every property holds, 1 one is broken, 2 error.")]
pub(super) struct Run {
    /// The protocol
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    common: Common,
    /// Repeat or perform scenarios/NAME.scenario instead of running a seed; NAME may have a folder
    /// in it, or be the path of a file
    #[arg(long, value_name = "NAME", conflicts_with_all = [
        "nodes", "seed", "faults", "world", "quorums", "sets", "horizon", "property",
    ])]
    scenario: Option<String>,
    /// In which order ids stand round a ring: best and worst are those whose count is known for the
    /// algorithm; all tries every circular order (up to 10 nodes), search looks for a bad one
    /// [default: random]
    #[arg(long, value_name = "ORDER", value_parser = order)]
    order: Option<Case>,
    #[command(flatten)]
    drawings: Drawings,
    /// Write all that happened as a text, which `tenure lab replay` repeats
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Files that show a run.
#[derive(Args, Clone, Debug)]
pub(super) struct Drawings {
    /// Draw the run as an image
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Draw the run as a page with zoom and stepping
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}

impl Drawings {
    /// Checks that the files can be written, and a trace beside them.
    pub(super) fn check(&self, trace: Option<&PathBuf>) -> Result<Outputs, Failure> {
        Outputs::check([self.svg.as_ref(), self.html.as_ref(), trace].into_iter().flatten())
    }

    /// Whether anything is drawn at all.
    pub(super) fn are_wanted(&self) -> bool {
        self.svg.is_some() || self.html.is_some()
    }

    /// Writes the drawings alone.
    pub(super) fn draw(&self, outputs: Outputs, picture: &Picture) -> Result<(), Failure> {
        let svg = self.svg.as_ref().map(|_| svg::draw(picture));
        let html = self.html.as_ref().map(|_| html::draw(picture));
        outputs.write(svg.into_iter().chain(html))
    }

    /// Writes the files.
    pub(super) fn write(&self, outputs: Outputs, report: &Report, traced: bool) -> Result<(), Failure> {
        let drawings = [
            self.svg.as_ref().map(|_| svg::draw(&report.picture)),
            self.html.as_ref().map(|_| html::draw(&report.picture)),
            traced.then(|| report.trace.clone()),
        ];
        outputs.write(drawings.into_iter().flatten())
    }
}

impl Run {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        // Elections among named processes are counted like rings where an order is asked for, and
        // else run with faults.
        let counted = self.order.and_then(|_| ring::named::find(&self.name));
        if let Some(election) = ring::find(&self.name).ok().or(counted) {
            let Self { common, order, drawings, trace, scenario, .. } = self;
            if scenario.is_some() {
                return Err(messages::flag_means_nothing(
                    "--scenario",
                    format!("the ring algorithm '{}'", election.about().name),
                    "scenarios are of protocols of processes that fail",
                ));
            }
            return Trial {
                election,
                common,
                case: order.unwrap_or(Case::Order(Order::Random)),
                drawings,
                trace,
            }
            .run(format);
        }
        let experiment = catalogue::find(&self.name)?;
        if self.order.is_some() {
            return Err(messages::flag_means_nothing(
                "--order",
                format!("'{}'", self.name),
                "it is for algorithms whose messages are counted",
            ));
        }
        if let Some(scenario) = &self.scenario {
            return self.run_scenario(scenario, format);
        }
        let common = self.common.at_home(experiment);
        let seed = common.seed.unwrap_or(1);
        let faults = common.faults_or(drawn_faults(seed, experiment.bears()));
        let trial = common.trial(faults)?;
        let outputs = self.drawings.check(self.trace.as_ref())?;
        let wanted = self.trace.is_some() || self.drawings.are_wanted();
        let report = if wanted { experiment.run(&trial, seed)? } else { experiment.watch(&trial, seed)? };
        self.drawings.write(outputs, &report, self.trace.is_some())?;
        let command = common.command(&self.name, seed, faults);
        let faults = Some(faults_text(faults));
        Ok(answer(format, &Told { report: &report, faults, scenario: None, command }))
    }

    fn run_scenario(&self, scenario: &str, format: Format) -> Result<Answer, Failure> {
        let path = find(scenario)?;
        let instead = self.common.mutant.as_deref().map(Some);
        let (experiment, text) = replay::open(&path)?;
        if experiment.about().name != self.name {
            let of = experiment.about().name;
            return Err(messages::lab_other_scenario(path.display(), of, &self.name));
        }
        let outputs = self.drawings.check(self.trace.as_ref())?;
        let replay = replay::replay(experiment, &path, &text, instead)?;
        self.drawings.write(outputs, &replay.report, self.trace.is_some())?;
        let mut command = format!("tenure lab run {} --scenario {}", self.name, quoted(scenario));
        if let Some(mutant) = &self.common.mutant {
            command += &format!(" --mutant {mutant}");
        }
        let scenario = Some(Scenario::new(scenario, &text));
        Ok(answer(format, &Told { report: &replay.report, faults: None, scenario, command }))
    }
}

/// The file of a scenario: one of that name in the folder of scenarios, or else the file that is
/// named.
fn find(scenario: &str) -> Result<PathBuf, Failure> {
    let named = Path::new(SCENARIOS).join(format!("{scenario}.scenario"));
    let found = [named, PathBuf::from(scenario)].into_iter().find(|path| path.is_file());
    found.ok_or_else(|| no_scenario(scenario))
}

fn answer(format: Format, told: &Told<'_>) -> Answer {
    let answer = Answer::new(format, || told.json(), || told.text());
    Answer { verdict: told.verdict(), ..answer }
}

/// A scenario that does not exist, with the nearest ones that do.
fn no_scenario(name: &str) -> Failure {
    let mut known = Vec::new();
    collect(Path::new(SCENARIOS), "", &mut known);
    if known.is_empty() {
        return messages::lab_no_scenario(name, SCENARIOS);
    }
    Error::unknown("scenario", name, known.iter().map(String::as_str)).into()
}

/// The names of all scenarios in a folder and the folders in it.
fn collect(folder: &Path, prefix: &str, names: &mut Vec<String>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let file = entry.file_name().to_string_lossy().into_owned();
        if let Some(name) = file.strip_suffix(".scenario") {
            names.push(format!("{prefix}{name}"));
        } else if entry.path().is_dir() {
            collect(&entry.path(), &format!("{prefix}{file}/"), names);
        }
    }
}
