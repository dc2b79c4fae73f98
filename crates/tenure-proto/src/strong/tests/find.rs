//! Finding the leader: one machine that is asked, or asks.

use super::super::find::{MOST_ASKED, MOST_WAITING};
use super::*;

fn question(node: u64, seq: u64) -> InstanceId {
    InstanceId { holder: Holder { node: NodeId(node), incarnation: Incarnation(1) }, seq }
}

fn seek(node: u64, seq: u64, how: How) -> Message {
    Message::Talk { group: GROUP, talk: Talk::Seek { id: question(node, seq), how, hops: 3 } }
}

/// The messages that were sent, with the talk itself.
fn said(effects: &[Effect<Nerio>]) -> Vec<(u64, Talk)> {
    let said = effects.iter().filter_map(|effect| match effect {
        Effect::Send { to, message: Message::Talk { talk, .. }, .. } => Some((to.0, *talk)),
        _ => None,
    });
    said.collect()
}

fn misses(effects: &[Effect<Nerio>]) -> Vec<Miss> {
    let misses = effects.iter().filter_map(|effect| match effect {
        Effect::Publish(Event::NotFound { why, .. }) => Some(*why),
        _ => None,
    });
    misses.collect()
}

impl Bench {
    fn find(&mut self, ask: u64, how: How, hops: u8) -> (InstanceId, Vec<Effect<Nerio>>) {
        let command = Command::Find { group: GROUP, ask: NodeId(ask), how, hops };
        let effects = self.handle(Input::Command(command));
        let id = effects.iter().find_map(|effect| match effect {
            Effect::Publish(Event::Sought { id, .. }) => Some(*id),
            _ => None,
        });
        (id.expect("it says that it seeks"), effects)
    }

    fn told(&mut self, from: u64, talk: Talk) -> Vec<Effect<Nerio>> {
        self.hear(from, Message::Talk { group: GROUP, talk })
    }
}

fn hint(holder: u64, term: u64) -> Hint {
    Hint { holder: NodeId(holder), term: Term(term), remaining: LocalSpan::from_nanos(500) }
}

#[test]
fn a_leader_says_so_with_its_term_whatever_the_asker_chose() {
    let mut bench = Bench::founded();
    let request = bench.ask();
    bench.ok(1, request);
    bench.ok(2, request);
    for how in [How::Refuse, How::Redirect, How::Buffer { wait: Span::from_nanos(10) }] {
        let answer =
            Talk::Here { id: question(1, 1), hops: 3, leader: request.id.holder, term: request.term };
        assert_eq!(said(&bench.hear(1, seek(1, 1, how))), [(1, answer)]);
    }
}

#[test]
fn a_grantor_names_whom_it_supports_until_that_has_run_out() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 7)));
    let remaining = LocalSpan::from_nanos(1101);
    let hint = Hint { holder: NodeId(1), term: Term(7), remaining };
    let there = Talk::There { id: question(9, 1), hops: 3, hint };
    assert_eq!(said(&bench.hear(9, seek(9, 1, How::Redirect))), [(9, there)], "to one who is no member");
    let nowhere = Talk::Nowhere { id: question(9, 2), hops: 3, why: Miss::Unknown };
    assert_eq!(said(&bench.at(11_101).hear(9, seek(9, 2, How::Redirect))), [(9, nowhere)]);
}

#[test]
fn one_who_shall_refuse_names_nobody() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    let nowhere = Talk::Nowhere { id: question(2, 1), hops: 3, why: Miss::NotLeader };
    assert_eq!(said(&bench.hear(2, seek(2, 1, How::Refuse))), [(2, nowhere)]);
}

#[test]
fn a_buffered_question_is_answered_when_this_grantor_supports_another() {
    let mut bench = Bench::founded();
    let wait = Span::from_nanos(400);
    assert_eq!(said(&bench.hear(2, seek(2, 1, How::Buffer { wait }))), []);
    assert_eq!(said(&bench.hear(2, seek(2, 1, How::Buffer { wait }))), [], "the same question again");
    let effects = bench.at(10_100).hear(1, Message::Request(request(1, 1, 1)));
    assert!(matches!(said(&effects)[..], [(2, Talk::There { hint: Hint { holder: NodeId(1), .. }, .. })]));
}

#[test]
fn a_buffered_question_waits_to_its_deadline_and_no_longer() {
    let mut bench = Bench::founded();
    bench.hear(2, seek(2, 1, How::Buffer { wait: Span::from_nanos(400) }));
    assert_eq!(bench.node.next_deadline(), Some(LocalTime::from_nanos(10_400)));
    let nowhere = Talk::Nowhere { id: question(2, 1), hops: 3, why: Miss::TimedOut };
    assert_eq!(said(&bench.at(10_400).handle(Input::Deadline)), [(2, nowhere)]);
    assert_eq!(bench.node.next_deadline(), None);
}

#[test]
fn what_does_not_fit_into_the_buffer_is_refused() {
    let mut bench = Bench::founded();
    let how = How::Buffer { wait: Span::from_nanos(400) };
    for seq in 0..MOST_WAITING as u64 {
        assert_eq!(said(&bench.hear(2, seek(2, seq, how))), []);
    }
    let nowhere = Talk::Nowhere { id: question(2, 99), hops: 3, why: Miss::Full };
    assert_eq!(said(&bench.hear(2, seek(2, 99, how))), [(2, nowhere)]);
}

#[test]
fn a_question_can_make_a_process_campaign_and_is_answered_when_it_leads() {
    let mut bench = Bench::founded();
    bench.handle(Input::Command(Command::Offer(GROUP)));
    bench.hear(2, seek(2, 1, How::Campaign { wait: Span::from_nanos(400) }));
    let effects = bench.handle(Input::Deadline);
    let asked = effects.iter().find_map(|effect| match effect {
        Effect::Publish(Event::Asked(request)) => Some(*request),
        _ => None,
    });
    let request = asked.expect("it campaigns");
    assert_eq!(said(&bench.ok(1, request)), []);
    let answer = Talk::Here { id: question(2, 1), hops: 3, leader: request.id.holder, term: request.term };
    assert_eq!(said(&bench.ok(2, request)), [(2, answer)]);
}

#[test]
fn nobody_makes_a_process_campaign_whose_user_has_not_offered_it() {
    let mut bench = Bench::founded();
    bench.handle(Input::Command(Command::Offer(GROUP)));
    bench.handle(Input::Command(Command::Resign(GROUP)));
    bench.hear(2, seek(2, 1, How::Campaign { wait: Span::from_nanos(400) }));
    assert_eq!(
        bench.node.next_deadline(),
        Some(LocalTime::from_nanos(10_400)),
        "the question waits, no more"
    );
}

#[test]
fn who_campaigned_for_an_asker_alone_stops_when_nobody_waits() {
    let mut bench = Bench::founded();
    bench.handle(Input::Command(Command::Offer(GROUP)));
    bench.hear(2, seek(2, 1, How::Campaign { wait: Span::from_nanos(40) }));
    bench.handle(Input::Deadline);
    let answers = answers(&bench.at(10_040).handle(Input::Deadline));
    assert_eq!(answers[..2], [(2, "nowhere", None), (0, "release", None)]);
    assert_eq!(bench.node.next_deadline(), None);
}

#[test]
fn an_asker_follows_hints_for_as_many_hops_as_it_was_given() {
    let mut bench = Bench::founded();
    let (id, effects) = bench.find(1, How::Redirect, 1);
    assert_eq!(said(&effects), [(1, Talk::Seek { id, how: How::Redirect, hops: 1 })]);
    let effects = bench.told(1, Talk::There { id, hops: 1, hint: hint(2, 5) });
    assert_eq!(said(&effects), [(2, Talk::Seek { id, how: How::Redirect, hops: 0 })]);
    let effects = bench.told(2, Talk::There { id, hops: 0, hint: hint(1, 5) });
    assert_eq!((said(&effects).len(), misses(&effects)), (0, vec![Miss::NoHopsLeft]));
}

#[test]
fn a_leader_that_answers_is_found_with_the_hops_that_it_took() {
    let mut bench = Bench::founded();
    let (id, _) = bench.find(1, How::Redirect, 3);
    bench.told(1, Talk::There { id, hops: 3, hint: hint(2, 5) });
    let leader = question(2, 0).holder;
    let effects = bench.told(2, Talk::Here { id, hops: 2, leader, term: Term(5) });
    let found = Event::Found { group: GROUP, id, leader, term: Term(5), hops: 1 };
    assert_eq!(effects, [Effect::Publish(found)]);
    assert_eq!(bench.told(2, Talk::Here { id, hops: 2, leader, term: Term(5) }), [], "once");
}

#[test]
fn nobody_answers_for_another_nor_twice_for_one_hop() {
    let mut bench = Bench::founded();
    let (id, _) = bench.find(1, How::Redirect, 3);
    let leader = question(2, 0).holder;
    assert_eq!(bench.told(1, Talk::Here { id, hops: 3, leader, term: Term(5) }), [], "in n2's name");
    bench.told(1, Talk::There { id, hops: 3, hint: hint(1, 5) });
    assert_eq!(bench.told(1, Talk::There { id, hops: 3, hint: hint(2, 5) }), [], "a late repetition");
}

#[test]
fn a_hint_to_an_older_term_than_a_leader_told_of_is_not_followed() {
    let mut bench = Bench::founded();
    let (first, _) = bench.find(2, How::Redirect, 3);
    bench.told(2, Talk::Here { id: first, hops: 3, leader: question(2, 0).holder, term: Term(5) });
    let (id, _) = bench.find(1, How::Redirect, 3);
    let effects = bench.told(1, Talk::There { id, hops: 3, hint: hint(2, 4) });
    assert_eq!((said(&effects).len(), misses(&effects)), (0, vec![Miss::Outdated]));
    // A refused candidate's larger term is no leadership: it makes nothing outdated.
    let (id, _) = bench.find(1, How::Redirect, 3);
    bench.told(1, Talk::There { id, hops: 3, hint: hint(2, 99) });
    assert_eq!(said(&bench.told(2, Talk::There { id, hops: 2, hint: hint(1, 5) })).len(), 1);
}

#[test]
fn an_unanswered_question_is_put_again_and_given_up_in_the_end() {
    let mut bench = Bench::founded();
    let (id, _) = bench.find(1, How::Redirect, 3);
    let again = said(&bench.at(10_050).handle(Input::Deadline));
    assert_eq!(again, [(1, Talk::Seek { id, how: How::Redirect, hops: 3 })]);
    assert_eq!(misses(&bench.at(10_400).handle(Input::Deadline)), [Miss::Unanswered]);
    assert_eq!(bench.node.next_deadline(), None);
}

#[test]
fn a_process_keeps_only_so_many_questions_of_its_own() {
    let mut bench = Bench::founded();
    for _ in 0..MOST_ASKED {
        assert_eq!(misses(&bench.find(1, How::Redirect, 3).1), []);
    }
    assert_eq!(misses(&bench.find(1, How::Redirect, 3).1), [Miss::Full]);
}
