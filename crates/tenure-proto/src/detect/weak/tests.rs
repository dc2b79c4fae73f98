use super::super::tests::{at, span};
use super::*;

const RENEWAL: u64 = 1000;
const INTERVAL: u64 = 100;

/// The weak election of `me` among `count` members, begun at reading 0.
fn ring_of(me: u64, count: u64) -> Advisor {
    let members: Vec<_> = (0..count).map(NodeId).collect();
    let timing = Timing { renewal: span(RENEWAL), interval: span(INTERVAL) };
    Advisor::new(Choice::Ring(Watch::Heartbeat), (NodeId(me), Incarnation(1)), timing, &members, at(0))
}

fn ranks(of: impl Fn(u64) -> Advisor, group: u64, now: u64) -> Vec<Turn> {
    (0..5).map(|me| of(me).turn(GroupId(group), at(now))).collect()
}

#[test]
fn at_first_everybody_is_trusted_and_the_row_begins_at_the_groups_number() {
    let rank = Turn::Rank;
    assert_eq!(ranks(|me| ring_of(me, 5), 0, 0), [rank(0), rank(1), rank(2), rank(3), rank(4)]);
    assert_eq!(ranks(|me| ring_of(me, 5), 7, 0), [rank(3), rank(4), rank(0), rank(1), rank(2)]);
}

#[test]
fn leaders_of_many_groups_spread_evenly() {
    for me in 0..5 {
        let first = (0..100).filter(|group| ring_of(me, 5).turn(GroupId(*group), at(0)) == Turn::Rank(0));
        assert_eq!(first.count(), 20);
    }
}

#[test]
fn a_leader_whose_promise_ran_out_is_suspected_at_once_and_those_it_reported_are_not() {
    let mut second = ring_of(1, 5);
    second.heard(NodeId(0), at(500));
    second.report((0..5).collect(), at(500));
    second.lapsed(NodeId(0), at(1500));
    assert_eq!(second.turn(GroupId(0), at(1500)), Turn::Rank(0));
    let mut fourth = ring_of(3, 5);
    fourth.heard(NodeId(0), at(500));
    fourth.report((0..5).collect(), at(500));
    fourth.lapsed(NodeId(0), at(1500));
    assert_eq!(fourth.turn(GroupId(0), at(1500)), Turn::Rank(2), "n1 and n2 come before it");
}

#[test]
fn whoever_was_heard_after_its_promise_ran_out_is_still_trusted() {
    let mut second = ring_of(1, 3);
    second.heard(NodeId(0), at(1600));
    second.lapsed(NodeId(0), at(1500));
    assert_eq!(second.turn(GroupId(0), at(1600)), Turn::Rank(1));
    second.lapsed(NodeId(0), at(1700));
    assert_eq!(second.turn(GroupId(0), at(1700)), Turn::Rank(0));
    second.heard(NodeId(0), at(1800));
    assert_eq!(
        second.turn(GroupId(0), at(1800)),
        Turn::Rank(1),
        "a process that is heard is trusted again at once"
    );
}

#[test]
fn silence_is_suspicion_after_a_renewal_and_a_round_of_news() {
    let third = ring_of(2, 3);
    let last = RENEWAL + 4 * INTERVAL;
    assert_eq!(third.turn(GroupId(0), at(last)), Turn::Rank(2));
    assert_eq!(third.turn(GroupId(0), at(last + 1)), Turn::Rank(0));
    assert_eq!(third.weak_leader(GroupId(0), at(last + 1)), Some(NodeId(2)));
}

#[test]
fn whoever_gave_back_what_it_held_leaves_its_turn_to_others_until_it_asks_again() {
    let mut second = ring_of(1, 3);
    second.passes(NodeId(0), true);
    assert_eq!(second.turn(GroupId(0), at(1)), Turn::Rank(0));
    assert_eq!(second.weak_leader(GroupId(0), at(1)), Some(NodeId(0)), "it lives, and is watched");
    second.passes(NodeId(0), false);
    assert_eq!(second.turn(GroupId(0), at(1)), Turn::Rank(1));
}

#[test]
fn whoever_is_no_member_waits_until_the_members_have_had_their_turns() {
    assert_eq!(ring_of(9, 5).turn(GroupId(3), at(0)), Turn::Window { after: 5 });
    assert_eq!(ring_of(9, 5).neighbours(at(0)), []);
}

#[test]
fn old_news_passed_to_and_fro_keeps_nobody_alive() {
    let (mut one, mut other) = (ring_of(1, 3), ring_of(2, 3));
    let mut dead = ring_of(0, 3);
    one.passed_on(&dead.beats(at(10)), at(10));
    let mut now = 10;
    while now < 10 + RENEWAL + 5 * INTERVAL {
        now += INTERVAL;
        other.heard(NodeId(1), at(now));
        other.passed_on(&one.beats(at(now)), at(now));
        one.heard(NodeId(2), at(now));
        one.passed_on(&other.beats(at(now)), at(now));
    }
    now += INTERVAL;
    assert_eq!(one.turn(GroupId(0), at(now)), Turn::Rank(0));
    assert_eq!(other.turn(GroupId(0), at(now)), Turn::Rank(1));
}

#[test]
fn signs_of_life_reach_every_member_along_the_ring() {
    let count = 9;
    let mut all: Vec<_> = (0..count).map(|me| ring_of(me, count)).collect();
    let everyone: NodeSet = (0..NodeId(count).index()).collect();
    for round in 1..100 {
        let now = at(round * INTERVAL);
        for me in 0..NodeId(count).index() {
            let beats = all[me].beats(now);
            for to in all[me].neighbours(now) {
                all[to.index()].heard(NodeId(u64::try_from(me).unwrap()), now);
                all[to.index()].passed_on(&beats, now);
            }
        }
        assert!(all.iter().all(|one| one.trusted(now) == everyone), "round {round}");
    }
}

#[test]
fn neighbours_are_the_closest_that_are_not_suspected() {
    let mut third = ring_of(2, 5);
    assert_eq!(third.neighbours(at(1)), [NodeId(1), NodeId(3)]);
    third.lapsed(NodeId(1), at(1));
    assert_eq!(third.neighbours(at(1)), [NodeId(0), NodeId(3)]);
    assert_eq!(ring_of(0, 2).neighbours(at(1)), [NodeId(1)], "before and after at once");
    assert_eq!(ring_of(0, 1).neighbours(at(1)), []);
}

#[test]
fn a_new_epoch_forgets_those_who_left_and_trusts_those_who_came() {
    let mut second = ring_of(1, 3);
    second.lapsed(NodeId(0), at(1));
    second.members(&[NodeId(0), NodeId(1), NodeId(7)], at(2));
    assert_eq!(second.turn(GroupId(0), at(2)), Turn::Rank(0), "n0 is as suspect as before");
    second.members(&[NodeId(7), NodeId(1)], at(3));
    assert_eq!(second.turn(GroupId(0), at(3)), Turn::Rank(1));
}

#[test]
fn only_what_a_process_heard_itself_is_reported() {
    let mut leader = ring_of(0, 4);
    leader.heard(NodeId(1), at(10));
    leader.heard(NodeId(2), at(50));
    leader.report([3].into_iter().collect(), at(60));
    assert_eq!(leader.alive(at(20)), [0, 2].into_iter().collect());
}

#[test]
fn at_random_everybody_draws_and_nobody_is_suspected() {
    let timing = Timing { renewal: span(RENEWAL), interval: span(INTERVAL) };
    let me = (NodeId(1), Incarnation(1));
    let random = Advisor::new(Choice::Random, me, timing, &[NodeId(0), NodeId(1)], at(0));
    assert_eq!(random.turn(GroupId(0), at(99_999)), Turn::Window { after: 0 });
    assert_eq!(random.trusted(at(99_999)), (0..2).collect());
    assert_eq!((random.neighbours(at(1)), random.weak_leader(GroupId(0), at(1))), (vec![], None));
}

#[test]
fn phi_watches_a_ring_as_well() {
    let config = phi::Settings {
        threshold: phi::Phi::from_thousandths(8_000),
        window: 20,
        first_estimate: span(INTERVAL),
        least_deviation: span(INTERVAL),
        acceptable_pause: span(RENEWAL),
    };
    let watch = Watch::Phi(config.validate().unwrap());
    let timing = Timing { renewal: span(RENEWAL), interval: span(INTERVAL) };
    let mut advisor = Advisor::new(
        Choice::Ring(watch),
        (NodeId(1), Incarnation(1)),
        timing,
        &[NodeId(0), NodeId(1)],
        at(0),
    );
    for beat in 1..50 {
        advisor.heard(NodeId(0), at(beat * 500));
        assert_eq!(advisor.turn(GroupId(0), at(beat * 500 + 499)), Turn::Rank(1));
    }
    assert_eq!(advisor.turn(GroupId(0), at(50_000)), Turn::Rank(0));
}
