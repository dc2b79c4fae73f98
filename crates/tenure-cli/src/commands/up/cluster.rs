//! The cluster in a folder: found, or founded.

use std::fs::{File, TryLockError};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Wishes, ports};
use crate::failure::{Failure, messages};
use crate::founding::{self, FILE, Founder, Plan};
use crate::output::quoted;
use crate::settings::Settings;

/// How many nodes a new cluster has.
const NODES: u16 = 3;

/// Where its ports begin.
const PORT: u16 = 7400;

/// A cluster whose nodes run on this machine.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Where it is.
    pub(super) folder: PathBuf,
    /// Its id.
    pub(super) id: String,
    /// Its nodes.
    pub(super) members: Vec<Member>,
    /// Whether it was there before.
    pub(super) is_old: bool,
    /// Held for as long as this process runs the cluster.
    _lock: File,
}

/// One node of it.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Its name.
    pub(super) name: String,
    /// Where it listens.
    pub(super) address: SocketAddr,
    /// Where it serves HTTP.
    pub(super) http: Option<SocketAddr>,
    /// Its configuration.
    pub(super) file: PathBuf,
}

impl Cluster {
    /// The cluster of the folder, or a new one.
    pub(super) fn find_or_found(folder: &Path, wishes: Wishes) -> Result<Self, Failure> {
        let is_old = folder.join(FILE).exists();
        if !is_old {
            let plan = plan(folder, wishes)?;
            let udp: Vec<SocketAddr> =
                plan.founders.iter().filter_map(|founder| founder.address.parse().ok()).collect();
            let http: Vec<SocketAddr> = plan.founders.iter().map(|founder| founder.http).collect();
            ports::check(&udp, &http, None)?;
            plan.carry_out()?;
        }
        let cluster = Self::read(folder, is_old)?;
        if is_old {
            cluster.check(wishes)?;
            let udp: Vec<SocketAddr> = cluster.members.iter().map(|member| member.address).collect();
            let http: Vec<SocketAddr> = cluster.members.iter().filter_map(|member| member.http).collect();
            ports::check(&udp, &http, Some(folder))?;
        }
        Ok(cluster)
    }

    /// The file for clients.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// The settings of its clients.
    pub(super) fn settings(&self) -> Result<Settings, Failure> {
        read(&self.file())
    }

    fn read(folder: &Path, is_old: bool) -> Result<Self, Failure> {
        let file = folder.join(FILE);
        let lock = lock(&file)?;
        let config = read(&file)?.node()?;
        let id = config.cluster.map(|id| id.to_string()).unwrap_or_default();
        let member = |peer: &tenure::Peer| {
            let file = folder.join(&peer.name).join(FILE);
            let settings = read(&file)?;
            let address =
                settings.node()?.listen.first().copied().filter(|address| address.ip().is_loopback());
            let address = address.ok_or_else(|| messages::up_elsewhere(folder.display()))?;
            Ok(Member { name: peer.name.clone(), address, http: settings.daemon.http, file })
        };
        let members = config.members.iter().map(member).collect::<Result<Vec<_>, Failure>>()?;
        Ok(Self { folder: folder.to_owned(), id, members, is_old, _lock: lock })
    }

    /// A cluster that exists is as it is.
    fn check(&self, wishes: Wishes) -> Result<(), Failure> {
        let folder = self.folder.display();
        let number = self.members.len();
        if let Some(wanted) = wishes.nodes.filter(|wanted| usize::from(*wanted) != number) {
            return Err(messages::up_other_nodes(folder, number, wanted));
        }
        let first = self.members.first().map(|member| member.address.port());
        if let (Some(wanted), Some(first)) = (wishes.port.filter(|wanted| Some(*wanted) != first), first) {
            return Err(messages::up_other_port(folder, first, wanted));
        }
        let Some(wanted) = wishes.lease else { return Ok(()) };
        let lease = self.settings()?.node()?.lease;
        if lease != wanted {
            return Err(messages::up_other_lease(folder, founding::length(lease), founding::length(wanted)));
        }
        Ok(())
    }

    /// How this cluster is named on a command line: not at all where it is found without.
    pub(super) fn flag(&self) -> String {
        match self.folder == Path::new(".tenure") {
            true => String::new(),
            false => format!(" -c {}", quoted(&self.file().to_string_lossy())),
        }
    }
}

/// The settings of a file alone: what the environment says is for other processes.
pub(super) fn read(file: &Path) -> Result<Settings, Failure> {
    if !file.exists() {
        return Err(messages::up_incomplete(file.display()));
    }
    Settings::found(file)
}

/// Two processes must not look after one cluster.
fn lock(file: &Path) -> Result<File, Failure> {
    let opened = File::open(file).map_err(|error| messages::up_not_locked(file.display(), error))?;
    match opened.try_lock() {
        Ok(()) => Ok(opened),
        Err(TryLockError::WouldBlock) => Err(messages::up_twice(file.parent().unwrap_or(file).display())),
        Err(TryLockError::Error(error)) => Err(messages::up_not_locked(file.display(), error)),
    }
}

/// A new cluster: n1, n2 and so on, two ports each.
fn plan(folder: &Path, wishes: Wishes) -> Result<Plan, Failure> {
    let (nodes, base) = (wishes.nodes.unwrap_or(NODES), wishes.port.unwrap_or(PORT));
    if base.checked_add(2 * nodes - 1).is_none() {
        return Err(messages::up_too_many_ports(nodes, 2 * nodes, base));
    }
    let founder = |i: u16| Founder {
        name: format!("n{}", i + 1),
        address: format!("127.0.0.1:{}", base + 2 * i),
        http: SocketAddr::from((Ipv4Addr::LOCALHOST, base + 2 * i + 1)),
    };
    // Leases that are asked for must be allowed.
    let longest = Duration::from_secs(5);
    Ok(Plan {
        folder: folder.to_owned(),
        founders: (0..nodes).map(founder).collect(),
        quorums: None,
        drift_ppm: None,
        longest_lease: wishes.lease.filter(|lease| *lease > longest),
        lease: wishes.lease,
        floor: tenure::term_floor(),
    })
}
