//! `cargo xtask setup`: installs the programs that tests start and a new machine may lack. On a
//! machine that has them, nothing happens. `cargo xtask test` does the same before its first check.
//!
//! The tests of the fence start a PostgreSQL server of their own; the cluster that Debian's package
//! makes is not used. Tests of disks, networks and system calls need a few small programs, and so
//! do the commands in the documents.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::failure::Failure;
use crate::finish;

const POSTGRES: &str = "postgresql";

/// Programs that tests start, and Debian's packages of them.
const PROGRAMS: &[(&str, &str)] = &[
    ("strace", "strace"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("fsfreeze", "util-linux"),
    ("mount", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("tmux", "tmux"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("bash", "bash"),
    ("curl", "curl"),
    ("openssl", "openssl"),
    ("python3", "python3"),
    ("prometheus", "prometheus"),
    ("promtool", "prometheus"),
    ("sqlite3", "sqlite3"),
];

/// Programs that only `cargo xtask torture run` starts, to compare with them.
const RIVALS: &[(&str, &str)] = &[("etcd", "etcd-server"), ("etcdctl", "etcd-client")];

/// Parts of the toolchain that are not in rustup's minimal profile.
const COMPONENTS: &[(&str, &str)] = &[("fmt", "rustfmt"), ("clippy", "clippy")];

/// Where Debian keeps the programs of the server, in a folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// `cargo xtask setup`: installs what is missing, the rivals included, or says how.
pub(crate) fn run() -> Result<(), Failure> {
    provide_components();
    let missing = missing(&[PROGRAMS, RIVALS].concat());
    install(&missing).map_err(Failure::Error)
}

/// The set-up before tests. A machine that cannot be set up is no failure: tests that need more are
/// left out.
pub(crate) fn provide() {
    provide_components();
    if !cfg!(target_os = "linux") {
        eprintln!("xtask: not Linux: only the crates that need no Linux are checked");
    } else if let Err(why) = install(&missing(PROGRAMS)) {
        eprintln!("xtask: {why}");
    }
}

/// Whether cargo has a command, such as `fmt`.
pub(crate) fn has_cargo_command(command: &str) -> bool {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([command, "--help"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    cargo.status().is_ok_and(|status| status.success())
}

/// Adds rustfmt and clippy by rustup. Without rustup, the checks that need them are left out.
fn provide_components() {
    let lacks =
        |(command, component): &(&str, &'static str)| (!has_cargo_command(command)).then_some(*component);
    let missing: Vec<&str> = COMPONENTS.iter().filter_map(lacks).collect();
    if missing.is_empty() {
        return;
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["component", "add"]).args(&missing);
    if let Err(failure) = finish(rustup, "`rustup component add`") {
        eprintln!("xtask: {} not installed: {failure}", missing.join(" and "));
    }
}

/// Installs packages by apt-get, or says why it cannot and what to do.
fn install(packages: &[&str]) -> Result<(), String> {
    if packages.is_empty() {
        eprintln!("xtask: all programs that the tests start are here");
        return Ok(());
    }
    let list = packages.join(" ");
    if !is_root() || !is_on_path("apt-get") {
        return Err(format!(
            "some programs that the tests start are not here. On Debian: `sudo apt-get install {list}`; elsewhere, \
             put the programs of these packages on the PATH (of PostgreSQL `initdb` and `postgres`)"
        ));
    }
    eprintln!("xtask: installing what the tests need: {list}");
    let words = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    let done = finish(apt_get(&["update"]), "`apt-get update`")
        .and_then(|()| finish(apt_get(&words), "`apt-get install`"));
    done.map_err(|failure| failure.to_string())
}

/// The packages of these programs, and of PostgreSQL, that this machine lacks.
fn missing(programs: &[(&str, &'static str)]) -> Vec<&'static str> {
    let lacks = |(program, package): &(&str, &'static str)| (!is_on_path(program)).then_some(*package);
    let mut missing: Vec<&str> = programs.iter().filter_map(lacks).collect();
    missing.extend((!has_postgres()).then_some(POSTGRES));
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// Whether the programs of a PostgreSQL server are where the tests look for them.
pub(crate) fn has_postgres() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    find(installed_versions(Path::new(VERSIONS)).into_iter().chain(env::split_paths(&path))).is_some()
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

/// Whether a command succeeds; what it says is of no interest.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

pub(crate) fn is_on_path(program: &str) -> bool {
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
        let command = apt_get(&["install", "--yes", POSTGRES]);
        assert!(command.get_envs().any(|(key, _)| key == "DEBIAN_FRONTEND"));
    }

    #[test]
    fn each_missing_package_is_named_once() {
        let missing = missing(&[("no-such-program", "a"), ("nor-this-one", "a"), ("neither-this", "b")]);
        assert_eq!(missing.iter().filter(|package| **package != POSTGRES).collect::<Vec<_>>(), [&"a", &"b"]);
    }

    #[test]
    fn a_command_that_cargo_does_not_have_is_not_found() {
        assert!(!has_cargo_command("no-such-command"));
    }
}
