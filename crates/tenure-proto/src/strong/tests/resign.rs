//! Leaders that give up: by resigning, and by handing over.

use super::*;

#[test]
fn a_leader_that_resigns_stops_leading_before_a_release_leaves() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.ok(1, asked);
    let effects = bench.handle(Input::Command(Command::Resign(GROUP)));
    let lost = effects.iter().position(|e| matches!(e, Effect::Publish(Event::Lost { .. })));
    let sent = effects.iter().position(|e| matches!(e, Effect::Send { .. }));
    assert!(lost.expect("lost") < sent.expect("sent"));
    assert_eq!(bench.leads(), None);
}

#[test]
fn a_leader_that_stands_down_leads_no_more_and_gives_back_only_when_it_resigns() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.ok(1, asked);
    let effects = bench.handle(Input::Command(Command::StandDown(GROUP)));
    assert!(matches!(effects[..], [Effect::Publish(Event::Lost { .. })]), "{effects:?}");
    assert_eq!(bench.leads(), None);
    assert_eq!(bench.node.next_deadline(), None, "it asks for nothing more");
    let effects = bench.handle(Input::Command(Command::Resign(GROUP)));
    assert_eq!(answers(&effects), [(0, "release", None), (1, "release", None), (2, "release", None)]);
    assert!(bench.handle(Input::Command(Command::Resign(GROUP))).is_empty(), "once is enough");
}

#[test]
fn a_leader_that_resigns_when_its_lease_is_over_has_lapsed() {
    for command in [Command::Resign(GROUP), Command::StandDown(GROUP)] {
        let mut bench = leading();
        bench.now = bench.leads().expect("it leads");
        let effects = bench.handle(Input::Command(command));
        let lapsed = |effect: &_| matches!(effect, Effect::Publish(Event::Lost { loss: Loss::Lapsed, .. }));
        assert!(effects.iter().any(lapsed), "{effects:?}");
    }
}

#[test]
fn a_release_frees_a_grantor_and_a_late_one_does_not() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 2, 1)));
    bench.hear(1, Message::Release { group: GROUP, upto: request(1, 1, 1).id });
    assert_eq!(bench.grant(), Some((1, 11_101)), "it was sent before the newest run");
    let effects = bench.hear(1, Message::Release { group: GROUP, upto: request(1, 2, 1).id });
    assert!(effects.contains(&Effect::Remember(Cell::Grant(GROUP, None))));
    assert_eq!(bench.grant(), None);
    let late = bench.hear(1, Message::Request(request(1, 2, 1)));
    assert_eq!(answers(&late), [(1, "released", None)], "a late request does not bind it again");
}

#[test]
fn a_leader_hands_over_by_giving_up_first_and_passing_the_request_on() {
    let mut bench = leading();
    let effects = bench.handle(Input::Command(Command::Transfer { group: GROUP, to: NodeId(2) }));
    assert_eq!(answers(&effects), [(2, "take over", None)]);
    assert!(bench.leads().is_some(), "until the other is ready nothing changes");
    let talk = Talk::Ready(request(2, 1, 9));
    assert_eq!(answers(&bench.hear(1, Message::Talk { group: GROUP, talk })), [], "not from anybody else");
    let effects = bench.hear(2, Message::Talk { group: GROUP, talk });
    assert_eq!(answers(&effects), [(0, "relay", None), (1, "relay", None), (2, "relay", None)]);
    assert_eq!(bench.leads(), None);
    let lost = effects.iter().position(|e| matches!(e, Effect::Publish(Event::Lost { .. })));
    assert!(lost < effects.iter().position(|e| matches!(e, Effect::Send { .. })));
}

#[test]
fn a_grantor_releases_and_grants_in_one_step_if_the_holder_itself_passes_the_request_on() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    let talk = Talk::Relay { release: request(1, 1, 1).id, request: request(2, 1, 2) };
    assert_eq!(answers(&bench.hear(2, Message::Talk { group: GROUP, talk })), [], "the successor may not");
    assert_eq!(answers(&bench.hear(1, Message::Talk { group: GROUP, talk })), [(2, "ok", Some(1))]);
    assert_eq!(bench.grant(), Some((2, 11_101)));
}

#[test]
fn the_one_asked_to_take_over_prepares_a_larger_term_and_asks_no_grantor() {
    let mut bench = Bench::founded();
    let talk = Talk::TakeOver { term: Term(7) };
    let effects = bench.hear(1, Message::Talk { group: GROUP, talk });
    assert_eq!(answers(&effects), [(1, "ready", None)]);
    assert!(effects.iter().any(|e| matches!(e, Effect::Publish(Event::Asked(r)) if r.term == Term(8))));
}
