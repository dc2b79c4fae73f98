//! Every written message is read back; bytes that nobody wrote are refused, and cost nothing.

mod any;
mod corpus;
mod formats;
mod sizes;

use std::mem::discriminant;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngSeed, TestRunner};
use tenure_proto::strong::epoch::EpochTalk;
use tenure_proto::strong::wedge::{Bid, WedgeTalk};
use tenure_proto::strong::{
    GrantRequest, Holder, How, InstanceId, Kind, Message, Miss, RecoveryTalk, Refusal, Talk,
};
use tenure_proto::time::{Incarnation, Span};

use super::*;
use crate::fuzzing;
use crate::name::NodeName;
use crate::operator_request::{OperatorRequest, Reply};

/// Every run tries the same items; another seed tries others.
const SEED: u64 = 4;

fn runner() -> TestRunner {
    let (rng_seed, failure_persistence) = (RngSeed::Fixed(SEED), None);
    TestRunner::new(Config { cases: 4096, rng_seed, failure_persistence, ..Config::default() })
}

/// Some items of every kind.
fn samples(count: usize) -> Vec<Item> {
    let mut runner = runner();
    let strategy = any::item();
    (0..count).map(|_| strategy.new_tree(&mut runner).expect("an item").current()).collect()
}

fn said(item: &Item) -> Vec<u8> {
    encode(item).expect("can be said")
}

fn heard(bytes: &[u8]) -> Vec<Result<Item, DecodeError>> {
    decode(bytes).collect()
}

/// A tag and a box with these fields.
fn item_of(tag: u64, fields: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut to = Writer::new();
    to.number(tag);
    to.boxed(fields);
    to.into_bytes()
}

fn id() -> InstanceId {
    InstanceId { holder: Holder { node: NodeId(1), incarnation: Incarnation(2) }, seq: 3 }
}

fn request(group: GroupId) -> GrantRequest {
    GrantRequest {
        group,
        epoch: Epoch(0),
        id: id(),
        start: LocalTime::from_nanos(9),
        lease: Span::from_millis(2000),
        kind: Kind::Acquire,
        term: Term(7),
    }
}

fn name(text: &str) -> GroupName {
    GroupName::new(text).expect("a name")
}

#[test]
fn every_item_is_read_as_it_was_written() {
    let result = runner().run(&any::item(), |item| {
        proptest::prop_assert_eq!(heard(&said(&item)), vec![Ok(item)]);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("seed {SEED}: {error}"));
}

#[test]
fn the_items_tried_are_of_every_kind_that_is_spoken() {
    fn kinds<T>(all: impl Iterator<Item = T>) -> usize {
        let mut seen = Vec::new();
        all.for_each(|one| {
            if !seen.contains(&discriminant(&one)) {
                seen.push(discriminant(&one));
            }
        });
        seen.len()
    }
    let items = samples(16_384);
    assert_eq!(kinds(items.iter().cloned()), 22, "items");
    let messages = || {
        items.iter().filter_map(|item| match item {
            Item::Machine { message, .. } => Some(message.clone()),
            _ => None,
        })
    };
    assert_eq!(kinds(messages()), 9, "messages, without wedge and recovery");
    let talks = || {
        messages().filter_map(|message| match message {
            Message::Talk { talk, .. } => Some(talk),
            _ => None,
        })
    };
    assert_eq!(kinds(talks()), 11, "talks");
    let how = |talk| if let Talk::Seek { how, .. } = talk { Some(how) } else { None };
    assert_eq!(kinds::<How>(talks().filter_map(how)), 4, "ways to seek");
    let miss = |talk| if let Talk::Nowhere { why, .. } = talk { Some(why) } else { None };
    assert_eq!(kinds::<Miss>(talks().filter_map(miss)), 7, "reasons not to know");
    let refusal = |message| if let Message::Nack { refusal, .. } = message { Some(refusal) } else { None };
    assert_eq!(kinds::<Refusal>(messages().filter_map(refusal)), 12, "refusals");
    let epoch = |message| if let Message::Epoch(talk) = message { Some(talk) } else { None };
    assert_eq!(kinds::<EpochTalk>(messages().filter_map(epoch)), 8, "talk of epochs");
}

#[test]
fn a_datagram_cut_short_gives_the_whole_items_and_at_most_one_error() {
    for row in samples(300).chunks(3) {
        let mut bytes = Vec::new();
        let mut ends = vec![0];
        for item in row {
            bytes.extend(said(item));
            ends.push(bytes.len());
        }
        assert_eq!(heard(&bytes), row.iter().cloned().map(Ok).collect::<Vec<_>>());
        for cut in 0..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            let mut found = heard(&bytes[..cut]);
            if !ends.contains(&cut) {
                assert_eq!(found.pop(), Some(Err(DecodeError::Truncated)), "seed {SEED}, cut at {cut}");
            }
            assert_eq!(found, row[..whole].iter().cloned().map(Ok).collect::<Vec<_>>());
        }
    }
}

#[test]
fn an_item_whose_fields_are_cut_short_is_an_error_and_no_other_item() {
    for item in samples(300) {
        let bytes = said(&item);
        let mut from = Reader::new(&bytes);
        let tag = from.number().expect("a tag");
        let fields = from.bytes(usize::MAX).expect("a box");
        for cut in 0..fields.len() {
            let found = heard(&item_of(tag, |to| to.raw(&fields[..cut])));
            assert!(matches!(found[..], [Err(_)]), "seed {SEED}: {item:?} cut at {cut} is {found:?}");
        }
    }
}

#[test]
fn a_flipped_bit_never_panics() {
    let datagrams =
        samples(300).iter().map(said).filter(|bytes| bytes.len() <= MAX_DATAGRAM).collect::<Vec<_>>();
    assert!(datagrams.len() > 250);
    for bytes in datagrams {
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fuzzing::datagram(&flipped);
        }
    }
}

#[test]
fn an_unknown_tag_is_skipped() {
    let ping = Item::Ping { at: LocalTime::from_nanos(1) };
    for unknown in [0, 15, 100, 127, 128, u64::MAX] {
        let mut bytes = item_of(unknown, |to| to.text("of a later version"));
        bytes.extend(said(&ping));
        assert_eq!(heard(&bytes), [Ok(ping.clone())], "tag {unknown}");
    }
}

#[test]
fn fields_that_a_later_version_appended_are_ignored_in_every_item() {
    for item in samples(1000) {
        let bytes = said(&item);
        let mut from = Reader::new(&bytes);
        let tag = from.number().expect("a tag");
        let fields = from.bytes(usize::MAX).expect("a box");
        let longer = item_of(tag, |to| {
            to.raw(fields);
            to.raw(b"\xffnew in version 2");
        });
        assert_eq!(heard(&longer), [Ok(item)]);
    }
}

#[test]
fn a_bad_item_does_not_spoil_those_around_it() {
    let ping = Item::Ping { at: LocalTime::from_nanos(1) };
    let pong = Item::Pong { echo: LocalTime::from_nanos(1), at: LocalTime::from_nanos(2) };
    let mut bytes = said(&ping);
    bytes.extend(item_of(tag::WATCH, |to| to.text("no such name")));
    bytes.extend(item_of(tag::REPORT, |to| to.raw(&[0; 8])));
    bytes.extend(item_of(tag::TALK, |to| to.raw(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 99])));
    bytes.extend(said(&pong));
    let errors = [DecodeError::Invalid, DecodeError::Truncated, DecodeError::Kind(99)].map(Err);
    let [first, second, third] = errors;
    assert_eq!(heard(&bytes), [Ok(ping), first, second, third, Ok(pong)]);
}

#[test]
fn after_a_length_that_is_no_length_nothing_is_read() {
    let mut bytes = vec![0x15];
    bytes.extend([0xff; 11]);
    bytes.extend(said(&Item::Ping { at: LocalTime::ZERO }));
    assert_eq!(heard(&bytes), [Err(DecodeError::TooLarge)]);
}

#[test]
fn hostile_lengths_are_refused_before_anything_is_believed() {
    let number = |value: u64| move |to: &mut Writer| to.number(value);
    let mut endless = Writer::new();
    endless.number(tag::PROCLAIM);
    endless.number(u64::MAX);
    assert_eq!(heard(&endless.into_bytes()), [Err(DecodeError::Truncated)]);

    for count in [MAX_CONTACTS as u64 + 1, u64::MAX] {
        assert_eq!(heard(&item_of(tag::CONTACTS, number(count))), [Err(DecodeError::TooLong)]);
    }
    assert_eq!(heard(&item_of(tag::CONTACTS, number(64))), [Err(DecodeError::Truncated)]);
    for count in [MAX_MEMBERS as u64 + 1, u64::MAX] {
        let beats = item_of(tag::HERE, |to| {
            to.number(0);
            to.number(count);
            to.raw(&[0; 100]);
        });
        assert_eq!(heard(&beats), [Err(DecodeError::TooLong)]);
    }
    for length in [101, u64::MAX] {
        let watch = item_of(tag::WATCH, |to| {
            to.number(length);
            to.raw(&[b'a'; 101]);
        });
        assert_eq!(heard(&watch), [Err(DecodeError::TooLong)]);
    }
    let members = item_of(tag::EPOCH, |to| {
        to.byte(1);
        to.boxed(|to| {
            to.number(0);
            to.raw(&[1; 17]);
            to.boxed(|to| to.number(u64::MAX));
        });
    });
    assert_eq!(heard(&members), [Err(DecodeError::TooLong)]);
    let draws = |count: u64| {
        item_of(tag::ORIGIN, |to| {
            to.byte(1);
            to.number(count);
            to.raw(&[0; 100]);
        })
    };
    assert_eq!(heard(&draws(65)), [Err(DecodeError::TooLong)]);
    assert_eq!(heard(&draws(64)), [Err(DecodeError::Truncated)]);
    assert_eq!(heard(&draws(0)), [Err(DecodeError::Invalid)]);
}

#[test]
fn an_address_that_is_too_long_or_no_text_for_people_is_refused() {
    let contact = |address: &str| {
        item_of(tag::CONTACTS, |to| {
            to.number(1);
            to.boxed(|to| {
                to.text("n1");
                to.byte(1);
                to.text(address);
            });
        })
    };
    let of = |address: &str| {
        let (name, address) = (NodeName::new("n1").expect("a name"), Some(address.to_owned()));
        Item::Contacts(vec![Contact { name, address }])
    };
    for good in ["[::1]:7000", "db-1.example.org:7000", &"a".repeat(255)] {
        assert_eq!(heard(&contact(good)), [Ok(of(good))]);
    }
    for bad in ["", "a b:1", "a:1\n", "\u{1b}[2J:1", "é:1"] {
        assert_eq!(heard(&contact(bad)), [Err(DecodeError::Invalid)], "{bad:?}");
        assert_eq!(encode(&of(bad)), Err(EncodeError::Address), "{bad:?}");
    }
    assert_eq!(heard(&contact(&"a".repeat(256))), [Err(DecodeError::TooLong)]);
    assert_eq!(encode(&of(&"a".repeat(256))), Err(EncodeError::TooLong));
}

#[test]
fn a_charter_whose_quorums_need_not_meet_is_refused() {
    let charter = |sets: [u64; 2]| {
        item_of(tag::EPOCH, |to| {
            to.byte(1);
            to.boxed(|to| {
                to.number(0);
                to.raw(&[1; 17]); // A lineage of one draw.
                to.boxed(|to| {
                    write_list(to, &[NodeId(1), NodeId(2)]);
                    to.byte(3);
                    write_list(to, &sets);
                    to.raw(&[0, 0, 1, 1]);
                    to.raw(&[0, 0]); // No stores.
                });
                to.raw(&[0, 0]);
            });
        })
    };
    assert!(matches!(heard(&charter([0b01, 0b11]))[..], [Ok(_)]));
    assert_eq!(heard(&charter([0b01, 0b10])), [Err(DecodeError::Invalid)]);
}

#[test]
fn a_name_stands_for_its_group_and_for_no_other() {
    let group = Some(name("app1/jobs"));
    let own =
        Item::Machine { group: group.clone(), message: Message::Request(request(name("app1/jobs").id())) };
    assert_eq!(heard(&said(&own)), [Ok(own)]);
    let other = Item::Machine { group: group.clone(), message: Message::Request(request(GroupId(1))) };
    assert_eq!(encode(&other), Err(EncodeError::OtherGroup));
    let of_all = Item::Machine { group, message: Message::Epoch(EpochTalk::Unknown { newest: Epoch(1) }) };
    assert_eq!(encode(&of_all), Err(EncodeError::OtherGroup), "that is about no group");
}

#[test]
fn a_request_for_another_group_is_not_passed_on_within_a_talk() {
    let group = name("app1/jobs").id();
    for talk in
        [Talk::Ready(request(GroupId(1))), Talk::Relay { release: id(), request: request(GroupId(1)) }]
    {
        let item = Item::Machine { group: None, message: Message::Talk { group, talk } };
        assert_eq!(encode(&item), Err(EncodeError::OtherGroup));
    }
}

#[test]
fn a_reason_that_a_terminal_would_act_on_is_refused() {
    let told = |reason: &str| {
        Item::Told(Told { id: 1, said: Said::Of(Reply::Declined { reason: reason.to_owned() }) })
    };
    let bytes = |reason: &str| {
        item_of(tag::TOLD, |to| {
            to.wide(1);
            to.byte(5);
            to.text(reason);
        })
    };
    for good in ["", "not now", "später", &"a".repeat(200)] {
        assert_eq!(heard(&bytes(good)), [Ok(told(good))]);
        assert_eq!(said(&told(good)), bytes(good));
    }
    assert_eq!(heard(&bytes("a\u{1b}[2J")), [Err(DecodeError::Invalid)]);
    assert_eq!(heard(&bytes(&"a".repeat(201))), [Err(DecodeError::TooLong)]);
    assert!(encode(&told("a\nb")).is_err() && encode(&told(&"a".repeat(201))).is_err());
}

#[test]
fn only_words_for_a_hand_over_go_by_a_detour() {
    let pass = |talk| Pass { from: NodeId(1), to: NodeId(2), group: name("app1/jobs"), talk };
    assert!(encode(&Item::Pass(pass(Talk::TakeOver { term: Term(1) }))).is_ok());
    for other in [Talk::Free, Talk::Relay { release: id(), request: request(name("app1/jobs").id()) }] {
        assert!(matches!(encode(&Item::Pass(pass(other))), Err(EncodeError::Unspoken(_))));
    }
    let free = item_of(tag::PASS, |to| {
        to.raw(&[0; 16]);
        to.text("jobs");
        to.byte(11);
    });
    assert_eq!(heard(&free), [Err(DecodeError::Invalid)]);
    let of_another = pass(Talk::Ready(request(GroupId(1))));
    assert_eq!(encode(&Item::Pass(of_another)), Err(EncodeError::OtherGroup));
}

#[test]
fn what_nodes_never_say_is_not_written() {
    let bid = Bid { epoch: Epoch(0), ballot: Term(1), id: id() };
    let messages =
        [Message::Wedge(WedgeTalk::Wedge(bid)), Message::Recovery(RecoveryTalk::Read { id: id() })];
    for message in messages {
        let item = Item::Machine { group: None, message };
        assert!(matches!(encode(&item), Err(EncodeError::Unspoken(_))), "{item:?}");
    }
}

#[test]
fn what_receivers_would_find_too_long_is_not_written() {
    let contact = Contact { name: NodeName::new("n1").expect("a name"), address: None };
    assert_eq!(encode(&Item::Contacts(vec![contact; MAX_CONTACTS + 1])), Err(EncodeError::TooLong));
    let beats = vec![None; MAX_MEMBERS + 1];
    let here = Item::Machine { group: None, message: Message::Here { epoch: Epoch(0), beats } };
    assert_eq!(encode(&here), Err(EncodeError::TooLong));
    let proclaim = Proclaim {
        group: GroupId(1),
        epoch: Epoch(0),
        leader: NodeId(1),
        token: Token::new(Term(1), 1),
        body: Some(vec![0; MAX_PROCLAIM + 1]),
    };
    assert_eq!(encode(&Item::Proclaim(proclaim)), Err(EncodeError::TooLong));
}
