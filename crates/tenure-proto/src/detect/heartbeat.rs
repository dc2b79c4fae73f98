//! A fixed timeout: no heartbeat for longer than T + D.
//!
//! The other side sends every T, and a message takes at most D. Two arrivals then lie at most T + D
//! apart: the first came at once, the next took all of D. So while the bounds hold the detector
//! makes no mistake, and a crash is noticed at most T + D after the last arrival.
//!
//! ```text
//!   sent       │←──── T ────→│←──── T ────→│
//!   arrives    ╲→│           ╲→│            ╲───── D ────→│
//!   silence                    │←──────── T + D ─────────→│ still trusted; suspected just after
//! ```
//!
//! Where no such bounds are known, [`PhiAccrual`](super::PhiAccrual) learns them from what it sees.

use crate::LocalTime;
use crate::time::LocalSpan;

use super::Detector;

/// Suspects after a silence of more than T + D.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Heartbeat {
    timeout: LocalSpan,
    last: LocalTime,
}

impl Heartbeat {
    /// Watches from `now` on. `period` is T: at most how long the sender waits between two
    /// heartbeats. `delay` is D: at most how long one takes, with the time to handle it. Both as
    /// this host's clock may measure them: where clocks drift by ρ, give `delay` about 2ρT more.
    pub fn new(period: LocalSpan, delay: LocalSpan, now: LocalTime) -> Self {
        let timeout = period.as_nanos().saturating_add(delay.as_nanos());
        Self { timeout: LocalSpan::from_nanos(timeout), last: now }
    }
}

impl Detector for Heartbeat {
    fn heard(&mut self, now: LocalTime) {
        self.last = self.last.max(now);
    }

    fn suspects(&self, now: LocalTime) -> bool {
        now.remaining(self.last) > self.timeout
    }

    fn next_crossing(&self, now: LocalTime) -> Option<LocalTime> {
        // One more: a heartbeat that takes exactly as long as it may is in time.
        let silence = self.timeout.as_nanos().checked_add(1)?;
        let at = LocalTime::from_nanos(self.last.as_nanos().checked_add(silence)?);
        (at > now).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Chance, assert_crossing_is_exact, at, span};
    use super::*;

    #[test]
    fn the_crossing_is_exact_whatever_was_heard() {
        let mut chance = Chance(1);
        for _ in 0..200 {
            let mut now = chance.below(100);
            let mut detector = Heartbeat::new(span(chance.below(40)), span(chance.below(40)), at(now));
            for _ in 0..10 {
                assert_crossing_is_exact(&detector, now, now + 100);
                now += chance.below(100);
                detector.heard(at(now));
            }
        }
    }

    #[test]
    fn no_delay_within_the_bound_is_a_mistake() {
        let (period, delay) = (20, 7);
        let mut chance = Chance(2);
        let mut detector = Heartbeat::new(span(period), span(delay), at(0));
        for beat in 1..10_000 {
            let arrives = beat * period + chance.below(delay + 1);
            assert!(!detector.suspects(at(arrives)), "heartbeat {beat} came within its bound");
            detector.heard(at(arrives));
        }
    }

    #[test]
    fn one_who_was_never_heard_is_suspected() {
        let detector = Heartbeat::new(span(20), span(7), at(1000));
        assert!(!detector.suspects(at(1027)));
        assert!(detector.suspects(at(1028)));
    }

    #[test]
    fn whoever_is_heard_is_trusted_again() {
        let mut detector = Heartbeat::new(span(20), span(7), at(0));
        assert!(detector.suspects(at(500)));
        detector.heard(at(500));
        assert!(!detector.suspects(at(500)));
    }

    #[test]
    fn an_old_reading_changes_nothing() {
        let mut detector = Heartbeat::new(span(20), span(7), at(100));
        let before = detector.clone();
        detector.heard(at(60));
        assert_eq!(detector, before);
    }

    #[test]
    fn a_timeout_beyond_the_end_of_time_never_comes() {
        let mut detector = Heartbeat::new(span(u64::MAX), span(1), at(0));
        assert_eq!(detector.next_crossing(at(0)), None);
        assert!(!detector.suspects(at(u64::MAX)));
        detector = Heartbeat::new(span(10), span(10), at(u64::MAX - 5));
        assert_eq!((detector.next_crossing(at(0)), detector.suspects(at(u64::MAX))), (None, false));
    }
}
