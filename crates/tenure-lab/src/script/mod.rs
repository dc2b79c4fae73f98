//! Scripts: a run as a text that can be read, compared, replayed and kept.
//!
//! A trace of a whole run and a scenario of ten lines are the same thing. The head names the
//! protocol, its constants and its clocks; then every line says what happened when. A message that
//! no line delivers was lost; one that two lines deliver was duplicated. A step may end in the
//! middle: `n0 wakes, and is killed after effect 2, 1 record durable` carries out two effects, and
//! one of the records that the disk had not written is durable. A process may say something in
//! another's name: `n1 handles n0's request of 5ms, said by n4 as a release`. Indented lines say
//! what came of it, for the reader: they are not read back.

mod parse;
mod replay;
mod write;

pub use parse::{ScriptError, parse, subject_of};
pub(crate) use parse::{kill, node, rates, said, set, simple_action, step, thread, time};
pub use replay::{Replayed, replay};
pub use write::how_text;

use tenure_proto::NodeId;

use crate::subject::Constants;
use crate::world::{Action, Clock, FlightRef, Kill, RealTime};

/// A run, written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script<C> {
    /// Remarks for the reader, a line each.
    pub remarks: Vec<String>,
    /// The protocol's name.
    pub protocol: String,
    /// The rule that is broken on purpose.
    pub mutant: Option<String>,
    /// The seed it came from.
    pub seed: Option<u64>,
    /// The quorum system as text.
    pub quorums: String,
    /// How many founding members there are; the other hosts have clocks too.
    pub members: usize,
    /// The protocol's constants.
    pub constants: Constants,
    /// One clock a host.
    pub clocks: Vec<Clock>,
    /// The only property that was judged, if not all were.
    pub only: Option<String>,
    /// The outcome that must come of it.
    pub expect: Expect,
    /// When the faults were over.
    pub heals: Option<RealTime>,
    /// When it ends.
    pub ends: RealTime,
    /// The events.
    pub lines: Vec<Line<C>>,
}

/// The outcome that must come of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Every property holds.
    Holds,
    /// This property is broken.
    Broken(String),
}

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<C> {
    /// When.
    pub at: RealTime,
    /// What.
    pub action: Action<C, FlightRef>,
    /// Where its process is killed inside the step, if it is.
    pub kill: Option<Kill>,
    /// The kind of message that is delivered, for the reader.
    pub kind: String,
    /// The numbers that the process drew from chance.
    pub draws: Vec<u32>,
    /// Its outcome, in words.
    pub outcomes: Vec<String>,
}

impl<C> Line<C> {
    /// Whom it concerns.
    pub fn node(&self) -> Option<NodeId> {
        match &self.action {
            Action::Deliver { flight, .. } | Action::Forge { flight, .. } => Some(flight.to),
            Action::Wake(node) | Action::Tell(node, _) | Action::Crash(node) => Some(*node),
            Action::Start(node, _) | Action::Freeze(node, _) | Action::Thaw(node) => Some(*node),
            Action::Written { node, .. } | Action::Work(node, _) => Some(*node),
            Action::Step { node, .. } => Some(*node),
            Action::Network(_) => None,
        }
    }
}
