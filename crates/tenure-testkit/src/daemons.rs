//! Daemons as real processes: founded by `tenure init`, run by `tenure node`, ended when the test
//! ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::binary::{Binary, one_line};
use crate::cluster::numbered;
use crate::ports::free_range;
use crate::waiting::look_for;

/// Members that were founded, each in its folder.
pub struct Daemons {
    binary: Binary,
    dir: tempfile::TempDir,
    /// The first port: each member has two in a row, for datagrams and for HTTP.
    pub base: u16,
    count: u16,
}

fn name(index: u16) -> String {
    numbered(usize::from(index))
}

impl Daemons {
    /// Founds a cluster of `count` members, with more words for `tenure init`.
    pub fn found(binary: Binary, count: u16, words: &str) -> Self {
        let (dir, base) = (tempfile::tempdir().expect("a folder"), free_range(2 * count));
        let members: Vec<String> =
            (0..count).map(|i| format!("--member {}=127.0.0.1:{}", name(i), base + 2 * i)).collect();
        binary.succeeds(dir.path(), &format!("init --dir . {} {words}", members.join(" ")));
        Self { binary, dir, base, count }
    }

    /// Where everything is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The configuration of a member.
    pub fn file(&self, index: u16) -> PathBuf {
        self.path().join(name(index)).join("tenure.toml")
    }

    /// Changes the configuration of a member.
    pub fn edit(&self, index: u16, from: &str, to: &str) {
        let file = self.file(index);
        let text = fs::read_to_string(&file).expect("it is there");
        assert!(text.contains(from), "{from} is not in {text}");
        fs::write(file, text.replace(from, to)).expect("it is written");
    }

    /// The command that runs a member.
    pub fn node(&self, index: u16) -> Command {
        let mut command = self.binary.command_in(self.path());
        command.args(["node", "-c"]).arg(self.file(index));
        command
    }

    /// Starts a member.
    pub fn start(&self, index: u16) -> Daemon {
        Daemon::start(self.node(index), &self.path().join(name(index)).join("log"))
    }

    /// Starts all members, and waits until they are ready.
    pub fn start_all(&self) -> Vec<Daemon> {
        let daemons: Vec<Daemon> = (0..self.count).map(|i| self.start(i)).collect();
        daemons.iter().for_each(|daemon| drop(daemon.line("event=ready")));
        daemons
    }

    /// Runs a member that must fail with a code, and gives the one line that it said.
    pub fn refused(&self, index: u16, words: &str, code: i32) -> String {
        let output = self.node(index).args(words.split_whitespace()).output().expect("it runs");
        one_line(&output, code, "node")
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        forget(&self.path().join("tenure.toml"));
    }
}

/// Removes the memory of grants within a boot, which is no part of a cluster's folder: by the
/// cluster's id.
pub fn forget(client: &Path) {
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
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts a command; what it writes goes to a file.
    pub fn start(mut command: Command, log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).expect("a log");
        let out = file.try_clone().expect("a second handle");
        let child = command.stdin(Stdio::null()).stdout(out).stderr(file).spawn().expect("it starts");
        Self { child, log: log.to_owned() }
    }

    /// Its number.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    /// All that it has written.
    pub fn text(&self) -> String {
        fs::read_to_string(&self.log).expect("it has a log")
    }

    /// Waits for a line with this in it.
    pub fn line(&self, part: &str) -> String {
        self.lines(part, 1).pop().expect("there is one")
    }

    /// Waits for so many lines with this in them.
    pub fn lines(&self, part: &str, count: usize) -> Vec<String> {
        let found = || {
            let text = self.text();
            let lines: Vec<String> =
                text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect();
            (lines.len() >= count && text.ends_with('\n')).then_some(lines)
        };
        look_for(&format!("{count} of '{part}' in {}:\n{}", self.log.display(), self.text()), found)
    }

    /// Waits for its end.
    pub fn end(mut self) -> (ExitStatus, String) {
        let status = look_for("its end", || self.child.try_wait().expect("it can be asked"));
        (status, self.text())
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_none()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
