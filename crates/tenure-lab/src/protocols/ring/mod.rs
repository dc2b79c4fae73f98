//! Ring theory: the elections of the lectures, counted, judged, attacked and drawn.
//!
//! The algorithms are in [`tenure_proto::classic`], on ports without addresses. Here they are run:
//!
//! | module | does |
//! |---|---|
//! | [`rounds`] | every message takes one unit of time |
//! | [`laps`] | the same for rings with one direction, node by node: carries 10^8 nodes |
//! | [`links`] | an asynchronous scheduler: random delays, chaos, slow links |
//! | [`order`] | in which order the ids stand, and what `clockwise` must cost with it |
//! | [`exact`] | all orders of few ids, and the search for bad orders and schedules of more |
//! | [`lockstep`] | anonymous nodes without coins stay equal forever |
//! | [`adversary`] | the open-schedule lower bound of n/4·(log2 n + 1) |
//! | [`race`] | algorithms × sizes × seeds, with theory beside them |
//! | [`named`] | elections among processes with names, counted behind the same face |
//! | [`watch`] | executions as text, for [drawings](crate::draw::ring) |
//!
//! ```
//! use tenure_lab::protocols::ring::{self, Order, Setup};
//!
//! let clockwise = ring::find("clockwise")?;
//! let setup = Setup::new(1024);
//! let outcome = clockwise.run(&clockwise.ids(Order::Worst, &setup)?, &setup, &mut |_| ())?;
//! assert_eq!((outcome.election, outcome.announcement), (1024 * 1025 / 2, 1024));
//! # Ok::<(), tenure_lab::catalogue::Error>(())
//! ```

pub mod adversary;
pub mod cheat;
pub mod exact;
pub mod laps;
pub mod links;
mod list;
pub mod lockstep;
pub mod named;
pub mod order;
pub mod outcome;
mod place;
pub mod race;
pub mod rounds;
#[cfg(test)]
mod tests;
pub mod watch;
pub mod wiring;

pub use list::{all, find, own};
pub use order::Order;
pub use outcome::Outcome;

use crate::catalogue::{About, Error};
use crate::random::Random;
use adversary::Siege;
use links::Schedule;
use lockstep::Steps;
use rounds::Wake;
use watch::Trace;

/// The setup of a run, except the order of the ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How many nodes.
    pub nodes: u32,
    /// The seed of all chance: the order, the coins, the delays.
    pub seed: u64,
    /// The smallest id.
    pub first_id: u32,
    /// The nodes that wake by themselves.
    pub wake: Waking,
    /// The scheduler: which message is delivered next.
    pub delays: Delays,
    /// After so many events a run is cut off.
    pub limit: u64,
}

impl Setup {
    /// So many nodes, all awake from the start, one unit of time a message, ids from 1, seed 1.
    pub fn new(nodes: u32) -> Self {
        Self { nodes, seed: 1, first_id: 1, wake: Waking::All, delays: Delays::Unit, limit: u64::MAX }
    }
}

/// The nodes that wake by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waking {
    /// All, at the start.
    All,
    /// The node at this place.
    One(u32),
    /// Some, at times drawn from the seed.
    Some,
}

impl Waking {
    /// When each node wakes that wakes by itself.
    fn list(self, setup: &Setup) -> Wake {
        match self {
            Self::All => Wake::All,
            Self::One(place) => Wake::Some(vec![(0, place.min(setup.nodes - 1))]),
            Self::Some => {
                let mut random = Random::stream(setup.seed, "wake");
                let mut list: Vec<(u64, u32)> = (0..setup.nodes)
                    .filter(|_| random.percent(30))
                    .map(|node| (u64::from(node) * 7919 % u64::from(setup.nodes), node))
                    .collect();
                if list.is_empty() {
                    list.push((0, u32::try_from(random.below(u64::from(setup.nodes))).unwrap_or(0)));
                }
                list.sort_unstable();
                Wake::Some(list)
            }
        }
    }
}

/// How long messages take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delays {
    /// One unit each.
    Unit,
    /// Up to one unit, drawn evenly.
    Random,
    /// As long as a scheduler likes that draws links.
    Chaos,
    /// As long as a scheduler likes that follows the newest message.
    Newest,
}

impl Delays {
    /// All of them, by name.
    pub const NAMED: [(&'static str, Self); 4] =
        [("unit", Self::Unit), ("random", Self::Random), ("chaos", Self::Chaos), ("newest", Self::Newest)];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, delays)| *delays == self).map_or("unit", |(name, _)| name)
    }

    fn schedule(self, seed: u64) -> Schedule {
        let random = || Random::stream(seed, "delays");
        match self {
            Self::Unit => Schedule::Unit,
            Self::Random => Schedule::Delays(random()),
            Self::Chaos => Schedule::Chaos(random()),
            Self::Newest => Schedule::Newest,
        }
    }
}

/// The prediction of theory for so many nodes.
#[derive(Clone, Copy, Debug)]
pub struct Theory {
    /// The formula.
    pub says: &'static str,
    /// Its value: messages of the election, at most or on average; those that tell everybody come
    /// on top.
    pub messages: fn(f64) -> f64,
    /// Whether no order may cost more; else it is an average.
    pub bound: bool,
}

/// How many messages the election of `name` must take with these ids, found without running it,
/// where that is known.
pub fn expected(name: &str, ids: &[u32], setup: &Setup) -> Option<u64> {
    (name == "clockwise" && setup.wake == Waking::All).then(|| order::distances_to_the_next_larger(ids))
}

/// An algorithm that can be run without knowing its types.
pub trait Election: Sync {
    /// The algorithm's entry in the list.
    fn about(&self) -> About;
    /// The prediction of theory.
    fn theory(&self) -> Option<Theory>;
    /// Its known-wrong variants, and what each does wrong.
    fn mutants(&self) -> &'static [(&'static str, &'static str)];
    /// Whether it can be attacked by the open-schedule adversary.
    fn is_uniform(&self) -> bool;
    /// Whether its nodes have ids, so that their order matters.
    fn has_ids(&self) -> bool;
    /// Whether it counts rounds.
    fn in_rounds(&self) -> bool;
    /// Whether its network is a ring.
    fn on_ring(&self) -> bool;
    /// With how many nodes it can be run at most.
    fn most_nodes(&self) -> u32 {
        1 << 30
    }
    /// The ids of an order; best and worst are this algorithm's own.
    fn ids(&self, order: Order, setup: &Setup) -> Result<Vec<u32>, Error>;
    /// Runs it; `progress` is told how many more messages were handled.
    fn run(&self, ids: &[u32], setup: &Setup, progress: &mut dyn FnMut(u64)) -> Result<Outcome, Error>;
    /// Runs it with links that have fixed priorities: some are always slower than others.
    fn run_with(&self, ids: &[u32], priorities: &[u32], setup: &Setup) -> Result<Outcome, Error>;
    /// Runs it and writes all down.
    fn record(&self, ids: &[u32], setup: &Setup) -> Result<(Outcome, Trace), Error>;
    /// Attacks it, or one of its wrong variants.
    fn attack(&self, ids: &[u32], mutant: Option<&str>) -> Result<Siege, Error>;
    /// Runs it on nodes that do not differ.
    fn lock_step(&self, nodes: u32, rounds: u64, seed: u64) -> Result<Steps, Error>;
}
