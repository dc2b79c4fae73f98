//! Conditions for forgetting a group, and the knowledge left of it afterwards.

use super::*;

fn forget(bench: &mut Bench) -> Vec<Effect<Nerio>> {
    bench.handle(Input::Command(Command::Forget(GROUP)))
}

/// F of a grant that node 1 was given at 10,000.
const F: u64 = 11_101;

#[test]
fn a_group_with_a_grant_that_binds_is_not_forgotten() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 7)));
    let until = bench.node.grant(GROUP).expect("it is granted").until;
    assert_eq!(until, LocalTime::from_nanos(F));
    assert!(!bench.node.may_forget(GROUP, LocalTime::from_nanos(F - 1)));
    forget(bench.at(F - 1));
    assert!(bench.node.knows(GROUP) && bench.node.grant(GROUP).is_some());
    let effects = forget(bench.at(F));
    assert!(!bench.node.knows(GROUP));
    let freed = effects.iter().any(|effect| matches!(effect, Effect::Remember(Cell::Grant(GROUP, None))));
    assert!(freed, "its place in memory is free: {effects:?}");
}

#[test]
fn no_term_of_a_forgotten_group_is_granted_again_in_any_group_that_is_not_in_memory() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 7)));
    forget(bench.at(F));
    assert_eq!(bench.node.largest_term(GROUP), Term(7));
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 1, 7)))), [(1, "stale", None)]);
    let other = GrantRequest { group: GroupId(9), ..request(1, 2, 7) };
    assert_eq!(answers(&bench.hear(1, Message::Request(other))), [(1, "stale", None)]);
    let next = GrantRequest { group: GroupId(9), ..request(1, 3, 8) };
    assert_eq!(answers(&bench.hear(1, Message::Request(next)))[0].1, "ok");
}

#[test]
fn a_group_is_not_forgotten_while_what_was_given_back_counts() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Release { group: GROUP, upto: request(1, 5, 1).id });
    forget(bench.at(13_999));
    assert!(bench.node.knows(GROUP));
    forget(bench.at(14_000));
    assert!(!bench.node.knows(GROUP));
}

#[test]
fn who_campaigns_forgets_nothing() {
    let mut bench = Bench::founded();
    bench.handle(Input::Command(Command::Campaign(GROUP)));
    forget(&mut bench);
    assert!(bench.node.knows(GROUP));
    bench.handle(Input::Command(Command::Resign(GROUP)));
    forget(&mut bench);
    assert!(!bench.node.knows(GROUP) && bench.node.next_deadline().is_none());
}

#[test]
fn who_stood_down_or_has_a_priority_forgets_nothing() {
    let mut bench = Bench::founded();
    bench.ask();
    bench.handle(Input::Command(Command::StandDown(GROUP)));
    forget(&mut bench);
    assert!(bench.node.knows(GROUP), "what it was granted is still to be given back");
    let mut bench = Bench::founded();
    bench.handle(Input::Command(Command::Rank { group: GROUP, priority: 2 }));
    forget(&mut bench);
    assert!(bench.node.knows(GROUP));
}

#[test]
fn a_silent_grantor_forgets_nothing() {
    let mut bench = Bench::start(Store::Used(Incarnation(1), vec![Cell::Ceiling(Term(4))]), None);
    let silent_until = bench.node.silent_until().as_nanos();
    bench.hear(1, Message::Request(request(1, 1, 7)));
    forget(bench.at(silent_until - 1));
    assert!(bench.node.knows(GROUP));
    forget(bench.at(silent_until));
    assert!(!bench.node.knows(GROUP));
}
