//! Heartbeats in shared memory: a file on tmpfs with a slot for each process that works for a
//! leader.
//!
//! A process writes the boot clock into its own slot, four thousand times a second: the clock is
//! one for the whole machine, so the beats of different processes compare, and say exactly who
//! worked when. Nobody's scheduling can falsify that.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Where slots begin, and how far apart they are.
const SLOT: u64 = 64;

/// One heartbeat of a process, as it wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) pid: u64,
    /// Which runner's.
    pub(crate) owner: u64,
    /// The leadership: no two of one owner have the same.
    pub(crate) term: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// 1 if it is the command itself, 0 if the command has forked it.
    pub(crate) main: u64,
}

/// The file.
#[derive(Debug)]
pub(crate) struct Beats(File);

impl Beats {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(SLOT)?;
        Ok(Self(file))
    }

    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().read(true).write(true).open(path)?))
    }

    /// How many slots are taken.
    pub(crate) fn count(&self) -> u64 {
        self.number(0)
    }

    pub(crate) fn slot(&self, index: u64) -> Beat {
        let [pid, owner, term, first, last, main] =
            [0, 8, 16, 24, 32, 40].map(|place| self.number(at(index) + place));
        Beat { pid, owner, term, first, last, main }
    }

    pub(crate) fn all(&self) -> Vec<Beat> {
        (0..self.count()).map(|index| self.slot(index)).collect()
    }

    /// Takes a slot. One at a time: the lock goes with the file, or with its holder's death.
    pub(crate) fn enter(&self, beat: Beat) -> io::Result<u64> {
        flock(&self.0, FlockOperation::LockExclusive)?;
        let index = self.count();
        let words = [beat.pid, beat.owner, beat.term, beat.first, beat.last, beat.main];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.0.write_all_at(&bytes, at(index))?;
        self.0.write_all_at(&(index + 1).to_le_bytes(), 0)?;
        flock(&self.0, FlockOperation::Unlock)?;
        Ok(index)
    }

    pub(crate) fn beat(&self, index: u64, now: u64) -> io::Result<()> {
        self.0.write_all_at(&now.to_le_bytes(), at(index) + 32)
    }

    fn number(&self, place: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, place).map_or(0, |()| u64::from_le_bytes(bytes))
    }
}

fn at(index: u64) -> u64 {
    SLOT * (index + 1)
}
