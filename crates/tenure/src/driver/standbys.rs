//! The processes that stand by for a group: those that have asked for it lately and do not lead it.
//!
//! A candidate that waits asks all members again whenever the leader's lease might be over, so each
//! member hears of every candidate that is no member, about once a lease. A member that waits asks
//! nobody while its own grantor is bound: it is known to itself alone.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_proto::strong::{Kind, Message};
use tenure_proto::{GroupId, LocalTime, NodeId};

use super::Driver;
use super::questions::later;
use crate::name::NodeName;

/// The most candidates that are remembered, of all groups.
const MOST: usize = 10_000;

/// The most candidates of one group.
const MOST_OF_GROUP: usize = 64;

/// When each candidate asked last.
#[derive(Debug, Default)]
pub(super) struct Standbys {
    asked: BTreeMap<GroupId, BTreeMap<NodeId, LocalTime>>,
    count: usize,
}

impl Standbys {
    fn note(&mut self, group: GroupId, node: NodeId, (now, fresh): (LocalTime, Duration)) {
        if self.count >= MOST {
            self.tidy(now, fresh);
        }
        let asked = self.asked.entry(group).or_default();
        if asked.contains_key(&node) || self.count < MOST && asked.len() < MOST_OF_GROUP {
            self.count += usize::from(asked.insert(node, now).is_none());
        }
    }

    /// Forgets all that have not asked for a while.
    fn tidy(&mut self, now: LocalTime, fresh: Duration) {
        self.asked.retain(|_, asked| {
            asked.retain(|_, at| now < later(*at, fresh));
            !asked.is_empty()
        });
        self.count = self.asked.values().map(BTreeMap::len).sum();
    }
}

impl Driver {
    /// How long after it asked a candidate counts as standing by.
    fn standing_for(&self) -> Duration {
        let longest = self.machine.as_ref().map(|machine| machine.charter().body.longest_lease);
        longest.map_or(Duration::ZERO, |longest| Duration::from_nanos(longest.as_nanos()) * 2)
    }

    /// A process asks for a group.
    pub(super) fn note_standby(&mut self, from: NodeId, message: &Message, now: LocalTime) {
        if let Message::Request(request) = message
            && request.kind == Kind::Acquire
            && self.config.role.grants()
        {
            let fresh = self.standing_for();
            self.standbys.note(request.group, from, (now, fresh));
        }
    }

    /// The processes that stand by for a group, as far as this one knows, by name.
    pub(super) fn candidates(&mut self, group: GroupId) -> Vec<NodeName> {
        let (now, fresh) = (self.now(), self.standing_for());
        self.standbys.tidy(now, fresh);
        let grant = self.machine.as_ref().and_then(|machine| machine.grant(group));
        let leader = grant.filter(|grant| now < grant.until).map(|grant| grant.holder.node);
        let own = self.campaigns.campaigns_for(group).then_some(self.me);
        let asked = self.standbys.asked.get(&group).into_iter().flatten().map(|(node, _)| *node);
        let present = |node: &NodeId| *node == self.me || self.net.sessions.has_session(*node);
        let others = asked.chain(own).filter(|node| Some(*node) != leader && present(node));
        let mut names: Vec<NodeName> = others.filter_map(|node| self.net.name(node)).collect();
        names.sort();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_have_not_asked_for_a_while_are_forgotten_and_one_group_takes_not_all_the_room() {
        let mut standbys = Standbys::default();
        let at = |seconds: u64| LocalTime::from_nanos(seconds * 1_000_000_000);
        let fresh = Duration::from_secs(10);
        for node in 0..100 {
            standbys.note(GroupId(1), NodeId(node), (at(1), fresh));
        }
        assert_eq!(standbys.count, MOST_OF_GROUP);
        standbys.note(GroupId(2), NodeId(7), (at(5), fresh));
        standbys.note(GroupId(1), NodeId(3), (at(6), fresh));
        standbys.tidy(at(12), fresh);
        assert_eq!((standbys.count, standbys.asked[&GroupId(1)].len()), (2, 1));
    }
}
