//! A repair of absurd terms: every refusal of a plan, and members on both sides of one.

use super::*;
use crate::strong::epoch::repair::{RepairError, Stopped, Wish, applied, plan};
use crate::strong::epoch::{Barred, ChangeError, CharterId};
use crate::strong::height::PLAUSIBLE;
use crate::{GroupId, LocalTime};

const FLOOR: u64 = 1000;
const ABSURD: u64 = 1 << 40;

/// The number of the first repair.
const REPAIR: u64 = Lineage::MOST as u64 * Epoch::ERA;

fn store(node: u64) -> StoreId {
    StoreId(u128::from(node) + 10)
}

/// The founding charter of n0, n1 and n2, with their stores.
fn founding() -> Arc<Charter> {
    let body = Bench::founded().node.process.charter().body.clone();
    let stores = (0..3).map(|node| (NodeId(node), store(node))).collect();
    Charter::founded(Lineage::founding(0), Body { stores, ..body })
}

fn stopped(node: u64, ceiling: u64, charter: &Arc<Charter>) -> Stopped {
    Stopped {
        node: NodeId(node),
        store: store(node),
        life: Some(Incarnation(3)),
        cells: vec![Cell::Ceiling(Term(ceiling)), Cell::Charter(charter.clone())],
        grants: Vec::new(),
    }
}

/// All three have stopped; the terms of n1 are absurd.
fn all() -> Vec<Stopped> {
    [(0, 40), (1, ABSURD), (2, 80)].map(|(node, ceiling)| stopped(node, ceiling, &founding())).to_vec()
}

fn wish() -> Wish {
    Wish { floor: Term(FLOOR), barred: vec![GroupId(7)], draw: 5 }
}

fn refused(change: impl FnOnce(&mut Vec<Stopped>)) -> RepairError {
    let mut reports = all();
    change(&mut reports);
    plan(&reports, &wish()).unwrap_err()
}

#[test]
fn a_plan_keeps_the_members_and_lowers_the_terms_in_an_era_and_a_lineage_of_its_own() {
    let mut reports = all();
    reports[1].grants = vec![(GroupId(3), Term(ABSURD)), (GroupId(4), Term(12))];
    let charter = plan(&reports, &wish()).unwrap();
    let was = founding();
    assert_eq!(charter.epoch, Epoch(REPAIR));
    assert_eq!(charter.floor, Term(FLOOR));
    assert_eq!((charter.members(), &charter.body.stores), (was.members(), &was.body.stores));
    assert_eq!(charter.body.barred.groups(), [GroupId(3), GroupId(7)], "the remembered and the named");
    assert_eq!(charter.id().relation(&was.id()), Relation::Foreign);
    assert_eq!(charter.lineage.founder(), was.lineage.founder(), "files that name it still hold");
}

#[test]
fn every_member_must_report_once_and_nobody_else() {
    assert_eq!(refused(Vec::clear), RepairError::NoReports);
    assert_eq!(refused(|all| drop(all.pop())), RepairError::Missing(NodeId(2)));
    assert_eq!(refused(|all| all.push(all[0].clone())), RepairError::Twice(NodeId(0)));
    assert_eq!(refused(|all| all.push(stopped(9, 1, &founding()))), RepairError::NotAMember(NodeId(9)));
    assert_eq!(refused(|all| all[2].cells.truncate(1)), RepairError::NoCharter(NodeId(2)));
    assert_eq!(refused(|all| all[2].store = store(9)), RepairError::OtherStore(NodeId(2)));
}

#[test]
fn a_member_of_a_newer_charter_that_only_one_has_heard_of_must_report_too() {
    let body = Change::Add(NodeId(3)).applied(&founding().body, &Sound).unwrap();
    let next = founding().next(body, Term(80));
    let mut reports = all();
    reports[0] = stopped(0, 90, &next);
    assert_eq!(plan(&reports, &wish()), Err(RepairError::Missing(NodeId(3))));
    reports.push(stopped(3, 90, &next));
    assert_eq!(plan(&reports, &wish()).unwrap().members().len(), 4);
}

#[test]
fn a_change_that_may_be_decided_is_refused_and_one_that_was_passed_is_not() {
    let next = founding().next(founding().body.clone(), Term(80));
    let accepted = |charter: &Arc<Charter>| Cell::Ballot {
        epoch: Epoch(0),
        promised: ballot(1),
        accepted: Some((ballot(1), charter.clone())),
    };
    let error = refused(|all| all[0].cells.push(accepted(&next)));
    assert_eq!(error, RepairError::Undecided(NodeId(0), Epoch(1)));
    let mut reports = all();
    reports[0].cells.push(accepted(&next));
    reports[2] = stopped(2, 80, &next);
    assert_eq!(plan(&reports, &wish()).unwrap().epoch, Epoch(REPAIR));
    let promised = Cell::Ballot { epoch: Epoch(0), promised: ballot(1), accepted: None };
    let mut reports = all();
    reports[0].cells.push(promised);
    assert!(plan(&reports, &wish()).is_ok(), "a promise alone decides nothing");
    let forced = Charter {
        lineage: founding().lineage.forced(9).unwrap(),
        epoch: Epoch(Epoch::ERA),
        ..(*next).clone()
    };
    let error = refused(|all| all[1].cells.push(accepted(&Arc::new(forced.clone()))));
    assert_eq!(error, RepairError::Undecided(NodeId(1), Epoch(Epoch::ERA)), "a seal");
}

#[test]
fn strangers_splits_old_copies_and_ended_epochs_are_refused() {
    let stranger = Charter::founded(Lineage::founding(99), founding().body.clone());
    assert!(matches!(refused(|all| all[2] = stopped(2, 1, &stranger)), RepairError::Foreign(_)));
    let other = Charter { before: Some(founding().body.clone()), ..(*founding()).clone() };
    assert!(matches!(refused(|all| all[2] = stopped(2, 1, &other.into())), RepairError::Foreign(_)));
    let split = |other: CharterId| Cell::SplitBrain(Some(other));
    assert_eq!(refused(|all| all[0].cells.push(split(stranger.id()))), RepairError::SplitBrain(NodeId(0)));
    let life = |highest, condemned| Cell::Life {
        store: store(2),
        highest: Incarnation(highest),
        start: 1,
        condemned,
    };
    assert_eq!(refused(|all| all[0].cells.push(life(4, false))), RepairError::OldCopy(NodeId(2)));
    assert_eq!(refused(|all| all[0].cells.push(life(3, true))), RepairError::OldCopy(NodeId(2)));
    let mut reports = all();
    reports[0].cells.push(life(3, false));
    assert!(plan(&reports, &wish()).is_ok());
    let wedge = Cell::Wedge { epoch: Epoch(0), accepted: None };
    assert_eq!(refused(|all| all[1].cells.push(wedge)), RepairError::Wedged(NodeId(1)));
}

#[test]
fn a_term_is_below_the_floor_or_absurd_and_one_of_them_is() {
    let ceiling = |term| refused(|all| all[0] = stopped(0, term, &founding()));
    for term in [FLOOR + 1, FLOOR + PLAUSIBLE] {
        assert_eq!(ceiling(term), RepairError::Ambiguous(NodeId(0), Term(term)));
    }
    let granted = refused(|all| all[2].grants = vec![(GroupId(1), Term(FLOOR + 1))]);
    assert_eq!(granted, RepairError::Ambiguous(NodeId(2), Term(FLOOR + 1)));
    let high = Charter { floor: Term(FLOOR + 1), ..(*founding()).clone() };
    let floor =
        refused(|all| *all = (0..3).map(|node| stopped(node, ABSURD, &high.clone().into())).collect());
    assert_eq!(floor, RepairError::Ambiguous(NodeId(0), Term(FLOOR + 1)));
    let fine = refused(|all| all[1] = stopped(1, FLOOR, &founding()));
    assert_eq!(fine, RepairError::NothingAbsurd);
    let mut reports = all();
    reports[1] = stopped(1, FLOOR + PLAUSIBLE + 1, &founding());
    assert!(plan(&reports, &wish()).is_ok());
    let too_high = Wish { floor: Term(1 << 31), ..wish() };
    assert_eq!(plan(&all(), &too_high), Err(RepairError::FloorTooHigh));
    let many = Wish { barred: (0..=Barred::MOST as u64).map(GroupId).collect(), ..wish() };
    assert_eq!(plan(&all(), &many), Err(RepairError::Change(ChangeError::TooManyBarred)));
}

#[test]
fn every_refusal_names_the_member_and_says_something() {
    let node = NodeId(7);
    let of_a_member = [
        RepairError::Twice(node),
        RepairError::NoCharter(node),
        RepairError::Missing(node),
        RepairError::NotAMember(node),
        RepairError::OtherStore(node),
        RepairError::Foreign(node),
        RepairError::OtherMembers(node),
        RepairError::Undecided(node, Epoch(4)),
        RepairError::SplitBrain(node),
        RepairError::OldCopy(node),
        RepairError::Wedged(node),
        RepairError::Ambiguous(node, Term(5)),
    ];
    for error in of_a_member {
        assert!(error.describe(|_| "berta".to_owned()).contains("berta"), "{error}");
    }
    for error in [RepairError::NoReports, RepairError::NothingAbsurd, RepairError::FloorTooHigh] {
        assert!(error.to_string().len() > 10);
    }
}

/// n0 after the plan was applied to its store, and started.
fn repaired() -> Bench {
    let charter = plan(&all(), &wish()).unwrap();
    let cells = applied(&all()[0].cells, &charter);
    // The memory of the life that reported is still there.
    let memory = Memory { boot: HERE, writer: Incarnation(3), records: vec![] };
    Bench::start(Store::Used(Incarnation(4), cells), Some(memory))
}

/// n0 as it was, and started.
fn unrepaired() -> Bench {
    let memory = Memory { boot: HERE, writer: Incarnation(3), records: vec![] };
    Bench::start(Store::Used(Incarnation(3), all()[0].cells.clone()), Some(memory))
}

fn asks(bench: &mut Bench, run: u64, term: u64, epoch: u64, group: u64) -> Vec<(u64, &'static str)> {
    let request = GrantRequest { group: GroupId(group), ..request(1, run, term) };
    let answered = bench.hear(1, in_epoch(request, epoch));
    answers(&answered).into_iter().map(|(to, what, _)| (to, what)).collect()
}

#[test]
fn a_repaired_member_is_silent_for_a_longest_lease_and_then_grants_above_the_floor_alone() {
    let mut bench = repaired();
    let until = bench.node.silent_until();
    let charter = bench.node.charter().clone();
    assert!(until >= charter.spacing(LocalTime::ZERO), "{until:?}");
    assert_eq!(asks(&mut bench, 1, FLOOR + 1, REPAIR, 0), []);
    bench.at(until.as_nanos());
    assert_eq!(asks(&mut bench, 2, FLOOR, REPAIR, 0), [(1, "stale")]);
    assert_eq!(asks(&mut bench, 3, FLOOR + 1, REPAIR, 0), [(1, "ok")]);
}

#[test]
fn a_barred_group_is_refused_until_a_change_lifts_the_bar() {
    let mut bench = repaired();
    let until = bench.node.silent_until().as_nanos();
    assert_eq!(asks(bench.at(until), 1, FLOOR + 1, REPAIR, 7), [(1, "barred")]);
    assert_eq!(bench.node.grant(GroupId(7)), None);
    let here = bench.node.charter().clone();
    let added = here.next(Change::Add(NodeId(3)).applied(&here.body, &Sound).unwrap(), Term(FLOOR));
    told(&mut bench, &added);
    assert_eq!(asks(&mut bench, 2, FLOOR + 1, REPAIR + 1, 7), [(1, "barred")], "it is carried on");
    let lifted = Change::LiftBar(GroupId(7)).applied(&added.body, &Sound).unwrap();
    told(&mut bench, &added.next(lifted, Term(FLOOR)));
    assert_eq!(asks(&mut bench, 3, FLOOR + 1, REPAIR + 2, 7), [(1, "ok")]);
}

/// {n0} is repaired and {n1, n2} are not, or the other way round: no member grants on both sides,
/// and all stop as soon as they hear of each other.
#[test]
fn a_repaired_member_and_one_that_is_not_never_grant_for_each_other_and_both_stop() {
    let (old, new) = (founding(), plan(&all(), &wish()).unwrap());
    let mut bench = repaired();
    bench.at(bench.node.silent_until().as_nanos());
    assert_eq!(asks(&mut bench, 1, FLOOR + 1, 0, 0), [(1, "epoch")], "a run of the old side gets no Ok here");
    let mut other = unrepaired();
    assert_eq!(asks(&mut other, 1, FLOOR + 1, REPAIR, 0), [(1, "epoch")], "nor one of the new side there");
    // The word of each side about itself stops the other, by either way of saying it.
    for goes_by in [true, false] {
        let says = |charter: &Arc<Charter>| match goes_by {
            true => Message::Epoch(EpochTalk::GoesBy(charter.id())),
            false => Message::Epoch(EpochTalk::Decided(charter.clone())),
        };
        for (mut bench, heard, stays) in [(repaired(), &old, &new), (unrepaired(), &new, &old)] {
            bench.at(bench.node.silent_until().as_nanos().max(10_000));
            bench.hear(1, says(heard));
            assert_eq!(bench.node.split_brain(), Some(&heard.id()));
            assert_eq!(bench.node.charter().id(), stays.id(), "nothing is adopted across a repair");
            assert_eq!(asks(&mut bench, 2, ABSURD + 1, stays.epoch.0, 0), []);
        }
    }
}

#[test]
fn a_repair_that_stopped_half_way_is_begun_again_from_reports_of_both_sides() {
    let first = plan(&all(), &wish()).unwrap();
    let mut reports = all();
    reports[0].cells = applied(&reports[0].cells, &first);
    reports[0].cells.push(Cell::SplitBrain(Some(founding().id())));
    reports[1].cells.push(Cell::SplitBrain(Some(first.id())));
    assert_eq!(reports[0].plausible(), Some(Term(FLOOR)), "terms of before the repair are not known");
    assert_eq!(reports[1].plausible(), None);
    let again = Wish { draw: 6, barred: Vec::new(), ..wish() };
    let second = plan(&reports, &again).unwrap();
    assert_eq!(second.epoch, Epoch(2 * REPAIR));
    assert_eq!(second.lineage, first.lineage.repaired(6).unwrap());
    assert_eq!(second.body.barred.groups(), [GroupId(7)], "bars of the first stay");
    for older in [&first, &founding()] {
        assert_eq!(second.id().relation(&older.id()), Relation::Foreign);
    }
    let changed = founding().next(
        Change::Replace { old: NodeId(0), new: NodeId(3) }.applied(&founding().body, &Sound).unwrap(),
        Term(80),
    );
    reports[1] = stopped(1, ABSURD, &changed);
    assert!(matches!(plan(&reports, &again), Err(RepairError::OtherMembers(_))));
}

#[test]
fn what_was_promised_accepted_and_stopped_for_is_gone_and_other_stores_are_known() {
    let charter = plan(&all(), &wish()).unwrap();
    let life = Cell::Life { store: store(2), highest: Incarnation(3), start: 1, condemned: false };
    let cells = [
        Cell::Ceiling(Term(ABSURD)),
        Cell::Ballot { epoch: Epoch(0), promised: ballot(4), accepted: None },
        Cell::SplitBrain(None),
        life.clone(),
    ];
    let now = applied(&cells, &charter);
    assert_eq!(now, [Cell::Ceiling(Term(FLOOR)), Cell::Charter(charter), life]);
}

/// Of six members n1, n2 and n3 were repaired, which are no quorum. Nobody expects them back, so
/// n0, n4 and n5 were forced to go on without them: n4 and n5 are a quorum there. A candidate that
/// goes by the repair has n1, n2 and n3, and one Ok of n0 would make it a second leader. Requests
/// say the number of an epoch and no lineage.
#[test]
fn no_forced_charter_of_the_other_side_has_the_number_of_a_repair() {
    let six = Quorums::majority((0..6).map(NodeId).collect()).unwrap();
    let stores = (0..6).map(|node| (NodeId(node), store(node))).collect();
    let was =
        Charter::founded(Lineage::founding(0), Body { quorums: six, stores, ..founding().body.clone() });
    let mut reports: Vec<Stopped> = (0..6).map(|node| stopped(node, 40, &was)).collect();
    reports[1] = stopped(1, ABSURD, &was);
    let repaired = plan(&reports, &wish()).unwrap();
    let left = Quorums::majority([0, 4, 5].map(NodeId).to_vec()).unwrap();
    let mut lineage = was.lineage.clone();
    let mut epoch = was.epoch;
    while let Ok(forced) = lineage.forced(9) {
        (lineage, epoch) = (forced, epoch.next_era());
        let forced = Charter {
            epoch,
            lineage: lineage.clone(),
            body: Body { quorums: left.clone(), ..was.body.clone() },
            before: Some(was.body.clone()),
            floor: Term(FLOOR - 1),
        };
        let cells = vec![Cell::Ceiling(Term(40)), Cell::Charter(forced.into())];
        let mut bench = Bench::start(Store::Used(Incarnation(3), cells), None);
        bench.at(bench.node.silent_until().as_nanos());
        let request = request(9, 1, FLOOR + 1);
        let answered = bench.hear(9, in_epoch(request, repaired.epoch.0));
        assert_eq!(answers(&answered), [(9, "epoch", None)], "in epoch {epoch}");
    }
}
