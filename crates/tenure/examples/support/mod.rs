//! A cluster of three members in this process, so that an example needs nothing else. Real ones run
//! on three machines.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use tenure::{ClusterId, ClusterKey, Config, Key, Node, StartError, Term, peers};

/// Three members, and what others need to talk to them.
pub(crate) struct Members {
    pub(crate) nodes: Vec<Node>,
    pub(crate) cluster: ClusterId,
    pub(crate) key: ClusterKey,
    pub(crate) addresses: Vec<(String, String)>,
    folder: PathBuf,
}

impl Members {
    /// Founds them in a folder of their own and starts them. Another process may take a port
    /// between its choice and its use: then others are chosen.
    pub(crate) async fn start() -> Result<Self, Box<dyn Error>> {
        for _ in 0..10 {
            match Self::try_to_start().await {
                Err(error) if matches!(error.downcast_ref(), Some(StartError::Listen { .. })) => {}
                started => return started,
            }
        }
        Err("every port that was free is taken at once".into())
    }

    async fn try_to_start() -> Result<Self, Box<dyn Error>> {
        let (cluster, key) = (ClusterId::draw(), ClusterKey::generate());
        let folder = std::env::temp_dir().join(format!("tenure-example-{cluster}"));
        let free = || std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let addresses = [("a", free()?), ("b", free()?), ("c", free()?)]
            .map(|(name, at)| (name.to_owned(), at.to_string()));
        let mut members = Self { nodes: Vec::new(), cluster, key, addresses: addresses.to_vec(), folder };
        let configs = addresses.map(|(name, address)| members.config(&name, &address));
        for config in &configs {
            Node::found(config, cluster, Term(0))?;
        }
        for config in configs {
            members.nodes.push(Node::start(config).await?);
        }
        Ok(members)
    }

    /// The configuration of anybody who knows where the members are.
    pub(crate) fn outsider(&self, name: &str, key: Key) -> Config {
        let mut config = Config::new(name, key);
        config.members =
            peers(self.addresses.iter().map(|(name, address)| (name.as_str(), address.as_str())));
        config.lease = Duration::from_millis(500);
        config.retry = Duration::from_millis(20);
        config
    }

    fn config(&self, name: &str, address: &str) -> Config {
        let mut config = self.outsider(name, Key::Cluster(self.key.clone()));
        config.listen = address.parse().into_iter().collect();
        config.store = Some(self.folder.join(name));
        config
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
