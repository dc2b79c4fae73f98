//! Three members on this machine, for the examples: a key, a file for each, and a store for each.

use std::error::Error;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{fs, process, thread};

use tenure::{ClusterId, ClusterKey, Config, Node, Term};

/// The names of the members; each has its file, `a.toml` and so on.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// The cluster to found.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Where the key, the files and the stores go.
    pub(crate) folder: PathBuf,
    /// Where the members listen.
    pub(crate) addresses: [SocketAddr; 3],
}

impl Plan {
    /// A cluster to play with: on the ports from 7401, with leases of a second.
    pub(crate) fn by_hand(folder: &Path) -> Self {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Self { folder: folder.to_owned(), addresses: [address(7401), address(7402), address(7403)] }
    }

    /// The file of a member.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_extension("toml")
    }

    /// Founds the cluster: writes everything that its members need to start. A folder that has a
    /// cluster already is refused, for what its members promised must not be forgotten.
    pub(crate) fn found(&self) -> Result<ClusterId, Box<dyn Error>> {
        fs::create_dir_all(&self.folder)?;
        let key = self.folder.join("key");
        let owned = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&key);
        let mut key = owned.map_err(|error| format!("{}: {error}", key.display()))?;
        key.write_all(ClusterKey::generate().reveal().as_bytes())?;
        let cluster = ClusterId::draw();
        for (name, address) in NAMES.iter().zip(self.addresses) {
            fs::write(self.file(name), self.text(name, address))?;
            Node::found(&Config::from_path(self.file(name))?, cluster, Term(1))?;
        }
        Ok(cluster)
    }

    fn text(&self, name: &str, address: SocketAddr) -> String {
        let [a, b, c] = self.addresses;
        format!(
            r#"name = "{name}"
listen = "{address}"
store = "{name}"
key_file = "key"

[cluster]
drift_ppm = 100_000
longest_lease = "2s"
members = [
    {{ name = "a", address = "{a}" }},
    {{ name = "b", address = "{b}" }},
    {{ name = "c", address = "{c}" }},
]

[lease]
length = "1s"
retry = "20ms"
window = "50ms"
"#
        )
    }
}

/// From now on this process ends when its input does: its parent is gone then.
pub(crate) fn end_with_input() {
    thread::spawn(|| {
        while io::stdin().read_line(&mut String::new()).is_ok_and(|length| length > 0) {}
        process::exit(0);
    });
}
