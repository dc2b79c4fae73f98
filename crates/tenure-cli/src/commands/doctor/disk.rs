//! The store: whether it is there, on a disk, quick enough, and nobody else's.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::finding::Finding;
use crate::clock::clock;
use crate::output::readable;
use crate::settings::Settings;
use crate::trust::{Flaw, Secrecy};

/// How often a write is timed.
const WRITES: usize = 20;

/// tmpfs and ramfs, as the kernel numbers them.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Whether a folder is in memory, and gone after a reboot.
pub(super) fn is_in_memory(folder: &Path) -> io::Result<bool> {
    let kind = rustix::fs::statfs(folder)?.f_type;
    Ok(u64::try_from(kind).is_ok_and(|kind| IN_MEMORY.contains(&(kind & 0xffff_ffff))))
}

/// Whether the store is there, and on a disk.
pub(super) fn store(folder: &Path) -> Finding {
    const CHECK: &str = "store";
    let shown = folder.display();
    if !folder.is_dir() {
        return Finding::bad(
            CHECK,
            format!("{shown} is not there"),
            "found the cluster with `tenure init`, or let this node join with `tenure node --join`; if the disk was lost, see `tenure members replace`",
        );
    }
    match is_in_memory(folder) {
        Ok(true) => Finding::bad(
            CHECK,
            format!("{shown} is in memory: after a reboot this member would have forgotten its promises"),
            "put the store on a disk: move the folder while the daemon is stopped, and change `store`",
        ),
        Ok(false) => Finding::ok(CHECK, format!("{shown} is on a disk")),
        Err(error) => Finding::bad(CHECK, format!("{shown}: {error}"), "run as the daemon's user"),
    }
}

/// How long it takes until something is on the disk.
pub(super) fn fsync(folder: &Path, lease: Duration) -> Finding {
    const CHECK: &str = "fsync";
    match timed_writes(folder) {
        Ok(times) => judge_fsync(&times, lease),
        Err(error) => Finding::warn(
            CHECK,
            format!("{} cannot be written by this user: {error}", folder.display()),
            "run as the daemon's user to measure it",
        ),
    }
}

fn judge_fsync(times: &[Duration], lease: Duration) -> Finding {
    const CHECK: &str = "fsync";
    let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
    let found = format!("{} in the middle, {} at most, of {}", readable(median), readable(most), times.len());
    if median > Duration::from_millis(100) || most > lease / 2 {
        return Finding::warn(
            CHECK,
            format!("{found}: elections that need the disk may wait for it"),
            "put the store on a quicker disk; renewals never wait",
        );
    }
    Finding::ok(CHECK, found)
}

/// Times of small writes until they are on the disk, sorted. Nothing is left behind.
fn timed_writes(folder: &Path) -> io::Result<Vec<Duration>> {
    let path = writable(folder).join(format!(".tenure-doctor-{}", std::process::id()));
    let timed = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let mut times = Vec::with_capacity(WRITES);
        for _ in 0..WRITES {
            let start = clock();
            file.write_all(&[0; 512])?;
            file.sync_all()?;
            times.push(clock() - start);
        }
        times.sort_unstable();
        Ok(times)
    };
    let result = timed();
    let _ = fs::remove_file(&path); // If it cannot be removed, it was not made either.
    result
}

/// Beside the store, on the same disk, so that no strange file comes into it; within it if there is
/// no other way.
fn writable(folder: &Path) -> PathBuf {
    let device = |path: &Path| fs::metadata(path).ok().map(|about| about.dev());
    let beside = match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => folder,
    };
    if !folder.is_dir() || device(beside) == device(folder) { beside.to_owned() } else { folder.to_owned() }
}

/// Whether others can read or write what they must not: keys, tokens, keys of TLS, and the store.
pub(super) fn permissions(settings: &Settings, store: Option<&Path>) -> Finding {
    const CHECK: &str = "permissions";
    let (mut kept, mut shared) = (Vec::new(), None);
    for (key, path, secrecy) in settings.secrecy() {
        let about = |flaw: &Flaw| format!("{key} {}: {}", path.display(), flaw.what);
        match secrecy {
            Secrecy::Broken(flaw) => return Finding::bad(CHECK, about(&flaw), flaw.advice),
            Secrecy::Shared(flaw) => shared = Some(Finding::warn(CHECK, about(&flaw), flaw.advice)),
            Secrecy::Kept => kept.push(key),
        }
    }
    // A store that is missing is told of by another check.
    if let Some((path, about)) = store.and_then(|path| Some((path, fs::metadata(path).ok()?))) {
        let mode = about.permissions().mode() & 0o777;
        if mode & 0o022 != 0 {
            let says = format!("{} is open to others (mode {mode:03o})", path.display());
            return Finding::bad(CHECK, says, format!("`chmod 700 {}`", path.display()));
        }
        kept.push("store");
    }
    match shared {
        Some(finding) => finding,
        None if kept.is_empty() => Finding::ok(CHECK, "no secrets and no store in files"),
        None => Finding::ok(CHECK, format!("only their owner can change them: {}", kept.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn a_store_in_memory_is_bad_and_one_on_a_disk_is_not() {
        let disk = tempfile::tempdir_in(".").unwrap();
        assert_eq!(store(disk.path()).state, State::Ok);
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        assert_eq!(store(memory.path()).state, State::Bad);
        assert_eq!(store(Path::new("/nowhere/store")).state, State::Bad);
    }

    #[test]
    fn writes_are_timed_and_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        fs::create_dir(&store).unwrap();
        let times = timed_writes(&store).unwrap();
        assert!(times.len() == WRITES && times.is_sorted());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
    }

    #[test]
    fn a_slow_disk_is_told() {
        let times = |millis| vec![Duration::from_millis(millis); 20];
        let lease = Duration::from_secs(2);
        assert_eq!(judge_fsync(&times(3), lease).state, State::Ok);
        assert_eq!(judge_fsync(&times(150), lease).state, State::Warn);
        assert_eq!(judge_fsync(&times(30), Duration::from_millis(50)).state, State::Warn);
    }

    #[test]
    fn a_secret_that_others_can_read_is_bad_and_one_that_a_group_can_read_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        fs::write(&key, "x").unwrap();
        for setting in ["key_file = \"key\"", "[daemon]\ntls_key = \"key\"", "[client]\ntoken_file = \"key\""]
        {
            let path = folder.path().join("tenure.toml");
            let settings = Settings::read(&path, format!("name = \"a\"\n{setting}\n")).unwrap();
            let found = |mode| {
                fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
                permissions(&settings, Some(folder.path()))
            };
            let finding = found(0o644);
            assert_eq!(finding.state, State::Bad, "{setting}");
            assert!(finding.advice.unwrap().contains("chmod 600"));
            std::os::unix::fs::chown(&key, None, Some(50))
                .unwrap_or_else(|_| println!("the group stays: not root"));
            assert_ne!(found(0o640).state, State::Bad, "{setting}");
            assert_eq!(found(0o600).state, State::Ok, "{setting}");
        }
    }
}
