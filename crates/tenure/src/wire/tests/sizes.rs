//! How long things are, and the bytes themselves: other versions read them.

use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::strong::epoch::{Ballot, Barred, Body, Charter, Lineage, StoreId};
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Stamp};

use super::*;

/// Bytes that the seal of a datagram takes.
const SEAL: usize = 40;

/// A member's request after weeks of running: twenty days since boot, the twelfth life, terms that
/// began as a date.
fn weeks_later(group: GroupId, incarnation: Incarnation) -> GrantRequest {
    let holder = Holder { node: NodeName::new("n1").expect("a name").id(), incarnation };
    GrantRequest {
        group,
        epoch: Epoch(3),
        id: InstanceId { holder, seq: 40_000 },
        start: LocalTime::from_nanos(20 * 86_400 * 1_000_000_000),
        lease: Span::from_millis(2000),
        kind: Kind::Renew,
        term: Term(80_000_000),
    }
}

fn extend(name: Option<&GroupName>, incarnation: Incarnation) -> Item {
    let request = weeks_later(super::name("app1/scheduler").id(), incarnation);
    let message = Message::Extend { request, alive: NodeSet::from_bits(0b111), priority: 0 };
    Item::Machine { group: name.cloned(), message }
}

fn ok(incarnation: Incarnation) -> Item {
    let GrantRequest { group, epoch, id, start, .. } = weeks_later(GroupId(1), incarnation);
    let at = Stamp { incarnation: Incarnation(12), at: start, count: 0 };
    Item::Machine { group: None, message: Message::Ok { group, epoch, id, at } }
}

#[test]
fn a_renewal_and_its_answer_are_small() {
    let (member, candidate) = (Incarnation(12), Incarnation(u128::MAX));
    let name = super::name("app1/scheduler");
    let sizes = [
        ("renewal of a member", extend(None, member), 45, 25),
        ("answer to it", ok(member), 36, 32),
        ("renewal of a candidate, by number", extend(None, candidate), 60, 19),
        ("renewal of a candidate, by name", extend(Some(&name), candidate), 67, 17),
        ("answer to it", ok(candidate), 51, 22),
    ];
    for (what, item, bytes, fit) in sizes {
        let length = said(&item).len();
        assert_eq!((length, (MAX_DATAGRAM - SEAL) / length), (bytes, fit), "{what}");
    }
}

#[test]
fn two_of_the_longest_proclamations_fit_a_datagram() {
    let proclaim = Proclaim {
        group: GroupId(u64::MAX),
        epoch: Epoch(u64::MAX),
        leader: NodeId(u64::MAX),
        token: Token::new(Term(u64::MAX), u64::MAX),
        body: Some(vec![0; MAX_PROCLAIM]),
    };
    assert!(2 * said(&Item::Proclaim(proclaim)).len() <= MAX_DATAGRAM - SEAL);
}

#[test]
fn the_longest_request_and_the_longest_answer_fit_a_datagram() {
    let leader = Holder { node: NodeId(u64::MAX), incarnation: Incarnation(u128::MAX) };
    let request = OperatorRequest::Proclaim { body: vec![0; MAX_PROCLAIM] };
    let order = Some(Order { leader, term: Term(u64::MAX), request });
    let ask = Ask { id: u128::MAX, group: super::name(&"a".repeat(100)), order };
    assert!(said(&Item::Ask(ask)).len() <= MAX_DATAGRAM - SEAL);
    let reason = "a".repeat(crate::operator_request::MAX_REASON);
    let told = Told { id: u128::MAX, said: Said::Of(Reply::Declined { reason }) };
    assert!(said(&Item::Told(told)).len() <= MAX_DATAGRAM - SEAL);
}

fn promise(members: u64) -> Item {
    let quorums = Quorums::majority((0..members).map(NodeId).collect()).expect("quorums");
    let drift = Bound::Drift(Drift::from_ppm(100_000).expect("a clock"));
    let clocks = Clockwork { bound: drift, tick: LocalSpan::from_nanos(1) };
    let stores = (0..members).map(|member| (NodeId(member), StoreId(u128::MAX))).collect();
    let (longest_lease, barred) = (Span::from_millis(5000), Barred::default());
    let body = Body { quorums, clocks, longest_lease, stores, barred };
    let (before, floor) = (Some(body.clone()), Term(80_000_000));
    let charter = Charter { epoch: Epoch(200), lineage: Lineage::founding(1), body, before, floor }.into();
    let ballot = Ballot { number: 200, node: Some(NodeId(1)), incarnation: Incarnation(200) };
    let talk = EpochTalk::Promise {
        epoch: Epoch(200),
        ballot,
        accepted: Some((ballot, charter)),
        top: Term(80_000_000),
    };
    Item::Machine { group: None, message: Message::Epoch(talk) }
}

#[test]
fn the_longest_word_on_members_fits_a_datagram_where_a_majority_decides() {
    assert_eq!(said(&promise(3)).len(), 241);
    assert_eq!(said(&promise(5)).len(), 343);
    assert!(said(&promise(20)).len() <= MAX_DATAGRAM - SEAL);
    assert!(said(&promise(MAX_MEMBERS as u64)).len() <= 4096, "the longest goes by a stream");
}

#[test]
fn these_are_the_bytes() {
    let hex = |item: &Item| said(item).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let of = |message| Item::Machine { group: None, message };
    let group = GroupId(0xabcd);
    let extend = Message::Extend { request: request(group), alive: NodeSet::from_bits(5), priority: 6 };
    let watch = Item::Watch { group: name("a"), asked: LocalTime::from_nanos(300) };
    let named = Item::Machine { group: Some(name("a")), message: Message::Request(request(name("a").id())) };
    let free = Report { group, epoch: Epoch(1), state: GroupState::Free { after: Term(2) }, when: None };
    let (echo, at, left) = (LocalTime::from_nanos(300), LocalTime::from_nanos(5), LocalSpan::from_nanos(6));
    let timed = Report { when: Some(When { echo, at, left }), ..free };
    let pong = Item::Pong { echo: LocalTime::from_nanos(1), at: LocalTime::from_nanos(128) };
    let leader = Holder { node: NodeId(1), incarnation: Incarnation(2) };
    let request = OperatorRequest::Transfer { to: NodeName::new("b").expect("a name") };
    let order = Some(Order { leader, term: Term(9), request });
    let ask = Item::Ask(Ask { id: 7, group: super::name("a"), order });
    let token = Some(Token::new(Term(9), 1));
    let told = Item::Told(Told { id: 7, said: Said::Of(Reply::Fulfilled { token }) });
    let talk = Talk::TakeOver { term: Term(9) };
    let pass = Item::Pass(Pass { from: NodeId(1), to: NodeId(2), group: super::name("a"), talk });
    let pinned = [
        (
            of(extend),
            "02 1f  00 000000000000abcd  00  0000000000000001 0002 03  09  80a8d6b907  00  07  05  06",
        ),
        (named, "01 17  01 0161  00  0000000000000001 0002 03  09  80a8d6b907  00  07"),
        (of(Message::Release { group, upto: id() }), "06 14  00 000000000000abcd  0000000000000001 0002 03"),
        (of(Message::Talk { group, talk: Talk::Free }), "07 0a  00 000000000000abcd  0b"),
        (of(Message::Epoch(EpochTalk::Unknown { newest: Epoch(300) })), "08 03  02  ac02"),
        (watch, "25 04  0161  ac02"),
        (Item::Report(free), "13 0b  000000000000abcd  01  00 02"),
        (Item::Report(timed), "26 0f  000000000000abcd  01  00 02  ac02 05 06"),
        (pong, "16 03  01  8001"),
        (ask, "19 21  00000000000000000000000000000007  0161  01  0000000000000001 0002  09  02 0162"),
        (told, "1a 14  00000000000000000000000000000007  04 01 09 01"),
        (pass, "1b 14  0000000000000001 0000000000000002  0161  01 09"),
    ];
    for (item, bytes) in pinned {
        assert_eq!(hex(&item), bytes.replace(' ', ""), "{item:?}");
    }
}
