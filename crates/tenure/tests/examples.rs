//! The examples run, and print what they promise.

use std::path::PathBuf;
use std::process::Command;

/// Cargo builds examples beside the tests: target/PROFILE/examples, where this test is in target/PROFILE/deps.
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
