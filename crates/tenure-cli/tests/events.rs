//! `docs/reference/events.md` and the code say the same of every event in the log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Events = BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The arguments between a parenthesis that was just opened and its counterpart, split at commas.
fn arguments(text: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut parts) = (0, false, vec![String::new()]);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted => parts.last_mut().unwrap().extend(chars.next()),
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' if !quoted && depth == 0 => break,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(c);
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Every event of the code, with its levels and fields.
fn in_code() -> Events {
    let mut events = Events::new();
    let mut files = Vec::new();
    for folder in ["crates/tenure/src", "crates/tenure-cli/src"] {
        sources(&root().join(folder), &mut files);
    }
    for text in files.iter().map(|file| fs::read_to_string(file).unwrap()) {
        for (at, _) in text.match_indices("tracing::") {
            let rest = &text[at + "tracing::".len()..];
            let Some((level, rest)) = rest.split_once("!(") else { continue };
            if !["error", "warn", "info", "debug", "trace"].contains(&level) {
                continue;
            }
            let arguments = arguments(rest);
            let name = arguments[0].strip_prefix("name: \"tenure.").and_then(|name| name.strip_suffix('"'));
            let name = name.unwrap_or_else(|| panic!("an event without a name: {}", arguments[0]));
            let (levels, fields) = events.entry(name.to_owned()).or_default();
            levels.insert(level.to_owned());
            for argument in arguments[1..].iter().filter(|argument| !argument.starts_with('"')) {
                let name = argument.split('=').next().unwrap().trim().trim_start_matches(['%', '?']);
                let plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                if plain {
                    fields.insert(name.to_owned());
                }
            }
        }
    }
    events
}

/// Every event of the table.
fn in_document() -> Events {
    rows_of(&document().0)
}

/// The reference, up to the events of runners, and from there.
fn document() -> (String, String) {
    let text = fs::read_to_string(root().join("docs/reference/events.md")).unwrap();
    let (daemons, runners) = text.split_once("## `tenure run`").unwrap();
    (daemons.to_owned(), runners.to_owned())
}

/// Each row of a table: a name, levels and fields.
fn rows_of(text: &str) -> Events {
    let words = |cell: &str| -> BTreeSet<String> {
        cell.split(',')
            .map(|word| word.trim().trim_matches('`').to_owned())
            .filter(|word| !word.is_empty())
            .collect()
    };
    let mut events = Events::new();
    for row in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').collect();
        let name = words(cells[1]).pop_first().unwrap();
        let told = events.insert(name.clone(), (words(cells[2]), words(cells[3])));
        assert!(told.is_none(), "'{name}' has two rows");
        assert!(!cells[4].trim().is_empty(), "'{name}' has no meaning");
    }
    events
}

#[test]
fn every_event_is_in_the_table_and_every_row_is_an_event() {
    let (code, document) = (in_code(), in_document());
    let names = |events: &Events| events.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&code), names(&document));
    for (name, (levels, fields)) in &code {
        let (level, told) = &document[name];
        assert!(
            level.is_subset(levels),
            "the level of '{name}': {level:?} in the table, {levels:?} in the code"
        );
        assert_eq!(told, fields, "the fields of '{name}': the table's, then the code's");
    }
}

#[test]
fn every_event_of_a_runner_is_in_its_table_with_its_levels() {
    let mut files = Vec::new();
    sources(&root().join("crates/tenure-cli/src/commands/run"), &mut files);
    let mut code: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for text in files.iter().map(|file| fs::read_to_string(file).unwrap()) {
        for (call, level) in [(".note(", "info"), (".note_with(", "info"), (".warn(", "error")] {
            for (at, _) in text.match_indices(call) {
                let name = text[at + call.len()..].trim_start().strip_prefix('"');
                let Some((name, _)) = name.and_then(|rest| rest.split_once('"')) else { continue };
                code.entry(name.to_owned()).or_default().insert(level.to_owned());
            }
        }
    }
    let document: BTreeMap<_, _> =
        rows_of(&document().1).into_iter().map(|(name, (levels, _))| (name, levels)).collect();
    assert_eq!(document, code, "the table's, then the code's");
}
