//! Asking: when a process wants to lead, what it counts, and when it has failed.
//!
//! The assertions are about readings and requests of this process alone, after `decide` has judged
//! the replies: no message, whatever it says of supporters, makes one fail.

use crate::quorum::NodeSet;
use crate::{Context, LocalTime};

use super::message::{Body, Event, Lease, RequestId};
use super::rules::Rules;
use super::{Local, Timer};

/// A request that is not decided yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Round {
    pub(super) id: RequestId,
    /// When it left.
    pub(super) sent: LocalTime,
    /// The members that were alive then: the target set.
    pub(super) targets: NodeSet,
    /// The members that support it.
    pub(super) replies: NodeSet,
    /// Whether answers come along the tree.
    pub(super) collate: bool,
}

impl<R: Rules> Local<R> {
    /// The alarm of the asker: asks, unless somebody who goes before this process is alive.
    pub(super) fn wake(&mut self, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        if self.turn_is_over(now) {
            return self.step_down(cx);
        }
        let first_from = self.first_from(now);
        if first_from > now {
            return self.timers.set(Timer::Ask, first_from);
        }
        let targets = self.alive.members();
        self.asked += 1;
        let id = RequestId { incarnation: self.incarnation, number: self.asked };
        let collate = self.collates(targets, now);
        if !collate {
            self.last_direct = now;
            self.alive.heard(self.me, now);
        }
        self.round = Some(Round { id, sent: now, targets, replies: NodeSet::EMPTY, collate });
        self.last_sent = now;
        let constants = *self.config.constants();
        self.timers.set(Timer::Ask, now.after(constants.alarm));
        self.timers.set(Timer::Decide, now.after(constants.round));
        let members = self.supporters(now);
        cx.publish(Event::Asked { request: id, alive: targets, collate });
        for to in 0..self.turns.len() {
            self.send(to, Body::Election { request: id, alive: targets, collate, members }, cx);
        }
    }

    /// The first reading at which this process could be the first of those alive.
    fn first_from(&mut self, now: LocalTime) -> LocalTime {
        self.alive.purge(now);
        let before = self.alive.members().positions().filter(|who| self.goes_before(*who, self.me));
        before.filter_map(|who| self.alive.until(who)).max().unwrap_or(LocalTime::ZERO)
    }

    /// A reply to this process's request. It may decide it: all whom it asked support it.
    pub(super) fn count_replies(&mut self, request: RequestId, support: NodeSet, cx: &mut Context<'_, Self>) {
        let rules = &self.config.settings().rules;
        let Some(round) = self.round.as_mut().filter(|round| rules.answers(round.id, request)) else {
            return;
        };
        round.replies = round.replies.union(support);
        if rules.was_asked_before(round.targets, self.me) && round.replies.is_superset(round.targets) {
            self.decide(cx);
        }
    }

    /// Decides the request: by the replies that have come, this process leads, or it has failed.
    pub(super) fn decide(&mut self, cx: &mut Context<'_, Self>) {
        let Some(round) = self.round.take() else { return };
        self.timers.clear(Timer::Decide);
        let now = cx.now();
        self.alive.purge(now);
        let (settings, constants) = (self.config.settings(), *self.config.constants());
        let rules = &settings.rules;
        let until = rules.lease_end(settings.timing.drift, round.sent, now, constants.lock);
        let until = until.floor_to(settings.timing.tick);
        let alive = self.alive.members();
        let needed = rules.needed(settings.majority, settings.members.len(), alive.len());
        let wins = rules.was_asked_before(round.targets, self.me)
            && rules.all_support(alive, round.replies)
            && round.replies.contains(self.me)
            && !round.replies.positions().any(|who| self.goes_before(who, self.me))
            && round.replies.len() >= needed
            && now < until;
        if wins { self.lead(round, until, cx) } else { self.fail(round, cx) }
    }

    fn lead(&mut self, round: Round, until: LocalTime, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        let rules = &self.config.settings().rules;
        let lasts = round.sent.after(self.config.constants().lock);
        invariant!(rules, now < until, "a lease that is over must not be taken");
        invariant!(rules, until <= lasts, "a lease ends before the locks that support it (SO)");
        invariant!(rules, round.replies.contains(self.me), "a leader supports itself by the same rule");
        let constants = *self.config.constants();
        if round.collate {
            let others = round.targets.positions().filter(|who| *who != self.me);
            let oldest = others.map(|who| self.alive.last(who)).fold(Some(round.sent), Option::min);
            if let Some(oldest) = oldest {
                self.alive.heard(self.me, oldest); // Rule 7 of the tree.
            }
            self.failures = 0;
        }
        let renewed = self.leads(now);
        if !renewed {
            self.led_since = now;
        }
        let lease = Lease { request: round.id, supporters: round.replies, until };
        self.lease = Some(lease);
        let before_end = LocalTime::from_nanos(until.as_nanos().saturating_sub(constants.lead.as_nanos()));
        let paced = round.sent.after(constants.alarm);
        let next = self.config.settings().rules.next_request(paced, before_end).max(now);
        self.timers.set(Timer::Ask, next);
        cx.publish(Event::Leads { lease, renewed });
    }

    fn fail(&mut self, round: Round, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        if round.collate {
            let expires = self.config.constants().expires;
            self.direct_until = now.after(expires.times(1 << self.failures.min(5)));
            self.failures += 1;
        }
        cx.publish(Event::Failed { request: round.id });
        let leads = self.leads(now);
        if !round.replies.is_empty() && self.config.settings().rules.may_release(leads) {
            self.release(round.id, cx);
        }
    }

    /// Sets free every process that is bound by `request`, this process included.
    fn release(&mut self, request: RequestId, cx: &mut Context<'_, Self>) {
        let rules = &self.config.settings().rules;
        invariant!(rules, !self.leads(cx.now()), "supporters are set free when nobody leads by them (SO)");
        invariant!(rules, cx.now() >= self.latest, "nobody is set free by a clock that is behind (SO)");
        cx.publish(Event::Released { request });
        let me = self.me;
        for to in (0..self.turns.len()).filter(|to| *to != me) {
            self.send(to, Body::Release { request }, cx);
        }
        self.set_free(me, request, cx);
    }

    /// Whether this process has led for as long as a turn lasts.
    fn turn_is_over(&self, now: LocalTime) -> bool {
        let settings = self.config.settings();
        let over = |turn| now >= self.led_since.after(settings.timing.drift.longest(turn));
        self.leads(now) && settings.turn.is_some_and(over)
    }

    /// Leads no more; only then its supporters are set free. Where turns are taken the others go
    /// first from now on.
    pub(super) fn step_down(&mut self, cx: &mut Context<'_, Self>) {
        let leads = self.leads(cx.now());
        let Some(lease) = self.lease.take().filter(|_| leads) else { return };
        let request = self.round.take().map_or(lease.request, |round| round.id);
        self.timers.clear(Timer::Decide);
        if self.config.settings().turn.is_some() {
            self.turns[self.me] += 1;
        }
        cx.publish(Event::Stepped { turn: self.turns[self.me] });
        self.release(request, cx);
        self.timers.set(Timer::Ask, cx.now().after(self.config.constants().alarm));
    }
}
