//! The candidate's side: steps 1-3 and 7-9 of OQwBD and OQwBS, one group.
//!
//! A timer never decides who leads: it only makes a candidate look at its clock. `E` is compared with a reading where
//! it matters, in [`Candidate::leads_until`] and at completion.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::quorum::NodeSet;
use crate::time::{Span, Stamp};
use crate::timers::Timers;
use crate::{Context, GroupId, LocalTime, NodeId};

use super::epoch::{Charter, Epoch};
use super::find::Finding;
use super::grantor::Grantor;
use super::message::{Event, Failure, GrantRequest, InstanceId, Kind, Loss, Message, Refusal, Term};
use super::rules::{Across, Rules};
use super::transfer::Handover;
use super::verify::Verifying;
use super::{Nerio, Process};

/// What a candidate waits for. Liveness only: a late timer cannot make a leader.
#[derive(Clone, Copy)]
pub(super) enum Timer {
    /// E has come: say that the leadership is over.
    Expire,
    /// The lease that a run asked for would be over: step 9.
    Fail,
    /// Ask those again that did not answer.
    Retry,
    /// Extend the lease.
    Renew,
    /// Try to become leader.
    Start,
    /// A pledge is over: give back what was to be given back.
    Release,
    /// Pass on a successor's request again: the first may be lost.
    Relay,
    /// Somebody asks where the leader is: ask again, give up, or answer without an answer.
    Find,
}

impl Timer {
    const COUNT: usize = Self::Find as usize + 1;
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

/// How many collisions are borne before the window grows.
const PATIENCE: u32 = 3;

/// The window grows to eight times its length at most: after a long partition an election must not wait for ever.
const MOST_DOUBLINGS: u32 = 3;

/// A run in flight: Start and the answers so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Run {
    request: GrantRequest,
    /// Whose members were asked, and by whose quorums the answers are judged (ONE).
    charter: Arc<Charter>,
    oks: NodeSet,
    /// When those granted, by their own clocks.
    stamps: Vec<(NodeId, Stamp)>,
    nacks: NodeSet,
    /// How often the silent ones were asked again.
    retries: u32,
    /// Whether every nack said that the term is too small.
    all_stale: bool,
    /// The first process that a refusal named as holder, who is bound to it, and for how long.
    rival: Option<Rival>,
}

impl Run {
    /// An answer, once for each grantor.
    fn count(&mut self, from: NodeId, at: Stamp) {
        self.stamps.push((from, at));
        if let Some(position) = self.charter.body.quorums.position(from) {
            self.oks.insert(position);
        }
    }

    /// Step 7: a quorum of the run's epoch has answered.
    fn suffices(&self, across: Across) -> bool {
        if across == Across::ByNumber {
            let answered: BTreeSet<NodeId> = self.stamps.iter().map(|(node, _)| *node).collect();
            return 2 * answered.len() > self.charter.members().len();
        }
        self.charter.body.quorums.is_quorum(self.oks)
    }

    /// What no sound candidate does: the run goes on in another epoch with the answers that it has.
    fn carry_over<R: Rules>(&mut self, across: Across, around: &mut Around<'_, '_, R>) {
        self.request.epoch = around.process.membership.epoch();
        if across != Across::ByOld {
            self.charter = around.process.membership.charter.clone();
            let quorums = &self.charter.body.quorums;
            self.oks = self.stamps.iter().filter_map(|(node, _)| quorums.position(*node)).collect();
            self.nacks = NodeSet::EMPTY;
        }
        let everyone = around.process.charter().body.quorums.everyone();
        around.ask(everyone, self.request);
    }
}

/// Somebody who stands in the way, as refusals tell. A hint: nothing but patience rests on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Rival {
    node: NodeId,
    held: NodeSet,
    until: LocalTime,
}

/// A leadership: one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lead {
    pub(super) term: Term,
    /// E.
    pub(super) until: LocalTime,
}

/// One group, as a candidate for it sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Candidate {
    campaigns: bool,
    run: Option<Run>,
    /// The run that completed last, where its stamps are not frozen: nothing, under sound rules.
    completed: Option<Run>,
    pub(super) lead: Option<Lead>,
    /// The largest term that a refusal told of.
    pub(super) hint: Term,
    /// How often others were in the way, or too few within reach, since this process last led: the window doubles
    /// after three times.
    collisions: u32,
    pub(super) timers: Timers<{ Timer::COUNT }>,
    pub(super) handover: Handover,
    pub(super) verifying: Verifying,
    pub(super) finding: Finding,
}

/// All that a step of a candidate may touch besides itself.
pub(super) struct Around<'a, 'c, R: Rules> {
    pub(super) group: GroupId,
    /// This node's own grantor: it tells whether trying makes sense, never whether this node leads.
    pub(super) own: &'a Grantor,
    pub(super) process: &'a mut Process<R>,
    pub(super) cx: &'a mut Context<'c, Nerio<R>>,
}

impl<R: Rules> Around<'_, '_, R> {
    /// δ: what the settings say, or what the epoch allows if that is less.
    pub(super) fn lease(&self) -> Span {
        self.process.config.settings().lease.min(self.process.charter().body.longest_lease)
    }

    /// Asks members of the present epoch.
    fn ask(&mut self, members: NodeSet, request: GrantRequest) {
        let charter = self.process.membership.charter.clone();
        for member in members.positions().filter_map(|position| charter.members().get(position)) {
            self.process.ask(*member, Message::Request(request), self.cx);
        }
    }
}

impl Candidate {
    /// E, if at `now` this process may act as leader: `C_p < E_p` (13).
    pub(super) fn leads_until(&self, now: LocalTime) -> Option<LocalTime> {
        self.lead.filter(|lead| now < lead.until).map(|lead| lead.until)
    }

    pub(super) fn next_deadline(&self) -> Option<LocalTime> {
        self.timers.next()
    }

    /// Whether this process asks for leadership by itself.
    pub(super) fn campaigns(&self) -> bool {
        self.campaigns
    }

    pub(super) fn campaign<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        self.campaigns = true;
        self.finding.oblige_no_more();
        match (&self.run, self.lead) {
            (None, None) => self.draw_start(around.cx.now(), around),
            (None, Some(_)) => self.timers.set(Timer::Renew, around.cx.now()),
            (Some(_), _) => {}
        }
    }

    /// This node's own grantor is free before its time: whoever waited for it need not wait any longer.
    pub(super) fn on_own_grantor_freed<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        if self.campaigns && self.run.is_none() && self.lead.is_none() {
            self.draw_start(around.cx.now(), around);
        }
    }

    /// Steps down: gives up E first, then gives the grants back.
    pub(super) fn resign<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        self.campaigns = false;
        self.finding.oblige_no_more();
        for timer in [Timer::Expire, Timer::Fail, Timer::Retry, Timer::Renew, Timer::Start] {
            self.timers.clear(timer);
        }
        let asked = self.run.take().is_some();
        let led = match around.process.config.settings().rules.stops_before_release() {
            true => self.stop_leading(Loss::Resigned, around),
            false => self.lead.is_some(),
        };
        if led || asked {
            self.give_back(around);
        }
    }

    /// Gives the leadership up, and with it a renewal under way. Says whether there was one.
    pub(super) fn stop_leading<R: Rules>(&mut self, loss: Loss, around: &mut Around<'_, '_, R>) -> bool {
        if !self.drop_lead(loss, around) {
            return false;
        }
        self.end_run();
        if self.campaigns {
            self.draw_start(around.cx.now(), around);
        }
        true
    }

    /// E := 0, and said so, before anything else is said.
    fn drop_lead<R: Rules>(&mut self, loss: Loss, around: &mut Around<'_, '_, R>) -> bool {
        let Some(lead) = self.lead.take() else { return false };
        self.timers.clear(Timer::Expire);
        self.timers.clear(Timer::Renew);
        around.cx.publish(Event::Lost { group: around.group, term: lead.term, loss });
        true
    }

    /// Tells all grantors that no run so far counts any more. E is gone already: whoever still led on a grant would
    /// lead without a quorum as soon as it is given back (errata E8, E9). A pledge delays the message, not the end of E.
    fn give_back<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let upto = around.process.newest_instance();
        match self.verifying.pledged_at(around.cx.now()) {
            Some(until) => self.owe_release(upto, until),
            None => self.send_release(upto, around),
        }
    }

    pub(super) fn send_release<R: Rules>(&mut self, upto: InstanceId, around: &mut Around<'_, '_, R>) {
        self.verifying.release_is_sent(upto);
        around.cx.publish(Event::GaveBack { group: around.group, upto });
        for member in around.process.charter().members_and_former() {
            around.cx.send(member, Message::Release { group: around.group, upto }, None);
        }
    }

    /// Runs the algorithm at once: allowed at any time (an unfinished run is aborted).
    pub(super) fn attempt<R: Rules>(&mut self, lease: Span, around: &mut Around<'_, '_, R>) {
        let now = around.cx.now();
        if self.lead.is_some_and(|lead| now >= lead.until) {
            self.lapse(Loss::Lapsed, around);
        }
        let kind = if self.lead.is_some() { Kind::Renew } else { Kind::Acquire };
        self.begin(kind, lease, around);
    }

    /// Gives up everything at once: the clock can no longer be trusted.
    pub(super) fn distrust_clock<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        self.end_run();
        if self.lead.is_some() {
            self.lapse(Loss::ClockWentBack, around);
        } else if self.campaigns {
            self.draw_start(around.cx.now(), around);
        }
    }

    pub(super) fn on_deadline<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let now = around.cx.now();
        if self.timers.take_expired(Timer::Expire, now) && self.leads_until(now).is_none() {
            self.lapse(Loss::Lapsed, around);
        }
        if self.timers.take_expired(Timer::Fail, now) {
            self.fail(Failure::TimedOut, around);
        }
        if self.timers.take_expired(Timer::Retry, now) {
            self.retry(around);
        }
        if self.timers.take_expired(Timer::Renew, now) && self.lead.is_some() && self.run.is_none() {
            self.begin(Kind::Renew, around.lease(), around);
        }
        if self.timers.take_expired(Timer::Start, now) {
            self.start(around);
        }
        if self.timers.take_expired(Timer::Release, now) {
            self.pay_release(around);
        }
        if self.timers.take_expired(Timer::Relay, now) {
            self.relay_again(around);
        }
        if self.timers.take_expired(Timer::Find, now) {
            self.on_find_deadline(around);
        }
    }

    /// Starts an acquisition if this node's own grantor is free or supports this node (erratum E1).
    pub(super) fn start<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        if !self.campaigns || self.lead.is_some() || self.run.is_some() {
            return;
        }
        if let Some(until) = around.process.awaits_change(around.cx.now()) {
            return self.draw_start(until, around);
        }
        if around.own.bound_to_another(around.process.holder, around.cx.now()).is_some() {
            return self.draw_start(around.cx.now(), around);
        }
        self.begin(Kind::Acquire, around.lease(), around);
    }

    /// Draws a start in the window W, which doubles after three collisions so that a crowd spreads out: after
    /// `earliest`, and after this node's own grant to somebody else has run out.
    fn draw_start<R: Rules>(&mut self, earliest: LocalTime, around: &mut Around<'_, '_, R>) {
        let own = around.own.bound_to_another(around.process.holder, around.cx.now());
        let free = own.map_or(earliest, |grant| grant.until.max(earliest));
        let doubled = 1 << self.collisions.saturating_sub(PATIENCE).min(MOST_DOUBLINGS);
        let window = around.process.config.settings().window.nominal().times(doubled);
        let at = free.after(around.cx.jitter(window));
        self.timers.set(Timer::Start, at);
    }

    /// Steps 1-3: `Start := C_p`, choose δ, ask all grantors, this node's own like any other.
    fn begin<R: Rules>(&mut self, kind: Kind, lease: Span, around: &mut Around<'_, '_, R>) {
        let request = self.prepare(kind, lease, around);
        let everyone = around.process.charter().body.quorums.everyone();
        around.ask(everyone, request);
    }

    /// Steps 1 and 2: a run that nobody has heard of yet.
    pub(super) fn prepare<R: Rules>(
        &mut self,
        kind: Kind,
        lease: Span,
        around: &mut Around<'_, '_, R>,
    ) -> GrantRequest {
        if let Some(aborted) = self.run.take() {
            let Around { group, cx, .. } = around;
            cx.publish(Event::Failed { group: *group, id: aborted.request.id, failure: Failure::Aborted });
        }
        let now = around.cx.now();
        let term = match (kind, self.lead) {
            (Kind::Renew, Some(lead)) => lead.term,
            _ => around.own.largest_term(around.process).max(self.hint).next(),
        };
        let id = around.process.next_instance();
        let charter = around.process.membership.charter.clone();
        let epoch = charter.epoch;
        let request = GrantRequest { group: around.group, epoch, id, start: now, lease, kind, term };
        let settings = around.process.config.settings();
        self.timers.set(Timer::Fail, settings.rules.lease_end(charter.body.clocks, now, now, lease));
        self.run = Some(Run {
            request,
            charter,
            oks: settings.rules.counted_unasked(around.process.position),
            stamps: Vec::new(),
            nacks: NodeSet::EMPTY,
            retries: 0,
            all_stale: true,
            rival: None,
        });
        self.timers.set(Timer::Retry, now.after(settings.retry.nominal()));
        self.timers.clear(Timer::Start);
        around.cx.publish(Event::Asked(request));
        request
    }

    /// Asks the silent members again, for the same run. Once somebody refused an acquisition, members that did not
    /// answer twice count as refusing too: with dead members a few refusals decide, and to wait for the dead would block
    /// the living. A leader, who blocks nobody that it does not lead, waits to the end.
    fn retry<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let Some(run) = &mut self.run else { return };
        let quorums = &run.charter.body.quorums;
        run.retries += 1;
        let silent = quorums.everyone().difference(run.oks).difference(run.nacks);
        let hopeless = !run.nacks.is_empty() && quorums.is_blocking(run.nacks.union(silent));
        if hopeless && run.retries >= 2 && run.request.kind == Kind::Acquire {
            return self.fail(Failure::Blocked, around);
        }
        let request = run.request;
        around.ask(silent, request);
        let interval = around.process.config.settings().retry.nominal();
        self.timers.set(Timer::Retry, around.cx.now().after(interval));
    }

    /// Step 7: count an Ok, once for each grantor, if it is for the current run.
    pub(super) fn on_ok<R: Rules>(
        &mut self,
        from: NodeId,
        epoch: Epoch,
        id: InstanceId,
        at: Stamp,
        around: &mut Around<'_, '_, R>,
    ) {
        if self.completed.as_ref().is_some_and(|run| run.request.id == id) {
            return self.merge_late(from, at, around);
        }
        let Some(run) = &mut self.run else { return };
        let rules = &around.process.config.settings().rules;
        if !rules.answers(run.request.id, id) || !rules.counts(run.charter.epoch, epoch) {
            return;
        }
        run.count(from, at);
        if run.suffices(rules.across()) {
            self.complete(around);
        }
    }

    pub(super) fn on_nack<R: Rules>(
        &mut self,
        from: NodeId,
        id: InstanceId,
        refusal: Refusal,
        max_term: Term,
        around: &mut Around<'_, '_, R>,
    ) {
        self.hint = self.hint.max(max_term);
        let Some(run) = self.run.as_mut().filter(|run| run.request.id == id) else { return };
        let quorums = &run.charter.body.quorums;
        let Some(position) = quorums.position(from) else { return };
        run.nacks.insert(position);
        if let Refusal::Busy { holder, remaining } = refusal {
            let until = around.cx.now().after(remaining);
            let rival = run.rival.get_or_insert(Rival { node: holder, held: NodeSet::EMPTY, until });
            if rival.node == holder {
                rival.held.insert(position);
                rival.until = rival.until.max(until);
            }
        }
        run.all_stale &= refusal == Refusal::StaleTerm;
        if quorums.is_blocking(run.nacks) {
            self.fail(Failure::Blocked, around);
        }
    }

    /// Step 8: `E := Start + (1-ρ)·δ` (or `Start + δ`), if that has not come yet by a reading taken now.
    fn complete<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let Some(run) = &mut self.run else { return };
        let now = around.cx.now();
        let settings = around.process.config.settings();
        let GrantRequest { group, id, start, kind, term, lease, .. } = run.request;
        let epoch = run.charter.epoch;
        let clocks = run.charter.body.clocks;
        let end = settings.rules.lease_end(clocks, start, now, lease);
        if !settings.rules.still_worth(now, end) {
            return self.fail(Failure::TimedOut, around);
        }
        let until = match (kind, self.lead) {
            (Kind::Acquire, _) => end,
            // A shorter renewal must not shorten a lease: the grants behind the longer one still stand.
            (Kind::Renew, Some(lead)) if settings.rules.term_unbroken(now, lead.until) => end.max(lead.until),
            (Kind::Renew, _) => return self.lapse(Loss::Lapsed, around),
        };
        let (quorum, stamps) = (run.oks, run.stamps.iter().copied().collect());
        self.completed = self.run.take().filter(|_| !settings.rules.freezes_stamps());
        self.end_run();
        self.collisions = 0;
        self.lead = Some(Lead { term, until });
        self.timers.set(Timer::Expire, until);
        if self.campaigns {
            // After half of the lease, counted from its start: a slow renewal must not make the next one late.
            let half_of_lease = start.after(clocks.usable(lease).fraction(1, 2)).max(now);
            let half_of_rest = now.after(until.remaining(now).fraction(1, 2));
            self.timers.set(Timer::Renew, half_of_lease.min(half_of_rest));
        }
        around.cx.publish(Event::Leads { group, epoch, id, kind, term, lease, until, quorum, stamps });
    }

    /// What no sound candidate does: an Ok that came too late to count becomes part of the stamps all the same.
    fn merge_late<R: Rules>(&mut self, from: NodeId, at: Stamp, around: &mut Around<'_, '_, R>) {
        let (Some(run), Some(lead)) = (&mut self.completed, self.lead) else { return };
        run.count(from, at);
        let GrantRequest { group, id, term, lease, .. } = run.request;
        let (epoch, quorum, stamps) = (run.charter.epoch, run.oks, run.stamps.iter().copied().collect());
        let (kind, until) = (Kind::Renew, lead.until);
        if term == lead.term && around.cx.now() < until {
            around.cx.publish(Event::Leads { group, epoch, id, kind, term, lease, until, quorum, stamps });
        }
    }

    /// Step 9, and what follows: a leader tries again to renew, another candidate waits its turn.
    fn fail<R: Rules>(&mut self, failure: Failure, around: &mut Around<'_, '_, R>) {
        let Some(run) = self.run.take() else { return };
        self.end_run();
        self.collisions += match (failure, run.request.kind) {
            (Failure::Blocked, _) if !run.all_stale => 1,
            // No quorum is within reach: whoever asks on at the same pace binds those that it does reach to a lost cause.
            (Failure::TimedOut, Kind::Acquire) => PATIENCE + 1,
            _ => 0,
        };
        let Around { group, cx, .. } = around;
        cx.publish(Event::Failed { group: *group, id: run.request.id, failure });
        let rules = &around.process.config.settings().rules;
        let lets_go = rules.lets_go() || failure == Failure::Blocked;
        if lets_go && rules.may_give_back(self.lead.is_some()) {
            self.give_back(around);
        }
        if !self.campaigns {
            return;
        }
        if self.lead.is_some() {
            let soon = around.process.config.settings().retry.nominal();
            let at = around.cx.now().after(around.cx.jitter(soon));
            return self.timers.set(Timer::Renew, at);
        }
        if !lets_go {
            return self.start(around);
        }
        if failure == Failure::Blocked && run.all_stale {
            return self.start(around); // Only the term was too small, and now it is known: no need to wait.
        }
        // Whoever holds enough to block all others probably leads: wait for it. Others give back what they hold.
        let quorums = &run.charter.body.quorums;
        let leader = run.rival.filter(|rival| quorums.is_blocking(rival.held));
        let now = around.cx.now();
        self.draw_start(leader.map_or(now, |rival| rival.until), around);
    }

    /// The term is over (rule U): a renewal under way is worth nothing any more.
    fn lapse<R: Rules>(&mut self, loss: Loss, around: &mut Around<'_, '_, R>) {
        if !self.drop_lead(loss, around) {
            return;
        }
        if self.run.as_ref().is_some_and(|run| run.request.kind == Kind::Renew) {
            self.fail(Failure::TooLate, around);
        } else if self.campaigns && self.run.is_none() {
            self.draw_start(around.cx.now(), around);
        }
    }

    /// A new epoch: a leader renews in it at once, a candidate asks its members instead. The run that was under way ends: its
    /// members may have left that epoch, and answers of two epochs do not add up (ONE).
    pub(super) fn on_new_epoch<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let across = around.process.config.settings().rules.across();
        if let Some(run) = &mut self.run {
            if across != Across::Anew {
                return run.carry_over(across, around);
            }
            self.hint = self.hint.max(run.request.term);
        } else if !self.campaigns {
            return;
        }
        if self.leads_until(around.cx.now()).is_some() {
            self.begin(Kind::Renew, around.lease(), around);
        } else if self.run.is_some() {
            self.begin(Kind::Acquire, around.lease(), around);
        }
    }

    /// An epoch has ended, and nobody leads in it any more: candidates ask in the next one.
    pub(super) fn on_next_epoch<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        self.drop_lead(Loss::NextEpoch, around);
        if let Some(run) = &self.run {
            self.hint = self.hint.max(run.request.term);
            self.begin(Kind::Acquire, around.lease(), around);
        } else if self.campaigns {
            self.draw_start(around.cx.now(), around);
        }
    }

    fn end_run(&mut self) {
        self.run = None;
        self.timers.clear(Timer::Fail);
        self.timers.clear(Timer::Retry);
    }
}
