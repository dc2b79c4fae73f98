use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::*;
use crate::fence::{Stale, Term};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn fence(&self) -> PathBuf {
        self.0.path().join("prices.fence")
    }

    fn create(&self, rule: Rule) -> FileFence {
        FileFence::create(self.fence(), "prices", rule).unwrap()
    }

    fn open(&self, rule: Rule) -> Result<FileFence, FileError> {
        FileFence::open(self.fence(), "prices", rule)
    }
}

fn token(term: u64, number: u64) -> Token {
    Token::new(Term(term), number)
}

fn is_stale(outcome: Result<Admitted, Refused>, newest: Token) -> bool {
    matches!(outcome, Err(Refused::Stale(stale)) if stale == Stale { newest })
}

#[test]
fn what_was_admitted_is_known_after_it_was_opened_anew() {
    let folder = Folder::new();
    let mut fence = folder.create(Rule::InOrder);
    assert_eq!(fence.admit(token(2, 5), "beta").unwrap(), Admitted::Newer);
    drop(fence);
    let mut fence = folder.open(Rule::InOrder).unwrap();
    assert!(is_stale(fence.admit(token(1, 9), "alpha"), token(2, 5)));
    assert!(is_stale(fence.admit(token(2, 5), "alpha"), token(2, 5)));
    assert_eq!(fence.admit(token(2, 5), "beta").unwrap(), Admitted::Again);
}

#[test]
fn by_term_one_leaders_writes_cost_one_disk_write() {
    let folder = Folder::new();
    drop(folder.create(Rule::ByTerm));
    let syncs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&syncs);
    let sync: Sync = Box::new(move |file| {
        counted.fetch_add(1, Ordering::Relaxed);
        file.sync_all()
    });
    let mut fence = FileFence::open_with(&folder.fence(), "prices", Rule::ByTerm, sync).unwrap();
    syncs.store(0, Ordering::Relaxed);
    for number in [3, 1, 2, 7, 7] {
        fence.admit(token(4, number), "alpha").unwrap();
    }
    assert_eq!(syncs.load(Ordering::Relaxed), 2, "the file and its folder, once");
    drop(fence);
    let mut fence = folder.open(Rule::ByTerm).unwrap();
    assert_eq!(fence.admit(token(4, 1), "alpha").unwrap(), Admitted::SameTerm);
    assert!(fence.admit(token(3, 9), "old").is_err());
}

#[test]
fn a_missing_fence_is_refused_and_not_made() {
    let folder = Folder::new();
    assert!(matches!(folder.open(Rule::ByTerm), Err(FileError::Missing { .. })));
    assert!(!folder.fence().exists());
}

#[test]
fn an_existing_fence_is_not_made_anew() {
    let folder = Folder::new();
    folder.create(Rule::ByTerm).admit(token(7, 1), "alpha").unwrap();
    let again = FileFence::create(folder.fence(), "prices", Rule::ByTerm);
    assert!(matches!(again, Err(FileError::Exists { .. })));
    assert_eq!(folder.open(Rule::ByTerm).unwrap().newest().unwrap().token, token(7, 1));
}

#[test]
fn the_fence_of_another_resource_or_rule_is_refused() {
    let folder = Folder::new();
    drop(folder.create(Rule::ByTerm));
    let other = FileFence::open(folder.fence(), "stock", Rule::ByTerm).unwrap_err();
    assert!(other.to_string().contains("\"prices\", not of \"stock\""), "{other}");
    let other = folder.open(Rule::InOrder).unwrap_err();
    assert!(other.to_string().contains("Rule::ByTerm"), "{other}");
}

#[test]
fn a_damaged_or_foreign_file_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    folder.create(Rule::ByTerm).admit(token(7, 1), "alpha").unwrap();
    let sound = fs::read(folder.fence()).unwrap();
    let mut damaged = sound.clone();
    damaged[40] ^= 1;
    let cut = sound[..sound.len() - 1].to_vec();
    let long = [sound.as_slice(), &[b'x'; 5000]].concat();
    for bytes in [damaged, cut, long, b"id,price\n1,20\n".to_vec(), Vec::new()] {
        fs::write(folder.fence(), &bytes).unwrap();
        let error = folder.open(Rule::ByTerm).unwrap_err();
        assert!(matches!(error, FileError::Damaged { .. } | FileError::NotAFence { .. }), "{error}");
        assert!(error.to_string().contains("prices.fence"), "{error}");
        assert_eq!(fs::read(folder.fence()).unwrap(), bytes);
    }
}

#[test]
fn a_fence_in_use_is_not_opened_twice() {
    let folder = Folder::new();
    let mut fence = folder.create(Rule::ByTerm);
    assert!(matches!(folder.open(Rule::ByTerm), Err(FileError::InUse { .. })));
    fence.admit(token(1, 1), "alpha").unwrap(); // The file is another one now, and locked too.
    assert!(matches!(folder.open(Rule::ByTerm), Err(FileError::InUse { .. })));
    drop(fence);
    folder.open(Rule::ByTerm).unwrap();
}

#[test]
fn whoever_opened_the_file_before_it_was_replaced_does_not_get_the_fence() {
    let folder = Folder::new();
    let mut fence = folder.create(Rule::ByTerm);
    let early = File::open(folder.fence()).unwrap();
    fence.admit(token(1, 1), "alpha").unwrap();
    early.try_lock().unwrap(); // The lock of the file that was replaced is free, and worth nothing.
    assert!(!has_name(&early, &folder.fence()).unwrap());
    assert!(matches!(open_locked(&folder.fence()), Err(FileError::InUse { .. })));
    assert!(has_name(&fence.file, &folder.fence()).unwrap());
}

/// Lets the n-th fsync from now fail.
fn failing_at(n: u32) -> Sync {
    let left = Cell::new(n);
    Box::new(move |file| {
        left.set(left.get().wrapping_sub(1));
        if left.get() == 0 { Err(io::Error::other("the disk is gone")) } else { file.sync_all() }
    })
}

#[test]
fn a_failed_fsync_admits_nothing_and_poisons() {
    for (failing, stored) in [(3, token(1, 1)), (4, token(2, 1))] {
        let folder = Folder::new();
        folder.create(Rule::ByTerm).admit(token(1, 1), "alpha").unwrap();
        let sync = failing_at(failing); // Opening takes two.
        let mut fence = FileFence::open_with(&folder.fence(), "prices", Rule::ByTerm, sync).unwrap();
        let failed = fence.admit(token(2, 1), "beta").unwrap_err();
        assert!(failed.to_string().contains("the disk is gone"), "{failed}");
        for token in [token(1, 1), token(2, 1), token(3, 1)] {
            let poisoned = fence.admit(token, "beta");
            assert!(matches!(poisoned, Err(Refused::Failed(FileError::Poisoned { .. }))), "{poisoned:?}");
        }
        drop(fence);
        let newest = folder.open(Rule::ByTerm).unwrap().newest().unwrap().token;
        assert_eq!(newest, stored, "what a new process finds, if the machine did not stop as well");
    }
}

#[test]
fn a_fence_that_cannot_be_made_durable_again_is_not_opened() {
    for failing in [1, 2] {
        let folder = Folder::new();
        drop(folder.create(Rule::ByTerm));
        let opened = FileFence::open_with(&folder.fence(), "prices", Rule::ByTerm, failing_at(failing));
        assert!(matches!(opened, Err(FileError::Io { .. })), "{failing}");
    }
}

#[test]
fn a_fence_that_cannot_be_made_leaves_nothing_behind() {
    let folder = Folder::new();
    let made = FileFence::create_with(&folder.fence(), "prices", Rule::ByTerm, failing_at(1));
    assert!(matches!(made, Err(FileError::Io { .. })));
    assert!(!folder.fence().exists());
    folder.create(Rule::ByTerm);
}

#[test]
fn the_new_state_is_on_the_disk_before_it_has_the_name_and_the_name_before_it_is_relied_on() {
    let folder = Folder::new();
    drop(folder.create(Rule::ByTerm));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (noting, path) = (Arc::clone(&seen), folder.fence());
    let sync: Sync = Box::new(move |file| {
        let content = |path: &Path| fs::read_to_string(path).map_or(0, |text| text.matches("newest").count());
        let what = if file.metadata()?.is_dir() { "folder" } else { "file" };
        noting.lock().unwrap().push((what, content(&path), content(&new_path(&path))));
        file.sync_all()
    });
    let mut fence = FileFence::open_with(&folder.fence(), "prices", Rule::ByTerm, sync).unwrap();
    seen.lock().unwrap().clear();
    fence.admit(token(1, 1), "alpha").unwrap();
    assert_eq!(*seen.lock().unwrap(), [("file", 0, 1), ("folder", 1, 0)]);
}

#[test]
fn a_write_that_fails_before_the_fsync_changes_nothing_and_may_come_again() {
    let folder = Folder::new();
    let mut fence = folder.create(Rule::InOrder);
    fence.admit(token(1, 1), "alpha").unwrap();
    let obstacle = new_path(&folder.fence());
    fs::create_dir(&obstacle).unwrap(); // No user can write to it.
    assert!(matches!(fence.admit(token(1, 2), "alpha"), Err(Refused::Failed(FileError::Io { .. }))));
    assert_eq!(fence.newest().unwrap().token, token(1, 1));
    fs::remove_dir(&obstacle).unwrap();
    assert_eq!(fence.admit(token(1, 2), "alpha").unwrap(), Admitted::Newer);
}

#[test]
fn a_leftover_of_an_interrupted_write_is_no_obstacle() {
    let folder = Folder::new();
    drop(folder.create(Rule::ByTerm));
    fs::write(new_path(&folder.fence()), "tenure fence 1\nresou").unwrap();
    folder.open(Rule::ByTerm).unwrap().admit(token(1, 1), "alpha").unwrap();
    assert!(!new_path(&folder.fence()).exists());
}

#[test]
fn a_link_to_the_fence_stays_a_link_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    drop(folder.create(Rule::ByTerm));
    fs::set_permissions(folder.fence(), fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.0.path().join("link");
    std::os::unix::fs::symlink(folder.fence(), &link).unwrap();
    FileFence::open(&link, "prices", Rule::ByTerm).unwrap().admit(token(1, 1), "alpha").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(folder.fence()).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(folder.open(Rule::ByTerm).unwrap().newest().unwrap().token, token(1, 1));
}

#[test]
fn a_writer_whose_name_cannot_be_stored_is_refused_before_anything_happens() {
    let folder = Folder::new();
    let mut fence = folder.create(Rule::InOrder);
    let refused = fence.admit(token(1, 1), "two\nlines").unwrap_err();
    assert!(matches!(refused, Refused::Failed(FileError::Name { .. })), "{refused}");
    assert_eq!(fence.newest(), None);
}
