//! The machine around: memory that survives a restart, limits, virtualisation.

use rustix::process::{Resource, getrlimit};

use super::clocks::Host;
use super::finding::Finding;
use std::path::Path;
use tenure::MemoryError;

/// Files and sockets that a daemon with many peers and clients has open.
const FILES: u64 = 1024;

/// Where grants are remembered over a restart, given the folder that is configured: as a node
/// judges it.
pub(super) fn memory(configured: Option<&Path>, silence: &str) -> Finding {
    const CHECK: &str = "memory folder";
    let error = match tenure::memory_folder(configured) {
        Ok(folder) => {
            let says = format!(
                "{} is in memory, and this user's alone: a restart needs no silence",
                folder.display()
            );
            return Finding::ok(CHECK, says);
        }
        Err(error) => error,
    };
    let silent = format!("after every restart a member is silent for {silence}");
    match error {
        MemoryError::NotInMemory { path } => Finding::warn(
            CHECK,
            format!("{} is on a disk: {silent}", path.display()),
            "write `memory = \"/dev/shm\"`, or another folder on a tmpfs",
        ),
        MemoryError::NotPrivate { path, why } => Finding::warn(
            CHECK,
            format!("{} cannot be trusted, {why}: {silent}", path.display()),
            "set `memory` to a folder on a tmpfs that only the daemon's user can write; run doctor as that user",
        ),
        other => Finding::warn(
            CHECK,
            other.to_string(),
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
    let fence =
        "fence what leaders write to (see the fences of the library); do not snapshot members while they run";
    match tenure::tells_disruptions(&host.path(tenure::VMCLOCK)) {
        Ok(true) => Finding::ok(
            CHECK,
            format!(
                "a virtual machine whose host tells of disruptions ({}): leaderships end with one",
                tenure::VMCLOCK
            ),
        ),
        Ok(false) => Finding::warn(
            CHECK,
            format!(
                "a virtual machine without {}: when it is paused, migrated or restored from a snapshot its clocks stop with it, and nothing inside can see that",
                tenure::VMCLOCK
            ),
            fence,
        ),
        Err(error) => Finding::warn(
            CHECK,
            format!(
                "a virtual machine whose {} cannot be read ({error}): when it is paused, migrated or restored from a snapshot nothing inside can see that",
                tenure::VMCLOCK
            ),
            format!("let the daemon's user read it (a udev rule), or {fence}"),
        ),
    }
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
        let device = Host::at(root.path()).path(tenure::VMCLOCK);
        std::fs::create_dir_all(device.parent().unwrap()).unwrap();
        std::fs::write(&device, "something else").unwrap();
        assert!(says("hypervisor").says.contains("cannot be read"));
        let mut page = vec![0; 4096];
        page[0..4].copy_from_slice(b"VCLK");
        page[8] = 1;
        std::fs::write(&device, page).unwrap();
        let told = says("hypervisor");
        assert!(told.state == State::Ok && told.says.contains("tells of disruptions"), "{}", told.says);
    }

    #[test]
    fn few_open_files_are_told() {
        let states = [Some(256), Some(1024), None].map(|files| judge_limit(files).state);
        assert_eq!(states, [State::Warn, State::Ok, State::Ok]);
    }

    #[test]
    fn memory_must_be_in_memory() {
        let says = |folder: &str| memory(Some(Path::new(folder)), "5.5 s");
        assert_eq!(says("/dev/shm").state, State::Ok);
        let disk = says("/etc");
        assert!(disk.state == State::Warn && disk.says.contains("5.5 s"), "{}", disk.says);
        assert_eq!(says("/nowhere").state, State::Warn);
    }

    #[test]
    fn a_memory_folder_that_other_users_can_write_is_told() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let state = |mode| {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            memory(Some(folder.path()), "5.5 s").state
        };
        assert_eq!([0o700, 0o777].map(state), [State::Ok, State::Warn]);
    }
}
