//! Files opened relative to a folder that was looked at already, and who this process is.

#![allow(unsafe_code, reason = "the standard library opens files by paths alone, and does not tell the user")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// The user whose files this process makes.
pub(crate) fn user() -> u32 {
    // SAFETY: it reads a number of this process, and cannot fail.
    unsafe { libc::geteuid() }
}

/// Opens or makes the file `name` of an open folder, for reading and writing, by its owner alone. A
/// link is not followed, and a pipe is not waited for.
pub(crate) fn open_own(folder: &File, name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the folder is open, and the name ends with a zero.
    let opened = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, 0o600) };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the descriptor is new and nobody else's.
    Ok(unsafe { File::from_raw_fd(opened) })
}
