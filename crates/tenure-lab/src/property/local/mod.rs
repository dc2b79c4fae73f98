//! The judge of local leaders.
//!
//! Who leads with whom is asked of the machines, by their own clocks, and kept as stretches of real time (`Reign`): each
//! that begins is held against all that last, so no overlap is missed between two events. What a process has promised
//! is kept here in real time (`Node::promise`), whether it remembers or not. Real delays are known from when each datagram
//! left. What is owed in time is judged on firm ground only: after everything has healed, or where a world says so.

mod ground;
mod list;
mod oracle;

pub use list::{LOCAL, MAJORITY};
pub use oracle::{Envelope, envelope};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tenure_proto::local::{Body, Config, Event, Local, Lock, Rules, View};
use tenure_proto::quorum::NodeSet;
use tenure_proto::time::{Incarnation, Span};
use tenure_proto::{LocalTime, NodeId};

use super::{Judge, Kind, Outside, Property, Status, Tenure, Violation};
use crate::simulate::worlds::parse_stable;
use crate::subject::local::names;
use crate::world::{RealTime, World, node_id};
use ground::Ground;

/// A time in which a process leads with the same supporters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reign {
    until: RealTime,
    set: NodeSet,
}

/// What is kept of a node.
#[derive(Clone, Debug, Default)]
struct Node {
    reign: Option<Reign>,
    /// The support sets that it has had lately.
    past: VecDeque<NodeSet>,
    /// To whom it has promised its support, and until when in real time.
    promise: Option<(usize, RealTime)>,
}

impl Node {
    /// Its reign, if that lasts beyond an instant.
    fn reigns(&self, now: RealTime) -> Option<Reign> {
        self.reign.filter(|reign| reign.until > now)
    }
}

/// Names a datagram: sender, receiver, the sender's life, the how-manieth.
type Name = (usize, usize, Incarnation, u64);

/// What is known of a datagram on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: RealTime,
    /// Whether it is a reply that goes straight to the asker.
    is_reply: bool,
}

/// Judges a run of local leadership.
#[derive(Clone, Debug)]
pub struct LocalJudge {
    config: Option<Config>,
    properties: &'static [Property],
    nodes: Vec<Node>,
    sent: BTreeMap<Name, Sent>,
    ground: Option<Ground>,
    now: RealTime,
    violations: Vec<Violation>,
    seen: BTreeSet<&'static str>,
    tenures: Vec<Tenure>,
    /// First elections by twentieths of κ_T.
    firsts: [u64; 20],
}

impl LocalJudge {
    /// The judge of a run with this configuration.
    pub fn new(config: Option<Config>, properties: &'static [Property]) -> Self {
        Self {
            config,
            properties,
            nodes: Vec::new(),
            sent: BTreeMap::new(),
            ground: None,
            now: RealTime(0),
            violations: Vec::new(),
            seen: BTreeSet::new(),
            tenures: Vec::new(),
            firsts: [0; 20],
        }
    }

    fn breaks(&mut self, property: Property, text: String) {
        let known = self.violations.iter().any(|violation| violation.property == property.name);
        if !known && self.properties.contains(&property) {
            self.violations.push(Violation { property: property.name, at: self.now, text, before: None });
        }
    }

    fn see(&mut self, property: Property) {
        self.seen.insert(property.name);
    }

    fn is_majority(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.settings().majority)
    }

    /// How many must support a leader.
    fn needed(&self) -> usize {
        if self.is_majority() { self.nodes.len() / 2 + 1 } else { 1 }
    }

    fn event<R: Rules>(&mut self, world: &World<Local<R>>, node: usize, event: &Event) {
        match event {
            Event::Heard { from, name, received, bound, fast } => {
                let name = (from.index(), node, name.0, name.1);
                self.heard(world, name, *received, (*bound, *fast));
            }
            Event::Locked { lock, .. } => self.locked(world, node, *lock),
            Event::Declined { asker } => {
                let rival = self.nodes[node]
                    .promise
                    .is_some_and(|(to, until)| to != asker.index() && until > self.now);
                if rival {
                    self.see(list::CROWDED);
                }
            }
            Event::Freed { to } => self.freed(node, to.index()),
            Event::Members(view) => self.members(world, node, *view),
            Event::Silent { .. } => self.see(list::WAITED),
            Event::Asked { .. }
            | Event::Leads { .. }
            | Event::Failed { .. }
            | Event::Released { .. }
            | Event::Stepped { .. } => {}
        }
    }

    /// A datagram's bound is held against its real delay, and its speed against what is owed on firm ground.
    fn heard<R: Rules>(
        &mut self,
        world: &World<Local<R>>,
        name: Name,
        received: LocalTime,
        (bound, fast): (Option<Span>, bool),
    ) {
        let (from, to, ..) = name;
        let Some(known) = self.sent.get_mut(&name) else { return };
        let sent = *known;
        known.is_reply = false; // A second copy may come at any time.
        // The reading may be a tick old: this is the least that it can have taken.
        let took = world.host(node_id(to)).instant(received).0.saturating_sub(sent.at.0);
        if let Some(bound) = bound.filter(|bound| bound.as_nanos() < took) {
            let text = format!("n{to} bounds by {bound} what took {} from n{from}", RealTime(took));
            self.breaks(list::FAST_IS_FAST, text);
        }
        if !fast {
            self.see(list::SLOW);
            let Some(config) = &self.config else { return };
            let settings = config.settings();
            let settled = RealTime(sent.at.0.saturating_sub(settings.timing.delay.as_nanos()));
            let owed = self.ground.as_ref().is_some_and(|ground| ground.connects(from, to, settled));
            if owed && sent.is_reply && settings.tree.is_none() {
                self.breaks(
                    list::CONNECTED_IS_FAST,
                    format!("n{to} holds a reply of n{from} for slow, which took {}", RealTime(took)),
                );
            }
        }
    }

    fn locked<R: Rules>(&mut self, world: &World<Local<R>>, node: usize, lock: Lock) {
        let now = self.now;
        let counted = |(other, seen): &(usize, &Node)| {
            *other != lock.to && seen.reigns(now).is_some_and(|reign| reign.set.contains(node))
        };
        if let Some((other, _)) = self.nodes.iter().enumerate().find(counted) {
            self.breaks(
                list::BOUND,
                format!("n{node} binds itself to n{} while n{other} counts on it", lock.to),
            );
        }
        let until = world.host(node_id(node)).reading_reaches(lock.until);
        let promise = &mut self.nodes[node].promise;
        let longer = promise.filter(|(to, _)| *to == lock.to).map_or(until, |(_, held)| held.max(until));
        *promise = Some((lock.to, longer));
    }

    fn freed(&mut self, node: usize, to: usize) {
        self.see(list::FREED);
        let reign = self.nodes[to].reigns(self.now);
        if reign.is_some_and(|reign| reign.set.contains(node)) {
            self.breaks(list::BOUND, format!("n{node} is freed while n{to} counts on it"));
        }
        self.nodes[node].promise = None;
    }

    fn members<R: Rules>(&mut self, world: &World<Local<R>>, node: usize, view: View) {
        self.see(list::LEARNT);
        let had = self.nodes[view.leader.index()].past.contains(&view.members);
        let until = world.host(node_id(node)).reading_reaches(view.until);
        let bound =
            self.nodes[node].promise.is_some_and(|(to, held)| to == view.leader.index() && held >= until);
        if !(had && bound && view.members.contains(node)) {
            let (leader, members) = (view.leader, names(view.members));
            self.breaks(list::MEMBERS_TRUE, format!("n{node} is told that {leader} leads {members}"));
        }
    }

    fn note_sent<R: Rules>(&mut self, world: &World<Local<R>>) {
        for flight in world.sent.iter().filter_map(|id| world.flight(*id)) {
            let header = flight.message.header;
            let (from, to) = (flight.name.from.index(), flight.name.to.index());
            let is_reply = matches!(flight.message.body, Body::Reply { root, .. } if root == flight.name.to);
            self.sent.insert((from, to, header.incarnation, header.number), Sent { at: world.now, is_reply });
        }
    }

    /// Whoever leads no more does so before it says anything.
    fn end_reign<R: Rules>(&mut self, world: &World<Local<R>>, node: usize) {
        let host = world.host(node_id(node));
        let reading = host.reading(world.now);
        if host.process.as_ref().is_none_or(|process| process.lease(reading).is_none()) {
            self.look(world, node);
        }
    }

    /// Asks a machine whether it leads, and with whom.
    fn look<R: Rules>(&mut self, world: &World<Local<R>>, node: usize) {
        let host = world.host(node_id(node));
        let lease = host.process.as_ref().and_then(|process| process.lease(host.reading(world.now)));
        let reign =
            lease.map(|lease| Reign { until: host.reading_reaches(lease.until), set: lease.supporters });
        let before = self.nodes[node].reigns(self.now);
        if reign == before {
            return;
        }
        self.nodes[node].reign = reign;
        if let (Some(reign), Some(lease)) = (reign, lease) {
            self.begins(node, reign);
            let past = &mut self.nodes[node].past;
            past.push_back(reign.set);
            if past.len() > 16 {
                past.pop_front();
            }
            self.record_tenure(node, lease.request.number, reign, before.is_some());
        } else if let Some(tenure) = self.tenures.iter_mut().rev().find(|tenure| tenure.node == node_id(node))
        {
            tenure.until = tenure.until.min(self.now);
        }
    }

    fn record_tenure(&mut self, node: usize, term: u64, reign: Reign, goes_on: bool) {
        let last = self.tenures.iter_mut().rev().find(|tenure| tenure.node == node_id(node));
        match last.filter(|_| goes_on) {
            Some(tenure) => tenure.until = reign.until,
            None => {
                let (from, until) = (self.now, reign.until);
                self.tenures.push(Tenure { node: node_id(node), term, from, until });
            }
        }
    }

    /// A reign begins, or goes on with others: it is held against all that last.
    fn begins(&mut self, node: usize, reign: Reign) {
        let now = self.now;
        if !reign.set.contains(node) {
            self.breaks(list::SELF_SUPPORT, format!("n{node} leads {} without itself", names(reign.set)));
        }
        let others: Vec<(usize, Reign)> = (0..self.nodes.len())
            .filter(|other| *other != node)
            .filter_map(|other| Some((other, self.nodes[other].reigns(now)?)))
            .collect();
        for (other, theirs) in &others {
            self.see(list::APART);
            let both = reign.set.intersection(theirs.set);
            if !both.is_empty() {
                self.breaks(list::SUPPORT_ONE, format!("{} supports n{node} and n{other}", names(both)));
            }
            if self.is_majority() {
                self.breaks(list::ONE_LEADER, format!("n{node} leads while n{other} leads"));
            }
        }
        if reign.set.len() < self.needed() {
            self.breaks(list::ONE_LEADER, format!("n{node} leads with {} alone", names(reign.set)));
        }
        self.closure(node, reign.set, &others);
        for supporter in reign.set.positions() {
            let promise = self.nodes[supporter].promise;
            if promise.is_none_or(|(to, until)| to != node || until < reign.until) {
                let text = format!(
                    "n{node} counts on n{supporter} until {}, which is {}",
                    reign.until,
                    promise.map_or("free".to_owned(), |(to, until)| format!("bound to n{to} until {until}")),
                );
                self.breaks(list::BOUND, text);
            }
        }
        self.judge_reign(node, reign);
    }

    /// The class of the closure of `supports` in which a new leader is has no other leader.
    fn closure(&mut self, node: usize, set: NodeSet, others: &[(usize, Reign)]) {
        let mut class = set.union([node].into_iter().collect());
        loop {
            let joined = others.iter().filter(|(other, theirs)| {
                class.contains(*other) || !class.intersection(theirs.set).is_empty()
            });
            let all = joined.fold(class, |all, (other, theirs)| {
                all.union(theirs.set).union([*other].into_iter().collect())
            });
            if all == class {
                break;
            }
            class = all;
        }
        if let Some((other, _)) = others.iter().find(|(other, _)| class.contains(*other)) {
            let text = format!("n{node} and n{other} lead the same logical partition, {}", names(class));
            self.breaks(list::ONE_A_PARTITION, text);
        }
    }
}

impl<R: Rules> Judge<Local<R>> for LocalJudge {
    fn pass(&mut self, world: &World<Local<R>>, to: RealTime) {
        self.nodes.resize(world.hosts.len(), Node::default());
        self.now = world.now;
        self.pass_on_ground(to);
    }

    fn observe(&mut self, world: &World<Local<R>>, node: NodeId, _outside: Outside) {
        self.nodes.resize(world.hosts.len(), Node::default());
        self.now = world.now;
        self.note_sent(world);
        self.end_reign(world, node.index());
        for (node, _, event) in &world.published {
            self.event(world, node.index(), event);
        }
        self.look(world, node.index());
    }

    fn network(&mut self, world: &World<Local<R>>, text: &str) {
        self.now = world.now;
        self.nodes.resize(world.hosts.len(), Node::default());
        if let Some((stable, links)) = parse_stable(text, world.hosts.len()) {
            // In a play it begins with this very line: what was sent before in time may still be on its way.
            let on_its_way =
                self.config.as_ref().map_or(0, |config| config.settings().timing.fast.as_nanos());
            let since = if text.contains('|') { self.now.after(on_its_way + 1) } else { self.now };
            self.stand(stable, links, since);
        } else {
            self.ground = None;
        }
    }

    fn healed(&mut self, world: &World<Local<R>>) {
        self.nodes.resize(world.hosts.len(), Node::default());
        self.now = world.now;
        if self.ground.is_none() {
            let all: NodeSet = (0..world.hosts.len()).collect();
            self.stand(all, vec![all; world.hosts.len()], self.now);
        }
    }

    fn end(&mut self, world: &World<Local<R>>) {
        self.now = world.now;
    }

    fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn leader(&self) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.reigns(self.now).is_some()).map(node_id)
    }

    fn tenures(&self) -> &[Tenure] {
        &self.tenures
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        FIRSTS.into_iter().zip(self.firsts).filter(|(_, many)| *many > 0).collect()
    }

    fn report(&self) -> Vec<(Property, Status)> {
        let status = |property: &Property| {
            if self.violations.iter().any(|violation| violation.property == property.name) {
                return Status::Broken;
            }
            match property.kind {
                Kind::Always => Status::Holds,
                Kind::Sometimes if self.seen.contains(property.name) => Status::Seen,
                Kind::Sometimes => Status::Unseen,
                Kind::Eventually if self.was_owed(property) => Status::Holds,
                Kind::Eventually => Status::Exempt,
            }
        };
        self.properties.iter().map(|property| (*property, status(property))).collect()
    }
}

/// First elections on firm ground, by how much of κ_T they took.
const FIRSTS: [&str; 20] = [
    "first-leader-within-05-of-kappa",
    "first-leader-within-10-of-kappa",
    "first-leader-within-15-of-kappa",
    "first-leader-within-20-of-kappa",
    "first-leader-within-25-of-kappa",
    "first-leader-within-30-of-kappa",
    "first-leader-within-35-of-kappa",
    "first-leader-within-40-of-kappa",
    "first-leader-within-45-of-kappa",
    "first-leader-within-50-of-kappa",
    "first-leader-within-55-of-kappa",
    "first-leader-within-60-of-kappa",
    "first-leader-within-65-of-kappa",
    "first-leader-within-70-of-kappa",
    "first-leader-within-75-of-kappa",
    "first-leader-within-80-of-kappa",
    "first-leader-within-85-of-kappa",
    "first-leader-within-90-of-kappa",
    "first-leader-within-95-of-kappa",
    "first-leader-within-100-of-kappa",
];
