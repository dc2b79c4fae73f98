//! What is to be sent: items wait here for a session, for room in a datagram, and for their turn.
//!
//! Items to one peer are put together into datagrams of at most 1200 bytes. Many groups renew in the same instant; if all
//! their datagrams left at once they would overflow the receiver's socket buffer, and all would be late. So each peer gets at
//! most [`BURST`] datagrams a millisecond, and the rest waits for the next.

use std::collections::{BTreeMap, VecDeque};

use tenure_proto::{LocalTime, NodeId};

use crate::seal::OVERHEAD;
use crate::wire::MAX_DATAGRAM;

/// Datagrams to one peer within a slot.
const BURST: u32 = 12;

/// The length of a slot: a millisecond.
pub(crate) const SLOT: u64 = 1_000_000;

/// The most bytes that wait for one peer. More than that and the oldest are worth nothing any more.
const MOST_BYTES: usize = 4 << 20;

/// The most bytes that wait for a peer without a session.
const MOST_UNGREETED: usize = 64 << 10;

/// Room for items in a datagram.
pub(crate) const ROOM: usize = MAX_DATAGRAM - OVERHEAD;

/// An item as bytes.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// Whether silence would mean that it was not understood.
    pub(crate) expects_answer: bool,
}

/// What waits for one peer.
#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Encoded>,
    bytes: usize,
    slot: u64,
    sent: u32,
}

/// All that waits.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queues: BTreeMap<NodeId, Queue>,
    /// Items that found no room.
    pub(crate) overflowed: u64,
}

/// What may leave now: items for one datagram, or one that fits none.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) bytes: Vec<u8>,
    pub(crate) expects_answer: bool,
}

impl Parcel {
    /// Whether it must go by a stream.
    pub(crate) fn is_bulk(&self) -> bool {
        self.bytes.len() > ROOM
    }
}

impl Outbox {
    /// Puts an item behind those that wait for `to`.
    pub(crate) fn push(&mut self, to: NodeId, item: Encoded, has_session: bool) {
        let queue = self.queues.entry(to).or_default();
        queue.bytes += item.bytes.len();
        queue.items.push_back(item);
        let most = if has_session { MOST_BYTES } else { MOST_UNGREETED };
        while queue.bytes > most {
            let Some(oldest) = queue.items.pop_front() else { break };
            queue.bytes -= oldest.bytes.len();
            self.overflowed += 1;
        }
    }

    /// Those for whom something waits.
    pub(crate) fn peers(&mut self, now: LocalTime) -> Vec<NodeId> {
        let slot = now.as_nanos() / SLOT;
        self.queues.retain(|_, queue| !queue.items.is_empty() || queue.slot == slot);
        self.queues.iter().filter(|(_, queue)| !queue.items.is_empty()).map(|(peer, _)| *peer).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.values().all(|queue| queue.items.is_empty())
    }

    /// The next parcel for a peer, if its turn allows one now.
    pub(crate) fn pop(&mut self, to: NodeId, now: LocalTime) -> Option<Parcel> {
        let queue = self.queues.get_mut(&to)?;
        let slot = now.as_nanos() / SLOT;
        if queue.slot != slot {
            (queue.slot, queue.sent) = (slot, 0);
        }
        if queue.sent >= BURST {
            return None;
        }
        let parcel = queue.pack()?;
        queue.sent += 1;
        Some(parcel)
    }

    /// Forgets what waits for a peer that cannot be reached.
    pub(crate) fn forget(&mut self, to: NodeId) {
        self.queues.remove(&to);
    }
}

impl Queue {
    fn pack(&mut self) -> Option<Parcel> {
        let Encoded { mut bytes, mut expects_answer } = self.items.pop_front()?;
        self.bytes -= bytes.len();
        while self.items.front().is_some_and(|next| bytes.len() + next.bytes.len() <= ROOM) {
            let Some(next) = self.items.pop_front() else { break };
            self.bytes -= next.bytes.len();
            bytes.extend_from_slice(&next.bytes);
            expects_answer |= next.expects_answer;
        }
        Some(Parcel { bytes, expects_answer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId(1);

    fn item(byte: u8, length: usize) -> Encoded {
        Encoded { bytes: vec![byte; length], expects_answer: false }
    }

    fn datagrams(outbox: &mut Outbox, now: u64) -> Vec<usize> {
        let mut sizes = Vec::new();
        while let Some(parcel) = outbox.pop(PEER, LocalTime::from_nanos(now)) {
            sizes.push(parcel.bytes.len());
        }
        sizes
    }

    #[test]
    fn items_share_a_datagram_as_far_as_they_fit() {
        let mut outbox = Outbox::default();
        for _ in 0..5 {
            outbox.push(PEER, item(0, ROOM / 2), true);
        }
        assert_eq!(datagrams(&mut outbox, 0), [ROOM / 2 * 2, ROOM / 2 * 2, ROOM / 2]);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_burst_is_spread_over_slots() {
        let mut outbox = Outbox::default();
        for _ in 0..30 {
            outbox.push(PEER, item(0, ROOM), true);
        }
        let slots: Vec<usize> = (0..4).map(|slot| datagrams(&mut outbox, slot * SLOT).len()).collect();
        assert_eq!(slots, [12, 12, 6, 0]);
    }

    #[test]
    fn a_slot_that_is_used_up_stays_so_when_the_queue_was_empty_in_between() {
        let mut outbox = Outbox::default();
        let mut sent = 0;
        for _ in 0..30 {
            outbox.push(PEER, item(0, ROOM), true);
            sent += datagrams(&mut outbox, 0).len();
        }
        assert_eq!(sent, 12);
    }

    #[test]
    fn what_waits_for_the_unreachable_is_bounded_and_the_oldest_goes_first() {
        let mut outbox = Outbox::default();
        for number in 0..200u8 {
            outbox.push(PEER, item(number, 1000), false);
        }
        assert_eq!(outbox.overflowed, 200 - 65);
        assert_eq!(outbox.pop(PEER, LocalTime::ZERO).expect("something waits").bytes[0], 135);
    }

    #[test]
    fn an_item_that_fits_no_datagram_goes_another_way() {
        let mut outbox = Outbox::default();
        outbox.push(PEER, item(0, ROOM + 1), true);
        assert!(outbox.pop(PEER, LocalTime::ZERO).expect("something waits").is_bulk());
    }
}
