//! The memory under kills at any store, under damage, and under every doubt about whose it is.

mod torn;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use tempfile::TempDir;
use tenure_proto::strong::epoch::Epoch;
use tenure_proto::strong::{Grant, Holder, InstanceId, Term};
use tenure_proto::time::LocalTime;
use tenure_proto::{GroupId, NodeId};

use super::*;
use crate::store::tests::child::{folder, passes_in_namespace};

const OWNER: StoreId = StoreId(5);
const HERE: BootId = BootId { boot: 9, clock_offset: 0, slept: 0, marker: 0 };

pub(crate) fn grant(group: u64, until: u64) -> Cell {
    let holder = Holder { node: NodeId(u64::MAX - group), incarnation: Incarnation(1 << 100) };
    let newest = InstanceId { holder, seq: until };
    let (epoch, term, until) = (Epoch(2), Term(until), LocalTime::from_nanos(until));
    Cell::Grant(GroupId(group), Some(Grant { holder, epoch, newest, term, until }))
}

fn silence(until: u64) -> Cell {
    Cell::Silence(LocalTime::from_nanos(until))
}

fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

fn open(dir: &TempDir, owner: StoreId, here: BootId, life: u128) -> (Memory, Option<Found<Cell>>) {
    let (memory, found) = Memory::open(&dir.path().join("memory"), owner, here, Incarnation(life)).unwrap();
    assert!(memory.trouble().is_none(), "{:?}", memory.trouble());
    (memory, found)
}

/// Cells of life `life - 1` that the start of a life in this boot may believe.
fn recalled(dir: &TempDir, owner: StoreId, here: BootId, life: u128) -> Option<Vec<Cell>> {
    let (_, found) = open(dir, owner, here, life);
    let store = Store::Used(Incarnation(life - 1), Vec::new());
    match Boot::judge(store, found, here).kind {
        BootKind::SameBoot { remembered } => Some(remembered),
        _ => None,
    }
}

/// A memory that life 3 left behind.
fn left_by_life_3() -> TempDir {
    let dir = in_memory();
    let (mut memory, _) = open(&dir, OWNER, HERE, 3);
    memory.remember(&silence(7));
    memory.claim();
    memory.remember(&grant(1, 100));
    memory.remember(&grant(1, 200));
    dir
}

#[test]
fn the_next_life_recalls_what_was_remembered() {
    let dir = left_by_life_3();
    assert_eq!(recalled(&dir, OWNER, HERE, 4), Some(vec![silence(7), grant(1, 200)]));
}

#[test]
fn what_was_recalled_is_still_there_for_the_life_after() {
    let dir = left_by_life_3();
    let (mut memory, _) = open(&dir, OWNER, HERE, 4);
    memory.claim();
    memory.remember(&grant(2, 300));
    drop(memory);
    assert_eq!(recalled(&dir, OWNER, HERE, 5), Some(vec![silence(7), grant(1, 200), grant(2, 300)]));
}

#[test]
fn a_grant_that_was_given_back_is_not_recalled() {
    let dir = left_by_life_3();
    let (mut memory, _) = open(&dir, OWNER, HERE, 4);
    memory.claim();
    memory.remember(&Cell::Grant(GroupId(1), None));
    memory.remember(&Cell::Grant(GroupId(2), None));
    drop(memory);
    assert_eq!(recalled(&dir, OWNER, HERE, 5), Some(vec![silence(7)]));
}

#[test]
fn a_memory_of_another_boot_clock_life_or_store_is_worthless_now_and_for_the_life_after() {
    let other_boot = BootId { boot: 10, ..HERE };
    let other_clock = BootId { clock_offset: 1, ..HERE };
    for (owner, here, life) in [
        (OWNER, other_boot, 4),
        (OWNER, other_clock, 4),
        (OWNER, BootId { slept: BootId::SLACK + 1, ..HERE }, 4),
        (OWNER, BootId { marker: 1, ..HERE }, 4),
        (OWNER, HERE, 5),
        (StoreId(6), HERE, 4),
    ] {
        let dir = left_by_life_3();
        let (mut memory, found) = open(&dir, owner, here, life);
        let store = Store::Used(Incarnation(life - 1), Vec::new());
        assert_eq!(Boot::judge(store, found, here).kind, BootKind::Rebooted);
        memory.remember(&silence(9));
        memory.claim();
        drop(memory);
        assert_eq!(recalled(&dir, owner, here, life + 1), Some(vec![silence(9)]), "no old grant comes back");
    }
}

#[test]
fn a_memory_from_before_a_suspend_is_believed_again_once_its_silence_is_in_it() {
    use crate::clock::Clock;
    let dir = in_memory();
    let (clock, hand) = Clock::by_hand();
    let steady = Steady::begin(&clock, None);
    let (mut memory, _) = open(&dir, OWNER, steady.in_boot(HERE), 3);
    memory.claim();
    memory.remember(&grant(1, 100));
    hand.suspend(std::time::Duration::from_secs(1));
    let anew = steady.anew();
    // Killed after the silence was remembered, and before the memory was claimed anew.
    memory.remember(&silence(7));
    drop(memory);
    let copy = fs::read(dir.path().join("memory")).unwrap();
    assert_eq!(recalled(&dir, OWNER, anew.in_boot(HERE), 4), None);
    fs::write(dir.path().join("memory"), copy).unwrap();
    let (mut memory, _) = open(&dir, OWNER, steady.in_boot(HERE), 4);
    memory.claim_anew(&anew);
    drop(memory);
    assert_eq!(recalled(&dir, OWNER, anew.in_boot(HERE), 5), Some(vec![grant(1, 100), silence(7)]));
}

#[test]
fn a_founding_finds_nothing_to_believe() {
    let dir = in_memory();
    let (_, found) = open(&dir, OWNER, HERE, 1);
    assert_eq!(found, None);
}

#[test]
fn a_life_that_ends_before_it_knows_of_its_silence_leaves_nothing_to_believe() {
    let dir = left_by_life_3();
    let rebooted = BootId { boot: 10, ..HERE };
    let (mut memory, _) = open(&dir, OWNER, rebooted, 4);
    memory.remember(&silence(9));
    drop(memory); // Killed before it was claimed.
    assert_eq!(recalled(&dir, OWNER, rebooted, 5), None);
}

#[test]
fn a_life_that_ends_before_it_begins_leaves_nothing_to_believe() {
    let dir = left_by_life_3();
    drop(open(&dir, OWNER, HERE, 4));
    assert_eq!(recalled(&dir, OWNER, HERE, 5), None);
}

#[test]
fn a_memory_ahead_of_its_store_proves_that_the_store_is_an_old_copy() {
    for life in [2, 3] {
        let dir = left_by_life_3();
        let path = dir.path().join("memory");
        let before = fs::read(&path).unwrap();
        let error = Memory::open(&path, OWNER, HERE, Incarnation(life)).err().unwrap();
        assert!(matches!(error, StoreError::WentBack { memory: 3, .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before, "the proof is kept");
    }
}

#[test]
fn a_memory_that_another_start_looks_at_is_no_twins() {
    let dir = left_by_life_3();
    let looked_at = super::open_locked(&dir.path().join("memory")).unwrap();
    let looks = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(looked_at);
    });
    assert!(open(&dir, OWNER, HERE, 4).0.trouble().is_none());
    looks.join().unwrap();
}

#[test]
fn a_memory_is_open_once_at_a_time() {
    let dir = left_by_life_3();
    let first = open(&dir, OWNER, HERE, 4);
    let second = Memory::open(&dir.path().join("memory"), OWNER, HERE, Incarnation(5));
    assert!(matches!(second.err(), Some(StoreError::Twin { .. })), "somebody runs with a copy of the store");
    drop(first);
}

#[test]
fn without_a_folder_in_memory_the_node_runs_and_its_restarts_are_silent() {
    let dir = in_memory();
    fs::create_dir(dir.path().join("folder")).unwrap();
    for (path, what) in [
        (dir.path().join("no/such/memory"), "there is no folder"),
        (PathBuf::from("/proc/memory"), "not in memory"),
        (dir.path().join("folder"), "cannot write"),
        (PathBuf::from("/dev/shm/memory-of-a-test"), "cannot be trusted"),
    ] {
        let (mut memory, found) = Memory::open(&path, OWNER, HERE, Incarnation(4)).unwrap();
        let said = memory.trouble().map(ToString::to_string).unwrap_or_default();
        assert!(said.contains(what) && said.contains("silence"), "{}: {said}", path.display());
        memory.remember(&grant(1, 1));
        memory.claim();
        assert_eq!(found, None);
    }
}

#[test]
fn a_link_is_not_followed() {
    let dir = in_memory();
    let target = dir.path().join("target");
    fs::write(&target, b"precious").unwrap();
    std::os::unix::fs::symlink(&target, dir.path().join("memory")).unwrap();
    let (memory, _) = Memory::open(&dir.path().join("memory"), OWNER, HERE, Incarnation(1)).unwrap();
    assert!(matches!(memory.trouble(), Some(MemoryError::NotPrivate { .. })));
    assert_eq!(fs::read(&target).unwrap(), b"precious");
}

#[test]
fn garbage_and_other_peoples_files_are_wiped_not_believed() {
    for bytes in [vec![], vec![0xff; 100], vec![0xff; 4096], vec![0xab; 500_000]] {
        let dir = in_memory();
        let path = dir.path().join("memory");
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let (mut memory, found) = open(&dir, OWNER, HERE, 4);
        assert_eq!(found, None);
        memory.claim();
        memory.remember(&grant(1, 5));
        drop(memory);
        assert_eq!(recalled(&dir, OWNER, HERE, 5), Some(vec![grant(1, 5)]));
    }
}

#[test]
fn a_memory_that_was_cut_is_not_believed() {
    let dir = in_memory();
    let (mut memory, _) = open(&dir, OWNER, HERE, 3);
    memory.claim();
    (0..3000).for_each(|group| memory.remember(&grant(group, 5)));
    drop(memory);
    let file = fs::OpenOptions::new().write(true).open(dir.path().join("memory")).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length - 1).unwrap();
    assert_eq!(recalled(&dir, OWNER, HERE, 4), None);
}

#[test]
fn a_memory_that_is_cut_while_it_is_in_use_is_void_and_the_process_lives() {
    for length in [0, 100, 4096, 70_000] {
        let dir = left_by_life_3();
        let path = dir.path().join("memory");
        let (mut memory, _) = open(&dir, OWNER, HERE, 4);
        memory.claim();
        (0..2000).for_each(|group| memory.remember(&grant(group, 5)));
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        (0..2000).for_each(|group| memory.remember(&grant(group, 6)));
        let said = memory.trouble().map(ToString::to_string).unwrap_or_default();
        assert!(said.contains("somebody cut"), "{length}: {said}");
        drop(memory);
        assert_eq!(recalled(&dir, OWNER, HERE, 5), None, "{length}");
    }
}

/// Runs a script as the user nobody, and says whether it succeeded; `None` where this user cannot
/// become another.
fn as_nobody(script: &str) -> Option<bool> {
    const NOBODY: u32 = 65534;
    if crate::sys::at::user() != 0 {
        eprintln!("skipped: only root can become another user");
        return None;
    }
    let done = Command::new("sh").args(["-c", script]).uid(NOBODY).gid(NOBODY).output().unwrap();
    Some(done.status.success())
}

#[test]
fn another_user_can_neither_read_cut_link_nor_remove_a_memory() {
    let dir = in_memory();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let folder = memory_folder(Some(dir.path())).unwrap();
    let path = folder.join("memory");
    let (mut memory, _) = Memory::open(&path, OWNER, HERE, Incarnation(3)).unwrap();
    memory.claim();
    memory.remember(&grant(1, 100));
    let (file, folder, dir) = (path.display(), folder.display(), dir.path().display());
    for script in [
        format!("cat {file}"),
        format!("truncate -s 0 {file}"),
        format!("rm -f {file}"),
        format!("ln {file} {dir}/second"),
        format!("touch {folder}/other"),
        format!("mv {folder} {dir}/away"),
    ] {
        let Some(done) = as_nobody(&script) else { return };
        assert!(!done, "{script}");
    }
    assert!(as_nobody(&format!("touch {dir}/mine")).unwrap(), "the folder around it is everybody's");
    memory.remember(&grant(2, 100));
    assert!(memory.trouble().is_none(), "{:?}", memory.trouble());
}

#[test]
fn a_memory_that_another_user_has_prepared_is_not_believed() {
    const NOBODY: Option<u32> = Some(65534);
    if crate::sys::at::user() != 0 {
        return eprintln!("skipped: only root can give a file to another user");
    }
    // The file is just what life 3 left, but it is another user's; then the folder is.
    for of_folder in [false, true] {
        let dir = left_by_life_3();
        let path = dir.path().join("memory");
        let given = if of_folder { dir.path() } else { &path };
        chown(given, NOBODY, NOBODY).unwrap();
        let (memory, found) = Memory::open(&path, OWNER, HERE, Incarnation(4)).unwrap();
        assert!(matches!(memory.trouble(), Some(MemoryError::NotPrivate { .. })), "{:?}", memory.trouble());
        assert_eq!(found, None);
    }
    // Another user was first to make the folder that would be ours.
    let dir = in_memory();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let taken = dir.path().join("tenure-0");
    assert_eq!(as_nobody(&format!("mkdir -m 777 {}", taken.display())), Some(true));
    let error = memory_folder(Some(dir.path())).unwrap_err();
    assert!(error.to_string().contains("belongs to another user"), "{error}");
}

#[test]
fn tens_of_thousands_of_groups_are_remembered() {
    const GROUPS: u64 = 30_000;
    let dir = in_memory();
    let (mut memory, _) = open(&dir, OWNER, HERE, 3);
    memory.claim();
    for until in 1..4 {
        (0..GROUPS).for_each(|group| memory.remember(&grant(group, until)));
    }
    drop(memory);
    let recalled = recalled(&dir, OWNER, HERE, 4).unwrap();
    let expected: Vec<Cell> = (0..GROUPS).map(|group| grant(group, 3)).collect();
    assert_eq!(recalled, expected);
}

#[test]
fn slots_of_groups_that_were_given_back_are_used_again() {
    let dir = in_memory();
    let (mut memory, _) = open(&dir, OWNER, HERE, 3);
    let length = || fs::metadata(dir.path().join("memory")).unwrap().len();
    let before = length();
    for group in 0..20_000 {
        memory.remember(&grant(group, 1));
        memory.remember(&Cell::Grant(GroupId(group), None));
    }
    assert_eq!(length(), before);
}

#[test]
fn a_full_memory_is_void_and_the_process_lives() {
    let dir = in_memory();
    let script = format!("mount -t tmpfs -o size=1m,mode=700 none {}", dir.path().display());
    let test = "memory::tests::child_fills_the_memory";
    passes_in_namespace(&["--mount", "--map-root-user"], &script, test, dir.path());
}

/// Does nothing but as a child of the test above it: there the folder has one MiB.
#[test]
fn child_fills_the_memory() {
    let Some(dir) = folder() else { return };
    let path = dir.join("memory");
    let (mut memory, _) = Memory::open(&path, OWNER, HERE, Incarnation(3)).unwrap();
    memory.claim();
    (0..10_000).for_each(|group| memory.remember(&grant(group, 5)));
    let said = memory.trouble().expect("ten thousand grants need more").to_string();
    assert!(said.contains("No space left"), "{said}");
    drop(memory);
    let (_, found) = Memory::open(&path, OWNER, HERE, Incarnation(4)).unwrap();
    assert_eq!(found, None, "a memory that lacks a grant is no memory");
}

#[test]
fn a_restart_in_another_time_namespace_is_silent() {
    let dir = in_memory();
    let (mut memory, _) = open(&dir, OWNER, here().unwrap(), 3);
    memory.claim();
    drop(memory);
    let test = "memory::tests::child_has_another_clock";
    passes_in_namespace(
        &["--time", "--boottime", "1000", "--fork", "--map-root-user"],
        "true",
        test,
        dir.path(),
    );
}

/// Does nothing but as a child of the test above it: there the boot clock is 1000 s ahead.
#[test]
fn child_has_another_clock() {
    let Some(dir) = folder() else { return };
    let here = here().unwrap();
    assert_eq!(here.clock_offset, 1_000_000_000_000);
    let (_, found) = Memory::open(&dir.join("memory"), OWNER, here, Incarnation(4)).unwrap();
    let found = found.expect("the memory is whole");
    assert_eq!((found.writer, found.boot.boot, found.boot.clock_offset), (Incarnation(3), here.boot, 0));
    let boot = Boot::judge(Store::Used(Incarnation(3), Vec::new()), Some(found), here);
    assert_eq!(boot.kind, BootKind::Rebooted);
}
