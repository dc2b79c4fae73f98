//! One process: a node, its local group, and a line for each thing that its log says of it.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tenure::{Clock, Config, Key, Locality, Node, peers};
use tenure_testkit::cluster::Cluster;

/// The lease of strong groups; there are none.
pub(crate) const LEASE: Duration = Duration::from_secs(5);

/// The first argument of a member.
pub(crate) const MEMBER: &str = "member";

/// Something that happened in a member, and when on the boot clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sign {
    pub(crate) at: u64,
    pub(crate) what: What,
}

/// An event of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It asks, holds so many for alive, and is answered along the tree or not.
    Asks { alive: u64, collated: bool },
    /// It leads so many, by a round that took so many nanoseconds.
    Leads { took: u64, supporters: u64 },
    /// So many datagrams have left it and come to it.
    Traffic { sent: u64, received: u64 },
}

/// Writes the two events of local groups to standard output.
struct Signs;

#[derive(Default)]
struct Fields {
    alive: Option<u64>,
    collated: bool,
    took: Option<u64>,
    supporters: Option<u64>,
}

impl tracing::field::Visit for Fields {
    fn record_u64(&mut self, field: &tracing::field::Field, value: u64) {
        match field.name() {
            "alive" => self.alive = Some(value),
            "took_ns" => self.took = Some(value),
            "supporters" => self.supporters = Some(value),
            _ => {}
        }
    }
    fn record_bool(&mut self, field: &tracing::field::Field, value: bool) {
        self.collated |= field.name() == "collated" && value;
    }
    fn record_debug(&mut self, _: &tracing::field::Field, _: &dyn fmt::Debug) {}
}

impl tracing::Subscriber for Signs {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.name().starts_with("tenure.local_")
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let at = Clock::boot().read().as_nanos();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields { alive, collated, took, supporters } = fields;
        match (alive, took, supporters) {
            (Some(alive), ..) => println!("asks {at} {alive} {}", u8::from(collated)),
            (None, Some(took), Some(supporters)) => println!("leads {at} {took} {supporters}"),
            _ => {}
        }
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// A member: its name, where it listens, its folder, the key; δ, Δ, σ, EP in nanoseconds, ρ in ppm,
/// children in the tree; then name and address of all. The end of input ends it; a line of input is
/// answered with how much it has sent and received.
pub(crate) fn run(arguments: &[&str]) {
    let [name, listen, folder, key, delay, fast, hole, pace, drift, tree, members @ ..] = arguments else {
        panic!("too few arguments")
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let mut config = Config::new(name, Key::Cluster(key.parse().expect("a key")));
    config.members = peers(members.chunks_exact(2).map(|pair| (pair[0], pair[1])));
    config.listen = vec![listen.parse().expect("an address")];
    config.store = Some(folder.into());
    config.lease = LEASE;
    config.longest_lease = LEASE * 2;
    config.retry = Duration::from_millis(20);
    config.window = Duration::from_millis(50);
    let mut how = Locality::default();
    how.delay = Duration::from_nanos(number(delay));
    how.fast = Some(Duration::from_nanos(number(fast)));
    how.hole = Duration::from_nanos(number(hole));
    how.pace = Some(Duration::from_nanos(number(pace)));
    how.drift_ppm = u32::try_from(number(drift)).expect("a drift");
    how.tree = Some(tree.parse().expect("a number")).filter(|children| *children > 0);
    tracing::subscriber::set_global_default(Signs).expect("nobody else has set one");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let node = Node::start(config).await.expect("it starts");
        let _local = node.local("bench", &how).await.unwrap_or_else(|error| panic!("{error}"));
        println!("ready");
        let mut line = String::new();
        while std::io::stdin().read_line(&mut line).is_ok_and(|length| length > 0) {
            let traffic = node.status().await.expect("it runs").traffic;
            let at = Clock::boot().read().as_nanos();
            println!("traffic {at} {} {}", traffic.datagrams_sent, traffic.datagrams_received);
            line.clear();
        }
        node.shutdown().await;
    });
}

/// A member that runs.
pub(crate) struct Member {
    process: Child,
    input: Option<ChildStdin>,
    signs: Receiver<Sign>,
}

impl Member {
    /// Starts one: `command` is this program, in a namespace perhaps.
    pub(crate) fn start(
        mut command: Command,
        cluster: &Cluster,
        (name, listen): (&str, &str),
        how: &Locality,
    ) -> Self {
        command.args([MEMBER, name, listen]).arg(cluster.path(name)).arg(cluster.key.reveal());
        let lengths = [how.delay, how.fast.unwrap_or_default(), how.hole, how.pace.unwrap_or_default()];
        command.args(lengths.map(|length| length.as_nanos().to_string()));
        command.arg(how.drift_ppm.to_string()).arg(how.tree.unwrap_or(0).to_string());
        for (name, address) in cluster.names.iter().zip(&cluster.addresses) {
            command.args([name, &address.to_string()]);
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let (told, signs) = channel();
        let (ready, is_ready) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                match sign(&line) {
                    Some(sign) if told.send(sign).is_err() => return,
                    Some(_) => {}
                    None => _ = ready.send(()),
                }
            }
        });
        is_ready.recv().expect("it says that it is ready, or ends with a reason");
        Self { process, input, signs }
    }

    /// The next sign, if one comes in time.
    pub(crate) fn next(&self, within: Duration) -> Option<Sign> {
        self.signs.recv_timeout(within).ok()
    }

    /// Takes the events that nobody has looked at.
    pub(crate) fn drain(&self) -> Vec<Sign> {
        self.signs.try_iter().collect()
    }

    /// How many datagrams it has sent and received so far, and what it said before it answered
    /// that.
    pub(crate) fn traffic(&mut self) -> (u64, u64, Vec<Sign>) {
        let input = self.input.as_mut().expect("it runs");
        input.write_all(b"?\n").and_then(|()| input.flush()).expect("it listens");
        let mut before = Vec::new();
        loop {
            let sign = self.next(Duration::from_secs(10)).expect("it answers");
            match sign.what {
                What::Traffic { sent, received } => return (sent, received, before),
                _ => before.push(sign),
            }
        }
    }
}

/// Parses a line of a member; `None` if it says that the member is ready.
fn sign(line: &str) -> Option<Sign> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse().ok()).unwrap_or(0);
    let what = match words[0] {
        "asks" => What::Asks { alive: number(2), collated: number(3) == 1 },
        "leads" => What::Leads { took: number(2), supporters: number(3) },
        "traffic" => What::Traffic { sent: number(2), received: number(3) },
        _ => return None,
    };
    Some(Sign { at: number(1), what })
}

impl Drop for Member {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}
