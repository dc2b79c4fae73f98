//! The end of `cargo xtask test`: failures with the command that repeats them, the slowest tests,
//! what was left out and why, and one closing line.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

/// All that is known at the end. Each check, such as formatting, counts as one test.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// Tests that their own source ignores.
    pub(super) ignored: usize,
    /// Things that were left out, counted by kind and reason: `("test", "no tmux")`.
    pub(super) left_out: BTreeMap<(&'static str, String), usize>,
    /// Failures, each with the command that repeats it.
    pub(super) failures: Vec<String>,
    /// The time of each test, with its name.
    pub(super) tests: Vec<(Duration, String)>,
    /// The time of each step.
    pub(super) steps: Vec<(&'static str, Duration)>,
}

impl Tally {
    /// Counts one thing that is left out.
    pub(super) fn leave_out(&mut self, what: &'static str, why: impl Into<String>) {
        *self.left_out.entry((what, why.into())).or_default() += 1;
    }

    fn skipped(&self) -> usize {
        self.ignored + self.left_out.values().sum::<usize>()
    }

    /// The last line: a program can read it.
    pub(super) fn closing(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped())
    }

    /// All lines before the last one.
    pub(super) fn details(&self) -> String {
        let mut text = String::new();
        let mut add = |line: String| {
            let _ = writeln!(text, "{line}"); // Writing to a string cannot fail.
        };
        let slowest = self.slowest();
        if !slowest.is_empty() {
            add(format!("xtask: the {} slowest tests:", slowest.len()));
        }
        for (time, name) in slowest {
            add(format!("  {:>7.1} s  {name}", time.as_secs_f64()));
        }
        if !self.failures.is_empty() {
            add("xtask: failed:".to_string());
        }
        for failure in &self.failures {
            add(format!("  {failure}"));
        }
        add(format!("xtask: times: {}", self.times()));
        if !self.left_out.is_empty() {
            add(format!("xtask: left out: {}", self.reasons()));
        }
        text
    }

    fn slowest(&self) -> Vec<&(Duration, String)> {
        let mut tests: Vec<&(Duration, String)> = self.tests.iter().collect();
        tests.sort_by(|a, b| b.cmp(a));
        tests.truncate(SLOWEST);
        tests
    }

    /// `fmt 0.4 s, tidy 0.0 s; 0.4 s in all`.
    fn times(&self) -> String {
        let each: Vec<String> =
            self.steps.iter().map(|(name, taken)| format!("{name} {:.1} s", taken.as_secs_f64())).collect();
        let total: Duration = self.steps.iter().map(|(_, taken)| *taken).sum();
        format!("{}; {:.1} s in all", each.join(", "), total.as_secs_f64())
    }

    /// `17 tests (no PostgreSQL server), 1 test (no tmux)`.
    fn reasons(&self) -> String {
        let each = self.left_out.iter().map(|((what, why), count)| {
            let plural = if *count == 1 { "" } else { "s" };
            format!("{count} {what}{plural} ({why})")
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_closing_line_counts_what_was_left_out_and_what_is_ignored_as_skipped() {
        let mut tally = Tally { passed: 12, failed: 1, ignored: 1, ..Tally::default() };
        tally.leave_out("test", "no tmux");
        tally.leave_out("check", "no rustfmt");
        assert_eq!(tally.closing(), "12 passed, 1 failed, 3 skipped");
    }

    #[test]
    fn what_was_left_out_is_one_line_with_counts_and_reasons() {
        let mut tally = Tally::default();
        assert!(!tally.details().contains("left out"));
        tally.leave_out("test", "no tmux");
        tally.leave_out("test", "no PostgreSQL server");
        tally.leave_out("test", "no PostgreSQL server");
        let line = "xtask: left out: 2 tests (no PostgreSQL server), 1 test (no tmux)\n";
        assert!(tally.details().ends_with(line), "{}", tally.details());
    }

    #[test]
    fn the_ten_slowest_tests_are_named_slowest_first() {
        let tests = (0..20).map(|number| (seconds(number), format!("t{number}"))).collect();
        let details = Tally { tests, ..Tally::default() }.details();
        let named: Vec<&str> =
            details.lines().filter_map(|line| line.trim().split_once(" s  ")).map(|(_, name)| name).collect();
        assert_eq!(named, ["t19", "t18", "t17", "t16", "t15", "t14", "t13", "t12", "t11", "t10"]);
    }

    #[test]
    fn every_step_has_its_time() {
        let steps = vec![("fmt", Duration::from_millis(1300)), ("tidy", Duration::from_millis(200))];
        let details = Tally { steps, ..Tally::default() }.details();
        assert!(details.contains("xtask: times: fmt 1.3 s, tidy 0.2 s; 1.5 s in all\n"), "{details}");
    }

    #[test]
    fn each_failure_is_named_with_the_command_that_repeats_it() {
        let failures = vec!["cargo test -p tenure --lib -- --exact a::b".to_string()];
        let details = Tally { failures, ..Tally::default() }.details();
        assert!(
            details.contains("xtask: failed:\n  cargo test -p tenure --lib -- --exact a::b\n"),
            "{details}"
        );
    }
}
