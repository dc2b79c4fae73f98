//! The clock by which leases are judged.
//!
//! It is CLOCK_BOOTTIME: it runs on while the machine is suspended, and nobody sets it. The clock
//! of the standard library and of async runtimes stands still in a suspend; a leader that woke up
//! would believe in a lease that ended hours ago. Their timers serve here only as a hint to look at
//! this clock.
//!
//! With `clock = "skew"` it is CLOCK_REALTIME, whose error bound is watched: see `watchdog`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_proto::LocalTime;
use tenure_proto::time::Bound;
use tenure_proto::trace::Common;

use crate::steady::{SharedSteady, Suspends};
use crate::sys::clock::{Which, correction, read, synchronised};
#[cfg(any(test, feature = "test-util"))]
use crate::testing::HostClock;

/// The kernel's information about its clocks, as the time service set it: for finding faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discipline {
    /// Whether anybody keeps the calendar synchronised, as the kernel believes.
    pub synchronised: bool,
    /// The largest error of the calendar, as the time service claims.
    pub error: Duration,
    /// By how much the clocks run faster than the hardware's counter on purpose, in parts per
    /// billion; negative for slower.
    pub correction_ppb: i64,
}

impl Discipline {
    /// Asks the kernel; `None` if it does not say. Changes nothing.
    pub fn read() -> Option<Self> {
        let synchronised = synchronised();
        let error = Duration::from_nanos(synchronised.error);
        Some(Self { synchronised: synchronised.is, error, correction_ppb: correction()? })
    }
}

/// Reads the clock of this host. Cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    source: Source,
    /// Whether the machine counts as able to suspend, if that is not to be asked of the kernel.
    able: Option<Suspends>,
}

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    Boot,
    Real,
    Hand(Hand),
    #[cfg(any(test, feature = "test-util"))]
    Virtual(HostClock),
}

impl Clock {
    /// The boot clock: what leases are judged by, unless a test says otherwise.
    pub const fn boot() -> Self {
        Self { source: Source::Boot, able: None }
    }

    /// The synchronised clock, for a cluster whose bound is on skew.
    pub const fn real() -> Self {
        Self { source: Source::Real, able: None }
    }

    /// A clock for tests, which a hand can turn. Until it does, it follows the boot clock.
    pub fn by_hand() -> (Self, Hand) {
        let hand = Hand::default();
        (Self { source: Source::Hand(hand.clone()), able: Some(Suspends::Yes) }, hand)
    }

    /// The clock of a host in a cluster of [`testing`](crate::testing).
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn of_host(host: HostClock) -> Self {
        Self { source: Source::Virtual(host), able: Some(Suspends::Yes) }
    }

    /// The host of a cluster of [`testing`](crate::testing), if this is the clock of one.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn host(&self) -> Option<&HostClock> {
        match &self.source {
            Source::Virtual(host) => Some(host),
            _ => None,
        }
    }

    /// For tests and benchmarks: the same clock on a machine that counts as able to suspend, or
    /// not.
    #[must_use]
    pub fn suspending(self, able: Suspends) -> Self {
        Self { able: Some(able), ..self }
    }

    /// Whether the machine of this clock can be suspended.
    pub fn suspends(&self) -> Suspends {
        self.able.unwrap_or_else(Suspends::of_this_machine)
    }

    /// A reading.
    #[inline]
    pub fn read(&self) -> LocalTime {
        LocalTime::from_nanos(match &self.source {
            Source::Boot => read(Which::Boot),
            Source::Real => read(Which::Real),
            Source::Hand(hand) => hand.read(read(Which::Boot)),
            #[cfg(any(test, feature = "test-util"))]
            Source::Virtual(host) => host.read(),
        })
    }

    /// A reading, and what the clock that all processes of the machine share showed meanwhile, for
    /// the trace. Read together: a writer that was preempted in between would date what it tells
    /// too late, and look as if it led beside another.
    pub(crate) fn reading(&self) -> Reading {
        let from = read(Which::Boot);
        let Source::Boot = self.source else {
            let own = self.read();
            return Reading { own, common: Common::between(from, read(Which::Boot)) };
        };
        Reading { own: LocalTime::from_nanos(from), common: Common::exact(from) }
    }

    /// A reading, and at most how long the machine has been suspended since its boot, in
    /// nanoseconds above [`BIAS`]: the monotonic clock is read first, so that a thread preempted in
    /// between finds too much and never too little.
    #[inline]
    pub(crate) fn read_and_slept(&self) -> (LocalTime, u64) {
        let monotonic = read(Which::Monotonic);
        let boot = read(Which::Boot);
        let at_most = slept(boot, monotonic);
        match &self.source {
            Source::Boot => (LocalTime::from_nanos(boot), at_most),
            Source::Real => (LocalTime::from_nanos(read(Which::Real)), at_most),
            Source::Hand(hand) => (LocalTime::from_nanos(hand.read(boot)), at_most + hand.suspended()),
            #[cfg(any(test, feature = "test-util"))]
            Source::Virtual(host) => {
                let (now, slept) = host.read_and_slept();
                (LocalTime::from_nanos(now), BIAS + slept)
            }
        }
    }

    /// The same with both bounds: the monotonic clock is read before and after the boot clock.
    pub(crate) fn slept(&self) -> (LocalTime, (u64, u64)) {
        let monotonic = read(Which::Monotonic);
        let boot = read(Which::Boot);
        let bounds = (slept(boot, read(Which::Monotonic)), slept(boot, monotonic));
        match &self.source {
            Source::Boot => (LocalTime::from_nanos(boot), bounds),
            Source::Real => (LocalTime::from_nanos(read(Which::Real)), bounds),
            Source::Hand(hand) => {
                let more = hand.suspended();
                (LocalTime::from_nanos(hand.read(boot)), (bounds.0 + more, bounds.1 + more))
            }
            #[cfg(any(test, feature = "test-util"))]
            Source::Virtual(host) => {
                let (now, slept) = host.read_and_slept();
                (LocalTime::from_nanos(now), (BIAS + slept, BIAS + slept))
            }
        }
    }

    /// The reading that this clock would have if it had stood still whenever the machine was
    /// suspended. It can be compared with a counter that stands still then. One reading, not a
    /// difference of two: a suspend between two readings would count for one of them and not for
    /// the other. Only differences mean anything.
    pub(crate) fn awake(&self) -> u64 {
        match &self.source {
            Source::Boot | Source::Real => read(Which::Monotonic),
            Source::Hand(hand) => hand.awake(),
            #[cfg(any(test, feature = "test-util"))]
            Source::Virtual(host) => host.awake(),
        }
    }

    /// One of the system's clocks, as the machine of this clock shows it.
    pub(crate) fn of_machine(&self, which: Which) -> u64 {
        match &self.source {
            #[cfg(any(test, feature = "test-util"))]
            Source::Virtual(host) => host.of_machine(which),
            Source::Boot | Source::Real | Source::Hand(_) => read(which),
        }
    }

    /// Whether it can serve where clocks are synchronised, or where only their rates are bounded.
    pub(crate) fn suits(&self, bound: Bound) -> bool {
        match (&self.source, bound) {
            (Source::Boot, Bound::Skew(_)) | (Source::Real, Bound::Drift(_)) => false,
            (Source::Boot | Source::Real | Source::Hand(_), _) => true,
            #[cfg(any(test, feature = "test-util"))]
            (Source::Virtual(_), _) => true,
        }
    }

    /// How far ahead a timer may be trusted. A clock that is turned by hand may jump at any time.
    pub(crate) fn longest_nap(&self) -> Duration {
        match self.source {
            Source::Boot | Source::Real => Duration::from_secs(1),
            Source::Hand(_) => Duration::from_millis(2),
            #[cfg(any(test, feature = "test-util"))]
            Source::Virtual(_) => Duration::from_secs(1),
        }
    }
}

/// Differences of the boot clock and the monotonic one are counted from here: in a time namespace
/// the monotonic clock may be ahead.
const BIAS: u64 = 1 << 62;

#[inline]
fn slept(boot: u64, monotonic: u64) -> u64 {
    (boot + BIAS).saturating_sub(monotonic)
}

/// When something happened, by the own clock and by the one that all processes of the machine
/// share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) own: LocalTime,
    pub(crate) common: Common,
}

/// Turns a [`Clock`] for tests: faster, slower, forward, back.
#[derive(Clone, Debug, Default)]
pub struct Hand(Arc<Mutex<Dial>>);

/// From `since` of the boot clock, when it showed `shown`, the dial runs at `millionths` of the
/// boot clock's rate.
#[derive(Debug)]
struct Dial {
    since: u64,
    shown: u64,
    millionths: u32,
    suspended: u64,
}

impl Default for Dial {
    fn default() -> Self {
        Self { since: 0, shown: 0, millionths: 1_000_000, suspended: 0 }
    }
}

impl Dial {
    fn at(&self, boot: u64) -> u64 {
        let passed = u128::from(boot.saturating_sub(self.since)) * u128::from(self.millionths) / 1_000_000;
        self.shown.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

impl Hand {
    fn read(&self, boot: u64) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).at(boot)
    }

    fn suspended(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).suspended
    }

    fn awake(&self) -> u64 {
        let dial = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (awake, boot) = (read(Which::Monotonic), read(Which::Boot));
        dial.at(boot).saturating_sub(dial.suspended).saturating_sub(boot.saturating_sub(awake))
    }

    fn turn(&self, change: impl FnOnce(&mut Dial)) {
        let mut dial = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let boot = read(Which::Boot);
        *dial = Dial { since: boot, shown: dial.at(boot), ..*dial };
        change(&mut dial);
    }

    /// Steps forward as the boot clock does when the machine was suspended, and says so.
    pub fn suspend(&self, by: Duration) {
        self.turn(|dial| {
            dial.shown = dial.shown.saturating_add(nanos(by));
            dial.suspended += nanos(by);
        });
    }

    /// Steps forward, which no clock may do unless the machine was suspended.
    pub fn forward(&self, by: Duration) {
        self.turn(|dial| dial.shown = dial.shown.saturating_add(nanos(by)));
    }

    /// Steps back: what no clock may do.
    pub fn back(&self, by: Duration) {
        self.turn(|dial| dial.shown = dial.shown.saturating_sub(nanos(by)));
    }

    /// From now on the clock runs at this many millionths of its right rate; at zero it stands.
    pub fn rate(&self, millionths: u32) {
        self.turn(|dial| dial.millionths = millionths);
    }
}

/// A clock by which a handle judges. A reading below one that it has seen proves nothing: the clock
/// went back, and nobody leads by it until it is where it was. Nor does one of a clock that was
/// disturbed, until the driver has taken back what was shown by it. Clones have seen the same.
#[derive(Clone, Debug)]
pub(crate) struct Forward {
    steady: SharedSteady,
    seen: Arc<AtomicU64>,
}

impl Forward {
    pub(crate) fn new(steady: SharedSteady) -> Self {
        Self { steady, seen: Arc::default() }
    }

    /// Whether it is before `until` now, for certain.
    pub(crate) fn is_before(&self, until: LocalTime) -> bool {
        let seen = self.seen.load(Ordering::Acquire); // Before it is read: another thread may read a later time meanwhile.
        let Some(now) = self.steady.read() else { return false };
        self.seen.fetch_max(now.as_nanos(), Ordering::AcqRel);
        now.as_nanos() >= seen && now < until
    }
}

/// A length as nanoseconds, as many as fit.
pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steady::Steady;

    #[test]
    fn by_a_clock_that_went_back_nothing_lasts_until_it_is_where_it_was() {
        let (clock, hand) = Clock::by_hand();
        hand.rate(0);
        let forward = Forward::new(SharedSteady::new(Steady::begin(&clock, None)));
        let clone = forward.clone();
        let until = LocalTime::from_nanos(clock.read().as_nanos() + 5_000_000_000);
        assert!(forward.is_before(until));
        hand.back(Duration::from_secs(1));
        assert!(!forward.is_before(until) && !clone.is_before(until));
        hand.forward(Duration::from_secs(1));
        assert!(forward.is_before(until));
        hand.forward(Duration::from_secs(5));
        assert!(!forward.is_before(until));
    }

    #[test]
    fn a_clock_that_is_turned_by_hand_steps_and_changes_its_rate_without_a_jump() {
        let (clock, hand) = Clock::by_hand();
        let before = clock.read();
        hand.rate(0);
        let standing = clock.read();
        assert!(standing >= before);
        assert_eq!(clock.read(), standing);
        hand.forward(Duration::from_secs(5));
        assert_eq!(clock.read().as_nanos(), standing.as_nanos() + 5_000_000_000);
        hand.back(Duration::from_secs(6));
        assert_eq!(clock.read().as_nanos(), standing.as_nanos() - 1_000_000_000);
    }

    #[test]
    fn what_was_slept_is_not_counted_as_awake() {
        let (clock, hand) = Clock::by_hand();
        hand.rate(0);
        let (shown, awake) = (clock.read().as_nanos(), clock.awake());
        hand.suspend(Duration::from_secs(60));
        assert_eq!(clock.read().as_nanos(), shown + 60_000_000_000);
        assert!(clock.awake().abs_diff(awake) < 1_000_000_000, "it stands");
    }

    #[test]
    fn a_clock_serves_the_bound_that_it_was_made_for() {
        use tenure_proto::time::{Drift, LocalSpan};
        let drift = Bound::Drift(Drift::from_ppm(1000).unwrap());
        let skew = Bound::Skew(LocalSpan::from_nanos(1));
        assert!(Clock::boot().suits(drift) && !Clock::boot().suits(skew));
        assert!(Clock::real().suits(skew) && !Clock::real().suits(drift));
    }
}
