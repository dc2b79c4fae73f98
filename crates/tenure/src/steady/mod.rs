//! Whether a clock has been disturbed since it was looked at first.
//!
//! A lease is counted by CLOCK_BOOTTIME, which runs on while the machine is suspended. But a kernel
//! may count sleep by a clock of one second: then almost two seconds can be lost or gained, and a
//! leader that wakes up believes in a lease that is over. And a virtual machine that is paused,
//! moved or restored stands still with all its clocks. In both cases nothing that was measured
//! before means anything: leaderships are over, and a grantor keeps silent as after a reboot.
//!
//! # A suspend
//!
//! CLOCK_BOOTTIME − CLOCK_MONOTONIC is how long the machine was suspended since its boot. It is
//! constant but for suspends, when it grows. Two readings are never of one instant, so it is known
//! as an interval. Read MONOTONIC, BOOTTIME, MONOTONIC as `m`, `b`, `n`: at the instant of `b` the
//! monotonic clock showed something in `[m, n]`, so
//!
//! ```text
//!   b - n  <=  slept  <=  b - m
//! ```
//!
//! A process that is preempted between the readings makes the interval wider, and can neither fake
//! nor hide a suspend: it is certain that the machine slept if the *lower* bound is above what was
//! slept before, and certain that it did not if the *upper* bound is not ([`Verdict`]). If neither,
//! it is read again.
//!
//! Where authority is used two readings suffice: `m`, then `b`, whose upper bound is almost always
//! conclusive. On a machine that cannot suspend ([`Suspends`]) one reading does.
//!
//! # A virtual machine
//!
//! A host that knows of it tells in a page of memory (`vmclock`) that the clocks of its guest were
//! disrupted: a number there is another one afterwards. To look at it is a load or two.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tenure_proto::LocalTime;
use tenure_proto::boot::BootId;

use crate::clock::Clock;
use crate::vmclock::{Marker, VmClock};

/// A growth by less than this is none: it is how well the difference of two clocks can be measured.
/// Half of what a [memory](BootId::SLACK) allows for, which compares two measurements.
const SLACK: u64 = BootId::SLACK / 2;

/// How often the clocks are read until it is certain whether the machine slept.
const TRIES: usize = 64;

/// Where the kernel says how a machine can sleep.
const STATES: &str = "/sys/power/state";

/// Whether a machine can be suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suspends {
    /// It can.
    Yes,
    /// The kernel has no way to do it.
    No,
    /// It is not known, and so it counts as able.
    Unknown,
}

impl Suspends {
    /// Asks the kernel of this machine: `/sys/power/state` lists the ways.
    pub fn of_this_machine() -> Self {
        Self::by(Path::new(STATES))
    }

    /// An empty list is the kernel's word that there is none. A missing one is no word at all: in a
    /// container, or where `/sys` is not mounted, the machine below may do anything.
    fn by(states: &Path) -> Self {
        match std::fs::read_to_string(states) {
            Ok(states) if states.trim().is_empty() => Self::No,
            Ok(_) => Self::Yes,
            Err(_) => Self::Unknown,
        }
    }

    /// Whether it must be looked for.
    pub fn is_possible(self) -> bool {
        self != Self::No
    }
}

/// A disturbance of the clocks of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disturbance {
    /// The machine was suspended, and has counted at least this much of it.
    Slept(Duration),
    /// The host of this virtual machine says that its clocks were disrupted.
    Disrupted,
    /// The host's page is gone: it no longer tells of disruptions.
    PageGone,
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slept(by) => write!(f, "this machine was suspended, {} ms as it counts", by.as_millis()),
            Self::Disrupted => f.write_str("this virtual machine was paused, moved or restored"),
            Self::PageGone => {
                f.write_str("the host of this virtual machine tells nothing of its clocks any more")
            }
        }
    }
}

/// Whether the machine has slept since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Certainly not.
    Awake,
    /// Certainly: at least so many nanoseconds more than before.
    Slept(u64),
    /// Both may be.
    Unsure,
}

/// Notices suspends and disruptions of the clocks, for a process that watches over a leader's work
/// and has no guard of its own: `tenure run` has such a one. A guard ([`Tenure`](crate::Tenure))
/// notices them by itself.
#[derive(Debug)]
pub struct Disturbances(Steady);

impl Disturbances {
    /// Looks from now on: at the clock, and at the page of a virtual machine's host at `vmclock`
    /// ([`VMCLOCK`](crate::VMCLOCK)) if there is one.
    pub fn since_now(clock: &Clock, vmclock: Option<&Path>) -> Self {
        let page = vmclock.and_then(|path| VmClock::open(path).ok().flatten());
        Self(Steady::begin(clock, page.map(Arc::new)))
    }

    /// Returns the disturbance since the start or since the last call: each is returned once.
    pub fn take(&mut self) -> Option<Disturbance> {
        let happened = self.0.disturbance()?;
        self.0 = self.0.anew();
        Some(happened)
    }
}

/// The clock state that the driver and handles without a term share: the driver begins it anew
/// after a disturbance, once it has taken back all that it showed before. A handle that still holds
/// what was shown finds the old one, by which nothing lasts.
#[derive(Clone, Debug)]
pub(crate) struct SharedSteady(Arc<RwLock<Steady>>);

impl SharedSteady {
    pub(crate) fn new(steady: Steady) -> Self {
        Self(Arc::new(RwLock::new(steady)))
    }

    /// A reading; `None` if it means nothing.
    pub(crate) fn read(&self) -> Option<LocalTime> {
        let now = self.0.read().unwrap_or_else(PoisonError::into_inner).read();
        (now != NEVER).then_some(now)
    }

    /// For the driver alone.
    pub(crate) fn replace(&self, steady: Steady) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = steady;
    }
}

/// The conditions that must stay the same for readings to belong together. A guard has that of its
/// term, which never changes.
#[derive(Clone, Debug)]
pub(crate) struct Steady {
    clock: Clock,
    /// The marks that are checked besides the clock; `None` if there are none, which is one
    /// reading.
    watched: Option<Watched>,
}

#[derive(Clone, Debug)]
struct Watched {
    /// The machine had slept for at most this, if it can sleep.
    slept: Option<u64>,
    page: Option<(Arc<VmClock>, Marker)>,
}

impl Steady {
    /// From now on. `page` is what the host of a virtual machine tells.
    pub(crate) fn begin(clock: &Clock, page: Option<Arc<VmClock>>) -> Self {
        let slept = clock.suspends().is_possible().then(|| slept_now(|| clock.slept().1));
        let page = page.map(|page| {
            let marker = page.settled();
            (page, marker)
        });
        let watched = (slept.is_some() || page.is_some()).then_some(Watched { slept, page });
        Self { clock: clock.clone(), watched }
    }

    /// The same, begun anew.
    pub(crate) fn anew(&self) -> Self {
        Self::begin(&self.clock, self.page().filter(|page| !page.is_lost()).cloned())
    }

    /// For a memory of this boot: how long the machine had slept, and what its host said.
    pub(crate) fn in_boot(&self, boot: BootId) -> BootId {
        let marker = self.watched.as_ref().and_then(|watched| watched.page.as_ref());
        // Where it cannot suspend it has not slept, or it has, before this kernel was told not to:
        // the same value in any case.
        let slept = self.watched.as_ref().and_then(|watched| watched.slept);
        BootId {
            slept: slept.unwrap_or_else(|| slept_now(|| self.clock.slept().1)),
            marker: marker.map_or(0, |(_, marker)| marker.as_number()),
            ..boot
        }
    }

    /// The clock itself.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    fn page(&self) -> Option<&Arc<VmClock>> {
        self.watched.as_ref()?.page.as_ref().map(|(page, _)| page)
    }

    /// A reading by which authority is judged. If the clock was disturbed, or that cannot be told
    /// at this instant, it is later than any lease.
    #[inline]
    pub(crate) fn read(&self) -> LocalTime {
        match &self.watched {
            None => self.clock.read(),
            Some(watched) => watched.read(&self.clock),
        }
    }

    /// The disturbance since then, if there was one.
    pub(crate) fn disturbance(&self) -> Option<Disturbance> {
        let watched = self.watched.as_ref()?;
        if let Some((page, marker)) = &watched.page {
            if page.is_lost() {
                return Some(Disturbance::PageGone);
            }
            if page.settled() != *marker {
                return Some(Disturbance::Disrupted);
            }
        }
        match judge(watched.slept?, || self.clock.slept().1) {
            Verdict::Slept(by) => Some(Disturbance::Slept(Duration::from_nanos(by))),
            // It is looked at again in the next turn; guards refuse meanwhile if they cannot tell
            // either.
            Verdict::Awake | Verdict::Unsure => None,
        }
    }
}

impl Watched {
    #[inline]
    fn read(&self, clock: &Clock) -> LocalTime {
        let now = match self.slept {
            None => clock.read(),
            Some(before) => {
                let (now, at_most) = clock.read_and_slept();
                if at_most <= before.saturating_add(SLACK) { now } else { read_slowly(clock, before) }
            }
        };
        // After the clock: a machine that was paused before that reading shows it here.
        match &self.page {
            Some((page, marker)) if !page.still_says(*marker) => NEVER,
            _ => now,
        }
    }
}

/// Later than any lease.
const NEVER: LocalTime = LocalTime::from_nanos(u64::MAX);

/// The reading, if it is certain that the machine did not sleep before it.
#[cold]
fn read_slowly(clock: &Clock, before: u64) -> LocalTime {
    let mut now = NEVER;
    let verdict = judge(before, || {
        let (reading, bounds) = clock.slept();
        now = reading;
        bounds
    });
    if verdict == Verdict::Awake { now } else { NEVER }
}

/// Judges by intervals of what was slept, each read anew, until one is conclusive.
fn judge(before: u64, mut slept: impl FnMut() -> (u64, u64)) -> Verdict {
    let limit = before.saturating_add(SLACK);
    for _ in 0..TRIES {
        let (at_least, at_most) = slept();
        if at_most <= limit {
            return Verdict::Awake;
        }
        if at_least > limit {
            return Verdict::Slept(at_least - before);
        }
    }
    Verdict::Unsure
}

/// Returns the time slept up to now, at most, and at most [`SLACK`] too much. If that cannot be
/// measured it is too little: then the next look says that the machine slept, which costs a silence
/// and is safe.
fn slept_now(mut slept: impl FnMut() -> (u64, u64)) -> u64 {
    let mut best = slept();
    for _ in 0..TRIES {
        if best.1 - best.0 <= SLACK {
            return best.1;
        }
        let next = slept();
        best = if next.1 - next.0 < best.1 - best.0 { next } else { best };
    }
    best.0
}

#[cfg(test)]
mod tests;
