//! The steps on a term's record, under a model checker: every interleaving of a few threads, and
//! every value that the memory model lets a load see.
//!
//! `record.rs` is taken as it is, with the checker's atomics in the place of the standard
//! library's. The world around it is small: a driver that leads, renews and ends; handles that
//! create edicts; one that resigns; a clock.
//!
//! This must hold: **whatever is created after the end is refused.** The creation of an edict is
//! the taking of its number, so numbers tell the time: the end of a term looks how far the
//! counter is, and no larger number may become an edict. That look stands for all ways in which
//! others can learn of the end; a rival who was elected because of it is one. (Without any such way
//! nobody could tell which was first.) And no number is given out twice.
//!
//! A check that cannot fail shows nothing: records with one step changed are put into the same
//! worlds, and each must be caught.

#![allow(missing_docs, reason = "a test")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use atomics::{AtomicBool, AtomicU64};
use loom::sync::Arc;
use loom::thread;
use tenure_proto::LocalTime;
use tenure_proto::strong::Term;
use tenure_proto::strong::edict::{Authority, create};
use term_record::Record;

/// The atomics of `term_record.rs`, as the model checker has them.
mod atomics {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64};
}

#[allow(dead_code, reason = "signs of life and forks are not modelled")]
#[path = "../src/term_record.rs"]
mod term_record;

/// How often running threads are interrupted in one run, unless `LOOM_MAX_PREEMPTIONS` says
/// otherwise. All faults below show with two; each one more takes about ten times as long.
const INTERRUPTIONS: usize = 3;

/// The steps on a record that the worlds below need, sound or not.
trait Steps: Send + Sync + 'static {
    fn extend(&self, until: u64);
    fn end(&self);
    fn close(&self);
    /// How many numbers were taken.
    fn look(&self) -> u64;
    /// The number of an edict, if it was created.
    fn edict(&self, clock: &Clock) -> Option<u64>;
}

impl Steps for Record {
    fn extend(&self, until: u64) {
        Record::extend(self, LocalTime::from_nanos(until));
    }

    fn end(&self) {
        Record::end(self);
    }

    fn close(&self) {
        Record::close(self);
    }

    fn look(&self) -> u64 {
        Record::look(self)
    }

    fn edict(&self, clock: &Clock) -> Option<u64> {
        Record::edict(self, Term(1), || clock.read()).ok().map(|edict| edict.number)
    }
}

/// A wrong way to write it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// None: the sound steps, once more, to show that the others fail by their faults alone.
    None,
    /// A handle that resigns stores E := 0 itself: a renewal on its way undoes it.
    HandleEnds,
    /// E is loaded before the number is taken.
    LoadsFirst,
    /// The clock is read before the number is taken.
    ReadsFirst,
    /// The number is taken by a step that does not acquire: E may be an old one.
    TakesRelaxed,
    /// The counter is loaded and stored, in two steps.
    CountsInTwo,
}

struct Wrong {
    fault: Fault,
    until: AtomicU64,
    counter: AtomicU64,
    closed: AtomicBool,
}

impl Wrong {
    fn new(fault: Fault) -> Self {
        let (until, counter) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { fault, until, counter, closed: AtomicBool::new(false) }
    }

    fn load(&self) -> Authority {
        Authority {
            until: LocalTime::from_nanos(self.until.load(Acquire)),
            closed: self.closed.load(Acquire),
        }
    }

    fn take(&self) -> u64 {
        match self.fault {
            Fault::TakesRelaxed => self.counter.fetch_add(1, Relaxed) + 1,
            Fault::CountsInTwo => {
                let number = self.counter.load(Acquire) + 1;
                self.counter.store(number, Release);
                number
            }
            _ => self.counter.fetch_add(1, AcqRel) + 1,
        }
    }
}

impl Steps for Wrong {
    fn extend(&self, until: u64) {
        self.until.store(until, Release);
    }

    fn end(&self) {
        self.until.store(0, Release);
    }

    fn close(&self) {
        match self.fault {
            Fault::HandleEnds => self.until.store(0, Release),
            _ => self.closed.store(true, Release),
        }
    }

    fn look(&self) -> u64 {
        self.counter.fetch_add(0, AcqRel)
    }

    fn edict(&self, clock: &Clock) -> Option<u64> {
        let (number, reading, loaded) = match self.fault {
            Fault::LoadsFirst => {
                let loaded = self.load();
                (self.take(), clock.read(), loaded)
            }
            Fault::ReadsFirst => {
                let reading = clock.read();
                (self.take(), reading, self.load())
            }
            _ => (self.take(), clock.read(), self.load()),
        };
        create(Term(1), number, reading, loaded).ok().map(|edict| edict.number)
    }
}

/// A clock that is never behind, and orders nothing else: to read it is to read the last value, and
/// no more.
struct Clock(AtomicU64);

impl Clock {
    fn read(&self) -> LocalTime {
        LocalTime::from_nanos(self.0.fetch_add(0, Relaxed))
    }

    fn advance(&self, by: u64) {
        self.0.fetch_add(by, Relaxed);
    }
}

/// A term that is led until 10, at 5.
fn begin<R: Steps>(record: R) -> (Arc<R>, Arc<Clock>) {
    record.extend(10);
    (Arc::new(record), Arc::new(Clock(AtomicU64::new(5))))
}

/// A thread that makes this many edicts: the numbers of those that were created.
fn handle<R: Steps>(edicts: usize, record: &Arc<R>, clock: &Arc<Clock>) -> thread::JoinHandle<Vec<u64>> {
    let (record, clock) = (record.clone(), clock.clone());
    thread::spawn(move || (0..edicts).filter_map(|_| record.edict(&clock)).collect())
}

fn judge(numbers: &[u64], last: u64) {
    for (index, number) in numbers.iter().enumerate() {
        assert!(*number <= last, "edict {number} was created after the end, at {last}");
        assert!(!numbers[..index].contains(number), "edict {number} was created twice");
    }
}

/// The driver renews twice and ends the term, while two handles make edicts.
fn ended<R: Steps>(record: R) {
    let (record, clock) = begin(record);
    let handles = [handle(1, &record, &clock), handle(1, &record, &clock)];
    record.extend(20);
    record.extend(30);
    record.end();
    let last = record.look();
    let made: Vec<u64> = handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect();
    judge(&made, last);
}

/// A handle resigns, while the driver renews and another handle makes edicts.
fn resigned<R: Steps>(record: R) {
    let (record, clock) = begin(record);
    let other = handle(2, &record, &clock);
    let driver = {
        let record = record.clone();
        thread::spawn(move || {
            record.extend(20);
            record.extend(30);
        })
    };
    let own = record.edict(&clock);
    record.close();
    let last = record.look();
    let mut made = other.join().unwrap();
    driver.join().unwrap();
    made.extend(own);
    judge(&made, last);
    assert_eq!(record.edict(&clock), None, "an edict was created after the end");
}

/// The lease is renewed once, and then runs out by the clock, while two handles make edicts.
fn lapsed<R: Steps>(record: R) {
    let (record, clock) = begin(record);
    let handles = [handle(1, &record, &clock), handle(1, &record, &clock)];
    clock.advance(3);
    record.extend(20);
    clock.advance(12);
    let last = record.look();
    let made: Vec<u64> = handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect();
    judge(&made, last);
}

/// One handle resigns and tells the other, which makes an edict if it has heard of it, while the
/// driver renews.
fn told<R: Steps>(record: R) {
    let (record, clock) = begin(record);
    let word = Arc::new(AtomicBool::new(false));
    let other = {
        let (record, clock, word) = (record.clone(), clock, word.clone());
        thread::spawn(move || (word.load(Acquire), record.edict(&clock)))
    };
    let driver = {
        let record = record.clone();
        thread::spawn(move || record.extend(20))
    };
    record.close();
    word.store(true, Release);
    let (heard, made) = other.join().unwrap();
    driver.join().unwrap();
    assert!(!heard || made.is_none(), "an edict was created after it was known that nobody leads");
}

/// A candidate that hears of its election leads.
fn begun<R: Steps>(record: R) {
    let (record, clock) = (Arc::new(record), Arc::new(Clock(AtomicU64::new(5))));
    let word = Arc::new(AtomicBool::new(false));
    let other = {
        let (record, clock, word) = (record.clone(), clock, word.clone());
        thread::spawn(move || (word.load(Acquire), record.edict(&clock)))
    };
    record.extend(10);
    word.store(true, Release);
    let (heard, made) = other.join().unwrap();
    assert!(!heard || made.is_some(), "a leader was refused");
}

/// Tries everything that can happen in a world with that many interruptions.
fn check<R: Steps>(new: impl Fn() -> R + Send + Sync + 'static, world: fn(R)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(INTERRUPTIONS));
    builder.check(move || world(new()));
}

#[test]
fn what_is_created_after_the_driver_has_ended_the_term_is_refused() {
    check(Record::new, ended);
}

#[test]
fn what_is_created_after_a_handle_has_resigned_is_refused_whatever_the_driver_stores() {
    check(Record::new, resigned);
}

#[test]
fn what_is_created_after_the_lease_is_over_is_refused() {
    check(Record::new, lapsed);
}

#[test]
fn who_has_heard_of_a_resignation_creates_nothing() {
    check(Record::new, told);
}

#[test]
fn who_hears_that_it_leads_does() {
    check(Record::new, begun);
}

#[test]
fn the_sound_steps_written_once_more_pass_in_every_world() {
    for world in [ended, resigned, lapsed, told, begun] {
        check(|| Wrong::new(Fault::None), world);
    }
}

#[test]
#[should_panic(expected = "was created after the end")]
fn a_handle_that_stores_the_end_itself_is_caught() {
    check(|| Wrong::new(Fault::HandleEnds), resigned);
}

#[test]
#[should_panic(expected = "after it was known that nobody leads")]
fn a_handle_that_stores_the_end_itself_is_caught_by_whom_it_tells() {
    check(|| Wrong::new(Fault::HandleEnds), told);
}

#[test]
#[should_panic(expected = "was created after the end")]
fn an_end_that_is_loaded_before_the_number_is_taken_is_caught() {
    check(|| Wrong::new(Fault::LoadsFirst), ended);
}

#[test]
#[should_panic(expected = "was created after the end")]
fn a_clock_that_is_read_before_the_number_is_taken_is_caught() {
    check(|| Wrong::new(Fault::ReadsFirst), lapsed);
}

#[test]
#[should_panic(expected = "was created after the end")]
fn a_number_that_is_taken_without_acquiring_is_caught() {
    check(|| Wrong::new(Fault::TakesRelaxed), ended);
}

#[test]
#[should_panic(expected = "was created")]
fn a_counter_that_is_loaded_and_stored_is_caught() {
    check(|| Wrong::new(Fault::CountsInTwo), ended);
}
