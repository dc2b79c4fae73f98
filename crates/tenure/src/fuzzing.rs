//! Entry points for fuzzers. No part of the library's interface: it may change or go at any time.

use tenure_proto::NodeId;
use tenure_proto::detect::weak::Beat;
use tenure_proto::eventual;
use tenure_proto::quorum::{NodeSet, Rule};
use tenure_proto::strong::Message;
use tenure_proto::strong::epoch::{Body, Charter, EpochTalk, Lineage, StoreId};

use crate::operator_request::{OperatorRequest, Reply};
use crate::seal::{Revocation, Serial};
use crate::wire::{self, Contact, Item, LocalTalk, Pass, Said, Told};

/// How many bytes of memory a byte of input may take.
const MOST_HEAP: usize = 128;

/// Reads bytes as a datagram and says how many items were understood.
///
/// # Panics
///
/// If reading takes more memory than the bytes account for, or if what was understood cannot be
/// said again, or is then understood as something else.
pub fn datagram(bytes: &[u8]) -> usize {
    let items: Vec<Item> = wire::decode(bytes).filter_map(Result::ok).collect();
    let heap: usize = items.iter().map(heap).sum();
    assert!(heap <= MOST_HEAP * bytes.len(), "{} bytes take {heap} bytes of memory", bytes.len());
    for item in &items {
        let said = wire::encode(item).expect("what was understood can be said");
        let mut again = wire::decode(&said);
        assert_eq!(again.next().as_ref(), Some(&Ok(item.clone())), "said again as {said:02x?}");
        assert_eq!(again.next(), None, "{item:?} is one item");
    }
    items.len()
}

/// The memory that an item holds beside itself.
fn heap(item: &Item) -> usize {
    match item {
        Item::Machine { group, message } => {
            group.as_ref().map_or(0, |name| name.as_str().len()) + heap_of_message(message)
        }
        Item::Contacts(contacts) => {
            let texts = contacts.iter().map(|contact| {
                contact.name.as_str().len() + contact.address.as_ref().map_or(0, String::capacity)
            });
            contacts.capacity() * size_of::<Contact>() + texts.sum::<usize>()
        }
        Item::Watch { group, .. } | Item::Pass(Pass { group, .. }) | Item::Local(LocalTalk { group, .. }) => {
            group.as_str().len()
        }
        Item::Ask(ask) => {
            ask.group.as_str().len() + ask.order.as_ref().map_or(0, |order| heap_of_request(&order.request))
        }
        Item::Told(Told { said: Said::Of(Reply::Declined { reason }), .. }) => reason.capacity(),
        Item::Proclaim(proclaim) => proclaim.body.as_ref().map_or(0, Vec::capacity),
        Item::Charter(charter) => heap_of_charter(charter),
        Item::Eventual(said) => said.group.as_str().len() + heap_of_hinting(&said.message),
        Item::Revoked { keys, .. } => {
            keys.capacity() * size_of::<Revocation>() + keys.iter().map(Revocation::heap).sum::<usize>()
        }
        Item::Measures(measures) => size_of_val(measures.as_ref()),
        Item::RevokedKept(keys) => keys.capacity() * size_of::<Serial>(),
        Item::Origin(origin) => {
            origin.goes_by.as_ref().map_or(0, |charter| heap_of_lineage(&charter.lineage))
        }
        Item::Told(_)
        | Item::AskOrigin { .. }
        | Item::Condemned { .. }
        | Item::AskCharter
        | Item::Unwatch { .. }
        | Item::Limited { .. }
        | Item::Report(_)
        | Item::Ping { .. }
        | Item::Pong { .. } => 0,
    }
}

fn heap_of_hinting(message: &eventual::Message) -> usize {
    match message {
        eventual::Message::Status { registry, .. } => registry.capacity() * size_of::<eventual::State>(),
        _ => 0,
    }
}

fn heap_of_request(request: &OperatorRequest) -> usize {
    match request {
        OperatorRequest::Resign => 0,
        OperatorRequest::Transfer { to } => to.as_str().len(),
        OperatorRequest::Proclaim { body } => body.capacity(),
    }
}

fn heap_of_message(message: &Message) -> usize {
    match message {
        Message::Here { beats, .. } => beats.capacity() * size_of::<Option<Beat>>(),
        Message::Epoch(EpochTalk::Decided(charter) | EpochTalk::Accept { charter, .. }) => {
            heap_of_charter(charter)
        }
        Message::Epoch(EpochTalk::GoesBy(charter)) => heap_of_lineage(&charter.lineage),
        Message::Epoch(EpochTalk::Promise { accepted: Some((_, charter)), .. }) => heap_of_charter(charter),
        _ => 0,
    }
}

fn heap_of_charter(charter: &Charter) -> usize {
    let bodies = std::iter::once(&charter.body).chain(&charter.before);
    let bodies = bodies.map(heap_of_body).sum::<usize>();
    size_of::<Charter>() + heap_of_lineage(&charter.lineage) + bodies
}

fn heap_of_lineage(lineage: &Lineage) -> usize {
    size_of_val::<[u128]>(lineage.draws())
}

fn heap_of_body(body: &Body) -> usize {
    let rule = match body.quorums.rule() {
        Rule::Majority | Rule::Grid { .. } => 0,
        Rule::Weighted(weights) => weights.capacity() * size_of::<u64>(),
        Rule::List(sets) => sets.capacity() * size_of::<NodeSet>(),
    };
    let stores = body.stores.len() * size_of::<(NodeId, StoreId)>();
    size_of_val::<[NodeId]>(body.quorums.members()) + rule + stores
}
