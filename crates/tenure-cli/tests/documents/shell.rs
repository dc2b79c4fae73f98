//! A page's commands in one shell, in an empty folder, in namespaces of their own.
//!
//! Pages use the ports that `tenure up` and `tenure init` take by default, and some make hosts of
//! network namespaces. Each page therefore has a network, mounts and processes of its own, so that
//! pages run beside each other, and beside a cluster that somebody runs on this machine. All
//! processes of a page end with the first of its namespace, whatever becomes of the test.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use tenure_testkit::postgres_server::{self, Server};

use crate::page::{Block, Mark, Page, repository};

/// The first process of the namespaces. It prepares them, runs the script `$2` for at most `$1`
/// seconds, and ends at once when its input does: that is when the test is gone.
const INIT: &str = r#"
mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /run && ip link set lo up || exit 125
exec 3<&0
timeout "$1" bash -e "$2" < /dev/null 3<&- & page=$!
{ read -r _ <&3; kill -KILL $page; } &
wait $page
"#;

/// The longest time of a page, in seconds: it ends one that waits for what never happens.
const LONGEST: &str = "400";

/// The exit code of timeout(1) when the time was over.
const TIMED_OUT: i32 = 124;

/// Makes a page that is left out a failure.
const STRICT: &str = "TENURE_TEST_STRICT";

/// Before a block, the script prints this and the page and line.
const AT: &str = "=== ";

/// Runs the blocks of a page, and says where one failed and all that the page printed.
pub(crate) fn run(page: &Page) -> Result<(), String> {
    if let Some(lack) = lack(&page.needs) {
        let left_out = format!("left out: {} needs {lack}", page.name);
        println!("{left_out}");
        return if env::var_os(STRICT).is_some() { Err(left_out) } else { Ok(()) };
    }
    let server = page.needs.iter().any(|need| need == "postgresql").then(Server::start);
    let folder = tempfile::tempdir().expect("a folder");
    let (script, log) = (folder.path().join("script"), folder.path().join("log"));
    let (work, home) = (folder.path().join("work"), folder.path().join("home"));
    fs::write(&script, script_of(page)).expect("the script is written");
    [&work, &home].into_iter().for_each(|path| fs::create_dir(path).expect("a folder"));
    fs::write(home.join(".curlrc"), "fail\n").expect("it is written"); // An HTTP error is a failure.
    if page.needs.iter().any(|need| need == "scenarios") {
        std::os::unix::fs::symlink(repository().join("scenarios"), work.join("scenarios")).expect("a link");
    }
    let mut command = isolated(&script);
    command.current_dir(&work).env("HOME", home);
    command.env("FENCE_SQL", repository().join("crates/tenure/src/fence"));
    if let Some(server) = &server {
        command.env("PGHOST", server.folder()).env("PGUSER", "postgres");
    }
    let status = run_to_end(command, &log).expect("unshare runs");
    if status.success() { Ok(()) } else { Err(failure(page, status, folder.path())) }
}

/// Runs a command that writes to a file. Its input ends when this process does, or this thread.
fn run_to_end(mut command: Command, log: &Path) -> io::Result<ExitStatus> {
    let file = File::create(log)?;
    let second = file.try_clone()?;
    let mut child = command.stdin(Stdio::piped()).stdout(file).stderr(second).spawn()?;
    let input = child.stdin.take(); // `wait` would close it.
    let status = child.wait();
    drop(input);
    status
}

/// The command that runs a script in namespaces of its own, with an environment of its own.
fn isolated(script: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--mount-proc"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["sh", "-c", INIT, "sh", LONGEST]).arg(script);
    command.env_clear().env("PATH", path());
    command
}

/// Where programs are: `tenure` is the one that was built for this test.
fn path() -> OsString {
    let tenure = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().expect("it is in a folder").to_owned();
    let rest = env::var_os("PATH").unwrap_or_default();
    env::join_paths([tenure].into_iter().chain(env::split_paths(&rest))).expect("plain names")
}

/// The first need that this machine does not meet.
fn lack(needs: &[String]) -> Option<String> {
    let lacks = |need: &&String| match need.as_str() {
        "root" | "scenarios" => false, // In its namespaces the page is root, and the folder is ours.
        "postgresql" => !(postgres_server::is_installed() && is_program("psql") && is_program("createdb")),
        program => !is_program(program),
    };
    let namespaces = || can_isolate().err().map(|said| format!("namespaces of its own: {said}"));
    needs.iter().find(lacks).cloned().or_else(namespaces)
}

fn is_program(name: &str) -> bool {
    env::split_paths(&path()).any(|folder| folder.join(name).is_file())
}

/// Whether a script can be run in namespaces; tried once, with a script that does nothing.
fn can_isolate() -> Result<(), String> {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    let attempt = || {
        let folder = tempfile::tempdir().expect("a folder");
        let (script, log) = (folder.path().join("script"), folder.path().join("log"));
        fs::write(&script, "").expect("the script is written");
        let status = run_to_end(isolated(&script), &log).map_err(|error| format!("unshare: {error}"))?;
        let said = fs::read_to_string(&log).expect("it has a log");
        if status.success() { Ok(()) } else { Err(said.trim().to_owned()) }
    };
    TRIED.get_or_init(attempt).clone()
}

/// One script of all blocks, which runs in `work` and keeps the logs of the background beside it.
fn script_of(page: &Page) -> String {
    let mut script = String::from("page_background=\n");
    for block in &page.blocks {
        script += &format!("echo '{AT}{}:{}'\n", page.name, block.line);
        script += &commands_of(block);
    }
    script += "for pid in $page_background; do\n    \
        kill -0 $pid || { echo 'the block in the background has ended'; exit 1; }\ndone\n";
    script
}

fn commands_of(block: &Block) -> String {
    let body: String = block.commands.iter().map(|line| with_exit_code(line) + "\n").collect();
    match block.mark {
        Mark::Run => body,
        Mark::Background => format!(
            "{{\n{body}}} > ../background-{}.log 2>&1 &\npage_background=\"$page_background $!\"\n",
            block.line
        ),
        Mark::NotRun => String::new(),
    }
}

/// A line that ends with `# exit code N` fails unless its command ends with that code.
fn with_exit_code(line: &str) -> String {
    let Some((command, code)) = line.rsplit_once("# exit code ") else { return line.to_owned() };
    let Ok(code) = code.trim().parse::<u8>() else { return line.to_owned() };
    format!(
        "{command} && page_code=0 || page_code=$?; \
         [ $page_code = {code} ] || {{ echo \"exit code $page_code, not {code}\"; exit 1; }}"
    )
}

/// Where a page failed, and all that it said.
fn failure(page: &Page, status: ExitStatus, folder: &Path) -> String {
    let read = |name: String| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let said = read("log".to_owned());
    let at = said.lines().rev().find_map(|line| line.strip_prefix(AT)).unwrap_or(&page.name);
    let how = match status.code() {
        Some(TIMED_OUT) => format!("not at its end after {LONGEST} s"),
        _ => status.to_string(),
    };
    let background = page.blocks.iter().filter(|block| block.mark == Mark::Background);
    let logs: String = background
        .map(|block| {
            format!("--- {}:{}\n{}", page.name, block.line, read(format!("background-{}.log", block.line)))
        })
        .collect();
    format!("the block at {at} failed: {how}\n{said}{logs}")
}
