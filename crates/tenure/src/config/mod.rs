//! The settings of a node: written freely ([`Config`]), checked once, and from then on known to be
//! consistent ([`Checked`]).
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
pub use complaint::{explain_toml, explain_toml_at};
#[cfg(feature = "config")]
pub use file::parse_length;

/// The role of a process in its cluster: whether it grants leases and whether it may lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
    /// Returns the role as it is written in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Witness => "witness",
            Self::Candidate => "candidate",
            Self::Observer => "observer",
        }
    }

    /// Returns whether a process of this role grants leases, and so needs a store.
    pub fn grants(self) -> bool {
        matches!(self, Self::Member | Self::Witness)
    }

    /// Returns whether a process of this role may lead.
    pub fn leads(self) -> bool {
        matches!(self, Self::Member | Self::Candidate)
    }
}

/// A process of the cluster: its name and its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The name of the process: unique in the cluster, and never used again for another store.
    ///
    /// A member that lost its disk comes back under a new name: under the old one the others would
    /// count promises that it has forgotten.
    pub name: String,
    /// The address, as `host:port`.
    ///
    /// A host name is resolved when the node starts, and again when the peer falls silent.
    pub address: String,
}

/// The assumption about the clocks of all processes: a bound on their rate or on their difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockBound {
    /// The rate of every clock is off by less than this many parts per million.
    ///
    /// If a clock is worse, two processes may lead at once (split brain), and only a fence
    /// protects. No time service is needed. Larger is safer and makes failover longer, by about 2ρ
    /// of a lease. The default, a tenth, holds even while a time daemon slews as fast as it can;
    /// where the slew is limited, 1000 shortens failover by a fifth.
    Drift {
        /// ρ, in parts per million: 100,000 by default.
        ppm: u32,
    },
    /// Clocks are synchronised, and any two differ by less than this at any instant.
    ///
    /// It needs a time service that never fails. A node whose clock reports an error bound above
    /// half of it stops leading and granting.
    Skew {
        /// Δ: the largest difference between two clocks. Larger is safer and makes failover longer.
        bound: Duration,
    },
}

/// The failure detector of the ring: how a stopped process is told from a slow one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Watching {
    /// By a fixed time without a heartbeat.
    #[default]
    Heartbeat,
    /// By how unusual the silence is (phi accrual): slower to accuse where the network is uneven.
    Phi {
        /// The threshold: each 1 more makes mistakes ten times rarer and detection slower.
        ///
        /// 8 is usual within a site, 12 between sites.
        threshold: u32,
    },
}

/// The weak election: how candidates find out whose turn it is when there is no leader.
///
/// It is advice only: no safety rests on it. A bad choice costs failover time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeakElection {
    /// By their places on a ring of the live candidates: mostly one tries, at once. Needs the
    /// fewest messages.
    Ring(Watching),
    /// By the ring, but a member that too few others answer in time is ranked last (Omega).
    ///
    /// It is for networks in which some members can send but not receive. While there is no leader,
    /// heartbeats go to all members, not to two.
    Omega,
    /// By random back-off.
    Random,
}

impl WeakElection {
    /// Returns the kind as it is written in a file.
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

/// Leases whose length follows the measured network: longer at once, shorter slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AdaptiveLease {
    /// The shortest lease.
    ///
    /// Larger: fewer messages and longer failover. Smaller: a short pause deposes the leader.
    /// Choose about the time that the service can be without a leader.
    pub shortest: Duration,
    /// The time between two renewals that leases should allow for.
    ///
    /// Larger: fewer messages and longer leases. Smaller: shorter leases where the network is fast.
    pub interval: Duration,
    /// The number of lost renewals in a row that a leader should survive.
    ///
    /// Larger: longer leases. Smaller: a few lost datagrams depose the leader. 2 is usual.
    pub retries: u32,
}

impl AdaptiveLease {
    /// Makes the settings of leases that survive two lost renewals in a row.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tenure::AdaptiveLease;
    ///
    /// let mut adapt = AdaptiveLease::new(Duration::from_secs(1), Duration::from_millis(250));
    /// adapt.retries = 3;
    /// ```
    pub fn new(shortest: Duration, interval: Duration) -> Self {
        Self { shortest, interval, retries: 2 }
    }
}

/// The key with which a process proves its identity.
#[derive(Clone, Debug)]
pub enum Key {
    /// The cluster's own key: for members, and for candidates that are trusted with everything.
    Cluster(ClusterKey),
    /// A scoped key: for a candidate or an observer of some groups, or for an operator.
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
    /// Reads either kind of key: the prefix of the text tells them apart.
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

/// The settings of a node.
///
/// They are not yet checked: [`Node::start`](crate::Node::start) checks them and says what to
/// change. `members`, `quorums`, `bound` and `longest_lease` belong to the cluster: they found it,
/// and afterwards only [`Node::change_members`](crate::Node::change_members) changes them.
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
#[non_exhaustive]
pub struct Config {
    /// The name of this process. Required.
    ///
    /// 1 to 64 letters, digits, `.`, `_` and `-`, unique in the cluster. It never serves another
    /// store: a member that lost its disk comes back under a new name.
    pub name: String,
    /// The role of this process: a [member](Role::Member) by default.
    pub role: Role,
    /// The addresses on which this process listens. Empty by default.
    ///
    /// A member needs at least one. A candidate or an observer without an address takes any free
    /// port.
    pub listen: Vec<SocketAddr>,
    /// The address, as `host:port`, that the other members are told to use. Default `None`: that of
    /// `listen`.
    ///
    /// Set it where `listen` is a wildcard, or where an address is translated (NAT); otherwise the
    /// others may not reach this process.
    pub advertise: Option<String>,
    /// The members that found the cluster, with their addresses. Empty by default.
    ///
    /// Afterwards they are the members that this process greets first. A founding member lists
    /// itself as well. Three members bear the loss of one, five of two.
    pub members: Vec<Peer>,
    /// The quorums: the sets of members that suffice to elect a leader. `majority` by default.
    ///
    /// Others are `weights:3,1,1`, `grid:2x3` and `list:01,12,02`, by the members' places in
    /// `members`. Any two quorums must intersect, which is checked. Keep `majority` unless hosts
    /// differ much in reliability.
    pub quorums: String,
    /// The assumption about the clocks: a [drift](ClockBound::Drift) of a tenth by default.
    pub bound: ClockBound,
    /// δ_max: the longest lease that a member grants. 5 s by default.
    ///
    /// Larger: longer leases are possible, but a member is silent for longer after a reboot, and
    /// changes of members take longer. Smaller: the reverse. Choose the longest lease that any
    /// leader asks for.
    pub longest_lease: Duration,
    /// δ: the length of the leases that this process asks for. 2 s by default, at most
    /// `longest_lease`.
    ///
    /// When a leader dies, nobody leads for about lease·(1+ρ)/(1-ρ). Larger: slower failover.
    /// Smaller: more datagrams (2(n-1) a renewal), and a shorter pause deposes the leader. Choose
    /// more than two round trips and more than the longest pause that a healthy leader should
    /// survive; `tenure calc` computes the rest.
    pub lease: Duration,
    /// The end of each lease that this process keeps for stopping its work. Zero by default.
    ///
    /// A leader renews at half of what lies before it, so that a renewal that comes late does not
    /// cost it that time. Larger: more renewals. Choose how long the work takes to stop; leases
    /// with `adapt` do not look at it.
    pub reserve: Duration,
    /// The retransmission interval: how long to wait for an answer before asking again. 50 ms by
    /// default.
    ///
    /// Larger: one lost datagram costs more of the lease. Smaller: more datagrams. Choose about a
    /// round trip and its usual delays.
    pub retry: Duration,
    /// The back-off window: candidates that collided retry at random times within it. 200 ms by
    /// default.
    ///
    /// Larger: slower failover after a collision. Smaller: more collisions. Choose a few round
    /// trips for each candidate.
    pub window: Duration,
    /// The weak election, by which candidates take turns: the [ring](WeakElection::Ring) with
    /// heartbeats by default.
    pub weak: WeakElection,
    /// Leases whose length follows the network. Default `None`: all leases have the length `lease`.
    pub adapt: Option<AdaptiveLease>,
    /// How long a process of better priority must be heard without a break before a leader hands
    /// over to it.
    ///
    /// Default `None`: leaders do not hand over by priority. Larger: the preferred process waits
    /// longer. Smaller: a process that comes and goes may make the leadership flap.
    pub hold: Option<Duration>,
    /// The closed list of groups. Default `None`: a group exists as soon as a process campaigns for
    /// it.
    ///
    /// With a list, a campaign for any other group is refused, which catches misspelt names.
    pub groups: Option<Vec<String>>,
    /// The key with which this process proves its identity. Required.
    pub key: Key,
    /// Cluster keys that are still accepted from others while the key is rotated. Empty by default.
    pub old_keys: Vec<ClusterKey>,
    /// The id of the cluster. Default `None`: the store or a scoped key names it.
    ///
    /// A process with the cluster's key and without a store needs it.
    pub cluster: Option<ClusterId>,
    /// The lineage: the founding of the cluster, as `tenure init` wrote it.
    ///
    /// A cluster of another founding is refused, which protects against a split brain by two
    /// foundings under one id and key. Default `None`: the lineage that a scoped key names, else
    /// that of the first member that answers.
    pub lineage: Option<u128>,
    /// The folder of the durable promises. Members and witnesses need it. Default `None`.
    ///
    /// Choose a local disk, not tmpfs and not NFS; one process uses it at a time. Never restore or
    /// copy it: a store that went back has forgotten promises.
    pub store: Option<PathBuf>,
    /// The folder of the grants that survive a restart but not a reboot.
    ///
    /// It must be on tmpfs and writable by this user alone. Default `None`: the folder of the
    /// service (`$RUNTIME_DIRECTORY`, `/run/tenure`), of the session, or `/dev/shm/tenure-UID`.
    /// Without it, a silence of about `longest_lease` follows each restart.
    pub memory: Option<PathBuf>,
    /// The file for the protocol's events, for `tenure lab audit`. Default `None`: no trace.
    ///
    /// It is for tests and for finding faults: the files grow without limit.
    pub trace: Option<PathBuf>,
    /// The longest pledge of a leader not to hand over, when it is asked to
    /// [verify](crate::Node::verify).
    ///
    /// 100 ms by default. Larger: verifications last longer, and hand-overs wait for them. Smaller:
    /// the reverse. Choose the longest operation that must run under one verification.
    pub longest_pledge: Duration,
    /// The limits on the cost of one key at this member, and the time after which it forgets
    /// groups.
    pub limits: Limits,
    /// The clock by which leases are judged: [`Clock::boot`] by default.
    ///
    /// A cluster with [`ClockBound::Skew`] needs [`Clock::real`]. Only tests have another.
    pub time: Clock,
    /// The file in which the host of a virtual machine tells that it disrupted the clocks.
    ///
    /// [`VMCLOCK`](crate::VMCLOCK) by default; `None` not to look. If the file is missing, the
    /// machine is not virtual, or its host does not tell.
    pub vmclock: Option<PathBuf>,
}

impl Config {
    /// Returns the defaults for a member: lease 2 s, longest lease 5 s, ρ a tenth, majority.
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
            reserve: Duration::ZERO,
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

    /// Checks the settings without a store, a socket or an answer of another process.
    ///
    /// It finds all that [`Node::start`](crate::Node::start) refuses because of the configuration
    /// alone.
    ///
    /// # Errors
    /// A [`ConfigError`] names the setting and what to write instead.
    pub fn check(&self) -> Result<(), ConfigError> {
        Checked::new(self)?.check_machine()
    }

    /// The cluster that this file would found: members, quorums and bounds.
    pub(crate) fn body(&self) -> Result<Body, ConfigError> {
        check::body(self)
    }
}

/// Limits on the cost of one key at a member, and the time after which a member forgets groups.
///
/// All processes under one key share its limits. The cluster's own key is not limited: its holder
/// can do worse.
///
/// ```
/// # use tenure::{ClusterKey, Config, Key};
/// # let mut config = Config::new("a", Key::Cluster(ClusterKey::generate()));
/// config.limits.groups_per_key = 50_000;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The number of groups that one key makes a member know at once, by campaigns, questions and
    /// watches.
    ///
    /// Default 10,000, about 40 MB of a member's memory. Larger: a key can cost a member more.
    /// Smaller: an application with more groups is refused
    /// ([`CampaignError::TooManyGroups`](crate::CampaignError)); give it several keys, or raise
    /// this at every member.
    pub groups_per_key: usize,
    /// The number of watches that one key has at a member at once.
    ///
    /// A watch is one process that is told of one group, and all names of a key share the limit.
    /// Default 1,000. Larger: a key can cost a member more. Smaller: further watches are not
    /// served, and their watchers see `Unknown`. Choose processes times groups that they observe.
    pub watches_per_key: usize,
    /// The time for which a group must be unused before a member forgets it.
    ///
    /// Default ten minutes; it takes at most twice as long. The group is no longer listed then; its
    /// terms go on rising when a process campaigns for it again. Larger: forgotten groups hold
    /// memory for longer. Smaller: memory comes back sooner.
    pub forget_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { groups_per_key: 10_000, watches_per_key: 1_000, forget_after: Duration::from_secs(600) }
    }
}

/// Makes a list of members from pairs of name and address.
pub fn peers<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Peer> {
    let peer = |(name, address): (&str, &str)| Peer { name: name.to_owned(), address: address.to_owned() };
    pairs.into_iter().map(peer).collect()
}

/// The reason why a configuration was refused: it names the setting and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A name is malformed.
    #[error("{key}: {error}")]
    Name {
        /// The setting.
        key: &'static str,
        /// The flaw in it.
        #[source]
        error: NameError,
    },
    /// A setting is missing that this role needs.
    #[error("{key} is missing: {why}")]
    Missing {
        /// The setting.
        key: &'static str,
        /// The purpose of the setting, and what to write.
        why: &'static str,
    },
    /// A setting has a value that makes no sense.
    #[error("{key}: {why}")]
    Invalid {
        /// The setting.
        key: &'static str,
        /// The flaw, and what to write.
        why: String,
    },
    /// The file is not what the cluster was founded with, or has become since.
    #[error(
        "{key} is {here} in the configuration but {there} in the cluster (epoch {epoch}): the cluster rules; put {there} into the file, or change the cluster with `tenure members set`"
    )]
    Differs {
        /// The setting.
        key: &'static str,
        /// The value in the file.
        here: String,
        /// The value in the epoch.
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
        /// The lineage in the file.
        here: u128,
        /// The lineage in the charter.
        there: u128,
    },
    /// The file cannot be read.
    #[error("{path} cannot be read: {why}; check the path, and that this user may read it")]
    File {
        /// Which.
        path: String,
        /// Why not.
        why: String,
    },
    /// The file is no TOML, or says something that no configuration says.
    #[error("{path}: {flaw}")]
    Toml {
        /// Which.
        path: String,
        /// Where and what, in one line; then lines of the file that show the place, if they hold
        /// nothing secret.
        flaw: String,
    },
    /// The file of a key cannot be read.
    #[error("{key} {path} cannot be read: {why}; correct the path in {key}, or bring the file there")]
    Secret {
        /// The setting that names it.
        key: &'static str,
        /// Which.
        path: String,
        /// Why not.
        why: String,
    },
    /// Others can read or change the file of a key.
    #[error("{key} {path} is not used: {flaw}; {remedy}")]
    Exposed {
        /// The setting that names it.
        key: &'static str,
        /// Which.
        path: String,
        /// The mode or the owner that lets others in.
        flaw: String,
        /// The advice.
        remedy: &'static str,
    },
}
