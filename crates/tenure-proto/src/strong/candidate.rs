//! The candidate's side: steps 1-3 and 7-9 of OQwBD and OQwBS, one group.
//!
//! A timer never decides who leads: it only makes a candidate look at its clock. `E` is compared
//! with a reading where it matters, in [`Candidate::leads_until`] and at completion.

use crate::detect::weak::Weak;
use crate::explore::View;
use crate::quorum::NodeSet;
use crate::time::{LocalSpan, Span, Stamp};
use crate::timers::Timers;
use crate::{Context, GroupId, LocalTime, NodeId};

use super::epoch::Epoch;
use super::find::Finding;
use super::grantor::Grantor;
use super::message::{Event, Failure, GrantRequest, Holder, InstanceId, Kind, Loss, Message, Refusal, Term};
use super::pace::Pacing;
use super::prefer::Preference;
use super::rules::{Across, Rules};
use super::run::{Rival, Run};
use super::transfer::Handover;
use super::turn::{PATIENCE, Patience};
use super::verify::Verifying;
use super::{Nerio, Process};

/// A deadline of a candidate. Liveness only: a late timer cannot make a leader.
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
    /// Look whose turn it is: see `turn`.
    Look,
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

/// A leadership: one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lead {
    pub(super) term: Term,
    /// E.
    pub(super) until: LocalTime,
    /// When the run began that set E: a grantor that has answered since then is known to live.
    pub(super) start: LocalTime,
}

/// One group, as a candidate for it sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Candidate {
    pub(super) campaigns: bool,
    run: Option<Box<Run>>,
    /// The run that completed last, where its stamps are not frozen: nothing, under sound rules.
    completed: Option<Box<Run>>,
    pub(super) lead: Option<Lead>,
    /// It has stopped leading or asking, and has given nothing back.
    stood_down: bool,
    /// The largest term that a refusal told of.
    pub(super) hint: Term,
    pub(super) patience: Patience,
    pub(super) pacing: Pacing,
    pub(super) preference: Preference,
    /// The last holder that extended its grant here, and in which term: it led.
    pub(super) renewed_by: Option<(Holder, Term)>,
    /// The weak leader of this side, as the user was told.
    pub(super) weak_leader: Option<NodeId>,
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
    /// Asks members of the present epoch. A leader says who has answered it.
    pub(super) fn ask(&mut self, members: NodeSet, request: GrantRequest, lead: Option<(Lead, u8)>) {
        let charter = self.process.membership.charter.clone();
        let message = match lead {
            Some((lead, priority)) => {
                Message::Extend { request, alive: self.process.weak.alive(lead.start), priority }
            }
            None => Message::Request(request),
        };
        for member in members.positions().filter_map(|position| charter.members().get(position)) {
            self.process.ask(*member, message.clone(), self.cx);
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

    /// Whether this candidate neither leads nor asks nor owes anything: what is left of it is
    /// advice. A pledge is judged by a rule of its own.
    pub(super) fn is_idle(&self) -> bool {
        let wants = self.campaigns || self.stood_down || self.run.is_some() || self.lead.is_some();
        let asks = !self.handover.is_over() || !self.finding.is_idle() || self.verifying.owes();
        !wants && !asks && self.timers.next().is_none() && self.preference.own == 0
    }

    /// Whether this process asks for leadership by itself.
    pub(super) fn campaigns(&self) -> bool {
        self.campaigns
    }

    pub(super) fn campaign<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        self.campaigns = true;
        self.finding.oblige_no_more();
        match (&self.run, self.lead) {
            (None, None) if self.asks_unheard(around) => self.start(around),
            (None, None) => self.await_turn(around.cx.now(), around),
            (None, Some(_)) => self.timers.set(Timer::Renew, around.cx.now()),
            (Some(_), _) => {}
        }
    }

    /// Steps down: gives up E first, then gives the grants back.
    pub(super) fn resign<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let asked = self.withdraw();
        let led = match around.process.rules().stops_before_release() {
            true => self.stop_leading(self.loss_by_resigning(around.cx.now()), around),
            false => self.lead.is_some(),
        };
        if led || asked || self.stood_down {
            self.give_back(around);
        }
    }

    /// Gives up E, and asks for nothing more, but gives nothing back yet: work that was begun under
    /// this leadership may still be going on, and until it has ended nobody else shall lead, if the
    /// grants last that long.
    pub(super) fn stand_down<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let asked = self.withdraw();
        self.stood_down |= self.stop_leading(self.loss_by_resigning(around.cx.now()), around) || asked;
    }

    /// A leader whose lease is over has nothing to give up: it lapsed, though nobody has noticed.
    fn loss_by_resigning(&self, now: LocalTime) -> Loss {
        if self.leads_until(now).is_some() { Loss::Resigned } else { Loss::Lapsed }
    }

    /// Wants to lead no more. Says whether a run was under way.
    fn withdraw(&mut self) -> bool {
        self.campaigns = false;
        self.finding.oblige_no_more();
        for timer in [Timer::Expire, Timer::Fail, Timer::Retry, Timer::Renew, Timer::Start, Timer::Look] {
            self.timers.clear(timer);
        }
        self.run.take().is_some()
    }

    /// Gives the leadership up, and with it a renewal under way. Says whether there was one.
    pub(super) fn stop_leading<R: Rules>(&mut self, loss: Loss, around: &mut Around<'_, '_, R>) -> bool {
        if !self.drop_lead(loss, around) {
            return false;
        }
        self.end_run();
        if self.campaigns {
            self.await_turn(around.cx.now(), around);
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

    /// Tells all grantors that no run so far counts any more. E is gone already: a process that
    /// still led on a grant would lead without a quorum as soon as it is given back (errata E8,
    /// E9). A pledge delays the message, not the end of E.
    fn give_back<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        self.assert_gives_back(around.process.rules());
        self.stood_down = false;
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
            self.await_turn(around.cx.now(), around);
        }
    }

    /// Gives up everything at once: another cluster of this name may have a leader. Its grants are
    /// left to lapse.
    pub(super) fn stop_for_foreign<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        self.end_run();
        if self.lead.is_some() {
            self.lapse(Loss::SplitBrain, around);
        } else if self.campaigns {
            self.await_turn(around.cx.now(), around);
        }
    }

    /// The clock has shown more or less than has passed: nothing that was measured over it counts.
    /// E goes first, then the grants are given back: the former leader leads no more.
    pub(super) fn on_disturbed<R: Rules>(&mut self, silent: LocalTime, around: &mut Around<'_, '_, R>) {
        self.verifying.on_disturbed(silent);
        if around.process.rules().leads_on_disturbed() {
            return;
        }
        let asked = self.run.is_some();
        self.end_run();
        if self.drop_lead(Loss::Disturbed, around) || asked {
            self.give_back(around);
        }
        if self.is_waiting() {
            self.await_turn(around.cx.now(), around);
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
            self.begin_run(Kind::Renew, around);
        }
        if self.timers.take_expired(Timer::Look, now) {
            self.look(around);
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

    /// Whether this process wants to lead, does not, and does not ask at the moment.
    pub(super) fn is_waiting(&self) -> bool {
        self.campaigns && self.lead.is_none() && self.run.is_none()
    }

    /// Starts an acquisition if this node's own grantor is free or supports this node (erratum E1).
    pub(super) fn start<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        if !self.is_waiting() {
            return;
        }
        if around.process.split.is_some() {
            // Nobody may lead before an operator has decided: look again later.
            let later = around.process.silence_from(around.cx.now());
            return self.await_turn(later, around);
        }
        if let Some(until) = around.process.awaits_change(around.cx.now()) {
            return self.await_turn(until, around);
        }
        if around.own.bound_to_another(around.process.holder, around.cx.now()).is_some() {
            return self.await_turn(around.cx.now(), around);
        }
        self.begin_run(Kind::Acquire, around);
    }

    fn begin_run<R: Rules>(&mut self, kind: Kind, around: &mut Around<'_, '_, R>) {
        let lease = self.choose_lease(kind, around);
        self.begin(kind, lease, around);
    }

    /// Steps 1-3: `Start := C_p`, choose δ, ask all grantors, this node's own like any other.
    fn begin<R: Rules>(&mut self, kind: Kind, lease: Span, around: &mut Around<'_, '_, R>) {
        let request = self.prepare(kind, lease, around);
        let everyone = around.process.charter().body.quorums.everyone();
        around.process.spoke = Some(around.cx.now());
        around.ask(everyone, request, self.tells(kind));
        self.measure(&request);
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
        let rules = around.process.rules();
        self.timers.set(Timer::Fail, rules.lease_end(charter.body.clocks, now, now, lease));
        self.run = Some(Box::new(Run {
            request,
            charter,
            oks: rules.counted_unasked(around.process.position),
            stamps: Vec::new(),
            nacks: NodeSet::EMPTY,
            mute: NodeSet::EMPTY,
            retries: 0,
            all_stale: true,
            told: Term(0),
            held_back: None,
            rival: None,
            hurry: self.hurry(around),
        }));
        self.timers.set(Timer::Retry, now.after(self.pause_before_retry(around)));
        self.timers.clear(Timer::Start);
        self.timers.clear(Timer::Look);
        around.cx.publish(Event::Asked(request));
        request
    }

    /// Asks the silent members again, for the same run. Once somebody refused an acquisition,
    /// members that did not answer twice count as refusing too: with dead members a few refusals
    /// decide, and to wait for the dead would block the living. A leader, who blocks nobody that it
    /// does not lead, waits to the end, and asks those again that refused: a candidate that had
    /// them may have given them back, and the leader may not last without them.
    fn retry<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let Some(run) = &mut self.run else { return };
        let quorums = &run.charter.body.quorums;
        run.retries += 1;
        let missing = quorums.everyone().difference(run.oks);
        let silent = missing.difference(run.nacks);
        let hopeless = !run.nacks.is_empty() && quorums.is_blocking(run.nacks.union(silent));
        if hopeless && run.retries >= 2 && run.request.kind == Kind::Acquire {
            run.mute = silent;
            return self.fail(Failure::Blocked, around);
        }
        let request = run.request;
        let asked = if request.kind == Kind::Renew { missing } else { silent };
        around.ask(asked, request, self.tells(request.kind));
        self.measure_repeated();
        let interval = self.pause_before_retry(around);
        self.timers.set(Timer::Retry, around.cx.now().after(interval));
    }

    fn pause_before_retry<R: Rules>(&self, around: &Around<'_, '_, R>) -> LocalSpan {
        let usual = self.retry_interval(around);
        self.run.as_ref().and_then(|run| run.hurry).map_or(usual, |hurry| hurry.min(usual))
    }

    /// The facts that a leader tells in its renewals.
    fn tells(&self, kind: Kind) -> Option<(Lead, u8)> {
        self.lead.filter(|_| kind == Kind::Renew).map(|lead| (lead, self.preference.own))
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
        self.measure_answer(from, id, around);
        if around.process.split.is_some() {
            return; // A run that completes would be a leader beside that of another cluster.
        }
        let Some(run) = &mut self.run else { return };
        let rules = around.process.rules();
        if !rules.answers(run.request.id, id) || !rules.counts(run.charter.epoch, epoch) {
            return;
        }
        run.count(from, at, rules);
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
        if around.process.charter().has(from) {
            self.hint = self.hint.max(max_term);
        }
        let Some(run) = self.run.as_mut().filter(|run| run.request.id == id) else { return };
        let quorums = &run.charter.body.quorums;
        let Some(position) = quorums.position(from) else { return };
        run.nacks.insert(position);
        run.told = run.told.max(max_term);
        if let Refusal::Busy { holder, remaining } = refusal {
            let until = around.cx.now().after(remaining);
            let rival = run.rival.get_or_insert(Rival { node: holder, held: NodeSet::EMPTY, until });
            if rival.node == holder {
                rival.held.insert(position);
                rival.until = rival.until.max(until);
            }
        }
        run.all_stale &= refusal == Refusal::StaleTerm;
        run.hold_back(refusal, around.process.charter().body.longest_lease.nominal());
        let quorums = &run.charter.body.quorums;
        // Those who seem dead will not answer. A leader waits for them all the same: see `retry`.
        let dead = quorums.everyone().difference(around.process.weak.trusted(around.cx.now()));
        let dead = if run.request.kind == Kind::Acquire { dead.difference(run.oks) } else { NodeSet::EMPTY };
        if quorums.is_blocking(run.nacks.union(dead)) {
            run.mute = dead.difference(run.nacks);
            self.fail(Failure::Blocked, around);
        }
    }

    /// Step 8: `E := Start + (1-ρ)·δ` (or `Start + δ`), if that has not come yet by a reading taken
    /// now.
    fn complete<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let Some(run) = &mut self.run else { return };
        let now = around.cx.now();
        let rules = around.process.rules();
        let GrantRequest { group, id, start, kind, term, lease, .. } = run.request;
        let epoch = run.charter.epoch;
        let clocks = run.charter.body.clocks;
        let end = rules.lease_end(clocks, start, now, lease);
        if !rules.still_worth(now, end) {
            return self.fail(Failure::TimedOut, around);
        }
        let until = match (kind, self.lead) {
            (Kind::Acquire, _) => end,
            // A shorter renewal must not shorten a lease: the grants behind the longer one still
            // stand.
            (Kind::Renew, Some(lead)) if rules.term_unbroken(now, lead.until) => end.max(lead.until),
            (Kind::Renew, _) => return self.lapse(Loss::Lapsed, around),
        };
        let lead = Lead { term, until, start };
        lead.assert_taken(self.lead, (&run.charter.body.quorums, run.oks), now, rules);
        let (quorum, stamps) = (run.oks, run.stamps.iter().copied().collect());
        self.completed = self.run.take().filter(|_| !rules.freezes_stamps());
        self.end_run();
        self.patience = Patience::default();
        self.lead = Some(lead);
        self.timers.set(Timer::Expire, until);
        if self.campaigns {
            let at = self.renew_at((start, lease, until), around);
            self.timers.set(Timer::Renew, at);
        }
        self.tell_weak(None, around);
        around.cx.publish(Event::Leads { group, epoch, id, kind, term, lease, until, quorum, stamps });
    }

    /// Merges the stamp of an Ok that came too late to count: no sound candidate does this.
    fn merge_late<R: Rules>(&mut self, from: NodeId, at: Stamp, around: &mut Around<'_, '_, R>) {
        let (Some(run), Some(lead)) = (&mut self.completed, self.lead) else { return };
        run.count(from, at, around.process.rules());
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
        self.patience.collisions += match (failure, run.request.kind) {
            (Failure::Blocked, _) if !run.all_stale => 1,
            // No quorum is within reach: a candidate that asks on at the same pace binds those that
            // it does reach to a lost cause.
            (Failure::TimedOut, Kind::Acquire) => PATIENCE + 1,
            _ => 0,
        };
        let Around { group, cx, .. } = around;
        cx.publish(Event::Failed { group: *group, id: run.request.id, failure });
        let rules = around.process.rules();
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
        if failure == Failure::Blocked && self.hastens(&run, around) {
            return self.start(around);
        }
        // A holder of enough grants to block all others probably leads, or has led until now: wait
        // for it. Those who are dead cannot say whom they support. Others give back what they hold.
        let quorums = &run.charter.body.quorums;
        let leader = run.rival.filter(|rival| quorums.is_blocking(rival.held.union(run.mute)));
        let now = around.cx.now();
        self.patience.crowded |= leader.is_none() || self.patience.collisions > PATIENCE;
        self.patience.awaited = leader.map(|rival| rival.node);
        let earliest = leader.map_or(now, |rival| rival.until).max(self.pause(&run, around));
        self.await_turn(earliest, around);
    }

    /// The term is over (rule U): a renewal under way is worth nothing any more.
    fn lapse<R: Rules>(&mut self, loss: Loss, around: &mut Around<'_, '_, R>) {
        if !self.drop_lead(loss, around) {
            return;
        }
        if self.run.as_ref().is_some_and(|run| run.request.kind == Kind::Renew) {
            self.fail(Failure::TooLate, around);
        } else if self.campaigns && self.run.is_none() {
            self.await_turn(around.cx.now(), around);
        }
    }

    /// A new epoch: a leader renews in it at once, a candidate asks its members instead. The run
    /// that was under way ends: its members may have left that epoch, and answers of two epochs do
    /// not add up (ONE).
    pub(super) fn on_new_epoch<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let across = around.process.rules().across();
        if let Some(run) = &mut self.run {
            if across != Across::Anew {
                return run.carry_over(across, around);
            }
            self.hint = self.hint.max(run.request.term);
        } else if !self.campaigns {
            return;
        }
        if self.leads_until(around.cx.now()).is_some() {
            self.begin_run(Kind::Renew, around);
        } else if self.run.is_some() {
            self.begin_run(Kind::Acquire, around);
        }
    }

    /// An epoch has ended, and nobody leads in it any more: candidates ask in the next one.
    pub(super) fn on_next_epoch<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        self.drop_lead(Loss::NextEpoch, around);
        if let Some(run) = &self.run {
            self.hint = self.hint.max(run.request.term);
            self.begin_run(Kind::Acquire, around);
        } else if self.campaigns {
            self.await_turn(around.cx.now(), around);
        }
    }

    fn end_run(&mut self) {
        self.run = None;
        self.timers.clear(Timer::Fail);
        self.timers.clear(Timer::Retry);
    }
}

impl Candidate {
    /// See [`Explore`](crate::explore::Explore). Advice is left out: it decides when a campaign
    /// tries, or what a user is told of others.
    pub(super) fn view(&self, longest_lease: Span, v: &mut View<'_>) {
        v.assume(!self.campaigns, "nobody campaigns: attempts come at any time");
        v.assume(self.finding.is_idle(), "nobody asks where the leader is");
        for run in [&self.run, &self.completed] {
            v.flag(run.is_some());
            run.iter().for_each(|run| run.view(v));
        }
        v.flag(self.lead.is_some());
        if let Some(lead) = &self.lead {
            v.num(lead.term.0);
            v.deadline(lead.until);
        }
        v.flag(self.stood_down);
        v.num(self.hint.0);
        for timer in [Timer::Expire, Timer::Fail, Timer::Release] {
            v.deadline_opt(self.timers.at(timer));
        }
        for timer in [Timer::Retry, Timer::Relay, Timer::Renew, Timer::Start, Timer::Look, Timer::Find] {
            v.far(self.timers.at(timer));
        }
        self.verifying.view(longest_lease, v);
        self.handover.view(v);
    }

    /// See [`LocalTime::shifted`]. Readings of what the view leaves out stay where they are.
    pub(super) fn shift(&mut self, by: LocalSpan) {
        for run in [&mut self.run, &mut self.completed].into_iter().flatten() {
            run.shift(by);
        }
        if let Some(lead) = &mut self.lead {
            lead.until = lead.until.shifted(by);
            lead.start = lead.start.shifted(by);
        }
        self.timers.shift(by);
        self.verifying.shift(by);
    }

    /// The run under way.
    pub(super) fn running(&self) -> Option<InstanceId> {
        self.run.as_ref().map(|run| run.request.id)
    }
}
