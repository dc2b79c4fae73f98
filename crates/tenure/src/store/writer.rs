//! The thread that waits for the disk, so that the loop never does.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenure_proto::Ticket;
use tenure_proto::strong::Cell;

use super::{Store, StoreError};
use crate::contact::Contact;
use crate::sys::clock::{Which, read};
use crate::timing::Timing;

/// The outcome of the records that were handed over.
#[derive(Debug)]
pub(crate) enum Durable {
    /// All up to this ticket are on the disk: what waited for them may be sent.
    Upto(Ticket),
    /// The disk failed, and nothing more will be confirmed: the node must stop.
    Failed(StoreError),
}

struct Job {
    ticket: Ticket,
    cell: Cell,
    contacts: Option<Vec<Contact>>,
}

/// Writes records in the order in which they were handed over. Those that come while the disk is
/// busy share the next sync.
pub(crate) struct Writer {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
    /// How long writes took.
    timing: Arc<Mutex<Timing>>,
}

impl Writer {
    /// `done` is called on the writer's own thread, and after [`Durable::Failed`] no more.
    pub(crate) fn start(store: Store, done: impl Fn(Durable) + Send + 'static) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel();
        let file = store.file.clone();
        let timing = Arc::<Mutex<Timing>>::default();
        let noted = timing.clone();
        let thread = thread::Builder::new()
            .name("tenure-store".into())
            .spawn(move || write_all(store, &queue, &noted, &done))
            .map_err(StoreError::io("start a thread for", &file))?;
        Ok(Self { jobs, thread, timing })
    }

    /// Hands over a record, and the contacts if they are others than before. Returns at once. After
    /// a failure it does nothing: that was reported.
    pub(crate) fn persist(&self, ticket: Ticket, cell: Cell, contacts: Option<Vec<Contact>>) {
        let _ = self.jobs.send(Job { ticket, cell, contacts });
    }

    /// How long its writes took so far.
    pub(crate) fn timing(&self) -> Timing {
        *self.timing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all is written and the store is free for another process. If this is dropped
    /// instead, the thread goes on to the end of its queue by itself.
    pub(crate) fn finish(self) {
        drop(self.jobs);
        let _ = self.thread.join();
    }
}

fn write_all(mut store: Store, queue: &Receiver<Job>, timing: &Mutex<Timing>, done: &impl Fn(Durable)) {
    while let Ok(first) = queue.recv() {
        let mut upto = first.ticket;
        for Job { ticket, cell, contacts } in std::iter::once(first).chain(queue.try_iter()) {
            upto = ticket;
            store.image.put(cell);
            if let Some(contacts) = contacts {
                store.image.contacts = contacts;
            }
        }
        let begun = read(Which::Monotonic);
        let written = store.commit();
        let took = Duration::from_nanos(read(Which::Monotonic).saturating_sub(begun));
        timing.lock().unwrap_or_else(PoisonError::into_inner).note(took);
        match written {
            Ok(()) => done(Durable::Upto(upto)),
            Err(error) => {
                done(Durable::Failed(error));
                break;
            }
        }
    }
    // After a failure the store stays locked until the node has stopped: nobody takes its place
    // before that.
    while queue.recv().is_ok() {}
}
