//! Elections of eventual leaders compared: who agrees, how soon, how often minds change, and over how many links.
//!
//! Without a world delays are bounded and nothing goes wrong: then the links of the last quarter of a run are those that are used for ever. In a
//! [named world](crate::simulate::WORLDS) the question is who settles at all.

use super::{Cell, Column, Lengths, Race, Sheet};
use crate::catalogue::{Error, Experiment, Report, Trial};
use crate::simulate::{Fault, Faults, Named, Setup};
use crate::world::{RealTime, clock::MILLI};

/// What to compare.
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
    /// How long each run lasts.
    pub horizon: RealTime,
}

/// How long a run lasts if nobody says so: 1,200 periods.
pub const HORIZON: RealTime = RealTime(30_000 * MILLI);

/// How many runs there will be.
pub fn schedules(options: &Options) -> u64 {
    (options.elections.len() * options.nodes.len()) as u64 * options.seeds
}

/// Runs the race. `progress` is told how many runs more are done.
pub fn run(options: &Options, progress: &dyn Fn(u64)) -> Result<Race, Error> {
    let mut rows = Sheet { columns: columns(), rows: Vec::new() };
    let mut broken = Vec::new();
    for nodes in &options.nodes {
        for election in &options.elections {
            let trial = trial(options, *nodes);
            let mut reports = Vec::new();
            for seed in options.first..options.first + options.seeds {
                reports.push(election.watch(&trial, seed)?);
                progress(1);
            }
            let settled = reports.iter().filter(|report| agrees(report)).count();
            let name = election.about().name;
            if options.world.is_none() && settled < reports.len() {
                broken.push(format!("{name}, {nodes} processes: {settled} of {} runs agree", reports.len()));
            }
            rows.rows.push(row(name, *nodes, &reports));
        }
    }
    let world = options.world.map_or("bounded delays", |world| world.name);
    Ok(Race {
        study: "eventual",
        parameters: vec![
            ("world", Cell::text(world)),
            ("seeds", Cell::Count(options.seeds)),
            ("horizon", Cell::text(options.horizon.to_string())),
        ],
        rows,
        shown: Vec::new(),
        broken,
        plot: None,
    })
}

fn trial(options: &Options, nodes: usize) -> Trial {
    let faults = if options.world.is_some() { Faults::NONE.with(Fault::Crash) } else { Faults::NONE };
    let setup = Setup {
        nodes,
        quorums: "majority".to_owned(),
        faults,
        sets: Vec::new(),
        horizon: Some(options.horizon),
        world: options.world,
    };
    Trial { setup, mutant: None, property: Some("agreement".to_owned()) }
}

fn agrees(report: &Report) -> bool {
    report.violation.is_none() && report.counts.get("runs-agreed") == 1
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("protocol", "PROTOCOL", ""),
        Column::new("nodes", "NODES", ""),
        Column::new(
            "agreed",
            "AGREED",
            "runs that end in agreement, unchanged in the last tenth of the time",
        ),
        Column::new("quiet", "QUIET", "runs in which nobody changed its mind in the last half"),
        Column::new("changes", "CHANGES", "changes of mind in the last half, mean of a run"),
        Column::new(
            "settled",
            "SETTLED",
            "periods until the last change of mind, median of those that agree",
        ),
        Column::new("settled_most", "AT MOST", "the most of these"),
        Column::new("links", "LINKS", "directed links used in the last quarter, median"),
        Column::new("links_most", "MOST", "the most of these"),
        Column::new("all_links", "N(N-1)", ""),
        Column::new("lean_links", "2(N-1)", ""),
        Column::new("messages", "MESSAGES", "a period, in the last quarter, mean"),
    ]
}

fn row(name: &'static str, nodes: usize, reports: &[Report]) -> Vec<Cell> {
    let figures = |key: &str| -> Vec<u64> { reports.iter().map(|report| report.counts.get(key)).collect() };
    let count = |value: Option<u64>| value.map_or(Cell::Nothing, Cell::Count);
    let mean =
        |sum: u64, of: u64| if of == 0 { Cell::Nothing } else { Cell::Number(sum as f64 / of as f64, 1) };
    let agreed: Vec<&Report> = reports.iter().filter(|report| agrees(report)).collect();
    let settled =
        Lengths::of(agreed.iter().map(|report| report.counts.get("periods-to-agreement")).collect());
    let links = Lengths::of(figures("links-in-last-quarter"));
    let sum = |key: &str| figures(key).iter().sum::<u64>();
    let nodes = nodes as u64;
    vec![
        Cell::text(name),
        Cell::Count(nodes),
        Cell::Count(agreed.len() as u64),
        Cell::Count(sum("runs-quiet-in-last-half")),
        mean(sum("changes-in-last-half"), reports.len() as u64),
        count(settled.quantile(50)),
        count(settled.max()),
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

    #[test]
    fn the_frugal_election_uses_the_links_of_its_leader_and_the_others_use_all() {
        let options = Options {
            elections: vec![find("omega").unwrap(), find("omega-lean").unwrap()],
            nodes: vec![5],
            seeds: 4,
            first: 0,
            world: None,
            horizon: RealTime(10_000 * MILLI),
        };
        let race = run(&options, &|_| {}).unwrap();
        assert_eq!(race.broken, [] as [String; 0]);
        let links: Vec<&Cell> = race.rows.rows.iter().map(|row| &row[7]).collect();
        assert_eq!(links, [&Cell::Count(20), &Cell::Count(8)]);
    }
}
