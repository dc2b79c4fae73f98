//! The world: real time, machines, messages in flight. It decides nothing; it carries out
//! [`Action`]s.
//!
//! A simulation invents actions from a seed, a replay reads them from a file, a shrinker leaves
//! some out. All three go through [`World::act`], so that they cannot differ in what an action
//! means.

pub mod clock;
mod forge;
mod host;
mod kill;

pub use clock::{Clock, RealTime, Stretch};
pub use forge::{Forger, Guise};
pub use host::{Found, Host};
pub use kill::{Interrupt, Kill, Which};

use tenure_proto::time::LocalSpan;
use tenure_proto::{Chooser, Context, Effect, Input, LocalTime, NodeId, Protocol};

/// Something that happens. `F` names a message in flight: by number in a running world, by sender
/// and time in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action<C, F> {
    /// A message is handled that arrived at `arrived`, now or, at a paused process, earlier.
    Deliver {
        /// Which.
        flight: F,
        /// When it came in.
        arrived: RealTime,
    },
    /// A process handles what another says in the sender's name: see [`Guise`].
    Forge {
        /// The message from which it is made.
        flight: F,
        /// The process that says it.
        by: NodeId,
        /// The change that it makes.
        guise: Guise,
    },
    /// A process looks at its deadlines.
    Wake(NodeId),
    /// A process's user wants something.
    Tell(NodeId, C),
    /// A disk has written what it was given by then.
    Written {
        /// Whose.
        node: NodeId,
        /// All records given by then are durable.
        given: RealTime,
    },
    /// A process ends without a word; what was not written is lost.
    Crash(NodeId),
    /// A process starts again.
    Start(NodeId, How),
    /// A process or its machine stands still.
    Freeze(NodeId, Freeze),
    /// It goes on.
    Thaw(NodeId),
    /// A clock is set: from now on it shows so many nanoseconds more, or less.
    Step {
        /// Whose.
        node: NodeId,
        /// Which one.
        dial: Dial,
        /// By how much.
        by: i64,
    },
    /// A thread of a process's user takes one step towards an edict.
    Work(NodeId, u8),
    /// The network changed: for the minutes and the drawing. Its effect shows in which messages are
    /// handled.
    Network(String),
}

impl<C, F> Action<C, F> {
    /// Whether a machine takes a step by it, which has effects.
    pub fn is_step(&self) -> bool {
        let hears = matches!(self, Self::Deliver { .. } | Self::Forge { .. });
        hears || matches!(self, Self::Wake(_) | Self::Tell(..) | Self::Start(..))
    }
}

impl<C: Clone, F> Action<C, F> {
    /// The same action with its message named otherwise, if it can be.
    pub fn rename<G>(&self, rename: impl FnOnce(&F) -> Option<G>) -> Option<Action<C, G>> {
        Some(match self {
            Self::Deliver { flight, arrived } => {
                Action::Deliver { flight: rename(flight)?, arrived: *arrived }
            }
            Self::Forge { flight, by, guise } => {
                Action::Forge { flight: rename(flight)?, by: *by, guise: *guise }
            }
            Self::Wake(node) => Action::Wake(*node),
            Self::Tell(node, command) => Action::Tell(*node, command.clone()),
            Self::Written { node, given } => Action::Written { node: *node, given: *given },
            Self::Crash(node) => Action::Crash(*node),
            Self::Start(node, how) => Action::Start(*node, *how),
            Self::Freeze(node, freeze) => Action::Freeze(*node, *freeze),
            Self::Thaw(node) => Action::Thaw(*node),
            Self::Step { node, dial, by } => Action::Step { node: *node, dial: *dial, by: *by },
            Self::Work(node, thread) => Action::Work(*node, *thread),
            Self::Network(text) => Action::Network(text.clone()),
        })
    }
}

/// How a process starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// In the same place: disk and memory are there.
    Restart,
    /// In another place of the same boot (a container with a memory of its own, or back): disk, and
    /// what memory was left there.
    Elsewhere,
    /// The machine rebooted: disk alone, and the clock begins anew.
    Reboot,
    /// The disk is gone.
    DiskLost,
}

/// The part that stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Freeze {
    /// The process: its machine's clock runs on, messages pile up.
    Pause,
    /// The machine: its boot clock runs on, messages are lost.
    Suspend,
    /// The same on a machine that counts sleep coarsely: afterwards its clock shows so many
    /// nanoseconds more, or less, than it would have.
    Coarse(i64),
}

impl Freeze {
    /// Whether the whole machine stands still, which its driver can notice.
    pub fn is_of_machine(self) -> bool {
        matches!(self, Self::Suspend | Self::Coarse(_))
    }
}

/// Which of a machine's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dial {
    /// The one that its driver reads. If it is set, the assumption about clocks is broken (15).
    Clock,
    /// The time of day, which administrators and their programs may set at any time. No sound
    /// driver reads it.
    TimeOfDay,
}

/// Names a message in flight within one world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlightId(usize);

impl FlightId {
    /// Its position among the messages of its world.
    pub fn index(self) -> usize {
        self.0
    }
}

/// Names a message in a file: the `nth` that `from` sent to `to` at `sent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlightRef {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// When it left.
    pub sent: RealTime,
    /// How many left before it at the same instant for the same receiver.
    pub nth: u32,
}

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Flight<M> {
    /// Its name in a file.
    pub name: FlightRef,
    /// The message itself.
    pub message: M,
}

/// The flaws of a careless driver. Known-wrong drivers for the laboratory alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flaws {
    /// The time is read before the message is taken from the socket.
    pub stale_now: bool,
    /// The clock stops while the machine is suspended.
    pub clock_stops_in_suspend: bool,
    /// The driver does not notice that the machine was suspended.
    pub suspend_unnoticed: bool,
    /// The clock stops while the process is paused: it counts wake-ups.
    pub clock_stops_in_pause: bool,
    /// Memory outlives a reboot, and is believed without asking which boot wrote it.
    pub memory_of_any_boot: bool,
    /// Memory is believed without asking who wrote it.
    pub stale_memory: bool,
    /// A missing store is taken for a founding.
    pub missing_is_fresh: bool,
    /// A missing store is taken for an empty one of a machine that rebooted.
    pub missing_is_reboot: bool,
    /// Every life has the same incarnation.
    pub same_incarnation: bool,
    /// The disk says that a record is written, and forgets it.
    pub disk_forgets: bool,
    /// Edicts are ordered by the stamps of grantors that lost their disks, too.
    pub trusts_lost_stamps: bool,
    /// The time of day is read where a clock is wanted that nobody sets.
    pub reads_time_of_day: bool,
    /// Memory counts as this life's before the effects of its start are carried out, such as to
    /// remember a silence.
    pub claims_early: bool,
}

impl Flaws {
    /// A driver that does nothing wrong.
    pub const NONE: Self = Self {
        stale_now: false,
        clock_stops_in_suspend: false,
        suspend_unnoticed: false,
        clock_stops_in_pause: false,
        memory_of_any_boot: false,
        stale_memory: false,
        missing_is_fresh: false,
        missing_is_reboot: false,
        same_incarnation: false,
        disk_forgets: false,
        trusts_lost_stamps: false,
        reads_time_of_day: false,
        claims_early: false,
    };
}

/// The most machines that a world may have: networks keep those that a sender does not reach as
/// bits.
pub const MOST_HOSTS: usize = 64;

/// Everything there is.
#[derive(Clone, Debug)]
pub struct World<P: Protocol> {
    /// The present.
    pub now: RealTime,
    /// The machines, by node number.
    pub hosts: Vec<Host<P>>,
    /// Messages that left in the last action.
    pub sent: Vec<FlightId>,
    /// Events that processes published in the last action, in order, with their readings.
    pub published: Vec<(NodeId, LocalTime, P::Event)>,
    /// Records that the last action lost on the way to a disk.
    pub records_lost: usize,
    /// When and where the process that takes the next step is to be killed. Each action uses it up.
    pub interrupt: Option<Interrupt>,
    /// The process being killed inside the step that was the last action, and where: see
    /// [`World::finish_kill`].
    pub killed: Option<(NodeId, Kill)>,
    config: P::Config,
    on_resume: Option<P::Command>,
    forger: Forger<P>,
    flaws: Flaws,
    flights: Vec<Option<Flight<P::Message>>>,
    free: Vec<FlightId>,
    /// Whether delivered messages are kept, so that a file can name them.
    keeps_flights: bool,
    effects: Vec<Effect<P>>,
}

/// The parts that a world is made of.
pub struct Foundation<P: Protocol> {
    /// The configuration, the same on every process.
    pub config: P::Config,
    /// One clock a node.
    pub clocks: Vec<Clock>,
    /// The tick of all clocks.
    pub tick: LocalSpan,
    /// Whether clocks show the time of day, which a reboot does not reset.
    pub synchronised: bool,
    /// The records that the founding wrote to every disk.
    pub founding: Vec<P::Record>,
    /// The command that the driver gives a process when its machine was suspended, before anything
    /// else.
    pub on_resume: Option<P::Command>,
    /// Forges messages that others may say in a sender's name.
    pub forger: Forger<P>,
    /// The driver's flaws.
    pub flaws: Flaws,
    /// Whether messages are kept after their delivery, so that a file can name them.
    pub keeps_flights: bool,
}

impl<P: Protocol> World<P> {
    /// Founds a world and starts every process.
    pub fn new(foundation: Foundation<P>, chooser: &mut dyn Chooser) -> Self {
        let Foundation {
            config,
            clocks,
            tick,
            synchronised,
            founding,
            on_resume,
            forger,
            flaws,
            keeps_flights,
        } = foundation;
        let host = |clock| Host::new(clock, tick, synchronised, founding.clone(), flaws);
        let hosts = clocks.into_iter().map(host).collect();
        let mut world = Self {
            now: RealTime(0),
            hosts,
            sent: Vec::new(),
            published: Vec::new(),
            records_lost: 0,
            interrupt: None,
            killed: None,
            config,
            on_resume,
            forger,
            flaws,
            flights: Vec::new(),
            free: Vec::new(),
            keeps_flights,
            effects: Vec::new(),
        };
        for node in 0..world.hosts.len() {
            world.start(node, How::Restart, chooser);
        }
        world
    }

    /// The node numbers.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<P> {
        (0..self.hosts.len()).map(node_id)
    }

    /// A node's machine.
    pub fn host(&self, node: NodeId) -> &Host<P> {
        &self.hosts[node.index()]
    }

    /// A message in flight.
    pub fn flight(&self, id: FlightId) -> Option<&Flight<P::Message>> {
        self.flights.get(id.0)?.as_ref()
    }

    /// Forgets a message that nobody will handle any more.
    pub fn forget(&mut self, id: FlightId) {
        if !self.keeps_flights && self.flights[id.0].take().is_some() {
            self.free.push(id);
        }
    }

    /// Finds the message that a file names.
    pub fn find(&self, name: FlightRef) -> Option<FlightId> {
        let same = |flight: &Option<Flight<P::Message>>| flight.as_ref().is_some_and(|f| f.name == name);
        self.flights.iter().rposition(same).map(FlightId)
    }

    /// Carries out an action at `at`, which is not in the past. Says whether it was possible: a
    /// process that is down handles nothing, one that is up does not start. If the process was to
    /// be killed inside the step ([`World::interrupt`]), only the first effects are carried out,
    /// and [`World::killed`] says so.
    pub fn act(
        &mut self,
        at: RealTime,
        action: &Action<P::Command, FlightId>,
        chooser: &mut dyn Chooser,
    ) -> bool {
        debug_assert!(at >= self.now, "time does not go back");
        self.now = at;
        self.sent.clear();
        self.published.clear();
        self.records_lost = 0;
        self.killed = None;
        let done = self.carry(at, action, chooser);
        self.interrupt = None;
        done
    }

    fn carry(
        &mut self,
        at: RealTime,
        action: &Action<P::Command, FlightId>,
        chooser: &mut dyn Chooser,
    ) -> bool {
        match action {
            Action::Deliver { flight, arrived } => self.deliver(*flight, *arrived, chooser),
            Action::Forge { flight, by, guise } => self.forge(*flight, *by, *guise, chooser),
            Action::Wake(node) => self.handle(index(*node), Input::Deadline, at, chooser),
            Action::Tell(node, command) => {
                self.handle(index(*node), Input::Command(command.clone()), at, chooser)
            }
            Action::Written { node, given } => self.written(index(*node), *given),
            Action::Crash(node) => self.crash(index(*node)),
            Action::Start(node, how) => self.start(index(*node), *how, chooser),
            Action::Freeze(node, freeze) => self.freeze(index(*node), *freeze),
            Action::Thaw(node) => self.thaw(index(*node), chooser),
            Action::Step { node, dial, by } => {
                self.hosts[index(*node)].step(*dial, *by);
                true
            }
            Action::Work(node, _) => self.host(*node).is_up(),
            Action::Network(_) => true,
        }
    }

    fn deliver(&mut self, id: FlightId, arrived: RealTime, chooser: &mut dyn Chooser) -> bool {
        let Some(flight) = self.flight(id) else { return false };
        let (from, to) = (flight.name.from, index(flight.name.to));
        if arrived > self.now || !self.hosts[to].is_up() {
            return false;
        }
        let input = Input::Message {
            from,
            received: self.hosts[to].reading(arrived),
            message: flight.message.clone(),
        };
        self.handle(to, input, self.now, chooser)
    }

    /// The message that a process would forge from one, if the receiver promises to bear it.
    pub fn forged(&self, id: FlightId, by: NodeId, guise: Guise) -> Option<P::Message> {
        let Flight { name, message } = self.flight(id)?;
        let receiver = self.host(name.to).process.as_ref()?;
        (self.forger)(message, by, guise, receiver).filter(|_| by != name.from)
    }

    fn forge(&mut self, id: FlightId, by: NodeId, guise: Guise, chooser: &mut dyn Chooser) -> bool {
        let to = self.flight(id).map(|flight| index(flight.name.to));
        let says = self.host(by).is_up();
        let Some((to, message)) = to.zip(self.forged(id, by, guise)).filter(|_| says) else { return false };
        let received = self.hosts[to].reading(self.now);
        self.handle(to, Input::Message { from: by, received, message }, self.now, chooser)
    }

    /// One step of a process, and its effects. `now` is read after the input was taken, unless that
    /// is the flaw.
    fn handle(&mut self, node: usize, input: Input<P>, at: RealTime, chooser: &mut dyn Chooser) -> bool {
        let host = &mut self.hosts[node];
        if !host.is_up() {
            return false;
        }
        let reading = host.reading(at);
        let stale = self.flaws.stale_now && matches!(input, Input::Message { .. });
        let now = if stale { host.cached } else { reading };
        host.cached = reading;
        let Some(process) = &mut host.process else { return false };
        process.handle(input, &mut Context::new(now, chooser, &mut host.tickets, &mut self.effects));
        self.carry_out(node, now);
        true
    }

    /// Carries out the effects of a step in order: all of them, or those before the process is
    /// killed.
    fn carry_out(&mut self, node: usize, now: LocalTime) {
        let mut effects = std::mem::take(&mut self.effects);
        let queued = self.hosts[node].disk.queue.len();
        let kill = self.interrupt.and_then(|interrupt| interrupt.place(&effects, queued));
        self.killed = kill.map(|kill| (node_id(node), kill));
        let most = kill.map_or(effects.len(), |kill| kill.effects as usize);
        for effect in effects.drain(..).take(most) {
            let host = &mut self.hosts[node];
            match effect {
                Effect::Persist { ticket, record } => host.disk.queue.push_back((ticket, record, self.now)),
                Effect::Remember(record) => host.remember(record),
                Effect::Publish(event) => self.published.push((node_id(node), now, event)),
                Effect::Send { to, message, after } => match after {
                    Some(ticket) if ticket > host.disk.durable => host.waiting.push((ticket, to, message)),
                    _ => self.send(node, to, message),
                },
            }
        }
        self.effects = effects;
    }

    fn send(&mut self, from: usize, to: NodeId, message: P::Message) {
        if index(to) >= self.hosts.len() {
            return;
        }
        let mut name = FlightRef { from: node_id(from), to, sent: self.now, nth: 0 };
        if self.keeps_flights {
            let now = self.flights.iter().rev().flatten().take_while(|flight| flight.name.sent == self.now);
            let alike = now.filter(|flight| flight.name.from == name.from && flight.name.to == to).count();
            name.nth = u32::try_from(alike).unwrap_or(u32::MAX);
        }
        let flight = Some(Flight { name, message });
        let id = match self.free.pop() {
            Some(id) => {
                self.flights[id.0] = flight;
                id
            }
            None => {
                self.flights.push(flight);
                FlightId(self.flights.len() - 1)
            }
        };
        self.sent.push(id);
    }

    fn written(&mut self, node: usize, given: RealTime) -> bool {
        if !self.hosts[node].is_up() || !self.hosts[node].write(given) {
            return false;
        }
        let host = &mut self.hosts[node];
        let durable = host.disk.durable;
        let (ready, waiting): (Vec<_>, Vec<_>) =
            host.waiting.drain(..).partition(|(ticket, ..)| *ticket <= durable);
        host.waiting = waiting;
        for (_, to, message) in ready {
            self.send(node, to, message);
        }
        true
    }

    fn crash(&mut self, node: usize) -> bool {
        let was_up = self.hosts[node].process.is_some();
        self.wake_up(node);
        self.records_lost = self.hosts[node].crash();
        was_up
    }

    /// Ends the process that is being killed, once its last step has been looked at.
    pub fn finish_kill(&mut self) {
        if let Some((node, kill)) = self.killed {
            self.hosts[index(node)].write_first(kill.durable);
            self.crash(index(node));
        }
    }

    fn start(&mut self, node: usize, how: How, chooser: &mut dyn Chooser) -> bool {
        if self.hosts[node].process.is_some() {
            return false;
        }
        let boot = self.hosts[node].prepare_start(how, node_id(node), self.now);
        let host = &mut self.hosts[node];
        let now = host.reading(self.now);
        host.cached = now;
        let mut cx = Context::new(now, chooser, &mut host.tickets, &mut self.effects);
        host.process = Some(P::start(&self.config, node_id(node), boot, &mut cx));
        self.carry_out(node, now);
        if self.killed.is_none() {
            self.hosts[node].claim();
        }
        true
    }

    fn freeze(&mut self, node: usize, freeze: Freeze) -> bool {
        let host = &mut self.hosts[node];
        if !host.is_up() {
            return false;
        }
        host.freeze(freeze, self.now);
        true
    }

    /// Goes on. Where the driver notices that the machine was suspended, it says so before anything
    /// else; then the memory is of the time after it.
    fn thaw(&mut self, node: usize, chooser: &mut dyn Chooser) -> bool {
        let host = &mut self.hosts[node];
        if host.frozen.is_none() {
            return false;
        }
        if let Some(command) = self.wake_up(node) {
            self.handle(node, Input::Command(command), self.now, chooser);
            self.hosts[node].sleep_is_known();
        }
        true
    }

    /// A machine that stood still does no more. Returns the command that its driver gives the
    /// process, if it notices.
    fn wake_up(&mut self, node: usize) -> Option<P::Command> {
        let host = &mut self.hosts[node];
        let slept = host.frozen.is_some_and(|(freeze, _)| freeze.is_of_machine());
        host.thaw(self.now);
        let unnoticed = self.flaws.suspend_unnoticed || self.flaws.clock_stops_in_suspend;
        let command = self.on_resume.clone().filter(|_| slept && !unnoticed)?;
        host.sleep_counts();
        Some(command)
    }
}

fn index(node: NodeId) -> usize {
    node.index()
}

/// The node at a position.
pub fn node_id(index: usize) -> NodeId {
    NodeId(index as u64)
}
