//! Fenced writer on PostgreSQL: a leader that reads, computes and writes back, and cannot do harm
//! when it comes too late.
//!
//! Three copies of this program have a table of accounts in one database. The leader reads a
//! balance, takes its time, and writes back one more. If it is paused in between (by its scheduler,
//! its host, or `kill -STOP`), another one is elected and writes; then the first goes on, and
//! writes what it computed from an old balance. No lock can prevent that: the writer held it when
//! it looked. The fence can: each write shows its token, and the database refuses those of older
//! leaders.
//!
//! By hand, with a database that you have made (`createdb accounts`):
//!
//! ```sh
//! cargo run --example fenced_writer -- found /tmp/accounts                  # once: a.toml, b.toml, c.toml and their stores
//! cargo run --example fenced_writer -- prepare 'dbname=accounts host=/var/run/postgresql'
//!                                                                           # once: the tables, and the fence
//! cargo run --example fenced_writer -- run /tmp/accounts/a.toml 'dbname=accounts host=/var/run/postgresql'
//!                                                                           # and b.toml and c.toml, each in its terminal
//! ```
//!
//! Then `kill -STOP` the one that leads, wait until another writes, and `kill -CONT` it: its write
//! is refused. Start all three with `--unfenced` to see what happens otherwise. With `--writers 8`
//! a leader writes to eight accounts at once; the fence goes by term, and lets all of its writes
//! pass. The end of its input ends a copy.

mod cluster;

use std::error::Error;
use std::path::Path;
use std::time::Duration;
use std::{env, thread};

use postgres::{Client, NoTls};
use tenure::fence::postgres::{INSTALL, STALE};
use tenure::{Config, Node, Tenure, Token};

/// How long a leader takes to compute what it writes.
const MOMENT: Duration = Duration::from_millis(30);

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS accounts (id int PRIMARY KEY, balance bigint NOT NULL);
    INSERT INTO accounts SELECT id, 100 FROM generate_series(1, 64) id ON CONFLICT DO NOTHING;
";

const USAGE: &str = "usage: fenced_writer found FOLDER | prepare DATABASE | run FOLDER/NAME.toml DATABASE [--unfenced] [--writers N]";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["found", folder] => {
            println!("founded cluster={} in {folder}", cluster::Plan::by_hand(Path::new(folder)).found()?);
        }
        ["prepare", database] => {
            let mut client = Client::connect(database, NoTls)?;
            client.batch_execute(INSTALL)?;
            client.batch_execute(TABLES)?;
            println!("prepared");
        }
        ["run", config, database, options @ ..] => {
            let fenced = !options.contains(&"--unfenced");
            let writers = match options.iter().position(|option| *option == "--writers") {
                Some(at) => options.get(at + 1).ok_or(USAGE)?.parse()?,
                None => 1,
            };
            run(Path::new(config), &Job { database: (*database).to_owned(), fenced }, writers)?;
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

/// The work of a leader.
#[derive(Clone)]
struct Job {
    database: String,
    fenced: bool,
}

/// One copy. It is a plain program with threads: the node runs on a thread of its own, and its
/// handles need no executor but something that waits.
fn run(config: &Path, job: &Job, writers: i32) -> Result<(), Box<dyn Error>> {
    let waiter = tokio::runtime::Builder::new_current_thread().build()?;
    let node = waiter.block_on(Node::start(Config::from_path(config)?))?;
    waiter.block_on(node.ready())?;
    println!("ready name={}", node.name());
    // Its lease runs out by itself then, for its writers may be in the middle of something.
    cluster::end_with_input();
    loop {
        let tenure = waiter.block_on(node.campaign("accounts"))?;
        println!("leads term={}", tenure.term());
        let work = |account| {
            let (tenure, job) = (tenure.clone(), job.clone());
            thread::spawn(move || job.write_while_leading(&tenure, account))
        };
        let writers: Vec<_> = (1..=writers).map(work).collect();
        for writer in writers {
            writer.join().expect("no writer panics").map_err(|error| error.to_string())?;
        }
        println!("lost term={}", tenure.term());
    }
}

impl Job {
    /// Reads, computes and writes, for as long as this process leads.
    fn write_while_leading(&self, tenure: &Tenure, account: i32) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut client = Client::connect(&self.database, NoTls)?;
        // From here on no write of an earlier leader passes: what is read from now on is settled.
        if self.fenced && !self.commit(&mut client, tenure.token(), None)? {
            return Ok(());
        }
        while let Ok(edict) = tenure.edict() {
            let row = client.query_one("SELECT balance FROM accounts WHERE id = $1", &[&account])?;
            let balance: i64 = row.get(0);
            println!("read account={account} balance={balance} term={}", edict.tag);
            thread::sleep(MOMENT); // A pause here is what the fence is for.
            let balance = balance + 1;
            let written = self.commit(&mut client, edict.token(), Some((account, balance)))?;
            let word = if written { "wrote" } else { "refused" };
            println!("{word} account={account} balance={balance} term={}", edict.tag);
            if !written {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Shows the token and writes, in one transaction. False if the fence refused it: somebody else
    /// leads.
    fn commit(
        &self,
        client: &mut Client,
        token: Token,
        write: Option<(i32, i64)>,
    ) -> Result<bool, Box<dyn Error + Send + Sync>> {
        let mut transaction = client.transaction()?;
        if self.fenced {
            let token = token.pack()?.as_i64();
            match transaction.execute("SELECT tenure.admit_by_term('accounts', $1)", &[&token]) {
                Err(error) if error.code().is_some_and(|code| code.code() == STALE) => return Ok(false),
                admitted => admitted?,
            };
        }
        if let Some((account, balance)) = write {
            let update = "UPDATE accounts SET balance = $2 WHERE id = $1";
            transaction.execute(update, &[&account, &balance])?;
        }
        transaction.commit()?;
        Ok(true)
    }
}
