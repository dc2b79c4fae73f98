//! Grants that survive the process, but not the boot.
//!
//! A grantor that forgets a grant must be silent until whatever it may have promised is over. A
//! restart of the process alone need not cost that: clocks run on, and a file in memory (tmpfs) is
//! still there. So each grant, and a silence or an adoption that still counts, is written into a
//! mapped file before the answer that relies on it leaves. That is no system call and no disk: some
//! thirty stores to memory (`table` says why it can be left at any of them).
//!
//! # When it is believed
//!
//! A memory that is not the last word of this very store is worse than none. It is believed only if
//! it was written in this boot, by this clock, for this store, by the life just before this one
//! ([`Boot::judge`]), and if the clock was not disturbed since by a suspend or a pause of the
//! virtual machine (`steady`); and each life makes it its own in this order:
//!
//! 1. The store's incarnation has been raised, durably
//!    ([`Store::open`](crate::store::Store::open)). Whatever is here now belongs to the life
//!    before. If this one is killed now, the next one finds it two lives old: silence.
//! 2. [`Memory::open`] reads it. If it is believed it stays as it is; otherwise all of it is wiped,
//!    and it has no header.
//! 3. The machine starts, and its first effects are carried out. One of them may be to remember a
//!    silence.
//! 4. [`Memory::claim`] writes the header with this life's incarnation. Not sooner: a memory that
//!    is this life's but does not yet know of its silence would cut that short at the next restart.
//! 5. Messages are handled, grants given.
//!
//! # When there is none
//!
//! If the folder is missing, is not in memory, can be written by other users, or is full, the node
//! runs all the same, and its restarts are silent: [`Memory::trouble`] says why. A memory that
//! could not be written once is erased: it would be believed, and be wrong. The same goes for a
//! file that somebody cuts while it is mapped (`sys::bus`): the node lives on, and the memory is
//! void.
//!
//! `sweep` removes memories of members that are gone. `place` says where the file lies. With
//! systemd, `RuntimeDirectoryPreserve=restart` keeps its folder over restarts.

mod boot;
mod mapped;
mod place;
mod sweep;
mod table;
#[cfg(test)]
pub(crate) mod tests;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tenure_proto::Incarnation;
use tenure_proto::boot::{Boot, BootId, BootKind, Memory as Found, Store};
use tenure_proto::strong::Cell;
use thiserror::Error;

use crate::lock::Lock;
use crate::name::{ClusterId, NodeName};
use crate::steady::Steady;
use crate::store::{StoreError, StoreId};
pub(crate) use boot::here;
use mapped::Mapped;
pub use place::memory_folder;
pub(crate) use sweep::sweep;
use table::{Header, Table};

/// Why nothing is remembered. The node runs; each of its restarts is silent for a longest lease.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The folder is missing.
    #[error(
        "there is no folder for {}: make it, in a tmpfs, or set another path; until then every restart of this node \
         is followed by a silence",
        path.display()
    )]
    NoFolder {
        /// The file that was to be in it.
        path: PathBuf,
    },
    /// The folder is on a disk, which could make the loop wait.
    #[error(
        "{} is not in memory: choose a folder in a tmpfs, such as /run or /dev/shm; until then every restart of this \
         node is followed by a silence",
        path.display()
    )]
    NotInMemory {
        /// The file that was to be there.
        path: PathBuf,
    },
    /// Another user could write it, or replace it.
    #[error(
        "{} cannot be trusted: {why}; set `memory` to a folder that only this user can write; until then every restart \
         of this node is followed by a silence",
        path.display()
    )]
    NotPrivate {
        /// The file, or its folder.
        path: PathBuf,
        /// The flaw in it.
        why: &'static str,
    },
    /// Somebody cut the file while it was in use.
    #[error(
        "somebody cut {} while it was in use: nothing is remembered any more, and the next restart of this node is \
         followed by a silence",
        path.display()
    )]
    Cut {
        /// The file.
        path: PathBuf,
    },
    /// Another process has it.
    #[error(
        "{} is in use by another process: give each node a file of its own; until then every restart of this node is \
         followed by a silence",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// This machine does not say which boot this is.
    #[error("{what} does not say which boot this is, so every restart of this node is followed by a silence")]
    NoBootId {
        /// The file that was read.
        what: &'static str,
    },
    /// The system refused, for example because the tmpfs is full.
    #[error(
        "cannot write {}: {source}; nothing is remembered, and every restart of this node is followed by a silence",
        path.display()
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The memory that survives the process, where there is a place for it.
pub(crate) struct Memory(State);

enum State {
    Kept(Box<Kept>),
    Lost(MemoryError),
}

struct Kept {
    table: Table<Mapped>,
    /// The header that names the owner of the file.
    header: Header,
    path: PathBuf,
    lock: Lock,
}

impl Kept {
    /// Makes the file worthless. Of what is mapped a part may be gone, so the file itself is
    /// emptied as well; if that fails, the part that is left has no header, or lacks slots below
    /// its mark: nobody believes it.
    fn erase(&self) {
        Header::erase(self.table.words());
        let _ = self.lock.file().set_len(0);
    }
}

impl Memory {
    /// Where the memory of a node is, given the folder that is configured.
    pub(crate) fn path(configured: Option<&Path>, cluster: ClusterId, me: &NodeName) -> PathBuf {
        let folder = place::choose(configured, |name| std::env::var_os(name));
        folder.join(format!("tenure-{cluster}-{me}"))
    }

    /// Opens the memory of a store for the life `writer`, and says what it holds of the one before.
    /// Its contents are for [`Boot::judge`]. The only error is the proof that the store is an old
    /// copy.
    pub(crate) fn open(
        path: &Path,
        owner: StoreId,
        here: BootId,
        writer: Incarnation,
    ) -> Result<(Self, Option<Found<Cell>>), StoreError> {
        let header = Header { owner, boot: here, writer };
        let taken = wait_for_lock(path).and_then(|lock| Ok((take(path, lock.file(), &header)?, lock)));
        let ((table, found), lock) = match taken {
            Ok(taken) => taken,
            // The store itself is locked, so a process that has this has a copy of the store.
            Err(MemoryError::InUse { path }) => return Err(StoreError::Twin { memory: path }),
            Err(error) => return Ok((Self::lost(error), None)),
        };
        match found {
            Some(found) if found.boot.is_same_boot(&here) && found.writer >= writer => {
                Err(StoreError::WentBack { store: writer.0.saturating_sub(1), memory: found.writer.0 })
            }
            found => {
                let kept = Kept { table, header, path: path.to_path_buf(), lock };
                Ok((Self(State::Kept(Box::new(kept))), found))
            }
        }
    }

    /// The grants that a member which is stopped has left, and changes nothing. `Ok(None)` if there
    /// is no memory.
    pub(crate) fn look(path: &Path, owner: StoreId) -> Result<Option<Vec<Cell>>, MemoryError> {
        let failed = |source| MemoryError::Io { path: path.to_path_buf(), source };
        if !path.try_exists().map_err(failed)? {
            return Ok(None);
        }
        let lock = open_locked(path)?;
        let mapped = Mapped::existing(lock.file()).map_err(failed)?;
        Ok(mapped.and_then(|mapped| read(mapped, owner)).map(|(_, found)| found.records))
    }

    /// Remembers nothing.
    pub(crate) fn lost(why: MemoryError) -> Self {
        Self(State::Lost(why))
    }

    /// Makes the memory this life's. To be called when all effects of the machine's start have been
    /// carried out, and before it handles anything.
    pub(crate) fn claim(&mut self) {
        let State::Kept(kept) = &self.0 else { return };
        kept.header.write(kept.table.words());
        if kept.table.words().is_lost() {
            kept.erase();
            self.0 = State::Lost(MemoryError::Cut { path: kept.path.clone() });
        }
    }

    /// The clock was disturbed, and the machine has begun its silence, which is remembered: from
    /// here on the memory is of the time after it. A process killed before this leaves one of the
    /// time before, which the next life does not believe.
    pub(crate) fn claim_anew(&mut self, steady: &Steady) {
        if let State::Kept(kept) = &mut self.0 {
            kept.header.boot = steady.in_boot(kept.header.boot);
        }
        self.claim();
    }

    /// Keeps a cell for a restart within this boot. When this returns it is kept, or the whole
    /// memory is void.
    pub(crate) fn remember(&mut self, cell: &Cell) {
        let State::Kept(kept) = &mut self.0 else { return };
        let why = match kept.table.put(cell) {
            _ if kept.table.words().is_lost() => MemoryError::Cut { path: kept.path.clone() },
            Err(source) => MemoryError::Io { path: kept.path.clone(), source },
            Ok(()) => return,
        };
        kept.erase();
        self.0 = State::Lost(why);
    }

    /// Why nothing is remembered, if so.
    pub(crate) fn trouble(&self) -> Option<&MemoryError> {
        match &self.0 {
            State::Kept(_) => None,
            State::Lost(why) => Some(why),
        }
    }
}

/// Keeps what is to be believed, and wipes anything else.
fn take(
    path: &Path,
    file: &File,
    header: &Header,
) -> Result<(Table<Mapped>, Option<Found<Cell>>), MemoryError> {
    let failed = |source| MemoryError::Io { path: path.to_path_buf(), source };
    let mapped = Mapped::existing(file).map_err(failed)?;
    let found = match mapped.and_then(|mapped| read(mapped, header.owner)) {
        // The caller refuses: nothing is touched.
        Some((table, found)) if found.boot.is_same_boot(&header.boot) && found.writer >= header.writer => {
            return Ok((table, Some(found)));
        }
        Some((mut table, found)) if is_believed(&found, header) => {
            table.repair();
            return Ok((table, Some(found)));
        }
        other => other.map(|(_, found)| found),
    };
    let table = Table::blank(Mapped::wiped(file).map_err(failed)?);
    Ok((table, found))
}

/// Reads a memory of this store, where there is no doubt.
fn read(mapped: Mapped, owner: StoreId) -> Option<(Table<Mapped>, Found<Cell>)> {
    let Header { boot, writer, .. } = Header::read(&mapped).filter(|header| header.owner == owner)?;
    let (table, records) = Table::load(mapped)?;
    Some((table, Found { boot, writer, records }))
}

/// The judgement that the machine's start is made by.
fn is_believed(found: &Found<Cell>, header: &Header) -> bool {
    let Some(former) = header.writer.0.checked_sub(1) else { return false };
    let store = Store::Used(Incarnation(former), Vec::new());
    let boot = Boot::judge(store, Some(found.clone()), header.boot);
    matches!(boot.kind, BootKind::SameBoot { .. })
}

/// How often a memory that another process has is tried again, and after which pause.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Takes a memory, which another member that starts on this host may have for a moment to look
/// whether it is old (`sweep`). A process that runs keeps it for good.
fn wait_for_lock(path: &Path) -> Result<Lock, MemoryError> {
    for _ in 0..LOCK_TRIES {
        match open_locked(path) {
            Err(MemoryError::InUse { .. }) => thread::sleep(LOCK_PAUSE),
            taken => return taken,
        }
    }
    open_locked(path)
}

fn open_locked(path: &Path) -> Result<Lock, MemoryError> {
    let here = || path.to_path_buf();
    let lock = Lock::take(place::open(path)?).map_err(|error| match error {
        TryLockError::WouldBlock => MemoryError::InUse { path: here() },
        TryLockError::Error(source) => MemoryError::Io { path: here(), source },
    })?;
    // Once more, now that no other life can remove or rename it meanwhile.
    place::verify(lock.file(), path)?;
    Ok(lock)
}
