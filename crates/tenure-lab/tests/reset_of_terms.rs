//! Terms that an operator sets anew, with a member killed inside any step of it.

use tenure_lab::catalogue::{Replay, find};
use tenure_proto::NodeId;

const PLAY: &str = include_str!("../../../scenarios/terms-set-anew.scenario");

/// The play without its expectations, and with `more`, in the order of time. The operator asks
/// again: an order may die with its process.
fn perform(more: &str) -> Replay {
    let (head, told) = PLAY.split_once("\n\n").expect("an empty line");
    let head: Vec<&str> = head.lines().filter(|line| !line.starts_with("expect")).collect();
    let mut told: Vec<&str> = told.lines().chain(more.lines()).collect();
    told.sort_by_key(|line| line.split("ms").next().and_then(|at| at.parse::<u64>().ok()));
    let play = format!("{}\n\n{}\n", head.join("\n"), told.join("\n"));
    let nerio = find("nerio-drift").expect("it is in the catalogue");
    nerio.replay(&play, None).unwrap_or_else(|error| panic!("{error}\n{play}"))
}

/// The instants at which members talk about a charter while it comes about: prepare, accept, and
/// decided, at each of them.
const INSTANTS: [&str; 6] = ["1499ms", "1504ms", "1509ms", "1514ms", "1712ms", "1717ms"];

#[test]
fn a_kill_between_any_two_effects_of_a_reset_keeps_terms_rising_and_the_reset_is_finished() {
    let mut kills = 0;
    for at in INSTANTS {
        for node in ["n0", "n1", "n2"] {
            for (effects, durable) in [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 1), (3, 2), (4, 2), (5, 9)]
            {
                let records = if durable == 1 { "record" } else { "records" };
                let kill = format!(
                    "{at}  {node} crashes after effect {effects} of its next write, {durable} {records} durable\n2300ms  {node} restarts\n2400ms  n1 is told: members reset-terms above 1000 bar g1"
                );
                let replay = perform(&kill);
                assert!(replay.report.violation.is_none(), "{kill}: {:?}", replay.report.violation);
                assert_eq!(replay.report.leader, Some(NodeId(1)), "{kill}");
                assert!(replay.report.trace.contains("n1 leads g0 in term 10"), "{kill}: in a low term");
                kills += replay.report.counts.get("crashes-inside-a-step");
            }
        }
    }
    assert!(kills > 60, "only {kills} were killed inside a step");
}
