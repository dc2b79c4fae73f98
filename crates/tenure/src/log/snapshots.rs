//! Snapshots are files of their own, in the folder of the log. The machine, its records and the
//! messages between its parts have only the name of one ([`Held`]), so that no state is in memory
//! twice.
//!
//! ```text
//!   | kept answers | length of the state | state | panics among the answers | sum |
//! ```
//!
//! All but the sum is as older versions have it within a record or message. A file is written in
//! pieces, by the state machine or by another member. When it is whole it is read once for its sum,
//! made durable, and named; only then does the machine hear of it. So the name of a file means that
//! its content is on the disk. A file without its name is the rest of a crash, and means nothing.
//!
//! A file is deleted when no record on the disk names it ([`Snapshots::keep_only`]). One that is
//! being sent, or that the state may be built from again, is open, and so can be read to its end.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write as _};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use tokio::task::spawn_blocking;

use super::state::Snapshot;
use crate::chance;
use crate::codec::{DecodeError, Reader, Writer};
use crate::store::sync_folder;

/// How many bytes of a snapshot are in memory at once.
const PIECE: usize = 1 << 20;

/// After so many bytes a file that is being written is synced: one sync of all of it at the end
/// would hold up those of the log.
const PACE: u64 = 2 << 20;

/// The bytes of the length of a state: as many for every length, because it is written last.
const LENGTH: usize = 10;

const SUM: u64 = SHA256_OUTPUT_LEN as u64;

/// The bytes before all others that a sum is over.
const SUM_OF: &[u8] = b"tenure log snapshot 1";

/// How what stands for a state begins.
const MARK: [u8; 16] = *b"\xfftenure snapshot";

/// A snapshot that is in a file: what the machine has in place of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Held {
    id: u128,
    /// Of the file.
    pub(super) length: u64,
}

impl Held {
    pub(super) fn to_state(self) -> Arc<[u8]> {
        let mut to = Writer::new();
        to.raw(&MARK);
        to.wide(self.id);
        to.number(self.length);
        to.into_bytes().into()
    }

    /// The same file with another length.
    #[cfg(test)]
    pub(super) fn of_length(self, length: u64) -> Self {
        Self { length, ..self }
    }

    /// None if it is the state itself, as older versions kept it.
    pub(super) fn of_state(state: &[u8]) -> Option<Self> {
        let mut from = Reader::new(state.strip_prefix(&MARK)?);
        let held = Self { id: from.wide().ok()?, length: from.number().ok()? };
        (from.is_empty() && held.length >= SUM).then_some(held)
    }
}

/// The files of the snapshots of a log.
#[derive(Clone, Debug)]
pub(super) struct Snapshots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    /// Files that no record names yet.
    fresh: Mutex<BTreeSet<u128>>,
}

impl Snapshots {
    pub(super) fn new(folder: &Path) -> Self {
        Self(Arc::new(Inner { folder: folder.to_path_buf(), fresh: Mutex::default() }))
    }

    fn fresh(&self) -> MutexGuard<'_, BTreeSet<u128>> {
        self.0.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn path(&self, held: Held) -> PathBuf {
        self.0.folder.join(format!("snapshot-{:032x}", held.id))
    }

    /// Begins a file.
    pub(super) fn begin(&self) -> io::Result<Unfinished> {
        let id = chance::wide();
        let path = self.0.folder.join(format!("snapshot-{id:032x}.new"));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        self.fresh().insert(id);
        let file = Arc::new(file);
        let failed = Arc::new(AtomicBool::new(false));
        Ok(Unfinished { file, path: Some(path), id, length: 0, synced: 0, failed, snapshots: self.clone() })
    }

    /// Makes a snapshot, or says why there is none.
    pub(super) fn make(&self, answers: &[u8], state: Snapshot, panics: &[u8]) -> Result<Held, String> {
        let begun = self.begin().and_then(|file| {
            let mut to = BufWriter::with_capacity(PIECE, file);
            to.write_all(answers)?;
            to.write_all(&length_of(0))?;
            Ok(to)
        });
        let mut to = begun.map_err(|error| error.to_string())?;
        state.write(&mut to)?;
        let made = to.into_inner().map_err(io::IntoInnerError::into_error).and_then(|mut file| {
            let at = answers.len() as u64;
            file.file.write_all_at(&length_of(file.length - at - LENGTH as u64), at)?;
            file.write_all(panics)?;
            file.seal()
        });
        made.map_err(|error| error.to_string())
    }

    /// Puts a snapshot into a file that came as bytes, of an older version.
    pub(super) fn put(&self, bytes: &[u8]) -> io::Result<Held> {
        let mut file = self.begin()?;
        file.write_all(bytes)?;
        file.seal()
    }

    /// Opens a snapshot, to be read for as long as it is open.
    pub(super) fn open(&self, held: Held) -> io::Result<Opened> {
        let file = File::open(self.path(held))?;
        if file.metadata()?.len() != held.length {
            return Err(io::Error::other("a snapshot is not as long as it was"));
        }
        Ok(Opened { file: Arc::new(file), length: held.length - SUM })
    }

    /// Whether a snapshot is there, whole.
    pub(super) fn is_whole(&self, held: Held) -> io::Result<bool> {
        match self.open(held) {
            Ok(opened) => has_sum(&opened.file, held.length),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A record that names this snapshot has come to the disk's thread.
    pub(super) fn is_recorded(&self, held: Held) {
        self.fresh().remove(&held.id);
    }

    /// The machine did not take this snapshot.
    pub(super) fn drop_unused(&self, held: Held) {
        self.fresh().remove(&held.id);
        let _ = fs::remove_file(self.path(held));
    }

    /// Deletes all files that neither these nor records still to come name.
    pub(super) fn keep_only(&self, named: &BTreeSet<Held>) {
        let fresh = self.fresh();
        let Ok(entries) = fs::read_dir(&self.0.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.strip_prefix("snapshot-")) else { continue };
            let id = u128::from_str_radix(id.trim_end_matches(".new"), 16);
            let kept = id.is_ok_and(|id| fresh.contains(&id) || named.iter().any(|held| held.id == id));
            if !kept {
                let _ = fs::remove_file(entry.path()); // Tried again with the next new file.
            }
        }
    }
}

/// A snapshot that is being written. Dropped before it has its name, it is deleted.
#[derive(Debug)]
pub(super) struct Unfinished {
    file: Arc<File>,
    path: Option<PathBuf>,
    id: u128,
    /// How many bytes were written.
    pub(super) length: u64,
    synced: u64,
    /// A write or a sync has failed, perhaps where nobody waited for it: the file is never named.
    /// After a failed sync, the next one succeeds although the bytes are not on the disk.
    failed: Arc<AtomicBool>,
    snapshots: Snapshots,
}

impl io::Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.length + bytes.len() as u64;
        let syncs = end - self.synced >= PACE;
        put_at(&self.file, bytes, self.length, syncs, &self.failed)?;
        self.length = end;
        if syncs {
            self.synced = end;
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Unfinished {
    /// Writes more, where it holds up no other task. A dropped future may have written it.
    pub(super) async fn add(&mut self, piece: Vec<u8>) -> io::Result<()> {
        let (file, at, end) = (self.file.clone(), self.length, self.length + piece.len() as u64);
        let syncs = end - self.synced >= PACE;
        let failed = self.failed.clone();
        let write = move || put_at(&file, &piece, at, syncs, &failed);
        spawn_blocking(write).await.map_err(io::Error::other)??;
        self.length = end;
        if syncs {
            self.synced = end;
        }
        Ok(())
    }

    /// Adds the sum, and names the file.
    pub(super) fn seal(mut self) -> io::Result<Held> {
        let sum = sum_of(&self.file, self.length)?;
        self.write_all(&sum)?;
        self.name()
    }

    /// Names the file, if it ends with its sum.
    pub(super) fn check(self) -> io::Result<Held> {
        if !has_sum(&self.file, self.length)? {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not what its sum says"));
        }
        self.name()
    }

    fn name(mut self) -> io::Result<Held> {
        let held = Held { id: self.id, length: self.length };
        self.file.sync_all()?;
        if self.failed.load(Relaxed) {
            return Err(io::Error::other("a part of it could not be written"));
        }
        if let Some(path) = &self.path {
            fs::rename(path, self.snapshots.path(held))?;
        }
        self.path = None;
        sync_folder(&self.snapshots.0.folder)?;
        Ok(held)
    }
}

/// Writes at a place, syncs if asked, and remembers a failure.
fn put_at(file: &File, bytes: &[u8], at: u64, syncs: bool, failed: &AtomicBool) -> io::Result<()> {
    let written = file.write_all_at(bytes, at);
    let done = written.and_then(|()| if syncs { file.sync_data() } else { Ok(()) });
    done.inspect_err(|_| failed.store(true, Relaxed))
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            self.snapshots.fresh().remove(&self.id);
            let _ = fs::remove_file(path);
        }
    }
}

/// A snapshot that can be read, though its file may be deleted meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    file: Arc<File>,
    /// Without the sum.
    length: u64,
}

/// The parts of a snapshot.
pub(super) struct Parts {
    pub(super) state: State,
    pub(super) panics: Vec<u8>,
}

impl Opened {
    /// Reads the answers, and says where the state is.
    pub(super) fn parts<T>(
        &self,
        mut answers: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> io::Result<Parts> {
        let mut room = PIECE as u64;
        let (at, length) = loop {
            let head = read(&self.file, 0..room.min(self.length))?;
            let mut from = Reader::new(&head);
            match answers(&mut from).and_then(|_| from.number()) {
                Ok(length) => break ((head.len() - from.left()) as u64, length),
                Err(DecodeError::Truncated) if room < self.length => room *= 2,
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
        };
        let end = at.checked_add(length).filter(|end| *end <= self.length);
        let end = end.ok_or_else(|| io::Error::other("a state is longer than its snapshot"))?;
        let panics = read(&self.file, end..self.length)?;
        Ok(Parts { state: State { file: self.file.clone(), place: at..end }, panics })
    }

    /// The length of the whole, with its sum.
    pub(super) fn length(&self) -> u64 {
        self.length + SUM
    }

    /// About a mebibyte of the whole from there on.
    pub(super) fn read(&self, at: u64) -> io::Result<Vec<u8>> {
        read(&self.file, at..self.length().min(at + PIECE as u64))
    }
}

/// A state in a snapshot.
#[derive(Clone, Debug)]
pub(super) struct State {
    file: Arc<File>,
    place: Range<u64>,
}

impl State {
    pub(super) fn reader(&self) -> impl BufRead + use<> {
        BufReader::with_capacity(PIECE, Section { file: self.file.clone(), place: self.place.clone() })
    }
}

struct Section {
    file: Arc<File>,
    place: Range<u64>,
}

impl Read for Section {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.place.end - self.place.start).unwrap_or(usize::MAX);
        let most = into.len().min(left);
        let count = self.file.read_at(&mut into[..most], self.place.start)?;
        if count == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.place.start += count as u64;
        Ok(count)
    }
}

fn read(file: &File, place: Range<u64>) -> io::Result<Vec<u8>> {
    let length = usize::try_from(place.end - place.start).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, place.start)?;
    Ok(bytes)
}

/// The sum over the first bytes of a file.
fn sum_of(file: &File, length: u64) -> io::Result<[u8; SHA256_OUTPUT_LEN]> {
    let mut context = Context::new(&SHA256);
    context.update(SUM_OF);
    let (mut at, mut piece) = (0, vec![0; PIECE]);
    while at < length {
        let most = usize::try_from(length - at).unwrap_or(PIECE).min(PIECE);
        file.read_exact_at(&mut piece[..most], at)?;
        context.update(&piece[..most]);
        at += most as u64;
    }
    Ok(*context.finish().as_ref().first_chunk().expect("SHA-256 has 32 bytes"))
}

fn has_sum(file: &File, length: u64) -> io::Result<bool> {
    let Some(end) = length.checked_sub(SUM) else { return Ok(false) };
    Ok(read(file, end..length)? == sum_of(file, end)?)
}

/// A number in as many bytes as the largest needs: readers take it like any other.
fn length_of(length: u64) -> [u8; LENGTH] {
    std::array::from_fn(|at| {
        let bits = (length >> (7 * at)).to_le_bytes()[0] & 0x7f;
        if at + 1 < LENGTH { bits | 0x80 } else { bits }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn the_length_of_a_state_is_read_like_any_number() {
        for length in [0, 1, 127, 128, 1 << 40, u64::MAX] {
            let bytes = length_of(length);
            let mut from = Reader::new(&bytes);
            assert_eq!((from.number(), from.is_empty()), (Ok(length), true));
        }
    }

    #[test]
    fn a_state_that_was_written_in_pieces_is_read_in_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(dir.path());
        let state =
            Snapshot::streamed(|to| (0..3 << 20).try_for_each(|n: u32| to.write_all(&n.to_le_bytes()[..1])));
        let mut answers = Writer::new();
        answers.bytes(&vec![9; 3 * PIECE]);
        let held = snapshots.make(&answers.into_bytes(), state, b"panics").unwrap();
        assert_eq!(Held::of_state(&held.to_state()), Some(held));
        let parts = snapshots.open(held).unwrap().parts(|from| from.bytes(usize::MAX).map(drop)).unwrap();
        assert_eq!(parts.panics, b"panics");
        let mut state = Vec::new();
        parts.state.reader().read_to_end(&mut state).unwrap();
        assert!(
            state.len() == 3 << 20 && state.iter().enumerate().all(|(at, byte)| *byte == at.to_le_bytes()[0])
        );
    }

    #[test]
    fn a_snapshot_that_is_not_finished_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(dir.path());
        let fails = Snapshot::streamed(|to| {
            to.write_all(&[1; 2 * PIECE])?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(snapshots.make(b"", fails, b""), Err("no more".to_owned()));
        let panics = Snapshot::streamed(|_| panic!("broken"));
        assert_eq!(snapshots.make(b"", panics, b""), Err("broken".to_owned()));
        assert_eq!(files(dir.path()), 0);
    }

    #[test]
    fn a_file_to_which_a_write_failed_is_never_named_although_later_ones_succeed() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = Snapshots::new(dir.path()).begin().unwrap();
        let good = file.file.clone();
        file.file = Arc::new(File::open(file.path.as_ref().unwrap()).unwrap()); // Refuses writes.
        assert!(file.write(b"lost").is_err());
        file.file = good;
        file.write_all(b"kept").unwrap();
        assert!(file.seal().is_err());
        assert_eq!(files(dir.path()), 0);
    }

    #[test]
    fn rot_in_any_byte_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(dir.path());
        let held = snapshots.put(b"a state").unwrap();
        assert!(snapshots.is_whole(held).unwrap());
        let whole = fs::read(snapshots.path(held)).unwrap();
        for at in 0..whole.len() {
            let mut rotten = whole.clone();
            rotten[at] ^= 4;
            fs::write(snapshots.path(held), rotten).unwrap();
            assert!(!snapshots.is_whole(held).unwrap(), "byte {at}");
        }
    }

    #[test]
    fn files_that_nothing_names_are_deleted_and_an_open_one_is_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(dir.path());
        let [old, new] = [b"old", b"new"].map(|bytes| snapshots.put(bytes).unwrap());
        let opened = snapshots.open(old).unwrap();
        let unfinished = snapshots.begin().unwrap();
        snapshots.keep_only(&BTreeSet::new());
        assert_eq!(files(dir.path()), 3, "records of theirs may still come");
        [old, new].into_iter().for_each(|held| snapshots.is_recorded(held));
        snapshots.keep_only(&BTreeSet::from([new]));
        assert_eq!(files(dir.path()), 2);
        assert!(opened.read(0).unwrap().starts_with(b"old"));
        drop(unfinished);
        assert_eq!(files(dir.path()), 1);
        Snapshots::new(dir.path()).keep_only(&BTreeSet::new());
        assert_eq!(files(dir.path()), 0, "another life knows of no records to come");
    }
}
