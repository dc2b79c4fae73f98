//! Everything that a process has started, however deep, and its death.
//!
//! Runner and sentinel are *subreapers*: a descendant that loses its parent becomes their child. A
//! process that forks twice, or opens a session of its own, gets away from its process group, but
//! not from its family. And a subreaper without a child has no descendants at all: the kernel's own
//! answer "no child" (ECHILD) confirms the death of all of them, at one instant, where a look
//! through `/proc` could always miss the one that was born meanwhile.
//!
//! To kill all, three ways at once: the process groups (no fork slips through), the cgroup if there
//! is one (nor a session), and every descendant found in `/proc`. Repeated until nobody is left.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process};

use super::timing::now;

/// Makes this process the one that orphans come to.
pub(crate) fn adopt() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(getpid())).map_err(io::Error::from)
}

/// `note` is told of each process that has ended. Says whether this process has no children, and so
/// no descendants, any more.
pub(crate) fn reap(mut note: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => note(pid, status),
            Ok(None) => return false,
            Err(Errno::CHILD) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Sends a signal to every descendant of this process, as far as `/proc` tells.
pub(crate) fn signal_all(signal: Signal) {
    for pid in descendants() {
        let _ = kill_process(pid, signal); // It may have ended since.
    }
}

/// Kills everybody in a cgroup, those who are being born included.
pub(crate) fn kill_cgroup(cgroup: &Path) {
    let _ = fs::write(cgroup.join("cgroup.kill"), "1"); // Before Linux 5.14 there is none: `/proc` must do.
}

/// Kills all descendants of this process and waits until they are dead. Says whether they are, at
/// the latest at `limit`.
pub(crate) fn end(cgroup: Option<&Path>, limit: u64) -> bool {
    loop {
        if let Some(cgroup) = cgroup {
            kill_cgroup(cgroup);
        }
        signal_all(Signal::KILL);
        if reap(|_, _| {}) {
            return true;
        }
        if now() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The code by which a shell would tell how a process ended.
pub(crate) fn code(status: WaitStatus) -> Option<u8> {
    let signal = status.terminating_signal().map(|signal| 128 + signal);
    status.exit_status().or(signal).and_then(|code| u8::try_from(code).ok())
}

/// The descendants of this process, without itself.
fn descendants() -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) =
            fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(parent_in)
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut queue) = (Vec::new(), vec![getpid().as_raw_nonzero().get()]);
    while let Some(pid) = queue.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            queue.push(child);
            found.extend(Pid::from_raw(child));
        }
    }
    found
}

/// The parent's number in a line of `/proc/PID/stat`. The name before it may have blanks and
/// brackets in it.
fn parent_in(line: &str) -> Option<i32> {
    let (_, rest) = line.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_a_name_with_brackets() {
        assert_eq!(parent_in("12 (a) b) (c)) S 7 12 12 0 -1"), Some(7));
        assert_eq!(parent_in("12 (a"), None);
    }

    #[test]
    fn children_of_this_process_are_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = descendants().iter().any(|pid| pid.as_raw_nonzero().get().cast_unsigned() == child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
    }
}
