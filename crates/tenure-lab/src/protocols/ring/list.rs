//! Every algorithm by name.

use std::marker::PhantomData;

use tenure_proto::classic::clockwise::Clockwise;
use tenure_proto::classic::franklin::Franklin;
use tenure_proto::classic::higham_przytycka::HighamPrzytycka;
use tenure_proto::classic::itai_rodeh::ItaiRodeh;
use tenure_proto::classic::lelann::LeLann;
use tenure_proto::classic::peterson::Peterson;
use tenure_proto::classic::radius_growth::{Slide, Swallow};
use tenure_proto::classic::star;
use tenure_proto::classic::time_slice::TimeSlice;
use tenure_proto::classic::variable_speeds::VariableSpeeds;
use tenure_proto::classic::{Knows, Node};

use super::adversary::{self, Siege};
use super::cheat::AssumesFour;
use super::laps;
use super::links::{self, Schedule};
use super::lockstep::{self, Automaton, Steps};
use super::outcome::Winner;
use super::rounds::{self, Start};
use super::watch::{Trace, Watch};
use super::wiring::{Ring, Star, Wiring};
use super::{Delays, Election, Order, Outcome, Setup, Theory, Waking};
use crate::catalogue::{About, Error};
use crate::random::Random;

/// All algorithms, the simplest first.
#[inline(never)] // See `catalogue::all`.
pub fn all() -> &'static [&'static dyn Election] {
    &[
        &CLOCKWISE,
        &LELANN,
        &RADIUS_GROWTH,
        &RADIUS_GROWTH_SWALLOW,
        &FRANKLIN,
        &PETERSON,
        &HIGHAM_PRZYTYCKA,
        &TIME_SLICE,
        &VARIABLE_SPEEDS,
        &ITAI_RODEH,
        &STAR,
        &LOCK_STEP,
    ]
}

/// The algorithm of a name, or the nearest names.
pub fn find(name: &str) -> Result<&'static dyn Election, Error> {
    let found = all().iter().find(|election| election.about().name == name);
    let names = all().iter().map(|election| election.about().name);
    found.copied().ok_or_else(|| Error::unknown("algorithm", name, names))
}

/// An algorithm of one's own, behind the same face as those that are listed.
pub fn own<N: Node>(name: &'static str, winner: Winner) -> impl Election {
    Entry::<N, Ring> { winner, ..entry(name, "", "", "") }
}

/// An algorithm and what is known of it.
struct Entry<N, W> {
    about: About,
    winner: Winner,
    /// The orders with the fewest and with very many messages.
    cases: Option<(Order, Order)>,
    theory: Option<Theory>,
    /// Whether it runs on a star.
    star: bool,
    mutants: &'static [(&'static str, &'static str)],
    node: PhantomData<fn() -> (N, W)>,
}

const fn entry<N, W>(
    name: &'static str,
    model: &'static str,
    promises: &'static str,
    source: &'static str,
) -> Entry<N, W> {
    Entry {
        about: About { name, model, promises, source },
        winner: Winner::Largest,
        cases: None,
        theory: None,
        star: false,
        mutants: &[],
        node: PhantomData,
    }
}

/// Drawn from a number: what it does is told by the one id that all nodes have.
const AUTOMATON: &str = "automaton";

const fn bound(says: &'static str, messages: fn(f64) -> f64) -> Option<Theory> {
    Some(Theory { says, messages, bound: true })
}

const fn average(says: &'static str, messages: fn(f64) -> f64) -> Option<Theory> {
    Some(Theory { says, messages, bound: false })
}

const CLOCKWISE: Entry<Clockwise, Ring> = Entry {
    cases: Some((Order::Ascending, Order::Descending)),
    theory: average("n·H_n on average", |n| n * harmonic(n)),
    ..entry(
        "clockwise",
        "asynchronous ring, one way, links keep the order; ids; uniform",
        "the largest id leads; n(n+1)/2 messages at most, 2n-1 at least, n·H_n on average; time n",
        "Chang, Roberts (1979); the lecture's Algorithm Clockwise",
    )
};

const LELANN: Entry<LeLann, Ring> = Entry {
    theory: bound("n² always", |n| n * n),
    mutants: &[("assumes-four", "takes every ring for one of four: who has seen four ids decides")],
    ..entry(
        "lelann",
        "asynchronous ring, one way, links keep the order; ids; uniform",
        "the largest id leads; n² messages; time n",
        "Le Lann (1977)",
    )
};

const RADIUS_GROWTH: Entry<Slide, Ring> = Entry {
    cases: Some((Order::Ascending, Order::BitReversal)),
    theory: bound("8n(1+⌈log2 n⌉)", |n| 8.0 * n * (1.0 + ceil_log2(n))),
    ..entry(
        "radius-growth",
        "asynchronous ring, both ways, links keep the order; ids; uniform",
        "the largest id leads; at most 8n(1+⌈log2 n⌉) messages; time 2(2^⌈log2 n⌉-1)+n",
        "Hirschberg, Sinclair (1980); the lecture's Radius Growth: hopeless probes come back",
    )
};

const RADIUS_GROWTH_SWALLOW: Entry<Swallow, Ring> = Entry {
    theory: bound("8n(1+⌈log2 n⌉)", |n| 8.0 * n * (1.0 + ceil_log2(n))),
    ..entry(
        "radius-growth-swallow",
        "asynchronous ring, both ways, links keep the order; ids; uniform",
        "as radius-growth, with fewer messages",
        "Hirschberg, Sinclair (1980), as in textbooks: hopeless probes are swallowed",
    )
};

const FRANKLIN: Entry<Franklin, Ring> = Entry {
    theory: bound("2n(⌊log2 n⌋+1)", |n| 2.0 * n * (floor_log2(n) + 1.0)),
    ..entry(
        "franklin",
        "asynchronous ring, both ways, links keep the order; ids; uniform",
        "the largest id leads; at most 2n(⌊log2 n⌋+1) messages",
        "Franklin (1982)",
    )
};

const PETERSON: Entry<Peterson, Ring> = Entry {
    theory: bound("2n(⌊log2 n⌋+1)", |n| 2.0 * n * (floor_log2(n) + 1.0)),
    ..entry(
        "peterson",
        "asynchronous ring, one way, links keep the order; ids; uniform",
        "the largest id leads; at most 2n(⌊log2 n⌋+1) messages",
        "Dolev, Klawe, Rodeh (1982); Peterson (1982)",
    )
};

const HIGHAM_PRZYTYCKA: Entry<HighamPrzytycka, Ring> = Entry {
    winner: Winner::Any,
    theory: bound("1.271 n log2 n + O(n)", |n| 1.271 * n * log2(n) + 3.0 * n),
    ..entry(
        "higham-przytycka",
        "asynchronous ring, one way, links keep the order; ids; uniform",
        "one id leads, not always the largest; 1.271 n log2 n + O(n) messages",
        "Higham, Przytycka (1996)",
    )
};

const TIME_SLICE: Entry<TimeSlice, Ring> = Entry {
    winner: Winner::Smallest,
    theory: bound("none: silence elects", |_| 0.0),
    ..entry(
        "time-slice",
        "ring in rounds, one way, common start; ids; n known",
        "the smallest id leads; n messages; n·min+n rounds",
        "the lecture's Sync Leader Election; Lynch, TimeSlice",
    )
};

const VARIABLE_SPEEDS: Entry<VariableSpeeds, Ring> = Entry {
    winner: Winner::Smallest,
    theory: bound("2n", |n| 2.0 * n),
    ..entry(
        "variable-speeds",
        "ring in rounds, one way, common start; ids; uniform",
        "the smallest id leads; fewer than 2n messages, and n to tell; n·2^min rounds",
        "Frederickson, Lynch (1987); Vitányi (1984)",
    )
};

const ITAI_RODEH: Entry<ItaiRodeh, Ring> = Entry {
    winner: Winner::Any,
    theory: average("n log2 n, about, expected", |n| n * log2(n)),
    ..entry(
        "itai-rodeh",
        "asynchronous ring, one way, links keep the order; anonymous; n known; coins",
        "exactly one leader whenever it ends, and it ends with probability 1",
        "Itai, Rodeh (1981, 1990)",
    )
};

const STAR: Entry<star::Star, Star> = Entry {
    winner: Winner::Any,
    star: true,
    theory: bound("none: the ports tell", |_| 0.0),
    ..entry(
        "star",
        "asynchronous star; anonymous; uniform; from three nodes on",
        "the centre leads; n-1 messages; time 1. Two nodes cannot elect: they stay equal",
        "the lecture: how to elect a leader in a star?",
    )
};

const LOCK_STEP: Entry<Automaton, Ring> = Entry {
    winner: Winner::Any,
    ..entry(
        AUTOMATON,
        "anonymous ring in lock step; any deterministic automaton, drawn from the seed",
        "impossible: all states stay equal, so that nobody leads or all do",
        "the lecture's theorem on anonymous rings (Angluin 1980)",
    )
};

impl<N: Node, W: Wiring> Entry<N, W> {
    fn check(&self, ids: &[u32], setup: &Setup) -> Result<(), Error> {
        let name = self.about.name;
        if ids.is_empty() || ids.len() > 1 << 30 {
            return Err(Error::new(format!("{name} needs 1 to {} nodes: --nodes N", 1 << 30)));
        }
        if N::ROUNDS && setup.wake != Waking::All {
            return Err(Error::new(format!("{name} needs a common start: --set wake=all")));
        }
        if (N::ROUNDS || self.star) && setup.delays != Delays::Unit {
            return Err(Error::new(format!("{name} is run in rounds alone: --set delays=unit")));
        }
        Ok(())
    }

    fn with<V: Watch>(&self, ids: &[u32], setup: &Setup, watch: &mut V) -> Result<Outcome, Error> {
        self.check(ids, setup)?;
        let mut coins = Random::stream(setup.seed, "coins");
        let wake = setup.wake.list(setup);
        let start = Start { ids, wake: &wake, chance: &mut coins, limit: setup.limit, winner: self.winner };
        let size = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        Ok(match setup.delays {
            Delays::Unit if N::ONE_WAY && !self.star && !V::SEES_ALL && setup.wake == Waking::All => {
                laps::run::<N, V>(start, watch)
            }
            Delays::Unit => rounds::run::<N, W, V>(W::of(size), start, watch),
            other => links::run::<N>(other.schedule(setup.seed), start, watch.trace()),
        })
    }
}

/// Passes progress on.
struct Told<'a>(&'a mut dyn FnMut(u64));

impl Watch for Told<'_> {
    fn progress(&mut self, messages: u64) {
        (self.0)(messages);
    }
}

impl<N: Node, W: Wiring> Election for Entry<N, W> {
    fn about(&self) -> About {
        self.about
    }

    fn theory(&self) -> Option<Theory> {
        self.theory
    }

    fn mutants(&self) -> &'static [(&'static str, &'static str)] {
        self.mutants
    }

    fn is_uniform(&self) -> bool {
        self.has_ids() && !<N::Knows as Knows>::SIZE && !N::ROUNDS && self.about.name != AUTOMATON
    }

    fn has_ids(&self) -> bool {
        <N::Knows as Knows>::ID
    }

    fn in_rounds(&self) -> bool {
        N::ROUNDS
    }

    fn on_ring(&self) -> bool {
        !self.star
    }

    fn ids(&self, order: Order, setup: &Setup) -> Result<Vec<u32>, Error> {
        let order = match (order, self.cases) {
            (Order::Best, Some((best, _))) => best,
            (Order::Worst, Some((_, worst))) => worst,
            (Order::Best | Order::Worst, None) => {
                let what = format!(
                    "no order is known to be the {} for {}: try --order random, or --order all with few nodes",
                    order.name(),
                    self.about.name
                );
                return Err(Error::new(what));
            }
            (order, _) => order,
        };
        Ok(order.ids(setup.nodes, setup.first_id, setup.seed))
    }

    fn run(&self, ids: &[u32], setup: &Setup, progress: &mut dyn FnMut(u64)) -> Result<Outcome, Error> {
        self.with(ids, setup, &mut Told(progress))
    }

    fn run_with(&self, ids: &[u32], priorities: &[u32], setup: &Setup) -> Result<Outcome, Error> {
        self.check(ids, setup)?;
        if N::ROUNDS || self.star {
            return Err(Error::new(format!(
                "{} is run in rounds alone: no schedule to choose",
                self.about.name
            )));
        }
        let mut coins = Random::stream(setup.seed, "coins");
        let wake = setup.wake.list(setup);
        let start = Start { ids, wake: &wake, chance: &mut coins, limit: setup.limit, winner: self.winner };
        Ok(links::run::<N>(Schedule::Priority(priorities.to_vec()), start, None))
    }

    fn record(&self, ids: &[u32], setup: &Setup) -> Result<(Outcome, Trace), Error> {
        let mut trace = Trace::default();
        let outcome = self.with(ids, setup, &mut trace)?;
        Ok((outcome, trace))
    }

    fn attack(&self, ids: &[u32], mutant: Option<&str>) -> Result<Siege, Error> {
        match mutant {
            None => adversary::attack::<N>(ids, self.winner),
            Some("assumes-four") if self.mutants.iter().any(|(name, _)| *name == "assumes-four") => {
                adversary::attack::<AssumesFour>(ids, self.winner)
            }
            Some(name) => Err(Error::unknown("mutant", name, ["assumes-four (of lelann)"].into_iter())),
        }
    }

    fn lock_step(&self, nodes: u32, rounds: u64, seed: u64) -> Result<Steps, Error> {
        if nodes == 0 || nodes > 100_000 {
            return Err(Error::new("lock step is for 1 to 100000 nodes"));
        }
        // The one id that all have; for an automaton, its table.
        let id = u32::try_from(seed & 0xffff_ffff).unwrap_or(0);
        let id = if self.about.name == AUTOMATON { id } else { 1 };
        Ok(lockstep::run::<N, W>(W::of(nodes), id, rounds, seed))
    }
}

fn log2(n: f64) -> f64 {
    n.max(1.0).log2()
}

fn ceil_log2(n: f64) -> f64 {
    (log2(n) - 1e-9).ceil()
}

fn floor_log2(n: f64) -> f64 {
    (log2(n) + 1e-9).floor()
}

/// H_n, by its first terms or by Euler's constant.
fn harmonic(n: f64) -> f64 {
    if n < 1000.0 {
        let (mut sum, mut k) = (0.0, 1.0);
        while k <= n {
            sum += 1.0 / k;
            k += 1.0;
        }
        return sum;
    }
    n.ln() + 0.577_215_664_901_532_9 + 1.0 / (2.0 * n) - 1.0 / (12.0 * n * n)
}
