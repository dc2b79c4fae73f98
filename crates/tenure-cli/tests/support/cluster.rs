//! A cluster of real nodes on loopback, in this process: for what a command says of a cluster that
//! runs.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::net::SocketAddr;
use std::time::Duration;

use tenure::{ClusterId, ClusterKey, Config, Key, Node, Role, Term, peers};

/// A token of the role admin, and the line by which a daemon accepts it.
pub(crate) const TOKEN: &str =
    "tenure-token-1:0000000a:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
pub(crate) const TOKEN_LINE: &str =
    "0000000a admin 0870ebf141434ee4cad1e0d825d8c81535633e10b67054eb7e0f391ec8c72d07 - of the tests\n";

pub(crate) use tenure_testkit::ports::free_addresses;

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
        let Ok(folder) = tenure::memory_folder(None) else { return };
        for index in 0..self.addresses.len() {
            let _ = std::fs::remove_file(folder.join(format!("tenure-{}-{}", self.id, name(index))));
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
