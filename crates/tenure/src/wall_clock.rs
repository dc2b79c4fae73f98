//! The date by which keys expire. A wall clock that jumps does not move it.
//!
//! A wall clock can be set to anything at any time: by a person, by a broken time server, by a
//! virtual machine that was restored. If keys expired by it, one wrong year would end all keys that
//! expire, at all members at once. So a member keeps a date of its own:
//!
//! 1. The date runs on with the boot clock, which nobody can set.
//! 2. The wall clock corrects it only within an **allowance**. The allowance grows by [`GROWTH`]
//!    (10 s an hour) up to [`MOST`] (5 minutes), and each correction uses up as much as it
//!    corrects.
//! 3. A wall clock that is farther away is reported and not followed, until an operator confirms it
//!    (HUP, [`Node::set_keys`](crate::Node::set_keys)), or it comes back by itself.
//! 4. The date survives restarts: it is in the store, a day old at most. A start takes the wall
//!    clock for the date only if it is at most [`DAY`] before and [`ABSENCE`] (90 days) after that;
//!    else the date goes on from the store, and the difference is reported as in 3.
//!
//! **How far it can be off.** Take an instant at which the date was right, and `T` seconds after it
//! without a confirmation. Step 1 is off by the rate error of the boot clock, which leases bound
//! anyhow. Step 2 adds at most `MOST + T / 360`, whatever the wall clock did meanwhile: five
//! minutes, and a day for each year. Step 4 adds at most 90 days for each restart, and nothing
//! while the member runs. So a jump can end only keys that were near their end.
//!
//! A date that lags keeps keys alive that should have expired. That is the safe direction here: a
//! key that must stop working now is revoked, which needs no clock.

/// Seconds that the wall clock may be off and is still followed at once.
const MOST: u64 = 300;

/// The boot clock's nanoseconds in which the allowance grows by a second: ten seconds an hour.
const GROWTH: u64 = 360 * SECOND;

/// Seconds by which a restart may find the wall clock before the stored date.
const DAY: u64 = 86_400;

/// Seconds by which a restart may find the wall clock after the stored date.
const ABSENCE: u64 = 90 * DAY;

const SECOND: u64 = 1_000_000_000;

/// A reading of both clocks at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The boot clock, in nanoseconds.
    pub(crate) boot: u64,
    /// The wall clock, in seconds since 1970.
    pub(crate) wall: u64,
}

/// The date, and how it came about.
#[derive(Clone, Debug)]
pub(crate) struct WallClock {
    /// The reading of the boot clock when the date was `since.wall`.
    since: Reading,
    /// Seconds left of the allowance at `counted` of the boot clock.
    allowance: u64,
    counted: u64,
    /// The wall clock is not followed, and that was reported.
    held: bool,
}

impl WallClock {
    /// `stored` is the date that an earlier life has written down.
    pub(crate) fn start(now: Reading, stored: Option<u64>) -> Self {
        let believed = stored.is_none_or(|stored| {
            now.wall.saturating_add(DAY) >= stored && now.wall <= stored.saturating_add(ABSENCE)
        });
        let wall = if believed { now.wall } else { stored.unwrap_or(now.wall) };
        let since = Reading { wall, ..now };
        Self { since, allowance: MOST, counted: now.boot, held: false }
    }

    /// The date, in seconds since 1970.
    pub(crate) fn date(&self, boot: u64) -> u64 {
        self.since.wall.saturating_add(boot.saturating_sub(self.since.boot) / SECOND)
    }

    /// Whether the wall clock is not followed.
    #[cfg(test)]
    fn is_held(&self) -> bool {
        self.held
    }

    /// Looks at the wall clock. Returns by how many seconds it is off when it is found too far
    /// away, once.
    pub(crate) fn look(&mut self, now: Reading) -> Option<i64> {
        let grown = now.boot.saturating_sub(self.counted) / GROWTH;
        self.allowance = self.allowance.saturating_add(grown).min(MOST);
        self.counted = self.counted.saturating_add(grown.saturating_mul(GROWTH));
        let date = self.date(now.boot);
        let off = now.wall.abs_diff(date);
        if off <= self.allowance {
            self.allowance -= off;
            if off > 0 {
                self.since = now;
            }
            self.held = false;
            return None;
        }
        let news = !std::mem::replace(&mut self.held, true);
        let off = i64::try_from(off).unwrap_or(i64::MAX);
        news.then_some(if now.wall < date { -off } else { off })
    }

    /// An operator says that the wall clock is right.
    pub(crate) fn confirm(&mut self, now: Reading) {
        *self = Self::start(now, None);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_800_000_000;
    const YEAR: u64 = 365 * DAY;

    fn at(second: u64, wall: u64) -> Reading {
        Reading { boot: second * SECOND, wall }
    }

    #[test]
    fn the_date_runs_on_and_small_corrections_are_followed() {
        let mut clock = WallClock::start(at(100, NOW), None);
        assert_eq!(clock.date(160 * SECOND), NOW + 60);
        assert_eq!(clock.look(at(160, NOW + 90)), None);
        assert_eq!(clock.date(160 * SECOND), NOW + 90);
        assert_eq!(clock.look(at(170, NOW + 60)), None, "back, too");
        assert_eq!(clock.date(170 * SECOND), NOW + 60);
    }

    #[test]
    fn a_jump_is_reported_once_and_not_followed() {
        for jumped in [NOW + 10 * YEAR, NOW - 10 * YEAR, 0, u64::MAX] {
            let mut clock = WallClock::start(at(0, NOW), None);
            let reported = clock.look(at(10, jumped)).expect("it is reported");
            assert_eq!(reported > 0, jumped > NOW);
            assert_eq!(clock.look(at(20, jumped)), None);
            assert!(clock.is_held());
            assert_eq!(clock.date(20 * SECOND), NOW + 20);
        }
    }

    #[test]
    fn a_wall_clock_that_comes_back_is_followed_again() {
        let mut clock = WallClock::start(at(0, NOW), None);
        assert!(clock.look(at(10, NOW + YEAR)).is_some());
        assert_eq!(clock.look(at(20, NOW + 25)), None);
        assert!(!clock.is_held());
        assert_eq!(clock.date(20 * SECOND), NOW + 25);
    }

    #[test]
    fn an_operator_confirms_a_jump() {
        let mut clock = WallClock::start(at(0, NOW), None);
        clock.look(at(10, NOW + YEAR));
        clock.confirm(at(11, NOW + YEAR + 1));
        assert!(!clock.is_held());
        assert_eq!(clock.date(12 * SECOND), NOW + YEAR + 2);
    }

    #[test]
    fn a_restart_after_a_jump_goes_on_from_the_stored_date() {
        for (wall, date) in [
            (NOW + 10 * YEAR, NOW),
            (NOW - YEAR, NOW),
            (0, NOW),
            (NOW + 80 * DAY, NOW + 80 * DAY),
            (NOW - 3600, NOW - 3600),
        ] {
            let mut clock = WallClock::start(at(7, wall), Some(NOW));
            assert_eq!(clock.date(7 * SECOND), date, "{wall}");
            assert_eq!(clock.look(at(8, wall + 1)).is_some(), wall != date, "{wall}");
        }
    }

    proptest! {
        /// The bound of the module's header, for any wall clock.
        #[test]
        fn no_wall_clock_moves_the_date_far(
            looks in prop::collection::vec((0..100_000u64, any::<bool>(), 0..100_000u64, any::<u64>()), 0..200),
        ) {
            let mut clock = WallClock::start(at(0, NOW), None);
            let mut passed = 0;
            for (wait, near, by, anything) in looks {
                passed += wait;
                let date = clock.date(passed * SECOND);
                let wall = match near {
                    true if by % 2 == 0 => date + by / 300,
                    true => date - by / 300,
                    false => anything,
                };
                clock.look(at(passed, wall));
                let off = clock.date(passed * SECOND).abs_diff(NOW + passed);
                prop_assert!(off <= MOST + passed / 360 + 1, "{off} after {passed}");
            }
        }
    }
}
