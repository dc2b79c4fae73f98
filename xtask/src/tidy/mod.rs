//! The rules of this repository that the compiler does not know.
//!
//! | Rule                                                           | File          |
//! |----------------------------------------------------------------|---------------|
//! | arrows between the crates; lints inherited from the workspace  | `arrows.rs`   |
//! | length of files; white space; unfinished code; foreign paths   | `text.rs`     |
//! | published crates say all that a registry and its readers need  | `packages.rs` |
//! | paths named in README and ARCHITECTURE exist                   | `mentions.rs` |
//! | plain words: counts that may only fall                         | `ratchet.rs`  |
//!
//! `words.rs` finds what the ratchet counts, in the text that `prose.rs` and `rust.rs` find in
//! files; `areas.rs` says for which readers a text is.
//!
//! Every rule is a function from text to problems, so that its tests need no files.

mod areas;
mod arrows;
mod files;
pub(crate) mod manifest;
mod mentions;
mod packages;
mod prose;
mod ratchet;
mod rust;
mod text;
mod words;

use std::fmt;
use std::path::Path;

use crate::failure::Failure;
pub(crate) use ratchet::Ratchet;

/// Where a rule is broken, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    /// Relative to the root of the repository, with `/` on every system.
    path: String,
    /// Counted from 1; `None` for the file as a whole.
    line: Option<usize>,
    severity: Severity,
    what: String,
}

/// Whether a problem fails the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Warning,
    Error,
}

impl Problem {
    fn error(path: &str, line: impl Into<Option<usize>>, what: impl Into<String>) -> Problem {
        Problem { path: path.to_string(), line: line.into(), severity: Severity::Error, what: what.into() }
    }

    fn warning(path: &str, what: impl Into<String>) -> Problem {
        Problem { path: path.to_string(), line: None, severity: Severity::Warning, what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        let severity = match self.severity {
            Severity::Warning => "warning: ",
            Severity::Error => "",
        };
        write!(f, ": {severity}{}", self.what)
    }
}

/// Judges the whole repository; names every problem, not only the first.
pub(crate) fn run(root: &Path, ratchet: Ratchet) -> Result<(), Failure> {
    let mut problems = judge(root, ratchet)?;
    problems.sort();
    for problem in &problems {
        eprintln!("{problem}");
    }
    match problems.iter().filter(|problem| problem.severity == Severity::Error).count() {
        0 => Ok(()),
        1 => Err(Failure::Broken("tidy: one problem, see above".to_string())),
        many => Err(Failure::Broken(format!("tidy: {many} problems, see above"))),
    }
}

/// Prints every place of an area that the ratchet counts.
pub(crate) fn list(root: &Path, area: &str) -> Result<(), Failure> {
    let (sources, _) = files::read(root)?;
    let mut places = ratchet::list(&sources, area);
    places.sort();
    for place in &places {
        println!("{place}");
    }
    Ok(())
}

fn judge(root: &Path, ratchet: Ratchet) -> Result<Vec<Problem>, Failure> {
    let (sources, mut problems) = files::read(root)?;
    for source in &sources {
        problems.extend(text::check(&source.path, &source.text));
    }
    problems.extend(arrows::check(&sources));
    problems.extend(mentions::check(&sources, |path| root.join(path).exists()));
    problems.extend(packages::check(&sources, |path| root.join(path).exists()));
    problems.extend(ratchet::check(root, &sources, ratchet)?);
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_like_a_message_of_the_compiler() {
        assert_eq!(Problem::error("a/b.rs", 7, "a tab").to_string(), "a/b.rs:7: a tab");
        assert_eq!(Problem::error("README.md", None, "is missing").to_string(), "README.md: is missing");
        assert_eq!(Problem::warning("b.rs", "long").to_string(), "b.rs: warning: long");
    }
}
