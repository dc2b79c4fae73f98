//! The grantor's side: steps 4-6 of OQwBD, one group.

use crate::explore::View;
use crate::time::LocalSpan;
use crate::{Context, GroupId, LocalTime, NodeId};

use super::epoch::{Body, Charter, Epoch};
use super::free::Refused;
use super::message::{Cell, Event, GrantRequest, Holder, InstanceId, Kind, Message, Refusal, Term};
use super::rules::Rules;
use super::tombs::Tombs;
use super::{Nerio, Process};

/// The promise of this grantor: the paper's A and F.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// A: the process that it supports. A restarted process is another holder.
    pub holder: Holder,
    /// The epoch in which it was given or last extended.
    pub epoch: Epoch,
    /// The newest run of the holder that was granted.
    pub newest: InstanceId,
    /// The term of the newest acquisition that was granted.
    pub term: Term,
    /// F: the end of the promise, on this host's clock.
    pub until: LocalTime,
}

/// One group, as its grantor sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Grantor {
    pub(super) grant: Option<Grant>,
    /// No term up to this is granted again.
    pub(super) max_term: Term,
    /// Grants that were given back lately, so that a late request does not grant them again.
    pub(super) tombs: Tombs,
    /// Candidates that were refused lately, and may be told when they would no longer be.
    pub(super) refused: Refused,
}

impl Grantor {
    pub(super) fn new(max_term: Term, remembered: Option<Grant>) -> Self {
        let max_term = remembered.map_or(max_term, |grant| max_term.max(grant.term));
        Self { grant: remembered, max_term, tombs: Tombs::default(), refused: Refused::default() }
    }

    /// The grant, if at `now` it binds this grantor to anybody but `holder`.
    pub(super) fn bound_to_another(&self, holder: Holder, now: LocalTime) -> Option<&Grant> {
        self.grant.as_ref().filter(|grant| grant.holder != holder && now < grant.until)
    }

    /// Steps 4-6: grant, unless an unexpired grant to somebody else stands. `cx.now()` is T_q:
    /// sampled after the request was received, so that the promise begins no earlier than the run
    /// did (19).
    pub(super) fn on_request<R: Rules>(
        &mut self,
        request: GrantRequest,
        by: NodeId,
        process: &mut Process<R>,
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        if process.position.is_none() || process.is_silent(cx.now()) {
            return; // No member, or one that may have forgotten a grant: neither yes nor no.
        }
        if process.is_sealed() {
            return; // The members that are left are about to go on without the rest.
        }
        if process.split.is_some() {
            return; // There are two clusters of one name, and each may have a leader: an operator decides.
        }
        if process.config.settings().rules.is_barred(&process.charter().body.barred, request.group) {
            return self.refuse(request, Refusal::Barred, process, cx);
        }
        let refusal = self.refusal(&request, process, cx.now());
        // Last of all, for it is charged: a request that is refused for another reason raises
        // nothing.
        match refusal.or_else(|| process.too_high(&request, by, cx)) {
            Some(refusal) => self.refuse(request, refusal, process, cx),
            None => self.grant(request, process, cx),
        }
    }

    fn refusal<R: Rules>(
        &self,
        request: &GrantRequest,
        process: &Process<R>,
        now: LocalTime,
    ) -> Option<Refusal> {
        let rules = process.rules();
        let Body { clocks, longest_lease, .. } = &process.charter().body;
        let is_for = |upto| rules.was_given_back(upto, request.id);
        if self.tombs.of(request.id.holder.node, now).any(is_for) {
            return Some(Refusal::Released);
        }
        if let Some(wedged) = process.wedging.refusal() {
            return Some(wedged);
        }
        if !rules.may_have_started(*clocks, request.start, now) {
            return Some(Refusal::FromTheFuture);
        }
        if !rules.accepts_length(request.lease, *longest_lease) {
            return Some(Refusal::LeaseTooLong);
        }
        if !rules.is_free(self.grant.as_ref(), request, now) {
            let grant = self.grant.as_ref()?;
            return Some(Refusal::Busy { holder: grant.holder.node, remaining: grant.until.remaining(now) });
        }
        if let Some(draining) = process.wedging.draining(now) {
            return Some(draining);
        }
        let largest = self.largest_term(process);
        if request.kind == Kind::Renew {
            return (!rules.renewal_is_fresh(request.term, largest)).then_some(Refusal::StaleTerm);
        }
        if !rules.term_is_fresh(request, largest, self.grant.as_ref()) {
            return Some(Refusal::StaleTerm);
        }
        let holds = self.grant.as_ref().is_some_and(|g| g.holder == request.id.holder && now < g.until);
        process.is_young(now).filter(|_| !holds)
    }

    /// When the last of what was given back lately is forgotten.
    pub(super) fn latest_tomb(&self) -> Option<LocalTime> {
        self.tombs.latest()
    }

    /// No term up to this is granted: what this grantor granted, and the floor of its epoch.
    pub(super) fn largest_term<R: Rules>(&self, process: &Process<R>) -> Term {
        let rules = process.rules();
        self.max_term.max(rules.enforced(process.charter().floor))
    }

    /// Its process has adopted an epoch.
    pub(super) fn on_adopted<R: Rules>(&mut self, floor: Term, rules: &R) {
        self.grant = rules.grant_on_adoption(self.grant.take());
        self.max_term = rules.max_term_on_adoption(self.max_term, floor);
    }

    /// An epoch begins that was decided when the one before had ended: what was granted there binds
    /// nobody.
    pub(super) fn begin_epoch<R: Rules>(&mut self, charter: &Charter, rules: &R) {
        self.grant = self.grant.filter(|grant| grant.epoch >= charter.epoch);
        self.max_term = rules.first_term(self.max_term, charter.floor);
    }

    fn refuse<R: Rules>(
        &mut self,
        request: GrantRequest,
        refusal: Refusal,
        process: &Process<R>,
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        let GrantRequest { group, id, .. } = request;
        cx.publish(Event::Refused { request, refusal });
        if let (Refusal::Busy { .. }, Some(grant)) = (refusal, &mut self.grant) {
            let rules = process.rules();
            let clocks = process.charter().body.clocks;
            let asked = rules.grant_end(clocks, request.start, cx.now(), request.lease);
            grant.until = rules.end_after_refusal(grant.until, asked);
            self.max_term = rules.max_term_after_refusal(self.max_term, request.term);
            self.refused.note(id.holder.node, grant.until, cx.now());
        }
        let max_term = self.largest_term(process);
        cx.send(id.holder.node, Message::Nack { group, id, refusal, max_term }, None);
    }

    /// Step 6.1 and 6.2. The ceiling is durable, and the grant remembered, before the Ok leaves.
    fn grant<R: Rules>(
        &mut self,
        request: GrantRequest,
        process: &mut Process<R>,
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        self.assert_may_grant(&request, process, cx.now());
        let former = self.grant;
        let GrantRequest { group, epoch, id, kind, term, .. } = request;
        // A renewal is mostly of a term that this grantor has granted, and needs no disk then. One
        // that it has not is covered like an acquisition: it becomes part of this grantor's top.
        let after = match kind {
            Kind::Renew if term <= self.max_term => None,
            Kind::Acquire | Kind::Renew => {
                let rules = process.config.rules();
                let ticket = process.ceiling.cover(term, rules, cx);
                rules.ok_waits_for(ticket)
            }
        };
        self.max_term = self.max_term.max(term);
        process.note_granted(term);
        let at = process.config.rules().stamp(process.clock.stamp());
        let grant = self.promise(&request, process, cx.now());
        self.assert_granted(&request, former, process);
        if process.rules().remembers_grants() {
            cx.remember(Cell::Grant(group, Some(grant)));
        }
        cx.publish(Event::Granted { request, at, until: grant.until });
        let after = after.max(process.membership.saved());
        cx.send(id.holder.node, Message::Ok { group, epoch, id, at }, after);
    }

    /// Section 6: the holder counts on this grant no more. Says whether that set this grantor free.
    pub(super) fn on_release<R: Rules>(
        &mut self,
        group: GroupId,
        upto: InstanceId,
        process: &Process<R>,
        cx: &mut Context<'_, Nerio<R>>,
    ) -> bool {
        if process.position.is_none() {
            return false; // This process grants nothing that could be given back.
        }
        // A silent grantor hears it too: the holder counts on this grant no more, whether or not it
        // is forgotten, and a late request of that run must not bind this grantor when the silence
        // is over.
        let forget = cx.now().after(process.charter().body.longest_lease.nominal().times(2));
        self.tombs.bury(upto, forget, cx.now());
        let freed = self.grant.take_if(|grant| process.rules().release_matches(grant, upto));
        if let Some(grant) = freed {
            // Said first: who is killed in between stays bound, which is safe, and nobody saw it
            // break a promise.
            cx.publish(Event::Freed { group, newest: grant.newest });
            cx.remember(Cell::Grant(group, None));
        }
        freed.is_some()
    }

    /// `A := p; F := max(F, …)`, the maximum only towards the same holder.
    fn promise<R: Rules>(&mut self, request: &GrantRequest, process: &Process<R>, now: LocalTime) -> Grant {
        let GrantRequest { id, epoch, term, start, lease, .. } = *request;
        let rules = process.rules();
        let asked = rules.grant_end(process.charter().body.clocks, start, now, lease);
        let first = self.grant.is_none() && request.kind == Kind::Renew;
        let theirs = start.after(lease.nominal());
        let asked = rules.end_at_member(asked, theirs, process.is_young(now).is_some(), first);
        let grant = match self.grant {
            Some(held) if held.holder == id.holder => Grant {
                holder: id.holder,
                epoch,
                newest: rules.newest(held.newest, id),
                term: held.term.max(term),
                until: rules.extended(&held, request, asked, now),
            },
            _ => Grant { holder: id.holder, epoch, newest: id, term, until: asked },
        };
        self.grant = Some(grant);
        grant
    }
}

/// The remembered grant of a group, if there is one.
pub(super) fn remembered_grants(cells: &[Cell]) -> impl Iterator<Item = (GroupId, Grant)> {
    cells.iter().filter_map(|cell| match cell {
        Cell::Grant(group, Some(grant)) => Some((*group, *grant)),
        _ => None,
    })
}

impl Grant {
    /// See [`Explore`](crate::explore::Explore).
    pub(super) fn view(&self, v: &mut View<'_>) {
        self.holder.view(v);
        v.num(self.epoch.0);
        self.newest.view(v);
        v.num(self.term.0);
        v.deadline(self.until);
    }

    /// See [`LocalTime::shifted`].
    pub(super) fn shift(&mut self, by: LocalSpan) {
        self.until = self.until.shifted(by);
    }
}

impl Grantor {
    /// See [`Explore`](crate::explore::Explore). Those who were refused are left out: all that
    /// becomes of them is a hint.
    pub(super) fn view(&self, v: &mut View<'_>) {
        v.flag(self.grant.is_some());
        self.grant.iter().for_each(|grant| grant.view(v));
        v.num(self.max_term.0);
        self.tombs.view(v);
    }

    /// See [`LocalTime::shifted`].
    pub(super) fn shift(&mut self, by: LocalSpan) {
        self.grant.iter_mut().for_each(|grant| grant.shift(by));
        self.tombs.shift(by);
        self.refused.shift(by);
    }

    /// Forgets what was given back: a late request is refused for it, or lost on the way, with the
    /// same result. Another refusal may tell as much of terms.
    pub(super) fn forget(&mut self) {
        self.tombs = Tombs::default();
        self.refused.forget();
    }
}
