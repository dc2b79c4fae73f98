//! The judge in the laboratory's own world: what it learns there from machines and messages, and
//! what is owed once the faults have healed.

use super::*;
use crate::property::{Outside, Tenure};
use crate::subject::Made;

/// When a process that sleeps believes again, as far as is known.
const NEVER: RealTime = RealTime(u64::MAX);

impl StrongJudge {
    /// Every instant reckoned from a clock is reckoned anew. A process whose clock went back
    /// believes nothing by readings below one that it has seen; but if it sees none of them, it
    /// will believe again.
    fn on_clock_disturbed<R: Rules>(&mut self, world: &World<Nerio<R>>, node: NodeId) {
        let host = world.host(node);
        for claim in self.claims.iter_mut().filter(|claim| claim.by == node) {
            // By a clock that counted sleep coarsely nobody is certain of anything: a claim ends
            // when it was meant to, at most.
            if !host.has_slept_coarsely() {
                claim.until = host.reading_reaches(claim.lease);
            }
        }
        let doubted: Vec<_> = self.doubts.extract_if(.., |(belief, _)| belief.holder.node == node).collect();
        let slept = doubted.iter().any(|(_, again)| *again == NEVER);
        self.beliefs.extend(doubted.into_iter().map(|(belief, _)| belief));
        let reading = host.reading(world.now);
        let believes = |belief: &Belief| {
            host.process.as_ref().is_some_and(|process| process.leadership(belief.group, reading).is_some())
        };
        for belief in self.beliefs.iter_mut().filter(|belief| belief.holder.node == node) {
            belief.until = host.reading_reaches(belief.lease);
            belief.gone = belief.until;
            self.stability.leads(*belief, world.now);
        }
        // A machine that sleeps acts on nothing. If its clock counts sleep coarsely, what it
        // believes is seen when it wakes.
        let sleeps = host.sleeps_coarsely();
        let again = match (sleeps, slept) {
            (true, _) => NEVER,
            (false, true) => world.now,
            (false, false) => host.reading_reaches(host.last_seen()),
        };
        let doubts = self.beliefs.extract_if(.., |belief| {
            let doubtful = reading < belief.lease && (!believes(belief) || slept);
            belief.holder.node == node && (sleeps || doubtful)
        });
        self.doubts.extend(doubts.map(|belief| (belief, again)));
    }

    /// A clock that went back has caught up without being noticed: who believed before believes
    /// again.
    fn resume<R: Rules>(&mut self, world: &World<Nerio<R>>, to: RealTime) {
        let resumed: Vec<_> = self.doubts.extract_if(.., |(_, again)| *again < to).collect();
        for (belief, again) in resumed {
            let rival = self.beliefs.iter().find(|b| b.group == belief.group && b.until > again).copied();
            if let Some(rival) = rival {
                self.break_at(UNIQUENESS, again, || two_leaders(belief, rival));
            }
            self.judge_support(world, belief, again);
            self.beliefs.push(belief);
        }
    }

    /// Whether processes that can grant form a quorum, and one that campaigns runs: without them
    /// nothing is owed. Nor if no candidate that is left knows the newest epoch, and too few are
    /// left of the one before to tell or decide it again.
    fn can_elect<R: Rules>(&self, world: &World<Nerio<R>>) -> bool {
        let newest = self.epochs.decided();
        let up = |node: &NodeId| is_up(world, *node);
        let epoch_at = |node: &NodeId| world.host(*node).process.as_ref().map(Nerio::epoch);
        let knows = |node: &NodeId| up(node) && epoch_at(node).is_some_and(|epoch| epoch >= newest);
        let learnt = match self.wedges {
            Some(_) => self.can_be_learnt(world),
            None => self.candidates.iter().any(knows) || self.runs(world, Epoch(newest.0.saturating_sub(1))),
        };
        learnt && self.runs(world, newest) && self.candidates.iter().any(up)
    }

    /// Whether a quorum of an epoch can grant.
    pub(super) fn runs<R: Rules>(&self, world: &World<Nerio<R>>, epoch: Epoch) -> bool {
        let quorums = self.epochs.quorums(epoch);
        let up = |position: &usize| is_up(world, quorums.members()[*position]);
        quorums.is_quorum((0..quorums.members().len()).filter(up).collect())
    }

    /// A cluster may be left to members that are gone: then nothing is owed any more.
    pub(super) fn forgive_if_gone<R: Rules>(&mut self, world: &World<Nerio<R>>) {
        if !self.can_elect(world) {
            self.stability.forgive();
            self.owed = None;
        }
    }

    fn judge_liveness(&mut self, at: RealTime) {
        let Some(led) = self.stability.led() else { return };
        let elected = u64::try_from(led).unwrap_or(u64::MAX) >= self.groups;
        let same = self.stability.changes() == 0;
        let status = |holds| if holds { Status::Holds } else { Status::Broken };
        (self.liveness[0], self.liveness[1]) = (status(elected), status(same));
        if !elected {
            let groups = self.groups;
            self.break_at(ELECTED, at, || format!("of {groups} groups only {led} have a leader"));
        }
    }
}

impl<R: Rules> Judge<Nerio<R>> for StrongJudge {
    fn pass(&mut self, world: &World<Nerio<R>>, to: RealTime) {
        self.resume(world, to);
        if let Some(settled) = self.stability.due(to) {
            let leading = self.beliefs.iter().filter(|belief| belief.until > settled);
            self.stability.settle(leading.copied());
        }
        self.run_out(world, to);
    }

    fn observe(&mut self, world: &World<Nerio<R>>, node: NodeId, outside: Outside) {
        match outside {
            Outside::Step => {}
            Outside::Killed => {
                self.unseen.insert(node);
                let epoch = world.host(node).process.as_ref().map(Nerio::epoch);
                epoch.into_iter().for_each(|epoch| self.stays.is_killed(node, epoch, world.now));
            }
            Outside::Started => {
                self.judge_start(world, node);
                let epoch = world.host(node).process.as_ref().map(Nerio::epoch);
                epoch.into_iter().for_each(|epoch| self.stays.starts(node, epoch, world.now));
            }
            Outside::Crashed => self.on_ended(world.now, node),
            Outside::ClockDisturbed => self.on_clock_disturbed(world, node),
        }
        for (node, now, event) in &world.published {
            self.on_event(world, *node, *now, event);
            if matches!(event, Event::Decided { .. }) {
                self.forgive_if_gone(world);
            }
        }
        self.judge_passed(world);
        self.judge_forgotten(world, node);
        if self.wedges.is_some() {
            self.observe_sent(world);
        }
    }

    fn edict(&mut self, world: &World<Nerio<R>>, node: NodeId, edict: Made) {
        self.judge_edict(world.now, node, edict);
    }

    fn healed(&mut self, world: &World<Nerio<R>>) {
        let pending = |node: NodeId| {
            let process = world.host(node).process.as_ref();
            process.is_some_and(|process| process.pending_change().is_some() || process.is_wedged())
        };
        if world.nodes().any(pending) {
            self.see(INTERRUPTED);
        }
        if self.can_elect(world) {
            self.owed = Some(world.now);
            self.stability.owed_from(world.now.after(self.longest_lease.as_nanos().saturating_mul(10)));
        }
    }

    fn end(&mut self, world: &World<Nerio<R>>) {
        for node in world.nodes() {
            self.judge_kept_ends(world, node);
        }
        self.judge_change_ended(world);
        self.judge_liveness(world.now);
        self.judge_changes(world);
    }

    fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn leader(&self) -> Option<NodeId> {
        let mut leaders = self.beliefs.iter().filter(|belief| belief.group == GroupId(0));
        let first = leaders.next()?.holder.node;
        leaders.next().is_none().then_some(first)
    }

    fn tenures(&self) -> &[Tenure] {
        self.stability.tenures()
    }

    fn settled(&self) -> Option<RealTime> {
        self.stability.since()
    }

    fn changes(&self) -> u64 {
        self.stability.changes()
    }

    fn report(&self) -> Vec<(Property, Status)> {
        Self::report(self)
    }
}

/// Whether a process runs and can grant. A member may be a name that no host of this world has.
fn is_up<R: Rules>(world: &World<Nerio<R>>, node: NodeId) -> bool {
    let process = world.hosts.get(node.index()).and_then(|host| host.process.as_ref());
    process.is_some_and(|process| !process.is_mute() && !process.is_recovering())
}
