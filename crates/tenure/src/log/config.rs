//! The settings of a process of a log, and the checked form of them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use tenure_proto::NodeId;
use tenure_proto::log::{self, Settings, Sound};
use tenure_proto::time::LocalSpan;

use super::error::OpenError;
use super::link::MAX_MESSAGE;
use super::snapshots::Snapshots;
use crate::clock::{Clock, nanos};
use crate::config::{Key, Peer};
use crate::name::{ClusterId, GroupName, NodeName};
use crate::seal::{ClusterKey, Keyring};

/// How many sessions are open at most. No setting: the table must be the same everywhere, or a
/// write that is in the log twice would be carried out here and not there.
const SESSIONS: usize = 4096;

/// How many bytes of entries go into one message, about. A longer write goes alone.
const PAGE: usize = 1 << 20;

/// The longest write that may be allowed: several fit in a message.
const LONGEST_WRITE: usize = MAX_MESSAGE / 4;

/// The settings of a log. [`Log::open`](super::Log::open) checks them.
///
/// `log`, `cluster` and `members` are the same for all members and fixed when the log is founded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The name of the log. With [`Election::Strong`](super::Election::Strong) it is the name of
    /// the group.
    pub log: String,
    /// The name of this process: one of `members`.
    pub name: String,
    /// All members with their addresses, `host:port`, for streams (TCP). They differ from those of
    /// nodes.
    pub members: Vec<Peer>,
    /// The address on which this process listens. Default `None`, for a log without other members.
    pub listen: Option<SocketAddr>,
    /// The id of the cluster: two clusters that share a key by mistake do not hear each other.
    pub cluster: ClusterId,
    /// The key of the cluster, and the keys that are accepted beside it during a rotation.
    pub keys: Keyring,
    /// The folder of acceptor, log and snapshot: on a local disk, for one process at a time.
    pub folder: PathBuf,
    /// f: the number of members that may fail. Default `None`: (n-1)/2.
    ///
    /// A write needs f+1 members, a new leader all but f. Smaller: faster writes, but fewer
    /// failures are survived by a new leader's election.
    pub faults: Option<usize>,
    /// The retransmission interval. 100 ms by default.
    ///
    /// Larger: a lost message costs more time. Smaller: more messages. Choose about a round trip
    /// and a sync of the disk.
    pub retry: Duration,
    /// The number of writes that may be under way at once (backpressure). 256 by default.
    ///
    /// It holds for the leader altogether, and for the users of each process. Larger: more
    /// throughput and memory. Smaller: callers wait earlier.
    pub window: u64,
    /// The number of writes after which a snapshot replaces the log before it. 10,000 by default.
    ///
    /// Members make theirs at different places of the log: of three, the second and the third a
    /// third and two thirds of this number sooner than the first. Larger: a longer log on the disk
    /// and a slower start. Smaller: more snapshots.
    pub snapshot_every: u64,
    /// The number of writes before a snapshot that are kept for slow members. 2,000 by default.
    ///
    /// Larger: more disk. Smaller: a member that is a little behind gets a whole snapshot.
    pub keep: u64,
    /// The longest write, in bytes. 1 MiB by default, at most 64 MiB.
    pub longest_write: usize,
    /// The clock by which the strong lease is judged: that of the node. [`Clock::boot`] by default.
    pub time: Clock,
}

impl Config {
    /// Returns the defaults. Set `members`, `listen` and `folder` as well.
    pub fn new(log: &str, name: &str, cluster: ClusterId, key: ClusterKey) -> Self {
        Self {
            log: log.to_owned(),
            name: name.to_owned(),
            members: Vec::new(),
            listen: None,
            cluster,
            keys: Keyring::new(key),
            folder: PathBuf::new(),
            faults: None,
            retry: Duration::from_millis(100),
            window: 256,
            snapshot_every: 10_000,
            keep: 2_000,
            longest_write: 1 << 20,
            time: Clock::boot(),
        }
    }

    /// Returns the settings of a log beside a member's node.
    ///
    /// It takes name, members, keys and clock from the node, a folder within that of its store, and
    /// ports that are `offset` above those of the nodes.
    /// [`Status::cluster`](crate::Status::cluster) has the id of the cluster.
    ///
    /// # Errors
    /// If the node has no store or not the cluster's key, or if an address or port does not fit.
    pub fn beside(
        node: &crate::Config,
        cluster: ClusterId,
        log: &str,
        offset: u16,
    ) -> Result<Self, OpenError> {
        let Key::Cluster(key) = &node.key else {
            let why = "members of a log hold the cluster's key, not one derived from it".to_owned();
            return Err(OpenError::Config { key: "key", why });
        };
        let store = node.store.as_ref().ok_or_else(|| OpenError::Config {
            key: "store",
            why: "missing: a log is beside a member that has one".into(),
        })?;
        let folder = store.join(format!("log-{}", log.replace(['/', ':'], "_")));
        let above = |port: u16| {
            let why = format!("port {port} and the offset {offset} of the log are more than 65535 together");
            port.checked_add(offset).ok_or(OpenError::Config { key: "offset", why })
        };
        let moved = |peer: &Peer| {
            let why = || format!("'{}' is no HOST:PORT", peer.address);
            let parts =
                peer.address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
            let (host, port) = parts.ok_or_else(|| OpenError::Config { key: "members", why: why() })?;
            Ok(Peer { name: peer.name.clone(), address: format!("{host}:{}", above(port)?) })
        };
        let listen =
            node.listen.first().map(|at| above(at.port()).map(|port| SocketAddr::new(at.ip(), port)));
        Ok(Self {
            members: node.members.iter().map(moved).collect::<Result<_, OpenError>>()?,
            listen: listen.transpose()?,
            keys: Keyring { speak: key.clone(), accept: node.old_keys.clone() },
            folder,
            time: node.time.clone(),
            ..Self::new(log, &node.name, cluster, key.clone())
        })
    }
}

/// A configuration that was checked.
pub(super) struct Checked {
    pub(super) log: GroupName,
    pub(super) me: NodeName,
    /// In order of their names: all processes number them alike.
    pub(super) members: Vec<(NodeName, String)>,
    pub(super) listen: Option<SocketAddr>,
    pub(super) cluster: ClusterId,
    pub(super) keys: Keyring,
    pub(super) folder: PathBuf,
    pub(super) machine: log::Config,
    pub(super) users: usize,
    pub(super) longest_write: usize,
    pub(super) snapshots: Snapshots,
    pub(super) time: Clock,
}

impl Checked {
    pub(super) fn new(config: &Config) -> Result<Self, OpenError> {
        let invalid = |key, why: String| OpenError::Config { key, why };
        let name = |key, text: &str| NodeName::new(text).map_err(|error| invalid(key, error.to_string()));
        let log = GroupName::new(&config.log).map_err(|error| invalid("log", error.to_string()))?;
        let me = name("name", &config.name)?;
        let mut members = Vec::new();
        for peer in &config.members {
            members.push((name("members", &peer.name)?, peer.address.clone()));
        }
        members.sort();
        if !members.iter().any(|(name, _)| *name == me) {
            return Err(invalid("members", format!("'{me}' is not among them: add it")));
        }
        if config.listen.is_none() && members.len() > 1 {
            return Err(invalid("listen", "missing: the other members must reach this one".into()));
        }
        if config.folder.as_os_str().is_empty() {
            return Err(invalid("folder", "missing: a folder on a disk of this host".into()));
        }
        if config.longest_write > LONGEST_WRITE {
            let why =
                format!("{} bytes: at most {LONGEST_WRITE}, or messages get too long", config.longest_write);
            return Err(invalid("longest_write", why));
        }
        let ids: Vec<NodeId> = members.iter().map(|(name, _)| name.id()).collect();
        let users = usize::try_from(config.window).unwrap_or(usize::MAX).clamp(1, SESSIONS / 2 / ids.len());
        // Each member at another time: a snapshot takes from one of them at a time.
        let position = ids.iter().position(|id| *id == me.id()).unwrap_or(0) as u64;
        let sooner = config.snapshot_every / ids.len() as u64 * position;
        let settings = Settings {
            faults: config.faults.unwrap_or((ids.len() - 1) / 2),
            retry: LocalSpan::from_nanos(nanos(config.retry)),
            window: config.window,
            snapshot_every: config.snapshot_every,
            snapshot_sooner: sooner,
            keep: config.keep,
            sessions: SESSIONS,
            wishes: SESSIONS,
            page: PAGE,
            members: ids,
            rules: Sound,
        };
        let machine = settings.validate().map_err(|error| invalid("log settings", error.to_string()))?;
        Ok(Self {
            log,
            me,
            members,
            listen: config.listen,
            cluster: config.cluster,
            keys: config.keys.clone(),
            folder: config.folder.clone(),
            machine,
            users,
            longest_write: config.longest_write,
            snapshots: Snapshots::new(&config.folder),
            time: config.time.clone(),
        })
    }

    /// A digest of the settings that all members must agree on: their names, and how many suffice.
    pub(super) fn shape(&self) -> u64 {
        let names: Vec<&str> = self.members.iter().map(|(name, _)| name.as_str()).collect();
        let text = format!("tenure log {} of {} but {}", self.log, names.join(" "), self.faults());
        let sum = digest(&SHA256, text.as_bytes());
        u64::from_be_bytes(*sum.as_ref().first_chunk().expect("SHA-256 has 32 bytes"))
    }

    pub(super) fn faults(&self) -> usize {
        self.machine.settings().faults
    }

    pub(super) fn name_of(&self, id: NodeId) -> Option<&NodeName> {
        self.members.iter().map(|(name, _)| name).find(|name| name.id() == id)
    }
}
