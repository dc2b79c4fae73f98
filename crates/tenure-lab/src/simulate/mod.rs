//! Runs a protocol through everything that a seed has in store: first a time that breaks, then one
//! that heals.
//!
//! One seed gives one run, byte for byte the same on every machine. Chance is split into streams,
//! so that the order in which the simulation asks for one kind of luck changes no other.

mod faults;
mod forge;
mod network;
mod pace;
mod perform;
mod plan;
pub(crate) mod worlds;

pub(crate) use network::Shape;
pub(crate) use perform::{Performed, perform};

pub use faults::{FAULTS, Fault, Faults};
pub use plan::Setup;
pub use worlds::{Named, WORLDS};

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tenure_proto::{LocalTime, NodeId, Protocol};

use crate::random::Random;
use crate::script::{Expect, Script};
use crate::stage::{Cast, Command, Outcome, Stage, Watch};
use crate::subject::leader_threads::THREADS;
use crate::subject::{Assumption, Subject};
use crate::world::{
    Action, Dial, FlightId, Freeze, How, Interrupt, RealTime, Stretch, clock::MILLI, node_id,
};
use forge::Forged;
use pace::Pace;
use perform::Performance;
use plan::{Disaster, EPOCH, Plan};
use worlds::Letter;

/// An event that is going to happen.
#[derive(Clone, Debug)]
enum Pending {
    Arrive(FlightId),
    /// A message that piled up while its receiver was paused.
    Late(FlightId, RealTime),
    /// A process says something in another's name.
    Forge(Forged),
    Wake(NodeId),
    Work(NodeId, u8),
    Written(NodeId, RealTime),
    Start(NodeId, How),
    Opening(NodeId),
    Thaw(NodeId),
    Disaster(usize),
    /// A line of a play.
    Cue(usize),
    Heal,
    /// The last message of the storm has arrived: from here on liveness is owed.
    Owe,
}

/// An entry of the queue: the earliest first, and of those the one entered first.
struct Entry {
    at: RealTime,
    number: u64,
    pending: Pending,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// The simulation's state for a node.
#[derive(Clone, Debug, Default)]
struct Desk {
    /// The deadline for which a wake-up is in the queue, and that entry's number.
    armed: Option<(LocalTime, u64)>,
    /// Messages that came while the process was paused.
    backlog: Vec<(FlightId, RealTime)>,
    /// Whether a write is under way.
    writing: bool,
    /// Which threads have a step in the queue.
    working: [bool; THREADS as usize],
    /// In which of its next steps the process is to be killed.
    doom: Option<Doom>,
}

/// A process is to be killed inside a step that is still to come.
#[derive(Clone, Copy, Debug)]
struct Doom {
    interrupt: Interrupt,
    /// How it comes back, after how long, in nanoseconds, and not before when; in a play a line
    /// says so.
    back: Option<(How, u64, RealTime)>,
    /// The line of the play that says so.
    cue: Option<usize>,
}

struct Simulation<'s, S: Subject> {
    stage: Stage<'s, S>,
    plan: Plan,
    queue: BinaryHeap<Entry>,
    entered: u64,
    desks: Vec<Desk>,
    /// How many copies of each message are still on their way.
    copies: Vec<u8>,
    /// On each link the latest arrival so far: an earlier one overtakes.
    latest: Vec<RealTime>,
    shape: Shape,
    healed: bool,
    choices: Random,
    links: Random,
    pace: Pace,
    whims: Random,
    reforms: Random,
    /// The play that tells what happens, if no seed does.
    performance: Option<Performance<'s>>,
}

/// The outcome of a seed.
pub struct Simulated<C> {
    /// The run.
    pub outcome: Outcome<C>,
    /// It as a script, if it was recorded.
    pub script: Option<Script<C>>,
    /// The cast: quorums, constants, clocks and roles.
    pub cast: Cast,
}

/// Runs one seed. An error says what is wrong with the setup.
pub fn simulate<S: Subject>(
    subject: &S,
    setup: &Setup,
    seed: u64,
    watch: Watch<'_>,
) -> Result<Simulated<Command<S>>, String> {
    let plan = Plan::draw(subject, setup, seed)?;
    let (cast, owes, ends) = (plan.cast.clone(), plan.owes, plan.ends);
    let pace = Pace::Drawn(Random::stream(seed, "timing"));
    let mut simulation = Simulation::new(subject, plan, (seed, pace), watch)?;
    simulation.open();
    simulation.run();
    let mut outcome = simulation.end();
    let lines = outcome.record.as_mut().map(|record| std::mem::take(&mut record.lines));
    let script = lines.map(|lines| Script {
        remarks: Vec::new(),
        protocol: String::new(),
        mutant: None,
        seed: Some(seed),
        quorums: setup.quorums.clone(),
        members: setup.nodes,
        constants: cast.constants.clone(),
        clocks: cast.clocks.clone(),
        only: watch.only.map(str::to_owned),
        expect: outcome.violation.as_ref().map_or(Expect::Holds, |v| Expect::Broken(v.property.to_owned())),
        heals: Some(owes),
        ends: if outcome.violation.is_some() && !watch.go_on { outcome.time } else { ends },
        lines,
    });
    Ok(Simulated { outcome, script, cast })
}

impl<'s, S: Subject> Simulation<'s, S> {
    fn new(subject: &'s S, plan: Plan, (seed, pace): (u64, Pace), watch: Watch<'s>) -> Result<Self, String> {
        let mut choices = Random::stream(seed, "choices");
        let stage = Stage::new(subject, &plan.cast, watch, false, &mut choices)?;
        let nodes = stage.world.hosts.len();
        Ok(Self {
            stage,
            plan,
            queue: BinaryHeap::new(),
            entered: 0,
            desks: vec![Desk::default(); nodes],
            copies: Vec::new(),
            latest: vec![RealTime(0); nodes * nodes],
            shape: Shape::whole(nodes),
            healed: false,
            choices,
            links: Random::stream(seed, "links"),
            pace,
            whims: Random::stream(seed, "whims"),
            reforms: Random::stream(seed, "reforms"),
            performance: None,
        })
    }

    fn expect_counts(&mut self) {
        self.stage.counts.expect(&[
            "crashes",
            "crashes-inside-a-step",
            "restarts",
            "restarts-elsewhere",
            "reboots",
            "disks-lost",
            "pauses",
            "suspends",
            "partitions-split",
            "partitions-one-way",
            "partitions-bridge",
            "partitions-chain",
            "partitions-isolated",
            "partitions-moving-set",
            "messages-lost",
            "messages-cut",
            "messages-duplicated",
            "messages-reordered",
            "records-lost-in-crash",
            "writes-slow",
            "wakes-late",
            "messages-piled-up",
            "clocks-at-extreme",
            "clock-rate-changes",
            "commands",
        ]);
    }

    fn open(&mut self) {
        self.expect_counts();
        if self.plan.heals.0 > 0 && self.plan.adversary.is_none() {
            self.stage.counts.add(self.plan.links.manner());
        }
        self.count_clocks();
        for node in 0..self.desks.len() {
            let soon = RealTime(self.pace.until_opening());
            self.enter(soon, Pending::Opening(node_id(node)));
            self.attend(node_id(node));
        }
        for i in 0..self.plan.disasters.len() {
            self.enter(self.plan.disasters[i].0, Pending::Disaster(i));
        }
        if self.plan.adversary.is_none() {
            self.enter(self.plan.heals, Pending::Heal);
        }
        self.enter(self.plan.owes, Pending::Owe);
    }

    fn count_clocks(&mut self) {
        let assumption = self.stage.subject.assumption(&self.plan.cast.constants);
        for clock in &self.plan.cast.clocks {
            let stretches: Vec<Stretch> = clock.parts().1.collect();
            let extreme = stretches.iter().any(|stretch| match assumption {
                Assumption::Drift { ppm } => u64::from(stretch.ppm.unsigned_abs()) == ppm,
                Assumption::Skew { nanos } => {
                    clock.value(stretch.from).abs_diff(EPOCH + stretch.from.0) >= nanos / 2
                }
            });
            self.stage.counts.add_many("clocks-at-extreme", u64::from(extreme));
            self.stage.counts.add_many("clock-rate-changes", stretches.len() as u64 - 1);
        }
    }

    fn enter(&mut self, at: RealTime, pending: Pending) {
        self.entered += 1;
        self.queue.push(Entry { at, number: self.entered, pending });
    }

    fn run(&mut self) {
        while let Some(entry) = self.queue.pop() {
            if entry.at > self.plan.ends {
                break;
            }
            self.happen(entry);
            self.look();
            if self.stage.is_over() {
                break;
            }
        }
    }

    fn end(self) -> Outcome<Command<S>> {
        let ends = if self.stage.is_over() { self.stage.world.now } else { self.plan.ends };
        self.stage.end(ends)
    }

    fn happen(&mut self, entry: Entry) {
        let at = entry.at;
        match entry.pending {
            Pending::Arrive(flight) => self.arrive(at, flight, at),
            Pending::Late(flight, arrived) => self.arrive(at, flight, arrived),
            Pending::Forge(forged) => _ = self.forge(at, forged),
            Pending::Wake(node) => self.wake(at, node, entry.number),
            Pending::Work(node, thread) => self.work(at, node, thread),
            Pending::Written(node, given) => self.written(at, node, given),
            Pending::Start(node, how) => self.start(at, node, how),
            Pending::Opening(node) => _ = self.opening(at, node),
            Pending::Thaw(node) => _ = self.thaw(at, node),
            Pending::Disaster(i) => self.strike(at, i),
            Pending::Cue(i) => self.cue(at, i),
            Pending::Heal => self.heal(at),
            Pending::Owe => self.stage.healed(at),
        }
    }

    /// Carries out an action and enters what follows from it.
    fn act(&mut self, at: RealTime, action: &Action<Command<S>, FlightId>, node: NodeId) -> bool {
        let doom = self.desks[node.index()].doom.filter(|_| action.is_step());
        self.stage.world.interrupt = doom.map(|doom| doom.interrupt);
        let done = self.stage.act(at, action, &mut self.choices);
        if done {
            self.route(at);
            if self.stage.world.killed.is_some() {
                self.lose(node);
                if let Some((how, down, until)) = doom.and_then(|doom| doom.back) {
                    self.enter(at.after(down).max(until), Pending::Start(node, how));
                }
            }
            self.attend(node);
        }
        done
    }

    /// Decides the fate of every message that has just left.
    fn route(&mut self, now: RealTime) {
        for i in 0..self.stage.world.sent.len() {
            let id = self.stage.world.sent[i];
            let Some(flight) = self.stage.world.flight(id) else { continue };
            let (from, to) = (flight.name.from, flight.name.to);
            let mut forged = false;
            let fate = if from == to {
                let slower = self.plan.adversary.as_mut().and_then(|all| all.to_oneself(&mut self.links));
                [Some(slower.unwrap_or_else(|| self.pace.to_oneself(&mut self.links))), None]
            } else if self.healed {
                self.plan.links.calm(&mut self.links)
            } else if let Some(adversary) = &mut self.plan.adversary {
                let message = &flight.message;
                let (kind, answers) = (S::message_kind(message), S::answers(message));
                let letter = Letter { from, to, kind, answers, number: S::number(message) };
                let fate = adversary.fate(now, letter, &mut self.links);
                self.count_lost(fate);
                fate
            } else if !self.shape.lets_through(from, to, now) {
                self.stage.counts.add("messages-cut");
                [None, None]
            } else {
                let fate = self.plan.links.stormy(now, &mut self.links);
                let fate = self.meddle(now, id, fate);
                self.count_lost(fate);
                forged = self.draw_forgery(now, id);
                fate
            };
            self.enter_copies(now, id, (from, to), (fate, forged));
        }
    }

    fn count_lost(&mut self, fate: network::Fate) {
        if fate == [None, None] {
            self.stage.counts.add("messages-lost");
        }
    }

    /// Enters what arrives of a message. It is kept for as long as somebody may say it in the
    /// sender's name.
    fn enter_copies(
        &mut self,
        now: RealTime,
        id: FlightId,
        link: (NodeId, NodeId),
        (fate, forged): (network::Fate, bool),
    ) {
        let copies = fate.iter().flatten().count();
        if self.copies.len() <= id.index() {
            self.copies.resize(id.index() + 1, 0);
        }
        self.copies[id.index()] = u8::try_from(copies + usize::from(forged)).unwrap_or(0);
        if copies == 0 && !forged {
            return self.stage.world.forget(id);
        }
        if copies > 1 {
            self.stage.counts.add("messages-duplicated");
        }
        for delay in fate.into_iter().flatten() {
            let at = now.after(delay);
            let latest = &mut self.latest[link.0.index() * self.desks.len() + link.1.index()];
            if at < *latest {
                self.stage.counts.add("messages-reordered");
            }
            *latest = at.max(*latest);
            let adversary = self.plan.adversary.as_mut();
            match adversary.map_or(0, |all| all.processing(delay, &mut self.links)) {
                0 => self.enter(at, Pending::Arrive(id)),
                before => self.enter(at, Pending::Late(id, RealTime(at.0 - before))),
            }
        }
    }

    fn arrive(&mut self, at: RealTime, flight: FlightId, arrived: RealTime) {
        let Some(to) = self.stage.world.flight(flight).map(|flight| flight.name.to) else { return };
        let host = self.stage.world.host(to);
        if let Some((Freeze::Pause, _)) = host.frozen {
            self.stage.counts.add("messages-piled-up");
            return self.desk(to).backlog.push((flight, arrived));
        }
        // A message that had arrived at an earlier life is lost with it.
        let to_this_life = arrived >= host.started;
        if !to_this_life || !self.act(at, &Action::Deliver { flight, arrived }, to) {
            self.stage.counts.add("messages-lost");
        }
        self.spend_copy(flight);
    }

    /// A process says something in another's name, if the receiver can hear it and promises to bear
    /// it.
    fn forge(&mut self, at: RealTime, Forged { flight, by, guise }: Forged) -> bool {
        let Some(to) = self.stage.world.flight(flight).map(|flight| flight.name.to) else { return false };
        let done = self.act(at, &Action::Forge { flight, by, guise }, to);
        self.spend_copy(flight);
        done
    }

    /// One of those that arrive has arrived: after the last a message is forgotten.
    fn spend_copy(&mut self, flight: FlightId) {
        let copies = &mut self.copies[flight.index()];
        *copies = copies.saturating_sub(1);
        if *copies == 0 {
            self.stage.world.forget(flight);
        }
    }

    fn wake(&mut self, at: RealTime, node: NodeId, number: u64) {
        let armed = &mut self.desk(node).armed;
        if armed.is_none_or(|(_, armed)| armed != number) {
            return; // Set anew, or forgotten in a crash.
        }
        *armed = None;
        self.act(at, &Action::Wake(node), node);
    }

    /// A thread takes a step; the next comes soon, or, between two edicts or now and then within
    /// one, much later.
    fn work(&mut self, at: RealTime, node: NodeId, thread: u8) {
        self.desk(node).working[usize::from(thread)] = false;
        self.act(at, &Action::Work(node, thread), node);
        self.attend_threads(node);
    }

    fn attend_threads(&mut self, node: NodeId) {
        if self.tells_threads() || !self.stage.world.host(node).is_up() || !self.stage.is_working(node) {
            return;
        }
        let lease = self.plan.rhythm.act;
        for thread in 0..THREADS {
            if !std::mem::replace(&mut self.desk(node).working[usize::from(thread)], true) {
                let at = self.stage.world.now.after(self.pace.next_step(lease, thread));
                self.enter(at, Pending::Work(node, thread));
            }
        }
    }

    fn written(&mut self, at: RealTime, node: NodeId, given: RealTime) {
        self.desk(node).writing = false;
        if !self.act(at, &Action::Written { node, given }, node) {
            self.attend(node);
        }
    }

    fn desk(&mut self, node: NodeId) -> &mut Desk {
        &mut self.desks[node.index()]
    }

    /// After anything happened to a node: its next wake-up and its next write.
    fn attend(&mut self, node: NodeId) {
        let host = self.stage.world.host(node);
        if !host.is_up() {
            return;
        }
        self.attend_threads(node);
        let host = self.stage.world.host(node);
        let now = self.stage.world.now;
        let deadline = host.process.as_ref().and_then(Protocol::next_deadline);
        let unwritten = host.oldest_unwritten();
        let armed = self.desks[node.index()].armed;
        if deadline != armed.map(|(deadline, _)| deadline) {
            self.desk(node).armed = None;
            if let Some(deadline) = deadline {
                let due = self.stage.world.host(node).reading_reaches(deadline).max(now);
                let late = self.lateness();
                self.enter(due.after(late), Pending::Wake(node));
                self.desk(node).armed = Some((deadline, self.entered));
            }
        }
        if unwritten.is_some() && !self.desk(node).writing {
            self.desk(node).writing = true;
            let slowest = if self.healed { MILLI } else { self.plan.slowest_write };
            let takes = self.pace.write(slowest);
            self.stage.counts.add_many("writes-slow", u64::from(takes > 10 * MILLI));
            self.enter(now.after(takes), Pending::Written(node, now));
        }
    }

    /// How much later than wanted a process is woken.
    fn lateness(&mut self) -> u64 {
        let latest = if self.healed { 0 } else { self.plan.latest_wake };
        let (late, unusual) = self.pace.lateness(latest);
        if unusual {
            self.stage.counts.add("wakes-late");
        }
        late
    }

    fn strike(&mut self, at: RealTime, i: usize) {
        match self.plan.disasters[i].1.clone() {
            Disaster::Crash(node, how, down) => self.crash(at, node, how, down),
            Disaster::Kill { node, interrupt, how, down, until } => {
                let doom = Doom { interrupt, back: Some((how, down, until)), cue: None };
                self.stage.counts.add_many("kills-drawn", u64::from(!self.healed));
                self.desk(node).doom = Some(doom).filter(|_| !self.healed);
            }
            Disaster::Freeze(node, freeze, long) => {
                if self.act(at, &Action::Freeze(node, freeze), node) {
                    self.enter(at.after(long), Pending::Thaw(node));
                }
            }
            Disaster::Cut(shape) => {
                self.stage.counts.add(shape.kind);
                self.network(at, shape);
            }
            Disaster::Join => self.network(at, Shape::whole(self.desks.len())),
            Disaster::News(text) => {
                self.stage.act(at, &Action::Network(text), &mut self.choices);
            }
            Disaster::SetTime(node, by) => {
                self.act(at, &Action::Step { node, dial: Dial::TimeOfDay, by }, node);
            }
            Disaster::Whim(node) => {
                let Cast { constants, roles, .. } = &self.plan.cast;
                let command = self.stage.subject.whim(&mut self.whims, constants, roles, node);
                self.act(at, &Action::Tell(node, command), node);
            }
            Disaster::Reform(_) if self.healed && !self.stage.subject.is_gapless() => {}
            Disaster::Reform(node) => {
                let nodes = self.desks.len();
                let wish = self.stage.subject.reform(&mut self.reforms, &self.plan.cast.constants, nodes);
                if let Some(command) = wish {
                    self.act(at, &Action::Tell(node, command), node);
                }
            }
        }
    }

    fn network(&mut self, at: RealTime, shape: Shape) {
        self.stage.act(at, &Action::Network(shape.text.clone()), &mut self.choices);
        self.shape = shape;
    }

    fn crash(&mut self, at: RealTime, node: NodeId, how: How, down: u64) {
        if self.fall(at, node) {
            self.enter(at.after(down), Pending::Start(node, how));
        }
    }

    /// A process ends, and with it what it had not handled.
    fn fall(&mut self, at: RealTime, node: NodeId) -> bool {
        let done = self.act(at, &Action::Crash(node), node);
        if done {
            self.lose(node);
        }
        done
    }

    /// Drops the backlog and the alarms of a process that has ended; its messages count as lost.
    fn lose(&mut self, node: NodeId) {
        let backlog = std::mem::take(&mut self.desk(node).backlog);
        self.stage.counts.add_many("messages-lost", backlog.len() as u64);
        self.desk(node).armed = None;
        self.desk(node).doom = None;
    }

    fn start(&mut self, at: RealTime, node: NodeId, how: How) {
        if self.act(at, &Action::Start(node, how), node) {
            let soon = at.after(self.pace.until_opening());
            self.enter(soon, Pending::Opening(node));
        }
    }

    fn opening(&mut self, at: RealTime, node: NodeId) -> bool {
        let Cast { constants, roles, .. } = &self.plan.cast;
        let commands = self.stage.subject.opening(constants, roles[node.index()]);
        let told = commands.into_iter().map(|command| self.act(at, &Action::Tell(node, command), node));
        told.fold(true, |all, done| all & done)
    }

    /// A process goes on: what piled up is handled now, one after the other.
    fn thaw(&mut self, at: RealTime, node: NodeId) -> bool {
        if !self.act(at, &Action::Thaw(node), node) {
            return false;
        }
        let backlog = std::mem::take(&mut self.desk(node).backlog);
        for (i, (flight, arrived)) in backlog.into_iter().enumerate() {
            self.enter(at.after(1_000 * (i as u64 + 1)), Pending::Late(flight, arrived));
        }
        true
    }

    /// The faults are over: everybody runs, the network is whole and quick.
    fn heal(&mut self, at: RealTime) {
        self.healed = true;
        self.desks.iter_mut().for_each(|desk| desk.doom = None);
        if self.plan.heals.0 > 0 {
            self.network(at, Shape::calm(self.desks.len()));
        }
        for node in 0..self.desks.len() {
            let node = node_id(node);
            self.thaw(at, node);
            if self.stage.world.host(node).process.is_none() {
                self.start(at, node, How::Restart);
            } else {
                self.enter(at, Pending::Opening(node));
            }
        }
    }
}
