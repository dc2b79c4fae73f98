//! Runners as processes, against a cluster in this process.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure::{AskError, Fulfilled, Node, OperatorRequest};

use crate::binary::Binary;
use crate::cluster::Cluster;
use crate::waiting::{LIMIT, now};

/// A cluster that runs, and the file by which clients find it.
pub struct Stage {
    binary: Binary,
    /// The cluster.
    pub cluster: Cluster,
    /// Its members, which run in this process.
    pub nodes: Vec<Node>,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    /// Three members.
    pub fn set(binary: Binary) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let cluster = Cluster::found_numbered(3, Duration::from_secs(2));
        let nodes = runtime.block_on(cluster.start());
        let stage = Self { binary, cluster, nodes, runtime };
        stage.write_file(&stage.cluster.key.reveal());
        stage
    }

    /// The clients' file, with this key in it.
    pub fn write_file(&self, key: &str) {
        let mut text = format!("name = \"client\"\nrole = \"candidate\"\nkey = \"{key}\"\n");
        text += &format!("cluster_id = \"{}\"\n", self.cluster.id);
        for (name, address) in self.cluster.names.iter().zip(&self.cluster.addresses) {
            text += &format!("[[cluster.members]]\nname = \"{name}\"\naddress = \"{address}\"\n");
        }
        fs::write(self.path("client.toml"), text).expect("it is written");
    }

    /// A path in the folder of the cluster.
    pub fn path(&self, name: &str) -> PathBuf {
        self.cluster.dir.path().join(name)
    }

    /// A file's text; empty if there is none.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Asks the leader of `jobs` for something, as an operator does.
    pub fn ask(&self, request: OperatorRequest) -> Result<Fulfilled, AskError> {
        self.runtime.block_on(self.nodes[0].ask_within("jobs", request, Duration::from_secs(20)))
    }

    /// How often runners have renewed their leases, as far as they have told.
    pub fn renewals(&self) -> u64 {
        let told = |node: &Node| self.runtime.block_on(node.status()).map_or(0, |s| s.leaders.renewals);
        self.nodes.iter().map(told).sum()
    }

    /// Stops all members: no lease can be renewed.
    pub fn stop_cluster(&mut self) {
        for node in self.nodes.drain(..) {
            self.runtime.block_on(node.shutdown());
        }
    }

    /// Starts `tenure run` with these words, in the folder of the test.
    pub fn run(&self, words: &[&str]) -> Runner {
        self.run_in(&[], words)
    }

    /// The same, with more in its environment.
    pub fn run_in(&self, environment: &[(&str, &str)], words: &[&str]) -> Runner {
        // Whatever signals this process was started to ignore, as `nohup` does: a command inherits
        // that.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP,USR1,TERM,INT", self.binary.0]);
        command.arg("run").arg("-c").arg(self.path("client.toml")).args(words);
        command.current_dir(self.cluster.dir.path()).env_remove("TENURE_CONFIG").stdin(Stdio::null());
        command.envs(environment.iter().copied());
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("log")).expect("a log");
        command.stdout(log.try_clone().expect("a file")).stderr(log);
        Runner { child: command.spawn().expect("it starts"), log: self.path("log") }
    }

    /// The same for a group `jobs` and a script for the shell.
    pub fn jobs(&self, words: &[&str], script: &str) -> Runner {
        self.run(&[&["-g", "jobs"], words, &["--", "sh", "-c", script]].concat())
    }

    /// Waits until a file has a number in it: a process's.
    pub fn pid(&self, name: &str) -> i32 {
        self.wait(&format!("a number in {name}"), || self.read(name).trim().parse().ok())
    }

    /// Waits until processes have ended; none may be seen alive at the end of a lease or later. A
    /// look counts from when it began: one that is late accuses nobody.
    pub fn ends_before(&self, end: Duration, pids: &[i32]) {
        self.wait("the end of processes", || {
            let began = now();
            let left: Vec<i32> = pids.iter().copied().filter(|pid| is_alive(*pid)).collect();
            assert!(left.is_empty() || began < end, "{left:?} lived on after the lease");
            left.is_empty().then_some(())
        });
    }

    /// Waits for something that must come.
    pub fn wait<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        wait(what, &self.path("log"), look)
    }
}

fn wait<T>(what: &str, log: &Path, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        let said = || fs::read_to_string(log).unwrap_or_default();
        assert!(now() < end, "{what}: not within {LIMIT:?}; the log says:\n{}", said());
        sleep(Duration::from_millis(2));
    }
}

/// A runner; killed in the end, whatever happens.
pub struct Runner {
    child: Child,
    log: PathBuf,
}

impl Runner {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Waits until it has ended.
    pub fn end(&mut self) -> ExitStatus {
        let log = self.log.clone();
        wait("the end of the runner", &log, || self.child.try_wait().expect("it is ours"))
    }

    /// Waits until it has ended, by itself, and with which code.
    pub fn code(&mut self) -> i32 {
        let status = self.end();
        status.code().unwrap_or_else(|| panic!("signal {:?}", status.signal()))
    }

    /// Its sentinel.
    pub fn sentinel(&self) -> i32 {
        let children = format!("/proc/{0}/task/{0}/children", self.pid());
        let text = fs::read_to_string(children).unwrap_or_default();
        text.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("it has a child")
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Sends a signal to a process.
pub fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a number"), signal).expect("it can be sent");
}

/// Whether a process runs, or could: it is neither gone nor waits to be buried.
pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// One line to the command's socket, one line back.
pub fn ask(socket: &str, line: &str) -> serde_json::Value {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    writeln!(stream, "{line}").expect("it takes a line");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("it answers");
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{answer:?}: {error}"))
}
