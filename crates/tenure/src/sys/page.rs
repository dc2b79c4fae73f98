//! Records that a forked child finds empty.
//!
//! A fork copies the memory of a leader. If the copy held E, two processes would lead; if it held the counter of edicts,
//! two would give out equal tokens. So both live in pages that the kernel empties in the child (MADV_WIPEONFORK): there
//! E is zero, and what is zero is over.
//!
//! A page holds as many records as fit, one a cache line. A record is lent out to one guard at a time and comes back
//! when its last clone is gone.

#![allow(unsafe_code, reason = "mmap, and references into what it gave")]

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

const PAGE: usize = 4096;

/// What the handles of one term share with the driver. All zero means: over.
#[repr(align(64))]
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// E, in nanoseconds. Only the driver writes it.
    pub(crate) until: AtomicU64,
    /// The number of the last edict.
    pub(crate) counter: AtomicU64,
    /// The last sign of life of the guarded work.
    pub(crate) beat: AtomicU64,
    /// A holder has resigned.
    pub(crate) closed: AtomicBool,
}

/// Pages of records.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<Free>);

#[derive(Debug, Default)]
struct Free {
    records: Vec<NonNull<Record>>,
    pages: Vec<NonNull<Record>>,
}

// SAFETY: the pointers lead to records that are all atomics, in pages that live as long as `Pages`.
unsafe impl Send for Free {}

/// A record on loan.
#[derive(Debug)]
pub(crate) struct Lent {
    record: NonNull<Record>,
    pages: Arc<Pages>,
}

// SAFETY: a record is all atomics; its page lives as long as `pages`, which this keeps alive.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl Pages {
    /// Lends a record, all zero.
    pub(crate) fn lend(self: &Arc<Self>) -> io::Result<Lent> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.records.is_empty() {
            free.add_page()?;
        }
        let record = free.records.pop().expect("a page holds more than one");
        drop(free);
        // SAFETY: it came from a page of ours and nobody else has it: what is over is taken back exclusively.
        unsafe { record.write(Record::default()) };
        Ok(Lent { record, pages: self.clone() })
    }
}

impl Free {
    fn add_page(&mut self) -> io::Result<()> {
        // SAFETY: a fresh private mapping, at an address of the kernel's choice, touches nobody's memory.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range is the mapping that was just made.
        if unsafe { libc::madvise(base, PAGE, libc::MADV_WIPEONFORK) } != 0 {
            let error = io::Error::last_os_error();
            // SAFETY: as above; nothing points into it yet.
            unsafe { libc::munmap(base, PAGE) };
            return Err(error);
        }
        let first = NonNull::new(base.cast::<Record>()).expect("mmap gave no null");
        self.pages.push(first);
        for index in 0..PAGE / size_of::<Record>() {
            // SAFETY: within the page, which is aligned to more than a record is.
            self.records.push(unsafe { first.add(index) });
        }
        Ok(())
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        for page in &self.pages {
            // SAFETY: nobody has a record of it: each `Lent` keeps the pages alive.
            unsafe { libc::munmap(page.as_ptr().cast(), PAGE) };
        }
    }
}

impl std::ops::Deref for Lent {
    type Target = Record;
    #[inline]
    fn deref(&self) -> &Record {
        // SAFETY: the page is mapped as long as `pages` lives; a record is valid whatever its bytes are, zeros included.
        unsafe { self.record.as_ref() }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut free = self.pages.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.records.push(self.record);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;

    use super::*;

    #[test]
    fn a_record_comes_back_empty() {
        let pages = Arc::new(Pages::default());
        let record = pages.lend().unwrap();
        record.until.store(7, SeqCst);
        let place = record.record;
        drop(record);
        let again = pages.lend().unwrap();
        assert_eq!(again.record, place);
        assert_eq!(again.until.load(SeqCst), 0);
    }

    #[test]
    fn a_hundred_records_do_not_share_a_place() {
        let pages = Arc::new(Pages::default());
        let records: Vec<Lent> = (0..100).map(|_| pages.lend().unwrap()).collect();
        for (value, record) in (0..).zip(&records) {
            record.counter.store(value, SeqCst);
        }
        for (value, record) in (0..).zip(&records) {
            assert_eq!(record.counter.load(SeqCst), value);
        }
    }

    #[test]
    fn a_forked_child_finds_nothing() {
        let pages = Arc::new(Pages::default());
        let record = pages.lend().unwrap();
        record.until.store(u64::MAX, SeqCst);
        record.counter.store(41, SeqCst);
        // SAFETY: the child only reads two atomics and leaves at once, without running anything else.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let empty = record.until.load(SeqCst) == 0 && record.counter.load(SeqCst) == 0;
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!empty)) };
        }
        let mut status = 0;
        // SAFETY: `status` is room for one status of our own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child saw the parent's record");
        assert_eq!(record.counter.load(SeqCst), 41);
    }
}
