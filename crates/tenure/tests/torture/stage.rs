//! Three copies of the scheduler, as processes, and the resource that they write to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use std::{env, fs, io};

use tenure::Clock;
use tenure_testkit::chance::Chance;
use tenure_testkit::member_files::{MemberFiles, NAMES, quick};
use tenure_testkit::programs::{Process, Said, example};

use crate::resource::Resource;

/// δ.
pub(crate) const LEASE: Duration = Duration::from_millis(500);

/// ρ.
pub(crate) const DRIFT_PPM: u32 = 1000;

/// Longer than anything here may take on a machine that works at all.
const LIMIT: Duration = Duration::from_secs(60);

/// One copy of the service.
struct Member {
    process: Option<Process>,
    life: u32,
    ready: bool,
}

/// A leader, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) who: usize,
    pub(crate) term: u64,
    /// Whether it has written something.
    wrote: bool,
}

/// All processes of a test. They end with it.
pub(crate) struct Stage {
    members: Vec<Member>,
    leader: Option<Leader>,
    /// How terms ended, as those who led say.
    ends: BTreeMap<(usize, u64), Said>,
    sayings: Receiver<Said>,
    sender: Sender<Said>,
    program: PathBuf,
    files: MemberFiles,
    pub(crate) resource: Resource,
    pub(crate) random: Chance,
    folder: tempfile::TempDir,
    memory: tempfile::TempDir,
}

impl Stage {
    /// Founds a cluster and starts all of it.
    pub(crate) fn set(seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let memory = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
        let settings = quick("500ms", DRIFT_PPM, memory.path());
        let files = MemberFiles::found(folder.path(), |name| format!("trace = \"{name}.trace\"\n{settings}"));
        let resource = Resource::open(&folder.path().join("log.sock"), &folder.path().join("resource.trace"));
        let (sender, sayings) = channel();
        let member = |_| Member { process: None, life: 0, ready: false };
        let mut stage = Self {
            members: NAMES.iter().map(member).collect(),
            leader: None,
            ends: BTreeMap::new(),
            sayings,
            sender,
            program: example("scheduler"),
            files,
            resource,
            random: Chance::new(seed),
            folder,
            memory,
        };
        (0..NAMES.len()).for_each(|who| stage.start(who));
        stage
    }

    /// Where the traces are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn start(&mut self, who: usize) {
        let member = &mut self.members[who];
        member.life += 1;
        member.ready = false;
        let mut command = Command::new(&self.program);
        command.arg("run").arg(self.files.file(NAMES[who]));
        member.process = Some(Process::start(command, who, member.life, self.sender.clone()));
    }

    /// Kills a copy, as `kill -9` does. Returns when it was sent.
    pub(crate) fn kill(&mut self, who: usize) -> u64 {
        if self.leader.is_some_and(|leader| leader.who == who) {
            self.leader = None;
        }
        let process = self.members[who].process.as_mut().expect("it runs");
        let at = now();
        process.kill();
        self.members[who].process = None;
        self.members[who].ready = false;
        at
    }

    pub(crate) fn process(&mut self, who: usize) -> &mut Process {
        self.members[who].process.as_mut().expect("it runs")
    }

    /// Forgets what survives a restart, as a reboot does.
    pub(crate) fn forget_memory(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.memory.path())? {
            fs::remove_file(entry?.path())?;
        }
        Ok(())
    }

    /// Lets time pass, and listens.
    pub(crate) fn rest(&mut self, length: Duration) {
        let end = now() + nanos(length);
        while let Some(left) = end.checked_sub(now()).filter(|left| *left > 0) {
            if self.hear(Duration::from_nanos(left)).is_none() {
                return;
            }
        }
    }

    /// Lets some of a lease pass, so that what comes next comes at any point of it.
    pub(crate) fn rest_a_while(&mut self) {
        let length = self.random.below(nanos(LEASE));
        self.rest(Duration::from_nanos(length));
    }

    /// Waits until all copies are ready, and one of them leads and has written something.
    pub(crate) fn settled(&mut self) -> Leader {
        loop {
            let ready = self.members.iter().all(|member| member.ready);
            if let Some(leader) = self.leader.filter(|leader| leader.wrote && ready) {
                return leader;
            }
            self.must_hear("a leader that writes, and all three ready");
        }
    }

    /// Waits for the first write of a leader after `term`.
    pub(crate) fn successor(&mut self, term: u64) -> Leader {
        loop {
            if let Some(leader) = self.leader.filter(|leader| leader.wrote && leader.term > term) {
                return leader;
            }
            self.must_hear("a new leader that writes");
        }
    }

    /// Waits until a copy has said how a term of its own ended.
    pub(crate) fn end_of(&mut self, who: usize, term: u64) -> Said {
        loop {
            if let Some(said) = self.ends.remove(&(who, term)) {
                return said;
            }
            self.must_hear("a word about the end of a term");
        }
    }

    /// Tells the leader something that should end its term. Returns how it ended; `None` if it
    /// could not be done, and it leads on.
    pub(crate) fn tell(&mut self, leader: Leader, order: &str) -> Option<Said> {
        self.process(leader.who).tell(order);
        loop {
            if let Some(said) = self.ends.remove(&(leader.who, leader.term)) {
                return Some(said);
            }
            let said = self.must_hear("an answer to an order");
            if said.who == leader.who && said.word() == "kept" {
                return None;
            }
        }
    }

    fn must_hear(&mut self, what: &str) -> Said {
        let status = |member: &Member| (member.life, member.ready, member.process.is_some());
        self.hear(LIMIT).unwrap_or_else(|| {
            let members: Vec<_> = self.members.iter().map(status).collect();
            panic!(
                "{what}: nothing within {LIMIT:?}; leader {:?}, lives, ready, running {members:?}",
                self.leader
            )
        })
    }

    /// The next saying of a copy that lives.
    fn hear(&mut self, limit: Duration) -> Option<Said> {
        loop {
            let said = match self.sayings.recv_timeout(limit) {
                Ok(said) => said,
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => unreachable!("this side has a sender too"),
            };
            let member = &mut self.members[said.who];
            if member.life != said.life || member.process.is_none() {
                continue; // Somebody who was killed since.
            }
            member.ready |= said.word() == "ready";
            self.note(&said);
            return Some(said);
        }
    }

    fn note(&mut self, said: &Said) {
        let newest = self.leader.map_or(0, |leader| leader.term);
        match said.word() {
            "leads" if said.number("term") > newest => {
                self.leader = Some(Leader { who: said.who, term: said.number("term"), wrote: false });
            }
            "wrote" if said.number("term") == newest => {
                self.leader = self.leader.map(|leader| Leader { wrote: true, ..leader });
            }
            "lost" | "deposed" | "resigned" | "transferred" => {
                self.leader = self.leader.filter(|leader| leader.term != said.number("term"));
                self.ends.insert((said.who, said.number("term")), said.clone());
            }
            _ => {}
        }
    }

    /// Ends all copies in good order.
    pub(crate) fn end(&mut self) {
        for member in &mut self.members {
            let process = member.process.as_mut().expect("it runs");
            assert!(process.finish(), "it ends in good order");
        }
        // Their last words may still be on their way.
        while self.hear(Duration::from_millis(200)).is_some() {}
    }
}

impl Drop for Stage {
    /// Keeps the records if they are needed, or asked for.
    fn drop(&mut self) {
        if thread::panicking() || env::var_os("TENURE_TORTURE_KEEP").is_some() {
            self.folder.disable_cleanup(true);
            eprintln!("the traces are in {}", self.folder.path().display());
        }
    }
}

/// A reading of the clock that all processes share.
pub(crate) fn now() -> u64 {
    Clock::boot().read().as_nanos()
}

pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).expect("it is short")
}

/// A pause that nobody listens in.
pub(crate) fn sleep(length: Duration) {
    thread::sleep(length);
}
