//! Properties: what must hold, written once for every driver.
//!
//! `always` is judged at every event and at the last instant before a lease runs out; `sometimes`
//! shows that an `always` was put to the test; `eventually` is judged after the faults have healed.

use tenure_proto::{NodeId, Protocol};

use crate::subject::Made;
use crate::world::{RealTime, World};

/// The kind of promise that a property is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Must hold at every instant.
    Always,
    /// Should be seen at least once over many runs.
    Sometimes,
    /// Must hold once the faults have healed.
    Eventually,
}

impl Kind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Sometimes => "sometimes",
            Self::Eventually => "eventually",
        }
    }
}

/// A property of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its statement, with the equation.
    pub says: &'static str,
}

/// The outcome of a property in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing spoke against it.
    Holds,
    /// It was seen.
    Seen,
    /// It was not seen. In one run that says nothing; in a sweep it does.
    Unseen,
    /// It could not be judged, because its condition was not met.
    Exempt,
    /// It was broken.
    Broken,
}

impl Status {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Seen => "seen",
            Self::Unseen => "unseen",
            Self::Exempt => "exempt",
            Self::Broken => "broken",
        }
    }
}

/// A broken property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub property: &'static str,
    /// When it was noticed.
    pub at: RealTime,
    /// The violation in words.
    pub text: String,
    /// Where that was said which it contradicts, if that is known and has a place.
    pub before: Option<Mark>,
}

/// A place in what is judged: a line of a file. Simulated worlds have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// The number of the file.
    pub file: u32,
    /// The line, counted from 1.
    pub line: u32,
}

/// A time during which one process led without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// Who.
    pub node: NodeId,
    /// In which term.
    pub term: u64,
    /// From when.
    pub from: RealTime,
    /// Until when: the first instant at which it did not lead any more.
    pub until: RealTime,
}

/// An event that happens to a process from outside, as far as a judge must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// Nothing: it took a step.
    Step,
    /// It is being killed inside a step: what was carried out is in the world. Nobody has seen what
    /// it believes since then.
    Killed,
    /// It started, and goes by what it has kept.
    Started,
    /// It ended.
    Crashed,
    /// Its clock may have been held up or let go.
    ClockDisturbed,
}

/// Judges a run as it goes on. Ghost state, such as what was promised, lives here: it survives
/// amnesia.
pub trait Judge<P: Protocol> {
    /// Real time is about to pass to `to`, without any event until then.
    fn pass(&mut self, world: &World<P>, to: RealTime);
    /// Something happened to `node`; what was published is in the world.
    fn observe(&mut self, world: &World<P>, node: NodeId, outside: Outside);
    /// The network changed, in the words of the minutes: a named world says what it grants whom.
    fn network(&mut self, _world: &World<P>, _text: &str) {}
    /// A thread of `node` has made an edict that it holds for valid. Protocols without edicts make
    /// none.
    fn edict(&mut self, _world: &World<P>, _node: NodeId, _edict: Made) {}
    /// The faults have healed: from here on liveness is owed.
    fn healed(&mut self, world: &World<P>);
    /// The run is over.
    fn end(&mut self, world: &World<P>);
    /// The properties that were broken, each with the first time, in order.
    fn violations(&self) -> &[Violation];
    /// The one who leads now, of the first group.
    fn leader(&self) -> Option<NodeId>;
    /// The leaders of the first group, and when each led, in the order of the beginnings.
    fn tenures(&self) -> &[Tenure] {
        &[]
    }
    /// Since when leaders must be there and stay: `None` until then, and where that is not owed.
    fn settled(&self) -> Option<RealTime> {
        None
    }
    /// How often since then a leader was followed by another, or by nobody, in any group.
    fn changes(&self) -> u64 {
        0
    }
    /// Figures of the whole run, for the counts: told once, after its end.
    fn figures(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// Figures whose largest value counts over several runs: told once, after its end.
    fn peaks(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// Every property with what became of it.
    fn report(&self) -> Vec<(Property, Status)>;
}
