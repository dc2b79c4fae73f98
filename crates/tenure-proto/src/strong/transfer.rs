//! Hand-over to a chosen process, with a gap of one round trip.
//!
//! ```text
//!   p leads   take over! ──▶ r   prepares a run: Start_r sampled, a larger term, nothing sent to grantors
//!   p         ◀── ready(request of r)
//!   p         E := 0, then relay(own release, request of r) ──▶ every grantor q: release, then grant, in one step
//!   r         ◀── ok from a quorum: r leads
//! ```
//!
//! It is r's own request, only on another way: r asked before q answered, so the proof of (14) is
//! untouched. Nobody is without a leader for longer than the relay and the ok take. If the relay is
//! lost p repeats it; the release in it is believed only from p itself, for r cannot know that p
//! has given up E. If all fails the lease of p has ended anyway, and an election follows.

use crate::explore::View;
use crate::{LocalTime, NodeId};

use super::candidate::{Around, Candidate, Timer};
use super::message::{Event, GrantRequest, InstanceId, Kind, Loss, Message, Talk, Term};
use super::rules::Rules;

/// How often a relay is repeated.
const REPEATS: u8 = 3;

/// A hand-over in progress, at the one who hands over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Handover {
    /// The process that was asked to take over.
    to: Option<NodeId>,
    /// The request that was passed on, and how often it will be passed on again.
    relayed: Option<(InstanceId, GrantRequest, u8)>,
}

impl Handover {
    /// Whether nothing is asked for or to be passed on again.
    pub(super) fn is_over(&self) -> bool {
        self.to.is_none() && self.relayed.is_none()
    }
}

impl Candidate {
    /// The leader asks `to` to take over. Nothing changes until that one is ready.
    pub(super) fn transfer<R: Rules>(&mut self, to: NodeId, around: &mut Around<'_, '_, R>) {
        if self.leads_until(around.cx.now()).is_none() || to == around.process.holder.node {
            return;
        }
        let Some(lead) = self.lead else { return };
        self.handover.to = Some(to);
        if around.process.rules().frees_before_ready() {
            self.send_release(around.process.newest_instance(), around);
        }
        around.say(to, Talk::TakeOver { term: lead.term });
    }

    /// Another leads and wants this process to take over: it prepares a run and lets the leader
    /// pass it on.
    pub(super) fn on_take_over<R: Rules>(
        &mut self,
        from: NodeId,
        term: Term,
        around: &mut Around<'_, '_, R>,
    ) {
        if self.lead.is_some() {
            return;
        }
        // A leader that is no member may say anything. If its term is higher, grantors will tell.
        if around.process.believes_leader(from, term, around.cx.now()) {
            self.hint = self.hint.max(term);
        }
        let retry = around.process.config.settings().retry.nominal();
        let lease = self.choose_lease(Kind::Acquire, around);
        let request = self.prepare(Kind::Acquire, lease, around);
        // The grantors are bound to the leader until it has passed this on: to ask them sooner
        // would be in vain.
        self.timers.set(Timer::Retry, around.cx.now().after(retry.times(4)));
        around.say(from, Talk::Ready(request));
    }

    /// The successor is ready: give up E, then let every grantor release and grant in one step.
    pub(super) fn on_ready<R: Rules>(
        &mut self,
        from: NodeId,
        request: GrantRequest,
        around: &mut Around<'_, '_, R>,
    ) {
        let now = around.cx.now();
        let expected = self.handover.to == Some(from) && request.id.holder.node == from;
        if !expected || self.leads_until(now).is_none() || self.verifying.pledged_at(now).is_some() {
            return; // Late, or not asked for, or a pledge stands: this process leads on.
        }
        self.handover.to = None;
        if around.process.rules().stops_before_relay() {
            self.stop_leading(Loss::HandedOver, around);
        }
        let release = around.process.newest_instance();
        around.cx.publish(Event::GaveBack { group: around.group, upto: release });
        self.handover.relayed = Some((release, request, REPEATS));
        self.relay_again(around);
    }

    /// Passes the successor's request on, now and a few times more.
    pub(super) fn relay_again<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let Some((release, request, left)) = self.handover.relayed.take() else { return };
        let members = around.process.charter().members().to_vec();
        for member in members {
            around.say(member, Talk::Relay { release, request });
        }
        if let Some(left) = left.checked_sub(1) {
            self.handover.relayed = Some((release, request, left));
            let again: LocalTime = around.cx.now().after(around.process.config.settings().retry.nominal());
            self.timers.set(Timer::Relay, again);
        }
    }
}

impl<R: Rules> Around<'_, '_, R> {
    /// Says something to a process of this group.
    pub(super) fn say(&mut self, to: NodeId, talk: Talk) {
        self.cx.send(to, Message::Talk { group: self.group, talk }, None);
    }
}

impl Handover {
    /// See [`Explore`](crate::explore::Explore). `left` counts repetitions of a message.
    pub(super) fn view(&self, v: &mut View<'_>) {
        v.flag(self.to.is_some());
        self.to.iter().for_each(|to| v.node(*to));
        v.flag(self.relayed.is_some());
        if let Some((release, request, _)) = &self.relayed {
            release.view(v);
            request.view(v);
        }
    }
}
