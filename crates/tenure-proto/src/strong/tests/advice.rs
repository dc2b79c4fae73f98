//! Acts at the machine's discretion: when it tries, for how long it asks, to whom it hands over.

use super::*;
use crate::strong::epoch::{Change, EpochTalk};

/// Node `node` of `count`, campaigning since reading 10,000.
fn campaigning(node: u64, count: u64, settings: Settings) -> Bench {
    let quorums = Quorums::majority((0..count).map(NodeId).collect()).unwrap();
    let mut bench = Bench::of(node, Settings { quorums, ..settings }, Store::Founded(vec![]), None);
    bench.handle(Input::Command(Command::Campaign(GROUP)));
    bench.handle(Input::Deadline);
    bench.effects.clear();
    bench
}

fn next(bench: &Bench) -> Option<u64> {
    bench.node.next_deadline().map(LocalTime::as_nanos)
}

/// Wakes the machine whenever it wants to be, up to `until`; everything that it does.
fn wait(bench: &mut Bench, until: u64) -> Vec<(u64, Effect<Nerio>)> {
    let mut all = Vec::new();
    while let Some(at) = next(bench).filter(|at| *at <= until) {
        let at = at.max(bench.now);
        let effects = bench.at(at).handle(Input::Deadline);
        all.extend(effects.into_iter().map(|effect| (at, effect)));
    }
    bench.at(until);
    all
}

fn asked_at(effects: &[(u64, Effect<Nerio>)]) -> Option<(u64, GrantRequest)> {
    effects.iter().find_map(|(at, effect)| match effect {
        Effect::Publish(Event::Asked(request)) => Some((*at, *request)),
        _ => None,
    })
}

fn here(effects: &[(u64, Effect<Nerio>)]) -> Vec<(u64, u64)> {
    let here = effects.iter().filter_map(|(at, effect)| match effect {
        Effect::Send { to, message: Message::Here { .. }, .. } => Some((*at, to.0)),
        _ => None,
    });
    here.collect()
}

/// A renewal by node 0, whose answerers are known.
fn renewal(seq: u64, alive: NodeSet, priority: u8) -> Message {
    let request = GrantRequest { kind: Kind::Renew, ..request(0, seq, 1) };
    Message::Extend { request, alive, priority }
}

fn everyone() -> NodeSet {
    (0..5).collect()
}

#[test]
fn when_a_leader_is_gone_the_next_of_the_ring_asks_at_once_and_others_a_step_later_each() {
    for (node, steps) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        let mut bench = campaigning(node, 5, settings());
        bench.at(10_500).hear(0, renewal(1, everyone(), 0));
        let (_, free) = bench.grant().expect("it supports the leader");
        let effects = wait(&mut bench, free + 400);
        let asked = asked_at(&effects).map(|(at, _)| at);
        assert_eq!(asked, Some(free + steps * 50), "n{node}; a step is a retry");
    }
}

#[test]
fn as_long_as_a_leader_renews_nobody_says_a_word_but_answers() {
    let mut bench = campaigning(1, 5, settings());
    for renewals in 0..20 {
        let at = 10_000 + renewals * 500;
        assert_eq!(wait(&mut bench, at), [], "at {at}");
        let answered = bench.at(at).hear(0, renewal(renewals + 1, everyone(), 0));
        assert_eq!(answers(&answered).len(), 1, "an ok and nothing else");
    }
}

#[test]
fn those_whom_the_leader_did_not_hear_are_not_waited_for() {
    let mut settings = settings();
    settings.lease = Span::from_nanos(200);
    let mut bench = campaigning(3, 5, settings);
    let alive: NodeSet = [0, 2, 3, 4].into_iter().collect();
    for renewals in 0..20 {
        let lease = Span::from_nanos(200);
        let request = GrantRequest { kind: Kind::Renew, lease, ..request(0, renewals + 1, 1) };
        bench.at(10_100 + renewals * 100).hear(0, Message::Extend { request, alive, priority: 0 });
    }
    let (_, free) = bench.grant().expect("it supports the leader");
    let asked = asked_at(&wait(&mut bench, free + 300)).map(|(at, _)| at);
    assert_eq!(asked, Some(free + 50), "only n2 comes before it: n1 has been silent for long");
}

#[test]
fn a_leader_reports_who_answered_it() {
    let mut bench = campaigning(0, 5, settings());
    let asked = bench.node.groups[&GROUP].candidate.lead;
    assert_eq!(asked, None);
    let request = GrantRequest { start: LocalTime::from_nanos(10_000), ..request(0, 1, 1) };
    let request = GrantRequest { id: InstanceId { holder: bench.node.process.holder, seq: 1 }, ..request };
    for from in [0, 1, 3] {
        bench.at(10_040).ok(from, request);
    }
    assert!(bench.leads().is_some());
    bench.at(10_045).ok(4, request);
    let effects = wait(&mut bench, 10_600);
    let alive = effects.iter().find_map(|(_, effect)| match effect {
        Effect::Send { message: Message::Extend { alive, .. }, .. } => Some(*alive),
        _ => None,
    });
    assert_eq!(alive, Some([0, 1, 3, 4].into_iter().collect()), "n4 too, though it was late");
}

#[test]
fn a_leader_asks_those_again_that_refused_its_renewal() {
    let mut bench = Bench::founded();
    let acquired = bench.ask();
    for from in [0, 1] {
        bench.ok(from, acquired);
    }
    assert!(bench.leads().is_some());
    let effects = wait(&mut bench, 10_450);
    let (asked, renewal) = asked_at(&effects).expect("it renews after half of its lease");
    let refusal = Refusal::Busy { holder: NodeId(2), remaining: LocalSpan::from_nanos(900) };
    let (group, id) = (GROUP, renewal.id);
    bench.hear(2, Message::Nack { group, id, refusal, max_term: Term(2) });
    let again = wait(&mut bench, asked + 60);
    let to: Vec<u64> = again.iter().filter_map(|(_, effect)| sent_to(effect)).collect();
    assert_eq!(to, [0, 1, 2], "n2 may be free by now, and n1 may be dead");
    bench.ok(0, renewal);
    bench.ok(2, renewal);
    assert!(bench.leads() > Some(asked + 800), "it was the one that was missing");
}

/// Whom the leader asks by an effect.
fn sent_to(effect: &Effect<Nerio>) -> Option<u64> {
    match effect {
        Effect::Send { to, message: Message::Extend { .. }, .. } => Some(to.0),
        _ => None,
    }
}

#[test]
fn without_a_leader_processes_tell_their_neighbours_that_they_live() {
    let mut bench = campaigning(3, 5, settings());
    let effects = wait(&mut bench, 10_120);
    assert_eq!(here(&effects), [(10_050, 2), (10_050, 4), (10_100, 2), (10_100, 4)]);
}

#[test]
fn who_is_refused_by_all_that_answer_waits_for_the_holder_whom_the_silent_may_support_too() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    let refusal = Refusal::Busy { holder: NodeId(2), remaining: LocalSpan::from_nanos(300) };
    let (group, id) = (GROUP, asked.id);
    bench.at(10_010).hear(1, Message::Nack { group, id, refusal, max_term: Term(1) });
    let effects = wait(&mut bench, 10_500);
    let again = effects.iter().filter(|(_, effect)| matches!(effect, Effect::Publish(Event::Asked(_))));
    let again: Vec<u64> = again.map(|(at, _)| *at).collect();
    assert_eq!(again.first(), Some(&10_310), "n2 led, and is dead: its last grant ends then");
}

#[test]
fn runs_that_met_are_followed_by_a_random_wait_whatever_the_rank() {
    let mut bench = Bench::founded();
    let asked = bench.ask();
    let refusal = |node, holder| Message::Nack {
        group: GROUP,
        id: asked.id,
        refusal: Refusal::Busy { holder: NodeId(holder), remaining: LocalSpan::from_nanos(900) },
        max_term: Term(node),
    };
    bench.hear(1, refusal(1, 1));
    bench.hear(2, refusal(1, 2));
    assert!(bench.node.groups[&GROUP].candidate.patience.crowded);
    bench.at(10_400).hear(
        1,
        Message::Extend {
            request: GrantRequest { kind: Kind::Renew, ..request(1, 2, 1) },
            alive: NodeSet::EMPTY,
            priority: 0,
        },
    );
    assert!(!bench.node.groups[&GROUP].candidate.patience.crowded, "somebody leads: the crowd is gone");
}

#[test]
fn a_former_leader_that_asks_for_another_term_is_not_known_to_lead_before_it_renews() {
    let mut bench = campaigning(4, 5, settings());
    let is_renewed = |bench: &Bench| {
        let grant = bench.node.grant(GROUP).expect("it has granted");
        (grant.term, bench.node.is_renewed(GROUP, grant))
    };
    bench.at(10_500).hear(0, renewal(1, everyone(), 0));
    assert_eq!(is_renewed(&bench), (Term(1), true));
    let (_, free) = bench.grant().expect("it supports the leader");
    bench.at(free + 1).hear(0, Message::Request(request(0, 2, 2)));
    assert_eq!(is_renewed(&bench), (Term(2), false), "it may be one of too few");
    let request = GrantRequest { kind: Kind::Renew, ..request(0, 3, 2) };
    bench.hear(0, Message::Extend { request, alive: everyone(), priority: 0 });
    assert_eq!(is_renewed(&bench), (Term(2), true));
    bench.hear(0, renewal(1, everyone(), 0));
    assert_eq!(is_renewed(&bench), (Term(2), true), "a late request of the former term changes nothing");
}

#[test]
fn a_minority_names_its_lowest_as_weak_leader_which_has_no_term() {
    let mut bench = campaigning(4, 5, settings());
    bench.at(10_500).hear(0, renewal(1, everyone(), 0));
    let standing = |bench: &Bench| bench.node.standing(GROUP, LocalTime::from_nanos(bench.now));
    let until = LocalTime::from_nanos(10_500 + 1 + 1100);
    assert_eq!(standing(&bench), Standing::Follows { holder: NodeId(0), until });
    let mut told = Vec::new();
    for now in (11_650..14_000).step_by(50) {
        told.extend(wait(&mut bench, now));
        bench.hear(3, Message::Here { epoch: Epoch(0), beats: vec![] });
    }
    let Standing::Weak(weak) = standing(&bench) else { panic!("{:?}", standing(&bench)) };
    assert_eq!((weak.node(), weak.side()), (NodeId(3), [3, 4].into_iter().collect()));
    let named: Vec<_> = told
        .iter()
        .filter_map(|(_, effect)| match effect {
            Effect::Publish(Event::WeakLeader { leader, .. }) => Some(*leader),
            _ => None,
        })
        .collect();
    assert_eq!(named, [Some(NodeId(3))], "said once");
    let effects = bench.hear(0, renewal(2, everyone(), 0));
    let over = Effect::Publish(Event::WeakLeader { group: GROUP, leader: None });
    assert!(effects.contains(&over), "the leader is heard again: {effects:?}");
    assert!(matches!(standing(&bench), Standing::Follows { holder: NodeId(0), .. }));
}

#[test]
fn a_leader_stands_as_one_until_its_lease_ends_and_at_first_there_is_nobody() {
    let mut bench = Bench::founded();
    let standing = |bench: &Bench| bench.node.standing(GROUP, LocalTime::from_nanos(bench.now));
    assert_eq!(standing(&bench), Standing::Nobody);
    let asked = bench.ask();
    bench.ok(1, asked);
    bench.ok(2, asked);
    assert_eq!(standing(&bench), Standing::Leads { term: Term(1), until: LocalTime::from_nanos(10_900) });
    bench.at(10_900);
    assert_eq!(standing(&bench), Standing::Nobody);
}

/// Leads three, with leases that follow the network, and renews `many` times with round trips of
/// `trip`.
fn renew(bench: &mut Bench, many: u64, trip: u64) -> Vec<(u64, Effect<Nerio>)> {
    let mut all = Vec::new();
    for _ in 0..many {
        let effects = wait(bench, next(bench).unwrap());
        let (at, asked) = asked_at(&effects).expect("it is time to renew");
        all.extend(effects);
        bench.at(at + trip);
        for from in [1, 2] {
            let done = bench.ok(from, asked);
            all.extend(done.into_iter().map(|effect| (at + trip, effect)));
        }
    }
    all
}

fn adaptive() -> Bench {
    let adapt = Adapt { shortest: Span::from_nanos(300), interval: Span::from_nanos(200), retries: 2 };
    let mut settings = settings();
    settings.adapt = Some(adapt);
    settings.clocks.bound = Bound::Drift(Drift::from_ppm(0).unwrap());
    let mut bench = Bench::of(0, settings, Store::Founded(vec![]), None);
    let asked = bench.ask();
    bench.at(10_030);
    bench.ok(1, asked);
    bench.ok(2, asked);
    bench
}

fn leases(effects: &[(u64, Effect<Nerio>)]) -> Vec<u64> {
    let asked = effects.iter().filter_map(|(_, effect)| match effect {
        Effect::Publish(Event::Asked(request)) => Some(request.lease.as_nanos()),
        _ => None,
    });
    asked.collect()
}

#[test]
fn on_a_quick_network_leases_shrink_to_what_is_needed_and_the_leader_leads_on() {
    let mut bench = adaptive();
    let leases = leases(&renew(&mut bench, 60, 20));
    assert_eq!(leases[..11], [1000; 11], "one teaches how quick the network is, ten are quiet");
    assert_eq!(leases[11], 875);
    let last = *leases.last().unwrap();
    assert!((300..=330).contains(&last), "i + 3d, with hardly any allowance: {last}");
    assert!(bench.leads().is_some());
}

#[test]
fn a_slow_answer_makes_the_next_lease_longer_at_once_and_an_alarm_is_raised_once() {
    let mut bench = adaptive();
    renew(&mut bench, 60, 20);
    let slower = leases(&renew(&mut bench, 3, 60));
    assert!(slower[1] > 380, "{slower:?}");
    renew(&mut bench, 5, 220);
    let effects = renew(&mut bench, 20, 660);
    let alarms =
        effects.iter().filter(|(_, effect)| matches!(effect, Effect::Publish(Event::Strained { .. })));
    assert_eq!(alarms.count(), 1);
    let last = *leases(&effects).last().unwrap();
    assert!((1800..=2000).contains(&last), "as long as leases may be, but for a trifle: {last}");
    assert!(bench.leads().is_some());
}

#[test]
fn a_leader_whose_new_epoch_allows_longer_leases_asks_again_before_the_short_one_is_over() {
    let mut bench = adaptive();
    renew(&mut bench, 20, 660);
    let until = bench.leads().expect("it leads");
    let charter = bench.node.charter().clone();
    let body = Change::LongestLease(Span::from_nanos(9000)).applied(&charter.body, &Sound).unwrap();
    let next = charter.next(body, Term(bench.node.top().0));
    bench.at(until - 400).hear(1, Message::Epoch(EpochTalk::Decided(next)));
    // Those who are asked in an epoch that they do not know yet do not answer.
    let again = wait(&mut bench, until - 1);
    let asked = again.iter().filter(|(_, effect)| {
        matches!(effect, Effect::Send { to: NodeId(1), message: Message::Extend { .. }, .. })
    });
    assert!(asked.count() >= 1, "{again:?}");
}

#[test]
fn a_leader_hands_over_to_a_steady_process_of_better_priority_and_to_no_other() {
    let mut settings = settings();
    settings.hold = Some(Span::from_nanos(300));
    let mut bench = Bench::of(0, settings, Store::Founded(vec![]), None);
    let asked = bench.ask();
    bench.ok(1, asked);
    bench.ok(2, asked);
    bench.handle(Input::Command(Command::Rank { group: GROUP, priority: 1 }));
    let mut prefer = |from: u64, priority, now| {
        let talk = Talk::Prefer { holder: request(from, 1, 1).id.holder, priority };
        answers(&bench.at(now).hear(from, Message::Talk { group: GROUP, talk }))
    };
    for now in [10_100, 10_200, 10_300] {
        assert_eq!((prefer(1, 1, now), prefer(2, 0, now)), (vec![], vec![]), "equal, or not long enough");
    }
    assert_eq!(prefer(1, 1, 10_400), []);
    assert_eq!(prefer(2, 0, 10_400), [(2, "take over", None)]);
}

#[test]
fn whoever_would_rather_lead_says_so_with_each_renewal_and_others_say_nothing() {
    for (own, leader, says) in [(0, 1, 1), (1, 1, 0), (2, 1, 0)] {
        let mut bench = campaigning(1, 5, settings());
        bench.handle(Input::Command(Command::Rank { group: GROUP, priority: own }));
        for seq in 1..4 {
            let answered = bench.at(10_000 + seq * 400).hear(0, renewal(seq, everyone(), leader));
            let prefers = answers(&answered).into_iter().filter(|(_, what, _)| *what == "prefer");
            assert_eq!(prefers.count(), says, "priority {own} under a leader of {leader}");
        }
    }
}

#[test]
fn a_candidate_of_lower_priority_leaves_the_others_their_turns() {
    let mut bench = campaigning(1, 5, settings());
    bench.handle(Input::Command(Command::Rank { group: GROUP, priority: 1 }));
    bench.at(10_500).hear(0, renewal(1, everyone(), 0));
    let (_, free) = bench.grant().expect("it supports the leader");
    let asked = asked_at(&wait(&mut bench, free + 1000)).map(|(at, _)| at);
    assert_eq!(asked, Some(free + 5 * 50), "a step for each of five members");
}
