//! Who was away for long: snapshots, what is forgotten, and what is fetched.

use super::*;

/// A driver that answers whenever a snapshot is wanted.
fn give_snapshots(cluster: &mut Cluster) {
    for node in 0..cluster.hosts.len() as u64 {
        let wanted = cluster.host(node).events.iter().rev().find_map(|event| match event {
            Event::SnapshotWanted { upto } => Some(*upto),
            _ => None,
        });
        if let Some(upto) = wanted {
            cluster.tell(node, Command::Snapshot { upto, state: upto.0.to_be_bytes().into() });
        }
    }
}

#[test]
fn who_is_far_behind_gets_a_snapshot_and_its_sessions() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.isolate(2);
    for number in 1..=30 {
        cluster.write_to(0, session, number);
        give_snapshots(&mut cluster);
    }
    assert!(cluster.machine(0).base() > Slot(20));
    cluster.cut.clear();
    cluster.pass(RETRY);
    cluster.pass(RETRY);
    assert_eq!(cluster.machine(2).applied(), cluster.machine(0).applied());
    let sessions = cluster.machine(0).sessions().clone();
    assert_eq!(*cluster.machine(2).sessions(), sessions);
    assert!(cluster.hosts[2].events.iter().any(|event| matches!(event, Event::Restore { .. })));
}

#[test]
fn a_leader_that_is_behind_proposes_nothing_where_others_have_forgotten() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    // n2 holds a vote for the next slot that was never chosen; then it is away while that slot gets another value.
    cluster.cut = vec![(1, 0), (2, 0), (0, 1)];
    cluster.write_to(0, session, 99);
    cluster.cut.clear();
    cluster.isolate(2);
    cluster.crash(0);
    cluster.start(0);
    cluster.host(0).store.retain(|record| !matches!(record, Record::Accepted { slot, .. } if slot.0 > 1));
    cluster.crash(0);
    cluster.start(0);
    cluster.crown(1, 2);
    for number in 1..=30 {
        cluster.write_to(1, session, number);
        give_snapshots(&mut cluster);
    }
    cluster.cut.clear();
    cluster.crash(0);
    cluster.crown(2, 3);
    (0..4).for_each(|_| cluster.pass(3 * RETRY));
    assert!(cluster.machine(2).leads().is_some());
    assert_eq!(cluster.machine(2).applied(), cluster.machine(1).applied());
    let numbers: Vec<u64> = cluster.carried_out(2).into_iter().map(|(_, number)| number).collect();
    assert!(!numbers.contains(&99), "the vote that it still held had been superseded: {numbers:?}");
}

#[test]
fn a_restarted_process_goes_on_from_its_snapshot_and_the_log_above_it() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    for number in 1..=20 {
        cluster.write_to(0, session, number);
        give_snapshots(&mut cluster);
    }
    let applied = cluster.machine(0).applied();
    cluster.crash(1);
    cluster.start(1);
    let restored = cluster.machine(1).applied();
    assert!(restored > Slot(0) && restored < applied);
    cluster.pass(RETRY);
    assert_eq!(cluster.machine(1).applied(), applied);
}

#[test]
fn a_leader_fetches_what_only_one_of_its_acceptors_has_applied() {
    let mut cluster = Cluster::new(5, 1);
    cluster.crown(3, 1);
    let session = cluster.open(3, 1);
    // n3 chooses with n0's votes, forgets below its snapshot, and tells nobody how far it has come; n0 dies.
    cluster.isolate(4);
    cluster.cut.extend([(3, 1), (3, 2)]);
    for number in 1..=12 {
        cluster.write_to(3, session, number);
        give_snapshots(&mut cluster);
    }
    cluster.crash(0);
    cluster.cut.clear();
    cluster.crown(4, 2);
    (0..4).for_each(|_| cluster.pass(RETRY));
    assert!(cluster.machine(4).leads().is_some());
    assert_eq!(cluster.machine(4).applied(), cluster.machine(3).applied());
}

/// n0 and n1 fill 15 slots without n2, which is cut off; a user of n2 and one of n0 want to open session 7, and that is slot 16.
/// Then n1 restarts: by its disk it has a snapshot up to slot 16, and has accepted the last two slots below that. It is n2's turn.
fn behind_by_a_snapshot() -> Cluster {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.isolate(2);
    for number in 1..=14 {
        cluster.write_to(0, session, number);
        give_snapshots(&mut cluster);
    }
    cluster.tell(2, Command::Open { nonce: 7 });
    cluster.open(0, 7);
    cluster.pass(RETRY);
    give_snapshots(&mut cluster);
    cluster.crash(0);
    cluster.crash(1);
    cluster.start(1);
    cluster.cut.clear();
    cluster.crown(2, 2);
    let ballot = cluster.machine(2).leads().unwrap();
    assert!(cluster.seen(2, &Event::Proposed { slot: Slot(16), ballot }), "it proposes that slot again");
    cluster.pass(RETRY);
    assert_eq!(cluster.machine(2).applied(), Slot(16));
    cluster
}

#[test]
fn who_skips_the_slot_that_fulfils_a_wish_finds_that_in_the_snapshot() {
    let mut cluster = behind_by_a_snapshot();
    assert!(cluster.seen(2, &Event::Done(Key::Open(7))));
    assert_eq!(cluster.machine(2).sessions().opened_by(7), Some(Session(16)));
    cluster.pass(10 * RETRY);
    assert_eq!(cluster.machine(2).applied(), Slot(16), "nothing more is to be done");
}

#[test]
fn what_was_proposed_and_then_covered_by_a_snapshot_may_be_wished_for_again() {
    let mut cluster = behind_by_a_snapshot();
    for nonce in [8, 9] {
        cluster.open(2, nonce); // No more than two sessions: the one that was skipped is closed.
    }
    cluster.open(2, 7);
    assert_eq!(cluster.machine(2).sessions().opened_by(7), Some(Session(19)));
}

#[test]
fn a_restarted_process_teaches_its_snapshot_and_not_what_it_had_accepted() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    (1..=6).for_each(|number| cluster.write_to(0, session, number));
    // n1 has accepted a value for slot 8 that nobody else hears of, and does not know any more who wished for it.
    cluster.crown(1, 2);
    cluster.isolate(1);
    cluster.write_to(1, session, 99);
    cluster.crash(1);
    cluster.start(1);
    // n0 and n2 choose another. n1 is told of it, n2 is not.
    cluster.crown(0, 3);
    cluster.tell(0, Command::Write { session, number: 7, bytes: vec![7].into() });
    while !cluster.host(2).store.iter().any(|record| matches!(record, Record::Accepted { slot: Slot(8), .. }))
    {
        cluster.deliver();
    }
    cluster.cut.push((0, 2));
    cluster.settle();
    cluster.cut.clear();
    cluster.isolate(2);
    cluster.pass(RETRY);
    give_snapshots(&mut cluster);
    assert_eq!((cluster.machine(1).applied(), cluster.machine(2).applied()), (Slot(8), Slot(7)));
    // By its disk n1 has a snapshot up to slot 8, and its vote in that slot.
    cluster.crash(0);
    cluster.crash(1);
    cluster.start(1);
    cluster.cut.clear();
    cluster.crown(1, 4);
    (0..3).for_each(|_| cluster.pass(RETRY));
    assert_eq!(cluster.machine(2).applied(), Slot(8));
    let numbers: Vec<u64> = cluster.carried_out(2).into_iter().map(|(_, number)| number).collect();
    assert!(!numbers.contains(&99), "what was never chosen: {numbers:?}");
}
