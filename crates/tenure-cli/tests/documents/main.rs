//! Every command block of the documents runs.
//!
//! `docs/README.md` ("How blocks are marked") says how. One test for each page; a failure names the
//! page, the line of the block, and what the page said until then.

mod page;
mod shell;

use page::{Mark, Page};

/// The blocks that are marked as not run. It may only fall.
const NOT_RUN: usize = 16;

/// The page whose commands and their output are checked by `tests/rings.rs`.
const TUTORIAL: &str = "docs/laboratory/tutorial.md";

/// Runs a page, which must not fail.
fn run(name: &str) {
    shell::run(&Page::read(name)).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn start() {
    run("docs/start.md");
}

#[test]
fn clocks() {
    run("docs/explanation/clocks.md");
}

#[test]
fn eventual() {
    run("docs/explanation/eventual.md");
}

#[test]
fn backup() {
    run("docs/guides/backup.md");
}

#[test]
fn deploy() {
    run("docs/guides/deploy.md");
}

#[test]
fn fence_postgresql() {
    run("docs/guides/fence-postgresql.md");
}

#[test]
fn fence() {
    run("docs/guides/fence.md");
}

#[test]
fn keys() {
    run("docs/guides/keys.md");
}

#[test]
fn members() {
    run("docs/guides/members.md");
}

#[test]
fn monitor() {
    run("docs/guides/monitor.md");
}

#[test]
fn run_a_job() {
    run("docs/guides/run.md");
}

#[test]
fn test_your_code() {
    run("docs/guides/test.md");
}

#[test]
fn laboratory() {
    run("docs/laboratory/README.md");
}

#[test]
fn commands() {
    run("docs/reference/commands.md");
}

#[test]
fn http() {
    run("docs/reference/http.md");
}

#[test]
fn plays() {
    run("docs/reference/plays.md");
}

#[test]
fn every_page_with_commands_has_a_test() {
    let tests = include_str!("main.rs");
    for page in Page::all() {
        let has_commands = page.blocks.len() > page.count(Mark::NotRun);
        let has_test = page.name == TUTORIAL || tests.contains(&format!("    run(\"{}\");", page.name));
        assert!(has_test || !has_commands, "{} has commands and no test in this file", page.name);
    }
}

#[test]
fn few_blocks_are_not_run() {
    let count: usize = Page::all().iter().map(|page| page.count(Mark::NotRun)).sum();
    assert_eq!(count, NOT_RUN, "more: mark none, find a way to run it; fewer: write the new number here");
}

#[test]
fn a_page_is_taken_apart_by_its_marks() {
    let text = "<!-- needs: root, curl -->\n<!-- background -->\n```sh\nup\n```\n\n```text\nno\n```\n\
                * item\n  ```sh\n  a \\\n      b\n  ```\n<!-- not run: why -->\n```sh\nc\n```\n";
    let page = Page::parse("p.md", text);
    assert_eq!(page.needs, ["root", "curl"]);
    let blocks: Vec<_> = page.blocks.iter().map(|block| (block.line, block.mark)).collect();
    assert_eq!(blocks, [(4, Mark::Background), (12, Mark::Run), (17, Mark::NotRun)]);
    assert_eq!(page.blocks[1].commands, ["a \\", "    b"]);
}

#[test]
fn a_mark_that_changes_nothing_is_refused() {
    let wrong = [
        "<!-- backgruond -->\n```sh\nup\n```\n",
        "<!-- background -->\n\n```sh\nup\n```\n",
        "<!-- background -->\n```text\nup\n```\n",
        "<!-- not run -->\n```sh\nup\n```\n",
        "```bash\nup\n```\n",
    ];
    for text in wrong {
        let parsed = std::panic::catch_unwind(|| Page::parse("p.md", text));
        assert!(parsed.is_err(), "{text}");
    }
}

/// Runs a page of these lines, with a block in the background.
fn run_lines(background: &str, lines: &str) -> Result<(), String> {
    let text = format!("<!-- background -->\n```sh\n{background}\n```\n\n```sh\n{lines}\n```\n");
    shell::run(&Page::parse("p.md", &text))
}

#[test]
fn a_block_that_fails_is_named_with_what_was_said() {
    assert_eq!(run_lines("sleep 600", "true\nsh -c 'exit 3' # exit code 3"), Ok(()));
    let lines = "echo before\nuntil grep -s up ../background-3.log; do sleep 0.1; done\nfalse\necho after";
    // Where namespaces cannot be made, nothing runs, so nothing fails.
    let Err(failure) = run_lines("echo up; sleep 600", lines) else { return };
    assert!(failure.starts_with("the block at p.md:7 failed: exit status: 1\n"), "{failure}");
    assert!(failure.contains("before\nup\n--- p.md:3\nup\n") && !failure.contains("after"), "{failure}");
    let failure = run_lines("sleep 600", "true # exit code 1").unwrap_err();
    assert!(failure.contains("exit code 0, not 1"), "{failure}");
    let failure = run_lines("true", "while kill -0 $!; do sleep 0.1; done").unwrap_err();
    assert!(failure.contains("the block in the background has ended"), "{failure}");
}

#[test]
fn no_process_outlives_its_page() {
    let mark = format!("600.{}", std::process::id());
    let sleeper = format!("setsid sleep {mark}");
    let lines = format!("{sleeper} &\nkill -0 $!");
    assert_eq!(run_lines(&sleeper, &lines), Ok(()));
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let left = commands.filter(|words| String::from_utf8_lossy(words).contains(&mark)).count();
    assert_eq!(left, 0, "processes of the page still run");
}
