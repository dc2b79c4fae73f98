//! Processes that were away for long: snapshots, forgotten slots, and fetched ones.

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
    // n2 holds a vote for the next slot that was never chosen; then it is away while that slot gets
    // another value.
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
    // n3 chooses with n0's votes, forgets below its snapshot, and tells nobody how far it has come;
    // n0 dies.
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

#[test]
fn an_answer_that_comes_twice_is_followed_by_one_question() {
    let mut cluster = Cluster::with(Settings { page: 1, ..settings(3, 1) });
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.isolate(2);
    (1..=6).for_each(|number| cluster.write_to(0, session, number));
    cluster.cut.clear();
    cluster.now += RETRY;
    cluster.input(0, Input::Deadline);
    let mut fetches = 0;
    while let Some((from, to, message)) = cluster.mail.pop_front() {
        fetches += usize::from(matches!(message, Message::Fetch { .. }));
        let times = if matches!(message, Message::Learn { .. }) { 2 } else { 1 };
        for _ in 0..times {
            let (received, message) = (LocalTime::from_nanos(cluster.now), message.clone());
            cluster.input(to.0, Input::Message { from, received, message });
        }
    }
    assert_eq!(cluster.machine(2).applied(), Slot(7));
    assert_eq!(fetches, 6, "one for each entry");
}

/// n0 and n1 fill slots without n2. Then n0, which has forgotten all but its snapshot, promises n2
/// its ballot, and is gone for good before it can be asked for more. `lost` gets to nobody of what
/// n0 says to n1.
fn forgotten_by_one_that_is_gone(lost: impl Fn(&Message) -> bool) -> Cluster {
    let mut cluster = Cluster::with(Settings { keep: 0, window: 64, ..settings(3, 1) });
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.isolate(2);
    for number in 1..=15 {
        cluster.tell(0, Command::Write { session, number, bytes: [0u8].as_slice().into() });
        cluster.settle_but(|from, _, message| number == 15 && from == NodeId(0) && lost(message));
        give_snapshots(&mut cluster);
    }
    assert_eq!(cluster.machine(0).base(), Slot(16));
    cluster.cut = vec![(1, 2), (2, 1)];
    cluster.tell(2, Command::Hint { leader: Some(NodeId(2)), epoch: 2 });
    while cluster.machine(2).leads().is_none() {
        cluster.deliver();
    }
    cluster.crash(0);
    cluster.cut.clear();
    cluster.settle();
    cluster
}

#[test]
fn who_is_behind_asks_others_when_the_one_that_is_ahead_is_gone() {
    let mut cluster = forgotten_by_one_that_is_gone(|_| false);
    (0..3).for_each(|_| cluster.pass(RETRY));
    assert_eq!(cluster.machine(2).applied(), Slot(16));
}

#[test]
fn a_leader_whom_nobody_teaches_what_is_forgotten_asks_for_promises_again() {
    let mut cluster = forgotten_by_one_that_is_gone(|message| matches!(message, Message::Commit { .. }));
    assert_eq!(
        cluster.machine(1).applied(),
        Slot(15),
        "it has accepted the last slot and does not know more"
    );
    (0..20).for_each(|_| cluster.pass(2 * RETRY));
    assert!(cluster.machine(2).leads().is_some());
    assert_eq!(cluster.machine(2).applied(), Slot(16));
}

#[test]
fn what_such_a_leader_has_proposed_is_chosen_before_it_asks_again() {
    let mut cluster = forgotten_by_one_that_is_gone(|message| matches!(message, Message::Commit { .. }));
    let session = Session(1);
    cluster.cut = vec![(1, 2)];
    cluster.write_to(2, session, 16);
    (0..20).for_each(|_| cluster.pass(RETRY));
    assert!(cluster.machine(2).leads().is_some(), "nobody answers, and it goes on asking for votes");
    cluster.cut.clear();
    (0..30).for_each(|_| cluster.pass(RETRY));
    let ballot = Ballot { term: 0, round: 2, node: NodeId(2) };
    assert!(
        cluster.seen(2, &Event::Chosen { slot: Slot(17), ballot }),
        "in the ballot in which it was proposed"
    );
    assert_eq!(cluster.carried_out(2).last(), Some(&(session, 16)), "and then it learnt slot 16");
}

/// n0 and n1 fill 15 slots without n2, which is cut off; a user of n2 and one of n0 want to open
/// session 7, and that is slot 16. Then n1 restarts: by its disk it has a snapshot up to slot 16,
/// and has accepted the last two slots below that. It is n2's turn.
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
    // n1 has accepted a value for slot 8 that nobody else hears of, and does not know any more who
    // wished for it.
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

#[test]
fn who_is_not_answered_asks_less_and_less_often() {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.isolate(2);
    cluster.write_to(0, session, 1);
    cluster.cut = vec![(2, 0), (2, 1), (1, 2)]; // It hears that n0 is ahead, and nobody hears it.
    let mut fetches = Vec::new();
    for time in 0..30 {
        cluster.now += RETRY;
        (0..3).for_each(|node| cluster.input(node, Input::Deadline));
        let asked = |(.., message): &(NodeId, NodeId, Message)| matches!(message, Message::Fetch { .. });
        while let Some(next) = cluster.mail.front() {
            fetches.extend(asked(next).then_some(time));
            cluster.deliver();
        }
    }
    let waits: Vec<i32> = fetches.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(waits, [1, 1, 2, 2, 4, 4, 8]);
}
