//! A cluster of real nodes on loopback, in this process: for what a command says of a cluster that runs.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tenure::{ClusterId, ClusterKey, Config, Key, Node, Role, Term, peers};

/// A founded cluster; its nodes are started by the test.
pub(crate) struct Cluster {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) id: ClusterId,
    pub(crate) key: ClusterKey,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) lease: Duration,
}

/// The name of a member, by its place.
pub(crate) fn name(index: usize) -> String {
    format!("n{}", index + 1)
}

/// Ports that are free now, for datagrams and streams. They are below those that Linux hands out by itself, so that nobody is given
/// one before it is used, and never the same twice in one process.
pub(crate) fn free_addresses(count: usize) -> Vec<SocketAddr> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let free = || loop {
        let place = std::process::id().wrapping_mul(61).wrapping_add(TRIED.fetch_add(1, Relaxed));
        let port = u16::try_from(10_000 + place % 20_000).expect("it is below 30,000");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok() {
            return address;
        }
    };
    (0..count).map(|_| free()).collect()
}

impl Cluster {
    /// Founds one of `count` members.
    pub(crate) fn found(count: usize, lease: Duration) -> Self {
        let cluster = Self {
            dir: tempfile::tempdir().expect("a folder"),
            id: ClusterId::draw(),
            key: ClusterKey::generate(),
            addresses: free_addresses(count),
            lease,
        };
        for index in 0..count {
            Node::found(&cluster.member(index), cluster.id, Term(1000)).expect("it is founded");
        }
        cluster
    }

    /// The configuration of a member.
    pub(crate) fn member(&self, index: usize) -> Config {
        let mut config = self.config(&name(index));
        config.listen = vec![self.addresses[index]];
        config.store = Some(self.dir.path().join(name(index)));
        config
    }

    /// The configuration of a process that is no member.
    pub(crate) fn outsider(&self, name: &str, role: Role) -> Config {
        let mut config = self.config(name);
        config.role = role;
        config.cluster = Some(self.id);
        config
    }

    fn config(&self, own: &str) -> Config {
        let mut config = Config::new(own, Key::Cluster(self.key.clone()));
        let pairs: Vec<(String, String)> =
            self.addresses.iter().enumerate().map(|(i, address)| (name(i), address.to_string())).collect();
        config.members = peers(pairs.iter().map(|(name, address)| (name.as_str(), address.as_str())));
        config.lease = self.lease;
        config
    }

    /// Starts all members.
    pub(crate) async fn start(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        for index in 0..self.addresses.len() {
            nodes.push(Node::start(self.member(index)).await.expect("it starts"));
        }
        nodes
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for index in 0..self.addresses.len() {
            for folder in ["/run/tenure", "/dev/shm"] {
                let _ = std::fs::remove_file(format!("{folder}/tenure-{}-{}", self.id, name(index)));
            }
        }
    }
}

/// Waits for something that must come, and says what did not.
pub(crate) async fn within<T>(what: &str, limit: Duration, wait: impl Future<Output = T>) -> T {
    match tokio::time::timeout(limit, wait).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {limit:?}"),
    }
}
