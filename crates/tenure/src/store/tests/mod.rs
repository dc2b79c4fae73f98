//! Making, opening and refusing stores. `power` has crashes of the machine, `faults` disks that
//! fail, `kill` processes that are killed, `formats` stores of an earlier tree.

pub(crate) mod child;
mod faults;
mod formats;
mod kill;
mod power;
mod repair;

use std::fs;
use std::os::unix::fs::FileExt;

use aws_lc_rs::digest::{SHA256, digest};
use tempfile::TempDir;
use tenure_proto::boot::BootKind;
use tenure_proto::quorum::Quorums;
use tenure_proto::strong::epoch::Ballot;
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};

use super::*;

pub(crate) fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

fn contact(text: &str) -> Contact {
    Contact { name: name(text), address: Some(format!("{text}.example:7400")) }
}

fn body(members: &[Contact]) -> Body {
    Body {
        quorums: Quorums::majority(members.iter().map(Contact::id).collect()).unwrap(),
        clocks: Clockwork {
            bound: Bound::Drift(Drift::from_ppm(1000).unwrap()),
            tick: LocalSpan::from_nanos(1),
        },
        longest_lease: Span::from_millis(5000),
        stores: Default::default(),
        barred: Default::default(),
    }
}

const CLUSTER: ClusterId = ClusterId(77);
const FLOOR: Term = Term(1000);

pub(crate) fn founding() -> Founding {
    let members: Vec<Contact> = ["a", "b", "c"].map(contact).into();
    Founding { cluster: CLUSTER, me: name("a"), body: body(&members), members, floor: FLOOR }
}

/// A folder with the store of founding member a.
fn founded() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    Store::found(dir.path(), &founding()).unwrap();
    dir
}

fn open(dir: &TempDir) -> Result<(Store, Opened), StoreError> {
    Store::open(dir.path(), &name("a"), Some(CLUSTER))
}

fn refusal(result: Result<(Store, Opened), StoreError>) -> StoreError {
    result.err().expect("it should have been refused")
}

pub(crate) fn ceiling(opened: &Opened) -> Term {
    let (boot::Store::Founded(cells) | boot::Store::Used(_, cells)) = &opened.boot_store else {
        panic!("a store was opened")
    };
    let ceilings = cells.iter().filter_map(|cell| match cell {
        Cell::Ceiling(term) => Some(*term),
        _ => None,
    });
    ceilings.max().unwrap_or_default()
}

fn file(dir: &TempDir) -> PathBuf {
    dir.path().join(disk::FILE)
}

#[test]
fn a_founded_store_says_what_was_founded() {
    let (store, opened) = open(&founded()).unwrap();
    let charter = opened.charter.clone().unwrap();
    assert_eq!((charter.epoch, charter.floor), (Epoch(0), FLOOR));
    let stores = charter.body.stores.clone();
    assert_eq!(charter.body, Body { stores: stores.clone(), ..founding().body });
    assert_eq!((stores.len(), stores.get(name("a").id())), (3, Some(opened.id)));
    assert_eq!(opened.contacts, founding().members);
    assert_eq!((opened.cluster, ceiling(&opened)), (CLUSTER, FLOOR));
    let here = BootId { boot: 1, clock_offset: 0, slept: 0, marker: 0 };
    let boot = Boot::judge(opened.boot_store, None, here);
    assert_eq!((boot.kind, boot.incarnation), (BootKind::Founding, Incarnation(1)));
    assert_eq!(opened.incarnation, Incarnation(1));
    assert_eq!(store.image.incarnation, Some(Incarnation(1)));
}

#[test]
fn every_open_is_a_new_life() {
    let dir = founded();
    for life in 1..5 {
        let (_, opened) = open(&dir).unwrap();
        assert_eq!(opened.incarnation, Incarnation(life));
        let before = matches!(opened.boot_store, boot::Store::Used(former, _) if former.0 == life - 1);
        assert_eq!(before, life > 1);
    }
}

#[test]
fn a_missing_store_is_refused_and_both_ways_out_are_named() {
    let empty = tempfile::tempdir().unwrap();
    let nowhere = empty.path().join("no/such/folder");
    for dir in [empty.path(), &nowhere] {
        let error = refusal(Store::open(dir, &name("a"), None));
        assert!(matches!(error, StoreError::Missing { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("Node::found") && text.contains("Node::join"), "{text}");
    }
    assert!(!nowhere.exists(), "to look for a store makes nothing");
}

#[test]
fn a_store_is_made_once() {
    let dir = founded();
    drop(open(&dir).unwrap());
    let before = fs::read(file(&dir)).unwrap();
    let again = Store::found(dir.path(), &founding()).unwrap_err();
    assert!(matches!(again, StoreError::AlreadyThere { .. }), "{again}");
    let joined = Store::join(dir.path(), CLUSTER, &name("a"), Vec::new()).unwrap_err();
    assert!(matches!(joined, StoreError::AlreadyThere { .. }), "{joined}");
    assert_eq!(fs::read(file(&dir)).unwrap(), before);
}

#[test]
fn folders_that_are_missing_are_made_by_a_founding() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("var/lib/tenure");
    Store::found(&deep, &founding()).unwrap();
    assert!(Store::open(&deep, &name("a"), None).is_ok());
}

#[test]
fn a_store_of_another_cluster_is_refused() {
    let dir = founded();
    let error = refusal(Store::open(dir.path(), &name("a"), Some(ClusterId(78))));
    assert!(matches!(error, StoreError::OtherCluster { found: CLUSTER, .. }), "{error}");
    assert!(error.to_string().contains(&CLUSTER.to_string()), "{error}");
    assert_eq!(open(&dir).unwrap().1.incarnation, Incarnation(1), "a refused store was not touched");
}

#[test]
fn a_store_of_another_node_is_refused() {
    let dir = founded();
    let error = refusal(Store::open(dir.path(), &name("b"), Some(CLUSTER)));
    assert!(matches!(error, StoreError::OtherNode { .. }), "{error}");
    assert!(error.to_string().contains("'a', not to 'b'"), "{error}");
}

#[test]
fn a_store_of_a_later_format_is_refused() {
    let dir = founded();
    let mut bytes = fs::read(file(&dir)).unwrap();
    let room = bytes.len() / places::PLACES;
    for place in bytes.chunks_mut(room) {
        place[8..16].copy_from_slice(&(places::FORMAT + 1).to_be_bytes());
        let end = 48 + usize::from(place[46]) * 256 + usize::from(place[47]);
        let sum = digest(&SHA256, &place[..end]);
        place[end..end + 32].copy_from_slice(sum.as_ref());
    }
    fs::write(file(&dir), bytes).unwrap();
    let error = refusal(open(&dir));
    assert!(matches!(error, StoreError::NewerFormat { found: 2, known: 1, .. }), "{error}");
}

#[test]
fn a_store_is_open_once_at_a_time() {
    let dir = founded();
    let first = open(&dir).unwrap();
    let error = refusal(open(&dir));
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    let founded = Store::found(dir.path(), &founding()).unwrap_err();
    assert!(matches!(founded, StoreError::InUse { .. }), "{founded}");
    drop(first);
    assert!(open(&dir).is_ok());
}

#[test]
fn a_founding_that_does_not_hold_together_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let stranger = Founding { me: name("x"), ..founding() };
    let fewer = Founding { members: ["a", "b"].map(contact).into(), ..founding() };
    let twice = Founding { members: ["a", "b", "c", "a"].map(contact).into(), ..founding() };
    for wrong in [stranger, fewer, twice] {
        let error = Store::found(dir.path(), &wrong).unwrap_err();
        assert!(matches!(error, StoreError::Founding { .. }), "{error}");
    }
    assert!(!file(&dir).exists());
}

#[test]
fn one_spoilt_copy_costs_nothing() {
    for place in 0..places::PLACES {
        let dir = founded();
        let (mut store, _) = open(&dir).unwrap();
        store.image.put(Cell::Ceiling(Term(2000)));
        store.commit().unwrap();
        let at = (place * store.room + 100) as u64;
        drop(store);
        let handle = fs::OpenOptions::new().write(true).open(file(&dir)).unwrap();
        handle.write_all_at(b"rot", at).unwrap();
        let (_, opened) = open(&dir).unwrap();
        assert_eq!((ceiling(&opened), opened.incarnation), (Term(2000), Incarnation(2)), "place {place}");
    }
}

#[test]
fn a_damaged_store_is_refused_and_left_as_it_is() {
    let whole = fs::read(file(&founded())).unwrap();
    let garbage = vec![0x5a; whole.len()];
    let half = [&garbage[..whole.len() * 3 / 4], &whole[whole.len() * 3 / 4..]].concat();
    for damaged in [Vec::new(), whole[..5000].to_vec(), garbage, half] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(file(&dir), &damaged).unwrap();
        let error = refusal(open(&dir));
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("members replace"), "{error}");
        assert_eq!(fs::read(file(&dir)).unwrap(), damaged);
    }
}

#[test]
fn an_interrupted_founding_leaves_no_store() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("store.new"), b"half of it").unwrap();
    assert!(matches!(refusal(open(&dir)), StoreError::Missing { .. }));
    Store::found(dir.path(), &founding()).unwrap();
    assert!(open(&dir).is_ok());
}

#[test]
fn a_joining_node_knows_no_charter_until_it_is_told_one() {
    let dir = tempfile::tempdir().unwrap();
    Store::join(dir.path(), CLUSTER, &name("d"), vec![contact("a")]).unwrap();
    let (mut store, opened) = Store::open(dir.path(), &name("d"), None).unwrap();
    assert_eq!((opened.charter, opened.contacts), (None, vec![contact("a")]));
    let boot = Boot::judge(opened.boot_store, None, BootId { boot: 1, clock_offset: 0, slept: 0, marker: 0 });
    assert_eq!((boot.kind, boot.durable), (BootKind::Founding, Vec::new()), "it has promised nothing");
    let told = Arc::new(Charter { floor: FLOOR, ..(*Charter::founding(founding().body)).clone() });
    store.image.put(Cell::Charter(told.clone()));
    store.commit().unwrap();
    drop(store);
    let (_, again) = Store::open(dir.path(), &name("d"), None).unwrap();
    assert_eq!((again.charter, again.incarnation), (Some(told), Incarnation(2)));
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let dir = founded();
    let (mut store, _) = open(&dir).unwrap();
    let endless = Contact { name: name("b"), address: Some("x".repeat(1000)) };
    store.image.contacts.push(endless.clone());
    let error = store.commit().unwrap_err();
    assert!(matches!(error, StoreError::Unfit { .. }), "{error}");
    drop(store);
    assert_eq!(open(&dir).unwrap().1.contacts, founding().members);
    let joined = Store::join(&dir.path().join("d"), CLUSTER, &name("d"), vec![endless]).unwrap_err();
    assert!(matches!(joined, StoreError::Unfit { .. }), "{joined}");
}

#[test]
fn stores_of_joining_nodes_and_of_other_clusters_are_other_stores() {
    let join = || {
        let dir = tempfile::tempdir().unwrap();
        Store::join(dir.path(), CLUSTER, &name("a"), Vec::new()).unwrap();
        open(&dir).unwrap().1.id
    };
    let found = |cluster| {
        let dir = tempfile::tempdir().unwrap();
        Store::found(dir.path(), &Founding { cluster, ..founding() }).unwrap();
        Store::open(dir.path(), &name("a"), None).unwrap().1.id
    };
    let ids = [join(), join(), found(CLUSTER), found(ClusterId(78))];
    for (i, id) in ids.iter().enumerate() {
        assert!(!ids[..i].contains(id), "{ids:?}");
    }
    assert_eq!(found(CLUSTER), ids[2], "founders know each other's stores");
}

#[test]
fn every_durable_cell_comes_back() {
    let dir = founded();
    let (mut store, _) = open(&dir).unwrap();
    let charter = Charter::founding(founding().body);
    let ballot = Ballot { number: 3, node: Some(name("b").id()), incarnation: Incarnation(9) };
    let accepted = Some((ballot, charter.clone()));
    let cells = [
        Cell::Ceiling(Term(5000)),
        Cell::Charter(Arc::new(Charter { epoch: Epoch(4), floor: Term(8), ..(*charter).clone() })),
        Cell::Ballot { epoch: Epoch(4), promised: ballot, accepted },
    ];
    cells.iter().for_each(|cell| store.image.put(cell.clone()));
    store.commit().unwrap();
    drop(store);
    let (_, opened) = open(&dir).unwrap();
    assert_eq!(opened.boot_store, boot::Store::Used(Incarnation(1), cells.to_vec()));
    assert_eq!(opened.charter.unwrap().epoch, Epoch(4));
}

#[test]
fn content_that_outgrows_its_place_gets_a_larger_file() {
    let dir = founded();
    let (mut store, _) = open(&dir).unwrap();
    let (before, room) = (store.generation, store.room);
    store.image.contacts = (0..200).map(|at| contact(&format!("member-{at}"))).collect();
    store.commit().unwrap();
    assert!(store.room > room && store.generation > before);
    store.image.put(Cell::Ceiling(Term(9999)));
    store.commit().unwrap();
    drop(store);
    let (_, opened) = open(&dir).unwrap();
    assert_eq!((opened.contacts.len(), ceiling(&opened)), (200, Term(9999)));
    assert!(!dir.path().join("store.new").exists());
}
