//! The needs of tests beyond Rust, and whether this machine meets them.
//!
//! `xtask/needs.txt` says which test needs what. A need that is not met leaves out those tests
//! alone, and the report counts them with the reason: a machine without root or without PostgreSQL
//! still runs the rest.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;

use super::program::Program;
use crate::failure::Failure;
use crate::setup;

const PATH: &str = "xtask/needs.txt";
const TABLE: &str = include_str!("../../needs.txt");

/// One thing that a machine may lack.
struct Need {
    name: &'static str,
    /// The words of the report where it is missing.
    reason: &'static str,
    is_met: fn() -> bool,
}

/// The namespaces are tried out: being root is not enough in a container, and not always needed.
const NEEDS: &[Need] = &[
    Need { name: "root", reason: "not root", is_met: setup::is_root },
    Need { name: "mounts", reason: "no right to mount", is_met: can_mount },
    Need { name: "loop", reason: "no right to mount, no loop device or no mkfs.ext4", is_met: has_loop },
    Need { name: "user-namespaces", reason: "no user namespaces", is_met: has_user_namespaces },
    Need { name: "time-namespaces", reason: "no time namespaces", is_met: has_time_namespaces },
    Need { name: "own-clock", reason: "no right to a time namespace", is_met: has_own_clock },
    Need {
        name: "net-namespaces",
        reason: "no right to network namespaces, no ip or no nft",
        is_met: has_net,
    },
    Need { name: "namespaces", reason: "no right to namespaces, no ip or no bash", is_met: has_namespaces },
    Need { name: "strace", reason: "no strace", is_met: has_strace },
    Need { name: "attach", reason: "no strace, or no right to attach it to a process", is_met: can_attach },
    Need { name: "postgres", reason: "no PostgreSQL server", is_met: setup::has_postgres },
    Need { name: "tmux", reason: "no tmux", is_met: || setup::is_on_path("tmux") },
    Need { name: "bash", reason: "no bash", is_met: || setup::is_on_path("bash") },
    Need { name: "curl", reason: "no curl", is_met: || setup::is_on_path("curl") },
    Need { name: "openssl", reason: "no openssl", is_met: || setup::is_on_path("openssl") },
    Need { name: "python3", reason: "no python3", is_met: || setup::is_on_path("python3") },
    Need { name: "prometheus", reason: "no Prometheus", is_met: has_prometheus },
    Need { name: "sqlite3", reason: "no sqlite3", is_met: || setup::is_on_path("sqlite3") },
    Need { name: "ipv6", reason: "no IPv6", is_met: || UdpSocket::bind("[::]:0").is_ok() },
];

fn has_prometheus() -> bool {
    ["prometheus", "promtool"].into_iter().all(setup::is_on_path)
}

/// One line of the table: a test, or all tests of a program, and what they need.
struct Line {
    number: usize,
    need: &'static Need,
    package: String,
    program: String,
    /// `None` for all.
    test: Option<String>,
}

/// The table, with what this machine was found to lack.
pub(super) struct Needs {
    lines: Vec<Line>,
    /// Whether each need is met, by name. Each is tried once.
    met: BTreeMap<&'static str, bool>,
}

impl Needs {
    /// Reads the table and tries out what this machine has.
    pub(super) fn try_out() -> Result<Needs, Failure> {
        let met = NEEDS.iter().map(|need| (need.name, (need.is_met)())).collect();
        Ok(Needs { lines: parse(TABLE)?, met })
    }

    /// Why a test cannot run here; `None` if it can.
    pub(super) fn lacks(&self, program: &Program, test: &str) -> Option<&'static str> {
        let missing = |line: &&Line| line.names(program, test) && self.met.get(line.need.name) != Some(&true);
        self.lines.iter().find(missing).map(|line| line.need.reason)
    }

    /// Lines that name no test of these programs: the test was renamed, and would fail where its
    /// need is not met.
    pub(super) fn stale(&self, tests: &[(Program, Vec<String>)]) -> Result<(), Failure> {
        let known = |line: &Line| {
            tests.iter().any(|(program, names)| names.iter().any(|name| line.names(program, name)))
        };
        let stale: Vec<String> = self.lines.iter().filter(|line| !known(line)).map(Line::describe).collect();
        if stale.is_empty() { Ok(()) } else { Err(Failure::Broken(stale.join("\n"))) }
    }
}

impl Line {
    fn names(&self, program: &Program, test: &str) -> bool {
        self.package == program.package
            && self.program == program.short()
            && self.test.as_ref().is_none_or(|name| name == test)
    }

    fn describe(&self) -> String {
        let test = self.test.as_deref().unwrap_or("*");
        format!("{PATH}:{}: there is no test {} {} {test}", self.number, self.package, self.program)
    }
}

fn parse(table: &str) -> Result<Vec<Line>, Failure> {
    let lines = table.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| parse_line(number, line)).collect()
}

fn parse_line(number: usize, line: &str) -> Result<Line, Failure> {
    let wrong = |why: &str| Failure::Error(format!("{PATH}:{number}: {why}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let [need, package, program, test] = words.as_slice() else {
        return Err(wrong("a line has four words: need, crate, program, test"));
    };
    let need = NEEDS.iter().find(|known| known.name == *need);
    let need = need.ok_or_else(|| wrong("the need is unknown: see NEEDS in xtask/src/test/needs.rs"))?;
    let test = (*test != "*").then(|| test.to_string());
    Ok(Line { number, need, package: package.to_string(), program: program.to_string(), test })
}

/// As `crates/tenure-testkit/src/mounts.rs` does.
fn can_mount() -> bool {
    let mount = "mount -t tmpfs tmpfs /mnt";
    setup::works("unshare", &["--mount", "--propagation", "private", "sh", "-c", mount])
}

fn has_loop() -> bool {
    can_mount() && setup::is_on_path("mkfs.ext4") && fs::exists("/dev/loop-control").unwrap_or(false)
}

fn has_user_namespaces() -> bool {
    setup::works("unshare", &["--mount", "--map-root-user", "sh", "-c", "mount -t tmpfs tmpfs /mnt"])
}

fn has_time_namespaces() -> bool {
    setup::works("unshare", &["--time", "--boottime", "1000", "--fork", "--map-root-user", "true"])
}

fn has_own_clock() -> bool {
    setup::works("unshare", &["--time", "--boottime", "1000", "true"])
}

/// A bridge, a cable and a filter, in a namespace that is gone at once.
fn has_net() -> bool {
    const SCRIPT: &str = "ip link add br0 type bridge && ip link add p1 type veth peer name eth0 \
        && nft 'table inet cut { chain input { type filter hook input priority 0; iifname != \"lo\" drop; }; }'";
    setup::is_root() && setup::works("unshare", &["--net", "sh", "-c", SCRIPT])
}

/// As `crates/tenure-cli/tests/documents/shell.rs` does: root needs no user namespace.
fn has_namespaces() -> bool {
    const SCRIPT: &str = "mount -t tmpfs tmpfs /run && ip link set lo up";
    let user: &[&str] = if setup::is_root() { &[] } else { &["--user", "--map-root-user"] };
    let kinds = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "bash", "-c", SCRIPT];
    setup::works("unshare", &[user, &kinds].concat())
}

fn has_strace() -> bool {
    setup::works("strace", &["-o", "/dev/null", "true"])
}

/// Linux may forbid all users but root to attach to processes that are not their children.
fn can_attach() -> bool {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    has_strace() && (setup::is_root() || matches!(scope.trim(), "" | "0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::program::Kind;
    use std::path::PathBuf;

    fn program(package: &str, kind: Kind, name: &str) -> Program {
        let (package, name) = (package.to_string(), name.to_string());
        Program { folder: PathBuf::new(), package, kind, name, path: PathBuf::new() }
    }

    fn needs(table: &str, met: &[&'static str]) -> Needs {
        Needs { lines: parse(table).unwrap(), met: met.iter().map(|name| (*name, true)).collect() }
    }

    #[test]
    fn the_table_of_this_repository_can_be_read() {
        assert!(!parse(TABLE).unwrap().is_empty());
    }

    #[test]
    fn a_test_is_left_out_only_where_its_need_is_not_met() {
        let table = "# comment\n\nroot tenure lib a::b\npostgres tenure pg *\n";
        let (lib, pg) = (program("tenure", Kind::Lib, "tenure"), program("tenure", Kind::Test, "pg"));
        let other = program("tenure-cli", Kind::Test, "pg");
        let poor = needs(table, &[]);
        assert_eq!(poor.lacks(&lib, "a::b"), Some("not root"));
        assert_eq!(poor.lacks(&lib, "a::c"), None);
        assert_eq!(poor.lacks(&pg, "any"), Some("no PostgreSQL server"));
        assert_eq!(poor.lacks(&other, "any"), None);
        assert_eq!(needs(table, &["root"]).lacks(&lib, "a::b"), None);
    }

    #[test]
    fn a_line_that_names_no_test_is_found() {
        let pg = program("tenure", Kind::Test, "pg");
        let tests = [(pg, vec!["a".to_string()])];
        assert_eq!(needs("root tenure pg a\nroot tenure pg *", &[]).stale(&tests), Ok(()));
        let failure = needs("root tenure pg b", &[]).stale(&tests).unwrap_err();
        assert_eq!(failure.to_string(), "xtask/needs.txt:1: there is no test tenure pg b");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_an_error() {
        for table in ["root tenure lib", "magic tenure lib *"] {
            assert_eq!(parse(table).err().map(|failure| failure.code()), Some(2), "{table}");
        }
    }
}
