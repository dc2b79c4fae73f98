//! `tenure run` in operation: how it ends, hands over, waits, and lives with its key.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tenure::{AskError, NodeName, OperatorRequest, Scope};
use tenure_testkit::binary::Binary;
use tenure_testkit::daemons::Daemons;
use tenure_testkit::runners::{Stage, is_alive, signal};
use tenure_testkit::waiting::look_for;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// Ignores TERM and INT, and writes its number.
const STUBBORN: &str = "trap '' TERM INT; echo $$ > pid; while :; do sleep 0.01; done";

/// Writes its number, and stays.
const STAY: &str = "echo $$ > pid; exec sleep 600";

#[test]
fn a_command_that_ignores_the_signal_that_ends_its_runner_is_killed_after_the_grace() {
    let stage = Stage::set(TENURE);
    let mut runner = stage.jobs(&["--lease=3s", "--grace=300ms"], STUBBORN);
    let pid = stage.pid("pid");
    signal(runner.pid(), Signal::TERM);
    assert_eq!(runner.code(), 128 + 9);
    assert!(!is_alive(pid));
    // It has resigned: another leads at once, not after a lease.
    assert_eq!(stage.jobs(&["--wait=20s"], "exit 4").code(), 4);
}

#[test]
fn a_second_signal_to_end_kills_the_command_at_once() {
    let stage = Stage::set(TENURE);
    let mut runner = stage.jobs(&["--lease=5s", "--grace=1900ms"], STUBBORN);
    let pid = stage.pid("pid");
    signal(runner.pid(), Signal::TERM);
    signal(runner.pid(), Signal::INT);
    assert_eq!(runner.code(), 128 + 9);
    assert!(!is_alive(pid));
    assert!(stage.read("log").contains("asked to end again: the command gets KILL"), "{}", stage.read("log"));
}

#[test]
fn a_signal_that_the_command_obeys_is_the_one_that_was_sent_and_what_it_leaves_behind_gets_term() {
    let stage = Stage::set(TENURE);
    let left = "trap 'echo told > term; exit 0' TERM; echo $$ > left; while :; do sleep 0.01; done";
    fs::write(stage.path("left.sh"), left).unwrap();
    let script = "setsid sh left.sh & while ! test -s left; do sleep 0.01; done; \
                  trap 'exit 6' INT; trap 'exit 7' TERM; echo $$ > pid; while :; do sleep 0.01; done";
    let mut runner = stage.jobs(&["--lease=5s", "--grace=1900ms"], script);
    stage.pid("pid");
    signal(runner.pid(), Signal::INT);
    assert_eq!(runner.code(), 6, "INT, and no TERM beside it");
    assert!(!is_alive(stage.pid("left")));
    assert_eq!(stage.read("term").trim(), "told");
}

#[test]
fn a_hand_over_to_one_that_does_not_stand_by_is_refused_before_anything_stops() {
    let stage = Stage::set(TENURE);
    let _leader = stage.jobs(&["--name=one"], STAY);
    let pid = stage.pid("pid");
    for (to, why) in [("nobody", "'nobody' does not stand by"), ("one", "'one' leads already")] {
        let to = NodeName::new(to).unwrap();
        match stage.ask(OperatorRequest::Transfer { to }) {
            Err(AskError::Declined { reason }) => assert!(reason.contains(why), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert!(is_alive(pid), "the command runs on");
    }
    assert_eq!(stage.pid("pid"), pid, "and was not started again");
}

#[test]
fn a_failing_hook_is_told_even_if_all_else_is_quiet_and_the_runner_stands_back_for_longer() {
    let stage = Stage::set(TENURE);
    let hook = "echo $TENURE_TERM >> terms; exit 3";
    let words = ["-q", "--lease=1500ms", "--grace=200ms", "--on-elected", hook];
    let runner = stage.jobs(&words, "echo ran > ran");
    let said = |what: &str| stage.read("log").matches(what).count();
    stage.wait("two failures", || (said("--on-elected failed with exit code 3") >= 2).then_some(()));
    stage.wait("a longer pause", || {
        let log = stage.read("log");
        (log.contains("campaigns again in 1 s") && log.contains("campaigns again in 3 s")).then_some(())
    });
    assert_eq!(stage.read("ran"), "");
    signal(runner.pid(), Signal::TERM);
}

#[test]
fn a_hook_that_takes_too_long_is_said_to_take_too_long() {
    let stage = Stage::set(TENURE);
    let words = ["-q", "--once", "--on-elected", "sleep 600", "--hook-timeout=100ms"];
    assert_eq!(stage.jobs(&words, "true").code(), 79);
    assert!(stage.read("log").contains("--on-elected took too long"), "{}", stage.read("log"));
}

#[test]
fn one_that_waits_says_who_leads_and_one_that_gives_up_too() {
    let stage = Stage::set(TENURE);
    let _leader = stage.jobs(&["--name=one", "-q"], STAY);
    stage.pid("pid");
    let mut second = stage.jobs(&["--name=two"], "true");
    stage.wait("a word", || stage.read("log").contains("waits: one leads, in term").then_some(()));
    signal(second.pid(), Signal::TERM);
    second.end();
    assert_eq!(stage.jobs(&["--wait=0s"], "echo no > ran").code(), 75);
    assert!(stage.read("log").contains("'one' leads"), "{}", stage.read("log"));
    assert_eq!(stage.read("ran"), "");
}

#[test]
fn one_that_waits_says_until_when_once_for_each_leader_and_a_quiet_one_says_nothing() {
    let stage = Stage::set(TENURE);
    let _leader = stage.jobs(&["-q", "--name=one", "--lease=5s"], STAY);
    stage.pid("pid");
    let _quiet = stage.jobs(&["-q", "--name=quiet"], "true");
    let _waits = stage.jobs(&["-o", "json", "--name=waits"], "true");
    let said = || -> Vec<serde_json::Value> {
        let log = stage.read("log");
        let events = log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{log}")));
        events.filter(|event: &serde_json::Value| event["leader"].is_string()).collect()
    };
    let first = stage.wait("a word", || said().pop());
    let before = stage.renewals();
    stage.wait("some renewals", || (stage.renewals() >= before + 3).then_some(()));
    let _next = stage.jobs(&["-q", "--name=two", "--lease=5s"], "exec sleep 600");
    let to = NodeName::new("two").unwrap();
    stage.wait("a hand-over", || stage.ask(OperatorRequest::Transfer { to: to.clone() }).ok());
    stage.wait("another word", || (said().len() > 1).then_some(()));
    let leaders: Vec<_> = said().iter().map(|event| event["leader"].clone()).collect();
    assert_eq!(leaders, ["one", "two"], "{}", stage.read("log"));
    // The longest lease is 5 s, and ρ a tenth.
    assert_eq!(first["ends_within_ms"], 6112, "{first}");
    let message = first["message"].as_str().unwrap();
    match first["leads_for_ms"].as_u64() {
        Some(left) => {
            assert!(left <= 5000, "{first}");
            assert!(message.contains("falls silent now, its lease ends in "), "{first}");
        }
        None => assert!(message.contains("falls silent, its lease ends within "), "{first}"),
    }
    assert!(message.ends_with(" 6.2 s"), "{message}");
}

#[test]
fn one_that_is_quiet_and_not_elected_says_nothing_for_that_is_its_answer() {
    let stage = Stage::set(TENURE);
    let _leader = stage.jobs(&["-q"], STAY);
    stage.pid("pid");
    assert_eq!(stage.jobs(&["-q", "--once", "--wait=0s"], "echo no > ran").code(), 75);
    assert_eq!((stage.read("log"), stage.read("ran")), (String::new(), String::new()));
}

#[test]
fn with_no_time_to_wait_a_command_runs_if_nobody_leads() {
    let stage = Stage::set(TENURE);
    assert_eq!(stage.jobs(&["--wait=0s"], "exit 3").code(), 3, "{}", stage.read("log"));
}

#[test]
fn one_that_waits_without_a_quorum_says_so() {
    let mut stage = Stage::set(TENURE);
    stage.stop_cluster();
    let runner = stage.jobs(&[], "true");
    stage.wait("a word", || stage.read("log").contains("waits: no member answers").then_some(()));
    signal(runner.pid(), Signal::TERM);
}

#[test]
fn a_script_gets_fresh_tokens_without_netcat_and_none_when_it_leads_no_more() {
    let stage = Stage::set(TENURE);
    let script = format!(
        "{0} edict > one && {0} edict > two && {0} edict --packed > packed; echo $TENURE_TOKEN > term",
        TENURE.0
    );
    assert_eq!(stage.jobs(&[], &script).code(), 0, "{}", stage.read("log"));
    let number = |name: &str| stage.read(name).trim().parse::<u128>().unwrap();
    assert!(number("term") < number("one") && number("one") < number("two"));
    assert!(number("packed") < 1 << 63);
    // A hook after the end of the leadership.
    let lost = format!("{0} edict > three; echo $? > code", TENURE.0);
    assert_eq!(stage.jobs(&["--on-lost", &lost], "true").code(), 0);
    assert_eq!((stage.read("code").trim(), stage.read("three").as_str()), ("1", ""));
    let said = TENURE.fails(stage.cluster.dir.path(), "edict", 2);
    assert!(said.contains("TENURE_SOCKET is not set"), "{said}");
}

#[test]
fn an_edict_of_a_runner_that_is_gone_exits_with_69() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = TENURE.command_in(folder.path());
    let output = command.arg("edict").env("TENURE_SOCKET", folder.path().join("none")).output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
}

#[test]
fn the_sql_of_the_fences_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    for (database, part) in
        [("postgres", "CREATE SCHEMA tenure"), ("sqlite", "CREATE TABLE IF NOT EXISTS tenure_fence")]
    {
        let sql = TENURE.succeeds(folder.path(), &format!("fence sql {database}"));
        assert!(sql.contains(part), "{sql}");
    }
}

#[test]
fn events_are_objects_if_that_is_asked_for() {
    let stage = Stage::set(TENURE);
    assert_eq!(stage.jobs(&["--name=one", "-o", "json"], "true").code(), 0);
    let log = stage.read("log");
    let events: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{log}"))).collect();
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(names, ["leads", "started"], "{log}");
    assert!(events.iter().all(|event| event["group"] == "jobs" && event["node"] == "one"), "{log}");
}

#[test]
fn those_that_stand_by_are_listed_and_one_is_found_by_the_beginning_of_its_name() {
    let cluster = Daemons::found(TENURE, 3, "");
    let _daemons = cluster.start_all();
    let words = |name: &str| format!("run -g jobs -c tenure.toml --name {name} -- sleep 600");
    let first = Host::start(&cluster, "first", &words("one"));
    first.says("leads in term");
    let second = Host::start(&cluster, "second", &words("two"));
    let status = |group: &str| TENURE.run(cluster.path(), &format!("status {group} -c tenure.toml -o json"));
    look_for("one that stands by", || {
        let said: serde_json::Value = serde_json::from_slice(&status("jobs").stdout).ok()?;
        (said["leader"] == "client-one" && said["candidates"] == serde_json::json!(["client-two"]))
            .then_some(())
    });
    let said = TENURE.succeeds(cluster.path(), "status jobs -c tenure.toml");
    assert!(said.contains("stands by") && said.contains("client-two"), "{said}");
    assert_eq!(status("nobodys").status.code(), Some(1));
    let said = TENURE.succeeds(cluster.path(), "transfer jobs --to client-t -c tenure.toml");
    let term = second.says("leads in term");
    let term = term.split_whitespace().nth(5).unwrap();
    assert!(said.contains(&format!("over to client-two, which leads in term {term}")), "{said}: {term}");
}

/// A runner on another "host": a folder of its own, with the same files.
struct Host {
    child: Child,
    log: std::path::PathBuf,
}

impl Host {
    fn start(cluster: &Daemons, host: &str, words: &str) -> Self {
        let log = cluster.path().join(format!("{host}.log"));
        let file = fs::File::create(&log).unwrap();
        let mut command: Command = TENURE.command_in(cluster.path());
        command.args(words.split_whitespace());
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { child: command.spawn().unwrap(), log }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    fn says(&self, what: &str) -> String {
        look_for(&format!("'{what}' in {}", self.log.display()), || {
            self.text().lines().find(|line| line.contains(what)).map(str::to_owned)
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// In this time two processes that drive each other out would do so twice, with leases of 5 s.
const TWO_LEASES: Duration = Duration::from_secs(11);

/// Puts a key in the place of that of `client.toml`.
fn use_key(folder: &Path, key: &str) {
    fs::rename(folder.join(key), folder.join("client.key")).unwrap();
}

#[test]
fn one_key_of_an_application_serves_on_many_hosts() {
    let cluster = Daemons::found(TENURE, 3, "");
    let _daemons = cluster.start_all();
    TENURE.succeeds(cluster.path(), "key --candidate app --groups jobs --out app.key -c tenure.toml");
    use_key(cluster.path(), "app.key");
    let words = "run -g jobs -c tenure.toml --lease 5s -- sleep 600";
    let hosts = ["h1", "h2", "h3"].map(|host| Host::start(&cluster, host, words));
    let lead = || hosts.iter().filter(|host| host.text().contains("leads in term")).count();
    look_for("a leader", || (lead() > 0).then_some(()));
    // The others wait, and none is disturbed, for longer than two leases. They are long enough to
    // outlast the pauses of a busy machine.
    let waits = |host: &&Host| host.text().contains("waits: app-");
    look_for("two that wait", || (hosts.iter().filter(waits).count() == 2).then_some(()));
    std::thread::sleep(TWO_LEASES);
    let terms: usize = hosts.iter().map(|host| host.text().matches("leads in term").count()).sum();
    assert_eq!(terms, 1, "{:?}", hosts.each_ref().map(Host::text));
}

#[test]
fn two_processes_of_one_full_name_are_told_and_the_newer_one_is_left_in_peace() {
    let cluster = Daemons::found(TENURE, 3, "");
    let daemons = cluster.start_all();
    TENURE.succeeds(cluster.path(), "key --candidate app --exact --groups jobs --out app.key -c tenure.toml");
    use_key(cluster.path(), "app.key");
    let words = "run -g jobs -c tenure.toml --lease 5s -- sleep 600";
    let first = Host::start(&cluster, "first", words);
    first.says("leads in term");
    let second = Host::start(&cluster, "second", words);
    first.says("another process speaks under the name 'app'");
    for daemon in &daemons {
        let line = daemon.line("event=name_in_use");
        assert!(line.contains("peer=app"), "{line}");
    }
    second.says("leads in term");
    std::thread::sleep(TWO_LEASES);
    let terms = |host: &Host| host.text().matches("leads in term").count();
    assert_eq!((terms(&first), terms(&second)), (1, 1), "{}\n{}", first.text(), second.text());
    // When the newer one has gone, the other takes its place.
    drop(second);
    look_for("the first again", || (terms(&first) == 2).then_some(()));
}

#[test]
fn a_revoked_key_is_told_and_a_new_one_is_taken_from_its_file_without_a_restart() {
    let cluster = Daemons::found(TENURE, 3, "");
    let _daemons = cluster.start_all();
    let host = Host::start(&cluster, "host", "run -g jobs -c tenure.toml --name one -- sleep 600");
    host.says("leads in term");
    TENURE.succeeds(cluster.path(), "key revoke client.key -c tenure.toml");
    host.says("the members refuse this key: it was revoked");
    let derive = "key derive --candidate client-* --groups * --out new.key -c tenure.toml";
    TENURE.succeeds(cluster.path(), derive);
    use_key(cluster.path(), "new.key");
    host.says("has taken a new key from");
    look_for("a second term", || (host.text().matches("leads in term").count() == 2).then_some(()));
}

#[test]
fn a_runner_whose_file_was_named_in_another_folder_takes_a_new_key_too() {
    let cluster = Daemons::found(TENURE, 1, "");
    let _daemons = cluster.start_all();
    let folder = cluster.path().join("apps");
    fs::create_dir(&folder).unwrap();
    for name in ["tenure.toml", "client.key"] {
        fs::copy(cluster.path().join(name), folder.join(name)).unwrap();
    }
    let host = Host::start(&cluster, "host", "run -g jobs -c apps/tenure.toml -- sleep 600");
    host.says("leads in term");
    let derive = "key derive --candidate client-* --groups * --out new.key -c tenure.toml";
    TENURE.succeeds(cluster.path(), derive);
    fs::rename(cluster.path().join("new.key"), folder.join("client.key")).unwrap();
    host.says("has taken a new key from apps/client.key");
}

#[test]
fn a_leader_takes_a_new_key_from_its_file_before_the_old_one_ends() {
    let cluster = Daemons::found(TENURE, 3, "");
    let _daemons = cluster.start_all();
    let host = Host::start(&cluster, "host", "run -g jobs -c tenure.toml --lease 5s -- sleep 600");
    host.says("leads in term");
    let old = fs::read_to_string(cluster.path().join("client.key")).unwrap();
    fs::write(cluster.path().join("old.key"), old).unwrap();
    let derive = "key derive --candidate client-* --groups * --out new.key -c tenure.toml";
    TENURE.succeeds(cluster.path(), derive);
    use_key(cluster.path(), "new.key");
    host.says("has taken a new key from");
    // The sessions of the old key are replaced within a moment; then it may end.
    std::thread::sleep(Duration::from_secs(3));
    TENURE.succeeds(cluster.path(), "key revoke old.key -c tenure.toml");
    std::thread::sleep(TWO_LEASES);
    assert_eq!(host.text().matches("leads in term").count(), 1, "{}", host.text());
    assert!(!host.text().contains("gets TERM"), "{}", host.text());
}

#[test]
fn a_scope_of_the_old_kind_keeps_its_name() {
    let stage = Stage::set(TENURE);
    let scope = Scope::new("jobs").unwrap();
    let key = stage.cluster.key.candidate(stage.cluster.id, NodeName::new("app").unwrap(), scope);
    stage.write_file(&key.reveal());
    assert_eq!(stage.jobs(&[], "echo $TENURE_NODE > node").code(), 0);
    assert_eq!(stage.read("node").trim(), "app");
}
