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
//! Processes that left their group must not outlive the others for long, however busy the host is:
//! only this family's entries of `/proc` are read.

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
///
/// The kernel's lists of children take as long as this family is large. A look at all processes of
/// a busy host can take seconds, and what it finds must die before E.
fn descendants() -> Vec<Pid> {
    if Path::new("/proc/thread-self/children").exists() { by_children() } else { by_parents() }
}

/// Follows the kernel's lists of children. A list may miss one whose sibling ends meanwhile:
/// callers look again until the kernel says that there is no child.
fn by_children() -> Vec<Pid> {
    walk(children_of)
}

/// All that can be reached from this process.
fn walk(children_of: impl Fn(Pid) -> Vec<Pid>) -> Vec<Pid> {
    let (mut found, mut queue) = (Vec::new(), vec![getpid()]);
    while let Some(parent) = queue.pop() {
        let children = children_of(parent);
        queue.extend(&children);
        found.extend(children);
    }
    found
}

/// The children of all threads of a process; none if it has ended.
fn children_of(parent: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    let lists = threads.into_iter().flatten().flatten();
    let lists = lists.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_ascii_whitespace().filter_map(pid).collect::<Vec<_>>()).collect()
}

fn pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

/// Looks at every process of the host, for kernels without `CONFIG_PROC_CHILDREN`.
fn by_parents() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pairs = entries.filter_map(|entry| {
        let child = entry.file_name().to_str().and_then(pid)?;
        let line = fs::read_to_string(entry.path().join("stat")).ok()?;
        Some((parent_in(&line)?, child))
    });
    let pairs: Vec<(Pid, Pid)> = pairs.collect();
    let of = |parent| pairs.iter().filter(move |pair| pair.0 == parent).map(|pair| pair.1);
    walk(|parent| of(parent).collect())
}

/// The parent's number in a line of `/proc/PID/stat`. The name before it may have blanks and
/// brackets in it.
fn parent_in(line: &str) -> Option<Pid> {
    let (_, rest) = line.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1).and_then(pid)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_parent_is_found_behind_a_name_with_brackets() {
        assert_eq!(parent_in("12 (a) b) (c)) S 7 12 12 0 -1"), Pid::from_raw(7));
        assert_eq!(parent_in("12 (a"), None);
    }

    #[test]
    fn children_and_theirs_are_found_in_sessions_of_their_own_too() {
        let script = "setsid sleep 600 & echo $!; wait";
        let mut command = Command::new("sh");
        let mut shell = command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let family = [Pid::from_child(&shell), pid(line.trim()).unwrap()];
        for found in [descendants(), by_children(), by_parents()] {
            assert!(family.iter().all(|member| found.contains(member)), "{family:?} in {found:?}");
        }
        family.iter().for_each(|member| kill_process(*member, Signal::KILL).unwrap());
        shell.wait().unwrap();
    }
}
