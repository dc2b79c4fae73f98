//! `tenure fence list`: the tokens that fences in files have admitted.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tenure::Term;
use tenure::fence::{FileFence, Rule, Token};

fn list(words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(["fence", "list"]).args(words).current_dir(folder).env_remove("TENURE_CONFIG");
    command.output().unwrap()
}

/// Three fences; `prices` stays in use.
fn fences() -> (tempfile::TempDir, FileFence) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    FileFence::create(at("new"), "nothing yet", Rule::ByTerm).unwrap();
    let mut prices = FileFence::create(at("prices"), "prices", Rule::InOrder).unwrap();
    prices.admit(Token::new(Term(1 << 40), 7), "beta").unwrap();
    let mut jobs = FileFence::create(at("jobs"), "jobs", Rule::ByTerm).unwrap();
    jobs.admit(Token::new(Term(90), 1), "alpha").unwrap();
    (folder, prices)
}

#[test]
fn the_fences_that_saw_a_higher_term_are_listed_also_while_they_are_in_use() {
    let (folder, _in_use) = fences();
    let output = list(&["--above", "1000", "-o", "json", "new", "prices", "jobs"], folder.path());
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let prices = json!({
        "file": "prices", "resource": "prices", "rule": "in_order", "term": 1_u64 << 40, "number": 7, "writer": "beta",
    });
    assert_eq!(said, json!({ "fences": [prices] }));
}

#[test]
fn without_a_bound_all_of_them_are_listed_for_people() {
    let (folder, _in_use) = fences();
    let output = list(&["new", "prices", "jobs"], folder.path());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("nothing yet") && said.contains("1099511627776") && said.contains("90"), "{said}");
}

#[test]
fn a_file_that_is_no_fence_is_exit_code_2_and_nothing_is_listed() {
    let (folder, _in_use) = fences();
    std::fs::write(folder.path().join("notes"), "some text").unwrap();
    for wrong in ["notes", "missing"] {
        let output = list(&["prices", wrong], folder.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
        assert!(said.contains(wrong), "{said}");
    }
}
