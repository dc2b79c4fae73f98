//! How long it takes until somebody leads, once no grantor is bound to anybody and everybody
//! campaigns.
//!
//! Several candidates that ask at once may split the grantors among them, so that none has a quorum
//! (section 10.2). Each draws its start in a window W, and one that is refused too often gives its
//! grants back and draws again. With v the longest one-way delay, the first wins whenever the
//! second starts at least v later: with n candidates that has a probability of at least
//! `s = (1 - v/W)^n` in a round, and
//!
//! ```text
//!     E[time] <= W/(n+1) + 2v + (1/s - 1)(W + 4v)
//! ```
//!
//! the wait for the first, its round trip, and whole rounds that were lost. The study runs the
//! machine that nodes run and holds the mean against that bound. The study does not know what a
//! campaign does inside the machine: it begins with what a protocol's users say after a start, and
//! ends when a process says that it leads.
//!
//! The bound is that of chance. With the weak election of nodes (section 9, a ring) one candidate
//! goes first, and the wait for it is gone: what is left is its round trip.

use crate::catalogue::Error;
use crate::draw::plot::{Axis, Panel, Plot, Scale, Series};
use crate::protocols::strong::mutants::Broken;
use crate::protocols::strong::subject::{Model, Strong};
pub use crate::race::Options;
use crate::race::track::{Finish, Track};
use crate::race::{Cell, Column, Lengths, Race, Sheet, length};
use crate::random::{Random, seeds};
use crate::stage::Cast;
use crate::subject::{Constants, Subject};
use crate::world::{Clock, RealTime, Stretch, clock::MILLI};

/// v: the longest one-way delay. All else is in units of it.
const V: u64 = MILLI;

/// The lease, in v: so long that it ends no election.
const LEASE: u64 = 50;

/// How long an answer is waited for, in v: longer than any round trip takes, so that nobody is
/// asked twice.
const RETRY: u64 = 3;

/// A run that takes longer than this, in v, has elected nobody.
const HORIZON: u64 = 10_000;

/// How many schedules the options ask for.
pub fn schedules(options: &Options) -> u64 {
    options.seeds.saturating_mul(3 * options.nodes.len() as u64)
}

/// One row: so many processes, such a window.
#[derive(Clone, Debug)]
struct Measured {
    nodes: usize,
    /// W, in v.
    window: u64,
    /// Whether a weak election on a ring says whose turn it is; else chance does.
    ring: bool,
    times: Lengths,
    messages: u64,
    runs: u64,
    unelected: u64,
    violations: Vec<(u64, String)>,
}

/// Runs the study; `progress` is told how many more schedules are done.
pub fn run(options: &Options, progress: &dyn Fn(u64)) -> Result<Race, Error> {
    let mut all = Vec::new();
    for &nodes in &options.nodes {
        if !(2..=64).contains(&nodes) {
            return Err(Error::new(format!("an election needs 2 to 64 nodes, not {nodes}")));
        }
        for (window, ring) in [(2 * nodes as u64, false), (nodes as u64, false), (nodes as u64, true)] {
            all.push(measure(nodes, (window, ring), options, progress)?);
        }
    }
    let parameters = [
        ("v", "1ms".to_owned()),
        ("delays", "uniform in (0, v]".to_owned()),
        ("to_oneself", "at once".to_owned()),
        ("lease", format!("{LEASE}v")),
        ("retry", format!("{RETRY}v")),
        ("drift", "1000ppm, clocks exact".to_owned()),
        ("disk", "at once".to_owned()),
    ];
    let mut parameters: Vec<_> = parameters.map(|(key, text)| (key, Cell::Text(text))).into();
    parameters.insert(0, ("protocol", Cell::text("nerio-drift")));
    parameters.push(("seeds", Cell::Count(options.seeds)));
    parameters.push(("first_seed", Cell::Count(options.first)));
    Ok(Race {
        study: "election",
        parameters,
        rows: Sheet { columns: columns(), rows: all.iter().map(row).collect() },
        shown: Vec::new(),
        broken: all.iter().flat_map(broken).collect(),
        plot: Some(plot(&all)),
    })
}

fn measure(
    nodes: usize,
    (window, ring): (u64, bool),
    options: &Options,
    progress: &dyn Fn(u64),
) -> Result<Measured, Error> {
    let subject = Strong::sound(Model::Drift);
    let mut measured = Measured {
        nodes,
        window,
        ring,
        times: Lengths::default(),
        messages: 0,
        runs: 0,
        unelected: 0,
        violations: Vec::new(),
    };
    let mut times = Vec::new();
    for seed in seeds(options.first, options.seeds) {
        let cast = cast(nodes, (window, ring), seed)?;
        let track = Track::new(&subject, &cast, V, seed)?;
        let Finish { elected, messages, violation } = track.elect(&cast, RealTime(HORIZON * V));
        measured.runs += 1;
        measured.violations.extend(violation.map(|violation| (seed, violation)));
        match elected {
            Some(at) => {
                times.push(at.0);
                measured.messages += messages;
            }
            None => measured.unelected += 1,
        }
        progress(1);
    }
    measured.times = Lengths::of(times);
    Ok(measured)
}

/// Founded just now, so that no grantor is bound; the clocks run right, but each shows something
/// else.
fn cast(nodes: usize, (window, ring): (u64, bool), seed: u64) -> Result<Cast, Error> {
    let mut random = Random::stream(seed, "clocks");
    let mut clock = || {
        let start = random.below(100_000) * MILLI + MILLI;
        Clock::new(start, &[Stretch { from: RealTime(0), ppm: 0 }])
    };
    let constants = Constants::new(Strong::sound(Model::Drift).keys())
        .with("drift", 1_000)
        .with("tick", 1)
        .with("lease", LEASE * V)
        .with("longest-lease", LEASE * V)
        .with("window", window * V)
        .with("weak", u64::from(ring))
        .with("retry", RETRY * V)
        .with("block", 256)
        .with("groups", 1);
    let clocks = (0..nodes).map(|_| clock()).collect();
    Cast::new::<Strong<Broken>>("majority", nodes, constants, clocks).map_err(Error::new)
}

/// `W/(n+1) + 2v + (1/s - 1)(W + 4v)` with `s = (1 - v/W)^n`, in v.
pub fn bound(nodes: usize, window: u64) -> f64 {
    let window = window as f64;
    let s: f64 = (0..nodes).map(|_| 1.0 - 1.0 / window).product();
    window / (nodes as f64 + 1.0) + 2.0 + (1.0 / s - 1.0) * (window + 4.0)
}

impl Measured {
    fn mean(&self) -> Option<f64> {
        self.times.mean(V)
    }

    fn words(&self) -> String {
        let turn = if self.ring { ", on a ring" } else { "" };
        format!("{} nodes with a window of {}v{turn}", self.nodes, self.window)
    }
}

fn broken(measured: &Measured) -> Vec<String> {
    let bound = bound(measured.nodes, measured.window);
    let mean = measured.mean().filter(|mean| *mean > bound);
    let words = measured.words();
    let mut broken = Vec::new();
    broken.extend(mean.map(|mean| format!("{words}: the mean {mean:.2}v exceeds its bound {bound:.2}v")));
    if measured.unelected > 0 {
        let (unelected, runs) = (measured.unelected, measured.runs);
        broken.push(format!("{words}: in {unelected} of {runs} schedules nobody led after {HORIZON}v"));
    }
    let violation = measured.violations.first();
    broken.extend(violation.map(|(seed, text)| format!("{words}: seed {seed} breaks {text}")));
    broken
}

fn columns() -> Vec<Column> {
    [
        ("nodes", "NODES", "how many processes: all grant, all campaign"),
        ("window_v", "W", "the window in which candidates draw their start, in v"),
        ("turns", "TURNS", "who goes first: the one that draws the earliest time, or the first on the ring"),
        (
            "mean_v",
            "MEAN",
            "from the instant at which no grantor is bound to the instant at which somebody leads, in v",
        ),
        ("median_v", "MEDIAN", "of the same"),
        ("p99_v", "P99", "99 of 100 took no longer"),
        ("max_v", "MAX", "the longest of all"),
        ("bound_v", "BOUND", "of the mean: W/(n+1) + 2v + (1/s-1)(W+4v), s = (1-v/W)^n"),
        ("messages", "MESSAGES", "between different nodes until somebody leads, on average"),
        ("schedules", "SCHEDULES", "how many elections were held"),
    ]
    .map(|(key, head, says)| Column::new(key, head, says))
    .into()
}

fn row(measured: &Measured) -> Vec<Cell> {
    let number = |value: Option<f64>| value.map_or(Cell::Nothing, |value| Cell::Number(value, 2));
    let times = &measured.times;
    let elected = (measured.runs - measured.unelected).max(1);
    vec![
        Cell::Count(measured.nodes as u64),
        Cell::Count(measured.window),
        Cell::text(if measured.ring { "ring" } else { "chance" }),
        number(measured.mean()),
        length(times.quantile(50), V, 2),
        length(times.quantile(99), V, 2),
        length(times.max(), V, 2),
        number(Some(bound(measured.nodes, measured.window))),
        Cell::Number(measured.messages as f64 / elected as f64, 1),
        Cell::Count(measured.runs),
    ]
}

/// Which part of the elections is not over yet, over time.
fn plot(all: &[Measured]) -> Plot {
    let mut nodes: Vec<usize> = all.iter().map(|measured| measured.nodes).collect();
    nodes.dedup();
    let series = all.iter().map(|measured| Series {
        name: match measured.ring {
            true => format!("n = {}, ring", measured.nodes),
            false => format!("n = {}, W = {}v", measured.nodes, measured.window),
        },
        colour: nodes.iter().position(|nodes| *nodes == measured.nodes).unwrap_or(0),
        dashed: measured.window == measured.nodes as u64,
        points: waiting(measured),
    });
    let panel = Panel {
        title: "elections in which nobody leads yet".to_owned(),
        x: Axis { label: "time since no grantor is bound, in v".to_owned(), scale: Scale::Linear },
        y: Axis { label: "share of all elections".to_owned(), scale: Scale::Log },
        series: series.collect(),
    };
    Plot {
        title: "How long an election takes when everybody campaigns".to_owned(),
        note: format!(
            "nerio-drift, delays uniform in (0, v], {} seeds a line; each line ends where the last election was over",
            all.first().map_or(0, |measured| measured.runs)
        ),
        panels: vec![panel],
    }
}

/// The share of elections that take longer than a time, in steps of a tenth of v.
fn waiting(measured: &Measured) -> Vec<(f64, f64)> {
    let times = &measured.times.0;
    let steps = 0..=measured.times.max().unwrap_or(0).div_ceil(V / 10);
    let point = |step: u64| {
        let over = times.len() - times.partition_point(|time| *time <= step * (V / 10));
        (step as f64 / 10.0, (over as f64 + measured.unelected as f64) / measured.runs.max(1) as f64)
    };
    steps.map(point).filter(|(_, share)| *share > 0.0).collect()
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
            cell => panic!("{cell:?} is no number"),
        }
    }

    #[test]
    fn the_bound_is_the_one_of_the_formula() {
        for (nodes, expected) in [(3, 10.8), (5, 13.4), (9, 18.6)] {
            // The formula with s >= 0.57 rounded up; exactly, it is a little less.
            let exact = bound(nodes, 2 * nodes as u64);
            assert!(exact <= expected + 0.05 && exact > expected - 1.5, "{nodes}: {exact}");
        }
        assert!((bound(2, 2) - (2.0 / 3.0 + 2.0 + 3.0 * 6.0)).abs() < 1e-12);
    }

    #[test]
    fn elections_among_all_keep_to_the_bound() {
        let race = race(&[3, 5, 9], 60);
        assert_eq!((race.broken, race.rows.rows.len()), (Vec::<String>::new(), 9));
        for row in &race.rows.rows {
            let [mean, median, p99, max, bound] = [3, 4, 5, 6, 7].map(|column| number(&row[column]));
            assert!(mean <= bound && median <= p99 && p99 <= max, "{row:?}");
            assert!(mean > 0.1, "{row:?}");
        }
    }

    #[test]
    fn the_same_seeds_give_the_same_rows_and_others_do_not() {
        let [one, two] = [0; 2].map(|_| race(&[3], 20));
        assert_eq!(one, two);
        let other = run(&Options { nodes: vec![3], seeds: 20, first: 20 }, &|_| ()).expect("it runs");
        assert_ne!(one.rows, other.rows);
    }

    #[test]
    fn an_election_of_two_costs_at_least_a_request_and_an_answer() {
        let race = race(&[2], 50);
        assert!(race.rows.rows.iter().all(|row| number(&row[7]) >= 2.0), "{:?}", race.rows.rows);
    }

    #[test]
    fn a_mean_beyond_the_bound_is_broken() {
        let mut measured = Measured {
            nodes: 3,
            window: 6,
            ring: false,
            times: Lengths::of(vec![30 * V]),
            messages: 4,
            runs: 2,
            unelected: 1,
            violations: vec![(7, "leader-uniqueness: two".to_owned())],
        };
        assert_eq!(broken(&measured).len(), 3, "{:?}", broken(&measured));
        (measured.times, measured.unelected) = (Lengths::of(vec![3 * V]), 0);
        assert_eq!(broken(&measured), ["3 nodes with a window of 6v: seed 7 breaks leader-uniqueness: two"]);
    }

    #[test]
    fn one_node_elects_without_a_race_and_is_refused() {
        assert!(run(&Options { nodes: vec![1], seeds: 1, first: 0 }, &|_| ()).is_err());
    }
}
