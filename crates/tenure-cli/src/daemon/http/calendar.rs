//! The time by which tokens expire.
//!
//! Expiry is written as a date, and the calendar of a machine may be set to any date by mistake.
//! **A calendar that jumped must not end all tokens at once**, nor bring expired ones back. So the
//! calendar is compared with the boot clock, which nobody can set: since the daemon started, both
//! must have gone on by the same length, within an hour.
//!
//! ```text
//! estimate = calendar at the start + boot clock now - boot clock at the start
//! now      = the calendar, if it differs from the estimate by at most an hour, else the estimate
//! ```
//!
//! An hour allows for corrections by a time service, and is short against the life of a token. The
//! start is not moved by small corrections, so that many of them do not add up unseen. Once the
//! calendar is right, HUP takes it over.
//!
//! A daemon that starts cannot see whether the calendar jumped before. One thing it knows: it is
//! later than the last change of its list of tokens. An earlier calendar is that of a machine
//! without a battery, and counts from there.

use std::time::Duration;

/// By how much the calendar may differ from what is expected, in seconds.
const TOLERANCE: u64 = 3_600;

/// The date of the calendar, and the date that it ought to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Calendar {
    /// Seconds since 1970 at the start.
    start: u64,
    /// The boot clock then.
    boot: Duration,
    /// Whether the last reading was off.
    is_off: bool,
}

/// The time, and whether the calendar has just been found to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Now {
    /// Seconds since 1970.
    pub(super) seconds: u64,
    /// By how much the calendar is ahead of the estimate, in seconds, if it has jumped since it was
    /// last read.
    pub(super) jumped_by: Option<i64>,
}

impl Calendar {
    /// Starts from a reading of both clocks; it is later than `floor`, whatever the calendar says.
    pub(super) fn new(calendar: u64, boot: Duration, floor: u64) -> Self {
        Self { start: calendar.max(floor), boot, is_off: false }
    }

    /// The time by a later reading of both.
    pub(super) fn read(&mut self, calendar: u64, boot: Duration) -> Now {
        let estimate = self.start.saturating_add(boot.saturating_sub(self.boot).as_secs());
        let was_off = std::mem::replace(&mut self.is_off, calendar.abs_diff(estimate) > TOLERANCE);
        if !self.is_off {
            return Now { seconds: calendar, jumped_by: None };
        }
        let ahead = i64::try_from(i128::from(calendar) - i128::from(estimate)).unwrap_or(i64::MAX);
        Now { seconds: estimate, jumped_by: (!was_off).then_some(ahead) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_800_000_000;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_calendar_that_is_corrected_a_little_is_believed() {
        let mut calendar = Calendar::new(START, seconds(50), 0);
        assert_eq!(calendar.read(START + 100, seconds(150)).seconds, START + 100);
        assert_eq!(calendar.read(START + 100 + 3_600, seconds(150)).seconds, START + 3_700);
        assert_eq!(calendar.read(START - 3_000, seconds(150)).seconds, START - 3_000);
    }

    #[test]
    fn a_calendar_that_jumped_is_told_once_and_not_believed() {
        let mut calendar = Calendar::new(START, seconds(0), 0);
        let year = 365 * 86_400;
        let now = calendar.read(START + 10 * year, seconds(10));
        assert_eq!(now, Now { seconds: START + 10, jumped_by: Some(10 * year.cast_signed() - 10) });
        let again = calendar.read(START + 10 * year + 5, seconds(15));
        assert_eq!(again, Now { seconds: START + 15, jumped_by: None });
        assert_eq!(calendar.read(START + 20, seconds(20)).seconds, START + 20, "it was set right");
        let back = calendar.read(7, seconds(30));
        assert_eq!(back.seconds, START + 30, "a step back brings no expired token back");
        assert!(back.jumped_by.is_some_and(|by| by < 0));
    }

    #[test]
    fn many_small_steps_do_not_add_up_unseen() {
        let mut calendar = Calendar::new(START, seconds(0), 0);
        let jumps =
            (1..=10).filter(|step| calendar.read(START + step * 1_000, seconds(0)).jumped_by.is_some());
        assert_eq!(jumps.count(), 1);
    }

    #[test]
    fn a_machine_without_a_battery_counts_from_the_last_change_of_the_list() {
        let mut calendar = Calendar::new(0, seconds(0), START);
        assert_eq!(calendar.read(5, seconds(5)).seconds, START + 5);
    }
}
