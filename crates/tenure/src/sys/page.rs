//! Records that a forked child finds empty.
//!
//! A fork copies the memory of a leader. If the copy held E, two processes would lead; if it held
//! the counter of edicts, two would give out equal tokens. So both live in pages that the kernel
//! empties in the child (MADV_WIPEONFORK): there E is zero, and what is zero is over.
//!
//! A page holds as many records as fit. A record is lent out to one guard at a time and comes back
//! when its last clone is gone.

#![allow(unsafe_code, reason = "mmap, and references into what it gave")]

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use crate::term_record::Record;

const PAGE: usize = 4096;

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
    /// Lends a record that nobody leads by yet.
    pub(crate) fn lend(self: &Arc<Self>) -> io::Result<Lent> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.records.is_empty() {
            free.add_page()?;
        }
        let record = free.records.pop().expect("a page holds more than one");
        drop(free);
        // SAFETY: it came from a page of ours and nobody else has it: what is over is taken back
        // exclusively.
        unsafe { record.write(Record::new()) };
        Ok(Lent { record, pages: self.clone() })
    }
}

impl Free {
    fn add_page(&mut self) -> io::Result<()> {
        // SAFETY: a fresh private mapping, at an address of the kernel's choice, touches nobody's
        // memory.
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
        // SAFETY: the page is mapped as long as `pages` lives; a record is valid whatever its bytes
        // are, zeros included.
        unsafe { self.record.as_ref() }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.is_wiped() {
            return; // A forked child: the thread that held the lock when it forked does not run here.
        }
        let mut free = self.pages.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.records.push(self.record);
    }
}

#[cfg(test)]
mod tests {
    use tenure_proto::LocalTime;
    use tenure_proto::strong::Term;

    use super::*;

    const NOW: LocalTime = LocalTime::from_nanos(7);
    const LATER: LocalTime = LocalTime::from_nanos(8);

    fn number(record: &Record) -> Option<u64> {
        record.edict(Term(1), || NOW).ok().map(|edict| edict.number)
    }

    #[test]
    fn a_record_comes_back_empty() {
        let pages = Arc::new(Pages::default());
        let record = pages.lend().unwrap();
        record.extend(LATER);
        record.beat(NOW);
        assert_eq!(number(&record), Some(1));
        record.close();
        let place = record.record;
        drop(record);
        let again = pages.lend().unwrap();
        assert_eq!(again.record, place);
        assert_eq!((again.look(), number(&again), again.last_beat()), (0, None, LocalTime::ZERO));
    }

    #[test]
    fn a_hundred_records_do_not_share_a_place() {
        let pages = Arc::new(Pages::default());
        let records: Vec<Lent> = (0..100).map(|_| pages.lend().unwrap()).collect();
        for (value, record) in (1..).zip(&records) {
            record.beat(LocalTime::from_nanos(value));
        }
        for (value, record) in (1..).zip(&records) {
            assert_eq!(record.last_beat().as_nanos(), value);
        }
    }

    /// Runs `look` on a record in a forked child, and returns whether it was as it should be.
    fn in_a_child(record: Lent, look: impl FnOnce(Lent) -> bool) -> (i32, Lent) {
        // SAFETY: the child does what `look` does, which takes no lock and no memory, and leaves at
        // once.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let fine = look(record);
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!fine)) };
        }
        let mut status = 0;
        // SAFETY: `status` is room for one status of our own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(number(&record), Some(2), "the parent goes on where it was");
        (status, record)
    }

    fn lead(pages: &Arc<Pages>) -> Lent {
        let record = pages.lend().unwrap();
        record.extend(LATER);
        assert_eq!(number(&record), Some(1));
        record
    }

    #[test]
    fn a_forked_child_finds_nothing() {
        let pages = Arc::new(Pages::default());
        let (found, _) = in_a_child(lead(&pages), |record| {
            let fine = record.is_wiped() && number(&record).is_none();
            std::mem::forget(record);
            fine
        });
        assert_eq!(found, 0, "the child saw the parent's record");
    }

    #[test]
    fn a_forked_child_lets_go_of_a_record_while_a_thread_that_it_lacks_holds_the_lock() {
        let pages = Arc::new(Pages::default());
        let record = lead(&pages);
        let held = pages.0.lock().unwrap();
        let (found, record) = in_a_child(record, |record| {
            // SAFETY: the default action ends the process.
            unsafe { libc::alarm(10) };
            drop(record);
            true
        });
        assert_eq!(found, 0, "the child waited for a lock that nobody gives back");
        drop(held);
        drop(record);
    }
}
