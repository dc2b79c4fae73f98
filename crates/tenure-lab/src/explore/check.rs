//! One walk from beginning to end: its scope, its verdict, and the way to what is broken.

use tenure_proto::explore::Explore;

use super::search::{Bounds, Ended, Found, Report, search};
use super::trail::{Trail, trail};
use super::world::World;
use super::{Broken, Budget, Clocks, Command, Machine, Scope, Walk, Witness};

/// A scope, for the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeAbout {
    /// Its name.
    pub name: &'static str,
    /// The things that happen in it.
    pub says: &'static str,
}

/// A walk to make, and how far it goes.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The name of the scope; the first one if nothing is said.
    pub scope: Option<String>,
    /// Other rates of clocks than the scope's.
    pub clocks: Option<Clocks>,
    /// Other budgets than the scope's.
    pub budgets: Vec<(Budget, u8)>,
    /// Compare machines that look alike.
    pub tests_views: bool,
    /// Where the walk ends if nothing else ends it.
    pub bounds: Bounds,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { states: u64::MAX, time: None, memory: None }
    }
}

/// The verdict of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every reachable state was met, and each keeps every property.
    Holds,
    /// A property is broken.
    Broken,
    /// Every reachable state was met, but something that must be seen was not: the scope proves
    /// less than it says.
    Unexercised,
    /// A bound ended the walk: nothing is broken so far.
    Bounded,
}

impl Verdict {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken => "broken",
            Self::Unexercised => "unexercised",
            Self::Bounded => "bounded",
        }
    }
}

/// A walk that is over.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The scope that was walked.
    pub scope: ScopeAbout,
    /// Which rates clocks had.
    pub clocks: Clocks,
    /// How much of everything it allowed.
    pub budget: Vec<(Budget, u8)>,
    /// How far the walk came, and what it found.
    pub found: Found,
    /// Its verdict.
    pub verdict: Verdict,
    /// All witnesses: whether each was seen, and whether it must be.
    pub witnesses: Vec<(Witness, bool, bool)>,
    /// How many local states, messages and local steps there were, and how often two machines that
    /// look alike were compared.
    pub sizes: [u64; 4],
    /// The broken property, and the way to it.
    pub counterexample: Option<Counterexample>,
}

/// The broken property, and the way to it.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The property.
    pub broken: Broken,
    /// How many steps lead there.
    pub length: usize,
    /// The scenario, if the laboratory can carry it out; else why it cannot.
    pub trail: Result<Trail, String>,
}

/// Walks a scope. An error says why the walk proves nothing.
pub fn check<W: Walk>(
    walk: W,
    scope: Scope<Command<W>>,
    wanted: &Wanted,
    (protocol, mutant): (&str, Option<&str>),
    report: &mut Report<'_>,
) -> Result<Checked, String>
where
    Machine<W>: Explore,
    W::Subject: Clone,
{
    let scope = wanted.applied(scope);
    let (about, clocks) = (ScopeAbout { name: scope.name, says: scope.says }, scope.clocks);
    let budget = Budget::ALL.into_iter().map(|budget| (budget, scope.budget[budget as usize])).collect();
    let required = scope.witnesses;
    let subject = walk.subject().clone();
    let mut world = World::new(walk, scope, wanted.tests_views)?;
    let start = world.initial();
    let found = search(&mut world, start, &wanted.bounds, report)?;
    let all = world.walk.witnesses().iter().enumerate();
    let witnesses: Vec<(Witness, bool, bool)> = all
        .map(|(bit, witness)| (*witness, found.seen >> bit & 1 == 1, required.contains(&witness.name)))
        .collect();
    let verdict = match found.ended {
        Ended::Broken => Verdict::Broken,
        Ended::Exhausted if witnesses.iter().any(|(_, seen, must)| *must && !seen) => Verdict::Unexercised,
        Ended::Exhausted => Verdict::Holds,
        Ended::States | Ended::Time | Ended::Memory => Verdict::Bounded,
    };
    let sizes = world.sizes();
    let counterexample = found.broken.clone().map(|(broken, acts)| {
        let trail = trail(&mut world, &acts, &broken, (protocol, mutant), &subject);
        Counterexample { broken, length: acts.len(), trail }
    });
    Ok(Checked { scope: about, clocks, budget, found, verdict, witnesses, sizes, counterexample })
}

impl Wanted {
    fn applied<C>(&self, scope: Scope<C>) -> Scope<C> {
        let clocks = self.clocks.unwrap_or(scope.clocks);
        let scope = Scope { clocks, ..scope };
        self.budgets.iter().fold(scope, |scope, (budget, many)| scope.with(*budget, *many))
    }
}
