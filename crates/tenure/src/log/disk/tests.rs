//! The file on real folders, and with disks that fail.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use tenure_proto::Ticket;
use tenure_proto::log::{Ballot, Sessions, Slot};

use super::file::tests::record;
use super::writer::{Jobs, Written};
use super::*;
use crate::log::Config;
use crate::name::ClusterId;
use crate::seal::ClusterKey;

pub(super) fn config(folder: &Path) -> Checked {
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
    disk.commit(&mut vec![Record::Promised(Ballot::NONE), record(1)]).unwrap();
    disk.commit(&mut vec![record(2)]).unwrap();
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
        disk.commit(&mut vec![record(slot)]).unwrap();
    }
    let before = disk.file.end;
    disk.commit(&mut vec![snapshot(99), Record::Base(Slot(98)), record(101)]).unwrap();
    assert!(disk.file.end < before, "{} bytes, {before} before", disk.file.end);
    disk.commit(&mut vec![record(102)]).unwrap();
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
    disk.commit(&mut vec![record(1)]).unwrap();
    let torn = records_frame(disk.head.salt, disk.file.next, &[record(2)]);
    disk.file.medium.write(disk.file.end, &torn[..torn.len() - 3]).unwrap();
    drop(disk);
    let (mut disk, boot) = open(&config).unwrap();
    assert_eq!(boot.durable, [record(1)]);
    disk.commit(&mut vec![record(3)]).unwrap();
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

/// A disk with room for so many writes, then none until it is told otherwise; and syncs that may
/// fail.
struct Small {
    file: File,
    room: Arc<AtomicU32>,
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

fn on_small(config: &Checked, room: u32, sync_fails: bool) -> (Disk, Arc<AtomicU32>) {
    let (mut disk, _) = open(config).unwrap();
    let room = Arc::new(AtomicU32::new(room));
    let file = OpenOptions::new().read(true).write(true).open(config.folder.join(FILE)).unwrap();
    disk.file.medium = Box::new(Small { file, room: room.clone(), sync_fails });
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

/// A disk whose syncs say that they have begun, and end as they are told.
struct Gated {
    file: File,
    begun: Sender<()>,
    end: Receiver<io::Result<()>>,
}

impl Medium for Gated {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }
    fn sync(&mut self) -> io::Result<()> {
        let _ = self.begun.send(());
        self.end.recv().unwrap_or(Ok(()))
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
}

/// The two ends of a gated disk.
pub(in crate::log) type Gate = (Receiver<()>, Sender<io::Result<()>>);

/// Opens the log of a member on a disk whose syncs wait.
pub(in crate::log) fn gated(config: &Checked) -> ((Disk, Boot<Record>), Gate) {
    let (mut disk, boot) = open(config).unwrap();
    let ((begun, begins), (ends, end)) = (channel(), channel());
    let file = OpenOptions::new().read(true).write(true).open(config.folder.join(FILE)).unwrap();
    disk.file.medium = Box::new(Gated { file, begun, end });
    ((disk, boot), (begins, ends))
}

#[test]
fn records_that_come_while_the_disk_is_busy_share_a_sync() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, false).unwrap();
    let ((disk, _), (begins, ends)) = gated(&config);
    let (sender, said) = channel();
    let writer = Writer::start(disk, move |durable| drop(sender.send(durable))).unwrap();
    writer.persist(Ticket(1), record(1));
    begins.recv().unwrap();
    (2..=50).for_each(|slot| writer.persist(Ticket(slot), record(slot)));
    ends.send(Ok(())).unwrap();
    assert!(matches!(said.recv().unwrap(), Durable::Upto(Ticket(1))));
    begins.recv().unwrap();
    ends.send(Ok(())).unwrap();
    assert!(matches!(said.recv().unwrap(), Durable::Upto(Ticket(50))));
    assert_eq!(writer.written(), Written { records: 50, syncs: 2 });
    writer.finish();
}

/// A file system with room for so many bytes.
#[derive(Clone)]
struct Tight {
    folder: PathBuf,
    size: Arc<AtomicU64>,
}

struct TightFile {
    file: File,
    place: Tight,
}

impl Tight {
    fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), size: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    fn used(&self) -> u64 {
        fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }

    /// From now on there is room for so many more bytes.
    fn leave(&self, bytes: u64) {
        self.size.store(self.used() + bytes, SeqCst);
    }

    fn open(&self, config: &Checked) -> Result<(Disk, Boot<Record>), OpenError> {
        open_at(config, Arc::new(self.clone()))
    }
}

impl Place for Tight {
    fn make(&self, path: &Path) -> io::Result<Box<dyn Medium>> {
        Ok(Box::new(TightFile { file: File::create(path)?, place: self.clone() }))
    }
    fn take(&self, path: &Path) -> io::Result<Box<dyn Medium>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Box::new(TightFile { file, place: self.clone() }))
    }
}

impl Medium for TightFile {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let growth = (at + bytes.len() as u64).saturating_sub(self.file.metadata()?.len());
        if self.place.used().saturating_add(growth) > self.place.size.load(SeqCst) {
            self.file.write_all_at(&bytes[..bytes.len() / 2], at)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_all_at(bytes, at)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
}

/// A log of a thousand records; its file is longer than the room that is kept.
fn with_records(config: &Checked, place: &Tight) -> (Disk, Vec<Record>) {
    make(config, false).unwrap();
    let (mut disk, _) = place.open(config).unwrap();
    let records: Vec<Record> = (1..=1000).map(record).collect();
    disk.commit(&mut records.clone()).unwrap();
    (disk, records)
}

#[test]
fn a_log_is_opened_on_a_full_disk_each_time_with_a_life_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (config, place) = (config(dir.path()), Tight::new(dir.path()));
    let (disk, records) = with_records(&config, &place);
    drop(disk);
    place.leave(0);
    for life in 2..=5 {
        let (disk, boot) = place.open(&config).unwrap();
        assert_eq!((boot.incarnation, boot.kind), (Incarnation(life), BootKind::Rebooted));
        assert_eq!(boot.durable, records);
        assert!(disk.is_crowded());
    }
    place.leave(1 << 20);
    let (disk, boot) = place.open(&config).unwrap();
    assert_eq!((boot.incarnation, boot.durable), (Incarnation(6), records));
    assert!(!disk.is_crowded() && config.folder.join(ROOM).exists());
}

#[test]
fn a_log_opened_on_a_full_disk_without_even_the_kept_room_is_refused_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (config, place) = (config(dir.path()), Tight::new(dir.path()));
    let (disk, records) = with_records(&config, &place);
    drop(disk);
    fs::remove_file(config.folder.join(ROOM)).unwrap();
    place.leave(0);
    let refused = place.open(&config).err().unwrap();
    assert!(matches!(&refused, OpenError::Disk { source, .. } if is_full(source)), "{refused}");
    place.leave(200);
    let (disk, boot) = place.open(&config).unwrap();
    assert_eq!((boot.incarnation, boot.durable), (Incarnation(2), records));
    assert!(disk.is_crowded());
}

#[test]
fn what_is_appended_after_an_open_on_a_full_disk_is_read_though_a_tail_was_torn() {
    let dir = tempfile::tempdir().unwrap();
    let (config, place) = (config(dir.path()), Tight::new(dir.path()));
    let (mut disk, mut records) = with_records(&config, &place);
    let torn = records_frame(disk.head.salt, disk.file.next, &(1001..1200).map(record).collect::<Vec<_>>());
    disk.file.medium.write(disk.file.end, &torn[..torn.len() - 3]).unwrap();
    drop(disk);
    place.leave(0);
    let (mut disk, boot) = place.open(&config).unwrap();
    assert_eq!(boot.durable, records);
    disk.commit(&mut vec![record(1001)]).unwrap();
    disk.commit(&mut vec![record(1002)]).unwrap();
    drop(disk);
    records.extend([record(1001), record(1002)]);
    let (mut disk, boot) = place.open(&config).unwrap();
    assert_eq!((boot.incarnation, boot.durable), (Incarnation(3), records.clone()));
    place.leave(1 << 20);
    disk.catch_up().unwrap();
    assert!(!disk.is_crowded());
    disk.commit(&mut vec![record(1003)]).unwrap();
    drop(disk);
    records.push(record(1003));
    let (_disk, boot) = place.open(&config).unwrap();
    assert_eq!((boot.incarnation, boot.durable), (Incarnation(4), records));
}

#[test]
fn a_snapshot_without_room_is_put_off_with_its_base_and_what_follows_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (config, place) = (config(dir.path()), Tight::new(dir.path()));
    let (mut disk, mut records) = with_records(&config, &place);
    place.leave(500);
    let mut batch = vec![snapshot(1000), Record::Base(Slot(10)), record(1001)];
    disk.commit(&mut batch).unwrap();
    assert_eq!(batch, [record(1001)], "what was written");
    disk.commit(&mut vec![Record::Base(Slot(20)), record(1002)]).unwrap();
    let found = judge(&fs::read(config.folder.join(FILE)).unwrap()).unwrap();
    records.extend([record(1001), record(1002)]);
    assert_eq!(found.records, records, "neither snapshot nor base is there yet");
    place.leave(1 << 20);
    disk.catch_up().unwrap();
    drop(disk);
    records.retain(|record| !Record::Base(Slot(20)).makes_worthless(&record.key()));
    records.extend([snapshot(1000), Record::Base(Slot(20))]);
    assert_eq!(place.open(&config).unwrap().1.durable, records);
}

#[test]
fn a_writer_whose_snapshot_has_no_room_confirms_what_follows_and_makes_the_new_file_later() {
    let dir = tempfile::tempdir().unwrap();
    let (config, place) = (config(dir.path()), Tight::new(dir.path()));
    let (disk, _) = with_records(&config, &place);
    place.leave(500);
    let (sender, said) = channel();
    let writer = Writer::start(disk, move |durable| drop(sender.send(durable))).unwrap();
    for (ticket, record) in [snapshot(1000), Record::Base(Slot(990)), record(1001)].into_iter().enumerate() {
        writer.persist(Ticket(ticket as u64), record);
    }
    loop {
        match said.recv().unwrap() {
            Durable::Upto(Ticket(2)) => break,
            Durable::Upto(_) => {}
            other => panic!("{other:?}"),
        }
    }
    place.leave(1 << 20);
    writer.persist(Ticket(3), snapshot(1001));
    assert!(matches!(said.recv().unwrap(), Durable::Upto(Ticket(3))));
    writer.finish();
    let boot = place.open(&config).unwrap().1;
    let expected: Vec<Record> =
        (991..=1001).map(record).chain([snapshot(1001), Record::Base(Slot(990))]).collect();
    assert_eq!(boot.durable, expected);
}

/// A disk that fails in the worst way.
struct Panics;

impl Medium for Panics {
    fn write(&mut self, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        panic!("a disk of this test")
    }
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn cut(&mut self, _length: u64) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_panics_says_that_the_disk_failed() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, false).unwrap();
    let (mut disk, _) = open(&config).unwrap();
    disk.file.medium = Box::new(Panics);
    let (sender, said) = channel();
    let writer = Writer::start(disk, move |durable| drop(sender.send(durable))).unwrap();
    writer.persist(Ticket(1), record(1));
    assert!(matches!(said.recv().unwrap(), Durable::Failed(_)));
    writer.finish();
}

/// A disk without room that counts how often it was tried.
struct Counted {
    tried: Arc<AtomicU32>,
    disk: Small,
}

impl Medium for Counted {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.tried.fetch_add(1, SeqCst);
        self.disk.write(at, bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.disk.sync()
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.disk.cut(length)
    }
}

#[test]
fn a_full_disk_is_tried_now_and_then_however_much_comes_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, false).unwrap();
    let (mut disk, room) = on_small(&config, 0, false);
    let file = OpenOptions::new().read(true).write(true).open(config.folder.join(FILE)).unwrap();
    let tried = Arc::new(AtomicU32::new(0));
    let small = Small { file, room: room.clone(), sync_fails: false };
    disk.file.medium = Box::new(Counted { tried: tried.clone(), disk: small });
    let (sender, said) = channel();
    let writer = Writer::start(disk, move |durable| drop(sender.send(durable))).unwrap();
    writer.persist(Ticket(1), record(1));
    assert!(matches!(said.recv().unwrap(), Durable::Full));
    for slot in 2..=100 {
        writer.persist(Ticket(slot), record(slot));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let while_full = tried.load(SeqCst);
    room.store(9, SeqCst);
    while !matches!(said.recv().unwrap(), Durable::Upto(Ticket(100))) {}
    writer.finish();
    assert_eq!(open(&config).unwrap().1.durable.len(), 100);
    assert!(while_full < 30, "99 records came, and it was tried {while_full} times");
}

#[test]
fn snapshots_that_come_while_the_disk_is_full_do_not_pile_up_and_no_base_is_without_one() {
    let (queue, jobs) = channel();
    let mut jobs = Jobs::new(jobs);
    for (ticket, record) in
        [record(1), snapshot(10), Record::Base(Slot(8)), record(11), snapshot(20), Record::Base(Slot(18))]
            .into_iter()
            .enumerate()
    {
        queue.send((Ticket(ticket as u64), record)).unwrap();
    }
    assert!(jobs.take_in());
    let expected = [Some(record(1)), Some(snapshot(20)), Some(Record::Base(Slot(8))), Some(record(11)), None];
    for (ticket, expected) in expected.into_iter().enumerate() {
        assert_eq!(jobs.next(None).unwrap(), (Ticket(ticket as u64), expected));
    }
    assert_eq!(jobs.next(None).unwrap(), (Ticket(5), Some(Record::Base(Slot(18)))));
    drop(queue);
    assert!(!jobs.take_in());
}

#[test]
fn a_new_file_is_tried_again_also_while_records_keep_coming() {
    let dir = tempfile::tempdir().unwrap();
    let (config, place) = (config(dir.path()), Tight::new(dir.path()));
    let (disk, _) = with_records(&config, &place);
    place.leave(500);
    let (sender, said) = channel();
    let again = std::time::Duration::from_millis(50);
    let writer = Writer::start_with(disk, again, move |durable| drop(sender.send(durable))).unwrap();
    writer.persist(Ticket(1), snapshot(1000));
    writer.persist(Ticket(2), Record::Base(Slot(990)));
    while !matches!(said.recv().unwrap(), Durable::Upto(Ticket(2))) {}
    place.leave(1 << 20);
    let has_snapshot = || {
        let found = judge(&fs::read(config.folder.join(FILE)).unwrap()).unwrap();
        found.records.iter().any(|record| record.key() == Cell::Snapshot)
    };
    let mut ticket = 2;
    while !has_snapshot() {
        ticket += 1;
        assert!(ticket < 10_000, "no new file under load");
        writer.persist(Ticket(ticket), record(1000 + ticket));
        while !matches!(said.recv().unwrap(), Durable::Upto(upto) if upto == Ticket(ticket)) {}
    }
    writer.finish();
}

/// A disk that keeps synced bytes over a loss of power. After a failed sync it takes dirty bytes
/// for written, as file systems do: the next sync covers only what is written again.
#[derive(Clone)]
struct Cached {
    folder: PathBuf,
    /// The file as it would be after a loss of power.
    durable: Arc<Mutex<Vec<u8>>>,
    sync_fails: Arc<AtomicU32>,
}

struct CachedFile {
    file: File,
    disk: Cached,
    /// Writes since the last sync.
    dirty: Vec<(u64, Vec<u8>)>,
}

impl Cached {
    fn on(folder: &Path) -> Self {
        let durable = Arc::new(Mutex::new(fs::read(folder.join(FILE)).unwrap()));
        Self { folder: folder.to_path_buf(), durable, sync_fails: Arc::default() }
    }

    fn lose_power(&self) {
        fs::write(self.folder.join(FILE), &*self.durable.lock().unwrap()).unwrap();
    }
}

impl Place for Cached {
    fn make(&self, _path: &Path) -> io::Result<Box<dyn Medium>> {
        Err(io::ErrorKind::StorageFull.into())
    }
    fn take(&self, path: &Path) -> io::Result<Box<dyn Medium>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Box::new(CachedFile { file, disk: self.clone(), dirty: Vec::new() }))
    }
}

impl Medium for CachedFile {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.dirty.push((at, bytes.to_vec()));
        self.file.write_all_at(bytes, at)
    }
    fn sync(&mut self) -> io::Result<()> {
        let dirty = std::mem::take(&mut self.dirty);
        if self.disk.sync_fails.load(SeqCst) > 0 {
            return Err(io::Error::other("the cable is loose"));
        }
        let mut durable = self.disk.durable.lock().unwrap();
        for (at, bytes) in dirty {
            let from = usize::try_from(at).unwrap();
            let end = from + bytes.len();
            let length = durable.len().max(end);
            durable.resize(length, 0);
            durable[from..end].copy_from_slice(&bytes);
        }
        Ok(())
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.disk.durable.lock().unwrap().truncate(usize::try_from(length).unwrap());
        self.file.set_len(length)
    }
}

#[test]
fn what_a_failed_sync_left_in_the_cache_is_durable_once_it_was_read_on_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    make(&config, false).unwrap();
    drop(open(&config).unwrap());
    let place = Cached::on(dir.path());
    let open = || open_at(&config, Arc::new(place.clone())).unwrap();
    let (mut disk, _) = open();
    place.sync_fails.store(1, SeqCst);
    disk.commit(&mut vec![record(1)]).unwrap_err();
    place.sync_fails.store(0, SeqCst);
    drop(disk);
    let (disk, boot) = open();
    assert_eq!(boot.durable, [record(1)], "it is in the cache, and from now on others may hear of it");
    drop(disk);
    place.lose_power();
    assert_eq!(open().1.durable, [record(1)]);
}

/// Writes the log as versions of format 1 did: with the snapshot in its own file.
pub(in crate::log) fn put_snapshot_into_the_log(config: &Checked) {
    let (mut disk, boot) = open(config).unwrap();
    for mut record in boot.durable {
        if let Record::Snapshot { state, .. } = &mut record {
            let file = fs::read(config.snapshots.path(Held::of_state(state).unwrap())).unwrap();
            *state = file[..file.len() - 32].into();
            disk.commit(&mut vec![record]).unwrap();
        }
    }
}
