//! Messages, commands and records of the processes of a strong group.

use std::fmt;
use std::sync::Arc;

use super::epoch::{Ballot, Change, Charter, CharterId, Epoch, EpochTalk, StoreId};
pub use super::event::{Event, Failure, Loss};
use super::find::{Hint, How, Miss};
use super::height::HeightTalk;
use super::recovery::RecoveryTalk;
use super::wedge::WedgeTalk;
use crate::detect::weak::Beat;
use crate::explore::View;
use crate::quorum::NodeSet;
use crate::time::{LocalSpan, Pledge, Span, Stamp};
use crate::{GroupId, Incarnation, LocalTime, NodeId, Record};

/// One unbroken leadership of one candidate. Larger terms are later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl Term {
    /// The term after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One life of one process: grants are given to it. After a restart the same node is another
/// holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The process.
    pub node: NodeId,
    /// The life.
    pub incarnation: Incarnation,
}

/// One run of the algorithm, unique forever: a start may repeat after a reboot, this does not
/// (erratum E23).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId {
    /// The process that runs it.
    pub holder: Holder,
    /// The sequence number within that life.
    pub seq: u64,
}

/// The purpose of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Begins a new term.
    Acquire,
    /// Extends the term that its process leads.
    Renew,
}

/// Steps 1-3: p asks for support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GrantRequest {
    /// The election.
    pub group: GroupId,
    /// The epoch: its members are asked, and their answers count in no other (ONE).
    pub epoch: Epoch,
    /// The run.
    pub id: InstanceId,
    /// Start_p: a reading of the asker's clock. Means something to others only where skew is
    /// bounded.
    pub start: LocalTime,
    /// δ: the length of the lease, in real time.
    pub lease: Span,
    /// A new term or the same.
    pub kind: Kind,
    /// The term.
    pub term: Term,
}

/// A message of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// p asks for support.
    Request(GrantRequest),
    /// p, which leads, asks for more time, and reports what it knows. Nothing but advice rests on
    /// that report.
    Extend {
        /// The request.
        request: GrantRequest,
        /// The members that have answered it lately, by position in the request's epoch.
        alive: NodeSet,
        /// Its priority: zero is the first choice.
        priority: u8,
    },
    /// A heartbeat while nobody leads. See [`weak`](crate::detect::weak).
    Here {
        /// The epoch of the members in `beats`.
        epoch: Epoch,
        /// The newest signs of life that it knows of each of them.
        beats: Vec<Option<Beat>>,
    },
    /// q grants (step 6.2), and says when by its own clock.
    Ok {
        /// The election.
        group: GroupId,
        /// The epoch in which q granted.
        epoch: Epoch,
        /// The run that was granted.
        id: InstanceId,
        /// T_q.
        at: Stamp,
    },
    /// q refuses (the paper's step 5 ignores the request; an answer lets p try elsewhere sooner).
    Nack {
        /// The election.
        group: GroupId,
        /// The run that was refused.
        id: InstanceId,
        /// The reason.
        refusal: Refusal,
        /// The largest term that q has granted: a hint.
        max_term: Term,
    },
    /// p counts on no grant for its runs up to this one any more (section 6, with an id: erratum
    /// E8).
    Release {
        /// The election.
        group: GroupId,
        /// The newest run that is given back.
        upto: InstanceId,
    },
    /// Hand-over, verification, and where the leader is.
    Talk {
        /// The election.
        group: GroupId,
        /// The content.
        talk: Talk,
    },
    /// About the members, of all groups at once. See `epoch`.
    Epoch(EpochTalk),
    /// About the end of an epoch. See `wedge`.
    Wedge(WedgeTalk),
    /// About the contents of a lost disk. See `recovery`.
    Recovery(RecoveryTalk),
    /// About how high terms are, between members. See [`height`](super::height).
    Height(HeightTalk),
}

impl Message {
    /// The life in whose name this is said, where it is said in anybody's.
    ///
    /// A request, an extension and a release speak for the life that they name; a relay for the
    /// life that gives back (its request is the successor's, see `transfer`). The machine believes
    /// a message only from the process that it names. The transport knows more: whose session it
    /// came by. A driver drops a message whose speaker is not the very life at the other end of the
    /// session, or a second process under one name, with a key of its own, could give back what the
    /// first leads by.
    pub fn speaker(&self) -> Option<Holder> {
        match self {
            Self::Request(request) | Self::Extend { request, .. } => Some(request.id.holder),
            Self::Release { upto, .. } => Some(upto.holder),
            Self::Talk { talk, .. } => talk.speaker(),
            Self::Here { .. }
            | Self::Ok { .. }
            | Self::Nack { .. }
            | Self::Epoch(_)
            | Self::Wedge(_)
            | Self::Height(_)
            | Self::Recovery(_) => None,
        }
    }
}

impl Talk {
    /// See [`Message::speaker`]. A question is named by a life too: that of the process that asks.
    pub fn speaker(&self) -> Option<Holder> {
        match self {
            Self::Ready(request) => Some(request.id.holder),
            Self::Relay { release, .. } => Some(release.holder),
            Self::Prefer { holder, .. } => Some(*holder),
            Self::Verify { id, .. } | Self::Seek { id, .. } => Some(id.holder),
            Self::Certain { leader, .. } | Self::Here { leader, .. } => Some(*leader),
            Self::TakeOver { .. } | Self::There { .. } | Self::Nowhere { .. } | Self::Free => None,
        }
    }
}

/// Messages of a group besides asking, granting and giving back. See `transfer`, `verify`, `find`
/// and `free`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Talk {
    /// The leader asks somebody to take over.
    TakeOver {
        /// The leader's term: the successor's must be larger.
        term: Term,
    },
    /// The successor is ready: this is the request that the leader may pass on.
    Ready(GrantRequest),
    /// The former leader gives its grants back and passes on its successor's request, in one step
    /// at each grantor.
    Relay {
        /// The newest run that is given back: the sender's own.
        release: InstanceId,
        /// The successor's request.
        request: GrantRequest,
    },
    /// Asks whether the receiver leads, and for how long that is certain.
    Verify {
        /// The name of the question: unique over restarts of the asker.
        id: InstanceId,
        /// The time for which an answer is wanted.
        wanted: Span,
    },
    /// Says that the sender is preferred as leader.
    Prefer {
        /// The sender, in this life of it.
        holder: Holder,
        /// Its priority: zero is the first choice.
        priority: u8,
    },
    /// Answers that the sender leads.
    Certain {
        /// The question.
        id: InstanceId,
        /// The leader that answers, in this life of it.
        leader: Holder,
        /// Its term.
        term: Term,
        /// The time for which it will not give its grants back.
        pledge: Pledge,
    },
    /// Asks where the leader is.
    Seek {
        /// The name of the question: unique over restarts of the asker.
        id: InstanceId,
        /// The way to treat the question if the receiver does not lead.
        how: How,
        /// The number of hints that the asker may still follow.
        hops: u8,
    },
    /// Answers that the sender leads.
    Here {
        /// The question.
        id: InstanceId,
        /// As the question says: tells the answers to one question apart.
        hops: u8,
        /// The leader, in this life of it.
        leader: Holder,
        /// Its term.
        term: Term,
    },
    /// Answers with a hint: the sender does not lead, but supports another process.
    There {
        /// The question.
        id: InstanceId,
        /// As the question says.
        hops: u8,
        /// The hint.
        hint: Hint,
    },
    /// Answers that the sender does not lead.
    Nowhere {
        /// The question.
        id: InstanceId,
        /// As the question says.
        hops: u8,
        /// The reason why there is nothing better to tell.
        why: Miss,
    },
    /// Tells a candidate that was refused lately that the sender is free now: a hint.
    Free,
}

/// Why a grantor refuses. Hints for the refused candidate, never part of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Another process holds the grant.
    Busy {
        /// The holder.
        holder: NodeId,
        /// The time that is left of it, on the grantor's clock.
        remaining: LocalSpan,
    },
    /// The term is not larger than one already granted.
    StaleTerm,
    /// The lease is longer than any grantor may promise.
    LeaseTooLong,
    /// The run was given back before its request came.
    Released,
    /// It began later than any legal clock could show now: the bound on skew is broken.
    FromTheFuture,
    /// This grantor has just joined and leaves the first word to a leader of the epoch before.
    Young,
    /// This grantor grants nothing in this epoch any more: the next one is about to begin.
    Wedged,
    /// This grantor lets its grants run out, so that it can be wedged.
    Draining,
    /// The term lies too far above all that members have granted: see [`height`](super::height).
    TooHigh {
        /// How long to wait, on the grantor's clock, before it is worth asking again.
        wait: LocalSpan,
    },
    /// A member asks for a term so high that an operator must confirm it: see [`Command::Confirm`].
    Implausible,
    /// A repair of terms has barred this group: see [`epoch`](super::epoch). An operator may lift
    /// it.
    Barred,
    /// This grantor knows as many groups by the asker's key as one key may make it know. Said by
    /// the driver, which counts them, never by the machine.
    TooManyGroups,
}

/// A request of the process's user, or a report of its driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// For the driver: the machine was suspended, or a virtual machine was paused or moved. Its
    /// clock may have counted more or less than has passed, so nothing that was measured over it
    /// counts: see [`Rules::leads_on_disturbed`](super::Rules::leads_on_disturbed) and
    /// [`Rules::waits_anew`](super::Rules::waits_anew). To be told before anything else that
    /// happens after it.
    Disturbed,
    /// Leads this group whenever possible.
    Campaign(GroupId),
    /// Leads this group if a process asks for a leader and there is none: for those that wait, and
    /// while it leads.
    Offer(GroupId),
    /// Stops asking, and gives back all grants: E first, then the grants. An offer is withdrawn.
    Resign(GroupId),
    /// Stops leading and asking at once, but gives nothing back before [`Resign`](Self::Resign):
    /// work that was begun may still be going on. Grants that are not given back run out.
    StandDown(GroupId),
    /// Hands the leadership over to another process, with a gap of one round trip.
    Transfer {
        /// The election.
        group: GroupId,
        /// The process that takes over.
        to: NodeId,
    },
    /// Asks a process whether it leads, and for how long that is certain.
    Verify {
        /// The election.
        group: GroupId,
        /// The leader that is asked.
        leader: NodeId,
        /// The time for which the answer is wanted. The leader will not give its grants back
        /// meanwhile.
        wanted: Span,
    },
    /// Asks a process where the leader is, and follows its hints.
    Find {
        /// The election.
        group: GroupId,
        /// The process that is asked first.
        ask: NodeId,
        /// The way in which it treats the question if it does not lead.
        how: How,
        /// The number of hints that may be followed.
        hops: u8,
    },
    /// Runs the algorithm now, whatever the back-off says: a renewal for the leader, an acquisition
    /// for others. An unfinished run is aborted.
    Attempt {
        /// The election.
        group: GroupId,
        /// δ: the length of the lease.
        lease: Span,
    },
    /// Asks for terms above this from now on: a fence has seen as much. Grantors limit how far
    /// terms rise.
    Raise {
        /// The election.
        group: GroupId,
        /// The largest term that is spent.
        above: Term,
    },
    /// The driver knows by which key an outsider speaks: processes of one key share what they may
    /// add to the terms.
    KeyOf {
        /// The process.
        node: NodeId,
        /// A number for the key.
        key: u64,
    },
    /// An operator confirms that terms may be as high as this, though it lies far above all that
    /// this member knows.
    Confirm(Term),
    /// The last word of a clean stop: writes the exact largest term that was granted, and takes no
    /// part any more.
    Close,
    /// From now on this is the process's priority: zero, as at the start of each life, is the
    /// first choice.
    Rank {
        /// The election.
        group: GroupId,
        /// The priority: zero is the first choice.
        priority: u8,
    },
    /// Drops a group from memory, if nothing of it counts any more. See `forget`.
    Forget(GroupId),
    /// Changes the members, or their bounds: gaplessly, by as many epochs as it takes, or by one
    /// that begins when this one has ended, as [`Succession`](super::Succession) says.
    Change(Change),
    /// An operator has ended the other cluster for which this member has stopped
    /// ([`Event::SplitBrain`]): go on, after a silence.
    AcceptLineage,
}

impl Command {
    /// Whether it must wait while the clock is behind. A disturbance stays one when the clock has
    /// caught up; a last word that waited would be followed by others, or never be said; and a
    /// request made while the clock is behind must not fill memory.
    pub(super) fn needs_clock(&self) -> bool {
        !matches!(self, Self::Disturbed | Self::Close | Self::KeyOf { .. })
    }
}

/// A record that a process keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// Durable: no term above it was ever granted.
    Ceiling(Term),
    /// Remembered: the promise of this grantor; nothing after it was given back.
    Grant(GroupId, Option<super::Grant>),
    /// Remembered: a silence that is still running.
    Silence(LocalTime),
    /// Durable: the newest charter that was adopted.
    Charter(Arc<Charter>),
    /// Durable: the promise and the accepted charter for the epoch after `epoch`.
    Ballot {
        /// The epoch whose members decide.
        epoch: Epoch,
        /// The highest ballot that was promised.
        promised: Ballot,
        /// The accepted charter, and its ballot.
        accepted: Option<(Ballot, Arc<Charter>)>,
    },
    /// Durable: this member grants nothing in `epoch` any more.
    Wedge {
        /// The epoch at its end.
        epoch: Epoch,
        /// The charter accepted to follow it, and its ballot.
        accepted: Option<(Term, Arc<Charter>)>,
    },
    /// Durable: the charter of another cluster of this name and key, for which this member has
    /// stopped.
    SplitBrain(Option<CharterId>),
    /// Durable, and the driver's alone: the highest life of another member's store that was heard
    /// of.
    Life {
        /// The store.
        store: StoreId,
        /// Its highest life.
        highest: Incarnation,
        /// Drawn at the start of that life: two processes of one life differ in it.
        start: u128,
        /// An older life, or another process of the same, has answered a fresh question since:
        /// nothing of this store counts.
        condemned: bool,
    },
    /// Remembered: which charter was adopted last and when, and until when this member counts as
    /// new.
    Adopted {
        /// The epoch of the charter. Where the disk has another one, `at` says nothing.
        epoch: Epoch,
        /// The reading at which it was adopted.
        at: LocalTime,
        /// The reading until which this member counts as new.
        young_until: LocalTime,
    },
}

/// Names a [`Cell`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CellKey {
    /// See [`Cell::Ceiling`].
    Ceiling,
    /// See [`Cell::Grant`].
    Grant(GroupId),
    /// See [`Cell::Silence`].
    Silence,
    /// See [`Cell::Charter`].
    Charter,
    /// See [`Cell::Ballot`].
    Ballot,
    /// See [`Cell::Wedge`].
    Wedge,
    /// See [`Cell::SplitBrain`].
    SplitBrain,
    /// See [`Cell::Life`].
    Life(StoreId),
    /// See [`Cell::Adopted`].
    Adopted,
}

impl Record for Cell {
    type Key = CellKey;
    fn key(&self) -> CellKey {
        match self {
            Self::Ceiling(_) => CellKey::Ceiling,
            Self::Grant(group, _) => CellKey::Grant(*group),
            Self::Silence(_) => CellKey::Silence,
            Self::Charter(_) => CellKey::Charter,
            Self::Ballot { .. } => CellKey::Ballot,
            Self::Wedge { .. } => CellKey::Wedge,
            Self::SplitBrain(_) => CellKey::SplitBrain,
            Self::Life { store, .. } => CellKey::Life(*store),
            Self::Adopted { .. } => CellKey::Adopted,
        }
    }
}

impl Holder {
    /// See [`Explore`](crate::explore::Explore).
    pub(super) fn view(self, v: &mut View<'_>) {
        v.node(self.node);
        v.wide(self.incarnation.0);
    }
}

impl InstanceId {
    /// See [`Explore`](crate::explore::Explore).
    pub(super) fn view(self, v: &mut View<'_>) {
        self.holder.view(v);
        v.num(self.seq);
    }
}

impl GrantRequest {
    /// See [`Explore`](crate::explore::Explore). Where drift is bounded the start means nothing to
    /// others, and to the asker itself it is the end of its run.
    pub(super) fn view(&self, v: &mut View<'_>) {
        v.num(self.group.0);
        v.num(self.epoch.0);
        self.id.view(v);
        v.num(self.lease.as_nanos());
        v.flag(self.kind == Kind::Renew);
        v.num(self.term.0);
    }
}
