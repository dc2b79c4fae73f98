//! Omega as a weak election: a member that enough others answer goes first, and those need not
//! always be the same.
//!
//! The ring puts the lowest member first that is not suspected, even one that can reach nobody in
//! time: it is heard now and then, tries, and fails. Here each member stands for a serial, as in
//! [`eventual`](crate::eventual): the serial rises when enough others do not learn the member's
//! state in time. The row is ordered by serials first. So a member that reaches just some others at
//! any time, not always the same ones, keeps its serial and comes first.
//!
//! Nothing new goes over the wire. A sign of life is a count that rises; its upper half is the
//! serial, its lower half the sequence number of the sign. Signs of all members are passed on with
//! each message anyway: one's own, as another has it, is the acknowledgement. Which members are
//! alive at all is still decided as on the [ring](OnRing). While nobody leads signs go to all
//! members, because enough must answer.
//!
//! It stays advice. A member whose serial is high waits a few steps longer, at most as many as
//! there are members, and never for an answer. And it does less than [`eventual`](crate::eventual):
//! a sign comes back with whatever another says next, not by an answer of its own, so that must be
//! in time too. A strong group settles because its leader is answered: then nobody else is granted
//! anything.

use crate::quorum::NodeSet;
use crate::time::Incarnation;
use crate::{GroupId, LocalTime, NodeId};

use super::on_ring::OnRing;
use super::{Beat, Timing, Turn, Watch, Weak};

/// Where the serial begins in a count.
const SERIAL: u32 = 32;

/// Within how many intervals a sign must be known to enough others: they say so with their next
/// sign, and that must get here.
const PATIENCE: u32 = 5;

/// The members thought to live, and which of them are answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OnOmega {
    ring: OnRing,
    timing: Timing,
    members: Vec<NodeId>,
    me: NodeId,
    /// The sign that others must know of: since when, and who does.
    round: Option<(Beat, LocalTime, NodeSet)>,
    /// The member that spoke last: the signs passed on next come from it.
    speaker: Option<NodeId>,
}

impl OnOmega {
    /// As if all members had just been heard.
    pub(super) fn new(
        (me, incarnation): (NodeId, Incarnation),
        timing: Timing,
        members: &[NodeId],
        now: LocalTime,
    ) -> Self {
        let ring = OnRing::new((me, incarnation), Watch::Heartbeat, timing, members, now);
        Self { ring, timing, members: members.to_vec(), me, round: None, speaker: None }
    }

    fn position(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|member| *member == node)
    }

    /// The members in the order of their turns.
    fn row(&self, group: GroupId) -> Vec<usize> {
        let mut row: Vec<usize> = (0..self.members.len()).collect();
        let serial = |position: usize| self.ring.beat(position).map_or(0, |beat| beat.count >> SERIAL);
        row.sort_by_key(|position| (serial(*position), self.ring.place(*position, group)));
        row
    }

    /// Another knows of this sign of ours: enough of them end the round.
    fn acknowledged(&mut self, by: NodeId, beat: Option<Beat>) {
        let by = self.position(by);
        let Some((sign, _, known)) = &mut self.round else { return };
        if let (Some(by), true) = (by, beat >= Some(*sign)) {
            known.insert(by);
            // Half of the others, and oneself: a majority.
            if known.len() >= self.members.len() / 2 {
                self.round = None;
            }
        }
    }

    /// A member that is not answered in time stands behind those that are.
    fn judge_round(&mut self, now: LocalTime) {
        let patience = self.timing.interval.times(PATIENCE);
        if self.round.as_ref().is_some_and(|(_, since, _)| now > since.after(patience)) {
            self.round = None;
            self.ring.raise_own(|count| ((count >> SERIAL) + 1) << SERIAL);
        }
    }

    /// A round begins with a sign, or with the first thing that happens after one: a little late,
    /// which only makes more patient.
    fn begin_round(&mut self, now: LocalTime) {
        if self.round.is_none() {
            let own = self.position(self.me).and_then(|here| self.ring.beat(here));
            self.round = own.map(|sign| (sign, now, NodeSet::EMPTY));
        }
    }
}

impl Weak for OnOmega {
    fn members(&mut self, members: &[NodeId], now: LocalTime) {
        self.members = members.to_vec();
        self.round = None;
        self.ring.members(members, now);
    }

    fn heard(&mut self, from: NodeId, now: LocalTime) {
        self.speaker = Some(from);
        self.ring.heard(from, now);
    }

    fn report(&mut self, alive: NodeSet, now: LocalTime) {
        // A leader renews: nobody gives signs, and none is missed.
        self.round = None;
        self.ring.report(alive, now);
    }

    fn passed_on(&mut self, beats: &[Option<Beat>], now: LocalTime) {
        if let (Some(by), Some(here)) = (self.speaker, self.position(self.me)) {
            self.acknowledged(by, beats.get(here).copied().flatten());
        }
        self.judge_round(now);
        self.begin_round(now);
        self.ring.passed_on(beats, now);
    }

    fn beats(&mut self, now: LocalTime) -> Vec<Option<Beat>> {
        // A process that hears nothing at all is not answered either.
        self.judge_round(now);
        let beats = self.ring.beats(now);
        self.begin_round(now);
        beats
    }

    fn lapsed(&mut self, node: NodeId, at: LocalTime) {
        self.ring.lapsed(node, at);
    }

    fn passes(&mut self, node: NodeId, passes: bool) {
        self.ring.passes(node, passes);
    }

    fn turn(&self, group: GroupId, now: LocalTime) -> Turn {
        let Some(here) = self.position(self.me) else { return self.ring.turn(group, now) };
        let trusted = self.ring.trusted(now);
        let before = |position: &usize| trusted.contains(*position) && !self.ring.leaves_turn(*position);
        let row = self.row(group);
        let rank =
            row.iter().take_while(|position| **position != here).filter(|position| before(position)).count();
        let rank = if self.ring.leaves_turn(here) { self.members.len() } else { rank };
        Turn::Rank(u32::try_from(rank).unwrap_or(u32::MAX))
    }

    fn neighbours(&self, _now: LocalTime) -> Vec<NodeId> {
        let member = self.position(self.me).is_some();
        self.members.iter().copied().filter(|node| member && *node != self.me).collect()
    }

    fn trusted(&self, now: LocalTime) -> NodeSet {
        self.ring.trusted(now)
    }

    fn weak_leader(&self, group: GroupId, now: LocalTime) -> Option<NodeId> {
        let trusted = self.ring.trusted(now);
        let first = self.row(group).into_iter().find(|position| trusted.contains(*position))?;
        self.members.get(first).copied()
    }

    fn alive(&self, since: LocalTime) -> NodeSet {
        self.ring.alive(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::LocalSpan;

    fn at(millis: u64) -> LocalTime {
        LocalTime::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn who_hears_nothing_at_all_goes_to_the_end_of_the_row_too() {
        let span = |millis: u64| LocalSpan::from_nanos(millis * 1_000_000);
        let timing = Timing { renewal: span(1000), interval: span(10) };
        let members: Vec<NodeId> = (0..3).map(NodeId).collect();
        let mut deaf = OnOmega::new((NodeId(0), Incarnation(1)), timing, &members, at(0));
        let mut other = OnOmega::new((NodeId(1), Incarnation(1)), timing, &members, at(0));
        for i in 1..20 {
            let signs = deaf.beats(at(i * 10));
            other.heard(NodeId(0), at(i * 10));
            other.passed_on(&signs, at(i * 10));
        }
        assert_eq!(other.weak_leader(GroupId(0), at(191)), Some(NodeId(1)));
    }

    #[test]
    fn who_is_not_answered_goes_to_the_end_of_the_row_and_holds_nobody_up() {
        let span = |millis: u64| LocalSpan::from_nanos(millis * 1_000_000);
        let timing = Timing { renewal: span(1000), interval: span(10) };
        let members: Vec<NodeId> = (0..3).map(NodeId).collect();
        let mut first = OnOmega::new((NodeId(0), Incarnation(1)), timing, &members, at(0));
        let mut second = OnOmega::new((NodeId(1), Incarnation(1)), timing, &members, at(0));
        assert_eq!(
            (first.turn(GroupId(0), at(1)), second.turn(GroupId(0), at(1))),
            (Turn::Rank(0), Turn::Rank(1))
        );
        for i in 1..20 {
            // The others hear what n0 says, but it never learns that they do.
            let signs = first.beats(at(i * 10));
            second.heard(NodeId(0), at(i * 10));
            second.passed_on(&signs, at(i * 10));
            first.heard(NodeId(1), at(i * 10));
            first.passed_on(&[None, None, None], at(i * 10));
        }
        let signs = first.beats(at(200));
        second.heard(NodeId(0), at(200));
        second.passed_on(&signs, at(200));
        assert_eq!(second.weak_leader(GroupId(0), at(201)), Some(NodeId(1)));
        assert_eq!(second.turn(GroupId(0), at(201)), Turn::Rank(0));
        assert_eq!(first.turn(GroupId(0), at(201)), Turn::Rank(2));
    }
}
