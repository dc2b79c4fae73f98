//! A cgroup of version 2 for the command, where the system lets us make one: as root, or where
//! systemd delegates (`Delegate=yes`).

use std::fs;
use std::path::{Path, PathBuf};

/// A cgroup that is removed in the end.
#[derive(Debug)]
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// One below our own; `None` where that is not allowed, or the kernel cannot kill by cgroup.
    pub(super) fn make() -> Option<Self> {
        let own = own(
            &fs::read_to_string("/proc/self/cgroup").ok()?,
            &fs::read_to_string("/proc/self/mountinfo").ok()?,
        )?;
        let folder = own.join(format!("tenure-run-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let cgroup = Self(folder);
        cgroup.path().join("cgroup.kill").exists().then_some(cgroup)
    }

    /// Its folder.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0); // The kernel refuses while somebody is in it.
    }
}

/// The folder of this process's cgroup, from what `/proc` says.
fn own(cgroups: &str, mounts: &str) -> Option<PathBuf> {
    let path = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        kind.starts_with("cgroup2 ").then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_found_where_version_two_is_mounted() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 25 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let found = own("2:cpu:/x\n0::/system.slice/a.service\n", mounts);
        assert_eq!(found.as_deref(), Some(Path::new("/sys/fs/cgroup/unified/system.slice/a.service")));
        assert_eq!(own("2:cpu:/x\n", mounts), None, "version 1 only");
    }

    #[test]
    fn a_container_sees_its_own_part_only() {
        let mounts = "31 25 0:27 /docker/7 /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        let found = own("0::/docker/7/app\n", mounts);
        assert_eq!(found.as_deref(), Some(Path::new("/sys/fs/cgroup/app")));
    }
}
