//! README's transcript is what the commands really say.
//!
//! Times, numbers of processes, terms and ports differ from run to run; all else must be the same.
//! After a change of what is said: `REWRITE_README=1 cargo test -p tenure-cli --test readme`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use tenure_testkit::binary::Binary;
use tenure_testkit::daemons::{Daemon, forget};
use tenure_testkit::ports::free_range;
use tenure_testkit::waiting::look_for;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

const BEGIN: &str = "<!-- transcript: written by crates/tenure-cli/tests/readme.rs -->\n```console\n";
const END: &str = "```\n<!-- end of transcript -->\n";

/// In the lines of a runner that waits. Which of them come while a leader is lost depends on when
/// it looks.
const WAITS: &str = ": waits: ";

/// Where ports begin when nobody says otherwise.
const PORT: u16 = 7400;

fn readme() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")
}

/// A command as one would type it, where `tenure` is found by its name.
fn typed(folder: &Path, words: &[&str]) -> Command {
    let mut command = TENURE.command_in(folder);
    let place = Path::new(TENURE.0).parent().unwrap().to_owned();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([place].into_iter().chain(std::env::split_paths(&rest))).unwrap();
    command.env("PATH", path).args(words);
    command
}

/// Makes equal what differs from run to run: digits; names of processes, which are numbered as they
/// appear; the width of gaps.
fn normal(text: &str) -> String {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut words = Vec::new();
        for word in line.split_whitespace() {
            let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            let mut parts = core.rsplitn(3, '-');
            let (hex, pid) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let is_name = hex.len() == 8
                && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !pid.is_empty()
                && pid.bytes().all(|byte| byte.is_ascii_digit());
            let word = if is_name {
                let next = names.len();
                let number = *names.entry(core.to_owned()).or_insert(next);
                let letter = char::from(b'A' + u8::try_from(number).unwrap());
                word.replace(core, &format!("PROCESS-{letter}"))
            } else {
                word.to_owned()
            };
            words.push(without_digits(&word));
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

fn without_digits(word: &str) -> String {
    let mut text = String::new();
    for c in word.chars() {
        match c.is_ascii_digit() {
            true if text.ends_with('0') => {}
            true => text.push('0'),
            false => text.push(c),
        }
    }
    text
}

/// The runner that leads, when it does: what it has said by then. Whether the command or its runner
/// speaks first is promised to nobody.
fn when_it_leads(runner: &Daemon) -> String {
    runner.line("leads in term");
    runner.line("the command runs as process");
    look_for("the command", || runner.text().lines().any(|line| line == "leads").then_some(()));
    let text = runner.text();
    let said = text.split_inclusive('\n').filter(|line| !line.contains(WAITS));
    let (own, commands): (Vec<&str>, Vec<&str>) = said.partition(|line| line.starts_with("tenure: "));
    [own, commands].concat().concat()
}

fn transcript(folder: &Path) -> String {
    let base = free_range(6);
    let run = ["run", "-g", "hello", "--", "sh", "-c", "echo leads; sleep 600"];
    let shown = "tenure run -g hello -- sh -c 'echo leads; sleep 600'";
    let up = Daemon::start(typed(folder, &["up", "--port", &base.to_string()]), &folder.join("up"));
    up.line("Ctrl-C stops it");
    let beginning = up.text();
    let first = Daemon::start(typed(folder, &run), &folder.join("first"));
    let first_said = when_it_leads(&first);
    let second = Daemon::start(typed(folder, &run), &folder.join("second"));
    up.lines(" leads, term ", 1);
    let waits = second.line(WAITS);
    let output = typed(folder, &["leader", "hello"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let leader = String::from_utf8(output.stdout).unwrap();
    let pid = first.pid();
    first.signal(Signal::KILL);
    let second_said = when_it_leads(&second);
    up.lines(" leads, term ", 2);
    let text = up.text();
    // Whether it is seen that nobody leads in between depends on when one looks.
    let changes: String =
        text[beginning.len()..].split_inclusive('\n').filter(|line| !line.contains("nobody")).collect();
    second.signal(Signal::TERM);
    second.end();
    up.signal(Signal::INT);
    let (status, _) = up.end();
    assert_eq!(status.code(), Some(0));
    let text = format!(
        "$ tenure up\n{beginning}\
         $ {shown}      # in a second terminal\n{first_said}\
         $ {shown}      # in a third\n{waits}\n\
         $ tenure leader hello\n{leader}\
         $ kill -9 {pid}      # the runner in the second terminal; soon, in the third:\n{second_said}\
         # and in the first, where the cluster runs:\n{changes}",
        pid = pid.as_raw_nonzero()
    );
    // As wide as it was: ports of tests have a digit more.
    let link = (format!(":{}/#", base + 1), format!(":{}/#", PORT + 1));
    text.replace(&link.0, &link.1).replace("  the same, in a browser", "   the same, in a browser")
}

#[test]
fn the_transcript_is_what_the_commands_say() {
    let folder = tempfile::tempdir().unwrap();
    let told = transcript(folder.path());
    forget(&folder.path().join(".tenure/tenure.toml"));
    let text = fs::read_to_string(readme()).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("README has a place for it");
    let (block, after) = rest.split_once(END).expect("it has an end");
    if std::env::var_os("REWRITE_README").is_some() {
        fs::write(readme(), format!("{before}{BEGIN}{told}{END}{after}")).unwrap();
    } else {
        assert_eq!(normal(block), normal(&told), "left is README; REWRITE_README=1 rewrites it");
    }
}

#[test]
fn only_what_differs_from_run_to_run_is_passed_over() {
    let one = "  1.219 s  hello: vm-12-d6776010 leads, term 90\nhello: vm-13-aaaaaaaa leads, term 91";
    let other = " 11.2 s  hello: host-2-00000000 leads, term 7\nhello: host-9-11111111 leads, term 8";
    assert_eq!(normal(one), normal(other));
    assert_ne!(normal(one), normal(&other.replace("host-9-11111111", "host-2-00000000")));
    assert_ne!(normal(one), normal(&other.replace("leads", "led")));
}
