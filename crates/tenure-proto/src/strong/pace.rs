//! The length of a lease: δ follows the network (section 10.1, erratum E7).
//!
//! Too short, and a leader loses its lease to one slow message; too long, and everybody waits when
//! it dies. With d the round trip to the slowest member of the fastest quorum, r the tries more
//! that a renewal should survive, and i how far apart renewals should be:
//!
//! ```text
//!     δ = (i + (r+1)·d)·(1+ρ)/(1-ρ)      between δ_min and δ_max
//!     renew when E - C <= (1+ρ)(r+1)·d
//!
//!     Start ├────────── i ──────────┼── d ──┼── d ──┼── d ──┤ E        r = 2
//!                                   renew    again   again
//! ```
//!
//! The paper's δ lets renewals come closer than i, and counts what is left of a lease with (1+ρ)
//! where the longest real time is `(E-C)/(1-ρ)`.
//!
//! d is `srtt + 4·rttvar` of Jacobson and Karels, from answers to renewals that were asked once (an
//! answer to a repeated question may belong to either; an acquisition may wait for a disk). If no
//! answer comes before the repetition nothing is learnt, so d then counts double until one does.
//!
//! δ grows at once: the network will not wait. It shrinks by at most an eighth a renewal, after ten
//! renewals that wanted no more, and not for less than a tenth: nobody gains by a lease that
//! changes all the time.
//!
//! Safety does not depend on δ: each request carries its own, E and F are counted from that, and
//! grantors cap it.

use crate::quorum::{NodeSet, Quorums};
use crate::time::{Clockwork, LocalSpan, Span};
use crate::{LocalTime, NodeId};

use super::candidate::{Around, Candidate};
use super::config::Adapt;
use super::message::{Event, GrantRequest, InstanceId, Kind};
use super::rules::Rules;

/// How many renewals in a row must want no longer lease before it shrinks.
const QUIET: u32 = 10;

/// d counts double for each renewal that nobody answered in time, up to 2⁶ times.
const MOST_STRAIN: u32 = 6;

/// The round trips to one member: a mean and a mean deviation, both with falling weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Trip {
    mean: LocalSpan,
    deviation: LocalSpan,
}

impl Trip {
    fn first(length: LocalSpan) -> Self {
        Self { mean: length, deviation: length.fraction(1, 2) }
    }

    fn with(self, length: LocalSpan) -> Self {
        let off = length.minus(self.mean).plus(self.mean.minus(length));
        Self {
            mean: self.mean.fraction(7, 8).plus(length.fraction(1, 8)),
            deviation: self.deviation.fraction(3, 4).plus(off.fraction(1, 4)),
        }
    }

    /// The length that hardly any round trip exceeds. The roundings down above take less than eight
    /// nanoseconds: they are given back.
    fn most(self) -> LocalSpan {
        self.mean.plus(self.deviation.times(4)).plus(LocalSpan::from_nanos(8))
    }
}

/// The round trips to all members that have answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Trips(Vec<(NodeId, Trip)>);

impl Trips {
    fn note(&mut self, member: NodeId, length: LocalSpan) {
        match self.0.iter_mut().find(|(known, _)| *known == member) {
            Some((_, trip)) => *trip = trip.with(length),
            None => self.0.push((member, Trip::first(length))),
        }
    }

    /// Forgets those that are no members any more.
    pub(super) fn keep(&mut self, members: &[NodeId]) {
        self.0.retain(|(known, _)| members.contains(known));
    }

    /// d: the round trip to the slowest member of the fastest quorum that is a majority by number
    /// too; `None` until one has answered. Where weights make a few a quorum, or a leader alone,
    /// the next epoch may weigh them otherwise.
    fn of_quorum(&self, quorums: &Quorums) -> Option<LocalSpan> {
        let place = |(member, trip): &(NodeId, Trip)| Some((trip.most(), quorums.position(*member)?));
        let mut fastest: Vec<(LocalSpan, usize)> = self.0.iter().filter_map(place).collect();
        fastest.sort_unstable();
        let mut within = NodeSet::EMPTY;
        fastest.into_iter().find_map(|(most, position)| {
            within.insert(position);
            let many = 2 * within.len() > quorums.members().len();
            (many && quorums.is_quorum(within)).then_some(most)
        })
    }
}

/// A renewal whose answers are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Measured {
    id: InstanceId,
    start: LocalTime,
    /// Somebody was asked twice: answers from now on may belong to either.
    repeated: bool,
    /// Another member answered before that.
    answered: bool,
}

/// How long one group's leases are, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Pacing {
    /// δ as it was last chosen.
    lease: Option<Span>,
    /// Renewals since it last grew.
    quiet: u32,
    /// How often d counts double.
    strain: u32,
    /// The user knows that the longest lease is too short.
    alarmed: bool,
    measured: Option<Measured>,
}

/// The δ that the formula gives, and whether δ_max allows for it.
struct Wanted {
    lease: Span,
    needed: Span,
}

impl Pacing {
    /// Chooses δ anew: up at once, down slowly, not at all for a trifle. Says whether it changed.
    fn choose(&mut self, wanted: Span, now: Span, renews: bool) -> Span {
        let (wanted, now) = (wanted.as_nanos(), now.as_nanos());
        let tenth = now / 10;
        if wanted > now.saturating_add(tenth) {
            self.quiet = 0;
            return Span::from_nanos(wanted);
        }
        if renews {
            self.quiet = self.quiet.saturating_add(1);
        }
        if !renews || self.quiet <= QUIET || wanted >= now - tenth {
            return Span::from_nanos(now);
        }
        Span::from_nanos(wanted.max(now - now / 8))
    }

    /// Whether to raise an alarm: once, and again only after there was room to spare.
    fn alarm(&mut self, needed: Span, longest: Span) -> bool {
        if needed > longest {
            return !std::mem::replace(&mut self.alarmed, true);
        }
        if needed.as_nanos() < longest.as_nanos() / 4 * 3 {
            self.alarmed = false;
        }
        false
    }
}

/// The formula: δ, and the least δ that survives the retries at all.
fn wanted(adapt: &Adapt, clocks: Clockwork, trip: LocalSpan, longest: Span) -> Wanted {
    let tries = trip.times(adapt.retries.saturating_add(1));
    let lease = clocks.lease_for(adapt.interval.nominal().plus(tries));
    Wanted { lease: lease.max(adapt.shortest).min(longest), needed: clocks.lease_for(tries) }
}

impl Candidate {
    /// δ for a run: what the settings say, or what the network needs if they leave it to that; at
    /// most what the epoch allows.
    pub(super) fn choose_lease<R: Rules>(&mut self, kind: Kind, around: &mut Around<'_, '_, R>) -> Span {
        let body = &around.process.charter().body;
        let (clocks, longest) = (body.clocks, body.longest_lease);
        let settings = around.process.config.settings();
        let fixed = settings.lease.min(longest);
        let (Some(adapt), Some(trip)) = (settings.adapt, self.round_trip(around)) else { return fixed };
        let now = self.pacing.lease.map_or(fixed, |lease| lease.min(longest));
        let wanted = wanted(&adapt, clocks, trip, longest);
        let lease = self.pacing.choose(wanted.lease, now, kind == Kind::Renew);
        self.pacing.lease = Some(lease);
        let group = around.group;
        if lease != now {
            around.cx.publish(Event::Paced { group, lease });
        }
        if self.pacing.alarm(wanted.needed, longest) {
            around.cx.publish(Event::Strained { group, needed: wanted.needed, longest });
        }
        lease
    }

    /// d, doubled for each renewal that taught nothing. `None` if it is not known, or nobody asked
    /// for it, or there is only one member: its answers to itself say nothing about those who may
    /// join it.
    fn round_trip<R: Rules>(&self, around: &Around<'_, '_, R>) -> Option<LocalSpan> {
        let settings = around.process.config.settings();
        let quorums = &around.process.charter().body.quorums;
        settings.adapt.filter(|_| quorums.members().len() > 1)?;
        let known = around.process.trips.of_quorum(quorums);
        let strained = (self.pacing.strain > 0).then_some(settings.retry.nominal());
        known.or(strained).map(|trip| trip.times(1 << self.pacing.strain))
    }

    /// How long to wait before asking again: d, but where the longest lease is too short for that,
    /// so long that all tries fit into the lease.
    pub(super) fn retry_interval<R: Rules>(&self, around: &Around<'_, '_, R>) -> LocalSpan {
        let settings = around.process.config.settings();
        let (Some(adapt), Some(trip)) = (settings.adapt, self.round_trip(around)) else {
            return settings.retry.nominal();
        };
        let clocks = around.process.charter().body.clocks;
        let lease = clocks.usable(self.pacing.lease.unwrap_or(settings.lease));
        trip.min(lease.fraction(1, adapt.retries.saturating_add(2))).max(clocks.tick)
    }

    /// A shorter pause between the tries of a run that begins when fewer than two of them fit into
    /// the lease that the leader holds. A new epoch may allow longer leases: d then suits the lease
    /// that is asked for, and not the one in hand.
    pub(super) fn hurry<R: Rules>(&self, around: &Around<'_, '_, R>) -> Option<LocalSpan> {
        let adapt = around.process.config.settings().adapt?;
        let (trip, rest) = (self.round_trip(around)?, self.lead?.until.remaining(around.cx.now()));
        (rest < trip.times(2))
            .then(|| rest.fraction(1, adapt.retries.saturating_add(2)).max(trip.fraction(1, 4)))
    }

    /// When to renew a lease that began at `start` and ends at `until`.
    pub(super) fn renew_at<R: Rules>(
        &self,
        (start, lease, until): (LocalTime, Span, LocalTime),
        around: &Around<'_, '_, R>,
    ) -> LocalTime {
        let now = around.cx.now();
        let clocks = around.process.charter().body.clocks;
        let adapt = around.process.config.settings().adapt;
        if let (Some(adapt), Some(trip)) = (adapt, self.round_trip(around)) {
            let tries = clocks.most_shown(trip.times(adapt.retries.saturating_add(1)));
            return now.after(until.remaining(now).minus(tries));
        }
        // After half of the lease, counted from its start: a slow renewal must not make the next
        // one late. The reserve does not count, but a leader whose lease has no room for it must
        // not renew without a pause.
        let usable = clocks.usable(lease);
        let reserve = around.process.config.settings().reserve.nominal().min(usable.fraction(3, 4));
        let half_of_lease = start.after(usable.minus(reserve).fraction(1, 2)).max(now);
        let half_of_rest = now.after(until.remaining(now).minus(reserve).fraction(1, 2));
        half_of_lease.min(half_of_rest)
    }

    /// All members have been asked: the answers will be measured.
    pub(super) fn measure(&mut self, request: &GrantRequest) {
        let GrantRequest { id, start, kind, .. } = *request;
        let renews = kind == Kind::Renew;
        self.pacing.measured = Some(Measured { id, start, repeated: !renews, answered: !renews });
    }

    /// Some are asked again. If nobody has answered yet, messages take longer than was thought, or
    /// are all lost.
    pub(super) fn measure_repeated(&mut self) {
        let Some(measured) = &mut self.pacing.measured else { return };
        measured.repeated = true;
        if !measured.answered {
            measured.answered = true;
            self.pacing.strain = (self.pacing.strain + 1).min(MOST_STRAIN);
        }
    }

    /// Somebody answered, in time for its run or not.
    pub(super) fn measure_answer<R: Rules>(
        &mut self,
        from: NodeId,
        id: InstanceId,
        around: &mut Around<'_, '_, R>,
    ) {
        let Some(measured) = self.pacing.measured.as_mut().filter(|run| run.id == id && !run.repeated) else {
            return;
        };
        let now = around.cx.now();
        // Both readings may lie almost a tick below the clock.
        let tick = around.process.charter().body.clocks.tick;
        around.process.trips.note(from, now.remaining(measured.start).plus(tick));
        if from != around.process.holder.node {
            measured.answered = true;
            self.pacing.strain = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Bound, Drift};

    fn span(nanos: u64) -> Span {
        Span::from_nanos(nanos)
    }

    fn local(nanos: u64) -> LocalSpan {
        LocalSpan::from_nanos(nanos)
    }

    fn clocks(ppm: u32) -> Clockwork {
        Clockwork { bound: Bound::Drift(Drift::from_ppm(ppm).unwrap()), tick: local(1) }
    }

    const ADAPT: Adapt =
        Adapt { shortest: Span::from_nanos(500), interval: Span::from_nanos(1000), retries: 2 };

    #[test]
    fn a_lease_has_room_for_the_interval_and_every_try() {
        let lease = |ppm, trip| wanted(&ADAPT, clocks(ppm), local(trip), span(100_000)).lease;
        assert_eq!(lease(0, 100), span(1000 + 3 * 100));
        assert_eq!(lease(100_000, 100), span(1589), "1300 · 1.1 / 0.9, rounded up");
    }

    #[test]
    fn a_lease_stays_within_its_bounds() {
        let lease = |trip| wanted(&ADAPT, clocks(0), local(trip), span(3000)).lease;
        assert_eq!(lease(10_000), span(3000));
        let patient = Adapt { shortest: span(2000), ..ADAPT };
        assert_eq!(wanted(&patient, clocks(0), local(1), span(3000)).lease, span(2000));
    }

    #[test]
    fn a_lease_grows_at_once() {
        let mut pacing = Pacing::default();
        assert_eq!(pacing.choose(span(5000), span(1000), true), span(5000));
        assert_eq!(pacing.choose(span(9000), span(5000), false), span(9000));
    }

    #[test]
    fn a_lease_shrinks_by_an_eighth_a_renewal_and_only_after_ten_that_wanted_no_more() {
        let mut pacing = Pacing::default();
        let mut lease = span(8000);
        for renewal in 1..=10 {
            assert_eq!(pacing.choose(span(1000), lease, true), lease, "renewal {renewal}");
        }
        lease = pacing.choose(span(1000), lease, true);
        assert_eq!(lease, span(7000));
        lease = pacing.choose(span(1000), lease, true);
        assert_eq!(lease, span(6125));
        assert_eq!(pacing.choose(span(6000), lease, true), lease, "less than a tenth is a trifle");
        assert_eq!(pacing.choose(span(8000), lease, true), span(8000));
        assert_eq!(pacing.choose(span(1000), span(8000), true), span(8000), "the ten are counted anew");
    }

    #[test]
    fn only_renewals_make_a_lease_shorter() {
        let mut pacing = Pacing { quiet: 100, ..Pacing::default() };
        assert_eq!(pacing.choose(span(1000), span(8000), false), span(8000));
        assert_eq!(pacing.choose(span(1000), span(8000), true), span(7000));
    }

    #[test]
    fn a_trifle_changes_nothing() {
        let mut pacing = Pacing { quiet: 100, ..Pacing::default() };
        for wanted in [1100, 1050, 1000, 900] {
            assert_eq!(pacing.choose(span(wanted), span(1000), true), span(1000), "{wanted}");
        }
    }

    #[test]
    fn the_alarm_is_raised_once_until_there_was_room_to_spare() {
        let mut pacing = Pacing::default();
        let raised: Vec<bool> = [999, 1001, 5000, 990, 1001, 760, 1001, 740, 1001]
            .into_iter()
            .map(|needed| pacing.alarm(span(needed), span(1000)))
            .collect();
        assert_eq!(raised, [false, true, false, false, false, false, false, false, true]);
    }

    #[test]
    fn the_round_trip_is_that_of_the_slowest_member_of_the_fastest_quorum() {
        let quorums = Quorums::majority((0..5).map(NodeId).collect()).unwrap();
        let mut trips = Trips::default();
        for (member, length) in [(0, 10), (4, 80), (2, 40)] {
            assert_eq!(trips.of_quorum(&quorums), None, "a quorum has not answered yet");
            trips.note(NodeId(member), local(length));
        }
        assert_eq!(trips.of_quorum(&quorums), Some(local(80 + 4 * 40 + 8)));
        trips.note(NodeId(3), local(20));
        trips.note(NodeId(9), local(1));
        assert_eq!(trips.of_quorum(&quorums), Some(local(40 + 4 * 20 + 8)), "n9 is no member");
        trips.keep(&[NodeId(0), NodeId(2)]);
        assert_eq!(trips.of_quorum(&quorums), None);
    }

    #[test]
    fn the_round_trip_is_to_a_majority_by_number_even_if_fewer_suffice() {
        let members: Vec<_> = (0..3).map(NodeId).collect();
        let quorums = Quorums::weighted(members, vec![5, 1, 1]).unwrap();
        let mut trips = Trips::default();
        trips.note(NodeId(0), local(1));
        assert_eq!(trips.of_quorum(&quorums), None);
        trips.note(NodeId(1), local(100));
        assert_eq!(trips.of_quorum(&quorums), Some(local(100 + 4 * 50 + 8)));
    }

    #[test]
    fn steady_round_trips_leave_hardly_any_allowance() {
        let mut trip = Trip::first(local(1000));
        for _ in 0..100 {
            trip = trip.with(local(1000));
        }
        assert!((1000..1100).contains(&trip.most().as_nanos()), "{trip:?}");
        let slower = trip.with(local(3000));
        assert!(slower.most() > local(3000), "one slow answer counts at once: {slower:?}");
    }
}
