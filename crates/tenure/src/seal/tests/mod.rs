//! Two processes, and somebody between them who can do with their packets what he likes.

mod attacks;
mod floods;
mod handshake;
mod keys;
mod moving;
mod random;
mod rotation;

use std::net::SocketAddr;
use std::sync::Arc;

use tenure_proto::LocalTime;
use tenure_proto::time::LocalSpan;

use super::scope::Rights;
use super::*;
use crate::name::{ClusterId, GroupName, NodeName};

const CLUSTER: ClusterId = ClusterId(0xc1);
const V1: Versions = Versions { oldest: 1, newest: 1 };
const RETRY: u64 = 100;

fn at(millis: u64) -> LocalTime {
    LocalTime::from_nanos(millis * 1_000_000)
}

fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

fn group(text: &str) -> GroupName {
    GroupName::new(text).unwrap()
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 4000))
}

fn key(byte: u8) -> ClusterKey {
    ClusterKey::from_bytes([byte; 32])
}

fn ring(byte: u8) -> Keyring {
    Keyring::new(key(byte))
}

/// A received packet, without its session.
#[derive(Debug, PartialEq, Eq)]
enum Got {
    Dropped(Refusal),
    Reply(Vec<u8>),
    Ready(Arc<Peer>, Option<Vec<u8>>),
    Data(Arc<Peer>, Vec<u8>),
    KeyRefused(tenure_proto::NodeId, KeyRefusal),
}

impl Got {
    #[track_caller]
    fn reply(self) -> Vec<u8> {
        match self {
            Self::Reply(packet) | Self::Ready(_, Some(packet)) => packet,
            other => panic!("no reply but {other:?}"),
        }
    }

    #[track_caller]
    fn refusal(self) -> Refusal {
        match self {
            Self::Dropped(refusal) => refusal,
            other => panic!("no refusal but {other:?}"),
        }
    }

    #[track_caller]
    fn text(self) -> String {
        match self {
            Self::Data(_, plaintext) => String::from_utf8(plaintext).unwrap(),
            other => panic!("no data but {other:?}"),
        }
    }

    #[track_caller]
    fn peer(self) -> Arc<Peer> {
        match self {
            Self::Data(peer, _) | Self::Ready(peer, _) => peer,
            other => panic!("from nobody: {other:?}"),
        }
    }
}

struct Node {
    name: NodeName,
    address: SocketAddr,
    identity: Identity,
    limits: Limits,
    sessions: Sessions,
}

/// Another for each life of each process.
fn seed(identity: &Identity) -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(&identity.boot.to_be_bytes());
    seed[16..24].copy_from_slice(&identity.name.id().0.to_be_bytes());
    seed
}

fn limits() -> Limits {
    Limits { peers: 64, retry: LocalSpan::from_nanos(RETRY * 1_000_000), ..Limits::default() }
}

impl Node {
    fn new(identity: Identity, last: u8, limits: Limits) -> Self {
        let sessions = Sessions::new(identity.clone(), limits, seed(&identity));
        Self { name: identity.name.clone(), address: address(last), identity, limits, sessions }
    }

    /// A member of the cluster under key 1.
    fn member(text: &str, last: u8) -> Self {
        let boot = u128::from(last);
        Self::new(Identity::member(name(text), CLUSTER, ring(1), boot, V1), last, limits())
    }

    fn outsider(key: CandidateKey, last: u8) -> Self {
        let name = name(key.names().as_str());
        Self::named(name, key, last)
    }

    /// An outsider under one of the names that its key allows.
    fn named(name: NodeName, key: CandidateKey, last: u8) -> Self {
        Self::new(Identity::outsider(name, key, u128::from(last), V1), last, limits())
    }

    fn candidate(text: &str, scope: &str, last: u8) -> Self {
        Self::outsider(key(1).candidate(CLUSTER, name(text), Scope::new(scope).unwrap()), last)
    }

    /// A new life: another boot, another seed, nothing remembered.
    fn restart(&mut self) {
        self.identity.boot += 1000;
        self.sessions = Sessions::new(self.identity.clone(), self.limits, seed(&self.identity));
    }

    fn get(&mut self, packet: &[u8], from: SocketAddr, now: LocalTime) -> Got {
        let mut packet = packet.to_vec();
        match self.sessions.receive(&mut packet, from, now) {
            Received::Dropped(refusal) => Got::Dropped(refusal),
            Received::Reply(reply) => Got::Reply(reply),
            Received::Ready { peer, reply } => Got::Ready(peer, reply),
            Received::Data { peer, plaintext } => Got::Data(peer, plaintext.to_vec()),
            Received::KeyRefused { by, why } => Got::KeyRefused(by, why),
        }
    }

    fn hello(&mut self, to: &Node, now: LocalTime) -> Vec<u8> {
        self.sessions.greet(&to.name, now).expect("a greeting is due")
    }

    fn say(&mut self, to: &Node, text: &str, now: LocalTime) -> Vec<u8> {
        self.sessions.seal(to.name.id(), text.as_bytes(), Expect::Answer, now).expect("there is a session").0
    }

    fn refused(&self, reason: &str) -> u64 {
        self.sessions
            .counters()
            .refused()
            .find(|(name, _)| *name == reason)
            .expect("there is such a reason")
            .1
    }

    fn unanswered(&self, now: LocalTime) -> Vec<tenure_proto::NodeId> {
        self.sessions.unanswered(now).collect()
    }
}

/// The packets of a whole handshake that `a` begins, in order: Hello, Welcome, First, and the first
/// Data.
fn shake(a: &mut Node, b: &mut Node, now: LocalTime) -> [Vec<u8>; 4] {
    let hello = a.hello(b, now);
    let welcome = b.get(&hello, a.address, now).reply();
    let first = a.get(&welcome, b.address, now).reply();
    let data = b.get(&first, a.address, now).reply();
    assert!(matches!(a.get(&data, b.address, now), Got::Ready(_, None)));
    [hello, welcome, first, data]
}

/// Asserts that a packet of `a` reaches `b`.
#[track_caller]
fn reaches(a: &mut Node, b: &mut Node, text: &str, now: LocalTime) {
    let packet = a.say(b, text, now);
    assert_eq!(b.get(&packet, a.address, now).text(), text);
}

fn pair() -> (Node, Node) {
    (Node::member("a", 1), Node::member("b", 2))
}
