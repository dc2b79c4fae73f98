//! The errors of the library, read in its source: each that has a cause returns it, and none tells
//! users of the library what to type.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file of the library.
fn sources() -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.extension() {
                None => folders.push(entry),
                Some(_) => files.push((entry.clone(), fs::read_to_string(&entry).unwrap())),
            }
        }
    }
    files
}

/// The public enums of errors: where each is, and its lines.
fn errors() -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (path, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(name) = line.strip_prefix("pub enum ").and_then(|rest| rest.strip_suffix(" {")) else {
                continue;
            };
            let derives = lines[..at].iter().rev().take_while(|line| line.starts_with('#'));
            if derives.into_iter().any(|line| line.starts_with("#[derive") && line.contains("Error")) {
                let body = lines[at + 1..].iter().take_while(|line| **line != "}");
                let place = format!("{} in {}", name, path.display());
                found.push((place, body.map(|line| line.trim().to_owned()).collect()));
            }
        }
    }
    assert!(found.len() > 20, "they are found: {found:?}");
    found
}

/// Whether a line of an enum has a value that is an error itself.
fn has_cause(line: &str) -> bool {
    let code = line.starts_with("//") || line.starts_with('#') && !line.contains('(');
    let of_type = |kind: &str| line.contains(&format!("{kind})")) || line.ends_with(&format!("{kind},"));
    let kinds = ["io::Error", "ConfigError", "StoreError", "NameError", "FileError", "TokenError"];
    !code && !line.starts_with("#[error") && kinds.into_iter().any(of_type)
}

#[test]
fn every_error_with_a_cause_returns_it() {
    let mut causes = 0;
    for (place, lines) in errors() {
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| has_cause(line)) {
            causes += 1;
            let before = at.checked_sub(1).map_or("", |before| lines[before].as_str());
            let marked = |text: &str| text.contains("#[source]") || text.contains("#[from]");
            let told = marked(line) || marked(before) || line.starts_with("source: ");
            assert!(told || before == "#[error(transparent)]", "{place}: {line}");
        }
    }
    assert!(causes >= 12, "they are found: {causes}");
}

#[test]
fn a_cause_is_the_source_of_its_error() {
    let io = || std::io::Error::other("the cause");
    let address = "127.0.0.1:1".parse().unwrap();
    let path = PathBuf::from("there");
    let all: Vec<Box<dyn Error>> = vec![
        Box::new(tenure::StartError::Listen { address, error: io() }),
        Box::new(tenure::StartError::Trace { path: path.clone(), error: io() }),
        Box::new(tenure::StartError::System(io())),
        Box::new(tenure::log::OpenError::Listen { address, error: io() }),
        Box::new(tenure::log::OpenError::Disk { what: "read", path: path.clone(), source: io() }),
        Box::new(tenure::log::OpenError::System(io())),
        Box::new(tenure::fence::FileError::Io { path, doing: "read", error: io() }),
    ];
    for error in all {
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("the cause"), "{error:?}");
    }
}

#[test]
fn no_error_names_a_flag_of_the_command() {
    for (place, lines) in errors() {
        let texts = lines.iter().filter(|line| !line.starts_with("//"));
        for line in texts {
            let flag = line.split([' ', '`', '(']).any(|word| word.starts_with("--"));
            assert!(!flag, "{place}: {line}");
        }
    }
}

#[test]
fn every_enum_of_errors_may_grow() {
    for (path, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("pub enum ")) {
            let above: Vec<&&str> =
                lines[..at].iter().rev().take_while(|line| line.starts_with('#')).collect();
            let is_error = above.iter().any(|line| line.starts_with("#[derive") && line.contains("Error"));
            let may_grow = above.iter().any(|line| **line == "#[non_exhaustive]");
            assert!(!is_error || may_grow, "{line} in {}", path.display());
        }
    }
}
