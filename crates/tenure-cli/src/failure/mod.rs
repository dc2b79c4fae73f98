//! Why a command did nothing, and the exit code that says so to a script.
//!
//! | code | means |
//! |---|---|
//! | 2 | the command line or the question makes no sense, or something unforeseen happened |
//! | 69 | nobody answers: no daemon, or no quorum |
//! | 70 | the clock or the disk of a node failed: it must not be started again by itself |
//! | 75 | not elected in time; try again later |
//! | 77 | the key or the token does not allow it |
//! | 78 | the configuration, the store or the key must be changed first |
//! | 79 | the lease was lost (`tenure run --lost-exit-code`) |
//!
//! All texts are in one table, [`messages`]; a failure can only be made by an entry of it.
//! `library.rs` says which entry an error of the library is.

mod library;
pub(crate) use library::malformed;
pub(crate) mod messages;

use std::fmt;

use serde_json::{Value, json};

use crate::output::harmless;
use messages::Message;

/// The error, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    message: &'static Message,
    /// The event, the reason, the advice.
    parts: [String; 3],
    /// Lines of a file that show where the flaw is.
    excerpt: Option<String>,
    code: u8,
}

impl Failure {
    /// For the entries of the table.
    fn of(message: &'static Message, parts: [String; 3]) -> Self {
        Self { message, parts: parts.map(|part| clean(&part)), excerpt: None, code: message.code }
    }

    /// The same under another exit code: that of a process which has ended with it.
    #[must_use]
    pub(crate) fn with_code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// The same, with lines that show where the flaw is.
    #[must_use]
    pub(crate) fn with_excerpt(mut self, excerpt: &str) -> Self {
        self.excerpt = Some(excerpt).filter(|lines| !lines.is_empty()).map(concealed);
        self
    }

    /// Why it happened.
    pub(crate) fn why(&self) -> &str {
        &self.parts[1]
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// Everything, for a terminal: one line, and the lines of a file if there are any.
    pub(crate) fn to_text(&self) -> String {
        let lines = self.excerpt.as_ref().map(|lines| format!("\n{lines}")).unwrap_or_default();
        harmless(&format!("tenure: {self}{lines}")).into_owned()
    }

    /// The same for programs.
    pub(crate) fn to_json(&self) -> Value {
        let [what, why, advice] = &self.parts;
        json!({
            "error": {
                "name": self.message.name(),
                "exit_code": self.code,
                "message": self.to_string(),
                "what": what,
                "why": why,
                "do": advice,
                "excerpt": self.excerpt,
            }
        })
    }
}

/// On one line whatever is quoted in it, without secrets, and without the system's numbers of
/// errors, which say no more than their words.
fn clean(part: &str) -> String {
    let words: Vec<&str> = part.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut text = concealed(&words.join(" "));
    while let Some(from) = text.find(" (os error ") {
        let Some(length) = text[from..].find(')') else { break };
        text.replace_range(from..=from + length, "");
    }
    harmless(&text).into_owned()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [what, why, advice] = &self.parts;
        let gap = if why.ends_with('?') { "" } else { ";" };
        write!(f, "{what}: {why}{gap} {advice}")
    }
}

/// A text without keys and tokens: one that was written in the wrong place, as a name or an
/// address, is quoted by the error that tells of it. Each begins like `tenure-key-1:` and goes on
/// with many letters and digits.
pub(crate) fn concealed(text: &str) -> String {
    const BEGINS: &str = "tenure-";
    const SHORTEST: usize = 16;
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEGINS) {
        shown += &rest[..at];
        rest = &rest[at..];
        let ends = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`');
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let secret = word.split_once(':').is_some_and(|(_, secret)| secret.len() >= SHORTEST);
        shown += if secret { "(secret)" } else { word };
        rest = &rest[word.len()..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_quotes_a_key_does_not_show_it() {
        let key = tenure::ClusterKey::generate().reveal();
        let said = messages::name_refused(format!("'{key}' is none, nor is {key}; see tenure-node(1)"));
        let said = said.to_text();
        assert!(said.contains("'(secret)' is none, nor is (secret) see tenure-node(1)"), "{said}");
        let said = messages::name_refused("it begins with 'tenure-key-1:' (`tenure key new` makes one)");
        assert!(said.to_string().contains("'tenure-key-1:'"), "{said}");
    }

    #[test]
    fn a_failure_that_quotes_another_commands_no_terminal() {
        let said = messages::declined("http://a", "\u{1b}[2Jyou won").with_excerpt("\u{1b}[2J").to_text();
        assert!(said.contains("\\u001b[2Jyou won") && !said.contains('\u{1b}'), "{said}");
    }

    #[test]
    fn a_failure_is_one_line_whatever_it_quotes() {
        let said = messages::name_refused("there is no 'a\n  b'\n").to_string();
        assert!(said.contains("there is no 'a b'") && !said.contains('\n'), "{said}");
    }

    #[test]
    fn the_number_of_an_error_is_left_out() {
        let error = std::io::Error::from_raw_os_error(2);
        let said = messages::file_unreadable("a", format!("{error}, and {error}")).to_string();
        assert!(said.contains(": No such file or directory, and No such file or directory;"), "{said}");
    }
}
