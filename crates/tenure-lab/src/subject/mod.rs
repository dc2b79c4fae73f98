//! The interface that a protocol implements so that the laboratory can run, judge, write down and
//! draw it.

pub mod constants;
pub mod leader_threads;
mod role;

pub use constants::{Constants, Key, Unit};
pub use leader_threads::{LeaderThreads, Made, Order};
pub(crate) use role::candidates;
pub use role::{Role, company};

use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::{Elects, NodeId, Protocol};

use crate::count::Counts;
use crate::draw::{BarKind, MarkKind, Words};
use crate::property::{Judge, Kind, Property};
use crate::random::Random;
use crate::world::{Clock, Flaws, Guise, RealTime, Which};

/// A protocol in the laboratory. A new protocol is one implementation of this, its properties, and
/// its mutants.
pub trait Subject {
    /// The machine.
    type Machine: Elects;
    /// Its judge.
    type Judge: Judge<Self::Machine>;

    /// The meanings of the symbols in its drawings.
    const WORDS: Words;
    /// Whether what is drawn as support outlasts a crash: a promise does, an opinion does not.
    const PROMISES: bool = true;

    /// The constants that a run fixes, in the order in which files list them.
    fn keys(&self) -> &'static [Key];
    /// The properties that must hold.
    fn properties(&self) -> &'static [Property];
    /// Whether members change without their leader noticing, so that a change may come when nothing
    /// else goes wrong.
    fn is_gapless(&self) -> bool {
        true
    }
    /// Whether a property rests on messages that arrive: without them anybody breaks it, so that a
    /// run which does is not made small.
    fn rests_on_network(property: &Property) -> bool {
        property.kind == Kind::Eventually
    }
    /// The protocol's assumption about clocks.
    fn assumption(&self, constants: &Constants) -> Assumption;
    /// The command that the driver gives the machine when its host was suspended; `None` if that is
    /// nothing to it.
    fn on_resume() -> Option<<Self::Machine as Protocol>::Command> {
        None
    }
    /// The flaws of the driver around it: nothing, unless it is a mutant.
    fn flaws(&self) -> Flaws;
    /// Draws constants for a run with this many founding members.
    fn draw(&self, random: &mut Random, members: usize) -> Constants;
    /// The role of each host, in the order of their numbers: the founding members first. An error
    /// says which constant to change.
    fn roles(_constants: &Constants, members: usize) -> Result<Vec<Role>, String> {
        Ok(vec![Role::Member; members])
    }
    /// The constants and the number of members without the last host: all others stay what they
    /// are.
    fn without_last(constants: &Constants, members: usize) -> (Constants, usize) {
        (constants.clone(), members.saturating_sub(1))
    }
    /// How fast the protocol lives with these constants: what storms, worlds and drawings measure
    /// by.
    fn rhythm(constants: &Constants) -> Rhythm {
        Rhythm {
            round: constants.get("retry"),
            longest: constants.get("longest-lease"),
            act: constants.get("lease"),
            step: 0,
        }
    }
    /// The machine's configuration; an error says which constant to change.
    fn config(
        &self,
        quorums: &Quorums,
        constants: &Constants,
    ) -> Result<<Self::Machine as Protocol>::Config, String>;
    /// In which order the threads of a leader work: the sound one, unless that is the mutant.
    fn order(&self) -> Order {
        Order::Sound
    }
    /// Tells the threads of a process about an event that it published.
    fn tell_threads(threads: &mut LeaderThreads, event: &<Self::Machine as Protocol>::Event);
    /// The judge of one run.
    fn judge(&self, quorums: &Quorums, constants: &Constants) -> Self::Judge;

    /// The commands of the user of a process in this role after every start: nothing, if it never
    /// campaigns.
    fn opening(&self, constants: &Constants, role: Role) -> Vec<<Self::Machine as Protocol>::Command>;
    /// A command that a restless user of `node` might give at any time.
    fn whim(
        &self,
        random: &mut Random,
        constants: &Constants,
        roles: &[Role],
        node: NodeId,
    ) -> <Self::Machine as Protocol>::Command;

    /// Whether disks are lost in most runs with these constants, because much depends on it.
    fn forgets_often(&self, _constants: &Constants) -> bool {
        false
    }

    /// Whether a member dies for good in runs with these constants, when all other faults have
    /// ended: what heals is not everybody's return.
    fn loses_one(_constants: &Constants) -> bool {
        false
    }

    /// In which kinds of steps processes are killed: those that the machine takes with these
    /// constants. A kill that waits for a step which never comes is none.
    fn interruptible(&self, _constants: &Constants) -> &'static [Which] {
        &[Which::Keeps, Which::Writes, Which::Both]
    }

    /// Within how long such a step comes, in nanoseconds: a kill that waits no longer than a crash
    /// may be put off needs to know.
    fn interrupted_within(constants: &Constants) -> u64 {
        Self::rhythm(constants).round
    }

    /// A change of the members that an operator may want, if the protocol can change them.
    fn reform(
        &self,
        _random: &mut Random,
        _constants: &Constants,
        _nodes: usize,
    ) -> Option<<Self::Machine as Protocol>::Command> {
        None
    }

    /// The message that `by` forges from one to `receiver`, to say it in the sender's name, where
    /// the machine promises to bear it.
    fn forged(
        _message: &<Self::Machine as Protocol>::Message,
        _by: NodeId,
        _guise: Guise,
        _receiver: &Self::Machine,
    ) -> Option<<Self::Machine as Protocol>::Message> {
        None
    }

    /// The kind of a message, in one word.
    fn message_kind(message: &<Self::Machine as Protocol>::Message) -> &'static str;
    /// The number of a question, and of the answer to it.
    fn number(_message: &<Self::Machine as Protocol>::Message) -> u64 {
        0
    }
    /// Whether answers of these members, the sender's own among them, suffice for a round of this
    /// kind of message.
    fn suffices(quorums: &Quorums, _constants: &Constants, members: NodeSet, _kind: &str) -> bool {
        quorums.is_quorum(members)
    }
    /// The kind of message that this one answers, if it does: a world that promises round trips
    /// looks at it.
    fn answers(_message: &<Self::Machine as Protocol>::Message) -> Option<&'static str> {
        None
    }
    /// The kinds that [`Subject::message_kind`] knows, so that those which are never sent are
    /// counted too.
    fn message_kinds(&self) -> Vec<&'static str> {
        Vec::new()
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
    fn count_kinds(&self) -> &'static [&'static str];
}

/// How fast a protocol lives, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// A message and its answer, if both are in time.
    pub round: u64,
    /// Its longest promise or pause: storms, and what is owed after them, last some of these.
    pub longest: u64,
    /// The time between two acts of a leader's threads.
    pub act: u64,
    /// How late a process is at most where the protocol counts on that; zero where it does not.
    pub step: u64,
}

/// The assumptions about clocks. A run that keeps to it must break nothing; one that does not may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// Rates are off by at most this, in parts per million.
    Drift {
        /// ρ.
        ppm: u64,
    },
    /// Two clocks differ by at most this at any instant, in nanoseconds.
    Skew {
        /// Δ.
        nanos: u64,
    },
}

impl Assumption {
    /// Whether clocks keep to it up to an instant. Of skew that must be asked: the last rate of a
    /// clock goes on forever.
    pub fn holds_until(self, clocks: &[Clock], until: RealTime) -> bool {
        let Self::Skew { nanos } = self else { return self.broken_by(clocks).is_none() };
        let knots = clocks.iter().flat_map(|clock| clock.parts().1.map(|stretch| stretch.from));
        let mut times = knots.filter(|at| *at <= until).chain([until]);
        times.all(|at| {
            let values = clocks.iter().map(|clock| clock.value(at));
            let (least, most) = values.fold((u64::MAX, 0), |(least, most), v| (v.min(least), v.max(most)));
            most.saturating_sub(least) <= nanos
        })
    }

    /// Which clocks break it, in words.
    pub fn broken_by(self, clocks: &[Clock]) -> Option<String> {
        let (broken, bound): (Vec<String>, String) = match self {
            Self::Drift { ppm } => (beyond_drift(clocks, ppm), format!("{ppm}ppm")),
            Self::Skew { nanos } => (beyond_skew(clocks, nanos), RealTime(nanos).to_string()),
        };
        (!broken.is_empty()).then(|| format!("clocks beyond the bound of {bound}: {}", broken.join(", ")))
    }
}

fn beyond_drift(clocks: &[Clock], ppm: u64) -> Vec<String> {
    let worst = clocks.iter().enumerate().filter_map(|(node, clock)| {
        let worst = clock.parts().1.map(|stretch| stretch.ppm).max_by_key(|ppm| ppm.unsigned_abs())?;
        (u64::from(worst.unsigned_abs()) > ppm).then(|| format!("n{node} at {worst:+}ppm"))
    });
    worst.collect()
}

/// Clocks are straight lines between changes of rate: two differ most at such a change.
fn beyond_skew(clocks: &[Clock], nanos: u64) -> Vec<String> {
    let knots = |clock: &Clock| clock.parts().1.map(|stretch| stretch.from).collect::<Vec<_>>();
    let mut broken = Vec::new();
    for (i, one) in clocks.iter().enumerate() {
        for (j, other) in clocks.iter().enumerate().skip(i + 1) {
            let times = knots(one).into_iter().chain(knots(other));
            let worst = times.map(|at| one.value(at).abs_diff(other.value(at))).max().unwrap_or(0);
            if worst > nanos {
                broken.push(format!("n{i} and n{j} differ by {}", RealTime(worst)));
            }
        }
    }
    broken
}

/// How an event is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Not at all.
    Nothing,
    /// As something that lasts until a reading of the node's clock; a later one of the same kind
    /// replaces it.
    Until {
        /// The kind of bar.
        kind: BarKind,
        /// Until when.
        until: tenure_proto::LocalTime,
        /// Its name: the same for what goes on without a break.
        label: String,
        /// A mark at its beginning.
        mark: Option<MarkKind>,
    },
    /// As a lease over a logical partition, which is shaded for as long as it lasts.
    Partition {
        /// Until when.
        until: tenure_proto::LocalTime,
        /// Its members.
        members: Vec<usize>,
        /// Its name.
        label: String,
        /// A mark at its beginning.
        mark: Option<MarkKind>,
    },
    /// As the early end of what lasts.
    Ends {
        /// The kind of bar that ends.
        kind: BarKind,
        /// A mark.
        mark: Option<MarkKind>,
    },
}
