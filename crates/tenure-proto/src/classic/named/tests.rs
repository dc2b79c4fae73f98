//! Elections among named processes, driven by hand: messages take one unit, and come before
//! deadlines of the same instant.

use std::collections::BTreeMap;

use super::*;
use crate::boot::{Boot, BootKind};
use crate::{Effect, Incarnation, Ticket};

struct NoChance;

impl crate::Chooser for NoChance {
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}

const UNIT: u64 = 1000;

fn config(attrs: Vec<u64>) -> Config<Sound> {
    Config {
        attrs: attrs.into(),
        delay: LocalSpan::from_nanos(UNIT),
        period: LocalSpan::ZERO,
        sight: Sight::Sharp,
        repair: Repair::Detector,
        rules: Sound,
    }
}

/// Processes without faults but those that never ran.
struct Town<A: Algorithm<Sound>> {
    now: u64,
    living: BTreeMap<NodeId, Named<A, Sound>>,
    flights: BTreeMap<(u64, u64), Flight<A>>,
    sent: u64,
    /// The delay of the next message, drawn.
    chance: Option<u64>,
}

type Flight<A> = (NodeId, NodeId, Message<<A as Algorithm<Sound>>::Message>);
type Effects<A> = Vec<Effect<Named<A, Sound>>>;

impl<A: Algorithm<Sound>> Town<A> {
    fn new(attrs: Vec<u64>, dead: &[u64], chance: Option<u64>) -> Self {
        let config = config(attrs);
        let mut town = Self { now: 0, living: BTreeMap::new(), flights: BTreeMap::new(), sent: 0, chance };
        for me in config.names().filter(|name| !dead.contains(&name.0)) {
            let boot = Boot { incarnation: Incarnation(1), durable: Vec::new(), kind: BootKind::Founding };
            let mut effects = Vec::new();
            let mut tickets = Ticket(0);
            let mut chance = NoChance;
            let mut cx = Context::new(LocalTime::ZERO, &mut chance, &mut tickets, &mut effects);
            let process = Named::start(&config, me, boot, &mut cx);
            town.living.insert(me, process);
            town.carry_out(me, effects);
        }
        town
    }

    fn delay(&mut self) -> u64 {
        let Some(chance) = &mut self.chance else { return UNIT };
        *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1 + (*chance >> 33) % UNIT
    }

    fn carry_out(&mut self, from: NodeId, effects: Effects<A>) {
        for effect in effects {
            if let Effect::Send { to, message, .. } = effect {
                self.sent += 1;
                let at = if to == from { self.now } else { self.now + self.delay() };
                self.flights.insert((at, self.sent), (from, to, message));
            }
        }
    }

    fn tell(&mut self, node: u64, input: Input<Named<A, Sound>>) {
        let (now, node) = (LocalTime::from_nanos(self.now), NodeId(node));
        let Some(process) = self.living.get_mut(&node) else { return };
        let (mut effects, mut tickets) = (Vec::new(), Ticket(0));
        process.handle(input, &mut Context::new(now, &mut NoChance, &mut tickets, &mut effects));
        self.carry_out(node, effects);
    }

    /// Until nothing is left to do.
    fn run(&mut self) {
        for _ in 0..1_000_000 {
            let deadlines =
                self.living.iter().filter_map(|(node, p)| Some((p.next_deadline()?.as_nanos(), *node)));
            let deadline = deadlines.min();
            let flight = self.flights.first_key_value().map(|(key, _)| *key);
            match (flight, deadline) {
                (Some((at, number)), deadline) if deadline.is_none_or(|(due, _)| at <= due) => {
                    let Some((from, to, message)) = self.flights.remove(&(at, number)) else { return };
                    self.now = at;
                    let received = LocalTime::from_nanos(at);
                    self.tell(to.0, Input::Message { from, received, message });
                }
                (_, Some((due, node))) => {
                    self.now = due;
                    self.tell(node.0, Input::Deadline);
                }
                (None, None) => return,
                (Some(_), None) => unreachable!("a message without a deadline was delivered above"),
            }
        }
        panic!("it does not end");
    }

    fn elected(&self) -> Vec<Option<u64>> {
        self.living.values().map(|process| process.elected().map(|who| who.0)).collect()
    }
}

/// Every set of callers, at once or one shortly after the other, with messages that overtake each
/// other.
fn same_winner_for_every_set_of_callers<A: Algorithm<Sound>>() {
    let attrs = [[0, 0, 0, 0, 0, 0], [5, 1, 9, 9, 3, 0]];
    for n in 1..=6 {
        for attrs in attrs.map(|attrs| attrs[..n].to_vec()) {
            let best = config(attrs.clone());
            let best = best.names().map(|name| best.rank(name)).max().unwrap().id;
            for callers in 1u32..1 << n {
                for chance in [None, Some(u64::from(callers)), Some(u64::from(callers) + 1000)] {
                    let mut town: Town<A> = Town::new(attrs.clone(), &[], chance);
                    for caller in (0..n as u64).filter(|caller| callers >> caller & 1 == 1) {
                        town.tell(caller, Input::Command(Command::Call));
                    }
                    town.run();
                    assert_eq!(
                        town.elected(),
                        vec![Some(best.0); n],
                        "{n} processes {attrs:?}, callers {callers:b}, chance {chance:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn everybody_telling_everybody_elects_the_best_whoever_calls() {
    same_winner_for_every_set_of_callers::<Trivial>();
}

#[test]
fn a_ring_elects_the_best_whoever_calls() {
    same_winner_for_every_set_of_callers::<Ring>();
}

#[test]
fn bullies_elect_the_best_whoever_calls() {
    same_winner_for_every_set_of_callers::<Bully>();
}

#[test]
fn consensus_elects_the_best_whoever_calls() {
    same_winner_for_every_set_of_callers::<ByConsensus>();
}

#[test]
fn an_election_for_consensus_elects_the_best_whoever_calls() {
    same_winner_for_every_set_of_callers::<ByElection>();
}

/// Messages and time of one caller among n, all alive.
fn cost<A: Algorithm<Sound>>(n: u64, caller: u64) -> (u64, u64) {
    let n = NodeId(n).index();
    let mut town: Town<A> = Town::new(vec![0; n], &[], None);
    town.tell(caller, Input::Command(Command::Call));
    town.run();
    assert_eq!(town.elected(), vec![Some(n as u64 - 1); n]);
    (town.sent, town.now / UNIT)
}

#[test]
fn everybody_telling_everybody_costs_n_squared_less_one_in_two_message_times() {
    for n in 2..=12 {
        for caller in 0..n {
            assert_eq!(cost::<Trivial>(n, caller), (n * n - 1, 2), "{n} processes");
        }
    }
}

#[test]
fn a_ring_called_j_hops_before_the_best_costs_j_and_2n_messages_one_after_the_other() {
    for n in 2..=40 {
        for caller in 0..n {
            let j = n - 1 - caller;
            assert_eq!(cost::<Ring>(n, caller), (j + 2 * n, j + 2 * n), "{n} processes, {j} hops");
        }
    }
}

#[test]
fn one_instance_of_consensus_costs_five_messages_a_process_in_five_message_times() {
    for n in 2..=9 {
        let mut town: Town<ByConsensus> = Town::new(vec![0; n], &[], None);
        town.tell(n as u64 - 1, Input::Command(Command::Call));
        town.run();
        let to_itself = 4;
        assert_eq!((town.sent - to_itself, town.now / UNIT), (5 * (n as u64 - 1), 5), "{n} processes");
    }
}

#[test]
fn the_lowest_bully_that_notices_alone_costs_n_squared_less_n_and_one_in_4d() {
    for n in 3..=40 {
        let mut town: Town<Bully> = Town::new(vec![0; n], &[n as u64 - 1], None);
        town.living.values_mut().for_each(|process| process.elected = Some(NodeId(n as u64 - 1)));
        town.tell(0, Input::Command(Command::Suspect(NodeId(n as u64 - 1))));
        town.run();
        assert_eq!(town.elected(), vec![Some(n as u64 - 2); n - 1]);
        let n = n as u64;
        assert_eq!((town.sent, town.now), (n * n - n - 1, 4 * UNIT), "{n} processes");
    }
}

#[test]
fn the_second_highest_bully_that_knows_costs_n_less_two_in_one_message_time() {
    for n in 3..=40 {
        let mut town: Town<Bully> = Town::new(vec![0; n], &[n as u64 - 1], None);
        town.living.values_mut().for_each(|process| process.elected = Some(NodeId(n as u64 - 1)));
        town.tell(n as u64 - 2, Input::Command(Command::Suspect(NodeId(n as u64 - 1))));
        town.run();
        assert_eq!((town.sent, town.now), (n as u64 - 2, UNIT), "{n} processes");
    }
}

#[test]
fn the_winner_is_the_best_by_attribute_and_its_name_breaks_ties() {
    let mut town: Town<Ring> = Town::new(vec![7, 9, 9, 1], &[], None);
    town.tell(3, Input::Command(Command::Call));
    town.run();
    assert_eq!(town.elected(), [Some(2); 4]);
}
