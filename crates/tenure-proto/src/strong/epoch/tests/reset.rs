//! Terms that are absurdly high, and an operator who sets them anew.

use super::*;

const ERA: Epoch = Epoch(Epoch::ERA);
const ABSURD: u64 = 1 << 40;

/// The charter by which the three members go on with terms above `floor`.
fn anew(floor: u64, barred: &[u64]) -> Arc<Charter> {
    let founding = Bench::founded().node.charter().clone();
    let barred = barred.iter().copied().map(GroupId).collect();
    Arc::new(Charter {
        epoch: ERA,
        before: Some(founding.body.clone()),
        floor: Term(floor),
        reset: TermReset::new(ERA, barred).unwrap(),
        ..(*founding).clone()
    })
}

fn accept(charter: &Arc<Charter>) -> Message {
    Message::Epoch(EpochTalk::Accept { epoch: Epoch(0), ballot: ballot(1), charter: charter.clone() })
}

fn answer(effects: &[Effect<Nerio>]) -> EpochTalk {
    talks(effects).first().cloned().cloned().expect("an answer")
}

/// A member that granted an absurd term to the group of all these tests, as an operator had
/// confirmed.
fn absurd() -> Bench {
    let mut bench = Bench::founded();
    bench.handle(Input::Command(Command::Confirm(Term(ABSURD))));
    bench.hear(1, Message::Request(request(1, 1, ABSURD)));
    assert_eq!(bench.node.top(), Term(ABSURD));
    bench
}

fn persisted(effects: &[Effect<Nerio>]) -> Vec<Cell> {
    let cells = effects.iter().filter_map(|effect| match effect {
        Effect::Persist { record, .. } => Some(record.clone()),
        _ => None,
    });
    cells.collect()
}

#[test]
fn a_member_denies_a_floor_below_a_term_of_a_group_that_stays_open() {
    let mut bench = absurd();
    let said = answer(&bench.hear(1, accept(&anew(100, &[]))));
    let denial = Denial::Unbarred { group: GROUP, term: Term(ABSURD) };
    assert_eq!(said, EpochTalk::Denied { epoch: Epoch(0), ballot: ballot(1), denial });
    let said = answer(&bench.hear(1, accept(&anew(100, &[GROUP.0]))));
    assert_eq!(said, EpochTalk::Accepted { epoch: Epoch(0), ballot: ballot(1) });
}

#[test]
fn after_a_restart_the_ceiling_alone_is_no_evidence_against_a_floor() {
    let cells = vec![Cell::Ceiling(Term(ABSURD))];
    let mut bench = Bench::start(Store::Used(Incarnation(3), cells), None);
    let said = answer(&bench.hear(1, accept(&anew(100, &[]))));
    assert_eq!(said, EpochTalk::Accepted { epoch: Epoch(0), ballot: ballot(1) });
}

#[test]
fn adopting_the_charter_lowers_the_ceiling_before_the_charter_is_durable() {
    let mut bench = absurd();
    let charter = anew(100, &[GROUP.0]);
    bench.hear(1, accept(&charter));
    let cells = persisted(&told(&mut bench, &charter));
    let ceiling = cells.iter().position(|cell| matches!(cell, Cell::Ceiling(Term(101..=200))));
    let kept = cells.iter().position(|cell| matches!(cell, Cell::Charter(_)));
    assert!(ceiling.is_some() && ceiling < kept, "{cells:?}");
    assert_eq!(bench.node.top(), Term(100));
}

#[test]
fn killed_between_ceiling_and_charter_a_member_grants_nothing() {
    let charter = anew(100, &[]);
    let sealed = persisted(&Bench::founded().hear(1, accept(&charter)));
    let cells = [sealed, vec![Cell::Ceiling(Term(116))]].concat();
    let memory = Memory { boot: HERE, writer: Incarnation(3), records: vec![] };
    let mut bench = Bench::start(Store::Used(Incarnation(3), cells), Some(memory));
    bench.hear(1, Message::Request(request(1, 1, 117)));
    assert_eq!(bench.grant(), None, "it is sealed");
    told(&mut bench, &charter);
    bench.hear(1, in_epoch(request(1, 2, 118), Epoch::ERA));
    assert!(bench.grant().is_some(), "in the era that it was sealed for it grants");
}

#[test]
fn a_barred_group_is_refused_also_after_a_restart_and_its_term_counts_no_more() {
    let mut bench = absurd();
    let held = *bench.node.grant(GROUP).expect("granted");
    let charter = anew(100, &[GROUP.0]);
    bench.hear(1, accept(&charter));
    told(&mut bench, &charter);
    let barred = |effects: &[Effect<Nerio>]| answers(effects) == [(2, "barred", None)];
    let ask = || in_epoch(request(2, 1, ABSURD + 1), Epoch::ERA);
    assert!(barred(&bench.at(1_000_000).hear(2, ask())));

    // The grant that is remembered may be older than the charter: a process can be killed between
    // the two.
    let cells = vec![Cell::Ceiling(Term(116)), Cell::Charter(charter)];
    let records = vec![Cell::Grant(GROUP, Some(held))];
    let memory = Memory { boot: HERE, writer: Incarnation(3), records };
    let mut bench = Bench::start(Store::Used(Incarnation(3), cells), Some(memory));
    assert_eq!(bench.node.top(), Term(116));
    assert!(barred(&bench.hear(2, ask())));
}

#[test]
fn the_next_charter_bars_the_same_groups() {
    let next = anew(100, &[3, 9]).next(Bench::founded().node.charter().body.clone(), Term(120));
    assert_eq!(next.reset.barred(), [GroupId(3), GroupId(9)]);
    assert!(!next.resets_terms_of(&anew(100, &[3, 9])), "terms are lowered once");
}

#[test]
fn a_floor_above_all_terms_repairs_nothing() {
    let mut bench = absurd();
    let change = Change::ResetTerms { floor: Term(ABSURD), barred: vec![] };
    let effects = bench.handle(Input::Command(Command::Change(change)));
    let halted = |effect: &Effect<Nerio>| matches!(effect, Effect::Publish(Event::ChangeHalted { halt: Halt::Impossible(why) }) if why.contains("repairs nothing"));
    assert!(effects.iter().any(halted), "{effects:?}");
}
