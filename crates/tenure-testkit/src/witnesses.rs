//! Witnesses of how long this machine ran nobody: threads that do nothing but look at the clock.
//! Time that they missed, nobody could have used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tenure::Clock;

/// A thread that spins until this is dropped.
pub struct Witness(Arc<Watch>);

#[derive(Default)]
struct Watch {
    over: AtomicBool,
    largest: AtomicU64,
}

impl Witness {
    /// Starts to look.
    pub fn start() -> Self {
        let watch = Arc::new(Watch::default());
        let shared = Arc::clone(&watch);
        thread::spawn(move || {
            let clock = Clock::boot();
            let mut last = clock.read().as_nanos();
            while !shared.over.load(Relaxed) {
                let now = clock.read().as_nanos();
                shared.largest.fetch_max(now - last, Relaxed);
                last = now;
            }
        });
        Self(watch)
    }

    /// The longest time, up to now, between two looks that should have followed each other at once.
    pub fn largest_hole(&self) -> Duration {
        Duration::from_nanos(self.0.largest.load(Relaxed))
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.over.store(true, Relaxed);
    }
}
