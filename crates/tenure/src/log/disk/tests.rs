//! The file on real folders, and with disks that fail.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;

use tenure_proto::Ticket;
use tenure_proto::paxos::{Ballot, Sessions, Slot};

use super::file::tests::record;
use super::*;
use crate::log::Config;
use crate::name::ClusterId;
use crate::seal::ClusterKey;

fn config(folder: &Path) -> Checked {
    let mut config = Config::new("kv", "a", ClusterId(1), ClusterKey::from_bytes([1; 32]));
    config.members = crate::peers([("a", "127.0.0.1:1")]);
    config.folder = folder.to_path_buf();
    Checked::new(&config).unwrap()
}

fn snapshot(upto: u64) -> Record {
    Record::Snapshot { upto: Slot(upto), sessions: Sessions::default(), state: vec![7; 100].into() }
}

#[test]
fn a_missing_log_is_refused_and_a_second_one_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(&dir.path().join("log"));
    assert!(matches!(open(&config), Err(OpenError::Missing { .. })));
    make(&config, false).unwrap();
    assert!(matches!(make(&config, false), Err(OpenError::AlreadyThere { .. })));
    let (disk, boot) = open(&config).unwrap();
    assert_eq!((boot.kind, boot.incarnation), (BootKind::Founding, Incarnation(1)));
    assert!(matches!(open(&config), Err(OpenError::InUse { .. })));
    drop(disk);
    assert_eq!(open(&config).unwrap().1.kind, BootKind::Rebooted);
}

#[test]
fn what_was_committed_is_there_after_a_restart_and_each_life_has_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, false).unwrap();
    let (mut disk, _) = open(&config).unwrap();
    disk.commit(&[Record::Promised(Ballot::NONE), record(1)]).unwrap();
    disk.commit(&[record(2)]).unwrap();
    drop(disk);
    let (disk, boot) = open(&config).unwrap();
    assert_eq!(boot.durable, [Record::Promised(Ballot::NONE), record(1), record(2)]);
    assert_eq!(boot.incarnation, Incarnation(2));
    drop(disk);
    assert_eq!(open(&config).unwrap().1.incarnation, Incarnation(3));
}

#[test]
fn a_snapshot_makes_a_new_file_without_what_it_makes_worthless() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, false).unwrap();
    let (mut disk, _) = open(&config).unwrap();
    for slot in 1..=100 {
        disk.commit(&[record(slot)]).unwrap();
    }
    let before = disk.end;
    disk.commit(&[snapshot(99), Record::Base(Slot(98)), record(101)]).unwrap();
    assert!(disk.end < before, "{} bytes, {before} before", disk.end);
    disk.commit(&[record(102)]).unwrap();
    drop(disk);
    let boot = open(&config).unwrap().1;
    let expected = [record(99), record(100), record(101), record(102), snapshot(99), Record::Base(Slot(98))];
    assert_eq!(boot.durable, expected);
}

#[test]
fn a_torn_tail_is_dropped_and_writing_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, false).unwrap();
    let (mut disk, _) = open(&config).unwrap();
    disk.commit(&[record(1)]).unwrap();
    let torn = records_frame(disk.head.salt, disk.next, &[record(2)]);
    disk.file.write(disk.end, &torn[..torn.len() - 3]).unwrap();
    drop(disk);
    let (mut disk, boot) = open(&config).unwrap();
    assert_eq!(boot.durable, [record(1)]);
    disk.commit(&[record(3)]).unwrap();
    drop(disk);
    assert_eq!(open(&config).unwrap().1.durable, [record(1), record(3)]);
}

#[test]
fn a_log_of_other_members_or_of_another_name_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    make(&config(dir.path()), false).unwrap();
    let mut other = Config::new("kv", "a", ClusterId(1), ClusterKey::from_bytes([1; 32]));
    other.members = crate::peers([("a", "127.0.0.1:1"), ("b", "127.0.0.1:2"), ("c", "127.0.0.1:3")]);
    other.listen = Some("127.0.0.1:1".parse().unwrap());
    other.folder = dir.path().to_path_buf();
    let error = open(&Checked::new(&other).unwrap()).err().unwrap().to_string();
    assert!(error.contains("founded with members a, not a b c"), "{error}");
}

#[test]
fn a_member_that_lost_its_disk_knows_that_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, true).unwrap();
    for _ in 0..2 {
        assert_eq!(open(&config).unwrap().1.kind, BootKind::Amnesia);
    }
}

/// A disk with room for so many writes, then none until it is told otherwise; and syncs that may fail.
struct Small {
    file: File,
    room: std::sync::Arc<AtomicU32>,
    sync_fails: bool,
}

impl Medium for Small {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if self.room.load(SeqCst) == 0 {
            self.file.write_all_at(&bytes[..bytes.len() / 2], at)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room.fetch_sub(1, SeqCst);
        self.file.write_all_at(bytes, at)
    }
    fn sync(&mut self) -> io::Result<()> {
        if self.sync_fails { Err(io::ErrorKind::StorageFull.into()) } else { self.file.sync_data() }
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
}

fn on_small(config: &Checked, room: u32, sync_fails: bool) -> (Disk, std::sync::Arc<AtomicU32>) {
    let (mut disk, _) = open(config).unwrap();
    let room = std::sync::Arc::new(AtomicU32::new(room));
    let file = OpenOptions::new().read(true).write(true).open(config.folder.join(FILE)).unwrap();
    disk.file = Box::new(Small { file, room: room.clone(), sync_fails });
    (disk, room)
}

#[test]
fn a_full_disk_confirms_nothing_and_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, false).unwrap();
    let (disk, room) = on_small(&config, 1, false);
    let (sender, said) = channel();
    let sender = Mutex::new(sender);
    let writer = Writer::start(disk, move |durable| sender.lock().unwrap().send(durable).unwrap()).unwrap();
    writer.persist(Ticket(1), record(1));
    assert!(matches!(said.recv().unwrap(), Durable::Upto(Ticket(1))));
    writer.persist(Ticket(2), record(2));
    assert!(matches!(said.recv().unwrap(), Durable::Full));
    writer.persist(Ticket(3), record(3));
    room.store(9, SeqCst);
    loop {
        match said.recv().unwrap() {
            Durable::Upto(Ticket(3)) => break,
            Durable::Upto(Ticket(2)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(writer.written().records, 3);
    writer.finish();
    assert_eq!(open(&config).unwrap().1.durable, [record(1), record(2), record(3)]);
}

#[test]
fn a_sync_that_fails_ends_the_writer_even_if_it_says_that_the_disk_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, false).unwrap();
    let (disk, _) = on_small(&config, 9, true);
    let (sender, said) = channel();
    let writer = Writer::start(disk, move |durable| drop(sender.send(durable))).unwrap();
    writer.persist(Ticket(1), record(1));
    assert!(matches!(said.recv().unwrap(), Durable::Failed(_)));
    writer.finish();
}

#[test]
fn records_that_come_while_the_disk_is_busy_share_a_sync() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, false).unwrap();
    let (disk, room) = on_small(&config, 0, false);
    let (sender, said) = channel();
    let writer = Writer::start(disk, move |durable| drop(sender.send(durable))).unwrap();
    writer.persist(Ticket(1), record(1));
    assert!(matches!(said.recv().unwrap(), Durable::Full));
    (2..=50).for_each(|slot| writer.persist(Ticket(slot), record(slot)));
    room.store(u32::MAX, SeqCst);
    while !matches!(said.recv().unwrap(), Durable::Upto(Ticket(50))) {}
    let written = writer.written();
    assert!(written.records == 50 && written.syncs <= 50, "{written:?}");
    writer.finish();
}
