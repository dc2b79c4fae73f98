//! A cluster on loopback for tests: configurations, stores, free ports.

#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod chance;
mod ports;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure::{Clock, ClusterId, ClusterKey, Config, Hand, Key, Node, Role, Term, WeakElection, peers};

pub(crate) use ports::free_addresses;

/// A founded cluster whose nodes need not run.
pub(crate) struct Cluster {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) id: ClusterId,
    pub(crate) key: ClusterKey,
    pub(crate) names: Vec<String>,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) lease: Duration,
}

impl Cluster {
    /// Founds a cluster of `count` members called a, b, c ...
    pub(crate) fn found(count: usize, lease: Duration) -> Self {
        Self::found_at(free_addresses(count), lease)
    }

    /// The same, where the addresses are given.
    pub(crate) fn found_at(addresses: Vec<SocketAddr>, lease: Duration) -> Self {
        let count = addresses.len();
        let cluster = Self {
            dir: tempfile::tempdir().expect("a folder"),
            id: ClusterId::draw(),
            key: ClusterKey::generate(),
            names: ('a'..='z').take(count).map(String::from).collect(),
            addresses,
            lease,
        };
        for index in 0..count {
            Node::found(&cluster.member(index), cluster.id, Term(1000)).expect("it is founded");
        }
        cluster
    }

    /// The configuration of a member.
    pub(crate) fn member(&self, index: usize) -> Config {
        let mut config = self.config(&self.names[index]);
        config.listen = vec![self.addresses[index]];
        config.store = Some(self.path(&self.names[index]));
        config
    }

    /// The configuration of a process that is no member, with the cluster's key.
    pub(crate) fn outsider(&self, name: &str, role: Role) -> Config {
        let mut config = self.config(name);
        config.role = role;
        config.cluster = Some(self.id);
        config
    }

    fn config(&self, name: &str) -> Config {
        let mut config = Config::new(name, Key::Cluster(self.key.clone()));
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        config.members =
            peers(self.names.iter().map(String::as_str).zip(addresses.iter().map(String::as_str)));
        config.lease = self.lease;
        config.longest_lease = self.lease * 2;
        config.retry = Duration::from_millis(20);
        config.window = Duration::from_millis(50);
        config
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        Path::new(self.dir.path()).join(name)
    }

    /// Starts all members.
    pub(crate) async fn start(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        for index in 0..self.names.len() {
            nodes.push(Node::start(self.member(index)).await.expect("it starts"));
        }
        nodes
    }

    /// Starts all members by clocks that a test can turn.
    pub(crate) async fn start_by_hand(&self, weak: WeakElection) -> (Vec<Node>, Vec<Hand>) {
        let (mut nodes, mut hands) = (Vec::new(), Vec::new());
        for index in 0..self.names.len() {
            let (clock, hand) = Clock::by_hand();
            let config = Config { time: clock, weak, ..self.member(index) };
            nodes.push(Node::start(config).await.expect("it starts"));
            hands.push(hand);
        }
        (nodes, hands)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Ok(folder) = tenure::memory_folder(None) else { return };
        for name in &self.names {
            let _ = std::fs::remove_file(folder.join(format!("tenure-{}-{name}", self.id)));
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
