//! Benchmarks that can be trusted on any machine: each compares with a named baseline in the same run, and what it prints
//! to be remembered is the ratio.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::{cargo, finish, suggest};

/// One benchmark: what it measures, against what, and the cargo command that does it.
struct Benchmark {
    name: &'static str,
    measures: &'static str,
    baseline: &'static str,
    command: &'static [&'static str],
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "lab",
        measures: "simulated events a second, properties off and on",
        baseline: "a bare queue loop",
        command: &["run", "--release", "--package", "tenure-cli", "--", "lab", "bench"],
    },
    Benchmark {
        name: "guard",
        measures: "is_leader(), edict(), campaign(), and an idle group",
        baseline: "a bare clock reading and a bare quorum round",
        command: &["bench", "--package", "tenure", "--bench", "guard", "--"],
    },
    Benchmark {
        name: "local",
        measures: "a local leader's rounds for 1 to 8 processes, direct and along a tree, and the time to a leader after splits",
        baseline: "what Fetzer and Cristian measured in 1999, and the bound kappa",
        command: &["bench", "--package", "tenure", "--bench", "local", "--"],
    },
    Benchmark {
        name: "groups",
        measures: "10,000 groups on three members, held for a minute and taken over after kill -9: datagrams, CPU, memory, times",
        baseline: "the bound that the lease sets",
        command: &["run", "--release", "--package", "tenure", "--example", "many_groups", "--"],
    },
];

/// Runs the benchmark that the first argument names and passes the others on; without arguments, lists them.
pub(crate) fn run(
    arguments: &[String],
    root: impl FnOnce() -> Result<PathBuf, Failure>,
) -> Result<(), Failure> {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", list());
        return Ok(());
    };
    let Some(benchmark) = BENCHMARKS.iter().find(|benchmark| benchmark.name == name) else {
        return Err(unknown(name));
    };
    eprintln!("xtask: bench {name}: {}; baseline: {}", benchmark.measures, benchmark.baseline);
    let mut command = cargo(&root()?);
    command.args(benchmark.command).args(passed_on(rest));
    finish(command, &format!("benchmark `{name}`"))
}

/// One leading `--` only ends our own arguments: it is not the benchmark's.
fn passed_on(rest: &[String]) -> &[String] {
    match rest.split_first() {
        Some((first, others)) if first == "--" => others,
        _ => rest,
    }
}

fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
    Failure::Error(format!(
        "no benchmark `{name}`.{} There are:\n{}",
        suggest::did_you_mean(name, &known),
        list().trim_end()
    ))
}

fn list() -> String {
    let line = |benchmark: &Benchmark| {
        format!("  {:<8} {}, against {}\n", benchmark.name, benchmark.measures, benchmark.baseline)
    };
    BENCHMARKS.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_is_listed_with_its_baseline() {
        let list = list();
        for benchmark in BENCHMARKS {
            assert!(list.contains(benchmark.name), "{list}");
            assert!(list.contains(benchmark.baseline), "{list}");
        }
    }

    #[test]
    fn arguments_are_passed_on_without_the_separator() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        assert_eq!(passed_on(&words("--nodes 7")), words("--nodes 7"));
        assert_eq!(passed_on(&words("-- --nodes 7")), words("--nodes 7"));
        assert_eq!(passed_on(&[]), Vec::<String>::new());
    }
}
