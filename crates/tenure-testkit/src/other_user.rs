//! Another user of this machine: `nobody`, in a process of its own.
//!
//! The test program starts itself again under another user id, with what to try in its environment.
//! A test program that does not run as root cannot become another user: it counts what it skipped,
//! and says so.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::binary::{Binary, clear};

/// The user id and group id of `nobody`.
pub const NOBODY: u32 = 65_534;

/// Programs that `nobody` can start: copies in a folder that everybody can read.
pub struct Attacker {
    folder: tempfile::TempDir,
}

impl Attacker {
    /// `None` where this process cannot become another user.
    pub fn new(binary: Binary) -> Option<Self> {
        static SKIPPED: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            let number = SKIPPED.fetch_add(1, Relaxed) + 1;
            eprintln!("skipped, not root: {number} of the attacks of this program were not tried");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        open_to_all(folder.path());
        let own = std::env::current_exe().expect("it has a path");
        for (from, to) in [(own.as_path(), "attack"), (Path::new(binary.0), "tenure")] {
            fs::copy(from, folder.path().join(to)).expect("it is copied");
            open_to_all(&folder.path().join(to));
        }
        Some(Self { folder })
    }

    /// Runs the command `tenure` as `nobody`: its exit code and all that it says.
    pub fn tenure(&self, words: &str) -> (i32, String) {
        let mut command = Command::new(self.folder.path().join("tenure"));
        command.args(words.split_whitespace()).current_dir(self.folder.path());
        let output = as_nobody(&mut command).output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
    }

    /// Tries something as `nobody`, and gives what came of it.
    fn tries(&self, kind: &str, at: &str, send: &str) -> String {
        let mut command = Command::new(self.folder.path().join("attack"));
        command.args(["an_attack_in_another_process", "--exact", "--nocapture"]);
        command.env("DOORS_KIND", kind).env("DOORS_AT", at).env("DOORS_SEND", send);
        let output = as_nobody(command.current_dir(self.folder.path())).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = said.split_once("<<<").and_then(|(_, rest)| rest.split_once(">>>"));
        told.unwrap_or_else(|| panic!("no answer: {said}")).0.to_owned()
    }

    /// The answer to a request over TCP.
    pub fn tcp(&self, address: &str, request: &str) -> String {
        self.tries("tcp", address, request)
    }

    /// The answer to a request over a unix socket, or the error.
    pub fn socket(&self, path: &Path, request: &str) -> String {
        self.tries("socket", &path.to_string_lossy(), request)
    }

    /// The text of a file, or the error.
    pub fn read(&self, path: &Path) -> String {
        self.tries("read", &path.to_string_lossy(), "")
    }
}

fn as_nobody(command: &mut Command) -> &mut Command {
    clear(command);
    command.uid(NOBODY).gid(NOBODY)
}

/// Lets every user read, and start or enter.
pub fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// Does what the environment says, in the process of `nobody`. Each test program has a test that
/// calls this.
pub fn attack() {
    let Ok(kind) = std::env::var("DOORS_KIND") else { return };
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let (at, send) = (of("DOORS_AT"), of("DOORS_SEND"));
    let told = match kind.as_str() {
        "tcp" => TcpStream::connect(&at).and_then(|stream| talk(stream, &send)),
        "socket" => UnixStream::connect(&at).and_then(|stream| talk(stream, &send)),
        _ => fs::read_to_string(PathBuf::from(at)),
    };
    let told = told.unwrap_or_else(|error| format!("error: {:?}", error.kind()));
    println!("<<<{told}>>>");
}

fn talk(mut stream: impl Read + Write, send: &str) -> std::io::Result<String> {
    stream.write_all(send.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A request as it is written, which closes the connection after the answer.
pub fn request(method: &str, path: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n{more}\r\n{body}"
    )
}
