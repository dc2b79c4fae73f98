//! Links: how long messages take, which are lost, and how the network falls apart.

use tenure_proto::NodeId;

use super::faults::Fault;
use super::plan::Setup;
use crate::random::Random;
use crate::world::{RealTime, clock::MILLI};

/// The most that a message is held up, in nanoseconds.
pub(super) const LONGEST_DELAY: u64 = 700 * MILLI;

/// How long messages take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delay {
    /// The same each time.
    Constant,
    /// Evenly spread.
    Uniform,
    /// Mostly short, rarely very long.
    HeavyTail,
    /// Held up in blocks and let go together.
    Blocks { length: u64 },
}

/// The manners of all links in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Links {
    /// About half of a round trip.
    unit: u64,
    delay: Delay,
    loss_percent: u64,
    dup_percent: u64,
    reorder_percent: u64,
    /// No message takes less, in nanoseconds.
    least: u64,
}

/// A message's fate: the delay of each copy that arrives. Most have one.
pub(crate) type Fate = [Option<u64>; 2];

impl Links {
    /// Links on which every message takes the same time.
    pub(super) fn steady(delay: u64) -> Self {
        let (loss_percent, dup_percent, reorder_percent) = (0, 0, 0);
        Self { unit: delay, delay: Delay::Constant, loss_percent, dup_percent, reorder_percent, least: 1 }
    }

    pub(super) fn draw(setup: &Setup, retry: u64, random: &mut Random) -> Self {
        let faults = setup.faults;
        let chance = |random: &mut Random, fault, most: u64| {
            let percent = random.pick(&[0, most / 4, most]);
            if faults.has(fault) { percent } else { 0 }
        };
        let manners = [Delay::Constant, Delay::Uniform, Delay::HeavyTail, Delay::Blocks { length: 0 }];
        let mut delay = random.pick(&manners);
        if let Delay::Blocks { length } = &mut delay {
            *length = random.between(50, 300) * MILLI;
        }
        Self {
            unit: (retry / 3).max(8),
            delay: if faults.has(Fault::Delay) { delay } else { Delay::Uniform },
            loss_percent: chance(random, Fault::Loss, 20),
            dup_percent: chance(random, Fault::Dup, 30),
            reorder_percent: chance(random, Fault::Reorder, 30),
            least: 1,
        }
    }

    /// The same, but nothing takes less than a protocol counts on.
    pub(super) fn at_least(self, least: Option<u64>) -> Self {
        Self { least: least.unwrap_or(0).max(1), ..self }
    }

    /// The name of the manner of delay, for the counts.
    pub(super) fn manner(&self) -> &'static str {
        match self.delay {
            Delay::Constant => "delays-constant",
            Delay::Uniform => "delays-uniform",
            Delay::HeavyTail => "delays-heavy-tailed",
            Delay::Blocks { .. } => "delays-in-blocks",
        }
    }

    /// The fate of a message sent at `now` while faults last.
    pub(super) fn stormy(&self, now: RealTime, random: &mut Random) -> Fate {
        if random.percent(self.loss_percent) {
            return [None, None];
        }
        let first = self.delay(now, random);
        let again = random.percent(self.dup_percent).then(|| self.delay(now, random));
        [Some(first), again]
    }

    /// The fate of a message after the healing: it arrives, in time.
    pub(super) fn calm(&self, random: &mut Random) -> Fate {
        [Some(random.between(self.unit / 4, self.unit)), None]
    }

    fn delay(&self, now: RealTime, random: &mut Random) -> u64 {
        let unit = self.unit;
        let mut delay = match self.delay {
            Delay::Constant => unit,
            Delay::Uniform => random.between(unit / 8, unit * 3),
            Delay::HeavyTail => {
                let mut delay = random.between(unit / 4, unit);
                while delay < LONGEST_DELAY && random.percent(30) {
                    delay *= 3;
                }
                delay
            }
            Delay::Blocks { length } => {
                let left = length - now.0 % length;
                let held = now.0 / length % 2 == 1;
                if held { left + random.below(MILLI) } else { random.between(unit / 4, unit) }
            }
        };
        if random.percent(self.reorder_percent) {
            delay += random.below(unit * 8);
        }
        delay.clamp(self.least, LONGEST_DELAY)
    }
}

/// How the network falls apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The kind, for the counts.
    pub(crate) kind: &'static str,
    /// In words.
    pub(crate) text: String,
    /// For each sender the receivers it does not reach, as bits.
    cut: Vec<u64>,
    /// At any time each process exchanges messages in time with only some others, not always the
    /// same ones.
    moving: bool,
}

impl Shape {
    /// A network in one piece.
    pub(crate) fn whole(nodes: usize) -> Self {
        Self { kind: "whole", text: "whole".to_owned(), cut: vec![0; nodes], moving: false }
    }

    /// The same, after all faults are over.
    pub(super) fn calm(nodes: usize) -> Self {
        Self::whole(nodes).named("calm", "calm: all faults are healed".to_owned())
    }

    /// Draws a shape for `nodes` processes.
    pub(super) fn draw(nodes: usize, random: &mut Random) -> Self {
        let order = shuffled(nodes, random);
        let middle = 1 + random.index(nodes - 1);
        let (one, other) = order.split_at(middle);
        let whole = Self::whole(nodes);
        match random.below(6) {
            0 => whole
                .named("partitions-split", format!("split: {} | {}", names(one), names(other)))
                .without(|from, to| one.contains(&from) != one.contains(&to)),
            1 => whole
                .named("partitions-one-way", format!("one way: {} not to {}", names(one), names(other)))
                .without(|from, to| one.contains(&from) && other.contains(&to)),
            2 => {
                let bridge = order[0];
                let (left, right) = order[1..].split_at(order.len() / 2);
                let text = format!("bridge: {} - n{bridge} - {}", names(left), names(right));
                whole.named("partitions-bridge", text).without(|from, to| {
                    from != bridge && to != bridge && left.contains(&from) != left.contains(&to)
                })
            }
            3 => {
                let place = |node| order.iter().position(|other| *other == node).unwrap_or(0);
                let links: Vec<String> = order.iter().map(|node| format!("n{node}")).collect();
                let text = format!("chain: {}", links.join(" - "));
                whole.named("partitions-chain", text).without(|from, to| place(from).abs_diff(place(to)) > 1)
            }
            4 => whole
                .named("partitions-isolated", format!("isolated: n{}", order[0]))
                .without(|from, to| (from == order[0]) != (to == order[0])),
            _ => {
                let text = "moving set: each reaches only some at a time, not always the same".to_owned();
                Self { moving: true, ..whole.named("partitions-moving-set", text) }
            }
        }
    }

    /// A network in which some do not reach some others.
    pub(crate) fn of(
        nodes: usize,
        kind: &'static str,
        text: String,
        blocked: impl Fn(usize, usize) -> bool,
    ) -> Self {
        Self::whole(nodes).named(kind, text).without(blocked)
    }

    fn named(self, kind: &'static str, text: String) -> Self {
        Self { kind, text, ..self }
    }

    fn without(mut self, blocked: impl Fn(usize, usize) -> bool) -> Self {
        for from in 0..self.cut.len() {
            for to in 0..self.cut.len() {
                if blocked(from, to) {
                    self.cut[from] |= 1 << to;
                }
            }
        }
        self
    }

    /// Whether a message sent now gets through.
    pub(crate) fn lets_through(&self, from: NodeId, to: NodeId, now: RealTime) -> bool {
        let (from, to) = (from.index(), to.index());
        if self.moving {
            return self.timely(from, to, now) || self.timely(to, from, now);
        }
        self.cut[from] >> to & 1 == 0
    }

    /// Whether `to` is among the f that `from` reaches at the moment: a window of f neighbours that
    /// moves on all the time, from another place for every process.
    fn timely(&self, from: usize, to: usize, now: RealTime) -> bool {
        let nodes = self.cut.len();
        let reached = (nodes - 1) / 2;
        let turn = now.0 / (20 * MILLI) * (from as u64 + 1);
        (to as u64 + turn) % (nodes as u64) < reached.max(1) as u64
    }
}

fn names(nodes: &[usize]) -> String {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    let names: Vec<String> = nodes.iter().map(|node| format!("n{node}")).collect();
    names.join(" ")
}

fn shuffled(nodes: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes).collect();
    for i in (1..nodes).rev() {
        order.swap(i, random.index(i + 1));
    }
    order
}
