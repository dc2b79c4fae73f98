//! `cargo xtask torture [run | kv]`: the tests with real processes at full size, with their
//! figures. CI runs the same at a smaller size.
//!
//! Without a word, the library's: a service that embeds it. With `run`, that of `tenure run`, in
//! namespaces of the network. With `kv`, the replicated key-value server: a minute of kills under
//! load.

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

pub(crate) fn run(rest: &[String], root: impl FnOnce() -> Result<PathBuf, Failure>) -> Result<(), Failure> {
    let arguments = match rest.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => LIBRARY,
        ["run"] => RUNNER,
        ["kv"] => LOG,
        other => {
            return Err(Failure::Error(format!(
                "`torture` takes nothing, `run` or `kv`, but was given `{}`",
                other.join(" ")
            )));
        }
    };
    let mut command = cargo(&root()?);
    command.args(arguments).env("TENURE_TORTURE", "full");
    finish(command, "the torture")
}
