//! The status of a node as plain data, for daemons, dashboards and tests. No decision rests on it.
//!
//! [`Status`] is about the process and its peers, and costs little; [`GroupStatus`] is about one
//! group, and there may be very many groups. Lengths of time are as of the moment in which the node
//! was asked.

use std::fmt;
use std::time::Duration;

use tenure_proto::strong::Term;
use tenure_proto::strong::edict::PackedToken;
use tenure_proto::strong::epoch::Epoch;

use crate::config::{ClockBound, Role};
use crate::driver::Traffic;
use crate::measures::Measures;
use crate::name::{ClusterId, GroupName, NodeName};
use crate::observe::{Leadership, Proclaimed};
use crate::seal::{Counters, KeyRefusal};
use crate::store::StoreId;
use crate::tally::Tally;
use crate::timing::Timings;

/// The status of a node: see [`Node::status`](crate::Node::status).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The name of this node.
    pub name: NodeName,
    /// The id of its cluster.
    pub cluster: ClusterId,
    /// Its role.
    pub role: Role,
    /// The life of this process: members count their starts, others draw a number at each start.
    pub incarnation: u128,
    /// The newest epoch that it knows; `None` if it knows none yet.
    pub epoch: Option<Epoch>,
    /// The charter of that epoch.
    pub charter: Option<CharterStatus>,
    /// The members of that epoch, where their names are known.
    pub members: Vec<NodeName>,
    /// Whether it is one of them.
    pub is_member: bool,
    /// Whether this node is ready: see [`Node::ready`](crate::Node::ready).
    pub ready: bool,
    /// The reasons why it is not ready; empty if it is.
    pub not_ready: Vec<NotReady>,
    /// The rest of its silence: the time until all grants from before a restart have run out.
    pub silent_for: Option<Duration>,
    /// The length of the leases that it asks for; of the first ones, where leases follow the
    /// network.
    pub lease: Duration,
    /// The number of groups that this process leads.
    pub led: usize,
    /// Counts of events.
    pub tally: Tally,
    /// Counts of leaders that are no members, such as runners, as they told this node.
    pub leaders: Measures,
    /// Histograms of durations.
    pub timings: Timings,
    /// Counts of datagrams and bytes on the network.
    pub traffic: Traffic,
    /// Counts of sessions that were begun, and of packets that were refused before they were read.
    pub sessions: Counters,
    /// The number of processes with which there are sessions.
    pub peers: usize,
    /// The members, this node among them if it is one, then others with whom there are sessions, a
    /// hundred at most. Each sorted by name.
    pub peers_known: Vec<PeerStatus>,
    /// The number of records that were handed to the disk.
    pub persisted: u64,
    /// The height of terms, as far as this node knows.
    pub terms: TermStatus,
}

/// The height of terms, and the rest of the range of packed tokens, whose terms end at 2^31 - 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TermStatus {
    /// The largest term that this member may have granted, in any group.
    pub top: Term,
    /// The used part of the range of packed tokens.
    pub packed: PackedTerms,
    /// The time until that range ends if terms go on rising as they have since this node started;
    /// `None` if they have not risen.
    pub packed_left: Option<Duration>,
    /// A term that is too high to be believed, and the member that said it, until an operator
    /// confirms it: [`Node::confirm_term`](crate::Node::confirm_term).
    pub doubted: Option<(String, Term)>,
    /// The groups that nobody leads since terms were [repaired](crate::repair), by name, or as
    /// `id=NUMBER` where this node has not heard their names.
    pub barred: Vec<String>,
}

/// The used part of the range of [`PackedToken`](crate::PackedToken).
///
/// The range of wide tokens is so large that no cluster reaches its end.
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
    /// Returns the used part of the range when terms go up to `top`.
    pub fn at(top: Term) -> Self {
        let last = PackedToken::LAST_TERM.0;
        match top.0 {
            top if top >= last => Self::Exhausted,
            top if top > last / 2 => Self::HalfUsed,
            _ => Self::Plenty,
        }
    }
}

/// The charter of an epoch: lineage, quorums and bounds that hold for all members.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CharterStatus {
    /// The founding that it comes from, and the force-removes since.
    ///
    /// Each is a random number of 32 hexadecimal digits; commas join them. Two lineages that begin
    /// differently are of two clusters.
    pub lineage: String,
    /// The quorums, written as in a configuration: `majority`, `weights:3,1,1`, `grid:2x3`,
    /// `list:01,12,02`. Positions are those of [`Status::members`].
    pub quorums: String,
    /// The assumption about the clocks.
    pub bound: ClockBound,
    /// δ_max, the longest lease that a member grants.
    pub longest_lease: Duration,
    /// Whether a change of it is under way, as far as this node can tell: it has accepted a charter
    /// for the next epoch and has not heard yet whether that is decided, or was asked for a change
    /// itself.
    pub changing: bool,
}

/// The status of another process or this one, as this node sees it.
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

/// The reason why a node is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReady {
    /// No member has told it the charter yet.
    NoCharter,
    /// Its role is to grant, but it is no member: `members add` makes it one.
    NotAMember,
    /// Others go by a newer epoch, which it has not adopted yet. Perhaps it was removed meanwhile.
    Outdated {
        /// The newest epoch that it was told of.
        epoch: Epoch,
    },
    /// It waits until all grants from before its restart have run out.
    Silent {
        /// For how much longer.
        left: Duration,
    },
    /// Split brain: it has heard of another cluster of this id and key, and neither grants nor
    /// leads until an operator decides.
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
            Self::Outdated { epoch } => {
                write!(f, "other members go by epoch {epoch}, which it has not adopted yet")
            }
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

/// The status of one group, as this node knows it: see [`Node::groups`](crate::Node::groups).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupStatus {
    /// Which.
    pub group: GroupName,
    /// The leadership, if this node leads the group itself or
    /// [observes](crate::Node::observe) it; unknown otherwise, and where no quorum reports.
    ///
    /// A leader is named only while a quorum supports it, or it says itself that it leads, within
    /// its lease: the ends are compared with the clock when the status is read.
    pub leadership: Leadership,
    /// For how much longer that leader leads at least, if it renews no more; `None` if none is
    /// named.
    pub leads_for: Option<Duration>,
    /// How long ago somebody was last known to lead the group or to ask for it.
    pub idle: Duration,
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
