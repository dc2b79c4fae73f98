//! The log under each Omega, on the same schedules: how often a leader asks for promises, what a
//! change of leader costs, and how long commits take.
//!
//! Fortune, crashes and clocks of a seed are the same for all three; what they say differs. The
//! paper counts a change of leader as one round trip for promises, 2(n-1) messages, and 2u(n-1) for
//! u slots that the last leader left unfinished. The machine sends these slots in one message, and
//! says again what is not answered.

use crate::catalogue::{Error, Report, Trial, find};
use crate::count::Counts;
use crate::protocols::log::judge::LONGEST_COMMIT;
use crate::race::{Cell, Column, Race, Sheet};
use crate::random::seeds;
use crate::simulate::{Fault, Faults, Named, Setup};
use crate::world::RealTime;

/// The elections, as the log's constant `election` names them.
pub const ELECTIONS: [&str; 3] = ["omega", "lean", "stable"];

/// The logs and sizes to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many members, each number in turn.
    pub nodes: Vec<usize>,
    /// How many seeds a row.
    pub seeds: u64,
    /// The first of them.
    pub first: u64,
    /// In which world; without one delays are bounded and nothing goes wrong.
    pub world: Option<&'static Named>,
    /// How long each run lasts, if not as long as the world says.
    pub horizon: Option<RealTime>,
}

/// How many runs there will be.
pub fn schedules(options: &Options) -> u64 {
    (ELECTIONS.len() * options.nodes.len()) as u64 * options.seeds
}

/// Runs the race. `progress` is told how many runs more are done.
pub fn run(options: &Options, progress: &dyn Fn(u64)) -> Result<Race, Error> {
    options.world.map_or(Ok(()), |world| world.check("paxos"))?;
    let mut rows = Sheet { columns: columns(), rows: Vec::new() };
    let mut broken = Vec::new();
    for nodes in &options.nodes {
        for election in ELECTIONS {
            let mut counts = Counts::default();
            for seed in seeds(options.first, options.seeds) {
                let report = find("paxos")?.watch(&trial(options, *nodes, election), seed)?;
                broken.extend(violation(&report, election, seed));
                counts.merge(&report.counts);
                progress(1);
            }
            rows.rows.push(row(election, *nodes as u64, &counts));
        }
    }
    let world = options.world.map_or("bounded delays", |world| world.name);
    let horizon = options.horizon.map_or("as the world says".to_owned(), |horizon| horizon.to_string());
    Ok(Race {
        study: "paxos",
        parameters: vec![
            ("world", Cell::text(world)),
            ("seeds", Cell::Count(options.seeds)),
            ("first_seed", Cell::Count(options.first)),
            ("horizon", Cell::Text(horizon)),
        ],
        rows,
        shown: Vec::new(),
        broken,
        plot: None,
    })
}

fn trial(options: &Options, nodes: usize, election: &str) -> Trial {
    let faults = if options.world.is_some() { Faults::NONE.with(Fault::Crash) } else { Faults::NONE };
    let setup = Setup {
        nodes,
        quorums: "majority".to_owned(),
        faults,
        sets: vec![("election".to_owned(), election.to_owned())],
        horizon: options.horizon,
        world: options.world,
    };
    Trial { setup, mutant: None, property: None }
}

fn violation(report: &Report, election: &str, seed: u64) -> Option<String> {
    let violation = report.violation.as_ref()?;
    let (nodes, property, text) = (report.nodes, violation.property, &violation.text);
    Some(format!("{election}, {nodes} members, seed {seed}: {property}: {text}"))
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("election", "ELECTION", ""),
        Column::new("nodes", "NODES", ""),
        Column::new("commits", "COMMITS", "slots that their leader saw chosen"),
        Column::new("prepares", "PREPARES", "how often a process asked for promises in a new ballot"),
        Column::new("per_thousand", "PER 1,000", "prepares per 1,000 commits"),
        Column::new("changes", "CHANGES", "how often enough promised, and a process led"),
        Column::new("unfinished", "U", "slots left unfinished that it took up, mean of a change"),
        Column::new("counted", "COUNTED", "messages of a change as the paper counts them: 2(n-1)(1+u)"),
        Column::new(
            "sent",
            "SENT",
            "messages sent for promises and for such slots, a change: repeated ones and those of ballots in vain too",
        ),
        Column::new("owed", "OWED", "commits of leaders that reached f others in time with the proposal"),
        Column::new("longest", "LONGEST", "the longest of these, in delta: at most 1"),
    ]
}

fn row(election: &str, nodes: u64, counts: &Counts) -> Vec<Cell> {
    let get = |key: &str| counts.get(key);
    let ratio = |of: u64, by: u64, places| match by {
        0 => Cell::Nothing,
        by => Cell::Number(of as f64 / by as f64, places),
    };
    let (commits, changes, unfinished) = (get("chosen"), get("leaderships"), get("unfinished-slots"));
    vec![
        Cell::text(election),
        Cell::Count(nodes),
        Cell::Count(commits),
        Cell::Count(get("prepares")),
        ratio(1000 * get("prepares"), commits, 2),
        Cell::Count(changes),
        ratio(unfinished, changes, 2),
        ratio(2 * (nodes - 1) * (changes + unfinished), changes, 1),
        ratio(get("leader-change-messages"), changes, 1),
        Cell::Count(get("commits-owed-in-time")),
        match get(LONGEST_COMMIT) {
            0 => Cell::Nothing,
            thousandths => Cell::Number(thousandths as f64 / 1000.0, 3),
        },
    ]
}
