//! Ballots, slots and entries; messages of processes, commands of users, and records on disks.

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
    /// The last slot that messages may name: no log gets there in the life of a machine. A message
    /// that names a later one is dropped, so that sums of slots never overflow.
    pub const LAST: Self = Self(1 << 56);

    /// The slot after it.
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
/// ballot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// The strong term of its process, where a strong group elects; else 0.
    pub term: u64,
    /// The round: rises with every attempt; at least the epoch of the election.
    pub round: u64,
    /// The process that proposes in it.
    pub node: NodeId,
}

impl Ballot {
    /// The ballot of nobody, below all others.
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
    /// A no-op: fills a gap that a leader left.
    Noop,
    /// A client opens a session.
    Open {
        /// Names the wish, so that its client recognises the answer. Drawn, and never used again.
        nonce: u128,
    },
    /// A client writes.
    Write {
        /// The session.
        session: Session,
        /// The sequence number of the write in its session, rising.
        number: u64,
        /// The command.
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

/// Names a wish of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The wish to open a session, by its nonce.
    Open(u128),
    /// The wish to write, by session and sequence number.
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
    /// The standing of the entry.
    pub standing: Standing,
    /// The entry.
    pub entry: Entry,
}

/// A message between two processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Asks the receiver to promise this ballot, and to report its votes from this slot on.
    Prepare {
        /// The ballot.
        ballot: Ballot,
        /// The first slot that the sender does not know to be chosen, or that the receiver has not
        /// reported yet.
        from: Slot,
    },
    /// Promises the ballot, and reports votes.
    Promise {
        /// The ballot.
        ballot: Ballot,
        /// The slot from which on votes were asked for.
        from: Slot,
        /// The votes that it holds from there on, or the first of them.
        votes: Vec<(Slot, Vote)>,
        /// The slot of the first vote that does not fit into this message, if there is one: ask
        /// again from there.
        next: Option<Slot>,
        /// The slot up to which it holds no votes any more, because all entries there were chosen.
        base: Slot,
        /// The slot up to which it knows everything to be chosen.
        applied: Slot,
    },
    /// Asks the receiver to accept these entries.
    Accept {
        /// The ballot.
        ballot: Ballot,
        /// The entries.
        entries: Vec<(Slot, Entry)>,
        /// The last slot chosen, as in [`Message::Commit`].
        upto: Slot,
    },
    /// Reports that entries were accepted.
    Accepted {
        /// The ballot.
        ballot: Ballot,
        /// The slots.
        slots: Vec<Slot>,
    },
    /// Refuses: a higher ballot is promised.
    Nack {
        /// The promised ballot.
        promised: Ballot,
    },
    /// Reports that every entry proposed in this ballot up to this slot is chosen.
    Commit {
        /// The ballot.
        ballot: Ballot,
        /// The slot.
        upto: Slot,
    },
    /// Asks which entries are chosen from this slot on.
    Fetch {
        /// The first slot that the sender does not know.
        from: Slot,
    },
    /// Answers with chosen entries.
    Learn {
        /// The entries, one after the other.
        entries: Vec<(Slot, Entry)>,
        /// The slot up to which the sender knows everything to be chosen.
        upto: Slot,
    },
    /// Answers with a snapshot, because chosen entries up to there are forgotten: this is the state
    /// that came of them.
    Install {
        /// The last slot that it covers.
        upto: Slot,
        /// The sessions there.
        sessions: Sessions,
        /// The state there.
        state: Bytes,
    },
    /// Passes wishes of clients on to the process that should lead.
    Forward {
        /// The entries.
        entries: Vec<Entry>,
    },
    /// Asks whether the receiver has promised a higher ballot than this one.
    Confirm {
        /// The sender's ballot.
        ballot: Ballot,
        /// The sequence number of the round of reads.
        round: u64,
    },
    /// Confirms that the receiver has not.
    Confirmed {
        /// The ballot.
        ballot: Ballot,
        /// The round.
        round: u64,
    },
    /// Asks for the read index: the slot up to which the log must be applied to read.
    AskIndex {
        /// The reader's name for it.
        id: u64,
        /// The life of the process that asks.
        life: Incarnation,
    },
    /// Answers with the read index.
    Index {
        /// The reader's name for it.
        id: u64,
        /// The life of the process that asked.
        life: Incarnation,
        /// The slot.
        upto: Slot,
    },
}

impl Message {
    /// The highest slot that it names.
    pub(super) fn highest_slot(&self) -> Slot {
        let last = |entries: &[(Slot, Entry)]| entries.iter().map(|(slot, _)| *slot).max();
        match self {
            Self::Prepare { from, .. } | Self::Fetch { from } => *from,
            Self::Promise { from, votes, next, base, applied, .. } => {
                let voted = votes.iter().map(|(slot, _)| *slot).max().unwrap_or_default();
                voted.max(*from).max(next.unwrap_or_default()).max(*base).max(*applied)
            }
            Self::Accept { entries, upto, .. } | Self::Learn { entries, upto } => {
                last(entries).unwrap_or_default().max(*upto)
            }
            Self::Accepted { slots, .. } => slots.iter().copied().max().unwrap_or_default(),
            Self::Commit { upto, .. } | Self::Install { upto, .. } | Self::Index { upto, .. } => *upto,
            Self::Nack { .. }
            | Self::Forward { .. }
            | Self::Confirm { .. }
            | Self::Confirmed { .. }
            | Self::AskIndex { .. } => Slot(0),
        }
    }
}

/// An input from outside: from clients or from the election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// The process that should lead, as the election sees it from here.
    Hint {
        /// The process that it names, if any.
        leader: Option<NodeId>,
        /// The epoch of its leadership: 0, if the election has none.
        epoch: u64,
    },
    /// This process holds the strong lease of the group: a new term, or a renewal.
    Lease {
        /// The term.
        term: u64,
        /// E: the end of the lease, on this host's clock.
        until: LocalTime,
    },
    /// The lease is about to be given back, or is lost.
    LeaseOver,
    /// A client asks for a session.
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
        /// The command.
        bytes: Bytes,
    },
    /// A client asks for a linearizable read: the state after every write that was answered before.
    Read {
        /// The name of the read: unique within this life of the process.
        id: u64,
    },
    /// The client of a read does not wait any longer.
    AbandonRead {
        /// The name of the read.
        id: u64,
    },
    /// The state was looked at after [`Event::ReadNow`].
    ReadDone {
        /// The name of the read.
        id: u64,
    },
    /// The driver hands over the snapshot that was wanted.
    Snapshot {
        /// The slot.
        upto: Slot,
        /// All that the driver needs to go on from there: the state, and the last answer of each
        /// session.
        state: Bytes,
    },
    /// The driver has no snapshot where one was wanted. It is asked for again as many slots later
    /// as lie between two of them.
    NoSnapshot {
        /// The slot.
        upto: Slot,
    },
}

/// An event for users and properties.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The state is to be replaced by this one, as it was after `upto`.
    Restore {
        /// The slot.
        upto: Slot,
        /// The state, as the driver of some process gave it.
        state: Bytes,
    },
    /// A slot is chosen and next in turn.
    Applied {
        /// The slot.
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
        /// The name of the read.
        id: u64,
    },
    /// The state may be read now, under the strong lease; say [`Command::ReadDone`] afterwards.
    ReadNow {
        /// The name of the read.
        id: u64,
    },
    /// The value that was read then is the answer.
    ReadStands {
        /// The name of the read.
        id: u64,
    },
    /// A snapshot of the state, as it is after this slot, is wanted.
    SnapshotWanted {
        /// The slot.
        upto: Slot,
    },
    /// This process asks for promises.
    Preparing(Ballot),
    /// This process leads.
    Leading(Ballot),
    /// This process does not lead any more, or does not try to.
    Passive(Ballot),
    /// This leader proposes an entry in a slot, for the first time in this ballot.
    Proposed {
        /// The slot.
        slot: Slot,
        /// The ballot.
        ballot: Ballot,
    },
    /// f+1 acceptors accepted an entry: it is chosen.
    Chosen {
        /// The slot.
        slot: Slot,
        /// The ballot.
        ballot: Ballot,
    },
    /// An acceptor was asked to accept or promise a ballot below its promise, and refused.
    Stale(Ballot),
}

/// The meaning of an applied slot for the state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Applied {
    /// A no-op.
    Noop,
    /// A session is open.
    Opened {
        /// The nonce of the wish.
        nonce: u128,
        /// Its name.
        session: Session,
        /// The session that made room: its answer need not be kept any longer.
        closed: Option<Session>,
    },
    /// A write, for the first time: the driver carries it out.
    Write {
        /// The session.
        session: Session,
        /// The sequence number.
        number: u64,
        /// The command.
        bytes: Bytes,
    },
    /// A write that was carried out before: the answer is the kept one, so writes are idempotent.
    Again {
        /// The session.
        session: Session,
        /// The sequence number.
        number: u64,
    },
    /// A write in a session that is not open any more: refused, for it may have been carried out.
    Expired {
        /// The session.
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
        /// The slot.
        slot: Slot,
        /// The ballot.
        ballot: Ballot,
        /// The entry.
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
    /// The cell of the promise.
    Promised,
    /// The cell of a slot.
    Accepted(Slot),
    /// The cell of the snapshot.
    Snapshot,
    /// The cell of the base.
    Base,
    /// The cell that says that a disk was lost.
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
