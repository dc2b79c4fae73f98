//! Three copies of the key-value server, as processes on their own disks, and clients that load
//! them.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenure::{Config, log};
use tenure_testkit::chance::Chance;
use tenure_testkit::member_files::{MemberFiles, NAMES, quick};
use tenure_testkit::ports::{LOG_OFFSET, free_addresses};
use tenure_testkit::programs::{Process, Said, example};

use crate::client::{Call, Client, Connection, Operation, now};

/// Longer than anything here may take on a machine that works at all.
const LIMIT: Duration = Duration::from_secs(60);

/// How long clients stay with one set of keys. A write whose outcome is unknown makes its key
/// dearer to judge forever after.
const ERA: u64 = 400_000_000;

/// All processes of a test. They end with it.
pub(crate) struct Stage {
    copies: Vec<Option<Process>>,
    program: PathBuf,
    pub(crate) files: MemberFiles,
    pub(crate) servers: Vec<SocketAddr>,
    sender: Sender<Said>,
    sayings: Receiver<Said>,
    life: u32,
    /// More arguments of each copy.
    how: &'static [&'static str],
    _memory: tempfile::TempDir,
}

impl Stage {
    /// Founds a cluster in `folder`, and the logs of its members.
    pub(crate) fn found(folder: &std::path::Path) -> Self {
        let memory = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
        let settings = quick("500ms", 1000, memory.path());
        let files = MemberFiles::found(folder, |_| settings.clone());
        for name in NAMES {
            let config = Config::from_path(files.file(name)).expect("it is a configuration");
            let config = log::Config::beside(&config, files.cluster, "kv", LOG_OFFSET)
                .expect("a log can be beside it");
            log::found(&config).expect("it is founded");
        }
        let (sender, sayings) = channel();
        let (program, servers) = (example("kv"), free_addresses(NAMES.len()));
        Self {
            copies: NAMES.iter().map(|_| None).collect(),
            program,
            files,
            servers,
            sender,
            sayings,
            life: 0,
            how: &[],
            _memory: memory,
        }
    }

    /// The copies elect by Omega instead of the strong group.
    pub(crate) fn elects_eventually(&mut self) {
        self.how = &["eventual"];
    }

    pub(crate) fn start_all(&mut self) {
        (0..NAMES.len()).for_each(|who| self.start(who));
    }

    /// Starts a copy and waits until it serves.
    pub(crate) fn start(&mut self, who: usize) {
        self.life += 1;
        let mut command = Command::new(&self.program);
        command.arg("run").arg(self.files.file(NAMES[who])).arg(self.servers[who].to_string());
        command.args(self.how);
        self.copies[who] = Some(Process::start(command, who, self.life, self.sender.clone()));
        loop {
            let said = self.sayings.recv_timeout(LIMIT).expect("it starts");
            if (said.life, said.word()) == (self.life, "ready") {
                return;
            }
        }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self, who: usize) {
        if let Some(mut process) = self.copies[who].take() {
            process.kill();
        }
    }

    /// The file of a copy's log.
    pub(crate) fn log_of(&self, who: usize) -> PathBuf {
        self.files.folder.join(NAMES[who]).join("log-kv").join("log")
    }

    /// Adds to the log of a dead copy what an interrupted write leaves: bytes that are no frame.
    pub(crate) fn tear(&self, who: usize, bytes: &[u8]) {
        let mut file = OpenOptions::new().append(true).open(self.log_of(who)).expect("it has a log");
        file.write_all(bytes).expect("there is room");
    }

    /// The status of a copy, in its own words.
    pub(crate) fn status(&self, who: usize) -> String {
        let reply = Connection::open(self.servers[who]).and_then(|mut it| it.ask("GET", "/status", "", ""));
        reply.map(|reply| reply.body).unwrap_or_default()
    }

    pub(crate) fn leader(&self) -> Option<usize> {
        (0..NAMES.len()).find(|who| self.status(*who).contains("leads: true"))
    }

    /// Waits until somebody leads and answers.
    pub(crate) fn settled(&self) {
        let begun = now();
        while self.leader().is_none() {
            assert!(now() - begun < 60_000_000_000, "nobody leads");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Clients that go on until they are told to stop.
pub(crate) struct Load {
    threads: Vec<JoinHandle<Client>>,
    stop: Arc<AtomicBool>,
    begun: u64,
}

impl Load {
    pub(crate) fn start(servers: &[SocketAddr], clients: usize, seed: u64) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let recent = Arc::<Mutex<Vec<(String, String)>>>::default();
        let threads = (0..clients)
            .map(|number| {
                let (client, stop, recent) = (Client::new(number, servers), stop.clone(), recent.clone());
                thread::spawn(move || load(client, &stop, &recent, Chance::new(seed + number as u64)))
            })
            .collect();
        Self { threads, stop, begun: now() }
    }

    /// Everything that the clients did, and for how long.
    pub(crate) fn end(self) -> (Vec<Operation>, Duration) {
        self.stop.store(true, Relaxed);
        let took = Duration::from_nanos(now() - self.begun);
        let clients = self.threads.into_iter().map(|thread| thread.join().expect("no client fails"));
        (clients.flat_map(|client| client.history).collect(), took)
    }
}

/// Half writes, four tenths reads, a tenth writes that expect a value that somebody wrote shortly
/// before.
fn load(
    mut client: Client,
    stop: &AtomicBool,
    recent: &Mutex<Vec<(String, String)>>,
    mut chance: Chance,
) -> Client {
    let mut count = 0;
    while !stop.load(Relaxed) {
        let key = format!("k{}-{}", now() / ERA, chance.below(4));
        let value = format!("v{}-{count}", client.number);
        count += 1;
        let expected = || {
            let recent = recent.lock().expect("no client fails");
            recent.iter().rev().find(|(other, _)| *other == key).map(|(_, value)| value.clone())
        };
        let call = match chance.below(10) {
            0..5 => Call::Put { value: value.clone() },
            5..9 => Call::Get { saw: None },
            _ => match expected() {
                Some(from) => Call::Cas { from, value: value.clone(), done: false },
                None => Call::Get { saw: None },
            },
        };
        let writes = matches!(call, Call::Put { .. });
        match client.call(&key, call) {
            Some(200) if writes => {
                let mut recent = recent.lock().expect("no client fails");
                recent.push((key, value));
                if recent.len() > 32 {
                    recent.remove(0);
                }
            }
            Some(_) => {}
            None => thread::sleep(Duration::from_millis(10)), // No connection: the next server may have one.
        }
    }
    client
}
