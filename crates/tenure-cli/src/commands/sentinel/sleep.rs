//! Whether the machine slept, as the sentinel sees it for itself.
//!
//! After a suspend the end of the lease means nothing: the boot clock may have counted up to two
//! seconds too little. So everything ends that runs under it, and nothing is started under it any
//! more. A later end is that of a lease that was won or renewed after the suspend: the runner's
//! node notices it before it believes in any lease.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::{Errno, read};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tenure::{Clock, Disturbances};

/// The sleeps that were seen.
#[derive(Debug)]
pub(super) struct Sleep {
    seen: Disturbances,
    /// The end of the lease that there was when the machine slept.
    void: Option<u64>,
}

impl Sleep {
    pub(super) fn since_now(clock: &Clock, vmclock: Option<&Path>) -> Self {
        Self { seen: Disturbances::since_now(clock, vmclock), void: None }
    }

    /// Whether the clocks were disturbed since this was asked last. `end` is that of the present
    /// lease.
    pub(super) fn was_there(&mut self, end: u64) -> bool {
        let was = self.seen.take().is_some();
        if was {
            self.void = Some(end);
        }
        was
    }

    /// Whether a lease with this end is one of before the machine slept.
    pub(super) fn voids(&self, end: u64) -> bool {
        self.void.is_some_and(|void| end <= void)
    }
}

/// Wakes a poll when the machine resumes: a timer of the wall clock that never runs out, and that
/// the kernel cancels whenever this clock may have jumped.
#[derive(Debug)]
pub(super) struct Alarm(OwnedFd);

impl Alarm {
    /// `None` where there is no such timer: then other deadlines wake the loop.
    pub(super) fn set() -> Option<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let alarm = Self(timerfd_create(TimerfdClockId::Realtime, flags).ok()?);
        alarm.arm().ok()?;
        Some(alarm)
    }

    fn arm(&self) -> Result<(), Errno> {
        let never = Timespec { tv_sec: 1 << 40, tv_nsec: 0 };
        let at = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: never };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(&self.0, flags, &at).map(drop)
    }

    /// Sets it again if it was cancelled: it would be readable without end.
    pub(super) fn reset(&self) {
        if read(&self.0, &mut [0; 8]) == Err(Errno::CANCELED) {
            let _ = self.arm();
        }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_suspend_voids_the_lease_that_there_was_and_no_later_one() {
        let (clock, hand) = Clock::by_hand();
        let mut sleep = Sleep::since_now(&clock, None);
        assert!(!sleep.was_there(100) && !sleep.voids(100));
        hand.suspend(Duration::from_millis(5));
        assert!(sleep.was_there(100), "a few milliseconds suffice");
        assert!(!sleep.was_there(100), "it is told once");
        assert!(sleep.voids(99) && sleep.voids(100) && !sleep.voids(101));
    }

    #[test]
    fn time_that_passes_while_the_machine_is_awake_is_no_suspend() {
        let (clock, hand) = Clock::by_hand();
        let mut sleep = Sleep::since_now(&clock, None);
        hand.forward(Duration::from_secs(60));
        assert!(!sleep.was_there(100) && !sleep.voids(100));
    }

    #[test]
    fn the_alarm_is_there_and_does_not_ring_by_itself() {
        let alarm = Alarm::set().expect("Linux has had it since 3.0");
        assert_eq!(read(&alarm, &mut [0; 8]), Err(Errno::AGAIN));
        alarm.reset();
        assert_eq!(read(&alarm, &mut [0; 8]), Err(Errno::AGAIN), "it is still set");
    }
}
