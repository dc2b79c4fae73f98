//! The runner's end of its sentinel: how it is started, spoken to, and replaced when it dies.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::Interest;

use super::board::Board;
use super::family;
use super::timing::{Timing, nanos};
use super::wire::{Inbox, Order, Report, say, say_with};
use crate::settings::secret_variables;

/// How long a sentinel may take to start.
const STARTING: Duration = Duration::from_secs(10);

/// The facts that a sentinel must know from the start.
#[derive(Clone, Debug)]
pub(crate) struct Brief {
    /// The command that it will run.
    pub(crate) command: Vec<OsString>,
    /// How it counts.
    pub(crate) timing: Timing,
    /// The folder that it removes when the runner cannot.
    pub(crate) scratch: PathBuf,
    /// Whether it may make a cgroup.
    pub(crate) cgroup: bool,
}

/// A sentinel that was started, before there is a runtime.
#[derive(Debug)]
pub(crate) struct Posted {
    socket: UnixStream,
    board: Board,
}

impl Posted {
    /// Starts one. It is our only child, and everything else is its.
    pub(crate) fn start(brief: &Brief) -> io::Result<Self> {
        let (here, there) = UnixStream::pair()?;
        let board = Board::new()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("tenure").args(["sentinel", "--"]).args(&brief.command);
        command.stdin(Stdio::from(std::os::fd::OwnedFd::from(there)));
        // The command and the hooks inherit what the sentinel has: no secret may be there.
        for name in secret_variables() {
            command.env_remove(name);
        }
        drop(command.spawn()?); // Reaped by `family::reap`, with all the others.
        let hello = Order::Hello {
            grace: nanos(brief.timing.grace),
            margin: nanos(brief.timing.margin),
            scratch: brief.scratch.clone(),
            cgroup: brief.cgroup,
        };
        let none = File::open("/dev/null")?;
        let input = rustix::stdio::stdin();
        let closed = rustix::io::fcntl_getfd(input) == Err(Errno::BADF);
        let input = if closed { none.as_fd() } else { input };
        say_with(here.as_fd(), &hello, &[input, board.as_fd()])?;
        Ok(Self { socket: here, board })
    }
}

/// A sentinel that is listened to.
#[derive(Debug)]
pub(crate) struct Post {
    socket: tokio::net::UnixStream,
    inbox: Inbox,
    /// Where E is published.
    pub(crate) board: Board,
    /// Where the command is.
    pub(crate) cgroup: Option<PathBuf>,
}

impl Post {
    /// Within a runtime: waits until it watches.
    pub(crate) async fn listen(posted: Posted) -> io::Result<Self> {
        posted.socket.set_nonblocking(true)?;
        let socket = tokio::net::UnixStream::from_std(posted.socket)?;
        let mut post = Self { socket, inbox: Inbox::default(), board: posted.board, cgroup: None };
        match tokio::time::timeout(STARTING, post.report()).await {
            Ok(Some(Report::Ready { cgroup })) => post.cgroup = cgroup,
            _ => return Err(io::Error::other("it does not answer")),
        }
        Ok(post)
    }

    /// Orders something. Whether it was heard shows in what is reported.
    pub(crate) fn order(&self, order: &Order) {
        let _ = say(self.socket.as_fd(), order); // A dead one is noticed by `report`.
    }

    /// The next thing that is reported; `None` if the sentinel is gone. Nothing is lost if this
    /// future is dropped.
    pub(crate) async fn report(&mut self) -> Option<Report> {
        loop {
            if let Some(report) = self.inbox.next() {
                return Some(report);
            }
            if self.inbox.closed {
                return None;
            }
            if self.socket.readable().await.is_err() {
                return None;
            }
            let (socket, inbox) = (&self.socket, &mut self.inbox);
            let _ = socket.try_io(Interest::READABLE, || {
                inbox.fill(socket);
                Err::<(), _>(io::ErrorKind::WouldBlock.into()) // All is read: wait for more.
            });
        }
    }

    /// A report that was not read yet; for a runner that comes back from a pause.
    pub(crate) fn pending(&mut self) -> Option<Report> {
        self.inbox.fill(&self.socket);
        self.inbox.next()
    }

    /// Removes the cgroup of a sentinel that could not do so itself.
    pub(crate) fn tidy(&self) {
        if let Some(cgroup) = &self.cgroup {
            let _ = std::fs::remove_dir(cgroup); // Mostly it is gone; the kernel refuses while somebody is in it.
        }
    }

    /// Whether it is gone, as far as is known.
    pub(crate) fn is_gone(&mut self) -> bool {
        family::reap(|_, _| {}) || self.inbox.closed
    }
}
