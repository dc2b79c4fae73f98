//! A founded cluster of three whose members run as processes: for each a file of configuration and
//! a store, and one key for all.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tenure::{ClusterId, ClusterKey, Config, Node, Term};

use crate::ports::free_addresses;

/// The names of the members; each has its file, `a.toml` and so on.
pub const NAMES: [&str; 3] = ["a", "b", "c"];

/// A founded cluster. Dropping it removes the memory of grants that members keep within a boot; the
/// folder is the test's.
pub struct MemberFiles {
    /// Where the key, the files and the stores are.
    pub folder: PathBuf,
    /// The cluster's id.
    pub cluster: ClusterId,
}

impl MemberFiles {
    /// Founds a cluster in a folder. `settings` gives, by a member's name, the rest of its file:
    /// keys of the top first, then tables.
    pub fn found(folder: &Path, settings: impl Fn(&str) -> String) -> Self {
        fs::create_dir_all(folder).expect("a folder");
        let files = Self { folder: folder.to_owned(), cluster: ClusterId::draw() };
        files.write_key();
        let addresses = free_addresses(NAMES.len());
        let members: String = NAMES.iter().zip(&addresses).map(table).collect();
        for (name, address) in NAMES.iter().zip(&addresses) {
            let top = format!(
                "name = \"{name}\"\nlisten = \"{address}\"\nstore = \"{name}\"\nkey_file = \"key\"\n"
            );
            fs::write(files.file(name), top + &settings(name) + &members).expect("it is written");
            let config = Config::from_path(files.file(name)).expect("it is a configuration");
            Node::found(&config, files.cluster, Term(1000)).expect("it is founded");
        }
        files
    }

    fn write_key(&self) {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.folder.join("key"));
        let key = ClusterKey::generate();
        file.and_then(|mut file| file.write_all(key.reveal().as_bytes())).expect("the key is written");
    }

    /// The file of a member.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.toml"))
    }
}

impl Drop for MemberFiles {
    fn drop(&mut self) {
        let Ok(folder) = tenure::memory_folder(None) else { return };
        for name in NAMES {
            let _ = fs::remove_file(folder.join(format!("tenure-{}-{name}", self.cluster)));
        }
    }
}

fn table((name, address): (&&str, &SocketAddr)) -> String {
    format!("[[cluster.members]]\nname = \"{name}\"\naddress = \"{address}\"\n")
}

/// Settings of members that elect quickly: leases as given, as they are written in a file, and a
/// folder that survives a restart but not a reboot.
pub fn quick(lease: &str, drift_ppm: u32, memory: &Path) -> String {
    let memory = memory.display();
    format!(
        "memory = \"{memory}\"\n[lease]\nlength = \"{lease}\"\nretry = \"20ms\"\nwindow = \"50ms\"\n\
         [cluster]\ndrift_ppm = {drift_ppm}\nlongest_lease = \"2s\"\n"
    )
}
