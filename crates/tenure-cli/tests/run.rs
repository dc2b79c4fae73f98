//! `tenure run` as a process, with its sentinel, against a real cluster: every exit code, and what
//! becomes of the command.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use tenure::{NodeName, OperatorRequest, Scope};
use tenure_testkit::binary::Binary;
use tenure_testkit::runners::{Stage, ask, is_alive, signal};
use tenure_testkit::waiting::now;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// Leases that end soon, for tests in which they do.
const SHORT: [&str; 3] = ["--lease=4s", "--grace=200ms", "--kill-margin=1s"];
const LEASE: Duration = Duration::from_secs(4);

/// Writes its number, and stays.
const STAY: &str = "echo $$ > pid; exec sleep 600";

#[test]
fn the_exit_code_is_that_of_the_command_and_the_environment_names_the_leadership() {
    let stage = Stage::set(TENURE);
    let mut runner = stage.run(&[
        "-g",
        "app/jobs",
        "--name",
        "me",
        "--",
        "sh",
        "-c",
        "echo $TENURE_GROUP $TENURE_NODE $TENURE_TERM $TENURE_TOKEN > env; exit 7",
    ]);
    assert_eq!(runner.code(), 7);
    let words = stage.read("env");
    let words: Vec<&str> = words.split_whitespace().collect();
    assert_eq!(words[..2], ["app/jobs", "me"]);
    let (term, token): (u64, u128) = (words[2].parse().unwrap(), words[3].parse().unwrap());
    assert_eq!(token, u128::from(term) << 64);
}

#[test]
fn a_key_in_the_environment_does_not_reach_the_command_the_hooks_and_the_sentinel() {
    let stage = Stage::set(TENURE);
    let key = stage.cluster.key.reveal();
    let script = "tr '\\0' '\\n' < /proc/$PPID/environ > sentinel; env > command";
    let words = ["-g", "jobs", "--on-elected", "env > hook", "--", "sh", "-c", script];
    assert_eq!(stage.run_in(&[("TENURE_KEY", &key), ("TENURE_LOG", "warn")], &words).code(), 0);
    for file in ["hook", "command", "sentinel"] {
        let text = stage.read(file);
        assert!(text.contains("TENURE_LOG=warn"), "{file}: {text}");
        assert!(!text.contains("TENURE_KEY") && !text.contains(&key), "{file}: {text}");
    }
}

#[test]
fn a_folder_that_another_user_made_under_a_name_that_could_be_guessed_stops_no_runner() {
    let stage = Stage::set(TENURE);
    let temporary = stage.path("tmp");
    fs::create_dir_all(temporary.join("tenure-run-me")).unwrap();
    let environment = [("TMPDIR", temporary.to_str().unwrap()), ("XDG_RUNTIME_DIR", "/nowhere")];
    let script = "echo $TENURE_SOCKET > socket; stat -c %a $(dirname $TENURE_SOCKET) > mode";
    for _ in 0..2 {
        let mut runner =
            stage.run_in(&environment, &["-g", "jobs", "--name", "me", "--", "sh", "-c", script]);
        assert_eq!(runner.code(), 0, "{}", stage.read("log"));
        assert!(!stage.read("socket").contains("tenure-run-me"), "{}", stage.read("socket"));
        assert_eq!(stage.read("mode").trim(), "700");
    }
}

#[test]
fn a_command_that_a_signal_ended_makes_the_code_128_and_its_number() {
    let stage = Stage::set(TENURE);
    assert_eq!(stage.jobs(&[], "kill -9 $$").code(), 128 + 9);
}

#[test]
fn a_command_that_is_not_there_or_cannot_be_run_is_told_as_by_a_shell() {
    let stage = Stage::set(TENURE);
    assert_eq!(stage.run(&["-g", "jobs", "--", "./no-such-command"]).code(), 127);
    fs::write(stage.path("text"), "no program").unwrap();
    assert_eq!(stage.run(&["-g", "jobs", "--", "./text"]).code(), 126);
}

#[test]
fn who_is_not_elected_in_time_exits_with_75() {
    let stage = Stage::set(TENURE);
    let _leader = stage.jobs(&[], STAY);
    stage.pid("pid");
    let mut second = stage.jobs(&["--wait=1s"], "echo no > ran");
    assert_eq!(second.code(), 75);
    assert_eq!(stage.read("ran"), "", "it was not started");
}

#[test]
fn who_reaches_no_quorum_exits_with_69() {
    let mut stage = Stage::set(TENURE);
    stage.stop_cluster();
    assert_eq!(stage.jobs(&["--wait=500ms"], "true").code(), 69);
}

#[test]
fn a_group_outside_the_scope_of_the_key_exits_with_77() {
    let stage = Stage::set(TENURE);
    let scope = Scope::new("other/*").unwrap();
    let key = stage.cluster.key.candidate(stage.cluster.id, NodeName::new("app").unwrap(), scope);
    stage.write_file(&key.reveal());
    assert_eq!(stage.jobs(&[], "true").code(), 77);
    let mut allowed = stage.run(&["-g", "other/jobs", "--", "sh", "-c", "echo $TENURE_NODE > node"]);
    assert_eq!(allowed.code(), 0);
    assert_eq!(stage.read("node").trim(), "app", "the name is that of the key");
}

#[test]
fn a_grace_that_does_not_fit_the_lease_exits_with_78_and_names_a_lease_that_would_do() {
    let stage = Stage::set(TENURE);
    assert_eq!(stage.jobs(&["--lease=1s", "--grace=1s"], "true").code(), 78);
    assert!(stage.read("log").contains("use --lease 3s"), "{}", stage.read("log"));
    assert_eq!(stage.jobs(&["--lease=3s", "--grace=1s"], "true").code(), 0, "the one that was named");
    assert_eq!(stage.jobs(&["--grace=1m"], "true").code(), 78);
    assert!(stage.read("log").contains("longest is 5s"), "{}", stage.read("log"));
}

#[test]
fn a_lost_lease_ends_the_command_before_its_end_and_exits_with_79() {
    let mut stage = Stage::set(TENURE);
    let script = "trap 'echo told > term; exit 0' TERM; echo $$ > pid; while :; do sleep 0.01; done";
    // Time enough to be told, also where a shell is not run at once.
    let (words, lease) = (["--lease=3s", "--grace=600ms", "--kill-margin=200ms"], Duration::from_secs(3));
    let mut runner = stage.jobs(&[&words[..], &["--once"]].concat(), script);
    let pid = stage.pid("pid");
    stage.stop_cluster();
    let stopped = now();
    stage.ends_before(stopped + lease, &[pid]);
    assert_eq!(runner.code(), 79);
    assert_eq!(stage.read("term").trim(), "told", "it was asked before it was ended");
}

#[test]
fn the_code_for_a_lost_lease_can_be_chosen() {
    let mut stage = Stage::set(TENURE);
    let mut runner = stage.jobs(&[&SHORT[..], &["--once", "--lost-exit-code=3"]].concat(), STAY);
    stage.pid("pid");
    stage.stop_cluster();
    assert_eq!(runner.code(), 3);
}

#[test]
fn a_command_that_ignores_term_is_killed_before_the_end_of_the_lease() {
    let mut stage = Stage::set(TENURE);
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.01; done";
    let mut runner = stage.jobs(&[&SHORT[..], &["--once"]].concat(), script);
    let pid = stage.pid("pid");
    stage.stop_cluster();
    let stopped = now();
    stage.ends_before(stopped + LEASE, &[pid]);
    assert_eq!(runner.code(), 79);
}

#[test]
fn without_once_a_runner_that_was_stopped_too_long_campaigns_again_and_starts_the_command_anew() {
    let stage = Stage::set(TENURE);
    let runner = stage.jobs(&SHORT, "echo $$ > pid; echo $TENURE_TERM >> terms; exec sleep 600");
    let pid = stage.pid("pid");
    let stopped = now();
    signal(runner.pid(), Signal::STOP);
    stage.ends_before(stopped + LEASE, &[pid]);
    signal(runner.pid(), Signal::CONT);
    let terms = stage.wait("a second term", || {
        let terms: Vec<u64> = stage.read("terms").lines().filter_map(|line| line.parse().ok()).collect();
        (terms.len() == 2).then_some(terms)
    });
    assert!(terms[0] < terms[1]);
}

#[test]
fn a_runner_that_is_killed_takes_its_command_and_all_descendants_with_it() {
    for cgroup in [&[][..], &["--no-cgroup"]] {
        let stage = Stage::set(TENURE);
        // One in the group, one that forked twice, one in a session of its own.
        let script = "trap '' TERM; sleep 600 & echo $! > one; (sleep 600 & echo $! > two); \
                      setsid sh -c 'trap \"\" TERM; echo $$ > three; while :; do sleep 0.1; done' & \
                      echo $$ > pid; while :; do sleep 0.1; done";
        let mut runner = stage.jobs(&[&SHORT[..], cgroup].concat(), script);
        let family = ["pid", "one", "two", "three"].map(|name| stage.pid(name));
        let sentinel = runner.sentinel();
        let killed = now();
        signal(runner.pid(), Signal::KILL);
        stage.ends_before(killed + LEASE, &family);
        stage.wait("the end of the sentinel", || (!is_alive(sentinel)).then_some(()));
        assert!(!runner.end().success());
    }
}

#[test]
fn a_sentinel_that_is_killed_ends_the_command_and_the_runner_starts_both_anew() {
    let stage = Stage::set(TENURE);
    let script = "(setsid sleep 600 & echo $! > orphan); echo $$ > pid; exec sleep 600";
    let runner = stage.jobs(&SHORT, script);
    let (pid, orphan, sentinel) = (stage.pid("pid"), stage.pid("orphan"), runner.sentinel());
    let killed = now();
    signal(sentinel, Signal::KILL);
    stage.ends_before(killed + LEASE, &[pid, orphan]);
    let new = stage.wait("a new command", || Some(stage.pid("pid")).filter(|new| *new != pid));
    assert!(is_alive(new));
    assert_ne!(runner.sentinel(), sentinel);
}

#[test]
fn a_sentinel_that_is_stopped_is_noticed_and_replaced() {
    let stage = Stage::set(TENURE);
    let runner = stage.jobs(&SHORT, STAY);
    let (pid, sentinel) = (stage.pid("pid"), runner.sentinel());
    signal(sentinel, Signal::STOP);
    stage.wait("the end of the command", || (!is_alive(pid)).then_some(()));
    stage.wait("the end of the sentinel", || (!is_alive(sentinel)).then_some(()));
    stage.wait("a new command", || Some(stage.pid("pid")).filter(|new| *new != pid));
}

#[test]
fn a_lease_that_ends_while_the_sentinel_is_stopped_is_kept_by_the_runner() {
    let mut stage = Stage::set(TENURE);
    let mut runner = stage.jobs(&[&SHORT[..], &["--once"]].concat(), STAY);
    let (pid, sentinel) = (stage.pid("pid"), runner.sentinel());
    signal(sentinel, Signal::STOP);
    stage.stop_cluster();
    let stopped = now();
    stage.ends_before(stopped + LEASE, &[pid]);
    assert_eq!(runner.code(), 79);
}

#[test]
fn a_signal_is_passed_on_and_a_runner_that_is_asked_to_end_exits_with_the_code_of_its_command() {
    let stage = Stage::set(TENURE);
    let script = "trap 'echo hup >> got' HUP; trap 'echo usr1 >> got' USR1; trap 'exit 5' TERM; \
                  echo $$ > pid; while :; do sleep 0.01; done";
    let mut runner = stage.jobs(&[], script);
    stage.pid("pid");
    for (sent, word) in [(Signal::HUP, "hup"), (Signal::USR1, "usr1")] {
        signal(runner.pid(), sent);
        stage.wait(word, || stage.read("got").contains(word).then_some(()));
    }
    signal(runner.pid(), Signal::TERM);
    assert_eq!(runner.code(), 5);
    // It has resigned: another leads at once, not after a lease.
    assert_eq!(stage.jobs(&["--wait=20s"], "exit 4").code(), 4);
}

#[test]
fn a_runner_that_waits_is_ended_by_a_signal() {
    let stage = Stage::set(TENURE);
    let _leader = stage.jobs(&[], STAY);
    stage.pid("pid");
    let mut second = stage.jobs(&[], "true");
    stage.wait("its sentinel", || {
        fs::read_to_string(format!("/proc/{0}/task/{0}/children", second.pid()))
            .ok()
            .filter(|text| !text.is_empty())
    });
    signal(second.pid(), Signal::TERM);
    // Before it has a handler it dies of the signal itself: the same to a shell.
    let status = second.end();
    assert!(status.code() == Some(143) || status.code().is_none(), "{status}");
}

#[test]
fn what_a_command_leaves_behind_is_dead_before_the_runner_exits() {
    let stage = Stage::set(TENURE);
    let script = "(setsid sh -c 'trap \"\" TERM; echo $$ > left; while :; do sleep 0.1; done' &); \
                  while ! test -s left; do sleep 0.01; done; exit 3";
    let mut runner = stage.jobs(&["--lease=3s", "--grace=100ms"], script);
    assert_eq!(runner.code(), 3);
    assert!(!is_alive(stage.pid("left")));
}

#[test]
fn nothing_is_left_of_a_runner_that_has_ended() {
    let stage = Stage::set(TENURE);
    let script = "echo $TENURE_SOCKET > socket; grep -o '^0::.*tenure-run.*' /proc/self/cgroup > cgroup; echo $$ > pid; exec sleep 600";
    let mut runner = stage.jobs(&[], script);
    let (pid, sentinel) = (stage.pid("pid"), runner.sentinel());
    signal(sentinel, Signal::KILL);
    stage.wait("a new command", || Some(stage.pid("pid")).filter(|new| *new != pid));
    signal(runner.pid(), Signal::TERM);
    assert_eq!(runner.code(), 128 + 15);
    assert!(!std::path::Path::new(stage.read("socket").trim()).exists());
    let own = stage.read("cgroup").trim().replace("0::", "");
    let left = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|root| format!("{root}{own}"));
    assert!(own.is_empty() || !left.iter().any(|path| std::path::Path::new(path).exists()), "{left:?}");
}

#[test]
fn the_socket_gives_edicts_and_the_time_left() {
    let stage = Stage::set(TENURE);
    let mut runner = stage
        .jobs(&[], "echo $TENURE_SOCKET > socket.tmp; mv socket.tmp socket; echo $$ > pid; exec sleep 600");
    let pid = stage.pid("pid");
    let socket = stage.read("socket").trim().to_owned();
    let token = |answer: serde_json::Value| answer["token"].as_str().unwrap().parse::<u128>().unwrap();
    let (one, two) = (token(ask(&socket, "edict")), token(ask(&socket, "proclaim hello")));
    assert!(one < two);
    let left = ask(&socket, "remaining");
    let [all, term, kill] =
        ["remaining_ms", "term_in_ms", "kill_in_ms"].map(|key| left[key].as_u64().unwrap());
    assert!(term < kill && kill < all && all <= 3000, "{left}");
    let status = ask(&socket, "status");
    assert_eq!((status["group"].as_str(), status["leads"].as_bool()), (Some("jobs"), Some(true)));
    assert_eq!(ask(&socket, "ecidt")["error"]["code"], "unknown");
    assert_eq!(ask(&socket, &format!("proclaim {}", "x".repeat(600)))["error"]["code"], "too_long");
    assert!(is_alive(pid));
    assert_eq!(ask(&socket, "resign")["ok"], true);
    stage.wait("the end of the command", || (!is_alive(pid)).then_some(()));
    // It is asked to end while it gives the leadership back, or just after.
    signal(runner.pid(), Signal::TERM);
    assert_eq!(runner.code(), 128 + 15);
}

#[test]
fn an_operator_who_asks_for_it_is_answered_when_the_command_is_dead() {
    let stage = Stage::set(TENURE);
    let _first = stage.jobs(&["--name=one"], "echo $$ > pid; exec sleep 600");
    let pid = stage.pid("pid");
    stage.ask(OperatorRequest::Proclaim { body: b"hello".to_vec() }).expect("it proclaims");
    assert!(is_alive(pid));
    let _second = stage.jobs(&["--name=two"], "echo $$ > second; exec sleep 600");
    let to = NodeName::new("two").unwrap();
    // The second may still be on its way to the campaign: then it does not stand by yet.
    stage.wait("the hand-over", || stage.ask(OperatorRequest::Transfer { to: to.clone() }).ok());
    assert!(!is_alive(pid), "it was dead before the answer");
    let second = stage.pid("second");
    stage.ask(OperatorRequest::Resign).expect("it resigns");
    assert!(!is_alive(second));
}

#[test]
fn hooks_run_before_the_command_starts_and_after_it_is_dead() {
    let stage = Stage::set(TENURE);
    let hooks = [
        "--on-elected",
        "echo elected $TENURE_GROUP >> story",
        "--on-lost",
        "kill -0 $(cat pid) || echo lost $TENURE_GROUP >> story",
    ];
    let mut runner = stage.jobs(&hooks, "echo $$ > pid; echo runs >> story");
    assert_eq!(runner.code(), 0);
    assert_eq!(stage.read("story"), "elected jobs\nruns\nlost jobs\n");
}

#[test]
fn a_hook_that_fails_or_takes_too_long_makes_the_runner_stand_down() {
    let stage = Stage::set(TENURE);
    assert_eq!(stage.jobs(&["--once", "--on-elected", "exit 1"], "echo ran > ran").code(), 79);
    let slow = ["--once", "--on-elected", "sleep 600", "--hook-timeout=100ms"];
    assert_eq!(stage.jobs(&slow, "echo ran > ran").code(), 79);
    assert_eq!(stage.read("ran"), "");
}

#[test]
fn a_command_that_is_not_healthy_is_stopped_and_another_leads() {
    let stage = Stage::set(TENURE);
    let health = ["--health", "test -e well", "--health-every=50ms"];
    fs::write(stage.path("well"), "").unwrap();
    let _first = stage.jobs(&health, STAY);
    let pid = stage.pid("pid");
    let mut second = stage.jobs(&[], "exit 9");
    fs::remove_file(stage.path("well")).unwrap();
    stage.wait("the end of the command", || (!is_alive(pid)).then_some(()));
    assert_eq!(second.code(), 9);
}

#[test]
fn a_command_that_ends_is_started_again_in_the_same_term_if_that_is_asked_for() {
    let stage = Stage::set(TENURE);
    let mut runner = stage.jobs(&["--respawn"], "echo $TENURE_TERM >> terms; exit 1");
    let terms = stage.wait("two starts", || {
        let terms: Vec<String> = stage.read("terms").lines().map(str::to_owned).collect();
        (terms.len() >= 2).then_some(terms)
    });
    assert_eq!(terms[0], terms[1]);
    signal(runner.pid(), Signal::TERM);
    runner.end();
}

#[test]
fn a_command_that_cannot_be_killed_is_told_and_nothing_is_given_back() {
    // A process in a frozen cgroup of version 1 takes no signal, as one that waits for a dead disk.
    let folder =
        std::path::PathBuf::from(format!("/sys/fs/cgroup/freezer/tenure-test-{}", std::process::id()));
    if fs::create_dir(&folder).is_err() {
        eprintln!("not checked: this machine has no freezer of cgroup version 1");
        return;
    }
    let mut stage = Stage::set(TENURE);
    let mut runner = stage.jobs(&[&SHORT[..], &["--once"]].concat(), STAY);
    let pid = stage.pid("pid");
    fs::write(folder.join("cgroup.procs"), pid.to_string()).unwrap();
    fs::write(folder.join("freezer.state"), "FROZEN").unwrap();
    stage.stop_cluster();
    let code = runner.code();
    let alive = is_alive(pid);
    fs::write(folder.join("freezer.state"), "THAWED").unwrap();
    stage.wait("the end of the command", || (!is_alive(pid)).then_some(()));
    fs::remove_dir(&folder).unwrap();
    assert_eq!((code, alive), (80, true));
}

/// The memory of a process that no other one shares, in kB; the part in swap included.
fn own_memory(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let of = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{text}"));
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    of("Private_Dirty:") + of("SwapPss:")
}

#[test]
fn a_runner_that_leads_and_its_sentinel_need_less_than_six_megabytes_of_their_own() {
    let stage = Stage::set(TENURE);
    let runner = stage.jobs(&[], STAY);
    stage.pid("pid");
    // Whatever renewals need is there.
    stage.wait("some renewals", || (stage.renewals() >= 3).then_some(()));
    let (own, sentinel) = (own_memory(runner.pid()), own_memory(runner.sentinel()));
    assert!(own + sentinel < 6 * 1024, "{own} kB and {sentinel} kB");
}

/// The priority of a process: the nineteenth field of its state.
fn niceness(pid: i32) -> i32 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = text.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(16).unwrap().parse().unwrap()
}

/// Whether this process has `CAP_SYS_NICE`, and so its children.
fn may_raise_priorities() -> bool {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let set = text.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(set.trim(), 16).unwrap() & (1 << 23) != 0
}

#[test]
fn a_sentinel_hurries_where_it_may_and_its_command_keeps_the_priority_of_the_runner() {
    let stage = Stage::set(TENURE);
    let runner = stage.jobs(&[], STAY);
    let command = stage.pid("pid");
    let wanted = if may_raise_priorities() { -20 } else { niceness(runner.pid()) };
    assert_eq!(niceness(runner.sentinel()), wanted);
    assert_eq!(niceness(command), niceness(runner.pid()));
}
