//! Every protocol of Tenure as a pure state machine.
//!
//! A protocol here has no clock, no socket, no disk, no random generator and no thread. It is told
//! what happened ([`Input`]) and when ([`Context::now`], a reading of its own host's clock), and it
//! answers with what should be done ([`Effect`]), in order. One contract, two drivers: the
//! laboratory runs a protocol under every fault, the runtime connects the same type to sockets and
//! disks. The code that was judged is the code that ships.
//!
//! # The contract
//!
//! 1. The driver makes the machine with [`Protocol::start`]; [`Boot`] holds the records that
//!    survived from the life before.
//! 2. It hands over one [`Input`] at a time. `now` is sampled **after** the input was taken from
//!    its queue: a cached reading would date a promise before the request that it answers.
//! 3. It carries out the effects in order. A [`Effect::Send`] that names a [`Ticket`] leaves when
//!    that record is durable; everything else goes on meanwhile. Nobody waits for a disk.
//! 4. It calls again, with [`Input::Deadline`], no earlier than [`Protocol::next_deadline`]. Later
//!    is always safe: deadlines serve liveness, safety compares clocks where authority is used.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | [`time`] | readings, spans and drift: all rounding of the product |
//! | [`boot`] | the records of its former life that a restarted process may believe |
//! | [`quorum`] | which sets of grantors suffice, and the proof that any two meet |
//! | [`timers`] | deadlines as plain data |
//! | [`detect`] | failure detectors: a help to liveness, never to safety |
//! | [`strong`] | Nerio: at most one leader at any instant |
//! | [`eventual`] | Omega: in the end one leader, without a link that is always timely |
//! | [`local`] | Fetzer and Cristian: a leader for every partition |
//! | [`classic`] | the elections of the lectures, on anonymous ports and among named processes |
//! | [`log`] | a replicated log, driven by an election |
//! | [`explore`] | views of machines, for an explorer of all states |
//! | [`fence`] | the receiver's side: admits a leader's write by its token, or refuses it |

#[macro_use]
mod invariant;

pub mod boot;
pub mod classic;
pub mod detect;
pub mod eventual;
pub mod explore;
pub mod fence;
pub mod local;
pub mod log;
pub mod quorum;
pub mod strong;
pub mod time;
pub mod timers;
pub mod trace;

use std::fmt::{self, Debug, Display};
use std::hash::Hash;

pub use boot::{Boot, BootKind};
pub use time::{Incarnation, LocalTime};

use time::LocalSpan;

/// Plain data: can be copied, compared, hashed and printed, so that states can be explored and runs
/// compared.
pub trait Data: Clone + Debug + Eq + Hash {}
impl<T: Clone + Debug + Eq + Hash> Data for T {}

/// The name of a process: grantor, candidate or observer. Addresses belong to the runtime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The position among nodes that are numbered from zero, as the laboratory's are.
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(self, f)
    }
}

/// A named election. One set of grantors carries very many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

impl Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "g{}", self.0)
    }
}

impl Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(self, f)
    }
}

/// A protocol: the outermost machine of a process. Layers inside it are plain structs with methods
/// of their own.
pub trait Protocol: Data + Sized {
    /// The configuration, fixed for the life of the process.
    type Config: Data;
    /// A request of the process's own user.
    type Command: Data;
    /// A message between processes. May be lost, repeated, delayed and reordered; never forged.
    type Message: Data;
    /// One cell of the store or of the memory; the last write of a key wins.
    type Record: Record;
    /// An event for users, properties and drawings.
    type Event: Data;

    /// Starts the machine. First start, restart, reboot and amnesia are one call: `boot` holds the
    /// records that survived.
    fn start(config: &Self::Config, me: NodeId, boot: Boot<Self::Record>, cx: &mut Context<'_, Self>)
    -> Self;

    /// Takes one step. It takes no time, cannot fail, and waits for nothing.
    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>);

    /// The reading at which [`Input::Deadline`] is wanted, if at all.
    fn next_deadline(&self) -> Option<LocalTime>;
}

/// A protocol whose process can say whether it leads.
pub trait Elects: Protocol {
    /// The reading until which this process may act as leader of `group`, if at `now` it may at
    /// all.
    fn leadership(&self, group: GroupId, now: LocalTime) -> Option<LocalTime>;
}

/// A cell of the store: writing one replaces the cell of the same key.
pub trait Record: Data {
    /// The name of the cell.
    type Key: Data + Ord;
    /// The name of this cell.
    fn key(&self) -> Self::Key;
    /// Whether writing this cell makes the cell of another name worthless, so that a store may
    /// delete it.
    fn makes_worthless(&self, _other: &Self::Key) -> bool {
        false
    }
}

/// An input of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input<P: Protocol> {
    /// A message came in. `received <= cx.now()`: delays are bounded with the first, leases judged
    /// by the second.
    Message {
        /// The authenticated sender.
        from: NodeId,
        /// The reading when it arrived at this host.
        received: LocalTime,
        /// The message itself.
        message: P::Message,
    },
    /// The process's own user makes a request.
    Command(P::Command),
    /// A deadline may have passed: look at the timers.
    Deadline,
}

/// An effect that a machine wants carried out, in order.
///
/// # A process may be killed between any two effects
///
/// A driver carries effects out one after the other, and a thread of its own writes the records
/// that are to be durable. So a process that is killed leaves any *first part* of a step's effects
/// behind. Records become durable in order, each at any time after it was handed over: before the
/// next effect of the same step is carried out, long after it, or not at all. A machine must be
/// safe with every such outcome:
///
/// * A conclusion that a restart draws from a durable record must not need an effect that comes
///   after that record. A step that both remembers and persists therefore remembers first, or names
///   in each record what it belongs to (as `strong::Cell::Adopted` names its epoch).
/// * A promise is remembered before it is published and before its answer is sent. A promise that
///   ends is published before it is forgotten. So nobody sees a process break a promise, and it is
///   bound for longer at most.
/// * Effects of [`Protocol::start`] are no exception. Remembered records speak for a life only when
///   all these effects have been carried out; a driver that is killed before that finds no memory
///   at its next start ([`Boot`]).
///
/// The laboratory kills processes at each of these places (`tenure_lab::world::Interrupt`), in
/// every sweep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect<P: Protocol> {
    /// Write a record to the disk. Records become durable in order, many by one sync; perhaps
    /// before the next effect.
    Persist {
        /// Names this write for the sends that must wait for it.
        ticket: Ticket,
        /// The record to write.
        record: P::Record,
    },
    /// Write a record where it survives the process but not the boot. Done before any later effect,
    /// without a sync.
    Remember(P::Record),
    /// Tell users. Visible to them before any later effect.
    Publish(P::Event),
    /// Send a message, possibly to oneself; never before the record of the ticket is durable.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: P::Message,
        /// The record it relies on.
        after: Option<Ticket>,
    },
}

/// The number of a [`Effect::Persist`], rising within one life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The one source of chance. Each driver has its own: seeded, scripted, exhaustive, or the
/// operating system's.
pub trait Chooser {
    /// Returns a number below `bound`, which is not zero.
    fn choose(&mut self, bound: u32) -> u32;
}

/// Given to a machine with each input: the time, chance, and room for effects.
pub struct Context<'a, P: Protocol> {
    now: LocalTime,
    chooser: &'a mut dyn Chooser,
    tickets: &'a mut Ticket,
    effects: &'a mut Vec<Effect<P>>,
}

impl<'a, P: Protocol> Context<'a, P> {
    /// Makes a context, for drivers. `now` must be sampled after the input was received; `tickets`
    /// is the last one given out.
    pub fn new(
        now: LocalTime,
        chooser: &'a mut dyn Chooser,
        tickets: &'a mut Ticket,
        effects: &'a mut Vec<Effect<P>>,
    ) -> Self {
        Self { now, chooser, tickets, effects }
    }

    /// The reading of this host's clock for this step.
    pub fn now(&self) -> LocalTime {
        self.now
    }

    /// Lets a layer that is a protocol of its own take a step inside this one. Its effects become
    /// this machine's, in their order, as `translate` says; tickets count on, so that a message
    /// that the layer sends after its record waits for that record here too.
    pub fn layer<Q: Protocol, T>(
        &mut self,
        mut translate: impl FnMut(Effect<Q>) -> Option<Effect<P>>,
        step: impl FnOnce(&mut Context<'_, Q>) -> T,
    ) -> T {
        let mut effects = Vec::new();
        let mut cx = Context::new(self.now, &mut *self.chooser, &mut *self.tickets, &mut effects);
        let result = step(&mut cx);
        self.effects.extend(effects.into_iter().filter_map(&mut translate));
        result
    }

    /// Draws a number below `bound`.
    pub fn choose(&mut self, bound: u32) -> u32 {
        self.chooser.choose(bound)
    }

    /// Draws a length evenly from `[0, span)`, in a thousand steps.
    pub fn jitter(&mut self, span: LocalSpan) -> LocalSpan {
        const STEPS: u32 = 1000;
        span.fraction(self.choose(STEPS), STEPS)
    }

    /// Asks for `record` to be made durable; a send can wait for the ticket.
    pub fn persist(&mut self, record: P::Record) -> Ticket {
        self.tickets.0 += 1;
        let ticket = *self.tickets;
        self.effects.push(Effect::Persist { ticket, record });
        ticket
    }

    /// Keeps `record` for a restart within this boot.
    pub fn remember(&mut self, record: P::Record) {
        self.effects.push(Effect::Remember(record));
    }

    /// Publishes `event` to users.
    pub fn publish(&mut self, event: P::Event) {
        self.effects.push(Effect::Publish(event));
    }

    /// Sends `message`, at once or when the record of `after` is durable.
    pub fn send(&mut self, to: NodeId, message: P::Message, after: Option<Ticket>) {
        self.effects.push(Effect::Send { to, message, after });
    }
}
