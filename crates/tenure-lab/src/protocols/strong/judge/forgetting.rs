//! Judges what a process forgets of a group, by the world's memory.

use std::collections::BTreeMap;

use tenure_proto::strong::{Nerio, Rules};
use tenure_proto::{GroupId, LocalTime, NodeId};

use super::{FORGETS, FORGOTTEN, StrongJudge};
use crate::world::World;

/// The groups that each process had in memory when it was last looked at, and when the last release
/// of each of them ceases to count, by its clock.
pub(super) type InMemory = BTreeMap<(NodeId, GroupId), Option<LocalTime>>;

impl StrongJudge {
    /// A process has done a step: looks whether it has forgotten a group by it.
    pub(super) fn judge_forgotten<R: Rules>(&mut self, world: &World<Nerio<R>>, node: NodeId) {
        let host = world.host(node);
        let Some(process) = &host.process else { return self.forget_memory(node) };
        let reading = host.reading(world.now);
        for group in (0..self.groups).map(GroupId) {
            if process.knows(group) {
                self.in_memory.insert((node, group), process.latest_tomb_of(group));
            } else if let Some(buried) = self.in_memory.remove(&(node, group)) {
                self.see(FORGETS);
                let age = self.age(process.epoch());
                let grant =
                    self.ghosts.get(&(node, group, age)).filter(|ghost| world.now < ghost.until.earliest);
                let pledge = self.bounds.pledged_by(group, node);
                let counts = |until: Option<LocalTime>| until.is_some_and(|until| reading < until);
                let what = match () {
                    () if grant.is_some() => "its grant stands",
                    () if counts(buried) => "what was given back counts",
                    () if counts(pledge) => "it has pledged to give nothing back",
                    () => continue,
                };
                self.break_at(FORGOTTEN, world.now, || format!("{node} forgets {group}, though {what}"));
            }
        }
    }

    /// A life begins or ends: what it had in memory is gone with it.
    pub(super) fn forget_memory(&mut self, node: NodeId) {
        self.in_memory.retain(|(known, _), _| *known != node);
    }
}
