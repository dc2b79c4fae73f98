//! The elections of eventual leaders in the catalogue.

use crate::catalogue::{About, Entry, MutantAbout};
use crate::property::Property;
use crate::protocols::eventual::judge::Promises;
use crate::protocols::eventual::mutants::{LEAN, Mutant, OMEGA, Printed, STABLE};
use crate::protocols::eventual::subject::{Eventual, Which};
use crate::simulate::{Fault, Faults, Named};

const SOURCE: &str =
    "Malkhi, Oprea, Zhou: Omega Meets Paxos: Leader Election and Stability without Eventual Timely Links";

/// An election, and its variants.
pub(crate) struct Election {
    about: About,
    which: Which,
    promises: Promises,
    mutants: &'static [Mutant],
}

pub(crate) const OMEGA_BASIC: Election = Election {
    about: About {
        name: "omega",
        model: "one process that with every message reaches some f others in time, not always the same ones; crash and restart",
        promises: "in the end all take the same one for leader",
        source: SOURCE,
    },
    which: Which::Omega,
    promises: Promises::Omega,
    mutants: OMEGA,
};

pub(crate) const OMEGA_LEAN: Election = Election {
    about: About {
        name: "omega-lean",
        model: "as omega",
        promises: "as omega; and once nobody is suspected, 2(n-1) links are used instead of n(n-1)",
        source: SOURCE,
    },
    which: Which::Lean,
    promises: Promises::Omega,
    mutants: LEAN,
};

pub(crate) const OMEGA_STABLE: Election = Election {
    about: About {
        name: "omega-stable",
        model: "as omega, and the bound on round trips is known; clocks with bounded drift",
        promises: "as omega; and at most one takes itself for leader at any instant, by rising epochs, and one with access stays",
        source: SOURCE,
    },
    which: Which::Stable,
    promises: Promises::Stable,
    mutants: STABLE,
};

pub(crate) const LOWEST_ID: Election = Election {
    about: About {
        name: "lowest-id",
        model: "one process that all others always hear in time",
        promises: "in the end the lowest id that is not suspected leads: a baseline",
        source: "folklore; see Chandra and Toueg: Unreliable Failure Detectors",
    },
    which: Which::LowestId,
    promises: Promises::Agreement,
    mutants: &[],
};

pub(crate) const ACCUSATION: Election = Election {
    about: About {
        name: "accusation",
        model: "one process that the same f others always hear in time",
        promises: "in the end the one that was accused least leads: a baseline",
        source: "after Aguilera, Delporte-Gallet, Fauconnier, Toueg: Communication-Efficient Leader Election",
    },
    which: Which::Accusation,
    promises: Promises::Agreement,
    mutants: &[],
};

impl Entry for Election {
    type Subject = Eventual;

    fn about(&self) -> About {
        self.about
    }

    fn sound(&self) -> Eventual {
        Eventual { which: self.which, printed: Printed::Nothing }
    }

    fn mutants(&self) -> Vec<(MutantAbout, Eventual)> {
        let ready = |mutant: &Mutant| {
            let about = MutantAbout { name: mutant.name, says: mutant.says };
            (about, Eventual { which: self.which, printed: mutant.printed })
        };
        self.mutants.iter().map(ready).collect()
    }

    fn properties(&self) -> &'static [Property] {
        self.promises.properties()
    }

    fn home(&self) -> Option<(&'static Named, Faults)> {
        let faults = [Fault::Crash, Fault::Pause, Fault::Clock, Fault::Delay, Fault::Dup];
        let faults = faults.into_iter().fold(Faults::NONE, Faults::with);
        Some((Named::find("moving-set").ok()?, faults))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::catalogue::{Experiment, Seeds, Trial};
    use crate::property::Violation;
    use crate::script;
    use crate::simulate::Setup;
    use crate::sweep::Swept;
    use crate::world::{RealTime, clock::MILLI};

    fn trial(nodes: usize, world: &str, faults: &str, sets: &[(&str, &str)]) -> Trial {
        let setup = Setup {
            nodes,
            quorums: "majority".to_owned(),
            faults: Faults::parse(faults).unwrap(),
            sets: sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            horizon: Some(RealTime(20_000 * MILLI)),
            world: Some(Named::find(world).unwrap()),
        };
        Trial { setup, mutant: None, property: None }
    }

    fn sweep(election: &Election, trial: &Trial, count: u64) -> Swept {
        let seeds = Seeds { first: 0, count, stop_at_first: false, threads: 2 };
        election.sweep(trial, seeds, &|_| {}).unwrap()
    }

    fn holds(election: &Election, trial: &Trial) {
        let swept = sweep(election, trial, 8);
        assert_eq!(swept.violations, [], "{}", election.about.name);
    }

    #[test]
    fn all_three_agree_in_a_moving_set_while_processes_crash_and_pause() {
        for election in [&OMEGA_BASIC, &OMEGA_LEAN, &OMEGA_STABLE] {
            holds(election, &trial(5, "moving-set", "crash,pause,clock,delay,dup", &[]));
        }
    }

    #[test]
    fn restarts_with_and_without_the_registry_are_survived() {
        for election in [&OMEGA_BASIC, &OMEGA_LEAN, &OMEGA_STABLE] {
            let kept = [("restarts", "1"), ("durable", "1"), ("gone", "25")];
            holds(election, &trial(5, "moving-set", "crash,dup", &kept));
            holds(election, &trial(5, "moving-set", "crash", &[("restarts", "2"), ("gone", "25")]));
        }
    }

    #[test]
    fn a_round_that_is_not_known_is_learnt() {
        for election in [&OMEGA_BASIC, &OMEGA_LEAN] {
            holds(election, &trial(3, "moving-set", "crash", &[("learn", "50")]));
        }
        let refused = OMEGA_STABLE.watch(&trial(3, "moving-set", "crash", &[("learn", "50")]), 1);
        assert!(refused.is_err_and(|error| error.to_string().contains("learn must be 0")));
    }

    #[test]
    fn growing_blocks_defeat_learned_timeouts_but_not_omega() {
        let trial = trial(5, "blocks", "none", &[]);
        holds(&OMEGA_BASIC, &trial);
        holds(&OMEGA_STABLE, &trial);
        for election in [&LOWEST_ID, &ACCUSATION] {
            assert!(!sweep(election, &trial, 8).violations.is_empty(), "{}", election.about.name);
        }
    }

    #[test]
    fn a_source_that_nobody_answers_is_enough_for_accusations_and_not_for_omega() {
        let trial = trial(5, "f-source", "none", &[]);
        holds(&ACCUSATION, &trial);
        assert!(!sweep(&OMEGA_BASIC, &trial, 4).violations.is_empty());
    }

    /// These take more seeds than a test has: a saved scenario must show them.
    const RARE: [&str; 7] =
        ["fig1-a6", "fig2-c4", "no-silence", "no-drift", "late-epoch", "ack-before-kept", "learn-unkept"];

    /// The violation in the saved scenario of a mutant, by the mutant or by the sound election.
    fn broken_in_scenario(election: &Election, mutant: &str, plays: Option<&str>) -> Option<Violation> {
        let name = format!("../../scenarios/mutants/{}/{mutant}.scenario", election.about.name);
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
        let text = text.unwrap_or_else(|error| panic!("{mutant}: {error}"));
        let named = script::subject_of(&text).unwrap();
        assert_eq!(named, (election.about.name.to_owned(), Some(mutant.to_owned())));
        election.replay(&text, Some(plays)).unwrap().report.violation
    }

    #[test]
    fn every_wrong_line_that_few_seeds_show_has_a_scenario_that_does() {
        for election in [&OMEGA_BASIC, &OMEGA_LEAN, &OMEGA_STABLE] {
            for mutant in election.mutants.iter().map(|mutant| mutant.name).filter(|it| RARE.contains(it)) {
                assert_ne!(broken_in_scenario(election, mutant, Some(mutant)), None, "{mutant}");
                assert_eq!(broken_in_scenario(election, mutant, None), None, "{mutant}");
            }
        }
    }

    #[test]
    fn every_line_of_the_figures_that_is_wrong_is_noticed() {
        for election in [&OMEGA_BASIC, &OMEGA_LEAN, &OMEGA_STABLE] {
            for mutant in election.mutants.iter().filter(|mutant| !RARE.contains(&mutant.name)) {
                let (world, faults) = Entry::home(election).unwrap();
                let mut trial = trial(5, world.name, "none", &[]);
                trial.setup.faults = faults;
                trial.mutant = Some(mutant.name.to_owned());
                let seeds = Seeds { first: 0, count: 200, stop_at_first: true, threads: 2 };
                let swept = election.sweep(&trial, seeds, &|_| {}).unwrap();
                assert!(!swept.violations.is_empty(), "{}", mutant.name);
            }
        }
    }
}
