//! Waiting for what must come, with a limit that says what did not, and the clock that it uses.

use std::thread::sleep;
use std::time::Duration;

use tenure::Clock;

/// Longer than anything takes on a machine that works at all, however much else it does.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A reading of the boot clock, which all processes share.
pub fn now() -> Duration {
    Duration::from_nanos(Clock::boot().read().as_nanos())
}

/// Waits for something that must come, and says what did not.
pub async fn within<T>(what: &str, limit: Duration, wait: impl Future<Output = T>) -> T {
    match tokio::time::timeout(limit, wait).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {limit:?}"),
    }
}

/// Looks until there is something; after [`LIMIT`] it fails, and says what is missing.
pub fn look_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() < end, "{what}: not within {LIMIT:?}");
        sleep(Duration::from_millis(5));
    }
}

/// Waits until something is so; after [`LIMIT`] it fails, and says what is not.
pub fn until(what: &str, mut there: impl FnMut() -> bool) {
    look_for(what, || there().then_some(()));
}
