//! The messages, records and events of the local protocol: plain data, so that every driver can
//! send it as it likes.

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
    /// The number of times that the sender has let others have their turn: with its name the key by
    /// which processes are ordered.
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
        /// The name of the request.
        request: RequestId,
        /// The members that the sender held for alive when it sent this: its target set. Without
        /// itself it is a probe.
        alive: NodeSet,
        /// Whether those in `alive` answer along the tree.
        collate: bool,
        /// The support set of the sender if it leads: the members of its logical partition, as of
        /// its last success.
        members: NodeSet,
    },
    /// An answer to a request, of one process or of a part of the tree.
    Reply {
        /// The process that asked.
        root: NodeId,
        /// The name of its request.
        request: RequestId,
        /// The members that have answered: signs of life.
        answered: NodeSet,
        /// Those of them that support the request.
        support: NodeSet,
    },
    /// Frees every process that is bound by this request.
    Release {
        /// The name of the request.
        request: RequestId,
    },
    /// Nothing: its stamps are all that matters.
    Helper,
}

/// A request of the process's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Stops leading and frees the supporters; where turns are taken, lets the next have its turn.
    Resign,
}

/// A promise to support nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    /// The holder: the process that is supported.
    pub to: usize,
    /// The newest request that was supported.
    pub request: RequestId,
    /// The end of the lock on this clock.
    pub until: LocalTime,
}

/// The promise that survives a process within its boot. There is one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Promise {
    /// The lock that stands.
    pub lock: Option<Lock>,
    /// The reading until which nobody is supported, because a lock may have been forgotten.
    pub silent_until: LocalTime,
}

impl crate::Record for Promise {
    type Key = ();
    fn key(&self) {}
}

/// The lease of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The request that won it.
    pub request: RequestId,
    /// Its supporters: its logical partition.
    pub supporters: NodeSet,
    /// The end of the lease on this clock.
    pub until: LocalTime,
}

/// A process's view of its logical partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The leader of the partition.
    pub leader: NodeId,
    /// Its members, as of the leader's last success.
    pub members: NodeSet,
    /// The reading until which that may be relied upon, on this clock: never beyond this process's
    /// own lock.
    pub until: LocalTime,
}

/// An event for users, properties and drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A datagram came in and was judged.
    Heard {
        /// The sender.
        from: NodeId,
        /// The life of the sender in which it was sent, and its sequence number.
        name: (Incarnation, u64),
        /// When it came.
        received: LocalTime,
        /// The longest time that it can have been on its way, if anything is known.
        bound: Option<Span>,
        /// Whether it counts as fast.
        fast: bool,
    },
    /// The process asks every member.
    Asked {
        /// The name of the request.
        request: RequestId,
        /// The members that it holds for alive; without itself this is a probe.
        alive: NodeSet,
        /// Whether answers come along the tree.
        collate: bool,
    },
    /// The process has bound itself.
    Locked {
        /// The lock: its holder and its end.
        lock: Lock,
        /// When the request came.
        received: LocalTime,
    },
    /// The process has answered a request without supporting it.
    Declined {
        /// The process that asked.
        asker: NodeId,
    },
    /// The process leads, or leads on.
    Leads {
        /// The lease: its request, supporters and end.
        lease: Lease,
        /// Whether it led before without a break.
        renewed: bool,
    },
    /// A request did not succeed.
    Failed {
        /// The name of the request.
        request: RequestId,
    },
    /// The process has set its supporters free.
    Released {
        /// The request that it releases.
        request: RequestId,
    },
    /// The process was set free.
    Freed {
        /// The process that it was bound to.
        to: NodeId,
    },
    /// The process leads no more, by its own will, because its turn is over, or because its clock
    /// went back.
    Stepped {
        /// The number of times that it has let others have their turn.
        turn: u64,
    },
    /// The process knows the members of its logical partition.
    Members(View),
    /// The process supports nobody until then: a promise of a former life may stand.
    Silent {
        /// The end of the silence.
        until: LocalTime,
    },
}
