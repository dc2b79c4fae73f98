//! The record of one term: what its handles share with the driver, and every step that either takes
//! on it.
//!
//! Five words, no lock. Fixed writers keep them honest:
//!
//! | word | written by | read by |
//! |---|---|---|
//! | E | the driver alone: up by renewals, to zero at the end, and never again | all |
//! | closed | handles: once, to true | all |
//! | counter | handles, each time by one | handles |
//! | beat | handles, upwards | the driver |
//! | lent | the lender of the record, before anybody else has it | handles |
//!
//! An edict takes its number, then reads the clock, then loads E and `closed`; why in this order is
//! shown at [`create`]. On the machine: the number is taken by a step that acquires, so that
//! neither the clock (which begins with a load of its own) nor E is read ahead of it; E and
//! `closed` are stored by steps that release. A thread that learns that a term has ended, by
//! whatever way, and takes a number afterwards, therefore finds the E of the end, or `closed`.
//!
//! `tests/model.rs` puts this very file under a model checker, which tries all interleavings and
//! every value that the memory model lets a load see. For that the atomics come from
//! `crate::atomics`, which is the standard library's here and the checker's there; there is no
//! other difference.
//!
//! [`create`]: tenure_proto::strong::edict::create

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use tenure_proto::LocalTime;
use tenure_proto::strong::edict::{self, Authority, NotLeader};
use tenure_proto::strong::{Edict, Term};

use crate::atomics::{AtomicBool, AtomicU64};

/// All zero means: over. So a forked child, which finds zeros, leads nothing.
///
/// Seldom written and often written words lie on cache lines of their own: a thread that only asks
/// whether it leads is not slowed down by threads that make edicts.
#[repr(align(64))]
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// E, in nanoseconds.
    until: AtomicU64,
    /// A holder has resigned.
    closed: AtomicBool,
    /// This is the process that it was lent to, not a fork of it.
    lent: AtomicBool,
    often: Often,
}

/// The words that handles write again and again.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Often {
    /// The number of the last edict.
    counter: AtomicU64,
    /// The last sign of life of the guarded work.
    beat: AtomicU64,
}

impl Record {
    /// For a new term, which nobody leads by yet.
    pub(crate) fn new() -> Self {
        Self { lent: AtomicBool::new(true), ..Self::default() }
    }

    /// Whether this is a forked child, where everything was wiped. A write here reaches nobody.
    pub(crate) fn is_wiped(&self) -> bool {
        !self.lent.load(Acquire)
    }

    /// For the driver alone: a run has completed. Never after the end.
    pub(crate) fn extend(&self, until: LocalTime) {
        self.until.store(until.as_nanos(), Release);
    }

    /// For the driver alone: the term is over. Before anything about it is sent.
    pub(crate) fn end(&self) {
        self.until.store(0, Release);
    }

    /// For handles: authority ends here, whatever the driver is about to store.
    pub(crate) fn close(&self) {
        self.closed.store(true, Release);
    }

    /// A reading, and E, if at that reading this process led: the one comparison on which
    /// everything rests.
    #[inline]
    pub(crate) fn leads_until(&self, clock: impl FnOnce() -> LocalTime) -> Option<(LocalTime, LocalTime)> {
        let now = clock();
        let loaded = self.load();
        (now < loaded.until && !loaded.closed).then_some((now, loaded.until))
    }

    /// Creates an edict: the number, the clock, E, in this order and no other.
    #[inline]
    pub(crate) fn edict(&self, term: Term, clock: impl FnOnce() -> LocalTime) -> Result<Edict, NotLeader> {
        let number = self.often.counter.fetch_add(1, AcqRel) + 1;
        let reading = clock();
        edict::create(term, number, reading, self.load())
    }

    /// To be called after the clock was read.
    #[inline]
    fn load(&self) -> Authority {
        Authority {
            until: LocalTime::from_nanos(self.until.load(Acquire)),
            closed: self.closed.load(Acquire),
        }
    }

    /// How many numbers were taken, as a step between two of them. For tests: numbers tell the
    /// time.
    #[cfg(test)]
    pub(crate) fn look(&self) -> u64 {
        self.often.counter.fetch_add(0, AcqRel)
    }

    /// A sign of life of the guarded work. One that comes late does not undo a later one.
    pub(crate) fn beat(&self, now: LocalTime) {
        self.often.beat.fetch_max(now.as_nanos(), AcqRel);
    }

    /// The last sign of life.
    pub(crate) fn last_beat(&self) -> LocalTime {
        LocalTime::from_nanos(self.often.beat.load(Acquire))
    }
}
