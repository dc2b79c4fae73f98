//! A cluster of real daemons that are asked over HTTP, each a process of its own; and the token by
//! which they let a test in.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::binary::Binary;
use crate::cluster::{Cluster, numbered};
use crate::ports::free_addresses;
use crate::waiting::{LIMIT, now};

/// A token of the role admin.
pub const TOKEN: &str =
    "tenure-token-1:0000000a:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// The line by which a daemon accepts [`TOKEN`].
pub const TOKEN_LINE: &str =
    "0000000a admin 0870ebf141434ee4cad1e0d825d8c81535633e10b67054eb7e0f391ec8c72d07 - of the tests\n";

/// How long leases are. A leader renews at half of it: one that is not run for two seconds, on a
/// machine that does much else, leads on.
const LEASE: Duration = Duration::from_secs(5);

/// Founded, and started as told.
pub struct HttpCluster {
    binary: Binary,
    /// Its members: names, key, addresses for datagrams.
    pub cluster: Cluster,
    /// Where they answer over HTTP.
    pub http: Vec<SocketAddr>,
    /// Those that run.
    pub children: Vec<Option<Child>>,
}

impl HttpCluster {
    /// Founds a cluster; `extra` is what the `[daemon]` of every file has beside its address.
    pub fn found(binary: Binary, count: usize, extra: &str) -> Self {
        let cluster = Cluster::found_numbered(count, LEASE);
        let daemons = Self {
            binary,
            cluster,
            http: free_addresses(count),
            children: (0..count).map(|_| None).collect(),
        };
        for index in 0..count {
            let own = numbered(index);
            let mut text = format!(
                "name = \"{own}\"\nkey = \"{}\"\nlisten = [\"{}\"]\nstore = \"{own}\"\n[lease]\nlength = \"{}s\"\n",
                daemons.cluster.key.reveal(),
                daemons.cluster.addresses[index],
                LEASE.as_secs()
            );
            for (index, address) in daemons.cluster.addresses.iter().enumerate() {
                text += &format!(
                    "[[cluster.members]]\nname = \"{}\"\naddress = \"{address}\"\n",
                    numbered(index)
                );
            }
            let tokens = if extra.contains("tokens_file") { "" } else { "tokens_file = \"tokens\"\n" };
            text += &format!("[daemon]\nhttp = \"{}\"\n{tokens}{extra}\n", daemons.http[index]);
            daemons.write_secret("tokens", TOKEN_LINE);
            daemons.write_secret("token", TOKEN);
            fs::write(daemons.file(index), text).expect("it is written");
        }
        daemons
    }

    /// Founds and starts all, and waits until they are ready.
    pub fn start(binary: Binary, count: usize, extra: &str) -> Self {
        let mut daemons = Self::found(binary, count, extra);
        for index in 0..count {
            daemons.run(index);
        }
        for index in 0..count {
            daemons.wait("a daemon that is ready", || {
                get(daemons.http[index], "/readyz").filter(|answer| answer.starts_with("HTTP/1.1 200"))
            });
        }
        daemons
    }

    /// Starts one.
    pub fn run(&mut self, index: usize) {
        let log = fs::File::create(self.path(&format!("{}.log", numbered(index)))).expect("a log");
        let child = self
            .binary
            .command()
            .args(["node", "-c"])
            .arg(self.file(index))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.children[index] = Some(child.expect("it starts"));
    }

    /// Ends one at once.
    pub fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.children[index].take() {
            child.kill().and_then(|()| child.wait()).expect("it was ours");
        }
    }

    /// A daemon's file.
    pub fn file(&self, index: usize) -> PathBuf {
        self.path(&format!("{}.toml", numbered(index)))
    }

    /// A path in the folder of the cluster.
    pub fn path(&self, name: &str) -> PathBuf {
        self.cluster.dir.path().join(name)
    }

    /// Writes a file that only its owner can read.
    pub fn write_secret(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::write(&path, text).expect("it is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    }

    /// The addresses of all, as endpoints.
    pub fn endpoints(&self) -> String {
        self.http.iter().map(|address| format!("http://{address}")).collect::<Vec<_>>().join(",")
    }

    /// Runs a command that asks these daemons.
    pub fn ask(&self, words: &[&str]) -> Output {
        self.asking(words).output().expect("it runs")
    }

    /// The same, not started yet.
    pub fn asking(&self, words: &[&str]) -> Command {
        let mut command = self.binary.command();
        command.args(words).current_dir(self.cluster.dir.path()).env("TENURE_ENDPOINTS", self.endpoints());
        command.env("TENURE_TOKEN_FILE", self.path("token"));
        command
    }

    /// Waits for something that must come, and shows what the daemons logged if it does not.
    pub fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let end = now() + LIMIT;
        loop {
            if let Some(found) = look() {
                return found;
            }
            if now() > end {
                let log = |index| fs::read_to_string(self.path(&format!("{}.log", numbered(index))));
                let logs: Vec<String> = (0..self.http.len()).filter_map(|index| log(index).ok()).collect();
                panic!("{what}: not within {LIMIT:?}; the logs say:\n{}", logs.join("\n"));
            }
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for HttpCluster {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

/// The answer to a GET, head and body; nothing if there is none.
pub fn get(address: SocketAddr, path: &str) -> Option<String> {
    get_within(address, path, LIMIT)
}

/// The same, where each step may take this long.
pub fn get_within(address: SocketAddr, path: &str, limit: Duration) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, limit).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
