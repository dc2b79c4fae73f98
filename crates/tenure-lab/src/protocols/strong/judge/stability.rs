//! Leader Stability (4) over a whole run: who led when, and every change of leader after it had
//! settled.

use tenure_proto::strong::{Holder, Term};
use tenure_proto::{GroupId, NodeId};

use super::Belief;
use crate::property::Tenure;
use crate::world::RealTime;

/// The leader of a group after it had settled, and whether it still leads.
#[derive(Clone, Copy, Debug)]
struct Seat {
    group: GroupId,
    holder: Holder,
    term: Term,
    taken: bool,
    /// Its holder hands it over of its own will, to one that is preferred.
    given: bool,
}

/// The facts known once liveness is owed.
#[derive(Clone, Debug, Default)]
struct Settled {
    seats: Vec<Seat>,
    /// How many groups had a leader at that instant.
    led: usize,
    changes: u64,
}

/// The leaders over time, and the changes after the settling.
#[derive(Clone, Debug, Default)]
pub(super) struct Stability {
    /// From when on a leader must be there, and stay.
    from: Option<RealTime>,
    settled: Option<Settled>,
    /// Of the first group.
    tenures: Vec<Tenure>,
}

impl Stability {
    /// From `at` on leaders must be there, and stay.
    pub(super) fn owed_from(&mut self, at: RealTime) {
        self.from = Some(at);
    }

    /// Nothing is owed any more.
    pub(super) fn forgive(&mut self) {
        self.from = None;
        self.settled = None;
    }

    /// That instant, if it lies before `to` and nobody has looked yet.
    pub(super) fn due(&self, to: RealTime) -> Option<RealTime> {
        self.from.filter(|from| *from < to && self.settled.is_none())
    }

    /// Notes who leads at that instant.
    pub(super) fn settle(&mut self, leading: impl Iterator<Item = Belief>) {
        let seats: Vec<Seat> = leading.map(seat).collect();
        self.settled = Some(Settled { led: seats.len(), seats, changes: 0 });
    }

    /// When it had settled, if it has.
    pub(super) fn since(&self) -> Option<RealTime> {
        self.settled.as_ref().and(self.from)
    }

    /// How many groups had a leader then.
    pub(super) fn led(&self) -> Option<usize> {
        self.settled.as_ref().map(|settled| settled.led)
    }

    /// How often a leader was followed by another, or by nobody, since then.
    pub(super) fn changes(&self) -> u64 {
        self.settled.as_ref().map_or(0, |settled| settled.changes)
    }

    /// The leaders of the first group, and when each led.
    pub(super) fn tenures(&self) -> &[Tenure] {
        &self.tenures
    }

    /// A process leads, newly or on. Says whether it took the seat of one that had not left it.
    pub(super) fn leads(&mut self, belief: Belief, now: RealTime) -> bool {
        self.note(belief, now);
        let Some(settled) = &mut self.settled else { return false };
        let new = seat(belief);
        let Some(old) = settled.seats.iter_mut().find(|old| old.group == new.group) else {
            settled.seats.push(new); // Late, but the first: that nobody led before is another property's matter.
            return false;
        };
        let same = (old.holder, old.term) == (new.holder, new.term);
        let changed = old.taken && !same;
        *old = Seat { given: same && old.given, ..new };
        settled.changes += u64::from(changed);
        changed
    }

    /// A leader hands over to one that is preferred. That it leaves its seat is no instability
    /// (erratum E15).
    pub(super) fn gives(&mut self, group: GroupId, node: NodeId) {
        let seats = self.settled.iter_mut().flat_map(|settled| &mut settled.seats);
        for seat in seats.filter(|seat| (seat.group, seat.holder.node) == (group, node)) {
            seat.given = true;
        }
    }

    /// A process leads no more. Says whether it should have.
    pub(super) fn left(&mut self, belief: Belief, at: RealTime) -> bool {
        self.cut(belief, at);
        let Some(settled) = &mut self.settled else { return false };
        let Belief { group, holder, term, .. } = belief;
        let same = |seat: &&mut Seat| (seat.group, seat.holder, seat.term) == (group, holder, term);
        let Some(seat) = settled.seats.iter_mut().find(same).filter(|seat| seat.taken) else { return false };
        seat.taken = false;
        if seat.given {
            return false;
        }
        settled.changes += 1;
        true
    }

    /// Begins a tenure, or makes the one that it continues longer.
    fn note(&mut self, belief: Belief, now: RealTime) {
        if belief.group != GroupId(0) {
            return;
        }
        let (node, term) = (belief.holder.node, belief.term.0);
        match self.last_of(node, term).filter(|tenure| now <= tenure.until) {
            Some(tenure) => tenure.until = belief.until,
            None => self.tenures.push(Tenure { node, term, from: now, until: belief.until }),
        }
    }

    fn cut(&mut self, belief: Belief, at: RealTime) {
        if belief.group != GroupId(0) {
            return;
        }
        if let Some(tenure) = self.last_of(belief.holder.node, belief.term.0) {
            tenure.until = tenure.until.min(at);
        }
    }

    fn last_of(&mut self, node: NodeId, term: u64) -> Option<&mut Tenure> {
        self.tenures.iter_mut().rev().find(|tenure| (tenure.node, tenure.term) == (node, term))
    }
}

fn seat(belief: Belief) -> Seat {
    Seat { group: belief.group, holder: belief.holder, term: belief.term, taken: true, given: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_proto::strong::epoch::Epoch;
    use tenure_proto::{Incarnation, LocalTime};

    fn belief(node: u64, term: u64, until: u64) -> Belief {
        Belief {
            group: GroupId(0),
            holder: Holder { node: NodeId(node), incarnation: Incarnation(1) },
            term: Term(term),
            epoch: Epoch(0),
            lease: LocalTime::from_nanos(until),
            until: RealTime(until),
            gone: RealTime(until),
            mark: None,
        }
    }

    fn settled_on(leader: Belief) -> Stability {
        let mut stability = Stability::default();
        stability.owed_from(RealTime(100));
        stability.leads(leader, RealTime(50));
        stability.settle([leader].into_iter());
        stability
    }

    #[test]
    fn renewals_are_no_change_and_one_tenure() {
        let mut stability = settled_on(belief(1, 3, 200));
        assert!(!stability.leads(belief(1, 3, 300), RealTime(150)));
        assert!(!stability.leads(belief(1, 3, 400), RealTime(250)));
        assert_eq!((stability.changes(), stability.led()), (0, Some(1)));
        let whole = Tenure { node: NodeId(1), term: 3, from: RealTime(50), until: RealTime(400) };
        assert_eq!(stability.tenures(), [whole]);
    }

    #[test]
    fn a_leader_that_leaves_and_its_successor_are_one_change() {
        let mut stability = settled_on(belief(1, 3, 200));
        assert!(stability.left(belief(1, 3, 200), RealTime(180)));
        assert!(!stability.left(belief(1, 3, 200), RealTime(190)), "it had left already");
        assert!(!stability.leads(belief(2, 4, 400), RealTime(300)));
        assert_eq!(stability.changes(), 1);
        assert_eq!(stability.tenures()[0].until, RealTime(180));
    }

    #[test]
    fn a_seat_that_its_holder_gives_away_is_no_change_though_it_renewed_meanwhile() {
        let mut stability = settled_on(belief(1, 3, 200));
        stability.gives(GroupId(0), NodeId(1));
        assert!(!stability.leads(belief(1, 3, 300), RealTime(150)));
        assert!(!stability.left(belief(1, 3, 300), RealTime(180)));
        assert!(!stability.leads(belief(2, 4, 400), RealTime(190)));
        assert_eq!(stability.changes(), 0);
        assert!(stability.left(belief(2, 4, 400), RealTime(300)), "its successor has not given it away");
    }

    #[test]
    fn a_seat_taken_from_under_a_leader_is_a_change() {
        let mut stability = settled_on(belief(1, 3, 200));
        assert!(stability.leads(belief(2, 4, 400), RealTime(150)));
        assert_eq!(stability.changes(), 1);
    }

    #[test]
    fn what_happens_before_the_settling_is_no_change() {
        let mut stability = Stability::default();
        stability.owed_from(RealTime(100));
        stability.leads(belief(1, 3, 60), RealTime(50));
        assert!(!stability.left(belief(1, 3, 60), RealTime(60)));
        assert_eq!((stability.due(RealTime(100)), stability.since()), (None, None));
        assert_eq!((stability.due(RealTime(101)), stability.changes()), (Some(RealTime(100)), 0));
    }
}
