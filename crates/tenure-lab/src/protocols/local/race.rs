//! How long a local leader's round takes: everybody answers the leader itself, or answers come
//! along a tree of three children a node.
//!
//! Fetzer and Cristian found that the time grows with the number of answers that the leader must
//! handle, tried the tree with eight processes, and found it not worth its trouble there (figures
//! 28 and 29); with more, they expected, it would be. A tree has fewer answers at any one process
//! and more steps one after the other: which of them counts depends on what an answer costs to
//! handle, so that is varied here. At 0.5 ms a message eight processes need about what they needed
//! in 1999.
//!
//! Nothing goes wrong, clocks are exact. Each process handles one message at a time, and messages
//! queue for it. A request leaves as a message to each other member at no cost. Only rounds in
//! which all members supported the leader are measured, of those along the tree only such that
//! really went along it: now and then one must be answered directly (rules 5 and 6 of the tree).

use tenure_proto::NodeId;
use tenure_proto::local::Event;

use crate::catalogue::Error;
use crate::draw::plot::{Axis, Panel, Plot, Scale, Series};
use crate::protocols::local::mutants::Wrong;
use crate::protocols::local::subject::Locals;
pub use crate::race::Options;
use crate::race::track::{Said, Track};
use crate::race::{Cell, Column, Lengths, Race, Sheet, length};
use crate::random::{Random, seeds};
use crate::stage::Cast;
use crate::subject::{Constants, Subject};
use crate::world::{Clock, RealTime, Stretch, clock::MILLI, node_id};

/// The longest one-way delay; each is drawn between nothing and this.
const WAY: u64 = MILLI;

/// The time that handling a message costs its receiver.
const HANDLING: [u64; 3] = [0, MILLI / 10, MILLI / 2];

/// How many children a node of the tree has, as in the paper.
const CHILDREN: u64 = 3;

/// How many rounds are measured in each run.
pub const ROUNDS: usize = 50;

/// A run that has not had them by then has failed.
const HORIZON: RealTime = RealTime(600_000 * MILLI);

type Subjects = Locals<Wrong>;

const SUBJECT: Subjects = Locals { rules: Wrong::Nothing, majority: false };

/// How many schedules the options ask for.
pub fn schedules(options: &Options) -> u64 {
    options.seeds.saturating_mul((2 * HANDLING.len() * options.nodes.len()) as u64)
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    nodes: usize,
    tree: bool,
    handling: u64,
}

/// Its outcome.
#[derive(Clone, Debug)]
struct Measured {
    case: Case,
    times: Lengths,
    /// Messages between different processes in these rounds, and those of them that the leader
    /// handled.
    messages: u64,
    heard: u64,
    /// Rounds that were not measured, being answered directly.
    direct: u64,
    broken: Vec<String>,
}

/// Runs the study; `progress` is told how many more schedules are done.
pub fn run(options: &Options, progress: &dyn Fn(u64)) -> Result<Race, Error> {
    let mut all = Vec::new();
    for &nodes in &options.nodes {
        if !(2..=64).contains(&nodes) {
            return Err(Error::new(format!("a local group here has 2 to 64 nodes, not {nodes}")));
        }
        for handling in HANDLING {
            for tree in [false, true] {
                all.push(measure(Case { nodes, tree, handling }, options, progress)?);
            }
        }
    }
    Ok(Race {
        study: "local",
        parameters: vec![
            ("protocol", Cell::text("local")),
            ("delays", Cell::text("uniform in (0, 1ms]")),
            ("tree", Cell::text("3 children a node")),
            ("drift", Cell::text("100ppm, clocks exact")),
            ("rounds", Cell::text(format!("{ROUNDS} a seed"))),
            ("seeds", Cell::Count(options.seeds)),
            ("first_seed", Cell::Count(options.first)),
        ],
        rows: Sheet { columns: columns(), rows: all.iter().map(row).collect() },
        shown: Vec::new(),
        broken: all.iter().flat_map(|measured| measured.broken.iter().take(1)).cloned().collect(),
        plot: Some(plot(&all, options)),
    })
}

fn measure(case: Case, options: &Options, progress: &dyn Fn(u64)) -> Result<Measured, Error> {
    let nothing = Lengths::default();
    let mut measured =
        Measured { case, times: nothing, messages: 0, heard: 0, direct: 0, broken: Vec::new() };
    let mut times = Vec::new();
    for seed in seeds(options.first, options.seeds) {
        let cast = cast(case, seed)?;
        let track = Track::new(&SUBJECT, &cast, WAY, seed)?.handling(case.handling);
        let watch = Watch::over(track, case);
        measured.messages += watch.messages;
        measured.heard += watch.heard;
        measured.direct += watch.direct;
        measured.broken.extend(watch.broken.map(|what| format!("{}: seed {seed}: {what}", case.words())));
        times.extend(watch.times);
        progress(1);
    }
    measured.times = Lengths::of(times);
    Ok(measured)
}

/// A message may take its way and then wait for all others to be handled: δ and σ include that.
fn cast(case: Case, seed: u64) -> Result<Cast, Error> {
    let mut random = Random::stream(seed, "clocks");
    let mut clock = || {
        let start = random.below(100_000) * MILLI + MILLI;
        Clock::new(start, &[Stretch { from: RealTime(0), ppm: 0 }])
    };
    let longest = WAY + case.nodes as u64 * case.handling;
    let constants = Constants::new(SUBJECT.keys())
        .with("drift", 100)
        .with("tick", 1)
        .with("delay", longest)
        .with("hole", longest)
        .with("tree", if case.tree { CHILDREN } else { 0 });
    let clocks = (0..case.nodes).map(|_| clock()).collect();
    Cast::new::<Subjects>("majority", case.nodes, constants, clocks).map_err(Error::new)
}

/// A request of the leader.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: RealTime,
    collate: bool,
    /// Messages so far, and those that the leader has handled.
    traffic: (u64, u64),
    /// How long it took until it led all, if it did.
    took: Option<u64>,
}

/// The observations of one run.
#[derive(Default)]
struct Watch {
    times: Vec<u64>,
    messages: u64,
    heard: u64,
    direct: u64,
    broken: Option<String>,
}

impl Watch {
    /// Follows the first of all, who leads in the end, until enough rounds were seen.
    fn over(mut track: Track<'_, Subjects>, case: Case) -> Self {
        let (mut watch, mut last) = (Self::default(), None);
        let leader = node_id(0);
        while watch.times.len() < ROUNDS {
            let Some((at, said)) = track.step(HORIZON) else {
                let why = track.violation();
                watch.broken = Some(why.unwrap_or_else(|| format!("too few rounds in {HORIZON}")));
                break;
            };
            let collate = said.iter().find_map(|said| asks(said, leader));
            if said.iter().any(|said| leads_all(said, leader, case.nodes)) {
                last = last.map(|asked: Asked| Asked { took: Some(at.0 - asked.at.0), ..asked });
            }
            if let Some(collate) = collate {
                let traffic = track.traffic(leader);
                watch.close(last, traffic, case);
                last = Some(Asked { at, collate, traffic, took: None });
            }
        }
        watch
    }

    /// The leader asks again: its last round is over. Before the first success there is nothing to
    /// measure.
    fn close(&mut self, asked: Option<Asked>, traffic: (u64, u64), case: Case) {
        let Some(asked) = asked else { return };
        match asked.took {
            Some(_) if asked.collate != case.tree => self.direct += 1,
            Some(took) => {
                self.times.push(took);
                self.messages += traffic.0 - asked.traffic.0;
                self.heard += traffic.1 - asked.traffic.1;
            }
            None if self.times.is_empty() => {}
            None => self.broken = Some("a round of the settled leader fails".to_owned()),
        }
    }
}

/// Whether this is a request of `leader`, and then whether it goes along the tree.
fn asks((node, _, event): &Said<Subjects>, leader: NodeId) -> Option<bool> {
    match event {
        Event::Asked { collate, .. } if *node == leader => Some(*collate),
        _ => None,
    }
}

fn leads_all((node, _, event): &Said<Subjects>, leader: NodeId, nodes: usize) -> bool {
    matches!(event, Event::Leads { lease, .. } if *node == leader && lease.supporters.len() == nodes)
}

impl Case {
    fn answers(self) -> &'static str {
        if self.tree { "tree of 3" } else { "direct" }
    }

    fn words(self) -> String {
        format!("{} nodes, {}, {} us a message", self.nodes, self.answers(), self.handling / 1_000)
    }
}

fn columns() -> Vec<Column> {
    [
        ("nodes", "NODES", "how many processes: one asks, all support it"),
        ("handling_us", "HANDLING", "the time that handling a message takes, in microseconds"),
        ("answers", "ANSWERS", "to the leader itself, or along a tree"),
        ("mean_ms", "MEAN", "from asking to leading, in ms"),
        ("median_ms", "MEDIAN", "of the same"),
        ("p99_ms", "P99", "99 of 100 took no longer"),
        ("max_ms", "MAX", "the longest of all"),
        ("messages", "MESSAGES", "a round, between different processes, requests and answers"),
        ("leader_hears", "LEADER HEARS", "how many of them the leader handles"),
        ("rounds", "ROUNDS", "how many were measured"),
        ("direct", "DIRECT", "how many more were answered directly though there is a tree"),
    ]
    .map(|(key, head, says)| Column::new(key, head, says))
    .into()
}

fn row(measured: &Measured) -> Vec<Cell> {
    let Measured { case, times, .. } = measured;
    let rounds = times.0.len().max(1) as f64;
    vec![
        Cell::Count(case.nodes as u64),
        Cell::Count(case.handling / 1_000),
        Cell::text(case.answers()),
        times.mean(MILLI).map_or(Cell::Nothing, |mean| Cell::Number(mean, 2)),
        length(times.quantile(50), MILLI, 2),
        length(times.quantile(99), MILLI, 2),
        length(times.max(), MILLI, 2),
        Cell::Number(measured.messages as f64 / rounds, 1),
        Cell::Number(measured.heard as f64 / rounds, 1),
        Cell::Count(times.0.len() as u64),
        Cell::Count(measured.direct),
    ]
}

/// A panel for each cost of a message: means, and beside them what 99 of 100 do not exceed.
fn plot(all: &[Measured], options: &Options) -> Plot {
    let panel = |handling: u64| {
        let lines = [(false, false), (false, true), (true, false), (true, true)];
        let series = lines.map(|(tree, tail)| line(all, handling, tree, tail)).into();
        Panel {
            title: match handling {
                0 => "handling a message costs nothing".to_owned(),
                nanos => format!("handling a message costs {} us", nanos / 1_000),
            },
            x: Axis { label: "processes".to_owned(), scale: Scale::Linear },
            y: Axis { label: "from asking to leading, ms".to_owned(), scale: Scale::Linear },
            series,
        }
    };
    Plot {
        title: "A local leader's round, answered directly and along a tree".to_owned(),
        note: format!(
            "local, simulated: delays uniform in (0, 1 ms], {} rounds a point",
            options.seeds.saturating_mul(ROUNDS as u64)
        ),
        panels: HANDLING.map(panel).into(),
    }
}

fn line(all: &[Measured], handling: u64, tree: bool, tail: bool) -> Series {
    let wanted = |m: &&Measured| m.case.handling == handling && m.case.tree == tree;
    let value = |m: &Measured| match tail {
        true => m.times.quantile(99).map(|nanos| nanos as f64 / MILLI as f64),
        false => m.times.mean(MILLI),
    };
    let point = |m: &Measured| value(m).map(|value| (m.case.nodes as f64, value));
    let answers = if tree { "tree of 3" } else { "direct" };
    Series {
        name: format!("{answers}, {}", if tail { "99 %" } else { "mean" }),
        colour: usize::from(tree),
        dashed: tail,
        points: all.iter().filter(wanted).filter_map(point).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race(nodes: &[usize], seeds: u64) -> Race {
        run(&Options { nodes: nodes.to_vec(), seeds, first: 0 }, &|_| ()).expect("it runs")
    }

    fn number(cell: &Cell) -> f64 {
        match cell {
            Cell::Number(value, _) => *value,
            Cell::Count(count) => *count as f64,
            cell => panic!("{cell:?} is no number"),
        }
    }

    /// The mean of a row.
    fn mean(race: &Race, nodes: u64, handling: u64, answers: &str) -> f64 {
        let is =
            |row: &&Vec<Cell>| row[..3] == [Cell::Count(nodes), Cell::Count(handling), Cell::text(answers)];
        number(&race.rows.rows.iter().find(is).expect("there is such a row")[3])
    }

    #[test]
    fn a_round_is_a_request_and_an_answer_for_each_other_member_and_along_a_tree_the_leader_hears_three() {
        let race = race(&[4, 16], 2);
        assert_eq!((race.broken, race.rows.rows.len()), (Vec::<String>::new(), 12));
        for row in &race.rows.rows {
            let others = number(&row[0]) - 1.0;
            let heard = if row[2] == Cell::text("direct") { others } else { 3.0 };
            assert_eq!((number(&row[7]), number(&row[8])), (2.0 * others, heard), "{row:?}");
            assert_eq!(number(&row[9]), 2.0 * ROUNDS as f64, "{row:?}");
        }
    }

    #[test]
    fn a_tree_pays_where_answers_are_many_and_dear_and_only_there() {
        let race = race(&[8, 64], 2);
        assert_eq!(race.broken, [] as [String; 0]);
        assert!(mean(&race, 64, 500, "tree of 3") < mean(&race, 64, 500, "direct") / 2.0, "{race:?}");
        assert!(mean(&race, 64, 0, "tree of 3") > mean(&race, 64, 0, "direct"), "{race:?}");
        assert!(mean(&race, 8, 0, "tree of 3") > mean(&race, 8, 0, "direct"), "{race:?}");
    }

    #[test]
    fn the_same_seeds_give_the_same_rows_and_others_do_not() {
        let [one, two] = [0; 2].map(|_| race(&[5], 1));
        assert_eq!(one, two);
        let other = run(&Options { nodes: vec![5], seeds: 1, first: 1 }, &|_| ()).expect("it runs");
        assert_ne!(one.rows, other.rows);
    }

    #[test]
    fn one_node_and_more_than_a_set_holds_are_refused() {
        for nodes in [1, 65] {
            assert!(run(&Options { nodes: vec![nodes], seeds: 1, first: 0 }, &|_| ()).is_err());
        }
    }
}
