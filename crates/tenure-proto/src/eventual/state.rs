//! States in the registries, messages between processes, and records on disk and in memory.

use std::fmt;

use crate::time::Span;
use crate::{LocalTime, NodeId};

/// A leadership that a process stands for: the lowest one that is alive leads. Ordered by serial,
/// then by process.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    /// The number of times that its process, or one that it knew of, gave an epoch up.
    pub serial: u64,
    /// Its process; `None` only in the epoch that stands for nobody, which is below all others of
    /// its serial.
    pub process: Option<NodeId>,
}

impl Epoch {
    /// The epoch of nobody.
    pub const NOBODY: Self = Self { serial: 0, process: None };

    /// Makes an epoch of `process`.
    pub fn of(serial: u64, process: NodeId) -> Self {
        Self { serial, process: Some(process) }
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "({}, {process})", self.serial),
            None => write!(f, "({}, nobody)", self.serial),
        }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The highest serial, and the highest count of refreshes, that anybody can have come to: more than
/// one a nanosecond for a century. A number above it is a mistake, and a process that rose above it
/// would come to the end of all numbers.
const HIGHEST: u64 = 1 << 62;

/// The process that another takes for leader, and its epoch. With [`Stable`](super::Stable) the
/// epochs of successive leaders rise: the epoch can be the first ballot of a consensus protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hint {
    /// The leader, if there seems to be one.
    pub leader: Option<NodeId>,
    /// Its epoch.
    pub epoch: Epoch,
}

/// The state of one process, as it writes it to others. A state that changes shows that its process
/// lives, and reaches enough others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The epoch that the process stands for.
    pub epoch: Epoch,
    /// The sequence number of the refresh.
    pub fresh: u64,
    /// The longest real time for which a reader may see no newer state while all goes well: the
    /// longest time between two refreshes and a round trip. It does not change within an epoch.
    pub bound: Span,
}

impl State {
    /// The state assumed of a process that was never heard of.
    pub const NOTHING: Self = Self { epoch: Epoch::NOBODY, fresh: 0, bound: Span::from_nanos(0) };

    /// Whether this is a later state than another of the same process.
    pub fn is_newer(&self, than: &Self) -> bool {
        (self.epoch, self.fresh) > (than.epoch, than.fresh)
    }

    /// Whether a member can have been in this state: never heard of, or standing for an epoch of
    /// its own.
    pub(super) fn can_be_of(&self, member: NodeId) -> bool {
        let own = self.epoch == Epoch::NOBODY || self.epoch.process == Some(member);
        own && self.epoch.serial <= HIGHEST && self.fresh <= HIGHEST
    }

    /// Takes the later one.
    pub(super) fn merge(&mut self, other: Self) {
        if other.is_newer(self) {
            *self = other;
        }
    }
}

/// A message between two processes. Every question has a number, and its answer repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Asks the receiver to write down the sender's state.
    Refresh {
        /// The state.
        state: State,
        /// The round.
        round: u64,
    },
    /// The sender holds a state of the receiver at least as new as the refresh that it answers.
    Ack {
        /// The round.
        round: u64,
        /// The serial that the sender holds, if that is newer than the one it was sent.
        ahead: Option<u64>,
    },
    /// Asks for the states of all members that the receiver knows.
    Collect {
        /// The read.
        read: u64,
    },
    /// Answers a [`Message::Collect`].
    Status {
        /// The read.
        read: u64,
        /// The states of all members, by position.
        registry: Vec<State>,
        /// Whether the sender has lost its states, and is still reading them anew.
        recovers: bool,
    },
    /// Asks for the highest serial that the receiver knows of.
    GetEpoch {
        /// The attempt.
        attempt: u64,
    },
    /// Answers a [`Message::GetEpoch`].
    RetEpoch {
        /// The attempt.
        attempt: u64,
        /// The highest serial.
        serial: u64,
    },
    /// A heartbeat (the two elections of [`baseline`](super::baseline) alone).
    Alive {
        /// The number of accusations of each member by enough others, by position.
        counts: Vec<u64>,
    },
    /// Accuses a member that the sender has not heard of for too long (as before).
    Accuse {
        /// The member's position.
        of: usize,
        /// The number of accusations by enough others so far.
        count: u64,
    },
}

/// The contents of a [`Message::Status`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Status<'a> {
    /// The read that it answers.
    pub(super) read: u64,
    /// The states of all members, by position.
    pub(super) registry: &'a [State],
    /// Whether its sender has lost its states, and is still reading them anew.
    pub(super) recovers: bool,
}

impl Message {
    /// Whether a member can have sent it. One wrong number would be the highest forever, in all
    /// registries.
    pub(super) fn can_be_from(&self, from: NodeId, members: &[NodeId]) -> bool {
        if !members.contains(&from) {
            return false;
        }
        match self {
            Self::Refresh { state, .. } => state.can_be_of(from),
            Self::Ack { ahead, .. } => ahead.is_none_or(|serial| serial <= HIGHEST),
            Self::Status { registry, .. } => {
                let mut states = registry.iter().zip(members);
                registry.len() == members.len() && states.all(|(state, of)| state.can_be_of(*of))
            }
            Self::RetEpoch { serial, .. } => *serial <= HIGHEST,
            Self::Alive { counts } => counts.iter().all(|count| *count <= HIGHEST),
            Self::Collect { .. } | Self::GetEpoch { .. } | Self::Accuse { .. } => true,
        }
    }
}

/// A record that is kept over a restart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// The state that a member last wrote here.
    Entry {
        /// The member.
        of: NodeId,
        /// Its state.
        state: State,
    },
    /// The mark that nothing is missing: every state that was acknowledged is there, or a newer
    /// one.
    Whole,
    /// The serial of one's own epoch.
    Own {
        /// The serial.
        serial: u64,
    },
}

/// The name of a [`Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The name of an entry.
    Entry(NodeId),
    /// The name of the mark that nothing is missing.
    Whole,
    /// The name of one's own serial.
    Own,
}

impl crate::Record for Record {
    type Key = Key;

    fn key(&self) -> Key {
        match self {
            Self::Entry { of, .. } => Key::Entry(*of),
            Self::Whole => Key::Whole,
            Self::Own { .. } => Key::Own,
        }
    }
}

/// An event that a process tells its user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The process takes another for leader from now on.
    Hint(Hint),
    /// The process takes itself for leader, or goes on doing so: until this reading, unless it says
    /// so again.
    Leads {
        /// The epoch by which it leads.
        epoch: Epoch,
        /// The end, as a reading of its own clock.
        until: LocalTime,
    },
    /// The process takes itself for leader no more.
    Yields {
        /// The epoch by which it led.
        epoch: Epoch,
    },
    /// The process stands for another epoch from now on.
    Stands {
        /// The new epoch.
        epoch: Epoch,
    },
    /// The process stands for no epoch: a round was not answered in time, or it has only begun.
    Adrift,
    /// The process hears of an epoch of its own that it does not know any more, and gives up the
    /// present one, which nobody would see.
    Outrun {
        /// The serial of the forgotten epoch.
        serial: u64,
    },
    /// The process allows a longer time for answers from now on.
    Allows {
        /// The new time.
        round: Span,
    },
    /// The process has lost states that others relied on, and answers nothing until it has read
    /// them anew.
    Recovers,
    /// The process takes part again.
    Recovered,
}
