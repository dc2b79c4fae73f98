//! Worlds with a name: adversaries that decide the fate of every message.
//!
//! A seed's storm breaks everything for a while and then heals. Some claims are about networks that
//! never heal: one process has a few partners that answer in time, not always the same ones, and
//! all else is slow forever. A world with a name is such a network. It rules from the beginning of
//! a run to its end, and remembers what it did. It says in the minutes what it grants to which
//! process ([`Disaster::News`]), where judges read it; so a replay is judged like the run.
//!
//! A new world is one [`Adversary`], a function that makes its [`Programme`], and a line in
//! [`WORLDS`]. Faults that are asked for besides (`--faults crash,loss`) are for the world to
//! interpret: see what each says.

mod blocks;
mod crashes;
mod ground;
mod moving_set;
mod partners;
mod source;
mod star;
mod weather;

pub(crate) use ground::parse_stable;

use std::fmt;

use tenure_proto::NodeId;
use tenure_proto::quorum::{NodeSet, Quorums};

use super::faults::Faults;
pub(crate) use super::network::Fate;
pub(crate) use super::plan::Disaster;
use crate::catalogue::Error;
use crate::random::Random;
use crate::subject::{Constants, Rhythm};
use crate::world::RealTime;

/// Those that elect an eventual leader, also where that is not promised, for comparison.
const ELECTIONS: &[&str] = &["omega", "omega-lean", "omega-stable", "lowest-id", "accusation"];
/// Those, and what an eventual leader drives.
const LASTING: &[&str] = &["omega", "omega-lean", "omega-stable", "lowest-id", "accusation", "paxos"];
/// Those that elect a leader for each partition.
const LOCALS: &[&str] = &["local", "local-majority"];

/// All worlds that have a name, but for those that are only a list of faults.
pub const WORLDS: &[Named] = &[
    Named {
        name: "moving-set",
        says: "in the end one process at least has, for every message, some partners that answer within a round, not always the \
               same ones; all else is slower. Faults: crash (as many as may fail, for good, or see the constant restarts), pause, loss (60 % of what is slow), dup (20 %), \
               clock, delay (wake-ups late by up to a step)",
        of: LASTING,
        stormy: false,
        make: moving_set::make,
    },
    Named {
        name: "blocks",
        says: "the same, but the partners stay for a block of time, everything else is silent until it ends, and blocks grow without end. \
               Faults: as moving-set",
        of: LASTING,
        stormy: false,
        make: blocks::make,
    },
    Named {
        name: "f-source",
        says: "messages of one process to the same few others are always in time, but not their answers; all else comes in growing \
               blocks. Faults: as moving-set",
        of: ELECTIONS,
        stormy: false,
        make: source::make,
    },
    Named {
        name: "partition",
        says: "after a storm some processes exchange every message in time, and all others are beyond Delta for them, or silent; the others \
               go on as they like. Faults, while they may: crash, amnesia, pause, clock, dup, delay (wake-ups late by up to sigma)",
        of: LOCALS,
        stormy: true,
        make: ground::partition,
    },
    Named {
        name: "graph",
        says: "after a storm each two processes exchange every message in time or none, and that is not transitive. Faults: as partition",
        of: LOCALS,
        stormy: true,
        make: ground::graph,
    },
    Named {
        name: "star",
        says: "only a hub, or as many as a majority needs besides one, is reached by all: it is asked by processes that do not know of each \
               other, Releases are held up, requests lost, and it restarts at once. Nothing heals. Faults: crash, amnesia, pause, clock, dup",
        of: LOCALS,
        stormy: true,
        make: star::make,
    },
];

/// A world with a name.
#[derive(Clone, Copy)]
pub struct Named {
    /// As `--world` takes it.
    pub name: &'static str,
    /// The world in one line.
    pub says: &'static str,
    /// The protocols for which it is: to others it grants nothing on which they rely.
    pub of: &'static [&'static str],
    /// Whether everything else goes wrong too where nobody says what should; else processes crash,
    /// and that is all.
    pub stormy: bool,
    make: fn(&Site<'_>) -> Result<Programme, String>,
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Named {
    /// The world of a name, or the nearest names.
    pub fn find(name: &str) -> Result<&'static Self, Error> {
        let found = WORLDS.iter().find(|world| world.name == name);
        found.ok_or_else(|| Error::unknown("world", name, WORLDS.iter().map(|world| world.name)))
    }

    /// The worlds that are for a protocol.
    pub fn of(protocol: &str) -> impl Iterator<Item = &'static Self> {
        WORLDS.iter().filter(move |world| world.of.contains(&protocol))
    }

    /// Whether it is for a protocol. If not, an error names those that are.
    pub fn check(&self, protocol: &str) -> Result<(), Error> {
        if self.of.contains(&protocol) {
            return Ok(());
        }
        let others: Vec<&str> = Self::of(protocol).map(|world| world.name).collect();
        let instead = match others.is_empty() {
            true => "no world with an adversary is".to_owned(),
            false => format!("for it there are {}", others.join(", ")),
        };
        Err(Error::new(format!("the world '{}' is not for {protocol}: {instead}", self.name)))
    }

    /// The programme of the world at a site. An error says what does not fit.
    pub(super) fn programme(&self, site: &Site<'_>) -> Result<Programme, String> {
        (self.make)(site)
    }
}

/// The site on which a world is built.
pub(crate) struct Site<'a> {
    /// How many hosts there are: members first, and others that only use them.
    pub(crate) hosts: usize,
    /// The quorum system that was asked for.
    pub(crate) quorums: Quorums,
    /// The further faults.
    pub(crate) faults: Faults,
    /// How fast the protocol lives.
    pub(crate) rhythm: Rhythm,
    /// The protocol's constants.
    pub(crate) constants: &'a Constants,
    /// Whether these hosts suffice for a round of messages of this kind.
    pub(crate) suffices: fn(&Quorums, &Constants, NodeSet, &str) -> bool,
    /// How long the run shall last, if that was said.
    pub(crate) horizon: Option<RealTime>,
    /// The seed of the run.
    pub(crate) seed: u64,
}

impl Site<'_> {
    /// A stream of chance of its own.
    pub(crate) fn random(&self, label: &str) -> Random {
        Random::stream(self.seed, label)
    }

    /// How many of the hosts are members: only they are granted anything, and only they are counted
    /// on.
    pub(crate) fn members(&self) -> usize {
        self.quorums.members().len()
    }

    /// When the run ends: as was said, or after so many of the protocol's longest pauses.
    pub(crate) fn ends(&self, pauses: u64) -> RealTime {
        self.horizon.unwrap_or(RealTime(self.rhythm.longest * pauses))
    }

    /// Whether these hosts suffice for a round of messages of this kind.
    pub(crate) fn suffices(&self, set: NodeSet, kind: &str) -> bool {
        (self.suffices)(&self.quorums, self.constants, set, kind)
    }
}

/// The programme of a world.
#[derive(Debug)]
pub(crate) struct Programme {
    /// The adversary that decides the fate of messages.
    pub(crate) adversary: Box<dyn Adversary>,
    /// Further disasters, in any order.
    pub(crate) disasters: Vec<(RealTime, Disaster)>,
    /// From when on the world keeps what it promises forever: liveness is owed.
    pub(crate) owes: RealTime,
    /// When the run ends, if nobody said so.
    pub(crate) ends: RealTime,
}

/// An adversary's view of a message that has just left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    /// The sender.
    pub(crate) from: NodeId,
    /// The receiver, which is somebody else.
    pub(crate) to: NodeId,
    /// The kind of message.
    pub(crate) kind: &'static str,
    /// The kind of message that it answers, if it does.
    pub(crate) answers: Option<&'static str>,
    /// The number of the question.
    pub(crate) number: u64,
}

/// Decides the fate of messages. It may remember; it is asked in the order in which they leave.
pub(crate) trait Adversary: fmt::Debug {
    /// When the copies of a message that leaves now arrive, if any does.
    fn fate(&mut self, now: RealTime, letter: Letter, random: &mut Random) -> Fate;

    /// How long a message of a process to itself takes, if not as long as everywhere.
    fn to_oneself(&mut self, _random: &mut Random) -> Option<u64> {
        None
    }

    /// How much of a message's delay it has waited at its receiver, having arrived before.
    fn processing(&mut self, _delay: u64, _random: &mut Random) -> u64 {
        0
    }
}

/// The processes that are granted access, for the minutes: `accessible: n1 n3`.
pub(crate) fn accessible_text(nodes: NodeSet) -> String {
    if nodes.is_empty() {
        return "accessible: nobody".to_owned();
    }
    let names: Vec<String> = nodes.positions().map(|node| format!("n{node}")).collect();
    format!("accessible: {}", names.join(" "))
}

/// Reads what [`accessible_text`] wrote.
pub(crate) fn parse_accessible(text: &str) -> Option<NodeSet> {
    let names = text.strip_prefix("accessible: ")?;
    if names == "nobody" {
        return Some(NodeSet::EMPTY);
    }
    names.split(' ').map(|name| name.strip_prefix('n')?.parse().ok().filter(|node| *node < 64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_accessible_is_read_back_as_it_was_written() {
        for set in [NodeSet::EMPTY, [0].into_iter().collect(), [1, 3, 30].into_iter().collect()] {
            assert_eq!(parse_accessible(&accessible_text(set)), Some(set));
        }
        assert_eq!(parse_accessible("split: n0 | n1"), None);
    }

    #[test]
    fn a_wrong_name_of_a_world_is_answered_with_the_nearest() {
        let error = Named::find("moving-sets").err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("there is no world 'moving-sets'; did you mean moving-set?"));
    }
}
