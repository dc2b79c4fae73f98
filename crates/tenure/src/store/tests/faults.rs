//! Disks that fail, fill up, are read-only, or stand still: nothing is confirmed that is not there,
//! nobody waits, and what was confirmed before is found again.

use std::io;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};

use tenure_proto::Ticket;

use super::child::{folder, passes_in_namespace};
use super::*;

/// The behaviour of a test's disk instead of syncing.
enum Sync {
    /// It does as it is told.
    Works,
    /// It says so when it begins, and does not end before it is told to.
    Stands { begun: Sender<()>, go_on: Receiver<()> },
    /// It fails.
    Fails(io::ErrorKind),
}

/// A real disk that can be made to misbehave.
struct Moody {
    real: Box<dyn Disk>,
    sync: Sync,
    syncs: Sender<()>,
}

impl Disk for Moody {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.real.read()
    }
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.real.write(at, bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        let _ = self.syncs.send(());
        match &self.sync {
            Sync::Works => {}
            Sync::Stands { begun, go_on } => {
                let _ = begun.send(());
                let _ = go_on.recv();
            }
            Sync::Fails(kind) => return Err((*kind).into()),
        }
        self.real.sync()
    }
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.real.replace(bytes)
    }
}

/// The device that is always full.
struct Full(File);

impl Full {
    fn boxed() -> Box<dyn Disk> {
        Box::new(Self(fs::OpenOptions::new().write(true).open("/dev/full").unwrap()))
    }
}

impl Disk for Full {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn replace(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Starts a writer on a disk with a mood; counts its syncs and hears what is confirmed.
fn writer(dir: &TempDir, sync: Sync) -> (Writer, Receiver<Durable>, Receiver<()>) {
    let (mut store, _) = open(dir).unwrap();
    let (syncs, counted) = mpsc::channel();
    let real = std::mem::replace(&mut store.disk, Full::boxed());
    store.disk = Box::new(Moody { real, sync, syncs });
    let (writer, heard) = start(store);
    (writer, heard, counted)
}

fn start(store: Store) -> (Writer, Receiver<Durable>) {
    let (done, heard) = mpsc::channel();
    let writer = Writer::start(store, move |durable| {
        let _ = done.send(durable);
    });
    (writer.unwrap(), heard)
}

fn persist(writer: &Writer, term: u64) {
    writer.persist(Ticket(term), Cell::Ceiling(Term(term)), None);
}

fn upto(heard: &Receiver<Durable>) -> u64 {
    match heard.recv().unwrap() {
        Durable::Upto(ticket) => ticket.0,
        Durable::Failed(error) => panic!("{error}"),
    }
}

fn failure(heard: &Receiver<Durable>) -> StoreError {
    match heard.recv().unwrap() {
        Durable::Failed(error) => error,
        Durable::Upto(ticket) => panic!("{ticket:?} was confirmed"),
    }
}

#[test]
fn a_record_costs_one_sync_and_is_there_when_it_is_confirmed() {
    let dir = founded();
    let (writer, heard, syncs) = writer(&dir, Sync::Works);
    for term in 2001..2011 {
        persist(&writer, term);
        assert_eq!(upto(&heard), term);
        assert_eq!(syncs.try_iter().count(), 1);
        let found = places::judge(&fs::read(file(&dir)).unwrap()).unwrap();
        let cells = Image::from_bytes(&found.content).unwrap().cells;
        assert!(cells.contains(&Cell::Ceiling(Term(term))));
    }
    writer.finish();
}

#[test]
fn contacts_are_written_with_the_record_that_brings_them() {
    let dir = founded();
    let (writer, heard, _) = writer(&dir, Sync::Works);
    writer.persist(Ticket(1), Cell::Ceiling(Term(2001)), Some(vec![contact("a"), contact("z")]));
    assert_eq!(upto(&heard), 1);
    persist(&writer, 2002);
    writer.finish();
    assert_eq!(open(&dir).unwrap().1.contacts, [contact("a"), contact("z")]);
}

#[test]
fn a_disk_that_stands_still_holds_nobody_up_and_all_that_waits_shares_one_sync() {
    let dir = founded();
    let (begun, has_begun) = mpsc::channel();
    let (let_go, go_on) = mpsc::channel();
    let (writer, heard, syncs) = writer(&dir, Sync::Stands { begun, go_on });
    persist(&writer, 2001);
    has_begun.recv().unwrap();
    for term in 2002..=3000 {
        persist(&writer, term); // Returns, though the disk does not.
    }
    assert!(heard.try_recv().is_err(), "nothing is confirmed while the disk stands");
    let_go.send(()).unwrap();
    assert_eq!(upto(&heard), 2001);
    let_go.send(()).unwrap();
    assert_eq!(upto(&heard), 3000);
    assert_eq!(syncs.try_iter().count(), 2);
    drop(let_go);
    writer.finish();
    assert_eq!(ceiling(&open(&dir).unwrap().1), Term(3000));
}

#[test]
fn a_failed_sync_ends_the_writer_for_good() {
    let dir = founded();
    let (writer, heard, syncs) = writer(&dir, Sync::Fails(io::ErrorKind::Other));
    persist(&writer, 2001);
    let error = failure(&heard);
    assert!(matches!(error, StoreError::Io { what: "sync", .. }), "{error}");
    persist(&writer, 2002);
    assert!(matches!(refusal(open(&dir)), StoreError::InUse { .. }), "nobody takes its place yet");
    writer.finish();
    assert!(heard.recv().is_err(), "nothing is said after a failure");
    assert_eq!(syncs.try_iter().count(), 1, "and nothing tried");
    let (_, opened) = open(&dir).unwrap();
    assert!(ceiling(&opened) == FLOOR || ceiling(&opened) == Term(2001));
}

#[test]
fn errors_of_the_disk_say_what_to_do() {
    let said = |kind: io::ErrorKind| {
        let dir = founded();
        let (writer, heard, _) = writer(&dir, Sync::Fails(kind));
        persist(&writer, 2001);
        failure(&heard).to_string()
    };
    assert!(said(io::ErrorKind::StorageFull).contains("make room"));
    assert!(said(io::ErrorKind::ReadOnlyFilesystem).contains("writable"));
    assert!(said(io::ErrorKind::Other).contains("look after the disk"));
}

#[test]
fn a_writer_that_is_dropped_writes_what_it_was_given() {
    let dir = founded();
    let (writer, heard, _) = writer(&dir, Sync::Works);
    (2001..2100).for_each(|term| persist(&writer, term));
    drop(writer);
    assert_eq!(heard.iter().filter(|it| matches!(it, Durable::Upto(Ticket(2099)))).count(), 1);
    assert_eq!(ceiling(&open(&dir).unwrap().1), Term(2099));
}

#[test]
fn a_write_to_a_full_device_is_not_confirmed() {
    let dir = founded();
    let (mut store, _) = open(&dir).unwrap();
    store.disk = Full::boxed();
    let (writer, heard) = start(store);
    persist(&writer, 2001);
    let error = failure(&heard);
    assert!(error.to_string().contains("make room"), "{error}");
    writer.finish();
    assert_eq!(ceiling(&open(&dir).unwrap().1), FLOOR);
}

/// A disk of 96 KiB.
fn on_a_small_disk(test: &str) {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("mount -t tmpfs -o size=96k none {}", dir.path().display());
    passes_in_namespace(&["--mount", "--map-root-user"], &script, test, dir.path());
}

#[test]
fn a_full_disk_loses_nothing() {
    on_a_small_disk("store::tests::faults::child_fills_the_disk");
}

#[test]
fn a_read_only_disk_is_refused() {
    on_a_small_disk("store::tests::faults::child_is_read_only");
}

/// Does nothing but as a child of the test above it: there the folder is on a disk of 96 KiB.
#[test]
fn child_fills_the_disk() {
    let Some(dir) = folder() else { return };
    Store::found(&dir.join("a"), &founding()).unwrap();
    let (store, _) = Store::open(&dir.join("a"), &name("a"), None).unwrap();
    let filler = File::create(dir.join("filler")).unwrap();
    let full = (0..).find_map(|at| filler.write_all_at(&[1; 4096], at * 4096).err()).unwrap();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);

    let (writer, heard) = start(store);
    persist(&writer, 2001);
    assert_eq!(upto(&heard), 2001, "a record in its place needs no more room");
    let many = (0..200).map(|at| contact(&format!("member-{at}"))).collect();
    writer.persist(Ticket(2002), Cell::Ceiling(Term(2002)), Some(many));
    let error = failure(&heard);
    assert!(matches!(error, StoreError::Io { what: "enlarge", .. }), "{error}");
    writer.finish();

    let made = Store::found(&dir.join("b"), &founding()).unwrap_err();
    assert!(made.to_string().contains("make room"), "{made}");
    let (_, opened) = Store::open(&dir.join("a"), &name("a"), None).unwrap();
    assert_eq!((ceiling(&opened), opened.contacts.len()), (Term(2001), 3), "a restart needs no room either");
}

#[test]
fn child_is_read_only() {
    let Some(dir) = folder() else { return };
    Store::found(&dir.join("a"), &founding()).unwrap();
    let mounted = Command::new("mount").args(["-o", "remount,ro"]).arg(&dir).status().unwrap();
    assert!(mounted.success());
    let error = refusal(Store::open(&dir.join("a"), &name("a"), None));
    assert!(error.to_string().contains("mount it writable"), "{error}");
    let made = Store::found(&dir.join("b"), &founding()).unwrap_err();
    assert!(made.to_string().contains("mount it writable"), "{made}");
    let missing = refusal(Store::open(&dir.join("c"), &name("a"), None));
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
}
