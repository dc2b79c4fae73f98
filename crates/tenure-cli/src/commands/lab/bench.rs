//! `tenure lab bench`: how quick the laboratory is, beside what a queue alone costs on the same
//! machine.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::black_box;

use clap::Args;
use serde_json::{Value, json};
use tenure_lab::catalogue::{self, Experiment, Trial};
use tenure_lab::protocols::ring;
use tenure_lab::random::Random;
use tenure_lab::simulate::{Faults, Setup};

use super::options;
use crate::clock::clock;
use crate::failure::Failure;
use crate::output::{Answer, Format, Table, grouped};

/// Measure how quickly the laboratory works, on one core: events a second without and with
/// properties, beside a bare queue that pushes and pops as often.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab bench
  tenure lab bench nerio-drift --seeds 2000 --rounds 9 -o json
  tenure lab bench clockwise                         messages a second on a ring of 10^6 nodes

The three are measured in turn, round after round, so that a busy machine slows them alike;
medians are reported. ratio_to_baseline is events_per_second / baseline_per_second;
cost_of_properties is events_per_second / with_properties.

Exit codes: 0 measured, 2 error.")]
pub(super) struct Bench {
    /// The protocol
    #[arg(value_name = "NAME", default_value = "nerio-drift")]
    name: String,
    /// How many seeds a round runs: 5 nodes, all faults
    #[arg(long, value_name = "K", default_value = "500", value_parser = options::at_least_one, allow_negative_numbers = true)]
    seeds: u64,
    /// How many rounds, at least 5
    #[arg(long, value_name = "N", default_value = "7", value_parser = rounds, allow_negative_numbers = true)]
    rounds: usize,
}

fn rounds(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (5..=1000).contains(number));
    number.ok_or_else(|| "write a whole number from 5 to 1000".to_owned())
}

/// One round, in things a second.
#[derive(Clone, Copy, Debug)]
struct Round {
    plain: f64,
    judged: f64,
    baseline: f64,
}

impl Bench {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        if let Ok(election) = ring::find(&self.name) {
            return self.ring(election, format);
        }
        let experiment = catalogue::find(&self.name)?;
        let setup = Setup {
            nodes: 5,
            quorums: "majority".to_owned(),
            faults: Faults::all(),
            sets: Vec::new(),
            horizon: None,
            world: None,
        };
        let trial = Trial { setup, mutant: None, property: None };
        round(experiment, &trial, self.seeds.div_ceil(10))?; // Warms caches up; not counted.
        let mut rounds = Vec::new();
        for _ in 0..self.rounds {
            rounds.push(round(experiment, &trial, self.seeds)?);
        }
        Ok(Answer::new(format, || self.json(&rounds), || self.text(&rounds)))
    }

    /// A ring of a million nodes; its properties are judged once, at the end, so that they cost
    /// nothing to speak of.
    fn ring(&self, election: &dyn ring::Election, format: Format) -> Result<Answer, Failure> {
        let setup = ring::Setup::new(RING);
        let ids = election.ids(ring::Order::Random, &setup)?;
        let mut rounds = Vec::new();
        for _ in 0..self.rounds {
            let start = clock();
            let outcome = election.run(&ids, &setup, &mut |_| ())?;
            let ran = clock();
            black_box(walk(outcome.messages()));
            let end = clock();
            let rate = |seconds: f64| outcome.messages() as f64 / seconds.max(1e-9);
            let plain = rate((ran - start).as_secs_f64());
            rounds.push(Round { plain, judged: plain, baseline: rate((end - ran).as_secs_f64()) });
        }
        Ok(Answer::new(format, || self.json(&rounds), || self.text(&rounds)))
    }

    fn json(&self, rounds: &[Round]) -> Value {
        let [plain, judged, baseline, ratio, cost] = spreads(rounds);
        json!({
            "protocol": self.name,
            "seeds": self.seeds,
            "events_per_second": whole(plain.median),
            "with_properties": whole(judged.median),
            "baseline_per_second": whole(baseline.median),
            "ratio_to_baseline": to_thousandths(ratio.median),
            "cost_of_properties": to_thousandths(cost.median),
            "spread": {
                "events_per_second": [whole(plain.least), whole(plain.most)],
                "with_properties": [whole(judged.least), whole(judged.most)],
                "baseline_per_second": [whole(baseline.least), whole(baseline.most)],
                "ratio_to_baseline": [to_thousandths(ratio.least), to_thousandths(ratio.most)],
                "cost_of_properties": [to_thousandths(cost.least), to_thousandths(cost.most)],
            },
            "rounds": rounds.len(),
        })
    }

    fn text(&self, rounds: &[Round]) -> String {
        let [plain, judged, baseline, ratio, cost] = spreads(rounds);
        let mut table = Table::new(["WHAT", "MEDIAN", "LEAST", "MOST"]);
        let mut row = |what: &str, spread: Spread, show: fn(f64) -> String| {
            table.row([what.to_owned(), show(spread.median), show(spread.least), show(spread.most)]);
        };
        row("events a second", plain, counted);
        row("events a second, with properties", judged, counted);
        row("baseline: a bare queue, entries a second", baseline, counted);
        row("events to baseline", ratio, times);
        row("cost of properties", cost, times);
        let what = match ring::find(&self.name) {
            Ok(_) => format!("on a ring of {} nodes, messages", grouped(u64::from(RING))),
            Err(_) => format!("of {} seeds", self.seeds),
        };
        format!("{}: {} rounds {what}, one core\n\n{}", self.name, rounds.len(), table.render())
    }
}

fn round(experiment: &dyn Experiment, trial: &Trial, seeds: u64) -> Result<Round, Failure> {
    let start = clock();
    let events = experiment.exercise(trial, 0, seeds, false)?;
    let plain = clock();
    let judged_events = experiment.exercise(trial, 0, seeds, true)?;
    let judged = clock();
    black_box(push_and_pop(events));
    let end = clock();
    let rate = |number: u64, seconds: f64| number as f64 / seconds.max(1e-9);
    Ok(Round {
        plain: rate(events, (plain - start).as_secs_f64()),
        judged: rate(judged_events, (judged - plain).as_secs_f64()),
        baseline: rate(events, (end - judged).as_secs_f64()),
    })
}

/// About as many entries as a run of five nodes has waiting.
const DEPTH: u64 = 64;

/// The least that any simulation does: takes the earliest entry from a queue and enters another,
/// `entries` times.
fn push_and_pop(entries: u64) -> u64 {
    let mut random = Random::stream(0, "baseline");
    let mut queue = BinaryHeap::new();
    for number in 0..DEPTH {
        queue.push(Reverse((random.below(1_000_000), number, number)));
    }
    let mut sum = 0u64;
    for number in 0..entries {
        let Some(Reverse((at, _, what))) = queue.pop() else { break };
        sum = sum.wrapping_add(what ^ at);
        queue.push(Reverse((at + random.below(1_000_000), DEPTH + number, what)));
    }
    sum
}

/// How many nodes a ring has.
const RING: u32 = 1_000_000;

/// The least that any driver of a ring does: takes a message from the front of a queue and puts one
/// at its end.
fn walk(messages: u64) -> u64 {
    let mut queue: VecDeque<(u32, u64)> = (0..RING).map(|node| (node, u64::from(node))).collect();
    let mut sum = 0u64;
    for _ in 0..messages {
        let Some((node, what)) = queue.pop_front() else { break };
        sum = sum.wrapping_add(what);
        queue.push_back(((node + 1) % RING, what ^ sum));
    }
    sum
}

/// A measure over all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(rounds: &[Round], measure: impl Fn(&Round) -> f64) -> Self {
        let mut values: Vec<f64> = rounds.iter().map(measure).collect();
        values.sort_by(f64::total_cmp);
        let middle = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
        Self { median: middle, least: values[0], most: values[values.len() - 1] }
    }
}

fn spreads(rounds: &[Round]) -> [Spread; 5] {
    let measures: [fn(&Round) -> f64; 5] = [
        |round| round.plain,
        |round| round.judged,
        |round| round.baseline,
        |round| round.plain / round.baseline,
        |round| round.plain / round.judged,
    ];
    measures.map(|measure| Spread::of(rounds, measure))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are far below 2^53")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

fn counted(number: f64) -> String {
    grouped(whole(number))
}

fn times(number: f64) -> String {
    format!("{number:.3}x")
}

fn to_thousandths(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_rounds_is_between_the_middle_two() {
        let rounds = [4.0, 1.0, 3.0, 2.0].map(|plain| Round { plain, judged: 1.0, baseline: 1.0 });
        let spread = Spread::of(&rounds, |round| round.plain);
        assert_eq!(spread, Spread { median: 2.5, least: 1.0, most: 4.0 });
    }

    #[test]
    fn the_baseline_does_the_same_work_every_time() {
        assert_eq!(push_and_pop(1000), push_and_pop(1000));
        assert_ne!(push_and_pop(1000), push_and_pop(1001));
    }
}
