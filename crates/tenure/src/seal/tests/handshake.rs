//! How sessions begin, and begin anew.

use super::*;

#[test]
fn after_one_round_trip_the_greeting_side_speaks_and_after_that_both_do() {
    let (mut a, mut b) = pair();
    assert!(!a.sessions.has_session(b.name.id()));
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(5)).reply();
    assert!(!b.sessions.has_session(a.name.id()), "nothing is kept for a greeting");
    assert!(matches!(a.get(&welcome, b.address, at(10)), Got::Ready(peer, Some(_)) if peer.name == b.name));
    let first = a.say(&b, "who leads?", at(10));
    assert_eq!(b.get(&first, a.address, at(15)).text(), "who leads?");
    let (answer, to) = b.sessions.seal(a.name.id(), b"I do", Expect::Nothing, at(15)).unwrap();
    assert_eq!(to, a.address);
    assert_eq!(a.get(&answer, b.address, at(20)).text(), "I do");
}

#[test]
fn a_greeting_alone_makes_a_session_for_both_sides() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    reaches(&mut b, &mut a, "from b", at(1));
    reaches(&mut a, &mut b, "from a", at(2));
    assert_eq!((a.sessions.counters().hellos, b.sessions.counters().welcomes), (1, 1));
}

#[test]
fn a_peer_is_told_with_its_name_life_and_version() {
    let (mut a, mut b) = pair();
    let [_, _, first, _] = shake(&mut a, &mut b, at(0));
    let packet = a.say(&b, "x", at(1));
    let peer = b.get(&packet, a.address, at(1)).peer();
    let id = a.name.id();
    let expected = Peer {
        id,
        name: name("a"),
        rights: Rights::Member,
        holder: floors::Holder::Member(id),
        serial: None,
        not_after: None,
        boot: 1,
        version: 1,
    };
    assert_eq!(*peer, expected);
    assert_eq!(b.get(&first, a.address, at(1)).refusal(), Refusal::Replayed);
}

#[test]
fn packets_grow_by_the_overhead_and_no_more_once_the_session_is_known() {
    let (mut a, mut b) = pair();
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(0)).reply();
    let first = a.get(&welcome, b.address, at(0)).reply();
    let long = "x".repeat(MAX_PACKET - OVERHEAD);
    assert!(
        a.say(&b, "short", at(0)).len() > 5 + OVERHEAD,
        "introduced while the other side may not know it"
    );
    let packet = a.say(&b, &long, at(0));
    assert_eq!(packet.len(), MAX_PACKET, "the introduction is left out where it does not fit");
    assert_eq!(b.get(&packet, a.address, at(0)).refusal(), Refusal::UnknownSession);
    let answer = b.get(&first, a.address, at(0)).reply();
    assert_eq!(b.get(&packet, a.address, at(0)).text(), long);
    a.get(&answer, b.address, at(0));
    assert_eq!(a.say(&b, "short", at(0)).len(), 5 + OVERHEAD);
}

#[test]
fn data_begins_the_session_if_the_first_packet_is_lost() {
    let (mut a, mut b) = pair();
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(0)).reply();
    let lost = a.get(&welcome, b.address, at(0)).reply();
    reaches(&mut a, &mut b, "one", at(1));
    reaches(&mut a, &mut b, "two", at(2));
    assert!(matches!(b.get(&lost, a.address, at(3)), Got::Ready(_, None)), "late, but a valid packet");
    reaches(&mut b, &mut a, "three", at(4));
}

#[test]
fn a_greeting_is_repeated_not_before_the_interval_and_answers_to_either_are_good() {
    let (mut a, mut b) = pair();
    let hello = a.hello(&b, at(0));
    assert!(a.sessions.greet(&b.name, at(RETRY - 1)).is_none());
    let again = a.hello(&b, at(RETRY));
    assert_eq!(hello, again, "a round trip may be longer than the interval");
    let welcome = b.get(&hello, a.address, at(RETRY + 50)).reply();
    assert!(matches!(a.get(&welcome, b.address, at(2 * RETRY)), Got::Ready(..)));
    assert_ne!(a.hello(&b, at(3 * RETRY)), hello, "an answered challenge is not used again");
}

#[test]
fn a_challenge_is_not_used_for_long() {
    let (mut a, b) = pair();
    let hello = a.hello(&b, at(0));
    assert_eq!(a.hello(&b, at(4_900)), hello);
    assert_ne!(a.hello(&b, at(5_100)), hello);
}

#[test]
fn nobody_greets_itself() {
    let mut a = Node::member("a", 1);
    assert!(a.sessions.greet(&name("a"), at(0)).is_none());
}

#[test]
fn silence_is_told_only_of_peers_that_were_asked() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    assert!(a.unanswered(at(10 * RETRY)).is_empty() && b.unanswered(at(10 * RETRY)).is_empty());
    a.sessions.seal(b.name.id(), b"for your information", Expect::Nothing, at(1000)).unwrap();
    assert!(a.unanswered(at(1000 + 10 * RETRY)).is_empty());
    a.say(&b, "answer me", at(2000));
    assert!(a.unanswered(at(2000 + RETRY)).is_empty());
    assert_eq!(a.unanswered(at(2001 + RETRY)), [b.name.id()]);
    reaches(&mut b, &mut a, "here I am", at(2200));
    assert!(a.unanswered(at(3000)).is_empty());
}

#[test]
fn a_lost_first_packet_is_noticed_and_the_next_greeting_helps() {
    let (mut a, mut b) = pair();
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(0)).reply();
    a.get(&welcome, b.address, at(0)).reply();
    assert_eq!(a.unanswered(at(2 * RETRY)), [b.name.id()]);
    shake(&mut a, &mut b, at(2 * RETRY));
    reaches(&mut a, &mut b, "there", at(2 * RETRY));
}

#[test]
fn a_restarted_receiver_is_spoken_to_again_after_two_round_trips() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    b.restart();
    let request = a.say(&b, "renew", at(1000));
    assert_eq!(b.get(&request, a.address, at(1001)).refusal(), Refusal::UnknownSession);
    assert_eq!(a.unanswered(at(1101)), [b.name.id()]);
    let hello = a.hello(&b, at(1101));
    let welcome = b.get(&hello, a.address, at(1102)).reply();
    let ready = a.get(&welcome, b.address, at(1103));
    assert!(matches!(&ready, Got::Ready(peer, _) if peer.boot == 1002), "one round trip");
    let request = a.say(&b, "renew", at(1103));
    assert_eq!(b.get(&request, a.address, at(1104)).text(), "renew");
    let answer = b.say(&a, "ok", at(1104));
    assert_eq!(a.get(&answer, b.address, at(1105)).text(), "ok", "two round trips");
}

#[test]
fn a_restarted_node_that_greets_is_spoken_to_without_a_greeting_back() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    b.restart();
    let hello = b.hello(&a, at(1000));
    let welcome = a.get(&hello, b.address, at(1001)).reply();
    let first = b.get(&welcome, a.address, at(1002)).reply();
    let old = a.say(&b, "on the old session", at(1002));
    assert!(matches!(a.get(&first, b.address, at(1003)), Got::Ready(peer, Some(_)) if peer.boot == 1002));
    reaches(&mut a, &mut b, "renew", at(1003));
    assert_eq!(b.get(&old, a.address, at(1004)).refusal(), Refusal::UnknownSession);
    assert_eq!(a.sessions.counters().hellos, 1, "only that of the beginning");
}

#[test]
fn a_greeting_changes_nothing_until_the_first_data() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    let hello = a.hello(&b, at(500));
    b.get(&hello, a.address, at(500)).reply();
    reaches(&mut a, &mut b, "the old session is good", at(501));
    reaches(&mut b, &mut a, "both ways", at(502));
}

#[test]
fn answers_on_their_way_are_taken_while_a_new_session_begins() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    let hello = a.hello(&b, at(500));
    let welcome = b.get(&hello, a.address, at(501)).reply();
    let answer = b.say(&a, "on the old session", at(501));
    let first = a.get(&welcome, b.address, at(502)).reply();
    assert_eq!(a.get(&answer, b.address, at(502)).text(), "on the old session");
    b.get(&first, a.address, at(503)).reply();
    reaches(&mut a, &mut b, "on the new one", at(504));
    reaches(&mut b, &mut a, "on the new one", at(505));
}

#[test]
fn a_session_that_never_came_to_be_is_given_up_when_the_peer_goes_on_with_the_old_one() {
    let (mut a, mut b) = pair();
    shake(&mut b, &mut a, at(0));
    let hello = a.hello(&b, at(500));
    let welcome = b.get(&hello, a.address, at(500)).reply();
    a.get(&welcome, b.address, at(500)).reply();
    let long = "x".repeat(MAX_PACKET - OVERHEAD);
    reaches(&mut b, &mut a, "on the old session", at(550));
    let packet = a.say(&b, &long, at(551));
    assert_eq!(
        b.get(&packet, a.address, at(552)).refusal(),
        Refusal::UnknownSession,
        "the first packet was lost"
    );
    reaches(&mut b, &mut a, "on the old session", at(500 + RETRY));
    reaches(&mut a, &mut b, &long, at(501 + RETRY));
}

#[test]
fn a_greeting_that_was_lost_does_not_stand_in_the_way_of_a_restarted_peer() {
    let (mut a, mut b) = pair();
    let _lost = a.hello(&b, at(0));
    shake(&mut b, &mut a, at(10));
    b.restart();
    shake(&mut a, &mut b, at(1000));
    reaches(&mut a, &mut b, "renew", at(1001));
}

#[test]
fn greetings_that_cross_end_in_one_talk_and_no_further_greetings() {
    let (mut a, mut b) = pair();
    let (hello_a, hello_b) = (a.hello(&b, at(0)), b.hello(&a, at(0)));
    let welcome_b = b.get(&hello_a, a.address, at(5)).reply();
    let welcome_a = a.get(&hello_b, b.address, at(5)).reply();
    let first_a = a.get(&welcome_b, b.address, at(10)).reply();
    let first_b = b.get(&welcome_a, a.address, at(10)).reply();
    let second_a = a.get(&first_b, b.address, at(15)).reply();
    let second_b = b.get(&first_a, a.address, at(15)).reply();
    a.get(&second_b, b.address, at(20));
    b.get(&second_a, a.address, at(20));
    for turn in 0..20 {
        let now = at(30 + 10 * turn);
        let (from_a, from_b) = (a.say(&b, "a", now), b.say(&a, "b", now));
        assert_eq!(b.get(&from_a, a.address, now).text(), "a");
        assert_eq!(a.get(&from_b, b.address, now).text(), "b");
    }
    assert!(a.unanswered(at(10_000)).is_empty() && b.unanswered(at(10_000)).is_empty());
    assert_eq!((a.sessions.counters().refusals(), b.sessions.counters().refusals()), (0, 0));
}

#[test]
fn greetings_that_cross_with_any_one_packet_lost_end_in_a_talk() {
    for lost in 0..8 {
        let (mut a, mut b) = pair();
        let mut count = 0;
        let mut under_way = vec![(true, a.hello(&b, at(0))), (false, b.hello(&a, at(0)))];
        while !under_way.is_empty() {
            let (from_a, packet) = under_way.remove(0);
            count += 1;
            if count - 1 == lost {
                continue;
            }
            let got =
                if from_a { b.get(&packet, a.address, at(1)) } else { a.get(&packet, b.address, at(1)) };
            if let Got::Reply(reply) | Got::Ready(_, Some(reply)) = got {
                under_way.push((!from_a, reply));
            }
        }
        assert!(a.sessions.has_session(b.name.id()) && b.sessions.has_session(a.name.id()), "lost: {lost}");
        reaches(&mut a, &mut b, "a", at(2));
        reaches(&mut b, &mut a, "b", at(3));
        reaches(&mut a, &mut b, "a", at(4));
    }
}

fn with_versions(text: &str, last: u8, oldest: u8, newest: u8) -> Node {
    let identity =
        Identity::member(name(text), CLUSTER, ring(1), u128::from(last), Versions { oldest, newest });
    Node::new(identity, last, limits())
}

#[test]
fn the_newest_version_of_both_is_spoken() {
    let (mut a, mut b) = (with_versions("a", 1, 1, 3), with_versions("b", 2, 2, 5));
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(0)).reply();
    assert_eq!(a.get(&welcome, b.address, at(0)).peer().version, 3);
    let packet = a.say(&b, "x", at(0));
    assert_eq!(b.get(&packet, a.address, at(0)).peer().version, 3);
}

#[test]
fn without_a_common_version_both_sides_say_so() {
    let (mut a, mut b) = (with_versions("a", 1, 1, 2), with_versions("b", 2, 3, 4));
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(0)).reply();
    assert_eq!(b.refused("versions"), 1);
    let refusal = a.get(&welcome, b.address, at(0)).refusal();
    let said = "b speaks versions 3 to 4 of the protocol, this node 1 to 2: update the older one";
    assert_eq!(refusal.to_string(), said);
    assert!(!a.sessions.has_session(b.name.id()));
}

/// Two processes under one name and one key, and the member that they speak to.
fn doubles() -> (Node, Node, Node) {
    let key = key(1).candidate(CLUSTER, name("app"), Scope::new("*").unwrap());
    let (first, second) = (Node::outsider(key.clone(), 1), Node::outsider(key, 3));
    (first, second, Node::member("b", 2))
}

/// The answer of `b` to the First packet of a handshake that `a` begins.
fn returns(a: &mut Node, b: &mut Node, now: LocalTime) -> Got {
    let hello = a.hello(b, now);
    let welcome = b.get(&hello, a.address, now).reply();
    let first = a.get(&welcome, b.address, now).reply();
    b.get(&first, a.address, now)
}

#[test]
fn a_former_life_that_comes_back_is_refused_and_told_as_long_as_the_newer_one_lives() {
    let (mut first, mut second, mut b) = doubles();
    shake(&mut first, &mut b, at(0));
    shake(&mut second, &mut b, at(1000)); // A restart looks just like this.
    assert_eq!(returns(&mut first, &mut b, at(2000)).refusal(), Refusal::NameInUse { name: name("app") });
    reaches(&mut second, &mut b, "still served", at(2001));
    let hello = first.hello(&b, at(2500));
    let welcome = b.get(&hello, first.address, at(2500)).reply();
    let told = Got::KeyRefused(b.name.id(), KeyRefusal::NameInUse);
    assert_eq!(first.get(&welcome, b.address, at(2500)), told);
    assert_eq!(b.refused("name_in_use"), 2);
    // The newer one has gone.
    shake(&mut first, &mut b, at(12_100));
    reaches(&mut first, &mut b, "alone again", at(12_101));
}

#[test]
fn a_process_that_is_restarted_again_and_again_is_never_taken_for_two() {
    let (mut app, _, mut b) = doubles();
    for life in 0..20 {
        shake(&mut app, &mut b, at(200 * life));
        app.restart();
    }
    assert_eq!(b.refused("name_in_use"), 0);
}

#[test]
fn one_that_nobody_answers_greets_more_and_more_rarely_after_ten_seconds() {
    let (mut app, _, mut b) = doubles();
    let sent = |app: &mut Node, b: &Node, from: u64, to: u64| {
        (from..to).step_by(10).filter(|now| app.sessions.greet(&b.name, at(*now)).is_some()).count()
    };
    assert_eq!(sent(&mut app, &b, 0, 10_000), 100, "one each interval of retransmission");
    sent(&mut app, &b, 10_000, 20_000);
    assert!(sent(&mut app, &b, 20_000, 80_000) <= 60_000 / 1600 + 1);
    // As soon as there was a session, it greets promptly again.
    let hello =
        (80_000..90_000).find_map(|now| app.sessions.greet(&b.name, at(now)).map(|hello| (hello, now)));
    let (hello, now) = hello.unwrap();
    let welcome = b.get(&hello, app.address, at(now)).reply();
    assert!(matches!(app.get(&welcome, b.address, at(now)), Got::Ready(..)));
    assert!(sent(&mut app, &b, now + 100, now + 1100) >= 9);
}
