//! System calls of members, as strace sees them: a renewal touches no file and waits for no
//! disk, and neither does an acquisition whose term is covered by what was written before.
//!
//! Needs `strace`, and the right to trace processes of the same user.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_testkit::group_members::{Place, Process, member};
use tenure_testkit::waiting::until;

const SYNCS: &[&str] = &["fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range"];
const WRITES: &[&str] = &["write", "writev", "pwrite64", "pwritev", "pwritev2"];
const CHANGES: &[&str] = &[
    "ftruncate",
    "truncate",
    "fallocate",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
];
const OPENS: &[&str] = &["open", "openat", "creat"];
const SENDS: &[&str] = &["sendto", "sendmsg", "sendmmsg"];

/// Turns are drawn from a window of a millisecond: many elections in little time.
const SETTINGS: &str = "[lease]\nlength = \"5s\"\nwindow = \"1ms\"\n[election]\nweak = \"random\"\n";

/// System calls of one process.
#[derive(Debug, Default)]
struct Seen {
    syncs: Vec<String>,
    writes: Vec<String>,
    sends: usize,
}

impl Seen {
    /// Reads what strace wrote: `PID name(arguments) = result`, with files by name.
    fn read(path: &Path) -> Self {
        let mut seen = Self::default();
        for line in std::fs::read_to_string(path).expect("strace has written").lines() {
            let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
            let Some((name, arguments)) = call.split_once('(') else { continue };
            let to_file = arguments.split(',').next().is_some_and(|fd| fd.contains("</"));
            let for_writing = ["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|flag| arguments.contains(flag));
            if SYNCS.contains(&name) {
                seen.syncs.push(line.to_owned());
            } else if WRITES.contains(&name) && to_file
                || OPENS.contains(&name) && for_writing
                || CHANGES.contains(&name)
            {
                seen.writes.push(line.to_owned());
            } else if SENDS.contains(&name) {
                seen.sends += 1;
            }
        }
        seen
    }
}

/// strace, attached to a process and all its threads.
struct Trace {
    child: Child,
    output: PathBuf,
}

impl Trace {
    fn attach(process: &Process, output: PathBuf) -> Self {
        let calls = [SYNCS, WRITES, CHANGES, OPENS, SENDS].concat().join(",?");
        let mut child = Command::new("strace")
            .args(["-f", "-y", "-s", "0", "-e", &format!("trace=?{calls}"), "-o"])
            .arg(&output)
            .args(["-p", &process.id().to_string()])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("strace is needed (`cargo xtask setup`): {error}"));
        let mut first = String::new();
        let stderr = child.stderr.take().expect("it is a pipe");
        BufReader::new(stderr).read_line(&mut first).expect("strace says something");
        assert!(first.contains("attached"), "strace: {first}");
        Self { child, output }
    }

    /// Lets the process go, and says what was seen.
    fn end(mut self) -> Seen {
        // By the shell's own `kill`: a small system has no program of that name.
        let kill = format!("kill -INT {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell runs").success());
        self.child.wait().expect("it ends");
        Seen::read(&self.output)
    }
}

/// One test at a time: each call of six traced members would wait for six tracers.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Three members that run, and where.
fn members() -> (tempfile::TempDir, Place, Vec<Process>) {
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::found(&folder.path().join("cluster"), SETTINGS);
    let members = place.start(member);
    (folder, place, members.expect("they start"))
}

/// Records the system calls of all members during an act.
fn traced(members: &mut [Process], place: &Place, act: impl FnOnce(&mut [Process])) -> Vec<Seen> {
    let attach = |(number, member)| Trace::attach(member, place.folder().join(format!("trace-{number}")));
    let traces: Vec<Trace> = members.iter().enumerate().map(attach).collect();
    act(members);
    traces.into_iter().map(Trace::end).collect()
}

#[test]
fn a_steady_leader_and_its_grantors_touch_no_file() {
    let _alone = alone();
    let (_folder, place, mut members) = members();
    members[0].campaign(0, 1, 5).expect("it is told");
    until("five groups are led", || members[0].report().expect("it runs").led == 5);
    let before = members[0].report().expect("it runs");
    let seen = traced(&mut members, &place, |members| {
        until("renewals", || members[0].report().expect("it runs").datagrams >= before.datagrams + 20);
    });
    let after = members[0].report().expect("it runs");
    assert_eq!((after.led, after.lost), (5, 0));
    for seen in seen {
        assert!(seen.sends >= 5, "strace saw nothing: {seen:?}");
        assert!(seen.syncs.is_empty() && seen.writes.is_empty(), "{seen:?}");
    }
}

#[test]
fn an_acquisition_waits_for_no_disk_within_the_reserved_block_and_for_one_write_at_most_beyond_it() {
    let _alone = alone();
    let (_folder, place, mut members) = members();
    // Blocks of terms begin small, and double until they have their length: the last of these was
    // written at term 1369, and the next is at 1625.
    members[0].ask("cycle 0 400").expect("a leads four hundred times");
    let seen = traced(&mut members, &place, |members| {
        members[0].ask("cycle 0 100").expect("a leads a hundred times");
    });
    // Two of three are a quorum: each election needs an answer of one of the others, not of both.
    let enough = seen[0].sends >= 100 && seen[1].sends + seen[2].sends >= 100;
    assert!(enough, "strace saw too little: {seen:?}");
    for seen in seen {
        assert!(seen.syncs.is_empty() && seen.writes.is_empty(), "{seen:?}");
    }
    let seen = traced(&mut members, &place, |members| {
        let last = members[0].ask("cycle 0 300").expect("and three hundred times more");
        assert_eq!(last, ["1800"], "each in a term of its own");
    });
    for seen in seen {
        // Half a block before the end of it, the next one is written.
        assert!((1..=4).contains(&seen.syncs.len()), "a sync for at least 128 acquisitions: {seen:?}");
        assert!(!seen.writes.is_empty(), "strace sees what is written: {seen:?}");
    }
}
