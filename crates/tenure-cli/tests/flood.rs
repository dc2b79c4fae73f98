//! A key that brings up very many groups, another that asks for very many names, and a reader of
//! HTTP that does the same, at real daemons. An unrelated leader keeps its lease all the time, HTTP
//! answers, and members give the memory back.
//!
//! 5,000 groups and names of each kind, 2,000 names over HTTP; `TENURE_FLOOD_GROUPS=100000` for as
//! many as the attack had at first. The figures are printed:
//! `cargo test -p tenure-cli --test flood -- --nocapture`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tenure::{CampaignError, Claims, Clock, Config, Key, KeyKind, Names, Node, Role, Scope, Tenure};
use tenure_testkit::binary::Binary;
use tenure_testkit::http_cluster::{HttpCluster, get};
use tokio::task::JoinSet;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// How many campaigns are under way at a time.
const AT_ONCE: usize = 256;

/// Memory that a member may keep after a flood, in KiB: pages that the allocator cannot return, and
/// buffers of sockets and HTTP.
const REST: u64 = 12 << 10;

fn size() -> usize {
    std::env::var("TENURE_FLOOD_GROUPS").ok().and_then(|text| text.parse().ok()).unwrap_or(5_000)
}

fn now() -> Duration {
    Duration::from_nanos(Clock::boot().read().as_nanos())
}

/// A process with a key of its own.
fn outsider(daemons: &HttpCluster, name: &str, kind: KeyKind, scope: &str) -> Config {
    let (names, scope) = (Names::new(name).expect("a name"), Scope::new(scope).expect("a scope"));
    let (claims, role) = match kind {
        KeyKind::Observer => (Claims::observer(names, scope), Role::Observer),
        _ => (Claims::candidate(names, scope), Role::Candidate),
    };
    let mut config = daemons.cluster.outsider(name, role);
    config.key = Key::Scoped(daemons.cluster.key.derive(daemons.cluster.id, claims));
    config.lease = Duration::from_secs(4);
    config
}

/// The resident memory of each daemon, in KiB.
fn resident(daemons: &HttpCluster) -> Vec<u64> {
    let of = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("Linux has it");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    };
    daemons.children.iter().flatten().map(|child| of(child.id())).collect()
}

/// The groups that a daemon lists.
fn listed(daemons: &HttpCluster, index: usize) -> u64 {
    let answer = get(daemons.http[index], "/v1/groups?limit=1").expect("it answers");
    let body = answer.split_once("\r\n\r\n").expect("a body").1;
    let groups: serde_json::Value = serde_json::from_str(body).expect("JSON");
    groups["total"].as_u64().expect("a number")
}

/// How many groups a daemon has forgotten.
fn forgotten(daemons: &HttpCluster, index: usize) -> u64 {
    let metrics = get(daemons.http[index], "/metrics").expect("it answers");
    let line = metrics.lines().find(|line| line.starts_with("tenure_groups_forgotten_total"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).expect("a number")
}

/// Asks the leader all the time whether it leads, and a daemon for its metrics.
struct Vigil {
    over: Arc<AtomicBool>,
    slowest: Arc<AtomicU64>,
    threads: Vec<thread::JoinHandle<u64>>,
}

impl Vigil {
    fn keep(tenure: Tenure, http: std::net::SocketAddr) -> Self {
        let (over, slowest) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (end, ended, slow) = (over.clone(), over.clone(), slowest.clone());
        let asks = thread::spawn(move || {
            let mut denied = 0;
            while !end.load(Relaxed) {
                denied += u64::from(!tenure.is_leader());
                thread::sleep(Duration::from_micros(500));
            }
            denied
        });
        let reads = thread::spawn(move || {
            let mut failed = 0;
            while !ended.load(Relaxed) {
                let at = now();
                let answer = get(http, "/metrics").unwrap_or_default();
                failed += u64::from(!answer.starts_with("HTTP/1.1 200"));
                slow.fetch_max(u64::try_from((now() - at).as_millis()).unwrap_or(u64::MAX), Relaxed);
                thread::sleep(Duration::from_millis(20));
            }
            failed
        });
        Self { over, slowest, threads: vec![asks, reads] }
    }

    fn kept(self) {
        self.over.store(true, Relaxed);
        let failed: Vec<u64> =
            self.threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect();
        println!("the slowest answer of /metrics took {} ms", self.slowest.load(Relaxed));
        assert_eq!(
            failed,
            [0, 0],
            "times at which the leader did not lead, and at which HTTP did not answer"
        );
    }
}

/// Campaigns for groups of its own, one after the other, and gives each back at once. Says how many
/// were won.
async fn campaigns(config: Config, count: usize) -> usize {
    let evil = Arc::new(Node::start(config).await.expect("it starts"));
    let (mut tasks, mut won) = (JoinSet::new(), 0);
    for number in 0..count {
        if tasks.len() >= AT_ONCE {
            won += usize::from(tasks.join_next().await.is_some_and(|won| won.unwrap_or(false)));
        }
        let evil = evil.clone();
        tasks.spawn(async move {
            match evil.campaign(&format!("evil/{number}")).await {
                Ok(tenure) => {
                    tenure.resign();
                    true
                }
                Err(CampaignError::TooManyGroups { .. }) => false,
                Err(error) => panic!("{error}"),
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        won += usize::from(ended.unwrap_or(false));
    }
    won
}

/// Waits until each member has forgotten so many groups more than before, and lists one.
fn forget(daemons: &HttpCluster, before: &[u64], count: u64, after: Duration) {
    let patience = after * 2 + Duration::from_secs(60);
    for (index, before) in before.iter().enumerate() {
        let end = now() + patience;
        while forgotten(daemons, index) < before + count || listed(daemons, index) > 1 {
            let (forgotten, listed) = (forgotten(daemons, index), listed(daemons, index));
            assert!(now() < end, "{index}: {forgotten} forgotten of {before} + {count}, {listed} listed");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_groups_and_names_costs_no_other_leader_its_lease_and_is_given_back() {
    let count = size();
    let all = u64::try_from(count).expect("a number");
    // All of them are known at a time: they are forgotten when the last was led.
    let forget_after = Duration::from_secs(2 + all / 1000);
    let limits =
        format!("[limits]\ngroups_per_key = {count}\nforget_after = \"{}s\"\n", forget_after.as_secs());
    let daemons = HttpCluster::start(TENURE, 3, &limits);
    let honest =
        Node::start(outsider(&daemons, "app", KeyKind::Candidate, "app/*")).await.expect("it starts");
    let tenure = honest.campaign("app/main").await.expect("it is elected");
    let vigil = Vigil::keep(tenure.clone(), daemons.http[0]);
    let before = resident(&daemons);

    let at = now();
    let won = campaigns(outsider(&daemons, "evil", KeyKind::Candidate, "evil/*"), count).await;
    println!(
        "{won} of {count} groups were led in {:?}; RSS in KiB: {before:?}, then {:?}",
        now() - at,
        resident(&daemons)
    );
    assert_eq!(won, count);
    forget(&daemons, &[0; 3], all, forget_after);
    println!("all are forgotten after {:?}: {:?}", now() - at, resident(&daemons));

    let (at, counted): (_, Vec<u64>) = (now(), (0..3).map(|index| forgotten(&daemons, index)).collect());
    let nosy = Node::start(outsider(&daemons, "nosy", KeyKind::Observer, "*")).await.expect("it starts");
    let mut watches = Vec::new();
    for number in 0..count {
        watches.push(nosy.observe(&format!("name/{number}")).await.expect("it may try"));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("{count} names were asked for in {:?}: {:?}", now() - at, resident(&daemons));
    drop(watches);
    nosy.shutdown().await;
    // A key watches a thousand groups at once; each of the others is refused and not kept.
    forget(&daemons, &counted, all.min(1000), forget_after);
    println!("all are forgotten after {:?}: {:?}", now() - at, resident(&daemons));

    let (at, counted): (_, Vec<u64>) = (now(), (0..3).map(|index| forgotten(&daemons, index)).collect());
    let (http, names) = (daemons.http[0], all.min(2_000));
    let read = (0..4).map(|part| {
        thread::spawn(move || {
            let names = (part..names).step_by(4).map(|number| format!("/v1/groups/http-{number}"));
            names
                .filter(|path| get(http, path).is_some_and(|answer| answer.starts_with("HTTP/1.1 200")))
                .count()
        })
    });
    let read: Vec<_> = read.collect();
    let read: usize = read.into_iter().map(|thread| thread.join().expect("it does not panic")).sum();
    println!("{read} names were read over HTTP in {:?}: {:?}", now() - at, resident(&daemons));
    assert!(read > 1000, "{read}");
    // A daemon goes on watching the last thousand for a minute.
    let rest = u64::try_from(read.saturating_sub(1000)).expect("a number");
    forget(&daemons, &counted, rest, forget_after);
    println!("all but a thousand are forgotten after {:?}: {:?}", now() - at, resident(&daemons));

    let after = resident(&daemons);
    for (before, after) in before.iter().zip(&after) {
        assert!(*after < before + REST, "{before} KiB before, {after} KiB after");
    }
    vigil.kept();
    assert!(tenure.is_leader());
}
