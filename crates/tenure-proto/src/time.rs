//! Time as one process can know it, and all rounding of the product.
//!
//! Three things must not be mixed, so they are three types: a **reading** of one host's clock
//! ([`LocalTime`]), a **length measured on one clock** ([`LocalSpan`]), and a **length of real
//! time** ([`Span`], the paper's δ), which no process can measure exactly. Only [`Drift`] and
//! [`Clockwork`] turn a real length into a measured one, and they round against the process that
//! gains: the time that a leader may count on is rounded down, the time that a grantor must honour
//! is rounded up.

use std::fmt;

/// A reading of ONE host's boot clock, in nanoseconds. Readings of different hosts do not compare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTime(u64);

impl LocalTime {
    /// The start of the boot.
    pub const ZERO: Self = Self(0);

    /// Makes a reading from nanoseconds of the boot clock.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The reading in nanoseconds of the boot clock.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time left from `now` until here; nothing if it has passed.
    pub fn remaining(self, now: Self) -> LocalSpan {
        LocalSpan(self.0.saturating_sub(now.0))
    }

    /// The reading `span` later; stays at the end of time.
    #[must_use]
    pub fn after(self, span: LocalSpan) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The same instant by a clock whose zero lies `by` later. For explorers: see
    /// [`Explore::shift`](crate::explore::Explore::shift).
    #[must_use]
    pub fn shifted(self, by: LocalSpan) -> Self {
        Self(self.0.saturating_sub(by.0))
    }

    /// The last tick at or before this reading.
    #[must_use]
    pub fn floor_to(self, tick: LocalSpan) -> Self {
        Self(self.0 - self.0 % tick.0.max(1))
    }

    /// The first tick at or after this reading: where `reading < self` stops being true on a clock
    /// of that tick.
    #[must_use]
    pub fn ceil_to(self, tick: LocalSpan) -> Self {
        Self(self.0.checked_next_multiple_of(tick.0.max(1)).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nanos(f, self.0)
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nanos(f, self.0)
    }
}

/// A length measured on one clock, in nanoseconds of that clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalSpan(u64);

impl LocalSpan {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Makes a length from nanoseconds of the clock.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The length in nanoseconds of the clock.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// `part / whole` of this length, rounded down.
    #[must_use]
    pub fn fraction(self, part: u32, whole: u32) -> Self {
        let nanos = u128::from(self.0) * u128::from(part) / u128::from(whole.max(1));
        Self(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The sum of both lengths; stays at the longest length.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference of both lengths; zero if the other is longer.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This length times `factor`; stays at the longest length.
    #[must_use]
    pub fn times(self, factor: u32) -> Self {
        Self(self.0.saturating_mul(u64::from(factor)))
    }
}

impl fmt::Debug for LocalSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nanos(f, self.0)
    }
}

impl fmt::Display for LocalSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nanos(f, self.0)
    }
}

/// A length of real time (δ), in nanoseconds. Known exactly to nobody: see [`Clockwork`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// Makes a length from nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Makes a length from milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The length as a clock without drift would measure it. For liveness only: intervals at which
    /// to try again.
    pub const fn nominal(self) -> LocalSpan {
        LocalSpan(self.0)
    }

    /// The sum of both lengths; stays at the longest length.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference of both lengths; zero if the other is longer.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This length times `factor`; stays at the longest length.
    #[must_use]
    pub const fn times(self, factor: u32) -> Self {
        Self(self.0.saturating_mul(factor as u64))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nanos(f, self.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nanos(f, self.0)
    }
}

/// Writes nanoseconds exactly, in the largest unit that keeps them readable: `1.5s`, `250ms`,
/// `0.001ms`. Allocates nothing: nodes write traces with it.
fn write_nanos(f: &mut fmt::Formatter<'_>, nanos: u64) -> fmt::Result {
    let (unit, digits, name) =
        if nanos >= 1_000_000_000 { (1_000_000_000, 9, "s") } else { (1_000_000, 6, "ms") };
    write!(f, "{}", nanos / unit)?;
    let (mut rest, mut digits) = (nanos % unit, digits);
    if rest != 0 {
        while rest % 10 == 0 {
            (rest, digits) = (rest / 10, digits - 1);
        }
        write!(f, ".{rest:0digits$}")?;
    }
    f.write_str(name)
}

/// The bound ρ on how far a clock's rate may be from real time's, in parts per million.
///
/// `(1-ρ)·δ <= C(t+δ) - C(t) <= (1+ρ)·δ` for every clock `C` and all `t`, `δ` (15). If a real clock
/// is worse than this, two processes may lead at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Drift(u32);

const MILLION: u32 = 1_000_000;

impl Drift {
    /// Makes a bound from parts per million; `None` for a million or more, a clock that may stand
    /// still.
    pub const fn from_ppm(ppm: u32) -> Option<Self> {
        if ppm < MILLION { Some(Self(ppm)) } else { None }
    }

    /// The bound in parts per million.
    pub const fn as_ppm(self) -> u32 {
        self.0
    }

    /// The least that a clock can measure of `span`: `(1-ρ)·δ`, rounded down.
    pub fn shortest(self, span: Span) -> LocalSpan {
        LocalSpan(scaled(span.0, MILLION - self.0, false))
    }

    /// The least real time in which a clock can measure `length`: `length / (1+ρ)`, rounded down.
    pub fn least_real(self, length: LocalSpan) -> Span {
        let nanos = u128::from(length.0) * u128::from(MILLION) / u128::from(MILLION + self.0);
        Span(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The most real time in which a clock measures no more than `length`: `length / (1-ρ)`,
    /// rounded up.
    pub fn longest_real(self, length: LocalSpan) -> Span {
        let nanos = (u128::from(length.0) * u128::from(MILLION)).div_ceil(u128::from(MILLION - self.0));
        Span(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The most that a clock can measure of `span`: `(1+ρ)·δ`, rounded up.
    pub fn longest(self, span: Span) -> LocalSpan {
        LocalSpan(scaled(span.0, MILLION + self.0, true))
    }

    /// The time that one clock may count on while another, which began no earlier, is sure not to
    /// have shown more than `lock`: `(1-2ρ)·lock`, rounded down. Exact: `(1-2ρ)(1+ρ) <= 1-ρ`, so
    /// nothing of order ρ² is neglected.
    pub fn within(self, lock: LocalSpan) -> LocalSpan {
        LocalSpan(scaled(lock.0, MILLION.saturating_sub(2 * self.0), false))
    }

    /// The oldest round trip that makes an estimate worse by no more than `slack`: the inverse of
    /// [`Drift::worsened`], rounded down.
    pub fn age(self, slack: Span) -> LocalSpan {
        // Both roundings of `worsened` are undone, one after the other.
        let shown = u128::from(scaled(slack.0, MILLION - self.0, false));
        let age = (shown * u128::from(MILLION)).checked_div(4 * u128::from(self.0)).unwrap_or(u128::MAX);
        LocalSpan(u64::try_from(age).unwrap_or(u64::MAX).saturating_sub(1))
    }

    /// The amount by which an estimate may get worse that relies on a round trip so long ago:
    /// `4ρ·age/(1-ρ)`, rounded up. Two clocks drift apart by 2ρ, and both conversions into real
    /// time add theirs.
    pub fn worsened(self, age: LocalSpan) -> Span {
        self.longest_real(LocalSpan(scaled(age.0, 4 * self.0, true)))
    }
}

/// `nanos · millionths / 10^6` in 128 bits, saturating.
fn scaled(nanos: u64, millionths: u32, up: bool) -> u64 {
    let product = u128::from(nanos) * u128::from(millionths);
    let million = u128::from(MILLION);
    let quotient = if up { product.div_ceil(million) } else { product / million };
    u64::try_from(quotient).unwrap_or(u64::MAX)
}

/// The assumptions about the clocks: the one thing on which the two ends of a lease rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Their rates are off by less than ρ (15). They need not agree on the time: any computer's
    /// clock will do.
    Drift(Drift),
    /// At any instant two of them differ by at most Δ (20). They must be synchronised, and watched.
    Skew(LocalSpan),
}

/// All that is known about the clocks: their bound and the tick in which they advance. The two ends
/// of every lease.
///
/// | | drift (OQwBD) | skew (OQwBS) |
/// |---|---|---|
/// | E | `⌊Start + (1-ρ)·δ⌋` | `⌊Start + δ⌋` |
/// | F | `T + g + ⌈(1+ρ)·δ⌉` | `Start + δ + Δ` |
/// | silence | `g + ⌈(1+ρ)·δ_max⌉` | `g + δ_max + 2Δ` |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clockwork {
    /// The bound: ρ or Δ.
    pub bound: Bound,
    /// g: readings are multiples of it. One nanosecond on a good clock.
    pub tick: LocalSpan,
}

impl Clockwork {
    /// The part of a lease that its holder may count on, from the start of its run.
    pub fn usable(self, lease: Span) -> LocalSpan {
        match self.bound {
            Bound::Drift(drift) => drift.shortest(lease),
            Bound::Skew(_) => lease.nominal(),
        }
    }

    /// E: the reading until which a candidate that asked at `start` may lead (step 8). Rounded down
    /// to a tick, because `reading < E` stays true for the whole tick in which `E` lies.
    pub fn lease_end(self, start: LocalTime, lease: Span) -> LocalTime {
        start.after(self.usable(lease)).floor_to(self.tick)
    }

    /// F: the reading until which a grantor that granted at `granted` is bound to the candidate
    /// that asked at `start` (step 6.1).
    ///
    /// With bounded drift `start`, a reading of another clock, means nothing; one tick is added
    /// because this clock may already be almost a tick beyond its reading. With bounded skew
    /// `start` means the same here to within Δ, and a request that was long on its way binds nobody
    /// for long.
    pub fn grant_end(self, start: LocalTime, granted: LocalTime, lease: Span) -> LocalTime {
        match self.bound {
            Bound::Drift(drift) => granted.after(self.tick).after(drift.longest(lease)),
            Bound::Skew(skew) => start.after(lease.nominal()).after(skew),
        }
    }

    /// The reading, on a grantor's clock, until which the holder of a grant leads at least, if it
    /// asked at `start`, a quorum granted it, and it gives nothing back. A hint for observers: the
    /// time that the request was on its way is not known with bounded drift, and not taken off.
    ///
    /// The holder counts `(1-ρ)·δ`. Its clock shows that no sooner than after `(1-ρ)/(1+ρ)·δ`, and
    /// this clock shows at least `(1-ρ)²/(1+ρ)·δ` of it; with bounded skew `Start + δ - Δ`.
    pub fn led_at_least(self, start: LocalTime, granted: LocalTime, lease: Span) -> LocalTime {
        match self.bound {
            Bound::Drift(drift) => granted.after(drift.shortest(drift.least_real(drift.shortest(lease)))),
            Bound::Skew(skew) => LocalTime(start.after(lease.nominal()).0.saturating_sub(skew.0)),
        }
    }

    /// The same for a grant whose end alone is known: it is of no more than the longest lease, and
    /// a shorter one leaves more than this says.
    pub fn led_by_grant(self, until: LocalTime, longest_lease: Span) -> LocalTime {
        let cut = match self.bound {
            Bound::Drift(drift) => {
                let led = drift.shortest(drift.least_real(drift.shortest(longest_lease)));
                drift.longest(longest_lease).plus(self.tick).minus(led)
            }
            Bound::Skew(skew) => skew.times(2),
        };
        LocalTime(until.0.saturating_sub(cut.0))
    }

    /// The reading until which a process that started at `start` without its memory keeps silent: a
    /// leader that relies on a forgotten grant has stopped leading by then. With bounded skew a
    /// forgotten F lies at most `δ_max + 2Δ` after the reading.
    pub fn silence_end(self, start: LocalTime, longest_lease: Span) -> LocalTime {
        let longest = match self.bound {
            Bound::Drift(drift) => drift.longest(longest_lease),
            Bound::Skew(skew) => longest_lease.nominal().plus(skew.times(2)),
        };
        start.after(self.tick).after(longest)
    }

    /// The δ that leaves a leader at least `length` on its clock, with room for the drift of
    /// others: `length·(1+ρ)/(1-ρ)`, rounded up.
    pub fn lease_for(self, length: LocalSpan) -> Span {
        match self.bound {
            Bound::Drift(drift) => drift.longest_real(self.most_shown(length)),
            Bound::Skew(_) => Span(length.0),
        }
    }

    /// The most that a clock can show while another shows real time `length`: `(1+ρ)·length`,
    /// rounded up.
    pub fn most_shown(self, length: LocalSpan) -> LocalSpan {
        match self.bound {
            Bound::Drift(drift) => drift.longest(Span(length.0)),
            Bound::Skew(_) => length,
        }
    }

    /// The pledge that a leader whose lease ends at `until` can give at `now`: for how long, at
    /// most `wanted`, it will not give its grants back. `None` if nothing is left.
    pub fn pledge(self, now: LocalTime, until: LocalTime, wanted: Span) -> Option<Pledge> {
        let pledge = match self.bound {
            Bound::Drift(drift) => {
                // The clock may be almost a tick beyond its reading; what it shows from there lasts
                // at least 1/(1+ρ).
                let left = LocalSpan(until.remaining(now).0.saturating_sub(self.tick.0));
                let lasts = drift.least_real(left).min(wanted);
                Pledge { lasts, until: now.after(self.tick).after(drift.longest(lasts)) }
            }
            Bound::Skew(_) => {
                let until = until.min(now.after(wanted.nominal()));
                Pledge { lasts: Span(until.remaining(now).0), until }
            }
        };
        (pledge.lasts.0 > 0).then_some(pledge)
    }

    /// The reading, on the clock of a process that asked at `start`, until which a pledge given
    /// later is certain to stand: `Start + (1-ρ)·δ` with bounded drift, `P - Δ` with bounded skew,
    /// rounded down to a tick (section 10.5, with both signs corrected).
    pub fn certain_until(self, start: LocalTime, pledge: Pledge) -> LocalTime {
        match self.bound {
            Bound::Drift(drift) => start.after(drift.shortest(pledge.lasts)).floor_to(self.tick),
            Bound::Skew(skew) => LocalTime(pledge.until.0.saturating_sub(skew.0)).floor_to(self.tick),
        }
    }

    /// Whether `start` can be the reading of another clock no later than `now` here. With bounded
    /// skew one too far ahead shows that the bound is broken; with bounded drift readings of
    /// different clocks do not compare.
    pub fn may_have_started(self, start: LocalTime, now: LocalTime) -> bool {
        match self.bound {
            Bound::Drift(_) => true,
            Bound::Skew(skew) => start <= now.after(self.tick).after(skew),
        }
    }
}

/// A leader's promise not to give its grants back for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pledge {
    /// Its length, from the instant at which it was given.
    pub lasts: Span,
    /// Its end, on the clock of the leader that gave it.
    pub until: LocalTime,
}

/// The number of a process's life: strictly larger after every start, also over lost memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u128);

/// A composite clock reading: strictly increasing for a process, over restarts and within one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// The life in which it was taken.
    pub incarnation: Incarnation,
    /// The reading.
    pub at: LocalTime,
    /// The number of stamps taken at that reading before this one.
    pub count: u32,
}

/// Gives out [`Stamp`]s, and notices a clock that went back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StampClock {
    incarnation: Incarnation,
    latest: LocalTime,
    count: u32,
}

impl StampClock {
    /// Makes a clock for one life of a process.
    pub fn new(incarnation: Incarnation, now: LocalTime) -> Self {
        Self { incarnation, latest: now, count: 0 }
    }

    /// The largest reading seen.
    pub fn latest(&self) -> LocalTime {
        self.latest
    }

    /// Notes a reading. If it lies before one already seen, the clock is broken: returns by how
    /// much.
    pub fn observe(&mut self, now: LocalTime) -> Result<(), LocalSpan> {
        if now < self.latest {
            return Err(self.latest.remaining(now));
        }
        if now > self.latest {
            self.latest = now;
            self.count = 0;
        }
        Ok(())
    }

    /// See [`LocalTime::shifted`].
    pub(crate) fn shift(&mut self, by: LocalSpan) {
        self.latest = self.latest.shifted(by);
    }

    /// Takes a stamp larger than all before it.
    pub fn stamp(&mut self) -> Stamp {
        let stamp = Stamp { incarnation: self.incarnation, at: self.latest, count: self.count };
        self.count += 1;
        stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clockwork(ppm: u32, tick: u64) -> Clockwork {
        Clockwork { bound: Bound::Drift(Drift::from_ppm(ppm).unwrap()), tick: LocalSpan::from_nanos(tick) }
    }

    #[test]
    fn a_leader_counts_on_less_and_a_grantor_honours_more() {
        let clocks = clockwork(100_000, 1);
        let start = LocalTime::from_nanos(1000);
        assert_eq!(clocks.lease_end(start, Span::from_nanos(1001)).as_nanos(), 1000 + 900);
        assert_eq!(
            clocks.grant_end(LocalTime::ZERO, start, Span::from_nanos(1001)).as_nanos(),
            1000 + 1 + 1102
        );
    }

    #[test]
    fn a_grantor_believes_in_a_leader_for_no_longer_than_that_one_does() {
        let start = LocalTime::from_nanos(1000);
        let led = |clocks: Clockwork| clocks.led_at_least(start, start, Span::from_nanos(1100)).as_nanos();
        assert_eq!(led(clockwork(100_000, 1)), 1000 + 810, "(1-rho)^2/(1+rho) of it");
        assert_eq!(led(clockwork(0, 1)), 2100);
        let skew =
            Clockwork { bound: Bound::Skew(LocalSpan::from_nanos(30)), tick: LocalSpan::from_nanos(1) };
        assert_eq!(led(skew), 2100 - 30);
        for clocks in [clockwork(100_000, 1), clockwork(0, 1), skew] {
            for lease in [1100, 500, 1].map(Span::from_nanos) {
                let until = clocks.grant_end(start, start, lease);
                let known = clocks.led_at_least(start, start, lease);
                assert!(clocks.led_by_grant(until, Span::from_nanos(1100)) <= known, "{lease}");
            }
        }
    }

    #[test]
    fn a_lease_chosen_for_a_length_leaves_at_least_that() {
        for ppm in [0, 1, 1000, 100_000, 999_999] {
            for length in [0, 1, 7, 1000, 123_456_789] {
                let clocks = clockwork(ppm, 1);
                let lease = clocks.lease_for(LocalSpan::from_nanos(length));
                assert!(clocks.usable(lease).as_nanos() >= length, "{ppm} ppm, {length}");
            }
        }
        assert_eq!(clockwork(100_000, 1).lease_for(LocalSpan::from_nanos(900)), Span::from_nanos(1100));
    }

    #[test]
    fn a_lease_ends_on_a_tick_and_a_grant_one_tick_late() {
        let clocks = clockwork(0, 40);
        assert_eq!(clocks.lease_end(LocalTime::from_nanos(80), Span::from_nanos(59)).as_nanos(), 120);
        assert_eq!(
            clocks.grant_end(LocalTime::ZERO, LocalTime::from_nanos(80), Span::from_nanos(59)).as_nanos(),
            179
        );
    }

    #[test]
    fn with_bounded_skew_a_grant_is_counted_from_the_start_that_was_sent() {
        let clocks =
            Clockwork { bound: Bound::Skew(LocalSpan::from_nanos(30)), tick: LocalSpan::from_nanos(40) };
        let (start, late) = (LocalTime::from_nanos(100), LocalTime::from_nanos(5000));
        assert_eq!(clocks.lease_end(start, Span::from_nanos(1000)).as_nanos(), 1080);
        assert_eq!(clocks.grant_end(start, late, Span::from_nanos(1000)).as_nanos(), 1130);
        assert_eq!(clocks.silence_end(start, Span::from_nanos(1000)).as_nanos(), 100 + 40 + 1000 + 60);
        assert!(clocks.may_have_started(LocalTime::from_nanos(170), start));
        assert!(!clocks.may_have_started(LocalTime::from_nanos(171), start));
    }

    #[test]
    fn a_pledge_ends_before_the_lease_and_is_certain_for_less() {
        let clocks = clockwork(100_000, 10);
        let (now, until) = (LocalTime::from_nanos(1000), LocalTime::from_nanos(2110));
        let pledge = clocks.pledge(now, until, Span::from_millis(1)).expect("something is left");
        assert_eq!((pledge.lasts.as_nanos(), pledge.until.as_nanos()), (1000, 2110), "(E - H - g) / (1+rho)");
        assert_eq!(clocks.certain_until(LocalTime::from_nanos(500), pledge).as_nanos(), 1400);
        let shorter = clocks.pledge(now, until, Span::from_nanos(100)).expect("something is left");
        assert_eq!((shorter.lasts.as_nanos(), shorter.until.as_nanos()), (100, 1120));
        assert_eq!(clocks.pledge(until, until, Span::from_millis(1)), None);
    }

    #[test]
    fn the_longest_spans_saturate_instead_of_wrapping() {
        let clocks = clockwork(999_999, 1);
        let never = Span::from_nanos(u64::MAX);
        assert_eq!(clocks.grant_end(LocalTime::ZERO, LocalTime::from_nanos(7), never).as_nanos(), u64::MAX);
        assert!(clocks.lease_end(LocalTime::from_nanos(u64::MAX), never).as_nanos() >= u64::MAX - 1);
        assert_eq!(
            LocalTime::from_nanos(u64::MAX - 1).ceil_to(LocalSpan::from_nanos(1000)).as_nanos(),
            u64::MAX
        );
    }

    #[test]
    fn the_age_of_a_round_trip_is_the_inverse_of_what_it_costs() {
        for ppm in [1, 100, 40_000, 200_000] {
            let drift = Drift::from_ppm(ppm).unwrap();
            for slack in [100, 12_345, 1_000_000] {
                let age = drift.age(Span::from_nanos(slack));
                assert!(drift.worsened(age).as_nanos() <= slack, "{ppm} ppm, {slack}");
                assert!(drift.worsened(age.times(2).plus(LocalSpan(9))).as_nanos() > slack, "{ppm}, {slack}");
            }
        }
        assert_eq!(Drift::from_ppm(0).unwrap().age(Span::from_nanos(1)).as_nanos(), u64::MAX - 1);
    }

    #[test]
    fn a_drift_of_one_is_no_clock() {
        assert_eq!(Drift::from_ppm(1_000_000), None);
    }

    #[test]
    fn stamps_rise_within_a_tick_and_over_lives() {
        let mut first = StampClock::new(Incarnation(1), LocalTime::from_nanos(500));
        let stamps = [first.stamp(), first.stamp()];
        assert!(stamps[0] < stamps[1]);
        let mut second = StampClock::new(Incarnation(2), LocalTime::ZERO);
        assert!(stamps[1] < second.stamp());
    }

    #[test]
    fn a_clock_that_goes_back_is_noticed() {
        let mut clock = StampClock::new(Incarnation(1), LocalTime::from_nanos(500));
        assert_eq!(clock.observe(LocalTime::from_nanos(480)), Err(LocalSpan::from_nanos(20)));
        assert_eq!(clock.observe(LocalTime::from_nanos(500)), Ok(()));
    }

    #[test]
    fn lengths_are_written_exactly() {
        assert_eq!(Span::from_millis(1500).to_string(), "1.5s");
        assert_eq!(Span::from_nanos(250_000_001).to_string(), "250.000001ms");
        assert_eq!(LocalTime::ZERO.to_string(), "0ms");
    }
}
