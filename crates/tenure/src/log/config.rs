//! What a process of a log is told, and what follows from it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use tenure_proto::NodeId;
use tenure_proto::paxos::{self, Settings, Sound};
use tenure_proto::time::LocalSpan;

use super::error::OpenError;
use super::link::MAX_MESSAGE;
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

/// What goes with the state in a message that has a snapshot, at most: the table of sessions.
const BESIDE_STATE: usize = 1 << 20;

/// The settings of a log, not yet checked: [`Log::open`](super::Log::open) does that.
///
/// `log`, `cluster` and `members` are the same for all members and fixed when the log is founded.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name of the log. Where a strong group elects, that of the group.
    pub log: String,
    /// The name of this process: one of `members`.
    pub name: String,
    /// All members with their addresses, `host:port`, for streams (TCP). Not those of nodes.
    pub members: Vec<Peer>,
    /// Where this process listens. `None` if the log has no other member.
    pub listen: Option<SocketAddr>,
    /// Which cluster this is: two clusters with one key by mistake do not hear each other.
    pub cluster: ClusterId,
    /// The key of the cluster, and those accepted beside it while keys change.
    pub keys: Keyring,
    /// Where acceptor, log and snapshot are kept: on a local disk, one process at a time.
    pub folder: PathBuf,
    /// f: how many members may fail. A write needs f+1 of them, a new leader all but f; (n-1)/2
    /// unless told.
    pub faults: Option<usize>,
    /// After how long something unanswered is said again: a round trip and a sync of the disk.
    pub retry: Duration,
    /// How many writes may be on their way at once: of the leader altogether, and of the users of
    /// each process.
    pub window: u64,
    /// After how many writes the state is written down and the log before it forgotten.
    pub snapshot_every: u64,
    /// How many writes before that are kept nevertheless, for members that are a little behind.
    pub keep: u64,
    /// The longest write, in bytes. At most 64 MiB.
    pub longest_write: usize,
    /// The clock by which the strong lease is judged: that of the node.
    pub time: Clock,
}

impl Config {
    /// The defaults. To be added: `members`, `listen`, `folder`.
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

    /// The log of this name beside a member's node: its name, members, keys and clock, with a
    /// folder within that of its store, at ports that are `offset` above those of the nodes.
    /// [`Status::cluster`](crate::Status::cluster) has the id of the cluster.
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

/// A configuration that holds together.
pub(super) struct Checked {
    pub(super) log: GroupName,
    pub(super) me: NodeName,
    /// In order of their names: all processes number them alike.
    pub(super) members: Vec<(NodeName, String)>,
    pub(super) listen: Option<SocketAddr>,
    pub(super) cluster: ClusterId,
    pub(super) keys: Keyring,
    pub(super) folder: PathBuf,
    pub(super) machine: paxos::Config,
    pub(super) users: usize,
    pub(super) longest_write: usize,
    pub(super) longest_snapshot: usize,
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
        let settings = Settings {
            faults: config.faults.unwrap_or((ids.len() - 1) / 2),
            retry: LocalSpan::from_nanos(nanos(config.retry)),
            window: config.window,
            snapshot_every: config.snapshot_every,
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
            longest_snapshot: MAX_MESSAGE - BESIDE_STATE,
            time: config.time.clone(),
        })
    }

    /// What all members must agree on, in short: who they are, and how many of them suffice.
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
