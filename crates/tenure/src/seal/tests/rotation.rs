//! The cluster's key is changed while everything runs.

use super::*;

fn keys(speak: u8, accept: &[u8]) -> Credentials {
    Credentials::Member(Keyring { speak: key(speak), accept: accept.iter().map(|byte| key(*byte)).collect() })
}

#[test]
fn keys_change_in_three_steps_without_a_lost_packet() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    let mut now = 0;
    let mut talk = |a: &mut Node, b: &mut Node| {
        now += 1;
        reaches(a, b, "a", at(now));
        reaches(b, a, "b", at(now));
    };
    a.sessions.set_keyring(keys(1, &[2]));
    talk(&mut a, &mut b);
    b.sessions.set_keyring(keys(1, &[2]));
    talk(&mut a, &mut b);
    a.sessions.set_keyring(keys(2, &[1]));
    assert_eq!(a.unanswered(at(10)), [b.name.id()], "there is no session under the new key yet");
    talk(&mut a, &mut b);
    shake(&mut a, &mut b, at(10));
    assert!(a.unanswered(at(5000)).is_empty());
    b.sessions.set_keyring(keys(2, &[1]));
    talk(&mut a, &mut b);
    a.sessions.set_keyring(keys(2, &[]));
    talk(&mut a, &mut b);
    b.sessions.set_keyring(keys(2, &[]));
    talk(&mut a, &mut b);
    assert_eq!((a.sessions.counters().refusals(), b.sessions.counters().refusals()), (0, 0));
}

#[test]
fn the_old_key_is_good_during_the_change_and_refused_after() {
    let mut b = Node::member("b", 2);
    b.sessions.set_keyring(keys(2, &[1]));
    let (mut old, mut app) = (Node::member("a", 1), Node::candidate("app", "*", 3));
    shake(&mut old, &mut b, at(0));
    shake(&mut app, &mut b, at(0));
    reaches(&mut app, &mut b, "under the old key", at(1));
    b.sessions.set_keyring(keys(2, &[]));
    for sender in [&mut old, &mut app] {
        let packet = sender.say(&b, "still?", at(2));
        assert_eq!(b.get(&packet, sender.address, at(2)).refusal(), Refusal::UnknownSession);
        let hello = sender.hello(&b, at(200));
        assert_eq!(b.get(&hello, sender.address, at(200)).refusal(), Refusal::UnknownKey);
    }
    assert_eq!(b.sessions.peers(), 0);
}

#[test]
fn a_session_whose_key_was_taken_away_and_given_back_does_not_begin_again() {
    let (mut a, mut b) = pair();
    let [_, _, first, _] = shake(&mut a, &mut b, at(0));
    b.sessions.set_keyring(keys(2, &[]));
    assert_eq!(b.get(&first, a.address, at(1)).refusal(), Refusal::Superseded);
    b.sessions.set_keyring(keys(1, &[2]));
    assert_eq!(b.get(&first, a.address, at(2)).refusal(), Refusal::Superseded);
}

#[test]
fn a_candidate_takes_its_new_key_without_stopping() {
    let (mut b, mut app) = (Node::member("b", 2), Node::candidate("app", "app/*", 3));
    shake(&mut app, &mut b, at(0));
    b.sessions.set_keyring(keys(2, &[1]));
    reaches(&mut app, &mut b, "under the old key", at(1));
    let new = key(2).candidate(CLUSTER, name("app"), Scope::new("app/*").unwrap());
    app.sessions.set_keyring(Credentials::Outsider(new));
    reaches(&mut app, &mut b, "still", at(2));
    assert_eq!(app.unanswered(at(3)), [b.name.id()]);
    shake(&mut app, &mut b, at(3));
    b.sessions.set_keyring(keys(2, &[]));
    reaches(&mut app, &mut b, "under the new key", at(4));
    reaches(&mut b, &mut app, "and back", at(5));
}

#[test]
fn a_peer_that_does_not_know_the_new_key_yet_is_asked_now_and_then() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    a.sessions.set_keyring(keys(2, &[1]));
    let hello = a.hello(&b, at(0));
    assert_eq!(b.get(&hello, a.address, at(0)).refusal(), Refusal::UnknownKey);
    reaches(&mut a, &mut b, "meanwhile", at(1));
    reaches(&mut b, &mut a, "meanwhile", at(1));
    assert!(a.unanswered(at(9 * RETRY)).is_empty());
    assert_eq!(a.unanswered(at(10 * RETRY)), [b.name.id()]);
}
