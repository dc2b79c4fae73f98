//! Packets that were changed, cut, repeated, sent back or made up.

use proptest::prelude::*;

use super::*;

/// Each packet of a handshake with who receives it: Hello, Welcome, First, Data.
fn stages() -> [(&'static str, usize); 4] {
    [("hello", 0), ("welcome", 1), ("first", 2), ("data", 3)]
}

/// Two processes that have come as far as `stage`, the packet that comes next, and whether `b`
/// receives it.
fn until(stage: usize) -> (Node, Node, Vec<u8>, bool) {
    let (mut a, mut b) = pair();
    let hello = a.hello(&b, at(0));
    if stage == 0 {
        return (a, b, hello, true);
    }
    let welcome = b.get(&hello, a.address, at(1)).reply();
    if stage == 1 {
        return (a, b, welcome, false);
    }
    a.get(&welcome, b.address, at(2)).reply();
    let first = a.say(&b, "request", at(2));
    if stage == 2 {
        return (a, b, first, true);
    }
    b.get(&first, a.address, at(3));
    let data = b.say(&a, "answer", at(3));
    (a, b, data, false)
}

/// Delivers it a millisecond after what was refused before.
fn deliver(a: &mut Node, b: &mut Node, packet: &[u8], to_b: bool) -> Got {
    let (to, from) = if to_b { (b, a.address) } else { (a, b.address) };
    let now = at(4 + to.sessions.counters().refusals());
    to.get(packet, from, now)
}

#[test]
fn every_flipped_bit_is_noticed_and_does_no_harm() {
    for (what, stage) in stages() {
        let (mut a, mut b, packet, to_b) = until(stage);
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let got = deliver(&mut a, &mut b, &changed, to_b);
            assert!(matches!(got, Got::Dropped(_)), "{what}, bit {bit}: {got:?}");
        }
        let got = deliver(&mut a, &mut b, &packet, to_b);
        assert!(!matches!(got, Got::Dropped(_)), "{what}: the real one is still good, but {got:?}");
    }
}

#[test]
fn every_truncation_and_every_addition_is_noticed() {
    for (what, stage) in stages() {
        let (mut a, mut b, packet, to_b) = until(stage);
        for length in 0..packet.len() {
            let got = deliver(&mut a, &mut b, &packet[..length], to_b);
            assert!(matches!(got, Got::Dropped(_)), "{what}, {length} bytes: {got:?}");
        }
        for more in 1..40 {
            let longer = [&packet[..], &vec![0; more]].concat();
            let got = deliver(&mut a, &mut b, &longer, to_b);
            assert!(matches!(got, Got::Dropped(_)), "{what}, {more} more: {got:?}");
        }
        assert!(!matches!(deliver(&mut a, &mut b, &packet, to_b), Got::Dropped(_)), "{what}");
    }
}

#[test]
fn what_is_sent_back_to_its_sender_is_refused() {
    for (what, stage) in stages() {
        let (mut a, mut b, packet, to_b) = until(stage);
        let got = deliver(&mut a, &mut b, &packet, !to_b);
        assert!(matches!(got, Got::Dropped(_)), "{what}: {got:?}");
        assert!(!matches!(deliver(&mut a, &mut b, &packet, to_b), Got::Dropped(_)), "{what}");
    }
}

#[test]
fn what_is_for_one_is_refused_by_others() {
    for (what, stage) in stages() {
        let (a, b, packet, to_b) = until(stage);
        let mut c = Node::member("c", 3);
        let sender = if to_b { a.address } else { b.address };
        assert!(matches!(c.get(&packet, sender, at(4)), Got::Dropped(_)), "{what}");
    }
}

#[test]
fn within_a_session_every_packet_is_taken_once() {
    let (mut a, mut b) = pair();
    let [_, _, first, _] = shake(&mut a, &mut b, at(0));
    let packets: Vec<_> = (0..100).map(|n| a.say(&b, &format!("{n}"), at(1))).collect();
    for packet in &packets {
        b.get(packet, a.address, at(2)).text();
    }
    for packet in packets.iter().chain([&first]) {
        assert_eq!(b.get(packet, a.address, at(3)).refusal(), Refusal::Replayed);
    }
    assert_eq!(b.refused("replayed"), 101);
}

#[test]
fn packets_may_overtake_each_other() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    let packets: Vec<_> = (0..1024).map(|n| (n, a.say(&b, &format!("{n}"), at(1)))).collect();
    for (number, packet) in packets.iter().rev() {
        assert_eq!(b.get(packet, a.address, at(2)).text(), format!("{number}"));
    }
    let late = a.say(&b, "late", at(3));
    (0..3000).for_each(|_| reaches(&mut a, &mut b, "x", at(3)));
    assert_eq!(b.get(&late, a.address, at(4)).refusal(), Refusal::Replayed, "it may have been taken");
}

#[test]
fn after_eviction_nothing_of_the_session_is_taken_again() {
    let mut b = Node::new(Node::member("b", 2).identity, 2, Limits { peers: 1, ..limits() });
    let mut a = Node::candidate("app", "*", 1);
    let mut c = Node::candidate("other", "*", 3);
    let mut recorded = Vec::new();
    recorded.extend(shake(&mut a, &mut b, at(0)));
    let packet = a.say(&b, "renew", at(1));
    b.get(&packet, a.address, at(1)).text();
    recorded.push(packet);
    shake(&mut c, &mut b, at(2));
    assert_eq!(b.sessions.counters().evicted, 1);
    for packet in &recorded {
        let got = b.get(packet, a.address, at(3));
        assert!(
            matches!(got, Got::Dropped(_) | Got::Reply(_)),
            "well within the life of the welcome: {got:?}"
        );
    }
    assert_eq!(b.refused("superseded"), 1, "the first packet, with a stamp that is still genuine");
    assert!(!b.sessions.has_session(a.name.id()));
    reaches(&mut c, &mut b, "undisturbed", at(4));
}

#[test]
fn a_session_does_not_begin_again_after_another_key_had_its_name() {
    let mut b = Node::new(Node::member("b", 2).identity, 2, Limits { peers: 1, ..limits() });
    // The same name, scope and boot, and another key.
    let (mut one, mut two) = (Node::candidate("app", "*", 1), Node::candidate("app", "*", 1));
    let mut other = Node::candidate("other", "*", 3);
    let [_, _, first, _] = shake(&mut one, &mut b, at(0));
    let [_, _, second, _] = shake(&mut two, &mut b, at(1));
    shake(&mut other, &mut b, at(2));
    for packet in [first, second] {
        assert_eq!(b.get(&packet, one.address, at(3)).refusal(), Refusal::Superseded);
    }
}

#[test]
fn a_first_packet_that_was_held_back_does_not_replace_a_newer_session() {
    let (mut a, mut b) = pair();
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(0)).reply();
    let held_back = a.get(&welcome, b.address, at(0)).reply();
    shake(&mut a, &mut b, at(RETRY));
    assert_eq!(b.get(&held_back, a.address, at(200)).refusal(), Refusal::Superseded);
    reaches(&mut a, &mut b, "undisturbed", at(201));
}

#[test]
fn a_first_packet_of_an_ended_life_does_not_replace_the_next_life() {
    let (mut a, mut b) = pair();
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(0)).reply();
    let held_back = a.get(&welcome, b.address, at(0)).reply();
    a.restart();
    shake(&mut b, &mut a, at(1));
    assert_eq!(
        b.get(&held_back, a.address, at(2)).refusal(),
        Refusal::Superseded,
        "b greeted later than that"
    );
    reaches(&mut b, &mut a, "undisturbed", at(3));
}

#[test]
fn after_a_restart_of_the_receiver_nothing_from_before_is_taken() {
    let (mut a, mut b) = pair();
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(0)).reply();
    let first = a.get(&welcome, b.address, at(0)).reply();
    let packet = a.say(&b, "renew", at(1));
    b.restart();
    assert_eq!(b.get(&first, a.address, at(2)).refusal(), Refusal::Stale, "not even what it never received");
    assert_eq!(b.get(&packet, a.address, at(2)).refusal(), Refusal::Stale);
    let answer_to_nobody = b.get(&welcome, a.address, at(2)).refusal();
    assert_eq!(answer_to_nobody, Refusal::Unsolicited);
    assert!(!b.sessions.has_session(a.name.id()));
}

#[test]
fn a_repeated_hello_changes_nothing() {
    let (mut a, mut b) = pair();
    let [hello, ..] = shake(&mut a, &mut b, at(0));
    let elsewhere = address(66);
    let reply = b.get(&hello, elsewhere, at(1)).reply();
    assert!(reply.len() < hello.len());
    assert_eq!(a.get(&reply, b.address, at(1)).refusal(), Refusal::Unsolicited);
    reaches(&mut a, &mut b, "undisturbed", at(2));
    let (_, to) = b.sessions.seal(a.name.id(), b"x", Expect::Nothing, at(3)).unwrap();
    assert_eq!(to, a.address, "answers do not go to where the repetition came from");
}

#[test]
fn a_repeated_welcome_changes_nothing() {
    let (mut a, mut b) = pair();
    let [_, welcome, ..] = shake(&mut a, &mut b, at(0));
    assert_eq!(a.get(&welcome, b.address, at(1)).refusal(), Refusal::Unsolicited);
    a.hello(&b, at(200));
    assert_eq!(a.get(&welcome, b.address, at(201)).refusal(), Refusal::Unsolicited);
    reaches(&mut a, &mut b, "undisturbed", at(202));
}

#[test]
fn a_welcome_is_good_for_one_address_and_for_some_seconds() {
    let (mut a, mut b) = pair();
    let hello = a.hello(&b, at(0));
    let welcome = b.get(&hello, a.address, at(0)).reply();
    let first = a.get(&welcome, b.address, at(0)).reply();
    assert_eq!(b.get(&first, address(66), at(1)).refusal(), Refusal::Stale);
    assert_eq!(b.get(&first, a.address, at(10_001)).refusal(), Refusal::Stale);
    assert!(matches!(b.get(&first, a.address, at(10_000)), Got::Ready(..)));
}

proptest! {
    #[test]
    fn any_bytes_are_refused_and_change_nothing(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        kind in 0x10u8..0x16,
        ours in any::<bool>(),
    ) {
        let (mut a, mut b) = pair();
        shake(&mut a, &mut b, at(0));
        if ours && bytes.len() >= 2 {
            bytes[..2].copy_from_slice(&[0xe7, kind]);
        }
        let got = b.get(&bytes, a.address, at(1));
        prop_assert!(matches!(got, Got::Dropped(_)));
        reaches(&mut a, &mut b, "undisturbed", at(2));
    }
}
