//! The errors of a store, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::name::{ClusterId, NodeName};

/// The reason why a store was refused, or stopped. All that was confirmed before stays on the disk.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no store. The program does not guess whether this is a first start or a lost disk.
    #[error(
        "there is no store in {}: if this cluster is being founded, make it with `Node::found` or \
         `tenure init`; if this is a new member, with `Node::join`. A member that lost \
         its disk must not come back under its name: give the new one another name and run \
         `tenure members replace OLD NEW`",
        dir.display()
    )]
    Missing {
        /// Where one was looked for.
        dir: PathBuf,
    },
    /// There is a store already; making another would forget its promises.
    #[error(
        "there is a store in {} already: start the node with it, without founding or joining once more, or choose another folder",
        dir.display()
    )]
    AlreadyThere {
        /// Where.
        dir: PathBuf,
    },
    /// Another process uses it.
    #[error(
        "the store in {} is in use: another process runs this node; stop it first, or give this node a folder of \
         its own",
        dir.display()
    )]
    InUse {
        /// Where.
        dir: PathBuf,
    },
    /// A process with a copy of it runs on this host.
    #[error(
        "{} is in use: a process with a copy of this store runs on this host; a store is never copied: stop one of the \
         two, and bring it back with `tenure members replace`",
        memory.display()
    )]
    Twin {
        /// The memory file that the other has locked.
        memory: PathBuf,
    },
    /// It belongs to another cluster.
    #[error(
        "the store in {} belongs to cluster {found}, not to {wanted}: point this node to the folder of its own \
         cluster, or to an empty one and make a store there with `Node::join`",
        dir.display()
    )]
    OtherCluster {
        /// Where.
        dir: PathBuf,
        /// Whose it is.
        found: ClusterId,
        /// Whose it should be.
        wanted: ClusterId,
    },
    /// It belongs to another node.
    #[error(
        "the store in {} belongs to node '{found}', not to '{wanted}': correct the node's name or its folder; a \
         store cannot be renamed",
        dir.display()
    )]
    OtherNode {
        /// Where.
        dir: PathBuf,
        /// Whose it is.
        found: NodeName,
        /// Whose it should be.
        wanted: NodeName,
    },
    /// A later version wrote it.
    #[error(
        "{} has format {found}, and this version knows formats up to {known}: run the version that wrote it, or a \
         later one",
        file.display()
    )]
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// Its format.
        found: u64,
        /// The newest that is understood here.
        known: u64,
    },
    /// It is damaged so far that a promise may be lost.
    #[error(
        "{} is damaged ({what}): promises may be lost, so this node must not come back under its name. Keep the \
         file, make a new member of another name with `Node::join`, and run \
         `tenure members replace OLD NEW`",
        file.display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// How it shows.
        what: &'static str,
    },
    /// It is older than what this node did in this very boot: somebody put an old copy back.
    #[error(
        "the store is of life {store}, but this node has lived up to {memory} since this machine was started: an \
         old copy was put back, and promises are lost. Put the newest back, or replace this member by one with \
         another name (`tenure members replace OLD NEW`)"
    )]
    WentBack {
        /// The life that the store knows of.
        store: u128,
        /// The life that the memory knows of.
        memory: u128,
    },
    /// It is not as it was reported for a repair of terms.
    #[error(
        "the store in {} is not as in the report for this plan: the node has run since, or the plan is \
         another cluster's. Stop all members, make new reports and a new plan",
        dir.display()
    )]
    Changed {
        /// Where.
        dir: PathBuf,
    },
    /// The members named do not fit the quorums, or this node is not among them.
    #[error("cannot found: {what}")]
    Founding {
        /// The contradiction.
        what: String,
    },
    /// The record could not be read back, so it was not written.
    #[error(
        "{} cannot hold what it was given: an address or a list of quorums is too long, or is not one; correct it, \
         then start the node again",
        file.display()
    )]
    Unfit {
        /// The file.
        file: PathBuf,
    },
    /// The disk refused.
    #[error("cannot {what} {}: {source}; {}", path.display(), advice(source))]
    Io {
        /// The operation.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl StoreError {
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { what, path, source }
    }
}

/// The advice for an error of the disk.
pub(crate) fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "make room there, then start the node again"
        }
        io::ErrorKind::ReadOnlyFilesystem => "mount it writable, then start the node again",
        io::ErrorKind::PermissionDenied => "give the node's user the right to read and write there",
        _ => "look after the disk, then start the node again; nothing was confirmed that is not on it",
    }
}
