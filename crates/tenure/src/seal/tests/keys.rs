//! Keys as text, scopes, and what each key opens.

use proptest::prelude::*;

use super::super::packet::{self, Introduction};
use super::*;

fn scope(text: &str) -> Scope {
    Scope::new(text).unwrap()
}

#[test]
fn keys_are_read_as_they_are_written() {
    let cluster = key(7);
    assert_eq!(cluster.reveal().parse(), Ok(cluster.clone()));
    assert_eq!(format!("{}\n", cluster.reveal()).parse(), Ok(cluster.clone()), "files end with a line");
    let keys = [
        cluster.candidate(CLUSTER, name("app1"), scope("app1/*,shared:x")),
        cluster.observer(CLUSTER, name("eye"), scope("*")),
        cluster.operator(CLUSTER, name("ops")),
    ];
    let begins =
        ["tenure-candidate-1:app1:app1/*,shared:x:", "tenure-observer-1:eye:*:", "tenure-operator-1:ops::"];
    for (key, begin) in keys.into_iter().zip(begins) {
        assert!(key.reveal().starts_with(begin), "{}", key.reveal());
        assert_eq!(key.reveal().parse(), Ok(key));
    }
}

#[test]
fn a_typo_is_told_from_another_key() {
    let (cluster, other) = (key(7).reveal(), key(8).reveal());
    let app = key(7).candidate(CLUSTER, name("app1"), scope("app1/*")).reveal();
    assert!(other.parse::<ClusterKey>().is_ok());
    for text in [&cluster, &app] {
        let begin = text.find(':').unwrap() + 1;
        for at in begin..text.len() {
            let mut typo = text.clone().into_bytes();
            typo[at] = if typo[at] == b'0' { b'1' } else { b'0' };
            let typo = String::from_utf8(typo).unwrap();
            let error = if text == &cluster {
                typo.parse::<ClusterKey>().err()
            } else {
                typo.parse::<CandidateKey>().err()
            };
            assert_eq!(error, Some(KeyError::Garbled), "{at}");
        }
        for length in begin..text.len() {
            assert_eq!(
                text[..length].parse::<ClusterKey>().is_err(),
                text[..length].parse::<CandidateKey>().is_err()
            );
        }
    }
    assert_eq!(app.parse::<ClusterKey>(), Err(KeyError::NotAClusterKey));
    assert_eq!(cluster.parse::<CandidateKey>().unwrap_err(), KeyError::NotACandidateKey);
    for text in ["", "ä", "tenure-key-1:", "tenure-key-1:ää", "tenure-candidate-1:a"] {
        assert!(text.parse::<ClusterKey>().is_err() && text.parse::<CandidateKey>().is_err());
    }
}

#[test]
fn what_is_printed_for_debugging_has_no_secret_in_it() {
    let cluster = ClusterKey::generate();
    let app = cluster.candidate(CLUSTER, name("app1"), scope("app1/*"));
    assert_eq!(format!("{cluster:?}"), format!("ClusterKey({})", cluster.id()));
    let shown = format!("CandidateKey({} Candidate app1 \"app1/*\", of {})", app.serial(), cluster.id());
    assert_eq!(format!("{app:?}"), shown);
    let identity = Identity::member(name("a"), CLUSTER, Keyring::new(cluster.clone()), 1, V1);
    let secret = &cluster.reveal()["tenure-key-1:".len()..][..16];
    assert!(!format!("{identity:?}").contains(secret));
}

#[test]
fn a_star_stands_for_anything_also_across_slashes() {
    let allowed = |patterns: &str, name: &str| scope(patterns).has(&group(name));
    assert!(
        allowed("app1/*", "app1/jobs")
            && allowed("app1/*", "app1/jobs/nightly")
            && allowed("app1/*", "app1/")
    );
    assert!(
        !allowed("app1/*", "app1") && !allowed("app1/*", "app10/jobs") && !allowed("app1/*", "xapp1/jobs")
    );
    assert!(allowed("*", "anything:at/all") && allowed("**", "x"));
    assert!(allowed("a,b", "b") && !allowed("a,b", "ab") && !allowed("a", "a/b"));
    assert!(allowed("*/clock", "x/y/clock") && !allowed("*/clock", "clock") && allowed("a*b*c", "a-b-b-c"));
    assert!(!allowed("a*b*c", "a-c-b"));
}

#[test]
fn scopes_that_could_never_match_are_refused() {
    for text in ["", ",", "a,", "a b", "a,,b", "ä", "[a-z]", "app?"] {
        assert!(matches!(Scope::new(text), Err(ScopeError::Pattern { .. })), "{text:?}");
    }
    assert_eq!(Scope::new(&"x".repeat(201)), Err(ScopeError::TooLong { length: 201 }));
    assert!(Scope::new(&"x".repeat(MAX_SCOPE)).is_ok());
}

proptest! {
    #[test]
    fn patterns_agree_with_their_definition(pattern in "[ab*]{1,8}", text in "[ab]{1,10}") {
        fn means(pattern: &[u8], text: &[u8]) -> bool {
            match (pattern, text) {
                ([], []) => true,
                ([b'*', rest @ ..], _) => (0..=text.len()).any(|taken| means(rest, &text[taken..])),
                ([one, rest @ ..], [first, after @ ..]) => one == first && means(rest, after),
                _ => false,
            }
        }
        prop_assert_eq!(scope(&pattern).has(&group(&text)), means(pattern.as_bytes(), text.as_bytes()));
    }
}

fn rights_of(mut outsider: Node) -> Rights {
    let mut b = Node::member("b", 2);
    shake(&mut outsider, &mut b, at(0));
    let packet = outsider.say(&b, "x", at(1));
    b.get(&packet, outsider.address, at(1)).peer().rights.clone()
}

#[test]
fn a_key_gives_the_rights_that_it_was_made_for() {
    let (inside, outside) = (group("app1/jobs"), group("app2/jobs"));
    let may =
        |rights: &Rights, group| (rights.may_campaign(group), rights.may_watch(group), rights.may_operate());
    let candidate = rights_of(Node::candidate("app1", "app1/*", 1));
    assert_eq!(candidate, Rights::Candidate(scope("app1/*")));
    assert_eq!(
        (may(&candidate, &inside), may(&candidate, &outside)),
        ((true, true, false), (false, false, false))
    );
    let observer = rights_of(Node::outsider(key(1).observer(CLUSTER, name("eye"), scope("app1/*")), 1));
    assert_eq!(
        (may(&observer, &inside), may(&observer, &outside)),
        ((false, true, false), (false, false, false))
    );
    let operator = rights_of(Node::outsider(key(1).operator(CLUSTER, name("ops")), 1));
    assert_eq!(may(&operator, &inside), (false, true, true));
    let member = rights_of(Node::member("a", 1));
    assert_eq!(may(&member, &outside), (true, true, true));
}

/// Greets `b` as somebody other than the key says, and seals the greeting with what the key gives.
fn posing(key: &CandidateKey, claims: Option<&Claims>, as_name: &str, b: &mut Node) -> Got {
    let now = at(1000 * b.sessions.counters().refusals());
    let sender = packet::Sender::write(key.made_from(), claims, as_name);
    let tag = Node::member("x", 9).hello(b, at(0))[10..14].try_into().unwrap();
    let greeting = packet::Greeting {
        cluster: tag,
        to: b.name.id(),
        challenge: [9; 16],
        sender: &sender,
        versions: V1,
        boot: 1,
    };
    let hello_key = key.pair(b.name.as_str()).0.derive_sealing(&[b"tenure hello from\0", as_name.as_bytes()]);
    let packet = greeting.seal(&hello_key, &key.knock().key());
    b.get(&packet, address(9), now)
}

#[test]
fn with_a_candidates_key_nobody_can_be_anything_else() {
    let mut b = Node::member("b", 2);
    let names = |text| Names::new(text).unwrap();
    let made = Claims::candidate(names("web-*"), scope("web/*")).not_after(100).lineage(7);
    let web = key(1).derive(CLUSTER, made.clone());
    assert!(matches!(posing(&web, Some(&made), "web-1", &mut b), Got::Reply(_)), "the truth works");
    let other = |change: &dyn Fn(&mut Claims)| {
        let mut claims = made.clone();
        change(&mut claims);
        claims
    };
    for (what, claims, name) in [
        ("a wider scope", other(&|claims| claims.scope = Some(scope("*"))), "web-1"),
        ("other names", other(&|claims| claims.names = names("app-*")), "app-1"),
        ("a name outside", made.clone(), "app-1"),
        ("an observer's", other(&|claims| claims.kind = KeyKind::Observer), "web-1"),
        ("an operator's", Claims { serial: made.serial, ..Claims::operator(name("web-1")) }, "web-1"),
        ("another id", other(&|claims| claims.serial = Serial(claims.serial.0 ^ 1)), "web-1"),
        ("a later expiry", other(&|claims| claims.not_after = Some(101)), "web-1"),
        ("no expiry", other(&|claims| claims.not_after = None), "web-1"),
        ("another founding", other(&|claims| claims.lineage = Some(8)), "web-1"),
        ("any founding", other(&|claims| claims.lineage = None), "web-1"),
    ] {
        assert_eq!(posing(&web, Some(&claims), name, &mut b).refusal(), Refusal::Forged, "{what}");
    }
    for name in ["web-1", "a"] {
        assert_eq!(posing(&web, None, name, &mut b).refusal(), Refusal::Forged, "a member");
    }
}

#[test]
fn a_key_of_many_names_opens_sessions_under_each_of_them() {
    let mut b = Node::member("b", 2);
    let web = key(1).derive(CLUSTER, Claims::candidate(Names::new("web-*").unwrap(), scope("*")));
    let (mut one, mut two) = (Node::named(name("web-1"), web.clone(), 3), Node::named(name("web-2"), web, 4));
    shake(&mut one, &mut b, at(0));
    shake(&mut two, &mut b, at(1));
    reaches(&mut one, &mut b, "one", at(2));
    reaches(&mut two, &mut b, "two", at(2));
}

#[test]
fn one_key_has_so_many_peers_and_the_longest_silent_of_them_goes_first() {
    let limits = Limits { peers_of_one_key: 2, ..limits() };
    let mut b = Node::new(Node::member("b", 2).identity, 2, limits);
    let web = key(1).derive(CLUSTER, Claims::candidate(Names::new("web-*").unwrap(), scope("*")));
    let mut other = Node::candidate("other", "*", 9);
    shake(&mut other, &mut b, at(0));
    for (number, last) in (0..20).zip(10..) {
        let mut peer = Node::named(name(&format!("web-{number}")), web.clone(), last);
        shake(&mut peer, &mut b, at(1 + number));
    }
    assert_eq!((b.sessions.peers(), b.sessions.counters().evicted), (3, 18));
    assert!(b.sessions.has_session(name("web-19").id()) && !b.sessions.has_session(name("web-17").id()));
    reaches(&mut other, &mut b, "other keys are not touched", at(100));
}

/// A greeting is answered by why the key is refused, and no session begins.
#[track_caller]
fn is_told(app: &mut Node, member: &mut Node, why: KeyRefusal, now: LocalTime) {
    let hello = app.hello(member, now);
    let told = member.get(&hello, app.address, now).reply();
    assert!(told.len() <= hello.len(), "{} bytes for {}", told.len(), hello.len());
    assert_eq!(app.get(&told, member.address, now), Got::KeyRefused(member.name.id(), why));
    assert!(matches!(app.get(&told, member.address, now), Got::Dropped(_)), "once for each greeting");
    assert!(!app.sessions.has_session(member.name.id()) || member.sessions.peers() == 0);
}

#[test]
fn a_refusal_tells_one_that_repeats_a_greeting_nothing() {
    let mut b = Node::member("b", 2);
    let (mut good, mut bad) = (Node::candidate("app", "*", 1), Node::candidate("app", "*", 1));
    let Credentials::Outsider(of_bad) = bad.identity.credentials.clone() else { unreachable!() };
    b.sessions.set_revoked([of_bad.serial()]);
    let (welcomed, refused) = (good.hello(&b, at(0)), bad.hello(&b, at(0)));
    let answers = [&welcomed, &refused].map(|hello| b.get(hello, address(9), at(1)).reply());
    assert_eq!(answers[0].len(), answers[1].len(), "both are answered, alike");
    // With another id in its claims, a greeting does not open: nobody can ask for the ids that are
    // revoked.
    let serial = of_bad.serial().0.to_be_bytes();
    let at_serial = refused.windows(8).position(|bytes| bytes == serial).expect("it is stated");
    let mut guessed = welcomed;
    guessed[at_serial..at_serial + 8].copy_from_slice(&serial);
    assert_eq!(b.get(&guessed, address(9), at(2)).refusal(), Refusal::Forged);
}

#[test]
fn a_revoked_key_that_greets_without_end_keeps_no_other_out() {
    let mut b = Node::member("b", 2);
    let web = key(1).derive(CLUSTER, Claims::candidate(Names::new("web-*").unwrap(), scope("*")));
    b.sessions.set_revoked([web.serial()]);
    let (mut answered, mut refused) = (0, 0);
    for number in 0..6_000 {
        let mut bad = Node::named(name(&format!("web-{number}")), web.clone(), 9);
        let hello = bad.hello(&b, at(1));
        match b.get(&hello, bad.address, at(1)) {
            Got::Reply(_) => answered += 1,
            Got::Dropped(Refusal::Limited) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(answered > 0 && answered < 1_000 && refused > 5_000, "{answered} answered, {refused} not");
    let mut good = Node::candidate("app", "*", 9);
    shake(&mut good, &mut b, at(1));
    reaches(&mut good, &mut b, "of the same address", at(2));
}

#[test]
fn no_session_begins_by_the_stamp_of_a_refusal() {
    let mut b = Node::member("b", 2);
    let mut app = Node::candidate("app", "*", 1);
    let Credentials::Outsider(of_app) = app.identity.credentials.clone() else { unreachable!() };
    let [_, _, first, _] = shake(&mut app, &mut b, at(0));
    b.sessions.set_revoked([of_app.serial()]);
    let hello = app.hello(&b, at(200));
    let told = b.get(&hello, app.address, at(200)).reply();
    b.sessions.set_revoked([]);
    // The introduction of a session, with challenge, instant and stamp of the refusal, in every
    // version.
    let introduced = packet::DATA_HEAD + Introduction::read(&first).expect("a First").bytes.len();
    for version in 0..=1 {
        let mut forged = first.clone();
        let end = introduced - 16 - 8 - 1;
        forged[end - 16..end].copy_from_slice(&told[2..18]);
        forged[end] = version;
        forged[end + 1..introduced].copy_from_slice(&told[18..42]);
        assert_eq!(b.get(&forged, app.address, at(201)).refusal(), Refusal::Stale, "{version}");
    }
}

#[test]
fn an_expired_key_is_refused_and_its_sessions_end() {
    let mut b = Node::member("b", 2);
    let claims = |last| Claims::candidate(name("app"), scope("*")).not_after(last);
    let mut app = Node::outsider(key(1).derive(CLUSTER, claims(100)), 1);
    shake(&mut app, &mut b, at(0));
    b.sessions.set_date(100);
    reaches(&mut app, &mut b, "in its last second", at(1));
    let held_back = {
        let mut late = Node::outsider(key(1).derive(CLUSTER, claims(100)), 3);
        let hello = late.hello(&b, at(1));
        let welcome = b.get(&hello, late.address, at(1)).reply();
        late.get(&welcome, b.address, at(1)).reply()
    };
    b.sessions.set_date(101);
    let packet = app.say(&b, "x", at(2));
    assert_eq!(b.get(&packet, app.address, at(2)).refusal(), Refusal::UnknownSession);
    is_told(&mut app, &mut b, KeyRefusal::Expired, at(200));
    assert_eq!(b.refused("expired"), 1);
    assert_eq!(b.get(&held_back, address(3), at(201)).refusal(), Refusal::Expired);
    let mut forever = Node::candidate("forever", "*", 4);
    shake(&mut forever, &mut b, at(202));
}

#[test]
fn a_revoked_key_is_refused_and_others_of_its_name_and_scope_are_not() {
    let mut b = Node::member("b", 2);
    let mut app = Node::candidate("app", "*", 1);
    let [_, _, first, _] = shake(&mut app, &mut b, at(0));
    let Credentials::Outsider(of_app) = app.identity.credentials.clone() else { unreachable!() };
    b.sessions.set_revoked([of_app.serial()]);
    assert_eq!(b.sessions.peers(), 0, "its session has ended");
    let packet = app.say(&b, "x", at(1));
    assert_eq!(b.get(&packet, app.address, at(1)).refusal(), Refusal::UnknownSession);
    is_told(&mut app, &mut b, KeyRefusal::Revoked, at(200));
    assert_eq!(b.refused("revoked"), 1);
    assert!(matches!(b.get(&first, app.address, at(201)), Got::Dropped(_)));
    let mut new = Node::candidate("app", "*", 1);
    shake(&mut new, &mut b, at(202));
    reaches(&mut new, &mut b, "under a new key", at(203));
    b.sessions.set_revoked([]);
    assert_eq!(b.get(&first, app.address, at(204)).refusal(), Refusal::Superseded, "nor begins it again");
}

#[test]
fn a_candidates_key_under_the_name_of_a_member_opens_nothing() {
    let (mut a, mut b) = pair();
    shake(&mut b, &mut a, at(0));
    let mut impostor = Node::candidate("a", "*", 66);
    let hello = impostor.hello(&b, at(1));
    let welcome = b.get(&hello, impostor.address, at(1)).reply();
    let first = impostor.get(&welcome, b.address, at(1)).reply();
    assert_eq!(b.get(&first, impostor.address, at(1)).refusal(), Refusal::NameTaken);
    let (_, to) = b.sessions.seal(a.name.id(), b"x", Expect::Nothing, at(2)).unwrap();
    assert_eq!(to, a.address);
    let mut double = Node::candidate("b", "*", 67);
    assert!(double.sessions.greet(&b.name, at(3)).is_none(), "it would greet itself");
}

#[test]
fn another_key_and_another_cluster_are_told_apart() {
    let mut b = Node::member("b", 2);
    let mut stranger = Node::new(Identity::member(name("a"), CLUSTER, ring(5), 1, V1), 1, limits());
    let hello = stranger.hello(&b, at(0));
    assert_eq!(b.get(&hello, stranger.address, at(0)).refusal(), Refusal::UnknownKey);
    let mut neighbour = Node::new(Identity::member(name("a"), ClusterId(0xc2), ring(1), 1, V1), 1, limits());
    let hello = neighbour.hello(&b, at(0));
    assert_eq!(b.get(&hello, neighbour.address, at(0)).refusal(), Refusal::OtherCluster);
    let mut a = Node::member("a", 1);
    let misled = a.hello(&Node::member("c", 3), at(0));
    assert_eq!(b.get(&misled, a.address, at(0)).refusal(), Refusal::NotForMe);
}

#[test]
fn a_key_that_only_claims_the_id_of_the_right_one_opens_nothing() {
    let mut b = Node::member("b", 2);
    let mut stranger = Node::new(Identity::member(name("a"), CLUSTER, ring(5), 1, V1), 1, limits());
    let mut hello = stranger.hello(&b, at(0));
    let right = Node::member("a", 1).hello(&b, at(0));
    hello[38..42].copy_from_slice(&right[38..42]);
    assert_eq!(b.get(&hello, stranger.address, at(0)).refusal(), Refusal::Forged);
}

#[test]
fn those_who_hold_no_cluster_key_are_not_greeted() {
    let (mut a, mut app) = (Node::member("a", 1), Node::candidate("app", "*", 2));
    shake(&mut app, &mut a, at(0));
    a.say(&app, "are you there?", at(1));
    assert!(a.unanswered(at(1000)).is_empty(), "it has no address: it greets");
    let hello = a.hello(&app, at(1000));
    assert_eq!(app.get(&hello, a.address, at(1000)).refusal(), Refusal::UnknownKey);
    app.restart();
    shake(&mut app, &mut a, at(1001));
    reaches(&mut app, &mut a, "to be greeted in vain does no harm", at(1002));
}
