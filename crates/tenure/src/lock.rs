//! A lock against other processes, on a file or a folder.

use std::fs::{File, TryLockError};
use std::process;

/// Held until it is dropped, or the process has ended in any way.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    holder: u32,
}

impl Lock {
    /// Takes the lock if nobody has it; does not wait.
    pub(crate) fn take(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self { file, holder: process::id() })
    }

    /// The locked file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Lock {
    /// To close the file is not enough: a child that another thread has just forked holds it open
    /// too, until it has begun its own program. But a forked child that drops its copy of this must
    /// not unlock what its parent holds.
    fn drop(&mut self) {
        if self.holder == process::id() {
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_free_when_it_is_dropped_although_a_copy_of_the_file_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::open(dir.path()).unwrap();
        let lock = Lock::take(open()).unwrap();
        let copy = lock.file().try_clone().unwrap();
        assert!(matches!(Lock::take(open()), Err(TryLockError::WouldBlock)));
        drop(lock);
        assert!(Lock::take(open()).is_ok());
        drop(copy);
    }
}
