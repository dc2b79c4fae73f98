//! A new file that is written beside the one in use, while records go on to that one.
//!
//! A snapshot of many megabytes takes seconds to reach a disk. Until it is there it is put off, as
//! if there were no room for it: the old file has all that it would replace. The new file is
//! written on a thread of its own. When it is whole, the records of the meantime are added to it,
//! and it takes the name of the old one. A crash before that finds the old file, one after it the
//! new.

use std::collections::BTreeMap;
use std::io;
use std::thread::{self, JoinHandle};

use tenure_proto::log::{Cell, Record};

use super::file::{Head, records_frame};
use super::{
    Disk, Growing, NEW, ROOM, is_full, keep_room, name_new, put, say_crowded, size_of_record, write_new,
};
use crate::chance;

/// A file of at most so many bytes is written at once: a thread would cost more than it saves.
const AT_ONCE: usize = 1 << 20;

/// A new file on its way.
pub(super) struct Making {
    thread: JoinHandle<io::Result<Growing>>,
    head: Head,
    /// Its records.
    cells: BTreeMap<Cell, Record>,
    /// The snapshot that was put off before, and its base.
    took: BTreeMap<Cell, Record>,
    /// Records that went to the old file since.
    since: Vec<Record>,
}

impl Making {
    /// Notes records that went to the old file.
    pub(super) fn note(&mut self, records: &[Record]) {
        self.since.extend_from_slice(records);
    }
}

impl Disk {
    /// Whether a new file with these records would take so long that nobody should wait for it.
    pub(super) fn is_long(&self, records: &[Record]) -> bool {
        let all = self.cells.values().chain(self.put_off.values()).chain(records);
        all.map(size_of_record).sum::<usize>() > AT_ONCE
    }

    pub(super) fn is_making(&self) -> bool {
        self.making.is_some()
    }

    /// The records of the new file that is being written.
    pub(super) fn being_made(&self) -> impl Iterator<Item = &Record> {
        self.making.iter().flat_map(|making| making.cells.values())
    }

    /// Begins a new file, with all that was put off. If the system gives no thread, that is tried
    /// again as if there were no room.
    pub(super) fn begin_new(&mut self) {
        let mut cells = self.cells.clone();
        self.put_off.values().for_each(|record| put(&mut cells, record.clone()));
        let head = Head { salt: chance::wide(), ..self.head.clone() };
        let (place, path) = (self.place.clone(), self.folder.join(NEW));
        let (within, content) = (head.clone(), cells.clone());
        let thread = thread::Builder::new().name("tenure-log-file".into());
        match thread.spawn(move || write_new(&*place, &path, &within, &content)) {
            Ok(thread) => {
                let took = std::mem::take(&mut self.put_off);
                self.making = Some(Making { thread, head, cells, took, since: Vec::new() });
            }
            Err(_) => self.crowded = true,
        }
    }

    /// Takes a new file into use that has become whole; does nothing while it is being written.
    pub(super) fn look_at_new(&mut self) -> io::Result<()> {
        match self.making.take_if(|making| making.thread.is_finished()) {
            Some(making) => self.finish_new(making),
            None => Ok(()),
        }
    }

    /// The same, and waits for it: the log ends.
    pub(super) fn wait_for_new(&mut self) -> io::Result<()> {
        self.making.take().map_or(Ok(()), |making| self.finish_new(making))
    }

    fn finish_new(&mut self, making: Making) -> io::Result<()> {
        let Making { thread, head, mut cells, took, since } = making;
        let panicked = |_| Err(io::Error::other("the thread that writes a new file has panicked"));
        let made = thread.join().unwrap_or_else(panicked).and_then(|mut file| {
            if !since.is_empty() {
                file.extend(&records_frame(head.salt, file.next, &since))?;
            }
            name_new(&self.folder)?;
            Ok(file)
        });
        match made {
            Ok(file) => {
                keep_room(&*self.place, &self.folder.join(ROOM));
                since.into_iter().for_each(|record| put(&mut cells, record));
                (self.file, self.head, self.cells, self.crowded) = (file, head, cells, false);
                self.drop_unnamed();
                self.catch_up()
            }
            Err(error) if is_full(&error) => {
                let _ = std::fs::remove_file(self.folder.join(NEW));
                if !std::mem::replace(&mut self.crowded, true) {
                    say_crowded(&self.head);
                }
                for (cell, record) in took {
                    self.put_off.entry(cell).or_insert(record);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Disk {
    /// Nobody writes to the folder when its lock is given back.
    fn drop(&mut self) {
        if let Some(making) = self.making.take() {
            let _ = making.thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};

    use tenure_proto::Ticket;
    use tenure_proto::log::{Sessions, Slot};

    use super::super::file::tests::record;
    use super::super::tests::config;
    use super::super::{Durable, FILE, Medium, Place, Real, Writer, make, open, open_at};
    use super::*;

    fn long_snapshot(upto: u64) -> Record {
        Record::Snapshot { upto: Slot(upto), sessions: Sessions::default(), state: vec![7; 2 << 20].into() }
    }

    /// A disk on which each new file begins when it is told, and ends as it is told.
    struct Waits(Mutex<Receiver<io::Result<()>>>);

    impl Place for Waits {
        fn make(&self, path: &Path) -> io::Result<Box<dyn Medium>> {
            if path.ends_with(NEW) {
                self.0.lock().unwrap().recv().unwrap_or(Ok(()))?;
            }
            Real.make(path)
        }
        fn take(&self, path: &Path) -> io::Result<Box<dyn Medium>> {
            Real.take(path)
        }
    }

    /// A log of ten records whose next new files wait.
    fn waiting(folder: &Path) -> (Disk, Sender<io::Result<()>>) {
        let config = config(folder);
        make(&config, false).unwrap();
        let (go, told) = channel();
        go.send(Ok(())).unwrap(); // The file of this life.
        let (mut disk, _) = open_at(&config, Arc::new(Waits(Mutex::new(told)))).unwrap();
        disk.commit(&mut (1..=10).map(record).collect()).unwrap();
        (disk, go)
    }

    fn found(folder: &Path) -> Vec<Record> {
        super::super::judge(&std::fs::read(folder.join(FILE)).unwrap()).unwrap().records
    }

    #[test]
    fn records_are_confirmed_while_a_long_snapshot_is_being_written() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, go) = waiting(dir.path());
        let (sender, said) = channel();
        let writer = Writer::start(disk, move |durable| drop(sender.send(durable))).unwrap();
        writer.persist(Ticket(1), long_snapshot(10));
        writer.persist(Ticket(2), Record::Base(Slot(8)));
        for slot in 11..=20 {
            writer.persist(Ticket(slot), record(slot));
            while !matches!(said.recv().unwrap(), Durable::Upto(Ticket(upto)) if upto == slot) {}
        }
        let before: Vec<Record> = (1..=20).map(record).collect();
        assert_eq!(found(dir.path()), before, "a crash now finds all records, and no snapshot yet");
        go.send(Ok(())).unwrap();
        writer.finish();
        let after: Vec<Record> =
            (9..=20).map(record).chain([long_snapshot(10), Record::Base(Slot(8))]).collect();
        assert_eq!(open(&config(dir.path())).unwrap().1.durable, after);
    }

    #[test]
    fn a_later_snapshot_and_its_base_follow_when_the_first_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let (mut disk, go) = waiting(dir.path());
        disk.commit(&mut vec![long_snapshot(5)]).unwrap();
        disk.commit(&mut vec![Record::Base(Slot(4)), record(11)]).unwrap();
        disk.commit(&mut vec![long_snapshot(10), Record::Base(Slot(9))]).unwrap();
        assert_eq!(found(dir.path()), (1..=11).map(record).collect::<Vec<_>>());
        go.send(Ok(())).unwrap();
        disk.wait_for_new().unwrap();
        assert!(disk.is_making(), "the second one");
        let first: Vec<Record> = (1..=11).map(record).collect();
        let kept = |found: &Record| first.contains(found) || *found == long_snapshot(5);
        assert!(found(dir.path()).iter().all(kept), "no base without its snapshot");
        go.send(Ok(())).unwrap();
        disk.wait_for_new().unwrap();
        assert!(!disk.is_making());
        drop(disk);
        let expected = [record(10), record(11), long_snapshot(10), Record::Base(Slot(9))];
        assert_eq!(open(&config(dir.path())).unwrap().1.durable, expected);
    }

    #[test]
    fn a_base_that_comes_alone_is_written_when_its_snapshot_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let (mut disk, go) = waiting(dir.path());
        disk.commit(&mut vec![long_snapshot(10)]).unwrap();
        disk.commit(&mut vec![Record::Base(Slot(9))]).unwrap();
        go.send(Ok(())).unwrap();
        disk.wait_for_new().unwrap();
        drop(disk);
        let expected = [record(10), long_snapshot(10), Record::Base(Slot(9))];
        assert_eq!(open(&config(dir.path())).unwrap().1.durable, expected);
    }

    #[test]
    fn a_long_snapshot_without_room_is_tried_again_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let (mut disk, go) = waiting(dir.path());
        disk.commit(&mut vec![long_snapshot(10), Record::Base(Slot(9)), record(11)]).unwrap();
        go.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        disk.wait_for_new().unwrap();
        assert!(disk.is_crowded() && !disk.is_making());
        disk.commit(&mut vec![record(12)]).unwrap();
        assert_eq!(found(dir.path()), (1..=12).map(record).collect::<Vec<_>>());
        go.send(Ok(())).unwrap();
        disk.catch_up().unwrap();
        disk.wait_for_new().unwrap();
        assert!(!disk.is_crowded());
        drop(disk);
        let expected = [record(10), record(11), record(12), long_snapshot(10), Record::Base(Slot(9))];
        assert_eq!(open(&config(dir.path())).unwrap().1.durable, expected);
    }
}
