//! The machine around: memory that survives a restart, limits, virtualisation.

use rustix::process::{Resource, getrlimit};

use super::clocks::Host;
use super::disk;
use super::finding::Finding;
use std::path::Path;

/// Files and sockets that a daemon with many peers and clients has open.
const FILES: u64 = 1024;

/// Where grants are remembered over a restart.
pub(super) fn memory(folder: &Path, silence: &str) -> Finding {
    const CHECK: &str = "memory folder";
    let shown = folder.display();
    match disk::is_in_memory(folder) {
        Ok(true) => Finding::ok(CHECK, format!("{shown} is in memory: a restart needs no silence")),
        Ok(false) => Finding::warn(
            CHECK,
            format!("{shown} is on a disk: after every restart a member is silent for {silence}"),
            "write `memory = \"/dev/shm\"`, or another folder on a tmpfs",
        ),
        Err(error) => Finding::warn(
            CHECK,
            format!("{shown}: {error}: after every restart a member is silent for {silence}"),
            "in a container, give it one: `docker run --shm-size 16m`, or mount a tmpfs at /dev/shm",
        ),
    }
}

/// How many files may be open.
pub(super) fn limits() -> Finding {
    judge_limit(getrlimit(Resource::Nofile).current)
}

fn judge_limit(files: Option<u64>) -> Finding {
    const CHECK: &str = "limits";
    match files {
        Some(files) if files < FILES => Finding::warn(
            CHECK,
            format!("only {files} files may be open"),
            format!("raise it: `ulimit -n {FILES}`, or LimitNOFILE={FILES} in the unit"),
        ),
        Some(files) => Finding::ok(CHECK, format!("{files} files may be open")),
        None => Finding::ok(CHECK, "any number of files may be open"),
    }
}

/// Whether the machine can be paused together with its clocks.
pub(super) fn machine(host: &Host) -> Finding {
    const CHECK: &str = "machine";
    let flags = host.read("/proc/cpuinfo").unwrap_or_default();
    let is_virtual = flags
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    let vendor = host.read("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let known = ["QEMU", "VMware", "Xen", "Microsoft", "innotek", "Amazon", "Google", "Parallels"];
    if !is_virtual && !known.iter().any(|name| vendor.contains(name)) {
        return Finding::ok(CHECK, "it does not look virtual");
    }
    Finding::warn(
        CHECK,
        "a virtual machine: when it is paused, migrated or restored from a snapshot its clocks stop with it, and nothing inside can see that",
        "fence what leaders write to (see the fences of the library); do not snapshot members while they run",
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn a_virtual_machine_is_told_about_pauses() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let says = |flags: &str| {
            std::fs::write(root.path().join("proc/cpuinfo"), format!("model name : X\nflags\t: {flags}\n"))
                .unwrap();
            machine(&Host::at(root.path()))
        };
        assert_eq!(says("fpu tsc").state, State::Ok);
        let virtual_one = says("fpu hypervisor tsc");
        assert_eq!(virtual_one.state, State::Warn);
        assert!(virtual_one.says.contains("paused"), "{}", virtual_one.says);
    }

    #[test]
    fn few_open_files_are_told() {
        let states = [Some(256), Some(1024), None].map(|files| judge_limit(files).state);
        assert_eq!(states, [State::Warn, State::Ok, State::Ok]);
    }

    #[test]
    fn memory_must_be_in_memory() {
        assert_eq!(memory(Path::new("/dev/shm"), "5.5 s").state, State::Ok);
        let disk = memory(Path::new("/etc"), "5.5 s");
        assert!(disk.state == State::Warn && disk.says.contains("5.5 s"), "{}", disk.says);
        assert_eq!(memory(Path::new("/nowhere"), "5.5 s").state, State::Warn);
    }
}
