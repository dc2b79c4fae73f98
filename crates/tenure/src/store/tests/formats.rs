//! Stores as an earlier tree has written them: a member that is upgraded starts with its promises.

use super::*;
use crate::formats::kept;
use crate::seal::{ClusterKey, Revocation, Serial};

/// The charter of a cluster that removed a member by force once.
fn charter(epoch: Epoch) -> Arc<Charter> {
    let members: Vec<Contact> = ["a", "b"].map(contact).into();
    let stores = [(name("a").id(), StoreId(11)), (name("b").id(), StoreId(12))].into_iter().collect();
    let before = Some(body(&["a", "b", "c"].map(contact)));
    let lineage = Lineage::founding(5).forced(9).unwrap();
    let body = Body { stores, ..body(&members) };
    Arc::new(Charter { epoch, lineage, body, before, floor: Term(5000) })
}

/// A store with every cell that a member ever writes.
fn image() -> Image {
    let ballot = Ballot { number: 3, node: Some(name("b").id()), incarnation: Incarnation(7) };
    let (here, next) = (Epoch(Epoch::ERA), Epoch(Epoch::ERA + 1));
    Image {
        cluster: CLUSTER,
        me: name("a"),
        id: StoreId(11),
        incarnation: Some(Incarnation(41)),
        cells: vec![
            Cell::Ceiling(Term(6000)),
            Cell::Charter(charter(here)),
            Cell::Ballot { epoch: here, promised: ballot, accepted: Some((ballot, charter(next))) },
            Cell::SplitBrain(None),
            Cell::Life { store: StoreId(12), highest: Incarnation(7), start: 99, condemned: true },
        ],
        contacts: vec![contact("a"), contact("b")],
    }
}

/// If this fails, a member of the last release cannot be upgraded: the change needs a new number in
/// `FORMAT`, and a reader of the old one.
#[test]
fn a_store_of_format_1_is_opened_with_all_that_it_promised() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = kept("store-1", || places::fresh(20, &image().to_bytes().unwrap()));
    fs::write(file(&dir), bytes).unwrap();
    let (_, opened) = open(&dir).unwrap();
    let expected = image();
    assert_eq!(opened.boot_store, expected.boot_store());
    assert_eq!((opened.id, opened.incarnation), (StoreId(11), Incarnation(42)));
    assert_eq!(ceiling(&opened), Term(6000));
    assert_eq!(opened.charter.as_ref(), expected.charter());
    assert_eq!(opened.contacts, expected.contacts);
}

#[test]
fn a_list_of_revoked_keys_of_format_1_is_read() {
    let revoked = || {
        let roots = [ClusterKey::from_bytes([7; 32]).id()];
        RevokedFile { keys: vec![Revocation::new(Serial(3), Some(1_800_000_000), &roots)], date: Some(17) }
    };
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("revoked"), kept("revoked-1", || revoked().to_bytes())).unwrap();
    assert_eq!(RevokedFile::read(dir.path()).unwrap(), revoked());
}
