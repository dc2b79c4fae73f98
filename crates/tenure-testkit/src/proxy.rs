//! An attacker on the way: everything between the members passes through here, is recorded, and can
//! be changed, held back and repeated.
//!
//! Members are known to each other by the proxy's addresses, its *fronts*. A packet to a front
//! goes on to the member behind it, from a socket that stands for the sender; answers go the way
//! back. So the proxy can also send whatever it likes, later, from the addresses that the members
//! expect.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::UdpSocket;

/// The second byte of a packet that asks for a session.
pub const HELLO: u8 = 0x11;
/// The second byte of a packet that answers one who asks.
pub const WELCOME: u8 = 0x12;
/// The second byte of the first packet of a session.
pub const FIRST: u8 = 0x13;
/// The second byte of all further packets of a session.
pub const DATA: u8 = 0x14;

/// A datagram between two members, and how to send it once more.
#[derive(Clone)]
pub struct Packet {
    /// Which address it came from.
    pub from: SocketAddr,
    /// Which member it is for: where that one really listens.
    pub to: SocketAddr,
    /// All of it.
    pub bytes: Vec<u8>,
    /// When it came by, in nanoseconds of the boot clock.
    pub at: u64,
    socket: Arc<UdpSocket>,
    /// Where it goes, as the socket sees it.
    next: SocketAddr,
}

impl Packet {
    /// Which kind it is, by its second byte.
    pub fn kind(&self) -> u8 {
        self.bytes.get(1).copied().unwrap_or(0)
    }

    /// Sends some bytes the way that this packet went.
    pub fn send(&self, bytes: &[u8]) {
        // Past the runtime, which would first want to be told by the system that there is room.
        let _ = socket2::SockRef::from(&*self.socket).send_to(bytes, &self.next.into());
    }
}

/// Gives the packets that are sent on instead of one, and how much later.
pub type Rule = Box<dyn FnMut(&Packet) -> Vec<(Duration, Vec<u8>)> + Send>;

struct State {
    real: Vec<SocketAddr>,
    flows: Mutex<BTreeMap<(usize, SocketAddr), Arc<UdpSocket>>>,
    record: Mutex<Vec<Packet>>,
    rule: Mutex<Rule>,
}

/// The proxy of all members.
#[derive(Clone)]
pub struct Proxy(Arc<State>);

/// Sends a packet on as it is.
pub fn honest() -> Rule {
    Box::new(|packet| vec![(Duration::ZERO, packet.bytes.clone())])
}

impl Proxy {
    /// `fronts[i]` stands for the member that listens on `real[i]`.
    pub async fn start(fronts: &[SocketAddr], real: &[SocketAddr]) -> io::Result<Self> {
        let state = State {
            real: real.to_vec(),
            flows: Mutex::default(),
            record: Mutex::default(),
            rule: Mutex::new(honest()),
        };
        let proxy = Self(Arc::new(state));
        for (index, front) in fronts.iter().enumerate() {
            let front = Arc::new(UdpSocket::bind(front).await?);
            tokio::spawn(proxy.clone().serve(index, front));
        }
        Ok(proxy)
    }

    /// From now on packets are treated like this.
    pub fn rule(&self, rule: Rule) {
        *self.0.rule.lock().expect("nobody panics with it") = rule;
    }

    /// All packets so far.
    pub fn record(&self) -> Vec<Packet> {
        self.0.record.lock().expect("nobody panics with it").clone()
    }

    /// The packets that satisfy `wanted`.
    pub fn recorded(&self, wanted: impl Fn(&Packet) -> bool) -> Vec<Packet> {
        let record = self.0.record.lock().expect("nobody panics with it");
        record.iter().filter(|packet| wanted(packet)).cloned().collect()
    }

    async fn serve(self, index: usize, front: Arc<UdpSocket>) {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let Ok((length, from)) = front.recv_from(&mut buffer).await else { continue };
            let known = self.0.flows.lock().expect("nobody panics with it").get(&(index, from)).cloned();
            let flow = match known {
                Some(flow) => flow,
                None => self.open(index, from, &front).await,
            };
            let to = self.0.real[index];
            self.pass(from, to, &buffer[..length], flow, to);
        }
    }

    /// A socket that stands for `from` before the member behind this front.
    async fn open(&self, index: usize, from: SocketAddr, front: &Arc<UdpSocket>) -> Arc<UdpSocket> {
        let flow = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a free port"));
        self.0.flows.lock().expect("nobody panics with it").insert((index, from), flow.clone());
        let (proxy, back, front) = (self.clone(), flow.clone(), front.clone());
        tokio::spawn(async move {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let Ok((length, member)) = back.recv_from(&mut buffer).await else { continue };
                proxy.pass(member, from, &buffer[..length], front.clone(), from);
            }
        });
        flow
    }

    fn pass(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8], socket: Arc<UdpSocket>, next: SocketAddr) {
        let at = tenure::Clock::boot().read().as_nanos();
        let packet = Packet { from, to, bytes: bytes.to_vec(), at, socket, next };
        // Held meanwhile: a reader of the record finds in it all that was sent on, and nothing
        // that was not.
        let mut record = self.0.record.lock().expect("nobody panics with it");
        let sent = (self.0.rule.lock().expect("nobody panics with it"))(&packet);
        for (later, bytes) in sent {
            if later.is_zero() {
                packet.send(&bytes);
                continue;
            }
            let packet = packet.clone();
            tokio::spawn(async move {
                tokio::time::sleep(later).await;
                packet.send(&bytes);
            });
        }
        record.push(packet);
    }
}
