//! The end of an epoch, and a lost disk, at one machine.

use std::sync::Arc;

use super::*;
use crate::strong::epoch::{Change, Charter};
use crate::strong::recovery::RecoveryTalk;
use crate::strong::wedge::{Bid, EpochState, Hindrance, WedgeTalk};

fn wedging() -> Settings {
    Settings { succession: Succession::Wedge, ..settings() }
}

fn founded() -> Bench {
    let mut bench = Bench::of(0, wedging(), Store::Founded(vec![]), None);
    bench.effects.clear();
    bench
}

fn bid(node: u64, ballot: u64) -> Bid {
    Bid { epoch: Epoch(0), ballot: Term(ballot), id: request(node, ballot, 1).id }
}

fn wedge(node: u64, ballot: u64) -> Message {
    Message::Wedge(WedgeTalk::Wedge(bid(node, ballot)))
}

/// The charter after the founding one: n0 and n1 alone.
fn next(floor: u64) -> Arc<Charter> {
    let body = wedging().founding();
    let two = Quorums::majority(vec![NodeId(0), NodeId(1)]).unwrap();
    let body = crate::strong::epoch::Body { quorums: two, ..body };
    Charter::founding(wedging().founding()).next(body, Term(floor))
}

fn accept(node: u64, ballot: u64, release: Option<(GroupId, InstanceId)>) -> Message {
    Message::Wedge(WedgeTalk::Accept { bid: bid(node, ballot), charter: next(ballot), release })
}

/// Talk about the end of an epoch, and its receivers.
fn said(effects: &[Effect<Nerio>]) -> Vec<(u64, WedgeTalk)> {
    let talk = |effect: &Effect<Nerio>| match effect {
        Effect::Send { to, message: Message::Wedge(talk), .. } => Some((to.0, talk.clone())),
        _ => None,
    };
    effects.iter().filter_map(talk).collect()
}

/// The first attempt that was made, and what it says.
fn attempt(effects: &[Effect<Nerio>]) -> WedgeTalk {
    said(effects).first().expect("an attempt is made").1.clone()
}

/// Makes n0 lead in term 1.
fn lead(bench: &mut Bench) -> GrantRequest {
    let request = bench.ask();
    bench.ok(1, request);
    bench.ok(2, request);
    assert!(bench.leads().is_some());
    request
}

#[test]
fn a_wedged_member_grants_nothing_more_and_says_so_once_it_is_on_disk() {
    let mut bench = founded();
    let effects = bench.hear(1, wedge(1, 1));
    let record = Cell::Wedge { epoch: Epoch(0), accepted: None };
    assert!(effects.contains(&Effect::Persist { ticket: Ticket(2), record }));
    assert_eq!(answers(&effects), [(1, "wedge", Some(2))]);
    assert_eq!(answers(&bench.hear(2, Message::Request(request(2, 1, 2)))), [(2, "wedged", None)]);
}

#[test]
fn a_wedge_waits_for_the_grant_that_stands_and_that_is_not_renewed() {
    let mut bench = founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    let hindrance = Hindrance::Bound { remaining: LocalSpan::from_nanos(1101) };
    let not_yet = WedgeTalk::NotYet { bid: bid(2, 2), hindrance };
    assert_eq!(said(&bench.hear(2, wedge(2, 2))), [(2, not_yet)]);
    let renewal = GrantRequest { kind: Kind::Renew, ..request(1, 2, 1) };
    assert_eq!(answers(&bench.hear(1, Message::Request(renewal))), [(1, "draining", None)]);
    assert!(!bench.node.is_wedged());
    bench.at(11_101).hear(2, wedge(2, 2));
    assert!(bench.node.is_wedged());
}

#[test]
fn a_ballot_must_exceed_every_term_that_was_granted_or_be_the_very_same() {
    let mut bench = founded();
    bench.hear(1, Message::Request(request(1, 1, 5)));
    bench.hear(1, Message::Release { group: GROUP, upto: request(1, 1, 5).id });
    let outbid = WedgeTalk::NotYet { bid: bid(2, 5), hindrance: Hindrance::Outbid(Term(5)) };
    assert_eq!(said(&bench.hear(2, wedge(2, 5))), [(2, outbid)]);
    let wedged = WedgeTalk::Wedged { bid: bid(2, 6), accepted: None };
    assert_eq!(said(&bench.hear(2, wedge(2, 6))), [(2, wedged.clone())]);
    assert_eq!(said(&bench.hear(2, wedge(2, 6))), [(2, wedged)]);
    let outbid = WedgeTalk::NotYet { bid: bid(1, 6), hindrance: Hindrance::Outbid(Term(6)) };
    assert_eq!(said(&bench.hear(1, wedge(1, 6))), [(1, outbid)]);
}

#[test]
fn wedged_is_for_ever_and_what_was_accepted_too() {
    let accepted = Some((Term(3), next(3)));
    let record = Cell::Wedge { epoch: Epoch(0), accepted: accepted.clone() };
    let store = Store::Used(Incarnation(1), vec![Cell::Ceiling(Term(4)), record]);
    let memory = Memory { boot: HERE, writer: Incarnation(1), records: vec![] };
    let mut bench = Bench::of(0, wedging(), store, Some(memory));
    bench.effects.clear();
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 1, 9)))), [(1, "wedged", None)]);
    let wedged = WedgeTalk::Wedged { bid: bid(1, 9), accepted };
    assert_eq!(said(&bench.hear(1, wedge(1, 9))), [(1, wedged)]);
}

#[test]
fn a_silent_member_has_no_say() {
    let mut bench = Bench::of(0, wedging(), Store::Used(Incarnation(1), vec![]), None);
    bench.effects.clear();
    assert_eq!(said(&bench.hear(1, wedge(1, 9))), []);
    assert_eq!(said(&bench.hear(1, accept(1, 9, None))), []);
}

#[test]
fn a_release_with_an_acceptance_is_believed_only_of_its_sender() {
    let mut bench = founded();
    bench.hear(1, Message::Request(request(1, 1, 1)));
    let upto = request(1, 1, 1).id;
    bench.hear(2, accept(2, 1, Some((GROUP, upto))));
    assert!(bench.grant().is_some(), "n2 gives back nothing of n1");
    let effects = bench.hear(1, accept(1, 1, Some((GROUP, upto))));
    assert_eq!(said(&effects), [(1, WedgeTalk::Accepted(bid(1, 1)))]);
    assert_eq!((bench.grant(), bench.node.is_wedged()), (None, true));
}

#[test]
fn a_leader_gives_up_its_lease_before_it_ends_its_epoch() {
    let mut bench = founded();
    let led = lead(&mut bench);
    let effects = bench.handle(Input::Command(Command::Change(Change::Remove(NodeId(2)))));
    let lost = effects.iter().position(|effect| matches!(effect, Effect::Publish(Event::Lost { .. })));
    let told = effects.iter().position(|effect| matches!(effect, Effect::Send { .. }));
    assert!(lost.expect("it leads no more") < told.expect("it proposes"));
    assert_eq!(bench.leads(), None);
    let WedgeTalk::Accept { bid, charter, release } = attempt(&effects) else { panic!("the fast way") };
    assert_eq!((bid.ballot, charter.floor, release), (led.term, led.term, Some((GROUP, led.id))));
    assert_eq!(charter.members(), [NodeId(0), NodeId(1)]);
}

#[test]
fn a_leader_that_has_pledged_ends_its_epoch_later() {
    let mut bench = founded();
    lead(&mut bench);
    let id = request(1, 9, 1).id;
    let wanted = Span::from_nanos(100);
    bench.hear(1, Message::Talk { group: GROUP, talk: Talk::Verify { id, wanted } });
    let effects = bench.handle(Input::Command(Command::Change(Change::Remove(NodeId(2)))));
    assert_eq!(said(&effects), []);
    assert!(bench.leads().is_some());
    let effects = bench.at(10_200).handle(Input::Deadline);
    assert!(matches!(attempt(&effects), WedgeTalk::Accept { release: Some(_), .. }));
}

#[test]
fn what_others_accepted_is_proposed_again_with_the_floor_of_the_new_ballot() {
    let mut bench = founded();
    let effects = bench.handle(Input::Command(Command::Change(Change::Remove(NodeId(0)))));
    let WedgeTalk::Wedge(bid) = attempt(&effects) else { panic!("the slow way") };
    assert_eq!(bench.node.epoch_state(Epoch(0)), EpochState::Running);
    let wedged = |accepted| Message::Wedge(WedgeTalk::Wedged { bid, accepted });
    bench.hear(1, wedged(None));
    let effects = bench.hear(2, wedged(Some((Term(0), next(0)))));
    let WedgeTalk::Accept { charter, release, .. } = attempt(&effects) else { panic!("a quorum is wedged") };
    assert_eq!((charter.members(), charter.floor, release), (next(0).members(), bid.ballot, None));
    assert_eq!(bench.node.epoch_state(Epoch(0)), EpochState::Terminated);
}

#[test]
fn a_quorum_of_acceptances_begins_the_next_epoch_with_free_grantors() {
    let mut bench = founded();
    let effects = bench.handle(Input::Command(Command::Change(Change::Remove(NodeId(2)))));
    let WedgeTalk::Wedge(bid) = attempt(&effects) else { panic!("the slow way") };
    let answer = |talk| Message::Wedge(talk);
    bench.hear(1, answer(WedgeTalk::Wedged { bid, accepted: None }));
    bench.hear(2, answer(WedgeTalk::Wedged { bid, accepted: None }));
    bench.hear(1, answer(WedgeTalk::Accepted(bid)));
    assert_eq!(bench.node.epoch_state(Epoch(1)), EpochState::Pending);
    let effects = bench.hear(2, answer(WedgeTalk::Accepted(bid)));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Publish(Event::Decided { .. }))));
    assert_eq!(bench.node.epoch_state(Epoch(1)), EpochState::Running);
    assert_eq!(bench.node.epoch_state(Epoch(0)), EpochState::Terminated);
    let asked = |term| GrantRequest { epoch: Epoch(1), ..request(1, term, term) };
    let stale = bench.hear(1, Message::Request(asked(bid.ballot.0)));
    assert_eq!(answers(&stale), [(1, "stale", None)]);
    let fresh = bench.hear(1, Message::Request(asked(bid.ballot.0 + 1)));
    assert!(matches!(answers(&fresh)[..], [(1, "ok", Some(_))]));
}

#[test]
fn a_candidate_that_was_refused_by_a_wedged_member_leaves_the_terms_alone() {
    let mut bench = founded();
    let request = bench.ask();
    for from in [1, 2] {
        let nack =
            Message::Nack { group: GROUP, id: request.id, refusal: Refusal::Wedged, max_term: Term(7) };
        bench.hear(from, nack);
    }
    let asks = |effects: Vec<Effect<Nerio>>| {
        effects.iter().any(|effect| matches!(effect, Effect::Publish(Event::Asked(_))))
    };
    assert!(!asks(bench.at(10_100).handle(Input::Deadline)));
    let effects = bench.at(10_300).handle(Input::Deadline);
    assert!(matches!(attempt(&effects), WedgeTalk::Wedge(_)), "it brings the change to an end instead");
    assert!(!asks(effects));
}

#[test]
fn where_members_change_a_lost_disk_is_not_recovered() {
    let mut bench = Bench::of(0, wedging(), Store::Missing, None);
    assert!(bench.node.is_mute());
    bench.effects.clear();
    assert_eq!(bench.at(90_000).hear(1, Message::Request(request(1, 1, 1))), []);
}

#[test]
fn fixed_members_do_not_change() {
    let fixed = Settings { succession: Succession::Fixed, ..settings() };
    let mut bench = Bench::of(0, fixed, Store::Founded(vec![]), None);
    bench.effects.clear();
    let effects = bench.handle(Input::Command(Command::Change(Change::Remove(NodeId(2)))));
    let halt = crate::strong::epoch::Halt::Fixed;
    assert_eq!(effects, [Effect::Publish(Event::ChangeHalted { halt })]);
}

/// A grantor of five that has lost its disk; its silence ends at 12,201.
fn forgetful() -> Bench {
    let quorums = Quorums::majority((0..5).map(NodeId).collect()).unwrap();
    let fixed = Settings { succession: Succession::Fixed, quorums, ..settings() };
    Bench::of(0, fixed, Store::Missing, None)
}

fn reads(effects: &[Effect<Nerio>]) -> Vec<(u64, InstanceId)> {
    let read = |effect: &Effect<Nerio>| match effect {
        Effect::Send { to, message: Message::Recovery(RecoveryTalk::Read { id }), .. } => Some((to.0, *id)),
        _ => None,
    };
    effects.iter().filter_map(read).collect()
}

#[test]
fn a_grantor_that_lost_its_disk_writes_and_reads_nothing_before_its_silence_is_over() {
    let mut bench = forgetful();
    assert!(!bench.effects.iter().any(|effect| matches!(effect, Effect::Persist { .. })));
    bench.effects.clear();
    assert_eq!(bench.node.next_deadline(), Some(LocalTime::from_nanos(12_201)));
    assert_eq!(reads(&bench.at(12_200).handle(Input::Deadline)), []);
    let asked: Vec<u64> =
        reads(&bench.at(12_201).handle(Input::Deadline)).iter().map(|read| read.0).collect();
    assert_eq!(asked, [1, 2, 3, 4]);
}

#[test]
fn it_grants_again_when_a_quorum_of_others_has_told_their_terms() {
    let mut bench = forgetful();
    bench.effects.clear();
    let id = reads(&bench.at(12_201).handle(Input::Deadline))[0].1;
    let known = |top| Message::Recovery(RecoveryTalk::Known { id, top: Term(top) });
    for (from, top) in [(0, 9), (1, 3), (2, 5), (2, 5)] {
        bench.hear(from, known(top));
    }
    assert!(bench.node.is_recovering(), "it counts neither itself nor anybody twice");
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 1, 6)))), []);
    bench.hear(4, known(2));
    assert!(!bench.node.is_recovering());
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 2, 5)))), [(1, "stale", None)]);
    assert_eq!(answers(&bench.hear(1, Message::Request(request(1, 3, 6)))), [(1, "ok", Some(1))]);
}

#[test]
fn who_recovers_tells_others_nothing_and_who_is_silent_tells_its_ceiling() {
    let read = Message::Recovery(RecoveryTalk::Read { id: request(1, 1, 1).id });
    let mut bench = forgetful();
    bench.effects.clear();
    assert_eq!(bench.hear(1, read.clone()), []);
    let mut rebooted = Bench::start(Store::Used(Incarnation(1), vec![Cell::Ceiling(Term(8))]), None);
    rebooted.effects.clear();
    let known = Message::Recovery(RecoveryTalk::Known { id: request(1, 1, 1).id, top: Term(8) });
    assert_eq!(rebooted.hear(1, read), [Effect::Send { to: NodeId(1), message: known, after: None }]);
}
