//! Readings of the system's clocks, through the vDSO: no system call on the way.

#![allow(unsafe_code, reason = "clock_gettime and adjtimex write to memory that we lend them")]

use std::mem::MaybeUninit;

/// One of the system's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Which {
    /// Since the boot, and it runs on while the machine is suspended.
    Boot = libc::CLOCK_BOOTTIME,
    /// Since the boot, without the time that the machine was suspended.
    Monotonic = libc::CLOCK_MONOTONIC,
    /// The same, as the hardware counts, without anybody's corrections.
    Raw = libc::CLOCK_MONOTONIC_RAW,
    /// Since 1970, as synchronised.
    Real = libc::CLOCK_REALTIME,
}

/// Nanoseconds.
#[inline]
pub(crate) fn read(which: Which) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` is room for one timespec, and the call keeps no pointer to it.
    let result = unsafe { libc::clock_gettime(which as libc::clockid_t, time.as_mut_ptr()) };
    assert!(result == 0, "Linux has had this clock since 2.6.39");
    // SAFETY: the call succeeded, so it has written all of it.
    let time = unsafe { time.assume_init() };
    time.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec.cast_unsigned())
}

/// The kernel's state of the synchronised clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Synchronised {
    /// Whether anybody keeps it synchronised at all.
    pub(crate) is: bool,
    /// The largest error, in nanoseconds, as the one who keeps it claims.
    pub(crate) error: u64,
}

/// Asks the kernel how good the synchronised clock is. Changes nothing.
pub(crate) fn synchronised() -> Synchronised {
    let (status, timex) = ask();
    let error = u64::try_from(timex.maxerror).unwrap_or(u64::MAX).saturating_mul(1000);
    Synchronised { is: status >= 0 && status != libc::TIME_ERROR, error }
}

/// By how much the kernel is told to run its clocks faster than the counter does, in parts per
/// billion; negative for slower. `None` if it does not say.
pub(crate) fn correction() -> Option<i64> {
    let (status, timex) = ask();
    // In millionths, 16 bits of them behind the point; and a tick of the clock, ten milliseconds,
    // in whole microseconds.
    let (frequency, tick) = (timex.freq.saturating_mul(1000) >> 16, timex.tick - 10_000);
    (status >= 0).then(|| frequency.saturating_add(tick.saturating_mul(100_000)))
}

fn ask() -> (libc::c_int, libc::timex) {
    // SAFETY: all of a timex may be zero; with `modes` zero the call only writes to it.
    unsafe {
        let mut timex = MaybeUninit::<libc::timex>::zeroed().assume_init();
        (libc::adjtimex(&raw mut timex), timex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_run() {
        for which in [Which::Boot, Which::Monotonic, Which::Raw, Which::Real] {
            let first = read(which);
            assert!(first > 0 && read(which) >= first, "{which:?}");
        }
        assert!(read(Which::Boot) >= read(Which::Monotonic) - 1_000_000_000);
    }

    #[test]
    fn the_kernel_tells_a_correction_that_it_can_carry_out() {
        let correction = correction().expect("reading needs no privilege");
        assert!(correction.abs() < 101_000_000, "{correction} ppb: a tick is off by at most a tenth");
    }
}
