//! Breadth first, layer by layer: the first path that breaks something is a shortest one.

use std::time::{Duration, Instant};

use tenure_proto::explore::Explore;

use super::seen::Seen;
use super::state::State;
use super::world::{Act, Successor, World};
use super::{Broken, Machine, Walk};

/// Where a search ends if nothing else ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most states.
    pub states: u64,
    /// The longest time.
    pub time: Option<Duration>,
    /// The most memory for states, in bytes.
    pub memory: Option<u64>,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many states were met.
    pub states: u64,
    /// How many of them have not been left yet.
    pub frontier: u64,
    /// The layer: how many things have happened.
    pub depth: u32,
    /// How long it has taken.
    pub time: Duration,
    /// How much memory the states took at most, in bytes.
    pub memory: u64,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every reachable state was met.
    Exhausted,
    /// Something is broken.
    Broken,
    /// As many states as were allowed.
    States,
    /// As long as was allowed.
    Time,
    /// As much memory as was allowed.
    Memory,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// How far it came.
    pub progress: Progress,
    /// Why it ended.
    pub ended: Ended,
    /// How many steps were tried.
    pub steps: u64,
    /// The witnesses that were seen, as bits.
    pub seen: u32,
    /// The first thing that is broken, and the way to it.
    pub broken: Option<(Broken, Vec<Act>)>,
}

/// Is told now and then how far a search has come.
pub type Report<'a> = dyn FnMut(Progress) + 'a;

/// How many states are left between two looks at the clock.
const LOOK: u64 = 4096;

struct Search<G> {
    seen: Seen,
    /// Of each state, by number: the one before it, and which of its successors it is.
    parents: Vec<(u32, u16)>,
    layer: Vec<(u32, State<G>)>,
    /// How much room the layer takes that is being left.
    leaving: usize,
    next: Vec<(u32, State<G>)>,
    depth: u32,
    steps: u64,
    witnessed: u32,
    begun: Instant,
    /// The most memory at the end of a layer, in bytes.
    peak: u64,
}

impl<G: Copy> Search<G> {
    #[expect(clippy::disallowed_methods, reason = "a walk may have so much real time; no machine sees it")]
    fn new(start: State<G>, fingerprint: u64) -> Self {
        let mut seen = Seen::new();
        seen.insert(fingerprint);
        Self {
            seen,
            parents: vec![(0, 0)],
            layer: vec![(0, start)],
            leaving: 0,
            next: Vec::new(),
            depth: 0,
            steps: 0,
            witnessed: 0,
            begun: Instant::now(),
            peak: 0,
        }
    }

    fn progress(&self) -> Progress {
        let states = self.leaving + self.next.capacity();
        let bytes = self.parents.capacity() * size_of::<(u32, u16)>() + states * size_of::<(u32, State<G>)>();
        let (table, growing) = self.seen.bytes();
        let table = if self.seen.is_full() { growing } else { table };
        Progress {
            states: self.parents.len() as u64,
            frontier: self.next.len() as u64,
            depth: self.depth,
            time: self.begun.elapsed(),
            memory: self.peak.max((bytes + table) as u64),
        }
    }

    /// The bound that is reached, if any.
    fn bound(&self, bounds: &Bounds) -> Option<Ended> {
        let progress = self.progress();
        if progress.states >= bounds.states.min(u64::from(u32::MAX)) {
            Some(Ended::States)
        } else if bounds.time.is_some_and(|time| progress.time >= time) {
            Some(Ended::Time)
        } else if bounds.memory.is_some_and(|memory| progress.memory >= memory) {
            Some(Ended::Memory)
        } else {
            None
        }
    }

    /// The numbers of the successors that lead to a state.
    fn way_to(&self, mut at: u32, last: u16) -> Vec<u16> {
        let mut way = vec![last];
        while at != 0 {
            let (parent, which) = self.parents[at as usize];
            way.push(which);
            at = parent;
        }
        way.reverse();
        way
    }
}

/// Walks all states from the initial one, within bounds. An error says why the walk proves nothing.
pub fn search<W: Walk>(
    world: &mut World<W>,
    start: State<W::Ghost>,
    bounds: &Bounds,
    report: &mut Report<'_>,
) -> Result<Found, String>
where
    Machine<W>: Explore,
{
    let mut search = Search::new(start, world.fingerprint(&start));
    let mut successors = Vec::new();
    let mut ended = Ended::Exhausted;
    let mut broken = None;
    'layers: while !search.layer.is_empty() {
        search.leaving = search.layer.capacity();
        for (done, (number, state)) in std::mem::take(&mut search.layer).into_iter().enumerate() {
            world.successors(&state, &mut successors);
            if let Some(wrong) = expand(world, &mut search, number, &successors) {
                (ended, broken) = (Ended::Broken, Some(wrong));
                break 'layers;
            }
            if (done as u64).is_multiple_of(LOOK) {
                report(search.progress());
                if let Some(bound) = search.bound(bounds) {
                    ended = bound;
                    break 'layers;
                }
            }
            if world.trouble().is_some() {
                break 'layers;
            }
        }
        search.peak = search.progress().memory;
        search.layer = std::mem::take(&mut search.next);
        search.depth += u32::from(!search.layer.is_empty());
    }
    if let Some(trouble) = world.trouble() {
        return Err(trouble.to_owned());
    }
    let broken = broken.map(|(wrong, at, last)| (wrong, retrace(world, start, &search.way_to(at, last))));
    let (progress, steps, seen) = (search.progress(), search.steps, search.witnessed);
    Ok(Found { progress, ended, steps, seen, broken })
}

/// Adds the successors of a state that were not met before; the first that breaks something, if
/// any does.
fn expand<W: Walk>(
    world: &World<W>,
    search: &mut Search<W::Ghost>,
    number: u32,
    successors: &[Successor<W::Ghost>],
) -> Option<(Broken, u32, u16)>
where
    Machine<W>: Explore,
{
    for (which, successor) in successors.iter().enumerate() {
        let which = u16::try_from(which).unwrap_or(u16::MAX);
        search.steps += 1;
        search.witnessed |= successor.seen;
        if let Some(broken) = &successor.broken {
            return Some(((**broken).clone(), number, which));
        }
        if search.seen.insert(world.fingerprint(&successor.state)) {
            let new = u32::try_from(search.parents.len()).unwrap_or(u32::MAX);
            search.parents.push((number, which));
            search.next.push((new, successor.state));
        }
    }
    None
}

/// The actions on the way that these successors make.
fn retrace<W: Walk>(world: &mut World<W>, start: State<W::Ghost>, way: &[u16]) -> Vec<Act>
where
    Machine<W>: Explore,
{
    let (mut state, mut acts, mut successors) = (start, Vec::new(), Vec::new());
    for which in way {
        world.successors(&state, &mut successors);
        let Some(successor) = successors.get(usize::from(*which)) else { break };
        acts.push(successor.act);
        state = successor.state;
    }
    acts
}
