//! How far outsiders and restarts may raise the terms of a member.

use super::*;
use crate::strong::height::{PLAUSIBLE, REFILL};

/// No member of the three.
const OUTSIDER: u64 = 7;

#[test]
fn an_outsider_cannot_have_the_last_term_there_is() {
    let mut bench = Bench::founded();
    let answered = bench.hear(OUTSIDER, Message::Request(request(OUTSIDER, 1, u64::MAX)));
    assert_ne!(answers(&answered).first().map(|answer| answer.1), Some("ok"));
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 1, 1)))), [(1, "ok", Some(1))]);
}

#[test]
fn a_renewal_raises_the_terms_no_further_than_an_acquisition_would() {
    let mut bench = Bench::founded();
    let renewal = GrantRequest { kind: Kind::Renew, ..request(OUTSIDER, 1, u64::MAX) };
    let answered = bench.hear(OUTSIDER, Message::Request(renewal));
    assert_ne!(answers(&answered).first().map(|answer| answer.1), Some("ok"));
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 1, 1)))), [(1, "ok", Some(1))]);
}

#[test]
fn a_term_that_cannot_be_had_is_not_asked_for_again_without_a_pause() {
    let store = Store::Used(Incarnation(1), vec![Cell::Ceiling(Term(u64::MAX))]);
    let memory = Memory { boot: HERE, writer: Incarnation(1), records: vec![] };
    let mut bench = Bench::start(store, Some(memory));
    let asked = bench.ask();
    let mut runs = 0;
    for from in [1, 2] {
        let (refusal, max_term) = (Refusal::StaleTerm, Term(u64::MAX));
        let effects = bench.hear(from, Message::Nack { group: GROUP, id: asked.id, refusal, max_term });
        runs += effects.iter().filter(|e| matches!(e, Effect::Publish(Event::Asked(_)))).count();
    }
    runs += bench
        .handle(Input::Deadline)
        .iter()
        .filter(|e| matches!(e, Effect::Publish(Event::Asked(_))))
        .count();
    assert_eq!(runs, 0, "it asks again at once");
    assert!(bench.node.next_deadline() > Some(LocalTime::from_nanos(10_000)));
}

/// The content of an answer, and the ticket after which it leaves.
fn answer(effects: &[Effect<Nerio>]) -> Option<(&'static str, Option<u64>)> {
    answers(effects).last().map(|(_, kind, after)| (*kind, *after))
}

/// The outsider asks for a term, in a run of its own each time, and gives back what it got.
fn climb(bench: &mut Bench, seq: u64, term: u64) -> bool {
    let effects = bench.hear(OUTSIDER, Message::Request(request(OUTSIDER, seq, term)));
    let granted = answer(&effects).is_some_and(|(kind, _)| kind == "ok");
    bench.hear(OUTSIDER, Message::Release { group: GROUP, upto: request(OUTSIDER, seq, term).id });
    granted
}

/// How long the outsider is told to wait for a term.
fn wait(bench: &mut Bench, seq: u64, term: u64) -> Option<u64> {
    let effects = bench.hear(OUTSIDER, Message::Request(request(OUTSIDER, seq, term)));
    effects.iter().find_map(|effect| match effect {
        Effect::Send { message: Message::Nack { refusal: Refusal::TooHigh { wait }, .. }, .. } => {
            Some(wait.as_nanos())
        }
        _ => None,
    })
}

/// One pause of a member of three.
const PAUSE: u64 = 3 * REFILL.as_nanos();

#[test]
fn an_outsider_adds_a_burst_to_the_top_and_then_one_term_a_pause() {
    let mut bench = Bench::founded();
    assert!(climb(&mut bench, 1, 1000));
    assert!(!climb(&mut bench, 2, 1025));
    assert!(climb(&mut bench, 3, 1024), "the burst counts from the top, however it is spent");
    assert_eq!(bench.node.top(), Term(1024));
    assert!(!climb(&mut bench, 4, 1025));
    bench.at(10_000 + PAUSE - 1);
    assert!(!climb(&mut bench, 5, 1025));
    bench.at(10_000 + PAUSE);
    assert!(!climb(&mut bench, 6, 1026));
    assert!(climb(&mut bench, 7, 1025));
    assert!(!climb(&mut bench, 8, 1026), "a pause is counted once");
    bench.at(10_000 + 100_000 * PAUSE);
    assert!(!climb(&mut bench, 9, 1025 + 1025), "a bucket holds a burst, however long it stands");
    assert!(climb(&mut bench, 10, 1025 + 1024));
}

#[test]
fn terms_that_raise_nothing_cost_nothing() {
    let mut bench = Bench::founded();
    assert!(climb(&mut bench, 1, 1024));
    for (group, term) in (1..50).map(|group| (GroupId(group), Term(1024 - group))) {
        let asked = GrantRequest { group, term, ..request(OUTSIDER, 100 + group.0, 1) };
        assert_eq!(answer(&bench.hear(OUTSIDER, Message::Request(asked))).map(|a| a.0), Some("ok"));
    }
}

#[test]
fn each_outsider_has_a_bucket_of_its_own() {
    let mut bench = Bench::founded();
    assert!(climb(&mut bench, 1, 1024));
    let other = bench.hear(8, Message::Request(request(8, 1, 2048)));
    assert_eq!(answer(&other).map(|a| a.0), Some("ok"));
}

#[test]
fn outsiders_of_one_key_share_a_bucket() {
    let mut bench = Bench::founded();
    for node in [OUTSIDER, 8] {
        bench.handle(Input::Command(Command::KeyOf { node: NodeId(node), key: 42 }));
    }
    assert!(climb(&mut bench, 1, 1024));
    let other = bench.hear(8, Message::Request(request(8, 1, 1025)));
    assert_eq!(answer(&other).map(|a| a.0), Some("too high"));
}

#[test]
fn a_refusal_says_how_long_to_wait_once_the_members_have_said_how_high_they_are() {
    let mut bench = Bench::founded();
    let effects = bench.hear(OUTSIDER, Message::Request(request(OUTSIDER, 1, 1026)));
    assert_eq!(answers(&effects), [(1, "ask top", None), (2, "ask top", None), (7, "too high", None)]);
    assert_eq!(wait(&mut bench, 2, 1026), Some(100), "two retries, for the answers");
    bench.at(10_100);
    assert_eq!(wait(&mut bench, 3, 1026), Some(2 * PAUSE));
    assert_eq!(bench.node.grant(GROUP), None);
}

#[test]
fn what_a_member_vouches_for_is_free_and_what_an_outsider_says_is_not() {
    let mut bench = Bench::founded();
    assert!(!climb(&mut bench, 1, 100_001));
    bench.hear(OUTSIDER, Message::Height(HeightTalk::Top(Term(100_000))));
    let nack = |from: u64| {
        let (id, refusal, max_term) = (request(from, 1, 1).id, Refusal::StaleTerm, Term(100_000));
        Message::Nack { group: GROUP, id, refusal, max_term }
    };
    bench.hear(OUTSIDER, nack(OUTSIDER));
    assert!(!climb(&mut bench, 2, 100_001));
    bench.hear(2, Message::Height(HeightTalk::Top(Term(100_000))));
    assert!(climb(&mut bench, 3, 100_001));
    assert!(climb(&mut bench, 4, 100_000 + 1024), "only what is above it is charged");
    assert!(!climb(&mut bench, 5, 100_000 + 1025));
}

#[test]
fn members_are_told_the_top_and_outsiders_are_not() {
    let mut bench = Bench::founded();
    assert_eq!(answers(&bench.hear(2, Message::Height(HeightTalk::Ask))), [(2, "top", None)]);
    assert_eq!(answers(&bench.hear(OUTSIDER, Message::Height(HeightTalk::Ask))), []);
}

#[test]
fn an_outsider_that_hands_over_pays_for_what_it_passes_on_in_whosever_name() {
    let mut bench = Bench::founded();
    for holder in [1, 8] {
        let release = request(OUTSIDER, 1, 1).id;
        let talk = Talk::Relay { release, request: request(holder, 1, u64::MAX) };
        let effects = bench.hear(OUTSIDER, Message::Talk { group: GROUP, talk });
        assert_eq!(answer(&effects).map(|a| a.0), Some("too high"), "in the name of {holder}");
    }
}

#[test]
fn a_successor_does_not_believe_an_absurd_term_of_a_leader_outside() {
    let mut bench = Bench::founded();
    let talk = Talk::TakeOver { term: Term(u64::MAX - 1) };
    let effects = bench.hear(OUTSIDER, Message::Talk { group: GROUP, talk });
    let asked = effects.iter().find_map(|effect| match effect {
        Effect::Publish(Event::Asked(request)) => Some(request.term),
        _ => None,
    });
    assert_eq!(asked, Some(Term(1)));
}

fn doubts(effects: &[Effect<Nerio>]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Publish(Event::Implausible { .. }))).count()
}

#[test]
fn a_member_that_is_absurdly_high_is_doubted_once_until_an_operator_confirms_it() {
    let mut bench = Bench::founded();
    let high = PLAUSIBLE + 1;
    let effects = bench.hear(1, Message::Request(request(1, 1, high)));
    assert_eq!((answer(&effects).map(|a| a.0), doubts(&effects)), (Some("implausible"), 1));
    let effects = bench.hear(1, Message::Request(request(1, 2, high)));
    assert_eq!((answer(&effects).map(|a| a.0), doubts(&effects)), (Some("implausible"), 0));
    assert_eq!(doubts(&bench.hear(2, Message::Height(HeightTalk::Top(Term(high))))), 1);
    assert_eq!(bench.node.doubted(), Some((NodeId(2), Term(high))));
    bench.handle(Input::Command(Command::Confirm(Term(high))));
    assert_eq!(bench.node.doubted(), None);
    assert_eq!(answer(&bench.hear(1, Message::Request(request(1, 3, high)))).map(|a| a.0), Some("ok"));
}

#[test]
fn a_charter_whose_floor_is_absurd_is_neither_accepted_nor_adopted_unconfirmed() {
    let mut bench = Bench::founded();
    let floor = Term(PLAUSIBLE + 1);
    let here = bench.node.charter().clone();
    let next = here.next(here.body.clone(), floor);
    let ballot = epoch::Ballot { number: 1, node: Some(NodeId(1)), incarnation: Incarnation(1) };
    let accept = epoch::EpochTalk::Accept { epoch: Epoch(0), ballot, charter: next.clone() };
    let denied = bench.hear(1, Message::Epoch(accept));
    let implausible = epoch::Denial::Implausible(floor);
    assert!(denied.iter().any(|effect| matches!(
        effect,
        Effect::Send { message: Message::Epoch(epoch::EpochTalk::Denied { denial, .. }), .. }
            if *denial == implausible
    )));
    assert_eq!(doubts(&denied), 1);
    bench.hear(1, Message::Epoch(epoch::EpochTalk::Decided(next.clone())));
    assert_eq!(bench.node.epoch(), Epoch(0));
    bench.handle(Input::Command(Command::Confirm(floor)));
    bench.hear(1, Message::Epoch(epoch::EpochTalk::Decided(next)));
    assert_eq!(bench.node.epoch(), Epoch(1));
}

#[test]
fn an_absurd_top_in_a_promise_does_not_become_a_floor() {
    let mut bench = Bench::founded();
    let body = bench.node.charter().body.clone();
    let change = epoch::Change::LongestLease(Span::from_nanos(body.longest_lease.as_nanos() - 1));
    let effects = bench.handle(Input::Command(Command::Change(change)));
    let ballot = effects.iter().find_map(|effect| match effect {
        Effect::Send { message: Message::Epoch(epoch::EpochTalk::Prepare { ballot, .. }), .. } => {
            Some(*ballot)
        }
        _ => None,
    });
    let ballot = ballot.expect("it prepares");
    let promise = |top| {
        Message::Epoch(epoch::EpochTalk::Promise { epoch: Epoch(0), ballot, accepted: None, top: Term(top) })
    };
    bench.hear(1, promise(3));
    assert_eq!(doubts(&bench.hear(2, promise(u64::MAX))), 1);
    let effects = bench.hear(0, promise(2));
    let floor = effects.iter().find_map(|effect| match effect {
        Effect::Send { message: Message::Epoch(epoch::EpochTalk::Accept { charter, .. }), .. } => {
            Some(charter.floor)
        }
        _ => None,
    });
    assert_eq!(floor, Some(Term(3)));
}

#[test]
fn a_candidate_that_asked_for_too_much_waits_as_long_as_it_is_told_and_then_asks_for_what_is_enough() {
    let mut bench = Bench::founded();
    bench.handle(Input::Command(Command::Raise { group: GROUP, above: Term(u64::MAX) }));
    let asked = bench.ask();
    assert_eq!(asked.term, Term(u64::MAX));
    let mut effects = Vec::new();
    for (from, wait) in [(1, 3000), (2, 2000)] {
        let refusal = Refusal::TooHigh { wait: LocalSpan::from_nanos(wait) };
        let nack = Message::Nack { group: GROUP, id: asked.id, refusal, max_term: Term(5) };
        effects.extend(bench.hear(from, nack));
    }
    let wait = LocalSpan::from_nanos(2000);
    let held_back = Event::HeldBack { group: GROUP, term: asked.term, wait };
    assert!(effects.contains(&Effect::Publish(held_back)));
    assert_eq!(bench.node.next_deadline(), Some(LocalTime::from_nanos(12_000)));
    let effects = bench.at(12_000).handle(Input::Deadline);
    let again = effects.iter().find_map(|effect| match effect {
        Effect::Publish(Event::Asked(request)) => Some(request.term),
        _ => None,
    });
    assert_eq!(again, Some(Term(6)));
}

fn ceilings(effects: &[Effect<Nerio>]) -> Vec<u64> {
    let ceiling = |effect: &Effect<Nerio>| match effect {
        Effect::Persist { record: Cell::Ceiling(term), .. } => Some(term.0),
        _ => None,
    };
    effects.iter().filter_map(ceiling).collect()
}

#[test]
fn a_clean_stop_writes_the_exact_largest_term_and_nothing_is_granted_after_it() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 3)));
    bench.hear(1, Message::Release { group: GROUP, upto: request(1, 1, 3).id });
    assert_eq!(ceilings(&bench.handle(Input::Command(Command::Close))), [3]);
    assert_eq!(bench.hear(1, Message::Request(request(1, 2, 4))), []);
    assert_eq!(bench.hear(1, Message::Height(HeightTalk::Ask)), []);
    assert_eq!(bench.handle(Input::Command(Command::Close)), []);
    assert_eq!(bench.node.next_deadline(), None);
}

#[test]
fn lives_that_end_cleanly_cost_no_terms() {
    let mut found = Term(8);
    for life in 1..100 {
        let store = Store::Used(Incarnation(life), vec![Cell::Ceiling(found)]);
        let memory = Memory { boot: HERE, writer: Incarnation(life), records: vec![] };
        let mut bench = Bench::start(store, Some(memory));
        assert_eq!(ceilings(&bench.effects), [12], "it is raised before anything can be granted");
        bench.effects.clear();
        found = Term(ceilings(&bench.handle(Input::Command(Command::Close)))[0]);
        assert_eq!(found, Term(8));
    }
}

#[test]
fn a_clean_stop_is_the_last_word_although_the_clock_is_behind() {
    let mut bench = Bench::founded();
    bench.at(10_500).hear(1, Message::Request(request(1, 1, 3)));
    assert_eq!(ceilings(&bench.at(10_400).handle(Input::Command(Command::Close))), [3]);
    let late = GrantRequest { group: GroupId(1), ..request(1, 2, 4) };
    assert_eq!(bench.at(10_500).hear(1, Message::Request(late)), [], "the disk does not cover it");
}

#[test]
fn requests_that_come_while_the_clock_is_behind_fill_no_memory() {
    let mut bench = Bench::founded();
    bench.at(10_500).handle(Input::Deadline);
    for _ in 0..100 {
        bench.at(10_400).handle(Input::Command(Command::KeyOf { node: NodeId(OUTSIDER), key: 42 }));
    }
    assert_eq!(bench.node.process.kept, []);
    assert_eq!(bench.node.key_of(NodeId(OUTSIDER)), Some(42));
}

#[test]
fn an_outsider_that_asks_members_to_take_over_pays_for_the_term_that_it_names() {
    let mut bench = Bench::founded();
    bench.handle(Input::Command(Command::KeyOf { node: NodeId(8), key: OUTSIDER }));
    for (step, from) in (1..=20).zip([OUTSIDER, 8].into_iter().cycle()) {
        let term = Term(bench.node.top().0 + 1000);
        let talk = Talk::TakeOver { term };
        let effects = bench.at(10_000 + 5_000 * step).hear(from, Message::Talk { group: GROUP, talk });
        let asked = effects.iter().find_map(|effect| match effect {
            Effect::Publish(Event::Asked(request)) => Some(*request),
            _ => None,
        });
        // Nobody passes it on: it asks by itself, as a member, whose word is free.
        bench.hear(0, Message::Request(asked.expect("it prepares a run")));
    }
    let most = crate::strong::height::BURST + 20;
    assert!(bench.node.top() <= Term(most), "{:?} in an instant", bench.node.top());
}
