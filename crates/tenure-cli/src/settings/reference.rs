//! `docs/reference/configuration.md`, written from the table of keys.

use super::key::{Fallback, Key, Kind};
use super::table::{KEYS, SECTIONS};
use super::{LOCAL, SYSTEM};

/// Columns of the document.
const COLUMNS: usize = 100;

/// The document as Markdown.
pub(crate) fn markdown() -> String {
    let mut text = head();
    for section in SECTIONS {
        text += &format!("\n## {}\n", section.title);
        if !section.about.is_empty() {
            text += &format!("\n{}\n", wrapped(section.about));
        }
        for key in KEYS.iter().filter(|key| key.section() == section.name) {
            text += &entry(key);
        }
    }
    text + &environment()
}

fn head() -> String {
    let files = wrapped(&format!(
        "The first that is there wins. The file is the one that `-c FILE` names, else the one that \
         `TENURE_CONFIG` names, else `{LOCAL}`, else `{SYSTEM}`."
    ));
    let reread = KEYS.iter().filter(|key| key.reread).map(|key| format!("`{}`", key.name));
    let reread = reread.collect::<Vec<_>>().join(", ");
    let reread =
        item(&format!("A running daemon reads {reread} again on HUP. Everything else needs a restart."));
    HEAD.replace("FILES\n", &format!("{files}\n")).replace("REREAD\n", &format!("{reread}\n"))
}

const HEAD: &str = "\
# Configuration

Every key of the files that `tenure node`, `tenure run` and the other commands read.

This page is written by `tenure config reference` from the table in
`crates/tenure-cli/src/settings/table.rs`: change it there.

## Where a value comes from

1. A flag of the command (`--lease 1s`).
2. A variable `TENURE_…` of the environment.
3. The file.
4. The default.

FILES

* The format is TOML. An unknown key is an error that names its line and the nearest known key.
* Paths are relative to the file that names them; in the environment, to the current folder.
* A length of time is text: a number and `ns`, `us`, `ms`, `s` or `m`, as in `\"250ms\"` or `\"1.5s\"`.
* `tenure config check FILE` says what `tenure node` would refuse. `tenure config show --effective`
  prints every value, defaults included, and where it comes from, without secrets.
REREAD

The keys live in three places, and change in three ways:

| keys | they belong to | to change one |
|---|---|---|
| `cluster.*` | the cluster: the file founds it, then the charter in the stores rules | `tenure members set`, then edit the files |
| `lease.*`, `election.*`, `limits.*` | this node | edit, restart one node after another |
| all others | this node | edit, restart, or HUP where the key says so |

A member whose `[cluster]` contradicts the charter in its store does not start (exit code 78).
";

/// One key: its type, default and variable in one line, then what it does and how to choose.
fn entry(key: &Key) -> String {
    let mut facts = vec![kind(key.kind), fallback(key.fallback)];
    facts.extend(key.with.map(|(other, value)| format!("only with `{other} = \"{value}\"`")));
    facts.extend(key.variable.map(|name| format!("`TENURE_{name}`")));
    facts.extend(key.reread.then(|| "HUP reads it again".to_owned()));
    let facts = wrapped(&format!("{}.", facts.join("; ")));
    let choose = wrapped(&format!("How to choose: {}", lower(key.choose)));
    let paragraphs: Vec<String> = key.what.split("\n\n").map(wrapped).collect();
    format!("\n### `{}`\n\n{facts}\n\n{}\n\n{choose}\n", key.name, paragraphs.join("\n\n"))
}

fn kind(kind: Kind) -> String {
    let name = match kind {
        Kind::Text => "Text",
        Kind::Secret => "Text, a secret",
        Kind::Choice(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
            return names.join(" or ");
        }
        Kind::Address => "An address with a port",
        Kind::Length => "A length of time",
        Kind::Number => "A whole number",
        Kind::Flag => "`true` or `false`",
        Kind::Path => "A path",
        Kind::SecretPath => "The path of a file that only its owner may read",
        Kind::SecretPaths => "A list of paths of files that only their owner may read",
        Kind::List => "A list of texts; in the environment, with commas between",
        Kind::Peers => "A list of `{ name = \"a\", address = \"10.0.0.1:7400\" }`",
        Kind::Table(form) => return format!("A table, as in `{form}`"),
    };
    name.to_owned()
}

fn fallback(fallback: Fallback) -> String {
    match fallback {
        Fallback::Value("[]") => "default empty".to_owned(),
        Fallback::Value(value) => format!("default `{value}`"),
        Fallback::Absent(words) => format!("default: {words}"),
        Fallback::Required("") => "required".to_owned(),
        Fallback::Required(words) => format!("required {words}"),
    }
}

/// The text with a small first letter, unless the first word is a name.
fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let begins = text.chars().nth(1).is_some_and(|second| second.is_lowercase() || second == ' ');
    match letters.next() {
        Some(first) if begins => first.to_lowercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

/// The variables, with the keys that they set.
fn environment() -> String {
    let mut text =
        "\n## The environment\n\n| variable | key |\n|---|---|\n| `TENURE_CONFIG` | the file |\n".to_owned();
    for key in KEYS {
        if let Some(variable) = key.variable {
            text += &format!("| `TENURE_{variable}` | `{}` |\n", key.name);
        }
    }
    let rest = "A variable that names no key is passed over, with a note on stderr. `TENURE_GROUP`, \
                `TENURE_TERM`, `TENURE_TOKEN`, `TENURE_NODE` and `TENURE_SOCKET` are what `tenure run` \
                gives to its command.";
    format!("{text}\n{}\n", wrapped(rest))
}

/// A bullet, its further lines indented.
fn item(text: &str) -> String {
    wrapped_to(text, COLUMNS - 2).lines().enumerate().fold(String::new(), |all, (at, line)| {
        let begin = if at == 0 { "* " } else { "\n  " };
        all + begin + line
    })
}

fn wrapped(text: &str) -> String {
    wrapped_to(text, COLUMNS)
}

/// The words of a paragraph in lines of at most so many columns. Rows of tables stay as they are,
/// and so does code between backquotes.
fn wrapped_to(text: &str, columns: usize) -> String {
    if text.starts_with('|') {
        return text.to_owned();
    }
    let (mut lines, mut line, mut code) = (Vec::new(), String::new(), false);
    let mut word = String::new();
    for part in text.split(' ') {
        word += part;
        code ^= part.matches('`').count() % 2 == 1;
        if code {
            word.push(' ');
            continue;
        }
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += &std::mem::take(&mut word);
    }
    lines.push(line);
    lines.join("\n")
}
