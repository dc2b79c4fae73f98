//! Failure detectors: they report which processes seem to have stopped.
//!
//! No process can know that another has crashed: silence looks the same whether it comes from a
//! crash, a slow network or a long pause. A detector guesses, and a guess can be wrong in two ways.
//! It may suspect a process that lives (a **mistake**), and it may trust one that has crashed, for
//! a while (the **detection time**). The less of the one, the more of the other.
//!
//! # Guarantees
//!
//! * **Completeness.** A process that is heard no more is suspected, and stays so. So is a process
//!   that was never heard: time counts from the moment when the detector was made.
//! * **Recovery.** A process that is heard is trusted again at once.
//! * **Accuracy** holds only as far as the detector's model of the network holds, and each detector
//!   says what its model is.
//!
//! # Not guaranteed
//!
//! In Tenure suspicion serves **liveness, never safety**. It may decide when to campaign, whom to
//! ask first, what to show an operator. It must not free a grant, end or extend a lease, or count
//! as a vote: a grantor is bound until its own clock says so, however dead the holder seems, and a
//! leader stops at the end of its lease, however alive its grantors seem. So a detector that is
//! always wrong can cost elections and time; it cannot make two leaders.
//!
//! | the guess is wrong | what it costs |
//! |---|---|
//! | a living leader is suspected | a campaign that its grantors refuse |
//! | a dead leader is trusted | nobody campaigns until the suspicion comes |
//! | nearly everybody is suspected | several campaign at once, and may have to try again |
//!
//! # Where to find what
//!
//! | module | holds |
//! |---|---|
//! | [`heartbeat`] | a fixed timeout: exact where delays are bounded |
//! | [`phi`] | phi accrual: a timeout learnt from the intervals seen |
//! | [`nfd_e`] | NFD-E: a timeout from when the next heartbeat is expected |
//! | [`quality`] | how good a detector was: the numbers of Chen, Toueg and Aguilera |
//! | [`ring`] | Nerio's weak election: neighbours on a ring, and the lowest of the living |
//! | [`weak`] | weak elections as one process uses them: when it should try |
//! | [`fail_aware`] | datagrams whose receiver knows that they were not long on their way |
//! | [`alive`] | whom one process has heard of in time: each judges for itself |
//!
//! # Example
//!
//! ```
//! use tenure_proto::LocalTime;
//! use tenure_proto::detect::{Detector, Heartbeat};
//! use tenure_proto::time::LocalSpan;
//!
//! let at = |millis: u64| LocalTime::from_nanos(millis * 1_000_000);
//! let span = |millis: u64| LocalSpan::from_nanos(millis * 1_000_000);
//!
//! // A heartbeat every 100 ms, at most 50 ms on its way.
//! let mut detector = Heartbeat::new(span(100), span(50), at(0));
//! detector.heard(at(120));
//! let deadline = detector.next_crossing(at(120)).expect("silence will be noticed");
//! assert!(!detector.suspects(at(270)), "the next one may take all of its 50 ms");
//! assert!(detector.suspects(deadline));
//! ```

pub mod alive;
pub mod fail_aware;
pub mod heartbeat;
pub mod nfd_e;
pub mod phi;
pub mod quality;
pub mod ring;
mod tail;
pub mod weak;

pub use alive::AliveSet;
pub use fail_aware::FailAware;
pub use heartbeat::Heartbeat;
pub use nfd_e::NfdE;
pub use phi::{Phi, PhiAccrual};
pub use quality::{Quality, Record};
pub use ring::Ring;

use crate::{Data, LocalTime};

/// Watches one process by its heartbeats. Plain data; every reading is of the watching host's
/// clock.
///
/// The caller hands over each heartbeat once: one that the network repeated says nothing new.
///
/// # Laws
///
/// Besides the guarantees of the module:
///
/// 1. After `heard(now)`, `suspects(now)` is false. (But [`NfdE`] asks whether what it heard is
///    fresh.)
/// 2. If nothing is heard, suspicion begins once and does not end.
/// 3. `next_crossing` names that instant exactly: if it is `Some(at)` then `at > now`, nobody is
///    suspected from `now` until `at`, and from `at` on the process is. If it is `None`, the
///    process is suspected already, or the end of time comes first.
pub trait Detector: Data {
    /// Notes a heartbeat. A reading before the last one changes nothing.
    fn heard(&mut self, now: LocalTime);

    /// Whether the process seems to have crashed.
    fn suspects(&self, now: LocalTime) -> bool;

    /// When suspicion will begin if nothing is heard: the deadline to wait for.
    fn next_crossing(&self, now: LocalTime) -> Option<LocalTime>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::LocalSpan;

    pub(super) fn at(nanos: u64) -> LocalTime {
        LocalTime::from_nanos(nanos)
    }

    pub(super) fn span(nanos: u64) -> LocalSpan {
        LocalSpan::from_nanos(nanos)
    }

    /// A seeded generator (SplitMix64).
    pub(super) struct Chance(pub(super) u64);

    impl Chance {
        pub(super) fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) % bound
        }
    }

    /// Asks at every single instant of `now..=last` and compares with what `next_crossing` says.
    pub(super) fn assert_crossing_is_exact<D: Detector>(detector: &D, now: u64, last: u64) {
        let found = (now..=last).find(|instant| detector.suspects(at(*instant)));
        for instant in now..=last {
            let began = found.is_some_and(|found| found <= instant);
            assert_eq!(detector.suspects(at(instant)), began, "at {instant}: {detector:?}");
            match (detector.next_crossing(at(instant)), found) {
                (Some(crossing), None) => assert!(crossing > at(last), "{crossing:?}: {detector:?}"),
                (Some(crossing), found) => assert_eq!((Some(crossing), began), (found.map(at), false)),
                (None, _) => assert!(began, "at {instant} nothing is expected: {detector:?}"),
            }
        }
    }
}
