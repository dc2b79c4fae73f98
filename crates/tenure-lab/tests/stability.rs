//! Leader Stability (section 8): in a calm world the first leader stays, after faults the one that
//! it settled on, and every change is noticed.

use tenure_lab::catalogue::{Experiment, Replay, Report, Trial, find};
use tenure_lab::property::{Kind, Status};
use tenure_lab::simulate::{Faults, Setup};
use tenure_lab::subject::constants::parse_time;
use tenure_lab::world::RealTime;

fn nerio() -> &'static dyn Experiment {
    find("nerio-drift").expect("it is in the catalogue")
}

fn trial(nodes: usize, faults: Faults, horizon: &str) -> Trial {
    let sets = [("lease", "200ms"), ("longest-lease", "200ms")];
    let sets = sets.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let horizon = parse_time(horizon);
    let setup = Setup { nodes, quorums: "majority".to_owned(), faults, sets, horizon, world: None };
    Trial { setup, mutant: None, property: None }
}

fn stays(report: &Report) -> bool {
    let eventually = report.properties.iter().filter(|(property, _)| property.kind == Kind::Eventually);
    eventually.map(|(_, status)| *status).all(|status| status == Status::Holds)
}

#[test]
fn a_calm_group_keeps_its_first_leader_for_a_thousand_leases_at_two_datagrams_a_renewal_and_other_node() {
    for nodes in [3, 5] {
        let mut trial = trial(nodes, Faults::NONE, "200s");
        trial.setup.sets.push(("groups".to_owned(), "1".to_owned()));
        let report = nerio().watch(&trial, 1).expect("it runs");
        let calm = report.calm.expect("the time came in which a leader must stay");
        assert_eq!((calm.from, calm.changes), (RealTime(2_000_000_000), 0));
        assert!(stays(&report) && report.counts.get("elections") == 1 && report.tenures.len() == 1);
        assert!(calm.renewals >= 2 * 990, "{calm:?}");
        // The renewal at either end may be counted in part.
        let steady = 2 * (nodes as u64 - 1);
        assert!(calm.messages.abs_diff(steady * calm.renewals) <= steady, "{calm:?}");
    }
}

#[test]
fn after_all_faults_have_healed_no_leader_changes_any_more() {
    let mut owed = 0;
    for seed in 0..20 {
        let report = nerio().watch(&trial(5, Faults::all(), "60s"), seed).expect("it runs");
        let Some(calm) = report.calm else { continue }; // Too many disks were lost: nothing is owed.
        assert!(stays(&report) && calm.changes == 0, "seed {seed}: {:?}", report.violation);
        assert!(calm.renewals >= 400, "seed {seed}: {calm:?}");
        owed += 1;
    }
    assert!(owed >= 15, "in most runs a quorum is left: {owed} of 20");
}

#[test]
fn a_run_that_is_not_recorded_is_the_same_run() {
    for seed in 0..5 {
        let trial = trial(5, Faults::all(), "10s");
        let (recorded, watched) = (nerio().run(&trial, seed).unwrap(), nerio().watch(&trial, seed).unwrap());
        assert_eq!((&watched.trace, watched.picture.bars.len()), (&String::new(), 0));
        assert!(!recorded.trace.is_empty() && !recorded.picture.bars.is_empty());
        assert_eq!((recorded.events, &recorded.counts), (watched.events, &watched.counts), "seed {seed}");
        assert_eq!((&recorded.messages, &recorded.title), (&watched.messages, &watched.title), "seed {seed}");
        assert_eq!((&recorded.tenures, recorded.calm), (&watched.tenures, watched.calm), "seed {seed}");
        assert_eq!(recorded.properties, watched.properties, "seed {seed}");
    }
}

/// A calm play of two groups from which a leader is owed at 2 s.
fn perform(expect: &str, line: &str) -> Replay {
    let set = "drift=1000ppm tick=0.000001ms lease=200ms longest-lease=200ms window=60ms retry=20ms block=4";
    let head = format!("tenure play 1\nprotocol nerio-drift\nnodes 3\nset {set} groups=2\nheals at 0ms\n");
    let text = format!("{head}expect {expect}\nends at 5s\n\n0ms everyone campaigns\n{line}\n");
    nerio().replay(&text, None).expect("it can be performed")
}

#[test]
fn a_leader_that_leaves_after_it_had_settled_breaks_the_property_at_that_instant() {
    let leads = perform("holds", "").report.tenures;
    let [leader] = leads.as_slice() else { panic!("one leader: {leads:?}") };
    let other = (leader.node.0 + 1) % 3;
    for line in [
        format!("3s n{} is told: resign g0", leader.node.0),
        format!("3s n{} crashes", leader.node.0),
        format!("3s n{} is told: transfer g0 to n{other}", leader.node.0),
    ] {
        let replay = perform("broken leader-stays", &line);
        let at = replay.report.violation.as_ref().map_or(RealTime(0), |violation| violation.at);
        assert!(replay.as_expected && at >= RealTime(3_000_000_000), "{line}: {}", replay.came);
        assert!(at <= RealTime(3_020_000_000), "{line}: {}", replay.came);
        assert_eq!(replay.report.calm.map(|calm| calm.changes > 0), Some(true), "{line}");
    }
}

#[test]
fn a_leader_of_another_group_must_stay_too() {
    let everyone = "3s n0 is told: resign g1\n3s n1 is told: resign g1\n3s n2 is told: resign g1";
    assert!(perform("broken leader-stays", everyone).as_expected);
}

#[test]
fn a_change_before_the_settling_breaks_nothing() {
    let leads = perform("holds", "").report.tenures;
    let line = format!("1s n{} crashes", leads[0].node.0);
    let replay = perform("holds", &line);
    assert!(replay.as_expected, "{}", replay.came);
    assert_eq!(replay.report.calm.map(|calm| calm.changes), Some(0));
    assert!(replay.report.tenures.len() == 2, "{:?}", replay.report.tenures);
}
