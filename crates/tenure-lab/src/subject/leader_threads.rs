//! The handle of a leading process, as its user's threads see it: a model of what the library does
//! with atomics.
//!
//! The driver publishes a term's record and alone writes its E; threads take numbers from its
//! counter. Each act of a thread between two machine instructions is an action of its own, so that
//! everything can happen in between.

use tenure_proto::GroupId;
use tenure_proto::LocalTime;
use tenure_proto::strong::edict::{Authority, ByInstance, ByTerm, Counter, create};
use tenure_proto::strong::{Edict, Event, Kind, Term};

use crate::world::RealTime;

/// How many threads of each process create edicts.
pub const THREADS: u8 = 2;

/// In which order a thread does what it must do to create an edict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Take a number, then sample the clock, then load E of the same term: the only sound one.
    #[default]
    Sound,
    /// The same, but E is the one of whatever term this process has now; the creation is dated by
    /// the sample.
    NonAtomic,
    /// Sample and check first, take a number later.
    SampleFirst,
    /// Load E first, so that a resignation in between is missed.
    StaleE,
    /// The clock sample is an old one.
    StaleNow,
    /// Sample and check once a term; from then on take numbers.
    CheckedOnce,
    /// The sound steps, but an edict is tagged with the epoch of the last renewal and the stamps of
    /// the first run.
    CurrentEpoch,
}

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Take,
    Sample,
    SampleOld,
    Load,
    LoadCurrent,
    /// The authority that the thread found when it first looked, in this term.
    SampleOnce,
    LoadOnce,
}

impl Order {
    fn steps(self) -> [Step; 3] {
        match self {
            Self::Sound | Self::CurrentEpoch => [Step::Take, Step::Sample, Step::Load],
            Self::NonAtomic => [Step::Take, Step::Sample, Step::LoadCurrent],
            Self::SampleFirst => [Step::Sample, Step::Load, Step::Take],
            Self::CheckedOnce => [Step::SampleOnce, Step::LoadOnce, Step::Take],
            Self::StaleE => [Step::Load, Step::Take, Step::Sample],
            Self::StaleNow => [Step::Take, Step::SampleOld, Step::Load],
        }
    }

    /// The step that counts as the creation.
    fn creates(self) -> Step {
        if self == Self::NonAtomic { Step::Sample } else { Step::Take }
    }
}

/// A term's record: everything but E and the counter is fixed when it is published.
#[derive(Clone, Debug)]
struct Record {
    term: Term,
    /// The run that began the term.
    first: ByTerm,
    /// The run of the last renewal, and edicts numbered under it: under one lock.
    latest: ByInstance,
    under_latest: Counter,
    counter: Counter,
    until: LocalTime,
}

impl Record {
    /// An edict in the paper's own form: tag, number, sample and check in one step, under a lock
    /// that renewals take too.
    fn under_lock(&mut self, reading: LocalTime) -> Option<Edict<ByInstance>> {
        let number = self.under_latest.take().ok()?;
        create(self.latest.clone(), number, reading, Authority { until: self.until, closed: false }).ok()
    }
}

/// The registers of a thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    done: usize,
    record: usize,
    number: u64,
    reading: Option<LocalTime>,
    until: Option<LocalTime>,
    created: Option<(RealTime, bool)>,
    instance: Option<Edict<ByInstance>>,
}

/// The handle of one process.
#[derive(Clone, Debug, Default)]
pub struct LeaderThreads {
    order: Order,
    records: Vec<Record>,
    /// Whether the last record is still in force, as far as the driver has said.
    leads: bool,
    threads: [Thread; THREADS as usize],
    /// The first look of any thread: in which term, the clock and E.
    first_look: Option<(usize, LocalTime, LocalTime)>,
    /// The largest reading that the driver or a thread has seen: one below it is of a clock that
    /// went back.
    latest: Option<LocalTime>,
    /// The clock as the last thread found it that finished an edict: what a careless one still
    /// takes for the time.
    last_reading: Option<LocalTime>,
}

/// An edict that its creator holds for valid.
#[derive(Clone, Debug)]
pub struct Made {
    /// When it was created.
    pub created: RealTime,
    /// Whether its creator led at that instant.
    pub led: bool,
    /// (term, counter).
    pub by_term: Edict<Term>,
    /// (epoch, QT0, counter).
    pub by_first: Edict<ByTerm>,
    /// (epoch, QT, EC), made at the instant of the creation under a lock; `None` if it was refused
    /// then.
    pub by_instance: Option<Edict<ByInstance>>,
}

impl LeaderThreads {
    /// A handle whose threads work in this order.
    pub fn new(order: Order) -> Self {
        Self { order, ..Self::default() }
    }

    /// The process is gone, and its threads with it.
    pub fn close(&mut self) {
        *self = Self::new(self.order);
    }

    /// Whether anybody here has something to do.
    pub fn is_open(&self) -> bool {
        self.leads || self.threads.iter().any(|thread| thread.done > 0)
    }

    /// The driver tells what has happened to the first group.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Leads { group: GroupId(0), kind: Kind::Acquire, epoch, term, until, stamps, .. } => {
                self.end_term();
                self.leads = true;
                self.records.push(Record {
                    term: *term,
                    first: ByTerm { epoch: *epoch, first: stamps.clone() },
                    latest: ByInstance { epoch: *epoch, quorum: stamps.clone() },
                    under_latest: Counter::new(),
                    counter: Counter::new(),
                    until: *until,
                });
            }
            Event::Leads { group: GroupId(0), kind: Kind::Renew, epoch, until, stamps, .. } => {
                if let Some(record) = self.records.last_mut().filter(|_| self.leads) {
                    record.until = *until;
                    record.latest = ByInstance { epoch: *epoch, quorum: stamps.clone() };
                    if self.order == Order::CurrentEpoch {
                        record.first.epoch = *epoch;
                    }
                    record.under_latest = Counter::new();
                }
            }
            Event::Lost { group: GroupId(0), .. } => self.end_term(),
            _ => {}
        }
    }

    /// The driver has read its clock.
    pub fn saw(&mut self, reading: LocalTime) {
        self.latest = self.latest.max(Some(reading));
    }

    /// A sample, if it proves anything: see
    /// [`Rules::reading_counts`](tenure_proto::strong::Rules::reading_counts).
    fn sample(&mut self, reading: LocalTime) -> Option<LocalTime> {
        let counts = Some(reading) >= self.latest;
        self.saw(reading);
        counts.then_some(reading)
    }

    /// E := 0, for good.
    fn end_term(&mut self) {
        self.leads = false;
        if let Some(record) = self.records.last_mut() {
            record.until = LocalTime::ZERO;
        }
    }

    /// A thread takes its next step. `led` says whether this process leads at this instant.
    pub fn step(&mut self, thread: u8, reading: LocalTime, now: RealTime, led: bool) -> Option<Made> {
        let mut registers = std::mem::take(&mut self.threads[usize::from(thread) % self.threads.len()]);
        if registers.done == 0 {
            if !self.leads {
                return None;
            }
            registers.record = self.records.len() - 1;
        }
        let step = self.order.steps()[registers.done];
        self.perform(step, &mut registers, reading);
        if step == self.order.creates() {
            registers.created = Some((now, led));
        }
        registers.done += 1;
        if registers.done < self.order.steps().len() {
            self.threads[usize::from(thread) % THREADS as usize] = registers;
            return None;
        }
        self.last_reading = Some(reading);
        self.finish(registers)
    }

    fn perform(&mut self, step: Step, registers: &mut Thread, reading: LocalTime) {
        let record = registers.record;
        match step {
            Step::Take => {
                registers.number = self.records[record].counter.take().unwrap_or(u64::MAX);
                let sample = self.sample(reading);
                registers.instance = sample.and_then(|reading| self.records[record].under_lock(reading));
            }
            Step::Sample => registers.reading = self.sample(reading),
            Step::SampleOld => registers.reading = Some(self.last_reading.unwrap_or(reading)),
            Step::Load => registers.until = Some(self.records[record].until),
            Step::SampleOnce => registers.reading = Some(self.look_once(record, reading).0),
            Step::LoadOnce => registers.until = Some(self.look_once(record, reading).1),
            Step::LoadCurrent => registers.until = self.records.last().map(|record| record.until),
        }
    }

    /// The clock and E as they were when a thread first looked at this term.
    fn look_once(&mut self, record: usize, reading: LocalTime) -> (LocalTime, LocalTime) {
        let known = self.first_look.filter(|(of, ..)| *of == record);
        let (_, reading, until) = known.unwrap_or((record, reading, self.records[record].until));
        self.first_look = Some((record, reading, until));
        (reading, until)
    }

    fn finish(&self, registers: Thread) -> Option<Made> {
        let record = &self.records[registers.record];
        let (reading, until) = (registers.reading?, registers.until?);
        let authority = Authority { until, closed: false };
        let by_term = create(record.term, registers.number, reading, authority).ok()?;
        let by_first = Edict { tag: record.first.clone(), number: registers.number };
        let (created, led) = registers.created?;
        Some(Made { created, led, by_term, by_first, by_instance: registers.instance })
    }
}
