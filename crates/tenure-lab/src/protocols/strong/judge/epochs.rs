//! The properties of epochs. Decisions are checked from outside: a charter can be decided only if a
//! quorum of the epoch before has accepted it under one ballot.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::strong::Term;
use tenure_proto::strong::epoch::{Ballot, Body, Charter, Epoch};
use tenure_proto::{GroupId, LocalTime, NodeId};

use super::{
    Belief, CARRIED, EPOCH_DECIDED, EPOCHS_FOLLOW, FLOORS, Mark, ONE_CHARTER, Run, SECOND_CHANGE, Sight,
    StrongJudge, WAITED,
};
use crate::world::RealTime;

/// The judge's knowledge of epochs.
pub(super) struct Epochs {
    founding: Body,
    /// The quorum system of each later epoch that anybody goes by, or that is decided.
    known: BTreeMap<Epoch, Quorums>,
    /// The charter of each epoch, but for the first, which was founded.
    charters: BTreeMap<Epoch, (Arc<Charter>, Option<Mark>)>,
    /// The members that have accepted each ballot.
    accepted: BTreeMap<(Epoch, Ballot), Vec<NodeId>>,
    /// The charter proposed in each ballot, where that is seen.
    proposed: BTreeMap<(Epoch, Ballot), Arc<Charter>>,
    decided: Epoch,
    /// The largest term of an acquisition that completed in each epoch.
    terms: BTreeMap<Epoch, Term>,
    /// The epoch of the last run that completed, of each group.
    last: BTreeMap<GroupId, Epoch>,
}

impl Epochs {
    pub(super) fn new(founding: Body) -> Self {
        Self {
            founding,
            known: BTreeMap::new(),
            charters: BTreeMap::new(),
            accepted: BTreeMap::new(),
            proposed: BTreeMap::new(),
            decided: Epoch(0),
            terms: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// The newest epoch that is decided.
    pub(super) fn decided(&self) -> Epoch {
        self.decided
    }

    /// The quorum system of an epoch; of one that nobody decided, the newest before it.
    pub(super) fn quorums(&self, epoch: Epoch) -> &Quorums {
        self.known.range(..=epoch).next_back().map_or(&self.founding.quorums, |(_, quorums)| quorums)
    }

    /// The bounds of an epoch; of one that nobody goes by, those of the newest before it.
    pub(super) fn body(&self, epoch: Epoch) -> &Body {
        self.charters.range(..=epoch).next_back().map_or(&self.founding, |(_, (charter, _))| &charter.body)
    }

    /// The latest F that any grantor may have at a reading of its clock.
    pub(super) fn latest_grant(&self, now: LocalTime) -> LocalTime {
        let bodies = self.charters.values().map(|(charter, _)| &charter.body).chain([&self.founding]);
        let ends = bodies.map(|body| body.clocks.silence_end(now, body.longest_lease));
        ends.max().unwrap_or(now)
    }

    /// The latest reading at which anything is refused because it was given back: twice the longest
    /// lease from now.
    pub(super) fn latest_tomb(&self, now: LocalTime) -> LocalTime {
        let bodies = self.charters.values().map(|(charter, _)| &charter.body).chain([&self.founding]);
        let ends = bodies.map(|body| now.after(body.longest_lease.nominal().times(2)));
        ends.max().unwrap_or(now)
    }

    /// Somebody goes by a charter, or holds it for decided. If it is not the only one of its epoch
    /// (T6): where the other was told. Its floor is part of it or, where ballots are terms, not.
    pub(super) fn other(
        &mut self,
        charter: &Arc<Charter>,
        floors: bool,
        mark: Option<Mark>,
    ) -> Option<Option<Mark>> {
        self.known.entry(charter.epoch).or_insert_with(|| charter.body.quorums.clone());
        let (known, told) = self.charters.entry(charter.epoch).or_insert_with(|| (charter.clone(), mark));
        // An operator's word was false: nobody voted for either, so that is no mistake of the
        // protocol. That no two lead by them is judged all the same.
        let apart = charter.epoch.begins_era() && known.lineage != charter.lineage;
        let same = if apart {
            true
        } else if floors {
            known == charter
        } else {
            (&known.body, &known.before) == (&charter.body, &charter.before)
        };
        (!same).then_some(*told)
    }

    /// Before anything was seen, this charter was decided and somebody goes by it.
    pub(super) fn begins_with(&mut self, charter: &Arc<Charter>, mark: Option<Mark>) {
        self.decided = self.decided.max(charter.epoch);
        self.known.entry(charter.epoch).or_insert_with(|| charter.body.quorums.clone());
        self.charters.entry(charter.epoch).or_insert_with(|| (charter.clone(), mark));
    }

    /// A member has accepted a charter. Not on disk yet: a crash may still undo it.
    pub(super) fn accepts(&mut self, node: NodeId, ballot: Ballot, charter: &Arc<Charter>) {
        self.accepted.entry((charter.epoch, ballot)).or_default().push(node);
    }

    /// A charter is proposed under a ballot.
    pub(super) fn proposes(&mut self, ballot: Ballot, charter: &Arc<Charter>) {
        self.proposed.insert((charter.epoch, ballot), charter.clone());
    }

    /// A member has said that it accepted what was proposed for `epoch` under a ballot. Says what
    /// that decided, if anything.
    pub(super) fn says_accepted(
        &mut self,
        node: NodeId,
        epoch: Epoch,
        ballot: Ballot,
    ) -> Option<Arc<Charter>> {
        let charter = self.proposed.get(&(epoch, ballot))?.clone();
        self.accepted.entry((epoch, ballot)).or_default().push(node);
        let quorums = self.quorums(Epoch(epoch.0.checked_sub(1)?)); // Only where epochs are wedged: nothing is forced there.
        let by = self.accepted.get(&(epoch, ballot))?.iter().filter_map(|node| quorums.position(*node));
        quorums.is_quorum(by.collect()).then_some(charter)
    }

    /// Somebody holds a charter for decided: whether a quorum of the epoch before has accepted
    /// under one ballot. Those of whom that is not known may have.
    pub(super) fn decides(&mut self, charter: &Charter, knows: impl Fn(NodeId) -> bool) -> bool {
        let Some(before) = charter.epoch.0.checked_sub(1).map(Epoch) else { return false };
        // A charter by an operator's word must have been accepted by all that it keeps.
        let forced = charter.epoch.begins_era();
        let quorums = if forced { &charter.body.quorums } else { self.quorums(before) };
        let mut ballots = self.accepted.iter().filter(|((epoch, _), _)| *epoch == charter.epoch);
        let unknown: Vec<NodeId> =
            quorums.members().iter().copied().filter(|member| !knows(*member)).collect();
        let accepted = |by: &[NodeId]| {
            let may_have = by.iter().chain(&unknown);
            let accepted: NodeSet = may_have.filter_map(|node| quorums.position(*node)).collect();
            if forced { accepted.is_superset(quorums.everyone()) } else { quorums.is_quorum(accepted) }
        };
        let decided = ballots.any(|(_, by)| accepted(by)) || accepted(&[]);
        if decided {
            self.decided = self.decided.max(charter.epoch);
        }
        decided
    }

    /// FLOOR (T4): the largest term that completed `distance` epochs before a charter or earlier,
    /// if the floor is below it.
    pub(super) fn above_floor(&self, charter: &Charter, distance: u64) -> Option<Term> {
        let upto = Epoch(charter.epoch.0.checked_sub(distance)?);
        let completed = self.terms.range(..=upto).map(|(_, term)| *term).max()?;
        (completed > charter.floor).then_some(completed)
    }

    /// An acquisition completed.
    pub(super) fn acquired(&mut self, epoch: Epoch, term: Term) {
        let largest = self.terms.entry(epoch).or_insert(term);
        *largest = term.max(*largest);
    }

    /// T3: a run completed; if the last one of its group was of a later epoch, that one.
    pub(super) fn completes(&mut self, group: GroupId, epoch: Epoch) -> Option<Epoch> {
        self.last.insert(group, epoch).filter(|last| *last > epoch)
    }
}

/// Since when each process has been in its epoch, in real time.
#[derive(Default)]
pub(super) struct Stays {
    since: BTreeMap<NodeId, (Epoch, RealTime)>,
    /// Members killed inside a step after which they would have been in this epoch: their disks may
    /// say so.
    killed: BTreeMap<NodeId, (Epoch, RealTime)>,
}

impl Stays {
    pub(super) fn adopts(&mut self, node: NodeId, epoch: Epoch, now: RealTime) {
        self.since.insert(node, (epoch, now));
    }

    pub(super) fn is_killed(&mut self, node: NodeId, epoch: Epoch, now: RealTime) {
        self.killed.insert(node, (epoch, now));
    }

    /// A process goes by what it has kept. If nobody saw it adopt that: since it was killed, or
    /// since now.
    pub(super) fn starts(&mut self, node: NodeId, epoch: Epoch, now: RealTime) {
        let known = self.since.get(&node).is_some_and(|(known, _)| *known == epoch);
        let killed = self.killed.remove(&node).filter(|(adopted, _)| *adopted == epoch);
        if !known {
            self.since.insert(node, killed.unwrap_or((epoch, now)));
        }
    }

    /// Since when a process is in `epoch`, if it is there.
    fn since(&self, node: NodeId, epoch: Epoch) -> Option<RealTime> {
        self.since.get(&node).filter(|(known, _)| *known == epoch).map(|(_, since)| *since)
    }
}

impl StrongJudge {
    /// W: a member accepts a charter. Leases of two epochs before that were granted before it came
    /// to the epoch in between are over a longest lease later. A charter by an operator's word has
    /// a wait of its own.
    pub(super) fn judge_waited<S: Sight>(&mut self, sight: &S, node: NodeId, charter: &Charter) {
        let here = Epoch(charter.epoch.0.saturating_sub(1));
        if here == Epoch(0) || charter.epoch.begins_era() || !sight.sees_all() {
            return;
        }
        self.see(SECOND_CHANGE);
        let since = self.stays.since(node, here).unwrap_or(sight.now());
        let longest = self.epochs.body(Epoch(here.0 - 1)).longest_lease;
        if sight.now() < since.after(longest.as_nanos()) {
            let epoch = charter.epoch;
            self.break_at(WAITED, sight.now(), || {
                format!("{node} accepts epoch {epoch}, but has been in epoch {here} only since {since}")
            });
        }
    }

    /// T3: the epochs of completed runs follow the order of completion.
    pub(super) fn judge_epoch(&mut self, now: RealTime, belief: Belief, run: Run) {
        let Belief { group, holder, epoch, term, .. } = belief;
        if let Some(later) = self.epochs.completes(group, epoch) {
            self.break_at(EPOCHS_FOLLOW, now, || {
                format!(
                    "{} completes a run of epoch {epoch} of {group} after one of epoch {later}",
                    holder.node
                )
            });
        }
        if run == Run::Acquire {
            self.epochs.acquired(epoch, term);
        } else if epoch > Epoch(0) {
            self.see(CARRIED);
        }
    }

    /// T6, and that what is decided covers all terms before it (T4).
    pub(super) fn judge_charter(
        &mut self,
        (now, mark): (RealTime, Option<Mark>),
        node: NodeId,
        charter: &Arc<Charter>,
    ) {
        let floors = self.wedges.is_none();
        if let Some(told) = self.epochs.other(charter, floors, mark) {
            self.contradict(ONE_CHARTER, now, told, || {
                let (epoch, members) = (charter.epoch, charter.members());
                format!("{node} goes by an epoch {epoch} of {members:?}, others by another epoch {epoch}")
            });
        } else if charter.epoch > self.epochs.decided() {
            self.break_at(ONE_CHARTER, now, || {
                format!("{node} goes by epoch {}, which no quorum has accepted", charter.epoch)
            });
        }
    }

    /// A charter is decided: leases of two epochs before must be over, and its floor must cover
    /// their terms.
    pub(super) fn on_decided<S: Sight>(&mut self, sight: &S, node: NodeId, charter: &Arc<Charter>) {
        let now = sight.now();
        if self.epochs.decides(charter, |member| sight.knows(member, now)) {
            self.see(EPOCH_DECIDED);
        }
        self.judge_charter((now, sight.mark()), node, charter);
        let distance = if self.wedges.is_some() { 1 } else { 2 };
        if let Some(term) = self.epochs.above_floor(charter, distance) {
            self.break_at(FLOORS, now, || {
                format!(
                    "epoch {} has floor {}, but term {term} was completed before",
                    charter.epoch, charter.floor
                )
            });
        }
        for i in 0..self.beliefs.len() {
            self.judge_support(sight, self.beliefs[i], now);
        }
    }
}
