//! Disks that stall and disks that fail under a running member, as processes on real file systems.
//!
//! Needs root, for mounts of its own, and `strace`, which makes a system call fail.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenure_testkit::group_members::{Place, Process, member};
use tenure_testkit::mounts::{self, run, text};
use tenure_testkit::waiting::{now, until};

/// Turns are drawn from a window of a millisecond: many elections in little time. A lease is longer
/// than a busy machine keeps a leader waiting, and shorter than a disk stalls.
const SETTINGS: &str = "[lease]\nlength = \"3s\"\nwindow = \"1ms\"\n[election]\nweak = \"random\"\n";

/// As long as a disk may stall.
const STALL: Duration = Duration::from_secs(4);

/// Waits until a member leads so many groups.
fn await_led(member: &mut Process, count: u64) {
    until(&format!("{count} groups are led"), || member.report().expect("it runs").led == count);
}

/// A file system on a disk that is a file.
fn disk(folder: &Path) -> std::path::PathBuf {
    let (image, at) = (folder.join("image"), folder.join("disk"));
    let file = std::fs::File::create(&image).expect("a file");
    file.set_len(16 << 20).expect("room for it");
    std::fs::create_dir(&at).expect("a folder");
    run("mkfs.ext4", &["-q", text(&image)]);
    run("mount", &["-o", "loop", text(&image), text(&at)]);
    at
}

/// Everything that is written there waits until this is dropped.
struct Frozen<'a>(&'a Path);

impl<'a> Frozen<'a> {
    fn freeze(at: &'a Path) -> Self {
        run("fsfreeze", &["--freeze", text(at)]);
        Self(at)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        run("fsfreeze", &["--unfreeze", text(self.0)]);
    }
}

#[test]
fn a_disk_that_stalls_for_four_seconds_deposes_nobody() {
    if !mounts::inside("a_disk_that_stalls_for_four_seconds_deposes_nobody") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let disk = disk(folder.path());
    let place = Place::found(&disk.join("cluster"), SETTINGS);
    let mut members = place.start(member).expect("they start");
    members[0].campaign(0, 1, 5).expect("it is told");
    await_led(&mut members[0], 5);
    // Blocks of terms begin small and grow with use: after this each covers at least 128 terms
    // more.
    members[1].ask("cycle 100 600").expect("others are elected");
    let before = members[0].table().expect("it runs");

    let frozen = Frozen::freeze(&disk);
    let begun = now();
    let probe = disk.join("probe");
    let mut probe = Command::new("touch").arg(probe).spawn().expect("touch runs");
    // A part of a block is used up by this: grantors may want to write, and cannot. The rest
    // covers the terms. One that waited for the disk would wait for good: until this is over, it
    // stays as it is.
    let last = members[1].ask("cycle 100 100").expect("others are elected meanwhile");
    assert_eq!(last, ["1700"]);
    std::thread::sleep((begun + STALL).saturating_sub(now()));
    let stalled = probe.try_wait().expect("it can be asked").is_none();
    let during = (members[0].table().expect("it runs"), members[0].report().expect("it runs"));
    drop(frozen);

    assert!(stalled, "the disk did not stall");
    assert_eq!((during.0, during.1.led, during.1.lost), (before.clone(), 5, 0));
    assert!(probe.wait().expect("it ends").success());
    members[1].ask("cycle 100 600").expect("and afterwards, beyond the block");
    assert_eq!(members[0].table().expect("it runs"), before);
    drop((members, place));
    run("umount", &[text(&disk)]);
}

/// Makes every such call of a process fail from now on.
fn fail(process: &Process, call: &str, error: &str) -> Child {
    let mut strace = Command::new("strace")
        .args([
            "-f",
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={call}"),
            "-e",
            &format!("inject={call}:error={error}"),
        ])
        .args(["-p", &process.id().to_string()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("strace is needed (`cargo xtask setup`): {error}"));
    let mut first = String::new();
    BufReader::new(strace.stderr.take().expect("a pipe"))
        .read_line(&mut first)
        .expect("strace says something");
    assert!(first.contains("attached"), "strace: {first}");
    strace
}

/// A leader's disk fails: it leads and grants no more from then on, says why, and nothing is lost.
fn a_failing_call_stops_the_node(call: &str, error: &str, said: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::found(&folder.path().join("cluster"), SETTINGS);
    let log = folder.path().join("log");
    let mut members = place
        .start(|config| {
            let mut command = member(config);
            if config.ends_with("a.toml") {
                command.stderr(std::fs::File::create(&log).expect("a file"));
            }
            command
        })
        .expect("they start");
    members[0].campaign(0, 1, 1).expect("it is told");
    await_led(&mut members[0], 1);
    members[1].campaign(0, 1, 1).expect("it is told");
    let before = members[0].table().expect("it runs")[0];

    let armed = now();
    let mut strace = fail(&members[0], call, error);
    assert!(members[0].ask("cycle 100 200").is_err(), "it has ended by itself");
    let log = std::fs::read_to_string(&log).expect("it has a log");
    assert!(log.contains("the store failed") && log.contains(said), "{log}");
    strace.wait().expect("it ends with the process");

    await_led(&mut members[1], 1);
    let after = members[1].table().expect("it runs")[0];
    let in_order = after.term > before.term && Duration::from_nanos(after.since) > armed;
    assert!(in_order, "another leads after it, not beside it: {before:?} {after:?}");
    members[1].ask("cycle 100 50").expect("two of three are a quorum");
    let mut again = Process::start(member(&place.file("a"))).expect("it starts");
    again.answer().expect("what was confirmed is there");
    again.ask("cycle 200 1").expect("it leads again");
}

#[test]
fn a_sync_that_fails_stops_the_node_and_nothing_is_lost() {
    a_failing_call_stops_the_node("fdatasync", "EIO", "Input/output error");
}

#[test]
fn a_disk_that_is_full_stops_the_node_and_nothing_is_lost() {
    a_failing_call_stops_the_node("pwrite64", "ENOSPC", "make room there");
}

#[test]
fn two_processes_on_one_store_are_one_too_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::found(&folder.path().join("cluster"), SETTINGS);
    let mut members = place.start(member).expect("they start");
    let second = member(&place.file("a")).stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && said.contains("is in use: another process runs this node"), "{said}");
    members[0].ask("cycle 0 1").expect("the first goes on");
}
