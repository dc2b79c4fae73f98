//! Heartbeats in shared memory: a file on tmpfs with a slot for each process that works for a
//! leader.
//!
//! A process writes the boot clock into its own slot, again and again: the clock is one for the
//! whole machine, so the beats of different processes compare, and say exactly who worked when.
//! Nobody's scheduling can falsify that.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Where slots begin, and how far apart they are.
const SLOT: u64 = 64;

/// One heartbeat of a process, as it wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// Its number.
    pub pid: u64,
    /// Which runner's.
    pub owner: u64,
    /// The leadership: no two of one owner have the same.
    pub term: u64,
    /// The first and the newest reading of the boot clock.
    pub first: u64,
    /// See above.
    pub last: u64,
    /// 1 if it is the command itself, 0 if the command has forked it.
    pub main: u64,
}

/// The file.
#[derive(Debug)]
pub struct Beats(File);

impl Beats {
    /// An empty one.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(SLOT)?;
        Ok(Self(file))
    }

    /// One that another process has made.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().read(true).write(true).open(path)?))
    }

    /// How many slots are taken.
    pub fn count(&self) -> u64 {
        self.number(0)
    }

    /// A slot as it is now.
    pub fn slot(&self, index: u64) -> Beat {
        let [pid, owner, term, first, last, main] =
            [0, 8, 16, 24, 32, 40].map(|place| self.number(at(index) + place));
        Beat { pid, owner, term, first, last, main }
    }

    /// All slots as they are now.
    pub fn all(&self) -> Vec<Beat> {
        (0..self.count()).map(|index| self.slot(index)).collect()
    }

    /// Takes a slot. One at a time: the lock goes with the file, or with its holder's death.
    pub fn enter(&self, beat: Beat) -> io::Result<u64> {
        flock(&self.0, FlockOperation::LockExclusive)?;
        let index = self.count();
        let words = [beat.pid, beat.owner, beat.term, beat.first, beat.last, beat.main];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.0.write_all_at(&bytes, at(index))?;
        self.0.write_all_at(&(index + 1).to_le_bytes(), 0)?;
        flock(&self.0, FlockOperation::Unlock)?;
        Ok(index)
    }

    /// The owner of a slot is alive at this reading.
    pub fn beat(&self, index: u64, now: u64) -> io::Result<()> {
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
