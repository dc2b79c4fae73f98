//! How a node's own clock lies on the common one.
//!
//! A life has a list of pairs: the own clock showed this while the common one went from here to
//! there. A reading between two pairs, or after the last, is reckoned from the last pair before,
//! and never put after the next.
//!
//! # Which way it errs
//!
//! *The end of a belief* (E, by readings) is reckoned as if both clocks had one rate, from the
//! earlier reading. With drift bounded by ρ that is never too late to accuse anybody: E lies (1-ρ)δ
//! after the start by the own clock, so wherever between start and E the last pair lies, the end
//! that is reckoned from it lies at most δ after the start; and until then all grants stand. With
//! skew bounded by Δ the own clock may gain Δ on the common one meanwhile; so much is taken off.
//!
//! *The end of a promise* (F) is known to lie between two instants: as far from the pair as a legal
//! clock may need, at most and at least. A reading is the last tick of its clock, which may be
//! almost a tick further.
//!
//! Where all pairs of a life have one and the same distance, the two clocks are one, and everything
//! is exact.

use tenure_proto::LocalTime;
use tenure_proto::time::{Bound, Clockwork, LocalSpan};
use tenure_proto::trace::Common;

/// A reading of the own clock, and when that was on the common one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    own: u64,
    from: u64,
    to: u64,
}

/// How far the own clock may run away from the common one between two pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rate {
    /// Not at all: they are one clock.
    Same,
    /// As far as the protocol allows.
    Bounded(Clockwork),
}

/// The clock of one life.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    pairs: Vec<Pair>,
    /// Where the own clock went back: the positions of the first pairs afterwards.
    breaks: Vec<usize>,
    /// Where the life said that its machine had slept, and that what its clock had counted
    /// meanwhile means nothing.
    jumps: Vec<usize>,
    rate: Rate,
}

impl Clock {
    /// From what a life has read, in order, and what the protocol assumes of clocks.
    pub(super) fn new(readings: impl Iterator<Item = (LocalTime, Common)>, legal: Clockwork) -> Self {
        let pair = |(own, common): (LocalTime, Common)| Pair {
            own: own.as_nanos(),
            from: common.from,
            to: common.to,
        };
        let pairs: Vec<Pair> = readings.map(pair).collect();
        let went_back = |i: &usize| pairs[*i].own < pairs[*i - 1].own;
        let breaks = (1..pairs.len()).filter(went_back).collect();
        let distance = |pair: &Pair| i128::from(pair.own) - i128::from(pair.from);
        let same = |pair: &Pair| pair.from == pair.to && Some(distance(pair)) == pairs.first().map(distance);
        let rate = if pairs.iter().all(same) { Rate::Same } else { Rate::Bounded(legal) };
        Self { pairs, breaks, jumps: Vec::new(), rate }
    }

    /// The same, of a life that said at these pairs that its clock had been disturbed.
    pub(super) fn disturbed_at(self, jumps: Vec<usize>) -> Self {
        Self { jumps, ..self }
    }

    /// Whether the own clock never went back, and was never disturbed.
    pub(super) fn is_steady(&self) -> bool {
        self.breaks.is_empty() && self.jumps.is_empty()
    }

    /// The last pair before the clock shows `time`, and the first with which it does, if there is
    /// one: from `at` on or, if the clock shows as much there already, before it.
    fn around(&self, at: usize, time: u64) -> (Pair, Option<Pair>) {
        // A length counted from before a disturbance lasts as long as it was meant to, whatever the
        // clock shows afterwards.
        let jump = self.jumps.iter().find(|jump| **jump > at && self.pairs[**jump - 1].own < time);
        if let Some(jump) = jump.filter(|_| self.pairs[at].own < time) {
            return (self.pairs[jump - 1], None);
        }
        if self.pairs[at].own >= time {
            let start = self.breaks.iter().copied().rfind(|start| *start <= at).unwrap_or(0);
            let reached = start + self.pairs[start..at].partition_point(|pair| pair.own < time);
            return (self.pairs[reached.saturating_sub(1).max(start)], Some(self.pairs[reached]));
        }
        let ends = self.breaks.iter().copied().filter(|end| *end > at).chain([self.pairs.len()]);
        let mut from = at;
        for end in ends {
            let reached = from + self.pairs[from..end].partition_point(|pair| pair.own < time);
            if reached < end {
                return (self.pairs[reached.saturating_sub(1).max(at)], Some(self.pairs[reached]));
            }
            from = end;
        }
        (self.pairs[self.pairs.len() - 1], None)
    }

    /// When readings are no longer below `time`, on the common clock, for one who looks at pair
    /// `at`: at the earliest.
    pub(super) fn stops(&self, at: usize, time: LocalTime) -> u64 {
        let (last, next) = self.around(at, time.as_nanos());
        let left = time.as_nanos().saturating_sub(last.own);
        let off = match self.rate {
            Rate::Same => 0,
            Rate::Bounded(Clockwork { bound: Bound::Drift(_), tick }) => tick.as_nanos() - 1,
            Rate::Bounded(Clockwork { bound: Bound::Skew(skew), tick }) => skew.plus(tick).as_nanos() - 1,
        };
        let end = last.from.saturating_add(left.saturating_sub(off));
        let end = next.map_or(end, |next| end.min(next.from));
        // By a reading below `time` it goes on, if only by one nanosecond.
        if last.own < time.as_nanos() { end.max(last.from.saturating_add(1)) } else { end }
    }

    /// When the clock shows `time`, for one who looks at pair `at`: not before the one, not after
    /// the other.
    pub(super) fn ends(&self, at: usize, time: LocalTime) -> (u64, u64) {
        let (last, next) = self.around(at, time.as_nanos());
        let (least, most) = self.real(time.as_nanos().saturating_sub(last.own));
        let (earliest, latest) = (last.from.saturating_add(least), last.to.saturating_add(most));
        match next {
            Some(next) => (earliest.min(next.from), latest.min(next.to)),
            None => (earliest, latest),
        }
    }

    /// When the clock of a life that never went back showed `time`, before, between or after its
    /// pairs.
    pub(super) fn between(&self, time: LocalTime) -> (u64, u64) {
        let first = self.pairs[0];
        if time.as_nanos() >= first.own {
            return self.ends(0, time);
        }
        let (least, most) = self.real(first.own - time.as_nanos());
        (first.from.saturating_sub(most), first.to.saturating_sub(least))
    }

    /// How long it takes on the common clock, at least and at most, until the own clock shows so
    /// much more than its last reading.
    fn real(&self, shown: u64) -> (u64, u64) {
        let Rate::Bounded(Clockwork { bound, tick }) = self.rate else { return (shown, shown) };
        let most = LocalSpan::from_nanos(shown);
        let least = LocalSpan::from_nanos(shown.saturating_sub(tick.as_nanos() - 1));
        match bound {
            Bound::Drift(drift) => (drift.least_real(least).as_nanos(), drift.longest_real(most).as_nanos()),
            Bound::Skew(skew) => (least.minus(skew).as_nanos(), most.plus(skew).as_nanos()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_proto::time::Drift;

    fn clock(bound: Bound, pairs: &[(u64, u64, u64)]) -> Clock {
        let readings = pairs
            .iter()
            .map(|(own, from, to)| (LocalTime::from_nanos(*own), Common { from: *from, to: *to }));
        Clock::new(readings, Clockwork { bound, tick: LocalSpan::from_nanos(1) })
    }

    fn drift(ppm: u32) -> Bound {
        Bound::Drift(Drift::from_ppm(ppm).unwrap())
    }

    fn at(nanos: u64) -> LocalTime {
        LocalTime::from_nanos(nanos)
    }

    #[test]
    fn one_clock_is_exact_before_between_and_after_its_pairs() {
        let clock = clock(drift(100_000), &[(1000, 5000, 5000), (1500, 5500, 5500)]);
        for (own, common) in [(900, 4900), (1000, 5000), (1200, 5200), (1500, 5500), (9000, 13_000)] {
            assert_eq!(clock.between(at(own)), (common, common), "{own}");
        }
        assert_eq!((clock.stops(0, at(1200)), clock.stops(1, at(2000))), (5200, 6000));
    }

    #[test]
    fn a_promise_lies_between_what_the_fastest_and_the_slowest_clock_would_need() {
        let clock = clock(drift(100_000), &[(1000, 5000, 5010), (2000, 6100, 6110)]);
        assert_eq!(clock.ends(1, at(2990)), (6100 + 900, 6110 + 1100));
        assert_eq!(clock.ends(0, at(1110)), (5100, 5010 + 123), "between two pairs the first counts");
        assert_eq!(clock.ends(0, at(2000)).1, 6110, "but never after the second");
    }

    #[test]
    fn a_belief_ends_by_one_rate_and_never_after_a_pair_that_is_past_it() {
        let clock = clock(drift(100_000), &[(1000, 5000, 5010), (2000, 5900, 5910)]);
        assert_eq!(clock.stops(0, at(1400)), 5400);
        assert_eq!(clock.stops(0, at(1990)), 5900, "the clock was fast, and past it by then");
        assert_eq!(clock.stops(1, at(2500)), 6400);
    }

    #[test]
    fn where_skew_is_bounded_so_much_is_taken_off() {
        let clock = clock(Bound::Skew(LocalSpan::from_nanos(100)), &[(1000, 5000, 5010), (2000, 6001, 6002)]);
        assert_eq!(clock.stops(1, at(2500)), 6401);
        assert_eq!(clock.stops(1, at(2050)), 6002, "by a reading below it one goes on");
        assert_eq!(clock.ends(1, at(2500)), (6401, 6602));
    }

    #[test]
    fn what_is_past_is_found_between_earlier_pairs() {
        let clock = clock(drift(0), &[(1000, 5000, 5000), (1500, 5501, 5501), (1700, 5701, 5701)]);
        assert_eq!((clock.ends(2, at(1100)), clock.ends(1, at(1100))), ((5100, 5100), (5100, 5100)));
        assert_eq!(clock.ends(2, at(900)), (5000, 5000), "before the first pair it is not known");
    }

    #[test]
    fn a_clock_that_went_back_reaches_a_time_later() {
        let clock =
            clock(drift(0), &[(1000, 5000, 5000), (1400, 5400, 5400), (900, 5500, 5500), (1600, 6200, 6200)]);
        assert!(!clock.is_steady());
        assert_eq!(clock.stops(0, at(1500)), 6100, "counted from the pair after it went back");
        assert_eq!(clock.stops(0, at(1300)), 5300, "it had been there before");
    }
}
