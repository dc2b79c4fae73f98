//! The paper's weak election: the lowest member of a [`Ring`] that is not suspected.
//!
//! # Signs of life
//!
//! A group with a leader is silent but for the leader's renewals and the answers to them, and stays
//! so: that traffic is the heartbeat. The leader hears everybody and says in each renewal which
//! members have answered; a member that hears the renewal takes those as heard. When the promise to
//! the leader runs out, the leader is suspected and all others are still trusted: that is the
//! moment for which all this is kept.
//!
//! Only while nobody leads do processes send signs of life of their own, to their two neighbours on
//! the ring. Each passes on the newest that it knows of every member, so that in half a round of
//! the ring all know of all (the gossip of van Renesse, Minsky and Hayden, 1998, along a ring). Old
//! news is no news: a sign counts only if it is newer than the last.
//!
//! # Many groups
//!
//! The row of a group begins at the member whose position is the group's number modulo their count,
//! and goes round from there. So the leaders of many groups spread over the members, and a crash
//! hands the groups of one to several others. Neighbours stay neighbours: one set of signs serves
//! all groups.

use crate::quorum::NodeSet;
use crate::time::Incarnation;
use crate::{GroupId, LocalTime, NodeId};

use super::super::{Detector, Heartbeat, PhiAccrual, Ring};
use super::{Beat, Timing, Turn, Watch, Watcher, Weak};

/// A member, as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seen {
    node: NodeId,
    watcher: Watcher,
    /// When something last came in from it.
    heard: Option<LocalTime>,
    /// When the watcher was last told. Not with every word: a burst would teach it a rhythm that
    /// nobody keeps.
    told: LocalTime,
    /// The newest sign of life that is known of it.
    beat: Option<Beat>,
    /// It let a promise run out and was not heard since.
    missed: bool,
    /// It leaves its turn to others.
    passes: bool,
}

impl Seen {
    fn new(node: NodeId, watcher: Watcher, now: LocalTime) -> Self {
        Self { node, watcher, heard: None, told: now, beat: None, missed: false, passes: false }
    }

    fn lives(&mut self, timing: Timing, now: LocalTime) {
        self.missed = false;
        let soon = self.told.after(timing.interval.fraction(1, 2));
        if now >= soon || self.watcher.suspects(now) {
            self.watcher.heard(now);
            self.told = now;
        }
    }

    fn is_suspected(&self, now: LocalTime) -> bool {
        self.missed || self.watcher.suspects(now)
    }
}

/// The members thought to live, and so whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OnRing {
    me: NodeId,
    own: Beat,
    watch: Watch,
    timing: Timing,
    /// Where this process stands; `None` if it is no member.
    ring: Option<Ring>,
    /// The members, by position.
    seen: Vec<Seen>,
}

impl OnRing {
    /// As if all members had just been heard.
    pub(super) fn new(
        (me, incarnation): (NodeId, Incarnation),
        watch: Watch,
        timing: Timing,
        members: &[NodeId],
        now: LocalTime,
    ) -> Self {
        let own = Beat { incarnation, count: 0 };
        let mut new = Self { me, own, watch, timing, ring: None, seen: Vec::new() };
        new.members(members, now);
        new
    }

    /// News passes from neighbour to neighbour: it may take half a round, an interval and a message
    /// each.
    fn watcher(&self, members: usize, now: LocalTime) -> Watcher {
        let round = u32::try_from(members).unwrap_or(u32::MAX);
        match &self.watch {
            Watch::Heartbeat => {
                let news = self.timing.interval.times(round.saturating_add(1));
                Watcher::Heartbeat(Heartbeat::new(self.timing.renewal, news, now))
            }
            Watch::Phi(config) => Watcher::Phi(PhiAccrual::new(config, now)),
        }
    }

    fn seen(&mut self, node: NodeId) -> Option<&mut Seen> {
        self.seen.iter_mut().find(|seen| seen.node == node)
    }

    /// The newest sign of life that is known of a member.
    pub(super) fn beat(&self, position: usize) -> Option<Beat> {
        self.seen.get(position)?.beat
    }

    /// Whether a member leaves its turn to others.
    pub(super) fn leaves_turn(&self, position: usize) -> bool {
        self.seen.get(position).is_some_and(|seen| seen.passes)
    }

    /// Where a member stands in the row of a group.
    pub(super) fn place(&self, position: usize, group: GroupId) -> usize {
        let count = self.seen.len().max(1);
        (position + count - self.first(group)) % count
    }

    /// Goes on counting one's own signs from a higher number.
    pub(super) fn raise_own(&mut self, raise: impl FnOnce(u64) -> u64) {
        self.own.count = raise(self.own.count).max(self.own.count);
    }

    fn suspected(&self, now: LocalTime) -> NodeSet {
        let suspected = |(_, seen): &(usize, &Seen)| seen.node != self.me && seen.is_suspected(now);
        self.seen.iter().enumerate().filter(suspected).map(|(position, _)| position).collect()
    }

    /// Where the row of a group begins.
    fn first(&self, group: GroupId) -> usize {
        let count = self.seen.len().max(1) as u64;
        usize::try_from(group.0 % count).unwrap_or(0)
    }
}

impl Weak for OnRing {
    /// Those who stay are known as before; new ones count as just heard. News takes another time
    /// around a ring of another size, so then all are watched anew.
    fn members(&mut self, members: &[NodeId], now: LocalTime) {
        let known = std::mem::take(&mut self.seen);
        let anew = |node: &NodeId| {
            let fresh = Seen::new(*node, self.watcher(members.len(), now), now);
            match known.iter().find(|seen| seen.node == *node) {
                Some(old) if known.len() == members.len() => old.clone(),
                Some(old) => Seen { watcher: fresh.watcher, told: now, ..old.clone() },
                None => fresh,
            }
        };
        self.seen = members.iter().map(anew).collect();
        self.ring = Ring::new(members.to_vec(), self.me).ok();
    }

    fn heard(&mut self, from: NodeId, now: LocalTime) {
        let timing = self.timing;
        if let Some(seen) = self.seen(from) {
            seen.heard = seen.heard.max(Some(now));
            seen.lives(timing, now);
        }
    }

    fn report(&mut self, alive: NodeSet, now: LocalTime) {
        for position in alive.positions() {
            if let Some(seen) = self.seen.get_mut(position) {
                seen.lives(self.timing, now);
            }
        }
    }

    fn passed_on(&mut self, beats: &[Option<Beat>], now: LocalTime) {
        for (seen, beat) in self.seen.iter_mut().zip(beats) {
            if *beat > seen.beat {
                seen.beat = *beat;
                seen.lives(self.timing, now);
            }
        }
    }

    fn beats(&mut self, _now: LocalTime) -> Vec<Option<Beat>> {
        self.own.count += 1;
        let own = self.own;
        if let Some(seen) = self.seen(self.me) {
            seen.beat = Some(own);
        }
        self.seen.iter().map(|seen| seen.beat).collect()
    }

    fn lapsed(&mut self, node: NodeId, at: LocalTime) {
        if let Some(seen) = self.seen(node) {
            seen.missed |= seen.heard.is_none_or(|heard| heard < at);
        }
    }

    fn passes(&mut self, node: NodeId, passes: bool) {
        if let Some(seen) = self.seen(node) {
            seen.passes = passes;
        }
    }

    /// The members' turns come in the order of the row; a process that is no member waits until
    /// they have had theirs.
    fn turn(&self, group: GroupId, now: LocalTime) -> Turn {
        let count = |many: usize| u32::try_from(many).unwrap_or(u32::MAX);
        let Some(ring) = &self.ring else { return Turn::Window { after: count(self.seen.len()) } };
        let passing = |(_, seen): &(usize, &Seen)| seen.passes;
        let passing = self.seen.iter().enumerate().filter(passing).map(|(position, _)| position).collect();
        Turn::Rank(count(ring.rank(self.suspected(now).union(passing), self.first(group))))
    }

    fn neighbours(&self, now: LocalTime) -> Vec<NodeId> {
        let Some(ring) = &self.ring else { return Vec::new() };
        let suspected = self.suspected(now);
        let mut both = vec![ring.predecessor(suspected), ring.successor(suspected)];
        both.dedup();
        both.retain(|node| *node != self.me);
        both
    }

    fn trusted(&self, now: LocalTime) -> NodeSet {
        let everyone: NodeSet = (0..self.seen.len()).collect();
        everyone.difference(self.suspected(now))
    }

    fn weak_leader(&self, group: GroupId, now: LocalTime) -> Option<NodeId> {
        let (trusted, first) = (self.trusted(now), self.first(group));
        let row = (first..self.seen.len()).chain(0..first);
        let lowest = row.into_iter().find(|position| trusted.contains(*position))?;
        self.seen.get(lowest).map(|seen| seen.node)
    }

    fn alive(&self, since: LocalTime) -> NodeSet {
        let lately = |seen: &Seen| seen.node == self.me || seen.heard.is_some_and(|heard| heard >= since);
        self.seen.iter().enumerate().filter(|(_, seen)| lately(seen)).map(|(position, _)| position).collect()
    }
}
