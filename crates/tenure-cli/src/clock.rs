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
