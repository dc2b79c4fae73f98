//! Programs that tests start as processes of their own: the examples, and the command `tenure`.
//!
//! A program says what happens by lines on its standard output, a word and then `key=value` pairs.
//! Its input ends when the test ends, however that ends, and it ends with its input: nothing is
//! left behind.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::SystemTime;
use std::{env, fs, thread};

/// A line that a program has said.
#[derive(Clone, Debug)]
pub struct Said {
    /// The speaker: a number that the test has given.
    pub who: usize,
    /// Which process of that name: each start counts one more.
    pub life: u32,
    /// All of it, without its end.
    pub line: String,
}

impl Said {
    /// The word that says what happened.
    pub fn word(&self) -> &str {
        self.line.split_whitespace().next().unwrap_or_default()
    }

    /// The number of a pair `key=number`.
    pub fn number(&self, key: &str) -> u64 {
        let value = self.line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let number = value.and_then(|value| value.parse().ok());
        number.unwrap_or_else(|| panic!("no {key} in '{}'", self.line))
    }
}

/// A process that a test has started.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
}

impl Process {
    /// Starts a program. Its lines go to `sayings`, until it ends.
    pub fn start(mut command: Command, who: usize, life: u32, sayings: Sender<Said>) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program can be started");
        let output = child.stdout.take().expect("it is piped");
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sayings.send(Said { who, life, line }).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input }
    }

    /// Tells it something.
    pub fn tell(&mut self, order: &str) {
        let input = self.input.as_mut().expect("its input is open");
        writeln!(input, "{order}").expect("it listens");
    }

    /// Stops it as a scheduler or a debugger would: it stands still, with all its threads.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub fn wake(&self) {
        self.signal("CONT");
    }

    /// Kills it, as `kill -9` does, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it is our child");
    }

    /// Ends its input and waits until it has ended by itself.
    pub fn finish(&mut self) -> bool {
        drop(self.input.take());
        self.child.wait().expect("it is our child").success()
    }

    fn signal(&self, name: &str) {
        let line = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &line]).status().expect("there is a shell");
        assert!(status.success(), "{line}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An example of the library.
pub fn example(name: &str) -> PathBuf {
    let sources = ["tenure/src", "tenure/examples", "tenure-proto/src"];
    program(Path::new("examples").join(name), &["-p", "tenure", "--example", name], &sources)
}

/// The command `tenure`.
pub fn tenure() -> PathBuf {
    let sources = ["tenure-cli/src", "tenure-lab/src", "tenure-proto/src"];
    program(PathBuf::from("tenure"), &["-p", "tenure-cli", "--bin", "tenure"], &sources)
}

/// A program of this workspace. `cargo test` has built it before it runs any test; if this test was
/// asked for alone, it has not, or only an older one is there, and it is built now.
fn program(path: PathBuf, what: &[&str], sources: &[&str]) -> PathBuf {
    let test = env::current_exe().expect("this test is a file");
    let folder = test.ancestors().nth(2).expect("it is in target/PROFILE/deps");
    let program = folder.join(path);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates are in one folder");
    let newest = sources.iter().filter_map(|source| newest(&crates.join(source))).max();
    if changed(&program).is_none_or(|built| newest.is_some_and(|newest| built < newest)) {
        let profile = if folder.file_name() == Some(OsStr::new("release")) { "release" } else { "test" };
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(crates).args(["build", "--quiet", "--profile", profile]).args(what);
        cargo.arg("--target-dir").arg(folder.parent().expect("it is in a target folder"));
        assert!(cargo.status().expect("there is a cargo").success(), "{what:?} cannot be built");
    }
    assert!(program.is_file(), "{} is missing: run `cargo build {}`", program.display(), what.join(" "));
    program
}

/// When the newest file below a folder was changed.
fn newest(folder: &Path) -> Option<SystemTime> {
    let below = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    below.filter_map(|path| if path.is_dir() { newest(&path) } else { changed(&path) }).max()
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
