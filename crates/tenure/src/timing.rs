//! Histograms of durations, as a daemon exports them.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_proto::strong::{Event, GrantRequest, InstanceId, Kind};
use tenure_proto::{GroupId, LocalTime};

/// The bounds of the buckets, in microseconds: from a fast disk to ten seconds.
const MICROSECONDS: [u64; Timing::BUCKETS] = [
    50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000,
];

/// A histogram of durations. Plain numbers that only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// How many are no longer than the bound of the same place, and longer than the one before it.
    within: [u64; Self::BUCKETS],
    count: u64,
    total: Duration,
}

impl Timing {
    /// How many bounds there are.
    pub const BUCKETS: usize = 16;

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All of them together.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// For each bound, rising, how many were no longer than that. Those that were longer than the
    /// last are in [`count`](Self::count) only.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        MICROSECONDS.iter().zip(self.within).scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((Duration::from_micros(*bound), *sum))
        })
    }

    pub(crate) fn note(&mut self, length: Duration) {
        let place = MICROSECONDS.iter().position(|bound| length <= Duration::from_micros(*bound));
        if let Some(place) = place {
            self.within[place] += 1;
        }
        self.count += 1;
        self.total = self.total.saturating_add(length);
    }
}

/// The durations that a node has measured since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timings {
    /// Writes of the store: from the first byte to the end of fsync.
    pub store_writes: Timing,
    /// Runs by which this process began to lead: from the question to the quorum. Those that failed
    /// do not count.
    pub acquisitions: Timing,
    /// Runs that renewed a lease of this process, likewise.
    pub renewals: Timing,
}

/// Times the runs of this process.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    pub(crate) timings: Timings,
    /// The newest run of each group, while it is under way.
    begun: BTreeMap<GroupId, (InstanceId, LocalTime)>,
}

impl Stopwatch {
    pub(crate) fn on_event(&mut self, event: &Event, now: LocalTime) {
        match event {
            Event::Asked(GrantRequest { group, id, start, .. }) => {
                self.begun.insert(*group, (*id, *start));
            }
            Event::Leads { group, id, kind, .. } => {
                let begun = self.begun.remove(group).filter(|(begun, _)| begun == id);
                let Some((_, start)) = begun else { return };
                let timing = match kind {
                    Kind::Acquire => &mut self.timings.acquisitions,
                    Kind::Renew => &mut self.timings.renewals,
                };
                timing.note(Duration::from_nanos(now.remaining(start).as_nanos()));
            }
            Event::Failed { group, .. } | Event::Lost { group, .. } => {
                self.begun.remove(group);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted_up_to_each_bound() {
        let mut timing = Timing::default();
        for micros in [1, 50, 51, 900, 3_000_000, 60_000_000] {
            timing.note(Duration::from_micros(micros));
        }
        let buckets: Vec<(Duration, u64)> = timing.buckets().collect();
        assert_eq!(buckets.len(), Timing::BUCKETS);
        assert_eq!(buckets[0], (Duration::from_micros(50), 2));
        assert_eq!(buckets[1], (Duration::from_micros(100), 3));
        assert_eq!(buckets[4], (Duration::from_millis(1), 4));
        assert_eq!(buckets[15], (Duration::from_secs(10), 5), "one is longer than all bounds");
        assert!(
            buckets.is_sorted_by_key(|(bound, _)| *bound) && buckets.is_sorted_by_key(|(_, count)| *count)
        );
        assert_eq!((timing.count(), timing.total()), (6, Duration::from_micros(63_001_002)));
    }
}
