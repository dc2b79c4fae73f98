//! Observers: those here, who are shown what all members report, and those elsewhere, whom this
//! member tells.
//!
//! An observer asks every member once a second to be told of a group; a member forgets who has not
//! asked for a while. Changes are told at once. `watches` has the limits, and says when to look at
//! which group.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use tenure_proto::quorum::Quorums;
use tenure_proto::strong::{Grant, Standing};
use tenure_proto::time::LocalSpan;
use tenure_proto::{Elects, GroupId, LocalTime, NodeId};
use tokio::sync::{oneshot, watch};

use super::registry::{By, Full, Registry};
use super::watches::{LOOKS, Watches};
use crate::Machine;
use crate::name::{GroupName, NodeName};
use crate::observe::{Answer, Judged, JudgedState, Proclaimed, Scene, View};
use crate::wire::{GroupState, Item, Proclaim, Report, When};

/// How often an observer asks again, in nanoseconds.
const ASK: u64 = 1_000_000_000;

/// How often it asks again while somebody here waits for an answer.
const ASK_SOON: u64 = ASK / 20;

/// How soon it asks at the earliest after it has asked: many questions share one.
const ASK_APART: u64 = ASK / 200;

/// How long a question waits for a quorum that can tell, in nanoseconds.
const ANSWER_WITHIN: u64 = ASK;

/// For how long a member tells somebody who has asked.
const TELL: u64 = 5 * ASK;

/// How soon at the earliest a member looks again whether a grant that it told of has run out.
const LOOK: u64 = 20_000_000;

/// How often at most it is said that a member does not tell of a group, in nanoseconds.
const SAY_LIMITED: u64 = 60 * ASK;

/// A group that is observed here.
struct Shown {
    name: GroupName,
    view: View,
    scene: watch::Sender<Scene>,
    /// How many handles there are.
    handles: usize,
    ask_at: LocalTime,
    asked_at: LocalTime,
    questions: Vec<Question>,
}

/// Somebody here asks who leads.
struct Question {
    /// When the members were asked; `None` if that is still to be done.
    since: Option<LocalTime>,
    deadline: LocalTime,
    reply: oneshot::Sender<Answer>,
}

/// The knowledge of this member that its reports come from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) machine: &'a Machine,
    pub(super) registry: &'a Registry,
}

impl Source<'_> {
    /// Until when the holder of this member's grant leads at least. A member that has restarted
    /// since remembers the end of its grant alone.
    fn led_until(self, group: GroupId, now: LocalTime) -> LocalTime {
        let Self { machine, registry } = self;
        let granted = Some(registry.led_until(group)).filter(|until| *until != LocalTime::ZERO);
        let remembered = || {
            let (until, body) = (machine.grant(group)?.until, &machine.charter().body);
            let led = body.clocks.led_by_grant(until, body.longest_lease);
            let margin = body.longest_lease.nominal().fraction(1, 8);
            Some(LocalTime::from_nanos(led.as_nanos().saturating_sub(margin.as_nanos())))
        };
        let own = machine.leadership(group, now);
        own.or(granted).or_else(remembered).unwrap_or(LocalTime::ZERO)
    }

    /// The report of a group that answers a question asked at `echo`, or none.
    fn report(
        self,
        (group, cut_off): (GroupId, bool),
        word: Option<&Proclaim>,
        echo: LocalTime,
        now: LocalTime,
    ) -> Report {
        let machine = self.machine;
        let state = state_of(machine, (group, cut_off), word, now);
        let left = match state {
            GroupState::Bound { .. } => self.led_until(group, now).remaining(now),
            GroupState::Free { .. } | GroupState::Weak { .. } => LocalSpan::ZERO,
        };
        Report { group, epoch: machine.epoch(), state, when: Some(When { echo, at: now, left }) }
    }
}

/// All observers, and the newest word of each group's leader.
#[derive(Default)]
pub(crate) struct Observers {
    shown: BTreeMap<GroupId, Shown>,
    /// When to ask for each of them again.
    asks: BTreeSet<(LocalTime, GroupId)>,
    /// Those of them that are to be shown anew.
    news: BTreeSet<GroupId>,
    watches: Watches,
    limited_said: Option<LocalTime>,
    words: BTreeMap<GroupId, Proclaim>,
    /// The lives of members, as of their newest sessions.
    lives: BTreeMap<NodeId, u128>,
    /// Whether this node's sessions reach no quorum.
    cut_off: bool,
}

/// Items to be sent, each with its receiver.
pub(crate) type Post = Vec<(NodeId, Item)>;

impl Observers {
    pub(crate) fn new(most_watches: usize) -> Self {
        Self { watches: Watches::new(most_watches), ..Self::default() }
    }

    /// Whether anybody here or elsewhere observes a group.
    pub(crate) fn has_to_do_with(&mut self, group: GroupId, now: LocalTime) -> bool {
        self.watches.drop_late(group, now);
        self.watches.has(group) || self.shown.contains_key(&group)
    }

    /// Nobody has to do with a group any more.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.watches.forget(group);
        self.words.remove(&group);
    }

    /// Whether to say that a member does not tell of a group.
    pub(crate) fn tell_limited(&mut self, now: LocalTime) -> bool {
        let due = self.limited_said.is_none_or(|said| now.as_nanos() >= said.as_nanos() + SAY_LIMITED);
        if due {
            self.limited_said = Some(now);
        }
        due
    }

    /// Whether this node's sessions reach a quorum. Members that do not campaign hear little of
    /// each other as candidates do, and would each take itself for a minority: one that reaches a
    /// quorum is none, and can say that it supports nobody.
    pub(crate) fn reaches(&mut self, quorum: bool, now: LocalTime) {
        if std::mem::replace(&mut self.cut_off, !quorum) == quorum {
            self.watches.look_at_all(now);
        }
    }

    /// A handle wants to see a group.
    pub(crate) fn observe(&mut self, name: GroupName, now: LocalTime) -> watch::Receiver<Scene> {
        let group = name.id();
        let asks = &mut self.asks;
        let shown = self.shown.entry(group).or_insert_with(|| {
            asks.insert((now, group));
            Shown {
                name,
                view: View::default(),
                scene: watch::Sender::default(),
                handles: 0,
                ask_at: now,
                asked_at: LocalTime::ZERO,
                questions: Vec::new(),
            }
        });
        shown.handles += 1;
        shown.scene.subscribe()
    }

    /// Somebody here asks who leads a group that is observed. The members are asked at once, or a
    /// moment after they were last asked.
    pub(crate) fn ask(&mut self, group: GroupId, reply: oneshot::Sender<Answer>, now: LocalTime) {
        let Some(shown) = self.shown.get_mut(&group) else { return };
        shown.questions.push(Question { since: None, deadline: later(now, ANSWER_WITHIN), reply });
        let ask_at = shown.ask_at.min(now.max(later(shown.asked_at, ASK_APART)));
        self.asks.remove(&(shown.ask_at, group));
        self.asks.insert((ask_at, group));
        shown.ask_at = ask_at;
    }

    /// A handle is gone.
    pub(crate) fn unobserve(&mut self, group: GroupId, members: &[NodeId]) -> Post {
        let Some(shown) = self.shown.get_mut(&group) else { return Vec::new() };
        shown.handles -= 1;
        if shown.handles > 0 {
            return Vec::new();
        }
        self.asks.remove(&(shown.ask_at, group));
        self.news.remove(&group);
        self.shown.remove(&group);
        members.iter().map(|member| (*member, Item::Unwatch { group })).collect()
    }

    /// Somebody wants to be told, and is told at once, if its key may watch one more group.
    pub(crate) fn on_watch(
        &mut self,
        from: (NodeId, By),
        (group, asked): (GroupId, LocalTime),
        source: Source<'_>,
        now: LocalTime,
    ) -> Result<Post, Full> {
        self.watches.ask(from, group, now, later(now, TELL))?;
        let is_timed = asked != LocalTime::ZERO;
        if is_timed {
            self.watches.is_timed(from.0, group);
        }
        let report = source.report((group, self.cut_off), self.words.get(&group), asked, now);
        let report = Item::Report(timed(report, is_timed));
        let word = self.words.get(&group).map(|word| (from.0, Item::Proclaim(word.clone())));
        Ok(std::iter::once((from.0, report)).chain(word).collect())
    }

    pub(crate) fn on_unwatch(&mut self, from: NodeId, group: GroupId) {
        self.watches.leave(from, group);
    }

    /// A leader speaks, itself or through a member. Older words than the newest are dropped.
    pub(crate) fn on_proclaim(&mut self, word: &Proclaim, keep: bool, now: LocalTime) -> Post {
        if let Some(shown) = self.shown.get_mut(&word.group) {
            shown.view.on_proclaim(word, now);
            self.news.insert(word.group);
        }
        let newest = self.words.get(&word.group);
        if !keep || newest.is_some_and(|newest| newest.token >= word.token) {
            return Vec::new();
        }
        // A leader that says nothing new does not silence the last word of the one before; its own
        // replaces it.
        self.words.insert(word.group, word.clone());
        let observers = self.watches.of(word.group);
        observers.map(|observer| (observer, Item::Proclaim(word.clone()))).collect()
    }

    /// There is a session with a process. In another life of it, perhaps of another version, its
    /// reports may be of another kind.
    pub(crate) fn on_session(&mut self, peer: NodeId, life: u128, now: LocalTime) {
        if self.lives.insert(peer, life).is_none_or(|before| before == life) {
            return;
        }
        for (group, shown) in &mut self.shown {
            if shown.view.forget(peer) {
                self.asks.remove(&(shown.ask_at, *group));
                shown.ask_at = now;
                self.asks.insert((now, *group));
            }
        }
    }

    /// A member reports.
    pub(crate) fn on_report(&mut self, from: NodeId, report: &Report, now: LocalTime) {
        if let Some(shown) = self.shown.get_mut(&report.group) {
            shown.view.on_report(from, report, now);
            self.news.insert(report.group);
        }
    }

    /// Tells those who watch a group what has changed about it, or that its leader has renewed:
    /// they believe in a leader for no longer than the part of its lease that they were told of.
    pub(crate) fn tell(&mut self, group: GroupId, renewed: bool, source: Source<'_>, now: LocalTime) -> Post {
        if !self.watches.has(group) {
            return Vec::new();
        }
        let report = source.report((group, self.cut_off), self.words.get(&group), LocalTime::ZERO, now);
        if !self.watches.is_news(group, report.state) && !renewed {
            return Vec::new();
        }
        let watchers = self.watches.timed(group);
        watchers.map(|(observer, is_timed)| (observer, Item::Report(timed(report, is_timed)))).collect()
    }

    /// Asks members again, and looks whether grants have run out: only for groups for which it is
    /// time.
    pub(crate) fn on_time(&mut self, source: Source<'_>, now: LocalTime) -> Post {
        let machine = source.machine;
        let mut post = self.ask_again(machine, now);
        for _ in 0..LOOKS {
            let Some(group) = self.watches.due(now) else { break };
            let dropped_at = self.watches.drop_late(group, now);
            post.extend(self.tell(group, false, source, now));
            let live = machine.grant(group).map(|grant| grant.until).filter(|until| now < *until);
            let over = live.map(|until| until.max(later(now, LOOK)));
            let gone = dropped_at.map(|at| at.max(later(now, ASK)));
            if let Some(next) = over.into_iter().chain(gone).min() {
                self.watches.look_again(group, next);
            }
        }
        post
    }

    fn ask_again(&mut self, machine: &Machine, now: LocalTime) -> Post {
        let mut post = Vec::new();
        while let Some((at, group)) = self.asks.first().copied().filter(|(at, _)| *at <= now) {
            self.asks.remove(&(at, group));
            let Some(shown) = self.shown.get_mut(&group) else { continue };
            shown.questions.iter_mut().for_each(|question| _ = question.since.get_or_insert(now));
            shown.asked_at = now;
            shown.ask_at = later(now, if shown.questions.is_empty() { ASK } else { ASK_SOON });
            self.asks.insert((shown.ask_at, group));
            self.news.insert(group); // Reports grow old: what they come to may have changed.
            let ask = |asked| Item::Watch { group: shown.name.clone(), asked };
            for member in machine.charter().members() {
                post.push((*member, ask(now)));
                // One of an older version knows only questions without a time.
                if !shown.view.is_timed(*member) {
                    post.push((*member, ask(LocalTime::ZERO)));
                }
            }
        }
        post
    }

    /// Shows the handles here what is new, and answers questions.
    pub(crate) fn show(
        &mut self,
        quorums: &Quorums,
        now: LocalTime,
        name: impl Fn(NodeId) -> Option<NodeName>,
        address: impl Fn(NodeId) -> Option<SocketAddr>,
    ) {
        for group in std::mem::take(&mut self.news) {
            let Some(shown) = self.shown.get_mut(&group) else { continue };
            let scene = shown.view.scene(quorums, now, &name);
            shown.scene.send_if_modified(|known| {
                let news = *known != scene;
                if news {
                    *known = scene;
                }
                news
            });
            shown.answer(quorums, now, &name, &address);
        }
    }

    pub(crate) fn next_wake(&self) -> Option<LocalTime> {
        self.asks.first().map(|(at, _)| *at).into_iter().chain(self.watches.next_look()).min()
    }

    /// The newest word of a group's leader, if this member keeps them.
    pub(crate) fn word(&self, group: GroupId) -> Option<&Proclaim> {
        self.words.get(&group)
    }

    /// The newest edict of a group that was heard.
    pub(crate) fn newest_edict(&self, group: GroupId) -> Option<Proclaimed> {
        let kept = self.words.get(&group).and_then(|word| {
            let body = word.body.clone()?;
            Some(Proclaimed { token: word.token, body })
        });
        let shown = self.shown.get(&group).and_then(|shown| shown.view.edict().cloned());
        kept.into_iter().chain(shown).max_by_key(|edict| edict.token)
    }

    /// The result of the newest reports of a group, if it is observed here.
    pub(crate) fn judged(&self, group: GroupId, quorums: &Quorums, now: LocalTime) -> Option<Judged> {
        self.shown.get(&group).map(|shown| shown.view.judge(quorums, LocalTime::ZERO, now))
    }

    /// Whether there is anything to show.
    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }
}

impl Shown {
    /// Answers the questions to which a quorum has answered, and those that have waited for long.
    fn answer(
        &mut self,
        quorums: &Quorums,
        now: LocalTime,
        name: impl Fn(NodeId) -> Option<NodeName>,
        address: impl Fn(NodeId) -> Option<SocketAddr>,
    ) {
        for question in std::mem::take(&mut self.questions) {
            let judged = question.since.map(|since| self.view.judge(quorums, since, now));
            let state = judged.map_or(JudgedState::Unknown, |judged| judged.state);
            if state == JudgedState::Unknown && now < question.deadline {
                self.questions.push(question);
                continue;
            }
            let (leader, until) = match (state, judged) {
                (JudgedState::Leader { leader, .. }, Some(judged)) => (Some(leader), Some(judged.until)),
                _ => (None, None),
            };
            let leads_for = until.map(|until| Duration::from_nanos(until.remaining(now).as_nanos()));
            let (leadership, address) = (state.named(&name), leader.and_then(&address));
            let _ = question.reply.send(Answer { leadership, leads_for, address });
        }
    }
}

fn later(now: LocalTime, by: u64) -> LocalTime {
    LocalTime::from_nanos(now.as_nanos() + by)
}

/// A report for an observer that wants to know when it is of, or for one of an older version.
fn timed(report: Report, is_timed: bool) -> Report {
    Report { when: report.when.filter(|_| is_timed), ..report }
}

/// The report that this member can give of a group. Only who is cut off speaks of a weak leader.
fn state_of(
    machine: &Machine,
    (group, cut_off): (GroupId, bool),
    word: Option<&Proclaim>,
    now: LocalTime,
) -> GroupState {
    if let (Standing::Weak(weak), true) = (machine.standing(group, now), cut_off) {
        return GroupState::Weak { leader: weak.node() };
    }
    let live = machine.grant(group).filter(|grant| now < grant.until);
    match live {
        Some(grant) => {
            let leads = is_known_to_lead(machine, group, word, grant, now);
            GroupState::Bound { holder: grant.holder.node, term: grant.term, leads }
        }
        None => GroupState::Free { after: machine.largest_term(group) },
    }
}

/// Whether the holder of a live grant is known to lead, and does not only ask.
pub(super) fn is_known_to_lead(
    machine: &Machine,
    group: GroupId,
    word: Option<&Proclaim>,
    grant: &Grant,
    now: LocalTime,
) -> bool {
    let renews = machine.is_renewed(group, grant);
    let said = word.is_some_and(|word| word.token.term() == grant.term);
    renews || said || machine.leadership(group, now).is_some()
}
