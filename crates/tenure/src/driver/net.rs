//! The way out and in: addresses, sessions, outbox and sockets, put together.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use tenure_proto::strong::Message;
use tenure_proto::time::LocalSpan;
use tenure_proto::{LocalTime, NodeId};
use tokio::sync::mpsc;

use super::Notice;
use super::addresses::Addresses;
use super::eventual;
use super::outbox::{Encoded, Lane, Outbox, Parcel};
use crate::name::NodeName;
use crate::seal::{Expect, KeyRefusal, Peer, Received, Refusal, Sessions};
use crate::socket::Sockets;
use crate::wire::{self, Item};

/// How long an address that was looked up is good for at least.
const LOOK_UP_PAUSE: u64 = 5_000_000_000;

/// How many times longer than it takes to ask again a peer may be silent before it is greeted anew.
/// A peer that was restarted greets by itself; one that is only busy must not lose what is on its
/// way to it.
const PAUSES: u32 = 3;

/// A peer that was asked something and has been silent for longer than this, in nanoseconds, is not
/// reached.
const UNREACHED: u64 = 1_300_000_000;

/// How long items wait for a session before they are worth nothing.
const PATIENCE: u64 = 2_000_000_000;

/// How many peers of other versions are told of.
const MOST_STRANGERS: usize = 1000;

/// Plain counts of what went over the network, rising for as long as the node runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Datagrams that were sent.
    pub datagrams_sent: u64,
    /// Datagrams that came in, whatever was in them.
    pub datagrams_received: u64,
    /// Bytes of them.
    pub bytes_sent: u64,
    /// Bytes of them.
    pub bytes_received: u64,
    /// Packets that went by a stream, for they fit no datagram.
    pub bulk_sent: u64,
    /// Datagrams that the kernel had no room for.
    pub datagrams_unsent: u64,
    /// Items that waited for a peer in vain.
    pub items_dropped: u64,
    /// Items that were not understood: of a newer version, or broken.
    pub items_unreadable: u64,
}

/// How often it is told that two processes speak under one name: a minute.
const RIVALS_EVERY: u64 = 60_000_000_000;

/// Everything between the machine and the network.
pub(crate) struct Net {
    me: NodeId,
    pub(crate) addresses: Addresses,
    pub(crate) sessions: Sessions,
    outbox: Outbox,
    pub(crate) sockets: Sockets,
    notices: mpsc::UnboundedSender<Notice>,
    pub(crate) traffic: Traffic,
    /// Peers that speak no version of ours, as was told.
    strangers: BTreeSet<NodeId>,
    /// When two processes of one name may be told of again.
    rivals_at: Option<LocalTime>,
    retry: LocalSpan,
    /// When to look for peers that have fallen silent.
    check_at: LocalTime,
    /// All that had come by then was heard.
    heard_all: LocalTime,
    /// Since when something waits for a peer without a session.
    waits: BTreeMap<NodeId, LocalTime>,
}

/// A packet, opened.
pub(crate) enum Opened<'p> {
    /// Nothing for us to do.
    Nothing,
    /// There is a session with this peer, and nothing was said on it yet.
    Session(Arc<Peer>),
    /// Authentic bytes of a peer.
    Items(Arc<Peer>, &'p [u8]),
    /// A member refuses the key of this process.
    KeyRefused(NodeId, KeyRefusal),
}

impl Net {
    pub(crate) fn new(
        me: NodeId,
        addresses: Addresses,
        sessions: Sessions,
        sockets: Sockets,
        notices: mpsc::UnboundedSender<Notice>,
        (retry, measures): (LocalSpan, bool),
    ) -> Self {
        Self {
            me,
            addresses,
            sessions,
            outbox: Outbox::new(retry, measures),
            sockets,
            notices,
            traffic: Traffic::default(),
            strangers: BTreeSet::new(),
            rivals_at: None,
            retry,
            check_at: LocalTime::ZERO,
            heard_all: LocalTime::ZERO,
            waits: BTreeMap::new(),
        }
    }

    /// The way back to the driver, for work on other threads.
    pub(crate) fn notices(&self) -> &mpsc::UnboundedSender<Notice> {
        &self.notices
    }

    /// Opens a packet that came by a stream.
    pub(crate) fn open_bulk<'p>(&mut self, packet: &'p mut [u8], now: LocalTime) -> Opened<'p> {
        match self.sessions.receive_by_stream(packet, now) {
            Received::Data { peer, plaintext } => Opened::Items(peer, plaintext),
            _ => Opened::Nothing,
        }
    }

    /// Opens a datagram. Forged, broken and old packets end here.
    pub(crate) fn open<'p>(&mut self, packet: &'p mut [u8], from: SocketAddr, now: LocalTime) -> Opened<'p> {
        self.traffic.datagrams_received += 1;
        self.traffic.bytes_received += packet.len() as u64;
        match self.sessions.receive(packet, from, now) {
            Received::Dropped(refusal) => {
                self.report(&refusal, now);
                Opened::Nothing
            }
            Received::Reply(reply) => {
                self.transmit(&reply, from);
                Opened::Nothing
            }
            Received::Ready { peer, reply } => {
                if let Some(reply) = reply {
                    self.transmit(&reply, from);
                }
                self.waits.remove(&peer.id);
                self.addresses.met(peer.id, &peer.name);
                Opened::Session(peer)
            }
            Received::Data { peer, plaintext } => {
                self.addresses.met(peer.id, &peer.name);
                Opened::Items(peer, plaintext)
            }
            Received::KeyRefused { by, why } => Opened::KeyRefused(by, why),
        }
    }

    /// Reports a refusal that an operator must know of, once for each peer or each minute: all else
    /// is only counted.
    fn report(&mut self, refusal: &Refusal, now: LocalTime) {
        match refusal {
            Refusal::Versions { peer, theirs, ours }
                if self.strangers.len() < MOST_STRANGERS && self.strangers.insert(peer.id()) =>
            {
                tracing::warn!(name: "tenure.version", peer = %peer, theirs = %theirs, ours = %ours, "no version in common: upgrade one of the two");
            }
            Refusal::NameInUse { name } if self.rivals_at.is_none_or(|at| at <= now) => {
                self.rivals_at = Some(now.after(LocalSpan::from_nanos(RIVALS_EVERY)));
                tracing::warn!(name: "tenure.name_in_use", peer = %name, "two processes speak under this name: the one that began last is served, the other refused; give each a name of its own");
            }
            _ => {}
        }
    }

    /// Queues an item. It leaves with the next [`flush`](Self::flush).
    pub(crate) fn send(&mut self, to: NodeId, item: &Item) {
        debug_assert_ne!(to, self.me, "what one says to oneself does not go out");
        if let Ok(bytes) = wire::encode(item) {
            let item = Encoded { bytes, expects_answer: expects_answer(item), lane: lane(item) };
            self.outbox.push(to, item, self.sessions.has_session(to));
        }
    }

    /// Nothing that has come by now waits in a socket. Only up to here can it be said that a peer
    /// was silent: a process that was held up, by much work or by the system, must not take that
    /// for the silence of others. It would begin new sessions with all of them, and what is on its
    /// way in the old ones would be lost.
    pub(crate) fn has_heard_all(&mut self, now: LocalTime) {
        self.heard_all = now;
    }

    /// A peer has answered a request.
    pub(crate) fn answered(&mut self, by: NodeId) {
        self.outbox.answered(by);
    }

    /// Whether a process is reached: there is a session with it, and it answers, as far as it was
    /// asked anything.
    pub(crate) fn answers(&self, peer: NodeId) -> bool {
        let since = LocalTime::from_nanos(self.heard_all.as_nanos().saturating_sub(UNREACHED));
        self.sessions.has_session(peer) && !self.sessions.is_awaited_since(peer, since)
    }

    /// Greets a process, wherever it may be, unless that was done just now.
    pub(crate) fn greet(&mut self, peer: NodeId, now: LocalTime) {
        let Some(name) = self.addresses.name(peer).cloned() else { return };
        self.look_up(peer, now);
        let addresses = self.addresses.of(peer).to_vec();
        if addresses.is_empty() {
            return;
        }
        let Some(hello) = self.sessions.greet(&name, now) else { return };
        for address in addresses {
            self.transmit(&hello, address);
        }
    }

    /// Sends what may be sent now.
    pub(crate) fn flush(&mut self, now: LocalTime) {
        self.outbox.tidy(now);
        for peer in self.outbox.peers() {
            if !self.sessions.has_session(peer) {
                self.await_session(peer, now);
                continue;
            }
            self.waits.remove(&peer);
            while let Some(parcel) = self.outbox.pop(peer, now) {
                self.dispatch(peer, &parcel, now);
            }
        }
        if self.check_at <= now {
            self.check_at = now.after(self.retry.fraction(1, 4));
            let since = self.heard_all.as_nanos().saturating_sub(self.retry.times(PAUSES).as_nanos());
            let silent: Vec<NodeId> = self.sessions.unanswered(LocalTime::from_nanos(since)).collect();
            silent.into_iter().for_each(|peer| self.greet(peer, now));
        }
    }

    fn await_session(&mut self, peer: NodeId, now: LocalTime) {
        let since = *self.waits.entry(peer).or_insert(now);
        if now.remaining(since).as_nanos() > PATIENCE {
            self.outbox.forget(peer);
            self.waits.remove(&peer);
            return;
        }
        self.greet(peer, now);
    }

    fn dispatch(&mut self, peer: NodeId, parcel: &Parcel, now: LocalTime) {
        let expect = if parcel.expects_answer { Expect::Answer } else { Expect::Nothing };
        match self.sessions.seal(peer, &parcel.bytes, expect, now) {
            Some((packet, to)) if parcel.is_bulk() => {
                self.traffic.bulk_sent += 1;
                self.sockets.send_bulk(packet, to);
            }
            Some((packet, to)) => self.transmit(&packet, to),
            None => {}
        }
    }

    fn transmit(&mut self, packet: &[u8], to: SocketAddr) {
        if self.sockets.send(packet, to) {
            self.traffic.datagrams_sent += 1;
            self.traffic.bytes_sent += packet.len() as u64;
        } else {
            self.traffic.datagrams_unsent += 1;
        }
    }

    /// Looks a name up again, in the background, if that was not done lately.
    fn look_up(&mut self, peer: NodeId, now: LocalTime) {
        let Some(address) = self.addresses.look_up(peer, now, LOOK_UP_PAUSE) else { return };
        let notices = self.notices.clone();
        tokio::spawn(async move {
            let found = tokio::net::lookup_host(address).await.map(Iterator::collect).unwrap_or_default();
            let _ = notices.send(Notice::Resolved(peer, found));
        });
    }

    /// When something that waits may leave, or when a greeting is to be repeated. Somebody who
    /// cannot be reached holds up nobody else.
    pub(crate) fn next_wake(&self, now: LocalTime) -> Option<LocalTime> {
        let next = |peer| match self.waits.contains_key(&peer) {
            true => Some(now.after(self.retry)),
            false => self.outbox.next_wake(peer, now),
        };
        self.outbox.peers().into_iter().filter_map(next).min()
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic { items_dropped: self.outbox.overflowed, ..self.traffic }
    }

    /// The name of a node, if anybody has told it.
    pub(crate) fn name(&self, node: NodeId) -> Option<NodeName> {
        self.addresses.name(node).cloned()
    }
}

/// Whether the receiver of this item answers at once. Silence then means that it has lost the
/// session.
fn expects_answer(item: &Item) -> bool {
    match item {
        Item::Machine { message, .. } => {
            matches!(message, Message::Request(_) | Message::Extend { .. })
        }
        Item::Watch { .. } | Item::AskCharter | Item::AskOrigin { .. } | Item::Ping { .. } => true,
        Item::Ask(ask) => ask.order.is_none(),
        Item::Eventual(said) => eventual::expects_answer(&said.message),
        _ => false,
    }
}

/// The lane in which an item waits.
fn lane(item: &Item) -> Lane {
    match item {
        Item::Machine { message: Message::Extend { request, .. }, .. } => Lane::Renewal(request.group),
        Item::Machine { message: Message::Request(request), .. } => Lane::Acquisition(request.group),
        _ => Lane::Swift,
    }
}
