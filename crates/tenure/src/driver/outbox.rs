//! The send queue: items wait here for a session, for room in a datagram, and for their turn
//! (batching).
//!
//! Items to one peer are put together into datagrams of at most 1200 bytes. Four rules keep ten
//! thousand groups from drowning their members, and each other:
//!
//! * **A burst is spread.** If all datagrams of a moment left at once they would overflow the
//!   receiver's socket buffer. So each peer gets at most [`BURST`] datagrams a millisecond, and the
//!   rest waits for the next.
//! * **Nobody is asked more than it answers.** Of requests at most [`MOST_UNANSWERED`] are on their
//!   way to a peer. The others wait here until answers come in, or until the time has passed after
//!   which one asks again. Without this a peer that is slow for a moment is asked everything twice,
//!   becomes slower by that, and answers nobody in the end.
//! * **A group waits once.** A request that is repeated while it still waits here, or is outdated
//!   by a newer run, takes the place of the one that waits.
//! * **Answers go first, then renewals, then acquisitions.** Others wait for the first, and a
//!   leader must not lose its tenure because many groups are being elected.
//!
//! Most groups renew one by one, each when half of its own lease is over. A renewal is in no hurry:
//! the leader leads on for the other half, and E counts from when the run began, so that it loses
//! nothing if its request leaves a little later. So what only extends a lease waits for company:
//! until a datagram is full, until something that is in a hurry goes the same way, or for a tenth
//! of the time after which it would be asked again. Ten thousand groups then cost datagrams by the
//! bytes that they need, not one each. Everything else leaves at once.
//!
//! All of this only delays and reorders, as any network may.

use std::collections::{BTreeMap, VecDeque};

use tenure_proto::time::LocalSpan;
use tenure_proto::{GroupId, LocalTime, NodeId};

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

/// Longest time an item waits to be batched with others, in nanoseconds.
const LONGEST_WAIT: u64 = 5_000_000;

/// A datagram is as good as full if this much or less is left of it: few items are shorter.
const REMNANT: usize = 48;

/// Room for items in a datagram.
pub(crate) const ROOM: usize = MAX_DATAGRAM - OVERHEAD;

/// The most requests to one peer that are neither answered nor given up: some twenty datagrams,
/// which any socket buffer holds.
const MOST_UNANSWERED: usize = 500;

/// An item as bytes.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// Whether silence would mean that it was not understood.
    pub(crate) expects_answer: bool,
    pub(crate) lane: Lane,
}

/// The lane in which an item waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// In a hurry, and never held back.
    Swift,
    /// A leader extends its lease, long before it is over.
    Renewal(GroupId),
    /// A candidate asks.
    Acquisition(GroupId),
}

/// Requests that wait: one for each group, in the order in which the groups came.
#[derive(Debug, Default)]
struct Asks {
    order: VecDeque<GroupId>,
    items: BTreeMap<GroupId, Encoded>,
}

impl Asks {
    /// Puts a request in its place, and returns the one that had it.
    fn put(&mut self, group: GroupId, item: Encoded) -> Option<Encoded> {
        let former = self.items.insert(group, item);
        if former.is_none() {
            self.order.push_back(group);
        }
        former
    }

    fn front(&self) -> Option<&Encoded> {
        self.order.front().and_then(|group| self.items.get(group))
    }

    fn take(&mut self) -> Option<Encoded> {
        self.order.pop_front().and_then(|group| self.items.remove(&group))
    }
}

/// Requests that have left and are not answered: when, and how many at a time. Each counts until so
/// many answers have come, or until the time has passed after which one asks again, and then no
/// more: what is lost must not block the way forever.
#[derive(Debug, Default)]
struct Flight {
    batches: VecDeque<(LocalTime, usize)>,
    count: usize,
}

impl Flight {
    fn depart(&mut self, now: LocalTime, count: usize) {
        if count > 0 {
            self.batches.push_back((now, count));
            self.count += count;
        }
    }

    /// One was answered; which one does not matter.
    fn land(&mut self) {
        if let Some((_, count)) = self.batches.front_mut() {
            *count -= 1;
            self.count -= 1;
            if *count == 0 {
                self.batches.pop_front();
            }
        }
    }

    /// Gives up those that left before `retry` ago.
    fn give_up(&mut self, now: LocalTime, retry: LocalSpan) {
        while let Some((_, count)) = self.batches.front().filter(|(at, _)| at.after(retry) <= now) {
            self.count -= count;
            self.batches.pop_front();
        }
    }

    fn room(&self) -> usize {
        MOST_UNANSWERED.saturating_sub(self.count)
    }

    /// When the first of them is given up.
    fn next(&self, retry: LocalSpan) -> Option<LocalTime> {
        self.batches.front().map(|(at, _)| at.after(retry))
    }
}

/// The queue of one peer.
#[derive(Debug, Default)]
struct Queue {
    swift: VecDeque<Encoded>,
    renewals: Asks,
    acquisitions: Asks,
    bytes: usize,
    /// Since when renewals wait for company.
    since: Option<LocalTime>,
    flight: Flight,
    slot: u64,
    sent: u32,
}

/// All that waits.
#[derive(Debug)]
pub(crate) struct Outbox {
    queues: BTreeMap<NodeId, Queue>,
    /// How long renewals wait for company.
    wait: LocalSpan,
    /// When an unanswered request is given up.
    retry: LocalSpan,
    /// Items that found no room.
    pub(crate) overflowed: u64,
}

/// Items that may leave now: those of one datagram, or one that fits none.
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
    /// `retry` is when an unanswered question is put again. Where leases follow the round trips
    /// that are `measured`, nothing waits for company.
    pub(crate) fn new(retry: LocalSpan, measured: bool) -> Self {
        let wait = retry.fraction(1, 10).min(LocalSpan::from_nanos(LONGEST_WAIT));
        let wait = if measured { LocalSpan::ZERO } else { wait };
        Self { queues: BTreeMap::new(), wait, retry, overflowed: 0 }
    }

    /// Puts an item behind those that wait for `to`.
    pub(crate) fn push(&mut self, to: NodeId, item: Encoded, has_session: bool) {
        let queue = self.queues.entry(to).or_default();
        queue.put(item);
        let most = if has_session { MOST_BYTES } else { MOST_UNGREETED };
        while queue.bytes > most {
            let oldest = queue.take_asks(usize::MAX).or_else(|| queue.take_swift(usize::MAX));
            if oldest.is_none() {
                break;
            }
            self.overflowed += 1;
        }
    }

    /// A peer has answered a request.
    pub(crate) fn answered(&mut self, by: NodeId) {
        if let Some(queue) = self.queues.get_mut(&by) {
            queue.flight.land();
        }
    }

    /// Those for whom something waits.
    pub(crate) fn peers(&self) -> Vec<NodeId> {
        self.queues.iter().filter(|(_, queue)| queue.bytes > 0).map(|(peer, _)| *peer).collect()
    }

    /// Forgets peers for whom nothing waits, and to whom nothing was sent lately: there may have
    /// been many.
    pub(crate) fn tidy(&mut self, now: LocalTime) {
        let (slot, retry) = (now.as_nanos() / SLOT, self.retry);
        self.queues.retain(|_, queue| {
            queue.flight.give_up(now, retry);
            queue.bytes > 0 || queue.slot == slot || queue.flight.count > 0
        });
    }

    /// When something may leave for a peer that has not left by `now`: in the next slot, when it
    /// has waited for long enough, or when what is not answered counts as lost.
    pub(crate) fn next_wake(&self, to: NodeId, now: LocalTime) -> Option<LocalTime> {
        let queue = self.queues.get(&to).filter(|queue| queue.bytes > 0)?;
        let held = queue.held_until(self.retry).or_else(|| queue.patient_until(self.wait));
        Some(held.unwrap_or(now.after(LocalSpan::from_nanos(SLOT))))
    }

    /// The next parcel for a peer, if its turn allows one now.
    pub(crate) fn pop(&mut self, to: NodeId, now: LocalTime) -> Option<Parcel> {
        let queue = self.queues.get_mut(&to).filter(|queue| queue.bytes > 0)?;
        queue.flight.give_up(now, self.retry);
        queue.since.get_or_insert(now);
        if queue.patient_until(self.wait).is_some_and(|until| now < until) {
            return None;
        }
        let slot = now.as_nanos() / SLOT;
        if queue.slot != slot {
            (queue.slot, queue.sent) = (slot, 0);
        }
        if queue.sent >= BURST {
            return None;
        }
        let parcel = queue.pack(now)?;
        queue.sent += 1;
        Some(parcel)
    }

    /// Forgets what waits for a peer that cannot be reached.
    pub(crate) fn forget(&mut self, to: NodeId) {
        self.queues.remove(&to);
    }
}

impl Queue {
    fn put(&mut self, item: Encoded) {
        self.bytes += item.bytes.len();
        let former = match item.lane {
            Lane::Swift => {
                self.swift.push_back(item);
                None
            }
            Lane::Renewal(group) => self.renewals.put(group, item),
            Lane::Acquisition(group) => self.acquisitions.put(group, item),
        };
        self.bytes -= former.map_or(0, |former| former.bytes.len());
    }

    /// How long requests are held back if no answer comes, where nothing else waits; `None` if they
    /// are not.
    fn held_until(&self, retry: LocalSpan) -> Option<LocalTime> {
        self.flight.next(retry).filter(|_| self.flight.room() == 0 && self.swift.is_empty())
    }

    /// How long all that is here waits for company; `None` if it does not.
    fn patient_until(&self, wait: LocalSpan) -> Option<LocalTime> {
        let in_a_hurry = !self.swift.is_empty() || !self.acquisitions.items.is_empty();
        let since = self.since.filter(|_| !in_a_hurry && self.bytes + REMNANT < ROOM)?;
        Some(since.after(wait))
    }

    /// The next item that is in a hurry, if it fits into `room`.
    fn take_swift(&mut self, room: usize) -> Option<Encoded> {
        self.swift.front().filter(|item| item.bytes.len() <= room)?;
        let item = self.swift.pop_front()?;
        self.bytes -= item.bytes.len();
        Some(item)
    }

    /// The next request, if it fits into `room`.
    fn take_asks(&mut self, room: usize) -> Option<Encoded> {
        let lane = if self.renewals.front().is_some() { &mut self.renewals } else { &mut self.acquisitions };
        lane.front().filter(|item| item.bytes.len() <= room)?;
        let item = lane.take()?;
        self.bytes -= item.bytes.len();
        Some(item)
    }

    /// Fills a datagram. An item that fits none goes alone.
    fn pack(&mut self, now: LocalTime) -> Option<Parcel> {
        self.since = None;
        let mut parcel = Parcel { bytes: Vec::new(), expects_answer: false };
        let (mut asked, most) = (0, self.flight.room());
        loop {
            let room =
                if parcel.bytes.is_empty() { usize::MAX } else { ROOM.saturating_sub(parcel.bytes.len()) };
            let item = self.take_swift(room).or_else(|| {
                let item = if asked < most { self.take_asks(room) } else { None };
                asked += usize::from(item.is_some());
                item
            });
            let Some(item) = item else { break };
            if parcel.bytes.is_empty() {
                parcel.bytes.reserve(ROOM);
            }
            parcel.bytes.extend_from_slice(&item.bytes);
            parcel.expects_answer |= item.expects_answer;
        }
        self.flight.depart(now, asked);
        (!parcel.bytes.is_empty()).then_some(parcel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId(1);

    fn item(byte: u8, length: usize) -> Encoded {
        Encoded { bytes: vec![byte; length], expects_answer: false, lane: Lane::Swift }
    }

    fn renewal(group: u64, length: usize) -> Encoded {
        Encoded { lane: Lane::Renewal(GroupId(group)), ..item(1, length) }
    }

    fn acquisition(group: u64, length: usize) -> Encoded {
        Encoded { lane: Lane::Acquisition(GroupId(group)), ..item(2, length) }
    }

    /// Asks again after twenty milliseconds, and waits for company for two.
    fn sociable() -> Outbox {
        Outbox::new(LocalSpan::from_nanos(20 * SLOT), false)
    }

    fn plain() -> Outbox {
        Outbox::new(LocalSpan::from_nanos(20 * SLOT), true)
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
        let mut outbox = plain();
        for _ in 0..5 {
            outbox.push(PEER, item(0, ROOM / 2), true);
        }
        assert_eq!(datagrams(&mut outbox, 0), [ROOM / 2 * 2, ROOM / 2 * 2, ROOM / 2]);
        assert_eq!(outbox.peers(), []);
    }

    #[test]
    fn a_burst_is_spread_over_slots() {
        let mut outbox = plain();
        for _ in 0..30 {
            outbox.push(PEER, item(0, ROOM), true);
        }
        let slots: Vec<usize> = (0..4).map(|slot| datagrams(&mut outbox, slot * SLOT).len()).collect();
        assert_eq!(slots, [12, 12, 6, 0]);
    }

    #[test]
    fn a_slot_that_is_used_up_stays_so_when_the_queue_was_empty_in_between() {
        let mut outbox = plain();
        let mut sent = 0;
        for _ in 0..30 {
            outbox.push(PEER, item(0, ROOM), true);
            sent += datagrams(&mut outbox, 0).len();
        }
        assert_eq!(sent, 12);
    }

    #[test]
    fn what_waits_for_the_unreachable_is_bounded_and_the_oldest_goes_first() {
        let mut outbox = plain();
        for number in 0..200u8 {
            outbox.push(PEER, item(number, 1000), false);
        }
        assert_eq!(outbox.overflowed, 200 - 65);
        assert_eq!(outbox.pop(PEER, LocalTime::ZERO).expect("something waits").bytes[0], 135);
    }

    #[test]
    fn an_item_that_fits_no_datagram_goes_another_way() {
        let mut outbox = plain();
        outbox.push(PEER, item(0, ROOM + 1), true);
        assert!(outbox.pop(PEER, LocalTime::ZERO).expect("something waits").is_bulk());
    }

    #[test]
    fn a_renewal_waits_for_company_and_not_for_long() {
        let mut outbox = sociable();
        outbox.push(PEER, renewal(1, 45), true);
        assert!(datagrams(&mut outbox, 0).is_empty());
        assert_eq!(outbox.next_wake(PEER, LocalTime::ZERO), Some(LocalTime::from_nanos(2 * SLOT)));
        outbox.push(PEER, renewal(2, 45), true);
        assert!(datagrams(&mut outbox, 2 * SLOT - 1).is_empty());
        assert_eq!(datagrams(&mut outbox, 2 * SLOT), [90]);
        assert_eq!(outbox.next_wake(PEER, LocalTime::ZERO), None);
    }

    #[test]
    fn what_is_in_a_hurry_takes_along_what_is_not() {
        let mut outbox = sociable();
        outbox.push(PEER, renewal(1, 45), true);
        outbox.push(PEER, item(0, 10), true);
        assert_eq!(datagrams(&mut outbox, 0), [55]);
        outbox.push(PEER, renewal(1, 45), true);
        outbox.push(PEER, acquisition(2, 60), true);
        assert_eq!(datagrams(&mut outbox, 0), [105]);
    }

    #[test]
    fn a_full_datagram_waits_for_nothing() {
        let mut outbox = sociable();
        let count = ROOM / 45;
        (0..count as u64).for_each(|group| outbox.push(PEER, renewal(group, 45), true));
        assert_eq!(datagrams(&mut outbox, 0), [count * 45]);
        (0..=count as u64).for_each(|group| outbox.push(PEER, renewal(group, 45), true));
        assert_eq!(datagrams(&mut outbox, SLOT), [count * 45], "the rest waits for others");
        assert_eq!(datagrams(&mut outbox, 3 * SLOT), [45]);
    }

    #[test]
    fn where_round_trips_are_measured_nothing_waits_for_company() {
        let mut outbox = plain();
        outbox.push(PEER, renewal(1, 45), true);
        assert_eq!(datagrams(&mut outbox, 0), [45]);
    }

    #[test]
    fn answers_go_first_then_renewals_then_acquisitions() {
        let mut outbox = plain();
        outbox.push(PEER, acquisition(1, ROOM), true);
        outbox.push(PEER, renewal(2, ROOM), true);
        outbox.push(PEER, item(0, ROOM), true);
        let order: Vec<u8> =
            (0..3).map(|_| outbox.pop(PEER, LocalTime::ZERO).expect("something waits").bytes[0]).collect();
        assert_eq!(order, [0, 1, 2]);
    }

    #[test]
    fn a_request_that_is_repeated_waits_once() {
        let mut outbox = plain();
        for length in 100..200 {
            outbox.push(PEER, acquisition(7, length), true);
        }
        assert_eq!(datagrams(&mut outbox, 0), [199], "the newest");
        assert_eq!(outbox.peers(), []);
    }

    #[test]
    fn nobody_is_asked_more_than_it_answers() {
        let mut outbox = plain();
        let asked = |outbox: &mut Outbox, now| datagrams(outbox, now).iter().sum::<usize>() / 60;
        (0..2000).for_each(|group| outbox.push(PEER, acquisition(group, 60), true));
        let mut sent: usize = (0..10).map(|slot| asked(&mut outbox, slot * SLOT)).sum();
        assert_eq!(sent, MOST_UNANSWERED);
        let full = LocalTime::from_nanos(10 * SLOT);
        assert!(outbox.next_wake(PEER, full).is_some_and(|at| at > full), "it waits for answers");
        (0..30).for_each(|_| outbox.answered(PEER));
        assert_eq!(asked(&mut outbox, 10 * SLOT), 30);
        outbox.push(PEER, item(0, 60), true);
        assert_eq!(asked(&mut outbox, 11 * SLOT), 1, "what is in a hurry is not held back");
        sent = (30..40).map(|slot| asked(&mut outbox, slot * SLOT)).sum();
        assert_eq!(sent, MOST_UNANSWERED, "what was not answered in time counts as lost");
    }

    #[test]
    fn what_was_lost_does_not_stay_in_the_way_of_what_is_answered() {
        let mut outbox = plain();
        let asked = |outbox: &mut Outbox, now| datagrams(outbox, now).iter().sum::<usize>() / 60;
        (0..20_000).for_each(|group| outbox.push(PEER, acquisition(group, 60), true));
        let mut sent = 0;
        for slot in 0..100 {
            let now = asked(&mut outbox, slot * SLOT);
            (0..now.min(5)).for_each(|_| outbox.answered(PEER)); // The rest is lost.
            sent += now;
        }
        assert!(sent > 4 * MOST_UNANSWERED, "{sent}");
    }
}
