//! Two clusters of one name and key: a member that hears of the other stops until an operator
//! decides.

use super::*;
use crate::strong::Loss;

/// The founding charter of another cluster, which has only n0.
fn stranger() -> Arc<Charter> {
    let body = Bench::founded().node.process.charter().body.clone();
    let quorums = Quorums::majority(vec![NodeId(0)]).unwrap();
    Charter::founded(Lineage::founding(99), Body { quorums, ..body })
}

/// By which n1 goes on alone; by which n0 goes on alone.
fn halves() -> [Arc<Charter>; 2] {
    let here = Bench::founded().node.process.charter().clone();
    [(1, 11), (0, 22)].map(|(kept, draw)| {
        let quorums = Quorums::majority(vec![NodeId(kept)]).unwrap();
        Arc::new(Charter {
            epoch: Epoch(Epoch::ERA),
            lineage: here.lineage.forced(draw).unwrap(),
            body: Body { quorums, ..here.body.clone() },
            before: Some(here.body.clone()),
            floor: Term(5),
            reset: TermReset::default(),
        })
    })
}

fn persisted(effects: &[Effect<Nerio>]) -> Vec<Cell> {
    let cell = |effect: &Effect<Nerio>| match effect {
        Effect::Persist { record, .. } => Some(record.clone()),
        _ => None,
    };
    effects.iter().filter_map(cell).collect()
}

#[test]
fn a_member_that_hears_of_another_founding_grants_nothing_more_and_tells_the_other() {
    let mut bench = Bench::founded();
    let own = bench.node.charter().id();
    let effects = told(&mut bench, &stranger());
    let other = stranger().id();
    assert!(effects.contains(&Effect::Publish(Event::SplitBrain { other: other.clone() })), "{effects:?}");
    assert_eq!(persisted(&effects), [Cell::SplitBrain(Some(other))]);
    assert_eq!(talks(&effects), [&EpochTalk::GoesBy(own)], "the other side must stop too");
    assert_eq!(bench.node.epoch(), Epoch(0));
    bench.hear(1, Message::Request(request(1, 1, 1)));
    assert_eq!(bench.grant(), None);
}

#[test]
fn the_digest_of_a_charter_of_the_same_epoch_is_compared_too() {
    let mut bench = Bench::founded();
    let own = bench.node.charter().clone();
    let stands = |charter: &Charter| Message::Epoch(EpochTalk::GoesBy(charter.id()));
    bench.hear(1, stands(&Charter { floor: Term(77), ..(*own).clone() }));
    assert_eq!(bench.node.split_brain(), None, "founders one by one take the time of day as the floor");
    let body = Body { longest_lease: Span::from_nanos(1), ..own.body.clone() };
    bench.hear(1, stands(&Charter { body, ..(*own).clone() }));
    assert!(bench.node.split_brain().is_some());
}

#[test]
fn two_halves_that_each_gave_the_other_up_both_stop() {
    let [first, second] = halves();
    let mut bench = Bench::founded();
    told(&mut bench, &second);
    assert_eq!(bench.node.epoch(), Epoch(Epoch::ERA), "a descendant is adopted");
    bench.hear(1, Message::Epoch(EpochTalk::GoesBy(first.id())));
    assert_eq!(bench.node.split_brain(), Some(&first.id()));
    bench.hear(0, in_epoch(request(0, 1, 6), Epoch::ERA));
    assert_eq!(bench.grant(), None);
}

#[test]
fn a_leader_stops_at_once_and_no_later_answer_makes_it_lead() {
    let [_, alone] = halves();
    let mut bench = Bench::founded();
    told(&mut bench, &alone);
    let group = crate::GroupId(0);
    let mut effects = bench.handle(Input::Command(Command::Attempt { group, lease: Span::from_nanos(1000) }));
    let mut oks = Vec::new();
    while let Some(effect) = effects.pop() {
        if let Effect::Send { to: NodeId(0), message, .. } = effect {
            oks.extend(matches!(message, Message::Ok { .. }).then(|| message.clone()));
            effects.append(&mut bench.hear(0, message));
        }
    }
    let leads = |bench: &Bench| bench.leads().is_some();
    assert!(leads(&bench) && !oks.is_empty());
    let stranger = halves()[0].clone();
    let effects = told(&mut bench, &stranger);
    let lost = |effect: &Effect<Nerio>| {
        matches!(effect, Effect::Publish(Event::Lost { loss: Loss::SplitBrain, .. }))
    };
    assert!(lost(&effects[0]), "before anything is said or written: {effects:?}");
    oks.into_iter().for_each(|ok| drop(bench.hear(0, ok)));
    bench.handle(Input::Command(Command::Attempt { group, lease: Span::from_nanos(1000) }));
    assert!(!leads(&bench));
}

#[test]
fn a_restart_does_not_forget_it_and_only_an_operator_ends_it_after_a_silence() {
    let mut bench = Bench::founded();
    let cells = persisted(&told(&mut bench, &stranger()));
    let memory = Memory { boot: HERE, writer: Incarnation(3), records: vec![] };
    let mut bench = Bench::start(Store::Used(Incarnation(3), cells), Some(memory));
    bench.hear(1, Message::Request(request(1, 1, 1)));
    assert_eq!(bench.grant(), None);
    let effects = bench.handle(Input::Command(Command::AcceptLineage));
    assert_eq!(persisted(&effects), [Cell::SplitBrain(None)]);
    bench.hear(1, Message::Request(request(1, 2, 2)));
    assert_eq!(bench.grant(), None, "leases of the other side may be in force");
    let later = bench.node.silent_until().as_nanos();
    bench.at(later).hear(1, Message::Request(request(1, 3, 3)));
    assert!(bench.grant().is_some());
    told(&mut bench, &stranger());
    assert!(bench.node.split_brain().is_some(), "the other side runs on");
}

#[test]
fn who_is_no_member_goes_on_without_the_other_charter() {
    let [gone, _] = leaves_and_joins();
    let mut bench = Bench::founded();
    told(&mut bench, &gone);
    let effects = told(&mut bench, &stranger());
    assert_eq!((bench.node.split_brain(), bench.node.epoch()), (None, Epoch(1)));
    assert!(effects.is_empty(), "{effects:?}");
}

#[test]
fn a_force_remove_adds_its_draw_to_the_lineage() {
    let mut bench = Bench::founded();
    let lineage = bench.node.charter().lineage.clone();
    super::force::told_gone(&mut bench, &[1, 2]);
    bench.at(12_201).handle(Input::Deadline);
    assert_eq!(bench.node.charter().lineage, lineage.forced(7).unwrap());
}

#[test]
fn the_digest_of_a_charter_is_the_same_for_every_build() {
    let body = Bench::founded().node.process.charter().body.clone();
    assert_eq!(Charter::founding(body).digest(), DIGEST);
}

/// If this changes, members of two builds take each other for strangers.
const DIGEST: u128 = 153_791_208_614_416_589_042_721_269_616_098_559_658;

#[test]
fn who_stays_keeps_its_store_and_who_is_new_gets_the_one_that_the_change_names() {
    let here = Bench::founded().node.process.charter().body.clone();
    let named = |all: &[(u64, u128)]| -> Stores {
        all.iter().map(|(node, store)| (NodeId(*node), StoreId(*store))).collect()
    };
    let here = Body { stores: named(&[(0, 10), (1, 11), (2, 12)]), ..here };
    let other = named(&[(0, 90), (3, 13), (4, 14)]);
    let add = Change::Named(Box::new(Change::Add(NodeId(3))), other.clone());
    let goal = add.applied(&here, &Sound).unwrap();
    assert_eq!(goal.stores, named(&[(0, 10), (1, 11), (2, 12), (3, 13)]));
    let replace = Change::Replace { old: NodeId(2), new: NodeId(4) };
    let goal = Change::Named(Box::new(replace), other).applied(&here, &Sound).unwrap();
    let step = here.step_towards(&goal, &Sound).unwrap();
    let kept = |body: &Body| body.quorums.members().iter().all(|member| body.stores.get(*member).is_some());
    assert!(step != goal && kept(&step) && kept(&goal), "{step:?}");
    let gone = Change::Remove(NodeId(2)).applied(&here, &Sound).unwrap();
    assert_eq!(gone.stores, named(&[(0, 10), (1, 11)]), "who was removed can come back with another");
}
