//! A state of 300 MiB: its snapshot is made, sent to a member that was away, and taken up, while
//! others write. It is never in memory. The only test of its program: the memory of that is
//! measured.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tenure::log::{self, Config, Election, Hint, Log, News, Snapshot, StateError, StateMachine, Status};
use tenure::{Clock, ClusterId, ClusterKey, NodeName, peers};
use tenure_testkit::ports::free_addresses;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const NAMES: [&str; 3] = ["a", "b", "c"];

const CHUNK: usize = 1 << 20;

/// Of a snapshot.
const CHUNKS: u64 = 300;

/// How much memory may be used beside what was used before: a tenth of three snapshots, and more
/// than the log takes.
const MOST: u64 = 96 << 20;

/// Counts writes. Its snapshot is long, and its state short: what is measured is the log's own.
#[derive(Default)]
struct Wide(u64);

fn chunk(number: u64) -> Vec<u8> {
    vec![number.to_le_bytes()[0]; CHUNK]
}

impl StateMachine for Wide {
    fn apply(&mut self, _index: u64, _write: &[u8]) -> Vec<u8> {
        self.0 += 1;
        Vec::new()
    }
    fn snapshot(&self) -> Snapshot {
        let count = self.0;
        Snapshot::streamed(move |to| {
            to.write_all(&count.to_be_bytes())?;
            (0..CHUNKS).try_for_each(|number| to.write_all(&chunk(number)))
        })
    }
    fn restore(&mut self, from: &mut dyn BufRead) -> Result<(), StateError> {
        let (mut count, mut found) = ([0; 8], vec![0; CHUNK]);
        from.read_exact(&mut count)?;
        for number in 0..CHUNKS {
            from.read_exact(&mut found)?;
            if found != chunk(number) {
                return Err(format!("chunk {number} is another one").into());
            }
        }
        self.0 = u64::from_be_bytes(count);
        if from.read(&mut [0])? > 0 { Err("it goes on".into()) } else { Ok(()) }
    }
}

async fn within<T>(what: &str, wait: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(300), wait).await.unwrap_or_else(|_| panic!("{what}: not in time"))
}

async fn until(what: &str, log: &Log<Wide>, is: impl Fn(&Status) -> bool) {
    within(what, async {
        while !is(&log.status().await.unwrap()) {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

fn config(folder: &Path, name: &str, ports: &[String], cluster: ClusterId, key: &ClusterKey) -> Config {
    let mut config = Config::new("wide", name, cluster, key.clone());
    config.members = peers(NAMES.into_iter().zip(ports.iter().map(String::as_str)));
    let own = NAMES.iter().position(|other| *other == name).unwrap();
    config.listen = Some(ports[own].parse().unwrap());
    config.folder = folder.join(name);
    (config.snapshot_every, config.keep) = (300, 5);
    config
}

fn now() -> Duration {
    Duration::from_nanos(Clock::boot().read().as_nanos())
}

/// The most memory that this process has used since it was last asked to forget that, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// Writes until it is told to stop. Returns how many, and how long the longest took.
async fn write(log: Log<Wide>, stop: Arc<AtomicBool>) -> (u64, Duration) {
    let (mut count, mut longest) = (0, Duration::ZERO);
    while !stop.load(Relaxed) {
        let begun = now();
        log.propose(vec![0; 64]).await.unwrap();
        (count, longest) = (count + 1, longest.max(now() - begun));
    }
    (count, longest)
}

#[tokio::test]
async fn a_state_of_300_mib_gets_to_a_member_that_was_away_and_never_is_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (cluster, key) = (ClusterId::draw(), ClusterKey::generate());
    let ports: Vec<String> = free_addresses(3).iter().map(ToString::to_string).collect();
    let configs = NAMES.map(|name| config(dir.path(), name, &ports, cluster, &key));
    configs.iter().for_each(|config| log::found(config).unwrap());
    let hint = watch::channel(Hint { leader: Some(NodeName::new("a").unwrap()), epoch: 0 }).0;
    let open =
        |at: usize| Log::open(&configs[at], Election::Told(hint.subscribe()), Wide::default()).unwrap();
    let (a, b) = (open(0), open(1));
    within("a write", a.propose(vec![0])).await.unwrap();
    forget_peak();
    let before = peak();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..4).map(|at| tokio::spawn(write([&a, &b][at % 2].clone(), stop.clone()))).collect();
    until("a snapshot of a", &a, |status| status.forgotten > 0).await;
    until("a snapshot of b", &b, |status| status.forgotten > 0).await;
    let made = peak() - before;
    let written = a.status().await.unwrap().applied;
    let c = open(2);
    let mut heard = c.subscribe();
    let began = now();
    let upto = within("the snapshot at c", async {
        loop {
            if let Some(News::Restored { upto }) = heard.next().await {
                return upto;
            }
        }
    })
    .await;
    let took = now() - began;
    let meanwhile = a.status().await.unwrap().applied - written;
    stop.store(true, Relaxed);
    let (mut count, mut longest) = (0, Duration::ZERO);
    for writer in writers {
        let (writes, slowest) = within("a writer", writer).await.unwrap();
        (count, longest) = (count + writes, longest.max(slowest));
    }
    let used = peak() - before;
    println!(
        "300 MiB: memory {} MiB while made, {} MiB altogether; there after {took:?}, up to {upto}, \
         and {meanwhile} writes meanwhile; {count} writes, the longest {longest:?}",
        made >> 20,
        used >> 20
    );
    assert!(meanwhile > 0, "the others go on");
    assert!(used < MOST, "{} MiB", used >> 20);
    assert_eq!(within("a read", c.read(|state| state.0)).await.unwrap(), count + 1);
    within("the end", c.shutdown()).await;
    let c = open(2);
    assert_eq!(within("a read", c.read(|state| state.0)).await.unwrap(), count + 1, "it has kept it");
}
