//! The proposer: one prepare for a leadership, then a window of values on their way.
//!
//! The assertions are about the promises that this process has counted and given itself, not about
//! the votes that they report.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::message::{Ballot, Entry, Event, Key, Message, Slot, Standing, Vote};
use super::rules::{LocalRead, Rules};
use super::{Context, Paxos, Timer, pages};
use crate::quorum::NodeSet;
use crate::{LocalTime, NodeId};

/// How many pages of what is not accepted yet are said again at once.
const REPEATED: usize = 8;

/// The most slots without a vote that a new leader fills: no window of an earlier leader was
/// longer. A member that claims more lies, and its promise must not keep this process busy.
const MOST_GAPS: u64 = 1 << 20;

/// The proposer's state: its leadership, attempts and hints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Proposer {
    /// The process that should lead.
    pub(super) leader: Option<NodeId>,
    epoch: u64,
    /// The strong lease, if this process holds it: its term and E.
    pub(super) lease: Option<(u64, LocalTime)>,
    /// The last term that this process held; it proposes under no other.
    own_term: u64,
    /// The highest ballot heard of.
    seen: Ballot,
    pub(super) role: Role,
    /// Wishes of users here that are not applied yet.
    pub(super) wishes: BTreeMap<Key, Entry>,
}

impl Default for Ballot {
    fn default() -> Self {
        Self::NONE
    }
}

/// How far a process has come with leading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Role {
    #[default]
    Passive,
    Preparing(Preparing),
    Leading(Leading),
}

/// Waiting for promises.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Preparing {
    ballot: Ballot,
    from: Slot,
    /// Those whose promise is here, to its last page.
    promised: NodeSet,
    /// From which slot on those must still tell what they hold who have told a part of it, by
    /// position.
    told: BTreeMap<usize, Slot>,
    /// How many votes were told, by all together.
    pub(super) gathered: usize,
    /// The best vote told of, by slot.
    best: BTreeMap<Slot, Vote>,
    /// The most that anybody has forgotten.
    base: Slot,
}

impl Preparing {
    /// From which slot on a member is to tell what it holds.
    fn asks(&self, position: usize) -> Slot {
        self.told.get(&position).copied().unwrap_or(self.from)
    }

    /// The first and the last slot in which a leader proposes: above those that a member has
    /// forgotten, up to the last one that promises told of. How far others have applied adds
    /// nothing: an entry chosen there was accepted by a member that promised, and that member
    /// reports it or has forgotten it.
    fn reaches(&self, rules: &impl Rules, applied: Slot) -> (Slot, Slot) {
        let above = if rules.may_propose(self.base, self.base) { Slot(0) } else { self.base };
        let last = self.best.keys().next_back().copied().unwrap_or_default();
        (self.from.max(above.next()), last.max(self.base).max(applied))
    }
}

/// A page of a promise.
pub(super) struct Page {
    /// From which slot on it tells.
    pub(super) asked: Slot,
    pub(super) votes: Vec<(Slot, Vote)>,
    /// From which slot on further ones do.
    pub(super) next: Option<Slot>,
    pub(super) base: Slot,
}

/// Leading in a ballot; or having led in it, as long as answers may still come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leading {
    pub(super) ballot: Ballot,
    /// Whether this process is still told to lead. If not it proposes nothing, but goes on
    /// counting.
    pub(super) active: bool,
    /// The highest slot that the promises told of: all that may have been chosen before.
    pub(super) known: Slot,
    /// Up to where somebody has forgotten what was chosen: that is fetched, not proposed.
    base: Slot,
    next: Slot,
    /// Proposed and not known to be chosen.
    pending: BTreeMap<Slot, Pending>,
    /// Entries that wait for the window to move on.
    queue: VecDeque<Entry>,
    /// The wishes in `queue`, and those proposed and not applied: none is proposed twice at once.
    keys: BTreeSet<Key>,
}

impl Leading {
    /// Entries that a member has not accepted yet, the lowest slots first.
    fn missing(&self, position: usize) -> impl Iterator<Item = (Slot, Entry)> {
        let missing = self.pending.iter().filter(move |(_, pending)| !pending.accepted.contains(position));
        missing.map(|(slot, pending)| (*slot, pending.entry.clone()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pending {
    entry: Entry,
    accepted: NodeSet,
}

impl Proposer {
    /// Takes note of a ballot.
    pub(super) fn see(&mut self, ballot: Ballot) {
        self.seen = self.seen.max(ballot);
    }

    /// The process to ask while this one does not lead: the one that should lead, or, if nobody is
    /// named, the one that was heard of leading last. A process that lost its disk may be told by
    /// no election who leads.
    pub(super) fn ask(&self, me: NodeId) -> Option<NodeId> {
        let last = (self.seen != Ballot::NONE).then_some(self.seen.node);
        self.leader.or(last).filter(|leader| *leader != me)
    }

    pub(super) fn is_busy(&self) -> bool {
        let role = match &self.role {
            Role::Passive => false,
            Role::Preparing(_) => true,
            Role::Leading(leading) => leading.active,
        };
        role || !self.wishes.is_empty()
    }

    /// An entry is applied: nobody need ask for it any more.
    pub(super) fn forget(&mut self, entry: &Entry) {
        let Some(key) = entry.key() else { return };
        self.wishes.remove(&key);
        if let Role::Leading(leading) = &mut self.role {
            leading.keys.remove(&key);
        }
    }
}

impl<R: Rules> Paxos<R> {
    pub(super) fn on_hint(&mut self, leader: Option<NodeId>, epoch: u64, cx: &mut Context<'_, R>) {
        let changed = self.proposer.leader != leader;
        (self.proposer.leader, self.proposer.epoch) = (leader, epoch);
        if leader == Some(self.me) {
            let tries = matches!(self.proposer.role, Role::Preparing(_)) || self.timers.is_set(Timer::Again);
            if self.leads().is_none() && !tries {
                self.stand(cx);
            }
            return;
        }
        self.timers.clear(Timer::Again);
        match &mut self.proposer.role {
            Role::Passive => {}
            Role::Preparing(_) => self.retire(cx),
            Role::Leading(leading) => {
                if std::mem::replace(&mut leading.active, false) {
                    cx.publish(Event::Passive(leading.ballot));
                }
                leading.queue.clear();
                leading.keys.clear();
                self.drop_reads(cx);
            }
        }
        if changed {
            self.repeat_wishes(cx);
            self.ask_again(cx);
        }
    }

    /// A lease, taken or renewed. A new term needs a ballot of its own before anything is read
    /// under it.
    pub(super) fn on_lease(&mut self, term: u64, until: LocalTime, cx: &mut Context<'_, R>) {
        self.proposer.lease = Some((term, until));
        let is_new = term > self.proposer.own_term;
        self.proposer.own_term = self.proposer.own_term.max(term);
        let needs = self.rules().needs_ballot(is_new, self.leads().is_some());
        if needs && self.proposer.leader == Some(self.me) {
            self.stand(cx);
        }
    }

    /// Asks for promises in a new ballot, if this process is still told to lead. Its own promise
    /// comes first, durably.
    pub(super) fn stand(&mut self, cx: &mut Context<'_, R>) {
        if self.proposer.leader != Some(self.me) || self.amnesiac || self.config.position(self.me).is_none() {
            return;
        }
        self.retire(cx);
        self.proposer.see(self.promised);
        let seen = self.proposer.seen;
        let round = seen.round.saturating_add(1).max(self.proposer.epoch);
        let next = Ballot { term: self.proposer.own_term, round, node: self.me };
        let ballot = self.rules().ballot(self.proposer.own_term, seen, next);
        if !self.rules().may_promise(self.promised, ballot) {
            return; // A later leader's term is promised here: nothing to be done without a lease of one's own.
        }
        self.timers.clear(Timer::Again);
        self.promise(ballot, cx);
        self.proposer.see(ballot);
        let from = self.learner.applied.next();
        let preparing = Preparing {
            ballot,
            from,
            promised: NodeSet::EMPTY,
            told: BTreeMap::new(),
            gathered: 0,
            best: BTreeMap::new(),
            base: Slot(0),
        };
        self.proposer.role = Role::Preparing(preparing);
        cx.publish(Event::Preparing(ballot));
        let after = self.rules().prepare_after(self.written);
        self.send_others(&Message::Prepare { ballot, from }, after, cx);
        self.promise_oneself(ballot, from, cx);
    }

    /// The promise of this process to itself, when it is durable. The votes that it holds are
    /// looked up at that moment.
    fn promise_oneself(&self, ballot: Ballot, from: Slot, cx: &mut Context<'_, R>) {
        let (base, applied) = (self.learner.base, self.learner.applied);
        let promise = Message::Promise { ballot, from, votes: Vec::new(), next: None, base, applied };
        cx.send(self.me, promise, self.rules().reply_after(self.written));
    }

    pub(super) fn on_promise(
        &mut self,
        (from, position): (NodeId, usize),
        ballot: Ballot,
        page: Page,
        cx: &mut Context<'_, R>,
    ) {
        let (rules, size) = (self.config.rules(), self.config.size());
        let Role::Preparing(preparing) = &mut self.proposer.role else { return };
        if preparing.ballot != ballot || page.asked > preparing.asks(position) {
            return;
        }
        let votes = match from == self.me {
            true => self.log.range(page.asked..).map(|(slot, vote)| (*slot, vote.clone())).collect(),
            false => page.votes,
        };
        if page.asked == preparing.asks(position) && !preparing.promised.contains(position) {
            preparing.gathered += votes.len();
        }
        preparing.base = preparing.base.max(page.base);
        for (slot, vote) in votes {
            match preparing.best.get_mut(&slot) {
                Some(held) if !rules.better(held, &vote) => {}
                Some(held) => *held = vote,
                None => _ = preparing.best.insert(slot, vote),
            }
        }
        if rules.is_whole(page.next) {
            preparing.promised.insert(position);
        } else if let Some(next) = page.next.filter(|next| *next > preparing.asks(position)) {
            preparing.told.insert(position, next);
            let after = rules.prepare_after(self.written);
            cx.send(from, Message::Prepare { ballot, from: next }, after);
        }
        if preparing.promised.len() >= rules.prepare_quorum(size.0, size.1) {
            let (first, last) = preparing.reaches(rules, self.learner.applied);
            let held = preparing.best.range(first..).count() as u64;
            let gaps = last.next().0.saturating_sub(first.0).saturating_sub(held);
            if gaps > MOST_GAPS { self.give_way(cx) } else { self.lead(cx) }
        }
    }

    /// n-f have promised: proposes again whatever may be chosen, and fills the gaps.
    fn lead(&mut self, cx: &mut Context<'_, R>) {
        let Role::Preparing(preparing) = std::mem::take(&mut self.proposer.role) else { return };
        let ((members, faults), rules) = (self.config.size(), self.config.rules());
        let enough = preparing.promised.len() >= rules.prepare_quorum(members, faults);
        invariant!(rules, enough, "a proposer leads when n-f have promised");
        invariant!(rules, preparing.ballot <= self.promised, "a ballot is promised by its own process first");
        let (first, known) = preparing.reaches(rules, self.learner.applied);
        let Preparing { ballot, best, base, .. } = preparing;
        self.proposer.role = Role::Leading(Leading {
            ballot,
            active: true,
            known,
            base,
            next: known.next(),
            pending: BTreeMap::new(),
            queue: VecDeque::new(),
            keys: BTreeSet::new(),
        });
        cx.publish(Event::Leading(ballot));
        let (mut chosen, mut proposed) = (Vec::new(), BTreeMap::new());
        for (slot, vote) in &best {
            match vote.standing {
                Standing::Chosen => chosen.push((*slot, vote.entry.clone())),
                _ if !self.rules().may_propose(*slot, base) => {} // Chosen, and forgotten: to be fetched.
                _ => _ = proposed.insert(*slot, self.rules().proposal(&vote.entry)),
            }
        }
        if self.rules().fills_gaps() {
            let gaps = (first.0..=known.0).map(Slot).filter(|slot| !best.contains_key(slot));
            proposed.extend(gaps.map(|slot| (slot, Entry::Noop)));
        }
        for (slot, entry) in chosen {
            self.learn(slot, entry, cx);
        }
        let proposed = proposed.split_off(&self.learner.applied.next());
        self.propose(proposed.into_iter().collect(), cx);
        self.repeat_wishes(cx);
        self.ask_again(cx);
        self.fetch_anew(cx);
    }

    /// Sends entries to all acceptors, this one included. If it has promised more in the meantime
    /// the ballot is lost.
    fn propose(&mut self, entries: Vec<(Slot, Entry)>, cx: &mut Context<'_, R>) {
        let Role::Leading(leading) = &mut self.proposer.role else { return };
        if entries.is_empty() {
            return;
        }
        let ballot = leading.ballot;
        if !self.config.rules().may_accept(self.promised, ballot) {
            return self.on_nack(self.promised, cx);
        }
        for (slot, entry) in &entries {
            let pending = Pending { entry: entry.clone(), accepted: NodeSet::EMPTY };
            leading.keys.extend(entry.key());
            leading.pending.insert(*slot, pending);
            cx.publish(Event::Proposed { slot: *slot, ballot });
        }
        let upto = self.learner.applied;
        // Here, too, page by page: the first slots are accepted when their own records are durable,
        // not when those of all are.
        for entries in self.pages_of(entries.into_iter(), usize::MAX) {
            self.send_others(&Message::Accept { ballot, entries: entries.clone(), upto }, None, cx);
            self.accept(self.me, ballot, entries, cx);
        }
    }

    fn pages_of(&self, entries: impl Iterator<Item = (Slot, Entry)>, most: usize) -> Vec<Vec<(Slot, Entry)>> {
        pages(entries, (self.config.settings().page, most), |(_, entry)| entry.weight())
    }

    /// Gives the next slots to what waits, as far as the window reaches.
    fn flush(&mut self, cx: &mut Context<'_, R>) {
        let beyond = self.learner.applied.0.saturating_add(self.config.settings().window);
        let Role::Leading(leading) = &mut self.proposer.role else { return };
        let mut entries = Vec::new();
        while leading.active && leading.next.0 <= beyond {
            let Some(entry) = leading.queue.pop_front() else { break };
            entries.push((leading.next, entry));
            leading.next = leading.next.next();
        }
        self.propose(entries, cx);
    }

    pub(super) fn on_accepted(
        &mut self,
        position: usize,
        ballot: Ballot,
        slots: &[Slot],
        cx: &mut Context<'_, R>,
    ) {
        let (rules, (members, faults)) = (self.config.rules(), self.config.size());
        let Role::Leading(leading) = &mut self.proposer.role else { return };
        if !rules.counts(leading.ballot, ballot) {
            return;
        }
        let (ballot, mut chosen) = (leading.ballot, Vec::new());
        for slot in slots {
            let Some(pending) = leading.pending.get_mut(slot) else { continue };
            pending.accepted.insert(position);
            if pending.accepted.len() >= rules.accept_quorum(members, faults)
                && let Some(pending) = leading.pending.remove(slot)
            {
                chosen.push((*slot, pending.entry));
            }
        }
        if chosen.is_empty() {
            return;
        }
        let before = self.learner.applied;
        for (slot, entry) in chosen {
            cx.publish(Event::Chosen { slot, ballot });
            self.learn(slot, entry, cx);
        }
        self.flush(cx);
        if self.learner.applied > before && self.leads() == Some(ballot) {
            self.send_others(&Message::Commit { ballot, upto: self.learner.applied }, None, cx);
        }
    }

    /// Somebody has promised more: this ballot is lost. Tries a higher one after a pause, if still
    /// told to lead by then.
    pub(super) fn on_nack(&mut self, promised: Ballot, cx: &mut Context<'_, R>) {
        self.proposer.see(promised);
        let lost = match &self.proposer.role {
            Role::Passive => false,
            Role::Preparing(preparing) => preparing.ballot < promised,
            Role::Leading(leading) => leading.ballot < promised,
        };
        if lost {
            self.give_way(cx);
        }
    }

    /// Stops leading, or trying to.
    fn retire(&mut self, cx: &mut Context<'_, R>) {
        let ballot = match std::mem::take(&mut self.proposer.role) {
            Role::Passive => return,
            Role::Preparing(preparing) => preparing.ballot,
            Role::Leading(leading) => leading.ballot,
        };
        self.drop_reads(cx);
        cx.publish(Event::Passive(ballot));
    }

    /// A slot is known to be chosen, from elsewhere perhaps. If that is something else than was
    /// proposed there, a higher ballot chose it.
    pub(super) fn office_learns(&mut self, slot: Slot, entry: &Entry, cx: &mut Context<'_, R>) {
        let Role::Leading(leading) = &mut self.proposer.role else { return };
        let superseded = leading.pending.remove(&slot).is_some_and(|pending| pending.entry != *entry);
        if superseded || slot >= leading.next {
            self.superseded(cx);
        }
    }

    /// A snapshot covers slots whose values are not known here: if some of them were proposed, they
    /// may be another's. The entries chosen in them will not be applied in turn, so they are no
    /// longer on their way, and may be wished for again.
    pub(super) fn office_skips(&mut self, upto: Slot, cx: &mut Context<'_, R>) {
        let Role::Leading(leading) = &mut self.proposer.role else { return };
        if upto >= leading.next || leading.pending.range(..=upto).next().is_some() {
            return self.superseded(cx);
        }
        for key in self.log.range(..=upto).filter_map(|(_, vote)| vote.entry.key()) {
            leading.keys.remove(&key);
        }
    }

    fn superseded(&mut self, cx: &mut Context<'_, R>) {
        if self.rules().gives_way() {
            self.give_way(cx);
        }
    }

    /// Nobody teaches the slots that this leader must know and may not propose: the processes that
    /// have forgotten them are gone, perhaps for good. Asked for promises once more, those that are
    /// left may tell what was chosen. Entries on their way are waited for: a leader that reaches
    /// enough is owed them.
    pub(super) fn office_starves(&mut self, cx: &mut Context<'_, R>) {
        let Role::Leading(leading) = &self.proposer.role else { return };
        if leading.active && self.learner.applied < leading.base && leading.pending.is_empty() {
            self.give_way(cx);
        }
    }

    /// Leads no more, and tries a higher ballot after a pause, if still told to lead by then.
    fn give_way(&mut self, cx: &mut Context<'_, R>) {
        self.retire(cx);
        if self.proposer.leader == Some(self.me) {
            let retry = self.config.settings().retry;
            let pause = retry.plus(cx.jitter(retry));
            self.timers.set(Timer::Again, cx.now().after(pause));
        }
    }

    /// A user here wants something in the log.
    pub(super) fn on_wish(&mut self, entry: Entry, cx: &mut Context<'_, R>) {
        let Some(key) = entry.key() else { return };
        if self.is_done(key) {
            return cx.publish(Event::Done(key));
        }
        if !self.proposer.wishes.contains_key(&key) {
            if self.proposer.wishes.len() >= self.config.settings().wishes {
                return cx.publish(Event::Refused(key));
            }
            self.proposer.wishes.insert(key, entry.clone());
        }
        if self.leads().is_some() {
            self.take_up(vec![entry], cx);
        } else if let Some(leader) = self.proposer.ask(self.me) {
            cx.send(leader, Message::Forward { entries: vec![entry] }, None);
        }
    }

    /// Whether a wish is fulfilled here already. Of an unknown session nothing can be said until
    /// the log says it.
    fn is_done(&self, key: Key) -> bool {
        let sessions = &self.learner.sessions;
        match key {
            Key::Open(nonce) => sessions.opened_by(nonce).is_some(),
            Key::Write(session, number) => {
                sessions.get(session).is_some_and(|seen| !self.rules().is_fresh(seen.last, number))
            }
        }
    }

    /// Slots were skipped: what was wished for here may have been fulfilled in them.
    pub(super) fn drop_done_wishes(&mut self, cx: &mut Context<'_, R>) {
        let done: Vec<Key> = self.proposer.wishes.keys().copied().filter(|key| self.is_done(*key)).collect();
        for key in done {
            self.proposer.wishes.remove(&key);
            cx.publish(Event::Done(key));
        }
    }

    /// Wishes that another process passes on.
    pub(super) fn on_forward(&mut self, entries: Vec<Entry>, cx: &mut Context<'_, R>) {
        if self.leads().is_some() {
            self.take_up(entries, cx);
        }
    }

    fn take_up(&mut self, entries: Vec<Entry>, cx: &mut Context<'_, R>) {
        let most = self.config.settings().wishes;
        for entry in entries {
            let Some(key) = entry.key().filter(|key| !self.is_done(*key)) else { continue };
            let Role::Leading(leading) = &mut self.proposer.role else { return };
            if leading.queue.len() < most && leading.keys.insert(key) {
                leading.queue.push_back(entry);
            }
        }
        self.flush(cx);
    }

    pub(super) fn repeat_prepare(&mut self, cx: &mut Context<'_, R>) {
        let Role::Preparing(preparing) = &self.proposer.role else { return };
        let after = self.rules().prepare_after(self.written);
        let ballot = preparing.ballot;
        for (position, to) in self.config.settings().members.iter().enumerate() {
            if *to != self.me && !preparing.promised.contains(position) {
                cx.send(*to, Message::Prepare { ballot, from: preparing.asks(position) }, after);
            }
        }
        let own = self.config.position(self.me);
        if own.is_some_and(|own| !preparing.promised.contains(own)) {
            self.promise_oneself(ballot, preparing.from, cx);
        }
    }

    /// To each acceptor what it has not accepted yet, or the first of it: when that is chosen it is
    /// the turn of the next, and all of it at once would keep from coming what is on its way
    /// already. To all others how far the log has come.
    pub(super) fn repeat_accepts(&mut self, cx: &mut Context<'_, R>) {
        let upto = self.learner.applied;
        let Role::Leading(leading) = &self.proposer.role else { return };
        if !leading.active {
            return;
        }
        let (ballot, mut own) = (leading.ballot, Vec::new());
        for (position, to) in self.config.settings().members.iter().enumerate() {
            let pages = self.pages_of(leading.missing(position), REPEATED);
            if *to == self.me {
                own = pages;
                continue;
            }
            if pages.is_empty() {
                cx.send(*to, Message::Commit { ballot, upto }, None);
            }
            for entries in pages {
                cx.send(*to, Message::Accept { ballot, entries, upto }, None);
            }
        }
        if self.rules().may_accept(self.promised, ballot) {
            own.into_iter().for_each(|entries| self.accept(self.me, ballot, entries, cx));
        }
    }

    pub(super) fn repeat_wishes(&mut self, cx: &mut Context<'_, R>) {
        if self.proposer.wishes.is_empty() {
            return;
        }
        let entries = self.proposer.wishes.values().cloned();
        if self.leads().is_some() {
            self.take_up(entries.collect(), cx);
        } else if let Some(leader) = self.proposer.ask(self.me) {
            for entries in pages(entries, (self.config.settings().page, usize::MAX), Entry::weight) {
                cx.send(leader, Message::Forward { entries }, None);
            }
        }
    }

    /// The facts that a local read would rest on, if this process leads.
    pub(super) fn local_read(&self) -> Option<LocalRead> {
        let Role::Leading(leading) = &self.proposer.role else { return None };
        leading.active.then_some(LocalRead {
            lease: self.proposer.lease,
            ballot: leading.ballot,
            applied: self.learner.applied,
            known: leading.known,
        })
    }
}
