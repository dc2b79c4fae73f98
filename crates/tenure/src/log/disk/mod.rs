//! What an acceptor must never forget, and what spares it to learn the log anew: one file, written at its end.
//!
//! # What a write is
//!
//! All records that wait become one frame, written at the end of the file and made durable by one sync (`file` says what that survives). While
//! the disk is busy further records gather: under load many slots share a sync, and when there is none each has its own.
//!
//! A snapshot is not appended: a new file is written beside the old one, with the snapshot and whatever it does not make worthless, and
//! takes its name. So the file is never much longer than the state and the writes since the last snapshot.
//!
//! # What an open is
//!
//! The folder is locked, the file is read, a torn tail is dropped, and everything is written to a new file, with the number of this life.
//! What was found may have been in the cache of the system only, where a sync has failed: now it is on the disk.
//!
//! # Errors
//!
//! **A full disk** is waited out. A write that had no room has changed nothing that was confirmed; the same frame is written to the same place
//! until there is room, and meanwhile the log refuses writes. **Any other error** ends the writer for good, as in
//! [`store`](crate::store): after a failed sync nobody knows what is on the disk.

mod file;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tenure_proto::boot::{Boot, BootKind};
use tenure_proto::paxos::{Cell, Record};
use tenure_proto::{Incarnation, Record as _};

use super::config::Checked;
use super::error::OpenError;
use crate::chance;
use crate::lock::Lock;
use crate::store::{make_folder, sync_folder};
use file::{Head, head_frame, judge, records_frame};
pub(super) use writer::{Durable, Writer};

/// The file of a log.
const FILE: &str = "log";

/// A new one before it has its name. One that is found was interrupted, and means nothing.
const NEW: &str = "log.new";

/// About how long a frame of a new file is: what is read and written in one piece.
const PIECE: usize = 8 << 20;

/// The file of a log in use. Nobody else can open it before this is dropped.
pub(super) struct Disk {
    folder: PathBuf,
    head: Head,
    /// All that counts, as a new file would have it.
    cells: BTreeMap<Cell, Record>,
    file: Box<dyn Medium>,
    /// How long the file is, as far as it is confirmed.
    end: u64,
    /// The number of the next frame.
    next: u64,
    _lock: Lock,
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
    create(folder, &head, &BTreeMap::new()).map_err(OpenError::disk("make", &path))?;
    Ok(())
}

/// Opens the file of a member for this life.
pub(super) fn open(config: &Checked) -> Result<(Disk, Boot<Record>), OpenError> {
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
    let head = Head { salt: chance::wide(), life: Some(life), ..found.head };
    let mut cells = BTreeMap::new();
    found.records.into_iter().for_each(|record| put(&mut cells, record));
    let durable = cells.values().cloned().collect();
    let (file, end, next) = create(folder, &head, &cells).map_err(OpenError::disk("write", &path))?;
    let disk = Disk { folder: folder.clone(), head, cells, file: Box::new(file), end, next, _lock: lock };
    Ok((disk, Boot { incarnation: life, durable, kind }))
}

impl Disk {
    /// Makes these records durable, in order. If it fails for want of room, nothing has changed on the disk and it may be tried again.
    fn commit(&mut self, records: &[Record]) -> io::Result<()> {
        if records.iter().any(|record| matches!(record, Record::Snapshot { .. })) {
            return self.renew(records);
        }
        let frame = records_frame(self.head.salt, self.next, records);
        if let Err(error) = self.file.write(self.end, &frame) {
            let _ = self.file.cut(self.end);
            return Err(error);
        }
        self.file.sync().map_err(not_full)?;
        self.end += frame.len() as u64;
        self.next += 1;
        records.iter().for_each(|record| put(&mut self.cells, record.clone()));
        Ok(())
    }

    /// The same, by a new file that has only what still counts.
    fn renew(&mut self, records: &[Record]) -> io::Result<()> {
        let mut cells = self.cells.clone();
        records.iter().for_each(|record| put(&mut cells, record.clone()));
        let head = Head { salt: chance::wide(), ..self.head.clone() };
        let (file, end, next) = create(&self.folder, &head, &cells)?;
        (self.file, self.end, self.next) = (Box::new(file), end, next);
        (self.head, self.cells) = (head, cells);
        Ok(())
    }
}

/// After a failed sync nobody knows what is on the disk, whatever the reason: such an error must not be waited out.
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

/// Writes a whole new file, durably, and gives it its name. Returns its length and the number of its next frame.
fn create(folder: &Path, head: &Head, cells: &BTreeMap<Cell, Record>) -> io::Result<(File, u64, u64)> {
    let path = folder.join(NEW);
    let written = write_new(&path, head, cells).and_then(|written| {
        fs::rename(&path, folder.join(FILE)).map_err(not_full)?;
        sync_folder(folder).map_err(not_full)?;
        Ok(written)
    });
    if written.is_err() {
        let _ = fs::remove_file(&path); // It takes room, and means nothing.
    }
    written
}

/// Nothing rests on the new file before it has its name: where there is no room for it, not even its sync has harmed anything.
fn write_new(path: &Path, head: &Head, cells: &BTreeMap<Cell, Record>) -> io::Result<(File, u64, u64)> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let (mut end, mut next) = (0, 1);
    let mut add = |bytes: &[u8]| -> io::Result<()> {
        file.write_all_at(bytes, end)?;
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
    file.sync_all()?;
    Ok((file, end, next))
}

/// About how many bytes a record takes.
fn size_of_record(record: &Record) -> usize {
    use tenure_proto::paxos::Entry;
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
