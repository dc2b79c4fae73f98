//! Real time, which the laboratory alone knows, and clocks that drift from it.

use std::fmt;

use tenure_proto::time::LocalSpan;

/// An instant of real time, in nanoseconds since the run began. No protocol ever sees one.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RealTime(pub u64);

impl RealTime {
    /// `nanos` later.
    #[must_use]
    pub fn after(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

impl fmt::Display for RealTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 / MILLI)?;
        if !self.0.is_multiple_of(MILLI) {
            write!(f, ".{}", format!("{:06}", self.0 % MILLI).trim_end_matches('0'))?;
        }
        f.write_str("ms")
    }
}

impl fmt::Debug for RealTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A millisecond: rates change at whole ones, so that every clock is exact in whole nanoseconds
/// there.
pub const MILLI: u64 = 1_000_000;

const MILLION: u64 = 1_000_000;

/// A stretch of constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stretch {
    /// When it begins: a whole millisecond.
    pub from: RealTime,
    /// How much faster than real time, in parts per million.
    pub ppm: i32,
}

/// A clock's crystal: rises all the time at a rate that changes now and then. The operating
/// system's reading is counted from its boot, and moves in ticks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Clock {
    /// Each stretch with the clock's exact value at its beginning.
    stretches: Vec<(Stretch, u64)>,
}

impl Clock {
    /// A clock that shows `start` at the beginning and then follows the stretches; the first
    /// stretch begins at zero.
    pub fn new(start: u64, stretches: &[Stretch]) -> Self {
        let mut clock = Self { stretches: Vec::with_capacity(stretches.len()) };
        let mut value = start;
        for (i, stretch) in stretches.iter().enumerate() {
            debug_assert!(stretch.from.0.is_multiple_of(MILLI), "rates change at whole milliseconds");
            if let Some(last) = i.checked_sub(1).and_then(|last| stretches.get(last)) {
                value += (stretch.from.0 - last.from.0) / MILLI * rate(*last);
            }
            clock.stretches.push((*stretch, value));
        }
        clock
    }

    /// The stretches and the first value, as they were given.
    pub fn parts(&self) -> (u64, impl Iterator<Item = Stretch>) {
        (self.stretches[0].1, self.stretches.iter().map(|(stretch, _)| *stretch))
    }

    /// The value at `at`, in whole nanoseconds.
    pub fn value(&self, at: RealTime) -> u64 {
        let (stretch, value) = self.stretch_at(|(stretch, _)| stretch.from <= at);
        let elapsed = at.0 - stretch.from.0;
        value + elapsed / MILLI * rate(stretch) + elapsed % MILLI * rate(stretch) / MILLION
    }

    /// The first instant at which the clock has reached `value`.
    pub fn reaches(&self, value: u64) -> RealTime {
        if value <= self.stretches[0].1 {
            return RealTime(0);
        }
        let (stretch, start) = self.stretch_at(|(_, start)| *start <= value);
        let nanos = (u128::from(value - start) * u128::from(MILLION)).div_ceil(u128::from(rate(stretch)));
        stretch.from.after(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The last stretch that has begun, or the first.
    fn stretch_at(&self, begun: impl Fn(&(Stretch, u64)) -> bool) -> (Stretch, u64) {
        self.stretches[self.stretches.partition_point(begun).saturating_sub(1)]
    }
}

/// Nanoseconds of the clock in a million of real time.
fn rate(stretch: Stretch) -> u64 {
    MILLION.saturating_add_signed(i64::from(stretch.ppm)).max(1)
}

/// The last tick at or before `value`.
pub fn floor(value: u64, tick: LocalSpan) -> u64 {
    value - value % tick.as_nanos().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        Clock::new(
            500,
            &[
                Stretch { from: RealTime(0), ppm: 100_000 },
                Stretch { from: RealTime(10 * MILLI), ppm: -100_000 },
                Stretch { from: RealTime(30 * MILLI), ppm: 0 },
            ],
        )
    }

    #[test]
    fn a_clock_follows_its_rates_without_losing_a_nanosecond() {
        let clock = clock();
        assert_eq!(clock.value(RealTime(0)), 500);
        assert_eq!(clock.value(RealTime(10 * MILLI)), 500 + 11 * MILLI);
        assert_eq!(clock.value(RealTime(30 * MILLI)), 500 + 29 * MILLI);
        assert_eq!(clock.value(RealTime(31 * MILLI + 1)), 500 + 30 * MILLI + 1);
    }

    #[test]
    fn the_inverse_is_the_first_instant_of_a_value() {
        let clock = clock();
        for value in (500..500 + 40 * MILLI).step_by(99_991) {
            let at = clock.reaches(value);
            assert!(clock.value(at) >= value);
            assert!(at.0 == 0 || clock.value(RealTime(at.0 - 1)) < value, "{value} was reached before {at}");
        }
    }
}
