//! Plays: what matters is said, all else happens by itself.
//!
//! A [script](crate::script) lists every delivery and every wake-up: right for a counterexample
//! that a machine made small, tedious to write by hand. A play is written by a person. It says who
//! campaigns, what crashes, how the network falls apart, which single message is held back; then
//! every other message takes the same time, every process wakes when it wants to and every disk
//! writes at the same speed. It runs on the same stage as a seed, is judged by the same properties,
//! and gives the same trace and the same drawing. Nothing is left to chance but what the protocol
//! itself draws, which comes from the seed in its head.
//!
//! ```text
//! tenure play 1
//! # What is seen, and why it matters.
//! protocol nerio-drift
//! nodes 3
//! quorums majority
//! set drift=1000ppm tick=0.000001ms lease=200ms longest-lease=200ms window=60ms retry=20ms block=4 groups=1
//! delay 5ms
//! clock n0 +1000ppm
//! expect holds
//! expect leader other than n0 at 1500ms
//! ends at 2s
//!
//! 0ms      n0 campaigns
//! 100ms    everyone campaigns
//! 500ms    n0 pauses
//! 1000ms   n0 goes on
//! ```
//!
//! # The head
//!
//! | line | says | if it is missing |
//! |---|---|---|
//! | `protocol NAME` | who plays | an error |
//! | `mutant NAME` | which rule is broken on purpose | none is |
//! | `nodes N` | how many members; before any line that names one | an error |
//! | `quorums TEXT` | who grants | `majority` |
//! | `set KEY=VALUE ...` | the protocol's constants, on one line or several | an error, but for those that say who else is there |
//! | `seed N` | from where the protocol's own draws come | 1 |
//! | `delay T` | how long every message takes | 5ms |
//! | `disk T` | how long every write takes | 0.1ms |
//! | `clock n0 [shows T,] +0ppm[, from T -5ppm ...]` | how a clock runs | right, each from another start |
//! | `heals at T` | from when on a leader is owed (`eventually` properties) | none is ever owed |
//! | `ends at T` | when it is over | an error |
//! | `expect holds`, `expect broken PROPERTY` | the verdict | `holds` |
//! | `expect WHO at T`, `expect WHO from T to T` | who believes to lead the first group, then or all the time | |
//! | `expect [at least, at most] N COUNT` | what the run counted, such as `0 silences` | |
//!
//! WHO is `leader n1`, `leader among n1 n2`, `leader other than n0`, `a leader`, `same leader`
//! (only with `from`), `leaders n0 n2` (just these, at once), or `nobody`.
//!
//! Members are n0, n1 and so on; with `set outsiders=1` the host after them campaigns from outside,
//! with `set observers=1` the last one only asks, and with `set witnesses=1` the last member never
//! campaigns. That is said before anybody is named.
//!
//! # The lines
//!
//! Each begins with a time, not before the line above. Of what falls on the same instant, the lines
//! come first, in order.
//!
//! | line | does |
//! |---|---|
//! | `n0 campaigns` | says what the protocol's users say after a start; after a restart it must be said again |
//! | `n0 is told: COMMAND` | says anything else, in the protocol's own words |
//! | `n0 crashes`, `restarts`, `restarts elsewhere`, `reboots`, `starts without its disk` | ends and starts a process |
//! | `n0 crashes after effect 2 of its next step, 1 record durable` | kills it inside a step: see below |
//! | `n0 pauses`, `is suspended`, `goes on` | stops a process, or a machine, for a while |
//! | `n0 is suspended, counted 950ms short`, or `long` | the same, and afterwards its clock shows less, or more, than has passed |
//! | `n0's clock steps back 80ms`, `steps forward 80ms` | sets the clock that its driver reads, which breaks (15) |
//! | `n0's time of day steps back 80ms` | sets the clock that no sound driver reads |
//! | `n0's thread 0 takes a step` | one of three steps towards an edict; threads that a play tells what to do do nothing else |
//! | `network: split n0 n1 \| n2` | cuts all links between the parts |
//! | `network: stable n0 n1 \| n2` | the same, and says that nothing goes wrong within the parts: what is owed there is judged |
//! | `network: bridge n0 n1 \| n2 \| n3 n4` | cuts all links between the outer parts |
//! | `network: chain n0 n1 n2` | leaves only links between neighbours |
//! | `network: isolated n3` | cuts a process from all others |
//! | `network: cut n0 -> n1 n2, n3 - n4` | cuts links, one way or both |
//! | `network: whole` | heals the network; each `network:` line replaces the one before |
//! | `hold n0 -> n1 release until 900ms` | such messages, sent from here on, arrive at that time |
//! | `lose n0 -> n1 release until 900ms` | such messages, sent from here to there, are lost |
//! | `repeat n0 -> n1 release at 900ms` | such messages, sent from here to there, come once more at that time |
//! | `forge n0 -> n1 request by n4 as a release at 900ms` | n4 says to n1 then that n0 gives back what it asked for |
//!
//! Several processes may do the same (`n0 n2 crash`, `everyone campaigns`), and one may do several
//! things (`n2 restarts and campaigns`). A kind of message may be `message`, which is any, and
//! `next release` means one alone. A forged message may also be said `as a relay`, in a hand-over,
//! an answer `as its own`, of the speaker, or a message without such words just as it was sent. A
//! message is cut when it is sent: what is on its way arrives. A line that cannot be carried out,
//! such as a crash of a process that is down, is an error.

//!
//! # Killed inside a step
//!
//! The effects of a step are carried out one after the other, and the disk works beside them. With
//! `n0 crashes after effect K of its next step, N records durable` n0 is killed in its next step
//! that has effects: the first K of them are carried out, and of the records that the disk was
//! given and had not written the oldest N are durable all the same, those of this step among them.
//! `of its next write` waits for a step that gives the disk a record. K and N beyond what there is
//! mean all of it. It is an error if no such step comes. In a script the step itself says so:
//! `n0 wakes, and is killed after effect 2, 1 record durable`.

mod check;
mod parse;
mod words;

pub(crate) use check::Beliefs;
pub use check::Check;
pub use parse::parse;

use tenure_proto::NodeId;

use crate::script::Expect;
use crate::simulate::Shape;
use crate::subject::Constants;
use crate::world::{Clock, Dial, Freeze, Guise, How, Interrupt, RealTime};

/// The first line of a play.
pub const MAGIC: &str = "tenure play 1";

/// Whether a text is a play, not a script.
pub fn is_play(text: &str) -> bool {
    text.lines().next() == Some(MAGIC)
}

/// A play, as it was written.
#[derive(Clone, Debug)]
pub struct Play {
    /// Remarks for the reader, a line each.
    pub remarks: Vec<String>,
    /// The protocol's name.
    pub protocol: String,
    /// The rule that is broken on purpose.
    pub mutant: Option<String>,
    /// From where the protocol's draws come.
    pub seed: Option<u64>,
    /// The quorum system as text.
    pub quorums: String,
    /// The protocol's constants.
    pub constants: Constants,
    /// How many founding members there are.
    pub members: usize,
    /// One clock a host.
    pub clocks: Vec<Clock>,
    /// How long a message takes, in nanoseconds.
    pub delay: u64,
    /// How long a write takes, in nanoseconds.
    pub disk: u64,
    /// The verdict that must come of it.
    pub expect: Expect,
    /// Further checks.
    pub checks: Vec<Check>,
    /// From when on a leader is owed.
    pub heals: Option<RealTime>,
    /// When it ends.
    pub ends: RealTime,
    /// The events.
    pub(crate) cues: Vec<Cue>,
}

/// One line of a play.
#[derive(Clone, Debug)]
pub(crate) struct Cue {
    pub(crate) at: RealTime,
    /// Its line in the file, from one.
    pub(crate) line: usize,
    /// As it was written.
    pub(crate) words: String,
    pub(crate) deeds: Vec<Deed>,
}

/// The deed of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Campaign(NodeId),
    /// A command of the protocol, as files write it.
    Tell(NodeId, String),
    Crash(NodeId),
    Kill(NodeId, Interrupt),
    Start(NodeId, How),
    Freeze(NodeId, Freeze),
    Thaw(NodeId),
    Step(NodeId, Dial, i64),
    Work(NodeId, u8),
    Network(Shape),
    Meddle(Meddling),
}

/// An interference with some messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meddling {
    pub(crate) what: What,
    /// The senders.
    pub(crate) from: Vec<NodeId>,
    /// The receivers.
    pub(crate) to: Vec<NodeId>,
    /// The kind, if not all.
    pub(crate) kind: Option<&'static str>,
    /// Only the next one.
    pub(crate) once: bool,
    /// Concerns what is sent before then; and then it arrives.
    pub(crate) until: RealTime,
}

impl Meddling {
    /// Whether it is about a message.
    pub(crate) fn concerns(&self, from: NodeId, to: NodeId, kind: &str) -> bool {
        self.from.contains(&from) && self.to.contains(&to) && self.kind.is_none_or(|wanted| wanted == kind)
    }
}

/// The kind of interference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It comes later.
    Hold,
    /// It does not come.
    Lose,
    /// It comes twice.
    Repeat,
    /// It comes, and another process says it, or something made of it, in the sender's name.
    Forge {
        /// The process that says it.
        by: NodeId,
        /// The change that it makes.
        guise: Guise,
    },
}
