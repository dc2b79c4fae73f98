//! The judge of local leaders.
//!
//! The judge asks the machines which of them lead with whom, by their own clocks, and keeps that as
//! stretches of real time (`Reign`): each that begins is held against all that last, so no overlap
//! is missed between two events. A promise of a process is kept here in real time
//! (`Node::promise`), whether it remembers or not. All of that is seen through a [`Sight`], so that
//! traces of real processes are judged by the same words. Real delays are known from when each
//! datagram left, in simulated worlds alone. Liveness is judged on firm ground only: after
//! everything has healed, or where a world says so.

mod ground;
mod list;
mod oracle;
mod sight;

pub(crate) use list::SUPPORT_ONE;
pub use list::{COMPARED, LOCAL, MAJORITY, TRACED};
pub use oracle::{Envelope, envelope};
pub use sight::Sight;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tenure_proto::local::{Body, Config, Event, Local, Lock, Rules, View};
use tenure_proto::quorum::NodeSet;
use tenure_proto::time::{Incarnation, Span};
use tenure_proto::{LocalTime, NodeId};

use crate::property::{Judge, Kind, Mark, Outside, Property, Status, Tenure, Violation};
use crate::protocols::local::subject::names;
use crate::simulate::worlds::parse_stable;
use crate::world::{RealTime, World, node_id};
use ground::Ground;

/// A time in which a process leads with the same supporters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reign {
    /// From when on, at the latest.
    from: RealTime,
    /// Until when, at the earliest.
    until: RealTime,
    pub(crate) set: NodeSet,
    /// Where it was said, if that has a place.
    pub(crate) mark: Option<Mark>,
}

impl Reign {
    /// Whether it lasts at an instant, for certain.
    fn covers(self, at: RealTime) -> bool {
        self.from <= at && at < self.until
    }

    /// Whether there is an instant at which both last, for certain.
    pub(crate) fn meets(self, other: Self) -> bool {
        self.from.max(other.from) < self.until.min(other.until)
    }
}

/// The judge's state for a node.
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

    /// It has had this support set.
    fn had(&mut self, set: NodeSet) {
        self.past.push_back(set);
        if self.past.len() > 16 {
            self.past.pop_front();
        }
    }
}

/// Names a datagram: sender, receiver, the sender's life, the sequence number.
type Name = (usize, usize, Incarnation, u64);

/// All that is known about a datagram on its way.
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
    majority: bool,
}

impl LocalJudge {
    /// The judge of a run with this configuration.
    pub fn new(config: Option<Config>, properties: &'static [Property]) -> Self {
        let majority = config.as_ref().is_some_and(|config| config.settings().majority);
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
            majority,
        }
    }

    /// Judges by these properties, and by as many members, of whom more than half must support a
    /// leader or not.
    pub(crate) fn of_traces(properties: &'static [Property], members: usize, majority: bool) -> Self {
        let mut judge = Self::new(None, properties);
        judge.nodes.resize(members, Node::default());
        judge.majority = majority;
        judge
    }

    /// One step of a process, and what it published: a leader that leads no more ends before it
    /// says anything.
    pub(crate) fn see_step(&mut self, sight: &impl Sight, node: usize, event: Option<&Event>) {
        self.now = sight.now();
        if sight.lease(node).is_none() {
            self.look(sight, node);
        }
        if let Some(event) = event {
            self.event(sight, node, event);
        }
        self.look(sight, node);
    }

    fn breaks(&mut self, property: Property, text: String) {
        self.breaks_since(property, None, text);
    }

    fn breaks_since(&mut self, property: Property, before: Option<Mark>, text: String) {
        let known = self.violations.iter().any(|violation| violation.property == property.name);
        if !known && self.properties.contains(&property) {
            self.violations.push(Violation { property: property.name, at: self.now, text, before });
        }
    }

    fn see(&mut self, property: Property) {
        self.seen.insert(property.name);
    }

    /// How many must support a leader.
    fn needed(&self) -> usize {
        if self.majority { self.nodes.len() / 2 + 1 } else { 1 }
    }

    fn event(&mut self, sight: &impl Sight, node: usize, event: &Event) {
        match event {
            Event::Locked { lock, .. } => self.locked(sight, node, *lock),
            Event::Declined { asker } => {
                let rival = self.nodes[node]
                    .promise
                    .is_some_and(|(to, until)| to != asker.index() && until > self.now);
                if rival {
                    self.see(list::CROWDED);
                }
            }
            Event::Freed { to } => self.freed(sight, node, to.index()),
            Event::Members(view) => self.members(sight, node, *view),
            Event::Silent { .. } => self.see(list::WAITED),
            Event::Heard { .. }
            | Event::Asked { .. }
            | Event::Leads { .. }
            | Event::Failed { .. }
            | Event::Released { .. }
            | Event::Stepped { .. } => {}
        }
    }

    /// A datagram's bound is held against its real delay, and its speed against what is owed on
    /// firm ground.
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

    fn locked(&mut self, sight: &impl Sight, node: usize, lock: Lock) {
        let latest = sight.latest();
        let counted = |(other, seen): &(usize, &Node)| {
            *other != lock.to
                && seen.reign.is_some_and(|reign| reign.covers(latest) && reign.set.contains(node))
        };
        if let Some((other, seen)) = self.nodes.iter().enumerate().find(counted) {
            let before = seen.reign.and_then(|reign| reign.mark);
            let text = format!("n{node} binds itself to n{} while n{other} counts on it", lock.to);
            self.breaks_since(list::BOUND, before, text);
        }
        let until = sight.ends(node, lock.until);
        let promise = &mut self.nodes[node].promise;
        let longer = promise.filter(|(to, _)| *to == lock.to).map_or(until, |(_, held)| held.max(until));
        *promise = Some((lock.to, longer));
    }

    fn freed(&mut self, sight: &impl Sight, node: usize, to: usize) {
        self.see(list::FREED);
        let latest = sight.latest();
        let reign = self.nodes[to].reign.filter(|reign| reign.covers(latest) && reign.set.contains(node));
        if let Some(reign) = reign {
            let text = format!("n{node} is freed while n{to} counts on it");
            self.breaks_since(list::BOUND, reign.mark, text);
        }
        self.nodes[node].promise = None;
    }

    fn members(&mut self, sight: &impl Sight, node: usize, view: View) {
        self.see(list::LEARNT);
        let leader = view.leader.index();
        let had = self.nodes[leader].past.contains(&view.members) || !sight.knows(leader);
        let until = sight.stops(node, view.until);
        let bound = self.nodes[node].promise.is_some_and(|(to, held)| to == leader && held >= until);
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

    /// Asks whether a process leads, and with whom.
    fn look(&mut self, sight: &impl Sight, node: usize) {
        let lease = sight.lease(node);
        let before = self.nodes[node].reigns(self.now);
        let reign = lease.map(|lease| {
            let (until, set) = (sight.stops(node, lease.until), lease.supporters);
            // A leader that goes on with the same supporters has led all the while.
            let from = before.filter(|before| before.set == set).map_or(sight.latest(), |before| before.from);
            Reign { from, until, set, mark: sight.mark() }
        });
        let span = |reign: Reign| (reign.until, reign.set);
        if reign.map(span) == before.map(span) {
            return;
        }
        self.nodes[node].reign = reign;
        if let (Some(reign), Some(lease)) = (reign, lease) {
            self.begins(sight, node, reign);
            self.nodes[node].had(reign.set);
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
    fn begins(&mut self, sight: &impl Sight, node: usize, reign: Reign) {
        if !reign.set.contains(node) {
            self.breaks(list::SELF_SUPPORT, format!("n{node} leads {} without itself", names(reign.set)));
        }
        let others: Vec<(usize, Reign)> = (0..self.nodes.len())
            .filter(|other| *other != node)
            .filter_map(|other| Some((other, self.nodes[other].reign.filter(|theirs| theirs.meets(reign))?)))
            .collect();
        for (other, theirs) in &others {
            self.see(list::APART);
            let both = reign.set.intersection(theirs.set);
            if !both.is_empty() {
                let text = format!("{} supports n{node} and n{other}", names(both));
                self.breaks_since(list::SUPPORT_ONE, theirs.mark, text);
            }
            if self.majority {
                let text = format!("n{node} leads while n{other} leads");
                self.breaks_since(list::ONE_LEADER, theirs.mark, text);
            }
        }
        if reign.set.len() < self.needed() {
            self.breaks(list::ONE_LEADER, format!("n{node} leads with {} alone", names(reign.set)));
        }
        self.closure(node, reign.set, &others);
        self.judge_bound(sight, node, reign);
        self.judge_reign(node, reign);
    }

    /// Whom a leader counts on is bound to it for as long.
    fn judge_bound(&mut self, sight: &impl Sight, node: usize, reign: Reign) {
        for supporter in reign.set.positions().filter(|supporter| sight.knows(*supporter)) {
            let promise = self.nodes.get(supporter).and_then(|seen| seen.promise);
            if promise.is_none_or(|(to, until)| to != node || until < reign.until) {
                let text = format!(
                    "n{node} counts on n{supporter} until {}, which is {}",
                    reign.until,
                    promise.map_or("free".to_owned(), |(to, until)| format!("bound to n{to} until {until}")),
                );
                self.breaks(list::BOUND, text);
            }
        }
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
        if let Some((other, theirs)) = others.iter().find(|(other, _)| class.contains(*other)) {
            let text = format!("n{node} and n{other} lead the same logical partition, {}", names(class));
            self.breaks_since(list::ONE_A_PARTITION, theirs.mark, text);
        }
    }
}

impl<R: Rules> Judge<Local<R>> for LocalJudge {
    fn pass(&mut self, world: &World<Local<R>>, to: RealTime) {
        self.nodes.resize(world.hosts.len(), Node::default());
        self.now = world.now;
        self.pass_on_ground(to);
    }

    fn observe(&mut self, world: &World<Local<R>>, node: NodeId, outside: Outside) {
        self.nodes.resize(world.hosts.len(), Node::default());
        self.now = world.now;
        self.note_sent(world);
        if world.lease(node.index()).is_none() {
            self.look(world, node.index());
        }
        for (node, _, event) in &world.published {
            if let Event::Heard { from, name, received, bound, fast } = event {
                let name = (from.index(), node.index(), name.0, name.1);
                self.heard(world, name, *received, (*bound, *fast));
            }
            self.event(world, node.index(), event);
        }
        if outside != Outside::Killed {
            return self.look(world, node.index());
        }
        // It is gone before anybody looks, but others may hear of the support set that it
        // published.
        for (_, _, event) in &world.published {
            if let Event::Leads { lease, .. } = event {
                self.nodes[node.index()].had(lease.supporters);
            }
        }
    }

    fn network(&mut self, world: &World<Local<R>>, text: &str) {
        self.now = world.now;
        self.nodes.resize(world.hosts.len(), Node::default());
        if let Some((stable, links)) = parse_stable(text, world.hosts.len()) {
            // In a play it begins with this very line: what was sent before in time may still be on
            // its way.
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
        self.statuses()
    }
}

impl LocalJudge {
    pub(crate) fn found(&self) -> &[Violation] {
        &self.violations
    }

    /// The last reign of a process, if it has not given it up.
    pub(crate) fn reign(&self, node: usize) -> Option<Reign> {
        self.nodes.get(node)?.reign
    }

    /// The outcome of each property.
    pub(crate) fn statuses(&self) -> Vec<(Property, Status)> {
        let status = |property: &Property| {
            if self.violations.iter().any(|violation| violation.property == property.name) {
                return Status::Broken;
            }
            match property.kind {
                // Connections are known on firm ground alone.
                Kind::Always if *property == list::CONNECTED_IS_FAST && !self.was_owed(property) => {
                    Status::Exempt
                }
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
