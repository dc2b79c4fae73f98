//! Many seeds on all cores.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::count::Counts;
use crate::property::{Kind, Property, Status, Violation};
use crate::simulate::{Setup, simulate};
use crate::stage::Watch;
use crate::subject::Subject;

/// The outcome of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// How many seeds were run.
    pub schedules: u64,
    /// The seeds that broke a property, in order, with what they broke.
    pub violations: Vec<(u64, Violation)>,
    /// The counts of all runs together.
    pub counts: Counts,
    /// Messages of all runs by kind.
    pub messages: Counts,
    /// Actions of all runs.
    pub events: u64,
    /// Each property with the number of runs in which it held, was seen, could not be judged, or
    /// was broken.
    pub properties: Vec<(Property, [u64; 5])>,
}

impl Swept {
    /// The `sometimes` properties that no run showed: what stands beside them was not put to the
    /// test.
    pub fn unseen(&self) -> impl Iterator<Item = &'static str> + '_ {
        let unseen = |counts: &[u64; 5]| counts[Status::Seen as usize] == 0;
        let never = self.properties.iter().filter(move |(p, c)| p.kind == Kind::Sometimes && unseen(c));
        never.map(|(property, _)| property.name)
    }

    fn merge(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.violations.extend(other.violations);
        self.counts.merge(&other.counts);
        self.messages.merge(&other.messages);
        self.events += other.events;
        for (property, counts) in other.properties {
            self.tally(property, counts);
        }
    }

    fn tally(&mut self, property: Property, counts: [u64; 5]) {
        match self.properties.iter_mut().find(|(known, _)| *known == property) {
            Some((_, known)) => known.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count),
            None => self.properties.push((property, counts)),
        }
    }
}

/// Which seeds, and when to stop.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// Stop at the first violation: the one of the smallest seed among those under way.
    pub stop_at_first: bool,
    /// On how many cores.
    pub threads: usize,
    /// Which violations count, and whether a run goes on after one.
    pub watch: Watch<'a>,
}

/// Seeds that one thread takes at a time.
const CHUNK: u64 = 16;

/// Runs many seeds. The result does not depend on the number of threads. `progress` is told how
/// many are done.
pub fn sweep<S: Subject + Sync>(
    subject: &S,
    setup: &Setup,
    range: Range<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Swept, String> {
    let next = AtomicU64::new(0);
    let stop = AtomicU64::new(range.seeds);
    let merged = Mutex::new(Merged { stop_at_first: range.stop_at_first, ..Merged::default() });
    let work = || -> Result<(), String> {
        loop {
            let from = next.fetch_add(CHUNK, Ordering::Relaxed);
            if from >= stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let until = (from + CHUNK).min(range.seeds);
            let chunk = sweep_chunk(subject, setup, range, from..until)?;
            if range.stop_at_first && !chunk.violations.is_empty() {
                stop.fetch_min(from, Ordering::Relaxed);
            }
            if let Ok(mut merged) = merged.lock() {
                merged.add(from, chunk);
            }
            progress(until - from);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..range.threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a run panicked".to_owned())))
    })?;
    let merged = merged.into_inner().map_err(|_| "a run panicked")?;
    Ok(merged.swept)
}

/// Chunks merged in the order of their seeds. Only those that came too early wait, so that a long
/// sweep stays small.
#[derive(Debug, Default)]
struct Merged {
    stop_at_first: bool,
    swept: Swept,
    /// Where the next chunk begins.
    next: u64,
    waiting: BTreeMap<u64, Swept>,
}

impl Merged {
    fn add(&mut self, from: u64, chunk: Swept) {
        self.waiting.insert(from, chunk);
        while let Some(chunk) = self.waiting.remove(&self.next) {
            // Runs after the first violation were run by chance: on another machine they might not
            // have been.
            if !self.stop_at_first || self.swept.violations.is_empty() {
                self.swept.merge(chunk);
            }
            self.next += CHUNK;
        }
    }
}

fn sweep_chunk<S: Subject>(
    subject: &S,
    setup: &Setup,
    range: Range<'_>,
    seeds: std::ops::Range<u64>,
) -> Result<Swept, String> {
    let mut swept = Swept::default();
    for seed in seeds {
        let seed = range.first.wrapping_add(seed);
        let outcome = simulate(subject, setup, seed, range.watch)?.outcome;
        swept.schedules += 1;
        swept.counts.merge(&outcome.counts);
        swept.messages.merge(&outcome.messages);
        swept.events += outcome.events;
        for (property, status) in outcome.properties {
            let mut counts = [0; 5];
            counts[status as usize] = 1;
            swept.tally(property, counts);
        }
        let found = outcome.violation.is_some();
        let violations =
            if range.watch.go_on { outcome.violations } else { outcome.violation.into_iter().collect() };
        swept.violations.extend(violations.into_iter().map(|violation| (seed, violation)));
        if found && range.stop_at_first {
            break;
        }
    }
    Ok(swept)
}
