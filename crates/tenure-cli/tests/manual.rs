//! Completions and manual pages, as a package ships them.

use std::fs;
use std::process::{Command, Output, Stdio};

fn tenure(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure")).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The commands that the help of `words` lists.
fn commands(words: &[&str]) -> Vec<String> {
    let help = text(&tenure(&[words, &["--help"]].concat()).stdout);
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let entry = |line: &str| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')).map(str::to_owned);
    let entries = lines.take_while(|line| !line.is_empty()).filter_map(entry);
    entries.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// Every command and subcommand, `tenure` itself first.
fn all_commands() -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut next = 0;
    while let Some(words) = found.get(next).cloned() {
        let borrowed: Vec<&str> = words.iter().map(String::as_str).collect();
        found.extend(commands(&borrowed).into_iter().map(|command| [words.clone(), vec![command]].concat()));
        next += 1;
    }
    found
}

#[test]
fn every_command_has_a_page_with_its_examples_and_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let output = tenure(&["man", "--out", folder.path().join("man1").to_str().unwrap(), "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = all_commands();
    assert!(all.len() > 20, "{all:?}");
    for words in &all {
        let name = [&["tenure".to_owned()], words.as_slice()].concat().join("-") + ".1";
        let page = fs::read_to_string(folder.path().join("man1").join(&name))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(".SH NAME") && page.contains(".SH OPTIONS"), "{name}");
        let help = text(
            &tenure(&[&words.iter().map(String::as_str).collect::<Vec<_>>()[..], &["--help"]].concat())
                .stdout,
        );
        assert_eq!(help.contains("Examples:"), page.contains(".SH EXAMPLES"), "{name}");
        assert_eq!(help.contains("Exit codes:"), page.contains(".SH \"EXIT STATUS\""), "{name}");
    }
    assert_eq!(listed["pages"].as_array().unwrap().len(), all.len(), "no page without a command");
}

#[test]
fn a_folder_that_cannot_be_written_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let output = tenure(&["man", "--out", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("name another folder"), "{}", text(&output.stderr));
}

#[test]
fn every_shell_gets_completions_that_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = tenure(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = text(&output.stdout);
        for word in ["doctor", "transfer", "longest-lease"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    assert_eq!(tenure(&["completions", "dos"]).status.code(), Some(2));
}

#[test]
fn bash_understands_its_completions_and_completes() {
    let script = tenure(&["completions", "bash"]).stdout;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenure");
    fs::write(&path, &script).unwrap();
    let bash = |words: &[&str]| Command::new("bash").args(words).stdin(Stdio::null()).output().unwrap();
    let checked = bash(&["-n", path.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let ask = format!(
        "source {}; COMP_WORDS=(tenure doc); COMP_CWORD=1; _tenure tenure doc tenure; echo \"${{COMPREPLY[@]}}\"",
        path.display()
    );
    assert_eq!(text(&bash(&["-c", &ask]).stdout).trim(), "doctor");
}
