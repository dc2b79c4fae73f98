//! Elections of eventual leaders compared: who agrees, how soon, how often minds change, and over
//! how many links.
//!
//! Without a world delays are bounded and nothing goes wrong: then the links of the last quarter of
//! a run are those that are used forever. In a [named world](crate::simulate::WORLDS) the question
//! is who settles at all, and whether that is so in every [variant](VARIANTS) of it.

mod variant;

pub use variant::{VARIANTS, Variant};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use self::variant::Line;
use crate::catalogue::{Error, Experiment, Report, Trial};
use crate::race::{Cell, Column, Lengths, Race, Sheet};
use crate::simulate::{Faults, Named, Setup};
use crate::world::{RealTime, clock::MILLI};

/// The elections and variants to compare.
#[derive(Clone)]
pub struct Options {
    /// The elections.
    pub elections: Vec<&'static dyn Experiment>,
    /// How many processes, each number in turn.
    pub nodes: Vec<usize>,
    /// How many seeds a row.
    pub seeds: u64,
    /// The first of them.
    pub first: u64,
    /// In which world, if delays are not bounded.
    pub world: Option<&'static Named>,
    /// In which variants of the world, each in turn.
    pub variants: Vec<&'static Variant>,
    /// How long each run lasts.
    pub horizon: RealTime,
    /// On how many cores.
    pub threads: usize,
}

/// How long a run lasts if nobody says so: 1,200 periods.
pub const HORIZON: RealTime = RealTime(30_000 * MILLI);

/// How many runs there will be.
pub fn schedules(options: &Options) -> u64 {
    lines(options).len() as u64 * options.seeds
}

/// Runs the race. `progress` is told how many runs more are done. The result does not depend on the
/// number of threads.
pub fn run(options: &Options, progress: &(dyn Fn(u64) + Sync)) -> Result<Race, Error> {
    for election in &options.elections {
        options.world.map_or(Ok(()), |world| world.check(election.about().name))?;
    }
    let mut rows = Sheet { columns: columns(), rows: Vec::new() };
    let mut broken = Vec::new();
    let lines = lines(options);
    if lines.is_empty() {
        return Err(nothing_left(options));
    }
    for (election, variant, line) in lines {
        let reports = reports(election, &line.trial, options, progress)?;
        let name = election.about().name;
        let who = format!("{name}, {} processes, {variant}", line.nodes);
        broken.extend(disagree(&reports, &who).filter(|_| is_promised(options.world, name)));
        let unsafe_runs = reports.iter().filter_map(|report| Some((report.seed?, unsafe_property(report)?)));
        broken.extend(unsafe_runs.map(|(seed, property)| format!("{who}: seed {seed} breaks {property}")));
        rows.rows.push(row(name, variant, &line, &reports));
    }
    let world = options.world.map_or("bounded delays", |world| world.name);
    Ok(Race {
        study: "eventual",
        parameters: vec![
            ("world", Cell::text(world)),
            ("seeds", Cell::Count(options.seeds)),
            ("first_seed", Cell::Count(options.first)),
            ("horizon", Cell::text(options.horizon.to_string())),
        ],
        rows,
        shown: Vec::new(),
        broken,
        plot: None,
    })
}

/// The runs, row by row.
fn lines(options: &Options) -> Vec<(&'static dyn Experiment, &'static str, Line)> {
    let mut lines = Vec::new();
    for nodes in &options.nodes {
        let Some(world) = options.world else {
            let bounded =
                |election: &&'static dyn Experiment| (*election, "bounded", bounded(options, *nodes));
            lines.extend(options.elections.iter().map(bounded));
            continue;
        };
        for variant in &options.variants {
            lines.extend(options.elections.iter().filter_map(|election| {
                let line = variant.line(election.about().name, *nodes, (world, options.horizon))?;
                Some((*election, variant.name, line))
            }));
        }
    }
    lines
}

/// Why there is no row at all.
fn nothing_left(options: &Options) -> Error {
    let mut why: Vec<String> = Vec::new();
    for variant in &options.variants {
        for election in &options.elections {
            let name = election.about().name;
            let known = options.nodes.iter().find_map(|nodes| variant.leaves_out(name, *nodes));
            let said = known.map(|known| format!("variant '{}' of {name}: {known}", variant.name));
            why.extend(said.filter(|said| !why.contains(said)));
        }
    }
    Error::new(format!("there is nothing to run: {}", why.join("; ")))
}

/// The text for runs that do not all agree, with the first that does not.
fn disagree(reports: &[Report], who: &str) -> Option<String> {
    let mut not = reports.iter().filter(|report| !agrees(report));
    let seed = not.next()?.seed.map(|seed| format!(", seed {seed} does not")).unwrap_or_default();
    let settled = reports.len() - 1 - not.count();
    Some(format!("{who}: {settled} of {} runs agree{seed}", reports.len()))
}

/// Nothing goes wrong, and messages take no longer than a bound.
fn bounded(options: &Options, nodes: usize) -> Line {
    let setup = Setup {
        nodes,
        quorums: "majority".to_owned(),
        faults: Faults::NONE,
        sets: Vec::new(),
        horizon: Some(options.horizon),
        world: None,
    };
    let trial = Trial { setup, mutant: None, property: None };
    Line { nodes, may_fail: (nodes.saturating_sub(1) / 2).to_string(), trial }
}

/// Whether an election promises agreement in a world: the baselines need more than a moving set
/// grants, and an f-source is enough for accusations alone.
fn is_promised(world: Option<&Named>, election: &str) -> bool {
    match world.map(|world| world.name) {
        None => true,
        Some("f-source") => election == "accusation",
        Some(_) => !["lowest-id", "accusation"].contains(&election),
    }
}

/// All runs of a row, in the order of their seeds.
fn reports(
    election: &dyn Experiment,
    trial: &Trial,
    options: &Options,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Report>, Error> {
    let next = AtomicU64::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            if nth >= options.seeds {
                return;
            }
            let report = election.watch(trial, options.first.wrapping_add(nth));
            done.lock().unwrap_or_else(PoisonError::into_inner).push((nth, report));
            progress(1);
        }
    };
    std::thread::scope(|scope| (0..options.threads.max(1)).for_each(|_| _ = scope.spawn(work)));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(nth, _)| *nth);
    done.into_iter().map(|(_, report)| report).collect()
}

fn agrees(report: &Report) -> bool {
    report.violation.is_none() && report.counts.get("runs-agreed") == 1
}

/// The property that a run broke, if not agreement.
fn unsafe_property(report: &Report) -> Option<&'static str> {
    report.violation.as_ref().map(|violation| violation.property).filter(|property| *property != "agreement")
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("protocol", "PROTOCOL", ""),
        Column::new("nodes", "NODES", ""),
        Column::new("may_fail", "F", "how many of them may fail, or rows and columns of their grid"),
        Column::new("variant", "VARIANT", ""),
        Column::new("seeds", "SEEDS", ""),
        Column::new(
            "agreed",
            "AGREED",
            "runs that end in agreement, unchanged in the last tenth of the time",
        ),
        Column::new("violations", "BROKEN", "runs that break anything else that is promised"),
        Column::new("quiet", "QUIET", "runs in which nobody changed its mind in the last half"),
        Column::new("changes", "CHANGES", "changes of mind in the last half, mean of a run"),
        Column::new(
            "settled",
            "SETTLED",
            "periods from when agreement is owed until the last change of mind, median of those that agree",
        ),
        Column::new("settled_most", "AT MOST", "the most of these"),
        Column::new(
            "lengthened",
            "LENGTHENED",
            "how often a process allowed a longer round, in the last half, mean of a run",
        ),
        Column::new("links", "LINKS", "directed links used in the last quarter, median"),
        Column::new("links_most", "MOST", "the most of these"),
        Column::new("all_links", "N(N-1)", ""),
        Column::new("lean_links", "2(N-1)", ""),
        Column::new("messages", "MESSAGES", "a period, in the last quarter, mean"),
    ]
}

fn row(name: &'static str, variant: &'static str, line: &Line, reports: &[Report]) -> Vec<Cell> {
    let figures = |key: &str| -> Vec<u64> { reports.iter().map(|report| report.counts.get(key)).collect() };
    let count = |value: Option<u64>| value.map_or(Cell::Nothing, Cell::Count);
    let mean =
        |sum: u64, of: u64| if of == 0 { Cell::Nothing } else { Cell::Number(sum as f64 / of as f64, 1) };
    let agreed: Vec<&Report> = reports.iter().filter(|report| agrees(report)).collect();
    let settled =
        Lengths::of(agreed.iter().map(|report| report.counts.get("periods-to-agreement")).collect());
    let links = Lengths::of(figures("links-in-last-quarter"));
    let sum = |key: &str| figures(key).iter().sum::<u64>();
    let (nodes, runs) = (line.nodes as u64, reports.len() as u64);
    vec![
        Cell::text(name),
        Cell::Count(nodes),
        Cell::text(line.may_fail.clone()),
        Cell::text(variant),
        Cell::Count(runs),
        Cell::Count(agreed.len() as u64),
        Cell::Count(reports.iter().filter_map(unsafe_property).count() as u64),
        Cell::Count(sum("runs-quiet-in-last-half")),
        mean(sum("changes-in-last-half"), runs),
        count(settled.quantile(50)),
        count(settled.max()),
        mean(sum("lengthened-in-last-half"), runs),
        count(links.quantile(50)),
        count(links.max()),
        Cell::Count(nodes * (nodes - 1)),
        Cell::Count(2 * (nodes - 1)),
        mean(sum("messages-in-last-quarter"), sum("periods-in-last-quarter")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::find;

    fn cells(race: &Race, key: &str) -> Vec<Cell> {
        let column = race.rows.columns.iter().position(|column| column.key == key).unwrap();
        race.rows.rows.iter().map(|row| row[column].clone()).collect()
    }

    fn options(elections: &[&str], world: Option<&str>, variants: &[&str]) -> Options {
        let variants: Vec<String> = variants.iter().map(|name| (*name).to_owned()).collect();
        Options {
            elections: elections.iter().map(|name| find(name).unwrap()).collect(),
            nodes: vec![5],
            seeds: 4,
            first: 0,
            world: world.map(|world| Named::find(world).unwrap()),
            variants: Variant::find(&variants).unwrap(),
            horizon: RealTime(10_000 * MILLI),
            threads: 1,
        }
    }

    #[test]
    fn the_frugal_election_uses_the_links_of_its_leader_and_the_others_use_all() {
        let race = run(&options(&["omega", "omega-lean"], None, &[]), &|_| {}).unwrap();
        assert_eq!(race.broken, [] as [String; 0]);
        assert_eq!(cells(&race, "links"), [Cell::Count(20), Cell::Count(8)]);
    }

    #[test]
    fn every_variant_of_a_world_is_a_row_and_threads_change_nothing() {
        let options = options(&["omega", "omega-stable"], Some("moving-set"), &["loss", "learn", "grid"]);
        let race = run(&options, &|_| {}).unwrap();
        assert_eq!(race.broken, [] as [String; 0]);
        let rows: Vec<(Cell, Cell)> =
            cells(&race, "variant").into_iter().zip(cells(&race, "protocol")).collect();
        let row = |variant: &str, election: &str| (Cell::text(variant), Cell::text(election));
        let expected = [
            row("loss", "omega"),
            row("loss", "omega-stable"),
            row("learn", "omega"),
            row("grid", "omega"),
            row("grid", "omega-stable"),
        ];
        assert_eq!(rows, expected);
        assert_eq!(cells(&race, "agreed"), [4, 4, 4, 4, 4].map(Cell::Count));
        assert_eq!(schedules(&options), 20);
        assert_eq!(run(&Options { threads: 3, ..options }, &|_| {}).unwrap(), race);
    }

    #[test]
    fn the_first_seed_that_does_not_agree_is_named() {
        let mut options = options(&["omega"], Some("moving-set"), &["plain"]);
        (options.horizon, options.first) = (RealTime(100 * MILLI), 7);
        let race = run(&options, &|_| {}).unwrap();
        let (row, agreed) = ("omega, 5 processes, plain", &cells(&race, "agreed")[0]);
        let Cell::Count(agreed) = agreed else { panic!("{agreed:?}") };
        let first = (7..11).find(|seed| {
            let alone = Options { first: *seed, seeds: 1, ..options.clone() };
            cells(&run(&alone, &|_| {}).unwrap(), "agreed") == [Cell::Count(0)]
        });
        let seed = first.expect("nobody agrees so soon");
        assert_eq!(race.broken, [format!("{row}: {agreed} of 4 runs agree, seed {seed} does not")]);
    }

    #[test]
    fn a_race_without_a_row_is_refused_with_the_reason() {
        let why = |election: &str, variant: &str, nodes: usize| {
            let options =
                Options { nodes: vec![nodes], ..options(&[election], Some("moving-set"), &[variant]) };
            run(&options, &|_| {}).map(|_| ()).map_err(|error| error.to_string())
        };
        let learn = "there is nothing to run: variant 'learn' of omega-stable: it must know the round";
        assert_eq!(why("omega-stable", "learn", 5), Err(learn.to_owned()));
        let fewer = "there is nothing to run: variant 'fewer' of omega: it takes 5 processes";
        assert_eq!(why("omega", "fewer", 3), Err(fewer.to_owned()));
    }

    #[test]
    fn a_baseline_that_does_not_settle_is_no_broken_promise() {
        let race = run(&options(&["lowest-id"], Some("blocks"), &["plain"]), &|_| {}).unwrap();
        assert_eq!(race.broken, [] as [String; 0]);
        assert_ne!(cells(&race, "agreed"), [Cell::Count(4)]);
    }
}
