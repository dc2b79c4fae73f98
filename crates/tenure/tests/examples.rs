//! The examples run, and print what they promise. Two more are run by tests of their own:
//! `fenced_writer` by `postgres_leader`, and `scheduler`, which is also here, by `torture`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tenure::{Config, Token};
use tenure_testkit::member_files::{MemberFiles, NAMES, quick};
use tenure_testkit::programs::{Process, Said, example};

/// Cargo builds examples beside the tests: target/PROFILE/examples, where this test is in
/// target/PROFILE/deps.
fn run(example: &str) -> String {
    let test = std::env::current_exe().expect("this test is a program");
    let folder = test.parent().and_then(|deps| deps.parent()).expect("it is in target/PROFILE/deps");
    let program: PathBuf = folder.join("examples").join(example);
    let output =
        Command::new(&program).output().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{example}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn an_external_candidate_leads_its_own_groups_and_no_others() {
    let text = run("candidate");
    assert!(text.contains("3 jobs done, resigned") && text.contains("app1 may not lead app2/jobs"), "{text}");
}

#[test]
fn an_observer_hears_what_a_leader_proclaims() {
    let text = run("proclaim");
    assert!(text.contains("a leads in term") && text.contains(": 10.0.0.1:5432"), "{text}");
    assert!(text.contains("nobody leads any more"), "{text}");
}

/// The next line that is wanted.
fn until(sayings: &Receiver<Said>, wanted: impl Fn(&Said) -> bool) -> Said {
    loop {
        let said = sayings.recv_timeout(Duration::from_secs(60)).expect("somebody says something");
        if wanted(&said) {
            return said;
        }
    }
}

#[test]
fn three_schedulers_take_turns_before_a_log_that_refuses_what_comes_late() {
    let (folder, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
    let settings = quick("1s", 100_000, memory.path());
    let files = MemberFiles::found(folder.path(), |_| settings.clone());
    let (sender, sayings) = channel();
    let start = |who, arguments: [&std::ffi::OsStr; 2]| {
        let mut command = Command::new(example("scheduler"));
        command.args(arguments);
        Process::start(command, who, 1, sender.clone())
    };
    let _log = start(3, ["log".as_ref(), folder.path().as_ref()]);
    until(&sayings, |said| said.word() == "open");
    let mut copies: Vec<Process> =
        (0..3).map(|who| start(who, ["run".as_ref(), files.file(NAMES[who]).as_ref()])).collect();
    let first = until(&sayings, |said| said.word() == "wrote");
    copies[first.who].tell("resign");
    let next = |said: &Said| said.word() == "wrote" && said.number("term") > first.number("term");
    until(&sayings, next);
    for copy in &mut copies {
        assert!(copy.finish(), "it ends in good order when its input ends");
    }

    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let tokens: Vec<Token> =
        log.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(tokens.is_sorted_by(|one, two| one < two), "{log}");
    let stream = UnixStream::connect(folder.path().join("log.sock")).unwrap();
    writeln!(&stream, "{} late job", tokens[0]).unwrap();
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).unwrap();
    assert!(answer.starts_with("refused "), "{answer}");
}

#[test]
fn the_examples_found_clusters_that_can_be_started() {
    for program in ["scheduler", "fenced_writer"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(example(program));
        assert!(command.arg("found").arg(folder.path()).status().unwrap().success());
        for name in NAMES {
            let config = Config::from_path(folder.path().join(name).with_extension("toml")).unwrap();
            assert_eq!((config.name.as_str(), config.members.len()), (name, 3));
            assert!(config.store.unwrap().is_dir());
        }
        assert!(!command.status().unwrap().success(), "what stores promised is not forgotten");
    }
}
