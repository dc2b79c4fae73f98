//! Clocks that stop, step and drift, turned by hand; and restarts under another clock, by time
//! namespaces.
//!
//! Within the bound nobody ever leads beside another. Beyond it two may, and this shows that they
//! do: until the watchdog has noticed, within the time that it states, only the fence protects. One
//! thread asks all guards, as fast as it can: a guard that says yes before and after another has
//! said yes led at the same instant.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenure::fence::{MemoryFence, Rule};
use tenure::{Clock, ClockBound, Hand, Loss, MemberChange, Node, Progress, Stopped, Tenure, WeakElection};
use tenure_testkit::cluster::{Cluster, renewed};
use tenure_testkit::ports::free_addresses;
use tenure_testkit::proxy::{Proxy, honest};
use tenure_testkit::waiting::{now, within};

const LEASE: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_secs(60);
/// Where a leader is to stay: it renews at half of it, also if it is not run for two seconds.
const LONGER: Duration = Duration::from_secs(5);
/// The time after which the watchdog has looked at the own rate, on an idle machine.
const WATCHED: Duration = Duration::from_millis(1500 + 500);
/// How often a clock is turned back a little. A reader that comes only when it is where it was
/// again sees no step.
const STEPS: usize = 20;

/// The judge's counts.
#[derive(Clone, Copy, Debug, Default)]
struct Verdict {
    samples: u64,
    /// Two led at one instant.
    overlaps: u64,
    admitted: u64,
    /// Edicts that the fence refused.
    stale: u64,
}

/// One thread that asks all guards, and brings their edicts to a fence.
struct Judge {
    guards: Arc<Mutex<Vec<Tenure>>>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<Verdict>,
}

impl Judge {
    fn sit() -> Self {
        let (guards, over) = (Arc::new(Mutex::new(Vec::<Tenure>::new())), Arc::new(AtomicBool::new(false)));
        let (all, end) = (guards.clone(), over.clone());
        let thread = thread::spawn(move || {
            let fence = MemoryFence::new(Rule::ByTerm);
            let mut seen = Verdict::default();
            while !end.load(Relaxed) {
                look(&all.lock().expect("nobody panics with it"), &fence, &mut seen);
                thread::sleep(Duration::from_micros(100));
            }
            seen
        });
        Self { guards, over, thread }
    }

    fn hear(&self, tenure: &Tenure) {
        self.guards.lock().expect("nobody panics with it").push(tenure.clone());
    }

    fn rise(self) -> Verdict {
        self.over.store(true, Relaxed);
        let seen = self.thread.join().expect("it does not panic");
        println!("{seen:?}");
        assert!(seen.samples > 100, "it looked");
        seen
    }
}

fn look(guards: &[Tenure], fence: &MemoryFence<&'static str, u64>, seen: &mut Verdict) {
    seen.samples += 1;
    for (index, one) in guards.iter().enumerate() {
        let others = guards.iter().skip(index + 1);
        let both = |other: &&Tenure| one.is_leader() && other.is_leader() && one.is_leader();
        seen.overlaps += others.filter(both).count() as u64;
    }
    for guard in guards {
        let Ok(edict) = guard.edict() else { continue };
        match fence.admit(&"resource", edict.token(), guard.term().0) {
            Ok(_) => seen.admitted += 1,
            Err(_) => seen.stale += 1,
        }
    }
}

/// Three members, each with a clock that can be turned, behind a proxy that can cut one off.
struct Hall {
    cluster: Cluster,
    real: Vec<std::net::SocketAddr>,
    proxy: Proxy,
    nodes: Vec<Node>,
    hands: Vec<Hand>,
    judge: Judge,
}

impl Hall {
    async fn open() -> Self {
        Self::with_lease(LONGER).await
    }

    async fn with_lease(lease: Duration) -> Self {
        let cluster = Cluster::found(3, lease);
        let real = free_addresses(3);
        let proxy = Proxy::start(&cluster.addresses, &real).await.expect("it listens");
        let (mut nodes, mut hands) = (Vec::new(), Vec::new());
        for (index, address) in real.iter().enumerate() {
            let (clock, hand) = Clock::by_hand();
            let mut config = cluster.member(index);
            (config.listen, config.time) = (vec![*address], clock);
            nodes.push(Node::start(config).await.expect("it starts"));
            hands.push(hand);
        }
        for node in &nodes {
            within("all are ready", SOON, node.ready()).await.expect("it runs");
        }
        // The watchdog has a past to compare with.
        tokio::time::sleep(Duration::from_millis(1300)).await;
        Self { cluster, real, proxy, nodes, hands, judge: Judge::sit() }
    }

    /// The first leads; the others want to.
    async fn led(&self) -> Tenure {
        let tenure = within("a leader", SOON, self.nodes[0].campaign("jobs")).await.expect("it is elected");
        self.judge.hear(&tenure);
        tenure
    }

    /// Somebody among the others leads, as soon as that can be.
    async fn successor(&self) -> Tenure {
        let (b, c) = (self.nodes[1].campaign("jobs"), self.nodes[2].campaign("jobs"));
        let both = async {
            tokio::select! { won = b => won, won = c => won }
        };
        let tenure = within("a successor", SOON, both).await.expect("it is elected");
        self.judge.hear(&tenure);
        tenure
    }

    /// Nothing passes between this member and the others.
    fn cut(&self, index: usize) {
        let alone = self.real[index];
        self.proxy.rule(Box::new(move |packet| {
            let cut = packet.from == alone || packet.to == alone;
            if cut { Vec::new() } else { vec![(Duration::ZERO, packet.bytes.clone())] }
        }));
    }

    /// A node has stopped because of its clock. How long that took is printed: a machine that does
    /// much else makes it longer.
    async fn stopped(&self, index: usize, since: Duration) -> String {
        let why = within("the watchdog", SOON, self.nodes[index].stopped()).await;
        println!("found after {:?}, {WATCHED:?} is usual: {why}", now() - since);
        match why {
            Stopped::Clock { reason } => reason,
            other => panic!("{other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_suspended_past_its_lease_is_over_before_it_can_act() {
    // Not long: a clock that is far ahead of all others is at fault, suspended or not.
    let lease = Duration::from_secs(1);
    let hall = Hall::with_lease(lease).await;
    let mut tenure = hall.led().await;
    while !tenure.is_leader() {
        tenure = hall.led().await; // A busy machine has deposed it.
    }
    hall.hands[0].suspend(lease + LEASE);
    assert!(!tenure.is_leader() && tenure.edict().is_err());
    let next = hall.successor().await;
    assert!(next.term() > tenure.term());
    assert_eq!(within("the loss", SOON, tenure.lost()).await, Loss::Disturbed);
    tokio::time::sleep(WATCHED).await;
    assert_eq!(hall.nodes[0].status().await.expect("a suspend is no fault").tally.clock_faults, 0);
    let seen = hall.judge.rise();
    assert_eq!((seen.overlaps, seen.stale), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_clock_steps_back_is_over_and_its_node_stops() {
    let hall = Hall::open().await;
    let tenure = hall.led().await;
    let since = now();
    hall.hands[0].back(Duration::from_secs(10));
    assert_eq!(within("the loss", SOON, tenure.lost()).await, Loss::Clock);
    assert!(!tenure.is_leader());
    assert!(hall.stopped(0, since).await.contains("went back"));
    let next = hall.successor().await;
    assert!(next.term() > tenure.term());
    let seen = hall.judge.rise();
    assert_eq!((seen.overlaps, seen.stale), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_step_back_ends_a_tenure_but_not_the_node() {
    let hall = Hall::open().await;
    let tenure = hall.led().await;
    // Each step when the last is forgotten.
    let mut lost = None;
    for _ in 0..STEPS {
        hall.hands[0].back(Duration::from_millis(40));
        lost = tokio::time::timeout(Duration::from_millis(1500), tenure.lost()).await.ok();
        if lost.is_some() {
            break;
        }
    }
    assert_eq!(lost, Some(Loss::Clock));
    assert!(!tenure.is_leader());
    tokio::time::sleep(WATCHED).await;
    let again = hall.led().await;
    assert!(again.term() > tenure.term());
    let seen = hall.judge.rise();
    assert_eq!((seen.overlaps, seen.stale), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_clock_steps_forward_is_over_and_its_node_stops() {
    let hall = Hall::open().await;
    let tenure = hall.led().await;
    let since = now();
    hall.hands[0].forward(LONGER * 4);
    assert!(!tenure.is_leader() && tenure.edict().is_err());
    hall.stopped(0, since).await;
    let next = hall.successor().await;
    assert!(next.term() > tenure.term());
    let seen = hall.judge.rise();
    assert_eq!((seen.overlaps, seen.stale), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grantor_whose_clock_steps_forward_stops_before_it_grants_again() {
    let hall = Hall::open().await;
    let tenure = hall.led().await;
    let other = hall.nodes[2].clone();
    let rival = tokio::spawn(async move { other.campaign("jobs").await });
    renewed(&hall.nodes[0], 1).await;
    let since = now();
    hall.hands[1].forward(LONGER * 4);
    hall.stopped(1, since).await;
    renewed(&hall.nodes[0], 2).await;
    assert!(tenure.is_leader() && !rival.is_finished(), "the leader has another");
    let seen = hall.judge.rise();
    assert_eq!((seen.overlaps, seen.stale), (0, 0));
}

/// The leader is cut off again and again, and led by others as soon as the grantors' clocks allow.
async fn drifting(leader: u32, grantors: u32) {
    let hall = Hall::with_lease(Duration::from_secs(3)).await;
    hall.hands[0].rate(leader);
    hall.hands[1].rate(grantors);
    hall.hands[2].rate(grantors);
    for _ in 0..5 {
        let tenure = hall.led().await;
        renewed(&hall.nodes[0], 1).await;
        assert!(tenure.is_leader(), "clocks within the bound depose nobody");
        hall.cut(0);
        let next = hall.successor().await;
        assert!(next.term() > tenure.term());
        hall.proxy.rule(honest());
        next.resign();
        hall.judge.guards.lock().expect("nobody panics with it").clear();
    }
    for node in &hall.nodes {
        let tally = node.status().await.expect("nobody was stopped").tally;
        assert_eq!((tally.clock_faults, tally.peer_clock_faults), (0, 0));
    }
    let seen = hall.judge.rise();
    assert_eq!((seen.overlaps, seen.stale), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_leader_and_fast_grantors_within_the_bound_never_overlap() {
    drifting(900_000, 1_100_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fast_leader_and_slow_grantors_within_the_bound_never_overlap() {
    drifting(1_100_000, 900_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_bound_two_lead_until_it_is_noticed_and_the_fence_refuses_one() {
    // Whether there is time for a successor before the watchdog looks is a matter of some
    // milliseconds.
    for attempt in 1..=20 {
        let hall = Hall::with_lease(LEASE).await;
        let tenure = hall.led().await;
        hall.hands[1].rate(1_100_000);
        hall.hands[2].rate(1_100_000);
        tokio::time::sleep(LEASE).await;
        let since = now();
        hall.hands[0].rate(700_000);
        hall.cut(0);
        // Side by side: how long one takes says nothing of the other.
        let (next, _) = tokio::join!(hall.successor(), hall.stopped(0, since));
        assert!(!tenure.is_leader() && next.term() > tenure.term());
        assert!(matches!(tenure.lost().await, Loss::Clock | Loss::Lapsed));
        let seen = hall.judge.rise();
        println!("attempt {attempt}: {seen:?}");
        assert!(seen.stale == 0 || seen.overlaps > 0, "the fence refuses nobody who leads alone");
        // An edict of the old after one of the new is refused. In the middle one of three looks
        // there was one of each before.
        assert!(seen.overlaps < 3 || seen.stale > 0, "the fence refuses one of two");
        if seen.stale > 0 {
            return;
        }
    }
    panic!("two never led at once for long enough to be seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_stands_still_is_noticed() {
    let hall = Hall::open().await;
    let tenure = hall.led().await;
    let since = now();
    hall.hands[0].rate(0);
    hall.stopped(0, since).await;
    assert!(!tenure.is_leader());
    drop(hall.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_of_another_kind_is_not_taken_while_nodes_run() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    within("it is ready", SOON, nodes[0].ready()).await.expect("it runs");
    let skew = MemberChange::Bound(ClockBound::Skew { bound: Duration::from_millis(10) });
    let mut changing = nodes[0].change_members(&skew).expect("it can be asked");
    let told = within("an answer", SOON, changing.next()).await;
    assert!(matches!(told, Some(Progress::Failed(_))), "{told:?}");
}

#[tokio::test]
async fn a_clock_that_does_not_fit_the_bound_is_refused() {
    let cluster = Cluster::found(1, LEASE);
    let mut config = cluster.member(0);
    config.time = Clock::real();
    let refused = Node::start(config).await.expect_err("it can be set").to_string();
    assert!(refused.contains("Clock::boot()"), "{refused}");
}

const CHILD: &str = "TENURE_CLOCKS_CHILD";

/// Not a test: a node in a process of its own, started by the test below.
#[tokio::test]
async fn child() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let mut config =
        tenure::Config::new("a", std::env::var("TENURE_CLOCKS_KEY").expect("a key").parse().expect("a key"));
    config.listen = vec!["127.0.0.1:0".parse().expect("an address")];
    config.members = tenure::peers([("a", "127.0.0.1:7400")]);
    config.store = Some(dir.into());
    config.lease = LEASE;
    config.longest_lease = LEASE * 2;
    let node = Node::start(config).await.expect("it starts");
    let silent = node.status().await.expect("it runs").silent_for;
    println!("silent {}", silent.is_some());
    let tenure = within("a leader", SOON, node.campaign("jobs")).await.expect("it is elected");
    assert!(tenure.is_leader());
    std::process::exit(0); // Without a word: the grant stands.
}

/// Starts a node in a time namespace of its own, or in this one; says whether it was silent at its
/// start.
fn silent(cluster: &Cluster, boot_offset: Option<i64>) -> bool {
    let exe = std::env::current_exe().expect("this test");
    let mut command = match boot_offset {
        None => Command::new(&exe),
        Some(seconds) => {
            let mut unshare = Command::new("unshare");
            unshare.args(["--time", "--boottime", &seconds.to_string()]).arg(&exe);
            unshare
        }
    };
    command.args(["--exact", "child", "--nocapture"]);
    command.env(CHILD, cluster.path("a")).env("TENURE_CLOCKS_KEY", cluster.key.reveal());
    let output = command.output().expect("unshare, of util-linux, is there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = text.lines().find_map(|line| line.split_once("silent ").map(|(_, told)| told.to_owned()));
    match told.as_deref() {
        Some("true") => true,
        Some("false") => false,
        _ => panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)),
    }
}

#[test]
fn grants_are_remembered_by_the_clock_that_they_were_given_by_and_no_other() {
    let cluster = Cluster::found(1, LEASE);
    assert!(!silent(&cluster, None), "it was founded just now");
    assert!(!silent(&cluster, None), "the same clock");
    assert!(silent(&cluster, Some(1000)), "another clock, far ahead");
    assert!(!silent(&cluster, Some(1000)), "another namespace with the same clock");
    assert!(silent(&cluster, Some(-20)), "a clock that is behind");
    assert!(silent(&cluster, None), "what was remembered last is of another clock");
    assert!(!silent(&cluster, None));
}

#[tokio::test]
async fn a_campaign_that_is_asked_for_while_the_clock_is_behind_is_answered() {
    let cluster = Cluster::found(3, LONGER);
    let (nodes, hands) = cluster.start_by_hand(WeakElection::default()).await;
    // Its machine has seen readings up to now.
    let first = within("a leader", SOON, nodes[0].campaign("first")).await.expect("it leads");
    hands[0].back(Duration::from_millis(40));
    let second = within("an answer", SOON, nodes[0].campaign("second")).await.expect("it leads");
    assert!(second.is_leader() && !first.is_leader(), "nothing lasts over a step back");
}
