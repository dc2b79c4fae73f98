//! Why a command did not succeed, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

/// The reason why a command ended early. The text is for a person: it names what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It ran, and the answer is no: a test failed, a rule is broken.
    Broken(String),
    /// The same, and the command has printed all that there is to say.
    Told,
    /// It could not run: an argument was not understood, a program not found.
    Error(String),
}

impl Failure {
    /// 1 for an answer of no, 2 for no answer.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Broken(_) | Failure::Told => 1,
            Failure::Error(_) => 2,
        }
    }

    /// The same, for `main` to return.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Broken(text) | Failure::Error(text) => f.write_str(text),
            Failure::Told => f.write_str("see above"),
        }
    }
}
