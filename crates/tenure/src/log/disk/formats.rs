//! Files of the log as an earlier tree has written them: a member that is upgraded reads its own.

use tenure_proto::NodeId;
use tenure_proto::log::{Ballot, Entry, Seen, Session, Sessions, Slot};

use super::file::tests::head;
use super::file::{head_frame, judge, life_frame, records_frame};
use super::*;
use crate::formats::kept;

/// Records of every kind that a member ever writes.
fn records() -> Vec<Record> {
    let ballot = Ballot { term: 300, round: 70_000, node: NodeId(1 << 60) };
    let sessions = Sessions::from_parts([(Session(9), Seen { nonce: 7, last: 2, used: Slot(3) })]);
    let accepted = |slot, entry| Record::Accepted { slot: Slot(slot), ballot, entry };
    vec![
        Record::Promised(ballot),
        accepted(1, Entry::Noop),
        accepted(2, Entry::Open { nonce: u128::MAX - 5 }),
        accepted(3, Entry::Write { session: Session(2), number: 1, bytes: vec![1; 200].into() }),
        Record::Snapshot { upto: Slot(3), sessions, state: vec![2; 300].into() },
        Record::Base(Slot(2)),
        Record::Forgot,
    ]
}

/// The same of format 2: the state is in a file of its own.
fn records_2() -> Vec<Record> {
    let mut records = records();
    for record in &mut records {
        if let Record::Snapshot { state, .. } = record {
            *state = held().to_state();
        }
    }
    records
}

/// A snapshot as it was kept first.
fn held() -> Held {
    let kept = [b"\xfftenure snapshot".as_slice(), &[5; 16], &[0xcc, 0x02]].concat();
    Held::of_state(&kept).expect("a file of 332 bytes")
}

#[test]
fn a_log_of_format_2_is_read_as_it_was_written() {
    let written = kept("log-2", || {
        let (first, second) = (records_frame(77, 1, &records_2()), life_frame(77, 2, Incarnation(8)));
        [head_frame(&head()), first, second].concat()
    });
    assert_eq!(judge(&written).unwrap().records, records_2());
}

#[test]
fn a_snapshot_is_read_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let snapshots = Snapshots::new(dir.path());
    let written = kept("snapshot-1", || {
        let mut answers = crate::codec::Writer::new();
        answers.bytes(b"answers");
        let held = snapshots.make(&answers.into_bytes(), b"the state".to_vec().into(), b"panics").unwrap();
        fs::read(snapshots.path(held)).unwrap()
    });
    let held = snapshots.put(b"").unwrap();
    fs::write(snapshots.path(held), &written).unwrap();
    let held = held.of_length(written.len() as u64);
    assert!(snapshots.is_whole(held).unwrap());
    let parts = snapshots.open(held).unwrap().parts(|from| from.bytes(7).map(drop)).unwrap();
    let mut state = Vec::new();
    std::io::Read::read_to_end(&mut parts.state.reader(), &mut state).unwrap();
    assert_eq!((state.as_slice(), parts.panics.as_slice()), (&b"the state"[..], &b"panics"[..]));
}

/// If this fails, a member of the last release cannot be upgraded: the change needs a new number in
/// `FORMAT`, and a reader of the old one.
#[test]
fn a_log_of_format_1_is_read_as_it_was_written() {
    let written = kept("log-1", || {
        let (first, second) = (records_frame(77, 1, &records()), life_frame(77, 2, Incarnation(8)));
        [head_frame(&head()), first, second].concat()
    });
    let found = judge(&written).unwrap();
    assert_eq!(found.records, records());
    assert_eq!((found.head, found.torn), (Head { life: Some(Incarnation(8)), ..head() }, 0));
}
