//! Why a command did nothing, and the exit code that says so to a script.
//!
//! | code | means |
//! |---|---|
//! | 2 | the command line or the question makes no sense, or something unforeseen happened |
//! | 69 | nobody answers: no daemon, or no quorum |
//! | 75 | not elected in time; try again later |
//! | 77 | the key or the token does not allow it |
//! | 78 | the configuration, the store or the key must be changed first |
//! | 79 | the lease was lost (`tenure run --lost-exit-code`) |

use std::fmt;
use std::path::Path;

use tenure_lab::catalogue;

use crate::output::harmless;

/// The error and what to do, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    what: String,
    code: u8,
}

impl Failure {
    /// A failure in words.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), code: 2 }
    }

    /// A failure that concerns a file.
    pub(crate) fn file(path: &Path, what: impl fmt::Display) -> Self {
        Self::new(format!("{}: {what}", path.display()))
    }

    /// The configuration, the store or the key must be changed first.
    pub(crate) fn config(what: impl fmt::Display) -> Self {
        Self::new(what.to_string()).with_code(78)
    }

    /// Nobody answers.
    pub(crate) fn unavailable(what: impl fmt::Display) -> Self {
        Self::new(what.to_string()).with_code(69)
    }

    /// The key or the token does not allow it.
    pub(crate) fn denied(what: impl fmt::Display) -> Self {
        Self::new(what.to_string()).with_code(77)
    }

    /// The same, under another exit code.
    #[must_use]
    pub(crate) fn with_code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whatever is quoted in it, a failure is one line.
        let words: Vec<&str> =
            self.what.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect();
        f.write_str(&harmless(&concealed(&words.join(" "))))
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

impl From<tenure::StartError> for Failure {
    /// An error of a file, a store or a key is told apart from a refusal of the machine.
    fn from(error: tenure::StartError) -> Self {
        match error {
            tenure::StartError::System(_) => Self::new(error.to_string()),
            tenure::StartError::Store(tenure::StoreError::Missing { .. }) => {
                Self::config(format!("{error}. Here: `tenure node --found`, or `tenure node --join`"))
            }
            _ => Self::config(error),
        }
    }
}

impl From<tenure::ConfigError> for Failure {
    fn from(error: tenure::ConfigError) -> Self {
        Self::config(error)
    }
}

impl From<catalogue::Error> for Failure {
    fn from(error: catalogue::Error) -> Self {
        Self::new(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_quotes_a_key_does_not_show_it() {
        let key = tenure::ClusterKey::generate().reveal();
        let said =
            Failure::new(format!("name: '{key}' is none, nor is {key}; see tenure-node(1)")).to_string();
        assert_eq!(said, "name: '(secret)' is none, nor is (secret) see tenure-node(1)");
        let said = Failure::new("it begins with 'tenure-key-1:' (`tenure key new` makes one)").to_string();
        assert!(said.contains("'tenure-key-1:'"), "{said}");
    }

    #[test]
    fn a_failure_that_quotes_another_commands_no_terminal() {
        let said = Failure::new("http://a says: \u{1b}[2Jyou won").to_string();
        assert_eq!(said, "http://a says: \\u001b[2Jyou won");
    }

    #[test]
    fn a_failure_is_one_line_whatever_it_quotes() {
        assert_eq!(Failure::new("there is no 'a\n  b'\n").to_string(), "there is no 'a b'");
    }
}
