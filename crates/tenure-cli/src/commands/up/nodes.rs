//! The processes of the nodes.

use std::fs::OpenOptions;
use std::io;
use std::process::{ExitStatus, Stdio};

use futures_util::future::select_all;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::cluster::{Cluster, Member};
use super::notices::Notices;
use crate::daemon::notify::NO_MEMBER;
use crate::failure::{Failure, messages};

/// The variables that nodes take from the environment of `up`. Everything else of ours is for
/// commands that ask.
const PASSED: [&str; 2] = ["TENURE_LOG", "TENURE_LOG_FORMAT"];

/// The nodes of a cluster.
#[derive(Debug)]
pub(super) struct Nodes(Vec<Node>);

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    member: Member,
    child: Child,
    pid: Option<Pid>,
    /// Where it says how it is.
    notices: Notices,
    ready: bool,
    /// It has said that it is no member: it was removed, or not added yet.
    no_member: bool,
    /// Its last status line.
    status: String,
    ended: Option<ExitStatus>,
}

/// An event of one of the nodes.
#[derive(Clone, Debug)]
pub(super) enum Note {
    /// It can do its part.
    Ready,
    /// It said how it is.
    Status,
    /// It has ended.
    Ended {
        /// Which.
        node: String,
        /// How.
        how: ExitStatus,
    },
}

impl Nodes {
    /// Starts them all. If one cannot be started, none is left.
    pub(super) fn start(cluster: &Cluster) -> Result<Self, Failure> {
        cluster.members.iter().map(Node::start).collect::<Result<Vec<_>, _>>().map(Self)
    }

    /// Waits for the next thing that happens to one of them.
    pub(super) async fn next(&mut self) -> Note {
        let waiting: Vec<_> =
            self.0.iter_mut().filter(|node| node.runs()).map(|node| Box::pin(node.next())).collect();
        if waiting.is_empty() {
            return std::future::pending().await;
        }
        select_all(waiting).await.0
    }

    /// Whether something is true of all of them.
    pub(super) fn all(&self, holds: impl Fn(&Node) -> bool) -> bool {
        self.0.iter().all(holds)
    }

    /// How many still run.
    pub(super) fn running(&self) -> usize {
        self.0.iter().filter(|node| node.runs()).count()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.0.iter()
    }

    /// One of them.
    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        self.0.iter().find(|node| node.member.name == name)
    }

    /// Why a node has ended: the last line that it wrote.
    pub(super) fn last_words(&self, name: &str, how: &ExitStatus) -> String {
        let log =
            self.get(name).and_then(|node| std::fs::read_to_string(node.log()).ok()).unwrap_or_default();
        // The last word is on one line, and lines of a file may follow it.
        let own = log.lines().rev().find_map(|line| line.strip_prefix("tenure: "));
        match own.or_else(|| log.lines().last()) {
            Some(line) => line.to_owned(),
            None => how.to_string(),
        }
    }

    /// Asks all to end.
    pub(super) fn terminate(&self) {
        self.0.iter().for_each(|node| node.signal(Signal::TERM));
    }

    /// Ends all by force.
    pub(super) fn kill(&self) {
        self.0.iter().for_each(|node| node.signal(Signal::KILL));
    }

    /// Waits until all have ended.
    pub(super) async fn ended(&mut self) {
        for node in &mut self.0 {
            if node.runs() {
                node.ended = node.child.wait().await.ok();
            }
        }
    }
}

impl Node {
    fn start(member: &Member) -> Result<Self, Failure> {
        Self::try_start(member).map_err(|error| messages::up_node_ended(&member.name, error))
    }

    fn try_start(member: &Member) -> io::Result<Self> {
        let notices = Notices::open()?;
        let log = OpenOptions::new().create(true).append(true).open(log_of(member))?;
        let mut command = Command::new(std::env::current_exe()?);
        let ours = std::env::vars_os().map(|(name, _)| name);
        for variable in ours.filter(|name| name.to_string_lossy().starts_with("TENURE_")) {
            if !PASSED.iter().any(|passed| variable == *passed) {
                command.env_remove(variable);
            }
        }
        // A group of its own: Ctrl-C is for this process alone, which then tells the nodes.
        let child = command
            .args(["node", "--parent-pid", &std::process::id().to_string(), "-c"])
            .arg(&member.file)
            .env("NOTIFY_SOCKET", &notices.address)
            .env_remove("WATCHDOG_USEC")
            .env_remove("JOURNAL_STREAM")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let member = member.clone();
        Ok(Self {
            member,
            child,
            pid,
            notices,
            ready: false,
            no_member: false,
            status: String::new(),
            ended: None,
        })
    }

    /// Which it is.
    pub(super) fn member(&self) -> &Member {
        &self.member
    }

    /// Whether it has said that it can do its part.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Whether it has said that it is no member. It will not be ready then.
    pub(super) fn is_no_member(&self) -> bool {
        self.no_member
    }

    /// Whether it has not ended yet.
    pub(super) fn runs(&self) -> bool {
        self.ended.is_none()
    }

    /// Returns the node's last status line.
    pub(super) fn status(&self) -> &str {
        &self.status
    }

    /// Where its log is.
    pub(super) fn log(&self) -> std::path::PathBuf {
        log_of(&self.member)
    }

    async fn next(&mut self) -> Note {
        let said = async {
            match self.pid {
                Some(pid) => self.notices.next(pid).await,
                None => std::future::pending().await, // It has ended before it was looked at.
            }
        };
        tokio::select! {
            biased;
            Ok(said) = said => self.hear(&said),
            Ok(how) = self.child.wait() => {
                self.ended = Some(how);
                Note::Ended { node: self.member.name.clone(), how }
            }
            else => std::future::pending().await,
        }
    }

    fn hear(&mut self, said: &str) -> Note {
        let mut note = Note::Status;
        for line in said.lines() {
            if line == "READY=1" {
                (self.ready, self.no_member) = (true, false);
                note = Note::Ready;
            } else if line == NO_MEMBER {
                (self.ready, self.no_member) = (false, true);
            } else if let Some(status) = line.strip_prefix("STATUS=") {
                status.clone_into(&mut self.status);
            }
        }
        note
    }

    /// To a process that was not waited for yet, so that its number cannot be another's.
    fn signal(&self, signal: Signal) {
        if let (Some(pid), None) = (self.pid, self.ended) {
            let _ = kill_process(pid, signal); // It may have ended by itself meanwhile.
        }
    }
}

fn log_of(member: &Member) -> std::path::PathBuf {
    member.file.with_file_name("log")
}
