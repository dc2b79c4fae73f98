//! Histograms of durations, as a daemon exports them.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_proto::strong::{Event, GrantRequest, InstanceId, Kind};
use tenure_proto::{GroupId, LocalTime};

use crate::codec::{DecodeError, Reader, Wire, Writer};

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

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = *self;
        for (place, more) in sum.within.iter_mut().zip(other.within) {
            *place = place.saturating_add(more);
        }
        sum.count = sum.count.saturating_add(other.count);
        sum.total = sum.total.saturating_add(other.total);
        sum
    }

    /// Those that were noted since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut rest = *self;
        for (place, before) in rest.within.iter_mut().zip(earlier.within) {
            *place = place.saturating_sub(before);
        }
        rest.count = rest.count.saturating_sub(earlier.count);
        rest.total = rest.total.saturating_sub(earlier.total);
        rest
    }

    /// Whether the buckets hold no more than were counted.
    pub(crate) fn is_sound(&self) -> bool {
        self.within
            .iter()
            .try_fold(0_u64, |sum, more| sum.checked_add(*more))
            .is_some_and(|sum| sum <= self.count)
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

impl Wire for Timing {
    fn write(&self, to: &mut Writer) {
        self.within.iter().for_each(|count| to.number(*count));
        to.number(self.count);
        to.number(u64::try_from(self.total.as_nanos()).unwrap_or(u64::MAX));
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut timing = Self::default();
        for place in &mut timing.within {
            *place = from.number()?;
        }
        timing.count = from.number()?;
        timing.total = Duration::from_nanos(from.number()?);
        Ok(timing)
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
