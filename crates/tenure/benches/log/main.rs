//! Measures the cost of a durable write: a log of one member, beside redb and beside a bare file on
//! the same disk.
//!
//! | contender | a write is answered when |
//! |---|---|
//! | bare | a thread has appended what waits to a file, and synced it once |
//! | redb | the same thread has put what waits into a table, in one transaction that is durable at once |
//! | log | [`Log::propose`] returns: the whole log, with ballots, sessions and a state |
//!
//! They take turns, and what is told is the median of the ratios within rounds: whatever else the
//! disk does hits neighbours alike. `cargo xtask bench log`; a folder as argument says on which
//! disk.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use tenure::log::{self, Config, Election, Log, Snapshot, StateError, StateMachine};
use tenure::{ClusterId, ClusterKey, NodeName};
use tenure_testkit::numbers::Numbers;

/// How many write at once.
const CLIENTS: [usize; 3] = [1, 8, 64];
/// How often each contender has its turn.
const ROUNDS: usize = 9;
/// How long a turn takes.
const TURN: Duration = Duration::from_millis(600);
/// How long a value is.
const BYTES: usize = 100;

fn main() {
    let folder = std::env::args().skip(1).find(|argument| argument != "--bench").map(PathBuf::from);
    let folder =
        tempfile::tempdir_in(folder.unwrap_or_else(std::env::temp_dir)).expect("a folder to write in");
    println!("machine: load {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    println!("values of {BYTES} bytes, {ROUNDS} turns of {} ms each\n", TURN.as_millis());
    println!(
        "{:<12}{:<8}{:>12}{:>14}{:>14}{:>18}",
        "clients", "", "writes/s", "median ms", "99 of 100 ms", "against redb"
    );
    for clients in CLIENTS {
        compare(folder.path(), clients);
    }
}

/// The result of one contender in one turn.
struct Turn {
    rate: f64,
    took: Vec<f64>,
}

fn compare(folder: &Path, clients: usize) {
    let mut turns: [Vec<Turn>; 3] = Default::default();
    for round in 0..ROUNDS {
        let place = folder.join(format!("{clients}-{round}"));
        std::fs::create_dir(&place).expect("a new folder");
        turns[0].push(gathered(clients, Bare::new(&place.join("bare"))));
        turns[1].push(gathered(clients, Redb::new(&place.join("redb"))));
        turns[2].push(proposed(clients, &place.join("log")));
    }
    for (name, own) in ["bare", "redb", "log"].into_iter().zip(&turns) {
        let rate = Numbers::new(own.iter().map(|turn| turn.rate).collect()).median();
        let took = Numbers::new(own.iter().flat_map(|turn| turn.took.iter().copied()).collect());
        let ratios = own.iter().zip(&turns[1]).map(|(own, redb)| own.rate / redb.rate);
        let ratio = Numbers::new(ratios.collect()).median();
        let clients = if name == "bare" { clients.to_string() } else { String::new() };
        println!(
            "{clients:<12}{name:<8}{rate:>12.0}{:>14.2}{:>14.2}{ratio:>17.2}x",
            took.median(),
            took.at(99)
        );
    }
}

/// Something that makes many values durable at once.
trait Keeps: Send + 'static {
    fn keep(&mut self, values: &[Vec<u8>]);
}

/// The least that can be done.
struct Bare(File);

impl Bare {
    fn new(path: &Path) -> Self {
        Self(OpenOptions::new().create_new(true).append(true).open(path).expect("a new file"))
    }
}

impl Keeps for Bare {
    fn keep(&mut self, values: &[Vec<u8>]) {
        self.0.write_all(&values.concat()).expect("room on the disk");
        self.0.sync_data().expect("a disk that syncs");
    }
}

/// A table of slots.
struct Redb {
    database: redb::Database,
    next: u64,
}

const SLOTS: redb::TableDefinition<'_, u64, &[u8]> = redb::TableDefinition::new("slots");

impl Redb {
    fn new(path: &Path) -> Self {
        Self { database: redb::Database::create(path).expect("a new database"), next: 0 }
    }
}

impl Keeps for Redb {
    fn keep(&mut self, values: &[Vec<u8>]) {
        // Durable when `commit` returns, unless another durability is asked for.
        let transaction = self.database.begin_write().expect("a transaction");
        {
            let mut table = transaction.open_table(SLOTS).expect("a table");
            for value in values {
                table.insert(self.next, value.as_slice()).expect("room in the table");
                self.next += 1;
            }
        }
        transaction.commit().expect("a disk that syncs");
    }
}

type OperatorRequest = (Vec<u8>, Sender<()>);

/// Clients that write to something that gathers what waits, as the log's own thread for its disk
/// does.
fn gathered(clients: usize, mut store: impl Keeps) -> Turn {
    let (wishes, queue) = mpsc::channel::<OperatorRequest>();
    let keeper = thread::spawn(move || serve(&queue, &mut store));
    let until = now() + TURN;
    let client = |wishes: Sender<OperatorRequest>| {
        move || {
            let (answer, answers) = mpsc::channel();
            let mut took = Vec::new();
            while now() < until {
                let start = now();
                wishes.send((vec![7; BYTES], answer.clone())).expect("it is served");
                answers.recv().expect("it is answered");
                took.push(millis(start));
            }
            took
        }
    };
    let threads: Vec<_> = (0..clients).map(|_| thread::spawn(client(wishes.clone()))).collect();
    drop(wishes);
    let took: Vec<f64> = threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect();
    keeper.join().expect("the keeper");
    turn(took)
}

fn serve(queue: &Receiver<OperatorRequest>, store: &mut impl Keeps) {
    while let Ok(first) = queue.recv() {
        let (values, answers): (Vec<_>, Vec<_>) = std::iter::once(first).chain(queue.try_iter()).unzip();
        store.keep(&values);
        for answer in answers {
            let _ = answer.send(()); // A client whose time is over does not listen.
        }
    }
}

/// A state that costs nothing.
struct Nothing;

impl StateMachine for Nothing {
    fn apply(&mut self, _index: u64, _write: &[u8]) -> Vec<u8> {
        Vec::new()
    }
    fn snapshot(&self) -> Snapshot {
        Vec::new().into()
    }
    fn restore(&mut self, _from: &mut dyn BufRead) -> Result<(), StateError> {
        Ok(())
    }
}

/// The same clients, and the log.
fn proposed(clients: usize, folder: &Path) -> Turn {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let log = alone(folder);
        log.propose(vec![0]).await.expect("it leads");
        let until = now() + TURN;
        let client = |log: Log<Nothing>| async move {
            let mut took = Vec::new();
            while now() < until {
                let start = now();
                log.propose(vec![7; BYTES]).await.expect("it is written");
                took.push(millis(start));
            }
            took
        };
        let tasks: Vec<_> = (0..clients).map(|_| tokio::spawn(client(log.clone()))).collect();
        let mut took = Vec::new();
        for task in tasks {
            took.extend(task.await.expect("a client"));
        }
        log.shutdown().await;
        turn(took)
    })
}

fn alone(folder: &Path) -> Log<Nothing> {
    let mut config = Config::new("bench", "alone", ClusterId::draw(), ClusterKey::generate());
    config.members = tenure::peers([("alone", "127.0.0.1:0")]);
    config.folder = folder.to_owned();
    log::found(&config).expect("a new log");
    let election = Election::fixed(NodeName::new("alone").expect("a name"));
    Log::open(&config, election, Nothing).expect("the log opens")
}

fn turn(took: Vec<f64>) -> Turn {
    let writes = u32::try_from(took.len()).expect("not that many in one turn");
    Turn { rate: f64::from(writes) / TURN.as_secs_f64(), took }
}

fn millis(since: Instant) -> f64 {
    now().duration_since(since).as_secs_f64() * 1e3
}

#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
fn now() -> Instant {
    Instant::now()
}
