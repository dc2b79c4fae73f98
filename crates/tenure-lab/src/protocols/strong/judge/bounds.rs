//! The properties of how long things last, by the paper's own formulas, whatever the machine's
//! rules say: leases, grants, pledges; and of the terms that a grantor gives away.

use std::collections::BTreeMap;

use tenure_proto::strong::epoch::Epoch;
use tenure_proto::strong::{GrantRequest, Holder, InstanceId, Kind, Message, Nerio, Rules, Term};
use tenure_proto::time::{Clockwork, Incarnation, Stamp};
use tenure_proto::{GroupId, LocalTime, NodeId};

use super::{
    CHANGE_ENDS, COUNTED, ENDS, GIVEN_AGAIN, GIVEN_TERMS, INSTANCES, LONGEST, PLEDGE_OVER, PLEDGED, Sight,
    Status, StrongJudge,
};
use crate::world::{RealTime, World};

/// Ghosts of runs, pledges and granted terms.
#[derive(Default)]
pub(super) struct Bounds {
    /// The newest run that each process began, of each group.
    asked: BTreeMap<(NodeId, GroupId), GrantRequest>,
    /// The latest E that the completed runs of a term allow, of the last term of each process.
    ends: BTreeMap<(GroupId, Holder), (Term, LocalTime)>,
    /// Until when each process has pledged to give nothing back.
    pledges: BTreeMap<(GroupId, Holder), LocalTime>,
    /// Acquisitions that were granted, but whose Ok has not left: a crash may still undo them.
    unsent: BTreeMap<(NodeId, InstanceId), (Term, Incarnation)>,
    /// The last acquisition whose Ok has left, of each grantor and group.
    granted: BTreeMap<(NodeId, GroupId), (InstanceId, Term, Incarnation)>,
    /// When each process accepted a charter that it has not learnt to be decided.
    accepted: BTreeMap<NodeId, RealTime>,
}

/// The evidence in an Ok to an acquisition.
pub(super) struct Passed {
    /// The term, and one not smaller whose Ok has left before.
    pub(super) stale: Option<(Term, Term)>,
    /// The grantor has been restarted since the one before.
    pub(super) reborn: bool,
}

impl Bounds {
    pub(super) fn asks(&mut self, node: NodeId, request: GrantRequest) {
        self.asked.insert((node, request.group), request);
    }

    /// I10: a run completed and its process leads until `lease`. If no completed run of the term
    /// allows that: what does.
    pub(super) fn completes(
        &mut self,
        node: NodeId,
        (group, id, term): (GroupId, InstanceId, Term),
        clocks: Clockwork,
        lease: LocalTime,
    ) -> Option<LocalTime> {
        let run = self.asked.get(&(node, group)).filter(|run| run.id == id)?;
        let allowed = run.start.after(clocks.usable(run.lease));
        let longest = self.ends.entry((group, id.holder)).or_insert((term, allowed));
        if longest.0 == term {
            longest.1 = longest.1.max(allowed);
        } else {
            *longest = (term, allowed);
        }
        (lease > longest.1).then_some(longest.1)
    }

    pub(super) fn pledges(&mut self, group: GroupId, leader: Holder, until: LocalTime) {
        let longest = self.pledges.entry((group, leader)).or_insert(until);
        *longest = until.max(*longest);
    }

    /// Until when the process that gives something back has pledged not to, on its clock.
    pub(super) fn pledge(&self, group: GroupId, holder: Holder) -> Option<LocalTime> {
        self.pledges.get(&(group, holder)).copied()
    }

    pub(super) fn grants(&mut self, grantor: NodeId, request: &GrantRequest, life: Incarnation) {
        if request.kind == Kind::Acquire {
            self.unsent.insert((grantor, request.id), (request.term, life));
        }
    }

    /// I6: an Ok leaves. From here on its term is given away, forever. Only the very same run may
    /// have it again.
    pub(super) fn passes(&mut self, grantor: NodeId, group: GroupId, id: InstanceId) -> Option<Passed> {
        let (term, life) = self.unsent.remove(&(grantor, id))?;
        let (last_id, last, former) = self.granted.insert((grantor, group), (id, term, life))?;
        let again = (id, term) == (last_id, last);
        let stale = (term <= last && !again).then_some((term, last));
        Some(Passed { stale, reborn: former < life })
    }

    pub(super) fn accepts(&mut self, node: NodeId, now: RealTime) {
        self.accepted.entry(node).or_insert(now);
    }

    /// A process holds nothing of the kind any more.
    pub(super) fn settles(&mut self, node: NodeId) {
        self.accepted.remove(&node);
    }

    /// Since when a process holds a charter that it has accepted and does not know to be decided.
    pub(super) fn holds_since(&self, node: NodeId) -> Option<RealTime> {
        self.accepted.get(&node).copied()
    }

    /// Until when the present life of a process has pledged to give a group's grants not back.
    pub(super) fn pledged_by(&self, group: GroupId, node: NodeId) -> Option<LocalTime> {
        let own = |(known, holder): &(GroupId, Holder)| *known == group && holder.node == node;
        self.pledges.iter().filter(|(key, _)| own(key)).map(|(_, until)| *until).max()
    }

    pub(super) fn crashes(&mut self, node: NodeId) {
        self.pledges.retain(|(_, holder), _| holder.node != node); // Its next life cannot give back what this one holds.
        self.unsent.retain(|(grantor, _), _| *grantor != node);
    }

    /// A grant may never have left its grantor: then nothing is known of it.
    pub(super) fn forgets(&mut self, node: NodeId) {
        self.granted.retain(|(grantor, _), _| *grantor != node);
    }
}

impl StrongJudge {
    /// I10: a run is named as none was before it.
    pub(super) fn on_asked(&mut self, now: RealTime, node: NodeId, request: GrantRequest) {
        self.bounds.asks(node, request);
        let last = self.last_run.insert(request.id.holder, request.id.seq);
        if let Some(last) = last.filter(|last| *last >= request.id.seq) {
            self.break_at(INSTANCES, now, || {
                format!("{node} began {:?} after run {last} of the same name", request.id)
            });
        }
    }

    /// I10: E is counted from the start of a run of this term.
    pub(super) fn judge_counted(
        &mut self,
        now: RealTime,
        node: NodeId,
        (group, id, term): (GroupId, InstanceId, Term),
        (epoch, lease): (Epoch, LocalTime),
    ) {
        let clocks = self.epochs.body(epoch).clocks;
        if let Some(allowed) = self.bounds.completes(node, (group, id, term), clocks, lease) {
            self.break_at(COUNTED, now, || {
                format!(
                    "{node} leads {group} until {lease} on its clock, but no run allows more than {allowed}"
                )
            });
        }
    }

    /// E4: what was said to be certain is not given back.
    pub(super) fn judge_pledge(
        &mut self,
        now: RealTime,
        (group, upto): (GroupId, InstanceId),
        reading: LocalTime,
    ) {
        let Some(until) = self.bounds.pledge(group, upto.holder) else { return };
        if reading < until {
            self.break_at(PLEDGED, now, || {
                format!("{} gives {group} back at {reading}, pledged until {until}", upto.holder.node)
            });
        }
        self.see(PLEDGE_OVER);
    }

    /// L4: a grant is no longer than the longest lease allows, or than it was.
    pub(super) fn judge_end<S: Sight>(
        &mut self,
        sight: &S,
        grantor: NodeId,
        request: &GrantRequest,
        (at, until): (Stamp, LocalTime),
    ) {
        let body = self.epochs.body(request.epoch);
        let latest = body.clocks.grant_end(request.start, at.at, body.longest_lease);
        if until == latest {
            self.see(LONGEST);
        }
        let held = self.ghosts.get(&(grantor, request.group, self.age(request.epoch)));
        let held = held.filter(|ghost| ghost.holder == request.id.holder).map(|ghost| ghost.until);
        // A grant that was remembered and not told, because its process was killed in between, may
        // be what lasts longer. In traces every start counts as unseen: there only an unknown grant
        // may last longer.
        let unseen = self.unseen.contains(&grantor) && (held.is_none() || sight.sees_all());
        let latest = if unseen { latest.max(self.epochs.latest_grant(at.at)) } else { latest };
        if until > latest && held.is_none_or(|held| held.is_before(sight.ends(grantor, until))) {
            self.break_at(ENDS, sight.now(), || {
                let holder = request.id.holder.node;
                format!("{grantor} supports {holder} until {until} on its clock, later than {latest}")
            });
        }
    }

    /// A process has started: what it remembers ends, and what it accepted is on its disk or was
    /// never said.
    pub(super) fn judge_start<R: Rules>(&mut self, world: &World<Nerio<R>>, node: NodeId) {
        self.judge_kept_ends(world, node);
        let process = world.host(node).process.as_ref();
        if process.is_some_and(|process| process.pending_change().is_none()) {
            self.bounds.settles(node);
        }
    }

    /// L4 for what a process has kept: over a restart, and at the end of a run.
    pub(super) fn judge_kept_ends<R: Rules>(&mut self, world: &World<Nerio<R>>, node: NodeId) {
        let host = world.host(node);
        let Some(process) = &host.process else { return };
        let now = host.reading(world.now);
        let latest = self.epochs.latest_grant(now);
        let late = (0..self.groups).map(GroupId).filter_map(|group| process.grant(group));
        if let Some(grant) = late.into_iter().find(|grant| grant.until > latest) {
            self.break_at(ENDS, world.now, || {
                let (holder, until) = (grant.holder.node, grant.until);
                format!("{node} supports {holder} until {until} on its clock, later than {latest}")
            });
        }
        let latest = self.epochs.latest_tomb(now);
        if let Some(tomb) = process.latest_tomb().filter(|tomb| *tomb > latest) {
            self.break_at(ENDS, world.now, || {
                format!("{node} refuses what was given back until {tomb} on its clock, later than {latest}")
            });
        }
    }

    /// I6: the terms that have left a grantor rise.
    pub(super) fn judge_passed<R: Rules>(&mut self, world: &World<Nerio<R>>) {
        for flight in world.sent.iter().filter_map(|id| world.flight(*id)) {
            let Message::Ok { group, id, .. } = flight.message else { continue };
            self.on_passed(world.now, flight.name.from, group, id);
        }
    }

    /// I6: an Ok has left a grantor.
    pub(crate) fn on_passed(&mut self, now: RealTime, grantor: NodeId, group: GroupId, id: InstanceId) {
        if self.has_forgotten(grantor) {
            return; // Terms learnt again cover those that were completed, not all that were given away.
        }
        let Some(passed) = self.bounds.passes(grantor, group, id) else { return };
        if passed.reborn {
            self.see(GIVEN_AGAIN);
        }
        if let Some((term, last)) = passed.stale {
            self.break_at(GIVEN_TERMS, now, || {
                format!("{grantor} gives term {term} of {group} away after term {last}")
            });
        }
    }

    /// L3: what was accepted is learnt to be decided, or something else is. Judged of members that
    /// live, for what is older than five longest leases.
    pub(super) fn judge_changes<R: Rules>(&mut self, world: &World<Nerio<R>>) {
        let Some(owed) = self.owed.filter(|_| self.wedges.is_none()) else { return };
        self.liveness[2] = Status::Holds;
        let grace = self.longest_lease.as_nanos().saturating_mul(5);
        let members = self.epochs.quorums(self.epochs.decided()).members().to_vec();
        for node in members {
            let since = self.bounds.holds_since(node).map_or(owed, |since| since.max(owed));
            let process = world.host(node).process.as_ref().filter(|process| !process.is_mute());
            let pending = process.and_then(|process| process.pending_change().map(|charter| charter.epoch));
            if let Some(epoch) = pending.filter(|_| since.after(grace) < world.now) {
                self.liveness[2] = Status::Broken;
                self.break_at(CHANGE_ENDS, world.now, || {
                    format!("{node} has accepted epoch {epoch} and does not know what was decided")
                });
            }
        }
    }
}
