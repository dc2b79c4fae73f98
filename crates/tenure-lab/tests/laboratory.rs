//! The laboratory put to the test: the same seed is the same run, a trace is the run, and clean
//! code stays clean.

use tenure_lab::catalogue::{Experiment, Seeds, Showcase, Trial, find};
use tenure_lab::property::{Kind, Status};
use tenure_lab::simulate::{Fault, Faults, Named, Setup};
use tenure_lab::sweep::Swept;

fn nerio() -> &'static dyn Experiment {
    find("nerio-drift").expect("it is in the catalogue")
}

fn trial(nodes: usize, quorums: &str, faults: Faults) -> Trial {
    let setup =
        Setup { nodes, quorums: quorums.to_owned(), faults, sets: Vec::new(), horizon: None, world: None };
    Trial { setup, mutant: None, property: None }
}

fn sweep(trial: &Trial, seeds: u64, threads: usize) -> Swept {
    let seeds = Seeds { first: 0, count: seeds, stop_at_first: false, threads };
    nerio().sweep(trial, seeds, &|_| ()).expect("the setup is right")
}

fn sets(sets: &[(&str, &str)]) -> Vec<(String, String)> {
    sets.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn one_seed_is_one_run_to_the_last_byte() {
    let trial = trial(5, "majority", Faults::all());
    for seed in 0..5 {
        let [one, other] = [0; 2].map(|_| nerio().run(&trial, seed).expect("it runs"));
        assert_eq!(one.trace, other.trace);
        assert_eq!(one.picture, other.picture);
    }
}

#[test]
fn a_seed_is_the_same_run_on_every_machine() {
    // Fixed once: if it changes, every seed in a bug report, a test or a scenario's head means
    // another run. It may change with the protocol or the simulation, but never with the machine.
    let report = nerio().run(&trial(5, "majority", Faults::all()), 7).expect("it runs");
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in report.trace.bytes() {
        sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    assert_eq!(
        (report.events, sum),
        (9016, 1_166_682_668_385_627_357),
        "events and checksum of the trace of seed 7"
    );
}

#[test]
fn a_trace_replays_to_the_very_same_run() {
    let trial = trial(5, "majority", Faults::all());
    for seed in 0..20 {
        let run = nerio().run(&trial, seed).expect("it runs");
        let replay = nerio().replay(&run.trace, None).expect("it fits");
        assert!(replay.as_expected, "seed {seed}");
        assert_eq!(replay.report.trace, run.trace, "seed {seed}");
        assert_eq!(replay.report.picture.arrows, run.picture.arrows, "seed {seed}");
        assert_eq!(replay.report.events, run.events, "seed {seed}");
    }
}

#[test]
fn a_trace_of_a_run_that_looked_for_one_property_replays_too() {
    let mut trial = trial(5, "majority", Faults::all());
    (trial.mutant, trial.property) = (Some("swap-rho".to_owned()), Some("stamps-rise".to_owned()));
    let run = nerio().run(&trial, 6).expect("it runs");
    assert_eq!(run.violation, None, "the property that was looked for holds, others do not");
    assert!(nerio().replay(&run.trace, None).expect("it fits").as_expected);
}

#[test]
fn a_sweep_does_not_depend_on_the_number_of_threads() {
    let trial = trial(5, "majority", Faults::all());
    let [one, two] = [1, 2].map(|threads| sweep(&trial, 100, threads));
    assert_eq!((one.counts, one.messages, one.events), (two.counts, two.messages, two.events));
}

#[test]
fn no_fault_breaks_a_property_under_any_quorum_system() {
    let systems = [
        (5, "majority"),
        (3, "majority"),
        (5, "weights:3,1,1,1,1"),
        (4, "grid:2x2"),
        (3, "list:01,12,02"),
        (2, "majority"),
    ];
    for (nodes, quorums) in systems {
        let swept = sweep(&trial(nodes, quorums, Faults::all()), 400, 2);
        assert_eq!(swept.violations, [], "{nodes} nodes, {quorums}");
    }
}

#[test]
fn a_sweep_with_all_faults_exercises_every_one_of_them() {
    let swept = sweep(&trial(5, "majority", Faults::all()), 400, 2);
    let never: Vec<_> = swept.counts.sorted().into_iter().filter(|(_, count)| *count == 0).collect();
    assert_eq!(never, []);
    assert_eq!(swept.unseen().collect::<Vec<_>>(), Vec::<&str>::new());
}

fn sweep_wedge(nodes: usize, quorums: &str, seeds: u64) -> Swept {
    let range = Seeds { first: 0, count: seeds, stop_at_first: false, threads: 2 };
    let wedge = find("nerio-wedge").expect("it is in the catalogue");
    wedge.sweep(&trial(nodes, quorums, Faults::all()), range, &|_| ()).expect("the setup is right")
}

#[test]
fn ended_epochs_and_lost_disks_break_no_property() {
    for (nodes, quorums) in [(5, "majority"), (3, "majority"), (5, "weights:3,1,1,1,1"), (4, "grid:2x2")] {
        assert_eq!(sweep_wedge(nodes, quorums, 400).violations, [], "{nodes} nodes, {quorums}");
    }
}

#[test]
fn ended_epochs_and_lost_disks_are_put_to_the_test() {
    let swept = sweep_wedge(5, "majority", 400);
    let never: Vec<_> = swept.counts.sorted().into_iter().filter(|(_, count)| *count == 0).collect();
    assert_eq!(never, []);
    assert_eq!(swept.unseen().collect::<Vec<_>>(), Vec::<&str>::new());
    for (kind, least) in [("epochs-decided", 200), ("wedges", 700), ("recoveries", 300)] {
        assert!(swept.counts.get(kind) > least, "{kind}: {}", swept.counts.get(kind));
    }
}

#[test]
fn where_members_change_nobody_recovers_and_where_nobody_changes_all_can() {
    let run = |recovery: &str| {
        let mut trial = trial(5, "majority", Faults::all());
        trial.setup.sets = vec![("recovery".to_owned(), recovery.to_owned())];
        let range = Seeds { first: 0, count: 150, stop_at_first: false, threads: 2 };
        let counts = find("nerio-wedge").unwrap().sweep(&trial, range, &|_| ()).unwrap().counts;
        ["mutes", "recoveries", "wedges"].map(|kind| counts.get(kind) > 0)
    };
    assert_eq!(run("0"), [true, false, true]);
    assert_eq!(run("1"), [false, true, false]);
}

#[test]
fn without_faults_the_first_leader_stays() {
    let mut trial = trial(5, "majority", Faults::NONE);
    trial.setup.sets = vec![("groups".to_owned(), "1".to_owned())];
    let report = nerio().run(&trial, 3).expect("it runs");
    assert_eq!(report.counts.get("elections"), 1);
    assert!(report.counts.get("renewals") > 10);
    assert!(report.properties.iter().all(|(p, s)| p.kind != Kind::Eventually || *s == Status::Holds));
}

#[test]
fn a_steady_leader_costs_two_messages_a_renewal_and_other_node() {
    let mut trial = trial(5, "majority", Faults::NONE);
    trial.setup.sets = sets(&[("groups", "1"), ("outsiders", "0"), ("observers", "0")]);
    let report = nerio().run(&trial, 3).expect("it runs");
    let rounds = report.counts.get("elections") + report.counts.get("renewals");
    // The last renewal may be under way when the run ends.
    let expected = 2 * 4 * rounds..=2 * 4 * (rounds + 1);
    assert!(expected.contains(&report.messages.total()), "{rounds} rounds, {:?}", report.messages);
}

#[test]
fn outsiders_lead_and_witnesses_and_observers_never_do() {
    let mut trial = trial(3, "majority", Faults::all());
    trial.setup.sets = sets(&[("witnesses", "2"), ("outsiders", "2"), ("observers", "1"), ("groups", "1")]);
    let mut leaders = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let report = nerio().run(&trial, seed).expect("it runs");
        assert_eq!((report.violation, report.nodes, report.hosts), (None, 3, 6), "seed {seed}");
        assert!(report.trace.contains("clock n5 shows "), "every host has a clock");
        let led = report.trace.lines().filter_map(|line| line.trim_start().split_once(" leads g0 in term "));
        leaders.extend(led.map(|(who, _)| who.to_owned()).filter(|who| !who.contains("certain")));
    }
    assert_eq!(leaders.into_iter().collect::<Vec<_>>(), ["n0", "n3", "n4"]);
}

#[test]
fn a_leader_is_owed_only_where_somebody_campaigns() {
    // The only candidate comes from outside and is down when the faults heal; its grantors are all
    // there.
    let play = |heals: &str| {
        format!(
            "tenure play 1\nprotocol nerio-drift\nnodes 3\nset drift=1000ppm tick=1ms lease=200ms \
             longest-lease=200ms window=60ms retry=20ms block=4 groups=1 witnesses=3 outsiders=1\n\
             heals at {heals}\nends at 10s\n0ms  n3 campaigns\n500ms  n3 crashes\n"
        )
    };
    let status = |heals: &str| {
        let report = nerio().replay(&play(heals), None).expect("it can be performed").report;
        report.properties.iter().find(|(p, _)| p.name == "leader-after-healing").map(|(_, status)| *status)
    };
    assert_eq!(status("1s"), Some(Status::Exempt));
    assert_eq!(status("400ms"), Some(Status::Broken), "while it runs it is owed, whatever comes later");
}

#[test]
fn a_file_from_before_there_were_outsiders_is_read_as_it_was() {
    let mut trial = trial(3, "majority", Faults::all());
    trial.setup.sets = sets(&[("witnesses", "0"), ("outsiders", "0"), ("observers", "0")]);
    let trace = nerio().run(&trial, 1).expect("it runs").trace;
    let older = trace.replace(" witnesses=0 outsiders=0 observers=0", "");
    assert_ne!(older, trace);
    assert_eq!(nerio().replay(&older, None).expect("it fits").report.trace, trace);
}

#[test]
fn a_clock_beyond_the_bound_makes_two_leaders_and_the_assumption_is_blamed() {
    let trial = trial(5, "majority", Faults::all().with(Fault::ClockBeyondRho));
    let swept = sweep(&trial, 200, 2);
    let (seed, two_leaders) =
        swept.violations.iter().find(|(_, v)| v.property == "leader-uniqueness").expect("two leaders");
    let small = nerio().shrink(&trial, *seed, two_leaders.property).expect("it shrinks");
    assert!(small.assumption.is_some_and(|what| what.contains("beyond the bound")));
    assert!(small.script.contains("The assumption is broken, not the protocol"));
}

#[test]
fn bad_setups_are_refused_with_a_reason() {
    let refused = |nodes, quorums: &str, sets: &[(&str, &str)], reason: &str| {
        let mut trial = trial(nodes, quorums, Faults::all());
        trial.setup.sets = self::sets(sets);
        let error = nerio().run(&trial, 1).expect_err("a bad setup").to_string();
        assert!(error.contains(reason), "{error}");
    };
    refused(0, "majority", &[], "1 to 64 members");
    refused(4, "list:01,23", &[], "[n0, n1] and [n2, n3] share no member");
    refused(3, "majority", &[("leese", "1s")], "there is no constant 'leese'");
    refused(3, "majority", &[("lease", "soon")], "cannot read lease='soon'");
    refused(3, "majority", &[("lease", "10s")], "longest-lease");
    refused(3, "majority", &[("longest-lease", "999999999s")], "too long");
    refused(3, "majority", &[("groups", "0")], "groups must be 1 to 10000");
    refused(3, "majority", &[("witnesses", "4")], "there are only 3 members");
    refused(3, "majority", &[("witnesses", "3"), ("outsiders", "0")], "nobody campaigns");
    refused(3, "majority", &[("outsiders", "99999999999")], "at most 64 together");
}

#[test]
fn a_corrupt_trace_is_refused_with_its_line() {
    let run = nerio().run(&trial(3, "majority", Faults::all()), 1).expect("it runs");
    let refused = |from: &str, to: &str, reason: &str| {
        assert!(run.trace.contains(from), "the trace has '{from}'");
        let error = nerio().replay(&run.trace.replacen(from, to, 1), None).expect_err("corrupt").to_string();
        assert!(error.contains(reason), "{error}");
    };
    refused("tenure scenario 1", "tenure scenario 9", "line 1: this is no scenario");
    refused("protocol nerio-drift\n", "", "no line says 'protocol NAME'");
    refused("nodes 3", "nodes many", "nodes must be 1 to 64");
    refused("clock n1", "clock n7", "clocks come in order");
    refused(" n2 is told", " n9 is told", "there is no node n9: this scenario has n0 to n2");
    refused("campaign g0", "conquer g0", "there is no command 'conquer g0'");
    refused(" wakes", " dreams", "cannot read 'dreams'");
    refused("n0's request of ", "n0's request of 1", "could not be carried out");
    let cut = &run.trace[..run.trace.len() / 2];
    let cut = &cut[..=cut.rfind('\n').expect("it has lines")];
    let error = nerio().replay(cut, None).expect_err("cut off").to_string();
    assert!(error.contains("is it cut off?"), "{error}");
}

const ELECTIONS: [&str; 5] = ["trivial", "ring", "bully", "by-consensus", "consensus-by-election"];

fn sweep_named(name: &str, trial: &Trial, seeds: u64) -> Swept {
    let seeds = Seeds { first: 0, count: seeds, stop_at_first: false, threads: 2 };
    find(name).expect("it is in the catalogue").sweep(trial, seeds, &|_| ()).expect("the setup is right")
}

#[test]
fn in_the_synchronous_model_no_crash_breaks_a_property_of_an_election() {
    for name in ELECTIONS {
        let bears = find(name).expect("it is in the catalogue").bears();
        for (nodes, seeds) in [(1, 5), (2, 30), (3, 30), (8, 30)] {
            let swept = sweep_named(name, &trial(nodes, "majority", bears), seeds);
            assert_eq!(swept.violations, [], "{name}, {nodes} nodes");
        }
        let swept = sweep_named(name, &trial(5, "majority", bears), 80);
        assert_eq!(swept.violations, [], "{name}");
        assert_eq!(swept.unseen().collect::<Vec<_>>(), Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn in_the_asynchronous_model_a_sweep_finds_what_the_lecture_says_goes_wrong() {
    let late = Faults::NONE.with(Fault::Crash).with(Fault::Delay);
    for name in ["ring", "bully"] {
        let bears = find(name).expect("it is in the catalogue").bears();
        for (faults, detector, property) in [
            (bears, "incomplete", "elected-lives"),
            (bears, "inaccurate", "comes-to-rest"),
            (late, "heartbeat", "one-coordinator"),
        ] {
            let mut trial = trial(5, "majority", faults);
            (trial.setup.sets, trial.property) = (sets(&[("detector", detector)]), Some(property.to_owned()));
            let found = sweep_named(name, &trial, 20).violations;
            assert!(found.iter().any(|(_, violation)| violation.property == property), "{name}, {detector}");
        }
    }
}

#[test]
fn votes_need_no_bound_on_delays_whatever_goes_wrong() {
    let mut trial = trial(5, "majority", Faults::all());
    trial.property = Some("one-winner-a-term".to_owned());
    assert_eq!(sweep_named("by-consensus", &trial, 100).violations, []);
}

#[test]
fn a_ring_survives_its_winner_and_as_many_predecessors_as_are_fewer_than_watch_it() {
    for watchers in 1..=3 {
        for crashed in 0..=3 {
            let names: Vec<String> = (5 - crashed..=5).map(|node| format!("n{node}")).collect();
            let verb = if crashed == 0 { "crashes" } else { "crash" };
            let play = format!(
                "tenure play 1\n# Neighbours.\nprotocol ring\nnodes 6\nset bound=10ms period=40ms repair=neighbour \
                 watchers={watchers}\ndelay 9ms\nheals at 1s\nends at 4s\n\n0ms  everyone campaigns\n600ms  {} {verb}\n",
                names.join(" ")
            );
            let replay = find("ring").unwrap().replay(&play, Some(None)).expect("it can be performed");
            let broken = replay.report.violation.map(|violation| violation.property);
            let expected = (crashed >= watchers).then_some("elected-lives");
            assert_eq!(broken, expected, "{watchers} watch, {crashed} predecessors crash");
        }
    }
}

/// The example as it stands, in a place where a test can call it.
#[path = "../examples/own_ring.rs"]
#[expect(dead_code, reason = "main prints what the test reads")]
mod own_ring;

#[test]
fn an_election_of_ones_own_is_counted_and_one_that_cheats_is_caught() {
    let report = own_ring::report().expect("it runs");
    let line = |start: &str| {
        report.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{report}"))
    };
    assert!(line("meet, 1024 nodes: ").ends_with("one leader, known to all"), "{report}");
    assert!(
        line("meet, 1024 nodes, attacked: ").ends_with("2816 at least; nobody decided too soon"),
        "{report}"
    );
    assert!(line("hasty, 16 nodes: ").ends_with("one leader, known to all"), "{report}");
    assert!(line("hasty, 64 nodes, attacked: ").contains("caught: "), "{report}");
}

fn sweep_world(protocol: &str, world: &str, nodes: usize, sets: &[(&str, &str)], seeds: u64) -> Swept {
    let mut trial = trial(nodes, "majority", Faults::all());
    trial.setup.world = (world != "chaos").then(|| Named::find(world).expect("there is such a world"));
    trial.setup.sets = self::sets(sets);
    let range = Seeds { first: 0, count: seeds, stop_at_first: false, threads: 2 };
    find(protocol).expect("it is in the catalogue").sweep(&trial, range, &|_| ()).expect("the setup is right")
}

#[test]
fn no_world_breaks_a_property_of_local_leaders() {
    for protocol in ["local", "local-majority"] {
        for world in ["chaos", "partition", "graph", "star"] {
            for (nodes, seeds) in [(2, 40), (5, 80), (9, 15)] {
                let swept = sweep_world(protocol, world, nodes, &[], seeds);
                assert_eq!(swept.violations, [], "{protocol} in {world}, {nodes} nodes");
            }
        }
    }
}

#[test]
fn trees_and_turns_break_no_property_of_local_leaders() {
    for world in ["partition", "graph", "star"] {
        for sets in [[("tree", "2"), ("drift", "10000ppm")], [("turn", "1"), ("drift", "1000ppm")]] {
            let swept = sweep_world("local", world, 8, &sets, 30);
            assert_eq!(swept.violations, [], "{sets:?} in {world}");
        }
    }
}

/// A tree that took slow answers for signs of life; a straggler of a former life for which what was
/// known of the present one was forgotten.
#[test]
fn seeds_that_once_broke_a_property_of_local_leaders_break_none() {
    for (protocol, world, first) in [("local", "partition", 1259), ("local-majority", "graph", 808)] {
        let mut trial = trial(16, "majority", Faults::all());
        trial.setup.world = Some(Named::find(world).expect("there is such a world"));
        let range = Seeds { first, count: 1, stop_at_first: true, threads: 1 };
        let swept = find(protocol).unwrap().sweep(&trial, range, &|_| ()).expect("the setup is right");
        assert_eq!(swept.violations, [], "{protocol} in {world}, seed {first}");
    }
}

#[test]
fn what_local_leaders_promise_is_put_to_the_test() {
    for protocol in ["local", "local-majority"] {
        let swept = sweep_world(protocol, "partition", 5, &[], 150);
        assert_eq!(swept.unseen().collect::<Vec<_>>(), Vec::<&str>::new(), "{protocol}");
        assert!(swept.counts.get("messages-duplicated") > 0 && swept.counts.get("clock-rate-changes") > 0);
    }
}

#[test]
fn mutants_of_local_leaders_that_break_liveness_are_killed_where_they_show() {
    for protocol in ["local", "local-majority"].map(|name| find(name).expect("it is in the catalogue")) {
        let shown =
            protocol.mutants().into_iter().filter_map(|it| Some((it.name, protocol.showcase(it.name)?)));
        let mut killed = 0;
        for (mutant, case) in shown {
            let property = noticed(protocol, mutant, &case);
            let owed = ["leader-in-time", "connected-support", "kept", "nobody-else"];
            assert!(property.is_some_and(|property| owed.contains(&property)), "{mutant}: {property:?}");
            killed += 1;
        }
        assert_eq!(killed, 7, "{}", protocol.about().name);
    }
}

fn log_trial(nodes: usize, mutant: Option<&str>) -> Trial {
    Trial { mutant: mutant.map(str::to_owned), ..trial(nodes, "majority", Faults::all()) }
}

fn sweep_log(trial: &Trial, first: u64, count: u64) -> Swept {
    let range = Seeds { first, count, stop_at_first: true, threads: 2 };
    find("paxos").expect("it is in the catalogue").sweep(trial, range, &|_| ()).expect("the setup is right")
}

#[test]
fn no_fault_and_no_wrong_hint_breaks_the_log_or_what_its_clients_see() {
    for nodes in [1, 3, 4, 5] {
        let swept = sweep_log(&log_trial(nodes, None), 0, 60);
        assert_eq!(swept.violations, [], "{nodes} nodes");
    }
}

#[test]
fn a_trace_of_the_log_replays_to_the_very_same_run() {
    let log = find("paxos").expect("it is in the catalogue");
    let run = log.run(&log_trial(3, None), 3).expect("it runs");
    let replay = log.replay(&run.trace, None).expect("it fits");
    assert!(replay.as_expected);
    assert_eq!(replay.report.trace, run.trace);
}

/// Sweeps a mutant where it is known to show: the property that noticed, if one did.
fn noticed(protocol: &dyn Experiment, mutant: &str, case: &Showcase) -> Option<&'static str> {
    let trial = Trial { mutant: Some(mutant.to_owned()), ..trial(5, "majority", Faults::all()) };
    let (first, count) = (case.seeds.start, case.seeds.end - case.seeds.start);
    let range = Seeds { first, count, stop_at_first: true, threads: 2 };
    let trial = case.trial(&trial).expect("there is such a world");
    let swept = protocol.sweep(&trial, range, &|_| ()).expect("the setup is right");
    swept.violations.first().map(|(_, violation)| violation.property)
}

/// The others have plays in `scenarios/mutants/paxos`; that each has one or the other is held
/// elsewhere.
#[test]
fn mutants_of_the_log_are_killed_where_they_show() {
    let log = find("paxos").expect("it is in the catalogue");
    for mutant in log.mutants() {
        let Some(case) = log.showcase(mutant.name) else { continue };
        let property = noticed(log, mutant.name, &case);
        assert!(property.is_some() && property == case.property, "{}: {property:?}", mutant.name);
    }
}

#[test]
fn what_is_owed_in_time_is_not_made_small() {
    for (protocol, world, nodes, mutant, seed, property) in [
        ("local", Some("partition"), 16, "slow-is-alive", 640, "leader-in-time"),
        ("paxos", None, 5, "truncate-unapplied", 0, "progress"),
        ("paxos", Some("moving-set"), 5, "accept-large-quorum", 0, "timely-commit"),
        ("omega", Some("moving-set"), 5, "fig1-a6", 0, "access-keeps-epoch"),
        ("bully", None, 5, "by-name-alone", 0, "all-elect"),
        ("nerio-drift", None, 5, "swap-rho", 0, "leader-after-healing"),
    ] {
        let mut trial = Trial { mutant: Some(mutant.to_owned()), ..trial(nodes, "majority", Faults::all()) };
        trial.setup.world = world.map(|world| Named::find(world).expect("there is such a world"));
        let refused = find(protocol).expect("it is in the catalogue").shrink(&trial, seed, property);
        let why = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(why.contains("is not made small: see the whole run"), "{protocol}, {property}: {why:?}");
    }
}

#[test]
fn in_a_world_that_is_for_others_nothing_is_owed_that_rests_on_messages() {
    let statuses = |protocol: &str, world: &str| {
        let mut trial = trial(3, "majority", Faults::NONE);
        trial.setup.world = Some(Named::find(world).expect("there is such a world"));
        trial.setup.horizon = Some(tenure_lab::world::RealTime(5_000_000_000));
        let run = find(protocol).expect("it is in the catalogue").watch(&trial, 1).expect("it runs");
        assert_eq!(run.violation, None, "{protocol} in {world}");
        run.properties
    };
    for (protocol, world) in [("nerio-drift", "moving-set"), ("paxos", "f-source"), ("omega", "graph")] {
        for (property, status) in statuses(protocol, world) {
            if property.kind == Kind::Eventually {
                assert_eq!(status, Status::Exempt, "{protocol} in {world}: {}", property.name);
            }
        }
    }
    let at_home = statuses("omega", "moving-set");
    assert!(
        at_home.iter().any(|(property, status)| property.name == "agreement" && *status == Status::Holds)
    );
}

#[test]
fn a_world_names_those_that_are_for_a_protocol() {
    let refused = |world: &str, protocol: &str| {
        Named::find(world)
            .expect("there is such a world")
            .check(protocol)
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(refused("f-source", "omega"), None, "to compare");
    assert_eq!(
        refused("f-source", "paxos").as_deref(),
        Some("the world 'f-source' is not for paxos: for it there are moving-set, blocks")
    );
    assert_eq!(
        refused("graph", "nerio-drift").as_deref(),
        Some("the world 'graph' is not for nerio-drift: no world with an adversary is")
    );
}

#[test]
fn most_kills_that_a_seed_draws_happen() {
    for name in ["local", "omega-stable", "nerio-drift"] {
        let experiment = find(name).expect("it is in the catalogue");
        let home = experiment.home();
        let mut trial = trial(5, "majority", home.map_or(Faults::all(), |(_, faults)| faults));
        trial.setup.world = home.map(|(world, _)| world);
        let range = Seeds { first: 0, count: 150, stop_at_first: false, threads: 2 };
        let counts = experiment.sweep(&trial, range, &|_| ()).expect("the setup is right").counts;
        let [drawn, happened] = ["kills-drawn", "crashes-inside-a-step"].map(|kind| counts.get(kind));
        assert!(drawn > 20 && 2 * happened > drawn, "{name}: {happened} of {drawn}");
    }
}

#[test]
fn a_process_that_speaks_for_another_is_in_sweeps_and_believed_by_nobody() {
    let mut trial = trial(5, "majority", Faults::all());
    trial.setup.sets = sets(&[("outsiders", "1")]);
    let with = sweep(&trial, 150, 2);
    assert_eq!(with.violations, []);
    assert!(with.counts.get("messages-forged") > 500, "{}", with.counts.get("messages-forged"));
    trial.setup.faults = Faults::all().without(Fault::Forgery);
    assert_eq!(sweep(&trial, 150, 2).counts.get("messages-forged"), 0);
}
