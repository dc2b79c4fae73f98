//! The laboratory's commands in a folder of their own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of its own for each test, removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tenure-lab-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs `tenure` in this folder.
    pub(crate) fn tenure(&self, words: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(words.split_whitespace())
            .current_dir(&self.0)
            .output()
            .unwrap()
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    /// A command that must fail: exit code 2, one line on stderr, nothing on stdout, no file.
    pub(crate) fn refuses(&self, words: &str) -> String {
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
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    text(&output.stdout)
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stdout(output)))
}

pub(crate) fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "no key {key} in {value:#}");
    }
}
