//! Reads the output of a test program line by line: which test passed, how long each took.
//!
//! Rust's stable test harness prints no times. It starts tests in the order of its list, as many at
//! once as it has threads, and prints a line when one ends; then it starts the next. So a test
//! began when the line came that made room for it. Times serve the report alone: a verdict never
//! depends on them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The result of one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    Ignored,
}

/// The numbers of a program, from its last line or from what was seen of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) ignored: usize,
}

/// Follows one run of a test program.
#[derive(Debug)]
pub(super) struct Listener {
    waiting: VecDeque<String>,
    /// Tests that run, and when they began.
    running: BTreeMap<String, Duration>,
    finished: Vec<(String, Duration)>,
    failed: Vec<String>,
    counts: Counts,
    /// The program's own sum, which counts more than the lines that were understood.
    sum: Option<Counts>,
}

impl Listener {
    /// `names` are the tests in the order of the program's list.
    pub(super) fn new(names: &[String], threads: usize) -> Listener {
        let mut waiting: VecDeque<String> = names.iter().cloned().collect();
        let first = waiting.drain(..threads.max(1).min(names.len()));
        let running = first.map(|name| (name, Duration::ZERO)).collect();
        let (finished, failed) = (Vec::new(), Vec::new());
        Listener { waiting, running, finished, failed, counts: Counts::default(), sum: None }
    }

    /// One line, and the time since the program was started.
    pub(super) fn hear(&mut self, line: &str, at: Duration) {
        if let Some(sum) = sum(line) {
            self.sum = Some(sum);
            return;
        }
        // A process that a test has started may have written the beginning of this line.
        let said = self.running.keys().find_map(|name| Some((name.clone(), verdict(line, name)?)));
        let Some((name, verdict)) = said else { return };
        let began = self.running.remove(&name).unwrap_or(at);
        if let Some(next) = self.waiting.pop_front() {
            self.running.insert(next, at);
        }
        match verdict {
            Verdict::Passed => self.counts.passed += 1,
            Verdict::Ignored => self.counts.ignored += 1,
            Verdict::Failed => {
                self.counts.failed += 1;
                self.failed.push(name.clone());
            }
        }
        self.finished.push((name, at.saturating_sub(began)));
    }

    /// The end of the program, and the time since its start.
    ///
    /// A program that died before it printed its sum has failed in the tests that ran; those that
    /// waited did not run, and count as failed too. One that succeeded without a sum has a harness
    /// of its own, and its exit code speaks for all its tests.
    pub(super) fn end(mut self, succeeded: bool, at: Duration) -> Heard {
        let mut counts = self.sum.unwrap_or(self.counts);
        if self.sum.is_none() && succeeded {
            counts.passed += self.running.len() + self.waiting.len();
            self.finished.extend(self.running.into_iter().map(|(name, began)| (name, at - began)));
        } else if self.sum.is_none() {
            counts.failed += self.running.len() + self.waiting.len();
            self.failed.extend(self.running.into_keys().chain(self.waiting));
        }
        if !succeeded && counts.failed == 0 {
            counts.failed = 1;
        }
        Heard { counts, times: self.finished, failed: self.failed }
    }
}

/// The results of a program that has ended.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) counts: Counts,
    /// The time of each test that ended.
    pub(super) times: Vec<(String, Duration)>,
    /// The names of those that failed.
    pub(super) failed: Vec<String>,
}

/// The verdict of a line on a test: `test a::b ... ok`, or `test a::b - should panic ... ok`.
fn verdict(line: &str, name: &str) -> Option<Verdict> {
    let (_, rest) = line.split_once(&format!("test {name} "))?;
    let said = rest.strip_prefix("- should panic ").unwrap_or(rest).strip_prefix("... ")?;
    match said.split([',', ' ']).next()? {
        "ok" => Some(Verdict::Passed),
        "FAILED" => Some(Verdict::Failed),
        "ignored" => Some(Verdict::Ignored),
        _ => None,
    }
}

/// `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s`.
pub(super) fn sum(line: &str) -> Option<Counts> {
    let (_, rest) = line.split_once("test result: ")?;
    let number = |word: &str| {
        let (before, _) = rest.split_once(&format!(" {word};"))?;
        before.rsplit(' ').next()?.parse().ok()
    };
    Some(Counts { passed: number("passed")?, failed: number("failed")?, ignored: number("ignored")? })
}

/// The part of a program's output that tells of failures: what failing tests printed.
pub(super) fn failures(output: &str) -> &str {
    output.find("\nfailures:\n").map_or(output, |at| &output[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_test_began_when_the_one_ended_that_made_room_for_it() {
        let mut listener = Listener::new(&names(&["a", "b", "c", "d"]), 2);
        for (line, at) in
            [("test b ... ok", 10), ("test c ... FAILED", 40), ("test a ... ok", 100), ("test d ... ok", 105)]
        {
            listener.hear(line, MS(at));
        }
        let heard = listener.end(false, MS(200));
        let times: Vec<(&str, Duration)> = heard.times.iter().map(|(name, time)| (&**name, *time)).collect();
        assert_eq!(times, [("b", MS(10)), ("c", MS(30)), ("a", MS(100)), ("d", MS(65))]);
        assert_eq!(heard.failed, ["c"]);
    }

    #[test]
    fn lines_are_understood_beside_what_other_processes_write() {
        for (line, said) in [
            ("test m::a ... ok", Some(Verdict::Passed)),
            ("child: no newlinetest m::a ... ok", Some(Verdict::Passed)),
            ("test m::a - should panic ... ok", Some(Verdict::Passed)),
            ("test m::a ... ignored, needs root", Some(Verdict::Ignored)),
            ("test m::a ... FAILED", Some(Verdict::Failed)),
            ("test m::a has been running for over 60 seconds", None),
            ("test m::a_b ... ok", None),
            ("m::a ... ok", None),
        ] {
            assert_eq!(verdict(line, "m::a"), said, "{line}");
        }
    }

    #[test]
    fn the_programs_own_sum_counts_more_than_what_was_understood() {
        let mut listener = Listener::new(&names(&["a", "b"]), 2);
        listener.hear("test a ... ok", MS(1));
        listener.hear("test b ... garbled", MS(2));
        let line =
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        listener.hear(line, MS(3));
        assert_eq!(listener.end(true, MS(200)).counts, Counts { passed: 2, failed: 0, ignored: 0 });
    }

    #[test]
    fn a_program_that_dies_has_failed_in_all_that_did_not_end() {
        let mut listener = Listener::new(&names(&["a", "b", "c"]), 1);
        listener.hear("test a ... ok", MS(1));
        let heard = listener.end(false, MS(200));
        assert_eq!(heard.counts, Counts { passed: 1, failed: 2, ignored: 0 });
        assert_eq!(heard.failed, ["b", "c"]);
    }

    #[test]
    fn a_program_with_a_harness_of_its_own_is_judged_by_its_exit_code() {
        let heard = Listener::new(&names(&["torture"]), 2).end(true, MS(70));
        assert_eq!(heard.counts, Counts { passed: 1, failed: 0, ignored: 0 });
        assert_eq!(heard.times, [("torture".to_string(), MS(70))]);
        let heard = Listener::new(&names(&["torture"]), 2).end(false, MS(70));
        assert_eq!(heard.failed, ["torture"]);
    }

    #[test]
    fn an_exit_code_that_says_no_is_a_failure_whatever_was_printed() {
        let mut listener = Listener::new(&names(&["a"]), 1);
        listener.hear("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured", MS(1));
        assert_eq!(listener.end(false, MS(200)).counts.failed, 1);
    }

    #[test]
    fn failures_are_shown_from_their_heading_on() {
        let output = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\npanicked\n";
        assert!(failures(output).starts_with("failures:\n\n---- a"), "{}", failures(output));
        assert_eq!(failures("Segmentation fault"), "Segmentation fault");
    }
}
