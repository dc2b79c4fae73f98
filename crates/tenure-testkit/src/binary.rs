//! The command `tenure`, run by a test: in a clean environment, and with what it must say.
//!
//! Cargo tells only the tests of `tenure-cli` where the command is, so they pass it in:
//! `const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));`

use std::path::Path;
use std::process::{Command, Output};

/// Where the command is.
#[derive(Clone, Copy, Debug)]
pub struct Binary(pub &'static str);

impl Binary {
    /// The command, without what the environment of the tests says.
    pub fn command(self) -> Command {
        let mut command = Command::new(self.0);
        clear(&mut command);
        command
    }

    /// The same, in a folder.
    pub fn command_in(self, folder: &Path) -> Command {
        let mut command = self.command();
        command.current_dir(folder);
        command
    }

    /// Runs it in a folder to its end.
    pub fn run(self, folder: &Path, words: &str) -> Output {
        self.command_in(folder).args(words.split_whitespace()).output().expect("it runs")
    }

    /// Runs it in a folder, where it must succeed, and gives what it said.
    pub fn succeeds(self, folder: &Path, words: &str) -> String {
        let output = self.run(folder, words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "tenure {words}: {said}");
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// Runs it in a folder, where it must fail with a code, and gives the one line that it said.
    pub fn fails(self, folder: &Path, words: &str, code: i32) -> String {
        one_line(&self.run(folder, words), code, words)
    }
}

/// Takes from a command's environment what would change what `tenure` does.
pub fn clear(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TENURE_")) {
        command.env_remove(name);
    }
    for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "JOURNAL_STREAM"] {
        command.env_remove(name);
    }
}

/// The one line that a command said which failed with a code. Lines of a file may follow it: they
/// begin with a blank.
pub fn one_line(output: &Output, code: i32, what: &str) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let own = said.lines().filter(|line| !line.starts_with(' ')).count();
    assert_eq!((output.status.code(), own), (Some(code), 1), "tenure {what}: {said}");
    assert!(said.starts_with("tenure: ") && output.stdout.is_empty(), "tenure {what}: {said}");
    said
}
