//! Memories that nobody needs any more are removed: of clusters that are gone, of members that were
//! given up, of tests.
//!
//! Which store a memory belongs to is not known here, nor whether that store still exists. It need
//! not be: a start without its memory is silent for a longest lease, and safe. So a memory may go
//! if no process has it, and
//!
//! * it is of another boot or clock: no life would believe it; or
//! * its promises ended, and its file was made, more than [`LONG`] ago. If its member should start
//!   again after all, that start is silent once.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tenure_proto::LocalTime;
use tenure_proto::boot::BootId;
use tenure_proto::strong::Cell;

use super::mapped::Mapped;
use super::open_locked;
use super::table::{Header, Table};
use crate::sys::at;
use crate::sys::clock::{Which, read};

/// How old the promises of a memory must be.
const LONG: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes memories beside `own` that nobody needs. Says how many.
pub(crate) fn sweep(own: &Path, here: BootId, now: LocalTime) -> usize {
    let Some(folder) = own.parent() else { return 0 };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let others = entries.map(|entry| entry.path()).filter(|path| path != own && is_memory(path));
    others.filter(|path| remove_if_old(path, here, now).is_some()).count()
}

/// Whether a path is one that a memory may have, and a file of this user.
fn is_memory(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let rest = name.strip_prefix("tenure-").and_then(|rest| rest.split_at_checked(32));
    let is_named = rest.is_some_and(|(cluster, node)| {
        cluster.bytes().all(|byte| byte.is_ascii_hexdigit()) && node.len() > 1 && node.starts_with('-')
    });
    is_named && fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.uid() == at::user())
}

/// Removes a memory while no other process can take it.
fn remove_if_old(path: &Path, here: BootId, now: LocalTime) -> Option<()> {
    let lock = open_locked(path).ok()?;
    let made = lock.file().metadata().and_then(|found| found.modified()).ok()?;
    let mapped = Mapped::existing(lock.file()).ok().flatten();
    let is_old = match mapped.and_then(|mapped| Some((Header::read(&mapped)?, mapped))) {
        // A memory that was given up, or was never used: nobody believes it.
        None => is_long_ago(made),
        Some((header, _)) if !header.boot.is_same_boot(&here) => true,
        Some((_, mapped)) => {
            let cells = Table::load(mapped).map(|(_, cells)| cells).unwrap_or_default();
            let last = cells.iter().map(end_of).max().unwrap_or(LocalTime::ZERO);
            is_long_ago(made) && Duration::from_nanos(now.remaining(last).as_nanos()) > LONG
        }
    };
    is_old.then(|| fs::remove_file(path).ok()).flatten()
}

fn is_long_ago(made: SystemTime) -> bool {
    wall_clock().duration_since(made).is_ok_and(|age| age > LONG)
}

fn wall_clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(read(Which::Real))
}

/// When something that was remembered counts no more.
fn end_of(cell: &Cell) -> LocalTime {
    match cell {
        Cell::Grant(_, Some(grant)) => grant.until,
        Cell::Silence(until) => *until,
        Cell::Adopted { at, young_until, .. } => (*at).max(*young_until),
        _ => LocalTime::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tenure_proto::Incarnation;

    use super::super::Memory;
    use super::super::tests::grant;
    use super::*;
    use crate::store::StoreId;

    const HERE: BootId = BootId { boot: 9, clock_offset: 0, slept: 0, marker: 0 };
    const DAY: u64 = 24 * 3600 * 1_000_000_000;

    fn left(dir: &TempDir, number: u8, boot: BootId, age: Duration) -> (std::path::PathBuf, Memory) {
        let path = dir.path().join(format!("tenure-{number:032x}-n1"));
        let (mut memory, _) = Memory::open(&path, StoreId(number.into()), boot, Incarnation(1)).unwrap();
        assert!(memory.trouble().is_none(), "{:?}", memory.trouble());
        memory.claim();
        memory.remember(&grant(1, DAY));
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(wall_clock() - age).unwrap();
        (path, memory)
    }

    #[test]
    fn only_memories_that_nobody_has_and_nobody_needs_are_removed() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let (month, now) = (Duration::from_secs(30 * 24 * 3600), LocalTime::from_nanos(30 * DAY));
        let other = BootId { boot: 8, ..HERE };
        let (own, _own) = left(&dir, 1, HERE, month);
        let (of_other_boot, memory) = left(&dir, 2, other, Duration::ZERO);
        drop(memory);
        let (in_use, _in_use) = left(&dir, 3, other, month);
        let (long_over, memory) = left(&dir, 4, HERE, month);
        drop(memory);
        let (young, memory) = left(&dir, 5, HERE, Duration::ZERO);
        drop(memory);
        let strange = dir.path().join("tenure-notes");
        fs::write(&strange, "mine").unwrap();
        assert_eq!(sweep(&own, HERE, LocalTime::from_nanos(3 * DAY)), 1, "promises of two days ago stay");
        assert!(!of_other_boot.exists() && long_over.exists());
        assert_eq!(sweep(&own, HERE, now), 1);
        assert!(!long_over.exists());
        assert!([own, in_use, young, strange].iter().all(|path| path.exists()));
    }
}
