//! NFD-E: a timeout counted from the expected arrival of the next heartbeat, not from the last
//! arrival.
//!
//! Heartbeat i is sent at i·η on the sender's clock, which nobody else knows. Its arrivals, each
//! less i·η, are spread by the delays alone; the mean of the last w of them, plus (l+1)·η, is when
//! number l+1 should arrive: EA. It is fresh until τ = EA + α, and from then on the process is
//! suspected until a newer one comes that is still fresh.
//!
//! ```text
//!   sent       │←──── η ────→│←──── η ────→│
//!   expected     │             │             │ EA(l+1)
//!   heard         │ l                        │←── α ──→│ τ: suspected from here
//! ```
//!
//! A [fixed timeout](super::Heartbeat) gives a heartbeat that follows a late one too much time, and
//! one that follows a quick one too little. Here how long the last one took changes nothing: a
//! crash is noticed at most η + α and a mean delay later, and, for the same detection time,
//! mistakes are rarer (Chen, Toueg, Aguilera 2002, sections 5 and 6.3).
//!
//! Of the [laws](Detector) it keeps the second and the third. The first holds for heartbeats in
//! time: one that comes when the next is already overdue proves nothing fresh, and the process
//! stays suspected.

use std::collections::VecDeque;

use crate::LocalTime;
use crate::time::LocalSpan;

use super::Detector;

/// Suspects once the next heartbeat is overdue by α.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NfdE {
    period: LocalSpan,
    slack: LocalSpan,
    window: usize,
    /// Arrivals of the last heartbeats, each less its number times η.
    offsets: VecDeque<i128>,
    sum: i128,
    /// The newest number: l.
    newest: Option<u64>,
    /// τ: until when what was heard is fresh.
    fresh_until: LocalTime,
}

impl NfdE {
    /// Watches from `now` on. `period` is η, `slack` is α; EA is the mean over the last `window`
    /// heartbeats, one at least.
    pub fn new(period: LocalSpan, slack: LocalSpan, window: usize, now: LocalTime) -> Self {
        Self {
            period,
            slack,
            window: window.max(1),
            offsets: VecDeque::new(),
            sum: 0,
            newest: None,
            fresh_until: now.after(period).after(slack),
        }
    }

    /// Notes heartbeat `number`, its sequence number. One that is no newer than another changes
    /// nothing.
    pub fn heard_number(&mut self, number: u64, now: LocalTime) {
        if self.newest.is_some_and(|newest| number <= newest) {
            return;
        }
        self.newest = Some(number);
        let offset = i128::from(now.as_nanos()) - self.sent(number);
        self.offsets.push_back(offset);
        self.sum += offset;
        if self.offsets.len() > self.window {
            self.sum -= self.offsets.pop_front().unwrap_or(0);
        }
        let mean = self.sum.div_euclid(self.offsets.len() as i128);
        let expected = mean + self.sent(number.saturating_add(1));
        let overdue = expected + i128::from(self.slack.as_nanos());
        let overdue = u64::try_from(overdue.max(0)).unwrap_or(u64::MAX);
        self.fresh_until = LocalTime::from_nanos(overdue);
    }

    /// When a heartbeat was sent, counted from the first.
    fn sent(&self, number: u64) -> i128 {
        i128::from(self.period.as_nanos()) * i128::from(number)
    }
}

impl Detector for NfdE {
    /// Counts it as the next number: for a link that loses nothing.
    fn heard(&mut self, now: LocalTime) {
        self.heard_number(self.newest.map_or(0, |newest| newest.saturating_add(1)), now);
    }

    fn suspects(&self, now: LocalTime) -> bool {
        now >= self.fresh_until
    }

    fn next_crossing(&self, now: LocalTime) -> Option<LocalTime> {
        (self.fresh_until > now && self.fresh_until.as_nanos() < u64::MAX).then_some(self.fresh_until)
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
            let mut detector = NfdE::new(span(20), span(chance.below(30)), 4, at(0));
            let mut now = 0;
            for number in 1..10 {
                assert_crossing_is_exact(&detector, now, now + 100);
                now = now.max(number * 20 + chance.below(40));
                detector.heard_number(number, at(now));
            }
        }
    }

    #[test]
    fn the_next_is_expected_by_the_mean_of_the_last_ones() {
        let mut detector = NfdE::new(span(100), span(10), 2, at(0));
        detector.heard_number(1, at(130)); // 30 after it was sent, by the sender's clock.
        detector.heard_number(2, at(210)); // 10 after.
        assert_eq!(detector.next_crossing(at(210)), Some(at(300 + 20 + 10)));
        detector.heard_number(3, at(310)); // The first is forgotten.
        assert_eq!(detector.next_crossing(at(310)), Some(at(400 + 10 + 10)));
    }

    #[test]
    fn a_lost_heartbeat_does_not_move_what_is_expected() {
        let mut detector = NfdE::new(span(100), span(50), 8, at(0));
        detector.heard_number(1, at(105));
        detector.heard_number(4, at(405));
        assert_eq!(detector.next_crossing(at(405)), Some(at(555)));
    }

    #[test]
    fn one_that_comes_when_the_next_is_overdue_is_not_fresh() {
        let mut detector = NfdE::new(span(100), span(10), 8, at(0));
        (1..=7).for_each(|number| detector.heard_number(number, at(number * 100)));
        detector.heard_number(8, at(1000));
        assert!(detector.suspects(at(1000)), "number 9 should have come at 925, and 10 more are waited");
        detector.heard_number(10, at(1001));
        assert!(!detector.suspects(at(1001)));
    }

    #[test]
    fn an_old_number_and_one_who_was_never_heard_are_nothing_new() {
        let mut detector = NfdE::new(span(100), span(10), 8, at(0));
        assert_eq!((detector.suspects(at(109)), detector.suspects(at(110))), (false, true));
        detector.heard_number(5, at(500));
        let before = detector.clone();
        detector.heard_number(4, at(510));
        assert_eq!(detector, before);
    }
}
