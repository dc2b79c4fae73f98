//! Why a packet was not taken, and how often that happened.
//!
//! Anybody can send packets that are refused, as many as he likes. So each is counted and none is
//! logged by itself.

use std::fmt;
use std::net::SocketAddr;

use thiserror::Error;

use crate::name::NodeName;

/// The versions of the protocol that a process speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    /// At least 1.
    pub(crate) oldest: u8,
    pub(crate) newest: u8,
}

impl Versions {
    /// The newest version that both speak.
    pub(super) fn common(self, other: Self) -> Option<u8> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }

    pub(super) fn has(self, version: u8) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.oldest, self.newest)
    }
}

/// Why members refuse a key that is genuine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyRefusal {
    /// An operator has revoked it.
    Revoked,
    /// It was good up to a date that has passed.
    Expired,
    /// Another process speaks under the same name. Only the one that began last is served.
    NameInUse,
}

impl KeyRefusal {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Revoked => 1,
            Self::Expired => 2,
            Self::NameInUse => 3,
        }
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        [Self::Revoked, Self::Expired, Self::NameInUse].into_iter().find(|why| why.code() == code)
    }
}

impl fmt::Display for KeyRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Revoked => "was revoked",
            Self::Expired => "has expired",
            Self::NameInUse => "is used by another process under the same name",
        })
    }
}

/// Why a packet was not taken. Nothing changed but the count.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    #[error("not a packet of this program")]
    Foreign,
    #[error("a packet without the fields of its kind")]
    Malformed,
    #[error("a greeting of another cluster: do both nodes have the same cluster id?")]
    OtherCluster,
    #[error("a greeting for another node: is the address of that node right?")]
    NotForMe,
    #[error("a greeting under a key that is not accepted here: is a rotation of keys half done?")]
    UnknownKey,
    #[error("a greeting under a key that was revoked: `tenure key derive` makes a new one")]
    Revoked,
    #[error("a greeting under a key that has expired: `tenure key derive` makes a new one")]
    Expired,
    #[error("not sealed by the one it claims to come from, or changed on the way")]
    Forged,
    #[error("a name that belongs to this node, to a member, or to another name of the same number")]
    NameTaken,
    #[error("two processes speak under the name {name}: give each one of its own")]
    NameInUse { name: NodeName },
    #[error("more greetings, or more beginnings of sessions, than are served")]
    Limited,
    #[error("a welcome that nobody is waiting for")]
    Unsolicited,
    #[error(
        "a first packet whose welcome is too old, or was for another address or an earlier life of this node"
    )]
    Stale,
    #[error("a first packet of a session that a newer one has replaced, or that has ended")]
    Superseded,
    #[error("a packet of a session that is not known here, or not any more")]
    UnknownSession,
    #[error("a packet that was accepted before, or may have been")]
    Replayed,
    #[error("no room for one more session: raise the number of sessions, or are all of them needed?")]
    Full,
    #[error("{peer} speaks versions {theirs} of the protocol, this node {ours}: update the older one")]
    Versions { peer: NodeName, theirs: Versions, ours: Versions },
}

impl Refusal {
    const COUNT: usize = 18;

    /// Why a packet is not taken if its key is refused.
    pub(super) fn of_key(why: KeyRefusal, name: &NodeName) -> Self {
        match why {
            KeyRefusal::Revoked => Self::Revoked,
            KeyRefusal::Expired => Self::Expired,
            KeyRefusal::NameInUse => Self::NameInUse { name: name.clone() },
        }
    }

    /// Names for metrics, in the order of [`Self::index`].
    const NAMES: [&'static str; Self::COUNT] = [
        "foreign",
        "malformed",
        "other_cluster",
        "not_for_me",
        "unknown_key",
        "forged",
        "name_taken",
        "limited",
        "unsolicited",
        "stale",
        "superseded",
        "unknown_session",
        "replayed",
        "full",
        "versions",
        "revoked",
        "expired",
        "name_in_use",
    ];

    fn index(&self) -> usize {
        match self {
            Self::Foreign => 0,
            Self::Malformed => 1,
            Self::OtherCluster => 2,
            Self::NotForMe => 3,
            Self::UnknownKey => 4,
            Self::Forged => 5,
            Self::NameTaken => 6,
            Self::Limited => 7,
            Self::Unsolicited => 8,
            Self::Stale => 9,
            Self::Superseded => 10,
            Self::UnknownSession => 11,
            Self::Replayed => 12,
            Self::Full => 13,
            Self::Versions { .. } => 14,
            Self::Revoked => 15,
            Self::Expired => 16,
            Self::NameInUse { .. } => 17,
        }
    }
}

/// Counts of packets and sessions since the node was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Valid packets of sessions.
    pub accepted: u64,
    /// Greetings sent.
    pub hellos: u64,
    /// Greetings answered.
    pub welcomes: u64,
    /// Sessions begun, by either side.
    pub begun: u64,
    /// Peers forgotten to make room for others. If it rises all the time, there are more peers than
    /// room.
    pub evicted: u64,
    /// Times that a peer went on from another address.
    pub moved: u64,
    refused: [u64; Refusal::COUNT],
    /// Where the newest of them came from.
    from: [Option<SocketAddr>; Refusal::COUNT],
}

impl Counters {
    pub(super) fn refuse(&mut self, refusal: &Refusal, from: Option<SocketAddr>) {
        self.refused[refusal.index()] += 1;
        if from.is_some() {
            self.from[refusal.index()] = from;
        }
    }

    /// Returns the address that the newest packet came from that was refused for a reason, by the
    /// reason's name. Anybody can write any address on a datagram.
    pub fn refused_from(&self, reason: &str) -> Option<SocketAddr> {
        let place = Refusal::NAMES.iter().position(|name| *name == reason)?;
        self.from[place]
    }

    /// Returns the number of refused packets for each reason, zeros included. The names are stable.
    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Refusal::NAMES.into_iter().zip(self.refused)
    }

    /// Returns the number of refused packets, for all reasons together.
    pub fn refusals(&self) -> u64 {
        self.refused.iter().sum()
    }
}
