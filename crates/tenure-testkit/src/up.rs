//! A whole cluster of real daemons, by `tenure up`, ended with the test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::binary::Binary;
use crate::ports::free_range;
use crate::waiting::look_for;

/// A cluster that runs in a folder of its own.
pub struct Up {
    binary: Binary,
    folder: tempfile::TempDir,
    /// `tenure up` itself.
    pub process: Child,
    base: u16,
}

impl Up {
    /// Starts three daemons and waits until one of them says that it is ready.
    pub fn start(binary: Binary) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let base = free_range(6);
        let out = std::fs::File::create(folder.path().join("up.log")).expect("a file");
        let process = Command::new(binary.0)
            .args(["up", "--port", &base.to_string()])
            .current_dir(folder.path())
            .env_remove("TENURE_CONFIG")
            .stdin(Stdio::null())
            .stdout(out.try_clone().expect("a second handle"))
            .stderr(out)
            .spawn()
            .expect("it starts");
        let up = Self { binary, folder, process, base };
        look_for("three daemons are ready", || {
            let (code, said) = up.tenure("top -o json");
            (code == 0 && said.matches("\"state\": \"ready\"").count() == 3).then_some(())
        });
        up
    }

    /// The folder in which `.tenure` is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The output of `tenure up`.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.path().join("up.log")).unwrap_or_default()
    }

    /// The file of a member.
    pub fn member_file(&self, name: &str) -> PathBuf {
        self.path().join(".tenure").join(name).join("tenure.toml")
    }

    /// Where a member answers over HTTP; the first is 0.
    pub fn endpoint(&self, index: u16) -> String {
        format!("http://127.0.0.1:{}", self.base + 2 * index + 1)
    }

    /// A command in that folder, not started yet.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(self.binary.0);
        command.args(words.split_whitespace()).current_dir(self.path()).env_remove("TENURE_CONFIG");
        command
    }

    /// Runs a command in that folder: its exit code and what it prints.
    pub fn tenure(&self, words: &str) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command(words).output().expect("it runs");
        let said = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
        (status.code().unwrap_or(-1), said)
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
pub struct Ends(pub Child);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}
