//! The log of leaderships elsewhere: which process leads a group that this member grants, and how
//! that ended.
//!
//! A runner has no log that an operator keeps. Members see each leader begin, by its first word or
//! its first renewal; give back its grant, by itself or for a successor; or fall silent until the
//! grant has run out. Groups that this very process leads have events of their own (`elected`,
//! `lost`).
//!
//! Nothing is noted at a renewal. A group is looked at when the grant ran out that stood at the
//! last look: if it was extended meanwhile, the next look is at its new end.

use std::collections::{BTreeMap, BTreeSet};

use tenure_proto::strong::{Event, Grant, GrantRequest, Kind, Message, Talk, Term};
use tenure_proto::{GroupId, LocalTime, NodeId};

use super::Driver;

/// How many groups are looked at in one turn.
const LOOKS: usize = 64;

/// The leaders of groups, as far as this member has logged them.
#[derive(Debug, Default)]
pub(super) struct Chronicle {
    led: BTreeMap<GroupId, Led>,
    /// When to look whether a leader has lapsed.
    looks: BTreeSet<(LocalTime, GroupId)>,
    /// The successor that a leader names while its word is handled.
    successor: Option<NodeId>,
}

#[derive(Clone, Copy, Debug)]
struct Led {
    leader: NodeId,
    term: Term,
    look_at: LocalTime,
}

impl Chronicle {
    /// Notes a leader. Says whether that is news.
    fn begins(&mut self, group: GroupId, leader: NodeId, term: Term, look_at: LocalTime) -> bool {
        if self.led.get(&group).is_some_and(|led| led.term >= term) {
            return false;
        }
        self.ends(group);
        self.led.insert(group, Led { leader, term, look_at });
        self.looks.insert((look_at, group));
        true
    }

    /// Forgets the leader of a group.
    fn ends(&mut self, group: GroupId) -> Option<Led> {
        let led = self.led.remove(&group)?;
        self.looks.remove(&(led.look_at, group));
        Some(led)
    }

    fn look_again(&mut self, group: GroupId, at: LocalTime) {
        if let Some(led) = self.led.get_mut(&group) {
            self.looks.remove(&(led.look_at, group));
            led.look_at = at;
            self.looks.insert((at, group));
        }
    }

    fn due(&self, now: LocalTime) -> Option<GroupId> {
        self.looks.first().filter(|(at, _)| *at <= now).map(|(_, group)| *group)
    }
}

impl Driver {
    /// A leader hands over in this message: what it gives back goes to its successor.
    pub(super) fn note_successor(&mut self, message: &Message) {
        self.chronicle.successor = match message {
            Message::Talk { talk: Talk::Relay { request, .. }, .. } => Some(request.id.holder.node),
            _ => None,
        };
    }

    /// A leader has said that it leads, or has renewed.
    pub(super) fn chronicle_leader(&mut self, group: GroupId, leader: NodeId, term: Term) {
        let grant = self.machine.as_ref().and_then(|machine| machine.grant(group));
        // A word that comes late may be of a leader that is over.
        let is_its = |grant: &&Grant| (grant.holder.node, grant.term) == (leader, term) && leader != self.me;
        let Some(until) = grant.filter(is_its).map(|grant| grant.until) else { return };
        if let Some(former) = self.chronicle.led.get(&group).copied().filter(|led| led.term < term) {
            self.log_end(group, former, "lapsed", None);
        }
        if self.chronicle.begins(group, leader, term, until) {
            let (group, leader) = (self.group_called(group), self.node_called(leader));
            tracing::info!(name: "tenure.leader", node = %self.name, group, leader, term = term.0, "a process leads");
        }
    }

    /// Notes what an event of the machine tells of leaders elsewhere.
    pub(super) fn chronicle(&mut self, event: &Event) {
        match event {
            Event::Granted { request: GrantRequest { group, kind: Kind::Renew, id, term, .. }, .. }
                if self.chronicle.led.get(group).is_none_or(|led| led.term < *term) =>
            {
                self.chronicle_leader(*group, id.holder.node, *term);
            }
            Event::Freed { group, newest } => {
                let is_its = |led: &Led| led.leader == newest.holder.node;
                if self.chronicle.led.get(group).is_some_and(is_its)
                    && let Some(led) = self.chronicle.ends(*group)
                {
                    let successor = self.chronicle.successor;
                    let how = if successor.is_some() { "handed over" } else { "resigned" };
                    self.log_end(*group, led, how, successor);
                }
            }
            _ => {}
        }
    }

    /// Looks whether leaders have lapsed.
    pub(super) fn on_chronicle_time(&mut self, now: LocalTime) {
        for _ in 0..LOOKS {
            let Some(group) = self.chronicle.due(now) else { return };
            let grant = self.machine.as_ref().and_then(|machine| machine.grant(group));
            match grant.filter(|grant| now < grant.until).map(|grant| grant.until) {
                Some(until) => self.chronicle.look_again(group, until),
                None => {
                    if let Some(led) = self.chronicle.ends(group) {
                        self.log_end(group, led, "lapsed", None);
                    }
                }
            }
        }
    }

    fn log_end(&self, group: GroupId, led: Led, how: &str, successor: Option<NodeId>) {
        let (group, leader) = (self.group_called(group), self.node_called(led.leader));
        let successor = successor.map(|node| self.node_called(node));
        tracing::info!(name: "tenure.leader_gone", node = %self.name, group, leader, term = led.term.0, how, successor, "a process leads no more");
    }

    fn node_called(&self, node: NodeId) -> String {
        self.net.name(node).map_or_else(|| node.to_string(), |name| name.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> LocalTime {
        LocalTime::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn each_leader_is_news_once_and_is_looked_at_when_its_grant_ends() {
        let (mut chronicle, group, leader) = (Chronicle::default(), GroupId(1), NodeId(5));
        assert!(chronicle.begins(group, leader, Term(3), at(2)));
        assert!(!chronicle.begins(group, leader, Term(3), at(9)), "the same term again");
        assert!(!chronicle.begins(group, NodeId(6), Term(2), at(9)), "an older one");
        assert_eq!((chronicle.due(at(1)), chronicle.due(at(2))), (None, Some(group)));
        chronicle.look_again(group, at(4));
        assert_eq!((chronicle.due(at(3)), chronicle.due(at(4))), (None, Some(group)));
        assert!(chronicle.begins(group, NodeId(6), Term(4), at(8)), "a newer one");
        assert_eq!(chronicle.looks.len(), 1);
        assert!(chronicle.ends(group).is_some_and(|led| led.leader == NodeId(6)));
        assert!(chronicle.led.is_empty() && chronicle.looks.is_empty());
    }
}
