//! Where attacks take place: a cluster behind a proxy, somebody who watches the leader, and
//! addresses to attack from.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenure::{Config, Node, SessionCounters as Counters, Status, Tenure};
use tokio::sync::{Mutex, MutexGuard};

use crate::proxy::{DATA, FIRST, HELLO, Packet, Proxy, WELCOME};
use crate::support::{Cluster, free_addresses, within};

/// Long enough that a machine which does much else deposes nobody: attacks are to be the only
/// reason.
const LEASE: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(10);

/// Since the boot.
pub(crate) fn now() -> Duration {
    Duration::from_nanos(tenure::Clock::boot().read().as_nanos())
}

/// One test at a time: they measure.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    static LOG: Once = Once::new();
    LOG.call_once(|| tracing::subscriber::set_global_default(Counting).expect("nobody else has set one"));
    ALONE.lock().await
}

static EVENTS: AtomicU64 = AtomicU64::new(0);

/// How many lines nodes have written to the log so far.
pub(crate) fn events() -> u64 {
    EVENTS.load(Relaxed)
}

/// A log that only counts.
struct Counting;

impl tracing::Subscriber for Counting {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("tenure")
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        EVENTS.fetch_add(1, Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// What this process has in memory, in KiB.
pub(crate) fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("Linux has it");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// The processor time that a thread of this process has used, by its name.
pub(crate) fn busy(thread: &str) -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it");
    let stat = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("stat")).ok()
    };
    let text = tasks.filter_map(stat).find(|text| text.contains(&format!("({thread})"))).expect("it runs");
    let fields: Vec<&str> = text.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks: u64 = fields[11..13].iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// The session of a packet that has one.
pub(crate) fn said(packet: &Packet) -> [u8; 8] {
    packet.bytes[2..10].try_into().expect("eight bytes")
}

/// How often a node refused packets for this reason.
pub(crate) fn refused(counters: &Counters, reason: &str) -> u64 {
    counters.refused().find(|(name, _)| *name == reason).expect("there is such a reason").1
}

/// Three members who know each other by the proxy's addresses.
pub(crate) struct Arena {
    pub(crate) cluster: Cluster,
    /// Where they really listen.
    pub(crate) real: Vec<SocketAddr>,
    pub(crate) proxy: Proxy,
    pub(crate) nodes: Vec<Node>,
}

impl Arena {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::found(3, LEASE);
        let real = free_addresses(3);
        let proxy = Proxy::start(&cluster.addresses, &real).await.expect("it listens");
        let mut arena = Self { cluster, real, proxy, nodes: Vec::new() };
        for index in 0..3 {
            arena.nodes.push(Node::start(arena.config(index)).await.expect("it starts"));
        }
        arena
    }

    pub(crate) fn config(&self, index: usize) -> Config {
        let mut config = self.cluster.member(index);
        config.listen = vec![self.real[index]];
        config
    }

    /// The first member leads, and is watched from now on.
    pub(crate) async fn led(&self) -> (Tenure, Vigil) {
        for node in &self.nodes {
            within("all are ready", SOON, node.ready()).await.expect("it runs");
        }
        let tenure = within("a leader", SOON, self.nodes[0].campaign("jobs")).await.expect("it is elected");
        let vigil = Vigil::keep(tenure.clone());
        (tenure, vigil)
    }

    pub(crate) async fn status(&self, index: usize) -> Status {
        self.nodes[index].status().await.expect("it runs")
    }

    pub(crate) async fn sessions(&self) -> Vec<Counters> {
        let mut all = Vec::new();
        for index in 0..self.nodes.len() {
            all.push(self.status(index).await.sessions);
        }
        all
    }

    /// What was sent to a member so far.
    pub(crate) fn sent_to(&self, index: usize) -> Vec<Packet> {
        self.proxy.recorded(|packet| packet.to == self.real[index])
    }

    pub(crate) async fn restart(&mut self, index: usize) {
        self.nodes.remove(index).shutdown().await;
        let node = Node::start(self.config(index)).await.expect("it starts again");
        self.nodes.insert(index, node);
    }

    /// The third member, whoever else is left.
    pub(crate) async fn restart_last(&mut self) {
        if let Some(node) = self.nodes.pop() {
            node.shutdown().await;
        }
        self.nodes.push(Node::start(self.config(2)).await.expect("it starts again"));
    }

    /// Repeats packets to a member, from where they came and from elsewhere. It must refuse each.
    pub(crate) async fn refuses_all(&self, index: usize, packets: &[Packet], what: &str) {
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
    pub(crate) async fn has_counted(&self, index: usize) {
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

/// What had been said, and what of it members had counted, when somebody looked.
pub(crate) struct Mark {
    passed: usize,
    pub(crate) sessions: Vec<Counters>,
}

impl Arena {
    /// Looks when nobody has greeted for a while, so that no session is about to begin by what was
    /// said before.
    pub(crate) async fn mark(&self) -> Mark {
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

    /// What came by since then.
    pub(crate) fn since(&self, mark: &Mark) -> Vec<Packet> {
        self.proxy.record().split_off(mark.passed)
    }

    /// A peer that was silent for a while is rightly greeted anew. A session begins with who has
    /// greeted, or by the first words of another member that was welcomed: whatever else began, an
    /// attacker did.
    pub(crate) fn only_members_began(&self, mark: &Mark, index: usize, now: &Counters) {
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
pub(crate) struct Vigil {
    thread: JoinHandle<(u64, Duration)>,
    over: Arc<AtomicBool>,
}

impl Vigil {
    pub(crate) fn keep(tenure: Tenure) -> Self {
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
    pub(crate) async fn kept(self, arena: &Arena, tenure: &Tenure) {
        let before = arena.status(0).await.tally.renewals;
        tokio::time::sleep(arena.cluster.lease * 2).await;
        self.over.store(true, Relaxed);
        let (denied, hole) = self.thread.join().expect("it does not panic");
        println!("the longest time in which a thread that wanted to was not run: {hole:?}");
        let tally = arena.status(0).await.tally;
        assert_eq!(denied, 0, "it did not lead when it was asked; lost {} times", tally.terms_lost);
        assert!(tenure.is_leader());
        assert!(tally.renewals > before, "it renews no more");
        assert_eq!((tally.terms_won, tally.terms_lost), (1, 0));
    }
}

/// What came back to the attacker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answers {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    pub(crate) longest: usize,
}

/// Sockets on addresses that are nobody's.
pub(crate) struct Forged {
    sockets: Vec<UdpSocket>,
    turn: AtomicU64,
    asked: AtomicU64,
}

impl Forged {
    /// Each in another part of the network.
    pub(crate) fn open(count: u16) -> Self {
        let open = |index: u16| {
            let [high, low] = (index + 256).to_be_bytes();
            let socket =
                UdpSocket::bind((Ipv4Addr::new(127, high, low, 1), 0)).expect("all of 127/8 is here");
            socket.set_nonblocking(true).expect("it is a socket");
            socket
        };
        Self { sockets: (0..count).map(open).collect(), turn: AtomicU64::new(0), asked: AtomicU64::new(0) }
    }

    pub(crate) fn send(&self, to: SocketAddr, bytes: &[u8]) {
        let turn = usize::try_from(self.turn.fetch_add(1, Relaxed)).expect("64 bits");
        if self.sockets[turn % self.sockets.len()].send_to(bytes, to).is_ok() {
            self.asked.fetch_add(bytes.len() as u64, Relaxed);
        }
    }

    /// The bytes that were sent, and what came back since this was last called.
    pub(crate) fn tally(&self) -> (u64, Answers) {
        let mut answers = Answers::default();
        let mut buffer = [0; 2048];
        for socket in &self.sockets {
            while let Ok(length) = socket.recv(&mut buffer) {
                answers.count += 1;
                answers.bytes += length;
                answers.longest = answers.longest.max(length);
            }
        }
        (self.asked.load(Relaxed), answers)
    }
}

/// A thread that sends as fast as it can.
pub(crate) struct Flood {
    thread: JoinHandle<(u64, Answers)>,
    over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
}

impl Flood {
    /// `next` makes the datagram of that number.
    pub(crate) fn start(
        forged: Forged,
        mut next: impl FnMut(u64) -> (SocketAddr, Vec<u8>) + Send + 'static,
    ) -> Self {
        let (over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (end, count) = (over.clone(), sent.clone());
        let thread = thread::spawn(move || {
            let mut all = Answers::default();
            let mut drain = |forged: &Forged| {
                let (asked, answers) = forged.tally();
                all.count += answers.count;
                all.bytes += answers.bytes;
                all.longest = all.longest.max(answers.longest);
                (asked, all)
            };
            while !end.load(Relaxed) {
                let number = count.fetch_add(1, Relaxed);
                let (to, bytes) = next(number);
                forged.send(to, &bytes);
                if number % 20_000 == 0 {
                    drain(&forged);
                }
            }
            thread::sleep(Duration::from_millis(100));
            drain(&forged)
        });
        Self { thread, over, sent }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    pub(crate) fn stop(self) -> (u64, Answers) {
        self.over.store(true, Relaxed);
        self.thread.join().expect("it does not panic")
    }
}
