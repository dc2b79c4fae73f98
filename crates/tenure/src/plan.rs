//! Founding a cluster from code: [`Cluster`].

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

use tenure_proto::strong::Term;

use crate::config::{Config, ConfigError, Key, Peer, Role};
use crate::error::StartError;
use crate::name::ClusterId;
use crate::node::{Node, term_floor};
use crate::seal::ClusterKey;

/// A cluster that is founded from code, and what its processes need to know.
///
/// It is for members that run in this process, for a program that founds its own cluster, and for
/// tests. In production each member has a host of its own: `tenure init` makes a folder for each.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("tenure-doc-{}", tenure::ClusterId::draw()));
/// use tenure::{Cluster, Node};
///
/// let members = [("a", "127.0.0.1:0"), ("b", "127.0.0.1:0"), ("c", "127.0.0.1:0")];
/// let cluster = Cluster::plan(tenure::peers(members)).found(&folder)?;   // port 0: free ones
///
/// let mut nodes = Vec::new();
/// for config in cluster.members() {
///     nodes.push(Node::start(config).await?);
/// }
/// let app = Node::start(cluster.candidate("app")).await?;               // leads, grants nothing
/// assert!(app.campaign("jobs").await?.is_leader());
/// # app.shutdown().await;
/// # for node in nodes { node.shutdown().await; }
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Cluster {
    id: ClusterId,
    configs: Vec<Config>,
}

/// A cluster that is not founded yet: see [`Cluster::plan`].
#[derive(Clone, Debug)]
pub struct Plan {
    members: Vec<Peer>,
    settings: Config,
    floor: Option<Term>,
}

impl Cluster {
    /// Plans a cluster of these members. Each listens on the address that the others reach it by;
    /// with port 0 a free port of that address is drawn when the cluster is founded.
    pub fn plan(members: Vec<Peer>) -> Plan {
        let settings = Config::new("", Key::Cluster(ClusterKey::generate()));
        Plan { members, settings, floor: None }
    }

    /// Returns the id of the cluster.
    pub fn id(&self) -> ClusterId {
        self.id
    }

    /// Returns the configuration of every member, in the order of the plan: each has a folder of
    /// its own. Change what is not common to all, then [start](Node::start) it.
    pub fn members(&self) -> Vec<Config> {
        self.configs.clone()
    }

    /// Returns the configuration of one member.
    pub fn member(&self, name: &str) -> Option<Config> {
        self.configs.iter().find(|config| config.name == name).cloned()
    }

    /// Returns the configuration of a process that may lead and grants nothing.
    pub fn candidate(&self, name: &str) -> Config {
        self.outsider(name, Role::Candidate)
    }

    /// Returns the configuration of a process that only learns who leads.
    pub fn observer(&self, name: &str) -> Config {
        self.outsider(name, Role::Observer)
    }

    fn outsider(&self, name: &str, role: Role) -> Config {
        let mut config = self.configs[0].clone(); // A cluster has members: its plan was checked.
        (config.name, config.role) = (name.to_owned(), role);
        (config.listen, config.store, config.cluster) = (Vec::new(), None, Some(self.id));
        config
    }
}

impl Plan {
    /// Sets what is common to all members, for example lengths of leases or the key. Name, role,
    /// addresses, members and store are set for each.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Sets the term above which the cluster begins. Default: [`term_floor`], so that fences which
    /// remember an older cluster admit its leaders.
    #[must_use]
    pub fn floor(mut self, floor: Term) -> Self {
        self.floor = Some(floor);
        self
    }

    /// Founds the cluster: writes the store of every member to a folder of its name in `dir`.
    ///
    /// # Errors
    /// If a setting or address is refused, if a folder has a store already, because a second
    /// founding would forget the promises of the first, or if a store cannot be written.
    pub fn found(mut self, dir: impl AsRef<Path>) -> Result<Cluster, StartError> {
        if self.members.is_empty() {
            return Err(ConfigError::Missing { key: "members", why: "a cluster has one at least" }.into());
        }
        let listens = draw_ports(&mut self.members)?;
        let (id, floor) = (ClusterId::draw(), self.floor.unwrap_or_else(term_floor));
        let of = |(peer, listen): (&Peer, SocketAddr)| Config {
            name: peer.name.clone(),
            role: Role::Member,
            listen: vec![listen],
            members: self.members.clone(),
            store: Some(dir.as_ref().join(&peer.name)),
            ..self.settings.clone()
        };
        let configs: Vec<Config> = self.members.iter().zip(listens).map(of).collect();
        configs.iter().try_for_each(|config| config.check())?; // All of them, before any is written.
        for config in &configs {
            Node::found(config, id, floor)?;
        }
        Ok(Cluster { id, configs })
    }
}

/// The addresses to listen on, with a free port instead of 0 in both. All are held until all are
/// drawn, so that no two are the same.
fn draw_ports(members: &mut [Peer]) -> Result<Vec<SocketAddr>, StartError> {
    let mut held = Vec::new();
    for peer in members.iter_mut() {
        let refused = || ConfigError::Invalid {
            key: "members",
            why: format!("'{}' is no IP:PORT to listen on", peer.address),
        };
        let address: SocketAddr = peer.address.parse().map_err(|_| refused())?;
        if address.port() != 0 {
            held.push((None, address));
            continue;
        }
        let taken = |error| StartError::Listen { address, error };
        let socket = UdpSocket::bind(address).map_err(taken)?;
        let drawn = socket.local_addr().map_err(taken)?;
        peer.address = drawn.to_string();
        held.push((Some(socket), drawn));
    }
    Ok(held.into_iter().map(|(_, address)| address).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::peers;
    use crate::store::StoreError;

    #[test]
    fn members_with_port_0_get_different_free_ports_that_all_know() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Cluster::plan(peers([("a", "127.0.0.1:0"), ("b", "127.0.0.1:0"), ("c", "127.0.0.1:0")]));
        let cluster = plan.clone().found(dir.path()).unwrap();
        let mut ports: Vec<u16> = cluster.members().iter().map(|config| config.listen[0].port()).collect();
        for (config, peer) in cluster.members().iter().zip(&cluster.members()[0].members) {
            assert_eq!(config.listen[0].to_string(), peer.address);
        }
        ports.sort_unstable();
        ports.dedup();
        assert!(ports.len() == 3 && ports[0] != 0, "{ports:?}");
        let again = plan.found(dir.path()).err().unwrap();
        assert!(matches!(again, StartError::Store(StoreError::AlreadyThere { .. })), "{again}");
    }

    #[test]
    fn nothing_is_written_if_a_setting_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let twice = Cluster::plan(peers([("a", "127.0.0.1:0"), ("a", "127.0.0.1:0")]));
        assert!(matches!(twice.found(dir.path()), Err(StartError::Config(_))));
        let nowhere = Cluster::plan(peers([("a", "somewhere:7400")]));
        let error = nowhere.found(dir.path()).err().unwrap().to_string();
        assert!(error.contains("somewhere:7400"), "{error}");
        assert!(matches!(Cluster::plan(Vec::new()).found(dir.path()), Err(StartError::Config(_))));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
