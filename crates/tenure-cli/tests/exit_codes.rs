//! Every command's help has examples and exit codes, `docs/reference/exit-codes.md` has the same
//! codes, and every code has a test.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::{Pid, Signal, kill_process};
use tenure_testkit::binary::Binary;
use tenure_testkit::http_cluster::{HttpCluster, TOKEN};
use tenure_testkit::up::Up;
use tenure_testkit::waiting::look_for;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

fn tenure(words: &[String]) -> Output {
    let mut command = Command::new(TENURE.0);
    command.args(words).env_remove("TENURE_CONFIG").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn with(words: &[String], more: &str) -> Vec<String> {
    [words, &[more.to_owned()]].concat()
}

/// A command by its words, without `tenure`; its help.
struct Page {
    words: Vec<String>,
    help: String,
}

impl Page {
    fn name(&self) -> String {
        if self.words.is_empty() { "tenure".to_owned() } else { self.words.join(" ") }
    }

    fn commands(&self) -> Vec<String> {
        let lines = self.help.lines().skip_while(|line| *line != "Commands:").skip(1);
        let entry = |line: &str| {
            line.strip_prefix("  ").filter(|line| !line.starts_with(' ')).map(|line| line.to_owned())
        };
        let entries = lines.take_while(|line| !line.is_empty()).filter_map(entry);
        entries.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    }

    /// The codes of its paragraph on exit codes.
    fn codes(&self) -> BTreeSet<String> {
        let lines = self.help.lines().skip_while(|line| !line.starts_with("Exit codes:"));
        let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        let words = paragraph.join(" ");
        let words = words.split_whitespace().map(|word| word.trim_matches([',', ';', ':', '.', '(', ')']));
        let is_code = |word: &&str| *word == "128+N" || word.parse::<u8>().is_ok();
        words.filter(is_code).map(str::to_owned).collect()
    }
}

/// The help of every command and subcommand, of `tenure` itself first.
fn pages() -> Vec<Page> {
    let page = |words: Vec<String>| {
        let output = tenure(&with(&words, "--help"));
        Page { help: text(&output.stdout), words }
    };
    let mut found = vec![page(Vec::new())];
    let mut next = 0;
    while next < found.len() {
        let words = found[next].words.clone();
        let inner: Vec<Page> = found[next].commands().iter().map(|name| page(with(&words, name))).collect();
        found.extend(inner);
        next += 1;
    }
    assert!(found.len() > 30, "{:?}", found.iter().map(Page::name).collect::<Vec<_>>());
    found
}

/// A row of `docs/reference/exit-codes.md`.
struct Row {
    code: String,
    commands: Vec<String>,
    tests: Vec<String>,
}

impl Row {
    fn covers(&self, command: &str) -> bool {
        self.commands.iter().any(|named| match named.strip_suffix(" *") {
            Some(family) => {
                command == family || command.strip_prefix(family).is_some_and(|rest| rest.starts_with(' '))
            }
            None => named == command,
        })
    }
}

fn rows() -> Vec<Row> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = fs::read_to_string(root.join("docs/reference/exit-codes.md")).unwrap();
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [code, commands, _, tests] = cells[..] else { panic!("{line}") };
        Row { code: code.to_owned(), commands: quoted(commands), tests: quoted(tests) }
    };
    let lines = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| code"));
    lines.map(row).collect()
}

#[test]
fn every_page_of_help_has_examples_and_exit_codes() {
    for page in pages() {
        assert!(page.help.contains("\nExamples:\n"), "tenure {}: no examples", page.name());
        let codes = page.codes();
        assert!(codes.contains("2"), "tenure {}: {codes:?}", page.name());
        assert!(codes.contains("0") || page.name() == "run", "tenure {}: {codes:?}", page.name());
    }
}

#[test]
fn the_table_of_exit_codes_has_what_the_pages_of_help_have() {
    let (pages, rows) = (pages(), rows());
    for page in &pages {
        for code in page.codes() {
            let listed = rows.iter().any(|row| row.code == code && row.covers(&page.name()));
            assert!(listed, "docs/reference/exit-codes.md lacks {code} of `{}`", page.name());
        }
    }
    for row in &rows {
        for named in &row.commands {
            let family = named.strip_suffix(" *");
            let one = Row { code: String::new(), commands: vec![named.clone()], tests: Vec::new() };
            let mut told = pages.iter().filter(|page| one.covers(&page.name())).map(|page| page.codes());
            let is_told = told.any(|codes| codes.contains(&row.code));
            assert!(is_told, "no help of `{}` tells of {}", family.unwrap_or(named), row.code);
        }
    }
}

#[test]
fn every_exit_code_of_the_table_has_a_test_that_names_it() {
    for row in rows() {
        assert!(!row.tests.is_empty(), "{} of {:?} has no test", row.code, row.commands);
        for test in &row.tests {
            let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("{test}"));
            let path = if file.starts_with("src/") { file.to_owned() } else { format!("tests/{file}.rs") };
            let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&path))
                .unwrap_or_else(|error| panic!("{path}: {error}"));
            let (_, body) = source.split_once(&format!("fn {name}(")).unwrap_or_else(|| panic!("no {test}"));
            let body = body.split("#[test]").next().unwrap_or_default();
            let code = row.code.replace("128+N", "1"); // 137, 143: the name says the rest.
            assert!(format!("{name}{body}").contains(&code), "{test} does not name {}", row.code);
        }
    }
}

#[test]
fn help_is_exit_code_0_everywhere() {
    for page in pages() {
        let output = tenure(&with(&page.words, "--help"));
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{}", page.name());
        assert!(text(&output.stdout).contains("Usage: tenure"), "{}", page.name());
    }
}

#[test]
fn a_flag_that_no_command_knows_is_exit_code_2_everywhere() {
    for page in pages() {
        let output = tenure(&with(&page.words, "--no-such-flag"));
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{}: {said}", page.name());
        assert!(text(&output.stdout).is_empty() && said.contains("--help"), "{}: {said}", page.name());
    }
}

/// Every command that asks a daemon.
const ASKING: &[&str] = &[
    "leader jobs",
    "status",
    "top",
    "verify jobs",
    "proclaim jobs hello",
    "resign jobs",
    "key revoke 0123456789abcdef",
    "key list",
    "transfer jobs --to a",
    "members list",
    "members remove a",
    "token list",
    "token create --role read",
    "token revoke 0000000a",
    "token link",
];

#[test]
fn who_asks_a_daemon_is_told_69_77_and_78_apart() {
    let folder = tempfile::tempdir().unwrap();
    let daemons = HttpCluster::start(TENURE, 1, "open_reads = false");
    let closed = format!("http://{}", daemons.http[0]);
    for words in ASKING {
        for (endpoint, code) in [(None, 78), (Some("http://127.0.0.1:1"), 69), (Some(closed.as_str()), 77)] {
            let mut command = Command::new(TENURE.0);
            command.args(words.split(' ')).current_dir(&folder).env_remove("TENURE_CONFIG");
            command.args(endpoint.into_iter().flat_map(|url| ["--endpoint", url]));
            let output = command.output().unwrap();
            let said = text(&output.stderr);
            assert_eq!((output.status.code(), said.lines().count()), (Some(code), 1), "{words}: {said}");
        }
    }
}

/// The processes that `parent` has started.
fn children(parent: u32) -> Vec<Pid> {
    let stat = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("stat")).ok();
    let child = |stat: String| {
        let (before, after) = stat.rsplit_once(')')?;
        let pid = before.split(' ').next()?.parse().ok()?;
        let is = after.split_whitespace().nth(1)?.parse::<u32>().ok()? == parent;
        Pid::from_raw(pid).filter(|_| is)
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(stat).filter_map(child).collect()
}

#[test]
fn a_second_signal_ends_up_with_128_and_its_number() {
    let mut up = Up::start(TENURE);
    let nodes = children(up.process.id());
    assert_eq!(nodes.len(), 3);
    for node in &nodes {
        kill_process(*node, Signal::STOP).unwrap(); // So that they cannot end in time.
    }
    let process = Pid::from_raw(i32::try_from(up.process.id()).unwrap()).unwrap();
    kill_process(process, Signal::TERM).unwrap();
    look_for("it tells that it stops", || up.said().contains("stopping").then_some(()));
    kill_process(process, Signal::TERM).unwrap();
    let status = up.process.wait().unwrap();
    for node in &nodes {
        let _ = kill_process(*node, Signal::KILL); // Where it has not ended them itself.
    }
    assert_eq!(status.code(), Some(128 + 15), "{}", up.said());
}

#[test]
fn a_second_signal_ends_a_node_with_128_and_its_number() {
    let mut daemons = HttpCluster::start(TENURE, 1, "");
    // A request whose body never comes: a node that ends waits for it, for a while.
    let mut request = TcpStream::connect(daemons.http[0]).unwrap();
    let head = "POST /v1/groups/a/proclaim HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n";
    let head = format!("{head}Authorization: Bearer {TOKEN}\r\n\r\n");
    request.write_all(head.as_bytes()).unwrap();
    let mut word = [0; 12];
    request.read_exact(&mut word).unwrap();
    assert_eq!(text(&word), "HTTP/1.1 100", "the handler has begun and waits for the body");
    let mut node = daemons.children[0].take().unwrap();
    let pid = Pid::from_child(&node);
    kill_process(pid, Signal::TERM).unwrap();
    let log = daemons.path("n1.log");
    daemons.wait("it tells that it stops", || {
        fs::read_to_string(&log).unwrap().contains("event=stopping").then_some(())
    });
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(node.wait().unwrap().code(), Some(128 + 2));
}
