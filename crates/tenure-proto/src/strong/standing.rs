//! The standing of a process in a group: it leads, follows, is on the side of a weak leader, or
//! knows of nobody.
//!
//! Only the first is authority, and only until a reading of this host's clock. The rest are hints:
//! for programs that show the state, forward requests, or would rather do something than nothing.

use crate::detect::weak::Weak;
use crate::quorum::NodeSet;
use crate::{Elects, GroupId, LocalTime, NodeId};

use super::candidate::{Around, Candidate};
use super::grantor::Grant;
use super::message::{Event, Holder, Term};
use super::rules::Rules;
use super::{Nerio, Process};

/// A process's report on a group at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It leads (13). To act, ask for the authority itself at the time of the act.
    Leads {
        /// In which term.
        term: Term,
        /// E: until when, on this host's clock.
        until: LocalTime,
    },
    /// Its own grantor supports another: probably the leader, perhaps only somebody who tries.
    Follows {
        /// Who.
        holder: NodeId,
        /// F: until when that is promised, on this host's clock.
        until: LocalTime,
    },
    /// Those that it hears of are too few to elect anybody (section 10.3).
    Weak(WeakLeader),
    /// None of these: an election is under way, or nobody wants to lead.
    Nobody,
}

/// The weak leader: it speaks for members that still hear of each other when they are too few to
/// elect a leader.
///
/// It has **no authority**. Other partitions have weak leaders too, and the rest may have a real
/// one; even on this side two processes may name different ones for a while. So it is a type of its
/// own with no term, no lease and no way to an edict or a token: its acts must be of a kind that
/// needs none, such as to serve old data marked as old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WeakLeader {
    node: NodeId,
    side: NodeSet,
}

impl WeakLeader {
    /// The process itself.
    pub fn node(self) -> NodeId {
        self.node
    }

    /// The members that are heard of, by position in the present epoch, the weak leader among them.
    pub fn side(self) -> NodeSet {
        self.side
    }
}

impl<R: Rules> Process<R> {
    /// The weak leader, if the members that seem to live are too few to elect anybody.
    fn weak_leader(&self, group: GroupId, now: LocalTime) -> Option<WeakLeader> {
        let side = self.weak.trusted(now);
        if self.charter().body.quorums.is_quorum(side) {
            return None;
        }
        self.weak.weak_leader(group, now).map(|node| WeakLeader { node, side })
    }
}

impl<R: Rules> Nerio<R> {
    /// Whether the holder of a grant of this node's for `group` has extended it in its term: it led
    /// then. One that led before and asks for another term has not.
    pub fn is_renewed(&self, group: GroupId, grant: &Grant) -> bool {
        let renewed_by = self.groups.get(&group).and_then(|known| known.candidate.renewed_by);
        renewed_by == Some((grant.holder, grant.term))
    }

    /// The largest term that cannot be granted here any more.
    pub fn largest_term(&self, group: GroupId) -> Term {
        let known = self.groups.get(&group).map(|group| group.grantor.largest_term(&self.process));
        known.unwrap_or(self.process.largest_term)
    }

    /// The standing of this process in `group` at `now`.
    pub fn standing(&self, group: GroupId, now: LocalTime) -> Standing {
        let known = self.groups.get(&group);
        let lead = known.and_then(|group| group.candidate.lead);
        if let (Some(until), Some(lead)) = (self.leadership(group, now), lead) {
            return Standing::Leads { term: lead.term, until };
        }
        let own = known.and_then(|group| group.grantor.bound_to_another(self.process.holder, now));
        let follows = own.map(|grant| Standing::Follows { holder: grant.holder.node, until: grant.until });
        // A process that renews leads. A process that only asks may be one of too few, and its
        // promise says nothing.
        let renews = own.is_some_and(|grant| self.is_renewed(group, grant));
        match (follows, self.process.weak_leader(group, now)) {
            (Some(follows), _) if renews => follows,
            (_, Some(weak)) => Standing::Weak(weak),
            (follows, None) => follows.unwrap_or(Standing::Nobody),
        }
    }
}

impl Candidate {
    /// This node's own grantor has extended its promise to a leader.
    pub(super) fn on_renewed<R: Rules>(&mut self, by: (Holder, Term), around: &mut Around<'_, '_, R>) {
        self.patience.crowded = false;
        self.renewed_by = Some(by);
        self.tell_weak(None, around);
    }

    /// Nobody leads here: tells the user who speaks for those that are left, if they are too few.
    pub(super) fn look_for_weak_leader<R: Rules>(&mut self, around: &mut Around<'_, '_, R>) {
        let weak = around.process.weak_leader(around.group, around.cx.now());
        self.tell_weak(weak.map(WeakLeader::node), around);
    }

    /// Tells the user when another speaks for this side than before.
    pub(super) fn tell_weak<R: Rules>(&mut self, weak: Option<NodeId>, around: &mut Around<'_, '_, R>) {
        if std::mem::replace(&mut self.weak_leader, weak) != weak {
            around.cx.publish(Event::WeakLeader { group: around.group, leader: weak });
        }
    }
}
