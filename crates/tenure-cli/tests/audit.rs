//! `tenure lab audit` as a user runs it: the real binary on real files.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `tenure lab audit` on the files of some folders of hand-written traces.
fn audit(folders: &[&str], more: &[&str]) -> Output {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tenure-lab/tests/audit");
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        files.extend(entries.map(|entry| PathBuf::from(folder).join(entry.unwrap().file_name())));
    }
    files.sort();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(["lab", "audit"]).args(files).args(more).current_dir(root).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn clean_traces_hold_and_the_verdict_comes_first() {
    let output = audit(&["clean"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert_eq!(said.lines().next(), Some("5 files, 3 nodes in 4 lives: holds"));
    assert!(
        said.contains("NOT JUDGED") && said.contains("a trace does not say when faults have healed"),
        "{said}"
    );
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_broken_property_is_named_with_its_files_and_lines() {
    let output = audit(&["two-leaders"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    for part in [
        "2 files, 2 nodes in 2 lives: broken",
        "broken  leader-uniqueness, 2005ms after the first line",
        "two-leaders/beta.trace:5: beta leads g7 in term 2",
        "two-leaders/alpha.trace:5: alpha leads g7 in term 1",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn the_json_has_the_keys_of_the_contract() {
    let clean = json(&audit(&["clean"], &["-o", "json"]));
    assert_eq!(clean["verdict"], "holds");
    assert_eq!(clean["violations"], Value::Array(Vec::new()));
    for (key, count) in
        [("files", 5), ("nodes", 3), ("lives", 4), ("groups", 1), ("events", 32), ("terms", 3), ("edicts", 4)]
    {
        assert_eq!(clean["counts"][key], count, "{key}");
    }
    for (key, count) in [("admitted", 3), ("refused", 1), ("lines-cut", 1), ("lines-unknown", 0)] {
        assert_eq!(clean["counts"][key], count, "{key}");
    }
    assert_eq!(clean["nodes"][0]["name"], "alpha");
    assert!(clean["not_judged"][0]["why"].is_string() && clean["not_judged"][0]["partly"].is_boolean());
    assert_eq!(clean["properties"][0]["name"], "leader-uniqueness");

    let broken = audit(&["admission-out-of-order"], &["-o", "json"]);
    assert_eq!(broken.status.code(), Some(1));
    let violation = &json(&broken)["violations"][0];
    assert_eq!(violation["property"], "admissions-ordered");
    assert_eq!(violation["lines"][0]["file"], "admission-out-of-order/ledger.trace");
    assert_eq!(violation["lines"][0]["line"], 4);
}

#[test]
fn what_cannot_be_judged_is_an_error_in_one_line() {
    for (folders, more, reason) in [
        (&["foreign-cluster"][..], &[][..], "audit one cluster at a time"),
        (&["clean", "clean"], &[], "name each file once"),
        (&["cut-off"], &["nowhere.trace"], "nowhere.trace: there is no such file"),
        (&["cut-off"], &["../audit.rs"], "a trace of a node begins with 'tenure-trace 1'"),
        (&[], &[], "<FILE>"),
        (&["term-twice-without-common-clock"], &["--svg", "never.svg"], "no life has a common clock"),
    ] {
        let output = audit(folders, more);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(reason) && said.lines().count() == 1, "{reason}: {said}");
        assert_eq!(text(&output.stdout), "");
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tenure-lab/tests/audit");
    assert!(!root.join("never.svg").exists(), "nothing was drawn");
}

#[test]
fn what_there_is_one_of_is_told_as_one() {
    let said = text(&audit(&["local"], &[]).stdout);
    assert!(said.contains("2 elections in 1 group\n"), "{said}");
    let said = text(&audit(&[], &["local/alpha.trace"]).stdout);
    assert!(said.contains("1 election in 1 group\n"), "{said}");
}

#[test]
fn help_has_examples_and_exit_codes() {
    let said = text(&audit(&[], &["--help"]).stdout);
    assert!(said.contains("Examples:") && said.contains("tenure lab audit traces/*.trace -o json"), "{said}");
    assert!(said.contains("Exit codes: 0"), "{said}");
}
