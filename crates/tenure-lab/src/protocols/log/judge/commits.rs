//! Timely commits: who leads, and reaches f others in time with the message that proposes a value,
//! has it chosen within δ, although no link may be timely twice running (Malkhi, Oprea and Zhou,
//! section 6). It is owed from the instant of the proposal, and unless somebody has promised a
//! higher ballot by then, or does so before δ is over. A leader that takes up another's state over
//! slots which it has proposed gives up its ballot, for the values chosen in them may be another's.
//! It is owed nothing until it leads again.

use std::collections::BTreeMap;

use tenure_proto::NodeId;
use tenure_proto::log::{Ballot, Slot};
use tenure_proto::quorum::NodeSet;

use crate::world::RealTime;

/// A value on its way.
#[derive(Clone, Copy, Debug)]
struct Proposal {
    at: RealTime,
    ballot: Ballot,
}

/// Values on their way that are owed in time.
#[derive(Clone, Debug)]
pub(super) struct Commits {
    /// δ.
    round: u64,
    /// The processes that reach enough others in time now, where a world says so.
    accessible: NodeSet,
    /// Whether a world says so at all.
    pub(super) granted: bool,
    underway: BTreeMap<(NodeId, Slot), Proposal>,
    /// How many were chosen in time, and how long the longest took.
    pub(super) timed: u64,
    longest: u64,
}

impl Commits {
    pub(super) fn new(round: u64) -> Self {
        let (accessible, underway) = (NodeSet::EMPTY, BTreeMap::new());
        Self { round, accessible, granted: false, underway, timed: 0, longest: 0 }
    }

    /// A world says who reaches enough others in time, from now on.
    pub(super) fn grant(&mut self, accessible: NodeSet) {
        (self.accessible, self.granted) = (accessible, true);
    }

    /// A value is proposed, and the message that does so leaves now. `highest` is the highest
    /// ballot that anybody has promised.
    pub(super) fn proposed(
        &mut self,
        at: RealTime,
        (node, slot): (NodeId, Slot),
        (ballot, highest): (Ballot, Ballot),
    ) {
        if self.accessible.contains(node.index()) && highest <= ballot {
            self.underway.insert((node, slot), Proposal { at, ballot });
        }
    }

    /// Somebody has promised this much: nothing is owed any more to lower ballots.
    pub(super) fn promised(&mut self, ballot: Ballot) {
        self.underway.retain(|_, proposal| proposal.ballot >= ballot);
    }

    /// A process ended, or stood still: its own values are not owed any more.
    pub(super) fn disturbed(&mut self, node: NodeId) {
        self.underway.retain(|(proposer, _), _| *proposer != node);
    }

    /// A process knows that this slot is chosen.
    pub(super) fn chosen(&mut self, at: RealTime, node: NodeId, slot: Slot) {
        if let Some(proposal) = self.underway.remove(&(node, slot)) {
            self.timed += 1;
            self.longest = self.longest.max(at.0 - proposal.at.0);
        }
    }

    /// A process took up another's state: what it proposed up to there is known to be chosen, by
    /// others perhaps. The rest is still owed if it `leads` on.
    pub(super) fn restored(&mut self, node: NodeId, upto: Slot, leads: bool) {
        self.underway.retain(|(proposer, slot), _| *proposer != node || leads && *slot > upto);
    }

    /// The slot that should have been chosen before this instant.
    pub(super) fn overdue(&self, to: RealTime) -> Option<(NodeId, Slot, RealTime)> {
        let late = self.underway.iter().find(|(_, proposal)| proposal.at.after(self.round) < to);
        late.map(|((node, slot), proposal)| (*node, *slot, proposal.at))
    }

    /// The longest, in thousandths of δ, if there was one.
    pub(super) fn longest(&self) -> Option<u64> {
        (self.timed > 0).then(|| (self.longest * 1000).div_ceil(self.round.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N0: NodeId = NodeId(0);

    fn ballot(round: u64) -> Ballot {
        Ballot { term: 0, round, node: N0 }
    }

    /// n0 is accessible and proposes in slot 1 at 100; δ is 10.
    fn proposed(highest: u64) -> Commits {
        let mut commits = Commits::new(10);
        commits.grant([0].into_iter().collect());
        commits.proposed(RealTime(100), (N0, Slot(1)), (ballot(2), ballot(highest)));
        commits
    }

    #[test]
    fn what_is_not_chosen_after_delta_is_overdue() {
        let mut commits = proposed(2);
        assert_eq!(commits.overdue(RealTime(110)), None);
        assert_eq!(commits.overdue(RealTime(111)), Some((N0, Slot(1), RealTime(100))));
        commits.chosen(RealTime(110), N0, Slot(1));
        assert_eq!((commits.overdue(RealTime(200)), commits.longest()), (None, Some(1000)));
    }

    #[test]
    fn nothing_is_owed_to_who_is_forestalled_disturbed_or_out_of_reach() {
        assert_eq!(proposed(3).overdue(RealTime(200)), None, "more was promised before");
        let mut commits = proposed(2);
        commits.promised(ballot(3));
        assert_eq!(commits.overdue(RealTime(200)), None, "more was promised meanwhile");
        let mut commits = proposed(2);
        commits.disturbed(N0);
        assert_eq!(commits.overdue(RealTime(200)), None, "it crashed");
        let mut commits = proposed(2);
        commits.restored(N0, Slot(0), false);
        assert_eq!(commits.overdue(RealTime(200)), None, "it gave its ballot up for another's state");
        let mut commits = proposed(2);
        commits.restored(N0, Slot(0), true);
        commits.grant(NodeSet::EMPTY);
        commits.proposed(RealTime(150), (N0, Slot(2)), (ballot(2), ballot(2)));
        assert_eq!(commits.overdue(RealTime(200)), Some((N0, Slot(1), RealTime(100))), "but not the second");
        commits.chosen(RealTime(160), N0, Slot(1));
        assert_eq!(commits.overdue(RealTime(200)), None);
    }
}
