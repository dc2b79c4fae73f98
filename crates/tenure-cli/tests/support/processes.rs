//! Daemons as real processes: founded by `tenure init`, run by `tenure node`, ended when the test
//! ends.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs::{self, File};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

/// Nothing here takes longer, on a machine that does much else.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The command, in a folder, without what the environment of the tests says.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.current_dir(folder);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TENURE_")) {
        command.env_remove(name);
    }
    for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "JOURNAL_STREAM"] {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end.
pub(crate) fn tenure(folder: &Path, words: &str) -> Output {
    command(folder).args(words.split_whitespace()).output().expect("it runs")
}

/// Runs a command that must succeed, and gives what it said.
pub(crate) fn succeeds(folder: &Path, words: &str) -> String {
    let output = tenure(folder, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "tenure {words}: {said}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// Runs a command that must fail with a code, and gives the one line that it said.
pub(crate) fn fails(folder: &Path, words: &str, code: i32) -> String {
    one_line(&tenure(folder, words), code, words)
}

/// The one line that a command said which failed with a code.
pub(crate) fn one_line(output: &Output, code: i32, what: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(code), 1), "tenure {what}: {said}");
    assert!(said.starts_with("tenure: ") && output.stdout.is_empty(), "tenure {what}: {said}");
    said
}

/// The first of `count` ports that are free, below those that the system gives to others by itself.
pub(crate) fn free_ports(count: u16) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process = u16::try_from(std::process::id() % 180).expect("it is small");
    loop {
        let base = 10_000 + process * 120 + NEXT.fetch_add(count, Relaxed) % 120;
        let free = |port: u16| {
            UdpSocket::bind(("127.0.0.1", port)).is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok()
        };
        if (base..base + count).all(free) {
            return base;
        }
    }
}

/// Waits until something is so, and says what is not. Asks again and again: nobody tells of a line
/// in a file.
pub(crate) fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let now = || Duration::try_from(clock_gettime(ClockId::Boottime)).expect("it is not negative");
    let start = now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(now() - start < LONG, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Members that were founded, each in its folder.
pub(crate) struct Daemons {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) base: u16,
    pub(crate) count: u16,
}

/// The name of a member, by its place.
pub(crate) fn name(index: u16) -> String {
    format!("n{}", index + 1)
}

impl Daemons {
    /// Founds a cluster of `count` members, with more words for `tenure init`.
    pub(crate) fn found(count: u16, words: &str) -> Self {
        let (dir, base) = (tempfile::tempdir().expect("a folder"), free_ports(2 * count));
        let members: Vec<String> =
            (0..count).map(|i| format!("--member {}=127.0.0.1:{}", name(i), base + 2 * i)).collect();
        succeeds(dir.path(), &format!("init --dir . {} {words}", members.join(" ")));
        Self { dir, base, count }
    }

    /// Where everything is.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The configuration of a member.
    pub(crate) fn file(&self, index: u16) -> PathBuf {
        self.path().join(name(index)).join("tenure.toml")
    }

    /// Changes the configuration of a member.
    pub(crate) fn edit(&self, index: u16, from: &str, to: &str) {
        let file = self.file(index);
        let text = fs::read_to_string(&file).expect("it is there");
        assert!(text.contains(from), "{from} is not in {text}");
        fs::write(file, text.replace(from, to)).expect("it is written");
    }

    /// The command that runs a member.
    pub(crate) fn node(&self, index: u16) -> Command {
        let mut command = command(self.path());
        command.args(["node", "-c"]).arg(self.file(index));
        command
    }

    /// Starts a member.
    pub(crate) fn start(&self, index: u16) -> Daemon {
        Daemon::start(self.node(index), &self.path().join(name(index)).join("log"))
    }

    /// Starts all members, and waits until they are ready.
    pub(crate) fn start_all(&self) -> Vec<Daemon> {
        let daemons: Vec<Daemon> = (0..self.count).map(|i| self.start(i)).collect();
        daemons.iter().for_each(|daemon| drop(daemon.line("event=ready")));
        daemons
    }

    /// Runs a member that must fail with a code, and gives the one line that it said.
    pub(crate) fn refused(&self, index: u16, words: &str, code: i32) -> String {
        let output = self.node(index).args(words.split_whitespace()).output().expect("it runs");
        one_line(&output, code, "node")
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        forget(&self.path().join("tenure.toml"));
    }
}

/// What remembers grants within a boot is no part of a cluster's folder: it is removed by the
/// cluster's id.
pub(crate) fn forget(client: &Path) {
    let text = fs::read_to_string(client).unwrap_or_default();
    let Some(id) = text.lines().find_map(|line| line.strip_prefix("cluster_id = ")) else { return };
    let begin = format!("tenure-{}-", id.trim_matches('"'));
    let Ok(folder) = tenure::memory_folder(None) else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begin) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A process that runs, and ends when this is dropped.
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts a command; what it writes goes to a file.
    pub(crate) fn start(mut command: Command, log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).expect("a log");
        let out = file.try_clone().expect("a second handle");
        let child = command.stdin(Stdio::null()).stdout(out).stderr(file).spawn().expect("it starts");
        Self { child, log: log.to_owned() }
    }

    /// Its number.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    /// What it has written.
    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.log).expect("it has a log")
    }

    /// Waits for a line with this in it.
    pub(crate) fn line(&self, part: &str) -> String {
        self.lines(part, 1).pop().expect("there is one")
    }

    /// Waits for so many lines with this in them.
    pub(crate) fn lines(&self, part: &str, count: usize) -> Vec<String> {
        let found = || {
            let text = self.text();
            let lines: Vec<String> =
                text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect();
            (lines.len() >= count && text.ends_with('\n')).then_some(lines)
        };
        wait_until(&format!("{count} of '{part}' in {}:\n{}", self.log.display(), self.text()), found)
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = wait_until("its end", || self.child.try_wait().expect("it can be asked"));
        (status, self.text())
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_none()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
