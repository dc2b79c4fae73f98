//! The file fence among real processes: killed in the middle of anything, and two at once.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tenure::fence::{FileError, FileFence, Rule, Term, Token};
use tenure_testkit::chance::Chance;

/// In a process that a test starts: the path of the fence to admit tokens at.
const CHILD: &str = "TENURE_TEST_FENCE_FILE";

/// Not a test of its own, but the program that the tests below start: it admits one edict after the
/// other, from the next term on, and says each number once it is admitted.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let mut fence = match FileFence::open(path, "prices", Rule::InOrder) {
        Ok(fence) => fence,
        Err(error) => return println!("\nrefused: {error}"),
    };
    let term = fence.newest().map_or(0, |newest| newest.token.term().0) + 1;
    println!("\nopened");
    for number in 1..=100_000 {
        fence.admit(Token::new(Term(term), number), "child").unwrap();
        println!("admitted {number}");
    }
}

fn start_child(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills a child after it has admitted some edicts, and returns the number of the last one that it
/// spoke of.
fn kill_after(child: &mut Child, edicts: u64) -> u64 {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "opened"));
    let mut said = 0;
    let mut number = |line: String| {
        if let Some(number) = line.strip_prefix("admitted ") {
            said = number.parse().unwrap();
        }
        said
    };
    while number(lines.next().unwrap()) < edicts {}
    child.kill().unwrap(); // SIGKILL, wherever it is.
    child.wait().unwrap();
    for line in lines {
        number(line);
    }
    said
}

#[test]
fn forty_kills_forget_nothing_that_was_admitted() {
    let seed = 4;
    println!("seed {seed}");
    let mut random = Chance::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prices.fence");
    drop(FileFence::create(&path, "prices", Rule::InOrder).unwrap());
    let mut leftovers = 0;
    for kill in 1..=40 {
        let mut child = start_child(&path);
        let said = kill_after(&mut child, 1 + random.below(12));
        leftovers += u32::from(folder.path().join("prices.fence.new").exists());
        let mut fence = FileFence::open(&path, "prices", Rule::InOrder).unwrap();
        let newest = fence.newest().unwrap().token;
        assert_eq!(newest.term(), Term(kill), "each child leads the next term");
        assert!(newest.number() >= said, "kill {kill}: {said} was admitted, {newest:?} is known");
        assert!(newest.number() <= said + 1, "kill {kill}: {newest:?} was not even asked for");
        let stale = Token::new(Term(kill), said.saturating_sub(1));
        assert!(fence.admit(stale, "child").is_err());
    }
    println!("{leftovers} of 40 kills left an unfinished file");
}

#[test]
fn a_fence_that_another_process_uses_is_refused_until_it_is_dead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prices.fence");
    let fence = FileFence::create(&path, "prices", Rule::InOrder).unwrap();
    let mut refused = start_child(&path);
    let mut said = String::new();
    refused.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    refused.wait().unwrap();
    assert!(said.contains("refused: the fence") && said.contains("is in use"), "{said}");
    drop(fence);

    let mut child = start_child(&path);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "admitted 3"));
    let while_it_runs = FileFence::open(&path, "prices", Rule::InOrder);
    assert!(matches!(while_it_runs, Err(FileError::InUse { .. })), "{while_it_runs:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    FileFence::open(&path, "prices", Rule::InOrder).unwrap();
}
