//! `cargo xtask test`: sets the machine up, then every check, cheapest first, up to the first that
//! fails; then all tests, whether some fail or not.
//!
//! | File         | Has                                                                         |
//! |--------------|-----------------------------------------------------------------------------|
//! | `options.rs` | the arguments: everything, or a part for a developer who waits for it       |
//! | `needs.rs`   | what tests need beyond Rust, and whether this machine has it                |
//! | `featured.rs`| what needs a feature of the library, and is built by itself                 |
//! | `program.rs` | test programs: how cargo builds them, and the tests in them                 |
//! | `lanes.rs`   | in which order programs run, and which of them side by side                 |
//! | `run.rs`     | runs a program and follows what it prints                                   |
//! | `libtest.rs` | reads what a program prints                                                 |
//! | `report.rs`  | failures, the slowest tests, what was left out, and the closing line        |

mod featured;
mod lanes;
mod libtest;
mod needs;
mod options;
mod program;
mod report;
mod run;

use std::env;
use std::path::Path;
use std::time::Instant;

use crate::failure::Failure;
use crate::{cargo, dependencies, finish, setup, target, tidy};
use needs::Needs;
pub(crate) use options::Options;
use program::{Kind, Program};
use report::Tally;
use run::Plan;

/// Crates that build on Linux alone. On other systems the rest is checked.
const LINUX_ONLY: &[&str] = &["tenure", "tenure-cli", "tenure-testkit"];

/// Set to make a failure of everything that is left out: for a machine that must leave out nothing.
const STRICT: &str = "TENURE_TEST_STRICT";

/// One check before the tests.
struct Check {
    name: &'static str,
    action: Action,
}

enum Action {
    /// A cargo command about all crates that build here, or about what needs a feature, with
    /// arguments after `--` and one environment variable.
    Cargo {
        command: &'static [&'static str],
        featured: bool,
        after: &'static [&'static str],
        environment: Environment,
    },
    /// The one cargo command that builds nothing.
    Format,
    /// Our own rules, in this process.
    Tidy,
    /// `deny.toml`, in this process.
    Dependencies,
}

type Environment = Option<(&'static str, &'static str)>;

const CHECKS: &[Check] = &[
    Check { name: "fmt", action: Action::Format },
    Check { name: "tidy", action: Action::Tidy },
    Check { name: "dependencies", action: Action::Dependencies },
    Check {
        name: "clippy",
        action: Action::Cargo {
            command: &["clippy", "--all-targets"],
            featured: false,
            after: &["-D", "warnings"],
            environment: None,
        },
    },
    Check {
        name: "clippy with a feature",
        action: Action::Cargo {
            command: &["clippy", "--lib", "--test", "testing"],
            featured: true,
            after: &["-D", "warnings"],
            environment: None,
        },
    },
    Check {
        name: "doc",
        action: Action::Cargo {
            command: &["doc", "--no-deps"],
            featured: false,
            after: &[],
            environment: Some(("RUSTDOCFLAGS", "-D warnings")),
        },
    },
    Check {
        name: "doc with a feature",
        action: Action::Cargo {
            command: &["doc", "--no-deps"],
            featured: true,
            after: &[],
            environment: Some(("RUSTDOCFLAGS", "-D warnings")),
        },
    },
];

/// Runs all that is asked for, and reports.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let mut tally = Tally::default();
    if let Err(failure) = run_all(root, options, &mut tally) {
        tally.failed += 1;
        tally.failures.push(failure.to_string());
    }
    if env::var_os(STRICT).is_some() && !tally.left_out.is_empty() {
        tally.failed += 1;
        tally.failures.push(format!("something was left out, and {STRICT} is set"));
    }
    eprint!("{}", tally.details());
    println!("{}", tally.closing());
    if tally.failed == 0 { Ok(()) } else { Err(Failure::Told) }
}

fn run_all(root: &Path, options: &Options, tally: &mut Tally) -> Result<(), Failure> {
    if options.are_empty() {
        timed("setup", tally, |_| {
            setup::provide();
            Ok(())
        })?;
        for check in CHECKS.iter().filter(|check| check.builds()) {
            timed(check.name, tally, |tally| check.run(root, tally))?;
        }
    }
    let programs = timed("build", tally, |tally| build(root, options, tally))?;
    timed("tests", tally, |tally| run_tests(root, options, &programs, tally))?;
    let libraries = libraries(options, &programs);
    if libraries.is_empty() {
        return Ok(());
    }
    timed("doctests", tally, |tally| run_doctests(root, &libraries, tally))
}

/// Does a step and notes its time.
fn timed<T>(
    name: &'static str,
    tally: &mut Tally,
    step: impl FnOnce(&mut Tally) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let begun = clock();
    let result = step(tally);
    tally.steps.push((name, clock().duration_since(begun)));
    result
}

impl Check {
    /// Whether this machine can build what it is about.
    fn builds(&self) -> bool {
        !matches!(self.action, Action::Cargo { featured: true, .. }) || featured::builds()
    }

    fn run(&self, root: &Path, tally: &mut Tally) -> Result<(), Failure> {
        eprintln!("xtask: {}: {}", self.name, self.title());
        match &self.action {
            Action::Tidy => tidy::run(root, tidy::Ratchet::Hold)?,
            Action::Dependencies => dependencies::run(root)?,
            Action::Format | Action::Cargo { .. } => {
                let words = self.words();
                if !setup::has_cargo_command(&words[0]) {
                    tally.leave_out("check", format!("cargo {} is not installed", words[0]));
                    return Ok(());
                }
                let mut cargo = cargo(root);
                cargo.args(words).envs(self.environment());
                finish(cargo, &format!("`{}`", self.title()))?;
            }
        }
        tally.passed += 1;
        Ok(())
    }

    /// The arguments of cargo; none for a check in this process.
    fn words(&self) -> Vec<String> {
        let strings = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        match &self.action {
            Action::Format => strings(&["fmt", "--all", "--check"]),
            Action::Cargo { command, featured, after, .. } => {
                let separator: &[&str] = if after.is_empty() { &[] } else { &["--"] };
                let crates = if *featured { strings(&featured::CRATE) } else { crates(&[]) };
                [strings(command), crates, strings(separator), strings(after)].concat()
            }
            Action::Tidy | Action::Dependencies => Vec::new(),
        }
    }

    fn environment(&self) -> Environment {
        match &self.action {
            Action::Cargo { environment, .. } => *environment,
            _ => None,
        }
    }

    /// The command line that does the same by hand.
    fn title(&self) -> String {
        match &self.action {
            Action::Tidy => "cargo xtask tidy".to_string(),
            Action::Dependencies => "cargo xtask dependencies".to_string(),
            _ => {
                let variable = self.environment().map(|(key, value)| format!("{key}=\"{value}\" "));
                format!("{}cargo {}", variable.unwrap_or_default(), self.words().join(" "))
            }
        }
    }
}

/// The arguments that name the crates: those that are asked for, or all; without those that do not
/// build here.
fn crates(asked: &[String]) -> Vec<String> {
    let builds = |package: &&str| cfg!(target_os = "linux") || !LINUX_ONLY.contains(package);
    let asked: Vec<&str> = asked.iter().map(String::as_str).filter(builds).collect();
    let excluded = LINUX_ONLY.iter().copied().filter(|package| !builds(package));
    let words: Vec<&str> = if asked.is_empty() {
        ["--workspace"].into_iter().chain(excluded.flat_map(|package| ["--exclude", package])).collect()
    } else {
        asked.into_iter().flat_map(|package| ["--package", package]).collect()
    };
    words.into_iter().map(String::from).collect()
}

/// Builds the tests of the crates that are asked for and can be built.
fn build(root: &Path, options: &Options, tally: &mut Tally) -> Result<Vec<Program>, Failure> {
    if !cfg!(target_os = "linux") {
        for package in LINUX_ONLY.iter().filter(|package| wanted(options, package)) {
            tally.leave_out("crate", format!("{package} needs Linux"));
        }
    }
    let crates = crates(&options.packages);
    eprintln!("xtask: build: cargo test --no-run {}", crates.join(" "));
    program::build(root, options, &crates)
}

fn wanted(options: &Options, package: &str) -> bool {
    options.packages.is_empty() || options.packages.iter().any(|name| name == package)
}

/// Runs every test that is asked for and that this machine can run.
fn run_tests(root: &Path, options: &Options, programs: &[Program], tally: &mut Tally) -> Result<(), Failure> {
    let listed = |program: &Program| Ok((program.clone(), program.list()?));
    let tests: Vec<(Program, Vec<String>)> = programs.iter().map(listed).collect::<Result<_, Failure>>()?;
    let needs = Needs::try_out()?;
    if options.are_empty() && cfg!(target_os = "linux") {
        needs.stale(&tests)?;
        lanes::stale(programs)?;
    }
    let (logs, threads) = (target(root)?.join("xtask-test"), threads());
    let plans = plan(tests, options, &needs, tally);
    lanes::run(plans, &logs, threads, tally)
}

/// The tests that can run, by program; the others are counted with the reason.
fn plan(
    tests: Vec<(Program, Vec<String>)>,
    options: &Options,
    needs: &Needs,
    tally: &mut Tally,
) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (program, names) in tests {
        let all = names.len();
        let mut chosen: Vec<String> = names.into_iter().filter(|name| options.want(name)).collect();
        chosen.retain(|name| match needs.lacks(&program, name) {
            Some(why) => {
                tally.leave_out("test", why);
                false
            }
            None => true,
        });
        if !chosen.is_empty() {
            plans.push(Plan { program, all: all == chosen.len(), tests: chosen });
        }
    }
    plans
}

impl Tally {
    fn add(&mut self, done: &run::Done) {
        let counts = done.heard.counts;
        self.passed += counts.passed;
        self.failed += counts.failed;
        self.ignored += counts.ignored;
        self.failures.extend(done.repeat());
        let tests = done.heard.times.iter().map(|(name, time)| (*time, format!("{} {name}", done.label)));
        self.tests.extend(tests);
    }
}

/// The crates whose documentation has tests; none if single tests are asked for.
fn libraries(options: &Options, programs: &[Program]) -> Vec<String> {
    let single = !options.programs.is_empty() || !options.filters.is_empty();
    let libraries = programs.iter().filter(|program| program.kind == Kind::Lib && !single);
    libraries.map(|program| program.package.clone()).collect()
}

/// Tests in documentation: cargo compiles and runs them, crate by crate.
fn run_doctests(root: &Path, libraries: &[String], tally: &mut Tally) -> Result<(), Failure> {
    let words = [crates(libraries), featured::of_libraries(libraries)].concat();
    let mut command = cargo(root);
    command.args(["test", "--doc", "--no-fail-fast"]).args(&words);
    let title = format!("cargo test --doc {}", words.join(" "));
    eprintln!("xtask: doctests: {title}");
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::Error(format!("cargo could not be started: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let failed = tally.failed;
    for sum in text.lines().filter_map(libtest::sum) {
        tally.passed += sum.passed;
        tally.failed += sum.failed;
        tally.ignored += sum.ignored;
    }
    if !output.status.success() {
        eprintln!("{}", text.trim_end());
        tally.failures.push(title);
        tally.failed = tally.failed.max(failed + 1);
    }
    Ok(())
}

/// As many tests at once as cargo would run. At least two: with one thread, a test's name is
/// printed before it runs, and what it prints comes between the name and the verdict.
fn threads() -> usize {
    let asked = env::var("RUST_TEST_THREADS").ok().and_then(|number| number.parse().ok());
    let processors = || std::thread::available_parallelism().map_or(2, usize::from);
    asked.unwrap_or_else(processors).max(2)
}

#[expect(clippy::disallowed_methods, reason = "times are reported, and decide nothing")]
fn clock() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn the_checks_are_in_order_from_cheap_to_dear() {
        let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
        let cargo = ["clippy", "clippy with a feature", "doc", "doc with a feature"];
        assert_eq!(names, [&["fmt", "tidy", "dependencies"][..], &cargo].concat());
    }

    #[test]
    fn a_title_can_be_pasted_into_a_shell() {
        let title = |name: &str| CHECKS.iter().find(|check| check.name == name).unwrap().title();
        let doc = title("doc");
        assert!(doc.starts_with("RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps --workspace"), "{doc}");
        assert!(title("clippy").ends_with(" -- -D warnings"), "{}", title("clippy"));
        let featured = title("doc with a feature");
        assert!(featured.ends_with("--no-deps --package tenure --features test-util"), "{featured}");
    }

    #[test]
    fn all_crates_are_checked_or_those_that_are_asked_for() {
        let asked = crates(&["tenure-proto".to_string(), "xtask".to_string()]);
        assert_eq!(asked, ["--package", "tenure-proto", "--package", "xtask"]);
        assert_eq!(crates(&[])[0], "--workspace");
        assert_eq!(crates(&[]).contains(&"--exclude".to_string()), !cfg!(target_os = "linux"));
    }

    #[test]
    fn a_command_that_fails_is_named_with_its_exit_code() {
        let mut command = cargo(Path::new("."));
        command.arg("no-such-command").stderr(Stdio::null());
        let failure = finish(command, "`cargo no-such-command`").unwrap_err();
        assert_eq!(failure.code(), 1);
        assert!(
            failure.to_string().starts_with("`cargo no-such-command` failed (exit status: "),
            "{failure}"
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_not_a_failed_check() {
        let failure = finish(std::process::Command::new("no/such/program"), "it").unwrap_err();
        assert_eq!(failure.code(), 2);
    }

    #[test]
    fn a_step_has_its_time_also_if_it_fails() {
        let mut tally = Tally::default();
        let failed = timed("fmt", &mut tally, |_| Err::<(), _>(Failure::Broken("no".to_string())));
        assert!(failed.is_err());
        assert_eq!(tally.steps.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["fmt"]);
    }
}
