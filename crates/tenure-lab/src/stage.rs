//! The stage: a world, its judge, its counts and its recorder, moved together.
//!
//! Simulation and replay differ only in where actions come from. This module says once what an
//! action does, how it is judged, counted and written down.

use tenure_proto::quorum::Quorums;
use tenure_proto::{Chooser, Elects, GroupId, NodeId, Protocol};

use crate::count::Counts;
use crate::property::{Judge, Outside, Property, Status, Tenure, Violation};
use crate::random::Recording;
use crate::record::Recorder;
use crate::subject::{Assumption, Constants, LeaderThreads, Role, Subject, company};
use crate::world::{Action, Clock, Dial, FlightId, Foundation, Freeze, How, RealTime, World, node_id};

/// The commands of a subject.
pub type Command<S> = <<S as Subject>::Machine as Protocol>::Command;

/// The parts of a run, before anything happens.
#[derive(Clone, Debug)]
pub struct Cast {
    /// The grantors and their quorums.
    pub quorums: Quorums,
    /// The protocol's constants.
    pub constants: Constants,
    /// One clock a host.
    pub clocks: Vec<Clock>,
    /// The role of each host.
    pub roles: Vec<Role>,
}

impl Cast {
    /// The cast of a run with this many founding members. An error says what does not fit.
    pub fn new<S: Subject>(
        quorums: &str,
        members: usize,
        constants: Constants,
        clocks: Vec<Clock>,
    ) -> Result<Self, String> {
        let roles = S::roles(&constants, members)?;
        if roles.len() != clocks.len() {
            let (who, clocks) = (company(&roles), clocks.len());
            return Err(format!("{who}, but {clocks} clocks: each needs a clock"));
        }
        let members = (0..members).map(node_id).collect();
        let quorums = Quorums::parse(quorums, members).map_err(|error| error.to_string())?;
        Ok(Self { quorums, constants, clocks, roles })
    }
}

/// The observers of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch<'a> {
    /// Judge properties.
    pub properties: bool,
    /// Write everything down.
    pub record: bool,
    /// Look for a violation of this property alone.
    pub only: Option<&'a str>,
    /// Go on after a violation, to see what else follows from it.
    pub go_on: bool,
    /// Properties that rest on the network are not owed: the world is for other protocols, and
    /// grants nothing on which this one relies.
    pub unowed: bool,
}

/// A run in progress.
pub struct Stage<'s, S: Subject> {
    /// The protocol.
    pub subject: &'s S,
    /// The world.
    pub world: World<S::Machine>,
    /// The counts of events.
    pub counts: Counts,
    /// Messages between different nodes, by kind.
    pub messages: Counts,
    /// How many actions were carried out.
    pub events: u64,
    watch: Watch<'s>,
    judge: Option<S::Judge>,
    threads: Vec<LeaderThreads>,
    recorder: Option<Recorder<S>>,
    /// Messages and renewals up to the instant from which leaders must stay.
    before_calm: Option<(u64, u64)>,
}

/// The traffic of settled groups, and whether they stay settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calm {
    /// Since when leaders must be there and stay.
    pub from: RealTime,
    /// How often since then a leader was followed by another, or by nobody.
    pub changes: u64,
    /// Renewals since then.
    pub renewals: u64,
    /// Messages between different nodes since then.
    pub messages: u64,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome<C> {
    /// The first violation, of those that were looked for.
    pub violation: Option<Violation>,
    /// The first violation of each property.
    pub violations: Vec<Violation>,
    /// The outcome of each property.
    pub properties: Vec<(Property, Status)>,
    /// The leader at the end.
    pub leader: Option<NodeId>,
    /// Messages by kind.
    pub messages: Counts,
    /// The counts of events.
    pub counts: Counts,
    /// When the run ended.
    pub time: RealTime,
    /// How many actions it had.
    pub events: u64,
    /// The leaders, and when each led.
    pub tenures: Vec<Tenure>,
    /// The traffic in the time in which leaders must stay, if it came.
    pub calm: Option<Calm>,
    /// The minutes and the drawing, if they were wanted.
    pub record: Option<crate::record::Record<C>>,
}

impl<'s, S: Subject> Stage<'s, S> {
    /// Sets the stage. An error says which constant to change. Messages are kept after their
    /// delivery if a record or a script (`by_name`) must be able to name them.
    pub fn new(
        subject: &'s S,
        cast: &Cast,
        watch: Watch<'s>,
        by_name: bool,
        chooser: &mut dyn Chooser,
    ) -> Result<Self, String> {
        let config = subject.config(&cast.quorums, &cast.constants)?;
        let foundation = Foundation {
            config,
            clocks: cast.clocks.clone(),
            tick: tenure_proto::time::LocalSpan::from_nanos(cast.constants.get("tick")),
            synchronised: matches!(subject.assumption(&cast.constants), Assumption::Skew { .. }),
            founding: Vec::new(),
            on_resume: S::on_resume(),
            forger: S::forged,
            flaws: subject.flaws(),
            keeps_flights: watch.record || by_name,
        };
        let world = World::new(foundation, chooser);
        let recorder = watch.record.then(|| Recorder::new(&world, &cast.roles));
        let judge = watch.properties.then(|| subject.judge(&cast.quorums, &cast.constants));
        let (mut counts, mut messages) = (Counts::default(), Counts::default());
        counts.expect(subject.count_kinds());
        messages.expect(&subject.message_kinds());
        let threads = vec![LeaderThreads::new(subject.order()); world.hosts.len()];
        Ok(Self {
            subject,
            world,
            counts,
            messages,
            events: 0,
            watch,
            judge,
            threads,
            recorder,
            before_calm: None,
        })
    }

    /// Carries out one action, judges it, counts it, writes it down. Says whether it was possible.
    pub fn act(
        &mut self,
        at: RealTime,
        action: &Action<Command<S>, FlightId>,
        chooser: &mut dyn Chooser,
    ) -> bool {
        if let Some(judge) = &mut self.judge {
            judge.pass(&self.world, at);
            if self.before_calm.is_none() && judge.settled().is_some() {
                self.before_calm = Some((self.messages.total(), self.counts.get("renewals")));
            }
        }
        let (done, draws) = if self.recorder.is_some() {
            let mut recording = Recording::new(chooser);
            let done = self.world.act(at, action, &mut recording);
            (done, recording.draws)
        } else {
            (self.world.act(at, action, chooser), Vec::new())
        };
        if !done {
            return false;
        }
        self.events += 1;
        let words = self.tell_threads(action);
        if let (Some(judge), Some((node, outside))) = (&mut self.judge, actor(action, &self.world)) {
            let killed = self.world.killed.is_some() && outside == Outside::Step;
            let outside = if killed { Outside::Killed } else { outside };
            judge.observe(&self.world, node, outside);
        }
        if let (Some(judge), Action::Network(text)) = (&mut self.judge, action) {
            judge.network(&self.world, text);
        }
        self.count(action);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(&self.world, action, draws, words);
        }
        self.finish_kill();
        true
    }

    /// Ends a process that is killed inside the step just taken. The step was judged by what was
    /// carried out of it; now its process is gone. Its messages stay to be routed.
    fn finish_kill(&mut self) {
        let Some((node, _)) = self.world.killed else { return };
        let sent = std::mem::take(&mut self.world.sent);
        self.world.published.clear();
        self.world.finish_kill();
        self.threads[node.index()].close();
        self.counts.add("crashes");
        self.counts.add("crashes-inside-a-step");
        self.counts.add_many("records-lost-in-crash", self.world.records_lost as u64);
        if let Some(judge) = &mut self.judge {
            judge.observe(&self.world, node, Outside::Crashed);
        }
        self.world.sent = sent;
    }

    /// Tells the users' threads what their processes published, or lets one of them take a step.
    fn tell_threads(&mut self, action: &Action<Command<S>, FlightId>) -> Option<String> {
        for (node, _, event) in &self.world.published {
            S::tell_threads(&mut self.threads[node.index()], event);
        }
        match action {
            Action::Crash(node) => self.threads[node.index()].close(),
            Action::Work(node, thread) => return self.work(*node, *thread),
            _ => {}
        }
        None
    }

    fn work(&mut self, node: NodeId, thread: u8) -> Option<String> {
        let host = self.world.host(node);
        let reading = host.reading(self.world.now);
        let process = host.process.as_ref();
        let led = process.is_some_and(|process| process.leadership(GroupId(0), reading).is_some());
        let threads = &mut self.threads[node.index()];
        threads.saw(host.last_seen());
        let made = threads.step(thread, reading, self.world.now, led)?;
        self.counts.add("edicts");
        let words =
            format!("{node} holds edict {} of term {} for valid", made.by_term.number, made.by_term.tag);
        if let Some(judge) = &mut self.judge {
            judge.edict(&self.world, node, made);
        }
        Some(words)
    }

    /// Whether a thread of a node has something to do.
    pub fn is_working(&self, node: NodeId) -> bool {
        self.threads[node.index()].is_open()
    }

    fn count(&mut self, action: &Action<Command<S>, FlightId>) {
        for (_, _, event) in &self.world.published {
            S::count(event, &mut self.counts);
        }
        for id in &self.world.sent {
            let flight = self.world.flight(*id).filter(|flight| flight.name.from != flight.name.to);
            if let Some(flight) = flight {
                self.messages.add(S::message_kind(&flight.message));
            }
        }
        match action {
            Action::Crash(_) => {
                self.counts.add("crashes");
                self.counts.add_many("records-lost-in-crash", self.world.records_lost as u64);
            }
            Action::Start(_, how) => self.counts.add(match how {
                How::Restart => "restarts",
                How::Elsewhere => "restarts-elsewhere",
                How::Reboot => "reboots",
                How::DiskLost => "disks-lost",
            }),
            Action::Freeze(_, Freeze::Pause) => self.counts.add("pauses"),
            Action::Freeze(_, Freeze::Suspend) => self.counts.add("suspends"),
            Action::Freeze(_, Freeze::Coarse(_)) => {
                self.counts.add("suspends");
                self.counts.add("suspends-counted-coarsely");
            }
            Action::Tell(..) => self.counts.add("commands"),
            Action::Step { dial: Dial::Clock, .. } => self.counts.add("clock-steps"),
            Action::Step { dial: Dial::TimeOfDay, .. } => self.counts.add("time-of-day-steps"),
            Action::Forge { .. } => self.counts.add("messages-forged"),
            Action::Deliver { .. } | Action::Wake(_) | Action::Written { .. } => {}
            Action::Thaw(_) | Action::Network(_) | Action::Work(..) => {}
        }
    }

    /// The faults have healed.
    pub fn healed(&mut self, at: RealTime) {
        if let Some(judge) = &mut self.judge {
            judge.pass(&self.world, at);
            self.world.now = at.max(self.world.now);
            judge.healed(&self.world);
        }
    }

    /// The first violation, of those that are looked for.
    pub fn violation(&self) -> Option<&Violation> {
        self.judge.as_ref()?.violations().iter().find(|violation| self.is_wanted(violation))
    }

    fn is_wanted(&self, violation: &Violation) -> bool {
        self.watch.only.is_none_or(|only| only == violation.property) && self.is_owed(violation.property)
    }

    fn is_owed(&self, name: &str) -> bool {
        !self.watch.unowed
            || !self.subject.properties().iter().any(|known| known.name == name && S::rests_on_network(known))
    }

    /// The outcome of each property. A property that was not owed is neither kept nor broken.
    fn statuses(&self) -> Vec<(Property, Status)> {
        let mut statuses = self.judge.as_ref().map(Judge::report).unwrap_or_default();
        for (property, status) in &mut statuses {
            if !self.is_owed(property.name) {
                *status = Status::Exempt;
            }
        }
        statuses
    }

    /// Whether a violation has ended the run.
    pub fn is_over(&self) -> bool {
        !self.watch.go_on && self.violation().is_some()
    }

    fn calm(&self) -> Option<Calm> {
        let judge = self.judge.as_ref()?;
        let (messages, renewals) = self.before_calm?;
        Some(Calm {
            from: judge.settled()?,
            changes: judge.changes(),
            renewals: self.counts.get("renewals") - renewals,
            messages: self.messages.total() - messages,
        })
    }

    /// Lets the remaining time pass and closes the run.
    pub fn end(mut self, at: RealTime) -> Outcome<Command<S>> {
        let at = at.max(self.world.now);
        let over = self.is_over();
        if let Some(judge) = self.judge.as_mut().filter(|_| !over) {
            judge.pass(&self.world, at);
            self.world.now = at;
            judge.end(&self.world);
        }
        for (name, many) in self.judge.iter().flat_map(Judge::figures) {
            self.counts.add_many(name, many);
        }
        for (name, height) in self.judge.iter().flat_map(Judge::peaks) {
            self.counts.raise(name, height);
        }
        let calm = self.calm();
        let tenures =
            self.judge.as_ref().map(|judge| judge.tenures().iter().map(|t| until(*t, at)).collect());
        let violation = self.violation().cloned();
        let violations = self.judge.as_ref().map(|judge| judge.violations().to_vec()).unwrap_or_default();
        let violations =
            violations.into_iter().filter(|violation| self.is_owed(violation.property)).collect();
        Outcome {
            properties: self.statuses(),
            leader: self.judge.as_ref().and_then(Judge::leader),
            record: self.recorder.map(|recorder| recorder.finish(&self.world, at, violation.as_ref())),
            violation,
            violations,
            calm,
            tenures: tenures.unwrap_or_default(),
            messages: self.messages,
            counts: self.counts,
            time: at,
            events: self.events,
        }
    }
}

/// A tenure as far as it was seen.
fn until(tenure: Tenure, end: RealTime) -> Tenure {
    Tenure { until: tenure.until.min(end), ..tenure }
}

/// Whom an action concerns, and how.
fn actor<P: Protocol, C>(action: &Action<C, FlightId>, world: &World<P>) -> Option<(NodeId, Outside)> {
    match action {
        Action::Deliver { flight, .. } | Action::Forge { flight, .. } => {
            Some((world.flight(*flight)?.name.to, Outside::Step))
        }
        Action::Wake(node) | Action::Tell(node, _) => Some((*node, Outside::Step)),
        Action::Start(node, _) => Some((*node, Outside::Started)),
        Action::Written { node, .. } => Some((*node, Outside::Step)),
        Action::Crash(node) => Some((*node, Outside::Crashed)),
        Action::Freeze(node, _) | Action::Thaw(node) | Action::Step { node, .. } => {
            Some((*node, Outside::ClockDisturbed))
        }
        Action::Network(_) | Action::Work(..) => None,
    }
}
