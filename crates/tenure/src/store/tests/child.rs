//! Tests that need a process of their own: this program again, told to run one test, with a folder
//! to work in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FOLDER: &str = "TENURE_TEST_FOLDER";

/// The folder of a test that runs in a process of its own; `None` in the ordinary run, where it has
/// nothing to do.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// This program, to run one test.
pub(crate) fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(FOLDER, folder);
    command
}

/// Runs one test under `unshare` with these arguments, after `script`. It must pass, and say so;
/// but where this user may not have such a namespace it is skipped, and that is said.
pub(crate) fn passes_in_namespace<S: AsRef<OsStr>>(arguments: &[S], script: &str, test: &str, folder: &Path) {
    const REFUSED: i32 = 77;
    let script = format!("{script} || exit {REFUSED}\nexec \"$0\" --exact {test} --nocapture");
    let mut command = Command::new("unshare");
    command.args(arguments).args(["sh", "-c", &script]).arg(std::env::current_exe().unwrap());
    let output = match command.env(FOLDER, folder).output() {
        Ok(output) => output,
        Err(error) => return eprintln!("{test} is skipped: unshare: {error}"),
    };
    let text = said(&output);
    if output.status.code() == Some(REFUSED) || text.starts_with("unshare:") {
        return eprintln!("{test} is skipped: {text}");
    }
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}
