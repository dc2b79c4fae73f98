//! Benchmarks that can be trusted on any machine: each compares with a named baseline in the same
//! run, and what it prints to be remembered is the ratio.

use std::env;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::{cargo, finish, suggest};

/// One benchmark: what it measures, against what, and the cargo command that does it.
struct Benchmark {
    name: &'static str,
    measures: &'static str,
    baseline: &'static str,
    command: &'static [&'static str],
    /// Commands that follow it.
    then: &'static [Step],
}

/// A cargo command after a benchmark.
struct Step {
    command: &'static [&'static str],
    /// Further words if `--out FOLDER` was given; the folder stands for [`FOLDER`] in them.
    kept: &'static [&'static str],
    /// Whether it has anything to do otherwise.
    always: bool,
}

const FOLDER: &str = "FOLDER";

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "lab",
        measures: "simulated events a second, properties off and on",
        baseline: "a bare queue loop",
        command: &["run", "--release", "--package", "tenure-cli", "--", "lab", "bench"],
        then: &[],
    },
    Benchmark {
        name: "guard",
        measures: "is_leader(), edict(), campaign(), and an idle group",
        baseline: "a bare clock reading and a bare quorum round",
        command: &["bench", "--package", "tenure", "--bench", "guard", "--"],
        then: &[],
    },
    Benchmark {
        name: "local",
        measures: "a local leader's rounds for 1 to 8 processes, direct and along a tree (simulated up to 64), and the time to a leader after splits",
        baseline: "what Fetzer and Cristian measured in 1999, and the bound kappa",
        command: &["bench", "--package", "tenure", "--bench", "local", "--"],
        then: &[
            Step {
                command: &["run", "--release", "--package", "tenure-cli", "--", "lab", "race", "local"],
                kept: &["--svg", "FOLDER/local-collated.svg"],
                always: true,
            },
            Step {
                command: &["run", "--release", "--package", "tenure-lab", "--example", "local_plots", "--"],
                kept: &[FOLDER],
                always: false,
            },
        ],
    },
    Benchmark {
        name: "log",
        measures: "durable writes a second of a log of one member, for 1, 8 and 64 clients",
        baseline: "redb and a bare file on the same disk",
        command: &["bench", "--package", "tenure", "--bench", "log", "--"],
        then: &[],
    },
    Benchmark {
        name: "groups",
        measures: "10,000 groups on three members, held for a minute and taken over after kill -9: datagrams, CPU, memory, times",
        baseline: "the bound that the lease sets",
        command: &["run", "--release", "--package", "tenure", "--example", "many_groups", "--"],
        then: &[],
    },
];

/// Runs the benchmark that the first argument names and passes the others on; without arguments,
/// lists them.
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
    let (root, title) = (root()?, format!("benchmark `{name}`"));
    let here = env::current_dir().unwrap_or_else(|_| root.clone());
    let rest = from_here(passed_on(rest), &here);
    let mut command = cargo(&root);
    command.args(benchmark.command).args(&rest);
    finish(command, &title)?;
    if rest.iter().any(|argument| argument == "--help" || argument == "-h") {
        return Ok(());
    }
    for step in benchmark.then.iter().filter(|step| step.always || folder(&rest).is_some()) {
        let mut command = cargo(&root);
        command.args(words(step, folder(&rest)));
        finish(command, &title)?;
    }
    Ok(())
}

/// Benchmarks run in folders of their own: the folder for what is kept is named from ours.
fn from_here(rest: &[String], here: &Path) -> Vec<String> {
    let mut rest = rest.to_vec();
    if let Some(folder) = rest.iter().position(|argument| argument == "--out").map(|at| at + 1)
        && let Some(folder) = rest.get_mut(folder)
    {
        *folder = here.join(&*folder).display().to_string();
    }
    rest
}

/// Where things are kept, if they are.
fn folder(rest: &[String]) -> Option<&str> {
    let at = rest.iter().position(|argument| argument == "--out")?;
    rest.get(at + 1).map(String::as_str)
}

/// The command of a step.
fn words(step: &Step, folder: Option<&str>) -> Vec<String> {
    let mut words: Vec<String> = step.command.iter().map(ToString::to_string).collect();
    words.extend(folder.into_iter().flat_map(|name| step.kept.iter().map(|word| word.replace(FOLDER, name))));
    words
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

    #[test]
    fn what_is_kept_is_kept_in_the_folder_that_is_named_from_here() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        let rest = from_here(&words("rounds 10 --out figures"), Path::new("/home/me"));
        assert_eq!(rest, words("rounds 10 --out /home/me/figures"));
        assert_eq!(from_here(&words("--out /var/figures"), Path::new("/home/me"))[1], "/var/figures");
        assert_eq!(folder(&rest), Some("/home/me/figures"));
        assert_eq!(folder(&words("rounds 10 --out")), None);
    }

    #[test]
    fn local_is_followed_by_its_simulation_and_by_pictures_if_they_are_kept() {
        let local = BENCHMARKS.iter().find(|benchmark| benchmark.name == "local").unwrap();
        let [race, plots] = local.then else { panic!("two steps") };
        assert!(race.always && !plots.always);
        assert!(words(race, None).ends_with(&["race".to_owned(), "local".to_owned()]));
        assert_eq!(words(race, Some("/f")).last().unwrap(), "/f/local-collated.svg");
        assert_eq!(words(plots, Some("/f")).last().unwrap(), "/f");
    }
}
