//! A lost quorum: one member of three is left, and an operator says so.

use super::*;

const ERA: Epoch = Epoch(Epoch::ERA);

/// The charter by which n0 and those of `kept` go on, in an era.
fn forced(era: u64, kept: &[u64], floor: u64) -> Arc<Charter> {
    let founding = Bench::founded().node.process.charter().body.clone();
    let quorums = Quorums::majority(kept.iter().copied().map(NodeId).collect()).unwrap();
    let body = Body { quorums, ..founding };
    Arc::new(Charter {
        epoch: Epoch(era * Epoch::ERA),
        lineage: Lineage::founding(0).forced(u128::from(era)).unwrap(),
        body,
        before: Some(Bench::founded().node.process.charter().body.clone()),
        floor: Term(floor),
    })
}

fn accept(number: u64, charter: &Arc<Charter>) -> Message {
    let charter = charter.clone();
    Message::Epoch(EpochTalk::Accept { epoch: Epoch(0), ballot: ballot(number), charter })
}

fn denial(effects: &[Effect<Nerio>]) -> Option<Denial> {
    talks(effects).iter().find_map(|talk| match talk {
        EpochTalk::Denied { denial, .. } => Some(*denial),
        _ => None,
    })
}

/// Tells n0 that others are gone, and lets it talk to itself until it waits.
pub(super) fn told_gone(bench: &mut Bench, gone: &[u64]) -> Vec<Effect<Nerio>> {
    let gone = gone.iter().copied().map(NodeId).collect();
    let change = Change::ForceRemove { gone, least: Term(100), margin: 10, draw: 7 };
    let mut effects = bench.handle(Input::Command(Command::Change(change)));
    let mut all = Vec::new();
    while !effects.is_empty() {
        let own = effects.iter().filter_map(|effect| match effect {
            Effect::Send { to: NodeId(0), message, .. } => Some(message.clone()),
            _ => None,
        });
        let own: Vec<Message> = own.collect();
        all.append(&mut effects);
        for message in own {
            effects.append(&mut bench.hear(0, message));
        }
    }
    all
}

#[test]
fn what_an_operator_s_word_brings_about_takes_effect_when_no_lease_can_be_left() {
    let mut bench = Bench::founded();
    told_gone(&mut bench, &[1, 2]);
    assert_eq!(bench.node.epoch(), Epoch(0));
    assert_eq!(bench.node.change_stage(), Some(Stage::Leases(LocalTime::from_nanos(12_201))));
    bench.at(12_200).handle(Input::Deadline);
    assert_eq!(bench.node.epoch(), Epoch(0), "(1+ρ)δ_max and a tick are not over");
    let effects = bench.at(12_201).handle(Input::Deadline);
    let charter = bench.node.charter();
    assert_eq!((charter.epoch, charter.floor), (ERA, Term(110)));
    assert_eq!(charter.members(), [NodeId(0)]);
    assert!(effects.contains(&Effect::Publish(Event::Changed { epoch: ERA })), "{effects:?}");
}

#[test]
fn where_those_who_are_left_are_a_quorum_no_word_is_needed() {
    let mut bench = Bench::founded();
    let effects = told_gone(&mut bench, &[2]);
    let halted = |effect: &Effect<Nerio>| matches!(effect, Effect::Publish(Event::ChangeHalted { halt: Halt::Impossible(why) }) if why.contains("are a quorum"));
    assert!(effects.iter().any(halted), "{effects:?}");
}

#[test]
fn a_sealed_member_grants_in_no_epoch_before_and_forgets_that_in_no_restart() {
    let mut bench = Bench::founded();
    let effects = bench.hear(1, accept(1, &forced(1, &[0, 1], 0)));
    let cells: Vec<Cell> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Persist { record, .. } => Some(record.clone()),
            _ => None,
        })
        .collect();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    assert_eq!(bench.grant(), None);
    told(&mut bench, &second(0));
    assert_eq!(bench.node.epoch(), Epoch(1), "what is decided is learnt all the same");
    bench.hear(1, in_epoch(request(1, 2, 2), 1));
    assert_eq!(bench.grant(), None);

    let cells = [cells, vec![Cell::Charter(second(0))]].concat();
    let memory = Memory { boot: HERE, writer: Incarnation(3), records: vec![] };
    let mut bench = Bench::start(Store::Used(Incarnation(3), cells), Some(memory));
    bench.hear(1, in_epoch(request(1, 3, 3), 1));
    assert_eq!(bench.grant(), None, "the ballot of the epoch before was found, and binds");
    told(&mut bench, &forced(1, &[0, 1], 0));
    bench.hear(1, in_epoch(request(1, 4, 4), Epoch::ERA));
    assert!(bench.grant().is_some(), "in the era that it was sealed for it grants");
}

#[test]
fn a_sealed_member_denies_another_remainder_and_any_lower_epoch_but_not_a_smaller_remainder() {
    let mut bench = Bench::founded();
    bench.hear(1, accept(1, &forced(1, &[0, 1], 0)));
    let denied = Some(Denial::Sealed(ERA));
    assert_eq!(denial(&bench.hear(2, accept(2, &forced(2, &[0, 2], 0)))), denied);
    assert_eq!(denial(&bench.hear(1, accept(3, &second(0)))), denied);
    assert_eq!(denial(&bench.hear(1, accept(4, &forced(2, &[0], 0)))), None);
    assert_eq!(
        denial(&bench.hear(1, accept(5, &forced(1, &[0, 1], 0)))),
        Some(Denial::Sealed(Epoch(2 * Epoch::ERA)))
    );
}

#[test]
fn a_member_that_granted_a_higher_term_than_the_floor_says_so() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 7)));
    assert_eq!(denial(&bench.hear(1, accept(1, &forced(1, &[0, 1], 6)))), Some(Denial::Granted(Term(7))));
    assert_eq!(denial(&bench.hear(1, accept(2, &forced(1, &[0, 1], 7)))), None);
}

#[test]
fn who_was_left_behind_by_its_proposer_brings_the_era_about_itself() {
    let mut bench = Bench::founded();
    bench.hear(0, accept(1, &forced(1, &[0], 0)));
    let mut epoch = bench.node.epoch();
    for now in (10_050..60_000).step_by(50) {
        let mut effects = bench.at(now).handle(Input::Deadline);
        while let Some(effect) = effects.pop() {
            if let Effect::Send { to: NodeId(0), message, .. } = effect {
                effects.append(&mut bench.hear(0, message));
            }
        }
        epoch = bench.node.epoch();
        if epoch > Epoch(0) {
            assert!(now >= 12_201 + 50 * 8, "it waits too: {now}");
            break;
        }
    }
    assert_eq!(epoch, ERA);
}
