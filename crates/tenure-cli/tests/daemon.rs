//! `tenure node`, as real processes: what it refuses, what it says, and how it ends.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};
use tenure_testkit::binary::{Binary, one_line};
use tenure_testkit::daemons::{Daemon, Daemons};
use tenure_testkit::ports::free_range;
use tenure_testkit::waiting::LIMIT;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// A folder that is somebody's, copied.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_missing_store_is_refused_and_both_ways_out_are_named() {
    let cluster = Daemons::found(TENURE, 1, "");
    fs::remove_dir_all(cluster.path().join("n1/store")).unwrap();
    let said = cluster.refused(0, "", 78);
    assert!(said.contains("tenure init") && said.contains("--found") && said.contains("--join"), "{said}");
}

#[test]
fn a_misspelt_key_is_named_with_its_line() {
    let cluster = Daemons::found(TENURE, 1, "");
    cluster.edit(0, "listen =", "listn =");
    let said = cluster.refused(0, "", 78);
    assert!(said.contains("listn") && said.contains("line"), "{said}");
    let said = TENURE.fails(cluster.path(), "config check n1/tenure.toml", 78);
    assert!(said.contains("listn"), "{said}");
}

#[test]
fn a_port_in_use_is_named() {
    let cluster = Daemons::found(TENURE, 1, "");
    let _taken = UdpSocket::bind(("127.0.0.1", cluster.base)).unwrap();
    let said = cluster.refused(0, "", 78);
    assert!(said.contains(&format!("127.0.0.1:{}", cluster.base)) && said.contains("listen"), "{said}");
}

#[test]
fn a_start_that_was_refused_owes_no_silence() {
    let cluster = Daemons::found(TENURE, 1, "");
    // An address of no host.
    let refuse = || drop(cluster.refused(0, "--listen 203.0.113.1:7400", 78));
    // Before it has ever run, after a clean end, and after it was killed.
    for end in [Signal::TERM, Signal::KILL, Signal::KILL] {
        refuse();
        refuse();
        let daemon = cluster.start(0);
        daemon.line("event=ready");
        daemon.signal(end);
        let (_, log) = daemon.end();
        assert!(!log.contains("event=silent"), "{log}");
    }
}

#[test]
fn a_value_that_differs_from_the_epochs_names_how_to_change_it() {
    let cluster = Daemons::found(TENURE, 1, "");
    cluster.edit(0, "[cluster]\n", "[cluster]\nlongest_lease = \"7s\"\n");
    let said = cluster.refused(0, "", 78);
    assert!(said.contains("longest_lease") && said.contains("tenure members set"), "{said}");
    assert!(said.contains("7s") && said.contains("5s"), "both are named: {said}");
}

#[test]
fn the_store_of_another_cluster_or_of_another_node_is_refused() {
    let (cluster, other) = (Daemons::found(TENURE, 2, ""), Daemons::found(TENURE, 2, ""));
    fs::remove_dir_all(cluster.path().join("n1/store")).unwrap();
    copy(&other.path().join("n1/store"), &cluster.path().join("n1/store"));
    let said = cluster.refused(0, "", 78);
    assert!(said.contains("belongs to cluster"), "{said}");
    let said = other.refused(0, &format!("--store {}", other.path().join("n2/store").display()), 78);
    assert!(said.contains("belongs to node 'n2'"), "{said}");
}

#[test]
fn a_store_in_use_is_refused() {
    let cluster = Daemons::found(TENURE, 1, "");
    let daemon = cluster.start(0);
    daemon.line("event=ready");
    let said = cluster.refused(0, &format!("--listen 127.0.0.1:{}", free_range(1)), 78);
    assert!(said.contains("in use"), "{said}");
}

#[test]
fn a_second_node_of_a_members_name_ends_and_says_why() {
    let cluster = Daemons::found(TENURE, 3, "");
    let _running: Vec<Daemon> = vec![cluster.start(0), cluster.start(1)];
    // n3 has lost its disk, and joins under its old name.
    fs::remove_dir_all(cluster.path().join("n3/store")).unwrap();
    let mut command = cluster.node(2);
    command.arg("--join");
    let (status, said) = Daemon::start(command, &cluster.path().join("n3/log")).end();
    assert_eq!(status.code(), Some(78), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("a member called 'n3' already") && last.contains("members replace"), "{said}");
    assert!(said.contains("event=stopped"), "{said}");
}

#[test]
fn a_node_with_a_wrong_key_says_so_and_is_never_ready() {
    let cluster = Daemons::found(TENURE, 3, "");
    fs::remove_file(cluster.path().join("n3/key")).unwrap();
    TENURE.succeeds(cluster.path(), "key new --out n3/key");
    let right = [cluster.start(0), cluster.start(1)];
    let wrong = cluster.start(2);
    for daemon in right.iter().chain([&wrong]) {
        let line = daemon.line("reason=unknown_key");
        assert!(line.contains("event=refused") && line.contains("key_file"), "{line}");
    }
    let line = wrong.line("event=waiting");
    assert!(line.contains("key"), "{line}");
    assert!(!wrong.text().contains("event=ready"), "{}", wrong.text());
    right.iter().for_each(|daemon| drop(daemon.line("event=ready")));
}

#[test]
fn a_clients_file_is_no_daemons() {
    let cluster = Daemons::found(TENURE, 1, "");
    let said = TENURE.fails(cluster.path(), "node -c tenure.toml", 78);
    assert!(said.contains("for clients") && said.contains("-c FILE"), "{said}");
}

#[test]
fn a_founding_member_makes_its_own_store_with_found() {
    let cluster = Daemons::found(TENURE, 1, "");
    fs::remove_dir_all(cluster.path().join("n1/store")).unwrap();
    let said = cluster.refused(0, "--found", 2);
    assert!(said.contains("--term-floor"), "{said}");
    let mut command = cluster.node(0);
    command.args(["--found", "--term-floor", "7"]);
    let daemon = Daemon::start(command, &cluster.path().join("n1/log"));
    daemon.line("event=ready");
    drop(daemon);
    let said = cluster.refused(0, "--found --term-floor 7", 78);
    assert!(said.contains("already"), "{said}");
}

#[test]
fn hang_up_changes_what_is_logged_and_a_broken_file_changes_nothing() {
    let cluster = Daemons::found(TENURE, 1, "");
    cluster.edit(0, "log = \"info\"", "log = \"warn\"");
    let (socket, path) = manager(&cluster);
    let mut command = cluster.node(0);
    command.env("NOTIFY_SOCKET", &path);
    let daemon = Daemon::start(command, &cluster.path().join("n1/log"));
    hear(&socket, "READY=1");
    assert_eq!(daemon.text(), "", "nothing to warn of");
    cluster.edit(0, "log = \"warn\"", "log = \"info\"");
    daemon.signal(Signal::HUP);
    let line = daemon.line("event=reloaded");
    assert!(line.contains("log=info"), "{line}");
    assert!(hear(&socket, "RELOADING=1").contains("MONOTONIC_USEC="));
    hear(&socket, "READY=1");

    cluster.edit(0, "log = \"info\"", "lgo = \"info\"");
    daemon.signal(Signal::HUP);
    let line = daemon.line("event=reload_failed");
    assert!(line.contains("lgo") && line.contains("level=error"), "{line}");
    daemon.signal(Signal::USR1);
    let line = daemon.line("event=state");
    assert!(line.contains("ready=true") && line.contains("members=n1"), "{line}");
}

#[test]
fn terminate_and_interrupt_end_a_daemon_with_nought() {
    let cluster = Daemons::found(TENURE, 1, "");
    for signal in [Signal::TERM, Signal::INT] {
        let daemon = cluster.start(0);
        daemon.line("event=ready");
        daemon.signal(signal);
        let (status, said) = daemon.end();
        assert_eq!(status.code(), Some(0), "{said}");
        let last = said.lines().last().unwrap();
        assert!(last.contains("event=ended") && said.contains("event=stopping"), "{said}");
        fs::remove_file(cluster.path().join("n1/log")).unwrap();
    }
}

#[test]
fn the_service_manager_is_told_ready_only_when_a_quorum_is_reached() {
    let cluster = Daemons::found(TENURE, 3, "");
    let (socket, path) = manager(&cluster);
    let mut command = cluster.node(0);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    let first = Daemon::start(command, &cluster.path().join("n1/log"));
    let told = hear(&socket, "STATUS=not ready");
    assert!(told.contains("1 of 3"), "{told}");
    // Alone it gives signs of life, and is not ready.
    for _ in 0..5 {
        hear_but(&socket, "WATCHDOG=1", "READY=1");
    }
    let _second = cluster.start(1);
    hear(&socket, "READY=1");
    hear(&socket, "STATUS=ready");
    first.signal(Signal::TERM);
    hear(&socket, "STOPPING=1");
    assert_eq!(first.end().0.code(), Some(0));
}

#[test]
fn a_node_whose_clock_cannot_be_trusted_ends_with_seventy() {
    let cluster = Daemons::found(TENURE, 1, "");
    fs::remove_dir_all(cluster.path().join("n1/store")).unwrap();
    cluster.edit(0, "[cluster]\n", "[cluster]\nclock = \"skew\"\nskew = \"1s\"\n");
    // Other bounds are another founding: the file must not name the old one.
    let file = cluster.path().join("n1/tenure.toml");
    let text = fs::read_to_string(&file).unwrap();
    let kept = text.lines().filter(|line| !line.starts_with("lineage")).map(|line| format!("{line}\n"));
    fs::write(&file, kept.collect::<String>()).unwrap();
    let mut node = cluster.node(0);
    node.args(["--found", "--term-floor", "1"]);
    // The kernel says that nobody keeps the clock synchronised.
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=adjtimex,clock_adjtime", "-e"]);
    traced.arg("inject=adjtimex,clock_adjtime:retval=5").arg(node.get_program()).args(node.get_args());
    traced.current_dir(cluster.path());
    let (status, said) = Daemon::start(traced, &cluster.path().join("n1/log")).end();
    assert_eq!(status.code(), Some(70), "{said}");
    assert!(said.lines().last().unwrap().starts_with("tenure: the clock cannot be trusted"), "{said}");
    assert!(said.contains("event=stopped"), "{said}");
}

#[test]
fn lines_of_the_log_are_objects_where_that_is_asked_for() {
    let cluster = Daemons::found(TENURE, 1, "");
    let mut command = cluster.node(0);
    command.args(["--log-format", "json"]);
    let daemon = Daemon::start(command, &cluster.path().join("n1/log"));
    daemon.line("\"event\":\"ready\"");
    daemon.signal(Signal::TERM);
    let (_, said) = daemon.end();
    for line in said.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["node"], "n1", "{line}");
        assert!(
            object["event"].is_string() && object["level"].is_string() && object["msg"].is_string(),
            "{line}"
        );
        let time = object["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
    }
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let cluster = Daemons::found(TENURE, 1, "");
    let mut command = cluster.node(0);
    command.env("TENURE_LOG_FORMAT", "json").args(["--log-format", "logfmt"]);
    let daemon = Daemon::start(command, &cluster.path().join("n1/log"));
    daemon.line("event=ready");
    drop(daemon);
    let output = cluster.node(0).env("TENURE_LOG", "loud").output().unwrap();
    let said = one_line(&output, 78, "node");
    assert!(said.contains("daemon.log") && said.contains("loud"), "{said}");
}

#[test]
fn the_clusters_key_changes_while_every_member_stays_ready() {
    let cluster = Daemons::found(TENURE, 3, "");
    let daemons = cluster.start_all();
    let reload = |times: usize| {
        for daemon in &daemons {
            daemon.signal(Signal::HUP);
            let line = daemon.lines("event=reloaded", times).pop().unwrap();
            assert!(!line.contains("failed"), "{line}");
        }
    };
    let key = |index: u16| fs::read_to_string(cluster.path().join(format!("n{}/key", index + 1))).unwrap();
    let old = key(0);
    TENURE.succeeds(cluster.path(), "key rotate --step 1 -c n1/tenure.toml");
    for other in ["n2", "n3"] {
        TENURE.succeeds(
            cluster.path(),
            &format!("key rotate --step 1 -c {other}/tenure.toml --with n1/key.new"),
        );
    }
    reload(1);
    for (step, times) in [(2, 2), (3, 3)] {
        for member in ["n1", "n2", "n3"] {
            TENURE.succeeds(cluster.path(), &format!("key rotate --step {step} -c {member}/tenure.toml"));
        }
        reload(times);
    }
    assert!(key(0) != old && key(0) == key(1) && key(1) == key(2));
    // A member that restarts speaks the new key with the others, which understand no other any
    // more.
    let mut daemons = daemons;
    daemons.pop().unwrap().signal(Signal::TERM);
    let again = cluster.start(2);
    again.lines("event=ready", 2);
    for daemon in &daemons {
        assert!(!daemon.text().contains("event=unready"), "{}", daemon.text());
    }
}

#[test]
fn a_key_is_revoked_at_running_members_and_the_command_says_who_has_it() {
    let cluster = Daemons::found(TENURE, 3, "");
    let mut daemons = cluster.start_all();
    let revoke = |words: &str, code: i32| {
        let output = TENURE.run(cluster.path(), &format!("key revoke {words} -c tenure.toml -o json"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()
    };
    // The key that init gave to clients leads, until it is revoked.
    TENURE.succeeds(cluster.path(), "run -g jobs --once -c tenure.toml -- true");
    let revoked = revoke("client.key", 0);
    assert_eq!((&revoked["held_by"], &revoked["quorum"]), (&json!(["n1", "n2", "n3"]), &json!(true)));
    for daemon in &daemons {
        daemon.line("event=key_revoked");
    }
    let output = TENURE.run(cluster.path(), "run -g jobs --once --wait 1m -c tenure.toml -- true");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(77), "no member takes that key any more: {said}");
    assert!(said.contains("the members refuse this key: it was revoked"), "{said}");
    let doctor = TENURE.run(cluster.path(), "doctor -c tenure.toml");
    let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(found.contains("the members refuse the key of this configuration: it was revoked"), "{found}");
    let listed = TENURE.run(cluster.path(), "key list -c tenure.toml -o json");
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed, json!({ "revoked": [{ "key": revoked["key"], "not_after": null }] }));
    let listed = TENURE.run(cluster.path(), "key list -c tenure.toml");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains(revoked["key"].as_str().unwrap()), "{listed}");
    TENURE.succeeds(cluster.path(), "key derive --candidate web-* --groups * --out web.key -c tenure.toml");
    fs::rename(cluster.path().join("web.key"), cluster.path().join("client.key")).unwrap();
    TENURE.succeeds(cluster.path(), "run -g jobs --once -c tenure.toml -- true");
    // One member of three is no quorum.
    drop(daemons.split_off(1));
    let alone = revoke("0123456789abcdef", 1);
    assert_eq!((&alone["held_by"], &alone["quorum"]), (&json!(["n1"]), &json!(false)));
    drop(daemons);
    revoke("0123456789abcdef", 69);
    revoke("key", 78);
}

/// A service manager's socket.
fn manager(cluster: &Daemons) -> (UnixDatagram, std::path::PathBuf) {
    let path = cluster.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    (socket, path)
}

/// Waits for a message that begins like this.
fn hear(socket: &UnixDatagram, begin: &str) -> String {
    hear_but(socket, begin, "nothing like this")
}

/// The same, but another message must not come first.
fn hear_but(socket: &UnixDatagram, begin: &str, not: &str) -> String {
    let mut buffer = [0; 4096];
    loop {
        let length = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("no {begin}: {error}"));
        let said = String::from_utf8_lossy(&buffer[..length]).into_owned();
        assert!(!said.starts_with(not), "{said}");
        if said.starts_with(begin) {
            return said;
        }
    }
}
