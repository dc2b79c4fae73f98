//! The race: algorithms × sizes × seeds, with what theory says beside them.
//!
//! Sizes grow until an algorithm has used up its budget of events, so that every algorithm gets
//! about the same time whatever it costs; what was left out is said. The budget counts events, not
//! seconds: the same seeds give the same rows on every machine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Election, Order, Setup};
use crate::catalogue::Error;
use crate::draw::chart::{Chart, Curve, Panel, Point};
use crate::race::{Cell, Column, Race, Sheet};
use crate::random::seeds;

/// The runs of the study.
pub struct Options {
    /// The elections to run.
    pub elections: Vec<&'static dyn Election>,
    /// With how many nodes, in any order.
    pub sizes: Vec<u32>,
    /// How many seeds a size, at most.
    pub seeds: u64,
    /// The first of them.
    pub first: u64,
    /// In which order the ids stand.
    pub order: Order,
    /// How many events an algorithm may take for one size.
    pub budget: u64,
    /// On how many cores.
    pub threads: usize,
}

/// A budget that takes well under a minute for each algorithm.
pub const BUDGET: u64 = 250_000_000;

/// The results of the race.
pub struct Contest {
    /// The rows.
    pub race: Race,
    /// The picture.
    pub chart: Chart,
}

/// One algorithm at one size.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    nodes: u32,
    messages: Spread,
    election: f64,
    announcement: f64,
    bits: f64,
    time: Spread,
    most_steps: u32,
    mean_steps: f64,
    broken: Option<String>,
}

/// A mean and where it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Spread {
    mean: f64,
    low: f64,
    high: f64,
    runs: usize,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let runs = values.len();
        let count = runs.max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let square = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        let half = match runs {
            0 | 1 => 0.0,
            _ => student(runs - 1) * (square / (count - 1.0) / count).sqrt(),
        };
        Self { mean, low: mean - half, high: mean + half, runs }
    }
}

/// Student's t for 95 %, two-sided, with so many degrees of freedom.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    TABLE.get(freedom - 1).copied().unwrap_or(1.96 + 2.5 / freedom as f64)
}

/// One algorithm over all sizes, or why it was not run.
type Line = Result<Vec<Measured>, Error>;

/// Runs the race; `progress` is told whenever one algorithm has finished one size.
pub fn run(options: &Options, progress: &(dyn Fn(u64) + Sync)) -> Result<Contest, Error> {
    let mut sizes = options.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let options = &Options { sizes, elections: options.elections.clone(), ..*options };
    let count = options.elections.len();
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Line>>> = Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    let mine = next.fetch_add(1, Ordering::Relaxed);
                    let Some(election) = options.elections.get(mine) else { return };
                    let measured = measure(*election, options, progress);
                    results.lock().unwrap_or_else(PoisonError::into_inner)[mine] = Some(measured);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let all: Vec<Vec<Measured>> =
        results.into_iter().map(|result| result.unwrap_or(Ok(Vec::new()))).collect::<Result<_, _>>()?;
    if all.iter().all(Vec::is_empty) {
        return Err(Error::new(format!("there is nothing to run: {}", left_out(options, &all).join("; "))));
    }
    Ok(Contest { race: race(options, &all), chart: chart(options, &all) })
}

/// One algorithm, size after size, as far as its budget goes.
fn measure(
    election: &dyn Election,
    options: &Options,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Measured>, Error> {
    let mut all: Vec<Measured> = Vec::new();
    let growth = growth(election, options.order);
    // Events of one run at each size; two small ones show how they grow.
    let mut costs: Vec<(f64, f64)> = Vec::new();
    for nodes in PROBES {
        let setup = Setup { seed: options.first, ..Setup::new(nodes) };
        let outcome = election.run(&election.ids(options.order, &setup)?, &setup, &mut |_| ())?;
        note_cost(&mut costs, nodes, outcome.events as f64);
    }
    for &nodes in &options.sizes {
        progress(1);
        if nodes > election.most_nodes() || forecast(growth, &costs, f64::from(nodes)) > options.budget as f64
        {
            break;
        }
        let mut used = 0;
        let (mut messages, mut times) = (Vec::new(), Vec::new());
        let mut sums = Measured::nothing(nodes);
        for seed in seeds(options.first, options.seeds) {
            if used >= options.budget / 2 && messages.len() >= 2 {
                break;
            }
            let setup = Setup { seed, ..Setup::new(nodes) };
            let outcome = election.run(&election.ids(options.order, &setup)?, &setup, &mut |_| ())?;
            used += outcome.events;
            messages.push(outcome.messages() as f64);
            times.push(outcome.time as f64);
            sums.election += outcome.election as f64;
            sums.announcement += outcome.announcement as f64;
            sums.bits += outcome.bits as f64;
            sums.mean_steps += outcome.steps as f64 / f64::from(nodes);
            sums.most_steps = sums.most_steps.max(outcome.most_steps);
            let broken = outcome.broken().map(|broken| format!("{} is broken with seed {seed}", broken.name));
            sums.broken = sums.broken.or(broken);
        }
        let runs = messages.len().max(1) as f64;
        note_cost(&mut costs, nodes, used as f64 / runs);
        all.push(Measured {
            messages: Spread::of(&messages),
            time: Spread::of(&times),
            election: sums.election / runs,
            announcement: sums.announcement / runs,
            bits: sums.bits / runs,
            mean_steps: sums.mean_steps / runs,
            ..sums
        });
    }
    Ok(all)
}

/// Sizes that cost nothing, and tell what larger ones will.
const PROBES: [u32; 2] = [32, 64];

fn note_cost(costs: &mut Vec<(f64, f64)>, nodes: u32, cost: f64) {
    let nodes = f64::from(nodes);
    costs.retain(|(known, _)| *known != nodes);
    costs.push((nodes, cost));
    costs.sort_by(|one, other| one.0.total_cmp(&other.0));
}

/// How an algorithm's messages grow, if theory says so for this order of ids.
fn growth(election: &dyn Election, order: Order) -> Option<fn(f64) -> f64> {
    let theory = election.theory()?;
    let holds = theory.bound || order == Order::Random || !election.has_ids();
    holds.then_some(theory.messages)
}

/// The predicted cost of one run: as much more than the largest size so far as theory says; where
/// it says nothing, by the power of n with which the cost grew last.
fn forecast(growth: Option<fn(f64) -> f64>, costs: &[(f64, f64)], nodes: f64) -> f64 {
    let [.., (before, cheaper), (n, cost)] = costs else { return 0.0 };
    if let Some(growth) = growth.filter(|growth| growth(*n) > 0.0) {
        return cost * growth(nodes) / growth(*n);
    }
    let power = (cost / cheaper).ln() / (n / before).ln();
    cost * (nodes / n).powf(power.max(1.0))
}

impl Measured {
    fn nothing(nodes: u32) -> Self {
        Self {
            nodes,
            messages: Spread::default(),
            election: 0.0,
            announcement: 0.0,
            bits: 0.0,
            time: Spread::default(),
            most_steps: 0,
            mean_steps: 0.0,
            broken: None,
        }
    }
}

fn race(options: &Options, all: &[Vec<Measured>]) -> Race {
    let named = || options.elections.iter().zip(all);
    let mut rows = Vec::new();
    let mut broken = Vec::new();
    for (election, measured) in named() {
        let name = election.about().name;
        for &nodes in &options.sizes {
            let found = measured.iter().find(|measured| measured.nodes == nodes);
            rows.push(row(*election, nodes, found));
            broken.extend(
                found.and_then(|m| m.broken.clone()).map(|what| format!("{name}, {nodes} nodes: {what}")),
            );
        }
    }
    let left_out = match left_out(options, all) {
        said if said.is_empty() => "nothing".to_owned(),
        said => said.join("; "),
    };
    let parameters = vec![
        ("order", Cell::text(options.order.name())),
        ("wake", Cell::text("all at once")),
        ("delays", Cell::text("one unit each")),
        ("ids", Cell::text("from 1")),
        ("seeds", Cell::Count(options.seeds)),
        ("first_seed", Cell::Count(options.first)),
        ("budget", Cell::Text(format!("{} events a size", options.budget))),
        ("left_out", Cell::Text(left_out)),
    ];
    Race {
        study: "rings",
        parameters,
        rows: Sheet { columns: columns(), rows },
        shown: Vec::new(),
        broken,
        plot: None,
    }
}

fn columns() -> Vec<Column> {
    [
        ("algorithm", "ALGORITHM", ""),
        ("nodes", "NODES", ""),
        ("messages", "MESSAGES", "all of them, the announcement included: the mean"),
        ("messages_low", "LOW", "from here"),
        ("messages_high", "HIGH", "to here, with 95 % confidence"),
        ("election", "ELECTION", "until somebody leads"),
        ("announcement", "TELL", "until everybody knows"),
        ("bits", "BITS", "the length of all messages"),
        ("time", "TIME", "until everybody knows, one unit a message"),
        ("time_low", "FROM", "from here"),
        ("time_high", "TO", "to here, with 95 % confidence"),
        ("most_steps", "STEPS", "the most that one node made"),
        ("mean_steps", "MEAN", "steps of a node"),
        ("theory", "THEORY", "messages of the election by formula: an average, or a bound"),
        ("runs", "RUNS", "how many seeds fitted into the budget"),
    ]
    .map(|(key, head, says)| Column { key: key.to_owned(), head: head.to_owned(), says })
    .into()
}

fn row(election: &dyn Election, nodes: u32, measured: Option<&Measured>) -> Vec<Cell> {
    let theory = election
        .theory()
        .map_or(Cell::Nothing, |theory| Cell::Number((theory.messages)(f64::from(nodes)), 0));
    let mut cells = vec![Cell::text(election.about().name), Cell::Count(u64::from(nodes))];
    match measured {
        None => {
            cells.extend((0..11).map(|_| Cell::Nothing));
            cells.extend([theory, Cell::Count(0)]);
        }
        Some(m) => {
            let whole = |value: f64| Cell::Number(value, 0);
            cells.extend([m.messages.mean, m.messages.low, m.messages.high].map(whole));
            cells.extend([m.election, m.announcement, m.bits].map(whole));
            cells.extend([m.time.mean, m.time.low, m.time.high].map(whole));
            cells.extend([Cell::Count(u64::from(m.most_steps)), Cell::Number(m.mean_steps, 1), theory]);
            cells.push(Cell::Count(m.messages.runs as u64));
        }
    }
    cells
}

/// The rows as comma-separated values, with a line of names.
pub fn csv(race: &Race) -> String {
    let mut text = race.rows.columns.iter().map(|column| column.key.as_str()).collect::<Vec<_>>().join(",");
    text.push('\n');
    for row in &race.rows.rows {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| match cell {
                Cell::Text(text) => text.clone(),
                Cell::Count(count) => count.to_string(),
                Cell::Number(number, places) => format!("{number:.places$}"),
                Cell::Nothing => String::new(),
            })
            .collect();
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

/// Three panels: messages a node, time, and one against the other.
fn chart(options: &Options, all: &[Vec<Measured>]) -> Chart {
    let lines: Vec<Racer<'_>> = options.elections.iter().zip(all).enumerate().map(Racer::of).collect();
    let doubles = options.sizes.iter().all(|nodes| nodes.is_power_of_two());
    let panel = |title: &str, x: &str, y: &str, doubles, curves| Panel {
        title: title.to_owned(),
        x: x.to_owned(),
        doubles,
        y: y.to_owned(),
        curves,
    };
    let mut messages: Vec<Curve> = lines.iter().flat_map(Racer::messages).collect();
    name_once(&mut messages);
    messages.push(lower_bound(&options.sizes));
    // Away from rings time is a constant, and has no place beside what grows with n.
    let time = lines.iter().filter(|line| line.election.on_ring()).map(Racer::time).collect();
    let common = common_size(options, all);
    let against = lines.iter().filter_map(|line| line.against(common)).collect();
    let note = format!(
        "Ids from 1 in {} order, all awake at once (among named processes: one calls), one unit of time a message, up to {} \
         seeds; bars: 95 % of the mean; dotted: theory",
        options.order.name(),
        options.seeds,
    );
    let foot = match left_out(options, all) {
        said if said.is_empty() => String::new(),
        said => format!("Left blank: {}.", said.join("; ")),
    };
    Chart {
        title: "Electing a leader: what it costs".to_owned(),
        note,
        panels: vec![
            panel("Messages for each node", "nodes", "messages / n", doubles, messages),
            panel("Time until everybody knows, on a ring", "nodes", "units of time / n", doubles, time),
            panel(
                &format!("Messages against time, n = {common}"),
                "units of time",
                "messages",
                false,
                against,
            ),
        ],
        foot,
    }
}

/// An algorithm, what was measured of it, and how it looks.
struct Racer<'a> {
    election: &'a dyn Election,
    measured: &'a [Measured],
    look: usize,
}

impl<'a> Racer<'a> {
    fn of((look, (election, measured)): (usize, (&&'a dyn Election, &'a Vec<Measured>))) -> Self {
        Self { election: *election, measured, look }
    }

    fn curve(&self, points: Vec<Point>) -> Curve {
        let name = self.election.about().name.to_owned();
        Curve { name, says: String::new(), look: Some(self.look), points, theory: false }
    }

    fn over_nodes(&self, spread: impl Fn(&Measured) -> Spread) -> Curve {
        let point = |m: &Measured| {
            let (n, spread) = (f64::from(m.nodes), spread(m));
            Point { x: n, y: spread.mean / n, low: spread.low / n, high: spread.high / n }
        };
        self.curve(self.measured.iter().map(point).collect())
    }

    fn time(&self) -> Curve {
        self.over_nodes(|m| m.time)
    }

    /// The measured curves and those of theory: in one label where both end at the same place.
    fn messages(&self) -> Vec<Curve> {
        let mut curve = self.over_nodes(|m| m.messages);
        let (Some(theory), Some(first)) = (self.election.theory(), self.measured.first()) else {
            return vec![curve];
        };
        let tell = first.announcement / f64::from(first.nodes);
        let told = |m: &Measured| (theory.messages)(f64::from(m.nodes)) / f64::from(m.nodes) + tell;
        let point = |m: &Measured| Point::exact(f64::from(m.nodes), told(m));
        let points: Vec<Point> = self.measured.iter().map(point).collect();
        let ends = curve.points.last().zip(points.last());
        let meet = ends.is_some_and(|(one, other)| (0.93..1.07).contains(&(one.y / other.y)));
        let says = theory.says.split(", and").next().unwrap_or_default().to_owned();
        let name = if meet { String::new() } else { says.clone() };
        curve.says = if meet { says } else { String::new() };
        vec![curve, Curve { name, says: String::new(), look: Some(self.look), points, theory: true }]
    }

    /// The point of this size.
    fn against(&self, nodes: u32) -> Option<Curve> {
        let m = self.measured.iter().find(|m| m.nodes == nodes)?;
        let Spread { mean, low, high, .. } = m.messages;
        Some(self.curve(vec![Point { x: m.time.mean, y: mean, low, high }]))
    }
}

/// A theory that several algorithms share is written once.
fn name_once(curves: &mut [Curve]) {
    let mut named: Vec<String> = Vec::new();
    for curve in curves.iter_mut().filter(|curve| curve.theory && !curve.name.is_empty()) {
        let name = std::mem::take(&mut curve.name);
        if !named.contains(&name) {
            curve.name.clone_from(&name);
            named.push(name);
        }
    }
}

/// The lower bound of messages for every uniform asynchronous algorithm.
fn lower_bound(sizes: &[u32]) -> Curve {
    let point = |nodes: &u32| Point::exact(f64::from(*nodes), (f64::from(*nodes).log2() + 1.0) / 4.0);
    Curve {
        name: "n/4·(log2 n + 1): lower bound".to_owned(),
        says: String::new(),
        look: None,
        points: sizes.iter().map(point).collect(),
        theory: true,
    }
}

/// The largest size that all have, of those that have any.
fn common_size(options: &Options, all: &[Vec<Measured>]) -> u32 {
    let has = |measured: &Vec<Measured>, nodes: u32| measured.iter().any(|m| m.nodes == nodes);
    let common = |nodes: &&u32| all.iter().all(|measured| measured.is_empty() || has(measured, **nodes));
    options.sizes.iter().rev().find(common).copied().unwrap_or_default()
}

/// The elections that were not run with all sizes, and why.
fn left_out(options: &Options, all: &[Vec<Measured>]) -> Vec<String> {
    let short = |(election, measured): (&&dyn Election, &Vec<Measured>)| {
        let missing = *options.sizes.get(measured.len())?;
        let name = election.about().name;
        let most = election.most_nodes();
        let why = match measured.last().map(|measured| measured.nodes) {
            None if missing > most => format!(", {missing} nodes do not fit into memory or time"),
            None => format!(", {missing} nodes would exceed the budget"),
            Some(until) if until == most => {
                format!(" after {until}, beyond which it does not fit into memory or time")
            }
            Some(until) if missing > most => {
                format!(" after {until}, the next does not fit into memory or time")
            }
            Some(until) => format!(" after {until}, the next would exceed the budget"),
        };
        Some(format!("{name}{why}"))
    };
    options.elections.iter().zip(all).filter_map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::ring::{all, find};

    fn options(names: &[&str], sizes: &[u32]) -> Options {
        Options {
            elections: names.iter().map(|name| find(name).expect("it exists")).collect(),
            sizes: sizes.to_vec(),
            seeds: 5,
            first: 0,
            order: Order::Random,
            budget: 1_000_000,
            threads: 2,
        }
    }

    #[test]
    fn a_size_that_would_cost_too_much_is_left_blank_and_said() {
        let contest = run(&options(&["lelann", "clockwise"], &[16, 256, 4096]), &|_| ()).expect("it runs");
        let blank = contest.race.rows.rows.iter().filter(|row| row[2] == Cell::Nothing).count();
        assert_eq!((contest.race.rows.rows.len(), blank), (6, 1));
        let said =
            contest.race.parameters.iter().find(|(key, _)| *key == "left_out").map(|(_, cell)| cell.clone());
        assert_eq!(said, Some(Cell::text("lelann after 256, the next would exceed the budget")));
        assert!(contest.chart.foot.contains("lelann after 256"), "{}", contest.chart.foot);
        assert!(contest.race.broken.is_empty());
    }

    /// The text of what was left out, and the number of nodes of each row.
    fn raced(options: &Options) -> (String, Vec<u64>) {
        let race = run(options, &|_| ()).expect("it runs").race;
        let said = race.parameters.iter().find(|(key, _)| *key == "left_out").map(|(_, cell)| cell.clone());
        let Some(Cell::Text(said)) = said else { panic!("{said:?}") };
        let nodes = |row: &Vec<Cell>| if let Cell::Count(nodes) = row[1] { nodes } else { 0 };
        (said, race.rows.rows.iter().map(nodes).collect())
    }

    #[test]
    fn sizes_are_run_in_their_order_however_far_apart_and_the_cost_of_the_next_one_is_known() {
        let nothing = "nothing".to_owned();
        for name in ["clockwise", "time-slice"] {
            let contest = raced(&options(&[name], &[16, 32_768]));
            assert_eq!(contest, (nothing.clone(), vec![16, 32_768]), "{name}");
        }
        assert_eq!(raced(&options(&["clockwise"], &[4096, 16, 4096])), (nothing, vec![16, 4096]));
        let descending = Options { order: Order::Descending, ..options(&["clockwise"], &[16, 32_768]) };
        let (said, _) = raced(&descending);
        assert_eq!(
            said, "clockwise after 16, the next would exceed the budget",
            "theory is of random orders"
        );
    }

    #[test]
    fn where_no_size_fits_there_is_no_race_but_an_error_that_says_why() {
        let error = run(&options(&["lelann"], &[4096]), &|_| ()).map(|_| ()).map_err(|e| e.to_string());
        let said = "there is nothing to run: lelann, 4096 nodes would exceed the budget";
        assert_eq!(error, Err(said.to_owned()));
    }

    #[test]
    fn all_of_them_race_and_the_same_seeds_give_the_same_picture() {
        let names: Vec<&str> =
            all().iter().map(|e| e.about().name).filter(|name| *name != "automaton").collect();
        let [one, two] = [1, 2].map(|threads| {
            run(&Options { threads, ..options(&names, &[4, 16, 64]) }, &|_| ()).expect("it runs")
        });
        assert_eq!(one.race, two.race);
        assert_eq!(crate::draw::chart::draw(&one.chart), crate::draw::chart::draw(&two.chart));
        assert_eq!(csv(&one.race).lines().count(), 1 + 3 * names.len());
    }

    #[test]
    fn an_interval_of_equal_numbers_is_a_point_and_of_two_it_is_wide() {
        assert_eq!(Spread::of(&[3.0; 5]), Spread { mean: 3.0, low: 3.0, high: 3.0, runs: 5 });
        let two = Spread::of(&[0.0, 2.0]);
        assert!((two.high - 1.0 - 12.706).abs() < 1e-9, "{two:?}");
    }
}
