//! How a node is, as plain data: for daemons, dashboards and tests. Nothing is decided by any of
//! it.
//!
//! [`Status`] is about the process and those around it, and costs little; [`GroupStatus`] is one
//! group, of which there may be very many. Lengths of time are as of the moment in which the node
//! was asked.

use std::fmt;
use std::time::Duration;

use tenure_proto::strong::Term;
use tenure_proto::strong::edict::PackedToken;
use tenure_proto::strong::epoch::Epoch;

use crate::config::{ClockBound, Role};
use crate::driver::Traffic;
use crate::name::{ClusterId, GroupName, NodeName};
use crate::observe::Proclaimed;
use crate::seal::{Counters, KeyRefusal};
use crate::store::StoreId;
use crate::tally::Tally;
use crate::timing::Timings;

/// How a node is: see [`Node::status`](crate::Node::status).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// Its name.
    pub name: NodeName,
    /// Its cluster.
    pub cluster: ClusterId,
    /// What it is there for.
    pub role: Role,
    /// Which life of it this is: members count them, others draw a number at each start.
    pub incarnation: u128,
    /// The newest epoch that it knows; `None` if it knows none yet.
    pub epoch: Option<Epoch>,
    /// What that epoch lays down.
    pub charter: Option<CharterStatus>,
    /// The members of that epoch, where their names are known.
    pub members: Vec<NodeName>,
    /// Whether it is one of them.
    pub is_member: bool,
    /// Whether it can do its part: see [`Node::ready`](crate::Node::ready).
    pub ready: bool,
    /// Why it cannot; empty if it is ready.
    pub not_ready: Vec<NotReady>,
    /// For how much longer it waits out what it may have promised before a restart.
    pub silent_for: Option<Duration>,
    /// How long the leases are that it asks for; the first ones, where leases follow the network.
    pub lease: Duration,
    /// How many groups are led here.
    pub led: usize,
    /// What happened.
    pub tally: Tally,
    /// How long things took.
    pub timings: Timings,
    /// What went over the network.
    pub traffic: Traffic,
    /// What sessions were begun, and what was refused before anybody read it.
    pub sessions: Counters,
    /// With how many processes there are sessions.
    pub peers: usize,
    /// The members, this node among them if it is one, then others with whom there are sessions, a
    /// hundred at most. Each sorted by name.
    pub peers_known: Vec<PeerStatus>,
    /// How many records were handed to the disk.
    pub persisted: u64,
    /// How high terms are, as far as this node knows.
    pub terms: TermStatus,
}

/// How high terms are, and how many are left for packed tokens, whose terms end at 2^31 - 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TermStatus {
    /// The largest term that this member may have granted, in any group.
    pub top: Term,
    /// How much of the range of packed tokens is used.
    pub packed: PackedTerms,
    /// When that range ends if terms go on rising as they have since this node started; `None` if
    /// they have not risen.
    pub packed_left: Option<Duration>,
    /// A term that is too high to be believed, and the member that said it, until an operator
    /// confirms it: [`Node::confirm_term`](crate::Node::confirm_term).
    pub doubted: Option<(String, Term)>,
}

/// How much of the range of [`PackedToken`](crate::PackedToken) is used. Wide tokens have no end
/// that anybody reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackedTerms {
    /// Less than half: nothing is to be done.
    Plenty,
    /// Half of it or more, which took decades or a mistake: move fences to wide tokens.
    HalfUsed,
    /// New terms do not fit: [`Token::pack`](crate::Token::pack) refuses them.
    Exhausted,
}

impl PackedTerms {
    /// How much of the range is used when terms go up to `top`.
    pub fn at(top: Term) -> Self {
        let last = PackedToken::LAST_TERM.0;
        match top.0 {
            top if top >= last => Self::Exhausted,
            top if top > last / 2 => Self::HalfUsed,
            _ => Self::Plenty,
        }
    }
}

/// What an epoch lays down for all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CharterStatus {
    /// Which founding it comes from, and which force-removes: a random number of 32 hexadecimal
    /// digits for each, joined by commas. Two that begin differently are of two clusters.
    pub lineage: String,
    /// Which sets of members suffice, written as in a configuration: `majority`, `weights:3,1,1`,
    /// `grid:2x3`, `list:01,12,02`. Positions are those of [`Status::members`].
    pub quorums: String,
    /// The assumptions about the clocks.
    pub bound: ClockBound,
    /// δ_max.
    pub longest_lease: Duration,
    /// Whether a change of it is under way, as far as this node can tell: it has accepted a charter
    /// for the next epoch and has not heard yet whether that is decided, or was asked for a change
    /// itself.
    pub changing: bool,
}

/// A process, as this node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatus {
    /// Its name.
    pub name: NodeName,
    /// `host:port`: as somebody wrote it, or else where it was heard from.
    pub address: Option<String>,
    /// The store that holds its promises: of a member as the epoch names it, of others as they have
    /// announced it.
    pub store: Option<StoreId>,
    /// Whether that store is condemned: an older copy of it was used. Nothing of it counts until
    /// the member is replaced.
    pub condemned: bool,
    /// Whether it grants in the newest epoch.
    pub is_member: bool,
    /// Whether it is this node.
    pub is_me: bool,
    /// Whether there is a session with it. There may be one with a process that is gone: see
    /// `answers`.
    pub has_session: bool,
    /// Whether it answers what it is asked, as far as it was asked lately.
    pub answers: bool,
    /// How long ago the last authentic packet came from it.
    pub heard: Option<Duration>,
    /// How long a question to it and its answer took when that was last measured: members measure
    /// about each ten seconds.
    pub round_trip: Option<Duration>,
    /// Whether its clock keeps to the bound, as far as can be seen from here. If not, its grants do
    /// not count.
    pub clock_trusted: bool,
}

/// Why a node cannot do its part yet, or any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReady {
    /// Nobody has told it yet who the members are.
    NoCharter,
    /// It is to grant, and is not among the members: `members add` makes it one.
    NotAMember,
    /// It waits out what it may have promised before it was restarted.
    Silent {
        /// For how much longer.
        left: Duration,
    },
    /// It has heard of another cluster of this name and key, and neither grants nor leads until an
    /// operator decides.
    SplitBrain {
        /// The lineage of the other.
        lineage: String,
        /// Its epoch.
        epoch: Epoch,
    },
    /// The charters that it was told come from another founding than the configuration names.
    OtherLineage {
        /// Which founding.
        lineage: u128,
    },
    /// Its disk was lost: under this name it never grants again.
    Mute,
    /// The members refuse its key.
    KeyRefused {
        /// Why.
        why: KeyRefusal,
    },
    /// The members that it reaches are no quorum.
    NoQuorum {
        /// How many it reaches, itself among them.
        reached: usize,
        /// How many there are.
        members: usize,
    },
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCharter => f.write_str(
                "no member has told who the members are: check the addresses under `members`, and the key",
            ),
            Self::NotAMember => f.write_str("this node is no member: add it with `tenure members add`"),
            Self::Silent { left } => write!(
                f,
                "it waits out what it may have promised before its restart: {} ms more",
                left.as_millis()
            ),
            Self::SplitBrain { lineage, epoch } => write!(
                f,
                "split brain: another cluster of this id and key exists (lineage {lineage}, epoch {epoch}); \
                 end one of the two, then run `tenure members accept-lineage` at each member of the other"
            ),
            Self::OtherLineage { lineage } => write!(
                f,
                "the members that answer come from another founding ({lineage:032x}) than `lineage` names: \
                 check the addresses under `members`, or put the lineage of `tenure members list` into the file"
            ),
            Self::KeyRefused { why } => {
                write!(f, "the members refuse its key: it {why}; ask for a new one (`tenure key derive`)")
            }
            Self::Mute => f.write_str(
                "its disk was lost: give it a new name and a new store, and use `tenure members replace`",
            ),
            Self::NoQuorum { reached, members } => {
                write!(f, "it reaches {reached} of {members} members, which are no quorum")
            }
        }
    }
}

/// What a node knows of one group: see [`Node::groups`](crate::Node::groups).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupStatus {
    /// Which.
    pub group: GroupName,
    /// Whom this node supports, or who leads as far as it was told; `None` also where the name of
    /// that process is not known.
    pub holder: Option<NodeName>,
    /// Whether the holder is known to have led: it has renewed, or says so itself. One that only
    /// asks may never lead.
    pub holder_known_to_lead: bool,
    /// The holder's term.
    pub term: Option<Term>,
    /// For how much longer this node's promise to the holder binds it.
    pub grant_remaining: Option<Duration>,
    /// Whether this very process leads, at this moment, by its own clock.
    pub led_here: bool,
    /// For how much longer it leads if it renews no more.
    pub lease_remaining: Option<Duration>,
    /// Whether somebody in this process waits to lead it.
    pub campaigning_here: bool,
    /// The newest word of a leader that this node has heard.
    pub proclaimed: Option<Proclaimed>,
}
