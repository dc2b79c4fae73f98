//! A store that is replaced by a repaired one: in one step, wherever it is interrupted.

use std::io;

use tenure_proto::strong::epoch::repair::{Stopped, Wish, plan};

use super::*;
use crate::memory::{Memory, here};

const ABSURD: Term = Term(1 << 40);

/// A disk that dies in the middle of its n-th operation.
struct Dying {
    real: Folder,
    left: usize,
}

impl Dying {
    fn goes_on(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }
}

impl Disk for Dying {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.real.read()
    }
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if self.goes_on() {
            return self.real.write(at, bytes);
        }
        self.real.write(at, &bytes[..bytes.len() / 2])?;
        Err(io::ErrorKind::Other.into())
    }
    fn sync(&mut self) -> io::Result<()> {
        if self.goes_on() { self.real.sync() } else { Err(io::ErrorKind::Other.into()) }
    }
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.goes_on() { self.real.replace(bytes) } else { Err(io::ErrorKind::Other.into()) }
    }
}

/// A store that was used, and whose terms are absurd.
fn absurd() -> TempDir {
    let dir = founded();
    let (mut store, _) = open(&dir).unwrap();
    store.image.put(Cell::Ceiling(ABSURD));
    store.commit().unwrap();
    dir
}

fn examine(dir: &TempDir) -> Image {
    Store::examine(dir.path(), &name("a"), Some(CLUSTER)).unwrap()
}

/// A plan of reports that all say what this one says, and the digest of the store.
fn planned(image: &Image) -> (Arc<Charter>, Vec<u8>) {
    let charter = image.charter().unwrap();
    let stopped = |node: NodeId| Stopped {
        node,
        store: charter.body.stores.get(node).unwrap(),
        life: image.incarnation,
        cells: image.cells.clone(),
        grants: Vec::new(),
    };
    let reports: Vec<Stopped> = charter.members().iter().copied().map(stopped).collect();
    let wish = Wish { floor: Term(5000), barred: Vec::new(), draw: 1 };
    (plan(&reports, &wish).unwrap(), digest_of(&image.to_bytes().unwrap()))
}

#[test]
fn to_examine_a_store_changes_nothing_and_is_refused_while_it_is_used() {
    let dir = absurd();
    let before = fs::read(file(&dir)).unwrap();
    let image = examine(&dir);
    assert_eq!(image.incarnation, Some(Incarnation(1)));
    assert_eq!(fs::read(file(&dir)).unwrap(), before);
    let (_store, _) = open(&dir).unwrap();
    let error = Store::examine(dir.path(), &name("a"), None).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
}

#[test]
fn a_repaired_store_goes_by_the_plan_and_believes_no_memory_of_before() {
    let dir = absurd();
    let image = examine(&dir);
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = memory.path().join("memory");
    let (here, life) = (here().unwrap(), image.incarnation.unwrap());
    let (mut remembers, _) = Memory::open(&path, image.id, here, life).unwrap();
    remembers.claim();
    drop(remembers);
    assert_eq!(Memory::look(&path, image.id).unwrap(), Some(Vec::new()));
    let (charter, digest) = planned(&image);
    let repair = || Store::repair(dir.path(), &name("a"), &digest, &charter).unwrap();
    assert_eq!((repair(), repair()), (Repaired::Now, Repaired::Before));
    let (_, opened) = open(&dir).unwrap();
    assert_eq!((ceiling(&opened), opened.charter.as_ref()), (Term(5000), Some(&charter)));
    let (_, found) = Memory::open(&path, opened.id, here, opened.incarnation).unwrap();
    assert_eq!(Boot::judge(opened.boot_store, found, here).kind, BootKind::Rebooted, "it is silent");
}

#[test]
fn a_store_that_was_used_since_its_report_is_not_repaired() {
    let dir = absurd();
    let (charter, digest) = planned(&examine(&dir));
    drop(open(&dir).unwrap());
    let before = examine(&dir);
    let error = Store::repair(dir.path(), &name("a"), &digest, &charter).unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    assert_eq!(examine(&dir), before);
}

#[test]
fn wherever_a_repair_is_interrupted_the_store_is_as_before_or_as_after_and_it_can_be_done_again() {
    let (mut as_before, mut as_after) = (0, 0);
    for operations in 1.. {
        let dir = absurd();
        let before = examine(&dir);
        let (charter, digest) = planned(&before);
        let disk = Dying { real: Folder::open(dir.path()).unwrap(), left: operations };
        let lock = lock(dir.path()).unwrap();
        let done =
            Store::repair_on(dir.path(), lock, Box::new(disk), &name("a"), (&digest, &charter)).is_ok();
        let found = examine(&dir);
        let is_after = found.charter() == Some(&charter);
        assert!(is_after || found == before, "neither, after {operations} operations");
        if is_after {
            as_after += 1;
        } else {
            as_before += 1;
        }
        Store::repair(dir.path(), &name("a"), &digest, &charter).unwrap();
        assert_eq!(examine(&dir).charter(), Some(&charter));
        if done {
            break;
        }
    }
    assert!(as_before > 1 && as_after > 0, "{as_before} and {as_after}");
}
