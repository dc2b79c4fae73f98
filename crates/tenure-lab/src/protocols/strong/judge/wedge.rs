//! Properties where epochs are ended before the next begins, and where lost disks recover.
//!
//! A member counts as wedged, and as having accepted, once it has *said* so: what it only had in
//! mind a crash may undo.

use std::collections::BTreeSet;

use tenure_proto::NodeId;
use tenure_proto::strong::edict::QuorumStamp;
use tenure_proto::strong::epoch::Epoch;
use tenure_proto::strong::wedge::WedgeTalk;
use tenure_proto::strong::{Message, Nerio, Rules};

use super::*;

/// The judge's knowledge of ended epochs and lost disks.
pub(super) struct Wedges {
    /// The members that have said in an epoch that they are wedged.
    said: BTreeSet<(NodeId, Epoch)>,
    /// The members that have ever lost their disks.
    forgot: BTreeSet<NodeId>,
    /// Whether stamps of those are compared all the same: a mistake.
    trusts_lost_stamps: bool,
}

impl StrongJudge {
    /// A judge of epochs that are ended, and of disks that are lost and recover.
    #[must_use]
    pub fn for_wedge(self, trusts_lost_stamps: bool) -> Self {
        let wedges = Wedges { said: BTreeSet::new(), forgot: BTreeSet::new(), trusts_lost_stamps };
        Self { wedges: Some(wedges), ..self }
    }

    pub(super) fn properties(&self) -> &'static [Property] {
        if self.wedges.is_some() { &WEDGE_ALL } else { &ALL }
    }

    /// Under which epoch grants are remembered: where epochs are ended each begins anew, else
    /// grants live on.
    pub(super) fn age(&self, epoch: Epoch) -> Epoch {
        if self.wedges.is_some() { epoch } else { Epoch(0) }
    }

    pub(super) fn on_forgotten(&mut self, node: NodeId) {
        if let Some(wedges) = &mut self.wedges {
            wedges.forgot.insert(node);
        }
    }

    pub(super) fn has_forgotten(&self, node: NodeId) -> bool {
        self.wedges.as_ref().is_some_and(|wedges| wedges.forgot.contains(&node))
    }

    /// Whether two edicts can be ordered by who granted when: not if a grantor of both has ever
    /// lost its disk, for then its incarnations are in no order.
    pub(super) fn stamps_compare(&self, first: &Made, second: &Made) -> bool {
        let Some(wedges) = self.wedges.as_ref().filter(|wedges| !wedges.trusts_lost_stamps) else {
            return true;
        };
        let shared = |one: &QuorumStamp, other: &QuorumStamp| {
            one.iter().any(|(node, _)| wedges.forgot.contains(&node) && other.get(node).is_some())
        };
        let latest = match (&first.by_instance, &second.by_instance) {
            (Some(one), Some(other)) => shared(&one.tag.quorum, &other.tag.quorum),
            _ => false,
        };
        !latest && !shared(&first.by_first.tag.first, &second.by_first.tag.first)
    }

    /// I8: nobody leads in an epoch once the next is decided, and nobody in one that is not
    /// decided.
    pub(super) fn judge_ended(&mut self, belief: Belief, at: RealTime) {
        let Belief { holder, group, epoch, .. } = belief;
        let decided = self.epochs.decided();
        if decided != epoch {
            self.break_at(ENDED, at, || {
                format!("{} leads {group} in epoch {epoch} when {decided} is decided", holder.node)
            });
        }
    }

    /// (16), I6: a member is wedged in place of a grant only if that has run out or was given back.
    pub(super) fn on_wedged(&mut self, now: RealTime, node: NodeId, epoch: Epoch) {
        self.see(WEDGES);
        let kept = self.ghosts.iter().find(|((grantor, _, age), ghost)| {
            (*grantor, *age) == (node, epoch) && now < ghost.until.earliest
        });
        if let Some((holder, until)) = kept.map(|(_, ghost)| (ghost.holder.node, ghost.until.earliest)) {
            self.break_at(KEPT, now, || {
                format!("{node} is wedged, though it promised {holder} its support until {until}")
            });
        }
    }

    /// Wedged is forever.
    pub(super) fn judge_wedged(&mut self, now: RealTime, grantor: NodeId, epoch: Epoch) {
        if self.wedges.as_ref().is_some_and(|wedges| wedges.said.contains(&(grantor, epoch))) {
            self.break_at(WEDGED, now, || {
                format!("{grantor} grants in epoch {epoch}, in which it has said that it is wedged")
            });
        }
    }

    /// Reads what members have said just now about the end of their epochs.
    pub(super) fn observe_sent<R: Rules>(&mut self, world: &World<Nerio<R>>) {
        for flight in world.sent.iter().filter_map(|id| world.flight(*id)) {
            let from = flight.name.from;
            let Message::Wedge(talk) = &flight.message else { continue };
            let Some(wedges) = &mut self.wedges else { return };
            match talk {
                WedgeTalk::Wedged { bid, .. } => {
                    wedges.said.insert((from, bid.epoch));
                }
                WedgeTalk::Accepted(bid) => {
                    wedges.said.insert((from, bid.epoch));
                    let next = bid.epoch.next();
                    if let Some(charter) = self.epochs.says_accepted(from, next, bid.ballot.into()) {
                        self.on_decided(world, from, &charter);
                        self.forgive_if_gone(world);
                    }
                }
                WedgeTalk::Accept { bid, charter, .. } => self.epochs.proposes(bid.ballot.into(), charter),
                WedgeTalk::Wedge(_) | WedgeTalk::NotYet { .. } => {}
            }
        }
    }

    /// Whether those who run can come to know the newest epoch: somebody knows it, or quorums run
    /// of all the epochs from there to it, so that what was decided can be found again.
    pub(super) fn can_be_learnt<R: Rules>(&self, world: &World<Nerio<R>>) -> bool {
        let running = world.hosts.iter().filter_map(|host| host.process.as_ref());
        let known = running.filter(|process| !process.is_mute()).map(Nerio::epoch).max();
        let from = known.map_or(0, |known| known.0);
        (from..self.epochs.decided().0).all(|epoch| self.runs(world, Epoch(epoch)))
    }

    /// L3: no member of the newest epoch is left wedged in it, or in an older one.
    pub(super) fn judge_change_ended<R: Rules>(&mut self, world: &World<Nerio<R>>) {
        if self.wedges.is_none() || self.stability.led().is_none() {
            return;
        }
        let newest = self.epochs.decided();
        let members = self.epochs.quorums(newest).members();
        let stuck = members.iter().copied().find(|node| {
            let process = world.hosts.get(node.index()).and_then(|host| host.process.as_ref());
            process.is_some_and(|process| process.is_wedged() && !process.is_mute())
        });
        self.liveness[2] = if stuck.is_some() { Status::Broken } else { Status::Holds };
        if let Some(node) = stuck {
            self.break_at(CHANGE_ENDS, world.now, || {
                format!("{node} is still wedged, and epoch {newest} the newest")
            });
        }
    }
}
