//! The explorer: every reachable state of a shipped machine, in a small scope.
//!
//! A simulation tries many runs; this tries them all, as far as a [`Scope`] allows: so many
//! processes, requests, restarts, and clocks that advance in steps. Then the answer is not "no run
//! broke it" but "no run of this scope breaks it".
//!
//! Three ideas carry it.
//!
//! 1. **States are numbers.** A host's machine, disk, memory and waiting messages are kept once,
//!    and a global state names them by number: see [`State`]. A step of a host is carried out once,
//!    and looked up ever after.
//! 2. **Every machine is called at one reading.** When time passes, its times move instead
//!    ([`Explore::shift`]).
//! 3. **Equal is what has the same future**: what the machine writes down as its view, up to
//!    renaming hosts that play the same part.
//!
//! Properties are judged with ghosts, small enough to be part of a state: a protocol's [`Walk`]. A
//! path that breaks something becomes a scenario ([`trail`]), which `lab replay` repeats on the
//! exact machine, with the laboratory's own clocks, disks and judge.
//!
//! # The limits of a walk
//!
//! Nothing beyond its budgets. Time passes in steps, and in each step each clock shows the least or
//! the most that the bound on drift allows; what needs a finer step is missed. No false alarm comes
//! of that: each path is a legal run.

mod check;
mod hash;
mod host;
mod scope;
mod search;
mod seen;
mod state;
pub mod trail;
mod world;

pub use check::{Checked, Counterexample, ScopeAbout, Verdict, Wanted, check};
pub use hash::mix;
pub use scope::{Budget, Clocks, Grain, Scope, Wish};
pub use search::{Bounds, Ended, Found, Progress, Report, search};
pub use state::{MOST_HOSTS, State};
pub use world::{Act, Input, Successor, World, number_of};

use tenure_proto::explore::Explore;
use tenure_proto::time::Stamp;
use tenure_proto::{LocalTime, Protocol};

use crate::subject::Subject;

/// The machine of a walk.
pub type Machine<W> = <<W as Walk>::Subject as Subject>::Machine;
/// Its commands.
pub type Command<W> = <Machine<W> as Protocol>::Command;
/// Its messages.
pub type Message<W> = <Machine<W> as Protocol>::Message;

/// A broken property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its name, as the laboratory's judge calls it.
    pub property: &'static str,
    /// How it is broken, in words.
    pub text: String,
}

/// Something that a walk must see at least once, or it has proved nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub says: &'static str,
}

/// The state of all hosts at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// How many hosts there are.
    pub hosts: usize,
    /// Whether a host leads.
    pub leads: [bool; MOST_HOSTS],
    /// Its life.
    pub lives: [u8; MOST_HOSTS],
}

/// The state of a host that takes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stepping {
    /// Which.
    pub host: usize,
    /// Whether it led before.
    pub led: bool,
    /// Its life, after the step.
    pub life: u8,
}

/// How hosts are renamed, and where a stamp stands among the live stamps of its grantor.
#[derive(Clone, Copy, Debug)]
pub struct Rename<'a> {
    /// The new name of each host.
    pub names: &'a [u8],
    /// For each new name of a grantor one bit for each live stamp.
    pub(crate) live: &'a [u64; MOST_HOSTS],
}

impl Rename<'_> {
    /// The new name of a host.
    pub fn name(&self, host: usize) -> u64 {
        u64::from(self.names.get(host).copied().unwrap_or(u8::MAX))
    }

    /// The rank of a stamp among the live ones of a grantor.
    pub fn rank(&self, grantor: u64, stamp: u8) -> u64 {
        let live = usize::try_from(grantor).ok().and_then(|at| self.live.get(at)).copied().unwrap_or(0);
        u64::from((live & ((1u64 << (stamp & 63)) - 1)).count_ones()) + 1
    }
}

/// A protocol, as the explorer walks it: its machine, its ghosts, and how it is judged.
pub trait Walk
where
    Machine<Self>: Explore,
{
    /// The machine in the laboratory.
    type Subject: Subject;
    /// The memory of the judge.
    type Ghost: Copy + std::fmt::Debug;
    /// The meaning of an event to the judge.
    type Note: Clone + PartialEq + std::fmt::Debug;

    /// The machine in the laboratory.
    fn subject(&self) -> &Self::Subject;
    /// All witnesses, in the order of their bits.
    fn witnesses(&self) -> &'static [Witness];
    /// The ghost before anything happened.
    fn ghost(&self) -> Self::Ghost;
    /// The meaning of an event. `left` says how many quanta of the true clock are left until a
    /// reading; `now` is what the clock shows.
    fn note(
        &self,
        event: &<Machine<Self> as Protocol>::Event,
        now: LocalTime,
        left: &dyn Fn(LocalTime) -> u8,
    ) -> Option<Self::Note>;
    /// Takes a note; says what it breaks, and which witnesses it is.
    fn take(&self, ghost: &mut Self::Ghost, note: &Self::Note, stepping: Stepping) -> (u32, Option<Broken>);
    /// The property that does not hold at this instant, if any.
    fn check(&self, ghost: &Self::Ghost, sight: &Sight) -> Option<Broken>;
    /// The witnesses of an instant that follows another.
    fn witness(&self, before: &Sight, after: &Sight) -> u32;
    /// A clock advances by so many quanta.
    fn pass(&self, ghost: &mut Self::Ghost, host: usize, quanta: u8);
    /// Whether the ghost counts by this clock.
    fn is_timed(&self, ghost: &Self::Ghost, host: usize) -> bool;
    /// Tells of each stamp that the ghost keeps: grantor and number.
    fn stamps(&self, ghost: &Self::Ghost, tell: &mut dyn FnMut(usize, u8));
    /// The ghost as a number, with its hosts renamed.
    fn hash(&self, ghost: &Self::Ghost, rename: &Rename<'_>) -> u64;
    /// The stamp in a message, to be numbered.
    fn stamp(message: &mut Message<Self>) -> Option<&mut Stamp>;
    /// Whether two stamps of a process may tie, so that the next one matters.
    fn stamps_may_tie(&self) -> bool {
        false
    }
    /// Whether a message that has no effect by the sound rules may have one.
    fn keeps_dead(&self) -> bool {
        false
    }
    /// Whether nothing will ever come of a message that asks nothing, beside what its receiver
    /// knows and the `others` that are on their way to it.
    fn is_moot<'m>(
        &self,
        _message: &Message<Self>,
        _receiver: Option<&Machine<Self>>,
        _memory: &[<Machine<Self> as Protocol>::Record],
        _now: LocalTime,
        _others: impl Iterator<Item = &'m Message<Self>>,
    ) -> bool
    where
        Message<Self>: 'm,
    {
        false
    }
    /// The configuration of every process in a scope.
    fn config(&self, scope: &Scope<Command<Self>>) -> Result<<Machine<Self> as Protocol>::Config, String>;
}
