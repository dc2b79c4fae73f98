//! Why a file is not a fence that can be used, and what to do about it.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::text::NAME_LONGEST;
use crate::fence::Rule;

/// Why a file fence cannot be used. Nothing was admitted.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system refused.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// Its answer.
        error: io::Error,
    },
    /// There is no such file. It was never made, or it was lost with all that it knew.
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A new fence was asked for, but the file is there.
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another process has this fence open, or this one has it open a second time.
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else. It was not touched.
    NotAFence {
        /// The file.
        path: PathBuf,
    },
    /// The file is a fence of a version that this program does not know.
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// The file is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// By what it is seen.
        why: &'static str,
    },
    /// The fence belongs to another resource.
    OtherResource {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// The fence was made with the other rule.
    OtherRule {
        /// The file.
        path: PathBuf,
        /// The rule it was made with.
        found: Rule,
    },
    /// A name that cannot be stored in one line.
    Name {
        /// Whose name: `resource` or `writer`.
        of: &'static str,
        /// The name.
        name: String,
    },
    /// An earlier fsync failed: what is on the disk is not known.
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

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, doing, error } => write!(f, "cannot {doing} {}: {error}", path.display()),
            Self::Missing { path } => write!(
                f,
                "there is no fence {}: if its resource is new, create it; if the file was lost, bring it back, or make \
                 sure first that no old leader can still write",
                path.display()
            ),
            Self::Exists { path } => {
                write!(f, "{} exists already: open it instead of creating it", path.display())
            }
            Self::InUse { path } => {
                write!(f, "the fence {} is in use: end the other user first, or ask it", path.display())
            }
            Self::NotAFence { path } => write!(f, "{} is not a fence: is the path right?", path.display()),
            Self::Version { path, found } => write!(
                f,
                "the fence {} has format {found:?}, which this program does not know: use a newer one",
                path.display()
            ),
            Self::Damaged { path, why } => write!(
                f,
                "the fence {} is damaged: {why}. What it knew is lost: make sure that no old leader can still write, \
                 then remove the file and create it anew",
                path.display()
            ),
            Self::OtherResource { path, found, wanted } => write!(
                f,
                "the fence {} is that of resource {found:?}, not of {wanted:?}: is the path right?",
                path.display()
            ),
            Self::OtherRule { path, found } => {
                let (found, open) = match found {
                    Rule::ByTerm => ("by term", "Rule::ByTerm"),
                    Rule::InOrder => ("in order", "Rule::InOrder"),
                };
                write!(f, "the fence {} was made to admit {found}: open it with {open}", path.display())
            }
            Self::Name { of, name } => write!(
                f,
                "{name:?} cannot be the name of a {of}: 1 to {NAME_LONGEST} bytes without control characters"
            ),
            Self::Poisoned { path } => write!(
                f,
                "the fence {} failed to reach its disk: look after the disk, then open the fence anew",
                path.display()
            ),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
