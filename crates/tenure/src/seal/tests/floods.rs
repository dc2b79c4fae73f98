//! Very many packets: what they cost, and what they get.

use super::*;

/// A forged source, another each time.
fn forged(number: u32) -> SocketAddr {
    SocketAddr::from(((number.wrapping_mul(2_654_435_761)).to_be_bytes(), 4000))
}

#[test]
fn garbage_gets_no_answer_and_leaves_nothing_behind() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    for number in 0..100_000u32 {
        let mut garbage = vec![u8::try_from(number % 251).unwrap(); 40 + number as usize % 200];
        if number % 2 == 0 {
            garbage[..2].copy_from_slice(&[0xe7, 0x11 + u8::try_from(number / 2 % 4).unwrap()]);
        }
        assert!(matches!(b.get(&garbage, forged(number), at(1)), Got::Dropped(_)));
    }
    assert_eq!(b.sessions.counters().refusals(), 100_000);
    assert_eq!((b.sessions.peers(), b.sessions.counters().welcomes), (1, 1));
    reaches(&mut a, &mut b, "undisturbed", at(2));
}

#[test]
fn an_overheard_greeting_sent_from_everywhere_gets_few_answers_and_no_memory() {
    let (mut a, mut b) = pair();
    let overheard = a.hello(&b, at(0));
    let mut answers = 0;
    for number in 0..100_000u32 {
        let now = LocalTime::from_nanos(u64::from(number) * 10_000);
        match b.get(&overheard, forged(number), now) {
            Got::Reply(reply) => {
                answers += 1;
                assert!(reply.len() < overheard.len());
            }
            got => assert_eq!(got.refusal(), Refusal::Limited),
        }
    }
    assert!(answers <= 4 + 1000 / (RETRY / 2), "{answers} in one second");
    assert_eq!(b.sessions.peers(), 0);
    let mut c = Node::member("c", 3);
    shake(&mut c, &mut b, at(1000));
    reaches(&mut c, &mut b, "others get through meanwhile", at(1001));
}

#[test]
fn other_data_behind_a_genuine_introduction_is_tried_so_often_and_no_more() {
    let (mut a, mut b) = pair();
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(0)).reply();
    let first = a.get(&welcome, b.address, at(0)).reply();
    let mut changed = first.clone();
    changed[10] ^= 1;
    let tried =
        (0..10_000).filter(|_| b.get(&changed, a.address, at(1)) == Got::Dropped(Refusal::Forged)).count();
    assert_eq!((tried, b.refused("limited")), (100, 9_900));
    assert!(matches!(b.get(&first, a.address, at(2)), Got::Ready(..)));
}

#[test]
fn greetings_of_one_with_a_key_are_limited_in_all() {
    let limits = Limits { welcomes: 100, welcomes_from_one_source: 20, ..limits() };
    let mut b = Node::new(Node::member("b", 2).identity, 2, limits);
    let greetings: Vec<_> =
        (0..500u16).map(|n| Node::candidate(&format!("app{n}"), "*", 9).hello(&b, at(0))).collect();
    let mut answers = 0;
    for (greeting, number) in greetings.iter().zip(0..) {
        answers += u32::from(matches!(b.get(greeting, forged(number), at(0)), Got::Reply(_)));
    }
    assert_eq!(answers, 10, "a tenth of a second's worth");
    assert_eq!(b.refused("limited"), 490);
}

#[test]
fn the_number_of_peers_is_bounded_and_the_longest_silent_goes_first() {
    let mut b = Node::new(Node::member("b", 2).identity, 2, Limits { peers: 3, ..limits() });
    let mut m = Node::member("m", 10);
    let mut apps: Vec<_> = (0..3).map(|n| Node::candidate(&format!("app{n}"), "*", 20 + n)).collect();
    shake(&mut m, &mut b, at(0));
    shake(&mut apps[0], &mut b, at(10));
    shake(&mut apps[1], &mut b, at(20));
    reaches(&mut apps[0], &mut b, "still here", at(30));
    shake(&mut apps[2], &mut b, at(40));
    assert_eq!(b.sessions.peers(), 3);
    assert!(
        b.sessions.has_session(m.name.id()),
        "one with the cluster's key stays, though it was silent for longer"
    );
    assert!(b.sessions.has_session(apps[0].name.id()) && !b.sessions.has_session(apps[1].name.id()));
    let lost = apps[1].say(&b, "x", at(50));
    assert_eq!(b.get(&lost, apps[1].address, at(50)).refusal(), Refusal::UnknownSession);
    shake(&mut apps[1], &mut b, at(200));
    reaches(&mut apps[1], &mut b, "back again", at(201));
}

#[test]
fn members_make_room_for_members_alone() {
    let mut b = Node::new(Node::member("b", 2).identity, 2, Limits { peers: 1, ..limits() });
    let (mut m, mut n) = (Node::member("m", 10), Node::member("n", 11));
    shake(&mut m, &mut b, at(0));
    let mut app = Node::candidate("app", "*", 20);
    let hello = app.hello(&b, at(1));
    let welcome = b.get(&hello, app.address, at(1)).reply();
    let first = app.get(&welcome, b.address, at(1)).reply();
    assert_eq!(b.get(&first, app.address, at(1)).refusal(), Refusal::Full);
    reaches(&mut m, &mut b, "undisturbed", at(2));
    shake(&mut n, &mut b, at(3));
    assert!(b.sessions.has_session(n.name.id()) && !b.sessions.has_session(m.name.id()));
}

/// An observer whose every handshake is that of a new life. Each ends the session of the life
/// before.
fn new_lives(observer: &mut Node, b: &mut Node, millis: std::ops::Range<u64>) {
    for now in millis {
        observer.restart();
        let hello = observer.hello(b, at(now));
        let Got::Reply(welcome) = b.get(&hello, observer.address, at(now)) else { continue };
        let first = observer.get(&welcome, b.address, at(now)).reply();
        b.get(&first, observer.address, at(now));
    }
}

#[test]
fn new_lives_of_one_outsider_do_not_stop_handshakes_of_farther_peers() {
    let mut b = Node::member("b", 2);
    let scope = Scope::new("*").unwrap();
    let mut observer = Node::outsider(key(1).observer(CLUSTER, name("watcher"), scope), 9);
    let peers = [
        Node::member("m", 10),
        Node::candidate("app", "app/*", 11),
        Node::outsider(key(1).operator(CLUSTER, name("op")), 12),
    ];
    for (mut peer, turn) in peers.into_iter().zip(0..) {
        for attempt in 0..40 {
            let start = (turn * 40 + attempt) * 200;
            peer.restart();
            let hello = peer.hello(&b, at(start));
            new_lives(&mut observer, &mut b, start + 1..start + 10);
            let welcome = b.get(&hello, peer.address, at(start + 10)).reply();
            new_lives(&mut observer, &mut b, start + 10..start + 20);
            let first = peer.get(&welcome, b.address, at(start + 20)).reply();
            new_lives(&mut observer, &mut b, start + 20..start + 30);
            let got = b.get(&first, peer.address, at(start + 30));
            assert!(matches!(got, Got::Ready(..)), "{}, attempt {attempt}: {got:?}", peer.name);
        }
    }
    assert!(b.sessions.counters().begun > 3 * 40 * 20, "the observer's lives did begin");
}

#[test]
fn one_outsiders_key_begins_so_many_sessions_a_second_and_no_more() {
    let limits = Limits { beginnings_of_one_key: 10, ..limits() };
    let mut b = Node::new(Node::member("b", 2).identity, 2, limits);
    let mut greedy = Node::candidate("greedy", "*", 9);
    new_lives(&mut greedy, &mut b, 1..1001);
    let begun = b.sessions.counters().begun;
    assert!((50..=60).contains(&begun), "{begun}: five seconds' worth, and what grew meanwhile");
    assert!(b.refused("limited") >= 900);
    let mut app = Node::candidate("app", "*", 9);
    shake(&mut app, &mut b, at(1001));
    reaches(&mut app, &mut b, "another key from the same address is not limited", at(1002));
}

#[test]
fn outsiders_cannot_use_up_what_members_are_allowed() {
    let limits = Limits { welcomes: 100, welcomes_from_one_source: 100, ..limits() };
    let mut b = Node::new(Node::member("b", 2).identity, 2, limits);
    for number in 0..200 {
        let mut app = Node::candidate(&format!("app{number}"), "*", 9);
        let hello = app.hello(&b, at(0));
        b.get(&hello, app.address, at(0));
    }
    assert!(b.refused("limited") >= 190);
    let mut m = Node::member("m", 9);
    shake(&mut m, &mut b, at(1));
    reaches(&mut m, &mut b, "from the same part of the network", at(2));
}
