//! The side of the process that ends an epoch: because it wants other members, or because another
//! process began and did not finish.

use std::sync::Arc;

use super::member::say;
use super::{Attempt, Bid, Hindrance, Phase, Timer, WedgeTalk, Wedging};
use crate::quorum::NodeSet;
use crate::strong::epoch::{Body, Change, Charter, EpochTalk, Halt};
use crate::strong::message::{Event, Loss, Message, Term};
use crate::strong::rules::Rules;
use crate::strong::{Nerio, Process};
use crate::time::LocalSpan;
use crate::{Context, GroupId, LocalTime, NodeId};

/// How often an attempt that somebody denied is repeated to those who keep silent.
const PATIENCE: u32 = 4;

/// The pause between two attempts grows to eight windows at most.
const MOST_DOUBLINGS: u32 = 3;

impl<R: Rules> Nerio<R> {
    /// The user wants the members changed. Any may follow any.
    pub(in crate::strong) fn change_by_wedge(&mut self, change: &Change, cx: &mut Context<'_, Self>) {
        let here = &self.process.charter().body;
        match change.applied(here, self.process.rules()) {
            Ok(goal) if goal == *here => {
                cx.publish(Event::Changed { epoch: self.process.membership.epoch() });
            }
            Ok(goal) => {
                self.process.wedging.goal = Some(goal);
                self.end_epoch(cx);
            }
            Err(error) => cx.publish(Event::ChangeHalted { halt: Halt::Impossible(error.to_string()) }),
        }
    }

    /// Begins an attempt: the fast way if this process leads, else the slow one. A leader that has
    /// pledged to keep its grants waits until it may give them back.
    fn end_epoch(&mut self, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        if self.process.wedging.attempt.is_some() {
            return;
        }
        let leads = self.groups.iter().find_map(|(id, group)| {
            let lead = group.candidate.lead.filter(|lead| now < lead.until)?;
            Some((*id, lead.term, group.candidate.verifying.pledged_at(now)))
        });
        match leads {
            Some((_, _, Some(pledged))) => {
                self.with_process(|process| process.wedging.timers.set(Timer::Begin, pledged));
            }
            Some((group, term, None)) => self.propose_as_leader(group, term, cx),
            None => {
                let ballot = self.top().max(self.process.wedging.hint).next();
                self.with_process(|process| process.attempt(ballot, Phase::Wedges(None), cx));
            }
        }
    }

    /// The fast way: E first, then the release and the proposal in one message. The acquisition of
    /// this term was phase 1.
    fn propose_as_leader(&mut self, group: GroupId, term: Term, cx: &mut Context<'_, Self>) {
        if self.process.rules().stops_before_change() {
            self.with_group(group, cx, |candidate, around| {
                candidate.stop_leading(Loss::EndedEpoch, around);
            });
        }
        let upto = self.process.newest_instance();
        cx.publish(Event::GaveBack { group, upto });
        self.with_process(|process| {
            let charter = process.next_charter(None, term);
            process.attempt(term, Phase::Accepts { charter, release: Some((group, upto)) }, cx);
        });
    }

    /// Phase 1 is over when a quorum is wedged: what may have been decided must be; only where
    /// nothing was is there a choice.
    pub(super) fn on_wedged(
        &mut self,
        from: NodeId,
        bid: Bid,
        accepted: Option<(Term, Arc<Charter>)>,
        cx: &mut Context<'_, Self>,
    ) {
        self.with_process(|process| {
            let Some((attempt, position)) = process.attempt_of(from, bid) else { return };
            let Phase::Wedges(best) = &mut attempt.phase else { return };
            attempt.answered.insert(position);
            let higher = |known: &(Term, Arc<Charter>)| best.as_ref().is_none_or(|best| best.0 < known.0);
            if let Some(known) = accepted.filter(higher) {
                *best = Some(known);
            }
            let (best, answered) = (best.clone(), attempt.answered);
            if process.charter().body.quorums.is_quorum(answered) {
                process.propose_next(bid, best, cx);
            }
        });
    }

    /// Phase 2 is over when a quorum has accepted: the next epoch is decided, and the process that
    /// decided it asks in it first.
    pub(super) fn on_next_accepted(&mut self, from: NodeId, bid: Bid, cx: &mut Context<'_, Self>) {
        let decided = self.with_process(|process| process.count_acceptance(from, bid));
        let Some(charter) = decided else { return };
        cx.publish(Event::Decided { charter: charter.clone() });
        for member in charter.members_and_former().filter(|member| *member != self.process.holder.node) {
            cx.send(member, Message::Epoch(EpochTalk::Decided(charter.clone())), None);
        }
        self.adopt(&charter, cx);
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for group in groups {
            self.with_group(group, cx, |candidate, around| candidate.start(around));
        }
    }

    pub(super) fn on_not_yet(
        &mut self,
        from: NodeId,
        bid: Bid,
        hindrance: Hindrance,
        cx: &mut Context<'_, Self>,
    ) {
        self.with_process(|process| {
            let term = match hindrance {
                Hindrance::Outbid(term) => term,
                // It has stopped renewing, and will be free.
                Hindrance::Bound { remaining } => return process.ask_again(bid, remaining, cx),
            };
            process.raise(term);
            let Some((attempt, position)) = process.attempt_of(from, bid) else { return };
            attempt.denied.insert(position);
            let denied = attempt.denied;
            if process.charter().body.quorums.is_blocking(denied) {
                process.pause(cx);
            }
        });
    }

    pub(in crate::strong) fn on_wedge_deadline(&mut self, now: LocalTime, cx: &mut Context<'_, Self>) {
        let expired = |process: &mut Process<R>| {
            let timers = &mut process.wedging.timers;
            [Timer::Begin, Timer::Resend, Timer::Finish].map(|timer| timers.take_expired(timer, now))
        };
        let [begin, resend, finish] = self.with_process(expired);
        let Wedging { attempt, goal, wedged, .. } = &self.process.wedging;
        if attempt.is_none() && (finish || (begin && (goal.is_some() || *wedged))) {
            self.end_epoch(cx);
        } else if resend {
            self.with_process(|process| process.repeat_attempt(cx));
        }
        if finish {
            // Should this attempt fail too, there is another after it.
            self.with_process(|process| process.watch_change(cx));
        }
    }

    /// A new epoch was adopted: all that was said to end the one before is done with.
    pub(in crate::strong) fn on_wedge_over(&mut self, cx: &mut Context<'_, Self>) {
        self.with_process(|process| {
            let former = std::mem::take(&mut process.wedging);
            process.wedging.hint = former.hint;
            match former.goal {
                Some(goal) if goal == process.charter().body => {
                    cx.publish(Event::Changed { epoch: process.membership.epoch() });
                }
                Some(_) => cx.publish(Event::ChangeHalted { halt: Halt::Conflict }),
                None => {}
            }
        });
    }
}

impl<R: Rules> Process<R> {
    /// The charter after this one: `body`, or what this process wants, or the same members again.
    /// Its floor is the ballot: no term of this epoch is larger, once that is decided.
    fn next_charter(&self, body: Option<Body>, ballot: Term) -> Arc<Charter> {
        let here = self.charter();
        let body = body.or_else(|| self.wedging.goal.clone()).unwrap_or_else(|| here.body.clone());
        here.next(body, ballot)
    }

    fn attempt(&mut self, ballot: Term, phase: Phase, cx: &mut Context<'_, Nerio<R>>) {
        let bid = Bid { epoch: self.membership.epoch(), ballot, id: self.next_instance() };
        let (answered, denied) = (NodeSet::EMPTY, NodeSet::EMPTY);
        self.wedging.attempt = Some(Attempt { bid, phase, answered, denied, said: 0 });
        self.wedging.timers.clear(Timer::Begin);
        self.repeat_attempt(cx);
    }

    fn propose_next(&mut self, bid: Bid, best: Option<(Term, Arc<Charter>)>, cx: &mut Context<'_, Nerio<R>>) {
        let found = best.filter(|_| self.rules().adopts_accepted_value());
        let charter = self.next_charter(found.map(|(_, charter)| charter.body.clone()), bid.ballot);
        let Some(attempt) = &mut self.wedging.attempt else { return };
        attempt.phase = Phase::Accepts { charter, release: None };
        (attempt.answered, attempt.denied, attempt.said) = (NodeSet::EMPTY, NodeSet::EMPTY, 0);
        self.repeat_attempt(cx);
    }

    /// Says to all who have not answered what the present phase has to say. Where somebody denied
    /// it and others keep silent it is time for a higher ballot.
    fn repeat_attempt(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        let Some(attempt) = &mut self.wedging.attempt else { return };
        attempt.said += 1;
        let quorums = &self.membership.charter.body.quorums;
        let silent = quorums.everyone().difference(attempt.answered).difference(attempt.denied);
        let hopeless = !attempt.denied.is_empty() && quorums.is_blocking(attempt.denied.union(silent));
        if hopeless && attempt.said > PATIENCE {
            return self.pause(cx);
        }
        let pause = 1 << (attempt.said / 4).min(MOST_DOUBLINGS);
        let bid = attempt.bid;
        let talk = match &attempt.phase {
            Phase::Wedges(_) => WedgeTalk::Wedge(bid),
            Phase::Accepts { charter, release } => {
                WedgeTalk::Accept { bid, charter: charter.clone(), release: *release }
            }
        };
        for member in quorums.names(silent) {
            self.tell_once(member, cx);
            say(member, talk.clone(), None, cx);
        }
        let pause = self.config.settings().retry.nominal().times(pause);
        self.wedging.timers.set(Timer::Resend, cx.now().after(pause));
    }

    /// The attempt under way, if an answer to `bid` is for it, and the position of the member that
    /// answered.
    fn attempt_of(&mut self, from: NodeId, bid: Bid) -> Option<(&mut Attempt, usize)> {
        let attempt = self.wedging.attempt.as_mut()?;
        let quorums = &self.membership.charter.body.quorums;
        let position = self.config.rules().voice_of(quorums, from, attempt.answered)?;
        (attempt.bid == bid).then_some((attempt, position))
    }

    /// Asks again when a member is free that is bound, if that is soon; otherwise as a matter of
    /// course.
    fn ask_again(&mut self, bid: Bid, remaining: LocalSpan, cx: &mut Context<'_, Nerio<R>>) {
        let retry = self.config.settings().retry.nominal();
        let current = self.wedging.attempt.as_ref().is_some_and(|attempt| attempt.bid == bid);
        if current && remaining < retry {
            self.wedging.timers.set(Timer::Resend, cx.now().after(remaining.max(retry.fraction(1, 4))));
        }
    }

    fn count_acceptance(&mut self, from: NodeId, bid: Bid) -> Option<Arc<Charter>> {
        let (attempt, position) = self.attempt_of(from, bid)?;
        let Phase::Accepts { charter, .. } = &attempt.phase else { return None };
        attempt.answered.insert(position);
        let (charter, answered) = (charter.clone(), attempt.answered);
        self.membership.charter.body.quorums.is_quorum(answered).then_some(charter)
    }

    /// Outbid: another attempt later, above all that was heard of.
    fn pause(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        self.wedging.drop_attempt();
        let doubled = 1 << self.wedging.outbid.min(MOST_DOUBLINGS);
        self.wedging.outbid += 1;
        let pause = cx.jitter(self.config.settings().window.nominal().times(doubled));
        let at = cx.now().after(pause);
        self.wedging.timers.set(Timer::Begin, at);
        self.wedging.hold_until = self.wedging.hold_until.max(at);
    }
}
