//! When a command must have ended: counted backwards from E, the end of the lease on this host's
//! clock.
//!
//! ```text
//!   Start   half of the time to TERM: renew   TERM       KILL    runner    E
//!     ├──────────────────┼──┼──┼──┼──┼──┼──┼────┼──────────┼────────┼───────┤
//!                        as many tries as fit      --grace    --kill-margin
//! ```
//!
//! TERM is what a late renewal costs, so the leader counts from there and not from E: what is left
//! of the lease for renewals is as long as what it waited for the first of them. With the default
//! lease of 3 s and 1.2 s of grace and margin that is 750 ms, or fifteen tries; counted from half
//! of the whole lease it would be 150 ms. When to renew is a matter of liveness alone: E moves only
//! when a quorum has granted, and each deadline below compares the clock with E.
//!
//! A renewal that succeeds moves E, and with it everything to the left of it. That is why each
//! decision reads E anew. The sentinel kills at E - margin; where it does not, the runner does at
//! E - margin/2.

use std::time::Duration;

use tenure::{ClockBound, Config};

use crate::failure::{Failure, messages};
use crate::founding::length;

/// How many renewals must fit between half of the lease and TERM. The first is tried before: this
/// keeps leases long enough for more.
const RENEWALS: u32 = 3;

/// Between asking a command to end and ending it, and between that and the end of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// From TERM to KILL.
    pub(crate) grace: Duration,
    /// From KILL to E.
    pub(crate) margin: Duration,
}

impl Timing {
    /// The end of each lease in which the command is ended, and which renewals must not come to.
    pub(crate) fn reserve(self) -> Duration {
        self.grace + self.margin
    }

    /// When to send TERM, if the lease ends at `end` and is not renewed.
    pub(crate) fn term_at(self, end: u64) -> u64 {
        self.kill_at(end).saturating_sub(nanos(self.grace))
    }

    /// When to send KILL.
    pub(crate) fn kill_at(self, end: u64) -> u64 {
        end.saturating_sub(nanos(self.margin))
    }

    /// When the runner does what its sentinel should have done.
    pub(crate) fn take_over_at(self, end: u64) -> u64 {
        end.saturating_sub(nanos(self.margin) / 2)
    }

    /// The shortest lease: a leader that has not renewed at half of it can still try three times
    /// before TERM.
    pub(crate) fn shortest_lease(self, config: &Config) -> Duration {
        let half = self.grace + self.margin + config.retry * RENEWALS;
        let usable = nanos(half).saturating_mul(2);
        let needed = match config.bound {
            ClockBound::Drift { ppm } => {
                let share = 1_000_000u128.saturating_sub(u128::from(ppm)).max(1);
                u64::try_from((u128::from(usable) * 1_000_000).div_ceil(share)).unwrap_or(u64::MAX)
            }
            ClockBound::Skew { bound } => usable.saturating_add(nanos(bound)),
        };
        // A round number, for people.
        Duration::from_nanos(needed.div_ceil(10_000_000).saturating_mul(10_000_000))
    }

    /// Whether all fits into the lease; if not, says which lease would do.
    pub(crate) fn check(self, config: &Config) -> Result<(), Failure> {
        let needed = self.shortest_lease(config);
        if config.lease >= needed {
            return Ok(());
        }
        let (grace, margin, retry, lease) = (self.grace, self.margin, config.retry, config.lease);
        let parts = format!(
            "--grace {}, --kill-margin {} and three tries to renew, {} each,",
            length(grace),
            length(margin),
            length(retry)
        );
        Err(if needed > config.longest_lease {
            messages::grace_too_long(parts, length(needed), length(config.longest_lease))
        } else {
            messages::lease_too_short(parts, length(lease), length(needed))
        })
    }
}

/// As nanoseconds, as many as fit.
pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// A reading of the boot clock, which every process of this host shares.
pub(crate) fn now() -> u64 {
    tenure::Clock::boot().read().as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::{ClusterKey, Key};

    const MS: u64 = 1_000_000;

    fn timing(grace: u64, margin: u64) -> Timing {
        Timing { grace: Duration::from_millis(grace), margin: Duration::from_millis(margin) }
    }

    fn config(lease: u64, ppm: u32) -> Config {
        let mut config = Config::new("a", Key::Cluster(ClusterKey::from_bytes([1; 32])));
        config.lease = Duration::from_millis(lease);
        config.bound = ClockBound::Drift { ppm };
        config
    }

    #[test]
    fn deadlines_are_counted_backwards_from_the_end() {
        let timing = timing(1000, 200);
        assert_eq!(timing.term_at(5000 * MS), 3800 * MS);
        assert_eq!(timing.kill_at(5000 * MS), 4800 * MS);
        assert_eq!(timing.take_over_at(5000 * MS), 4900 * MS);
        assert_eq!(timing.term_at(0), 0, "no lease: at once");
    }

    #[test]
    fn a_lease_that_is_too_short_is_refused_with_one_that_would_do() {
        // Half of a lease whose usable part is 9/10 must have room for 1000 + 200 + 3·50.
        let failure = timing(1000, 200).check(&config(2000, 100_000)).unwrap_err();
        assert_eq!(failure.code(), 78);
        assert!(failure.to_string().contains("--lease 3s"), "{failure}");
        assert_eq!(timing(1000, 200).check(&config(3000, 100_000)), Ok(()));
        assert!(timing(1000, 200).check(&config(2990, 100_000)).is_err());
    }

    #[test]
    fn a_grace_that_no_lease_of_the_cluster_has_room_for_is_said_to_be_the_fault() {
        let failure = timing(10_000, 200).check(&config(5000, 1000)).unwrap_err();
        assert!(failure.to_string().contains("longest is 5s"), "{failure}");
    }
}
