//! `tenure up`: a whole cluster, as a new user has it.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use tenure_testkit::binary::Binary;
use tenure_testkit::daemons::{Daemon, forget};
use tenure_testkit::ports::free_range;
use tenure_testkit::waiting::look_for;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// `tenure up` in a folder.
fn up(folder: &Path, words: &str) -> Daemon {
    let mut command = TENURE.command_in(folder);
    // A node must not take these for its own.
    command.env("TENURE_NAME", "nobody").env("TENURE_LISTEN", "127.0.0.1:1");
    command.arg("up").args(words.split_whitespace());
    Daemon::start(command, &folder.join("said"))
}

/// The numbers of the nodes that were started last.
fn pids(folder: &Path) -> Vec<Pid> {
    let pid = |name: &str| {
        let log = fs::read_to_string(folder.join(".tenure").join(name).join("log")).unwrap();
        let line = log.lines().rfind(|line| line.contains("event=started")).unwrap();
        let word = line.split(' ').find_map(|word| word.strip_prefix("pid=")).unwrap();
        Pid::from_raw(word.parse().unwrap()).unwrap()
    };
    ["n1", "n2", "n3"].map(pid).to_vec()
}

/// A folder that leaves nothing on the machine.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        forget(&self.path().join(".tenure/tenure.toml"));
    }
}

#[test]
fn a_cluster_is_founded_runs_stops_and_is_continued() {
    let folder = Folder::new();
    let (dir, base) = (folder.path(), free_range(6));
    let first = up(dir, &format!("--port {base}"));
    first.line("Ctrl-C stops it");
    let said = first.text();
    assert!(said.contains("A cluster of 3 nodes runs in .tenure"), "{said}");
    for hint in
        ["run -g hello --", "leader hello --watch", "status", &format!("http://127.0.0.1:{}/", base + 1)]
    {
        assert!(said.contains(hint), "{hint} in {said}");
    }
    assert!(!said.contains('\u{1b}'), "no colour off a terminal");
    let nodes = pids(dir);
    first.signal(Signal::INT);
    let (status, said) = first.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(nodes.iter().all(|pid| test_kill_process(*pid).is_err()), "all have ended");
    for name in ["n1", "n2", "n3"] {
        let log = fs::read_to_string(dir.join(".tenure").join(name).join("log")).unwrap();
        assert!(log.trim_end().ends_with("msg=\"has ended\""), "by themselves: {log}");
    }

    let second = up(dir, "");
    second.line("A cluster of 3 nodes continues in .tenure");
    second.line("Ctrl-C stops it");
    second.signal(Signal::TERM);
    assert_eq!(second.end().0.code(), Some(0));
}

#[test]
fn nodes_end_with_up_even_if_it_is_killed() {
    let folder = Folder::new();
    let up = up(folder.path(), &format!("--port {}", free_range(6)));
    up.line("Ctrl-C stops it");
    let nodes = pids(folder.path());
    assert!(nodes.iter().all(|pid| test_kill_process(*pid).is_ok()), "they run");
    up.signal(Signal::KILL);
    drop(up);
    let gone = || nodes.iter().all(|pid| test_kill_process(*pid).is_err()).then_some(());
    look_for("the end of the nodes", gone);
}

#[test]
fn a_node_that_is_killed_is_told_of_and_can_be_started_again() {
    let folder = Folder::new();
    let dir = folder.path();
    let mut up = up(dir, &format!("--port {} -o json", free_range(6)));
    let ready: Value = serde_json::from_str(&up.line("\"event\":\"ready\"")).unwrap();
    assert_eq!(ready["nodes"].as_array().unwrap().len(), 3, "{ready:#}");
    kill_process(pids(dir)[1], Signal::KILL).unwrap();
    let ended: Value = serde_json::from_str(&up.line("\"event\":\"ended\"")).unwrap();
    assert_eq!((&ended["node"], &ended["signal"]), (&Value::from("n2"), &Value::from(9)), "{ended:#}");
    let again = ended["again"].as_str().unwrap();
    let words: Vec<&str> = again.split(' ').skip(1).collect();
    let mut command = TENURE.command_in(dir);
    command.args(words);
    let node = Daemon::start(command, &dir.join("again"));
    node.line("event=ready");
    assert!(up.runs(), "the others go on");
}

#[test]
fn who_leads_is_shown_as_it_changes() {
    let folder = Folder::new();
    let dir = folder.path();
    let up = up(dir, &format!("--port {} -o json", free_range(6)));
    up.line("\"event\":\"ready\"");
    let runner = |log: &str| {
        let mut command = TENURE.command_in(dir);
        command.args(["run", "-g", "hello", "--", "sleep", "600"]);
        Daemon::start(command, &dir.join(log))
    };
    let first = runner("first");
    let told = |count: usize| -> Value {
        serde_json::from_str(&up.lines("\"event\":\"leader\"", count).pop().unwrap()).unwrap()
    };
    let leads = told(1);
    assert!(leads["group"] == "hello" && leads["leader"].is_string() && leads["term"].is_number(), "{leads}");
    first.signal(Signal::TERM);
    let nobody = told(2);
    assert!(nobody["leader"].is_null() && nobody["term"] == leads["term"], "{nobody}");
    let _second = runner("second");
    let next = told(3);
    assert!(next["leader"] != leads["leader"] && next["term"].as_u64() > leads["term"].as_u64(), "{next}");
}

#[test]
fn a_cluster_that_exists_is_not_made_into_another() {
    let folder = Folder::new();
    let (dir, base) = (folder.path(), free_range(6));
    let first = up(dir, &format!("--port {base} --lease 1s"));
    first.line("Ctrl-C stops it");
    let said = TENURE.fails(dir, "up", 78);
    assert!(said.contains("another `tenure up` runs"), "{said}");
    first.signal(Signal::TERM);
    first.end();
    for (words, named) in [
        ("--nodes 5", "3 nodes"),
        ("--nodes 2", "3 nodes"),
        ("--port 7999", "begins at port"),
        ("--lease 2s", "leases of 1s"),
    ] {
        let said = TENURE.fails(dir, &format!("up {words}"), 78);
        assert!(said.contains(named) && said.contains("leave --"), "{said}");
    }
    let _taken = TcpListener::bind(("127.0.0.1", base + 3)).unwrap();
    let said = TENURE.fails(dir, "up", 78);
    assert!(said.contains(&format!("port {} is in use", base + 3)), "{said}");
}

#[test]
fn a_port_in_use_is_named_before_anything_is_founded() {
    let folder = Folder::new();
    let base = free_range(6);
    let _taken = TcpListener::bind(("127.0.0.1", base + 2)).unwrap();
    let said = TENURE.fails(folder.path(), &format!("up --port {base}"), 78);
    assert!(said.contains(&format!("port {} is in use", base + 2)) && said.contains("--port"), "{said}");
    assert!(!folder.path().join(".tenure").exists());
}

#[test]
fn a_node_that_cannot_start_is_quoted_and_nothing_is_left() {
    let folder = Folder::new();
    let dir = folder.path();
    let first = up(dir, &format!("--port {}", free_range(6)));
    first.line("Ctrl-C stops it");
    first.signal(Signal::TERM);
    first.end();
    fs::remove_dir_all(dir.join(".tenure/n2/store")).unwrap();
    let said = TENURE.fails(dir, "up", 78);
    assert!(said.contains("n2 did not start: there is no store"), "{said}");
}

#[test]
fn a_node_that_was_removed_is_told_of_and_not_waited_for() {
    let folder = Folder::new();
    let dir = folder.path();
    let first = up(dir, &format!("--port {}", free_range(6)));
    first.line("Ctrl-C stops it");
    TENURE.succeeds(dir, "members remove n3");
    // Two that had not heard of it yet would be a quorum of the old epoch for each other.
    look_for("the change at the members that are left", || {
        let log =
            |name: &str| fs::read_to_string(dir.join(format!(".tenure/{name}/log"))).unwrap_or_default();
        ["n1", "n2"].iter().all(|name| log(name).contains("event=epoch")).then_some(())
    });
    first.signal(Signal::TERM);
    first.end();
    let second = up(dir, "");
    second.lines("Ctrl-C stops it", 1);
    second.line("n3 runs, but is no member");
    let text = second.text();
    assert!(!text.contains("is not ready"), "{text}");
    let log = fs::read_to_string(dir.join(".tenure/n3/log")).unwrap();
    let restarted = log.rsplit("event=started").next().unwrap();
    assert!(!restarted.contains("event=ready"), "a node that was removed is not ready:\n{restarted}");
}
