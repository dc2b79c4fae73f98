//! The members' side: wedged and accepted, each once and forever.

use std::sync::Arc;

use super::{Bid, Hindrance, WedgeTalk, Wedging};
use crate::strong::config::Succession;
use crate::strong::epoch::{Charter, Epoch};
use crate::strong::grantor::Grant;
use crate::strong::message::{Cell, Event, InstanceId, Message, Term};
use crate::strong::rules::Rules;
use crate::strong::{Nerio, Process};
use crate::{Context, GroupId, NodeId, Ticket};

impl<R: Rules> Nerio<R> {
    pub(in crate::strong) fn on_wedge_talk(
        &mut self,
        from: NodeId,
        talk: WedgeTalk,
        cx: &mut Context<'_, Self>,
    ) {
        let rules = self.process.rules().clone();
        let own = |bid: Bid| rules.speaks_for(from, bid.id.holder.node);
        match talk {
            WedgeTalk::Wedge(bid) if own(bid) => self.on_wedge(from, bid, cx),
            WedgeTalk::Accept { bid, charter, release } if own(bid) => {
                self.on_accept_next(from, (bid, &charter), release, cx);
            }
            WedgeTalk::Wedge(_) | WedgeTalk::Accept { .. } => {} // Nobody may speak in another's name.
            WedgeTalk::Wedged { bid, accepted } => self.on_wedged(from, bid, accepted, cx),
            WedgeTalk::Accepted(bid) => self.on_next_accepted(from, bid, cx),
            WedgeTalk::NotYet { bid, hindrance } => self.on_not_yet(from, bid, hindrance, cx),
        }
    }

    /// Whether this member has a say in the end of `epoch`. Not in silence: a grant may stand that
    /// it has forgotten.
    fn has_a_say(&self, from: NodeId, epoch: Epoch, cx: &mut Context<'_, Self>) -> bool {
        self.process.config.settings().succession == Succession::Wedge
            && self.process.admits(from, epoch, cx)
            && self.process.position.is_some()
            && !self.process.is_silent(cx.now())
    }

    /// Phase 1. The largest term granted is the highest ballot promised: an attempt needs more, or
    /// to be the very same.
    fn on_wedge(&mut self, from: NodeId, bid: Bid, cx: &mut Context<'_, Self>) {
        if !self.has_a_say(from, bid.epoch, cx) {
            return;
        }
        let top = self.top();
        let again = self.process.wedging.promised == Some(bid);
        if !again && bid.ballot <= top {
            return say(from, WedgeTalk::NotYet { bid, hindrance: Hindrance::Outbid(top) }, None, cx);
        }
        if self.drains(from, bid, cx) {
            return;
        }
        if !again {
            self.wedge(bid, None, cx);
        }
        let Wedging { accepted, saved, .. } = &self.process.wedging;
        say(from, WedgeTalk::Wedged { bid, accepted: accepted.clone() }, *saved, cx);
    }

    /// Phase 2, and on the fast way a leader's release before it: it leads no more, whatever
    /// becomes of its attempt.
    fn on_accept_next(
        &mut self,
        from: NodeId,
        (bid, charter): (Bid, &Arc<Charter>),
        release: Option<(GroupId, InstanceId)>,
        cx: &mut Context<'_, Self>,
    ) {
        if !self.has_a_say(from, bid.epoch, cx) {
            return;
        }
        let rules = self.process.rules();
        if let Some((group, upto)) = release.filter(|(_, upto)| rules.speaks_for(from, upto.holder.node)) {
            self.on_release(group, upto, cx);
        }
        let top = self.top();
        if bid.ballot < top {
            return say(from, WedgeTalk::NotYet { bid, hindrance: Hindrance::Outbid(top) }, None, cx);
        }
        if self.drains(from, bid, cx) {
            return;
        }
        if self.process.wedging.accepted.as_ref().is_none_or(|(ballot, _)| *ballot < bid.ballot) {
            self.wedge(bid, Some(charter), cx);
        }
        say(from, WedgeTalk::Accepted(bid), self.process.wedging.saved, cx);
        if self.process.rules().acts_on_accepted() {
            self.adopt(charter, cx);
        }
    }

    /// The grant that stands longest. A wedge waits for it; but it is not renewed, or it might
    /// stand forever (erratum E19).
    fn drains(&mut self, from: NodeId, bid: Bid, cx: &mut Context<'_, Self>) -> bool {
        let grants = self.groups.values().filter_map(|group| group.grantor.grant.as_ref());
        let last = grants.max_by_key(|grant| grant.until).copied();
        let settings = self.process.config.settings();
        let Some(Grant { until, .. }) = last.filter(|grant| !self.process.rules().may_wedge(grant, cx.now()))
        else {
            return false;
        };
        let margin = settings.retry.nominal().times(16);
        let drain = &mut self.process.wedging.drain_until;
        *drain = until.after(margin).max(*drain);
        let hindrance = Hindrance::Bound { remaining: until.remaining(cx.now()) };
        say(from, WedgeTalk::NotYet { bid, hindrance }, None, cx);
        true
    }

    /// Wedged forever, and bound to nobody. The term of the ballot counts as granted in every
    /// group.
    fn wedge(&mut self, bid: Bid, accepted: Option<&Arc<Charter>>, cx: &mut Context<'_, Self>) {
        for (id, group) in &mut self.groups {
            self.process.assert_may_wedge(&group.grantor, bid.ballot, cx.now());
            group.grantor.max_term = group.grantor.max_term.max(bid.ballot);
            if group.grantor.grant.take().is_some() {
                cx.remember(Cell::Grant(*id, None));
            }
        }
        self.with_process(|process| process.note_wedge(bid, accepted, cx));
    }
}

impl<R: Rules> Process<R> {
    fn note_wedge(&mut self, bid: Bid, accepted: Option<&Arc<Charter>>, cx: &mut Context<'_, Nerio<R>>) {
        let Bid { epoch, ballot, .. } = bid;
        self.largest_term = self.largest_term.max(ballot);
        self.note_granted(ballot);
        let ceiling = self.ceiling.cover(ballot, self.config.rules(), cx);
        if !std::mem::replace(&mut self.wedging.wedged, true) {
            cx.publish(Event::Wedged { epoch, ballot });
        }
        self.wedging.promised = Some(bid);
        if let Some(charter) = accepted {
            self.wedging.accepted = Some((ballot, charter.clone()));
            cx.publish(Event::Accepted { ballot: ballot.into(), charter: charter.clone() });
        }
        let record = Cell::Wedge { epoch, accepted: self.wedging.accepted.clone() };
        self.wedging.saved = ceiling.max(Some(cx.persist(record))).max(self.membership.saved());
        self.watch_change(cx);
    }

    /// The largest term anywhere: what a ballot must exceed.
    pub(super) fn raise(&mut self, term: Term) {
        self.wedging.hint = self.wedging.hint.max(term);
    }
}

/// Says something about the end of an epoch.
pub(super) fn say<R: Rules>(
    to: NodeId,
    talk: WedgeTalk,
    after: Option<Ticket>,
    cx: &mut Context<'_, Nerio<R>>,
) {
    cx.send(to, Message::Wedge(talk), after);
}
