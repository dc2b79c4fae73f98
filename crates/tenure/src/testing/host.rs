//! A host of a cluster in memory: everything that a node gets from its machine elsewhere.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep};

use super::dice::Dice;
use super::disk::Kept;
use super::network::Network;
use crate::clock::nanos;
use crate::sys::clock::Which;

/// The surroundings of a node on its host, in place of sockets, a disk, and chance.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) network: Network,
    pub(crate) address: SocketAddr,
    pub(crate) kept: Kept,
    pub(crate) dice: Dice,
}

/// The calendar of all hosts when a cluster begins: the first of January 2026.
const CALENDAR: u64 = 1_767_225_600_000_000_000;

/// The clocks of one host. They go by tokio's time of the test's runtime, so they stand still and
/// jump with it where it is paused; each host has a rate and a beginning of its own.
#[derive(Clone)]
pub(crate) struct HostClock(Arc<Inner>);

struct Inner {
    /// Tokio's time is that of a runtime. A guard may be asked on any thread.
    runtime: Handle,
    zero: Instant,
    /// The reading of the clock at `zero`.
    offset: u64,
    /// Its rate, in millionths of tokio's.
    millionths: u32,
    slept: Mutex<Slept>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slept {
    /// All suspends that are over, together.
    total: u64,
    /// The reading at which the present one began.
    since: Option<u64>,
}

impl Slept {
    fn by(self, now: u64) -> u64 {
        self.total + self.since.map_or(0, |since| now.saturating_sub(since))
    }
}

impl fmt::Debug for HostClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostClock").field("now", &self.read()).finish_non_exhaustive()
    }
}

impl HostClock {
    pub(super) fn new(offset: u64, millionths: u32) -> Self {
        let (runtime, zero) = (Handle::current(), Instant::now());
        Self(Arc::new(Inner { runtime, zero, offset, millionths, slept: Mutex::default() }))
    }

    /// The reading of CLOCK_BOOTTIME on this host: it runs on in a suspend.
    pub(crate) fn read(&self) -> u64 {
        let passed = {
            let _here = self.0.runtime.enter();
            nanos(self.0.zero.elapsed())
        };
        let own = u128::from(passed) * u128::from(self.0.millionths) / 1_000_000;
        self.0.offset.saturating_add(u64::try_from(own).unwrap_or(u64::MAX))
    }

    /// The same, and how long the host was suspended by then.
    pub(crate) fn read_and_slept(&self) -> (u64, u64) {
        let slept = self.slept();
        let now = self.read();
        (now, slept.by(now))
    }

    /// The reading of CLOCK_MONOTONIC: it stands still in a suspend.
    pub(crate) fn awake(&self) -> u64 {
        let (now, slept) = self.read_and_slept();
        now - slept
    }

    /// One of the system's clocks. Nobody corrects any of them: they agree.
    pub(crate) fn of_machine(&self, which: Which) -> u64 {
        match which {
            Which::Boot => self.read(),
            Which::Monotonic | Which::Raw => self.awake(),
            Which::Real => CALENDAR + (self.read() - self.0.offset),
        }
    }

    /// Waits by tokio's time, under any executor.
    pub(crate) fn sleep(&self, length: Duration) -> Sleep {
        let _here = self.0.runtime.enter();
        tokio::time::sleep(length)
    }

    /// The host goes to sleep, unless it sleeps already.
    pub(super) fn suspend(&self) {
        let mut slept = self.slept();
        let now = self.read();
        slept.since.get_or_insert(now);
    }

    /// The host wakes up, if it slept.
    pub(super) fn wake(&self) {
        let mut slept = self.slept();
        *slept = Slept { total: slept.by(self.read()), since: None };
    }

    fn slept(&self) -> MutexGuard<'_, Slept> {
        self.0.slept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
