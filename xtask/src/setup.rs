//! `cargo xtask setup`: what the tests need and a new machine may lack. On one that has it, nothing happens.
//!
//! The tests of the fence start a PostgreSQL server of their own; this only sees to it that its programs are there. The
//! cluster that Debian's package makes beside them is not used.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::failure::Failure;
use crate::finish;

const PACKAGE: &str = "postgresql";

/// Where Debian keeps the programs of the server, in a folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Finds PostgreSQL, or installs it.
pub(crate) fn run() -> Result<(), Failure> {
    if let Some(program) = server() {
        eprintln!("xtask: PostgreSQL is here: {}", program.display());
        return Ok(());
    }
    if !is_root() || !is_on_path("apt-get") {
        return Err(Failure::Error(format!(
            "there is no PostgreSQL server, which the tests need. On Debian: `sudo apt-get install {PACKAGE}`; elsewhere, \
             put `initdb` and `postgres` on the PATH"
        )));
    }
    eprintln!("xtask: there is no PostgreSQL server: installing Debian's package `{PACKAGE}`");
    finish(apt_get(&["update"]), "`apt-get update`")?;
    finish(apt_get(&["install", "--yes", "--no-install-recommends", PACKAGE]), "`apt-get install`")?;
    match server() {
        Some(_) => Ok(()),
        None => Err(Failure::Broken(format!("`{PACKAGE}` is installed, but {VERSIONS}/*/bin has no initdb"))),
    }
}

/// The server, where the tests look for it.
fn server() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    find(installed_versions(Path::new(VERSIONS)).into_iter().chain(env::split_paths(&path)))
}

fn installed_versions(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|version| version.path().join("bin")).collect()
}

fn find(folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    let has_both = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    folders.into_iter().find(has_both).map(|folder| folder.join("postgres"))
}

/// Asks nothing, and waits for a while if another program installs something.
fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(["-o", "DPkg::Lock::Timeout=300"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_in_the_folder_that_has_both_programs() {
        let root = env::temp_dir().join(format!("tenure-xtask-setup-{}", std::process::id()));
        let bin = |version: &str| root.join(version).join("bin");
        for (version, program) in [("14", "psql"), ("15", "initdb"), ("15", "postgres")] {
            fs::create_dir_all(bin(version)).unwrap();
            fs::write(bin(version).join(program), "").unwrap();
        }
        let found = find(installed_versions(&root));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, Some(bin("15").join("postgres")));
        assert_eq!(find(installed_versions(&root)), None, "a folder that is gone is no error");
    }

    #[test]
    fn apt_get_never_waits_for_an_answer() {
        let command = apt_get(&["install", "--yes", PACKAGE]);
        assert!(command.get_envs().any(|(key, _)| key == "DEBIAN_FRONTEND"));
    }
}
