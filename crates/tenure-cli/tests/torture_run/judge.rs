//! Judges the observations: who worked, and who lived, at the same time as another leadership.

use std::collections::BTreeMap;
use std::fmt::Write;

use tenure_testkit::beats::Beat;

use crate::kinds::Kind;
use crate::resource::{Resource, Tally};
use crate::stage::Whose;

/// One round.
pub(crate) struct Round {
    pub(crate) kind: Kind,
    pub(crate) began: u64,
    /// From the fault to the next leader's first beat.
    pub(crate) gap: Option<u64>,
}

/// The time between two looks of the witness, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blindness {
    pub(crate) median: u64,
    pub(crate) p999: u64,
    pub(crate) most: u64,
}

/// Two leaderships at one time.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    at: u64,
    /// For how long both worked; zero if one was only alive.
    worked: u64,
}

/// Everything.
pub(crate) struct Seen {
    whose: Whose,
    overlaps: Vec<Overlap>,
    rounds: Vec<Round>,
    blindness: Blindness,
    tally: Tally,
    /// From the last instant at which one was seen alive to the first beat of the next: the least.
    closest: Option<u64>,
    processes: usize,
    leaderships: usize,
}

/// One process, with what the witness knows.
#[derive(Clone, Copy)]
struct Life {
    beat: Beat,
    alive: u64,
}

impl Seen {
    pub(crate) fn new(
        whose: Whose,
        beats: Vec<Beat>,
        alive: &[u64],
        rounds: Vec<Round>,
        blindness: Blindness,
        resource: &Resource,
    ) -> Self {
        let mut lives: Vec<Life> = beats
            .iter()
            .zip(alive)
            .map(|(beat, alive)| Life { beat: *beat, alive: (*alive).max(beat.last) })
            .collect();
        lives.sort_by_key(|life| life.beat.first);
        let mut leaderships: Vec<(u64, u64)> = beats.iter().map(|beat| (beat.owner, beat.term)).collect();
        leaderships.sort_unstable();
        leaderships.dedup();
        let (overlaps, closest) = overlaps(&lives);
        let (processes, leaderships) = (lives.len(), leaderships.len());
        Self { whose, overlaps, rounds, blindness, tally: resource.tally(), closest, processes, leaderships }
    }

    /// The kind of round in which an instant fell.
    fn kind_at(&self, at: u64) -> Option<usize> {
        self.rounds.iter().rposition(|round| round.began <= at)
    }

    /// The figures.
    pub(crate) fn table(&self, title: &str) -> String {
        let mut kinds: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
        for (place, round) in self.rounds.iter().enumerate() {
            kinds.entry(round.kind).or_default().push(place);
        }
        let mut text = format!(
            "\n{title}: {} rounds, {} leaderships, {} processes\n",
            self.rounds.len(),
            self.leaderships,
            self.processes
        );
        let _ = writeln!(
            text,
            "  {:<42} {:>6} {:>13} {:>13} {:>15} {:>15}",
            "round", "rounds", "worked at once", "alive at once", "longest overlap", "median take-over"
        );
        for (kind, places) in &kinds {
            let within =
                |overlap: &&Overlap| self.kind_at(overlap.at).is_some_and(|place| places.contains(&place));
            let rounds_with = |worked: bool| {
                let mut hit: Vec<_> = self
                    .overlaps
                    .iter()
                    .filter(within)
                    .filter(|overlap| !worked || overlap.worked > 0)
                    .filter_map(|overlap| self.kind_at(overlap.at))
                    .collect();
                hit.sort_unstable();
                hit.dedup();
                hit.len()
            };
            let longest =
                self.overlaps.iter().filter(within).map(|overlap| overlap.worked).max().unwrap_or(0);
            let mut gaps: Vec<u64> = places.iter().filter_map(|place| self.rounds[*place].gap).collect();
            gaps.sort_unstable();
            let median = gaps.get(gaps.len() / 2).map_or("-".to_owned(), |gap| ms(*gap));
            let _ = writeln!(
                text,
                "  {:<42} {:>6} {:>13} {:>13} {:>15} {:>15}",
                kind.name(),
                places.len(),
                rounds_with(true),
                rounds_with(false),
                ms(longest),
                median
            );
        }
        let Blindness { median, p999, most } = self.blindness;
        let _ = writeln!(
            text,
            "  witness: a look every {} (median), {} (999 of 1000), at worst {}",
            ms(median),
            ms(p999),
            ms(most)
        );
        if let Some(closest) = self.closest {
            let _ = writeln!(
                text,
                "  closest: {} from the last sign of life of one to the first beat of the next",
                ms(closest)
            );
        }
        if self.whose == Whose::Tenure {
            let Tally { admitted, refused, late } = &self.tally;
            let _ = writeln!(
                text,
                "  fence: {admitted} writes admitted, {} refused, {late} late ones admitted",
                refused.len()
            );
        }
        text
    }

    /// The properties of `tenure run`.
    pub(crate) fn must_hold(&self) {
        let kind = |at: u64| self.kind_at(at).map(|place| self.rounds[place].kind);
        let wrong: Vec<_> = self
            .overlaps
            .iter()
            .filter(|overlap| kind(overlap.at) != Some(Kind::StopBoth))
            .map(|overlap| (kind(overlap.at), overlap.worked))
            .collect();
        assert!(wrong.is_empty(), "two commands at once, where the documents promise one: {wrong:?}");
        let stray = self.tally.refused.iter().filter(|at| kind(**at) != Some(Kind::StopBoth)).count();
        assert_eq!((stray, self.tally.late), (0, 0), "late writes");
        assert!(self.tally.admitted > 0 && self.leaderships > self.rounds.len() / 2, "something happened");
        let named = self.rounds.iter().any(|round| round.kind == Kind::StopBoth);
        assert!(
            !named || !self.tally.refused.is_empty(),
            "what the documents name was shown, and the fence refused it"
        );
    }
}

/// All pairs of lives of two leaderships that touch, and how close the others came.
fn overlaps(lives: &[Life]) -> (Vec<Overlap>, Option<u64>) {
    let (mut found, mut closest) = (Vec::new(), None::<u64>);
    for (place, later) in lives.iter().enumerate() {
        let others = lives[..place]
            .iter()
            .filter(|life| (life.beat.owner, life.beat.term) != (later.beat.owner, later.beat.term));
        for earlier in others {
            let start = later.beat.first;
            let worked = earlier.beat.last.min(later.beat.last).saturating_sub(start);
            match start.checked_sub(earlier.alive) {
                Some(distance) => closest = Some(closest.map_or(distance, |least| least.min(distance))),
                None => found.push(Overlap { at: start, worked }),
            }
        }
    }
    (found, closest)
}

fn ms(nanos: u64) -> String {
    format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1000 % 1000)
}
