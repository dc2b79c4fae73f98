//! Leaders that write to a real PostgreSQL server: what a fence is for, and that it is in nobody's
//! way.

use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use postgres::Client;
use tenure_testkit::member_files::{MemberFiles, NAMES, quick};
use tenure_testkit::postgres_server::{Database, Server};
use tenure_testkit::programs::{Process, Said, example};

/// The balance of each account at first.
const BEGINNING: i64 = 100;

const LIMIT: Duration = Duration::from_secs(60);

/// Three copies of the writer, and their database.
struct Cluster {
    copies: Vec<Process>,
    sayings: Receiver<Said>,
    database: Database,
    _folders: [tempfile::TempDir; 2],
}

impl Cluster {
    fn start(name: &str, lease: &'static str, options: &[&str]) -> Self {
        let (folder, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
        let settings = quick(lease, 1000, memory.path());
        let files = MemberFiles::found(folder.path(), |_| settings.clone());
        let database = Server::shared().database(name);
        let program = example("fenced_writer");
        let prepared = Command::new(&program).args(["prepare", database.url()]).status().unwrap();
        assert!(prepared.success());
        let (sender, sayings) = channel();
        let start = |(who, name): (usize, &&str)| {
            let mut command = Command::new(&program);
            command.arg("run").arg(files.file(name)).arg(database.url()).args(options);
            Process::start(command, who, 1, sender.clone())
        };
        let copies = NAMES.iter().enumerate().map(start).collect();
        Self { copies, sayings, database, _folders: [folder, memory] }
    }

    /// The next that anybody says.
    fn hear(&self) -> Said {
        self.sayings.recv_timeout(LIMIT).expect("somebody says something")
    }

    /// Waits for a word, of anybody.
    fn until(&self, word: &str) -> Said {
        loop {
            let said = self.hear();
            if said.word() == word {
                return said;
            }
        }
    }

    /// Pauses a leader that has read and has not yet begun to write.
    fn pause_in_the_middle(&self, client: &mut Client) -> Said {
        loop {
            let read = self.until("read");
            self.copies[read.who].pause();
            // All that it had said before it stood still: if it had written, this is the wrong
            // moment.
            thread::sleep(Duration::from_millis(50));
            let wrote = self.sayings.try_iter().any(|said| said.who == read.who && said.word() == "wrote");
            if !wrote && is_as_read(client, &read) {
                return read;
            }
            self.copies[read.who].wake();
        }
    }

    /// Waits until only this and one other client are left.
    fn until_two_clients(&self, client: &mut Client) {
        const CLIENTS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'";
        for _ in 0..3000 {
            if client.query_one(CLIENTS, &[]).unwrap().get::<_, i64>(0) <= 2 {
                return;
            }
            thread::sleep(Duration::from_millis(10)); // Until the server says so; half a minute is too long.
        }
        panic!("those who were killed are still there");
    }
}

/// Whether the database is as it was read, and nobody has a transaction open: a writer can also be
/// paused within one, where it holds its row, or after one, before it says so.
fn is_as_read(client: &mut Client, read: &Said) -> bool {
    const OPEN: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                        AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND xact_start IS NOT NULL";
    let open: i64 = client.query_one(OPEN, &[]).unwrap().get(0);
    open == 0 && balance(client) == i64::try_from(read.number("balance")).unwrap()
}

fn balance(client: &mut Client) -> i64 {
    client.query_one("SELECT balance FROM accounts WHERE id = 1", &[]).unwrap().get(0)
}

/// The outcome of a write that came too late.
#[derive(Debug, PartialEq, Eq)]
struct Late {
    /// The word that its writer heard.
    word: String,
    /// The balance before it, and after.
    balances: (i64, i64),
    /// The balance that its writer meant to write.
    meant: i64,
}

/// A leader is paused between reading and writing. Another is elected and writes three times. The
/// first goes on.
fn late_write(name: &str, options: &[&str]) -> Late {
    let mut cluster = Cluster::start(name, "500ms", options);
    let mut client = cluster.database.connect();
    let read = cluster.pause_in_the_middle(&mut client);
    let mut written = 0;
    while written < 3 {
        let said = cluster.until("wrote");
        assert!(said.number("term") > read.number("term"), "only the new leader writes: {}", said.line);
        written += 1;
    }
    // The new leader has done its part. That nothing else happens now, the outcome shows what
    // became of the one write.
    for who in (0..NAMES.len()).filter(|who| *who != read.who) {
        cluster.copies[who].kill();
    }
    cluster.until_two_clients(&mut client);
    let before = balance(&mut client);
    cluster.copies[read.who].wake();
    let late = loop {
        let said = cluster.hear();
        if said.who == read.who && ["wrote", "refused"].contains(&said.word()) {
            break said;
        }
    };
    assert_eq!(late.number("term"), read.number("term"));
    let meant = i64::try_from(late.number("balance")).unwrap();
    Late { word: late.word().to_owned(), balances: (before, balance(&mut client)), meant }
}

#[test]
fn a_leader_that_was_paused_is_refused_by_the_fence_and_without_it_the_update_is_lost() {
    let fenced = late_write("paused_fenced", &[]);
    let unfenced = late_write("paused_unfenced", &["--unfenced"]);
    println!("with the fence:    {fenced:?}\nwithout the fence: {unfenced:?}");
    let (before, after) = fenced.balances;
    assert_eq!((fenced.word.as_str(), after), ("refused", before), "what the new leader wrote stands");
    assert!(before >= fenced.meant + 2, "the new leader had written more");
    let (before, after) = unfenced.balances;
    assert_eq!((unfenced.word.as_str(), after), ("wrote", unfenced.meant), "nobody has objected");
    assert!(after <= before - 2, "what the new leader wrote is gone");
}

#[test]
fn a_pool_of_eight_writers_under_one_leader_is_never_refused() {
    // One leader is to write all of it, also where eight writers and a server leave it little time
    // to renew.
    let cluster = Cluster::start("pool", "2s", &["--writers", "8"]);
    let leads = cluster.until("leads");
    let (mut written, mut terms) = (0, vec![leads.number("term")]);
    while written < 1000 {
        let said = cluster.hear();
        match said.word() {
            "wrote" => written += 1,
            "leads" => terms.push(said.number("term")),
            "refused" => panic!("{}", said.line),
            _ => {}
        }
    }
    assert_eq!(terms.len(), 1, "one leader wrote all of it");
    let mut client = cluster.database.connect();
    let sum = "SELECT sum(balance)::bigint, min(balance) FROM accounts WHERE id <= 8";
    let row = client.query_one(sum, &[]).unwrap();
    let (sum, least): (i64, i64) = (row.get(0), row.get(1));
    assert!(sum >= 8 * BEGINNING + 1000, "every write that was reported is there: {sum}");
    assert!(least > BEGINNING + 50, "all eight had their turn: {least}");
}

#[test]
fn a_copy_that_is_called_wrongly_says_how_to_call_it() {
    let output = Command::new(example("fenced_writer")).arg("rum").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: fenced_writer"));
}
