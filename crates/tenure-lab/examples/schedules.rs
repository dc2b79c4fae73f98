//! Saves a schedule for each mutant that has none, or whose saved one does not fit the protocol any
//! more.
//!
//! ```sh
//! cargo run --release -p tenure-lab --example schedules -- scenarios
//! cargo run --release -p tenure-lab --example schedules -- scenarios swap-rho term-ge    # those alone
//! ```
//!
//! A mutant that breaks liveness alone needs a play, written by hand. A schedule that shows two
//! leaders at once is preferred: it says most about why a rule is there.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use tenure_lab::catalogue::{Experiment, Seeds, Small, Trial, all};
use tenure_lab::simulate::{Faults, Setup};

/// How long a schedule may be, to be read by a person.
const MOST_LINES: usize = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name the folder of scenarios")?);
    let wanted: Vec<String> = std::env::args().skip(2).collect();
    for experiment in all().iter().filter(|experiment| experiment.about().name != "paxos") {
        let folder = folder.join("mutants").join(experiment.about().name);
        fs::create_dir_all(&folder)?;
        for mutant in experiment.mutants() {
            let path = folder.join(format!("{}.scenario", mutant.name));
            let unwanted = !wanted.is_empty() && !wanted.iter().any(|name| name == mutant.name);
            if unwanted || fits(*experiment, &path) {
                continue;
            }
            let small = search(*experiment, mutant.name)?;
            println!("{}: {} lines, {}", path.display(), small.lines.0, small.violation.property);
            fs::write(path, small.script)?;
        }
    }
    Ok(())
}

/// Whether a saved schedule still does what it says, and the sound protocol is silent on it.
fn fits(experiment: &dyn Experiment, path: &Path) -> bool {
    let Ok(text) = fs::read_to_string(path) else { return false };
    let killed = experiment.replay(&text, None).is_ok_and(|replay| replay.as_expected);
    let sound = experiment.replay(&text, Some(None)).is_ok_and(|replay| replay.report.violation.is_none());
    killed && sound
}

/// The shortest schedule among the first few that show two leaders, or else among the first that
/// show anything.
fn search(experiment: &dyn Experiment, mutant: &str) -> Result<Small, Box<dyn Error>> {
    for (property, seeds) in [(Some("leader-uniqueness"), 300), (None, 50_000)] {
        let mut smalls = Vec::new();
        let mut first = 0;
        while first < seeds && smalls.len() < 4 {
            let Some((seed, property)) = next_violation(experiment, mutant, property, first..seeds)? else {
                break;
            };
            // Violations of liveness are not shrunk.
            smalls.extend(experiment.shrink(&trial(mutant, None), seed, property).ok());
            first = seed + 1;
            if smalls.iter().any(|small| small.lines.0 <= MOST_LINES) {
                break;
            }
        }
        let best = smalls.into_iter().min_by_key(|small| small.lines.0);
        if let Some(best) = best.filter(|best| best.lines.0 <= MOST_LINES || property.is_none()) {
            return Ok(best);
        }
    }
    Err(format!("no seed kills {mutant}: build a schedule by hand").into())
}

fn trial(mutant: &str, property: Option<&str>) -> Trial {
    let faults = Faults::all();
    let setup = Setup {
        nodes: 5,
        quorums: "majority".to_owned(),
        faults,
        sets: Vec::new(),
        horizon: None,
        world: None,
    };
    Trial { setup, mutant: Some(mutant.to_owned()), property: property.map(str::to_owned) }
}

/// The next seed that breaks the wanted property, or any.
fn next_violation(
    experiment: &dyn Experiment,
    mutant: &str,
    property: Option<&str>,
    seeds: std::ops::Range<u64>,
) -> Result<Option<(u64, &'static str)>, Box<dyn Error>> {
    let count = seeds.end - seeds.start;
    let seeds = Seeds { first: seeds.start, count, stop_at_first: true, threads: 2 };
    let swept = experiment.sweep(&trial(mutant, property), seeds, &|_| ())?;
    Ok(swept.violations.first().map(|(seed, violation)| (*seed, violation.property)))
}
