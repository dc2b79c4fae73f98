//! Places for connections: how many there are, how many one source may have, and which are kept for
//! probes.
//!
//! A connection gets a *place for anything*, as long as there is one and its source (a host; for
//! IPv6 a network of 64 bits) has not had its share. Every other connection gets a *place for a
//! probe*: one request, only for `/livez`, `/readyz`, `/metrics` or `/leader/GROUP`, within a few
//! seconds. If those are taken too, the newcomer gets the place of the oldest connection of the
//! source that has the most of them. So no connection is refused at the door, and nobody can lock
//! probes out by holding connections open: to hold a place for a probe longer than a probe takes, a
//! client would have to be newer than it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Notify;

/// The limits of one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// The most connections that may ask for anything.
    pub(super) most: usize,
    /// How many of those one source may have.
    pub(super) per_source: usize,
    /// How many connections more there may be, for probes.
    pub(super) probes: usize,
    /// For a handshake of TLS, and for a request's header; also how long an idle connection is
    /// kept.
    pub(super) header: Duration,
    /// How long a client may leave an answer unread.
    pub(super) write: Duration,
    /// How long a connection in a place for a probe may take for everything.
    pub(super) probe: Duration,
}

/// How many files the daemon wants to have open at once, at most.
const FILES: u64 = 4_096;

/// How many of them are not for connections: the store, sockets, the runtime, streams of other
/// members.
const OTHER_FILES: usize = 256;

impl Limits {
    /// For `daemon.http`, with as many files as this process may open.
    pub(super) fn http() -> Self {
        Self::http_with(open_files())
    }

    fn http_with(files: usize) -> Self {
        let (own, sidecar) = (Self::whole(), Self::sidecar());
        let others = OTHER_FILES + own.probes + sidecar.most + sidecar.probes;
        Self { most: own.most.min(files.saturating_sub(others)).max(16), ..own }
    }

    fn whole() -> Self {
        Self {
            most: 1_024,
            per_source: 256,
            probes: 64,
            header: Duration::from_secs(10),
            write: Duration::from_secs(10),
            probe: Duration::from_secs(5),
        }
    }

    /// For `daemon.sidecar_port`, which answers in a few bytes.
    pub(super) fn sidecar() -> Self {
        Self { most: 256, per_source: 64, probes: 32, ..Self::whole() }
    }
}

/// Raises how many files this process may open, as far as that is allowed, and says how many those
/// are.
fn open_files() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(FILES, |maximum| maximum.min(FILES));
    if current.is_some_and(|current| current < wanted) {
        // If it is refused, there are fewer places: see `http_with`.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(FILES);
    usize::try_from(current).unwrap_or(usize::MAX)
}

/// The purpose of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// Any request, one after the other.
    Anything,
    /// One probe.
    AProbe,
}

/// The places of one socket. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    limits: Limits,
    next: u64,
    /// Oldest first.
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    number: u64,
    source: IpAddr,
    kind: For,
    evict: Arc<Notify>,
}

/// A place that a connection has until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    /// Its purpose.
    pub(super) kind: For,
    number: u64,
    evicted: Arc<Notify>,
    places: Places,
}

impl Places {
    pub(super) fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(Inner { limits, next: 0, held: Vec::new() })))
    }

    /// A place for a connection from `address`; somebody else may lose theirs.
    pub(super) fn take(&self, address: IpAddr) -> Place {
        let mut inner = self.lock();
        let source = source(address);
        let kind = inner.kind_for(source);
        if kind == For::AProbe {
            inner.make_room_for_a_probe(source);
        }
        let (number, evicted) = (inner.next, Arc::new(Notify::new()));
        inner.next += 1;
        inner.held.push(Held { number, source, kind, evict: evicted.clone() });
        Place { kind, number, evicted, places: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn kind_for(&self, source: IpAddr) -> For {
        let all = self.held.iter().filter(|held| held.kind == For::Anything);
        let (taken, own) =
            all.fold((0, 0), |(taken, own), held| (taken + 1, own + usize::from(held.source == source)));
        if taken < self.limits.most && own < self.limits.per_source { For::Anything } else { For::AProbe }
    }

    /// Evicts the oldest of the source that has the most, the newcomer counted, if all places are
    /// taken.
    fn make_room_for_a_probe(&mut self, newcomer: IpAddr) {
        let probes: Vec<&Held> = self.held.iter().filter(|held| held.kind == For::AProbe).collect();
        if probes.len() < self.limits.probes {
            return;
        }
        let count = |held: &&&Held| {
            let own = probes.iter().filter(|other| other.source == held.source).count();
            own + usize::from(held.source == newcomer)
        };
        // `max_by_key` takes the last of equals: from the newest to the oldest, that is the oldest.
        let Some(number) = probes.iter().rev().max_by_key(count).map(|held| held.number) else { return };
        self.held.extract_if(.., |held| held.number == number).for_each(|held| held.evict.notify_one());
    }
}

impl Place {
    /// Returns when the place is somebody else's.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().held.retain(|held| held.number != self.number);
    }
}

/// Whom connections from an address are counted for.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) if address.is_loopback() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) if address.is_loopback() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            [a, b, c, d, 0, 0, 0, 0].into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn places(most: usize, per_source: usize, probes: usize) -> Places {
        Places::new(Limits { most, per_source, probes, ..Limits::whole() })
    }

    async fn is_evicted(place: &Place) -> bool {
        tokio::time::timeout(Duration::ZERO, place.evicted()).await.is_ok()
    }

    #[test]
    fn a_source_beyond_its_share_has_places_for_probes_only_and_others_have_theirs() {
        let places = places(4, 2, 4);
        let kinds = |from: u8, count: usize| (0..count).map(|_| places.take(ip(from))).collect::<Vec<_>>();
        let (hostile, honest) = (kinds(1, 3), kinds(2, 1));
        assert_eq!(
            hostile.iter().map(|place| place.kind).collect::<Vec<_>>(),
            [For::Anything, For::Anything, For::AProbe]
        );
        assert_eq!(honest[0].kind, For::Anything);
        drop(hostile);
        assert_eq!(places.take(ip(1)).kind, For::Anything, "what was given back can be taken again");
    }

    #[tokio::test]
    async fn a_probe_takes_the_place_of_the_oldest_of_the_greediest_source() {
        let places = places(0, 0, 3);
        let modest = places.take(ip(1));
        let greedy = [places.take(ip(2)), places.take(ip(2))];
        let newcomer = places.take(ip(3));
        assert!(is_evicted(&greedy[0]).await);
        for place in [&modest, &greedy[1], &newcomer] {
            assert!(!is_evicted(place).await, "{place:?}");
        }
        let greediest = [places.take(ip(1)), places.take(ip(1))];
        assert!(is_evicted(&modest).await, "with the newcomer its source would have two");
        assert!(!is_evicted(&greediest[1]).await, "the newest is never evicted for itself");
    }

    #[test]
    fn there_are_fewer_places_where_few_files_may_be_open() {
        assert_eq!(Limits::http_with(4_096).most, 1_024);
        let few = Limits::http_with(1_024);
        assert!(few.most + few.probes + OTHER_FILES < 1_024, "{few:?}");
        assert_eq!(Limits::http_with(64).most, 16);
    }

    #[test]
    fn the_addresses_of_one_host_are_one_source() {
        let v6 = |text: &str| source(text.parse().unwrap());
        assert_eq!(v6("2001:db8:1:2::3"), v6("2001:db8:1:2:ffff::1"));
        assert_eq!(v6("::ffff:10.0.0.1"), ip(1));
        assert_eq!(v6("127.0.0.9"), v6("::1"));
    }
}
