//! Weak elections of strong groups: whichever advises, no two lead; and by Omega no link need be
//! timely.

use tenure_lab::catalogue::{Experiment, Seeds, Trial, find};
use tenure_lab::property::Tenure;
use tenure_lab::simulate::{Faults, Named, Setup};
use tenure_lab::world::{RealTime, clock::MILLI};

const OMEGA: &str = "3";
const LOCAL: &str = "4";

fn nerio() -> &'static dyn Experiment {
    find("nerio-drift").expect("it is in the catalogue")
}

fn trial(weak: &str, faults: Faults, world: Option<&str>) -> Trial {
    let world = world.map(|name| Named::find(name).expect("there is such a world"));
    let sets = [("weak", weak), ("witnesses", "0"), ("outsiders", "0")];
    let sets = sets.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let setup = Setup { nodes: 5, quorums: "majority".to_owned(), faults, sets, horizon: None, world };
    Trial { setup, mutant: None, property: None }
}

#[test]
fn by_whichever_weak_election_no_property_is_broken_under_all_faults() {
    for weak in [OMEGA, LOCAL] {
        let seeds = Seeds { first: 0, count: 60, stop_at_first: false, threads: 2 };
        let swept = nerio().sweep(&trial(weak, Faults::all(), None), seeds, &|_| ()).expect("it runs");
        assert_eq!((swept.schedules, &swept.violations[..]), (60, &[][..]), "weak={weak}");
        assert!(swept.counts.get("elections") > 100, "weak={weak}: {:?}", swept.counts);
    }
}

/// For how much of the last quarter of a long run somebody led, in thousandths.
fn led_in_the_end(weak: &str, nodes: usize, seed: u64) -> u64 {
    let mut trial = trial(weak, Faults::NONE, Some("moving-set"));
    trial.setup.nodes = nodes;
    trial.setup.sets.push(("groups".to_owned(), "1".to_owned()));
    trial.setup.horizon = Some(RealTime(160_000 * MILLI));
    let run = nerio().watch(&trial, seed).expect("it runs");
    assert_eq!(run.violation, None, "weak={weak}, {nodes} nodes, seed {seed}");
    let from = run.time.0 / 4 * 3;
    let led = |tenure: &Tenure| tenure.until.0.saturating_sub(tenure.from.0.max(from));
    run.tenures.iter().map(led).sum::<u64>() * 1000 / (run.time.0 - from)
}

/// No link is timely twice running, and a process that is not in luck asks late and binds grantors
/// all the same. Some run takes long to settle: the last four of these seeds are the slowest of 96,
/// and with five nodes seed 72 settles only in the last quarter.
#[test]
fn by_omega_a_strong_group_needs_no_timely_link() {
    for nodes in [3, 5] {
        for seed in (0..8).chain([26, 34, 72, 90]) {
            let led = led_in_the_end(OMEGA, nodes, seed);
            let least = if (nodes, seed) == (5, 72) { 970 } else { 999 };
            assert!(led >= least, "{nodes} nodes, seed {seed}: led for {led} of 1000");
        }
    }
}
