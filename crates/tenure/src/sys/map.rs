//! A part of a file, mapped into memory and shared with the next process that opens the file: a
//! stored word is there when this process is killed at the next instruction, without a system call.
//!
//! It is seen as words of 64 bits, and every word is atomic. A store is either done or not; and
//! since each is a release, they are done in the order in which the program says so, as far as the
//! compiler goes. The processor keeps that order for a process that comes after the kill: an
//! instruction that was carried out is not taken back.
#![allow(
    unsafe_code,
    reason = "the standard library cannot map a file, nor tell what kind of file system it is on"
)]

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::bus::Watched;

/// Mappings begin at multiples of this in their file: the largest page that Linux has by default.
pub(crate) const ALIGNMENT: u64 = 64 * 1024;

/// A mapped part of a file. If somebody cuts the file while it is mapped, the part that is gone
/// becomes zeros that nobody else sees, and [`Map::is_lost`] says so.
pub(crate) struct Map {
    words: NonNull<[AtomicU64]>,
    watched: Watched,
}

// SAFETY: a mapping belongs to the process, not to a thread, and its words are atomic.
unsafe impl Send for Map {}

impl Map {
    /// Maps `words` words of the file from `offset` on. The file must have them.
    pub(crate) fn new(file: &File, offset: u64, words: usize) -> io::Result<Self> {
        let bytes = words * size_of::<AtomicU64>();
        let end = offset + bytes as u64;
        if words == 0 || !offset.is_multiple_of(ALIGNMENT) || file.metadata()?.len() < end {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
        };
        let (words, watched) = watched(start, words)?;
        Ok(Self { words, watched })
    }

    /// Whether the file was cut under this mapping. To be asked after the loads and stores that are
    /// to count.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.watched.is_lost()
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is that long, aligned to a page, zeros or words (any bits are a
        // word), and lasts as long as `self`; other processes and threads may change it, so it is
        // seen as atomics only.
        unsafe { self.words.as_ref() }
    }

    /// Reads a word.
    pub(crate) fn load(&self, at: usize) -> u64 {
        self.words()[at].load(Ordering::Acquire)
    }

    /// Writes a word, after all that were written before.
    pub(crate) fn store(&self, at: usize, value: u64) {
        self.words()[at].store(value, Ordering::Release);
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // First of all, so that no fault is answered by a mapping at an address that may be
        // somebody else's by then.
        self.watched.forget();
        // SAFETY: exactly what `new` mapped; nothing borrowed from it outlives `self`.
        unsafe {
            libc::munmap(self.words.as_ptr().cast(), self.words.len() * size_of::<AtomicU64>());
        }
    }
}

/// The beginning of a file or device, mapped for reading alone, shared by threads. If a file is cut
/// it reads as zeros.
pub(crate) struct View {
    words: NonNull<[AtomicU64]>,
    watched: Watched,
}

// SAFETY: a mapping belongs to the process, not to a thread, and its words are atomic and never
// written here.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// Maps the first `words` words. A file must have them; a device does not tell its length.
    pub(crate) fn new(file: &File, words: usize) -> io::Result<Self> {
        let bytes = words * size_of::<AtomicU64>();
        let found = file.metadata()?;
        if words == 0 || (found.is_file() && found.len() < bytes as u64) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let (read, shared, start) = (libc::PROT_READ, libc::MAP_SHARED, ptr::null_mut());
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(start, bytes, read, shared, file.as_raw_fd(), 0) };
        let (words, watched) = watched(start, words)?;
        Ok(Self { words, watched })
    }

    /// Reads a word, before anything that is read later. Relaxed, with a fence behind it: what else
    /// an atomic load may compile to is not allowed on memory that cannot be written.
    #[inline]
    pub(crate) fn load(&self, at: usize) -> u64 {
        // SAFETY: the mapping is that long, aligned to a page, and lasts as long as `self`; any
        // bits are a word.
        let word = unsafe { self.words.as_ref() }[at].load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        word
    }

    /// Whether the file was cut under this mapping.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.watched.is_lost()
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.watched.forget();
        // SAFETY: exactly what `new` mapped; nothing borrowed from it outlives `self`.
        unsafe {
            libc::munmap(self.words.as_ptr().cast(), self.words.len() * size_of::<AtomicU64>());
        }
    }
}

/// Whether a file or folder is on a file system that lives in memory.
pub(crate) fn is_in_memory(file: &File) -> io::Result<bool> {
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open, and there is room for the answer.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the answer was filled in.
    let found = unsafe { found.assume_init() };
    Ok(found.f_type == libc::TMPFS_MAGIC)
}

/// The words at `start`, where `mmap` has put them unless it failed. Notices from now on when the
/// file is cut; if that cannot be, nothing stays mapped.
fn watched(start: *mut libc::c_void, words: usize) -> io::Result<(NonNull<[AtomicU64]>, Watched)> {
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = NonNull::new(start.cast::<AtomicU64>()).ok_or(io::ErrorKind::Other)?;
    let bytes = words * size_of::<AtomicU64>();
    let watched = Watched::new(start.cast(), bytes).inspect_err(|_| {
        // SAFETY: what was just mapped, and nobody has seen yet.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    })?;
    Ok((NonNull::slice_from_raw_parts(start, words), watched))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(bytes).unwrap();
        file
    }

    #[test]
    fn what_is_stored_is_in_the_file() {
        use std::os::unix::fs::FileExt;
        let file = file(ALIGNMENT + 4096);
        let map = Map::new(&file, ALIGNMENT, 512).unwrap();
        map.store(511, 7);
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, ALIGNMENT + 511 * 8).unwrap();
        assert_eq!(u64::from_ne_bytes(bytes), 7);
        assert_eq!(map.load(511), 7);
    }

    #[test]
    fn a_part_that_the_file_does_not_have_is_not_mapped() {
        let file = file(4096);
        assert!(Map::new(&file, 0, 512).is_ok());
        assert!(Map::new(&file, 0, 513).is_err());
        assert!(Map::new(&file, 0, 0).is_err());
        assert!(Map::new(&file, 4096, 1).is_err());
    }

    #[test]
    fn a_file_that_is_cut_costs_its_words_and_not_the_process() {
        let file = file(8192);
        let (first, second) = (Map::new(&file, 0, 1024).unwrap(), Map::new(&file, 0, 512).unwrap());
        first.store(1023, 7);
        assert!(!first.is_lost());
        file.set_len(4096).unwrap();
        assert_eq!(first.load(1023), 0);
        assert!(first.is_lost());
        first.store(1023, 8);
        assert_eq!(first.load(1023), 8, "it is memory of this process now");
        second.store(0, 9);
        assert!(!second.is_lost() && first.load(0) != 9, "another mapping of the same file is as it was");
        drop((first, second));
        let again = Map::new(&file, 0, 512).unwrap();
        assert!(!again.is_lost(), "a place in the list is used again");
        assert_eq!(again.load(0), 9);
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn a_word_beyond_the_end_is_not_touched() {
        Map::new(&file(4096), 0, 512).unwrap().load(512);
    }

    #[test]
    fn a_file_system_in_memory_is_told_from_a_disk() {
        assert!(is_in_memory(&File::open("/dev/shm").unwrap()).unwrap());
        assert!(!is_in_memory(&File::open("/proc").unwrap()).unwrap());
    }
}
