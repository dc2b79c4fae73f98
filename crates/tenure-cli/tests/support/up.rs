//! A whole cluster of real daemons, by `tenure up`, ended with the test.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// A cluster that runs in a folder of its own.
pub(crate) struct Up {
    folder: tempfile::TempDir,
    /// `tenure up` itself.
    pub(crate) process: Child,
    base: u16,
}

/// The first of so many ports in a row that are free now, for datagrams and streams. They are below
/// those that Linux hands out by itself, so that nobody is given one before it is used, and never
/// the same twice in one process.
fn free_range(count: u16) -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let free = |port: u16| {
        let address = ("127.0.0.1", port);
        UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
    };
    for _ in 0..1000 {
        let place = std::process::id().wrapping_mul(61).wrapping_add(TRIED.fetch_add(count.into(), Relaxed));
        let first = u16::try_from(25_000 + place % 5_000).expect("it is below 30,000");
        if (first..first + count).all(free) {
            return first;
        }
    }
    panic!("no {count} free ports in a row");
}

impl Up {
    /// Starts three daemons and waits until one of them says that it is ready.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let base = free_range(6);
        let out = std::fs::File::create(folder.path().join("up.log")).expect("a file");
        let process = Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(["up", "--port", &base.to_string()])
            .current_dir(folder.path())
            .env_remove("TENURE_CONFIG")
            .stdin(Stdio::null())
            .stdout(out.try_clone().expect("a second handle"))
            .stderr(out)
            .spawn()
            .expect("it starts");
        let up = Self { folder, process, base };
        up.wait("three daemons are ready", || {
            let (code, said) = up.tenure("top -o json");
            (code == 0 && said.matches("\"state\": \"ready\"").count() == 3).then_some(())
        });
        up
    }

    /// The folder in which `.tenure` is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What `tenure up` has printed.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.path().join("up.log")).unwrap_or_default()
    }

    /// The file of a member.
    pub(crate) fn member_file(&self, name: &str) -> PathBuf {
        self.path().join(".tenure").join(name).join("tenure.toml")
    }

    /// Where a member answers over HTTP; the first is 0.
    pub(crate) fn endpoint(&self, index: u16) -> String {
        format!("http://127.0.0.1:{}", self.base + 2 * index + 1)
    }

    /// A command in that folder, not started yet.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(words.split_whitespace()).current_dir(self.path()).env_remove("TENURE_CONFIG");
        command
    }

    /// Runs a command in that folder: its exit code and what it prints.
    pub(crate) fn tenure(&self, words: &str) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command(words).output().expect("it runs");
        let said = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
        (status.code().unwrap_or(-1), said)
    }

    /// Looks until there is something, with a deadline.
    pub(crate) fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        for _ in 0..600 {
            if let Some(found) = look() {
                return found;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{what}: not within a minute");
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// A process that ends with the test.
pub(crate) struct Ends(pub(crate) Child);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}
