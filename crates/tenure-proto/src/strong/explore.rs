//! Nerio as an explorer sees it: see [`Explore`].
//!
//! Each struct writes its own view, in the module that owns its fields, and says there what it
//! leaves out. Candidates are driven by attempts, which may come at any time: that is any advice at
//! all. So whatever is advice (turns, pauses, preferences, round trips, refusals that a user is
//! told of) decides nothing here. Clocks that go back, members that end an epoch before the next
//! begins, and leases whose length adapts are not explored; a view says so when it meets them.

use crate::explore::{Explore, View};
use crate::quorum::NodeSet;
use crate::time::{Bound, LocalSpan};
use crate::{LocalTime, NodeId};

use super::epoch::{EpochTalk, view_accepted};
use super::message::{Cell, InstanceId, Message, Refusal, Talk, Term};
use super::rules::Rules;
use super::{GroupId, Nerio, Process, Succession};
use crate::detect::weak::Choice;

impl<R: Rules> Explore for Nerio<R> {
    /// The agenda says once more when groups and process want to be woken.
    fn view(&self, v: &mut View<'_>) {
        self.process.view(v);
        let longest_lease = self.process.charter().body.longest_lease;
        v.num(self.groups.len() as u64);
        for (id, group) in &self.groups {
            v.num(id.0);
            group.grantor.view(v);
            group.candidate.view(longest_lease, v);
        }
    }

    fn shift(&mut self, by: LocalSpan) {
        let process = &mut self.process;
        process.clock.shift(by);
        process.silent_until = process.silent_until.shifted(by);
        process.membership.shift(by);
        process.recovery.iter_mut().for_each(|recovery| recovery.shift(by));
        for group in self.groups.values_mut() {
            group.grantor.shift(by);
            group.candidate.shift(by);
        }
        self.agenda.shift(by);
    }

    fn forget(&mut self) {
        self.groups.values_mut().for_each(|group| group.grantor.forget());
    }

    fn view_record(record: &Cell, v: &mut View<'_>) {
        record.view(v);
    }

    fn shift_record(record: &mut Cell, by: LocalSpan) {
        record.shift(by);
    }

    fn view_message(message: &Message, from: NodeId, v: &mut View<'_>) {
        v.node(from);
        message.view(from, v);
    }

    fn plain(&self, message: &mut Message) {
        let is_drift = matches!(self.process.charter().body.clocks.bound, Bound::Drift(_));
        match message {
            Message::Request(request) if is_drift => request.start = LocalTime::ZERO,
            Message::Extend { request, alive, priority } => {
                (*alive, *priority) = (NodeSet::EMPTY, 0);
                if is_drift {
                    request.start = LocalTime::ZERO;
                }
            }
            Message::Nack { refusal: Refusal::Busy { remaining, .. }, .. } => *remaining = LocalSpan::ZERO,
            Message::Talk { talk: Talk::Ready(request) | Talk::Relay { request, .. }, .. } if is_drift => {
                request.start = LocalTime::ZERO;
            }
            _ => {}
        }
    }

    /// Answers to a run that is over, where no larger term is told; and hints.
    fn is_dead(&self, message: &Message) -> bool {
        match message {
            Message::Ok { group, id, .. } => !self.awaits(*group, *id),
            Message::Nack { group, id, max_term, .. } => {
                !self.awaits(*group, *id) && *max_term <= self.hint(*group)
            }
            Message::Here { .. } | Message::Talk { talk: Talk::Free, .. } => true,
            _ => false,
        }
    }
}

impl<R: Rules> Nerio<R> {
    /// Whether a run is under way, so that an answer to it counts.
    fn awaits(&self, group: GroupId, run: InstanceId) -> bool {
        self.groups.get(&group).is_some_and(|known| known.candidate.running() == Some(run))
    }

    /// The largest term that refusals have told.
    fn hint(&self, group: GroupId) -> Term {
        self.groups.get(&group).map_or(Term(0), |known| known.candidate.hint)
    }
}

impl<R: Rules> Process<R> {
    /// Left out: the settings, which never change; the place among the members, which the charter
    /// says; the clock of stamps, whose next stamp is larger than all before it; what is known of
    /// the other members and their round trips, which is advice.
    fn view(&self, v: &mut View<'_>) {
        let settings = self.config.settings();
        v.assume(settings.weak == Choice::Random, "candidates draw their turn");
        v.assume(settings.adapt.is_none() && settings.hold.is_none(), "leases have one length");
        v.assume(settings.succession != Succession::Wedge && self.wedging.is_idle(), "no epoch is ended");
        v.assume(!self.clock_is_behind && self.kept.is_empty(), "no clock goes back");
        v.wide(self.holder.incarnation.0);
        v.num(self.seq);
        v.deadline(self.silent_until);
        v.flag(self.mute);
        v.flag(self.closed);
        v.num(self.largest_term.0);
        self.ceiling.view(v);
        self.heights.view(self.known(), v);
        self.membership.view(v);
        v.opaque(&self.split);
        v.flag(self.recovery.is_some());
        self.recovery.iter().for_each(|recovery| recovery.view(v));
    }
}

impl Cell {
    fn view(&self, v: &mut View<'_>) {
        match self {
            Self::Ceiling(term) => {
                v.num(1);
                v.num(term.0);
            }
            Self::Grant(group, grant) => {
                v.num(2);
                v.num(group.0);
                v.flag(grant.is_some());
                grant.iter().for_each(|grant| grant.view(v));
            }
            Self::Silence(until) => {
                v.num(3);
                v.deadline(*until);
            }
            Self::Charter(charter) => {
                v.num(4);
                charter.view(v);
            }
            Self::Ballot { epoch, promised, accepted } => {
                v.num(5);
                v.num(epoch.0);
                promised.view(v);
                view_accepted(accepted.as_ref(), v);
            }
            Self::Adopted { epoch, at, young_until } => {
                v.num(6);
                v.num(epoch.0);
                v.age(*at, MOST_AGE);
                v.deadline(*young_until);
            }
            Self::Wedge { .. } | Self::SplitBrain(_) | Self::Life { .. } => {
                v.num(7);
                v.opaque(self);
            }
        }
    }

    fn shift(&mut self, by: LocalSpan) {
        match self {
            Self::Grant(_, Some(grant)) => grant.shift(by),
            Self::Silence(until) => *until = until.shifted(by),
            Self::Adopted { at, young_until, .. } => {
                (*at, *young_until) = (at.shifted(by), young_until.shifted(by));
            }
            Self::Grant(_, None) | Self::Ceiling(_) | Self::Charter(_) | Self::Ballot { .. } => {}
            Self::Wedge { .. } | Self::SplitBrain(_) | Self::Life { .. } => {}
        }
    }
}

/// Adoptions longer ago than this are alike: no lease that is explored is as long.
const MOST_AGE: LocalSpan = LocalSpan::from_nanos(1_000_000_000);

impl Message {
    fn view(&self, from: NodeId, v: &mut View<'_>) {
        match self {
            Self::Request(request) => {
                v.num(1);
                request.view(v);
            }
            Self::Extend { request, alive, priority } => {
                v.num(2);
                request.view(v);
                v.set(*alive);
                v.num(u64::from(*priority));
            }
            Self::Ok { group, epoch, id, at } => {
                v.num(3);
                v.num(group.0);
                v.num(epoch.0);
                id.view(v);
                v.stamp(from, *at);
            }
            Self::Nack { group, id, refusal, max_term } => {
                v.num(4);
                v.num(group.0);
                id.view(v);
                refusal.view(v);
                v.num(max_term.0);
            }
            Self::Release { group, upto } => {
                v.num(5);
                v.num(group.0);
                upto.view(v);
            }
            Self::Talk { group, talk } => {
                v.num(6);
                v.num(group.0);
                talk.view(v);
            }
            Self::Epoch(talk) => {
                v.num(7);
                talk.view(v);
            }
            Self::Here { .. } | Self::Wedge(_) | Self::Recovery(_) | Self::Height(_) => {
                v.num(8);
                v.opaque(self);
            }
        }
    }
}

impl Refusal {
    fn view(self, v: &mut View<'_>) {
        match self {
            Self::Busy { holder, remaining } => {
                v.num(1);
                v.node(holder);
                v.num(remaining.as_nanos());
            }
            other => {
                v.num(2);
                v.opaque(&other);
            }
        }
    }
}

impl Talk {
    fn view(&self, v: &mut View<'_>) {
        match self {
            Self::TakeOver { term } => {
                v.num(1);
                v.num(term.0);
            }
            Self::Ready(request) => {
                v.num(2);
                request.view(v);
            }
            Self::Relay { release, request } => {
                v.num(3);
                release.view(v);
                request.view(v);
            }
            Self::Verify { id, wanted } => {
                v.num(4);
                id.view(v);
                v.num(wanted.as_nanos());
            }
            Self::Certain { id, leader, term, pledge } => {
                v.num(5);
                id.view(v);
                leader.view(v);
                v.num(term.0);
                v.num(pledge.lasts.as_nanos());
            }
            Self::Prefer { .. } | Self::Seek { .. } | Self::Here { .. } | Self::There { .. } => {
                v.num(6);
                v.opaque(self);
            }
            Self::Nowhere { .. } | Self::Free => {
                v.num(7);
                v.opaque(self);
            }
        }
    }
}

impl EpochTalk {
    /// Charters are named by their digests; the rest is as it is.
    fn view(&self, v: &mut View<'_>) {
        match self {
            Self::Decided(charter) => {
                v.num(1);
                charter.view(v);
            }
            other => {
                v.num(2);
                v.opaque(other);
            }
        }
    }
}
