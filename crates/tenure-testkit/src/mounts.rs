//! File systems of a test's own: in a mount namespace, so that they are gone when the test is,
//! whatever becomes of it.

use std::path::Path;
use std::process::Command;

/// Says to a test that it is inside.
const INSIDE: &str = "TENURE_TEST_MOUNTS";

/// Runs the test of this name once more, alone, in a mount namespace of its own. True inside of it:
/// there the test goes on.
pub fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let this = std::env::current_exe().expect("this test is a program");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(this).args(["--exact", test, "--nocapture"]);
    let status = command.env(INSIDE, "1").status().expect("unshare, of util-linux, is needed");
    assert!(status.success(), "{test} has failed inside its namespace (mounting needs root): {status}");
    false
}

/// Runs a program of the system that must succeed.
pub fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output();
    let output =
        output.unwrap_or_else(|error| panic!("`{program}` is needed (`cargo xtask setup`): {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}(mounting needs root)");
}

/// A file system in memory with so much room.
pub fn tmpfs(at: &Path, size: &str) {
    std::fs::create_dir_all(at).expect("a folder");
    run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", text(at)]);
}

/// A path as text, for the arguments of programs.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}
