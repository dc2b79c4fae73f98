//! The log under each Omega: what it bears, how soon it commits, and what its leaders cost.

use tenure_lab::catalogue::{Seeds, Trial, find};
use tenure_lab::protocols::log::race::{ELECTIONS, Options, run};
use tenure_lab::race::{Cell, Race};
use tenure_lab::simulate::{Fault, Faults, Named, Setup};
use tenure_lab::sweep::Swept;

fn moving_set() -> &'static Named {
    Named::find("moving-set").expect("there is such a world")
}

fn sweep(
    nodes: usize,
    election: &str,
    (world, faults): (Option<&'static Named>, Faults),
    count: u64,
) -> Swept {
    let sets = vec![("election".to_owned(), election.to_owned())];
    let setup = Setup { nodes, quorums: "majority".to_owned(), faults, sets, horizon: None, world };
    let trial = Trial { setup, mutant: None, property: None };
    let seeds = Seeds { first: 0, count, stop_at_first: true, threads: 2 };
    find("paxos").expect("it is in the catalogue").sweep(&trial, seeds, &|_| ()).expect("the setup is right")
}

#[test]
fn each_omega_drives_the_log_through_every_fault() {
    for election in ELECTIONS {
        for nodes in [3, 5] {
            let swept = sweep(nodes, election, (None, Faults::all()), 25);
            assert_eq!(swept.violations, [], "{nodes} members, {election}");
            assert!(swept.counts.get("chosen") > 1000, "{nodes} members, {election}");
        }
    }
}

#[test]
fn who_reaches_f_others_in_time_commits_within_delta_though_no_link_is_timely_twice_running() {
    let faults = Faults::NONE.with(Fault::Crash).with(Fault::Pause).with(Fault::Dup).with(Fault::Clock);
    for election in ELECTIONS {
        let swept = sweep(5, election, (Some(moving_set()), faults), 8);
        assert_eq!(swept.violations, [], "{election}");
        assert!(!swept.unseen().any(|name| name == "committed-in-time"), "{election}");
        let longest = swept.counts.get("longest-commit-thousandths-of-delta");
        assert!((500..=1000).contains(&longest), "{election}: {longest}");
        assert!(swept.counts.get("commits-owed-in-time") > 500, "{election}");
    }
}

fn race(world: Option<&'static Named>, seeds: u64) -> Race {
    let options = Options { nodes: vec![5], seeds, first: 0, world, horizon: None };
    let race = run(&options, &|_| {}).expect("the setup is right");
    assert_eq!(race.broken, [] as [String; 0]);
    race
}

/// A column of the rows: omega, lean, stable.
fn column(race: &Race, key: &str) -> Vec<f64> {
    let place =
        race.rows.columns.iter().position(|column| column.key == key).expect("there is such a column");
    let number = |row: &Vec<Cell>| match &row[place] {
        Cell::Count(count) => *count as f64,
        Cell::Number(number, _) => *number,
        Cell::Text(_) | Cell::Nothing => f64::NAN,
    };
    race.rows.rows.iter().map(number).collect()
}

#[test]
fn where_nothing_goes_wrong_a_stable_leader_asks_for_promises_once() {
    let race = race(None, 6);
    let stable = |key| column(&race, key)[2];
    assert_eq!((stable("prepares"), stable("changes"), stable("unfinished")), (6.0, 6.0, 0.0));
    assert_eq!(stable("counted"), 8.0, "2(n-1) messages");
    assert!(stable("sent") >= 8.0 && stable("commits") > 100.0);
}

#[test]
fn in_a_moving_set_the_omega_of_few_links_asks_for_promises_far_more_often_than_the_others() {
    let race = race(Some(moving_set()), 6);
    let prepares = column(&race, "per_thousand");
    assert!(prepares[1] > 5.0 * prepares[0].max(prepares[2]), "omega, lean, stable: {prepares:?}");
}
