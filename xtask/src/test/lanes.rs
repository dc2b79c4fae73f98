//! The order in which test programs run, and which of them run side by side.
//!
//! Most programs that start real nodes wait for most of their time: for leases to end, for
//! elections. Two of those side by side take half the time and leave the processor as idle as
//! before. Which do is measured: `xtask/quiet.txt` names them. All others run alone. Programs that
//! run at once never draw the same port (`crates/tenure-testkit/src/ports.rs`).

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::program::Program;
use super::report::Tally;
use super::run::Plan;
use crate::failure::Failure;

const PATH: &str = "xtask/quiet.txt";
const QUIET: &str = include_str!("../../quiet.txt");

/// Runs all plans, and adds up what became of them.
pub(super) fn run(plans: Vec<Plan>, logs: &Path, threads: usize, tally: &mut Tally) -> Result<(), Failure> {
    let (alone, quiet) = divide(plans, QUIET);
    let tally = Mutex::new(tally);
    run_lane(&Mutex::new(alone), logs, threads, &tally)?;
    let quiet = Mutex::new(quiet);
    thread::scope(|scope| {
        let second = scope.spawn(|| run_lane(&quiet, logs, threads, &tally));
        let first = run_lane(&quiet, logs, threads, &tally);
        let second = second.join();
        first.and(second.unwrap_or_else(|_| Err(Failure::Error("a lane ended early".into()))))
    })
}

/// Takes plans until none is left.
fn run_lane(
    plans: &Mutex<VecDeque<Plan>>,
    logs: &Path,
    threads: usize,
    tally: &Mutex<&mut Tally>,
) -> Result<(), Failure> {
    let next = || plans.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(plan) = next() {
        let done = plan.run(logs, threads)?;
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        done.tell();
        tally.add(&done);
    }
    Ok(())
}

/// Programs that run alone, in their order; and quiet ones, in the order of the list.
fn divide(plans: Vec<Plan>, list: &str) -> (VecDeque<Plan>, VecDeque<Plan>) {
    let place = |plan: &Plan| quiet(list).position(|line| line == name(&plan.program));
    let (mut quiet, alone): (Vec<Plan>, Vec<Plan>) =
        plans.into_iter().partition(|plan| place(plan).is_some());
    quiet.sort_by_key(place);
    (alone.into(), quiet.into())
}

fn quiet(list: &str) -> impl Iterator<Item = &str> {
    list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn name(program: &Program) -> String {
    format!("{} {}", program.package, program.short())
}

/// Lines of the list that name no program.
pub(super) fn stale(programs: &[Program]) -> Result<(), Failure> {
    let known = |line: &&str| programs.iter().any(|program| name(program) == *line);
    let stale: Vec<&str> = quiet(QUIET).filter(|line| !known(line)).collect();
    if stale.is_empty() {
        return Ok(());
    }
    Err(Failure::Broken(format!("{PATH}: no test program: {}", stale.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::program::Kind;
    use std::path::PathBuf;

    fn plan(name: &str) -> Plan {
        let (package, name) = ("tenure".to_string(), name.to_string());
        let program =
            Program { folder: PathBuf::new(), package, kind: Kind::Test, name, path: PathBuf::new() };
        Plan { program, tests: Vec::new(), all: true }
    }

    #[test]
    fn only_programs_of_the_list_run_side_by_side_in_its_order() {
        let plans = ["a", "b", "c", "d"].map(plan).into();
        let (alone, quiet) = divide(plans, "# slowest first\n\ntenure d\ntenure b\ntenure-cli c\n");
        let names =
            |plans: VecDeque<Plan>| plans.into_iter().map(|plan| plan.program.name).collect::<Vec<_>>();
        assert_eq!(names(alone), ["a", "c"]);
        assert_eq!(names(quiet), ["d", "b"]);
    }

    #[test]
    fn a_line_that_names_no_program_is_found() {
        let first = quiet(QUIET).next().unwrap();
        let failure = stale(&[plan("no-such-program").program]).unwrap_err();
        assert!(failure.to_string().contains(first), "{failure}");
    }
}
