//! The thread that waits for the disk, so that nobody else does.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenure_proto::paxos::{Cell, Record};
use tenure_proto::{Record as _, Ticket};

use super::{Disk, is_full, size_of_record};

/// How often a full disk is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// After how long without anything to write a new file is tried again for which there was no room. That costs more.
const NEW_FILE_AGAIN: Duration = Duration::from_secs(5);

/// What became of the records that were handed over.
#[derive(Debug)]
pub(in super::super) enum Durable {
    /// All up to this ticket are on the disk: what waited for them may be sent.
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

/// About how many bytes are written in one piece, at most. The longest frame that can be read is much longer.
const MOST: usize = 64 << 20;

type Job = (Ticket, Record);

/// Writes records in the order in which they were handed over. Those that come while the disk is busy share the next sync.
pub(in super::super) struct Writer {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
    written: Arc<Mutex<Written>>,
}

impl Writer {
    /// `done` is called on the writer's own thread, and after [`Durable::Failed`] no more.
    pub(in super::super) fn start(disk: Disk, done: impl Fn(Durable) + Send + 'static) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let written = Arc::<Mutex<Written>>::default();
        let noted = written.clone();
        let thread = thread::Builder::new()
            .name("tenure-log-disk".into())
            .spawn(move || write_all(disk, &queue, &noted, &done))?;
        Ok(Self { jobs, thread, written })
    }

    /// Returns at once. After a failure it does nothing: that was reported.
    pub(in super::super) fn persist(&self, ticket: Ticket, record: Record) {
        let _ = self.jobs.send((ticket, record));
    }

    pub(in super::super) fn written(&self) -> Written {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all is written for which there is room, and the folder is free for another process.
    pub(in super::super) fn finish(self) {
        drop(self.jobs);
        let _ = self.thread.join();
    }
}

fn write_all(mut disk: Disk, queue: &Receiver<Job>, written: &Mutex<Written>, done: &impl Fn(Durable)) {
    let failed = loop {
        match next_job(queue, &disk) {
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = disk.catch_up() {
                    break error;
                }
            }
            Ok(job) => match write(job, &mut disk, queue, written, done) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => break error,
            },
        }
    };
    done(Durable::Failed(failed));
    // The folder stays locked until the log has stopped: nobody takes its place before that.
    while queue.recv().is_ok() {}
}

fn next_job(queue: &Receiver<Job>, disk: &Disk) -> Result<Job, RecvTimeoutError> {
    if disk.is_crowded() {
        queue.recv_timeout(NEW_FILE_AGAIN)
    } else {
        queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
    }
}

/// Writes a record and all that wait behind it. False if there is no room, and nobody who waits for some.
fn write(
    (mut upto, record): Job,
    disk: &mut Disk,
    queue: &Receiver<Job>,
    written: &Mutex<Written>,
    done: &impl Fn(Durable),
) -> io::Result<bool> {
    let mut batch = vec![record];
    // Of several snapshots the last one counts: while the disk is full they do not pile up.
    let mut gather = |batch: &mut Vec<Record>, (ticket, record): Job| {
        upto = ticket;
        if record.key() == Cell::Snapshot {
            batch.retain(|other| other.key() != Cell::Snapshot);
        }
        batch.push(record);
    };
    let mut size = size_of_record(&batch[0]);
    while size < MOST
        && let Ok(job) = queue.try_recv()
    {
        size += size_of_record(&job.1);
        gather(&mut batch, job);
    }
    let mut told = false;
    while let Err(error) = disk.commit(&mut batch) {
        if !is_full(&error) {
            return Err(error);
        }
        if !std::mem::replace(&mut told, true) {
            done(Durable::Full);
        }
        match queue.recv_timeout(TRY_AGAIN) {
            Ok(job) => gather(&mut batch, job),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
        }
    }
    let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
    written.records += batch.len() as u64;
    written.syncs += u64::from(!batch.is_empty());
    drop(written);
    done(Durable::Upto(upto));
    Ok(true)
}
