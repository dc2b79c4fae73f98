//! A cluster of real daemons on loopback, each a process of its own.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tenure::Clock;

use crate::cluster::{Cluster, TOKEN, TOKEN_LINE, free_addresses, name};

/// Longer than anything here may take on a machine that works at all.
pub(crate) const LIMIT: Duration = Duration::from_secs(40);

/// Founded, and started as told.
pub(crate) struct Daemons {
    pub(crate) cluster: Cluster,
    pub(crate) http: Vec<SocketAddr>,
    pub(crate) children: Vec<Option<Child>>,
}

impl Daemons {
    /// Founds a cluster; `extra` is what the `[daemon]` of every file has beside its address.
    pub(crate) fn found(count: usize, extra: &str) -> Self {
        let cluster = Cluster::found(count, Duration::from_secs(1));
        let daemons =
            Self { cluster, http: free_addresses(count), children: (0..count).map(|_| None).collect() };
        for index in 0..count {
            let own = name(index);
            let mut text = format!(
                "name = \"{own}\"\nkey = \"{}\"\nlisten = [\"{}\"]\nstore = \"{own}\"\n[lease]\nlength = \"1s\"\n",
                daemons.cluster.key.reveal(),
                daemons.cluster.addresses[index]
            );
            for (index, address) in daemons.cluster.addresses.iter().enumerate() {
                text +=
                    &format!("[[cluster.members]]\nname = \"{}\"\naddress = \"{address}\"\n", name(index));
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
    pub(crate) fn start(count: usize, extra: &str) -> Self {
        let mut daemons = Self::found(count, extra);
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
    pub(crate) fn run(&mut self, index: usize) {
        let log = fs::File::create(self.path(&format!("{}.log", name(index)))).expect("a log");
        let child = tenure()
            .args(["node", "-c"])
            .arg(self.file(index))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.children[index] = Some(child.expect("it starts"));
    }

    /// Ends one at once.
    pub(crate) fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.children[index].take() {
            child.kill().and_then(|()| child.wait()).expect("it was ours");
        }
    }

    /// A daemon's file.
    pub(crate) fn file(&self, index: usize) -> PathBuf {
        self.path(&format!("{}.toml", name(index)))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.cluster.dir.path().join(name)
    }

    /// Writes a file that only its owner can read.
    pub(crate) fn write_secret(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::write(&path, text).expect("it is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    }

    /// The addresses of all, as endpoints.
    pub(crate) fn endpoints(&self) -> String {
        self.http.iter().map(|address| format!("http://{address}")).collect::<Vec<_>>().join(",")
    }

    /// Runs a command that asks these daemons.
    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        self.asking(words).output().expect("it runs")
    }

    /// The same, not started yet.
    pub(crate) fn asking(&self, words: &[&str]) -> Command {
        let mut command = tenure();
        command.args(words).current_dir(self.cluster.dir.path()).env("TENURE_ENDPOINTS", self.endpoints());
        command.env("TENURE_TOKEN_FILE", self.path("token"));
        command
    }

    /// Waits for something that must come, and shows what the daemons logged if it does not.
    pub(crate) fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let end = now() + LIMIT;
        loop {
            if let Some(found) = look() {
                return found;
            }
            if now() > end {
                let log = |index| fs::read_to_string(self.path(&format!("{}.log", name(index))));
                let logs: Vec<String> = (0..self.http.len()).filter_map(|index| log(index).ok()).collect();
                panic!("{what}: not within {LIMIT:?}; the logs say:\n{}", logs.join("\n"));
            }
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

/// The command, in an environment that says nothing.
pub(crate) fn tenure() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TENURE_")) {
        command.env_remove(name);
    }
    command
}

/// The answer to a GET, head and body; nothing if there is none.
pub(crate) fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn now() -> Duration {
    Duration::from_nanos(Clock::boot().read().as_nanos())
}
