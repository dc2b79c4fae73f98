//! A durable fence in a file: for a resource that is itself a file, or that has no atomic place for
//! a token.
//!
//! Such a resource cannot store the token in one step with the write. So the token comes first:
//! [`FileFence::admit`] returns when it is on the disk, and only then the write is made, while
//! nobody else can ask (`&mut self`, and a lock against other processes). Wherever the process or
//! the machine stops, a write that was made has its token stored: nothing older is admitted
//! afterwards. The other way round there is a gap: a token may be stored whose write was never
//! made. So here [`Admitted::Again`] does not say that the write was made; it says that this writer
//! may make it, once more perhaps. Writes under a file fence should be such that making them twice
//! does no harm, as replacing a file.
//!
//! # How it is stored
//!
//! ```text
//!   write FILE.new  →  lock it  →  fsync it  →  rename it to FILE  →  fsync the folder
//! ```
//!
//! * FILE is complete at every instant: the old state or the new. A bad checksum is therefore never
//!   an interrupted write but damage, and is refused; a fence that guessed at an older state would
//!   forget.
//! * The new file is locked before it has its name. A process that opens FILE finds it locked by
//!   the process that uses it.
//! * When an fsync fails nobody knows what is on the disk, and to ask again proves nothing. The
//!   fence is poisoned: it admits nothing until it is opened anew.
//! * Opening a fence stores it afresh: the state that a process left before it died may not have
//!   been durable.
//! * By term, only the first write of a term costs a disk write; the others change nothing that
//!   must be remembered.
//!
//! The folder must be on a file system whose `flock`, `rename` and `fsync` do what POSIX says: a
//! local disk does. The fence is never made by opening it: a missing file may be a lost one, and
//! only its owner knows.

mod error;
#[cfg(test)]
mod tests;
mod text;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fmt, mem};

pub use error::FileError;
use text::State;

use super::{Admitted, Fence, Newest, Refused, Rule, Token};

/// A durable fence of one resource, kept in one file. One process can have it open, once.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("tenure-doc-fence-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("prices.fence");
/// use tenure::fence::{FileFence, Rule, Term, Token};
///
/// let mut fence = FileFence::create(&path, "prices", Rule::ByTerm)?; // once; afterwards: FileFence::open
/// fence.admit(Token::new(Term(2), 1), "beta")?;                      // on the disk when it returns
/// std::fs::write(folder.join("prices"), "20")?;                      // the write itself
///
/// let late = fence.admit(Token::new(Term(1), 7), "alpha");           // alpha was paused until now
/// assert!(late.is_err());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileFence {
    path: PathBuf,
    /// Held for its lock, which ends with it.
    file: File,
    folder: File,
    state: State,
    poisoned: bool,
    /// fsync of a file or a folder. Tests let it fail.
    sync: Sync,
}

/// The state of a file fence when it was read: see [`FileFence::look`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFenceState {
    /// The resource that it guards.
    pub resource: String,
    /// The rule by which it decides.
    pub rule: Rule,
    /// The largest token that was admitted, if any was.
    pub newest: Option<Newest<String>>,
}

type Sync = Box<dyn FnMut(&File) -> io::Result<()> + Send>;

impl FileFence {
    /// Makes the fence of a new resource. It admits any token at first.
    ///
    /// Making it anew for a resource that had one forgets which leaders were admitted: an old
    /// leader may write again.
    ///
    /// `resource` is stored, so that the fence of one resource is not taken for that of another.
    ///
    /// # Errors
    /// If the file exists already, cannot be written, or if the name of the resource is malformed.
    pub fn create(path: impl AsRef<Path>, resource: &str, rule: Rule) -> Result<Self, FileError> {
        Self::create_with(path.as_ref(), resource, rule, Box::new(File::sync_all))
    }

    /// Opens the fence that was made for this resource and rule.
    ///
    /// # Errors
    /// If the file is missing, damaged, not a fence, of another resource or rule, or in use.
    pub fn open(path: impl AsRef<Path>, resource: &str, rule: Rule) -> Result<Self, FileError> {
        Self::open_with(path.as_ref(), resource, rule, Box::new(File::sync_all))
    }

    /// Reads the state of a fence without a lock and without a change: for people, not for a
    /// decision. The process that uses the fence may admit something newer at any moment.
    ///
    /// # Errors
    /// If the file is missing, damaged or not a fence.
    pub fn look(path: impl AsRef<Path>) -> Result<FileFenceState, FileError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| FileError::opening(path, error))?;
        let mut bytes = Vec::new();
        let reading = file.take(text::LONGEST + 1).read_to_end(&mut bytes);
        reading.map_err(|error| FileError::io(path, "read", error))?;
        let State { resource, fence: Fence { rule, newest } } = State::parse(&bytes, path)?;
        Ok(FileFenceState { resource, rule, newest })
    }

    /// Decides on a write; an admitted token is on the disk when the call returns.
    ///
    /// Make the write while you hold the fence, before another caller asks: otherwise an older
    /// write can follow a newer one.
    ///
    /// # Errors
    /// [`Refused::Stale`] if a newer token was admitted; [`Refused::Failed`] if the fence could not
    /// store its decision. In either case the write must not happen.
    pub fn admit(&mut self, token: Token, writer: &str) -> Result<Admitted, Refused> {
        if self.poisoned {
            return Err(FileError::Poisoned { path: self.path.clone() }.into());
        }
        text::check_name("writer", writer)?;
        let mut fence = self.state.fence.clone();
        let admitted = fence.admit(token, writer.to_owned())?;
        let before = mem::replace(&mut self.state.fence, fence);
        if admitted == Admitted::Newer
            && let Err(error) = self.store()
        {
            self.state.fence = before;
            return Err(error.into());
        }
        Ok(admitted)
    }

    /// Returns the largest token that was admitted.
    ///
    /// By term, a restart may forget a token that is larger only by its sequence number.
    pub fn newest(&self) -> Option<&Newest<String>> {
        self.state.fence.newest.as_ref()
    }

    fn create_with(path: &Path, resource: &str, rule: Rule, sync: Sync) -> Result<Self, FileError> {
        text::check_name("resource", resource)?;
        let failed = |error| FileError::io(path, "make", error);
        let file = match File::options().write(true).create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(FileError::Exists { path: path.to_path_buf() });
            }
            other => other.map_err(failed)?,
        };
        lock(&file, path)?;
        let state = State { resource: resource.to_owned(), fence: Fence { rule, newest: None } };
        let path = fs::canonicalize(path).map_err(failed)?;
        Self::stored(path.clone(), file, state, sync).inspect_err(|_| {
            let _ = fs::remove_file(path); // It has admitted nothing; what stays is refused as empty.
        })
    }

    fn open_with(path: &Path, resource: &str, rule: Rule, sync: Sync) -> Result<Self, FileError> {
        text::check_name("resource", resource)?;
        // The rename must replace the file, not a link to it; and the current folder may change.
        let path = fs::canonicalize(path).map_err(|error| FileError::opening(path, error))?;
        let mut file = open_locked(&path)?;
        let mut bytes = Vec::new();
        let reading = (&mut file).take(text::LONGEST + 1).read_to_end(&mut bytes);
        reading.map_err(|error| FileError::io(&path, "read", error))?;
        let state = State::parse(&bytes, &path)?;
        if state.resource != resource {
            let wanted = resource.to_owned();
            return Err(FileError::OtherResource { path, found: state.resource, wanted });
        }
        if state.fence.rule != rule {
            return Err(FileError::OtherRule { path, found: state.fence.rule });
        }
        Self::stored(path, file, state, sync)
    }

    /// The fence with this state, once that is durable.
    fn stored(path: PathBuf, file: File, state: State, sync: Sync) -> Result<Self, FileError> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let folder = File::open(parent).map_err(|error| FileError::io(parent, "open", error))?;
        let mut fence = Self { path, file, folder, state, poisoned: false, sync };
        fence.store()?;
        Ok(fence)
    }

    /// Makes the state durable. A failure before the first fsync leaves the old state as it was.
    /// After a later failure nobody knows which of the two states the disk has.
    fn store(&mut self) -> Result<(), FileError> {
        let new_path = new_path(&self.path);
        let new = self.write_new(&new_path)?;
        self.poisoned = true;
        (self.sync)(&new).map_err(|error| FileError::io(&new_path, "fsync", error))?;
        fs::rename(&new_path, &self.path).map_err(|error| FileError::io(&new_path, "rename", error))?;
        (self.sync)(&self.folder).map_err(|error| FileError::io(&self.path, "fsync the folder of", error))?;
        self.file = new;
        self.poisoned = false;
        Ok(())
    }

    /// A leftover of an interrupted write is overwritten: only the holder of the lock comes here.
    fn write_new(&self, new_path: &Path) -> Result<File, FileError> {
        let failed = |error| FileError::io(new_path, "write", error);
        let mut new =
            File::options().write(true).create(true).truncate(true).open(new_path).map_err(failed)?;
        lock(&new, &self.path)?;
        new.write_all(self.state.print().as_bytes()).map_err(failed)?;
        let permissions = self.file.metadata().map_err(failed)?.permissions();
        new.set_permissions(permissions).map_err(failed)?;
        Ok(new)
    }
}

impl fmt::Debug for FileFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, state, poisoned, .. } = self;
        f.debug_struct("FileFence")
            .field("path", path)
            .field("state", state)
            .field("poisoned", poisoned)
            .finish()
    }
}

fn new_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Opens the file and locks it. It may be replaced in between; then its lock is free, and worth
/// nothing.
fn open_locked(path: &Path) -> Result<File, FileError> {
    const TRIES: u32 = 3;
    for _ in 0..TRIES {
        let file = File::open(path).map_err(|error| FileError::opening(path, error))?;
        lock(&file, path)?;
        if has_name(&file, path)? {
            return Ok(file);
        }
    }
    Err(FileError::InUse { path: path.to_path_buf() })
}

/// Whether an open file is the one that is found under this name now.
fn has_name(file: &File, path: &Path) -> Result<bool, FileError> {
    let opened = file.metadata().map_err(|error| FileError::io(path, "look at", error))?;
    let named = fs::metadata(path).map_err(|error| FileError::opening(path, error))?;
    Ok((opened.dev(), opened.ino()) == (named.dev(), named.ino()))
}

fn lock(file: &File, path: &Path) -> Result<(), FileError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => FileError::InUse { path: path.to_path_buf() },
        TryLockError::Error(error) => FileError::io(path, "lock", error),
    })
}
