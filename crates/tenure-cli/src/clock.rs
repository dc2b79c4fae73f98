//! The wall clock, for what a user waits for. Nothing that is simulated may depend on it.

use std::time::Instant;

/// The time now.
#[expect(clippy::disallowed_methods, reason = "benchmarks measure real time; no protocol sees it")]
pub(crate) fn clock() -> Instant {
    Instant::now()
}
