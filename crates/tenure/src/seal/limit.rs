//! How many greetings are answered: in all, from one part of the network, and of one and the same
//! greeting. How many sessions are begun is limited in the same way: to derive keys is what costs
//! most.
//!
//! Only what was made with some key of the cluster comes this far, so a stranger cannot use the
//! allowance up. An attacker that has overheard packets can send them again, from any address; that
//! is what the third limit is for, which counts by the challenge in the packet. Memory is two
//! tables of fixed length, whose places are found by a hash that nobody outside can compute. Two
//! sources that meet in one place share its allowance. The tables are taken with the first
//! greeting: most members never hear one of an outsider, or one that they refuse.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use tenure_proto::LocalTime;
use tenure_proto::time::LocalSpan;

const SOURCES: usize = 1024;
const CHALLENGES: usize = 4096;
const SECOND: u64 = 1_000_000_000;

pub(super) struct Limiter {
    seed: u64,
    all: Rate,
    source: Rate,
    challenge: Rate,
    total: u64,
    /// Empty before the first greeting, then [`SOURCES`] long.
    sources: Vec<u64>,
    /// Empty before the first greeting, then [`CHALLENGES`] long.
    challenges: Vec<u64>,
}

/// An allowance that grows with time. Its state is one number: when it will be whole again.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    /// The cost of one use, in nanoseconds of growth.
    cost: u64,
    /// The whole allowance.
    most: u64,
}

impl Rate {
    pub(super) fn per_second(count: u32, burst: u32) -> Self {
        Self::every(LocalSpan::from_nanos(SECOND / u64::from(count.max(1))), burst)
    }

    /// One in each `interval`, and `burst` at once.
    pub(super) fn every(interval: LocalSpan, burst: u32) -> Self {
        let cost = interval.as_nanos().max(1);
        Self { cost, most: cost.saturating_mul(u64::from(burst.max(1))) }
    }

    /// The state after one use; `None` if nothing is left.
    pub(super) fn used(self, whole_at: u64, now: u64) -> Option<u64> {
        let after = whole_at.max(now).saturating_add(self.cost);
        (after - now <= self.most).then_some(after)
    }
}

impl Limiter {
    /// `all` from everywhere each second, `source` from one part of the network, each with bursts
    /// of a tenth of a second's worth; and `challenge` for one and the same.
    pub(super) fn new(all: u32, source: u32, challenge: Rate, seed: u64) -> Self {
        Self {
            seed,
            all: Rate::per_second(all, all / 10),
            source: Rate::per_second(source, source / 10),
            challenge,
            total: 0,
            sources: Vec::new(),
            challenges: Vec::new(),
        }
    }

    /// Whether one more greeting may be answered. Only then is anything used up.
    pub(super) fn allows(&mut self, from: IpAddr, challenge: &[u8; 16], now: LocalTime) -> bool {
        let now = now.as_nanos();
        self.sources.resize(SOURCES, 0);
        self.challenges.resize(CHALLENGES, 0);
        let source = self.place(prefix(from), SOURCES);
        let greeting = self.place(challenge, CHALLENGES);
        let used = (
            self.all.used(self.total, now),
            self.source.used(self.sources[source], now),
            self.challenge.used(self.challenges[greeting], now),
        );
        let (Some(total), Some(of_source), Some(of_greeting)) = used else { return false };
        self.total = total;
        self.sources[source] = of_source;
        self.challenges[greeting] = of_greeting;
        true
    }

    fn place(&self, what: impl Hash, places: usize) -> usize {
        let mut hasher = DefaultHasher::new();
        self.seed.hash(&mut hasher);
        what.hash(&mut hasher);
        usize::try_from(hasher.finish() % places as u64).expect("less than the number of places")
    }
}

/// The part of the network that one owner is likely to have: 24 bits of an IPv4 address, 48 of an
/// IPv6 address.
fn prefix(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(v4) => u64::from(v4.to_bits() >> 8),
        IpAddr::V6(v6) => 1 << 63 | u64::try_from(v6.to_bits() >> 80).expect("48 bits"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPEATS: u32 = 4;

    fn limiter(all: u32, source: u32) -> Limiter {
        Limiter::new(all, source, Rate::every(LocalSpan::from_nanos(SECOND / 10), REPEATS), 7)
    }

    fn at(millis: u64) -> LocalTime {
        LocalTime::from_nanos(millis * 1_000_000)
    }

    fn fresh(number: u64) -> [u8; 16] {
        u128::from(number).to_be_bytes()
    }

    #[test]
    fn one_source_cannot_use_up_what_others_need() {
        let mut limiter = limiter(1000, 100);
        let loud: IpAddr = [10, 0, 0, 1].into();
        let passed = (0..10_000).filter(|n| limiter.allows(loud, &fresh(*n), at(0))).count();
        assert_eq!(passed, 10, "a tenth of a second's worth");
        assert!(
            !limiter.allows([10, 0, 0, 200].into(), &fresh(20_000), at(0)),
            "the same part of the network"
        );
        assert!(limiter.allows([10, 0, 1, 1].into(), &fresh(20_001), at(0)));
        assert!(limiter.allows(loud, &fresh(20_002), at(10)), "it grows again");
    }

    #[test]
    fn all_sources_together_get_no_more_than_the_total() {
        let mut limiter = limiter(1000, 100);
        let sources = (0..100_000u32).map(|n| IpAddr::from((n << 8).to_be_bytes()));
        let passed = sources.zip(0..).filter(|(from, n)| limiter.allows(*from, &fresh(*n), at(0))).count();
        assert_eq!(passed, 100);
    }

    #[test]
    fn one_greeting_sent_from_everywhere_leaves_room_for_others() {
        let mut limiter = limiter(1000, 100);
        let overheard = fresh(1);
        let sources = (0..100_000u32).map(|n| IpAddr::from((n << 8).to_be_bytes()));
        let passed = sources.filter(|from| limiter.allows(*from, &overheard, at(0))).count();
        assert_eq!(passed, REPEATS as usize);
        assert!(limiter.allows([192, 168, 0, 1].into(), &fresh(2), at(0)));
    }

    #[test]
    fn a_clock_that_goes_back_only_makes_it_stricter() {
        let mut limiter = limiter(1000, 10);
        let from: IpAddr = [10, 0, 0, 1].into();
        assert!(limiter.allows(from, &fresh(1), at(5000)));
        assert!(!limiter.allows(from, &fresh(2), at(1000)));
        assert!(limiter.allows(from, &fresh(3), at(5100)));
    }

    #[test]
    fn both_writings_of_an_ipv4_address_are_one_source() {
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        assert_eq!(prefix(mapped), prefix([10, 0, 0, 1].into()));
        assert_ne!(prefix("2001:db8::1".parse().unwrap()), prefix([10, 0, 0, 1].into()));
    }
}
