//! Three processes, each a member and nothing else; one leads a group, and nothing happens. This
//! program starts itself three times.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tenure::{Clock, Config, Key, Node, peers};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::numbers::at_most;

/// The first argument of a member.
pub(crate) const MEMBER: &str = "member";

const LEASE: Duration = Duration::from_secs(1);
const SETTLE: Duration = Duration::from_secs(5);
const WATCHED: Duration = Duration::from_secs(30);

/// A member: its name, its folder, the cluster's key, then name and address of all. Each line of
/// input is answered with what has gone over the network; the end of input ends it.
pub(crate) async fn be_a_member(arguments: &[&str]) {
    let [name, folder, key, members @ ..] = arguments else { panic!("too few arguments") };
    let mut config = Config::new(name, Key::Cluster(key.parse().expect("a key")));
    config.members = peers(members.chunks_exact(2).map(|pair| (pair[0], pair[1])));
    let own = config.members.iter().find(|peer| peer.name == *name).expect("it is a member");
    config.listen = vec![own.address.parse().expect("an address")];
    config.store = Some(folder.into());
    config.lease = LEASE;
    config.longest_lease = LEASE * 2;
    config.retry = Duration::from_millis(20);
    config.window = Duration::from_millis(50);
    let node = Node::start(config).await.expect("it starts");
    let tenure = if *name == "a" { Some(node.campaign("bench").await.expect("it is elected")) } else { None };
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).is_ok_and(|length| length > 0) {
        let leads = tenure.as_ref().is_some_and(|tenure| tenure.is_leader());
        let traffic = node.status().await.expect("it runs").traffic;
        println!("{leads} {} {}", traffic.datagrams_sent, traffic.bytes_sent);
        line.clear();
    }
    node.shutdown().await;
}

/// A member that runs.
struct Member {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Processor time and datagrams of a member so far.
struct Used {
    processor: Duration,
    switches: u64,
    datagrams: u64,
    bytes: u64,
    leads: bool,
}

impl Member {
    fn start(cluster: &Cluster, name: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args([MEMBER, name]).arg(cluster.path(name)).arg(cluster.key.reveal());
        for (name, address) in cluster.names.iter().zip(&cluster.addresses) {
            command.args([name, &address.to_string()]);
        }
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("this program starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        Self { process, input, output }
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.process.id())).unwrap_or_default()
    }

    /// A line of `/proc/PID/status`, as a number.
    fn status(&self, key: &str) -> u64 {
        let status = self.read("status");
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    fn used(&mut self) -> Used {
        let input = self.input.as_mut().expect("it runs");
        input.write_all(b"?\n").and_then(|()| input.flush()).expect("it listens");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words.get(index).and_then(|word| word.parse().ok()).unwrap_or(0);
        let threads =
            fs::read_dir(format!("/proc/{}/task", self.process.id())).into_iter().flatten().flatten();
        let (mut processor, mut switches) = (0, 0);
        for thread in threads {
            let name = thread.file_name();
            let id = name.to_string_lossy();
            let times = self.read(&format!("task/{id}/schedstat"));
            let mut times = times.split_whitespace().map(|word| word.parse::<u64>().unwrap_or(0));
            processor += times.next().unwrap_or(0);
            switches += times.nth(1).unwrap_or(0);
        }
        Used {
            processor: Duration::from_nanos(processor),
            switches,
            datagrams: number(1),
            bytes: number(2),
            leads: words.first() == Some(&"true"),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}

pub(crate) async fn run() {
    println!("\nan idle group of three processes, lease {LEASE:?}, watched for {WATCHED:?}");
    let cluster = Cluster::found(3, LEASE);
    let mut members: Vec<Member> = cluster.names.iter().map(|name| Member::start(&cluster, name)).collect();
    let before_settled: Vec<Used> = members.iter_mut().map(Member::used).collect();
    assert!(before_settled[0].leads, "the first answers when it leads");
    tokio::time::sleep(SETTLE).await;
    let start = Clock::boot().read().as_nanos();
    let before: Vec<Used> = members.iter_mut().map(Member::used).collect();
    tokio::time::sleep(WATCHED).await;
    let after: Vec<Used> = members.iter_mut().map(Member::used).collect();
    let seconds = Duration::from_nanos(Clock::boot().read().as_nanos() - start).as_secs_f64();
    assert!(after[0].leads, "it leads still");
    let each = |of: fn(&Used) -> f64| -> f64 {
        after.iter().map(of).sum::<f64>() - before.iter().map(of).sum::<f64>()
    };
    #[allow(clippy::cast_precision_loss, reason = "for people to read")]
    let (datagrams, bytes, switches) = (
        each(|used| used.datagrams as f64),
        each(|used| used.bytes as f64),
        each(|used| used.switches as f64),
    );
    let processor = each(|used| used.processor.as_secs_f64());
    println!("{:<44} {:>9.2} /s", "datagrams of all three", datagrams / seconds);
    println!("{:<44} {:>9.0} /s", "bytes of all three", bytes / seconds);
    println!("{:<44} {:>9.3} %", "processor time of all three, of one core", processor / seconds * 100.0);
    println!("{:<44} {:>9.1} /s", "times that a thread of them ran", switches / seconds);
    for (name, member) in cluster.names.iter().zip(&members) {
        memory(name, member);
    }
}

/// Prints the memory of a process, by kind.
fn memory(name: &str, member: &Member) {
    #[allow(clippy::cast_precision_loss, reason = "for people to read")]
    let mib = |key| member.status(key) as f64 / 1024.0;
    at_most(&format!("resident memory of {name}"), mib("VmRSS"), 10.0, " MiB");
    println!(
        "{:<44} own {:.2}, of files {:.2}, shared {:.2}; {} threads",
        "",
        mib("RssAnon"),
        mib("RssFile"),
        mib("RssShmem"),
        member.status("Threads")
    );
}
