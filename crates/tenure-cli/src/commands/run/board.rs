//! The end of the lease, on this host's boot clock, as runner and sentinel share it.
//!
//! Sixteen bytes of memory without a name, written with one call and read with one call: E, and a
//! checksum of it. A reader that finds the two at odds met a writer half-way and reads again.
//! Zero is "no lease": nothing may run.
//!
//! The board outlives a runner that is stopped or killed, and goes on telling the truth then: no
//! later E was ever published than the grantors had promised. A runner that is late to publish a
//! renewal only makes the sentinel stop too early.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pread, pwrite};

/// How often a torn reading is taken again. A write of sixteen bytes is not interrupted: once is
/// enough.
const TRIES: usize = 100;

/// The memory that holds E.
#[derive(Debug)]
pub(crate) struct Board(OwnedFd);

impl Board {
    /// A new one, without a lease on it.
    pub(crate) fn new() -> io::Result<Self> {
        let board = Self(memfd_create("tenure-lease", MemfdFlags::CLOEXEC)?);
        board.publish(0)?;
        Ok(board)
    }

    /// The other side's.
    pub(crate) fn of(file: OwnedFd) -> Self {
        Self(file)
    }

    /// Says when the lease ends.
    pub(crate) fn publish(&self, end: u64) -> io::Result<()> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&end.to_le_bytes());
        bytes[8..].copy_from_slice(&checksum(end).to_le_bytes());
        match pwrite(&self.0, &bytes, 0)? {
            16 => Ok(()),
            _ => Err(io::Error::other("the lease's end was written in part")),
        }
    }

    /// When the lease ends; zero if there is none, or if that cannot be told.
    pub(crate) fn end(&self) -> u64 {
        (0..TRIES).find_map(|_| self.read()).unwrap_or(0)
    }

    fn read(&self) -> Option<u64> {
        let mut bytes = [0; 16];
        let length = pread(&self.0, &mut bytes, 0).ok()?;
        let (end, sum) = bytes.split_at(8);
        let end = u64::from_le_bytes(end.try_into().ok()?);
        let sum = u64::from_le_bytes(sum.try_into().ok()?);
        (length == 16 && sum == checksum(end)).then_some(end)
    }
}

impl AsFd for Board {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// No two readings that differ in one half only have the same.
fn checksum(end: u64) -> u64 {
    end.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7465_6e75_7265_2e45
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_is_read_on_the_other_side() {
        let board = Board::new().unwrap();
        let other = Board::of(board.0.try_clone().unwrap());
        assert_eq!(other.end(), 0);
        board.publish(7_000_000_001).unwrap();
        assert_eq!(other.end(), 7_000_000_001);
    }

    #[test]
    fn a_torn_reading_is_no_lease() {
        let board = Board::new().unwrap();
        board.publish(5).unwrap();
        pwrite(&board.0, &9u64.to_le_bytes(), 0).unwrap();
        assert_eq!(board.end(), 0);
    }
}
