//! `tenure lab`: the laboratory.

mod adversary;
mod audit;
mod bench;
mod check;
mod check_history;
mod list;
mod mutants;
mod options;
mod race;
mod replay;
mod report;
mod rings;
mod run;
mod sweep;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::output::{Answer, Format};

/// The laboratory: every protocol with drifting clocks and every fault, judged, repeatable, drawn.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab list nerio-drift                                    properties, constants, mutants
  tenure lab run nerio-drift --seed 7 --html run.html            one run, drawn
  tenure lab sweep nerio-drift --seeds 10000                     many runs, on all cores
  tenure lab sweep nerio-drift --seeds 10000 --mutant swap-rho   one rule broken on purpose
  tenure lab check nerio-drift --scope two                       every state of a small scope
  tenure lab replay nerio-drift-swap-rho-17.scenario             what that found, repeated
  tenure lab race election                                       how long elections take
  tenure lab run clockwise --nodes 1024 --order worst            an election on a ring, counted
  tenure lab race --all --svg race.svg                           all ring algorithms, on one slide
  tenure lab adversary peterson --nodes 1024                     the lower bound, executed
  tenure lab audit traces/*.trace                                what real nodes did, judged

Exit codes: 0 it holds, 1 a property is broken or a mutant survives, 2 error.")]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the protocols: what they assume, what they promise, where they come from
    List(list::List),
    /// Run one seed: verdict, leader, counts, drawings
    Run(Box<run::Run>),
    /// Run many seeds on all cores; the first violation is made small and saved
    Sweep(Box<sweep::Sweep>),
    /// Walk every reachable state of a small scope; the shortest way to a violation is saved
    Check(Box<check::Check>),
    /// Repeat a trace or a scenario
    Replay(replay::Replay),
    /// Judge the traces of real nodes by the same properties
    Audit(audit::Audit),
    /// Judge what the clients of a key-value store saw: is there one order that explains it?
    CheckHistory(check_history::CheckHistory),
    /// Try known-wrong variants: does a property notice each of them?
    Mutants(Box<mutants::Mutants>),
    /// Compare protocols, or parts of them, in tables and plots: rings, election, detectors,
    /// blocking
    Race(Box<race::Race>),
    /// Attack a uniform ring algorithm with the schedule of the lower bound
    Adversary(adversary::Adversary),
    /// Measure how quickly the laboratory works, on one core
    Bench(bench::Bench),
}

impl Lab {
    /// Does what was asked for.
    pub(crate) fn run(self, format: Format) -> Result<Answer, Failure> {
        match self.command {
            Command::List(list) => list.run(format),
            Command::Run(run) => run.run(format),
            Command::Sweep(sweep) => sweep.run(format),
            Command::Check(check) => check.run(format),
            Command::Replay(replay) => replay.run(format),
            Command::Audit(audit) => audit.run(format),
            Command::CheckHistory(check) => check.run(format),
            Command::Mutants(mutants) => mutants.run(format),
            Command::Race(race) => race.run(format),
            Command::Adversary(adversary) => adversary.run(format),
            Command::Bench(bench) => bench.run(format),
        }
    }
}
