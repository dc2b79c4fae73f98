//! Events of a process of a strong cluster, and why runs and leaderships end.

use std::sync::Arc;

use super::edict::QuorumStamp;
use super::epoch::{Ballot, Charter, CharterId, Epoch, Halt};
use super::find::{Hint, Miss};
use super::message::{GrantRequest, Holder, InstanceId, Kind, Refusal, Term};
use crate::quorum::NodeSet;
use crate::time::{LocalSpan, Span, Stamp};
use crate::{GroupId, LocalTime, NodeId};

/// An event of a process: for users, properties and drawings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A candidate began a run.
    Asked(GrantRequest),
    /// A grantor promised its support (A and F).
    Granted {
        /// The request.
        request: GrantRequest,
        /// T_q.
        at: Stamp,
        /// F_q.
        until: LocalTime,
    },
    /// A grantor refused.
    Refused {
        /// The request.
        request: GrantRequest,
        /// The reason.
        refusal: Refusal,
    },
    /// A run completed (step 8): this process leads.
    Leads {
        /// The election.
        group: GroupId,
        /// The epoch of the run.
        epoch: Epoch,
        /// The run.
        id: InstanceId,
        /// A new term or the same.
        kind: Kind,
        /// The term.
        term: Term,
        /// δ: the length of the lease.
        lease: Span,
        /// E_p: the reading until which it leads.
        until: LocalTime,
        /// The positions of the grantors, among the members of that epoch.
        quorum: NodeSet,
        /// When they granted, by their own clocks: QT, frozen here.
        stamps: QuorumStamp,
    },
    /// A candidate gives back its grants; it does not lead.
    GaveBack {
        /// The election.
        group: GroupId,
        /// The newest run that it covers.
        upto: InstanceId,
    },
    /// A grantor is free of a promise before it has run out: its holder gave it back.
    Freed {
        /// The election.
        group: GroupId,
        /// The newest run that was granted.
        newest: InstanceId,
    },
    /// This process has said for how long it is certain to lead, and gives nothing back until then
    /// (erratum E4).
    Pledged {
        /// The election.
        group: GroupId,
        /// The process that has said so, in this life of it.
        leader: Holder,
        /// The end of the pledge, on this host's clock.
        until: LocalTime,
    },
    /// Another process was asked, and is certain to be supported by a quorum for a while (section
    /// 10.5).
    Verified {
        /// The election.
        group: GroupId,
        /// The leader.
        leader: Holder,
        /// Its term.
        term: Term,
        /// The reading until which that is certain, on this host's clock.
        until: LocalTime,
    },
    /// This process has begun to look for the leader (section 10.4).
    Sought {
        /// The election.
        group: GroupId,
        /// The name of the question.
        id: InstanceId,
        /// The process that is asked first.
        ask: NodeId,
        /// The number of hints that may be followed.
        hops: u8,
    },
    /// A leader has answered: it led at some instant since the question.
    Found {
        /// The election.
        group: GroupId,
        /// The question.
        id: InstanceId,
        /// The leader.
        leader: Holder,
        /// Its term.
        term: Term,
        /// The number of hints that were followed.
        hops: u8,
    },
    /// The leader was not found.
    NotFound {
        /// The election.
        group: GroupId,
        /// The question.
        id: InstanceId,
        /// The reason.
        why: Miss,
        /// A hint where it may be, if one came and was not followed.
        hint: Option<Hint>,
    },
    /// Those that this process hears of are too few to elect a leader, and this one speaks for
    /// them, without any authority: see [`WeakLeader`](super::WeakLeader). `None` when that is
    /// over.
    WeakLeader {
        /// The election.
        group: GroupId,
        /// The weak leader.
        leader: Option<NodeId>,
    },
    /// The next leases have another length, for the network is slower or faster than it was.
    Paced {
        /// The election.
        group: GroupId,
        /// δ: the new length.
        lease: Span,
    },
    /// The network is so slow that the longest lease does not survive the retries that it should.
    Strained {
        /// The election.
        group: GroupId,
        /// The least δ that would.
        needed: Span,
        /// δ_max.
        longest: Span,
    },
    /// This leader hands over to a process of better priority.
    Yields {
        /// The election.
        group: GroupId,
        /// The process that takes over.
        to: NodeId,
    },
    /// A run ended without completing (step 9).
    Failed {
        /// The election.
        group: GroupId,
        /// The run.
        id: InstanceId,
        /// The reason.
        failure: Failure,
    },
    /// This process leads no more.
    Lost {
        /// The election.
        group: GroupId,
        /// The term that ended.
        term: Term,
        /// The reason.
        loss: Loss,
    },
    /// A restarted grantor waits out what it may have forgotten.
    Silent {
        /// The end of the silence.
        until: LocalTime,
    },
    /// The disk was lost: this process takes no part.
    Mute,
    /// The disk was lost: this grantor keeps silent and then asks the others what it may have
    /// granted.
    Recovering,
    /// The grantor knows it, and grants again.
    Recovered {
        /// The top: it grants terms above this.
        top: Term,
    },
    /// This member grants nothing in its epoch any more.
    Wedged {
        /// The epoch.
        epoch: Epoch,
        /// The ballot in which it was asked.
        ballot: Term,
    },
    /// This process has learnt of a new epoch and goes by it from now on.
    Adopted {
        /// Its charter.
        charter: Arc<Charter>,
        /// Whether this process has become a member by it.
        joined: bool,
    },
    /// A member has accepted a charter, which may or may not be decided.
    Accepted {
        /// The ballot.
        ballot: Ballot,
        /// The charter.
        charter: Arc<Charter>,
    },
    /// A proposer has seen that a charter is decided.
    Decided {
        /// The charter.
        charter: Arc<Charter>,
    },
    /// A change that this process wanted is done.
    Changed {
        /// The epoch in which it is done.
        epoch: Epoch,
    },
    /// A change that this process wanted stopped on its way.
    ChangeHalted {
        /// The reason.
        halt: Halt,
    },
    /// This member has heard of a charter that neither comes from its own nor leads to it: there
    /// are two clusters of one name and key. It grants nothing and leads nothing until an operator
    /// decides.
    SplitBrain {
        /// The charter that the other goes by.
        other: CharterId,
    },
    /// An operator has ended the other side: this member goes on after a silence.
    LineageAccepted,
    /// A member's term, top or floor is so far above all that is known that an operator must
    /// confirm it.
    Implausible {
        /// The process that says it.
        by: NodeId,
        /// The height: a term.
        term: Term,
        /// The highest that is known here.
        known: Term,
    },
    /// An operator has confirmed that terms may be as high as this.
    Confirmed {
        /// The height: a term.
        term: Term,
    },
    /// A candidate was refused because its term is too high, and waits before it asks again.
    HeldBack {
        /// The election.
        group: GroupId,
        /// The term that was refused.
        term: Term,
        /// The time that it waits (back-off).
        wait: LocalSpan,
    },
    /// The clock went back: this process neither leads nor grants until the clock has caught up.
    ClockWentBack {
        /// The length by which it went back.
        by: LocalSpan,
    },
}

/// Why a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Too few answers before the lease would have been over.
    TimedOut,
    /// So many refused that no quorum was left.
    Blocked,
    /// The process began another run.
    Aborted,
    /// A renewal completed after the lease it was to extend had run out (rule U).
    TooLate,
}

/// Why a leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// It was not renewed in time.
    Lapsed,
    /// The process gave it up.
    Resigned,
    /// The process handed it over.
    HandedOver,
    /// The process ended its epoch.
    EndedEpoch,
    /// Another ended it.
    NextEpoch,
    /// The clock can no longer be trusted.
    ClockWentBack,
    /// Another cluster of this name may have a leader.
    SplitBrain,
    /// The machine was suspended, or its clocks were disrupted: how much time has passed is not
    /// known.
    Disturbed,
}
