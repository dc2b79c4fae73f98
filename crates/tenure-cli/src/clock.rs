//! The wall clock, for what a user waits for. Nothing that is simulated may depend on it.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The time now.
#[expect(clippy::disallowed_methods, reason = "benchmarks measure real time; no protocol sees it")]
pub(crate) fn clock() -> Instant {
    Instant::now()
}

/// The time since this host booted, sleep included: the clock that counts leases.
pub(crate) fn boottime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}

/// Seconds since 1970 by the calendar of this machine. It may jump: see `daemon/http/calendar.rs`
/// before relying on it.
pub(crate) fn realtime() -> u64 {
    u64::try_from(clock_gettime(ClockId::Realtime).tv_sec).unwrap_or(0)
}

/// Seconds since 1970, as RFC 3339 writes them: `2027-01-31T00:00:00Z`.
pub(crate) fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = day_of(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The same read back; `None` if it is no such text.
pub(crate) fn unix(text: &str) -> Option<u64> {
    let number = |at: std::ops::Range<usize>| text.get(at)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?.max(1), number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    // The inverse of `day_of`, by the same years from March.
    let (from_march, months) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let (era, of_era) = (from_march / 400, from_march % 400);
    let day_of_year = (153 * months + 2) / 5 + day.checked_sub(1)?;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    let days = days.checked_sub(719_468)?;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    (date(seconds) == text).then_some(seconds)
}

/// Year, month and day of a day since 1970. Years are counted from March, so that the odd day is
/// their last: in 400 of them there are 146,097 days.
pub(crate) fn day_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // Since the first of March of the year 0.
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year, if month < 10 { month + 3 } else { month - 9 });
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dated_as_calendars_do() {
        let dates = [0, 58, 59, 11_016, 19_782, 19_783, 20_454].map(day_of);
        let expected = [
            (1970, 1, 1),
            (1970, 2, 28),
            (1970, 3, 1),
            (2000, 2, 29),
            (2024, 2, 29),
            (2024, 3, 1),
            (2026, 1, 1),
        ];
        assert_eq!(dates, expected);
    }

    #[test]
    fn every_day_of_three_centuries_is_read_back() {
        for day in 0..120_000 {
            let seconds = day * 86_400 + day % 86_400;
            assert_eq!(unix(&date(seconds)), Some(seconds), "{}", date(seconds));
        }
        for wrong in
            ["", "2027-02-29T00:00:00Z", "2027-13-01T00:00:00Z", "2027-01-01", "2027-01-01T25:00:00Z"]
        {
            assert_eq!(unix(wrong), None, "{wrong}");
        }
    }
}
