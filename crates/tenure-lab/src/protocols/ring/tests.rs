//! The counts of the lectures, exactly.

use super::exact::{all_orders, n_harmonic};
use super::order::distances_to_the_next_larger;
use super::*;

fn run(name: &str, order: Order, setup: &Setup) -> Outcome {
    let election = find(name).expect("it exists");
    let ids = election.ids(order, setup).expect("the order is known");
    let outcome = election.run(&ids, setup, &mut |_| ()).expect("it runs");
    assert_eq!(outcome.broken(), None, "{name} {order:?} {setup:?}");
    outcome
}

fn elections(only_ids: bool) -> impl Iterator<Item = &'static str> {
    let wanted = move |election: &&&dyn Election| {
        election.about().name != "automaton" && election.on_ring() && (!only_ids || election.has_ids())
    };
    all().iter().filter(wanted).map(|election| election.about().name)
}

#[test]
fn every_algorithm_elects_one_leader_whom_all_know_in_every_order_and_size() {
    for name in elections(false) {
        for nodes in (1..=40).chain([64, 100, 257]) {
            for order in [Order::Random, Order::Ascending, Order::Descending, Order::BitReversal] {
                let setup = Setup { seed: u64::from(nodes), ..Setup::new(nodes) };
                let outcome = run(name, order, &setup);
                let announced = if name == "lelann" { 0 } else { u64::from(nodes) };
                assert_eq!(outcome.announcement, announced, "{name} {nodes}");
            }
        }
    }
}

#[test]
fn every_asynchronous_algorithm_elects_under_every_schedule_and_wake_up() {
    for name in elections(false).filter(|name| !find(name).expect("it exists").in_rounds()) {
        for seed in 0..60 {
            for delays in Delays::NAMED.map(|(_, delays)| delays) {
                for wake in [Waking::All, Waking::One(3), Waking::Some] {
                    let setup = Setup { wake, delays, seed: u64::from(seed), ..Setup::new(2 + seed % 23) };
                    run(name, Order::Random, &setup);
                }
            }
        }
    }
}

#[test]
fn clockwise_costs_exactly_what_is_known() {
    for nodes in (1..=64).chain([100, 1000, 1024]) {
        let n = u64::from(nodes);
        let [best, worst] =
            [Order::Best, Order::Worst].map(|order| run("clockwise", order, &Setup::new(nodes)));
        assert_eq!((best.election, worst.election), (2 * n - 1, n * (n + 1) / 2));
        assert_eq!((worst.elected_at, worst.time), (Some(n), 2 * n));
        assert_eq!((best.elected_at, best.time), (Some(n), 2 * n));
    }
    let most_alone = Setup { wake: Waking::One(7), ..Setup::new(8) };
    assert_eq!(run("clockwise", Order::Ascending, &most_alone).election, 8);
}

#[test]
fn clockwise_with_late_wake_ups_takes_at_most_twice_as_long() {
    // The largest sits just before the only node that wakes: its id must come all the way round
    // first.
    for n in 2..40 {
        let setup = Setup { wake: Waking::One(0), ..Setup::new(n) };
        let outcome = run("clockwise", Order::Ascending, &setup);
        assert_eq!(outcome.elected_at, Some(u64::from(2 * n - 1)));
    }
}

#[test]
fn clockwise_is_the_sum_of_distances_in_every_order() {
    for seed in 0..100 {
        let setup = Setup { seed: u64::from(seed), ..Setup::new(3 + seed * 7) };
        let election = find("clockwise").expect("it exists");
        let ids = election.ids(Order::Random, &setup).expect("an order");
        let outcome = election.run(&ids, &setup, &mut |_| ()).expect("it runs");
        assert_eq!(outcome.election, distances_to_the_next_larger(&ids));
    }
}

#[test]
fn clockwise_costs_exactly_n_times_h_n_on_average() {
    for nodes in 1..=8 {
        let exact =
            all_orders(find("clockwise").expect("it exists"), &Setup::new(nodes)).expect("few enough");
        let n = u64::from(nodes);
        assert_eq!(exact.mean, n_harmonic(nodes), "{nodes}");
        assert_eq!((exact.best.0, exact.worst.0, exact.broken), (2 * n - 1, n * (n + 1) / 2, None));
        assert_eq!(exact.orders, (1..n).product::<u64>());
    }
    assert_eq!(n_harmonic(9).to_string(), "7129/280");
}

/// Σ 4·2^p·active_p + 2n with the most candidates that a phase can have.
fn radius_bound(n: u64) -> u64 {
    let phases = n.next_power_of_two().trailing_zeros();
    let active = |p: u32| if p == 0 { n } else { n / ((1 << (p - 1)) + 1) };
    (0..phases).map(|p| 4 * (1 << p) * active(p)).sum::<u64>() + 2 * n
}

#[test]
fn radius_growth_keeps_its_bound_and_attains_it_where_that_is_known() {
    for (nodes, most) in [(2, None), (3, None), (4, None), (5, None), (6, Some(84)), (7, None), (8, None)] {
        let exact =
            all_orders(find("radius-growth").expect("it exists"), &Setup::new(nodes)).expect("few enough");
        let (n, phases) = (u64::from(nodes), nodes.next_power_of_two());
        assert_eq!(exact.worst.0, most.unwrap_or(radius_bound(n)), "{nodes}");
        assert_eq!(exact.best.0, 6 * n + 4 * u64::from(phases) - 8, "{nodes}");
        assert_eq!(exact.broken, None);
    }
    assert_eq!(radius_bound(6), 92);
}

#[test]
fn radius_growth_costs_what_is_known_of_its_best_and_its_bad_order() {
    for nodes in 2..=200_u32 {
        let (n, phases) = (u64::from(nodes), u64::from(nodes.next_power_of_two()));
        let best = run("radius-growth", Order::Best, &Setup::new(nodes));
        assert_eq!(best.election, 6 * n + 4 * phases - 8, "{nodes}");
        assert_eq!(best.elected_at, Some(2 * (phases - 1) + n));
        assert_eq!(best.time, 2 * (phases - 1) + 2 * n);
    }
    for (nodes, messages) in [(8, 112), (16, 288), (32, 704), (64, 1664)] {
        let bad = run("radius-growth", Order::Worst, &Setup::new(nodes));
        assert_eq!(bad.election, messages);
        assert_eq!(messages, 4 * u64::from(nodes) * u64::from(nodes.ilog2()) + 2 * u64::from(nodes));
    }
}

#[test]
fn radius_growth_takes_the_same_time_whatever_the_order() {
    for nodes in 2..=100_u32 {
        let phases = u64::from(nodes.next_power_of_two());
        for name in ["radius-growth", "radius-growth-swallow"] {
            let outcome = run(name, Order::Random, &Setup::new(nodes));
            assert_eq!(outcome.elected_at, Some(2 * (phases - 1) + u64::from(nodes)), "{name} {nodes}");
            assert!(
                outcome.election <= 8 * u64::from(nodes) * (1 + u64::from(phases.ilog2())),
                "{name} {nodes}"
            );
        }
    }
}

#[test]
fn swallowing_costs_fewer_messages_than_letting_hopeless_probes_return() {
    for seed in 0..20 {
        let setup = Setup { seed, ..Setup::new(128) };
        let [slide, swallow] =
            ["radius-growth", "radius-growth-swallow"].map(|name| run(name, Order::Random, &setup));
        assert!(swallow.election < slide.election);
        assert_eq!((swallow.leader, swallow.elected_at), (slide.leader, slide.elected_at));
    }
}

#[test]
fn time_slice_needs_n_messages_and_waits_for_the_phase_of_the_smallest() {
    for nodes in 1..=60_u32 {
        for first_id in [0, 1, 7] {
            let outcome = run("time-slice", Order::Random, &Setup { first_id, ..Setup::new(nodes) });
            let (n, min) = (u64::from(nodes), u64::from(first_id));
            assert_eq!((outcome.messages(), outcome.election), (n, 0));
            assert_eq!((outcome.elected_at, outcome.time), (Some(n * min), n * min + n));
        }
    }
}

#[test]
fn variable_speeds_needs_fewer_than_2n_messages_and_its_time_doubles_with_the_smallest_id() {
    for nodes in 1..=60_u32 {
        for first_id in [0, 1, 5] {
            let outcome = run("variable-speeds", Order::Random, &Setup { first_id, ..Setup::new(nodes) });
            let n = u64::from(nodes);
            assert!(outcome.election < 2 * n + u64::from(nodes == 1), "{nodes}: {}", outcome.election);
            assert_eq!(outcome.elected_at, Some(n << first_id));
        }
    }
}

#[test]
fn franklin_and_peterson_keep_their_bound_and_franklin_reaches_it() {
    let bound = |n: u64| 2 * n * (u64::from(n.ilog2()) + 1);
    for name in ["franklin", "peterson"] {
        for nodes in 2..=8 {
            let exact = all_orders(find(name).expect("it exists"), &Setup::new(nodes)).expect("few enough");
            assert!(exact.worst.0 <= bound(u64::from(nodes)), "{name} {nodes}: {}", exact.worst.0);
            assert_eq!(exact.broken, None);
            if name == "franklin" && [2, 3, 5].contains(&nodes) {
                assert_eq!(exact.worst.0, bound(u64::from(nodes)));
            }
        }
        for seed in 0..30 {
            let nodes = 9 + seed * 37;
            let outcome = run(name, Order::Random, &Setup { seed: u64::from(seed), ..Setup::new(nodes) });
            assert!(outcome.election <= bound(u64::from(nodes)), "{name} {nodes}");
        }
    }
}

#[test]
fn lelann_always_costs_n_squared() {
    for nodes in 1..=50_u32 {
        for order in [Order::Random, Order::Ascending, Order::Descending] {
            let outcome = run("lelann", order, &Setup::new(nodes));
            assert_eq!((outcome.messages(), outcome.time), (u64::from(nodes).pow(2), u64::from(nodes)));
        }
    }
}

#[test]
fn higham_and_przytycka_need_the_fewest_messages_of_all_asynchronous_ones() {
    for nodes in [64_u32, 256, 1024, 4096] {
        let setup = Setup::new(nodes);
        let cost = |name: &str| run(name, Order::Random, &setup).election;
        let theirs = cost("higham-przytycka");
        assert!(theirs < cost("peterson") && theirs < cost("franklin"), "{nodes}");
        let n = f64::from(nodes);
        assert!(theirs as f64 <= 1.271 * n * n.log2() + 3.0 * n, "{nodes}: {theirs}");
    }
    for nodes in 2..=9 {
        let exact =
            all_orders(find("higham-przytycka").expect("it exists"), &Setup::new(nodes)).expect("few enough");
        let n = f64::from(nodes);
        assert_eq!(exact.broken, None);
        assert!(exact.worst.0 as f64 <= 1.271 * n * n.log2() + 3.0 * n, "{nodes}: {:?}", exact.worst);
    }
}

#[test]
fn itai_and_rodeh_elect_exactly_one_in_about_n_log_n_messages() {
    for nodes in [8_u32, 16, 32, 64, 100] {
        let total: u64 = (0..200)
            .map(|seed| run("itai-rodeh", Order::Random, &Setup { seed, ..Setup::new(nodes) }).messages())
            .sum();
        let n = f64::from(nodes);
        let mean = total as f64 / 200.0 / (n * n.log2());
        assert!((1.0..1.7).contains(&mean), "{nodes}: {mean} n log2 n");
    }
}

#[test]
fn a_star_elects_its_centre_and_two_nodes_cannot() {
    for nodes in [1, 3, 4, 10, 1000] {
        let outcome = run("star", Order::Random, &Setup::new(nodes));
        assert_eq!((outcome.leader, outcome.messages()), (Some(0), u64::from(nodes) - 1));
        assert_eq!(outcome.time, u64::from(nodes > 1));
    }
    let star = find("star").expect("it exists");
    let two = star.run(&[1, 2], &Setup::new(2), &mut |_| ()).expect("it runs");
    assert_eq!((two.leader, two.broken().map(|broken| broken.name)), (None, Some("elected")));
    let steps = star.lock_step(2, 100, 0).expect("it runs");
    assert_eq!((steps.apart(), steps.leaders(), steps.quiet), (None, 0, true));
    assert_eq!(star.lock_step(3, 100, 0).expect("it runs").apart(), Some(0), "three nodes differ at once");
}

#[test]
fn anonymous_nodes_without_coins_stay_equal_for_ever() {
    for election in all().iter().filter(|election| election.on_ring()) {
        for nodes in [1, 2, 3, 8, 13] {
            let steps = election.lock_step(nodes, 300, 1).expect("it runs");
            if steps.coins {
                continue;
            }
            assert_eq!(steps.apart(), None, "{}", election.about().name);
            assert!([0, nodes].contains(&steps.leaders()), "{}: {steps:?}", election.about().name);
        }
    }
    let coins = find("itai-rodeh").expect("it exists").lock_step(8, 300, 1).expect("it runs");
    assert!(coins.coins && coins.apart().is_some(), "coins break the symmetry");
}

#[test]
fn random_automata_stay_equal_too_and_some_lead_all_together() {
    let automaton = find("automaton").expect("it exists");
    let mut together = 0;
    for seed in 0..200 {
        let steps = automaton.lock_step(7, 200, seed).expect("it runs");
        assert_eq!(steps.apart(), None, "automaton {seed}");
        assert!(steps.seen.iter().all(|(_, leaders)| [0, 7].contains(leaders)));
        together += u32::from(steps.seen.iter().any(|(_, leaders)| *leaders == 7));
    }
    assert!(together > 20, "automata that never lead would prove nothing: {together}");
}

fn siege(name: &str, ids: &[u32], mutant: Option<&str>) -> Siege {
    find(name).expect("it exists").attack(ids, mutant).expect("it can be attacked")
}

#[test]
fn the_adversary_makes_every_uniform_algorithm_talk() {
    for election in all().iter().filter(|election| election.is_uniform()) {
        let name = election.about().name;
        for nodes in [2, 4, 16, 64, 256] {
            for order in [Order::Random, Order::Ascending, Order::Descending] {
                let siege = siege(name, &order.ids(nodes, 1, 3), None);
                assert!(siege.receptions >= siege.bound, "{name} {nodes}: {siege:?}");
                let n = u64::from(nodes);
                assert_eq!(siege.bound, (n * (u64::from(n.ilog2()) + 1)).div_ceil(4));
                assert_eq!(
                    (&siege.decided_open, &siege.too_quiet, &siege.wrong),
                    (&None, &None, &None),
                    "{name}"
                );
                assert_eq!(siege.joins.len(), nodes as usize - 1);
                assert!(siege.total > siege.receptions);
            }
        }
    }
}

#[test]
fn the_adversary_gets_out_of_64_nodes_what_was_measured_before() {
    let between = |name: &str, low: u64, high: u64| {
        for order in [Order::Ascending, Order::Descending, Order::Random] {
            let heard = siege(name, &order.ids(64, 1, 1), None).receptions;
            assert!((low..=high).contains(&heard), "{name} {order:?}: {heard}");
        }
    };
    between("clockwise", 112, 2016);
    between("radius-growth", 700, 1300);
    between("radius-growth-swallow", 600, 1100);
    between("franklin", 350, 520);
    between("peterson", 250, 500);
}

#[test]
fn an_algorithm_that_cheats_on_uniformity_decides_with_an_edge_open() {
    let cheat = siege("lelann", &Order::Random.ids(1024, 1, 1), Some("assumes-four"));
    assert!(cheat.decided_open.is_some());
    assert_eq!(siege("lelann", &Order::Random.ids(64, 1, 1), None).decided_open, None);
}

#[test]
fn only_uniform_asynchronous_algorithms_with_ids_can_be_attacked() {
    for name in ["time-slice", "variable-speeds", "itai-rodeh", "star"] {
        assert!(find(name).expect("it exists").attack(&[1, 2, 3, 4], None).is_err(), "{name}");
    }
    assert!(find("clockwise").expect("it exists").attack(&[1, 2, 3], None).is_err());
}

#[test]
fn a_search_finds_orders_that_are_worse_than_the_known_bad_one() {
    let election = find("radius-growth").expect("it exists");
    let found = exact::search(election, &Setup::new(16), (6000, false), &|_| ()).expect("it runs");
    assert!(found.messages > 288, "{found:?}");
}

#[test]
fn laps_and_rounds_count_the_same_to_the_message() {
    for name in elections(true).filter(|name| !find(name).expect("it exists").in_rounds()) {
        let election = find(name).expect("it exists");
        for (nodes, order) in
            [(1, Order::Random), (2, Order::Random), (33, Order::Random), (40, Order::Descending)]
        {
            let setup = Setup::new(nodes);
            let ids = election.ids(order, &setup).expect("an order");
            let rounds = election.run(&ids, &setup, &mut |_| ()).expect("it runs");
            let (recorded, trace) = election.record(&ids, &setup).expect("it runs");
            assert_eq!(rounds, Outcome { memory: rounds.memory, ..recorded });
            assert_eq!(trace.messages.len() as u64, rounds.messages());
        }
    }
}
