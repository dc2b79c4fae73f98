//! Elections among processes that know each other's names, and that may crash.
//!
//! The first lecture: N processes, each with a name and an attribute. Any process may call an
//! election, several may at once, and the caller must not matter: the best living process wins, by
//! (attribute, name).
//!
//! * **Safety.** Each process has elected nobody, or the best of those that live.
//! * **Liveness.** In the end each one that lives has elected somebody.
//!
//! | algorithm | messages, nobody crashing meanwhile | time |
//! |---|---|---|
//! | [`trivial`] | N² - 1 | 2 |
//! | [`ring`] | j + 2N, called j hops before the best: 2N to 3N - 1 | the same |
//! | [`bully`] | N² - N - 1 at most, N - 2 at least (N counts the crashed one) | 4D, 1 |
//! | [`by_consensus`] | one instance of consensus: 5(N - 1) | 5 |
//! | [`by_election`] | as the election it stands on: consensus from an election | |
//!
//! # Assumptions
//!
//! A failure detector ([`Watch`]): heartbeats every T, silence for more than T + D is suspicious.
//! Where messages take at most D it is right about everybody, and safety and liveness hold a while
//! ([`Algorithm::settle`]) after the last crash. Where they take longer nothing holds: a **missed**
//! crash leaves a dead coordinator elected, a **false** alarm makes two coordinators, and false
//! alarms forever make elections forever. The laboratory finds a run of each. Only
//! [`by_consensus`] never has two winners of one term, whatever the network does; what it gives up
//! is to end in time.
//!
//! The machine is [`Named`]: detector, election, and nothing else. An election is a struct with an
//! [`Algorithm`].

pub mod bully;
pub mod by_consensus;
pub mod by_election;
pub mod ring;
mod rules;
#[cfg(test)]
mod tests;
pub mod trivial;
mod watch;

pub use bully::Bully;
pub use by_consensus::ByConsensus;
pub use by_election::ByElection;
pub use ring::Ring;
pub use rules::{Rules, Sound};
pub use trivial::Trivial;
pub use watch::{Sight, Watch};

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::boot::Boot;
use crate::time::LocalSpan;
use crate::{Context, Data, Elects, GroupId, Input, LocalTime, NodeId, Protocol};

/// The rank by which processes are compared: the greatest is the best. The name breaks ties, so no
/// two are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// Free disk, the inverse of the load, a version: the more the better. All the same where names
    /// alone count.
    pub attr: u64,
    /// The process.
    pub id: NodeId,
}

/// A run of an election: the process that called it, and the term. A later term is a later run; of
/// two callers in one term the one with the greater name goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// Larger than any that the caller knew of.
    pub term: u64,
    /// The process that called the election; the number of its name.
    pub caller: u64,
}

/// The processes that call a new election when the winner on a ring crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repair {
    /// Only so many of its predecessors on the ring.
    Neighbours(u64),
    /// Every process that suspects it.
    Detector,
}

/// The configuration, the same on every process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config<R> {
    /// The attribute of each process, by name. Only a bully looks at those of others: it must know
    /// which are higher.
    pub attrs: Arc<[u64]>,
    /// D: the longest time that a message takes, with the time to handle it.
    pub delay: LocalSpan,
    /// T: the period of heartbeats. Zero: none are sent, and nobody is suspected unless told so.
    pub period: LocalSpan,
    /// The quality of the detector.
    pub sight: Sight,
    /// The way in which a ring is repaired.
    pub repair: Repair,
    /// The rules of the election.
    pub rules: R,
}

impl<R> Config<R> {
    /// How many processes there are, living or not: N.
    pub fn size(&self) -> usize {
        self.attrs.len()
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = NodeId> + use<R> {
        (0..self.attrs.len() as u64).map(NodeId)
    }

    /// The rank of a process.
    pub fn rank(&self, id: NodeId) -> Rank {
        Rank { attr: self.attrs.get(id.index()).copied().unwrap_or(0), id }
    }

    /// A multiple of D.
    pub fn delays(&self, many: usize) -> LocalSpan {
        self.delay.times(u32::try_from(many).unwrap_or(u32::MAX))
    }

    /// The longest time for which a crash goes unnoticed where messages take at most D: the last
    /// heartbeat took all of D, and then T + D of silence.
    pub fn detection(&self) -> LocalSpan {
        self.period.plus(self.delays(2))
    }
}

/// A request of a process's user, or the verdict of an external detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Call an election.
    Call,
    /// Reports that a process seems to have crashed.
    Suspect(NodeId),
    /// Reports that a process lives after all.
    Trust(NodeId),
}

/// A message between two processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message<M> {
    /// A heartbeat.
    Beat,
    /// A message of the election.
    Word(M),
}

/// An event at a process, for users and properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The process takes part in an election from now on.
    Opened,
    /// The process takes part in it no more.
    Closed,
    /// The process sets `elected`.
    Elected {
        /// The elected process.
        who: NodeId,
        /// The term, where elections have terms that nobody shares.
        term: Option<u64>,
    },
    /// The process suspects another.
    Suspects(NodeId),
    /// The process trusts another again.
    Trusts(NodeId),
    /// The process decides a bit.
    Decided {
        /// The bit.
        value: bool,
    },
    /// The process came back, and takes no part: in its model a crashed process stays crashed.
    Gone,
    /// The process lost its disk, and votes no more.
    Mute,
}

/// State that survives a crash: the votes of [`by_consensus`]. The other elections keep nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell(pub by_consensus::Acceptor);

impl crate::Record for Cell {
    type Key = ();
    fn key(&self) {}
}

/// An election: one process's part in it.
pub trait Algorithm<R: Rules>: Data {
    /// A message of this election.
    type Message: Data;

    /// Makes a process that has elected nobody and takes part in nothing.
    fn new(config: &Config<R>, me: NodeId, boot: &Boot<Cell>) -> Self;
    /// Calls an election, unless one is open.
    fn call(&mut self, desk: &mut Desk<'_, Self::Message, R>);
    /// Handles a message.
    fn hear(&mut self, from: NodeId, message: Self::Message, desk: &mut Desk<'_, Self::Message, R>);
    /// Handles a new suspicion of the detector.
    fn suspect(&mut self, whom: NodeId, desk: &mut Desk<'_, Self::Message, R>);
    /// Handles the end of a suspicion.
    fn trust(&mut self, whom: NodeId, desk: &mut Desk<'_, Self::Message, R>);
    /// Handles the deadline.
    fn deadline(&mut self, desk: &mut Desk<'_, Self::Message, R>);
    /// The deadline at which it wants to be called.
    fn next_deadline(&self) -> Option<LocalTime>;
    /// Whether it takes part at all.
    fn takes_part(&self) -> bool {
        true
    }
    /// Whether it can vote.
    fn votes(&self) -> bool {
        true
    }
    /// Where messages take at most D: how long after the last crash or start, at most, until all
    /// that live have elected the best of them.
    fn settle(config: &Config<R>) -> LocalSpan;
}

/// An act that an election wants done, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Act<M> {
    Send(NodeId, M),
    /// Later messages of the same step wait until this is durable.
    Keep(Cell),
    Tell(Event),
}

/// One step of an election: its questions and its acts.
pub struct Desk<'a, M, R> {
    /// The process that takes the step.
    pub me: NodeId,
    /// The time of the step, by its clock.
    pub now: LocalTime,
    /// The configuration of this process.
    pub config: &'a Config<R>,
    suspected: &'a BTreeSet<NodeId>,
    elected: &'a mut Option<NodeId>,
    acts: Vec<Act<M>>,
}

impl<M: Clone, R: Rules> Desk<'_, M, R> {
    /// The rules.
    pub fn rules(&self) -> &R {
        &self.config.rules
    }

    /// The rank of this process.
    pub fn rank(&self) -> Rank {
        self.config.rank(self.me)
    }

    /// Whether a process seems to have crashed.
    pub fn suspects(&self, whom: NodeId) -> bool {
        self.suspected.contains(&whom)
    }

    /// The process that this one has elected.
    pub fn elected(&self) -> Option<NodeId> {
        *self.elected
    }

    /// All the others.
    pub fn others(&self) -> impl Iterator<Item = NodeId> + use<M, R> {
        let me = self.me;
        self.config.names().filter(move |name| *name != me)
    }

    /// Sends a message to one process.
    pub fn send(&mut self, to: NodeId, message: M) {
        self.acts.push(Act::Send(to, message));
    }

    /// Sends a message to many, as one step: a crash comes before it or after it.
    pub fn send_all(&mut self, to: impl IntoIterator<Item = NodeId>, message: &M) {
        to.into_iter().for_each(|to| self.send(to, message.clone()));
    }

    /// Keeps a record over a crash. Later messages of this step leave when it is durable.
    pub fn keep(&mut self, cell: Cell) {
        self.acts.push(Act::Keep(cell));
    }

    /// Elects a process.
    pub fn elect(&mut self, who: NodeId, term: Option<u64>) {
        *self.elected = Some(who);
        self.tell(Event::Elected { who, term });
    }

    /// Publishes an event.
    pub fn tell(&mut self, event: Event) {
        self.acts.push(Act::Tell(event));
    }

    /// Lets another election take this step, whose messages are a part of this one's.
    pub fn lend<N>(&mut self, wrap: impl Fn(N) -> M, step: impl FnOnce(&mut Desk<'_, N, R>)) {
        let Self { me, now, config, suspected, .. } = *self;
        let mut desk = Desk { me, now, config, suspected, elected: self.elected, acts: Vec::new() };
        step(&mut desk);
        let wrapped = desk.acts.into_iter().map(|act| match act {
            Act::Send(to, message) => Act::Send(to, wrap(message)),
            Act::Keep(cell) => Act::Keep(cell),
            Act::Tell(event) => Act::Tell(event),
        });
        self.acts.extend(wrapped);
    }

    /// Whether this process may open an election, where `open` says whether one is. If so, the
    /// opening is published.
    pub fn opens(&mut self, open: bool) -> bool {
        let opens = self.rules().may_open(open);
        if opens {
            self.tell(Event::Opened);
        }
        opens
    }
}

/// A process: its detector and its part in an election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Named<A, R> {
    me: NodeId,
    config: Config<R>,
    watch: Watch,
    algorithm: A,
    elected: Option<NodeId>,
}

impl<A: Algorithm<R>, R: Rules> Named<A, R> {
    /// The process that this one has elected.
    pub fn elected(&self) -> Option<NodeId> {
        self.elected
    }

    /// Whether it takes part in elections.
    pub fn takes_part(&self) -> bool {
        self.algorithm.takes_part()
    }

    /// Whether it can vote.
    pub fn votes(&self) -> bool {
        self.algorithm.votes()
    }

    /// Lets the election take a step, and does what it wants done.
    fn step(&mut self, cx: &mut Context<'_, Self>, step: impl FnOnce(&mut A, &mut Desk<'_, A::Message, R>)) {
        let mut desk = Desk {
            me: self.me,
            now: cx.now(),
            config: &self.config,
            suspected: self.watch.suspected(),
            elected: &mut self.elected,
            acts: Vec::new(),
        };
        step(&mut self.algorithm, &mut desk);
        let mut after = None;
        for act in desk.acts {
            match act {
                Act::Send(to, message) => cx.send(to, Message::Word(message), after),
                Act::Keep(cell) => after = Some(cx.persist(cell)),
                Act::Tell(event) => cx.publish(event),
            }
        }
    }

    fn beat(&self, cx: &mut Context<'_, Self>) {
        let others = self.config.names().filter(|name| *name != self.me);
        others.for_each(|to| cx.send(to, Message::Beat, None));
    }

    fn suspect(&mut self, whom: NodeId, cx: &mut Context<'_, Self>) {
        cx.publish(Event::Suspects(whom));
        self.step(cx, |algorithm, desk| algorithm.suspect(whom, desk));
    }

    fn trust(&mut self, whom: NodeId, cx: &mut Context<'_, Self>) {
        cx.publish(Event::Trusts(whom));
        self.step(cx, |algorithm, desk| algorithm.trust(whom, desk));
    }

    fn on_deadline(&mut self, cx: &mut Context<'_, Self>) {
        if self.watch.is_beat_due(cx.now()) {
            self.beat(cx);
        }
        while let Some(whom) = self.watch.next_suspect(cx.now()) {
            self.suspect(whom, cx);
        }
        if self.algorithm.next_deadline().is_some_and(|at| at <= cx.now()) {
            self.step(cx, A::deadline);
        }
    }
}

impl<A: Algorithm<R>, R: Rules> Protocol for Named<A, R> {
    type Config = Config<R>;
    type Command = Command;
    type Message = Message<A::Message>;
    type Record = Cell;
    type Event = Event;

    fn start(config: &Config<R>, me: NodeId, boot: Boot<Cell>, cx: &mut Context<'_, Self>) -> Self {
        let algorithm = A::new(config, me, &boot);
        let watch = Watch::new(config, me, cx.now());
        let process = Self { me, config: config.clone(), watch, algorithm, elected: None };
        if !process.takes_part() {
            cx.publish(Event::Gone);
            return process;
        }
        if !process.votes() {
            cx.publish(Event::Mute);
        }
        if config.period > LocalSpan::ZERO {
            process.beat(cx);
        }
        process
    }

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) {
        if !self.takes_part() {
            return;
        }
        match input {
            Input::Command(Command::Call) => self.step(cx, A::call),
            Input::Command(Command::Suspect(whom)) => {
                if whom != self.me && self.watch.suspect(whom) {
                    self.suspect(whom, cx);
                }
            }
            Input::Command(Command::Trust(whom)) => {
                if self.watch.heard(whom, cx.now()) {
                    self.trust(whom, cx);
                }
            }
            Input::Message { from, message: Message::Beat, .. } => {
                if self.watch.heard(from, cx.now()) {
                    self.trust(from, cx);
                }
            }
            Input::Message { from, message: Message::Word(message), .. } => {
                self.step(cx, |algorithm, desk| algorithm.hear(from, message, desk));
            }
            Input::Deadline => self.on_deadline(cx),
        }
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        if !self.takes_part() {
            return None;
        }
        [self.watch.next_deadline(), self.algorithm.next_deadline()].into_iter().flatten().min()
    }
}

impl<A: Algorithm<R>, R: Rules> Elects for Named<A, R> {
    /// A process that elected itself leads until it hears otherwise: there is no lease, and so no
    /// end.
    fn leadership(&self, _group: GroupId, _now: LocalTime) -> Option<LocalTime> {
        (self.elected == Some(self.me) && self.takes_part()).then_some(LocalTime::from_nanos(u64::MAX))
    }
}
