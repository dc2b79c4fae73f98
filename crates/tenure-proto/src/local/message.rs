//! The vocabulary of the local protocol: plain data, so that every driver can send it as it likes.

use crate::detect::fail_aware::Header;
use crate::quorum::NodeSet;
use crate::time::{Incarnation, Span};
use crate::{LocalTime, NodeId};

/// Names a request of one process, over all its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// The life in which it was made.
    pub incarnation: Incarnation,
    /// The sequence number within that life.
    pub number: u64,
}

/// A message between two processes, with its stamps. A broadcast is one of these for each member,
/// itself included: each has stamps of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Datagram {
    /// The stamps by which the receiver bounds the delay.
    pub header: Header,
    /// The sender's constants: they must be the receiver's.
    pub fingerprint: u64,
    /// How often the sender has let others have their turn: with its name the key by which
    /// processes are ordered.
    pub turn: u64,
    /// The content.
    pub body: Body,
}

/// The content of a datagram. Sets are of positions in the member list, which is the same
/// everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// The sender wants to lead.
    Election {
        /// Names it.
        request: RequestId,
        /// Whom the sender held for alive when it sent this: its target set. Without itself it is a
        /// probe.
        alive: NodeSet,
        /// Whether those in `alive` answer along the tree.
        collate: bool,
        /// The support set of the sender if it leads: the members of its logical partition, as of
        /// its last success.
        members: NodeSet,
    },
    /// An answer to a request, of one process or of a part of the tree.
    Reply {
        /// Whose request.
        root: NodeId,
        /// Which.
        request: RequestId,
        /// The members that have answered: signs of life.
        answered: NodeSet,
        /// Those of them that support the request.
        support: NodeSet,
    },
    /// Frees every process that is bound by this request.
    Release {
        /// Which.
        request: RequestId,
    },
    /// Nothing: its stamps are all that matters.
    Helper,
}

/// A request of the process's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Stop leading and free the supporters; where turns are taken, let the next have its turn.
    Resign,
}

/// A promise to support nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    /// To whom.
    pub to: usize,
    /// The newest request that was supported.
    pub request: RequestId,
    /// Until when on this clock.
    pub until: LocalTime,
}

/// The promise that survives a process within its boot. There is one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Promise {
    /// The lock that stands.
    pub lock: Option<Lock>,
    /// Until when nobody is supported, because a lock may have been forgotten.
    pub silent_until: LocalTime,
}

impl crate::Record for Promise {
    type Key = ();
    fn key(&self) {}
}

/// The lease of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// By which request.
    pub request: RequestId,
    /// Its supporters: its logical partition.
    pub supporters: NodeSet,
    /// Until when on this clock.
    pub until: LocalTime,
}

/// A process's view of its logical partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The leader of the partition.
    pub leader: NodeId,
    /// Its members, as of the leader's last success.
    pub members: NodeSet,
    /// Until when that may be relied upon, on this clock: never beyond this process's own lock.
    pub until: LocalTime,
}

/// An event for users, properties and drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A datagram came in and was judged.
    Heard {
        /// Of whom.
        from: NodeId,
        /// In which life of the sender it was sent, and its sequence number.
        name: (Incarnation, u64),
        /// When it came.
        received: LocalTime,
        /// The most that it can have been on its way, if anything is known.
        bound: Option<Span>,
        /// Whether it counts as fast.
        fast: bool,
    },
    /// It asks everybody.
    Asked {
        /// Names it.
        request: RequestId,
        /// Whom it holds for alive; without itself this is a probe.
        alive: NodeSet,
        /// Whether answers come along the tree.
        collate: bool,
    },
    /// It has bound itself.
    Locked {
        /// To whom, and until when.
        lock: Lock,
        /// When the request came.
        received: LocalTime,
    },
    /// It has answered a request without supporting it.
    Declined {
        /// Whose.
        asker: NodeId,
    },
    /// It leads, or leads on.
    Leads {
        /// By which request, with whom, until when.
        lease: Lease,
        /// Whether it led before without a break.
        renewed: bool,
    },
    /// A request did not succeed.
    Failed {
        /// Which.
        request: RequestId,
    },
    /// It has set its supporters free.
    Released {
        /// The request that was answered.
        request: RequestId,
    },
    /// It was set free.
    Freed {
        /// Of whom.
        to: NodeId,
    },
    /// It leads no more, by its own will or because its turn is over.
    Stepped {
        /// How often it has let others have their turn.
        turn: u64,
    },
    /// It knows the members of its logical partition.
    Members(View),
    /// It supports nobody until then: what it promised in a former life may stand.
    Silent {
        /// Until when.
        until: LocalTime,
    },
}
