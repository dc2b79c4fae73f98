//! Members come and go under load: a cluster of real daemons goes from three to five and back while
//! candidates lead many groups, and nobody is deposed. Afterwards the traces of all processes are
//! judged together by `tenure lab audit`.
//!
//! The full size is for a machine that has little else to do: `TENURE_FULL=1`.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use tenure::{Clock, LocalTime, Node, Role};
use tenure_testkit::binary::Binary;
use tenure_testkit::changing_cluster::ChangingCluster;
use tenure_testkit::waiting::{LIMIT, until};
use tokio::runtime::Runtime;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// The longest lease. A leader renews at half of it: one that is not run for two seconds, on a
/// machine that does much else, leads on.
const LEASE: Duration = Duration::from_secs(5);

/// How much of everything.
struct Size {
    groups: usize,
    candidates: usize,
    /// How many candidates want each group.
    rivals: usize,
    rounds: usize,
}

impl Size {
    fn chosen() -> Self {
        match std::env::var_os("TENURE_FULL") {
            Some(_) => Self { groups: 100, candidates: 5, rivals: 3, rounds: 3 },
            None => Self { groups: 20, candidates: 5, rivals: 2, rounds: 1 },
        }
    }
}

/// One term, as its leader saw it.
#[derive(Clone, Copy, Debug)]
struct Reign {
    term: u64,
    from: LocalTime,
    to: Option<LocalTime>,
}

/// The leaders of each group so far, and when they led.
#[derive(Clone)]
struct Book(Arc<Mutex<Vec<Vec<Reign>>>>);

impl Book {
    fn new(groups: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![Vec::new(); groups])))
    }

    fn begins(&self, group: usize, term: u64, now: LocalTime) {
        self.0.lock().expect("no panic")[group].push(Reign { term, from: now, to: None });
    }

    fn ends(&self, group: usize, term: u64, now: LocalTime) {
        let mut book = self.0.lock().expect("no panic");
        let reign = book[group].iter_mut().find(|reign| reign.term == term).expect("it began");
        reign.to = Some(now);
    }

    /// The term that leads each group now.
    fn terms(&self) -> Vec<Option<u64>> {
        let book = self.0.lock().expect("no panic");
        book.iter()
            .map(|reigns| reigns.iter().find(|reign| reign.to.is_none()).map(|reign| reign.term))
            .collect()
    }

    fn is_complete(&self) -> bool {
        self.terms().iter().all(Option::is_some)
    }

    /// For how long each group had no leader, after its first.
    fn gaps(&self) -> Vec<Duration> {
        let book = self.0.lock().expect("no panic");
        let gap = |reigns: &Vec<Reign>| {
            let mut sorted = reigns.clone();
            sorted.sort_by_key(|reign| reign.term);
            let between = sorted.windows(2).map(|pair| {
                let over = pair[0].to.unwrap_or(pair[1].from);
                Duration::from_nanos(pair[1].from.remaining(over).as_nanos())
            });
            between.sum()
        };
        book.iter().map(gap).collect()
    }
}

/// Candidates that want all groups.
struct Candidates {
    runtime: Runtime,
    nodes: Vec<Node>,
    book: Book,
    traces: Vec<PathBuf>,
}

impl Candidates {
    fn start(daemons: &ChangingCluster, size: &Size) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let book = Book::new(size.groups);
        let (mut nodes, mut traces) = (Vec::new(), Vec::new());
        for number in 0..size.candidates {
            let mut config = daemons.config(&format!("app{number}"), Role::Candidate);
            let trace = daemons.path(&format!("app{number}.trace"));
            config.trace = Some(trace.clone());
            traces.push(trace);
            nodes.push(runtime.block_on(Node::start(config)).expect("it starts"));
        }
        for group in 0..size.groups {
            for rival in 0..size.rivals {
                let node = nodes[(group + rival) % size.candidates].clone();
                runtime.spawn(lead(node, group, book.clone()));
            }
        }
        let candidates = Self { runtime, nodes, book, traces };
        until("a leader of every group", || candidates.book.is_complete());
        candidates
    }

    fn stop(self) -> Vec<PathBuf> {
        for node in self.nodes {
            self.runtime.block_on(node.shutdown());
        }
        self.traces
    }
}

/// Leads a group whenever that can be, and writes down when.
async fn lead(node: Node, group: usize, book: Book) {
    let clock = Clock::boot();
    let name = format!("jobs/{group}");
    while let Ok(tenure) = node.campaign(&name).await {
        let term = tenure.term().0;
        book.begins(group, term, clock.read());
        tenure.lost().await;
        book.ends(group, term, clock.read());
    }
}

/// The traces of all lives: each has a file of its own, `PATH.INCARNATION`.
fn judge(daemons: &ChangingCluster, traces: &[PathBuf]) {
    let mut files = Vec::new();
    for trace in traces {
        let (folder, name) = (trace.parent().expect("a folder"), trace.file_name().expect("a name"));
        let begins = format!("{}.", name.to_string_lossy());
        for entry in fs::read_dir(folder).expect("it is there") {
            let entry = entry.expect("it can be read");
            if entry.file_name().to_string_lossy().starts_with(&begins) {
                files.push(entry.path().display().to_string());
            }
        }
    }
    assert!(files.len() >= traces.len(), "every process has written one: {files:?}");
    let mut words = vec!["lab", "audit"];
    words.extend(files.iter().map(String::as_str));
    let output = daemons.tenure(&words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    println!("{said}");
}

#[test]
fn groups_are_led_without_a_gap_while_members_come_and_go() {
    let size = Size::chosen();
    let mut daemons = ChangingCluster::found(TENURE, 3, LEASE);
    let founders = ["n1", "n2", "n3"];
    founders.iter().for_each(|name| daemons.start(name));
    founders.iter().for_each(|name| daemons.await_ready(name));
    for name in ["n4", "n5", "n6"] {
        daemons.join(name);
        daemons.await_http(name);
    }
    let candidates = Candidates::start(&daemons, &size);
    let before = candidates.book.terms();

    let (mut first, mut spare) = ("n1", "n6");
    let (mut operations, mut epoch) = (0, 0);
    let mut change = |asked: &str, words: &[&str]| {
        daemons.await_epoch(asked, epoch);
        let url = daemons.url(asked);
        let done = daemons.json(&[&["members"], words, &["--endpoint", &url]].concat());
        epoch = done["epoch"].as_u64().expect("an epoch");
        operations += 1;
    };
    for round in 0..size.rounds {
        let address = |name: &str| daemons.udp(name);
        change("n2", &["add", "n4", &address("n4")]);
        change("n4", &["add", "n5", &address("n5")]);
        change("n3", &["replace", first, spare, &address(spare)]);
        change("n5", &["remove", "n2"]);
        change("n3", &["add", "n2", &address("n2")]);
        change("n2", &["remove", "n4"]);
        change("n3", &["remove", "n5"]);
        let longest = if round % 2 == 0 { "6s" } else { "5s" };
        change("n2", &["set", "--longest-lease", longest]);
        std::mem::swap(&mut first, &mut spare);
        let mut expected = ["n2", "n3", first];
        expected.sort_unstable();
        assert_eq!(daemons.members("n2"), expected);
    }

    let after = candidates.book.terms();
    let mut gaps = candidates.book.gaps();
    gaps.sort_unstable();
    let deposed = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    println!(
        "{operations} operations, {} groups of {} candidates: gap per group: median {:?}, max {:?}; groups with another term: {deposed}",
        size.groups,
        size.candidates,
        gaps[gaps.len() / 2],
        gaps[gaps.len() - 1]
    );
    let mut traces = candidates.stop();
    for name in ["n1", "n2", "n3", "n4", "n5", "n6"] {
        daemons.end(name, Signal::TERM);
        traces.push(daemons.path(&format!("{name}/trace")));
    }
    judge(&daemons, &traces);
    // On a machine that is busy otherwise a renewal may come late; most groups never notice
    // anything.
    assert!(gaps[gaps.len() / 2].is_zero() && gaps[gaps.len() - 1] < LIMIT, "{gaps:?}");
}

#[test]
fn nobody_is_deposed_when_one_node_after_the_other_is_rebooted() {
    let size = Size { rivals: 1, ..Size::chosen() };
    let mut daemons = ChangingCluster::found(TENURE, 3, LEASE);
    let names = ["n1", "n2", "n3"];
    names.iter().for_each(|name| daemons.start(name));
    names.iter().for_each(|name| daemons.await_ready(name));
    let candidates = Candidates::start(&daemons, &size);
    let before = candidates.book.terms();
    for name in names {
        daemons.end(name, Signal::TERM);
        daemons.forget(name);
        daemons.start(name);
        daemons.await_ready(name);
        assert!(daemons.log(name).contains("event=silent"), "it had forgotten, and kept silent");
        assert_eq!(candidates.book.terms(), before, "after {name}");
    }
    candidates.stop();
}
