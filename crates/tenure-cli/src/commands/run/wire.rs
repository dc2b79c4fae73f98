//! The messages between runner and sentinel: a line of JSON each, over a pair of sockets that
//! nobody else has.
//!
//! Neither ever waits for the other: who is stopped must not hold up who is not. The first line of
//! the runner carries two files: the board with the end of the lease, and the standard input that
//! the command will have.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The jobs that the sentinel can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Job {
    /// The command itself.
    Work,
    /// `--on-elected`.
    Elected,
    /// `--health`.
    Health,
    /// `--on-lost`: the only one that needs no lease.
    Lost,
}

/// From the runner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// First of all.
    Hello {
        /// From TERM to KILL, in nanoseconds.
        grace: u64,
        /// From KILL to the end of the lease.
        margin: u64,
        /// The folder to remove when all is over and the runner cannot.
        scratch: PathBuf,
        /// Whether to make a cgroup.
        cgroup: bool,
    },
    /// Run this.
    Start {
        /// The job.
        job: Job,
        /// For the shell; `None` for the command that the sentinel was started with.
        script: Option<String>,
        /// The variables to add to the environment.
        environment: Vec<(String, String)>,
        /// How long it may take, in nanoseconds.
        limit: Option<u64>,
    },
    /// Send this to the command's process group.
    Signal(i32),
    /// End everything: TERM, and KILL after a while, or when the lease demands it.
    Stop {
        /// How long after TERM, in nanoseconds.
        within: u64,
        /// The command has been told by a signal of its own, and gets no TERM beside it.
        told: bool,
    },
    /// Are you awake?
    Ping,
    /// There is nothing more to do.
    Quit,
}

/// Why everything was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Why {
    /// The command ended.
    Exit,
    /// The lease was not renewed in time.
    Lease,
    /// The clocks of the machine were disturbed, by a suspend for example: no lease is worth
    /// anything then.
    Disturbed,
    /// The runner asked for it.
    Asked,
    /// The runner is gone.
    Orphaned,
}

/// How a hook has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum How {
    /// By itself, or by another's signal: its exit code, 128+N for a signal.
    Code(u8),
    /// It took longer than it may.
    TimedOut,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "failed with exit code {code}"),
            Self::TimedOut => f.write_str("took too long and was killed"),
        }
    }
}

/// From the sentinel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It watches.
    Ready {
        /// Where the command will be.
        cgroup: Option<PathBuf>,
    },
    /// The answer to a ping.
    Awake,
    /// It runs.
    Started {
        /// What.
        job: Job,
        /// Its number, and that of its process group.
        pid: i32,
    },
    /// It does not run, and why.
    Refused {
        /// What.
        job: Job,
        /// In words.
        why: String,
    },
    /// Something other than the command has ended.
    Ended {
        /// What.
        job: Job,
        /// How.
        how: How,
    },
    /// TERM was sent.
    Terminating(Why),
    /// KILL was sent.
    Killing,
    /// Everything is dead: the command, and whatever descended from it.
    Over {
        /// How the command ended, if it ran.
        code: Option<u8>,
        /// Why.
        why: Why,
    },
}

/// Says something without waiting.
pub(crate) fn say(socket: BorrowedFd<'_>, what: &impl Serialize) -> io::Result<()> {
    say_with(socket, what, &[])
}

/// Says something and hands over files.
pub(crate) fn say_with(
    socket: BorrowedFd<'_>,
    what: &impl Serialize,
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut extra = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !extra.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::other("too many files at once"));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match sendmsg(socket, &[IoSlice::new(&line)], &mut extra, flags)? {
        sent if sent == line.len() => Ok(()),
        _ => Err(io::Error::other("the other side does not listen")),
    }
}

/// Lines that come in, and files with them.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// Files that came.
    pub(crate) files: Vec<OwnedFd>,
    /// Nothing will come any more.
    pub(crate) closed: bool,
}

impl Inbox {
    /// Takes in what is there, without waiting.
    pub(crate) fn fill(&mut self, socket: impl AsFd) {
        let mut part = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        loop {
            let mut extra = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            match recvmsg(&socket, &mut [IoSliceMut::new(&mut part)], &mut extra, flags) {
                Ok(message) if message.bytes == 0 => return self.closed = true,
                Ok(message) => {
                    self.bytes.extend_from_slice(&part[..message.bytes]);
                    for message in extra.drain() {
                        if let RecvAncillaryMessage::ScmRights(files) = message {
                            self.files.extend(files);
                        }
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => return self.closed = true,
            }
        }
    }

    /// The next whole line. One that makes no sense closes the inbox: the other side is not what it
    /// should be.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        let said = serde_json::from_slice(&line);
        self.closed |= said.is_err();
        said.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn lines_come_whole_and_in_order_and_bring_their_files() {
        let (here, there) = UnixStream::pair().unwrap();
        let (file, _) = UnixStream::pair().unwrap();
        say_with(here.as_fd(), &Order::Signal(15), &[file.as_fd()]).unwrap();
        say(here.as_fd(), &Order::Quit).unwrap();
        let mut inbox = Inbox::default();
        inbox.fill(&there);
        assert!(matches!(inbox.next(), Some(Order::Signal(15))));
        assert!(matches!(inbox.next(), Some(Order::Quit)));
        assert_eq!((inbox.next::<Order>().is_none(), inbox.files.len(), inbox.closed), (true, 1, false));
        drop(here);
        inbox.fill(&there);
        assert!(inbox.closed);
    }
}
