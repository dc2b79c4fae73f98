use super::*;
use crate::referee::ledger::Process;

const RULES: Rules = Rules { lease: 10, after_death: 21, list_age: 3, calm: 5 };

fn life(runner: &str, term: u64, first: u64, last: u64) -> Life {
    let (group, runner) = ("g".to_owned(), runner.to_owned());
    Life { group, runner, term, token: u128::from(term), first, last, ended: Some(last + 1) }
}

/// a leads in term 1 from 100 to 200, b in term 2 from 210 to 300; a's runner is dead at 205.
fn ledger() -> Ledger {
    let process = |host, ended| Process { group: "g".to_owned(), host, began: 50, ended };
    Ledger {
        lives: vec![life("a", 1, 100, 200), life("b", 2, 210, 300)],
        runners: [("a".to_owned(), process(1, Some(205))), ("b".to_owned(), process(2, None))].into(),
    }
}

fn claim(asked: u64, told: u64, says: Says) -> Claim {
    let group = "g".to_owned();
    Claim { kind: "leader", host: 1, group, asked, told, says, here: None, listed: false }
}

fn leads(name: &str, term: u64) -> Says {
    Says::Leader { name: name.to_owned(), term }
}

const NOBODY: Says = Says::Nobody { after: None };

fn rules_against(claims: &[Claim], trouble: &[(u64, u64)]) -> Vec<&'static str> {
    judge(&ledger(), claims, trouble, RULES).into_iter().map(|wrong| wrong.rule).collect()
}

fn rule(claim: Claim) -> Option<&'static str> {
    rules_against(&[claim], &[]).first().copied()
}

#[test]
fn an_answer_that_was_true_at_some_instant_is_right() {
    for (asked, told, says) in [
        (120, 121, leads("a", 1)),
        (90, 91, leads("a", 1)),   // Elected, and its command has not begun.
        (203, 204, leads("a", 1)), // Its command is dead, its lease is not over.
        (199, 212, leads("b", 2)),
        (203, 204, leads("b", 2)),
        (199, 202, NOBODY),
        (202, 211, NOBODY),
        (120, 121, Says::Unknown),
    ] {
        let trouble = [(118, 119)];
        let claim = claim(asked, told, says);
        assert_eq!(rules_against(std::slice::from_ref(&claim), &trouble), [""; 0], "{claim:?}");
    }
}

#[test]
fn a_leader_is_wrong_that_is_no_runner_of_the_group_or_has_not_begun() {
    assert_eq!(rule(claim(120, 121, leads("z", 1))), Some("L1"));
    assert_eq!(rule(claim(40, 49, leads("a", 1))), Some("L1"));
}

#[test]
fn a_leader_is_wrong_that_was_dead_for_longer_than_a_lease() {
    assert_eq!(rule(claim(216, 217, leads("a", 3))), Some("L2"));
}

#[test]
fn a_leader_is_wrong_once_a_later_one_has_begun_or_while_another_works() {
    assert_eq!(rule(claim(211, 212, leads("a", 1))), Some("L3"));
    assert_eq!(rule(claim(120, 121, leads("b", 2))), Some("L4"));
    assert_eq!(rule(claim(120, 121, leads("a", 7))), Some("L4"), "another term of the same");
}

#[test]
fn a_leader_is_wrong_long_after_the_death_of_its_command() {
    assert_eq!(rule(claim(322, 323, leads("b", 2))), None);
    assert_eq!(rule(claim(323, 324, leads("b", 2))), Some("L5"));
}

#[test]
fn a_quorum_that_was_told_of_an_end_never_names_that_leader_again() {
    let over = claim(201, 202, Says::Nobody { after: Some(1) });
    let again = claim(203, 204, leads("a", 1));
    assert_eq!(rules_against(&[over.clone(), again.clone()], &[]), ["L6"]);
    let during = Claim { asked: 202, ..again.clone() };
    assert_eq!(rules_against(&[over.clone(), during], &[]), [""; 0], "it was asked before");
    let listed = Claim { listed: true, ..again.clone() };
    assert_eq!(rules_against(&[over, listed], &[]), [""; 0]);
    let next = claim(201, 202, leads("b", 2));
    assert_eq!(rules_against(&[next, again], &[]), ["L6"]);
}

#[test]
fn the_host_of_the_leader_is_judged() {
    let of = |host, here| Claim { host, here: Some(here), ..claim(120, 121, leads("a", 1)) };
    assert_eq!(rule(of(1, true)), None);
    assert_eq!(rule(of(1, false)), Some("L7"));
    assert_eq!(rule(of(2, true)), Some("L7"));
    assert_eq!(rules_against(&[of(1, false)], &[(114, 115)]), [""; 0], "the daemon may be new");
    assert_eq!(rules_against(&[of(2, true)], &[(114, 115)]), ["L7"]);
}

#[test]
fn nobody_is_wrong_while_one_command_lives() {
    assert_eq!(rule(claim(120, 121, NOBODY)), Some("N1"));
    let listed = |asked, told| Claim { listed: true, ..claim(asked, told, NOBODY) };
    assert_eq!(rule(listed(102, 103)), None, "reports of before it may count");
    assert_eq!(rule(listed(103, 104)), Some("N1"));
}

#[test]
fn not_known_is_wrong_only_where_all_was_well() {
    assert_eq!(rule(claim(120, 121, Says::Unknown)), Some("U1"));
    assert_eq!(rule(claim(120, 121, Says::Silence)), Some("U1"));
    assert_eq!(rule(claim(104, 106, Says::Unknown)), None, "the leader was new");
    assert_eq!(rules_against(&[claim(120, 121, Says::Unknown)], &[(90, 115)]), [""; 0]);
    assert_eq!(rules_against(&[claim(120, 121, Says::Unknown)], &[(90, 114)]), ["U1"]);
}

#[test]
fn two_commands_at_once_and_terms_that_fall_are_found() {
    let mut ledger = ledger();
    assert_eq!((ledger.overlaps(), ledger.out_of_order()), (Vec::new(), Vec::new()));
    ledger.lives.push(life("c", 2, 300, 400));
    let (overlaps, order) = (ledger.overlaps(), ledger.out_of_order());
    let names = |found: &[crate::referee::Overlap]| {
        found.iter().map(|one| format!("{}{}", one.earlier.runner, one.later.runner)).collect::<Vec<_>>()
    };
    assert_eq!((names(&overlaps), names(&order)), (vec!["bc".to_owned()], vec!["bc".to_owned()]));
}
