//! A straight track: a world without faults in which only the delays of messages are left to
//! chance.
//!
//! Where a study asks how long something takes, nothing else may take time: disks write at once,
//! processes wake when they want to, and a process hears itself at once. Draws of the protocol
//! itself come from the same seed. Where a study wants it, handling a message takes time, one after
//! the other, and a process that is at it is woken afterwards.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tenure_proto::{Elects, GroupId, LocalTime, NodeId, Protocol};

use crate::random::Random;
use crate::stage::{Cast, Stage, Watch};
use crate::subject::Subject;
use crate::world::{Action, FlightId, RealTime};

/// An event that is going to happen. Of what falls on one instant, what was entered first comes
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pending {
    Arrive(FlightId),
    /// A message that arrived then has been handled.
    Handled(FlightId, RealTime),
    Wake(NodeId),
}

/// A run on the track.
pub(crate) struct Track<'s, S: Subject> {
    stage: Stage<'s, S>,
    queue: BinaryHeap<Reverse<(RealTime, u64, Pending)>>,
    entered: u64,
    /// The deadline for which a wake-up of each node is in the queue, and that entry's number.
    armed: Vec<Option<(LocalTime, u64)>>,
    longest_delay: u64,
    /// How long a process takes for a message of another one.
    handling: u64,
    /// Until when each is at it.
    busy: Vec<RealTime>,
    /// How many messages of others each has handled.
    heard: Vec<u64>,
    choices: Random,
    links: Random,
}

/// An event that a process published, and when by its own clock.
pub(crate) type Said<S> = (NodeId, LocalTime, <<S as Subject>::Machine as Protocol>::Event);

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finish {
    /// When somebody led; `None` if nobody did in time.
    pub(crate) elected: Option<RealTime>,
    /// Messages between different nodes until then.
    pub(crate) messages: u64,
    /// A property that was broken on the way.
    pub(crate) violation: Option<String>,
}

impl<'s, S: Subject> Track<'s, S> {
    /// A world in which every message takes longer than nothing and at most `longest_delay`.
    pub(crate) fn new(subject: &'s S, cast: &Cast, longest_delay: u64, seed: u64) -> Result<Self, String> {
        let mut choices = Random::stream(seed, "choices");
        let watch = Watch { properties: true, ..Watch::default() };
        let stage = Stage::new(subject, cast, watch, false, &mut choices)?;
        let mut track = Self {
            armed: vec![None; stage.world.hosts.len()],
            busy: vec![RealTime(0); stage.world.hosts.len()],
            heard: vec![0; stage.world.hosts.len()],
            stage,
            queue: BinaryHeap::new(),
            entered: 0,
            longest_delay,
            handling: 0,
            choices,
            links: Random::stream(seed, "links"),
        };
        track.route();
        let nodes: Vec<NodeId> = track.stage.world.nodes().collect();
        nodes.into_iter().for_each(|node| track.attend(node));
        Ok(track)
    }

    /// From now on a process takes so many nanoseconds for each message of another one.
    pub(crate) fn handling(mut self, nanos: u64) -> Self {
        self.handling = nanos;
        self
    }

    /// Lets the next thing happen, and gives the instant and what was said then; `None` after
    /// `horizon`, and after a violation.
    pub(crate) fn step(&mut self, horizon: RealTime) -> Option<(RealTime, &[Said<S>])> {
        let Reverse((at, number, pending)) = self.queue.pop()?;
        if at > horizon || self.stage.is_over() {
            return None;
        }
        let happened = self.happen(at, number, pending).is_some();
        Some((at, if happened { &self.stage.world.published } else { &[] }))
    }

    /// Messages between different nodes so far, and those of them that `node` has handled.
    pub(crate) fn traffic(&self, node: NodeId) -> (u64, u64) {
        (self.stage.messages.total(), self.heard[node.index()])
    }

    /// A property that was broken on the way.
    pub(crate) fn violation(&self) -> Option<String> {
        let violation = self.stage.violation()?;
        Some(format!("{}: {}", violation.property, violation.text))
    }

    /// All users speak at the first instant; then time passes until somebody leads, or until
    /// `horizon`.
    pub(crate) fn elect(mut self, cast: &Cast, horizon: RealTime) -> Finish {
        let nodes: Vec<NodeId> = self.stage.world.nodes().collect();
        for node in nodes {
            for command in self.stage.subject.opening(&cast.constants, cast.roles[node.index()]) {
                self.act(RealTime(0), &Action::Tell(node, command), node);
            }
        }
        let mut elected = None;
        while let Some(Reverse((at, number, pending))) = self.queue.pop() {
            if at > horizon || self.stage.is_over() || elected.is_some() {
                break;
            }
            if let Some(node) = self.happen(at, number, pending) {
                elected = self.leads(node).then_some(at);
            }
        }
        let messages = self.stage.messages.total();
        Finish { elected, messages, violation: self.violation() }
    }

    fn leads(&self, node: NodeId) -> bool {
        let host = self.stage.world.host(node);
        let reading = host.reading(self.stage.world.now);
        host.process.as_ref().is_some_and(|process| process.leadership(GroupId(0), reading).is_some())
    }

    /// Lets one entry of the queue happen, and says to whom.
    fn happen(&mut self, at: RealTime, number: u64, pending: Pending) -> Option<NodeId> {
        match pending {
            Pending::Arrive(flight) => {
                let name = self.stage.world.flight(flight)?.name;
                if self.handling == 0 || name.from == name.to {
                    return self.take(at, flight, at);
                }
                let busy = &mut self.busy[name.to.index()];
                *busy = at.max(*busy).after(self.handling);
                let handled = *busy;
                self.enter(handled, Pending::Handled(flight, at));
                None
            }
            Pending::Handled(flight, arrived) => self.take(at, flight, arrived),
            Pending::Wake(node) => {
                let armed = &mut self.armed[node.index()];
                let (deadline, _) = armed.take_if(|(_, armed)| *armed == number)?; // Otherwise set anew meanwhile.
                let free = self.busy[node.index()];
                if free > at {
                    self.enter(free, Pending::Wake(node));
                    self.armed[node.index()] = Some((deadline, self.entered));
                    return None;
                }
                self.act(at, &Action::Wake(node), node);
                Some(node)
            }
        }
    }

    /// Hands over a message that arrived then.
    fn take(&mut self, at: RealTime, flight: FlightId, arrived: RealTime) -> Option<NodeId> {
        let name = self.stage.world.flight(flight)?.name;
        self.heard[name.to.index()] += u64::from(name.from != name.to);
        self.act(at, &Action::Deliver { flight, arrived }, name.to);
        self.stage.world.forget(flight);
        Some(name.to)
    }

    fn act(
        &mut self,
        at: RealTime,
        action: &Action<<S::Machine as Protocol>::Command, FlightId>,
        node: NodeId,
    ) {
        if self.stage.act(at, action, &mut self.choices) {
            self.route();
            self.attend(node);
        }
    }

    /// Every message that has just left arrives.
    fn route(&mut self) {
        let now = self.stage.world.now;
        for i in 0..self.stage.world.sent.len() {
            let id = self.stage.world.sent[i];
            let Some(name) = self.stage.world.flight(id).map(|flight| flight.name) else { continue };
            let delay = if name.from == name.to { 0 } else { self.links.between(1, self.longest_delay) };
            self.enter(now.after(delay), Pending::Arrive(id));
        }
    }

    /// After anything happened to a node: its disk writes at once, and it is woken when it wants to
    /// be.
    fn attend(&mut self, node: NodeId) {
        let now = self.stage.world.now;
        if self.stage.world.host(node).oldest_unwritten().is_some() {
            self.stage.act(now, &Action::Written { node, given: now }, &mut self.choices);
            self.route();
        }
        let host = self.stage.world.host(node);
        let wanted = host.process.as_ref().and_then(Protocol::next_deadline);
        let armed = self.armed[node.index()].map(|(deadline, _)| deadline);
        if let Some(deadline) = wanted.filter(|wanted| Some(*wanted) != armed) {
            let at = host.reading_reaches(deadline).max(now);
            self.enter(at, Pending::Wake(node));
            self.armed[node.index()] = Some((deadline, self.entered));
        } else if wanted.is_none() {
            self.armed[node.index()] = None;
        }
    }

    fn enter(&mut self, at: RealTime, pending: Pending) {
        self.entered += 1;
        self.queue.push(Reverse((at, self.entered, pending)));
    }
}
