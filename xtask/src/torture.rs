//! `cargo xtask torture`: the test with real processes at full size, with its figures. CI runs the same at a smaller size.

use std::path::Path;

use crate::failure::Failure;
use crate::{cargo, finish};

/// What is run. The test builds what else it needs: an example, and the command `tenure` for the audit.
const COMMAND: &[&str] = &["test", "--package", "tenure", "--test", "torture", "--", "--nocapture"];

pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let mut command = cargo(root);
    command.args(COMMAND).env("TENURE_TORTURE", "full");
    finish(command, "the torture")
}
