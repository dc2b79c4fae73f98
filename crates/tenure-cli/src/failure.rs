//! Why a command did nothing.

use std::fmt;
use std::path::Path;

use tenure_lab::catalogue;

/// What went wrong and what to do, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure in words.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// A failure that concerns a file.
    pub(crate) fn file(path: &Path, what: impl fmt::Display) -> Self {
        Self(format!("{}: {what}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whatever is quoted in it, a failure is one line.
        let words: Vec<&str> =
            self.0.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect();
        f.write_str(&words.join(" "))
    }
}

impl From<catalogue::Error> for Failure {
    fn from(error: catalogue::Error) -> Self {
        Self(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_whatever_it_quotes() {
        assert_eq!(Failure::new("there is no 'a\n  b'\n").to_string(), "there is no 'a b'");
    }
}
