//! Embedded scheduler: three copies of one service; one at a time hands out the jobs.
//!
//! Each copy has a node in its own process; the three together are the quorum, and nothing else is
//! needed. The leader makes an edict for each job and writes the job into a log that all copies
//! share. The log has a fence: it refuses what an old leader sends late.
//!
//! By hand, in four terminals:
//!
//! ```sh
//! cargo run --example scheduler -- found /tmp/jobs                # once: a key, a.toml, b.toml, c.toml and their stores
//! cargo run --example scheduler -- log /tmp/jobs                  # the log with its fence
//! cargo run --example scheduler -- run /tmp/jobs/a.toml           # and b.toml and c.toml, each in its terminal
//! ```
//!
//! Each copy says what happens, a line an event. To the one that leads say `resign`, `transfer b`
//! or `stop`. Or be rude to it: after `kill -9` another one leads as soon as its lease is over, and
//! after `kill -STOP`, a second or two, and `kill -CONT` it finds that it does not lead any more,
//! or its last write is refused. The end of its input ends each of them.

mod cluster;

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::unix::net as blocking;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, thread};

use tenure::fence::{FileFence, Refused, Rule};
use tenure::{Clock, Config, Edict, Node, NodeName, Tenure, Token};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

const GROUP: &str = "scheduler";

/// How long it takes to prepare a job, and to rest after it.
const MOMENT: Duration = Duration::from_millis(2);

/// For how long a copy that resigned leaves it to the others to lead.
const TURN: Duration = Duration::from_millis(50);

const USAGE: &str = "usage: scheduler found FOLDER | log FOLDER | run FOLDER/NAME.toml";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["found", folder] => {
            let plan = cluster::Plan::by_hand(Path::new(folder));
            println!("founded cluster={} in {folder}", plan.found()?);
            Ok(())
        }
        ["log", folder] => keep_log(Path::new(folder)),
        ["run", config] => run(Path::new(config)).await,
        _ => Err(USAGE.into()),
    }
}

/// One copy of the service.
async fn run(config: &Path) -> Result<(), Box<dyn Error>> {
    let socket = config.with_file_name("log.sock");
    let node = Node::start(Config::from_path(config)?).await?;
    node.ready().await?;
    println!("ready name={} at={}", node.name(), now());
    let mut orders = listen();
    while let Some(tenure) = elected(&node, &mut orders).await? {
        println!("leads term={} at={}", tenure.term(), now());
        let mut log = Log::open(&socket).await?;
        let ended = schedule(&tenure, &mut log, &mut orders).await?;
        println!("{} term={} at={}", ended.word(), tenure.term(), now());
        tenure.resign(); // Nothing happens if it leads no more; otherwise the others need not wait for the end of its lease.
        match ended {
            Ended::Stopped => break,
            Ended::Resigned => tokio::time::sleep(TURN).await,
            Ended::Lost | Ended::Refused | Ended::Transferred => {}
        }
    }
    let name = node.name().clone();
    node.shutdown().await;
    println!("stopped name={name} at={}", now());
    Ok(())
}

/// Waits until this copy leads; `None` if it should stop.
async fn elected(node: &Node, orders: &mut Orders) -> Result<Option<Tenure>, Box<dyn Error>> {
    let campaign = node.campaign(GROUP);
    tokio::pin!(campaign);
    loop {
        tokio::select! {
            tenure = &mut campaign => return Ok(Some(tenure?)),
            order = orders.recv() => match order {
                None | Some(Order::Stop) => return Ok(None),
                Some(_) => println!("ignored name={}: it does not lead", node.name()),
            },
        }
    }
}

/// How a term ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// The lease was over before a job was begun.
    Lost,
    /// The log refused a job: somebody else had written already.
    Refused,
    /// This copy was told to.
    Resigned,
    /// Another was asked to take over, and has.
    Transferred,
    /// This copy was told to stop.
    Stopped,
}

impl Ended {
    fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Refused => "deposed",
            Self::Resigned => "resigned",
            Self::Transferred => "transferred",
            Self::Stopped => "stops",
        }
    }
}

/// Hands out jobs for as long as this copy leads, and is not told otherwise.
async fn schedule(tenure: &Tenure, log: &mut Log, orders: &mut Orders) -> Result<Ended, Box<dyn Error>> {
    loop {
        let Ok(edict) = tenure.edict() else { return Ok(Ended::Lost) };
        // The job is prepared. Whatever happens meanwhile to this process, the edict says when it
        // was decided.
        tokio::time::sleep(MOMENT).await;
        let (term, number) = (edict.tag, edict.number);
        match log.append(&entry(tenure, edict)).await? {
            Answer::Admitted => println!("wrote term={term} number={number} at={}", now()),
            Answer::Refused(newest) => {
                println!("refused term={term} number={number} newest={newest:?} at={}", now());
                return Ok(Ended::Refused);
            }
        }
        match orders.try_recv() {
            Err(mpsc::error::TryRecvError::Empty) => {}
            Ok(Order::Resign) => return Ok(Ended::Resigned),
            Ok(Order::Transfer(to)) => match tenure.transfer(&to).await {
                Ok(()) => return Ok(Ended::Transferred),
                Err(error) => println!("kept term={term}: {error}"),
            },
            Ok(Order::Stop) | Err(mpsc::error::TryRecvError::Disconnected) => return Ok(Ended::Stopped),
        }
        tokio::time::sleep(MOMENT).await;
    }
}

/// A line that is sent to the log: `TOKEN TIMESTAMP JOB`, in words without spaces. The token is one
/// number, and all that this log compares. The paper's timestamp says the same by the clocks of
/// those who elected this leader: epoch, then grantor:incarnation:reading:count for each of them,
/// then the number of the edict.
fn entry(tenure: &Tenure, edict: Edict) -> String {
    let tag = tenure.tag();
    let stamp = |(grantor, stamp): (tenure_proto::NodeId, tenure_proto::time::Stamp)| {
        format!("{}:{}:{}:{}", grantor.0, stamp.incarnation.0, stamp.at.as_nanos(), stamp.count)
    };
    let stamps: Vec<String> = tag.first.iter().map(stamp).collect();
    format!("{} {}/{}/{} job-{}", edict.token(), tag.epoch.0, stamps.join(","), edict.number, edict.number)
}

/// The log, as a writer sees it.
struct Log(BufReader<UnixStream>);

enum Answer {
    Admitted,
    Refused(Token),
}

impl Log {
    async fn open(socket: &Path) -> io::Result<Self> {
        Ok(Self(BufReader::new(UnixStream::connect(socket).await?)))
    }

    async fn append(&mut self, entry: &str) -> io::Result<Answer> {
        self.0.get_mut().write_all(format!("{entry}\n").as_bytes()).await?;
        let mut line = String::new();
        self.0.read_line(&mut line).await?;
        match line.trim().split_once(' ') {
            None if line == "admitted\n" => Ok(Answer::Admitted),
            Some(("refused", newest)) => newest.parse().map(Answer::Refused).map_err(io::Error::other),
            _ => Err(io::Error::other(format!("the log answered '{}'", line.trim()))),
        }
    }
}

/// A command to a copy.
enum Order {
    Resign,
    Transfer(NodeName),
    Stop,
}

impl Order {
    fn parse(line: &str) -> Option<Self> {
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["resign"] => Some(Self::Resign),
            ["transfer", to] => NodeName::new(to).ok().map(Self::Transfer),
            ["stop"] => Some(Self::Stop),
            _ => None,
        }
    }
}

type Orders = mpsc::UnboundedReceiver<Order>;

/// Orders from the standard input. They end when that ends.
fn listen() -> Orders {
    let (sender, orders) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            let Some(order) = Order::parse(&line) else {
                println!("not understood: say resign, transfer NAME or stop");
                continue;
            };
            if sender.send(order).is_err() {
                return;
            }
        }
    });
    orders
}

/// The log itself: a file, a fence that is as durable as the file, and a socket. A job is judged
/// and written under one lock.
fn keep_log(folder: &Path) -> Result<(), Box<dyn Error>> {
    let fence = folder.join("log.fence");
    let fence = match fence.exists() {
        true => FileFence::open(fence, "log", Rule::ByTerm)?,
        false => FileFence::create(fence, "log", Rule::ByTerm)?,
    };
    let file = OpenOptions::new().append(true).create(true).open(folder.join("log"))?;
    let log = Arc::new(Mutex::new((fence, file)));
    let socket = folder.join("log.sock");
    let _ = fs::remove_file(&socket);
    let listener = blocking::UnixListener::bind(&socket)?;
    println!("open socket={}", socket.display());
    cluster::end_with_input();
    for stream in listener.incoming() {
        let (stream, log) = (stream?, Arc::clone(&log));
        thread::spawn(move || match serve(&stream, &log) {
            Ok(()) => {}
            Err(error) => println!("closed: {error}"),
        });
    }
    Ok(())
}

fn serve(
    mut stream: &blocking::UnixStream,
    log: &Mutex<(FileFence, File)>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    for line in io::BufReader::new(stream).lines() {
        let line = line?;
        let token: Token = line.split_whitespace().next().unwrap_or_default().parse()?;
        let mut log = log.lock().expect("nobody panics while holding the log");
        let (fence, file) = &mut *log;
        let answer = match fence.admit(token, "scheduler") {
            Ok(_) => writeln!(file, "{line}").map(|()| "admitted".to_owned())?,
            Err(Refused::Stale(stale)) => format!("refused {}", stale.newest),
            Err(refused) => return Err(refused.into()),
        };
        drop(log);
        writeln!(stream, "{answer}")?;
    }
    Ok(())
}

/// A reading of the clock by which leases are judged, for those who compare the lines of several
/// copies.
fn now() -> u64 {
    Clock::boot().read().as_nanos()
}
