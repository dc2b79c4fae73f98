//! A cluster of real daemons on loopback whose members change, and commands that are put to them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure::{ClusterId, ClusterKey, Config, Key, Node, Role, Term, peers};

use crate::binary::Binary;
use crate::http_cluster::{TOKEN, TOKEN_LINE};
use crate::ports::free_addresses;
use crate::waiting::until;

/// ChangingCluster by name. Those that are left are killed at the end.
pub struct ChangingCluster {
    binary: Binary,
    /// Where everything of it is.
    pub dir: tempfile::TempDir,
    /// The folder for the memory within a boot must be in memory.
    memory: tempfile::TempDir,
    /// Its id.
    pub id: ClusterId,
    /// The key of all nodes.
    pub key: ClusterKey,
    lease: Duration,
    founders: Vec<String>,
    homes: BTreeMap<String, Home>,
    running: BTreeMap<String, Child>,
}

#[derive(Clone, Copy)]
struct Home {
    udp: SocketAddr,
    http: SocketAddr,
}

impl ChangingCluster {
    /// Founds a cluster of members n1, n2 … with leases of at most `lease`. Nothing runs yet.
    pub fn found(binary: Binary, count: usize, lease: Duration) -> Self {
        let mut daemons = Self {
            binary,
            dir: tempfile::tempdir().expect("a folder"),
            memory: tempfile::tempdir_in("/dev/shm").expect("a folder"),
            id: ClusterId::draw(),
            key: ClusterKey::generate(),
            lease,
            founders: (1..=count).map(|number| format!("n{number}")).collect(),
            homes: BTreeMap::new(),
            running: BTreeMap::new(),
        };
        for name in daemons.founders.clone() {
            daemons.settle(&name);
        }
        for name in &daemons.founders {
            let config = daemons.config(name, Role::Member);
            Node::found(&config, daemons.id, Term(1000)).expect("it is founded");
            daemons.write_file(name, "");
        }
        daemons.write_client();
        daemons
    }

    /// Gives a name its ports and folders.
    fn settle(&mut self, name: &str) {
        let ports = free_addresses(2);
        self.homes.insert(name.to_owned(), Home { udp: ports[0], http: ports[1] });
        fs::create_dir_all(self.path(name)).expect("a folder");
        fs::create_dir_all(self.memory.path().join(name)).expect("a folder");
    }

    /// The library's configuration of a node.
    pub fn config(&self, name: &str, role: Role) -> Config {
        let mut config = Config::new(name, Key::Cluster(self.key.clone()));
        let founders: Vec<(String, String)> =
            self.founders.iter().map(|name| (name.clone(), self.udp(name))).collect();
        config.members = peers(founders.iter().map(|(name, address)| (name.as_str(), address.as_str())));
        config.role = role;
        config.cluster = Some(self.id);
        config.lease = self.lease;
        config.longest_lease = self.lease;
        if role.grants() {
            config.listen = vec![self.homes[name].udp];
            config.store = Some(self.path(&format!("{name}/store")));
        }
        config
    }

    fn members_table(&self) -> String {
        let member = |name: &String| {
            format!("[[cluster.members]]\nname = \"{name}\"\naddress = \"{}\"\n", self.udp(name))
        };
        self.founders.iter().map(member).collect()
    }

    /// Writes the file of a daemon; `extra` goes into `[daemon]`.
    pub fn write_file(&self, name: &str, extra: &str) {
        let Home { udp, http } = self.homes[name];
        let (key, id, lease) = (self.key.reveal(), self.id, self.lease.as_millis());
        let (members, memory) = (self.members_table(), self.memory.path().join(name));
        let memory = memory.display();
        let text = format!(
            "name = \"{name}\"\nlisten = \"{udp}\"\nstore = \"store\"\nmemory = \"{memory}\"\ntrace = \"trace\"\nkey = \"{key}\"\n\
             cluster_id = \"{id}\"\n[daemon]\nhttp = \"{http}\"\ntokens_file = \"../tokens\"\n{extra}\n[lease]\nlength = \"{lease}ms\"\n\
             [cluster]\nlongest_lease = \"{lease}ms\"\n{members}"
        );
        fs::write(self.path(&format!("{name}/tenure.toml")), text).expect("it is written");
    }

    fn write_client(&self) {
        let endpoints: Vec<String> =
            self.founders.iter().map(|name| format!("\"http://{}\"", self.homes[name].http)).collect();
        let (key, id, members) = (self.key.reveal(), self.id, self.members_table());
        let text = format!(
            "name = \"client\"\nrole = \"candidate\"\nkey = \"{key}\"\ncluster_id = \"{id}\"\n\
             [client]\nendpoints = [{}]\ntoken_file = \"token\"\n{members}",
            endpoints.join(", ")
        );
        fs::write(self.path("client.toml"), text).expect("it is written");
        for (name, text) in [("token", TOKEN), ("tokens", TOKEN_LINE)] {
            fs::write(self.path(name), text).expect("it is written");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(self.path(name), mode).expect("it is ours");
        }
    }

    /// A path in the folder of the cluster.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where a node is reached.
    pub fn udp(&self, name: &str) -> String {
        self.homes[name].udp.to_string()
    }

    /// Where its daemon is asked.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}", self.homes[name].http)
    }

    /// The log of a daemon so far.
    pub fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}/log"))).unwrap_or_default()
    }

    /// Starts a daemon that has a store.
    pub fn start(&mut self, name: &str) {
        self.launch(name, &[]);
    }

    /// Starts a node that is no member yet, with a new store. A name may be given a place for it
    /// before.
    pub fn join(&mut self, name: &str) {
        if !self.homes.contains_key(name) {
            self.settle(name);
        }
        self.write_file(name, "");
        self.launch(name, &["--join"]);
    }

    fn launch(&mut self, name: &str, flags: &[&str]) {
        let log = File::options().append(true).create(true).open(self.path(&format!("{name}/log")));
        let child = self
            .binary
            .command()
            .args(["node", "-c"])
            .arg(self.path(&format!("{name}/tenure.toml")))
            .args(["--parent-pid", &std::process::id().to_string()])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log"))
            .spawn()
            .expect("the daemon starts");
        self.running.insert(name.to_owned(), child);
    }

    /// Ends a daemon by a signal, and waits until it has ended.
    pub fn end(&mut self, name: &str, signal: Signal) {
        let mut child = self.running.remove(name).expect("it runs");
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).expect("it is there");
        child.wait().expect("it ends");
    }

    /// Forgets what a daemon that has ended remembers of its grants, as a reboot does.
    pub fn forget(&self, name: &str) {
        let folder = self.memory.path().join(name);
        fs::remove_dir_all(&folder).expect("it is there");
        fs::create_dir_all(&folder).expect("a folder");
    }

    /// Whether a daemon says that it is ready.
    pub fn is_ready(&self, name: &str) -> bool {
        let ask = || {
            let mut stream = TcpStream::connect(self.homes[name].http).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
            stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok()?;
            Some(answer.starts_with("HTTP/1.1 200"))
        };
        ask().unwrap_or(false)
    }

    /// Waits until a daemon says that it is ready.
    pub fn await_ready(&self, name: &str) {
        until(&format!("{name} to be ready"), || self.is_ready(name));
    }

    /// Waits until a daemon answers over HTTP at all.
    pub fn await_http(&self, name: &str) {
        until(&format!("{name} to listen"), || TcpStream::connect(self.homes[name].http).is_ok());
    }

    /// Runs `tenure`, by the clients' file.
    pub fn tenure(&self, words: &[&str]) -> Output {
        self.binary
            .command()
            .args(words)
            .arg("-c")
            .arg(self.path("client.toml"))
            .stdin(Stdio::null())
            .output()
            .expect("it runs")
    }

    /// Runs `tenure`, which must succeed, and reads its JSON.
    pub fn json(&self, words: &[&str]) -> serde_json::Value {
        let output = self.tenure(&[words, &["-o", "json"]].concat());
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("it is JSON")
    }

    /// Runs `tenure`, which must fail with this code, and returns the line that it says.
    pub fn refused(&self, words: &[&str], code: i32) -> String {
        let output = self.tenure(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "one line: {said}");
        said
    }

    /// Waits until a member knows of an epoch: who orders a change by an older one is told of a
    /// conflict.
    pub fn await_epoch(&self, name: &str, epoch: u64) {
        self.await_ready(name);
        let list = || self.json(&["members", "list", "--endpoint", &self.url(name)]);
        until(&format!("{name} to know of epoch {epoch}"), || {
            list()["epoch"].as_u64().is_some_and(|known| known >= epoch)
        });
    }

    /// The members' names, as one of them sees them.
    pub fn members(&self, asked: &str) -> Vec<String> {
        let list = self.json(&["members", "list", "--endpoint", &self.url(asked)]);
        let mut names: Vec<String> = list["members"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|member| member["name"].as_str().expect("a name").to_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for ChangingCluster {
    fn drop(&mut self) {
        for (name, mut child) in std::mem::take(&mut self.running) {
            let _ = child.kill();
            let _ = child.wait();
            if std::thread::panicking() {
                let log = self.log(&name);
                let tail: Vec<&str> = log.lines().rev().take(12).collect();
                eprintln!("--- {name}\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
            }
        }
    }
}
