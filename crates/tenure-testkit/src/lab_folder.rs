//! The laboratory's commands in a folder of their own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::binary::Binary;

/// A folder of its own for each test, removed at its end.
pub struct Folder {
    binary: Binary,
    path: PathBuf,
}

impl Folder {
    /// Makes it.
    pub fn new(binary: Binary, name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tenure-lab-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self { binary, path }
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Runs `tenure` in this folder.
    pub fn tenure(&self, words: &str) -> Output {
        Command::new(self.binary.0)
            .args(words.split_whitespace())
            .current_dir(&self.path)
            .output()
            .expect("it runs")
    }

    /// The names of its files.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).expect("it is there");
        entries
            .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// A command that must fail: exit code 2, one line on stderr, nothing on stdout, no file.
    pub fn refuses(&self, words: &str) -> String {
        let before = self.files();
        let output = self.tenure(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert_eq!(text(&output.stdout), "", "{words}");
        assert!(said.starts_with("tenure: ") && said.ends_with('\n'), "{words}: {said}");
        assert_eq!(said.lines().count(), 1, "{words}: {said}");
        assert_eq!(self.files(), before, "{words} left a file");
        said
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The output of a command, as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

/// The standard output of a command.
pub fn stdout(output: &Output) -> String {
    text(&output.stdout)
}

/// The standard output of a command, which must be JSON.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stdout(output)))
}

/// An object must have these keys.
pub fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "no key {key} in {value:#}");
    }
}
