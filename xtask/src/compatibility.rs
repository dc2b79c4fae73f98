//! `cargo xtask compatibility REVISION`: members of an earlier revision beside those of this tree.
//!
//! Builds the command `tenure` of the revision in a checkout below the target folder, and runs the
//! test `compatibility` of `tenure-cli` with it: a cluster of the old binary is upgraded one member
//! at a time while a leader leads, and downgraded again. `cargo xtask test` runs the same test with
//! this tree's binary in both roles, and compares formats with `crates/tenure/tests/formats/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::{cargo, finish, target};

/// The variable by which the test is told of the other binary.
const PREVIOUS: &str = "TENURE_PREVIOUS";

pub(crate) fn run(rest: &[String], root: impl FnOnce() -> Result<PathBuf, Failure>) -> Result<(), Failure> {
    let [revision] = rest else {
        return Err(Failure::Error(
            "`compatibility` takes one revision of git, such as v0.1.0 or a commit".to_owned(),
        ));
    };
    let root = root()?;
    let commit = commit_of(&root, revision)?;
    let checkout = target(&root)?.join("compatibility").join(&commit);
    if !checkout.join("Cargo.toml").exists() {
        let mut git = git(&root);
        git.args(["worktree", "add", "--detach", "--force"]).arg(&checkout).arg(&commit);
        finish(git, "`git worktree add`")?;
    }
    let built = checkout.join("target");
    let mut build = cargo(&checkout);
    build.args(["build", "--package", "tenure-cli"]).env("CARGO_TARGET_DIR", &built);
    finish(build, &format!("the build of {revision}"))?;
    let mut test = cargo(&root);
    test.args(["test", "--package", "tenure-cli", "--test", "compatibility", "--", "--nocapture"]);
    test.env(PREVIOUS, built.join("debug/tenure"));
    finish(test, &format!("the test against {revision}"))
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(root);
    git
}

/// The full name of a revision.
fn commit_of(root: &Path, revision: &str) -> Result<String, Failure> {
    let wanted = format!("{revision}^{{commit}}");
    let output = git(root).args(["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]).output();
    let output = output.map_err(|error| Failure::Error(format!("`git` could not be started: {error}")))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        Ok(said)
    } else {
        Err(Failure::Error(format!("git knows no revision `{revision}`: see `git log` or `git tag`")))
    }
}
