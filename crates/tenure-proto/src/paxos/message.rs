//! The vocabulary: ballots, slots, entries, and what processes, users and disks are told.

use std::fmt;
use std::sync::Arc;

use super::session::Sessions;
use crate::{Incarnation, LocalTime, NodeId};

/// A client's command; no process here looks into it.
pub type Bytes = Arc<[u8]>;

/// A place in the log, from 1. Slot 0 is the state before anything was chosen.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u64);

impl Slot {
    /// The one after it.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An attempt to lead. Ordered by term, then round, then process: no two processes have the same
/// one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// The strong term of its process, where a strong group elects; else 0.
    pub term: u64,
    /// Rises with every attempt; at least the epoch of the election.
    pub round: u64,
    /// Whose it is.
    pub node: NodeId,
}

impl Ballot {
    /// Below all others; nobody's.
    pub const NONE: Self = Self { term: 0, round: 0, node: NodeId(0) };
}

impl fmt::Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}@{}", self.term, self.round, self.node)
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A client's session: the slot in which it was opened. So no session is ever opened again by a
/// message that came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(pub u64);

/// The content of a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Nothing: fills a gap that a leader left.
    Noop,
    /// A client opens a session.
    Open {
        /// Names the wish, so that its client recognises the answer. Drawn, and never used again.
        nonce: u128,
    },
    /// A client writes.
    Write {
        /// In which session.
        session: Session,
        /// The sequence number within the session, rising.
        number: u64,
        /// What.
        bytes: Bytes,
    },
}

impl Entry {
    /// About how many bytes it is in a message.
    pub(super) fn weight(&self) -> usize {
        let bytes = if let Self::Write { bytes, .. } = self { bytes.len() } else { 0 };
        bytes.saturating_add(32)
    }

    /// The key of the wish behind it.
    pub fn key(&self) -> Option<Key> {
        match self {
            Self::Noop => None,
            Self::Open { nonce } => Some(Key::Open(*nonce)),
            Self::Write { session, number, .. } => Some(Key::Write(*session, *number)),
        }
    }
}

/// Names a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// To open a session, by its nonce.
    Open(u128),
    /// To write, by session and number.
    Write(Session, u64),
}

/// How firmly a process holds an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It accepted the entry in this ballot.
    Accepted(Ballot),
    /// It knows that the entry is chosen.
    Chosen,
}

/// The vote of a process in a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vote {
    /// How firmly.
    pub standing: Standing,
    /// What.
    pub entry: Entry,
}

/// A message between two processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Promise me this ballot, and tell what you hold from this slot on.
    Prepare {
        /// The ballot.
        ballot: Ballot,
        /// The first slot that the sender does not know to be chosen, or that the receiver has not
        /// reported yet.
        from: Slot,
    },
    /// Promised.
    Promise {
        /// The ballot.
        ballot: Ballot,
        /// From which slot on it was asked what it holds.
        from: Slot,
        /// The votes that it holds from there on, or the first of them.
        votes: Vec<(Slot, Vote)>,
        /// The slot of the first vote that it has not told in this message, if there is one: ask
        /// again from there.
        next: Option<Slot>,
        /// Up to where it holds nothing any more, because all that was chosen.
        base: Slot,
        /// Up to where it knows everything to be chosen.
        applied: Slot,
    },
    /// Accept these entries.
    Accept {
        /// The ballot.
        ballot: Ballot,
        /// The entries.
        entries: Vec<(Slot, Entry)>,
        /// As in [`Message::Commit`].
        upto: Slot,
    },
    /// Accepted.
    Accepted {
        /// The ballot.
        ballot: Ballot,
        /// The slots.
        slots: Vec<Slot>,
    },
    /// Refused: a higher ballot is promised.
    Nack {
        /// That one.
        promised: Ballot,
    },
    /// Whatever was proposed in this ballot up to this slot is chosen.
    Commit {
        /// The ballot.
        ballot: Ballot,
        /// The slot.
        upto: Slot,
    },
    /// What is chosen from this slot on?
    Fetch {
        /// The first slot that the sender does not know.
        from: Slot,
    },
    /// These are chosen.
    Learn {
        /// The entries, one after the other.
        entries: Vec<(Slot, Entry)>,
        /// Up to where the sender knows everything to be chosen.
        upto: Slot,
    },
    /// Chosen entries up to there are forgotten: this is the state that came of them.
    Install {
        /// Up to which slot.
        upto: Slot,
        /// The sessions there.
        sessions: Sessions,
        /// The state there.
        state: Bytes,
    },
    /// Wishes of clients, passed on to the one who should lead.
    Forward {
        /// The entries.
        entries: Vec<Entry>,
    },
    /// Has anybody a higher ballot than mine?
    Confirm {
        /// The sender's.
        ballot: Ballot,
        /// The round of reads.
        round: u64,
    },
    /// Not here.
    Confirmed {
        /// The ballot.
        ballot: Ballot,
        /// The round.
        round: u64,
    },
    /// Up to where must I have applied the log to read?
    AskIndex {
        /// The reader's name for it.
        id: u64,
        /// The life of the process that asks.
        life: Incarnation,
    },
    /// Up to here.
    Index {
        /// The reader's name for it.
        id: u64,
        /// The life of the process that asked.
        life: Incarnation,
        /// The slot.
        upto: Slot,
    },
}

/// An input from outside: from clients or from the election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// The process that should lead, as the election sees it from here.
    Hint {
        /// Whom it names, if anybody.
        leader: Option<NodeId>,
        /// The epoch of its leadership: 0, if the election has none.
        epoch: u64,
    },
    /// This process holds the strong lease of the group: a new term, or a renewal.
    Lease {
        /// The term.
        term: u64,
        /// E: until when, on this host's clock.
        until: LocalTime,
    },
    /// The lease is about to be given back, or is lost.
    LeaseOver,
    /// A client wants a session.
    Open {
        /// Drawn by the client, and never used again.
        nonce: u128,
    },
    /// A client writes.
    Write {
        /// Its session.
        session: Session,
        /// The sequence number of the write, rising. The one before was answered.
        number: u64,
        /// What.
        bytes: Bytes,
    },
    /// A client wants to read what every write that was answered before has left.
    Read {
        /// Names it: unique within this life of the process.
        id: u64,
    },
    /// The client of a read does not wait any longer.
    AbandonRead {
        /// Which read.
        id: u64,
    },
    /// The state was looked at after [`Event::ReadNow`].
    ReadDone {
        /// Which read.
        id: u64,
    },
    /// The snapshot that was wanted.
    Snapshot {
        /// At which slot.
        upto: Slot,
        /// All that the driver needs to go on from there: the state, and the last answer of each
        /// session.
        state: Bytes,
    },
    /// There is no snapshot where one was wanted. It is asked for again as many slots later as lie
    /// between two of them.
    NoSnapshot {
        /// At which slot.
        upto: Slot,
    },
}

/// An event for users and properties.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The state is to be this, as it was after `upto`, whatever it was before.
    Restore {
        /// The slot.
        upto: Slot,
        /// As the driver of some process gave it.
        state: Bytes,
    },
    /// A slot is chosen and next in turn.
    Applied {
        /// Which.
        slot: Slot,
        /// The act to carry out on the state.
        applied: Applied,
    },
    /// A wish is fulfilled, by a slot that was applied before or is skipped by a snapshot: its
    /// answer is known, and is in the state.
    Done(Key),
    /// A wish is refused: too many wait here.
    Refused(Key),
    /// The state may be read now.
    Readable {
        /// Which read.
        id: u64,
    },
    /// The state may be read now, under the strong lease; say [`Command::ReadDone`] afterwards.
    ReadNow {
        /// Which read.
        id: u64,
    },
    /// The value that was read then is the answer.
    ReadStands {
        /// Which read.
        id: u64,
    },
    /// A snapshot of the state, as it is after this slot, is wanted.
    SnapshotWanted {
        /// The slot.
        upto: Slot,
    },
    /// This process asks for promises.
    Preparing(Ballot),
    /// It leads.
    Leading(Ballot),
    /// It does not lead any more, or does not try to.
    Passive(Ballot),
    /// This leader proposes something in a slot, for the first time in this ballot.
    Proposed {
        /// In which slot.
        slot: Slot,
        /// In which ballot.
        ballot: Ballot,
    },
    /// f+1 acceptors accepted this: it is chosen.
    Chosen {
        /// In which slot.
        slot: Slot,
        /// In which ballot.
        ballot: Ballot,
    },
    /// An acceptor was asked to choose between this and a promise, and refused.
    Stale(Ballot),
}

/// The meaning of an applied slot for the state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Applied {
    /// Nothing.
    Noop,
    /// A session is open.
    Opened {
        /// Whose wish it was.
        nonce: u128,
        /// Its name.
        session: Session,
        /// The one that made room: its answer need not be kept any longer.
        closed: Option<Session>,
    },
    /// A write, for the first time: carry it out.
    Write {
        /// In which session.
        session: Session,
        /// The sequence number.
        number: u64,
        /// What.
        bytes: Bytes,
    },
    /// A write that was carried out before: the answer is the kept one.
    Again {
        /// In which session.
        session: Session,
        /// The sequence number.
        number: u64,
    },
    /// A write in a session that is not open any more: refused, for it may have been carried out.
    Expired {
        /// In which session.
        session: Session,
        /// The sequence number.
        number: u64,
    },
}

/// A record on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// The highest ballot promised.
    Promised(Ballot),
    /// An accepted entry.
    Accepted {
        /// In which slot.
        slot: Slot,
        /// In which ballot.
        ballot: Ballot,
        /// What.
        entry: Entry,
    },
    /// The outcome of the log up to a slot.
    Snapshot {
        /// The slot.
        upto: Slot,
        /// The sessions there.
        sessions: Sessions,
        /// The state there.
        state: Bytes,
    },
    /// Cells of slots up to this one are worthless: a snapshot at or above it is durable before
    /// this is, or both are left out.
    Base(Slot),
    /// This disk is in the place of one that was lost, and promises with it: for good, and before
    /// anything else is written to it.
    Forgot,
}

/// The name of a cell on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// The promise.
    Promised,
    /// A slot.
    Accepted(Slot),
    /// The snapshot.
    Snapshot,
    /// The base.
    Base,
    /// That a disk was lost.
    Forgot,
}

impl crate::Record for Record {
    type Key = Cell;

    fn key(&self) -> Cell {
        match self {
            Self::Promised(_) => Cell::Promised,
            Self::Accepted { slot, .. } => Cell::Accepted(*slot),
            Self::Snapshot { .. } => Cell::Snapshot,
            Self::Base(_) => Cell::Base,
            Self::Forgot => Cell::Forgot,
        }
    }

    fn makes_worthless(&self, cell: &Cell) -> bool {
        matches!((self, cell), (Self::Base(base), Cell::Accepted(slot)) if slot <= base)
    }
}
