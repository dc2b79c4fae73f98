//! The local leader as a weak election: the leader of the members that reach each other in time
//! goes first, and nobody else is waited for.
//!
//! The ring counts every member whose signs of life come round, also those that are heard through
//! others alone, or late: they have their turn, and cannot win. Here each process keeps an [alive
//! set](AliveSet) by its own judgement, as in [`local`](crate::local): the members that sent it a
//! *fast* message lately. It **supports** the first of its set and is bound to it for a while. A
//! process that is supported by every member of its set leads them, locally. It tries first, in all
//! groups; its supporters follow in the row of the group; processes that are not with them do not
//! count. A process without a local leader, or whose leader has too few supporters for a quorum,
//! goes by the ring.
//!
//! Nothing new goes over the wire. A sign of life is a count that rises; its last byte names the
//! member that its giver supports, the rest is the sequence number of the sign. Signs of all
//! members are passed on with each message: one's own, as another has it, was given at a known
//! reading, so the message that carries it back was no longer on its way than since then. That is
//! the bound of [fail-aware datagrams](crate::detect::fail_aware), with one clock instead of two.
//! While nobody leads signs go to all members, because all must be asked.
//!
//! It stays advice: lengths are not widened by drift, and a sign of another kind of election may be
//! misread. A misled process waits for a few steps, at most as many as there are members, and never
//! for an answer.

use crate::detect::AliveSet;
use crate::quorum::NodeSet;
use crate::time::{Incarnation, LocalSpan};
use crate::{GroupId, LocalTime, NodeId};

use super::on_ring::OnRing;
use super::{Beat, Timing, Turn, Watch, Weak};

/// How many bits of a count name whom its giver supports: its position and one, or zero.
const NAME: u32 = 8;

/// Within how many intervals a sign must have come back for the word that brings it to be fast; for
/// so long a process is bound, too.
const FAST: u32 = 4;

/// The members thought to live, the one that this process supports, and its own supporters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OnLocal {
    /// Signs of life, and whose turn it is where there is no local leader.
    ring: OnRing,
    timing: Timing,
    members: Vec<NodeId>,
    me: NodeId,
    /// The member that spoke last: the signs passed on next come from it.
    speaker: Option<NodeId>,
    /// From whom a fast word came lately, or who has answered a leader.
    alive: AliveSet,
    /// The signs that this process gave lately, and when.
    given: Vec<(Beat, LocalTime)>,
    /// Whom it supports, and until when.
    lock: Option<(usize, LocalTime)>,
    /// Until when each member supports it.
    supports: Vec<Option<LocalTime>>,
}

impl OnLocal {
    /// As if all members had just been heard.
    pub(super) fn new(
        (me, incarnation): (NodeId, Incarnation),
        timing: Timing,
        members: &[NodeId],
        now: LocalTime,
    ) -> Self {
        let ring = OnRing::new((me, incarnation), Watch::Heartbeat, timing, members, now);
        let mut new = Self {
            ring,
            timing,
            members: Vec::new(),
            me,
            speaker: None,
            alive: AliveSet::new(0, LocalSpan::ZERO),
            given: Vec::new(),
            lock: None,
            supports: Vec::new(),
        };
        new.begin(members, now);
        new
    }

    /// Nobody is bound yet, and everybody counts as just heard.
    fn begin(&mut self, members: &[NodeId], now: LocalTime) {
        self.members = members.to_vec();
        self.alive = AliveSet::new(members.len(), self.timing.renewal.plus(self.longest()));
        (0..members.len()).for_each(|position| self.alive.heard(position, now));
        (self.speaker, self.lock) = (None, None);
        self.given.clear();
        self.supports = vec![None; members.len()];
    }

    fn longest(&self) -> LocalSpan {
        self.timing.interval.times(FAST)
    }

    fn position(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|member| *member == node)
    }

    /// The alive set, itself in it. A member that let a promise run out is not.
    fn alive_with(&self, here: usize, now: LocalTime) -> NodeSet {
        let fresh = |position: &usize| self.alive.until(*position).is_some_and(|until| now < until);
        let trusted = self.ring.trusted(now);
        let mut set: NodeSet = trusted.positions().filter(fresh).collect();
        set.insert(here);
        set
    }

    /// Whom this process supports, if it is bound to another at `now`.
    fn bound_to(&self, now: LocalTime) -> Option<usize> {
        self.lock.filter(|(_, until)| now < *until).map(|(to, _)| to)
    }

    /// Whether everybody in the alive set supports this process, the first of it.
    fn leads(&self, here: usize, now: LocalTime) -> bool {
        let alive = self.alive_with(here, now);
        let supported = |position: usize| self.supports[position].is_some_and(|until| now < until);
        let others = || alive.positions().filter(|position| *position != here);
        self.bound_to(now).is_none_or(|to| to == here)
            && others().all(|position| position > here && supported(position))
    }

    /// The local leader of this process, as far as it knows.
    fn leader(&self, here: usize, now: LocalTime) -> Option<usize> {
        let trusted = self.ring.trusted(now);
        let other = self.bound_to(now).filter(|to| *to != here && trusted.contains(*to));
        other.or_else(|| self.leads(here, now).then_some(here))
    }

    /// Whom a member supports by the newest sign that is known of it.
    fn supported_by(&self, position: usize) -> Option<usize> {
        let name = self.ring.beat(position)?.count & ((1 << NAME) - 1);
        usize::try_from(name).ok()?.checked_sub(1)
    }

    /// The logical partition of a leader: those who support it and are not suspected.
    fn partition(&self, leader: usize, here: usize, now: LocalTime) -> NodeSet {
        let with = |position: &usize| {
            [leader, here].contains(position) || self.supported_by(*position) == Some(leader)
        };
        self.ring.trusted(now).positions().filter(with).collect()
    }

    /// When this process gave the sign that `beat` is, if that was lately.
    fn given_at(&self, beat: Option<Beat>) -> Option<LocalTime> {
        self.given.iter().find(|(given, _)| Some(*given) == beat).map(|(_, at)| *at)
    }

    /// A fast word of `by`: it lives, it may want support, and it may give some.
    fn hear_fast(
        &mut self,
        (by, here): (usize, usize),
        sent: LocalTime,
        names: Option<Beat>,
        now: LocalTime,
    ) {
        self.alive.heard(by, now);
        let first = self.alive_with(here, now).positions().next();
        let free = self.bound_to(now).is_none_or(|to| to == by);
        if first == Some(by) && free {
            self.lock = Some((by, now.after(self.longest())));
        }
        let mine = names.is_some_and(|beat| beat.count & ((1 << NAME) - 1) == here as u64 + 1);
        // From when it was asked, never from now: so its lock lasts as long, if it heard that word
        // itself. Of one that came by a third it is not bound, and may be counted here and
        // elsewhere for a while: this is advice, and costs a turn.
        self.supports[by] = mine.then(|| sent.after(self.longest()));
    }
}

impl Weak for OnLocal {
    fn members(&mut self, members: &[NodeId], now: LocalTime) {
        self.begin(members, now);
        self.ring.members(members, now);
    }

    fn heard(&mut self, from: NodeId, now: LocalTime) {
        self.speaker = Some(from);
        self.ring.heard(from, now);
    }

    fn report(&mut self, alive: NodeSet, now: LocalTime) {
        alive.positions().for_each(|position| self.alive.heard(position, now));
        self.ring.report(alive, now);
    }

    fn passed_on(&mut self, beats: &[Option<Beat>], now: LocalTime) {
        self.ring.passed_on(beats, now);
        let speaker = self.speaker.and_then(|node| self.position(node));
        let (Some(by), Some(here)) = (speaker, self.position(self.me)) else { return };
        let sign = |position: usize| beats.get(position).copied().flatten();
        let Some(sent) = self.given_at(sign(here)) else { return };
        if by != here && now <= sent.after(self.longest()) {
            self.hear_fast((by, here), sent, sign(by), now);
        }
    }

    fn beats(&mut self, now: LocalTime) -> Vec<Option<Beat>> {
        if let Some(here) = self.position(self.me) {
            let first = self.alive_with(here, now).positions().next();
            // The first of its own set supports itself, unless it is bound.
            if first == Some(here) && self.bound_to(now).is_none_or(|to| to == here) {
                self.lock = Some((here, now.after(self.longest())));
            }
        }
        let name = self.bound_to(now).map_or(0, |to| to as u64 + 1);
        self.ring.raise_own(|count| (((count >> NAME) + 1) << NAME) + name - 1);
        let beats = self.ring.beats(now);
        let own = self.position(self.me).and_then(|here| beats.get(here).copied().flatten());
        let longest = self.longest();
        self.given.retain(|(_, at)| now <= at.after(longest));
        self.given.extend(own.map(|beat| (beat, now)));
        beats
    }

    fn lapsed(&mut self, node: NodeId, at: LocalTime) {
        self.ring.lapsed(node, at);
    }

    fn passes(&mut self, node: NodeId, passes: bool) {
        self.ring.passes(node, passes);
    }

    fn turn(&self, group: GroupId, now: LocalTime) -> Turn {
        let led = self.position(self.me).and_then(|here| Some((here, self.leader(here, now)?)));
        let Some((here, leader)) = led else { return self.ring.turn(group, now) };
        let row = self.partition(leader, here, now);
        if 2 * row.len() <= self.members.len() {
            return self.ring.turn(group, now);
        }
        let key = |position: usize| (position != leader, self.ring.place(position, group));
        let before = |position: &usize| key(*position) < key(here) && !self.ring.leaves_turn(*position);
        let rank = row.positions().filter(before).count();
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
        let leader = self.position(self.me).and_then(|here| self.leader(here, now));
        let leader = leader.and_then(|position| self.members.get(position).copied());
        leader.or_else(|| self.ring.weak_leader(group, now))
    }

    fn alive(&self, since: LocalTime) -> NodeSet {
        self.ring.alive(since)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{at, span};
    use super::*;

    const INTERVAL: u64 = 10;

    /// The weak elections of `count` members, begun at reading 0.
    fn all(count: u64) -> Vec<OnLocal> {
        let timing = Timing { renewal: span(1000), interval: span(INTERVAL) };
        let members: Vec<NodeId> = (0..count).map(NodeId).collect();
        members.iter().map(|me| OnLocal::new((*me, Incarnation(1)), timing, &members, at(0))).collect()
    }

    /// Everybody speaks, once an interval, from round `from` to `to`; a word gets through where
    /// `reaches` says so, at once.
    fn rounds(nodes: &mut [OnLocal], (from, to): (u64, u64), reaches: impl Fn(usize, usize) -> bool) {
        for round in from..to {
            let now = at(round * INTERVAL);
            for by in 0..nodes.len() {
                let (me, beats) = (nodes[by].me, nodes[by].beats(now));
                for other in (0..nodes.len()).filter(|other| *other != by && reaches(by, *other)) {
                    nodes[other].heard(me, now);
                    nodes[other].passed_on(&beats, now);
                }
            }
        }
    }

    fn ranks(nodes: &[OnLocal], group: u64, now: u64) -> Vec<Turn> {
        nodes.iter().map(|node| node.turn(GroupId(group), at(now))).collect()
    }

    fn leaders(nodes: &[OnLocal], now: u64) -> Vec<u64> {
        nodes.iter().map(|node| node.weak_leader(GroupId(0), at(now)).unwrap().0).collect()
    }

    #[test]
    fn before_anything_was_said_the_row_is_that_of_the_ring() {
        let rank = Turn::Rank;
        assert_eq!(ranks(&all(5), 0, 0), [rank(0), rank(1), rank(2), rank(3), rank(4)]);
        assert_eq!(ranks(&all(5), 7, 0), [rank(3), rank(4), rank(0), rank(1), rank(2)]);
    }

    #[test]
    fn the_local_leader_goes_first_in_every_group_and_its_supporters_follow_in_the_row_of_the_group() {
        let mut nodes = all(5);
        rounds(&mut nodes, (1, 6), |_, _| true);
        let rank = Turn::Rank;
        assert_eq!(leaders(&nodes, 55), [0; 5]);
        assert_eq!(ranks(&nodes, 0, 55), [rank(0), rank(1), rank(2), rank(3), rank(4)]);
        assert_eq!(ranks(&nodes, 7, 55), [rank(0), rank(4), rank(1), rank(2), rank(3)]);
    }

    #[test]
    fn whoever_is_not_in_the_partition_is_not_waited_for() {
        let mut nodes = all(5);
        // Words of n0 come to n4 alone, and none come to n0: it lives, as all know, and cannot win.
        rounds(&mut nodes, (1, 200), |by, to| to != 0 && (by != 0 || to == 4));
        let now = 199 * INTERVAL + 1;
        assert!(nodes[1].trusted(at(now)).contains(0), "its signs of life come round");
        assert_eq!(leaders(&nodes, now)[1..], [1; 4]);
        assert_eq!(ranks(&nodes, 0, now)[1..], [0, 1, 2, 3].map(Turn::Rank));
    }

    #[test]
    fn each_side_of_a_cut_has_a_leader_and_all_have_one_when_it_is_mended() {
        let mut nodes = all(5);
        rounds(&mut nodes, (1, 400), |by, to| (by < 2) == (to < 2));
        let now = 399 * INTERVAL + 1;
        assert_eq!(leaders(&nodes, now), [0, 0, 2, 2, 2]);
        let rank = Turn::Rank;
        assert_eq!(ranks(&nodes, 0, now)[2..], [rank(0), rank(1), rank(2)]);
        rounds(&mut nodes, (400, 410), |_, _| true);
        assert_eq!(leaders(&nodes, 409 * INTERVAL + 1), [0; 5], "one again after the cut is mended");
    }

    #[test]
    fn a_process_is_bound_to_one_until_its_lock_ends() {
        let mut nodes = all(3);
        rounds(&mut nodes, (1, 100), |by, to| by != 0 && to != 0);
        let last = 99 * INTERVAL;
        assert_eq!(nodes[2].bound_to(at(last)), None, "n0 was heard of at the beginning, and goes before");
        rounds(&mut nodes, (100, 200), |by, to| by != 0 && to != 0);
        let last = 199 * INTERVAL;
        assert_eq!(nodes[2].bound_to(at(last)), Some(1));
        rounds(&mut nodes, (200, 202), |by, to| by != 1 && to != 1);
        assert_eq!(nodes[2].bound_to(at(201 * INTERVAL)), Some(1), "n0 asks, and must wait");
        rounds(&mut nodes, (202, 206), |by, to| by != 1 && to != 1);
        assert_eq!(nodes[2].bound_to(at(205 * INTERVAL)), Some(0));
    }

    #[test]
    fn a_word_that_brings_back_an_old_sign_is_slow_and_counts_for_nothing() {
        let mut nodes = all(2);
        let signs = nodes[0].beats(at(10));
        nodes[1].heard(NodeId(0), at(10));
        nodes[1].passed_on(&signs, at(10));
        let answer = nodes[1].beats(at(10));
        let mut late = nodes[0].clone();
        let until = |node: &OnLocal| node.alive.until(1);
        let before = until(&late);
        late.heard(NodeId(1), at(10 + 4 * INTERVAL + 1));
        late.passed_on(&answer, at(10 + 4 * INTERVAL + 1));
        assert_eq!(until(&late), before);
        nodes[0].heard(NodeId(1), at(10 + 4 * INTERVAL));
        nodes[0].passed_on(&answer, at(10 + 4 * INTERVAL));
        assert!(until(&nodes[0]) > before);
    }

    #[test]
    fn a_local_leader_that_has_stopped_holds_nobody_up() {
        let mut nodes = all(3);
        rounds(&mut nodes, (1, 6), |_, _| true);
        nodes[1].lapsed(NodeId(0), at(56));
        assert_eq!(nodes[1].turn(GroupId(0), at(56)), Turn::Rank(0));
        nodes[1].passes(NodeId(1), true);
        assert_eq!(nodes[1].turn(GroupId(0), at(56)), Turn::Rank(0), "nobody else is known to go before");
    }
}
