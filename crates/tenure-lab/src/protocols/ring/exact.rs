//! Exact averages over all circular orders, and the search for bad ones.
//!
//! Turning a ring changes nothing, so there are (n-1)! orders of n ids: 40,320 for nine. The
//! average is a fraction, and no digit of it is rounded: for `clockwise` it is n·H_n.

use std::fmt;

use super::{Election, Setup};
use crate::catalogue::Error;
use crate::random::Random;

/// A fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Above the line.
    pub numerator: u128,
    /// Below it.
    pub denominator: u128,
}

impl Ratio {
    /// In lowest terms; the denominator is not zero.
    pub fn new(numerator: u128, denominator: u128) -> Self {
        let (mut a, mut b) = (numerator, denominator);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Self { numerator: numerator / a.max(1), denominator: denominator / a.max(1) }
    }

    /// As a number with a point in it.
    pub fn approximately(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            _ => write!(f, "{}/{}", self.numerator, self.denominator),
        }
    }
}

/// n·H_n = n(1 + 1/2 + … + 1/n).
pub fn n_harmonic(n: u32) -> Ratio {
    let n = u128::from(n);
    let product: u128 = (1..=n).product();
    Ratio::new(n * (1..=n).map(|k| product / k).sum::<u128>(), product)
}

/// The result of all orders together for an algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    /// How many ids.
    pub nodes: u32,
    /// How many orders: (n-1)!.
    pub orders: u64,
    /// The mean of the election's messages.
    pub mean: Ratio,
    /// The fewest, and an order that needs so few.
    pub best: (u64, Vec<u32>),
    /// The most, and an order that needs so many.
    pub worst: (u64, Vec<u32>),
    /// The longest time until somebody leads.
    pub slowest: u64,
    /// The first broken property, and the order that broke it.
    pub broken: Option<String>,
}

/// The largest number of ids for which all orders are tried.
pub const MOST: u32 = 10;

/// Tries all circular orders of ids from `setup.first_id` on.
pub fn all_orders(election: &dyn Election, setup: &Setup) -> Result<Exact, Error> {
    let nodes = setup.nodes;
    if !(1..=MOST).contains(&nodes) {
        return Err(Error::new(format!("all orders of {nodes} ids are too many: --nodes 1 to {MOST}")));
    }
    let mut ids: Vec<u32> = (setup.first_id..setup.first_id + nodes).collect();
    let mut exact = Exact {
        nodes,
        orders: 0,
        mean: Ratio::new(0, 1),
        best: (u64::MAX, Vec::new()),
        worst: (0, Vec::new()),
        slowest: 0,
        broken: None,
    };
    let mut sum = 0;
    loop {
        let outcome = election.run(&ids, setup, &mut |_| ())?;
        let count = outcome.election;
        if let Some(broken) = outcome.broken() {
            exact.broken.get_or_insert_with(|| format!("{} is broken with the order {ids:?}", broken.name));
        }
        exact.orders += 1;
        sum += u128::from(count);
        exact.slowest = exact.slowest.max(outcome.elected_at.unwrap_or(0));
        if count < exact.best.0 {
            exact.best = (count, ids.clone());
        }
        if count > exact.worst.0 {
            exact.worst = (count, ids.clone());
        }
        // The first id stays where it is: all else would be the same ring, turned.
        if !next_order(&mut ids[1..]) {
            break;
        }
    }
    exact.mean = Ratio::new(sum, u128::from(exact.orders));
    Ok(exact)
}

/// The next order in the order of a dictionary; nothing after the last.
fn next_order(ids: &mut [u32]) -> bool {
    let Some(fall) = (1..ids.len()).rev().find(|at| ids[at - 1] < ids[*at]) else { return false };
    let swap = (fall..ids.len()).rev().find(|at| ids[*at] > ids[fall - 1]).unwrap_or(fall);
    ids.swap(fall - 1, swap);
    ids[fall..].reverse();
    true
}

/// The worst that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Messages of the election.
    pub messages: u64,
    /// The order that needs them.
    pub ids: Vec<u32>,
    /// Which links are slower than which, if schedules were searched too.
    pub priorities: Option<Vec<u32>>,
    /// How many runs it took.
    pub runs: u64,
}

/// Looks for an order with many messages, and with `schedules` for slow links too: changes two
/// places at a time, keeps what is not better, and begins again where it gets no further.
pub fn search(
    election: &dyn Election,
    setup: &Setup,
    (runs, schedules): (u64, bool),
    progress: &dyn Fn(u64),
) -> Result<Found, Error> {
    let mut random = Random::stream(setup.seed, "search");
    let mut best: Option<Found> = None;
    let (mut here, mut since) = (None::<Found>, 0);
    for run in 0..runs {
        progress(1);
        let mut next = match &here {
            Some(found) if since < 200 + 20 * u64::from(setup.nodes) => {
                let mut next = found.clone();
                match &mut next.priorities {
                    Some(priorities) if random.percent(50) => swap(priorities, &mut random),
                    _ => swap(&mut next.ids, &mut random),
                }
                next
            }
            _ => {
                (here, since) = (None, 0);
                let ids = super::Order::Random.ids(setup.nodes, setup.first_id, random.bits());
                let links = || super::Order::Random.ids(2 * setup.nodes, 0, random.bits());
                Found { messages: 0, ids, priorities: schedules.then(links), runs: 0 }
            }
        };
        next.messages = match &next.priorities {
            Some(priorities) => election.run_with(&next.ids, priorities, setup)?.election,
            None => election.run(&next.ids, setup, &mut |_| ())?.election,
        };
        since = if here.as_ref().is_none_or(|found| next.messages > found.messages) { 0 } else { since + 1 };
        if best.as_ref().is_none_or(|best| next.messages > best.messages) {
            best = Some(Found { runs: run + 1, ..next.clone() });
        }
        if here.as_ref().is_none_or(|found| next.messages >= found.messages) {
            here = Some(next);
        }
    }
    best.ok_or_else(|| Error::new("a search needs at least one run"))
}

fn swap(list: &mut [u32], random: &mut Random) {
    let (one, other) = (random.index(list.len()), random.index(list.len()));
    list.swap(one, other);
}
