//! A founded cluster on loopback whose nodes run in the test's own process: configurations, stores
//! and addresses.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure::{Clock, ClusterId, ClusterKey, Config, Hand, Key, Node, Role, Term, WeakElection, peers};

use crate::ports::free_addresses;
use crate::waiting::{LIMIT, within};

/// A founded cluster whose nodes need not run.
pub struct Cluster {
    /// Where the stores are.
    pub dir: tempfile::TempDir,
    /// Its id.
    pub id: ClusterId,
    /// The key of all members.
    pub key: ClusterKey,
    /// The names of its members.
    pub names: Vec<String>,
    /// Where its members listen.
    pub addresses: Vec<SocketAddr>,
    /// How long leases are.
    pub lease: Duration,
    /// Whether elections are quicker than by default.
    quick: bool,
}

/// The name of a numbered member, by its place: n1, n2 …
pub fn numbered(index: usize) -> String {
    format!("n{}", index + 1)
}

impl Cluster {
    /// Founds a cluster of `count` members called a, b, c … which elect quickly.
    pub fn found(count: usize, lease: Duration) -> Self {
        Self::found_at(free_addresses(count), lease)
    }

    /// The same, where the addresses are given.
    pub fn found_at(addresses: Vec<SocketAddr>, lease: Duration) -> Self {
        let names = ('a'..='z').take(addresses.len()).map(String::from).collect();
        Self::found_named(names, addresses, lease, true)
    }

    /// Founds a cluster of `count` members called n1, n2 … with the defaults of every setting, as
    /// daemons have them.
    pub fn found_numbered(count: usize, lease: Duration) -> Self {
        Self::found_named((0..count).map(numbered).collect(), free_addresses(count), lease, false)
    }

    fn found_named(names: Vec<String>, addresses: Vec<SocketAddr>, lease: Duration, quick: bool) -> Self {
        let cluster = Self {
            dir: tempfile::tempdir().expect("a folder"),
            id: ClusterId::draw(),
            key: ClusterKey::generate(),
            names,
            addresses,
            lease,
            quick,
        };
        for index in 0..cluster.names.len() {
            Node::found(&cluster.member(index), cluster.id, Term(1000)).expect("it is founded");
        }
        cluster
    }

    /// The configuration of a member.
    pub fn member(&self, index: usize) -> Config {
        let mut config = self.config(&self.names[index]);
        config.listen = vec![self.addresses[index]];
        config.store = Some(self.path(&self.names[index]));
        config
    }

    /// The configuration of a process that is no member, with the cluster's key.
    pub fn outsider(&self, name: &str, role: Role) -> Config {
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
        if self.quick {
            config.longest_lease = self.lease * 2;
            config.retry = Duration::from_millis(20);
            config.window = Duration::from_millis(50);
        }
        config
    }

    /// A path in the folder of the cluster.
    pub fn path(&self, name: &str) -> PathBuf {
        Path::new(self.dir.path()).join(name)
    }

    /// Starts all members.
    pub async fn start(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        for index in 0..self.names.len() {
            nodes.push(Node::start(self.member(index)).await.expect("it starts"));
        }
        nodes
    }

    /// Starts all members by clocks that a test can turn.
    pub async fn start_by_hand(&self, weak: WeakElection) -> (Vec<Node>, Vec<Hand>) {
        let (mut nodes, mut hands) = (Vec::new(), Vec::new());
        for index in 0..self.names.len() {
            let (clock, hand) = Clock::by_hand();
            let mut config = self.member(index);
            (config.time, config.weak) = (clock, weak);
            nodes.push(Node::start(config).await.expect("it starts"));
            hands.push(hand);
        }
        (nodes, hands)
    }
}

/// Waits until a leader has renewed so many times more.
pub async fn renewed(leader: &Node, more: u64) {
    let renewals = async || leader.status().await.expect("it runs").tally.renewals;
    let end = renewals().await + more;
    let there = async {
        while renewals().await < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(&format!("{more} renewals"), LIMIT, there).await;
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Ok(folder) = tenure::memory_folder(None) else { return };
        for name in &self.names {
            let _ = std::fs::remove_file(folder.join(format!("tenure-{}-{name}", self.id)));
        }
    }
}
