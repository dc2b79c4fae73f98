//! `cargo xtask test`: every check, cheapest first, up to the first that fails.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::{cargo, finish, tidy};

/// One check: the name it has in the summary, and what it does.
struct Step {
    name: &'static str,
    action: Action,
}

enum Action {
    /// A cargo command, with one environment variable where it needs it.
    Cargo { arguments: &'static [&'static str], environment: Option<(&'static str, &'static str)> },
    /// Our own rules, in this process.
    Tidy,
    /// `cargo deny check`: skipped, and said so, on a machine that has no cargo-deny or cannot fetch the advisories.
    Deny,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", action: plain(&["fmt", "--all", "--check"]) },
    Step { name: "tidy", action: Action::Tidy },
    Step {
        name: "clippy",
        action: plain(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    },
    Step {
        name: "doc",
        action: Action::Cargo {
            arguments: &["doc", "--workspace", "--no-deps"],
            environment: Some(("RUSTDOCFLAGS", "-D warnings")),
        },
    },
    // Unit, integration and documentation tests: without a target, cargo runs all three.
    Step { name: "test", action: plain(&["test", "--workspace", "--no-fail-fast"]) },
    Step { name: "deny", action: Action::Deny },
];

/// How a step ended, when it did not fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// All of it but this.
    PassedWithout(&'static str),
    Skipped,
}

/// What became of a step: its name, the time it took, and how it ended (`None`: it failed).
type Taken = (&'static str, Duration, Option<Outcome>);

/// Runs the steps in order, and says at the end how long each took.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let mut times: Vec<Taken> = Vec::new();
    for (index, step) in STEPS.iter().enumerate() {
        eprintln!("xtask: [{}/{}] {}", index + 1, STEPS.len(), step.title());
        let start = clock();
        let outcome = step.run(root);
        let taken = clock().duration_since(start);
        times.push((step.name, taken, outcome.as_ref().ok().copied()));
        if let Err(failure) = outcome {
            eprintln!("xtask: {}", summary(&times));
            return Err(failure);
        }
    }
    eprintln!("xtask: all checks passed; {}", summary(&times));
    Ok(())
}

impl Step {
    /// The command line that does the same by hand.
    fn title(&self) -> String {
        match &self.action {
            Action::Cargo { arguments, environment: None } => format!("cargo {}", arguments.join(" ")),
            Action::Cargo { arguments, environment: Some((key, value)) } => {
                format!("{key}=\"{value}\" cargo {}", arguments.join(" "))
            }
            Action::Tidy => "cargo xtask tidy".to_string(),
            Action::Deny => "cargo deny check".to_string(),
        }
    }

    fn run(&self, root: &Path) -> Result<Outcome, Failure> {
        match &self.action {
            Action::Cargo { arguments, environment } => {
                let mut command = cargo(root);
                command.args(*arguments).envs(*environment);
                finish(command, &format!("`{}`", self.title()))?;
            }
            Action::Tidy => tidy::run(root)?,
            Action::Deny => return deny(root),
        }
        Ok(Outcome::Passed)
    }
}

/// Asks cargo-deny. What this machine lacks (the program, a network) is said, and is not a fault of the code.
fn deny(root: &Path) -> Result<Outcome, Failure> {
    if !succeeds_silently(root, &["deny", "--version"]) {
        eprintln!("xtask: skipped: cargo-deny is not installed (cargo install cargo-deny --locked)");
        return Ok(Outcome::Skipped);
    }
    let mut command = cargo(root);
    command.args(["deny", "check"]);
    if succeeds_silently(root, &["deny", "fetch", "db"]) {
        finish(command, "`cargo deny check`")?;
        return Ok(Outcome::Passed);
    }
    eprintln!("xtask: advisories skipped: their database cannot be fetched (see `cargo deny fetch db`)");
    command.args(["bans", "licenses", "sources"]);
    finish(command, "`cargo deny check bans licenses sources`")?;
    Ok(Outcome::PassedWithout("advisories"))
}

fn succeeds_silently(root: &Path, arguments: &[&str]) -> bool {
    let mut command = cargo(root);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// `fmt 0.4 s, tidy 0.0 s, deny skipped; 0.4 s in all`.
fn summary(times: &[Taken]) -> String {
    let describe = |(name, taken, outcome): &Taken| {
        let seconds = taken.as_secs_f64();
        match outcome {
            Some(Outcome::Passed) => format!("{name} {seconds:.1} s"),
            Some(Outcome::PassedWithout(what)) => format!("{name} (without {what}) {seconds:.1} s"),
            Some(Outcome::Skipped) => format!("{name} skipped"),
            None => format!("{name} FAILED after {seconds:.1} s"),
        }
    };
    let each: Vec<String> = times.iter().map(describe).collect();
    let total: Duration = times.iter().map(|(_, taken, _)| *taken).sum();
    format!("{}; {:.1} s in all", each.join(", "), total.as_secs_f64())
}

const fn plain(arguments: &'static [&'static str]) -> Action {
    Action::Cargo { arguments, environment: None }
}

#[expect(clippy::disallowed_methods, reason = "the time that a step takes is reported, and decides nothing")]
fn clock() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_in_order_from_cheap_to_dear() {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names, ["fmt", "tidy", "clippy", "doc", "test", "deny"]);
    }

    #[test]
    fn a_title_can_be_pasted_into_a_shell() {
        let doc = STEPS.iter().find(|step| step.name == "doc").unwrap();
        assert_eq!(doc.title(), "RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --no-deps");
    }

    #[test]
    fn the_summary_tells_passed_skipped_and_failed_apart() {
        let ms = Duration::from_millis;
        let times = [("fmt", ms(1300), Some(Outcome::Passed)), ("deny", ms(0), Some(Outcome::Skipped))];
        assert_eq!(summary(&times), "fmt 1.3 s, deny skipped; 1.3 s in all");
        let times = [("deny", ms(200), Some(Outcome::PassedWithout("advisories")))];
        assert_eq!(summary(&times), "deny (without advisories) 0.2 s; 0.2 s in all");
        assert_eq!(summary(&[("fmt", ms(0), None)]), "fmt FAILED after 0.0 s; 0.0 s in all");
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
}
