//! "Free now": one grantor that refused, and one candidate that was refused.

use super::super::free::MOST_REFUSED;
use super::*;

/// To whom a hint was sent.
fn hinted(effects: &[Effect<Nerio>]) -> Vec<u64> {
    answers(effects).into_iter().filter(|(_, kind, _)| *kind == "free").map(|(to, ..)| to).collect()
}

fn release(node: u64, seq: u64) -> Message {
    Message::Release { group: GROUP, upto: request(node, seq, 0).id }
}

#[test]
fn who_was_refused_is_told_when_the_grant_is_given_back() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    bench.hear(2, Message::Request(request(2, 1, 2)));
    bench.hear(9, Message::Request(request(9, 1, 2)));
    assert_eq!(hinted(&bench.hear(1, release(1, 1))), [2, 9]);
    assert_eq!(hinted(&bench.hear(1, release(1, 1))), [0; 0], "once");
}

#[test]
fn nobody_is_told_of_a_grant_that_would_have_run_out_or_that_another_has() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    bench.hear(2, Message::Request(request(2, 1, 2)));
    let relay = Talk::Relay { release: request(1, 1, 1).id, request: request(9, 1, 3) };
    assert_eq!(hinted(&bench.hear(1, Message::Talk { group: GROUP, talk: relay })), [0; 0], "n9 has it");
    assert_eq!(hinted(&bench.at(11_101).hear(9, release(9, 1))), [0; 0], "n2 has heard until when to wait");
}

#[test]
fn a_grantor_remembers_the_last_few_whom_it_refused() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    for node in (10..).take(MOST_REFUSED + 1) {
        bench.hear(node, Message::Request(request(node, 1, 2)));
    }
    let told = hinted(&bench.hear(1, release(1, 1)));
    assert_eq!(told, (11..).take(MOST_REFUSED).collect::<Vec<u64>>());
}

#[test]
fn a_hint_makes_a_refused_candidate_start_sooner_and_never_later() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    let remaining = LocalSpan::from_nanos(900);
    for from in [1, 2] {
        let refusal = Refusal::Busy { holder: NodeId(7), remaining };
        bench.hear(from, Message::Nack { group: GROUP, id: asked.id, refusal, max_term: Term(0) });
    }
    assert_eq!(bench.node.next_deadline(), Some(LocalTime::from_nanos(10_900)), "it waits as it was told");
    let hint = Message::Talk { group: GROUP, talk: Talk::Free };
    bench.at(10_200).hear(1, hint.clone());
    assert_eq!(bench.node.next_deadline(), Some(LocalTime::from_nanos(10_200)));
    bench.at(10_250).hear(2, hint);
    assert_eq!(bench.node.next_deadline(), Some(LocalTime::from_nanos(10_200)));
}

#[test]
fn a_hint_makes_nobody_campaign() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Talk { group: GROUP, talk: Talk::Free });
    assert_eq!(bench.node.next_deadline(), None);
}
