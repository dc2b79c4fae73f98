//! A network in memory. Packets take a millisecond or two of tokio's time, arrive in any order, and
//! are lost between hosts that are cut off from each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use super::dice::Dice;

/// The shortest time that a packet takes, in microseconds, and how much longer it may take.
const DELAY: u64 = 200;
const JITTER: u32 = 1_600;

/// How many datagrams wait at a host at most: the rest is lost, as in a socket's buffer.
const ROOM: usize = 10_000;

/// The network of one cluster.
#[derive(Clone)]
pub(crate) struct Network {
    runtime: Handle,
    wires: Arc<Mutex<Wires>>,
}

struct Wires {
    dice: Dice,
    hosts: Vec<SocketAddr>,
    /// The ports that are open.
    ends: BTreeMap<SocketAddr, End>,
    sent: u64,
    /// Hosts reach each other within a part; `None` if there is no partition.
    parts: Option<Vec<Vec<usize>>>,
    /// Hosts that reach nobody.
    cut: BTreeSet<usize>,
}

struct End {
    /// Datagrams by the instant of their arrival, and by number.
    datagrams: BTreeMap<(Instant, u64), (SocketAddr, Vec<u8>)>,
    news: Arc<Notify>,
    bulk: mpsc::Sender<Vec<u8>>,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl Wires {
    fn connected(&self, one: SocketAddr, other: SocketAddr) -> bool {
        let place = |address| self.hosts.iter().position(|host| *host == address);
        let (Some(one), Some(other)) = (place(one), place(other)) else { return false };
        let within = |part: &Vec<usize>| part.contains(&one) && part.contains(&other);
        let cut = self.cut.contains(&one) || self.cut.contains(&other);
        !cut && self.parts.as_ref().is_none_or(|parts| parts.iter().any(within))
    }

    fn delay(&mut self) -> Duration {
        Duration::from_micros(DELAY + u64::from(self.dice.below(JITTER)))
    }
}

impl Network {
    pub(super) fn new(hosts: Vec<SocketAddr>, dice: Dice) -> Self {
        let (ends, cut) = (BTreeMap::new(), BTreeSet::new());
        let wires = Wires { dice, hosts, ends, sent: 0, parts: None, cut };
        Self { runtime: Handle::current(), wires: Arc::new(Mutex::new(wires)) }
    }

    /// Opens the port of a host.
    pub(crate) fn open(&self, address: SocketAddr, bulk: mpsc::Sender<Vec<u8>>) -> Port {
        let news = Arc::<Notify>::default();
        let end = End { datagrams: BTreeMap::new(), news: news.clone(), bulk };
        self.wires().ends.insert(address, end);
        Port { network: self.clone(), address, news }
    }

    /// From here on hosts reach each other within a part; with `None` all do.
    pub(super) fn set_parts(&self, parts: Option<Vec<Vec<usize>>>) {
        self.change(|wires| wires.parts = parts);
    }

    /// From here on a host reaches nobody.
    pub(super) fn cut(&self, host: usize) {
        self.change(|wires| wires.cut.insert(host));
    }

    /// From here on a host reaches those of its part again.
    pub(super) fn join(&self, host: usize) {
        self.change(|wires| wires.cut.remove(&host));
    }

    /// Packets on their way over what is cut now are lost.
    fn change<T>(&self, change: impl FnOnce(&mut Wires) -> T) -> T {
        let now = self.now();
        let mut wires = self.wires();
        let result = change(&mut wires);
        let mut ends = std::mem::take(&mut wires.ends);
        for (to, end) in &mut ends {
            end.datagrams.retain(|(at, _), (from, _)| *at <= now || wires.connected(*from, *to));
        }
        wires.ends = ends;
        result
    }

    fn now(&self) -> Instant {
        let _here = self.runtime.enter();
        Instant::now()
    }

    fn wires(&self) -> MutexGuard<'_, Wires> {
        self.wires.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The port of a host: what a node has instead of sockets. Closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Port {
    network: Network,
    address: SocketAddr,
    news: Arc<Notify>,
}

impl Port {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until a datagram is there.
    pub(crate) async fn readable(&self) {
        loop {
            match self.next() {
                Some(at) if at <= self.network.now() => return,
                Some(at) => tokio::select! {
                    biased;
                    () = sleep_until(at) => return,
                    () = self.news.notified() => {}
                },
                None => self.news.notified().await,
            }
        }
    }

    /// When the first datagram arrives.
    fn next(&self) -> Option<Instant> {
        let wires = self.network.wires();
        let first = wires.ends.get(&self.address)?.datagrams.first_key_value();
        first.map(|((at, _), _)| *at)
    }

    /// Takes a datagram that has arrived.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let now = self.network.now();
        let mut wires = self.network.wires();
        let datagrams = &mut wires.ends.get_mut(&self.address)?.datagrams;
        let first = datagrams.first_entry().filter(|entry| entry.key().0 <= now)?;
        let (from, bytes) = first.remove();
        buffer.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some((bytes.len(), from))
    }

    /// Sends a datagram. It may be lost, but it has left.
    pub(crate) fn send(&self, bytes: Vec<u8>, to: SocketAddr) -> bool {
        let now = self.network.now();
        let mut wires = self.network.wires();
        wires.sent += 1;
        let key = (now + wires.delay(), wires.sent);
        let connected = wires.connected(self.address, to);
        if let Some(end) = wires.ends.get_mut(&to).filter(|end| connected && end.datagrams.len() < ROOM) {
            end.datagrams.insert(key, (self.address, bytes));
            end.news.notify_one();
        }
        true
    }

    /// Sends a packet on a stream of its own. Called by a driver, so there is a runtime.
    pub(crate) fn send_bulk(&self, bytes: Vec<u8>, to: SocketAddr) {
        let (network, from) = (self.network.clone(), self.address);
        let delay = network.wires().delay();
        tokio::spawn(async move {
            sleep(delay).await;
            let bulk = {
                let wires = network.wires();
                let end = wires.ends.get(&to).filter(|_| wires.connected(from, to));
                end.map(|end| end.bulk.clone())
            };
            if let Some(bulk) = bulk {
                let _ = bulk.send(bytes).await;
            }
        });
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.network.wires().ends.remove(&self.address);
    }
}
