//! `cargo xtask torture [run | kv | day]`: the tests with real processes at full size, with their
//! figures. CI runs the same at a smaller size.
//!
//! Without a word, the library's: a service that embeds it. With `run`, that of `tenure run`, in
//! namespaces of the network. With `kv`, the replicated key-value server: a minute of kills under
//! load. With `day`, a whole site: daemons, runners, Prometheus, and a referee who judges each
//! answer.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::{cargo, finish};

/// The library's. The test builds what else it needs: an example, and the command `tenure` for the
/// audit.
const LIBRARY: &[&str] = &["test", "--package", "tenure", "--test", "torture", "--", "--nocapture"];

/// That of the runner. `TENURE_TORTURE_ROUNDS` makes it shorter or longer than 200 rounds.
const RUNNER: &[&str] = &["test", "--package", "tenure-cli", "--test", "torture_run"];

/// That of the replicated log. Optimised: it is measured, too.
const LOG: &[&str] =
    &["test", "--release", "--package", "tenure", "--test", "kv", "--", "--nocapture", "--test-threads=1"];

/// That of a whole site, whose length and seed are given by words or drawn.
const DAY: &[&str] = &["test", "--package", "tenure-cli", "--test", "day"];

/// The words after `day`, and the variables by which the test is told of them.
const DAY_WORDS: &[(&str, &str)] = &[("--minutes", "TENURE_DAY_MINUTES"), ("--seed", "TENURE_SEED")];

pub(crate) fn run(rest: &[String], root: impl FnOnce() -> Result<PathBuf, Failure>) -> Result<(), Failure> {
    let (arguments, variables) = match rest.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => (LIBRARY, Vec::new()),
        ["run"] => (RUNNER, Vec::new()),
        ["kv"] => (LOG, Vec::new()),
        ["day", words @ ..] => (DAY, of_day(words)?),
        other => {
            return Err(Failure::Error(format!(
                "`torture` takes nothing, `run`, `kv` or `day`, but was given `{}`",
                other.join(" ")
            )));
        }
    };
    let mut command = cargo(&root()?);
    command.args(arguments).env("TENURE_TORTURE", "full").envs(variables);
    finish(command, "the torture")
}

/// The variables that the words after `day` stand for.
fn of_day(words: &[&str]) -> Result<Vec<(&'static str, String)>, Failure> {
    let wrong = || {
        let words = words.join(" ");
        Failure::Error(format!("`torture day` takes --minutes M and --seed S, but was given `{words}`"))
    };
    let mut variables = Vec::new();
    for pair in words.chunks(2) {
        let [word, number] = pair else { return Err(wrong()) };
        let known = DAY_WORDS.iter().find(|(known, _)| known == word);
        let (_, variable) = known.filter(|_| number.parse::<u64>().is_ok()).ok_or_else(wrong)?;
        variables.push((*variable, (*number).to_owned()));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_and_the_seed_of_a_day_are_numbers_and_nothing_else_is_taken() {
        let words = of_day(&["--seed", "7", "--minutes", "2"]).unwrap();
        assert_eq!(words, [("TENURE_SEED", "7".to_owned()), ("TENURE_DAY_MINUTES", "2".to_owned())]);
        assert_eq!(of_day(&[]).unwrap(), []);
        for wrong in [&["--seed"][..], &["--seed", "x"], &["--hours", "2"], &["2"]] {
            assert_eq!(of_day(wrong).unwrap_err().code(), 2, "{wrong:?}");
        }
    }
}
