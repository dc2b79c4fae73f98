//! The errors of a file fence, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use super::text::NAME_LONGEST;
use crate::fence::Rule;

/// The reason why a file fence cannot be used. Nothing was admitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system refused.
    #[error("cannot {doing} {}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// Its answer.
        #[source]
        error: io::Error,
    },
    /// There is no such file. It was never made, or it was lost with all that it knew.
    #[error(
        "there is no fence {}: if its resource is new, create it; if the file was lost, bring it back, or make sure \
         first that no old leader can still write",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A new fence was asked for, but the file is there.
    #[error("{} exists already: open it instead of creating it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another process has this fence open, or this one has it open a second time.
    #[error("the fence {} is in use: end the other user first, or ask it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else. It was not touched.
    #[error("{} is not a fence: is the path right?", path.display())]
    NotAFence {
        /// The file.
        path: PathBuf,
    },
    /// The file is a fence of a version that this program does not know.
    #[error("the fence {} has format {found:?}, which this program does not know: use a newer one", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: String,
    },
    /// The file is damaged.
    #[error(
        "the fence {} is damaged: {why}. What it knew is lost: make sure that no old leader can still write, then remove \
         the file and create it anew",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        why: &'static str,
    },
    /// The fence belongs to another resource.
    #[error("the fence {} is that of resource {found:?}, not of {wanted:?}: is the path right?", path.display())]
    OtherResource {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// The fence was made with the other rule.
    #[error("the fence {} was made with Rule::{found:?}: open it with that one", path.display())]
    OtherRule {
        /// The file.
        path: PathBuf,
        /// The rule it was made with.
        found: Rule,
    },
    /// A name that cannot be stored in one line.
    #[error("{name:?} cannot be the name of a {of}: 1 to {NAME_LONGEST} bytes without control characters")]
    Name {
        /// Whose name: `resource` or `writer`.
        of: &'static str,
        /// The name.
        name: String,
    },
    /// An earlier fsync failed: what is on the disk is not known.
    #[error("the fence {} failed to reach its disk: look after the disk, then open the fence anew", path.display())]
    Poisoned {
        /// The file.
        path: PathBuf,
    },
}

impl FileError {
    pub(super) fn io(path: &Path, doing: &'static str, error: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), doing, error }
    }

    pub(super) fn opening(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing { path: path.to_path_buf() },
            _ => Self::io(path, "open", error),
        }
    }
}
