//! Runs test programs one after the other, follows what they print, and keeps it in a file each.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use super::clock;
use super::libtest::{self, Counts, Heard, Listener};
use super::program::Program;
use crate::failure::Failure;

/// How often a program's output is read. Coarse, but a time in the report needs no more.
const LOOK: Duration = Duration::from_millis(10);

/// A program, and those of its tests that are to run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) program: Program,
    pub(super) tests: Vec<String>,
    /// Whether these are all its tests: then it needs no names.
    pub(super) all: bool,
}

/// A program that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) label: String,
    pub(super) heard: Heard,
    pub(super) taken: Duration,
    pub(super) status: ExitStatus,
    /// The output of its failing tests; empty if none failed.
    pub(super) failures: String,
    /// The file that has all of it.
    pub(super) log: PathBuf,
}

impl Plan {
    /// Runs the program to its end. `logs` is a folder.
    pub(super) fn run(&self, logs: &Path, threads: usize) -> Result<Done, Failure> {
        let label = self.program.label();
        let log = logs.join(format!("{}.log", label.replace(['-', ' '], "_").trim_start_matches('_')));
        let cannot = |error: std::io::Error| Failure::Error(format!("{label} could not be run: {error}"));
        // A file and no pipe: a process that outlives its test would keep a pipe open.
        fs::create_dir_all(logs).map_err(cannot)?;
        let output = File::create(&log).map_err(cannot)?;
        let mut command = self.program.command();
        command.arg("--test-threads").arg(threads.to_string());
        if !self.all {
            command.arg("--exact").args(&self.tests);
        }
        command.stdout(output.try_clone().map_err(cannot)?).stderr(output);
        let child = command.spawn().map_err(cannot)?;
        let listener = Listener::new(&self.tests, threads);
        let (heard, status, taken) = follow(child, listener, &log, &label).map_err(cannot)?;
        let failures = if heard.counts.failed > 0 { read(&log) } else { String::new() };
        let failures = libtest::failures(&failures).to_string();
        Ok(Done { label, heard, taken, status, failures, log })
    }
}

/// Reads what a program prints until it has ended.
fn follow(
    mut child: Child,
    mut listener: Listener,
    log: &Path,
    label: &str,
) -> std::io::Result<(Heard, ExitStatus, Duration)> {
    let mut file = File::open(log)?;
    let mut rest = Vec::new();
    let begun = clock();
    loop {
        // The state first: what was printed before the end is then read after it.
        let ended = child.try_wait()?;
        file.read_to_end(&mut rest)?;
        let at = clock().duration_since(begun);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            listener.hear(line.trim_end(), at);
            if line.contains(" has been running for over ") {
                eprintln!("xtask: {label}: {}", line.trim_end());
            }
        }
        if let Some(status) = ended {
            return Ok((listener.end(status.success(), at), status, at));
        }
        thread::sleep(LOOK);
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

impl Done {
    /// One line when a program has ended; for one that failed, what its failing tests printed.
    pub(super) fn tell(&self) {
        let Counts { passed, failed, ignored } = self.heard.counts;
        let seconds = self.taken.as_secs_f64();
        let mut line = format!("xtask: {}: {passed} passed", self.label);
        if failed > 0 {
            line += &format!(", {failed} FAILED ({})", self.status);
        }
        if ignored > 0 {
            line += &format!(", {ignored} ignored");
        }
        eprintln!("{line}, {seconds:.1} s");
        if failed > 0 {
            eprintln!("{}", self.failures.trim_end());
            eprintln!("xtask: all that it printed: {}", self.log.display());
        }
    }

    /// The commands that repeat what failed.
    pub(super) fn repeat(&self) -> Vec<String> {
        let command = format!("cargo test {}", self.label);
        if self.heard.counts.failed > 0 && self.heard.failed.is_empty() {
            return vec![command];
        }
        self.heard.failed.iter().map(|test| format!("{command} -- --exact {test}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::program::Kind;
    use std::os::unix::fs::PermissionsExt;

    /// A program that is a script, in a folder of its own.
    fn script(name: &str, text: &str) -> (PathBuf, Program) {
        let folder = std::env::temp_dir().join(format!("tenure-xtask-run-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("program");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let (package, name) = ("tenure".to_string(), name.to_string());
        (folder.clone(), Program { folder, package, kind: Kind::Test, name, path })
    }

    fn run(name: &str, text: &str, tests: &[&str], all: bool) -> Done {
        let (folder, program) = script(name, text);
        let tests = tests.iter().map(ToString::to_string).collect();
        let done = Plan { program, tests, all }.run(&folder.join("logs"), 2);
        fs::remove_dir_all(&folder).unwrap();
        done.unwrap()
    }

    #[test]
    fn a_failing_test_is_shown_with_its_output_and_how_to_repeat_it() {
        let text = "echo 'test a ... ok'; echo 'test b ... FAILED'; echo; echo failures:; echo; \
                    echo '---- b stdout ----'; echo 'no, said the disk' >&2; \
                    echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured'; exit 101";
        let done = run("fails", text, &["a", "b"], true);
        assert_eq!(done.heard.counts, Counts { passed: 1, failed: 1, ignored: 0 });
        assert!(done.failures.starts_with("failures:"), "{}", done.failures);
        assert!(done.failures.contains("no, said the disk"), "{}", done.failures);
        assert_eq!(done.repeat(), ["cargo test -p tenure --test fails -- --exact b"]);
    }

    #[test]
    fn a_part_of_the_tests_is_asked_for_by_exact_names() {
        let done = run("part", "test \"$*\" = '--test-threads 2 --exact a b' || exit 1", &["a", "b"], false);
        assert!(done.status.success());
        let done = run("whole", "test \"$*\" = '--test-threads 2' || exit 1", &["a", "b"], true);
        assert!(done.status.success());
    }

    #[test]
    fn a_process_that_outlives_the_program_holds_nothing_up() {
        let text =
            "sleep 20 & echo \"$!\"; echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured'";
        let done = run("outlived", text, &["a"], true);
        assert!(done.status.success() && done.taken < Duration::from_secs(15), "{done:?}");
        assert_eq!(done.repeat(), [""; 0]);
    }
}
