//! The learner: applies chosen entries in order, catches up when it is behind, makes snapshots, and
//! forgets.
//!
//! The assertions are about how far this process has applied and forgotten. That a slot has one
//! value is not asserted: a member that teaches another one may lie, and must not stop this node.

use std::collections::BTreeMap;

use super::message::{Applied, Ballot, Bytes, Entry, Event, Message, Record, Slot, Standing, Vote};
use super::rules::Rules;
use super::session::Sessions;
use super::{Context, Paxos, fitting};
use crate::{LocalTime, NodeId};

/// The most entries that one answer carries to somebody who is behind.
const PAGE: usize = 64;

/// How often everybody is asked in vain before a leader does without the answer.
const TURNS: usize = 4;

/// The state that the log has led to, at a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Snapshot {
    pub(super) upto: Slot,
    pub(super) sessions: Sessions,
    pub(super) state: Bytes,
}

/// The log as applied here, and as known to be chosen elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Learner {
    /// Everything up to here is chosen and applied.
    pub(super) applied: Slot,
    /// Everything up to here is forgotten, but for the snapshot.
    pub(super) base: Slot,
    pub(super) sessions: Sessions,
    snapshot: Option<Snapshot>,
    /// The snapshot that the driver was asked for, with the sessions there.
    wanted: Option<(Slot, Sessions)>,
    /// Where the driver could make no snapshot last.
    declined: Slot,
    /// The members known to have applied more than this one, and how much.
    ahead: BTreeMap<NodeId, Slot>,
    /// The member that taught something last.
    taught: Option<NodeId>,
    /// How often in a row nobody answered: the next one is asked.
    unanswered: usize,
    /// Until when an answer to a fetch is waited for.
    fetching: Option<LocalTime>,
}

impl Learner {
    pub(super) fn new() -> Self {
        Self {
            applied: Slot(0),
            base: Slot(0),
            sessions: Sessions::default(),
            snapshot: None,
            wanted: None,
            declined: Slot(0),
            ahead: BTreeMap::new(),
            taught: None,
            unanswered: 0,
            fetching: None,
        }
    }

    pub(super) fn is_behind(&self) -> bool {
        self.ahead.values().any(|slot| *slot > self.applied)
    }

    /// The driver has no snapshot for what was wanted.
    pub(super) fn do_without(&mut self, upto: Slot) {
        if self.wanted.take_if(|(wanted, _)| *wanted == upto).is_some() {
            self.declined = upto;
        }
    }

    fn snapshot_at(&self) -> Slot {
        self.snapshot.as_ref().map_or(Slot(0), |snapshot| snapshot.upto)
    }
}

impl<R: Rules> Paxos<R> {
    /// Takes up what the disk holds.
    pub(super) fn recover(&mut self, records: Vec<Record>, cx: &mut Context<'_, R>) {
        for record in records {
            match record {
                Record::Promised(ballot) => self.promised = ballot,
                Record::Accepted { slot, ballot, entry } => {
                    self.log.insert(slot, Vote { standing: Standing::Accepted(ballot), entry });
                }
                Record::Snapshot { upto, sessions, state } => {
                    self.learner.snapshot = Some(Snapshot { upto, sessions, state });
                }
                Record::Base(base) => self.learner.base = base,
                Record::Forgot => {} // Known before anything else.
            }
        }
        let base = self.learner.base;
        self.log.retain(|slot, _| *slot > base);
        self.proposer.see(self.promised);
        if let Some(Snapshot { upto, sessions, state }) = self.learner.snapshot.clone() {
            self.learner.applied = upto;
            self.learner.sessions = sessions;
            cx.publish(Event::Restore { upto, state });
        }
    }

    pub(super) fn on_commit(&mut self, from: NodeId, ballot: Ballot, upto: Slot, cx: &mut Context<'_, R>) {
        let rules = self.config.rules();
        for (slot, vote) in self.log.range_mut(self.learner.applied.next()..) {
            if *slot <= upto && rules.is_committed(vote.standing, ballot) {
                vote.standing = Standing::Chosen;
            }
        }
        self.apply(cx);
        self.hear_of(upto, from);
        self.fetch_if_behind(cx);
    }

    /// Somebody has applied this much.
    pub(super) fn hear_of(&mut self, upto: Slot, at: NodeId) {
        if upto > self.learner.applied && at != self.me {
            self.learner.ahead.insert(at, upto);
        }
    }

    /// A new leader may know of others who are ahead: whom it asked in vain before does not count.
    pub(super) fn fetch_anew(&mut self, cx: &mut Context<'_, R>) {
        self.learner.unanswered = 0;
        self.fetch_if_behind(cx);
    }

    pub(super) fn fetch_if_behind(&mut self, cx: &mut Context<'_, R>) {
        let applied = self.learner.applied;
        self.learner.ahead.retain(|_, slot| *slot > applied);
        if self.learner.ahead.is_empty() || self.learner.fetching.is_some_and(|until| cx.now() < until) {
            return;
        }
        let asked = self.learned_ones();
        let Some(from) = asked.get(self.learner.unanswered % asked.len().max(1)) else { return };
        // With each turn more time: a snapshot may take long, and each question for it brings
        // another one.
        let turn = self.learner.unanswered / asked.len(); // Below TURNS.
        self.learner.unanswered += 1;
        let wait = self.config.settings().retry.times(1 << turn);
        self.learner.fetching = Some(cx.now().after(wait));
        cx.send(*from, Message::Fetch { from: applied.next() }, None);
        if self.learner.unanswered >= TURNS * asked.len() {
            self.learner.unanswered = 0;
            self.office_starves(cx);
        }
    }

    /// Whom to ask, one after the other as they do not answer: the one that answered last, if it
    /// can go on, then those who are known to know most, and then all others. A member known to be
    /// ahead may be gone, and others have not said how far they are.
    fn learned_ones(&self) -> Vec<NodeId> {
        let goes_on =
            |node: &NodeId| self.learner.taught == Some(*node) && self.learner.ahead.contains_key(node);
        let knows = |node: &NodeId| self.learner.ahead.get(node).copied().unwrap_or_default();
        let members = self.config.settings().members.iter().copied();
        let mut others: Vec<NodeId> = members.filter(|node| *node != self.me).collect();
        others.sort_by_key(|node| std::cmp::Reverse((goes_on(node), knows(node), *node)));
        others
    }

    /// Answers with entries, or, if they are forgotten or not known for certain here, with what
    /// came of them.
    pub(super) fn on_fetch(&mut self, to: NodeId, from: Slot, cx: &mut Context<'_, R>) {
        let applied = self.learner.applied;
        if from > applied {
            return;
        }
        let entries = self.chosen_from(from);
        if !entries.is_empty() {
            cx.send(to, Message::Learn { entries, upto: applied }, None);
        } else if let Some(Snapshot { upto, sessions, state }) = self.learner.snapshot.clone() {
            cx.send(to, Message::Install { upto, sessions, state }, None);
        }
    }

    /// The entries from a slot on that are known to be chosen and are applied here, without a gap.
    fn chosen_from(&self, from: Slot) -> Vec<(Slot, Entry)> {
        let slots = (from.0..).map(Slot);
        let held = || self.log.range(from..=self.learner.applied).take(PAGE);
        let fit = fitting(held().map(|(_, vote)| vote.entry.weight()), self.config.settings().page);
        let votes = held().take(fit).zip(slots);
        let known =
            votes.take_while(|((slot, vote), next)| *slot == next && self.rules().may_teach(vote.standing));
        known.map(|((slot, vote), _)| (*slot, vote.entry.clone())).collect()
    }

    pub(super) fn on_learn(
        &mut self,
        from: NodeId,
        entries: Vec<(Slot, Entry)>,
        upto: Slot,
        cx: &mut Context<'_, R>,
    ) {
        let before = self.learner.applied;
        for (slot, entry) in entries {
            self.learn(slot, entry, cx);
        }
        self.hear_of(upto, from);
        // An answer that taught nothing is no reason to ask on: each answer that comes twice would
        // cause two more, and those four.
        if self.learner.applied > before {
            self.is_taught_by(from);
            self.fetch_if_behind(cx);
        }
    }

    fn is_taught_by(&mut self, from: NodeId) {
        (self.learner.taught, self.learner.fetching, self.learner.unanswered) = (Some(from), None, 0);
    }

    /// An entry is chosen.
    pub(super) fn learn(&mut self, slot: Slot, entry: Entry, cx: &mut Context<'_, R>) {
        if slot <= self.learner.applied {
            return;
        }
        self.office_learns(slot, &entry, cx);
        self.log.insert(slot, Vote { standing: Standing::Chosen, entry });
        self.apply(cx);
    }

    /// Applies what is next in turn, as far as it is known.
    fn apply(&mut self, cx: &mut Context<'_, R>) {
        let before = self.learner.applied;
        while let Some((slot, vote)) = self.next_chosen() {
            let next = slot == self.learner.applied.next();
            invariant!(self.rules(), next, "slots are applied in order, each once");
            invariant!(self.rules(), vote.standing == Standing::Chosen, "only chosen entries are applied");
            self.learner.applied = slot;
            self.proposer.forget(&vote.entry);
            let applied = self.carry_out(slot, vote.entry);
            cx.publish(Event::Applied { slot, applied });
        }
        if self.learner.applied > before {
            self.serve_reads(cx);
            self.want_snapshot(cx);
        }
    }

    fn next_chosen(&self) -> Option<(Slot, Vote)> {
        let (slot, vote) = self.log.range(self.learner.applied.next()..).next()?;
        let is_next = self.rules().is_next(self.learner.applied, *slot);
        (is_next && vote.standing == Standing::Chosen).then(|| (*slot, vote.clone()))
    }

    fn carry_out(&mut self, slot: Slot, entry: Entry) -> Applied {
        let most = self.config.settings().sessions;
        let sessions = &mut self.learner.sessions;
        match entry {
            Entry::Noop => Applied::Noop,
            Entry::Open { nonce } => {
                let (session, closed) = sessions.open(nonce, slot, most);
                Applied::Opened { nonce, session, closed }
            }
            Entry::Write { session, number, bytes } => {
                let seen = sessions.get(session);
                sessions.note(session, number, slot);
                match seen {
                    None if self.rules().refuses_unknown_sessions() => Applied::Expired { session, number },
                    Some(seen) if !self.rules().is_fresh(seen.last, number) => {
                        Applied::Again { session, number }
                    }
                    _ => Applied::Write { session, number, bytes },
                }
            }
        }
    }

    /// Each process has places of its own in the log at which its snapshots are due, whatever
    /// snapshot it was given meanwhile: so processes that differ in them never make theirs at once.
    fn want_snapshot(&mut self, cx: &mut Context<'_, R>) {
        let upto = self.learner.applied;
        let since = self.learner.snapshot_at().max(self.learner.declined);
        let settings = self.config.settings();
        let places_before =
            |slot: Slot| slot.0.saturating_add(settings.snapshot_sooner) / settings.snapshot_every.max(1);
        let due = places_before(upto) > places_before(since);
        if self.learner.wanted.is_none() && due {
            self.learner.wanted = Some((upto, self.learner.sessions.clone()));
            cx.publish(Event::SnapshotWanted { upto });
        }
    }

    /// The driver has made the snapshot that was wanted: keep it, and forget what lies far enough
    /// below.
    pub(super) fn on_snapshot(&mut self, upto: Slot, state: Bytes, cx: &mut Context<'_, R>) {
        let Some((wanted, sessions)) = self.learner.wanted.take() else { return };
        if wanted != upto || upto <= self.learner.snapshot_at() {
            return;
        }
        let sessions = self.rules().snapshot_sessions(sessions);
        self.keep_snapshot(Snapshot { upto, sessions, state }, cx);
        let keep = self.config.settings().keep;
        let applied = self.learner.applied;
        self.forget_upto(self.rules().base(upto, applied, keep), cx);
    }

    fn keep_snapshot(&mut self, snapshot: Snapshot, cx: &mut Context<'_, R>) {
        let Snapshot { upto, sessions, state } = snapshot.clone();
        self.persist(Record::Snapshot { upto, sessions, state }, cx);
        self.learner.snapshot = Some(snapshot);
    }

    /// Records become durable in order, or snapshot and base are left out together: the base never
    /// without the snapshot.
    fn forget_upto(&mut self, base: Slot, cx: &mut Context<'_, R>) {
        if base > self.learner.base {
            let covered = base <= self.learner.snapshot_at() && base <= self.learner.applied;
            invariant!(self.rules(), covered, "what is forgotten is in the snapshot, and applied");
            self.learner.base = base;
            self.log.retain(|slot, _| *slot > base);
            self.persist(Record::Base(base), cx);
        }
    }

    /// A snapshot from another process, because this one is too far behind.
    pub(super) fn on_install(&mut self, from: NodeId, snapshot: Snapshot, cx: &mut Context<'_, R>) {
        let Snapshot { upto, sessions, state } = snapshot.clone();
        if upto <= self.learner.applied {
            return;
        }
        invariant!(self.rules(), upto > self.learner.applied, "the applied slot never falls");
        self.is_taught_by(from);
        self.office_skips(upto, cx);
        self.learner.wanted = None;
        self.learner.applied = upto;
        self.learner.sessions = sessions;
        self.keep_snapshot(snapshot, cx);
        self.forget_upto(upto, cx);
        cx.publish(Event::Restore { upto, state });
        self.drop_done_wishes(cx);
        self.apply(cx);
        self.serve_reads(cx);
        self.fetch_if_behind(cx);
    }
}
