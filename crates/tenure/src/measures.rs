//! Counts of leaders, for the metrics of a daemon.
//!
//! A leader that is no member, such as a runner, has no metrics of its own that anybody reads. It
//! tells one member what it has counted since it last told; that member adds it to its own counts.
//! So the sum over all daemons is right, wherever leaders run. A report that is lost is not
//! repeated: nothing is decided by these numbers.

use crate::codec::{DecodeError, Reader, Wire, Writer};
use crate::tally::Tally;
use crate::timing::{Timing, Timings};

/// The most of anything that one report may add: a process that reports wrongly does no more harm
/// than that, and a leader counts less within the second between two reports.
const MOST: u64 = 100_000;

/// The counts of leaders that are no members, as they told this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measures {
    /// Terms that they won.
    pub terms_won: u64,
    /// Terms that they lost, for whatever reason.
    pub terms_lost: u64,
    /// Renewals of their leases.
    pub renewals: u64,
    /// Runs of theirs that failed.
    pub runs_failed: u64,
    /// Durations of the runs by which they began to lead.
    pub acquire_times: Timing,
    /// Durations of the runs that renewed their leases.
    pub renew_times: Timing,
}

impl Measures {
    /// All that a process has counted itself.
    pub(crate) fn of(tally: &Tally, timings: &Timings) -> Self {
        Self {
            terms_won: tally.terms_won,
            terms_lost: tally.terms_lost,
            renewals: tally.renewals,
            runs_failed: tally.runs_failed,
            acquire_times: timings.acquisitions,
            renew_times: timings.renewals,
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add, Timing::plus)
    }

    /// The counts since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub, Timing::since)
    }

    fn with(
        &self,
        other: &Self,
        number: impl Fn(u64, u64) -> u64,
        timing: impl Fn(&Timing, &Timing) -> Timing,
    ) -> Self {
        Self {
            terms_won: number(self.terms_won, other.terms_won),
            terms_lost: number(self.terms_lost, other.terms_lost),
            renewals: number(self.renewals, other.renewals),
            runs_failed: number(self.runs_failed, other.runs_failed),
            acquire_times: timing(&self.acquire_times, &other.acquire_times),
            renew_times: timing(&self.renew_times, &other.renew_times),
        }
    }

    /// Whether a report is small enough to be believed.
    pub(crate) fn is_plausible(&self) -> bool {
        let numbers = [self.terms_won, self.terms_lost, self.renewals, self.runs_failed];
        let counts = [self.acquire_times.count(), self.renew_times.count()];
        numbers.iter().chain(&counts).all(|number| *number <= MOST)
            && self.acquire_times.is_sound()
            && self.renew_times.is_sound()
    }
}

impl Wire for Measures {
    fn write(&self, to: &mut Writer) {
        for number in [self.terms_won, self.terms_lost, self.renewals, self.runs_failed] {
            to.number(number);
        }
        self.acquire_times.write(to);
        self.renew_times.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            terms_won: from.number()?,
            terms_lost: from.number()?,
            renewals: from.number()?,
            runs_failed: from.number()?,
            acquire_times: Timing::read(from)?,
            renew_times: Timing::read(from)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn measures(renewals: u64) -> Measures {
        let mut measures = Measures { terms_won: 1, renewals, ..Measures::default() };
        for number in 0..renewals {
            measures.renew_times.note(Duration::from_millis(number));
        }
        measures
    }

    #[test]
    fn what_is_told_in_parts_adds_up() {
        let (first, all) = (measures(3), measures(10));
        assert_eq!(first.plus(&all.since(&first)), all);
        assert_eq!(all.since(&all), Measures::default());
    }

    #[test]
    fn a_report_is_read_as_it_was_written_and_an_absurd_one_is_not_believed() {
        let mut to = Writer::with_room(64);
        measures(10).write(&mut to);
        let bytes = to.into_bytes();
        assert_eq!(Measures::read(&mut Reader::new(&bytes)).unwrap(), measures(10));
        assert!(measures(10).is_plausible());
        assert!(!Measures { renewals: MOST + 1, ..Measures::default() }.is_plausible());
    }
}
