//! Logs with a long tail: what is taken up, said again and caught up with, page by page.

use super::*;

/// One entry a message, and no snapshots.
fn paged(window: u64) -> Settings {
    Settings { page: 1, window, snapshot_every: 1000, wishes: 64, ..settings(3, 1) }
}

/// Three processes, and a session of a user of n0, which leads.
fn led(settings: Settings) -> (Cluster, Session) {
    let mut cluster = Cluster::with(settings);
    cluster.crown(0, 1);
    let session = cluster.open(0, 1);
    (cluster, session)
}

fn wish(cluster: &mut Cluster, session: Session, number: u64) {
    cluster.tell(0, Command::Write { session, number, bytes: [0u8].as_slice().into() });
}

#[test]
fn pages_hold_what_fits_in_order_and_one_in_any_case() {
    let split = |weights: &[usize]| pages(weights.iter().copied(), (10, 5), |weight| *weight);
    assert_eq!(split(&[]), [] as [Vec<usize>; 0]);
    assert_eq!(split(&[4, 6, 1, 10, 11, 2, 3]), [vec![4, 6], vec![1], vec![10], vec![11], vec![2, 3]]);
    assert_eq!(split(&[10, 10, 10, 10, 1, 2, 8]).last(), Some(&vec![1, 2]), "five are enough");
    assert_eq!(pages(0..300_000, (1, usize::MAX), |_| 1).len(), 300_000, "and each is moved once");
}

#[test]
fn who_takes_up_a_tail_accepts_each_page_when_that_page_is_durable() {
    let (mut cluster, session) = led(paged(64));
    cluster.isolate(0);
    (1..=5).for_each(|number| wish(&mut cluster, session, number));
    cluster.settle();
    cluster.cut.clear();
    cluster.quick = false;
    cluster.tell(0, Command::Hint { leader: None, epoch: 0 });
    cluster.tell(0, Command::Hint { leader: Some(NodeId(0)), epoch: 2 });
    while cluster.machine(0).leads().is_none() {
        (0..3).for_each(|node| cluster.write(node));
        cluster.deliver();
    }
    let waiting = cluster.host(0).waiting.iter();
    let accepted = waiting.filter_map(|(after, _, message)| match message {
        Message::Accepted { slots, .. } => Some((after.0, slots.clone())),
        _ => None,
    });
    let accepted: Vec<_> = accepted.collect();
    assert_eq!(accepted.len(), 5);
    assert!(accepted.is_sorted_by(|one, next| one.0 < next.0), "none waits for the next: {accepted:?}");
}

#[test]
fn what_is_not_accepted_is_said_again_from_its_lowest_slot_and_only_a_part_of_it_at_once() {
    let (mut cluster, session) = led(paged(64));
    cluster.isolate(0);
    (1..=40).for_each(|number| wish(&mut cluster, session, number));
    cluster.settle();
    cluster.cut.clear();
    cluster.now += RETRY;
    cluster.input(0, Input::Deadline);
    let accepts = cluster.mail.iter().filter_map(|(_, to, message)| match message {
        Message::Accept { entries, .. } if *to == NodeId(1) => Some(entries[0].0),
        _ => None,
    });
    assert_eq!(accepts.collect::<Vec<_>>(), (2..=9).map(Slot).collect::<Vec<_>>());
    cluster.settle();
    (0..5).for_each(|_| cluster.pass(RETRY));
    assert_eq!(cluster.carried_out(0).len(), 40, "the next ones had their turn");
}

#[test]
fn a_window_without_bound_is_one() {
    let (mut cluster, session) = led(Settings { window: u64::MAX, ..settings(3, 1) });
    (1..=6).for_each(|number| cluster.write_to(0, session, number));
    assert_eq!(cluster.carried_out(2).len(), 6);
}

#[test]
fn nobody_tells_itself_what_it_holds() {
    let mut cluster = told_in_pages();
    cluster.isolate(1);
    let mut votes_to_oneself = 0;
    for _ in 0..3 {
        let own = cluster.mail.iter().filter(|(from, to, _)| from == to);
        votes_to_oneself += own.filter(|(.., message)| carries(message) > 0).count();
        cluster.settle();
        cluster.now += RETRY;
        cluster.input(1, Input::Deadline);
    }
    assert_eq!(votes_to_oneself, 0);
    assert!(cluster.mail.iter().all(|(from, to, _)| from != to), "and promises itself once");
    assert_eq!(cluster.machine(1).gathered(), 7, "but it knows that");
}

#[test]
fn each_page_of_each_promise_counts_once_as_gathered() {
    let mut cluster = told_in_pages();
    let mut most = 0;
    while let Some((from, to, message)) = cluster.mail.pop_front() {
        for _ in 0..2 {
            let (received, message) = (LocalTime::from_nanos(cluster.now), message.clone());
            cluster.input(to.0, Input::Message { from, received, message });
        }
        most = most.max(cluster.machine(1).gathered());
        assert!(most <= 3 * 7);
    }
    assert!(most >= 7 + 6, "its own votes, and all but the last page of another: {most}");
    assert!(cluster.machine(1).leads().is_some());
    assert_eq!(cluster.machine(1).gathered(), 0, "it asks for nothing any more");
}

#[test]
fn who_is_behind_goes_on_asking_the_one_that_answers() {
    let (mut cluster, session) = led(paged(4));
    cluster.isolate(2);
    (1..=30).for_each(|number| cluster.write_to(0, session, number));
    cluster.pass(RETRY);
    cluster.cut = vec![(1, 2), (2, 1)];
    cluster.now += RETRY;
    cluster.input(0, Input::Deadline);
    cluster.settle_but(|from, _, _| from == NodeId(2)); // It hears that n0 is ahead, and can ask nobody.
    cluster.crash(0);
    cluster.cut.clear();
    (0..4).for_each(|_| cluster.pass(RETRY));
    assert_eq!(cluster.machine(2).applied(), cluster.machine(1).applied());
}

#[test]
fn a_snapshot_that_cannot_be_made_is_wanted_again_as_many_slots_later() {
    let (mut cluster, session) = led(settings(3, 1));
    (1..=30).for_each(|number| {
        cluster.write_to(0, session, number);
        let events = cluster.host(0).events.iter().rev();
        let last = events.take_while(|event| !matches!(event, Event::Chosen { .. })).find_map(wanted);
        if let Some(upto) = last {
            cluster.tell(0, Command::NoSnapshot { upto });
        }
    });
    let asked: Vec<Slot> = cluster.host(0).events.iter().filter_map(wanted).collect();
    assert_eq!(asked, [8, 16, 24].map(Slot));
    assert_eq!(cluster.machine(0).base(), Slot(0));
    cluster.write_to(0, session, 31);
    let state = [0u8].as_slice().into();
    cluster.tell(0, Command::Snapshot { upto: Slot(32), state });
    assert_eq!(cluster.machine(0).base(), Slot(30));
}

#[test]
fn members_that_differ_in_when_they_begin_never_make_snapshots_at_once() {
    let (mut cluster, session) = led(Settings { snapshot_sooner: 3, ..settings(3, 1) });
    (1..=22).for_each(|number| {
        cluster.write_to(0, session, number);
        let last = cluster.host(0).events.iter().rev().find_map(wanted);
        if let Some(upto) = last {
            cluster.tell(0, Command::Snapshot { upto, state: [0u8].as_slice().into() });
        }
    });
    let asked: Vec<Slot> = cluster.host(0).events.iter().filter_map(wanted).collect();
    assert_eq!(asked, [5, 13, 21].map(Slot));
}

/// Those of n2 are due at slots 5, 13 and 21. It is given one of slot 10.
#[test]
fn a_process_that_was_given_a_snapshot_makes_its_own_at_its_own_places() {
    let (mut cluster, session) = led(Settings { snapshot_sooner: 3, ..settings(3, 1) });
    cluster.isolate(2);
    (1..=9).for_each(|number| cluster.write_to(0, session, number));
    let (upto, sessions) = (cluster.machine(0).applied(), cluster.machine(0).sessions().clone());
    let message = Message::Install { upto, sessions, state: [0u8].as_slice().into() };
    cluster.input(2, Input::Message { from: NodeId(0), received: LocalTime::ZERO, message });
    cluster.cut.clear();
    (10..=22).for_each(|number| {
        cluster.write_to(0, session, number);
        let last = cluster.host(2).events.iter().rev().find_map(wanted);
        if let Some(upto) = last {
            cluster.tell(2, Command::Snapshot { upto, state: [0u8].as_slice().into() });
        }
    });
    let asked: Vec<Slot> = cluster.host(2).events.iter().filter_map(wanted).collect();
    assert_eq!((upto, asked), (Slot(10), vec![Slot(13), Slot(21)]));
}

fn wanted(event: &Event) -> Option<Slot> {
    if let Event::SnapshotWanted { upto } = event { Some(*upto) } else { None }
}
