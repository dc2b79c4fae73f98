//! Where attacks take place: a cluster behind a proxy, and somebody who watches its leader.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenure::{Config, Node, SessionCounters as Counters, Status, Tenure, VerifyError};
use tokio::sync::{Mutex, MutexGuard};

use crate::attackers::Forged;
use crate::cluster::{Cluster, renewed};
use crate::meters::count_events;
use crate::ports::free_addresses;
use crate::proxy::{DATA, FIRST, HELLO, Packet, Proxy, WELCOME};
use crate::waiting::{now, within};

/// Long enough that a machine which does much else deposes nobody: attacks are to be the only
/// reason.
const LEASE: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_secs(60);

/// How often each member asks the leader something, so that there is something to attack.
const CHATTER: Duration = Duration::from_millis(100);

/// One test at a time: they measure.
pub async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    count_events();
    ALONE.lock().await
}

/// The session of a packet that has one.
pub fn said(packet: &Packet) -> [u8; 8] {
    packet.bytes[2..10].try_into().expect("eight bytes")
}

/// How often a node refused packets for this reason.
pub fn refused(counters: &Counters, reason: &str) -> u64 {
    counters.refused().find(|(name, _)| *name == reason).expect("there is such a reason").1
}

/// Three members who know each other by the proxy's addresses.
pub struct Arena {
    /// The members.
    pub cluster: Cluster,
    /// Where they really listen.
    pub real: Vec<SocketAddr>,
    /// The proxy between them.
    pub proxy: Proxy,
    /// The nodes that run.
    pub nodes: Vec<Node>,
}

impl Arena {
    /// Founds three members, and starts them behind the proxy.
    pub async fn new() -> Self {
        let cluster = Cluster::found(3, LEASE);
        let real = free_addresses(3);
        let proxy = Proxy::start(&cluster.addresses, &real).await.expect("it listens");
        let mut arena = Self { cluster, real, proxy, nodes: Vec::new() };
        for index in 0..3 {
            arena.nodes.push(Node::start(arena.config(index)).await.expect("it starts"));
        }
        arena
    }

    /// The configuration of a member, which listens behind the proxy.
    pub fn config(&self, index: usize) -> Config {
        let mut config = self.cluster.member(index);
        config.listen = vec![self.real[index]];
        config
    }

    /// The first member leads, and is watched from now on. The others ask it something all the
    /// time.
    pub async fn led(&self) -> (Tenure, Vigil) {
        for node in &self.nodes {
            within("all are ready", SOON, node.ready()).await.expect("it runs");
        }
        let tenure = within("a leader", SOON, self.nodes[0].campaign("jobs")).await.expect("it is elected");
        for node in &self.nodes {
            tokio::spawn(chatter(node.clone()));
        }
        let vigil = Vigil::keep(tenure.clone());
        (tenure, vigil)
    }

    /// The status of a member.
    pub async fn status(&self, index: usize) -> Status {
        self.nodes[index].status().await.expect("it runs")
    }

    /// The counters of each member's sessions.
    pub async fn sessions(&self) -> Vec<Counters> {
        let mut all = Vec::new();
        for index in 0..self.nodes.len() {
            all.push(self.status(index).await.sessions);
        }
        all
    }

    /// All packets to a member so far.
    pub fn sent_to(&self, index: usize) -> Vec<Packet> {
        self.proxy.recorded(|packet| packet.to == self.real[index])
    }

    /// Ends a member in good order, and starts it again.
    pub async fn restart(&mut self, index: usize) {
        self.nodes.remove(index).shutdown().await;
        let node = Node::start(self.config(index)).await.expect("it starts again");
        self.nodes.insert(index, node);
    }

    /// Restarts the third member, however many are left.
    pub async fn restart_last(&mut self) {
        if let Some(node) = self.nodes.pop() {
            node.shutdown().await;
        }
        self.nodes.push(Node::start(self.config(2)).await.expect("it starts again"));
    }

    /// Repeats packets to a member, from where they came and from elsewhere. It must refuse each.
    pub async fn refuses_all(&self, index: usize, packets: &[Packet], what: &str) {
        let forged = Forged::open(10);
        let talk: Vec<&Packet> =
            packets.iter().filter(|packet| matches!(packet.kind(), FIRST | DATA)).collect();
        assert!(talk.len() > 10, "too few to mean anything: {}", talk.len());
        let passed = self.sent_to(index).len();
        self.has_counted(index).await;
        let before = self.status(index).await.sessions;
        for packet in &talk {
            packet.send(&packet.bytes);
            forged.send(packet.to, &packet.bytes);
        }
        let all = before.refusals() + 2 * talk.len() as u64;
        within("the refusal of all that was repeated", SOON, self.refused(index, all)).await;
        let after = self.status(index).await.sessions;
        let genuine = self.sent_to(index).split_off(passed);
        let of =
            |kinds: [u8; 2]| genuine.iter().filter(|packet| kinds.contains(&packet.kind())).count() as u64;
        let (greeted, genuine) = (of([WELCOME, FIRST]), of([FIRST, DATA]));
        let (accepted, refused) = (after.accepted - before.accepted, after.refusals() - before.refusals());
        println!(
            "{what}: {} repeated twice, {refused} refused; {genuine} said, {accepted} accepted",
            talk.len()
        );
        assert!(accepted <= genuine, "{what}: {accepted} accepted, {genuine} said");
        let begun = after.begun - before.begun;
        assert!(begun <= greeted, "{what}: {begun} sessions began, {greeted} by those who were greeted");
        assert_eq!(forged.tally().1.count, 0, "{what}: somebody was answered");
    }

    /// Waits until a member has counted all that was sent to it before: what comes last is refused
    /// after it.
    pub async fn has_counted(&self, index: usize) {
        let foreign = async || refused(&self.status(index).await.sessions, "foreign");
        let before = foreign().await;
        Forged::open(1).send(self.real[index], b"no packet of ours");
        let counted = async {
            while foreign().await == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within("the refusal of one", SOON, counted).await;
    }

    async fn refused(&self, index: usize, all: u64) {
        while self.status(index).await.sessions.refusals() < all {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Asks the leader until the node ends. Renewals alone are rare, with leases that last.
async fn chatter(node: Node) {
    while !matches!(node.verify("jobs", Duration::ZERO).await, Err(VerifyError::Stopped(_))) {
        tokio::time::sleep(CHATTER).await;
    }
}

/// A moment: how many packets had passed, and what members had counted.
pub struct Mark {
    passed: usize,
    /// The counters of each member then.
    pub sessions: Vec<Counters>,
}

impl Arena {
    /// Looks when nobody has greeted for a while, so that no session is about to begin by what was
    /// said before.
    pub async fn mark(&self) -> Mark {
        let quiet = Duration::from_millis(200);
        let greets = |packet: &Packet| packet.kind() == HELLO && self.real.contains(&packet.from);
        let greeted = || self.proxy.recorded(greets).last().map_or(0, |last| last.at);
        let settled = async {
            while now() < Duration::from_nanos(greeted()) + quiet {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within("the end of greetings", SOON, settled).await;
        let passed = self.proxy.record().len();
        for index in 0..self.nodes.len() {
            self.has_counted(index).await;
        }
        Mark { passed, sessions: self.sessions().await }
    }

    /// All packets since then.
    pub fn since(&self, mark: &Mark) -> Vec<Packet> {
        self.proxy.record().split_off(mark.passed)
    }

    /// A peer that was silent for a while is rightly greeted anew. A session begins with who has
    /// greeted, or by the first words of another member that was welcomed: whatever else began, an
    /// attacker did.
    pub fn only_members_began(&self, mark: &Mark, index: usize, now: &Counters) {
        let me = self.real[index];
        let began = |packet: &&Packet| match packet.kind() {
            HELLO => packet.from == me,
            FIRST => packet.to == me && self.real.contains(&packet.from),
            _ => false,
        };
        let beginnings = self.since(mark).iter().filter(began).count() as u64;
        let begun = now.begun - mark.sessions[index].begun;
        assert!(begun <= beginnings, "{begun} sessions began, {beginnings} by members");
    }
}

/// Somebody who asks the leader all the time whether it leads.
pub struct Vigil {
    thread: JoinHandle<(u64, Duration)>,
    over: Arc<AtomicBool>,
}

impl Vigil {
    /// Begins to ask.
    pub fn keep(tenure: Tenure) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let end = over.clone();
        let thread = thread::spawn(move || {
            let (mut denied, mut hole, mut last) = (0, Duration::ZERO, now());
            while !end.load(Relaxed) {
                denied += u64::from(!tenure.is_leader());
                thread::sleep(Duration::from_micros(500));
                hole = hole.max(now() - last);
                last = now();
            }
            (denied, hole)
        });
        Self { thread, over }
    }

    /// The leader has led all the time, and goes on renewing.
    pub async fn kept(self, arena: &Arena, tenure: &Tenure) {
        renewed(&arena.nodes[0], 1).await;
        self.over.store(true, Relaxed);
        let (denied, hole) = self.thread.join().expect("it does not panic");
        println!("the longest time in which a thread that wanted to was not run: {hole:?}");
        let tally = arena.status(0).await.tally;
        assert_eq!(denied, 0, "it did not lead when it was asked; lost {} times", tally.terms_lost);
        assert!(tenure.is_leader());
        assert_eq!((tally.terms_won, tally.terms_lost), (1, 0));
    }
}
