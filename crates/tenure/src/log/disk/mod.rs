//! The durable state of an acceptor, and the log that it need not learn anew: one file, written at
//! its end.
//!
//! # Writing
//!
//! All records that wait become one frame, written at the end of the file and made durable by one
//! sync (`file` says what that survives). While the disk is busy further records gather: under load
//! many slots share a sync, and when there is none each has its own.
//!
//! A snapshot is not appended: a new file is written beside the old one, with the snapshot and
//! whatever it does not make worthless, and takes its name. So the file is never much longer than
//! the state and the writes since the last snapshot. For a while there are two: a long one is
//! written on a thread of its own, and records go on to the old one meanwhile (`beside`). Where
//! there is no room for that, snapshot and base are put off, both of them: the file still has all
//! that they would replace, as if the snapshot had not been made yet. Records are appended
//! meanwhile, and the new file is tried again. The statements of this process about slots below a
//! base that is put off rest on those slots being chosen, so on records of f+1 members, and those
//! are deleted nowhere before a snapshot is durable.
//!
//! # Opening
//!
//! The folder is locked, the file is read, a torn tail is dropped, and everything is written to a
//! new file, with the number of this life. The records that were found may have been in the cache
//! of the system only, where a sync has failed: now they are on the disk.
//!
//! A record of a snapshot has only the name of its file (`snapshots`), which is whole before the
//! record is written. It is read once for its sum, and all files that no record names are deleted.
//! A snapshot that an older version kept in the record itself is put into a file.
//!
//! Where there is no room for a new file, the old one is used further. A torn tail is cut off. A
//! sync can have failed after the last frame only, for nothing was written afterwards: that frame
//! is written once more, to the same place, and synced; then a frame with the number of this life.
//! For that frame a little room is kept in another file, which is then deleted.
//!
//! # Errors
//!
//! **A full disk** is waited out. A write that had no room has changed nothing that was confirmed;
//! the same frame is written to the same place until there is room, and meanwhile the log refuses
//! writes. **Any other error** ends the writer for good, as in [`store`](crate::store): after a
//! failed sync nobody knows what is on the disk.

mod beside;
mod file;
#[cfg(test)]
mod formats;
#[cfg(test)]
pub(super) mod tests;
mod writer;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_proto::boot::{Boot, BootKind};
use tenure_proto::log::{Cell, Record};
use tenure_proto::{Incarnation, Record as _};

use super::config::Checked;
use super::error::OpenError;
use super::snapshots::{Held, Snapshots};
use crate::chance;
use crate::lock::Lock;
use crate::store::{make_folder, sync_folder};
use beside::Making;
use file::{Head, head_frame, judge, life_frame, records_frame};
pub(super) use writer::{Durable, Writer};

/// The file of a log.
const FILE: &str = "log";

/// A new one before it has its name. One that is found was interrupted, and means nothing.
const NEW: &str = "log.new";

/// A file that keeps a little room, for the life after one that has filled the disk.
const ROOM: &str = "log.room";

/// How much.
const KEPT: usize = 16 << 10;

/// About how long a frame of a new file is: what is read and written in one piece.
const PIECE: usize = 8 << 20;

/// The file of a log in use. Nobody else can open it before this is dropped.
pub(super) struct Disk {
    place: Arc<dyn Place>,
    folder: PathBuf,
    head: Head,
    /// All that counts of what is in the file, as a new one would have it.
    cells: BTreeMap<Cell, Record>,
    /// The snapshot for which there was no room yet, and the base that is not true without it.
    put_off: BTreeMap<Cell, Record>,
    /// Whether there should be a new file, and was no room for it.
    crowded: bool,
    /// The new file that is being written.
    making: Option<Making>,
    file: Growing,
    snapshots: Snapshots,
    _lock: Lock,
}

/// A file, and where it goes on.
struct Growing {
    medium: Box<dyn Medium>,
    /// How long it is, as far as it is confirmed.
    end: u64,
    /// The number of the next frame.
    next: u64,
}

/// Where files come from. Tests put one in its place that has no room.
trait Place: Send + Sync {
    /// An empty one, whatever is there.
    fn make(&self, path: &Path) -> io::Result<Box<dyn Medium>>;
    /// The one that is there.
    fn take(&self, path: &Path) -> io::Result<Box<dyn Medium>>;
}

/// The file system.
struct Real;

impl Place for Real {
    fn make(&self, path: &Path) -> io::Result<Box<dyn Medium>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok(Box::new(file))
    }
    fn take(&self, path: &Path) -> io::Result<Box<dyn Medium>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }
}

/// The little that is asked of a file. Tests put a failing one in its place.
trait Medium: Send {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
    /// Gives back what a write without room has taken.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Medium for File {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// Makes the file of a member. `amnesiac` if there was one before that is lost.
pub(super) fn make(config: &Checked, amnesiac: bool) -> Result<(), OpenError> {
    let folder = &config.folder;
    make_folder(folder).map_err(OpenError::disk("make", folder))?;
    let _lock = lock(folder)?;
    let path = folder.join(FILE);
    if path.try_exists().map_err(OpenError::disk("look for", &path))? {
        return Err(OpenError::AlreadyThere { folder: folder.clone() });
    }
    let head = Head {
        salt: chance::wide(),
        cluster: config.cluster,
        log: config.log.clone(),
        me: config.me.clone(),
        members: config.members.iter().map(|(name, _)| name.clone()).collect(),
        faults: config.faults() as u64,
        amnesiac,
        life: None,
    };
    create(&Real, folder, &head, &BTreeMap::new()).map_err(OpenError::disk("make", &path))?;
    Ok(())
}

/// Opens the file of a member for this life, and looks after the file of its snapshot.
pub(super) fn take_up(config: &Checked) -> Result<(Disk, Boot<Record>), OpenError> {
    let (mut disk, mut boot) = open(config)?;
    let snapshots = &config.snapshots;
    for record in &mut boot.durable {
        let Record::Snapshot { state, .. } = record else { continue };
        if let Some(held) = Held::of_state(state) {
            let file = snapshots.path(held);
            if !snapshots.is_whole(held).map_err(OpenError::disk("read", &file))? {
                let what = "it is missing, or not as it was written";
                return Err(OpenError::Damaged { file, what });
            }
        } else {
            let failed = |error| OpenError::disk("write", &config.folder)(error);
            *state = snapshots.put(state).map_err(failed)?.to_state();
            disk.commit(&mut vec![record.clone()]).map_err(failed)?;
        }
    }
    disk.drop_unnamed();
    Ok((disk, boot))
}

/// Opens the file of a member for this life.
fn open(config: &Checked) -> Result<(Disk, Boot<Record>), OpenError> {
    open_at(config, Arc::new(Real))
}

fn open_at(config: &Checked, place: Arc<dyn Place>) -> Result<(Disk, Boot<Record>), OpenError> {
    let folder = &config.folder;
    let lock = lock(folder)?;
    let path = folder.join(FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::Missing { folder: folder.clone() });
        }
        Err(error) => return Err(OpenError::disk("read", &path)(error)),
    };
    let found = judge(&bytes).map_err(|what| OpenError::Damaged { file: path.clone(), what })?;
    let tail =
        Tail { at: found.last.start as u64, frame: bytes[found.last.clone()].to_vec(), next: found.next };
    drop(bytes);
    check(config, &found.head)?;
    if found.torn > 0 {
        tracing::warn!(name: "tenure.log_torn", log = %config.log, node = %config.me, bytes = found.torn, "the last write was interrupted, and is dropped: nobody was told of it");
    }
    let kind = match found.head.life {
        _ if found.head.amnesiac => BootKind::Amnesia,
        None => BootKind::Founding,
        Some(_) => BootKind::Rebooted,
    };
    let life = Incarnation(found.head.life.map_or(1, |life| life.0 + 1));
    let head = Head { life: Some(life), ..found.head };
    let mut cells = BTreeMap::new();
    found.records.into_iter().for_each(|record| put(&mut cells, record));
    let durable = cells.values().cloned().collect();
    let (file, head, crowded) =
        begin(&*place, folder, head, &cells, &tail).map_err(OpenError::disk("write", &path))?;
    let (folder, put_off, snapshots) = (folder.clone(), BTreeMap::new(), config.snapshots.clone());
    let disk =
        Disk { place, folder, head, cells, put_off, crowded, making: None, file, snapshots, _lock: lock };
    Ok((disk, Boot { incarnation: life, durable, kind }))
}

/// The end of a file that is there.
struct Tail {
    /// The last frame, and where it begins.
    frame: Vec<u8>,
    at: u64,
    /// The number of the next one.
    next: u64,
}

/// Begins a life, with a new file or, where there is no room for one, in the old one. True in that
/// case.
fn begin(
    place: &dyn Place,
    folder: &Path,
    head: Head,
    cells: &BTreeMap<Cell, Record>,
    tail: &Tail,
) -> io::Result<(Growing, Head, bool)> {
    let fresh = Head { salt: chance::wide(), ..head.clone() };
    match create(place, folder, &fresh, cells) {
        Ok(file) => Ok((file, fresh, false)),
        Err(error) if is_full(&error) => {
            say_crowded(&head);
            let file = match go_on(place, folder, &head, tail) {
                Err(error) if is_full(&error) && fs::remove_file(folder.join(ROOM)).is_ok() => {
                    go_on(place, folder, &head, tail)
                }
                file => file,
            };
            Ok((file?, head, true))
        }
        Err(error) => Err(error),
    }
}

/// Begins a life in the file that is there.
fn go_on(place: &dyn Place, folder: &Path, head: &Head, tail: &Tail) -> io::Result<Growing> {
    let mut medium = place.take(&folder.join(FILE))?;
    let end = tail.at + tail.frame.len() as u64;
    medium.cut(end)?;
    medium.write(tail.at, &tail.frame)?;
    medium.sync().map_err(not_full)?;
    let mut file = Growing { medium, end, next: tail.next };
    file.append(&life_frame(head.salt, tail.next, head.life.unwrap_or_default()))?;
    Ok(file)
}

fn say_crowded(head: &Head) {
    tracing::warn!(name: "tenure.log_crowded", log = %head.log, node = %head.me, "the disk has no room for a new file of the log: it goes on with the old one, and tries again");
}

impl Growing {
    /// Writes a frame at the end and makes it durable. If it fails for want of room, nothing has
    /// changed.
    fn append(&mut self, frame: &[u8]) -> io::Result<()> {
        if let Err(error) = self.medium.write(self.end, frame) {
            let _ = self.medium.cut(self.end);
            return Err(error);
        }
        self.medium.sync().map_err(not_full)?;
        self.end += frame.len() as u64;
        self.next += 1;
        Ok(())
    }

    /// Adds a frame to a file that has no name yet: if that fails for any reason, nothing rests on
    /// it.
    fn extend(&mut self, frame: &[u8]) -> io::Result<()> {
        self.medium.write(self.end, frame)?;
        self.medium.sync()?;
        self.end += frame.len() as u64;
        self.next += 1;
        Ok(())
    }
}

impl Disk {
    /// Makes these records durable, in order. If it fails for want of room, nothing has changed on
    /// the disk and it may be tried again, with those that are left. A snapshot without room is put
    /// off, which does not count as a failure.
    fn commit(&mut self, records: &mut Vec<Record>) -> io::Result<()> {
        self.look_at_new()?;
        records.iter().filter_map(held_by).for_each(|held| self.snapshots.is_recorded(held));
        let has_snapshot = records.iter().any(|record| record.key() == Cell::Snapshot);
        if has_snapshot && !self.is_making() && self.is_long(records) {
            self.put_off(records);
            self.begin_new();
        } else if has_snapshot && !self.is_making() {
            match self.renew(records) {
                Err(error) if is_full(&error) => {
                    if !std::mem::replace(&mut self.crowded, true) {
                        say_crowded(&self.head);
                    }
                    self.put_off(records);
                }
                done => return done,
            }
        } else if self.is_making() || !self.put_off.is_empty() {
            self.put_off(records);
        }
        if records.is_empty() {
            return Ok(());
        }
        self.file.append(&records_frame(self.head.salt, self.file.next, records))?;
        records.iter().for_each(|record| put(&mut self.cells, record.clone()));
        if let Some(making) = &mut self.making {
            making.note(records);
        }
        Ok(())
    }

    /// Takes snapshot and base from these records. The records that they would replace stay in the
    /// file.
    fn put_off(&mut self, records: &mut Vec<Record>) {
        let waits = |record: &mut Record| matches!(record.key(), Cell::Snapshot | Cell::Base);
        self.put_off.extend(records.extract_if(.., waits).map(|record| (record.key(), record)));
    }

    /// Makes these records durable by a new file that has only what still counts.
    fn renew(&mut self, records: &[Record]) -> io::Result<()> {
        let mut cells = self.cells.clone();
        self.put_off.values().chain(records).for_each(|record| put(&mut cells, record.clone()));
        let head = Head { salt: chance::wide(), ..self.head.clone() };
        self.file = create(&*self.place, &self.folder, &head, &cells)?;
        (self.head, self.cells) = (head, cells);
        self.put_off.clear();
        self.crowded = false;
        self.drop_unnamed();
        Ok(())
    }

    /// Deletes the snapshots that no record names any more.
    fn drop_unnamed(&self) {
        let all = self.cells.values().chain(self.put_off.values()).chain(self.being_made());
        self.snapshots.keep_only(&all.filter_map(held_by).collect());
    }

    /// Whether there should be a new file.
    fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Tries once more to write what was put off: by a new file, or, where its snapshot is on the
    /// disk by now, at the end of this one.
    fn catch_up(&mut self) -> io::Result<()> {
        let waits = self.crowded || self.put_off.contains_key(&Cell::Snapshot);
        if self.is_making() || !waits && self.put_off.is_empty() {
            return Ok(());
        }
        if waits && self.is_long(&[]) {
            self.begin_new();
            return Ok(());
        }
        if !waits {
            let records: Vec<Record> = std::mem::take(&mut self.put_off).into_values().collect();
            return self.commit(&mut records.clone()).or_else(|error| {
                self.put_off.extend(records.into_iter().map(|record| (record.key(), record)));
                if is_full(&error) { Ok(()) } else { Err(error) }
            });
        }
        match self.renew(&[]) {
            Err(error) if is_full(&error) => Ok(()),
            done => done,
        }
    }
}

/// The snapshot that a record names.
fn held_by(record: &Record) -> Option<Held> {
    if let Record::Snapshot { state, .. } = record { Held::of_state(state) } else { None }
}

/// After a failed sync nobody knows what is on the disk, whatever the reason: such an error must
/// not be waited out.
fn not_full(error: io::Error) -> io::Error {
    if is_full(&error) { io::Error::other(error.to_string()) } else { error }
}

/// Whether there was no room.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn put(cells: &mut BTreeMap<Cell, Record>, record: Record) {
    if let Record::Base(_) = record {
        cells.retain(|cell, _| !record.makes_worthless(cell));
    }
    cells.insert(record.key(), record);
}

/// Writes a whole new file, durably, and gives it its name.
fn create(
    place: &dyn Place,
    folder: &Path,
    head: &Head,
    cells: &BTreeMap<Cell, Record>,
) -> io::Result<Growing> {
    let path = folder.join(NEW);
    let written = write_new(place, &path, head, cells).and_then(|written| {
        name_new(folder)?;
        Ok(written)
    });
    match written {
        Ok(_) => keep_room(place, &folder.join(ROOM)),
        Err(_) => drop(fs::remove_file(&path)), // It takes room, and means nothing.
    }
    written
}

/// Gives a new file, which is whole and durable, its name.
fn name_new(folder: &Path) -> io::Result<()> {
    fs::rename(folder.join(NEW), folder.join(FILE)).map_err(not_full)?;
    sync_folder(folder).map_err(not_full)
}

/// Nothing rests on the new file before it has its name: where there is no room for it, not even
/// its sync has harmed anything.
fn write_new(
    place: &dyn Place,
    path: &Path,
    head: &Head,
    cells: &BTreeMap<Cell, Record>,
) -> io::Result<Growing> {
    let mut medium = place.make(path)?;
    let (mut end, mut next) = (0, 1);
    let mut add = |bytes: &[u8]| -> io::Result<()> {
        medium.write(end, bytes)?;
        end += bytes.len() as u64;
        Ok(())
    };
    add(&head_frame(head))?;
    let (mut piece, mut size) = (Vec::new(), 0);
    for record in cells.values() {
        size += size_of_record(record);
        piece.push(record.clone());
        if size >= PIECE {
            add(&records_frame(head.salt, next, &piece))?;
            next += 1;
            piece.clear();
            size = 0;
        }
    }
    if !piece.is_empty() {
        add(&records_frame(head.salt, next, &piece))?;
        next += 1;
    }
    medium.sync()?;
    Ok(Growing { medium, end, next })
}

/// Nothing rests on it but that a life can begin on a full disk: if it cannot be kept now, it is
/// tried with the next new file.
fn keep_room(place: &dyn Place, path: &Path) {
    if fs::metadata(path).is_ok_and(|there| there.len() == KEPT as u64) {
        return;
    }
    let noise: Vec<u8> = (0..KEPT / 16).flat_map(|_| chance::wide().to_be_bytes()).collect(); // Not to be compressed.
    let kept = place.make(path).and_then(|mut file| file.write(0, &noise).and_then(|()| file.sync()));
    if kept.is_err() {
        let _ = fs::remove_file(path);
    }
}

/// About how many bytes a record takes.
fn size_of_record(record: &Record) -> usize {
    use tenure_proto::log::Entry;
    match record {
        Record::Accepted { entry: Entry::Write { bytes, .. }, .. } => 64 + bytes.len(),
        Record::Snapshot { state, .. } => 64 + state.len(),
        _ => 64,
    }
}

fn lock(folder: &Path) -> Result<Lock, OpenError> {
    let file = match File::open(folder) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::Missing { folder: folder.to_path_buf() });
        }
        Err(error) => return Err(OpenError::disk("open", folder)(error)),
    };
    Lock::take(file).map_err(|error| match error {
        TryLockError::WouldBlock => OpenError::InUse { folder: folder.to_path_buf() },
        TryLockError::Error(error) => OpenError::disk("lock", folder)(error),
    })
}

/// Whose log this is.
fn check(config: &Checked, head: &Head) -> Result<(), OpenError> {
    let names = |names: &mut dyn Iterator<Item = String>| names.collect::<Vec<_>>().join(" ");
    let pairs = [
        ("cluster", head.cluster.to_string(), config.cluster.to_string()),
        ("log", head.log.to_string(), config.log.to_string()),
        ("name", head.me.to_string(), config.me.to_string()),
        (
            "members",
            names(&mut head.members.iter().map(ToString::to_string)),
            names(&mut config.members.iter().map(|(name, _)| name.to_string())),
        ),
        ("faults", head.faults.to_string(), config.faults().to_string()),
    ];
    match pairs.into_iter().find(|(_, found, wanted)| found != wanted) {
        None => Ok(()),
        Some((key, found, wanted)) => {
            Err(OpenError::Other { folder: config.folder.clone(), key, found, wanted })
        }
    }
}
