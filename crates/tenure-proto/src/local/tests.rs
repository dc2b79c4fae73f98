//! The machine in a small world: one clock for all, every message takes the same time, alarms are
//! exact.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::boot::{BootId, Memory, Store};
use crate::time::{Drift, LocalSpan, Span};
use crate::{Chooser, Effect, Ticket};

const MILLI: u64 = 1_000_000;

fn timing() -> Timing {
    Timing {
        drift: Drift::from_ppm(100).unwrap(),
        tick: LocalSpan::from_nanos(1),
        delay: Span::from_nanos(7_500_000),
        least_delay: Span::from_millis(1),
        fast: Span::from_millis(15),
        hole: Span::from_millis(2),
        pace: LocalSpan::from_nanos(50 * MILLI),
    }
}

fn settings(members: u64) -> Settings {
    Settings {
        members: (0..members).map(NodeId).collect(),
        timing: timing(),
        expires: None,
        lock: None,
        majority: false,
        turn: None,
        tree: None,
        rules: Sound,
    }
}

struct Never;
impl Chooser for Never {
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}

/// A message on its way: when it arrives, from which process, to which.
type Way = (u64, u64, usize, usize);

struct World {
    config: Config,
    now: u64,
    nodes: Vec<Option<Local>>,
    memories: Vec<Vec<Promise>>,
    flights: BTreeMap<Way, Datagram>,
    sent: u64,
    /// Pairs that do not reach each other.
    cut: BTreeSet<(usize, usize)>,
    delay: u64,
    /// Whose messages to others take longer than Δ.
    slow: NodeSet,
    events: Vec<(usize, Event)>,
    messages: BTreeMap<&'static str, u64>,
}

impl World {
    fn new(settings: Settings) -> Self {
        let config = settings.validate().expect("settings hold together");
        let members = config.settings().members.len();
        let mut world = Self {
            config,
            now: 1_000 * MILLI,
            nodes: vec![None; members],
            memories: vec![Vec::new(); members],
            flights: BTreeMap::new(),
            sent: 0,
            cut: BTreeSet::new(),
            delay: 3 * MILLI,
            slow: NodeSet::EMPTY,
            events: Vec::new(),
            messages: BTreeMap::new(),
        };
        (0..members).for_each(|node| world.start(node, Boot::judge(Store::Founded(vec![]), None, HERE)));
        world
    }

    fn start(&mut self, node: usize, boot: Boot<Promise>) {
        let (mut effects, mut tickets, mut never) = (Vec::new(), Ticket(0), Never);
        let mut cx = Context::new(self.reading(), &mut never, &mut tickets, &mut effects);
        let id = self.config.settings().members[node];
        self.nodes[node] = Some(Local::start(&self.config, id, boot, &mut cx));
        self.carry_out(node, effects);
    }

    fn reading(&self) -> LocalTime {
        LocalTime::from_nanos(self.now)
    }

    fn carry_out(&mut self, node: usize, effects: Vec<Effect<Local>>) {
        for effect in effects {
            match effect {
                Effect::Remember(record) => self.memories[node] = vec![record],
                Effect::Publish(event) => self.events.push((node, event)),
                Effect::Send { to, message, .. } => {
                    let kind = match message.body {
                        Body::Election { .. } => "election",
                        Body::Reply { .. } => "reply",
                        Body::Release { .. } => "release",
                        Body::Helper => "helper",
                    };
                    let to = to.index();
                    if to != node {
                        *self.messages.entry(kind).or_default() += 1;
                    }
                    let link = (node.min(to), node.max(to));
                    if !self.cut.contains(&link) {
                        let delay = match node {
                            _ if node == to => 1_000,
                            _ if self.slow.contains(node) => 20 * MILLI,
                            _ => self.delay,
                        };
                        self.sent += 1;
                        self.flights.insert((self.now + delay, self.sent, node, to), message);
                    }
                }
                Effect::Persist { .. } => panic!("nothing goes to disk"),
            }
        }
    }

    fn step(&mut self, node: usize, input: Input<Local>) {
        let now = self.reading();
        let Some(process) = &mut self.nodes[node] else { return };
        let (mut effects, mut tickets, mut never) = (Vec::new(), Ticket(0), Never);
        process.handle(input, &mut Context::new(now, &mut never, &mut tickets, &mut effects));
        self.carry_out(node, effects);
        self.assert_partitions_are_disjoint();
    }

    fn run(&mut self, millis: u64) {
        let end = self.now + millis * MILLI;
        loop {
            let arrives = self.flights.keys().next().map(|way| way.0);
            let wakes =
                self.nodes.iter().enumerate().filter_map(|(node, process)| {
                    Some((process.as_ref()?.next_deadline()?.as_nanos(), node))
                });
            let wakes = wakes.min();
            let next = arrives.into_iter().chain(wakes.map(|(at, _)| at)).min().unwrap_or(u64::MAX);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            if arrives == Some(next) {
                let ((_, _, from, to), message) = self.flights.pop_first().expect("something arrives");
                let from = self.config.settings().members[from];
                self.step(to, Input::Message { from, received: self.reading(), message });
            } else if let Some((_, node)) = wakes {
                self.step(node, Input::Deadline);
            }
        }
    }

    fn leases(&self) -> Vec<(usize, Lease)> {
        let lease =
            |(node, process): (usize, &Option<Local>)| Some((node, process.as_ref()?.lease(self.reading())?));
        self.nodes.iter().enumerate().filter_map(lease).collect()
    }

    fn leaders(&self) -> Vec<usize> {
        self.leases().into_iter().map(|(node, _)| node).collect()
    }

    fn assert_partitions_are_disjoint(&self) {
        let mut all = NodeSet::EMPTY;
        for (node, lease) in self.leases() {
            assert!(lease.supporters.contains(node), "LS");
            assert!(all.intersection(lease.supporters).is_empty(), "SO");
            all = all.union(lease.supporters);
        }
    }

    fn split(&mut self, one: &[usize]) {
        let members = self.nodes.len();
        let inside = |node: usize| one.contains(&node);
        self.cut = (0..members)
            .flat_map(|a| (a + 1..members).map(move |b| (a, b)))
            .filter(|(a, b)| inside(*a) != inside(*b))
            .collect();
    }

    fn kappa(&self) -> u64 {
        let constants = self.config.constants();
        constants.kappa_leader.max(constants.kappa_support).as_nanos() / MILLI + 1
    }
}

const HERE: BootId = BootId { boot: 1, clock_offset: 0, slept: 0, marker: 0 };

fn set(members: &[usize]) -> NodeSet {
    members.iter().copied().collect()
}

#[test]
fn the_first_of_all_leads_with_everybody_within_kappa() {
    let mut world = World::new(settings(5));
    world.run(world.kappa());
    assert_eq!(
        world.leases().iter().map(|(node, lease)| (*node, lease.supporters)).collect::<Vec<_>>(),
        [(0, set(&[0, 1, 2, 3, 4]))]
    );
}

#[test]
fn each_side_of_a_split_has_a_leader_and_after_the_merge_there_is_one() {
    let mut world = World::new(settings(5));
    world.run(1_000);
    world.split(&[0, 3]);
    world.run(world.kappa());
    let partitions: Vec<_> = world.leases().iter().map(|(node, lease)| (*node, lease.supporters)).collect();
    assert_eq!(partitions, [(0, set(&[0, 3])), (1, set(&[1, 2, 4]))]);
    world.cut.clear();
    world.run(world.kappa());
    assert_eq!(world.leaders(), [0]);
    assert_eq!(world.leases()[0].1.supporters, set(&[0, 1, 2, 3, 4]));
}

#[test]
fn in_majority_mode_only_the_larger_side_of_a_split_has_a_leader() {
    let mut world = World::new(Settings { majority: true, ..settings(5) });
    world.run(1_000);
    world.split(&[0, 3]);
    world.run(world.kappa());
    assert_eq!(world.leaders(), [1]);
}

#[test]
fn slowness_beyond_delta_is_a_partition() {
    let mut world = World::new(settings(2));
    world.run(1_000);
    world.delay = 16 * MILLI;
    world.run(world.kappa());
    assert_eq!(world.leaders(), [0, 1], "each is alone");
    world.delay = 7 * MILLI;
    world.run(world.kappa());
    assert_eq!(world.leaders(), [0]);
}

#[test]
fn followers_know_the_members_for_no_longer_than_they_are_bound() {
    let mut world = World::new(settings(3));
    world.run(1_000);
    let view = world.nodes[2].as_ref().unwrap().view(world.reading()).expect("n2 knows its partition");
    assert_eq!((view.leader, view.members), (NodeId(0), set(&[0, 1, 2])));
    let lock = world.nodes[2].as_ref().unwrap().lock.expect("n2 is bound");
    assert!(view.until <= lock.until);
    world.nodes[0] = None;
    world.run(60);
    assert_eq!(world.nodes[2].as_ref().unwrap().view(world.reading()), None);
}

#[test]
fn after_a_reboot_nobody_is_supported_for_a_lock_time_and_a_restart_remembers() {
    let mut world = World::new(settings(2));
    world.run(1_000);
    let lock = world.nodes[1].as_ref().unwrap().lock.expect("n1 is bound to n0");
    let used = |records| Store::Used(Incarnation(1), records);
    let memory = Memory { boot: HERE, writer: Incarnation(1), records: world.memories[1].clone() };
    world.start(1, Boot::judge(used(vec![]), Some(memory), HERE));
    assert_eq!(world.nodes[1].as_ref().unwrap().lock, Some(lock));
    world.start(1, Boot::judge(used(vec![]), None, HERE));
    let silent = world.nodes[1].as_ref().unwrap().silent_until;
    let wait = world.config.constants().lock;
    assert!(silent >= world.reading().after(wait));
    world.events.clear();
    world.split(&[0]);
    world.run(silent.remaining(world.reading()).as_nanos() / MILLI);
    let bound = |(node, event): &(usize, Event)| *node == 1 && matches!(event, Event::Locked { .. });
    assert!(!world.events.iter().any(bound), "not even by itself");
    world.run(world.kappa());
    assert_eq!(world.leaders(), [0, 1]);
}

#[test]
fn a_late_older_request_does_not_take_the_place_of_a_newer_one_in_a_lock() {
    let mut world = World::new(settings(2));
    world.run(1_000);
    let process = world.nodes[1].as_mut().unwrap();
    let held = process.lock.expect("n1 is bound to n0");
    let older = RequestId { number: held.request.number - 1, ..held.request };
    let received = LocalTime::from_nanos(world.now);
    let asked = Asked {
        asker: 0,
        request: older,
        alive: set(&[0, 1]),
        collate: false,
        members: NodeSet::EMPTY,
        received,
    };
    let (mut effects, mut tickets, mut never) = (Vec::new(), Ticket(0), Never);
    let mut cx = Context::new(received, &mut never, &mut tickets, &mut effects);
    process.consider(&asked, &mut cx);
    process.set_free(0, older, &mut cx);
    let kept = process.lock.expect("the Release of the older request frees nobody");
    assert_eq!(kept.request, held.request);
}

#[test]
fn a_steady_round_is_one_request_to_each_and_one_answer_of_each() {
    let mut world = World::new(settings(8));
    world.run(2_000);
    world.messages.clear();
    world.events.clear();
    world.run(1_000);
    let rounds = world.events.iter().filter(|(_, event)| matches!(event, Event::Leads { .. })).count() as u64;
    assert!(rounds > 15);
    assert!(world.messages["election"].abs_diff(rounds * 7) <= 7);
    assert!(world.messages["reply"].abs_diff(rounds * 7) <= 7);
    assert_eq!(world.messages.get("helper"), None, "none in the steady state");
}

#[test]
fn along_a_tree_the_asker_hears_only_its_children_and_all_support_it() {
    let wide = Timing { pace: LocalSpan::from_nanos(150 * MILLI), ..timing() };
    let mut world = World::new(Settings { tree: Some(3), timing: wide, ..settings(13) });
    world.run(2 * world.kappa());
    assert_eq!(world.leases()[0].1.supporters.len(), 13);
    let collated = |event: &Event| matches!(event, Event::Asked { collate: true, .. });
    assert!(world.events.iter().any(|(_, event)| collated(event)));
    assert!(!world.events.iter().rev().take(500).any(|(_, event)| matches!(event, Event::Failed { .. })));
}

#[test]
fn a_tree_whose_inner_node_is_gone_falls_back_to_direct_answers() {
    let wide = Timing { pace: LocalSpan::from_nanos(150 * MILLI), ..timing() };
    let mut world = World::new(Settings { tree: Some(3), timing: wide, ..settings(13) });
    world.run(world.kappa());
    // n1 and its children n4, n5, n6 do not reach each other any more: all of them reach the root.
    world.cut = [(1, 4), (1, 5), (1, 6)].into_iter().collect();
    world.run(3 * world.kappa());
    assert_eq!(world.leaders(), [0]);
    assert_eq!(world.leases()[0].1.supporters.len(), 13, "all are still supporters");
}

#[test]
fn an_outsider_beyond_delta_is_not_kept_alive_by_a_parent_that_waits_for_it() {
    let wide = Timing { pace: LocalSpan::from_nanos(150 * MILLI), ..timing() };
    let mut world = World::new(Settings { tree: Some(3), timing: wide, ..settings(13) });
    world.run(2 * world.kappa());
    // The parent of n12 is n3, and waits for nearly 2 Delta.
    world.slow = set(&[12]);
    world.run(world.kappa());
    for _ in 0..100 {
        world.run(40);
        let [(0, lease)] = world.leases()[..] else { panic!("{:?} lead", world.leaders()) };
        assert_eq!(lease.supporters, (0..12).collect());
    }
}

#[test]
fn everybody_has_its_turn_where_turns_are_taken() {
    let turn = Some(Span::from_millis(1_000));
    let mut world = World::new(Settings { turn, ..settings(3) });
    let mut seen = BTreeSet::new();
    for _ in 0..300 {
        world.run(20);
        seen.extend(world.leaders());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn the_constants_of_the_paper_are_refused_with_the_inequality_and_two_sets_that_hold() {
    let paper = Timing { hole: Span::from_millis(30), ..timing() };
    let refused = Settings { timing: paper, ..settings(8) }.validate().expect_err("no lock time fits");
    assert_eq!(refused.inequality, Inequality::Lock);
    for feasible in [refused.slower.clone(), refused.steadier.clone()] {
        let timing = *feasible.expect("there are sets nearby");
        Settings { timing, ..settings(8) }.validate().expect("what is suggested holds");
    }
    let text = refused.to_string();
    assert!(text.contains("(max(2 Delta, 4 delta) + sigma)(1+rho)/(1-2rho) <"), "{text}");
    assert!(text.contains("EP=97ms") && text.contains("sigma=6.7ms"), "{text}");
}

#[test]
fn each_inequality_is_named_where_it_does_not_hold() {
    let refused = |settings: Settings| settings.validate().map_err(|refused| refused.inequality).unwrap_err();
    let with = |timing| Settings { timing, ..settings(3) };
    assert_eq!(refused(settings(0)), Inequality::Members);
    assert_eq!(
        refused(with(Timing { least_delay: Span::from_millis(8), ..timing() })),
        Inequality::LeastDelay
    );
    assert_eq!(refused(with(Timing { fast: Span::from_millis(14), ..timing() })), Inequality::Fast);
    let hasty = Timing { pace: LocalSpan::from_nanos(16 * MILLI), ..timing() };
    assert_eq!(refused(with(hasty)), Inequality::Pace);
    let short = Some(LocalSpan::from_nanos(60 * MILLI));
    assert_eq!(refused(Settings { expires: short, ..settings(3) }), Inequality::Expires);
    let lock = Some(LocalSpan::from_nanos(32 * MILLI));
    assert_eq!(refused(Settings { lock, ..settings(3) }), Inequality::ShortLock);
    assert_eq!(refused(Settings { turn: Some(Span::from_millis(9)), ..settings(3) }), Inequality::Turn);
    assert_eq!(refused(Settings { tree: Some(1), ..settings(3) }), Inequality::Tree);
    let steady = Drift::from_ppm(250_000).unwrap();
    assert_eq!(refused(with(Timing { drift: steady, ..timing() })), Inequality::Drift);
}

#[test]
fn a_long_lock_is_safe_and_costs_one_lock_time_more() {
    let derived = settings(3).validate().unwrap();
    let lock = Some(LocalSpan::from_nanos(400 * MILLI));
    let long = Settings { lock, ..settings(3) }.validate().unwrap();
    assert!(long.constants().kappa_leader > derived.constants().kappa_leader);
    let mut world = World::new(Settings { lock, ..settings(3) });
    world.run(world.kappa());
    assert_eq!(world.leaders(), [0]);
}
