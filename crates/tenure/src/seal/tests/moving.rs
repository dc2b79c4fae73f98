//! Peers whose address changes.

use super::*;

fn answer_goes_to(b: &mut Node, a: &Node) -> SocketAddr {
    b.sessions.seal(a.name.id(), b"x", Expect::Nothing, at(99)).unwrap().1
}

#[test]
fn answers_follow_a_peer_that_has_moved() {
    let (mut a, mut b) = (Node::candidate("app", "*", 1), Node::member("b", 2));
    shake(&mut a, &mut b, at(0));
    assert_eq!(answer_goes_to(&mut b, &a), address(1));
    a.address = address(77);
    reaches(&mut a, &mut b, "from a new address", at(1));
    assert_eq!(answer_goes_to(&mut b, &a), address(77));
    assert_eq!(b.sessions.counters().moved, 1);
}

#[test]
fn an_old_packet_from_elsewhere_moves_nobody() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    let (held_back, taken) = (a.say(&b, "one", at(1)), a.say(&b, "two", at(1)));
    assert_eq!(b.get(&taken, a.address, at(2)).text(), "two");
    assert_eq!(b.get(&held_back, address(66), at(3)).text(), "one", "it is genuine and new");
    assert_eq!(answer_goes_to(&mut b, &a), a.address, "but it does not say where the peer is now");
    assert_eq!(b.get(&taken, address(66), at(4)).refusal(), Refusal::Replayed);
    let mut forged = a.say(&b, "three", at(5));
    forged[30] ^= 1;
    assert_eq!(b.get(&forged, address(66), at(5)).refusal(), Refusal::Forged);
    assert_eq!(answer_goes_to(&mut b, &a), a.address);
}

#[test]
fn a_member_that_moves_is_found_by_the_side_that_greeted_it() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    b.address = address(88);
    reaches(&mut b, &mut a, "from a new address", at(1));
    assert_eq!(answer_goes_to(&mut a, &b), address(88));
}

#[test]
fn a_packet_that_came_by_a_stream_is_taken_once_and_moves_nobody() {
    let (mut a, mut b) = pair();
    let [hello, _, first, _] = shake(&mut a, &mut b, at(0));
    let packet = a.say(&b, &"x".repeat(5000), at(1));
    let by_stream =
        |b: &mut Node, packet: &[u8]| match b.sessions.receive_by_stream(&mut packet.to_vec(), at(2)) {
            Received::Data { plaintext, .. } => Ok(plaintext.len()),
            Received::Dropped(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        };
    assert_eq!(by_stream(&mut b, &packet), Ok(5000));
    assert_eq!(by_stream(&mut b, &packet), Err(Refusal::Replayed));
    assert_eq!(b.get(&packet, address(66), at(3)).refusal(), Refusal::Replayed);
    assert_eq!(answer_goes_to(&mut b, &a), a.address);
    for handshake in [hello, first] {
        assert_eq!(by_stream(&mut b, &handshake), Err(Refusal::Foreign), "sessions do not begin there");
    }
}

#[test]
fn a_peer_that_restarts_elsewhere_is_answered_there() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    a.restart();
    a.address = address(99);
    shake(&mut a, &mut b, at(1));
    assert_eq!(answer_goes_to(&mut b, &a), address(99));
}
