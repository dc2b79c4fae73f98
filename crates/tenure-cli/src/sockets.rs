//! Unix sockets by their path, however long that is.
//!
//! The system takes at most 107 bytes for the path of a socket, and folders of projects are often
//! deeper. A path that is too long is reached through an open handle of its folder,
//! `/proc/self/fd/N/NAME`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The longest path that is used as it is.
const LONGEST: usize = 100;

/// A path that fits into the address of a socket, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Near {
    path: PathBuf,
    /// The folder that the path leads through, if it does.
    _folder: Option<OwnedFd>,
}

impl Near {
    /// For a path of any length.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        if path.as_os_str().len() <= LONGEST {
            return Ok(Self { path: path.to_owned(), _folder: None });
        }
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "it is no path of a socket");
        let name = path.file_name().ok_or_else(wrong)?;
        let folder = path.parent().ok_or_else(wrong)?;
        let folder =
            rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        Ok(Self { path, _folder: Some(folder) })
    }

    /// The path to use.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_socket_in_a_deep_folder_is_opened_and_reached() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("http.sock");
        assert!(UnixListener::bind(&path).is_err(), "the system refuses it as it is");
        let _listener = UnixListener::bind(Near::new(&path).unwrap().path()).unwrap();
        UnixStream::connect(Near::new(&path).unwrap().path()).unwrap();
    }
}
