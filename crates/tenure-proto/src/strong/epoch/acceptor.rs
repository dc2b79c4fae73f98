//! The members' side of a change: single-decree Paxos for the next charter. Needs durable state
//! alone, so a member that is silent about grants answers here all the same.

use std::sync::Arc;

use super::member::say;
use super::proposer::Timer;
use super::{Charter, Denial, Epoch, EpochTalk};
use crate::explore::View;
use crate::strong::message::{Cell, Event, Term};
use crate::strong::rules::Rules;
use crate::strong::{Nerio, Process};
use crate::{Context, Incarnation, NodeId};

/// Orders proposals. A space of its own: terms are a group's, and candidates would outrun any
/// ballot (erratum A1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// First this.
    pub number: u64,
    /// Then who.
    pub node: Option<NodeId>,
    /// And which life of it: a restarted proposer begins anew.
    pub incarnation: Incarnation,
}

impl From<Term> for Ballot {
    /// Where ballots are terms.
    fn from(term: Term) -> Self {
        Self { number: term.0, ..Self::default() }
    }
}

/// The promise of a member for the next charter, and the charter it accepted. Durable, both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::strong) struct Acceptor {
    pub(super) promised: Ballot,
    pub(super) accepted: Option<(Ballot, Arc<Charter>)>,
}

impl Acceptor {
    /// The record on the disk of the charter after `epoch`; a record of an older one does not
    /// matter any more.
    pub(super) fn start<R: Rules>(epoch: Epoch, durable: &[Cell], rules: &R) -> Self {
        let found = durable.iter().find_map(|cell| match cell {
            Cell::Ballot { epoch: of, promised, accepted } => {
                let found = Self { promised: *promised, accepted: accepted.clone() };
                (*of == epoch || found.is_beyond(epoch)).then_some(found)
            }
            _ => None,
        });
        found.filter(|_| rules.keeps_ballot()).unwrap_or_default()
    }

    /// A charter accepted by an operator's word outlasts the epochs that are learnt of meanwhile:
    /// it comes after them.
    pub(super) fn is_beyond(&self, epoch: Epoch) -> bool {
        self.accepted.as_ref().is_some_and(|(_, charter)| charter.epoch.begins_era() && charter.epoch > epoch)
    }
}

impl<R: Rules> Process<R> {
    /// Whether this process may answer a ballot of `epoch`: it is there itself (MONO), and a
    /// member.
    fn decides(&self, from: NodeId, epoch: Epoch, cx: &mut Context<'_, Nerio<R>>) -> bool {
        let ahead = epoch > self.membership.epoch() && !self.rules().adopts_before_deciding();
        self.position.is_some() && (ahead || self.admits(from, epoch, cx))
    }

    pub(super) fn save_ballot(
        &mut self,
        epoch: Epoch,
        cx: &mut Context<'_, Nerio<R>>,
    ) -> Option<crate::Ticket> {
        let Acceptor { promised, accepted } = self.membership.acceptor.clone();
        let ticket = cx.persist(Cell::Ballot { epoch, promised, accepted });
        self.membership.saved.max(Some(ticket))
    }

    /// Phase 1. `top` is taken after this member adopted the epoch, so it covers all that it
    /// granted before (T4).
    pub(in crate::strong) fn on_prepare(
        &mut self,
        from: NodeId,
        (epoch, ballot): (Epoch, Ballot),
        top: Term,
        cx: &mut Context<'_, Nerio<R>>,
    ) {
        if !self.decides(from, epoch, cx) || self.deny_outbid(from, epoch, ballot, cx) {
            return;
        }
        self.assert_not_outbid(ballot, self.membership.acceptor.promised);
        self.membership.acceptor.promised = ballot;
        let after = self.save_ballot(epoch, cx);
        let after = self.rules().promise_waits_for(after);
        let accepted = self.membership.acceptor.accepted.clone();
        say(from, EpochTalk::Promise { epoch, ballot, accepted, top }, after, cx);
    }

    /// Phase 2. Says whether the charter is to be adopted at once, which no sound member does:
    /// accepted is not decided.
    pub(in crate::strong) fn on_accept(
        &mut self,
        from: NodeId,
        (epoch, ballot, charter): (Epoch, Ballot, &Arc<Charter>),
        top: Term,
        cx: &mut Context<'_, Nerio<R>>,
    ) -> bool {
        if !self.decides(from, epoch, cx) || self.deny_outbid(from, epoch, ballot, cx) {
            return false;
        }
        let doubted = self.doubts_floor(from, charter, cx).then_some(Denial::Implausible(charter.floor));
        if let Some(denial) = doubted.or_else(|| self.objection(charter, top, cx)) {
            say(from, EpochTalk::Denied { epoch, ballot, denial }, None, cx);
            return false;
        }
        self.assert_not_outbid(ballot, self.membership.acceptor.promised);
        self.membership.acceptor = Acceptor { promised: ballot, accepted: Some((ballot, charter.clone())) };
        let after = self.save_ballot(epoch, cx);
        let after = self.rules().acceptance_waits_for(after);
        cx.publish(Event::Accepted { ballot, charter: charter.clone() });
        say(from, EpochTalk::Accepted { epoch, ballot }, after, cx);
        self.watch_for_decision(cx);
        self.rules().acts_on_accepted()
    }

    /// HEIGHT: whether the floor of a charter is too high to be believed. A charter that begins
    /// an era is an operator's word already.
    pub(in crate::strong) fn doubts_floor(
        &mut self,
        from: NodeId,
        charter: &Charter,
        cx: &mut Context<'_, Nerio<R>>,
    ) -> bool {
        let news = charter.epoch > self.membership.epoch() && !charter.epoch.begins_era();
        news && self.doubts(from, charter.floor, cx)
    }

    fn deny_outbid(
        &self,
        from: NodeId,
        epoch: Epoch,
        ballot: Ballot,
        cx: &mut Context<'_, Nerio<R>>,
    ) -> bool {
        let promised = self.membership.acceptor.promised;
        let outbid = self.rules().is_outbid(ballot, promised);
        if outbid {
            say(from, EpochTalk::Denied { epoch, ballot, denial: Denial::Outbid(promised) }, None, cx);
        }
        outbid
    }

    /// ADJ and W, or SEAL: what a member has against a charter, however high its ballot.
    fn objection(&self, charter: &Charter, top: Term, cx: &Context<'_, Nerio<R>>) -> Option<Denial> {
        if charter.epoch.begins_era() || self.sealed_for().is_some() {
            return self.forced_objection(charter, top);
        }
        let rules = self.rules();
        let here = &self.membership.charter;
        if !rules.adjacent(&here.body.quorums, &charter.body.quorums) {
            return Some(Denial::NotAdjacent);
        }
        let from = rules.may_accept_from(here, self.membership.adopted_at);
        let soon = here.epoch > Epoch(0) && cx.now() < from;
        soon.then(|| Denial::TooSoon { remaining: from.remaining(cx.now()) })
    }

    /// After a restart: what was accepted and not decided must come to an end.
    pub(in crate::strong) fn resume_change(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        if self.membership.acceptor.accepted.is_some() {
            self.watch_for_decision(cx);
        }
    }

    /// If the proposer stops here, somebody else must bring the charter to an end.
    pub(super) fn watch_for_decision(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        if !self.rules().finishes_changes() {
            return;
        }
        let retry = self.config.settings().retry.nominal();
        let patience = retry.times(8).plus(cx.jitter(retry.times(16)));
        self.membership.timers.set(Timer::Finish, cx.now().after(patience));
    }
}

impl Ballot {
    /// See [`Explore`](crate::explore::Explore).
    pub(in crate::strong) fn view(&self, v: &mut View<'_>) {
        v.num(self.number);
        v.flag(self.node.is_some());
        self.node.iter().for_each(|node| v.node(*node));
        v.wide(self.incarnation.0);
    }
}

impl Acceptor {
    /// See [`Explore`](crate::explore::Explore).
    pub(super) fn view(&self, v: &mut View<'_>) {
        self.promised.view(v);
        view_accepted(self.accepted.as_ref(), v);
    }
}

/// The charter that was accepted, and under which ballot.
pub(in crate::strong) fn view_accepted(accepted: Option<&(Ballot, Arc<Charter>)>, v: &mut View<'_>) {
    v.flag(accepted.is_some());
    if let Some((ballot, charter)) = accepted {
        ballot.view(v);
        charter.view(v);
    }
}
