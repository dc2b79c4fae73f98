//! `cargo xtask setup`: what the tests need and a new machine may lack. On one that has it, nothing happens.
//!
//! The tests of the fence start a PostgreSQL server of their own; this only sees to it that its programs are there. The
//! cluster that Debian's package makes beside them is not used. Those of disks and system calls need a few small programs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::failure::Failure;
use crate::finish;

const PACKAGE: &str = "postgresql";

/// Programs that tests call, and Debian's packages of them.
const PROGRAMS: &[(&str, &str)] = &[
    ("strace", "strace"),
    ("unshare", "util-linux"),
    ("fsfreeze", "util-linux"),
    ("mount", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("tmux", "tmux"),
    ("nsenter", "util-linux"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
];

/// Where Debian keeps the programs of the server, in a folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Finds what is needed, or installs it.
pub(crate) fn run() -> Result<(), Failure> {
    let missing = missing();
    if missing.is_empty() {
        eprintln!("xtask: all that the tests need is here");
        return Ok(());
    }
    let list = missing.join(" ");
    if !is_root() || !is_on_path("apt-get") {
        return Err(Failure::Error(format!(
            "the tests need programs that are not here. On Debian: `sudo apt-get install {list}`; elsewhere, put the programs \
             of these packages on the PATH (of PostgreSQL `initdb` and `postgres`)"
        )));
    }
    eprintln!("xtask: installing what the tests need: {list}");
    finish(apt_get(&["update"]), "`apt-get update`")?;
    let install = [&["install", "--yes", "--no-install-recommends"], missing.as_slice()].concat();
    finish(apt_get(&install), "`apt-get install`")?;
    match self::missing().as_slice() {
        [] => Ok(()),
        still => Err(Failure::Broken(format!("installed, but not found: {}", still.join(" ")))),
    }
}

/// The packages that this machine lacks.
fn missing() -> Vec<&'static str> {
    let lacks = |(program, package): &(&str, &'static str)| (!is_on_path(program)).then_some(*package);
    let mut missing: Vec<&str> = PROGRAMS.iter().filter_map(lacks).collect();
    missing.extend(server().is_none().then_some(PACKAGE));
    missing.sort_unstable();
    missing.dedup();
    missing
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
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from); // Not always on the PATH, but always found by root.
    env::split_paths(&path).chain(system).any(|folder| folder.join(program).is_file())
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
