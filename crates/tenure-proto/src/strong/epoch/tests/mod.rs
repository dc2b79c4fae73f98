//! One member by itself: what it answers about epochs. Many of them together are the laboratory's
//! business.

mod force;
mod lineage;
mod repair;

use super::*;
use crate::boot::{Memory, Store};
use crate::strong::message::{Cell, Command, Event, GrantRequest, Message};
use crate::strong::tests::{Bench, HERE, answers, request};
use crate::strong::{Kind, Nerio, Sound};
use crate::{Effect, Incarnation, Input};

/// The neighbour of the founding charter that has n3 too.
fn second(floor: u64) -> Arc<Charter> {
    let bench = Bench::founded();
    let body = bench.node.process.charter().body.clone();
    bench.node.process.charter().next(Change::Add(NodeId(3)).applied(&body, &Sound).unwrap(), Term(floor))
}

/// One without n0, and one that it joins again.
fn leaves_and_joins() -> [Arc<Charter>; 2] {
    let bench = Bench::founded();
    let here = bench.node.process.charter();
    let without = Change::Remove(NodeId(0)).applied(&here.body, &Sound).unwrap();
    let gone = here.next(without.clone(), Term(0));
    let back = gone.next(Change::Add(NodeId(0)).applied(&without, &Sound).unwrap(), Term(0));
    [gone, back]
}

fn told(bench: &mut Bench, charter: &Arc<Charter>) -> Vec<Effect<Nerio>> {
    bench.hear(1, Message::Epoch(EpochTalk::Decided(charter.clone())))
}

fn in_epoch(request: GrantRequest, epoch: u64) -> Message {
    Message::Request(GrantRequest { epoch: Epoch(epoch), ..request })
}

fn talks(effects: &[Effect<Nerio>]) -> Vec<&EpochTalk> {
    let talk = |effect: &'_ Effect<Nerio>| matches!(effect, Effect::Send { message: Message::Epoch(_), .. });
    let said = effects.iter().filter(|effect| talk(effect));
    said.filter_map(|effect| match effect {
        Effect::Send { message: Message::Epoch(talk), .. } => Some(talk),
        _ => None,
    })
    .collect()
}

fn ballot(number: u64) -> Ballot {
    Ballot { number, node: Some(NodeId(1)), incarnation: Incarnation(1) }
}

#[test]
fn a_grant_survives_the_adoption_of_an_epoch() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    let before = bench.grant();
    told(&mut bench, &second(0));
    assert_eq!(bench.grant(), before);
    let refused = bench.hear(2, in_epoch(request(2, 1, 2), 1));
    assert_eq!(answers(&refused), vec![(2, "busy", None)], "in the new epoch too it binds");
}

#[test]
fn who_asks_in_an_old_epoch_is_told_of_the_new_one_instead_of_granted() {
    let mut bench = Bench::founded();
    told(&mut bench, &second(0));
    let effects = bench.hear(1, Message::Request(request(1, 1, 1)));
    assert_eq!(talks(&effects), vec![&EpochTalk::Decided(second(0))]);
    assert_eq!(bench.grant(), None);
}

#[test]
fn who_asks_in_an_unknown_epoch_is_asked_about_it() {
    let mut bench = Bench::founded();
    let effects = bench.hear(1, in_epoch(request(1, 1, 1), 4));
    assert_eq!(talks(&effects), vec![&EpochTalk::Unknown { newest: Epoch(0) }]);
    assert_eq!(bench.grant(), None);
}

#[test]
fn an_ok_of_a_new_epoch_waits_until_its_charter_is_durable() {
    let mut bench = Bench::founded();
    let effects = told(&mut bench, &second(0));
    let saved = effects.iter().find_map(|effect| match effect {
        Effect::Persist { ticket, record: Cell::Charter(_) } => Some(ticket.0),
        _ => None,
    });
    let renewal = GrantRequest { kind: Kind::Renew, ..request(1, 1, 1) };
    let granted = bench.hear(1, in_epoch(renewal, 1));
    assert_eq!(answers(&granted), vec![(1, "ok", saved)]);
    assert!(saved.is_some());
}

#[test]
fn terms_up_to_the_floor_are_refused_whatever_was_granted_before() {
    let mut bench = Bench::founded();
    told(&mut bench, &second(40));
    assert_eq!(answers(&bench.hear(1, in_epoch(request(1, 1, 40), 1))), vec![(1, "stale", None)]);
    assert_eq!(answers(&bench.hear(1, in_epoch(request(1, 2, 41), 1)))[0].1, "ok");
}

#[test]
fn a_member_that_has_just_joined_leaves_acquisitions_to_others_and_renews() {
    let mut bench = Bench::founded();
    for charter in leaves_and_joins() {
        told(&mut bench, &charter);
    }
    let refused = bench.hear(1, in_epoch(request(1, 1, 1), 2));
    assert_eq!(answers(&refused), vec![(1, "young", None)]);
    let renewal = GrantRequest { kind: Kind::Renew, ..request(2, 1, 1) };
    assert_eq!(answers(&bench.hear(2, in_epoch(renewal, 2)))[0].1, "ok");
}

#[test]
fn a_promise_reports_the_largest_term_granted_and_the_floor() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Request(request(1, 1, 7)));
    let prepare =
        |epoch, number| Message::Epoch(EpochTalk::Prepare { epoch: Epoch(epoch), ballot: ballot(number) });
    let effects = bench.hear(1, prepare(0, 1));
    assert!(matches!(talks(&effects)[0], EpochTalk::Promise { top: Term(7), accepted: None, .. }));
    told(&mut bench, &second(40));
    let effects = bench.hear(1, prepare(1, 1));
    assert!(matches!(talks(&effects)[0], EpochTalk::Promise { top: Term(40), .. }));
}

#[test]
fn a_lower_ballot_is_denied_after_a_higher_one_was_promised() {
    let mut bench = Bench::founded();
    bench.hear(1, Message::Epoch(EpochTalk::Prepare { epoch: Epoch(0), ballot: ballot(5) }));
    let effects = bench.hear(1, Message::Epoch(EpochTalk::Prepare { epoch: Epoch(0), ballot: ballot(4) }));
    let denied = EpochTalk::Denied { epoch: Epoch(0), ballot: ballot(4), denial: Denial::Outbid(ballot(5)) };
    assert_eq!(talks(&effects), vec![&denied]);
}

#[test]
fn a_charter_whose_quorums_need_not_meet_the_present_ones_is_not_accepted() {
    let mut bench = Bench::founded();
    let quorums = Quorums::majority((0..5).map(NodeId).collect()).unwrap();
    let here = bench.node.process.charter();
    let far = here.next(Body { quorums, ..here.body.clone() }, Term(0));
    let accept = EpochTalk::Accept { epoch: Epoch(0), ballot: ballot(1), charter: far };
    let effects = bench.hear(1, Message::Epoch(accept));
    let denied = EpochTalk::Denied { epoch: Epoch(0), ballot: ballot(1), denial: Denial::NotAdjacent };
    assert_eq!(talks(&effects), vec![&denied]);
}

#[test]
fn the_charter_after_next_is_accepted_only_when_no_lease_of_this_epoch_s_past_can_last() {
    let mut bench = Bench::founded();
    told(&mut bench, &second(0));
    let third = second(0).next(second(0).body.clone(), Term(0));
    let accept = |number| {
        let (epoch, ballot, charter) = (Epoch(1), ballot(number), third.clone());
        Message::Epoch(EpochTalk::Accept { epoch, ballot, charter })
    };
    let wait = 2200 + 1; // (1+ρ)δ_max and a tick
    let effects = bench.at(10_000 + wait - 1).hear(1, accept(1));
    let soon = Denial::TooSoon { remaining: LocalSpan::from_nanos(1) };
    assert_eq!(
        talks(&effects),
        vec![&EpochTalk::Denied { epoch: Epoch(1), ballot: ballot(1), denial: soon }]
    );
    let effects = bench.at(10_000 + wait).hear(1, accept(2));
    assert_eq!(talks(&effects), vec![&EpochTalk::Accepted { epoch: Epoch(1), ballot: ballot(2) }]);
}

#[test]
fn what_was_promised_and_accepted_survives_a_restart() {
    let charter = second(0);
    let cell =
        Cell::Ballot { epoch: Epoch(0), promised: ballot(5), accepted: Some((ballot(5), charter.clone())) };
    let mut bench = Bench::start(Store::Used(Incarnation(3), vec![cell]), None);
    bench.effects.clear();
    let effects = bench.hear(1, Message::Epoch(EpochTalk::Prepare { epoch: Epoch(0), ballot: ballot(6) }));
    assert!(
        matches!(talks(&effects)[0], EpochTalk::Promise { accepted: Some((b, c)), .. } if *b == ballot(5) && *c == charter)
    );
}

#[test]
fn the_wait_between_epochs_begins_anew_after_a_reboot_but_not_after_a_quick_restart() {
    let durable = vec![Cell::Charter(second(0))];
    let memory = remembers(Epoch(1));
    let since = |memory| {
        let bench = Bench::start(Store::Used(Incarnation(3), durable.clone()), memory);
        bench.node.process.membership.adopted_at.as_nanos()
    };
    assert_eq!((since(Some(memory)), since(None)), (5_000, 10_000));
}

/// A memory of having adopted an epoch, a while before the restart.
fn remembers(epoch: Epoch) -> Memory<Cell> {
    let at = LocalTime::from_nanos(5_000);
    let adopted = Cell::Adopted { epoch, at, young_until: LocalTime::ZERO };
    Memory { boot: HERE, writer: Incarnation(3), records: vec![adopted] }
}

#[test]
fn the_wait_between_epochs_begins_anew_where_another_epoch_is_remembered_than_is_on_disk() {
    let durable = vec![Cell::Charter(second(0))];
    let since = |epoch| {
        let bench = Bench::start(Store::Used(Incarnation(3), durable.clone()), Some(remembers(epoch)));
        bench.node.process.membership.adopted_at.as_nanos()
    };
    assert_eq!([Epoch(0), Epoch(1), Epoch(2)].map(since), [10_000, 5_000, 10_000]);
}

#[test]
fn an_adoption_is_remembered_before_its_charter_is_given_to_the_disk() {
    let effects = told(&mut Bench::founded(), &second(0));
    let remembered =
        effects.iter().position(|effect| matches!(effect, Effect::Remember(Cell::Adopted { .. })));
    let given = effects.iter().position(|effect| matches!(effect, Effect::Persist { .. }));
    assert!(remembered.is_some() && remembered < given, "{effects:?}");
}

#[test]
fn a_silence_is_as_long_as_the_longer_of_two_neighbouring_epochs_demands() {
    let body = second(0).body.clone();
    let shorter = second(0).next(Body { longest_lease: Span::from_nanos(100), ..body }, Term(0));
    let bench = Bench::start(Store::Used(Incarnation(3), vec![Cell::Charter(shorter)]), None);
    assert_eq!(bench.node.process.silent_until.as_nanos(), 10_000 + 2200 + 1);
}

#[test]
fn a_leader_renews_at_once_in_a_new_epoch_and_counts_only_its_answers() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    bench.ok(0, asked);
    bench.ok(1, asked);
    assert!(bench.leads().is_some());
    let effects = told(&mut bench, &second(0));
    let renewal = effects.iter().find_map(|effect| match effect {
        Effect::Publish(Event::Asked(request)) => Some(*request),
        _ => None,
    });
    let renewal = renewal.expect("a leader renews in the new epoch");
    assert_eq!((renewal.kind, renewal.epoch), (Kind::Renew, Epoch(1)));
    let until = bench.leads();
    bench.at(10_100);
    let stale = GrantRequest { epoch: Epoch(0), ..renewal };
    for from in 0..3 {
        bench.ok(from, stale);
    }
    assert_eq!(bench.leads(), until, "answers of the old epoch do not add up to anything in the new one");
}

#[test]
fn an_impossible_change_is_refused_with_the_reason() {
    let mut bench = Bench::founded();
    let effects = bench.handle(Input::Command(Command::Change(Change::Add(NodeId(1)))));
    let why = "member n1 is named twice".to_owned();
    assert_eq!(effects, vec![Effect::Publish(Event::ChangeHalted { halt: Halt::Impossible(why) })]);
}

#[test]
fn a_late_promise_is_no_acceptance() {
    let mut bench = Bench::founded();
    bench.handle(Input::Command(Command::Change(Change::Add(NodeId(3)))));
    let ballot = Ballot { number: 1, node: Some(NodeId(0)), incarnation: Incarnation(1) };
    let promise =
        || Message::Epoch(EpochTalk::Promise { epoch: Epoch(0), ballot, accepted: None, top: Term(0) });
    for from in [0, 1] {
        bench.hear(from, promise());
    }
    bench.hear(0, Message::Epoch(EpochTalk::Accepted { epoch: Epoch(0), ballot }));
    let effects = bench.hear(2, promise());
    assert_eq!(bench.node.process.membership.epoch(), Epoch(0), "{effects:?}");
}

/// n0 wants n3 as a member too: the ballot that it began.
fn proposes(bench: &mut Bench) -> Ballot {
    let effects = bench.handle(Input::Command(Command::Change(Change::Add(NodeId(3)))));
    prepared(&effects).expect("it asks for promises")
}

fn prepared(effects: &[Effect<Nerio>]) -> Option<Ballot> {
    talks(effects).iter().find_map(|talk| match talk {
        EpochTalk::Prepare { ballot, .. } => Some(*ballot),
        _ => None,
    })
}

fn outbid(ballot: Ballot, by: u64) -> Message {
    let denial = Denial::Outbid(Ballot { number: by, ..ballot });
    Message::Epoch(EpochTalk::Denied { epoch: Epoch(0), ballot, denial })
}

#[test]
fn the_denial_of_a_process_that_was_not_asked_ends_no_ballot() {
    let mut bench = Bench::founded();
    let ballot = proposes(&mut bench);
    bench.hear(7, outbid(ballot, 9));
    assert!(bench.node.change_stage().is_some(), "n7 is no member");
    bench.hear(1, outbid(ballot, 9));
    assert_eq!(bench.node.change_stage(), None, "n1 is one");
}

#[test]
fn the_pause_of_a_proposer_that_is_outbid_again_and_again_doubles_up_to_a_longest_lease() {
    let mut bench = Bench::founded();
    let window = bench.node.process.config.settings().window.nominal();
    let longest = bench.node.process.charter().body.longest_lease.nominal();
    let pauses: Vec<LocalSpan> = (0..40).map(|_| bench.node.process.pause_when_outbid()).collect();
    assert_eq!(pauses[..3], [window, window.times(2).min(longest), window.times(4).min(longest)]);
    assert_eq!(pauses[39], longest);
    proposes(&mut bench);
    assert_eq!(bench.node.process.pause_when_outbid(), window, "a new command begins anew");
}
