//! All that CI does, nothing hidden: `cargo xtask test`, and the tools beside it.
//!
//! | Command        | File              | Does                                                       |
//! |----------------|-------------------|------------------------------------------------------------|
//! | `test`         | `test/`           | set-up, every check, every test                            |
//! | `setup`        | `setup.rs`        | installs what the tests need and this machine lacks        |
//! | `tidy`         | `tidy/`           | the rules that the compiler does not know                  |
//! | `dependencies` | `dependencies.rs` | licences, sources and bans of `deny.toml`                  |
//! | `bench NAME`   | `bench.rs`        | one benchmark, with ratios to a baseline of the same run   |
//! | `package`      | `package.rs`      | the Debian package, with manual pages and completions      |
//! | `torture`      | `torture.rs`      | kills, pauses and restarts real processes, and times it    |
//! | `compatibility`| `compatibility.rs`| upgrades a cluster from an earlier revision, and back      |
//!
//! No dependencies: this is the first thing that is built on a new machine.

mod bench;
mod compatibility;
mod dependencies;
mod failure;
mod json;
mod package;
mod setup;
mod suggest;
mod test;
mod tidy;
mod torture;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use failure::Failure;
use json::Json;

const USAGE: &str = "\
All that CI does, nothing hidden.

Usage: cargo xtask <COMMAND>

Commands:
  test                   sets the machine up as far as it may, then runs every check and every test
  test [-p CRATE] [--test PROGRAM] [NAME...]
                         only these tests: of a crate, of a program in its tests folder, whose names
                         contain NAME; no set-up and no other checks
  setup                  installs what the tests need and this machine lacks, by rustup and apt-get
  tidy                   the rules that the compiler does not know: arrows between crates, lengths,
                         dead paths, plain words
  tidy --lower           the same, and writes the counts of xtask/ratchet.txt where they have fallen
  tidy --list AREA       every place that xtask/ratchet.txt counts in an area, such as docs or rustdoc
  dependencies           holds licences, sources and banned crates to deny.toml
  bench [NAME [ARG...]]  runs a benchmark, passing ARGs on; without a NAME, lists the benchmarks
  package                builds the Debian package, with manual pages and completions; needs cargo-deb
  torture                kills, pauses and restarts real processes fifty times, and prints the times
  torture run            does worse to `tenure run` two hundred times, beside `etcdctl lock`; needs root
  torture kv             kills the replicated key-value server under load for a minute
  torture day [--minutes M] [--seed S]
                         runs a whole site for ten minutes: hosts, runners, Prometheus, faults, and
                         a referee who judges answers and alerts; needs root
  compatibility REVISION builds an earlier revision, and upgrades a cluster from it member by member

Examples:
  cargo xtask test
  cargo xtask test -p tenure --test disk
  cargo xtask tidy
  cargo xtask bench lab

`test` ends with one line, `N passed, M failed, K skipped`; each check counts as one test. A line
before it counts what this machine left out, and why. With TENURE_TEST_STRICT=1 that is a failure.

Exit codes: 0 all is well, 1 a check failed, 2 the command could not be understood or started.
";

const COMMANDS: &[&str] =
    &["test", "setup", "tidy", "dependencies", "bench", "package", "torture", "compatibility"];

fn main() -> ExitCode {
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if failure != Failure::Told {
                eprintln!("xtask: {failure}");
            }
            failure.exit_code()
        }
    }
}

/// Understands the arguments and carries out the one command they name.
fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(Failure::Error(format!("which command?\n\n{}", USAGE.trim_end())));
    };
    let passes_help_on = command == "bench" && rest.first().is_some_and(|first| !is_help(first));
    // `help` is also the name of an area of `tidy --list`, and a part of names of tests.
    let asks = |argument: &String| is_help(argument) && (argument != "help" || rest.len() == 1);
    if is_help(command) || (!passes_help_on && rest.iter().any(asks)) {
        print!("{USAGE}");
        return Ok(());
    }
    match command.as_str() {
        "test" => test::run(&root()?, &test::Options::parse(rest)?),
        "setup" => no_more(command, rest).and_then(|()| setup::run()),
        "tidy" if rest == ["--lower"] => tidy::run(&root()?, tidy::Ratchet::Lower),
        "tidy" if rest.len() == 2 && rest[0] == "--list" => tidy::list(&root()?, &rest[1]),
        "tidy" => no_more(command, rest).and_then(|()| tidy::run(&root()?, tidy::Ratchet::Hold)),
        "dependencies" => no_more(command, rest).and_then(|()| dependencies::run(&root()?)),
        "bench" => bench::run(rest, root),
        "package" => no_more(command, rest).and_then(|()| package::run(&root()?)),
        "torture" => torture::run(rest, root),
        "compatibility" => compatibility::run(rest, root),
        unknown => Err(Failure::Error(format!(
            "no command `{unknown}`.{} There are {}: see `cargo xtask --help`",
            suggest::did_you_mean(unknown, COMMANDS),
            COMMANDS.join(", ")
        ))),
    }
}

fn is_help(argument: &str) -> bool {
    matches!(argument, "--help" | "-h" | "help")
}

fn no_more(command: &str, rest: &[String]) -> Result<(), Failure> {
    match rest.first() {
        None => Ok(()),
        Some(extra) => Err(Failure::Error(format!("`{command}` takes no argument, but was given `{extra}`"))),
    }
}

/// The folder of the workspace: the nearest one above that holds this crate.
fn root() -> Result<PathBuf, Failure> {
    let here = env::current_dir().map_err(|error| Failure::Error(format!("no current folder: {error}")))?;
    let found = here.ancestors().find(|folder| folder.join("xtask/Cargo.toml").is_file());
    found.map(Path::to_path_buf).ok_or_else(|| {
        Failure::Error(format!("{} is not inside the repository: change folder first", here.display()))
    })
}

/// The cargo that started us, so that every step uses one toolchain.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root);
    command
}

/// The folder in which cargo builds, as cargo says itself.
fn target(root: &Path) -> Result<PathBuf, Failure> {
    let output = cargo(root).args(["metadata", "--format-version", "1", "--no-deps"]).output();
    let output = output.map_err(|error| Failure::Error(format!("`cargo metadata`: {error}")))?;
    let said = Json::parse(&String::from_utf8_lossy(&output.stdout));
    let path = said.as_ref().and_then(|said| said.text_at("target_directory")).map(PathBuf::from);
    path.ok_or_else(|| Failure::Error("`cargo metadata` does not say where it builds".to_owned()))
}

/// Runs a command to its end with our own standard streams, so that its output is seen as it comes.
fn finish(mut command: Command, title: &str) -> Result<(), Failure> {
    let status =
        command.status().map_err(|error| Failure::Error(format!("{title} could not be started: {error}")))?;
    if status.success() { Ok(()) } else { Err(Failure::Broken(format!("{title} failed ({status})"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_words(line: &str) -> Result<(), Failure> {
        run(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn no_command_is_an_error_that_shows_the_usage() {
        let failure = run_words("").unwrap_err();
        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().contains("Examples:"), "{failure}");
    }

    #[test]
    fn help_is_not_an_error_wherever_it_stands() {
        assert_eq!(run_words("--help"), Ok(()));
        assert_eq!(run_words("test --help"), Ok(()));
        assert_eq!(run_words("bench -h"), Ok(()));
        assert_eq!(run_words("tidy help"), Ok(()));
        assert!(run_words("tidy help me").is_err());
    }

    #[test]
    fn a_misspelt_command_names_the_nearest() {
        let failure = run_words("tets").unwrap_err();
        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().contains("Did you mean `test`?"), "{failure}");
    }

    #[test]
    fn a_superfluous_argument_is_refused_rather_than_ignored() {
        for line in ["test --fast", "tidy --fast", "setup --fast"] {
            let failure = run_words(line).unwrap_err();
            assert_eq!(failure.code(), 2);
            assert!(failure.to_string().contains("`--fast`"), "{failure}");
        }
    }

    #[test]
    fn an_unknown_benchmark_exits_2_and_lists_the_known() {
        let failure = run_words("bench labb").unwrap_err();
        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().contains("Did you mean `lab`?"), "{failure}");
    }
}
