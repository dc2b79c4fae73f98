//! Three grantors and three runners on hosts of their own, or three etcds and three `etcdctl lock`;
//! and what can happen to them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tenure_testkit::beats::{Beat, Beats};
use tenure_testkit::namespaces::{Net, address};

use crate::now;

/// How many grantors, and how many runners.
pub(crate) const SIZE: u8 = 3;

/// δ, grace and margin: half of a lease has room for the two and three tries of 30 ms.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
const TIMES: [&str; 3] = ["--lease=1s", "--grace=200ms", "--kill-margin=200ms"];

/// A child that has not beaten for this long does not work now.
const QUIET: u64 = 30_000_000;

/// Longer than anything here may take.
const LIMIT: Duration = Duration::from_secs(40);

/// Whose runners are tortured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Tenure,
    Etcd,
}

/// How a child behaves; read by it when it starts.
pub(crate) const MODES: [&str; 3] = ["plain", "stubborn", "forking"];

/// The command of the runners: a shell that makes the child what the mode says, and becomes it.
const CHILD: &str = r#"
case $(cat mode) in
stubborn) trap '' TERM ;;
forking) trap '' TERM; "$1" forked "$2" & ("$1" forked "$2" &) ; setsid "$1" forked "$2" & ;;
esac
exec "$1" child "$2"
"#;

pub(crate) struct Stage {
    pub(crate) whose: Whose,
    pub(crate) net: Net,
    pub(crate) beats: Beats,
    /// The present action, for the message of a failure.
    pub(crate) doing: &'static str,
    folder: PathBuf,
    nodes: Vec<Option<Child>>,
    runners: Vec<Option<Child>>,
}

impl Stage {
    pub(crate) fn set(whose: Whose, net: Net, folder: &Path) -> Self {
        let beats = Beats::create(&folder.join("beats")).expect("shared memory");
        let none = || (0..SIZE).map(|_| None).collect();
        let mut stage = Self {
            whose,
            net,
            beats,
            doing: "the start",
            folder: folder.to_owned(),
            nodes: none(),
            runners: none(),
        };
        stage.mode("plain");
        fs::write(folder.join("child.sh"), CHILD).expect("it is written");
        if whose == Whose::Tenure {
            stage.found();
        }
        (0..SIZE).for_each(|node| stage.start_node(node));
        stage.wait("the cluster", |stage| stage.is_up().then_some(()));
        (0..SIZE).for_each(|runner| stage.start_runner(runner));
        stage
    }

    fn found(&self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(["init", "--drift-ppm", "1000", "--dir", "cluster"]).current_dir(&self.folder);
        for node in 0..SIZE {
            command.arg("--member").arg(format!("n{node}={}:7400", address(node + 1)));
        }
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let client = self.folder.join("cluster/tenure.toml");
        let text = fs::read_to_string(&client).expect("init wrote it");
        fs::write(&client, text + "[lease]\nretry = \"30ms\"\n").expect("it is written");
    }

    pub(crate) fn mode(&self, mode: &str) {
        fs::write(self.folder.join("mode"), mode).expect("it is written");
    }

    pub(crate) fn start_node(&mut self, node: u8) {
        let mut command = match self.whose {
            Whose::Tenure => {
                let mut command = self.net.command(node + 1, env!("CARGO_BIN_EXE_tenure"));
                command.args(["node", "-c"]).arg(format!("cluster/n{node}/tenure.toml"));
                command
            }
            Whose::Etcd => self.etcd(node),
        };
        self.nodes[usize::from(node)] = Some(self.spawn(&mut command, &format!("node{node}.log")));
    }

    fn etcd(&self, node: u8) -> Command {
        let own = address(node + 1);
        let cluster: Vec<String> =
            (0..SIZE).map(|node| format!("n{node}=http://{}:2380", address(node + 1))).collect();
        let mut command = self.net.command(node + 1, "etcd");
        command.args(["--name", &format!("n{node}"), "--data-dir", &format!("etcd{node}")]);
        command.args([
            "--listen-client-urls",
            "http://0.0.0.0:2379",
            "--advertise-client-urls",
            &format!("http://{own}:2379"),
        ]);
        command.args([
            "--listen-peer-urls",
            "http://0.0.0.0:2380",
            "--initial-advertise-peer-urls",
            &format!("http://{own}:2380"),
        ]);
        command.args(["--initial-cluster", &cluster.join(","), "--log-level", "error"]);
        command
    }

    fn is_up(&self) -> bool {
        match self.whose {
            Whose::Tenure => true, // Runners wait by themselves.
            Whose::Etcd => {
                let mut command = self.net.command(SIZE + 1, "etcdctl");
                command.args(["endpoint", "health", &self.endpoints()]).env("ETCDCTL_API", "3");
                command.output().is_ok_and(|output| output.status.success())
            }
        }
    }

    fn endpoints(&self) -> String {
        let all: Vec<String> = (0..SIZE).map(|node| format!("{}:2379", address(node + 1))).collect();
        format!("--endpoints={}", all.join(","))
    }

    pub(crate) fn start_runner(&mut self, runner: u8) {
        let host = SIZE + 1 + runner;
        let mut command = match self.whose {
            Whose::Tenure => {
                let mut command = self.net.command(host, env!("CARGO_BIN_EXE_tenure"));
                command.args(["run", "-c", "cluster/tenure.toml", "-g", "torture"]).args(TIMES);
                if runner > 0 {
                    command.arg("--no-cgroup"); // One with, two without.
                }
                command.arg("--");
                command
            }
            Whose::Etcd => {
                let mut command = self.net.command(host, "etcdctl");
                command.arg(self.endpoints()).args(["lock", "--ttl=1", "torture"]).env("ETCDCTL_API", "3");
                command
            }
        };
        let own = std::env::current_exe().expect("this program");
        command.args(["sh", "child.sh"]).arg(own).arg(runner.to_string());
        self.runners[usize::from(runner)] = Some(self.spawn(&mut command, &format!("runner{runner}.log")));
    }

    fn spawn(&self, command: &mut Command, log: &str) -> Child {
        let log =
            fs::OpenOptions::new().create(true).append(true).open(self.folder.join(log)).expect("a log");
        command.current_dir(&self.folder).stdin(Stdio::null()).process_group(0);
        command.stdout(log.try_clone().expect("a file")).stderr(log).spawn().expect("it starts")
    }

    /// The children that work now, longest first.
    pub(crate) fn working(&self) -> Vec<Beat> {
        let now = now();
        let mut all = self.beats.all();
        all.retain(|beat| now.saturating_sub(beat.last) < QUIET);
        all.sort_by_key(|beat| beat.first);
        all
    }

    /// Waits until somebody works whose leadership began after `since`, and has done so for a
    /// while.
    pub(crate) fn leader(&mut self, since: u64) -> Beat {
        self.wait("a leader that works", |stage| {
            let newest =
                stage.working().into_iter().rev().find(|beat| beat.main == 1 && beat.first > since)?;
            (newest.last.saturating_sub(newest.first) > QUIET).then_some(newest)
        })
    }

    pub(crate) fn wait<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = now() + u64::try_from(LIMIT.as_nanos()).expect("it is short");
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(now() < end, "{}: {what}: not within {LIMIT:?}\n{}", self.doing, self.logs());
            self.restart_the_dead();
            sleep(Duration::from_millis(3));
        }
    }

    /// The last lines of everybody's log.
    fn logs(&self) -> String {
        let logs = (0..SIZE).flat_map(|place| [format!("node{place}.log"), format!("runner{place}.log")]);
        let last = |name: String| {
            let text = fs::read_to_string(self.folder.join(&name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(5).collect();
            format!("{name}: {}\n", lines.into_iter().rev().collect::<Vec<_>>().join("\n  "))
        };
        logs.map(last).collect()
    }

    fn restart_the_dead(&mut self) {
        for runner in 0..SIZE {
            let ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
            if self.runners[usize::from(runner)].as_mut().is_some_and(ended) {
                self.start_runner(runner);
            }
        }
    }

    pub(crate) fn runner(&self, runner: u64) -> Pid {
        let child = self.runners[usize::try_from(runner).expect("a place")].as_ref().expect("it runs");
        pid(u64::from(child.id()))
    }

    pub(crate) fn sentinel(&self, runner: u64) -> Option<Pid> {
        let runner = self.runner(runner).as_raw_nonzero();
        let text = fs::read_to_string(format!("/proc/{runner}/task/{runner}/children")).ok()?;
        text.split_whitespace().next()?.parse().ok().and_then(Pid::from_raw)
    }

    pub(crate) fn kill_node(&mut self, node: u8) {
        if let Some(mut child) = self.nodes[usize::from(node)].take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Ends what a round has left alive that nobody leads for any more, the stopped too. Only
    /// `etcdctl` leaves anybody, and the one round that the documents name.
    pub(crate) fn sweep(&self, newest: &Beat) {
        let own = std::env::current_exe().ok();
        for beat in self.beats.all() {
            let other = (beat.owner, beat.term) != (newest.owner, newest.term);
            // The number may be another's by now, but hardly one of this program's.
            if other && fs::read_link(format!("/proc/{}/exe", beat.pid)).ok() == own {
                send(pid(beat.pid), Signal::KILL);
            }
        }
    }

    /// Ends everything. Children that are stopped, too.
    pub(crate) fn end(&mut self) {
        for child in self.runners.iter_mut().chain(&mut self.nodes).filter_map(Option::take) {
            let group = pid(u64::from(child.id()));
            let _ = kill_process_group(group, Signal::CONT);
            let _ = kill_process_group(group, Signal::KILL);
            let mut child = child;
            let _ = child.wait();
        }
        sleep(LEASE); // Sentinels still have to end their children.
        for beat in self.working() {
            send(pid(beat.pid), Signal::KILL);
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.end();
    }
}

pub(crate) fn pid(number: u64) -> Pid {
    i32::try_from(number).ok().and_then(Pid::from_raw).expect("the number of a process")
}

pub(crate) fn send(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal); // It may have ended.
}
