//! Looks whether the clocks keep to what is assumed of them, and says so when they do not.
//!
//! **It is a detector, never part of the argument.** That no two lead rests on the bound; if a
//! clock breaks it, two may lead until this notices, and only the fence protects meanwhile. Its
//! measurements:
//!
//! | looked at | by | if it is beyond the bound |
//! |---|---|---|
//! | the own rate, steps among it | the hardware's counter (CLOCK_MONOTONIC_RAW), which nobody corrects | the node stops |
//! | the rate of each peer | stamps that went there and back | one peer: reported, and its grants do not count |
//! | | | a quorum of peers, all in one direction: it is this clock; the node stops |
//! | the error of a synchronised clock | what the kernel says of it, where the bound is on skew | the node stops |
//! | a suspend | the boot clock against the monotonic one | not here: `steady` looks for it where authority is used |
//! | a jump of the calendar | the real-time clock against the boot clock | reported: a machine that was paused with all its clocks shows it so, afterwards |
//!
//! **Rates are intervals.** A ping leaves at `s`, is stamped `r` by the peer and is back at `t`: at
//! `r` the own clock was within `[s, t]`. Two such triples bound how far the own clock went while
//! the peer's went from `r` to `r'`:
//!
//! ```text
//!   s' - t  <=  own  <=  t' - s          so  (r'-r)/(t'-s)  <=  peer's rate / own rate  <=  (r'-r)/(s'-t)
//! ```
//!
//! Only an interval that lies wholly outside of what two legal clocks can show, `(1-ρ)/(1+ρ)` to
//! `(1+ρ)/(1-ρ)`, is held against anybody. The longer the span and the shorter the round trip, the
//! narrower it is; of each second the quickest round trip is kept. The counter is read before and
//! after the own clock, so that a pause between the readings widens the interval and accuses
//! nobody. A peer that was restarted may have come back on another machine: it begins anew.
//!
//! **How soon.** Looks are [`LOOK`] apart, by the counter too: a clock that stands still is looked
//! at all the same.
//!
//! | what | is found within |
//! |---|---|
//! | the own rate, off by more than the bound and the counter's error ([`CRYSTAL`]) | [`SPAN`] and two looks: a second and a half; what is far off, sooner |
//! | the own clock stepping, forward without a suspend or back | a look, a quarter of a second; in the first half second of a node's life, three |
//! | a quorum of peers against the own clock, or a peer, off by `x` more than the bound allows | two times [`ASK`], a round trip and a look: 21 s, if no datagram is lost and round trips are quicker than `ASK·x/2` |
//! | the error of a synchronised clock | a look |
//!
//! A finding against a peer is held against it until it has left the window: [`KEPT`] times
//! [`ASK`], or its restart.

use std::collections::{BTreeMap, VecDeque};

use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::time::{Bound, Clockwork};
use tenure_proto::{LocalTime, NodeId};

use crate::clock::Clock;
use crate::sys::clock::{Synchronised, Which};

/// How often to look, in nanoseconds.
pub(crate) const LOOK: u64 = 250_000_000;

/// Over how long the own rate is measured.
pub(crate) const SPAN: u64 = 1_000_000_000;

/// How often a peer is asked for its clock.
const ASK: u64 = 10_000_000_000;

/// How many answers of a peer are kept.
const KEPT: usize = 10;

/// How many pings of a peer may be unanswered; the answer to an older one comes too late to be of
/// use.
const UNANSWERED: usize = 8;

/// The counter's own error, in millionths: crystals are good to some hundred.
const CRYSTAL: u64 = 500;

/// A jump of the calendar by less than this is nobody's concern.
const JUMP: u64 = 500_000_000;

const MILLION: u128 = 1_000_000;

/// The readings of this host's clocks at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readings {
    /// The clock by which leases are judged.
    pub(crate) own: u64,
    /// The same, without the time in which the machine was suspended.
    pub(crate) awake: u64,
    /// The counter, before and after.
    pub(crate) raw: (u64, u64),
    /// The boot clock, whatever leases are judged by.
    pub(crate) boot: u64,
    /// The calendar.
    pub(crate) real: u64,
}

impl Readings {
    /// Reads them all.
    pub(crate) fn take(clock: &Clock) -> Self {
        let own = clock.read().as_nanos();
        let before = clock.of_machine(Which::Raw);
        let awake = clock.awake();
        let raw = (before, clock.of_machine(Which::Raw));
        Self { own, awake, raw, boot: clock.of_machine(Which::Boot), real: clock.of_machine(Which::Real) }
    }
}

/// A finding of the watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// This node's clock cannot be trusted: it must neither lead nor grant.
    Broken(String),
    /// The clock of a peer cannot be trusted.
    Peer(NodeId),
    /// The calendar jumped by so many nanoseconds, though nobody slept.
    Jumped(i64),
}

/// One round trip: `r` of the peer was between `s` and `t` of this host.
#[derive(Clone, Copy, Debug)]
struct Trip {
    s: u64,
    r: u64,
    t: u64,
}

#[derive(Debug, Default)]
struct PeerClock {
    /// Which life of the peer this is about.
    boot: u128,
    /// When the pings left that it has not answered, the oldest first.
    asked: VecDeque<u64>,
    /// The quickest of each second, the oldest first.
    trips: VecDeque<Trip>,
    suspected: bool,
}

/// The detector.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    /// By the own clock.
    look_at: u64,
    /// By the counter.
    look_at_raw: u64,
    ask_at: u64,
    /// Earlier readings, [`LOOK`] of the counter apart.
    past: VecDeque<Readings>,
    peers: BTreeMap<NodeId, PeerClock>,
}

impl Watchdog {
    /// When to look again.
    pub(crate) fn next_wake(&self) -> LocalTime {
        LocalTime::from_nanos(self.look_at)
    }

    /// Whether to look now: by the own clock, or by the counter if the own clock is late.
    pub(crate) fn is_due(&self, clock: &Clock, now: LocalTime) -> bool {
        now.as_nanos() >= self.look_at || clock.of_machine(Which::Raw) >= self.look_at_raw
    }

    /// Whether it is time to ask the peers for their clocks.
    pub(crate) fn asks(&mut self, now: LocalTime) -> bool {
        let due = self.ask_at <= now.as_nanos();
        if due {
            self.ask_at = now.as_nanos() + ASK;
        }
        due
    }

    /// Whether grants of this peer count.
    pub(crate) fn trusts(&self, peer: NodeId) -> bool {
        self.peers.get(&peer).is_none_or(|peer| !peer.suspected)
    }

    /// How long the newest question to a peer and its answer took, in nanoseconds.
    pub(crate) fn round_trip(&self, peer: NodeId) -> Option<u64> {
        self.peers.get(&peer)?.trips.back().map(|trip| trip.t - trip.s)
    }

    /// A ping leaves for a peer at `s`.
    pub(crate) fn on_ping(&mut self, peer: NodeId, s: LocalTime) {
        let asked = &mut self.peers.entry(peer).or_default().asked;
        if asked.len() == UNANSWERED {
            asked.pop_front();
        }
        asked.push_back(s.as_nanos());
    }

    /// A peer has stamped a ping that left at `s` and is back at `t`. `boot` is its life. An answer
    /// to a ping that was not sent, or that was answered before, is dropped: otherwise any peer
    /// with a session could invent round trips, and be reported for a clock that nobody asked it
    /// for.
    pub(crate) fn on_pong(&mut self, peer: NodeId, boot: u128, [s, r, t]: [LocalTime; 3]) {
        let trip = Trip { s: s.as_nanos(), r: r.as_nanos(), t: t.as_nanos() };
        let Some(clock) = self.peers.get_mut(&peer) else { return };
        let Some(ping) = clock.asked.iter().position(|asked| *asked == trip.s) else { return };
        clock.asked.remove(ping);
        if clock.boot != boot {
            let asked = std::mem::take(&mut clock.asked);
            *clock = PeerClock { boot, asked, ..PeerClock::default() };
        }
        match clock.trips.back_mut() {
            Some(last) if trip.s < last.s => {} // It was overtaken.
            Some(last) if trip.s / SPAN == last.s / SPAN => {
                if trip.t - trip.s < last.t - last.s {
                    *last = trip;
                }
            }
            _ => clock.trips.push_back(trip),
        }
        if clock.trips.len() > KEPT {
            clock.trips.pop_front();
        }
    }

    /// Looks, if it is time to.
    pub(crate) fn look(
        &mut self,
        readings: Readings,
        clocks: Clockwork,
        (quorums, me): (&Quorums, NodeId),
        calendar: impl FnOnce() -> Synchronised,
    ) -> Vec<Finding> {
        if readings.own < self.look_at && readings.raw.1 < self.look_at_raw {
            return Vec::new();
        }
        self.look_at = readings.own.saturating_add(LOOK);
        self.look_at_raw = readings.raw.1.saturating_add(LOOK);
        let mut found: Vec<Finding> = self.own_rate(&readings, clocks).into_iter().collect();
        found.extend(self.jump(&readings));
        found.extend(skew(clocks, calendar));
        found.extend(self.peers(clocks, quorums, me));
        self.keep(readings);
        found
    }

    /// By the counter, not by the own clock: what a step of that showed must not be thrown away
    /// because of the step.
    fn keep(&mut self, readings: Readings) {
        let since = |then: &Readings| readings.raw.1.saturating_sub(then.raw.1);
        if self.past.back().is_none_or(|last| since(last) >= LOOK) {
            self.past.push_back(readings);
        }
        while self.past.get(1).is_some_and(|second| since(second) >= SPAN) {
            self.past.pop_front();
        }
    }

    /// The own clock against the counter, over about a second, without the time in which the
    /// machine slept.
    fn own_rate(&self, now: &Readings, clocks: Clockwork) -> Option<Finding> {
        let Bound::Drift(drift) = clocks.bound else { return None };
        let then = self.past.front()?;
        let own = now.awake.saturating_sub(then.awake); // One that went back did not go on.
        let least = now.raw.0.saturating_sub(then.raw.1);
        let most = now.raw.1.saturating_sub(then.raw.0);
        if most < SPAN / 2 {
            return None; // Too short to say anything.
        }
        let bound = u64::from(drift.as_ppm()) + CRYSTAL;
        let fast = u128::from(own) * MILLION > u128::from(most) * (MILLION + u128::from(bound));
        let slow = u128::from(own) * MILLION < u128::from(least) * MILLION.saturating_sub(u128::from(bound));
        (fast || slow).then(|| {
            let (own, raw) = (own / 1_000_000, if fast { most } else { least } / 1_000_000);
            let back = if now.awake < then.awake { "it went back: " } else { "" };
            Finding::Broken(format!(
                "{back}it showed {own} ms while the hardware counted {raw} ms; the bound is {} ppm",
                drift.as_ppm()
            ))
        })
    }

    /// The calendar against the boot clock, since the last look.
    fn jump(&self, now: &Readings) -> Option<Finding> {
        let then = self.past.back()?;
        let passed = i128::from(now.boot) - i128::from(then.boot);
        let by = i128::from(now.real) - i128::from(then.real) - passed;
        let told = i64::try_from(by).unwrap_or(if by < 0 { i64::MIN } else { i64::MAX });
        (by.unsigned_abs() > u128::from(JUMP)).then_some(Finding::Jumped(told))
    }

    /// Peers whose clocks cannot be legal if this one is. If they are so many, and all in one
    /// direction, that only this one can be wrong, it is.
    fn peers(&mut self, clocks: Clockwork, quorums: &Quorums, me: NodeId) -> Vec<Finding> {
        let Bound::Drift(drift) = clocks.bound else { return Vec::new() };
        let rho = u128::from(drift.as_ppm());
        let (mut fast, mut slow) = (NodeSet::EMPTY, NodeSet::EMPTY);
        let mut found = Vec::new();
        for (node, peer) in &mut self.peers {
            let verdict = peer.verdict(rho);
            if let (Some(position), Some(is_fast)) = (quorums.position(*node), verdict) {
                if is_fast { &mut fast } else { &mut slow }.insert(position);
            }
            if verdict.is_some() && !std::mem::replace(&mut peer.suspected, verdict.is_some()) {
                found.push(Finding::Peer(*node));
            }
            peer.suspected = verdict.is_some();
        }
        let without_me = |set: NodeSet| {
            quorums.position(me).map_or(set, |own| set.difference([own].into_iter().collect()))
        };
        for (set, word) in [(fast, "faster"), (slow, "slower")] {
            if quorums.is_quorum(without_me(set)) {
                let count = set.len();
                found.push(Finding::Broken(format!(
                    "{count} members' clocks run {word} than any legal one can beside this one"
                )));
            }
        }
        found
    }
}

impl PeerClock {
    /// Whether its clock has run too fast (`true`) or too slow (`false`) to be legal, if this one
    /// is. Any two trips may show it: over the whole window a short deviation, or a step, would be
    /// lost in the average.
    fn verdict(&self, rho: u128) -> Option<bool> {
        let later = |(index, first)| self.trips.iter().skip(index + 1).map(move |last| (first, last));
        self.trips.iter().enumerate().flat_map(later).find_map(|(first, last)| between(first, last, rho))
    }
}

/// The same, by two trips.
fn between(first: &Trip, last: &Trip, rho: u128) -> Option<bool> {
    let theirs = u128::from(last.r.saturating_sub(first.r)); // One that went back did not go on.
    let most = u128::from(last.t.saturating_sub(first.s));
    let least = u128::from(last.s.saturating_sub(first.t));
    // theirs/most > (1+ρ)/(1-ρ): even the slowest that it can be is too fast.
    if theirs * MILLION.saturating_sub(rho) > most * (MILLION + rho) {
        return Some(true);
    }
    // theirs/least < (1-ρ)/(1+ρ): even the fastest that it can be is too slow.
    (theirs * (MILLION + rho) < least * MILLION.saturating_sub(rho)).then_some(false)
}

/// A synchronised clock is good for a bound Δ on skew if no clock is off by more than half of it.
fn skew(clocks: Clockwork, calendar: impl FnOnce() -> Synchronised) -> Option<Finding> {
    let Bound::Skew(bound) = clocks.bound else { return None };
    let said = calendar();
    if !said.is {
        return Some(Finding::Broken("nobody keeps it synchronised".to_owned()));
    }
    (said.error > bound.as_nanos() / 2).then(|| {
        let (error, half) = (said.error / 1000, bound.as_nanos() / 2000);
        Finding::Broken(format!(
            "its error may be {error} us, more than half of the bound on skew, {half} us"
        ))
    })
}

#[cfg(test)]
mod tests {
    use tenure_proto::time::{Drift, LocalSpan};

    use super::*;

    const ME: NodeId = NodeId(0);
    const SECOND: u64 = 1_000_000_000;

    /// A ping leaves, and is answered.
    fn answers(dog: &mut Watchdog, node: u64, boot: u128, trip: [LocalTime; 3]) {
        dog.on_ping(NodeId(node), trip[0]);
        dog.on_pong(NodeId(node), boot, trip);
    }

    fn drift(ppm: u32) -> Clockwork {
        Clockwork { bound: Bound::Drift(Drift::from_ppm(ppm).unwrap()), tick: LocalSpan::from_nanos(1) }
    }

    fn three() -> Quorums {
        Quorums::majority(vec![ME, NodeId(1), NodeId(2)]).unwrap()
    }

    fn good() -> Synchronised {
        Synchronised { is: true, error: 0 }
    }

    fn at(own: u64, raw: u64, suspended: u64) -> Readings {
        Readings { own, awake: own - suspended, raw: (raw, raw), boot: own, real: own }
    }

    fn is_broken(found: &[Finding]) -> bool {
        found.iter().any(|finding| matches!(finding, Finding::Broken(_)))
    }

    /// The findings when the own clock runs at `ppm` millionths of the counter for three seconds.
    fn own(rate: u64, bound: u32) -> Vec<Finding> {
        let mut dog = Watchdog::default();
        let found = (0..12).map(|quarter| {
            let raw = SECOND + quarter * LOOK;
            dog.look(at(raw / 1_000_000 * rate, raw, 0), drift(bound), (&three(), ME), good)
        });
        found.flatten().collect()
    }

    #[test]
    fn a_rate_within_the_bound_is_left_alone() {
        for rate in [900_001, 1_000_000, 1_099_999] {
            assert_eq!(own(rate, 100_000), []);
        }
    }

    #[test]
    fn a_rate_beyond_the_bound_is_found_either_way() {
        assert!(matches!(own(1_102_000, 100_000)[..], [Finding::Broken(_), ..]));
        assert!(matches!(own(898_000, 100_000)[..], [Finding::Broken(_), ..]));
        assert!(matches!(own(1_002_000, 1_000)[..], [Finding::Broken(_), ..]));
    }

    #[test]
    fn a_suspend_is_no_fault_and_the_same_step_without_one_is() {
        for (suspended, broken) in [(60 * SECOND, false), (0, true)] {
            let mut dog = Watchdog::default();
            dog.look(at(SECOND, SECOND, 0), drift(1000), (&three(), ME), good);
            let later = at(2 * SECOND + 60 * SECOND, 2 * SECOND, suspended);
            let found = dog.look(later, drift(1000), (&three(), ME), good);
            assert_eq!(is_broken(&found), broken, "{found:?}");
        }
    }

    /// A watchdog that heard `peers`, each at its rate, for ten seconds with round trips of 2 ms.
    fn heard(peers: &[(u64, u64)]) -> (Watchdog, Vec<Finding>) {
        let mut dog = Watchdog::default();
        for second in 1..=10 {
            for (node, rate) in peers {
                let sent = second * SECOND;
                let stamped = (sent + 1_000_000) / 1_000_000 * rate;
                let trip = [sent, stamped, sent + 2_000_000].map(LocalTime::from_nanos);
                answers(&mut dog, *node, 1, trip);
            }
        }
        let found = dog.look(at(11 * SECOND, 11 * SECOND, 0), drift(1000), (&three(), ME), good);
        (dog, found)
    }

    #[test]
    fn one_peer_that_deviates_is_reported_and_not_counted_on() {
        let (dog, found) = heard(&[(1, 1_000_000), (2, 1_010_000)]);
        assert_eq!(found, [Finding::Peer(NodeId(2))]);
        assert!(dog.trusts(NodeId(1)) && !dog.trusts(NodeId(2)));
    }

    #[test]
    fn if_a_quorum_deviates_in_one_direction_it_is_the_own_clock() {
        let (_, found) = heard(&[(1, 1_010_000), (2, 1_009_000)]);
        assert!(is_broken(&found), "{found:?}");
        let (_, found) = heard(&[(1, 1_010_000), (2, 991_000)]);
        assert!(!is_broken(&found), "in opposite directions: {found:?}");
    }

    #[test]
    fn peers_within_the_bound_of_two_clocks_are_left_alone() {
        let (_, found) = heard(&[(1, 1_001_900), (2, 998_100)]);
        assert_eq!(found, []);
    }

    #[test]
    fn pongs_that_nobody_asked_for_accuse_nobody() {
        let mut dog = Watchdog::default();
        for second in 1..=10u64 {
            let sent = second * SECOND;
            // A clock twice as fast as legal: never asked for, and asked for once but told twice.
            let invented = [sent, sent * 2, sent + 2_000_000].map(LocalTime::from_nanos);
            dog.on_pong(NodeId(1), 1, invented);
            answers(&mut dog, 2, 1, [sent, sent, sent + 2_000_000].map(LocalTime::from_nanos));
            dog.on_pong(NodeId(2), 1, [sent, sent * 2, sent + 1_000_000].map(LocalTime::from_nanos));
        }
        assert_eq!(dog.look(at(11 * SECOND, 11 * SECOND, 0), drift(1000), (&three(), ME), good), []);
        assert!(dog.trusts(NodeId(1)) && dog.round_trip(NodeId(1)).is_none());
    }

    #[test]
    fn slow_round_trips_accuse_nobody() {
        let mut dog = Watchdog::default();
        for second in 1..=10u64 {
            let sent = second * SECOND;
            // Each way may have taken all of 800 ms: what looks like two percent is nothing.
            let trip = [sent, sent * 102 / 100, sent + 800_000_000].map(LocalTime::from_nanos);
            answers(&mut dog, 1, 1, trip);
        }
        assert_eq!(dog.look(at(11 * SECOND, 11 * SECOND, 0), drift(1000), (&three(), ME), good), []);
    }

    #[test]
    fn a_synchronised_clock_is_trusted_for_twice_its_error() {
        let skewed = Clockwork {
            bound: Bound::Skew(LocalSpan::from_nanos(10_000_000)),
            tick: LocalSpan::from_nanos(1),
        };
        for (is, error, fine) in [(true, 5_000_000, true), (true, 5_000_001, false), (false, 0, false)] {
            let mut dog = Watchdog::default();
            let found =
                dog.look(at(SECOND, SECOND, 0), skewed, (&three(), ME), || Synchronised { is, error });
            assert_eq!(found.is_empty(), fine, "{found:?}");
        }
    }

    #[test]
    fn a_jump_of_the_calendar_is_told() {
        let mut dog = Watchdog::default();
        dog.look(at(SECOND, SECOND, 0), drift(1000), (&three(), ME), good);
        let jumped = Readings { real: 9 * SECOND, ..at(2 * SECOND, 2 * SECOND, 0) };
        let found = dog.look(jumped, drift(1000), (&three(), ME), good);
        assert_eq!(found, [Finding::Jumped(7_000_000_000)]);
    }

    #[test]
    fn a_jump_of_the_calendar_is_told_also_where_leases_are_judged_by_it() {
        let mut dog = Watchdog::default();
        dog.look(at(SECOND, SECOND, 0), drift(1000), (&three(), ME), good);
        let both = Readings { own: 9 * SECOND, real: 9 * SECOND, ..at(2 * SECOND, 2 * SECOND, 0) };
        let found = dog.look(both, drift(1000), (&three(), ME), good);
        assert_eq!(found, [Finding::Jumped(7_000_000_000)]);
    }

    #[test]
    fn a_clock_that_stands_still_is_looked_at_all_the_same() {
        let mut dog = Watchdog::default();
        let looks = (0..8).map(|quarter| at(SECOND, SECOND + quarter * LOOK, 0));
        let found: Vec<_> =
            looks.map(|readings| dog.look(readings, drift(100_000), (&three(), ME), good)).collect();
        assert!(!is_broken(&found[1]), "a quarter of a second is too short");
        assert!(is_broken(&found[2]), "{found:?}");
    }

    #[test]
    fn a_clock_that_goes_back_is_broken() {
        let mut dog = Watchdog::default();
        dog.look(at(100 * SECOND, SECOND, 0), drift(100_000), (&three(), ME), good);
        let found = dog.look(at(90 * SECOND, 2 * SECOND, 0), drift(100_000), (&three(), ME), good);
        assert!(matches!(&found[..], [Finding::Broken(why)] if why.starts_with("it went back")), "{found:?}");
    }

    #[test]
    fn a_step_in_the_first_half_second_is_found_later() {
        let mut dog = Watchdog::default();
        dog.look(at(SECOND, SECOND, 0), drift(1000), (&three(), ME), good);
        let stepped = |quarter| at(6 * SECOND + quarter * LOOK, SECOND + quarter * LOOK, 0);
        assert_eq!(dog.look(stepped(1), drift(1000), (&three(), ME), good), []);
        assert!(is_broken(&dog.look(stepped(2), drift(1000), (&three(), ME), good)));
    }

    #[test]
    fn a_pause_between_two_readings_accuses_nobody() {
        let mut dog = Watchdog::default();
        // The process was off the processor for 300 ms, before or after the own clock was read.
        let pauses = [(0, 0), (300_000_000, 0), (0, 0), (0, 300_000_000), (0, 0)];
        for (second, (before, after)) in (1..).zip(pauses) {
            let now = second * SECOND;
            let paused = Readings { raw: (now - before, now + after), ..at(now, now, 0) };
            assert_eq!(dog.look(paused, drift(1000), (&three(), ME), good), []);
        }
    }

    /// Pings ten seconds apart, with round trips of 2 ms; the peers' stamps are given in
    /// milliseconds.
    fn stamped(dog: &mut Watchdog, node: u64, boot: u128, stamps: &[u64]) {
        for (sent, stamp) in (1..).map(|tick| tick * ASK).zip(stamps) {
            let trip = [sent, stamp * 1_000_000, sent + 2_000_000].map(LocalTime::from_nanos);
            answers(dog, node, boot, trip);
        }
    }

    #[test]
    fn a_peer_that_deviates_only_lately_is_found_within_two_pings() {
        let mut dog = Watchdog::default();
        // Right for seventy seconds, then half as fast again: over the window that is only a
        // twentieth.
        stamped(&mut dog, 1, 1, &[0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000, 85_000]);
        let found = dog.look(at(91 * SECOND, 91 * SECOND, 0), drift(100_000), (&three(), ME), good);
        assert_eq!(found, [Finding::Peer(NodeId(1))]);
    }

    #[test]
    fn peers_that_come_back_on_other_machines_accuse_nobody() {
        let mut dog = Watchdog::default();
        for node in [1, 2] {
            stamped(&mut dog, node, 1, &[0]);
            let later = [11 * SECOND, 9_000 * SECOND, 11 * SECOND + 1].map(LocalTime::from_nanos);
            answers(&mut dog, node, 2, later);
        }
        assert_eq!(dog.look(at(12 * SECOND, 12 * SECOND, 0), drift(1000), (&three(), ME), good), []);
    }

    #[test]
    fn a_peer_whose_clock_goes_back_or_stands_is_found() {
        for stamps in [[9_000, 9_000], [9_000, 5_000]] {
            let mut dog = Watchdog::default();
            stamped(&mut dog, 1, 1, &stamps);
            let found = dog.look(at(21 * SECOND, 21 * SECOND, 0), drift(100_000), (&three(), ME), good);
            assert_eq!(found, [Finding::Peer(NodeId(1))]);
        }
    }
}
