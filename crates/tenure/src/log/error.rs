//! The errors of a log, each with what to do about it.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::store::advice;

/// The reason why a log did not open. The member has promised nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting makes no sense.
    #[error("{key}: {why}")]
    Config {
        /// Which.
        key: &'static str,
        /// The flaw, and what to write.
        why: String,
    },
    /// There is no log. The program does not guess whether this is a first start or a lost disk.
    #[error(
        "there is no log in {}: make it with `log::found` if all its members are being founded; if this member lost its disk, \
         make it with `log::relearn`, for promises that it has forgotten may count",
        folder.display()
    )]
    Missing {
        /// Where one was looked for.
        folder: PathBuf,
    },
    /// There is a log already; making another would forget its promises.
    #[error("there is a log in {} already: open it, or choose another folder", folder.display())]
    AlreadyThere {
        /// Where.
        folder: PathBuf,
    },
    /// Another process uses it.
    #[error("the log in {} is in use: stop the other process, or choose another folder", folder.display())]
    InUse {
        /// Where.
        folder: PathBuf,
    },
    /// The log belongs to another process, or has other members.
    #[error(
        "the log in {} was founded with {key} {found}, not {wanted}: correct the configuration; the members of a log are fixed",
        folder.display()
    )]
    Other {
        /// Where.
        folder: PathBuf,
        /// The setting that differs.
        key: &'static str,
        /// As it was founded.
        found: String,
        /// As it is configured.
        wanted: String,
    },
    /// A strong group has led it, and another election is to lead it now. Nothing was lost.
    #[error(
        "the log in {} was led by a strong group, in term {term} at last, and no other election can lead it any more: open it with \
         `Election::Strong` of that group, as its other members",
        folder.display()
    )]
    LedByTerms {
        /// Where.
        folder: PathBuf,
        /// The last term that it knows of.
        term: u64,
    },
    /// The file is damaged in a way that no crash explains.
    #[error(
        "{} is damaged ({what}): what this member promised may be lost; restore nothing from a backup, move the folder away and \
         make it anew with `log::relearn`",
        file.display()
    )]
    Damaged {
        /// Which file.
        file: PathBuf,
        /// The damage.
        what: &'static str,
    },
    /// The disk failed.
    #[error("cannot {what} {}: {source}; {}", path.display(), advice(source))]
    Disk {
        /// The operation.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}; change `listen`, or stop the program that has this port")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// The state machine does not understand its own snapshot.
    #[error("the state machine refuses the snapshot on the disk: {reason}")]
    State {
        /// The message.
        reason: String,
    },
    /// The system gave no thread.
    #[error("the system refuses what a log needs: {0}")]
    System(#[from] io::Error),
}

impl OpenError {
    pub(super) fn disk(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Disk { what, path, source }
    }
}

/// The reason why a log has stopped in this process. The other members go on without it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Stopped {
    /// [`Log::shutdown`](crate::log::Log::shutdown) was called, or the last handle is gone.
    #[error("the log was shut down")]
    ShutDown,
    /// The disk failed: promises of this member may not be on it.
    #[error("the disk of the log failed ({reason}): mend it, and open the log again")]
    Disk {
        /// The error of the disk.
        reason: String,
    },
    /// The state machine did not understand a snapshot of another member.
    #[error(
        "the state machine refuses a snapshot of another member ({reason}): do both run the same program?"
    )]
    State {
        /// The message.
        reason: String,
    },
    /// The state machine panicked, and its state could not be built anew.
    #[error("the state machine panicked, and its state cannot be built anew ({reason}): open the log again")]
    Panicked {
        /// Why not.
        reason: String,
    },
    /// The election no longer tells who leads.
    #[error("the election of the log has ended: {reason}")]
    Election {
        /// Why.
        reason: String,
    },
    /// The log's thread died: this is a bug.
    #[error("the log's thread has ended unexpectedly: this is a bug")]
    Crashed,
}

/// The reason why a write is not known to be in the log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProposeError {
    /// Too many bytes. Nothing was written.
    #[error("{length} bytes cannot be proposed: at most {most}")]
    TooLong {
        /// How many were given.
        length: usize,
        /// How many may be.
        most: usize,
    },
    /// The disk of this process is full. Nothing was written; reads go on, and so do other members.
    #[error("the disk of this member is full: make room, or write by another member")]
    DiskFull,
    /// Too many writes wait here already (backpressure). Nothing was written.
    #[error("too many writes wait here: try again later")]
    Overloaded,
    /// [`StateMachine::apply`](crate::log::StateMachine::apply) panicked on this write, twice from
    /// the same state. The write stays in the log and changes nothing, on every member.
    #[error(
        "the state machine panicked on the write at {index} ({message}): it was refused, and the log goes on"
    )]
    Panicked {
        /// Its place in the log.
        index: u64,
        /// The message of the panic.
        message: String,
    },
    /// The answer got lost: this process was so far behind that it was given a snapshot, in which
    /// its session is not any more.
    #[error("it is not known whether this was written: look before you write it again")]
    Unknown,
    /// The log has stopped here. The others may still carry out a write that was under way.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The reason why nothing was read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The log has stopped here.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
