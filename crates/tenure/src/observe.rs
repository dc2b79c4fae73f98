//! The watch of a group: its leader, the lack of one, and the edicts that leaders proclaim. It
//! never goes back.
//!
//! Members report what they know, and pass on what leaders say. Messages overtake each other,
//! members restart and forget, and an observer hears of one thing from several. So it goes by
//! numbers, not by arrival: terms rise with each leader, and the sequence numbers of edicts with
//! each act. The observer drops every report that is not larger than the newest it has seen, from
//! any sender.
//!
//! **All of it is about the past.** Between a leader's last word and its arrival anything may have
//! happened. To be certain of a leader for a while, [verify](crate::Node::verify).
//!
//! **Nobody** means: so many members have said, since the last leader was heard of, that they
//! support nobody, that no quorum could have been left at that time. **Weak** means that too few
//! members can hear each other to elect anybody. **Unknown** means that too few members report to
//! tell.
//!
//! **Answers.** [`Watch::ask`] asks the members at the time of the question and judges by what a
//! quorum answers to it: a linearizable read. A leader is named only if a quorum supports it, each
//! within the part of its lease that it can count on, or by its own word within that lease. So
//! after one process was told that nobody leads any more, no process that asks later is told of
//! that leader again: a quorum that supports it and a blocking set that does not have a member in
//! common.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::strong::{Term, Token};
use tenure_proto::{LocalTime, NodeId};
use tokio::sync::{oneshot, watch};

use crate::driver::{Mailbox, Request};
use crate::name::{GroupName, NodeName};
use crate::wire::{GroupState, Proclaim, Report};

/// The leadership of a group, as far as an observer knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Leadership {
    /// Too few members have reported lately to tell.
    #[default]
    Unknown,
    /// This process led when it was last heard of.
    Leader {
        /// Its name; `None` if nobody has told it yet.
        name: Option<NodeName>,
        /// The leader's term.
        term: Term,
    },
    /// Nobody led any more, at some time after this term.
    Nobody {
        /// The last term that was heard of.
        after: Term,
    },
    /// Too few members hear each other to elect anybody. This one speaks for those that do, without
    /// any authority.
    Weak {
        /// Its name, if known.
        name: Option<NodeName>,
    },
}

/// An edict that a leader has proclaimed, with its body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Proclaimed {
    /// The token, which orders it among all edicts of the group.
    pub token: Token,
    /// The bytes that were given to [`Tenure::proclaim`](crate::Tenure::proclaim).
    pub body: Vec<u8>,
}

/// One piece of news of a [`Watch`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sight {
    /// The leadership has changed.
    Leadership(Leadership),
    /// A leader has proclaimed an edict.
    Edict(Proclaimed),
}

/// The newest state of a group that an observer knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Scene {
    /// The leadership.
    pub leadership: Leadership,
    /// The newest edict that was proclaimed.
    pub edict: Option<Proclaimed>,
}

/// The answer of a quorum to a question: see [`Watch::ask`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The leadership at some time between the question and the answer; unknown if no quorum has
    /// answered.
    pub leadership: Leadership,
    /// For how much longer the leader leads at least, if it renews no more; `None` if none leads.
    pub leads_for: Option<Duration>,
    /// Where the leader's datagrams come from, if this node has a session with it.
    pub address: Option<SocketAddr>,
}

/// A watch of a group: see [`Node::observe`](crate::Node::observe).
///
/// It keeps nothing but the newest state: a slow caller misses the states in between. Dropping it
/// ends the watch.
#[derive(Debug)]
pub struct Watch {
    pub(crate) group: GroupName,
    pub(crate) scene: watch::Receiver<Scene>,
    pub(crate) told: Scene,
    pub(crate) mailbox: Mailbox,
}

impl Watch {
    /// Waits for the next news of the group; returns `None` when the node has stopped.
    ///
    /// The future may be dropped and the call repeated: no news is lost.
    pub async fn next(&mut self) -> Option<Sight> {
        loop {
            if let Some(sight) = self.news() {
                return Some(sight);
            }
            self.scene.changed().await.ok()?;
        }
    }

    /// Returns the newest state of the group without waiting.
    pub fn now(&self) -> Scene {
        self.scene.borrow().clone()
    }

    /// Asks the members who leads, and returns what a quorum of them answers to this question.
    ///
    /// A leader is named if a quorum supports it within its lease. The answer comes after a round
    /// trip, or after a second if no quorum can tell; it is unknown then, and when the node has
    /// stopped. A dropped future changes nothing.
    pub async fn ask(&self) -> Answer {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(Request::Look { group: self.group.id(), reply });
        answer.await.unwrap_or_default()
    }

    /// News of the leadership come first, then those of edicts.
    fn news(&mut self) -> Option<Sight> {
        let scene = self.scene.borrow_and_update().clone();
        if scene.leadership != self.told.leadership {
            self.told.leadership = scene.leadership.clone();
            return Some(Sight::Leadership(scene.leadership));
        }
        let edict = scene.edict.filter(|edict| Some(edict) != self.told.edict.as_ref())?;
        self.told.edict = Some(edict.clone());
        Some(Sight::Edict(edict))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.mailbox.send(Request::Unobserve { group: self.group.id() });
    }
}

/// How long a report counts, in nanoseconds. Members repeat theirs each second.
const FRESH: u64 = 3_000_000_000;

/// For how long a member that does not tell how long a leader leads is believed, in nanoseconds: it
/// is of an older version.
const UNTOLD: u64 = 1_000_000_000;

/// The newest word of a member.
#[derive(Clone, Copy, Debug)]
struct Said {
    state: GroupState,
    /// When it came.
    came: LocalTime,
    /// The member's own clock at that time.
    at: LocalTime,
    /// The newest question of this observer that it, or a word before it, has answered.
    answers: LocalTime,
    /// Until when the holder of its grant leads at least.
    until: LocalTime,
}

/// The result of reports, by number, and until when that may be said without another report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) state: JudgedState,
    pub(crate) until: LocalTime,
}

/// See [`Leadership`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JudgedState {
    Unknown,
    Leader { leader: NodeId, term: Term },
    Nobody { after: Term },
    Weak { leader: NodeId },
}

impl JudgedState {
    /// With names instead of numbers.
    pub(crate) fn named(self, name: impl Fn(NodeId) -> Option<NodeName>) -> Leadership {
        match self {
            Self::Unknown => Leadership::Unknown,
            Self::Leader { leader, term } => Leadership::Leader { name: name(leader), term },
            Self::Nobody { after } => Leadership::Nobody { after },
            Self::Weak { leader } => Leadership::Weak { name: name(leader) },
        }
    }
}

/// The view that an observer forms from reports. Pure: it neither waits nor sends.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The newest leader that was heard of.
    leader: Option<(Term, NodeId)>,
    /// When it was first heard of, or last spoke itself.
    heard: LocalTime,
    /// A blocking set has said, since then, that it supports nobody.
    over: bool,
    /// The newest word of each member.
    reports: BTreeMap<NodeId, Said>,
    edict: Option<Proclaimed>,
}

impl Default for View {
    fn default() -> Self {
        let (leader, heard, over) = (None, LocalTime::ZERO, false);
        Self { leader, heard, over, reports: BTreeMap::new(), edict: None }
    }
}

impl View {
    /// A member tells how it stands to the group. A word that a newer one of it has overtaken is
    /// dropped.
    pub(crate) fn on_report(&mut self, member: NodeId, report: &Report, now: LocalTime) {
        let state = report.state;
        let known = self.reports.get(&member).filter(|known| is_fresh(known, now));
        let answered = known.map_or(LocalTime::ZERO, |known| known.answers);
        let said = match report.when {
            Some(when) => Said {
                state,
                came: now,
                at: when.at,
                answers: when.echo.max(answered),
                until: now.after(when.left),
            },
            None => Said { state, came: now, at: LocalTime::ZERO, answers: now, until: later(now, UNTOLD) },
        };
        if known.is_some_and(|known| said.at < known.at) {
            return;
        }
        if let GroupState::Bound { holder, term, leads: true } = state {
            self.on_leader(term, holder, now);
        }
        self.reports.insert(member, said);
    }

    /// A leader speaks. Older words than the newest are dropped.
    pub(crate) fn on_proclaim(&mut self, proclaim: &Proclaim, now: LocalTime) {
        self.on_leader(proclaim.token.term(), proclaim.leader, now);
        if self.leader == Some((proclaim.token.term(), proclaim.leader)) {
            self.heard = now;
        }
        let newer = self.edict.as_ref().is_none_or(|newest| newest.token < proclaim.token);
        if let Some(body) = proclaim.body.as_ref().filter(|_| newer) {
            self.edict = Some(Proclaimed { token: proclaim.token, body: body.clone() });
        }
    }

    /// Drops older reports of free members: they may have been free before this leader was elected,
    /// so they no longer count against it.
    fn on_leader(&mut self, term: Term, leader: NodeId, now: LocalTime) {
        if self.leader.is_none_or(|(newest, _)| newest < term) {
            self.heard = now;
            self.leader = Some((term, leader));
            self.over = false;
            self.reports.retain(|_, said| !matches!(said.state, GroupState::Free { .. }));
        }
    }

    /// Forgets the word of a member. Says whether there was one.
    pub(crate) fn forget(&mut self, member: NodeId) -> bool {
        self.reports.remove(&member).is_some()
    }

    /// Whether a member tells the time of its reports. Older versions do not.
    pub(crate) fn is_timed(&self, member: NodeId) -> bool {
        self.reports.get(&member).is_some_and(|said| said.at != LocalTime::ZERO)
    }

    /// The newest edict.
    pub(crate) fn edict(&self) -> Option<&Proclaimed> {
        self.edict.as_ref()
    }

    /// The members whose reports are of some kind.
    fn those(&self, quorums: &Quorums, wanted: impl Fn(&Said) -> bool) -> NodeSet {
        let said = self.reports.iter().filter(|(_, said)| wanted(said));
        said.filter_map(|(member, _)| quorums.position(*member)).collect()
    }

    /// Reports grow old; and enough of them that speak of free members end a leadership.
    pub(crate) fn grow_old(&mut self, quorums: &Quorums, now: LocalTime) {
        self.reports.retain(|_, said| is_fresh(said, now));
        self.over |= quorums.is_blocking(self.those(quorums, is_free));
    }

    /// Judges the present by the reports that answer a question asked at `since` or later.
    ///
    /// A leader is one that a quorum supports within the time for which it leads at least, or that
    /// says so itself. Nobody leads where a blocking set is free. All else is not known.
    pub(crate) fn judge(&self, quorums: &Quorums, since: LocalTime, now: LocalTime) -> Judged {
        let counts = |said: &Said| said.answers >= since && is_fresh(said, now);
        let fresh = later(now, FRESH);
        if let Some(found) = self.supported(quorums, now, counts) {
            return found;
        }
        let of = |state| Judged { state, until: fresh };
        let heard = self.those(quorums, counts);
        let free = self.those(quorums, |said| counts(said) && is_free(said));
        // Nobody has led since a blocking set was free: a process that only asks does not lead.
        let nobody_since = self.over && quorums.is_quorum(heard) && !self.is_elected(quorums, counts);
        if quorums.is_blocking(free) || nobody_since {
            return of(JudgedState::Nobody { after: self.last_term() });
        }
        let weak = self.reports.values().filter(|said| counts(said)).find_map(|said| match said.state {
            GroupState::Weak { leader } => Some(leader),
            _ => None,
        });
        match weak.filter(|_| !quorums.is_quorum(heard)) {
            Some(leader) => of(JudgedState::Weak { leader }),
            None => of(JudgedState::Unknown),
        }
    }

    /// The newest leader, if it is supported now, and until when.
    fn supported(&self, quorums: &Quorums, now: LocalTime, counts: impl Fn(&Said) -> bool) -> Option<Judged> {
        let (term, leader) = self.leader.filter(|_| !self.over)?;
        let supports = |said: &Said| {
            let is_its = matches!(said.state, GroupState::Bound { holder, term: of, .. } if (holder, of) == (leader, term));
            is_its && now < said.until && counts(said)
        };
        let state = JudgedState::Leader { leader, term };
        if let Some(own) = self.reports.get(&leader).filter(|said| supports(said)) {
            return Some(Judged { state, until: own.until });
        }
        // The quorum that lasts longest: the end of its shortest support is the end of it.
        let mut ends: Vec<(LocalTime, usize)> = self
            .reports
            .iter()
            .filter(|(_, said)| supports(said))
            .filter_map(|(member, said)| Some((said.until, quorums.position(*member)?)))
            .collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        (1..=ends.len()).find_map(|many| {
            let set: NodeSet = ends[..many].iter().map(|(_, position)| *position).collect();
            quorums.is_quorum(set).then(|| Judged { state, until: ends[many - 1].0 })
        })
    }

    /// Whether a quorum is bound to one holder in one term: it may lead, and has not said so yet.
    fn is_elected(&self, quorums: &Quorums, counts: impl Fn(&Said) -> bool) -> bool {
        let bound = |said: &Said| match said.state {
            GroupState::Bound { holder, term, .. } => Some((holder, term)),
            _ => None,
        };
        let grants = self.reports.values().filter(|said| counts(said)).filter_map(bound);
        let newest = grants.max_by_key(|(_, term)| *term);
        newest.is_some_and(|grant| {
            quorums.is_quorum(self.those(quorums, |said| counts(said) && bound(said) == Some(grant)))
        })
    }

    /// The newest term that was heard of.
    fn last_term(&self) -> Term {
        let seen = self.reports.values().filter_map(|said| match said.state {
            GroupState::Free { after } => Some(after),
            _ => None,
        });
        self.leader.map(|(term, _)| term).or(seen.max()).unwrap_or_default()
    }

    /// The scene that follows from all reports.
    pub(crate) fn scene(
        &mut self,
        quorums: &Quorums,
        now: LocalTime,
        name: impl Fn(NodeId) -> Option<NodeName>,
    ) -> Scene {
        self.grow_old(quorums, now);
        let weak = self.reports.values().find_map(|said| match said.state {
            GroupState::Weak { leader } => Some(leader),
            _ => None,
        });
        let cut_off = !quorums.is_quorum(self.those(quorums, |_| true));
        let state = match (self.leader, weak) {
            (_, Some(leader)) if cut_off => JudgedState::Weak { leader },
            (..) if self.over => JudgedState::Nobody { after: self.last_term() },
            // A leader's own word may come before the reports.
            (Some(_), _) if cut_off && later(self.heard, FRESH) <= now => JudgedState::Unknown,
            (Some((term, leader)), _) => JudgedState::Leader { leader, term },
            (None, _) => JudgedState::Unknown,
        };
        Scene { leadership: state.named(name), edict: self.edict.clone() }
    }
}

fn is_fresh(said: &Said, now: LocalTime) -> bool {
    now.remaining(said.came).as_nanos() < FRESH
}

fn is_free(said: &Said) -> bool {
    matches!(said.state, GroupState::Free { .. })
}

fn later(now: LocalTime, by: u64) -> LocalTime {
    LocalTime::from_nanos(now.as_nanos().saturating_add(by))
}

#[cfg(test)]
mod tests {
    use tenure_proto::strong::epoch::Epoch;
    use tenure_proto::time::LocalSpan;

    use super::*;
    use crate::wire::When;

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);
    const C: NodeId = NodeId(2);

    fn scene_at(view: &mut View, seconds: u64) -> Leadership {
        let quorums = Quorums::majority(vec![A, B, C]).unwrap();
        view.scene(&quorums, at(seconds), |_| None).leadership
    }

    fn at(seconds: u64) -> LocalTime {
        LocalTime::from_nanos(seconds * 1_000_000_000)
    }

    /// As a version reports that tells no times.
    fn report(view: &mut View, member: NodeId, state: GroupState, now: LocalTime) {
        let report = Report { group: tenure_proto::GroupId(1), epoch: Epoch(0), state, when: None };
        view.on_report(member, &report, now);
    }

    /// An answer to a question at `echo`, with so many seconds left of the lease.
    fn answer(view: &mut View, member: NodeId, state: GroupState, echo: u64, left: u64) {
        let (now, left) = (at(echo), LocalSpan::from_nanos(at(left).as_nanos()));
        let when = Some(When { echo: now, at: now, left });
        let report = Report { group: tenure_proto::GroupId(1), epoch: Epoch(0), state, when };
        view.on_report(member, &report, now);
    }

    fn judged(view: &mut View, since: u64, now: u64) -> (JudgedState, u64) {
        let quorums = Quorums::majority(vec![A, B, C]).unwrap();
        view.grow_old(&quorums, at(now));
        let judged = view.judge(&quorums, at(since), at(now));
        (judged.state, judged.until.as_nanos() / at(1).as_nanos())
    }

    fn bound(term: u64, leads: bool) -> GroupState {
        GroupState::Bound { holder: A, term: Term(term), leads }
    }

    fn free(after: u64) -> GroupState {
        GroupState::Free { after: Term(after) }
    }

    fn leader(term: u64) -> Leadership {
        Leadership::Leader { name: None, term: Term(term) }
    }

    fn word(term: u64, number: u64, body: &str) -> Proclaim {
        let token = Token::new(Term(term), number);
        let body = (!body.is_empty()).then(|| body.as_bytes().to_vec());
        Proclaim { group: tenure_proto::GroupId(1), epoch: Epoch(0), leader: A, token, body }
    }

    #[test]
    fn who_only_asks_is_no_leader() {
        let mut view = View::default();
        report(&mut view, A, bound(5, false), at(1));
        assert_eq!(scene_at(&mut view, 1), Leadership::Unknown);
        report(&mut view, A, bound(5, true), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(5));
    }

    #[test]
    fn an_older_leader_never_comes_back() {
        let mut view = View::default();
        report(&mut view, A, bound(5, true), at(1));
        report(&mut view, B, bound(4, true), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(5));
        view.on_proclaim(&word(3, 9, "late"), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(5));
    }

    #[test]
    fn nobody_leads_when_a_blocking_set_is_free() {
        let mut view = View::default();
        report(&mut view, A, bound(5, true), at(1));
        report(&mut view, B, free(5), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(5), "one of three is not enough");
        report(&mut view, A, free(5), at(1));
        assert_eq!(scene_at(&mut view, 1), Leadership::Nobody { after: Term(5) });
        report(&mut view, A, bound(5, true), at(1));
        assert_eq!(scene_at(&mut view, 1), Leadership::Nobody { after: Term(5) }, "a late word of that term");
        report(&mut view, A, bound(6, true), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(6));
    }

    #[test]
    fn those_who_were_free_before_a_leader_was_heard_of_say_nothing_about_it() {
        let mut view = View::default();
        report(&mut view, A, free(4), at(1));
        report(&mut view, B, free(4), at(1));
        assert_eq!(scene_at(&mut view, 1), Leadership::Nobody { after: Term(4) });
        view.on_proclaim(&word(5, 0, ""), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(5));
    }

    #[test]
    fn an_old_report_counts_no_more() {
        let mut view = View::default();
        report(&mut view, A, bound(5, true), at(1));
        report(&mut view, B, free(5), at(1));
        report(&mut view, C, free(5), at(9));
        assert_eq!(
            scene_at(&mut view, 9),
            Leadership::Unknown,
            "one of the two spoke long ago, and so did it"
        );
    }

    #[test]
    fn edicts_come_in_order_and_the_newest_stays() {
        let mut view = View::default();
        let quorums = Quorums::majority(vec![A, B, C]).unwrap();
        for (proclaim, newest) in [
            (word(5, 1, "one"), "one"),
            (word(5, 3, "three"), "three"),
            (word(5, 2, "two"), "three"),
            (word(6, 0, ""), "three"),
            (word(6, 1, "new"), "new"),
            (word(5, 9, "old leader"), "new"),
        ] {
            view.on_proclaim(&proclaim, at(1));
            let edict = view.scene(&quorums, at(1), |_| None).edict.expect("something was said");
            assert_eq!(edict.body, newest.as_bytes());
        }
    }

    #[test]
    fn a_weak_leader_is_told_only_where_no_quorum_is_heard() {
        let mut view = View::default();
        report(&mut view, C, GroupState::Weak { leader: C }, at(1));
        assert_eq!(scene_at(&mut view, 1), Leadership::Weak { name: None });
        report(&mut view, A, bound(5, true), at(1));
        assert_eq!(scene_at(&mut view, 1), leader(5), "two of three were heard");
    }

    const LEADER: JudgedState = JudgedState::Leader { leader: D, term: Term(5) };
    const D: NodeId = NodeId(9);

    fn held(leads: bool) -> GroupState {
        GroupState::Bound { holder: D, term: Term(5), leads }
    }

    #[test]
    fn a_leader_is_named_while_a_quorum_supports_it_and_not_a_moment_longer() {
        let mut view = View::default();
        answer(&mut view, A, held(true), 10, 9);
        assert_eq!(judged(&mut view, 10, 10).0, JudgedState::Unknown, "one of three");
        answer(&mut view, B, held(false), 10, 2);
        assert_eq!(judged(&mut view, 10, 10), (LEADER, 12), "the shorter of two");
        assert_eq!(judged(&mut view, 10, 12).0, JudgedState::Unknown, "its lease may be over");
        answer(&mut view, C, held(true), 11, 2);
        assert_eq!(judged(&mut view, 0, 12), (LEADER, 13), "another quorum");
        assert_eq!(judged(&mut view, 11, 11).0, JudgedState::Unknown, "one has answered the newer question");
    }

    #[test]
    fn what_is_left_of_a_quorum_that_was_is_no_leader() {
        let mut view = View::default();
        for member in [A, B, C] {
            answer(&mut view, member, held(true), 10, 2);
        }
        for now in 12..40 {
            answer(&mut view, A, held(true), now, 30);
            assert_eq!(judged(&mut view, 0, now).0, JudgedState::Unknown, "{now}");
        }
        assert_eq!(scene_at(&mut view, 39), Leadership::Unknown, "nor for those who watch");
    }

    #[test]
    fn the_word_of_the_leader_itself_suffices_within_its_lease() {
        let mut view = View::default();
        answer(&mut view, A, bound(5, true), 10, 2);
        assert_eq!(judged(&mut view, 10, 11), (JudgedState::Leader { leader: A, term: Term(5) }, 12));
        assert_eq!(judged(&mut view, 10, 12).0, JudgedState::Unknown);
    }

    #[test]
    fn a_question_after_the_answer_nobody_never_finds_that_leader_again() {
        // Each of the three may still be bound, or free: a quorum that is bound and a blocking set
        // that is free never come together.
        for free_set in 0..8_u32 {
            let mut view = View::default();
            answer(&mut view, A, held(true), 9, 9);
            for (bit, member) in [A, B, C].into_iter().enumerate() {
                let state = if free_set >> bit & 1 == 1 { free(5) } else { held(true) };
                answer(&mut view, member, state, 10, 9);
            }
            let expected =
                if free_set.count_ones() >= 2 { JudgedState::Nobody { after: Term(5) } } else { LEADER };
            assert_eq!(judged(&mut view, 10, 10).0, expected, "{free_set:03b}");
        }
    }

    #[test]
    fn a_word_that_was_overtaken_does_not_count() {
        let mut view = View::default();
        for member in [A, B] {
            answer(&mut view, member, held(true), 10, 9);
        }
        let when = Some(When { echo: LocalTime::ZERO, at: at(9), left: LocalSpan::ZERO });
        let late = Report { group: tenure_proto::GroupId(1), epoch: Epoch(0), state: free(4), when };
        view.on_report(A, &late, at(11));
        assert_eq!(judged(&mut view, 10, 11), (LEADER, 19));
    }

    #[test]
    fn somebody_who_only_asks_leaves_it_open_once_a_quorum_is_bound_to_it() {
        let mut view = View::default();
        answer(&mut view, A, free(4), 10, 0);
        answer(&mut view, B, free(4), 10, 0);
        assert_eq!(judged(&mut view, 10, 10).0, JudgedState::Nobody { after: Term(4) });
        answer(&mut view, A, held(false), 11, 9);
        assert_eq!(judged(&mut view, 10, 11).0, JudgedState::Nobody { after: Term(4) }, "one grant");
        answer(&mut view, B, held(false), 11, 9);
        assert_eq!(judged(&mut view, 10, 11).0, JudgedState::Unknown, "it may lead by now");
        view.on_proclaim(&Proclaim { leader: D, ..word(5, 0, "") }, at(11));
        assert_eq!(judged(&mut view, 10, 11).0, LEADER);
    }
}
