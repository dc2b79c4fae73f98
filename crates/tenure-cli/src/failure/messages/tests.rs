//! The table is whole, and `docs/reference/messages.md` is the table.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Message, answers, cluster, command, running, settings};

/// The parts of the table as the page has them.
const PARTS: &[(&str, &[Message])] = &[
    ("The command line, files and the laboratory", command::ENTRIES),
    ("Configurations and keys", settings::ENTRIES),
    ("Founding, stores and `tenure up`", cluster::ENTRIES),
    ("Nodes that stop, and `tenure run`", running::ENTRIES),
    ("Daemons that are asked", answers::ENTRIES),
];

fn all() -> impl Iterator<Item = &'static Message> {
    PARTS.iter().flat_map(|(_, entries)| *entries)
}

#[test]
fn every_name_is_in_the_table_once() {
    let mut names = BTreeSet::new();
    for message in all() {
        assert!(names.insert(message.name()), "{} is there twice", message.ident);
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(message.name().chars().all(is_plain), "{}", message.name());
    }
}

#[test]
fn every_entry_says_what_happened_why_and_what_to_do() {
    for Message { ident, what, why, advice, .. } in all() {
        for part in [what, why, advice] {
            let text = part.trim_end_matches('`');
            assert!(part.trim() == *part && text.len() > 2, "{ident}: {part}");
            assert!(!text.ends_with(['.', ':', ';', ',', '!', '?']), "{ident}: {part}");
        }
        // The advice is never left to the error of somebody else, but where the flaw decides it.
        assert!(!advice.starts_with('{') || *ident == "secret_exposed", "{ident}: {advice}");
    }
}

#[test]
fn no_entry_shows_the_inside_of_the_program() {
    for Message { ident, what, why, advice, .. } in all() {
        for part in [what, why, advice] {
            for inside in ["{:?}", ":?}", "struct ", "enum ", "::", "Err(", "Some(", "unwrap", "panic"] {
                assert!(!part.contains(inside), "{ident}: {part}");
            }
        }
    }
}

#[test]
fn every_exit_code_is_one_that_failures_have() {
    for message in all() {
        assert!([2, 69, 70, 75, 77, 78, 126, 127].contains(&message.code), "{}", message.ident);
    }
}

/// A text as the page has it: values in capitals, and nothing that ends a cell.
fn shown(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        shown += &rest[..at];
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            shown += brace; // Two of them stand for one.
            rest = after;
        } else if let Some((value, after)) = rest.split_once('}') {
            // A value behind a word is another word.
            shown += if shown.ends_with(char::is_alphanumeric) { " " } else { "" };
            shown += &value.to_uppercase();
            rest = after;
        }
    }
    (shown + rest).replace('|', "\\|")
}

fn page() -> String {
    let mut page = String::from(
        "# Messages\n\n\
         Every error that a command can print. `tenure` writes it to standard error as\n\
         `what happened: why; what to do`. With `-o json` it is one object instead, whose `name` is a\n\
         contract:\n\n\
         ```text\n\
         {\"error\":{\"name\":\"config-missing\",\"exit_code\":78,\"message\":\"…\",\"what\":\"…\",\"why\":\"…\",\"do\":\"…\",\"excerpt\":null}}\n\
         ```\n\n\
         `excerpt` has lines of a file that show the place of a flaw, where there is one. Words in\n\
         capitals stand for values. [Exit codes](exit-codes.md) says what each code means; a command that\n\
         passes on the end of another process (`tenure up`, `tenure run`) may have another code than here.\n\n\
         The page is made from the table in `crates/tenure-cli/src/failure/messages/`:\n\
         `TENURE_WRITE_PAGE=1 cargo test -p tenure-cli --bin tenure the_page_of_messages`.\n",
    );
    for (part, entries) in PARTS {
        let _ = write!(
            page,
            "\n## {part}\n\n| name | code | what happened, and why | what to do |\n|---|---|---|---|\n"
        );
        for message in *entries {
            let Message { code, what, why, advice, .. } = message;
            let [what, why, advice] = [what, why, advice].map(|part| shown(part));
            let _ = writeln!(page, "| `{}` | {code} | {what}: {why} | {advice} |", message.name());
        }
    }
    page
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/messages.md")
}

#[test]
fn the_page_of_messages_is_the_table() {
    if std::env::var_os("TENURE_WRITE_PAGE").is_some() {
        std::fs::write(path(), page()).unwrap();
    }
    let written = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(written == page(), "docs/reference/messages.md says how it is made anew");
}
