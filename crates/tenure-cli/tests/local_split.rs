//! A real cluster is split, and mended: five processes, each on a host of its own, in a group that
//! is strong and local under one name.
//!
//! The members record what they do; the laboratory's properties judge it, and it is drawn.
//! Needs root, `ip` and `nft`: where namespaces cannot be made, nothing is checked, and that is
//! said.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tenure::{Clock, ClusterId, ClusterKey, Config, Key, Local, Locality, Node, Term, peers};
use tenure_proto::NodeId;
use tenure_proto::local::Event as Said;
use tenure_proto::strong::Event;
use tenure_proto::trace::{Line, LocalStart, Reader, What};
use tenure_testkit::namespaces::{Net, address};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const GROUP: &str = "lights";
const LEASE: Duration = Duration::from_secs(1);
/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Assumptions that also a busy machine keeps to.
fn easy() -> Locality {
    let mut how = Locality::default();
    how.delay = Duration::from_millis(100);
    how.hole = Duration::from_millis(250);
    how
}

fn config(index: usize, dir: &Path, key: &ClusterKey) -> Config {
    let places: Vec<String> = (1..=5).map(|host| format!("{}:4700", address(host))).collect();
    let mut config = Config::new(NAMES[index], Key::Cluster(key.clone()));
    config.members = peers(NAMES.into_iter().zip(places.iter().map(String::as_str)));
    config.listen = vec![places[index].parse().expect("an address")];
    config.store = Some(dir.join(NAMES[index]));
    config.trace = Some(dir.join(format!("{}.trace", NAMES[index])));
    config.lease = LEASE;
    config.longest_lease = LEASE * 2;
    config
}

/// The body of a member: does nothing unless it was started as one.
#[test]
fn a_member_of_the_split() {
    let Ok(index) = std::env::var("SPLIT_MEMBER") else { return };
    let index: usize = index.parse().expect("a number");
    let dir = PathBuf::from(std::env::var("SPLIT_DIR").expect("a folder"));
    let key = std::env::var("SPLIT_KEY").expect("a key").parse().expect("a key");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(member(config(index, &dir, &key)));
}

/// Campaigns when it is told to, and ends when nobody tells it anything any more.
async fn member(config: Config) {
    let node = Node::start(config).await.expect("it starts");
    let local = node.local(GROUP, &easy()).await.expect("a member takes part");
    tokio::spawn(tell(local));
    let (told, mut orders) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| told.send(line))
    });
    println!("\nready");
    while orders.recv().await.is_some() {
        let node = node.clone();
        tokio::spawn(async move {
            while let Ok(tenure) = node.campaign(GROUP).await {
                println!("\nstrong");
                tenure.lost().await;
            }
        });
    }
    node.shutdown().await;
}

/// A line for each partition in which this process is.
async fn tell(mut local: Local) {
    while let Ok(partition) = local.changed().await {
        if let Some(partition) = partition {
            let members: Vec<String> = partition.members.iter().map(ToString::to_string).collect();
            println!("\npartition {} {}", partition.leader, members.join(","));
        }
    }
}

/// A member, as the test has it.
struct Member {
    child: Child,
    orders: Option<ChildStdin>,
}

/// All members, and what they say.
struct Site {
    members: Vec<Member>,
    said: Receiver<(usize, String)>,
    /// Each member's last word about its partition, and whether it has led strongly.
    partitions: Vec<String>,
    strong: Vec<usize>,
    ready: usize,
}

impl Site {
    fn start(net: &Net, dir: &Path, key: &ClusterKey) -> Self {
        let (tell, said) = channel();
        let members = (0..5).map(|index| start_member(net, index, dir, key, tell.clone())).collect();
        Self { members, said, partitions: vec![String::new(); 5], strong: vec![0; 5], ready: 0 }
    }

    fn campaign(&mut self, index: usize) {
        let orders = self.members[index].orders.as_mut().expect("it runs");
        writeln!(orders, "campaign").expect("it listens");
    }

    /// Waits until it is as wanted.
    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let end = now() + u64::try_from(SOON.as_nanos()).expect("not that long");
        while !is_so(self) {
            let left = Duration::from_nanos(end.saturating_sub(now()));
            let Ok((who, line)) = self.said.recv_timeout(left) else {
                panic!("{what}: not within {SOON:?}; {:?}, strong {:?}", self.partitions, self.strong)
            };
            match line.split_once(' ') {
                Some(("partition", partition)) => partition.clone_into(&mut self.partitions[who]),
                _ if line == "strong" => self.strong[who] += 1,
                _ if line == "ready" => self.ready += 1,
                _ => {}
            }
        }
    }

    /// Waits until some are a partition of their own: they say the same, and that it is they. The
    /// drawn ids decide which of them leads it.
    fn together(&mut self, which: &[usize]) {
        let members: Vec<&str> = which.iter().map(|index| NAMES[*index]).collect();
        let (first, wanted) = (which[0], format!(" {}", members.join(",")));
        self.until(&wanted, |site| {
            let same = |index: &usize| site.partitions[*index] == site.partitions[first];
            site.partitions[first].ends_with(&wanted) && which.iter().all(same)
        });
    }

    /// Ends all members in good order.
    fn end(mut self) {
        self.members.iter_mut().for_each(|member| member.orders = None);
        for member in &mut self.members {
            assert!(member.child.wait().expect("it ends").success());
        }
    }
}

fn start_member(
    net: &Net,
    index: usize,
    dir: &Path,
    key: &ClusterKey,
    tell: Sender<(usize, String)>,
) -> Member {
    let host = u8::try_from(index + 1).expect("few hosts");
    let program = std::env::current_exe().expect("this program");
    let mut command = net.command(host, program);
    command.args(["--exact", "a_member_of_the_split", "--nocapture"]);
    command.env("SPLIT_MEMBER", index.to_string()).env("SPLIT_DIR", dir).env("SPLIT_KEY", key.reveal());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let (orders, lines) = (child.stdin.take(), child.stdout.take().expect("it speaks"));
    std::thread::spawn(move || {
        BufReader::new(lines).lines().map_while(Result::ok).try_for_each(|line| tell.send((index, line)))
    });
    Member { child, orders }
}

fn now() -> u64 {
    Clock::boot().read().as_nanos()
}

/// The members' records, as files and as lines.
struct Written {
    paths: Vec<PathBuf>,
    lines: Vec<(usize, Line)>,
}

impl Written {
    fn read(dir: &Path) -> Self {
        let paths: Vec<PathBuf> = NAMES.iter().map(|name| dir.join(format!("{name}.trace.1"))).collect();
        let mut lines = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let bytes = std::fs::read(path).expect("a trace");
            let read = Reader::new(&bytes).map(|entry| (index, entry.expect("a line").1));
            lines.extend(read);
        }
        Self { paths, lines }
    }

    fn start(&self) -> &LocalStart {
        let starts = self.lines.iter().find_map(|(_, line)| match &line.what {
            What::LocalStart(start) => Some(start),
            _ => None,
        });
        starts.expect("a local group")
    }

    /// When one of `which` first led exactly them, after an instant.
    fn led(&self, which: &[usize], after: u64) -> u64 {
        let members = &self.start().members;
        let node = |index: usize| -> NodeId {
            let of = |(who, line): &(usize, Line)| match &line.what {
                What::Start(start) if *who == index => Some(start.life.node),
                _ => None,
            };
            self.lines.iter().find_map(of).expect("a life")
        };
        let place =
            |index: &usize| members.iter().position(|member| *member == node(*index)).expect("a member");
        let wanted = which.iter().map(place).collect();
        let leads = |(who, line): &(usize, Line)| match &line.what {
            What::Local { event: Said::Leads { lease, .. }, .. } if lease.supporters == wanted => {
                (which.contains(who) && line.own.as_nanos() > after).then_some(line.own.as_nanos())
            }
            _ => None,
        };
        self.lines.iter().filter_map(leads).min().expect("they had a leader")
    }

    /// When members held or renewed a strong lease, between two instants.
    fn strong(&self, which: &[usize], from: u64, to: u64) -> usize {
        let leads = |(who, line): &&(usize, Line)| {
            let at = line.own.as_nanos();
            which.contains(who)
                && (from..to).contains(&at)
                && matches!(line.what, What::Event(Event::Leads { .. }))
        };
        self.lines.iter().filter(leads).count()
    }
}

fn audit(paths: &[PathBuf], more: &[&str]) -> (bool, serde_json::Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(["lab", "audit", "-o", "json"]).args(paths).args(more);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (output.status.success(), json)
}

fn status<'a>(report: &'a serde_json::Value, name: &str) -> &'a str {
    let all = report["properties"].as_array().expect("properties");
    let found = all.iter().find(|property| property["name"] == name);
    found.and_then(|property| property["status"].as_str()).unwrap_or("missing")
}

#[test]
fn each_side_of_a_split_has_its_leader_in_time_and_the_strong_one_stays_with_the_quorum() {
    let net = match Net::make(5) {
        Ok(net) => net,
        Err(error) => return eprintln!("not checked: namespaces cannot be made here: {error}"),
    };
    let dir = tempfile::tempdir().expect("a folder");
    let (cluster, key) = (ClusterId::draw(), ClusterKey::generate());
    for index in 0..5 {
        Node::found(&config(index, dir.path(), &key), cluster, Term(1000)).expect("it is founded");
    }
    let mut site = Site::start(&net, dir.path(), &key);
    site.until("all run", |site| site.ready == 5);
    site.together(&[0, 1, 2, 3, 4]);
    site.campaign(0);
    site.until("a leads strongly", |site| site.strong[0] > 0);
    (1..5).for_each(|index| site.campaign(index));

    (1..=2).for_each(|host| net.part(host, 3..=5).expect("it is cut"));
    (3..=5).for_each(|host| net.part(host, 1..=2).expect("it is cut"));
    let cut = now();
    site.together(&[0, 1]);
    site.together(&[2, 3, 4]);
    site.until("the quorum has a strong leader", |site| site.strong[2..].iter().sum::<usize>() > 0);
    let healing = now();
    (1..=5).for_each(|host| net.heal(host));
    let healed = now();
    site.together(&[0, 1, 2, 3, 4]);
    site.end();

    let written = Written::read(dir.path());
    let start = written.start();
    let kappa = start.kappa_leader.max(start.kappa_support).as_nanos();
    for (which, since) in [(&[0, 1][..], cut), (&[2, 3, 4], cut), (&[0, 1, 2, 3, 4], healed)] {
        let took = written.led(which, since) - since;
        let millis = |nanos: u64| nanos / 1_000_000;
        eprintln!("{which:?}: a leader of all after {} ms; kappa is {} ms", millis(took), millis(kappa));
        assert!(took <= kappa, "{which:?}: {took} ns, but kappa is {kappa} ns");
    }
    let over = cut + u64::try_from(LEASE.as_nanos()).expect("short");
    assert_eq!(written.strong(&[0, 1], over, healing), 0, "the few have no strong leader");
    assert!(written.strong(&[2, 3, 4], cut, healing) > 0);

    let svg = dir.path().join("split.svg");
    let (holds, report) = audit(&written.paths, &["--svg", svg.to_str().expect("a name")]);
    assert!(holds, "{report:#}");
    assert_eq!(report["violations"], serde_json::json!([]));
    assert_eq!(status(&report, "support-one"), "holds");
    assert_eq!(status(&report, "two-partitions"), "seen", "the split was put to the test");
    assert_eq!(report["counts"]["lines-unknown"], 0);
    let drawn = std::fs::read_to_string(&svg).expect("a drawing");
    assert!(drawn.contains("leads a b locally") && drawn.contains("leads c d e locally"));
    if let Ok(keep) = std::env::var("SPLIT_KEEP") {
        written.paths.iter().chain([&svg]).for_each(|path| {
            let name = path.file_name().expect("a name");
            std::fs::copy(path, Path::new(&keep).join(name)).expect("it is kept");
        });
    }
}
