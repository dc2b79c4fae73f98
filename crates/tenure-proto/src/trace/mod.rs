//! Traces: what a running node writes down, so that others can judge it afterwards.
//!
//! A trace is text, one entry a line: a kind, then `key=value` pairs in any order. The first line
//! names the format and its version. A node writes what its machines published, those of its local
//! groups among them (`local.rs`), users' threads write the edicts that they made, and a fenced
//! resource what it admitted; `tenure lab audit` puts the files of a cluster together and judges
//! them by the laboratory's properties.
//!
//! ```text
//! tenure-trace 1
//! start own=5s common=5s node=n1 name=alpha incarnation=1 cluster=0…7f epoch=0 floor=0 members=n1,n2,n3 quorums=majority …
//! asked own=5.2s common=5.2s group=g7 epoch=0 run=n1/1/1 start=5.2s lease=2s kind=acquire term=1
//! leads own=5.201s common=5.201s group=g7 epoch=0 run=n1/1/1 kind=acquire term=1 lease=2s until=7s quorum=0,1 stamps=…
//! edict own=5.3s common=5.3s..5.301s group=g7 epoch=0 term=1 number=1 after=5.301s
//! stop own=6s common=6s
//! ```
//!
//! A reader skips keys and kinds that it does not know: a later version may add some, and changes
//! none. Lines that begin with `#` are remarks.
//!
//! # Which clocks
//!
//! `own` is a reading of the clock that the lease is judged by: for an event the very `now` of the
//! step that published it. Readings of two nodes do not compare. Where all nodes run on one machine
//! they can read one more clock, the **common** one: then it can be judged who led at the same
//! time. It is read before and after the own one, and both readings are written ([`Common`]); where
//! the own clock *is* the common one, one reading is both.
//!
//! # Duties of a writer
//!
//! 1. `own` and `common` of an event are read after its input was taken from the queue, as the
//!    machine's `now` is. So what an event rests on has happened before, by the common clock too.
//!    They are read together, one around the other, and not when the line is written: a process may
//!    be stopped in between for any time, and a lease would seem to last longer.
//! 2. The lines of a step are handed to the operating system before anybody can see what the step
//!    did: before its events are visible to users and before its messages leave. So a file that
//!    ends because its process was killed lacks nothing that others know of. Its last line may be
//!    cut off; it does not count.
//! 3. A life begins with `start`. One file for each life is best. A writer that adds to a file
//!    whose last line has no end writes [`CUT`] first.
//! 4. Edicts may be written in any order, and by another file than the node's, which then begins
//!    with `part`.

mod local;
mod read;
#[cfg(test)]
mod tests;
mod value;
mod write;

use std::sync::Arc;

pub use local::LocalStart;
pub use read::{Problem, Reader, TraceError};
pub(super) use write::write_charter;
pub use write::write_event;

use crate::fence::Rule;
use crate::local as local_group;
use crate::strong::edict::{QuorumStamp, Token};
use crate::strong::epoch::{Charter, Epoch};
use crate::strong::{Event, Term};
use crate::{GroupId, Incarnation, LocalTime, NodeId};

/// The first line of a file, without its end.
pub const HEADER: &str = "tenure-trace 1";

/// Ends a line that was cut off, so that nobody takes what is left of it for the whole.
pub const CUT: &str = "~\n";

/// One entry of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// A reading of the writer's own clock. For an edict, the one before it was made.
    pub own: LocalTime,
    /// When that was on the clock that all writers share, if there is one.
    pub common: Option<Common>,
    /// The content of the entry.
    pub what: What,
}

/// Two readings of the common clock, in nanoseconds, between which the own clock was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Common {
    /// Before.
    pub from: u64,
    /// After: never smaller.
    pub to: u64,
}

impl Common {
    /// Where the own clock is the common one, or follows from it: one reading, not two, however
    /// quickly they follow each other.
    pub const fn exact(nanos: u64) -> Self {
        Self { from: nanos, to: nanos }
    }

    /// Between two readings. If the second is smaller, the clock went back, and the first counts
    /// for both.
    pub const fn between(from: u64, to: u64) -> Self {
        Self { from, to: if to < from { from } else { to } }
    }
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A life of a node begins. The entries that follow are its own, up to the next of these.
    Start(Start),
    /// The entries that follow were written by another part of this life, such as a user's thread.
    Part(Life),
    /// The name of a group, as people call it.
    Group {
        /// Its number.
        group: GroupId,
        /// Its name.
        name: String,
    },
    /// The machine has published this.
    Event(Event),
    /// The machine of a local group begins. The entries of that group that follow are its own, up
    /// to the next of these.
    LocalStart(LocalStart),
    /// The machine of a local group has published this.
    Local {
        /// The group.
        group: GroupId,
        /// What.
        event: local_group::Event,
    },
    /// The machine of a local group has ended: it neither leads nor supports any more.
    LocalEnd {
        /// The group.
        group: GroupId,
    },
    /// A user's thread has made an edict that it holds for valid.
    Edict(EdictMade),
    /// A fenced resource has admitted a write.
    Admitted(Decision),
    /// A fenced resource has refused a write.
    Refused(Decision),
    /// The node has ended in good order: it does nothing more in this life.
    Stop,
}

/// One life of one node of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Life {
    /// The node.
    pub node: NodeId,
    /// Which life of it.
    pub incarnation: Incarnation,
    /// The cluster that it belongs to: traces of two clusters are not judged together.
    pub cluster: u128,
}

/// How a life begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Whose.
    pub life: Life,
    /// The name of the node, as people call it.
    pub name: String,
    /// The newest charter that it knows: who grants, and under which bounds.
    pub charter: Arc<Charter>,
}

/// An edict, made between the readings `own` and `after`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdictMade {
    /// The election.
    pub group: GroupId,
    /// The epoch of the run that began the term.
    pub epoch: Epoch,
    /// The term.
    pub term: Term,
    /// Its number within the term.
    pub number: u64,
    /// A reading of the own clock after it was made.
    pub after: LocalTime,
    /// QT0, if its maker has told: who granted the run that began the term, and when.
    pub first: Option<QuorumStamp>,
}

/// The decision of a fenced resource on a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The name of the resource: each has an order of its own.
    pub resource: String,
    /// The rule of its fence.
    pub rule: Rule,
    /// The token of the write.
    pub token: Token,
    /// The sequence number of the resource's decision, in the order in which it decided, whichever
    /// process wrote it down. A refusal, which changes nothing, may have the number of the decision
    /// before it.
    pub at: u64,
}
