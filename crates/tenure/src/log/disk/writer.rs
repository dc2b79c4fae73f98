//! The thread that waits for the disk, so that nobody else does.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenure_proto::log::{Cell, Record};
use tenure_proto::time::LocalSpan;
use tenure_proto::{Record as _, Ticket};

use super::{Disk, is_full, size_of_record};
use crate::clock::{Clock, nanos};

/// How often a full disk is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// After how long a new file is tried again for which there was no room. That costs more.
const NEW_FILE_AGAIN: Duration = Duration::from_secs(5);

/// The outcome of the records that were handed over.
#[derive(Debug)]
pub(in super::super) enum Durable {
    /// All up to this ticket are on the disk, but perhaps a snapshot and a base for which there was
    /// no room: what waited for them may be sent.
    Upto(Ticket),
    /// There is no room. Nothing is lost, and it is tried again.
    Full,
    /// The disk failed, and nothing more will be confirmed: the log must stop.
    Failed(io::Error),
}

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Written {
    pub(in super::super) records: u64,
    pub(in super::super) syncs: u64,
}

/// How often it is looked whether a new file has become whole that is written beside the old one.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// About how many bytes are written in one piece, at most. The longest frame that can be read is
/// much longer.
const MOST: usize = 64 << 20;

type Job = (Ticket, Record);

/// Writes records in the order in which they were handed over. Those that come while the disk is
/// busy share the next sync.
pub(in super::super) struct Writer {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
    written: Arc<Mutex<Written>>,
}

impl Writer {
    /// `done` is called on the writer's own thread, and after [`Durable::Failed`] no more.
    pub(in super::super) fn start(disk: Disk, done: impl Fn(Durable) + Send + 'static) -> io::Result<Self> {
        Self::start_with(disk, NEW_FILE_AGAIN, done)
    }

    /// The same, with a new file tried again after so long.
    pub(super) fn start_with(
        disk: Disk,
        new_file_again: Duration,
        done: impl Fn(Durable) + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let written = Arc::<Mutex<Written>>::default();
        let noted = written.clone();
        let thread = thread::Builder::new().name("tenure-log-disk".into()).spawn(move || {
            let _guard = Unwinds(&done);
            write_all(disk, Jobs::new(queue), new_file_again, &noted, &done);
        })?;
        Ok(Self { jobs, thread, written })
    }

    /// Returns at once. After a failure it does nothing: that was reported.
    pub(in super::super) fn persist(&self, ticket: Ticket, record: Record) {
        let _ = self.jobs.send((ticket, record));
    }

    pub(in super::super) fn written(&self) -> Written {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all is written for which there is room, and the folder is free for another
    /// process.
    pub(in super::super) fn finish(self) {
        drop(self.jobs);
        let _ = self.thread.join();
    }
}

/// Tells that the disk failed if its thread unwinds: the log would otherwise wait forever, and say
/// nothing.
struct Unwinds<'a, F: Fn(Durable)>(&'a F);

impl<F: Fn(Durable)> Drop for Unwinds<'_, F> {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)(Durable::Failed(io::Error::other("the thread that writes has panicked")));
        }
    }
}

/// The jobs that wait for the disk, in order.
pub(super) struct Jobs {
    queue: Receiver<Job>,
    /// Records that came while there was no room. Without a record: only to be confirmed.
    later: VecDeque<(Ticket, Option<Record>)>,
}

impl Jobs {
    pub(super) fn new(queue: Receiver<Job>) -> Self {
        Self { queue, later: VecDeque::new() }
    }

    /// The next one. Waits for it, but not longer than so long, if that is said.
    pub(super) fn next(
        &mut self,
        within: Option<Duration>,
    ) -> Result<(Ticket, Option<Record>), RecvTimeoutError> {
        if let Some(job) = self.later.pop_front() {
            return Ok(job);
        }
        let (ticket, record) = match within {
            Some(within) => self.queue.recv_timeout(within)?,
            None => self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected)?,
        };
        Ok((ticket, Some(record)))
    }

    /// Takes in what has come. False if nothing more will, and nobody waits.
    pub(super) fn take_in(&mut self) -> bool {
        loop {
            match self.queue.try_recv() {
                Ok((ticket, record)) => self.put(ticket, record),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Of several snapshots the last one counts: while the disk is full they do not pile up. It
    /// takes the place of the one before, so that the base that came after that is not written
    /// without a snapshot.
    fn put(&mut self, ticket: Ticket, record: Record) {
        let is_snapshot = |record: &Record| record.key() == Cell::Snapshot;
        let mut held = self.later.iter_mut().filter_map(|(_, record)| record.as_mut());
        let record = match held.find(|held| is_snapshot(held) && is_snapshot(&record)) {
            Some(held) => {
                *held = record;
                None
            }
            None => Some(record),
        };
        self.later.push_back((ticket, record));
    }

    /// A job and all that wait behind it, as far as they are written in one piece; and the ticket
    /// of the last one.
    fn gather(&mut self, (mut upto, first): (Ticket, Option<Record>)) -> (Ticket, Vec<Record>) {
        let mut batch: Vec<Record> = first.into_iter().collect();
        let mut size: usize = batch.iter().map(size_of_record).sum();
        while size < MOST
            && let Ok((ticket, record)) = self.next(Some(Duration::ZERO))
        {
            upto = ticket;
            let Some(record) = record else { continue };
            size += size_of_record(&record);
            if record.key() == Cell::Snapshot {
                batch.retain(|other| other.key() != Cell::Snapshot);
            }
            batch.push(record);
        }
        (upto, batch)
    }
}

fn write_all(
    mut disk: Disk,
    mut jobs: Jobs,
    new_file_again: Duration,
    written: &Mutex<Written>,
    done: &impl Fn(Durable),
) {
    let (clock, again) = (Clock::boot(), LocalSpan::from_nanos(nanos(new_file_again)));
    let mut tried = clock.read();
    let failed = loop {
        let crowded = disk.is_crowded();
        if !crowded {
            tried = clock.read();
        }
        let wait = if disk.is_making() { Some(LOOK_AGAIN) } else { crowded.then_some(new_file_again) };
        match jobs.next(wait) {
            Err(RecvTimeoutError::Disconnected) => {
                let _ = disk.wait_for_new(); // Whatever comes of it, one whole file has the name.
                return;
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = disk.look_at_new() {
                    break error;
                }
            }
            Ok(job) => match write(job, &mut disk, &mut jobs, written, done) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => break error,
            },
        }
        // Also under load: a snapshot may be long in coming.
        if crowded && disk.is_crowded() && clock.read() >= tried.after(again) {
            if let Err(error) = disk.catch_up() {
                break error;
            }
            tried = clock.read();
        }
    };
    done(Durable::Failed(failed));
    // The folder stays locked until the log has stopped: nobody takes its place before that.
    while jobs.queue.recv().is_ok() {}
}

/// Writes a record and all that wait behind it. False if there is no room, and nobody who waits for
/// some.
fn write(
    job: (Ticket, Option<Record>),
    disk: &mut Disk,
    jobs: &mut Jobs,
    written: &Mutex<Written>,
    done: &impl Fn(Durable),
) -> io::Result<bool> {
    let (upto, mut batch) = jobs.gather(job);
    let mut told = false;
    while let Err(error) = disk.commit(&mut batch) {
        if !is_full(&error) {
            return Err(error);
        }
        if !std::mem::replace(&mut told, true) {
            done(Durable::Full);
        }
        thread::sleep(TRY_AGAIN);
        if !jobs.take_in() {
            return Ok(false);
        }
    }
    let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
    written.records += batch.len() as u64;
    written.syncs += u64::from(!batch.is_empty());
    drop(written);
    done(Durable::Upto(upto));
    Ok(true)
}
