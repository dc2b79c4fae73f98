//! What a node is told: written freely ([`Config`]), checked once, and from then on known to hold
//! together ([`Checked`]).
//!
//! Three kinds of settings, because they live in different places:
//!
//! | settings | live in | to change one |
//! |---|---|---|
//! | `members`, `quorums`, `bound`, `longest_lease` | the cluster: the file founds it, afterwards the epoch in the store rules | `members set`, by the API or the command |
//! | `lease`, `retry`, `window`, `priority` … | this node | edit and restart, one node after another |
//! | `name`, `role`, `listen`, `key`, `store` … | this node | edit and restart |
//!
//! A member whose file differs from its store in a setting of the first kind does not start: a file
//! that looks as if it ruled, and does not, is how two halves of a cluster come to count different
//! quorums.

mod check;
#[cfg(feature = "config")]
mod complaint;
#[cfg(feature = "config")]
mod file;
#[cfg(feature = "config")]
mod secrets;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tenure_proto::strong::epoch::Body;
use thiserror::Error;

use crate::clock::Clock;
use crate::name::{ClusterId, NameError};
use crate::seal::{CandidateKey, ClusterKey, KeyError};

pub(crate) use check::{Checked, UNSUITED, comes_from};
#[cfg(feature = "config")]
pub use complaint::explain_toml;
#[cfg(feature = "config")]
pub use file::parse_length;

/// What this process is in its cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Grants, and may lead. Needs a store and the cluster's key.
    #[default]
    Member,
    /// Grants, and never leads: a third vote on a small machine. Needs what a member needs.
    Witness,
    /// May lead, and grants nothing: an application that uses a cluster of others. Needs a key, its
    /// own or the cluster's, and no store.
    Candidate,
    /// Only learns who leads.
    Observer,
}

impl Role {
    /// As it is written in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Witness => "witness",
            Self::Candidate => "candidate",
            Self::Observer => "observer",
        }
    }

    /// Whether it grants, and so needs a store.
    pub fn grants(self) -> bool {
        matches!(self, Self::Member | Self::Witness)
    }

    /// Whether it may lead.
    pub fn leads(self) -> bool {
        matches!(self, Self::Member | Self::Candidate)
    }
}

/// A process of the cluster, and where it can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Its name: unique in the cluster, and for good. One that lost its disk comes back under
    /// another.
    pub name: String,
    /// `host:port`. A host name is looked up when the node starts, and again when its bearer falls
    /// silent.
    pub address: String,
}

/// The assumptions about the clocks of all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockBound {
    /// Their rates are off by less than this many parts per million. If a clock is worse, two
    /// processes may lead at once, and only a fence protects. The default, a tenth, holds even
    /// while a time daemon slews as fast as it can; where the slew is limited, 1000 shortens
    /// failover by a fifth.
    Drift {
        /// ρ.
        ppm: u32,
    },
    /// They are synchronised, and differ by less than this at any instant. A node whose clock's own
    /// error bound exceeds half of it stops leading and granting.
    Skew {
        /// Δ.
        bound: Duration,
    },
}

/// How those who seem to have stopped are told from those who are slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Watching {
    /// By a fixed time without a word.
    #[default]
    Heartbeat,
    /// By how unusual the silence is: slower to accuse where the network is uneven.
    Phi {
        /// How unusual: each 1 more makes mistakes ten times rarer. 8 is usual within a site, 12
        /// between sites.
        threshold: u32,
    },
}

/// How candidates find out whose turn it is when there is no leader. Advice only: no safety rests
/// on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeakElection {
    /// By their places on a ring of those who seem to live: mostly one tries, at once.
    Ring(Watching),
    /// The same, but who was not answered by enough others in time stands behind those who were
    /// (Omega): for networks in which some members are heard and yet reach nobody in time. While
    /// nobody leads, signs of life go to all members, not to two.
    Omega,
    /// At random times.
    Random,
}

impl WeakElection {
    /// As it is written in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring(_) => "ring",
            Self::Omega => "omega",
            Self::Random => "random",
        }
    }
}

impl Default for WeakElection {
    fn default() -> Self {
        Self::Ring(Watching::default())
    }
}

/// How the length of leases follows the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdaptiveLease {
    /// No lease is shorter: about what can be borne when a leader dies.
    pub shortest: Duration,
    /// How far apart renewals should be.
    pub interval: Duration,
    /// How many lost renewals in a row a leader should survive.
    pub retries: u32,
}

/// The key by which a process proves who it is.
#[derive(Clone, Debug)]
pub enum Key {
    /// The cluster's own: for members, and for candidates that are trusted with everything.
    Cluster(ClusterKey),
    /// A candidate's or an observer's, for some groups only.
    Scoped(CandidateKey),
}

impl Key {
    /// The founding that a scoped key says it is for. A configuration that names none goes by it.
    pub(crate) fn lineage(&self) -> Option<u128> {
        match self {
            Self::Cluster(_) => None,
            Self::Scoped(key) => key.lineage(),
        }
    }
}

impl std::str::FromStr for Key {
    type Err = KeyError;
    /// Whichever it is: the text says.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        match text.parse() {
            Ok(key) => Ok(Self::Cluster(key)),
            Err(of_cluster) => text.parse().map(Self::Scoped).map_err(|own| match own {
                KeyError::NotACandidateKey => of_cluster,
                own => own,
            }),
        }
    }
}

/// The settings of a node, not yet checked: [`Node::start`](crate::Node::start) does that, and says
/// what to change.
///
/// ```
/// use std::time::Duration;
/// use tenure::{ClusterKey, Config, Key};
///
/// let mut config = Config::new("a", Key::Cluster(ClusterKey::generate()));
/// config.listen = vec!["127.0.0.1:7001".parse()?];
/// config.members = tenure::peers([("a", "127.0.0.1:7001"), ("b", "127.0.0.1:7002"), ("c", "127.0.0.1:7003")]);
/// config.store = Some("/var/lib/tenure/a".into());
/// config.lease = Duration::from_secs(1);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// The name of this process, unique in the cluster.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Where it listens. Empty for a candidate or an observer that takes any free port.
    pub listen: Vec<SocketAddr>,
    /// Where others reach it, if that is not where it listens: `host:port`, told to the other
    /// members.
    pub advertise: Option<String>,
    /// The members that found the cluster, with addresses; afterwards, whom to greet first. This
    /// node is among them if it is a member.
    pub members: Vec<Peer>,
    /// Which sets of members suffice: `majority`, `weights:3,1,1`, `grid:2x3` or `list:01,12,02`,
    /// by their places in `members`.
    pub quorums: String,
    /// The assumptions about the clocks.
    pub bound: ClockBound,
    /// δ_max: the longest lease that a member promises to anybody. A member that lost its memory,
    /// by a reboot, is silent for about this long.
    pub longest_lease: Duration,
    /// δ: how long a lease lasts. When a leader dies, nobody leads for about lease·(1+ρ)/(1-ρ).
    /// More than two round trips and the longest pause of a leader that it should survive; each
    /// renewal is 2(n-1) datagrams.
    pub lease: Duration,
    /// How long to wait for an answer before asking again: about a round trip and its usual delays.
    pub retry: Duration,
    /// The window in which candidates spread out when they have met: a few round trips a candidate.
    pub window: Duration,
    /// How candidates take turns.
    pub weak: WeakElection,
    /// Leases that follow the network; `None` for leases of one length.
    pub adapt: Option<AdaptiveLease>,
    /// For how long a process of better priority must be heard without a break before a leader
    /// hands over to it; `None` if leaders do not.
    pub hold: Option<Duration>,
    /// The groups there are; `None` if whoever campaigns for one creates it.
    pub groups: Option<Vec<String>>,
    /// The key by which this process speaks.
    pub key: Key,
    /// Keys that are still accepted from others, while keys are being changed.
    pub old_keys: Vec<ClusterKey>,
    /// Which cluster this is, for those without a store.
    pub cluster: Option<ClusterId>,
    /// Which founding this cluster comes from, as `tenure init` wrote it: a cluster with another is
    /// refused. `None` to believe the first member that answers.
    pub lineage: Option<u128>,
    /// The folder of the durable promise. On a disk, not on tmpfs; one process at a time.
    pub store: Option<PathBuf>,
    /// The folder for what survives a restart but not a reboot: on tmpfs, and writable by this user
    /// alone. `None` for the folder of the service (`$RUNTIME_DIRECTORY`, `/run/tenure`), of the
    /// session, or `/dev/shm/tenure-UID`.
    pub memory: Option<PathBuf>,
    /// Where to write the protocol's events, for `tenure lab audit`; for tests and for finding
    /// faults.
    pub trace: Option<PathBuf>,
    /// For how long at most a leader promises, when it is asked to [verify](crate::Node::verify),
    /// not to hand over.
    pub longest_pledge: Duration,
    /// What one key may cost this node, if it is a member, and when it forgets.
    pub limits: Limits,
    /// The clock. Only tests have another than the system's.
    pub time: Clock,
    /// Where the host of a virtual machine tells that it has disrupted the clocks; `None` not to
    /// look. If there is nothing, the machine is not virtual or its host does not tell.
    pub vmclock: Option<PathBuf>,
}

impl Config {
    /// The defaults, for a member: lease 2 s, longest lease 5 s, ρ a tenth, majority.
    pub fn new(name: &str, key: Key) -> Self {
        Self {
            name: name.to_owned(),
            role: Role::Member,
            listen: Vec::new(),
            advertise: None,
            members: Vec::new(),
            quorums: "majority".to_owned(),
            bound: ClockBound::Drift { ppm: 100_000 },
            longest_lease: Duration::from_secs(5),
            lease: Duration::from_secs(2),
            retry: Duration::from_millis(50),
            window: Duration::from_millis(200),
            weak: WeakElection::default(),
            adapt: None,
            hold: None,
            groups: None,
            key,
            old_keys: Vec::new(),
            cluster: None,
            lineage: None,
            store: None,
            memory: None,
            trace: None,
            longest_pledge: Duration::from_millis(100),
            limits: Limits::default(),
            time: Clock::boot(),
            vmclock: Some(PathBuf::from(crate::VMCLOCK)),
        }
    }

    /// Checks everything that can be checked without a store, a socket or a word from anybody: what
    /// [`Node::start`](crate::Node::start) would refuse for the configuration's sake alone.
    pub fn check(&self) -> Result<(), ConfigError> {
        Checked::new(self)?.check_machine()
    }

    /// What this file would found: members, quorums and bounds.
    pub(crate) fn body(&self) -> Result<Body, ConfigError> {
        check::body(self)
    }
}

/// What one key may cost a member, and when a member forgets.
///
/// All processes under one key share its limits. The cluster's own key is not limited: its holder
/// can do worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many groups one key makes a member know at once, by campaigning, asking or watching.
    /// Default 10,000, about 40 MB of a member's memory. Larger: a key can cost a member more.
    /// Smaller: an application with more groups is refused
    /// ([`CampaignError::TooManyGroups`](crate::CampaignError)); give it several keys, or raise
    /// this at every member.
    pub groups_per_key: usize,
    /// How many watches one key has at a member at once: a watch is one process that is told of one
    /// group, and all names of a key share the limit. Default 1,000. Further watches are not
    /// served, and their watchers see `Unknown`.
    pub watches_per_key: usize,
    /// How long nobody has to do anything with a group before a member forgets it. Default ten
    /// minutes; it takes at most twice as long. The group is listed no more then; terms rise on
    /// when somebody campaigns for it again. Smaller: memory comes back sooner.
    pub forget_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { groups_per_key: 10_000, watches_per_key: 1_000, forget_after: Duration::from_secs(600) }
    }
}

/// A list of members from pairs of name and address.
pub fn peers<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Peer> {
    let peer = |(name, address): (&str, &str)| Peer { name: name.to_owned(), address: address.to_owned() };
    pairs.into_iter().map(peer).collect()
}

/// Why a configuration was refused. Each names the key and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A name is none.
    #[error("{key}: {error}")]
    Name {
        /// Which setting.
        key: &'static str,
        /// The flaw in it.
        error: NameError,
    },
    /// A setting is missing that this role needs.
    #[error("{key} is missing: {why}")]
    Missing {
        /// Which.
        key: &'static str,
        /// What it is needed for, and what to write.
        why: &'static str,
    },
    /// A setting has a value that makes no sense.
    #[error("{key}: {why}")]
    Invalid {
        /// Which.
        key: &'static str,
        /// What is wrong, and what to write.
        why: String,
    },
    /// The file is not what the cluster was founded with, or has become since.
    #[error(
        "{key} is {here} in the configuration but {there} in the cluster (epoch {epoch}): the cluster rules; put {there} into the file, or change the cluster with `tenure members set`"
    )]
    Differs {
        /// Which setting.
        key: &'static str,
        /// What the file says.
        here: String,
        /// What the epoch says.
        there: String,
        /// The epoch.
        epoch: u64,
    },
    /// The cluster, or the store, comes from another founding than the configuration names.
    #[error(
        "lineage is {here:032x} in the configuration but {there:032x} in the cluster: two clusters were founded under one id; \
         find out which is meant, and correct the file or end the other cluster"
    )]
    Lineage {
        /// What the file says.
        here: u128,
        /// What the charter says.
        there: u128,
    },
    /// The file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: String,
        /// Why not.
        why: String,
    },
}
