//! A member that lies about how far the log has come. Members are trusted with values; but none may
//! keep another one busy without end, or stop it.

use super::*;

/// A cluster whose n1 stands for election and gets n2's promise, which says what a test wants.
fn promised(lie: impl FnOnce(&mut Message)) -> Cluster {
    let mut cluster = Cluster::new(3, 1);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    cluster.write_to(0, session, 1);
    cluster.crash(0);
    for node in 1..3 {
        cluster.tell(node, Command::Hint { leader: Some(NodeId(1)), epoch: 2 });
    }
    let mut lie = Some(lie);
    while let Some((from, to, mut message)) = cluster.mail.pop_front() {
        if matches!(message, Message::Promise { .. })
            && from == NodeId(2)
            && let Some(lie) = lie.take()
        {
            lie(&mut message);
        }
        let received = LocalTime::from_nanos(cluster.now);
        cluster.input(to.0, Input::Message { from, received, message });
    }
    assert!(lie.is_none(), "n2 has promised");
    cluster
}

/// Whether n1 leads in the end, and its log goes on.
fn goes_on(cluster: &mut Cluster) {
    (0..8).for_each(|_| cluster.pass(2 * RETRY));
    assert!(cluster.machine(1).leads().is_some());
    let before = cluster.machine(1).applied();
    cluster.tell(1, Command::Open { nonce: 2 });
    cluster.settle();
    assert!(cluster.machine(1).applied() > before);
}

#[test]
fn a_member_that_claims_to_have_applied_everything_does_not_keep_a_leader_busy() {
    for claim in [u64::MAX, Slot::LAST.0, 1 << 40] {
        let mut cluster = promised(|message| {
            if let Message::Promise { applied, .. } = message {
                *applied = Slot(claim);
            }
        });
        goes_on(&mut cluster);
    }
}

#[test]
fn a_member_that_claims_to_have_forgotten_everything_does_not_keep_a_leader_busy() {
    for claim in [u64::MAX, Slot::LAST.0, 1 << 40] {
        let mut cluster = promised(|message| {
            if let Message::Promise { base, applied, .. } = message {
                (*base, *applied) = (Slot(claim), Slot(claim));
            }
        });
        (0..16).for_each(|_| cluster.pass(16 * RETRY));
        goes_on(&mut cluster);
    }
}

#[test]
fn a_promise_that_contradicts_itself_does_not_count() {
    let mut cluster = promised(|message| {
        if let Message::Promise { base, applied, .. } = message {
            *base = applied.next();
        }
    });
    assert_eq!(cluster.machine(1).leads(), None, "nothing is forgotten that was not applied");
    goes_on(&mut cluster);
}

#[test]
fn a_vote_in_an_absurd_slot_does_not_make_a_leader_fill_all_slots_before_it() {
    for claim in [u64::MAX, Slot::LAST.0, 1 << 40] {
        let mut cluster = promised(|message| {
            if let Message::Promise { votes, .. } = message {
                let standing = Standing::Accepted(Ballot { term: 0, round: 1, node: NodeId(0) });
                votes.push((Slot(claim), Vote { standing, entry: Entry::Noop }));
            }
        });
        goes_on(&mut cluster);
    }
}

#[test]
fn a_snapshot_of_a_slot_beyond_the_last_is_dropped() {
    let mut cluster = Cluster::new(3, 1);
    let (sessions, state) = (Sessions::default(), [0u8].as_slice().into());
    let message = Message::Install { upto: Slot(u64::MAX), sessions, state };
    cluster.input(1, Input::Message { from: NodeId(2), received: LocalTime::ZERO, message });
    assert_eq!(cluster.machine(1).applied(), Slot(0));
    cluster.crown(1, 1);
    goes_on(&mut cluster);
}
