//! What the laboratory must know of a protocol to run, judge, write down and draw it.

pub mod constants;
pub mod strong;

pub use constants::{Constants, Key, Unit};

use tenure_proto::quorum::Quorums;
use tenure_proto::{Elects, NodeId, Protocol};

use crate::count::Counts;
use crate::draw::{BarKind, MarkKind};
use crate::property::{Judge, Property};
use crate::random::Random;
use crate::world::Flaws;

/// A protocol in the laboratory. A new protocol is one implementation of this, its properties, and its mutants.
pub trait Subject {
    /// The machine.
    type Machine: Elects;
    /// Its judge.
    type Judge: Judge<Self::Machine>;

    /// The constants that a run fixes, in the order in which files list them.
    const KEYS: &'static [Key];
    /// What must hold.
    const PROPERTIES: &'static [Property];

    /// What the driver around it does wrong: nothing, unless it is a mutant.
    fn flaws(&self) -> Flaws;
    /// Draws constants for a run of `nodes` processes.
    fn draw(&self, random: &mut Random, nodes: usize) -> Constants;
    /// The machine's configuration; an error says which constant to change.
    fn config(
        &self,
        quorums: &Quorums,
        constants: &Constants,
    ) -> Result<<Self::Machine as Protocol>::Config, String>;
    /// The judge of one run.
    fn judge(&self, quorums: &Quorums, constants: &Constants) -> Self::Judge;

    /// What a process's user says after every start.
    fn opening(&self, constants: &Constants) -> Vec<<Self::Machine as Protocol>::Command>;
    /// What a restless user might say at any time.
    fn whim(&self, random: &mut Random, constants: &Constants) -> <Self::Machine as Protocol>::Command;

    /// The kind of a message, in one word.
    fn message_kind(message: &<Self::Machine as Protocol>::Message) -> &'static str;
    /// The kinds that [`Subject::message_kind`] knows, so that those which are never sent are counted too.
    fn message_kinds() -> &'static [&'static str] {
        &[]
    }
    /// All that a message says.
    fn message_text(message: &<Self::Machine as Protocol>::Message) -> String;
    /// A command as files write it.
    fn command_text(command: &<Self::Machine as Protocol>::Command) -> String;
    /// Reads what [`Subject::command_text`] wrote.
    fn parse_command(text: &str) -> Option<<Self::Machine as Protocol>::Command>;
    /// An event in words, for the minutes.
    fn event_text(node: NodeId, event: &<Self::Machine as Protocol>::Event) -> String;
    /// An event as it is drawn.
    fn event_shape(node: NodeId, event: &<Self::Machine as Protocol>::Event) -> Shape;
    /// Counts an event.
    fn count(event: &<Self::Machine as Protocol>::Event, counts: &mut Counts);
    /// The kinds that [`Subject::count`] knows, so that those which never happen are seen too.
    fn count_kinds() -> &'static [&'static str];
}

/// How an event is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Not at all.
    Nothing,
    /// As something that lasts until a reading of the node's clock; a later one of the same kind replaces it.
    Until {
        /// What lasts.
        kind: BarKind,
        /// Until when.
        until: tenure_proto::LocalTime,
        /// What to call it: the same for what goes on without a break.
        label: String,
        /// A mark at its beginning.
        mark: Option<MarkKind>,
    },
    /// As the early end of what lasts.
    Ends {
        /// What ends.
        kind: BarKind,
        /// A mark.
        mark: Option<MarkKind>,
    },
}
