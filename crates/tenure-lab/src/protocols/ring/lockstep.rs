//! No deterministic algorithm elects a leader on an anonymous ring, executable.
//!
//! "In an anonymous ring, leader election is impossible!" All nodes begin in the same state, all
//! wake at once, and in every round each hears what its neighbours sent: the same on every node. So
//! after every round all states are equal, and if one node leads then all do. Here any algorithm is
//! run so, a user's or one that was drawn from a seed, and after every round the states are
//! compared.
//!
//! An algorithm with ids is made anonymous by giving all nodes the same id. One that tosses coins
//! is run as it is, each node with coins of its own, and the states come apart: that is what the
//! coins are for.

use std::collections::VecDeque;

use tenure_proto::Chooser;
use tenure_proto::classic::{self, Id, Knows, LEFT, Node, Port, RIGHT, Standing, Turn};

use super::wiring::Wiring;
use crate::random::Random;

/// Its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How many nodes.
    pub nodes: u32,
    /// After how many rounds it was quiet, or was stopped.
    pub rounds: u64,
    /// Whether all is quiet.
    pub quiet: bool,
    /// For each round how many different states there were, and how many nodes led.
    pub seen: Vec<(u32, u32)>,
    /// Whether the algorithm tossed coins.
    pub coins: bool,
}

impl Steps {
    /// The first round after which not all states were equal.
    pub fn apart(&self) -> Option<usize> {
        self.seen.iter().position(|(states, _)| *states > 1)
    }

    /// How many nodes led in the end.
    pub fn leaders(&self) -> u32 {
        self.seen.last().map_or(0, |(_, leaders)| *leaders)
    }
}

/// Coins, and whether they were tossed.
struct Coins(Random, bool);

impl Chooser for Coins {
    fn choose(&mut self, bound: u32) -> u32 {
        self.1 = true;
        self.0.choose(bound)
    }
}

/// Runs an algorithm on nodes that do not differ, all with the same id, for at most so many rounds.
pub fn run<N: Node, W: Wiring>(wiring: W, id: u32, rounds: u64, seed: u64) -> Steps {
    let size = wiring.nodes();
    let mut nodes: Vec<N> =
        (0..size).map(|node| N::new(N::Knows::told(id, size), wiring.ports(node))).collect();
    let mut coins = Coins(Random::stream(seed, "coins"), false);
    let mut steps = Steps { nodes: size, rounds: 0, quiet: false, seen: Vec::new(), coins: false };
    let mut flights: Vec<(W::End, N::Message)> = Vec::new();
    let mut alarms: Vec<Option<u64>> = vec![None; nodes.len()];
    for round in 0..=rounds {
        let mut next = Vec::new();
        let mut step =
            |at: u32, nodes: &mut Vec<N>, act: &mut dyn FnMut(&mut N, &mut Turn<'_, N::Message>)| {
                let mut sent = Vec::new();
                let mut turn = Turn::new(N::ROUNDS.then_some(round), &mut coins, &mut sent);
                act(&mut nodes[at as usize], &mut turn);
                if let Some(wanted) = turn.wanted() {
                    alarms[at as usize] = Some(wanted);
                }
                next.extend(sent.into_iter().map(|(port, message)| (wiring.far_end(at, port), message)));
            };
        if round == 0 {
            (0..size).for_each(|at| step(at, &mut nodes, &mut N::wake));
        }
        // A node hears its left side first: all do, or they would differ by that.
        let order = by_port(flights.iter().map(|(end, _)| W::port(*end)).collect());
        let mut heard: Vec<_> = flights.drain(..).map(Some).collect();
        for (end, message) in order.into_iter().filter_map(|at| heard[at].take()) {
            step(W::node(end), &mut nodes, &mut |node, turn| node.receive(W::port(end), message, turn));
        }
        for at in 0..size {
            if N::ROUNDS && nodes[at as usize].standing() != Standing::Asleep {
                step(at, &mut nodes, &mut N::alarm);
            }
        }
        flights = next;
        steps.rounds = round;
        steps.seen.push((different(&nodes), leaders(&nodes)));
        if flights.is_empty() && alarms.iter().all(|alarm| alarm.is_none_or(|at| at <= round)) {
            steps.quiet = true;
            break;
        }
    }
    steps.coins = coins.1;
    steps
}

/// The places of messages in the order of the ports at which they are heard. Outside of what is
/// generic over nodes, so that it is compiled once.
fn by_port(ports: Vec<Port>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ports.len()).collect();
    order.sort_by_key(|at| ports[*at]);
    order
}

fn different<N: Node>(nodes: &[N]) -> u32 {
    let mut kinds: Vec<&N> = Vec::new();
    for node in nodes {
        if kinds.len() < 100 && !kinds.contains(&node) {
            kinds.push(node);
        }
    }
    u32::try_from(kinds.len()).unwrap_or(u32::MAX)
}

fn leaders<N: Node>(nodes: &[N]) -> u32 {
    let leading = nodes.iter().filter(|node| node.standing() == Standing::Leader).count();
    u32::try_from(leading).unwrap_or(u32::MAX)
}

/// An automaton drawn from a number:
/// `step(state, from left, from right) -> (state, to left, to right)`, each answer a hash of the
/// question. Some states lead. The number is the one id that all nodes have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Automaton {
    table: u32,
    state: u32,
    /// Messages that came from the left while the right is still silent, and the other way round.
    heard: [VecDeque<u32>; 2],
    awake: bool,
}

/// How many states and letters an automaton has.
const STATES: u64 = 64;
const LETTERS: u64 = 8;

/// A message of an automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Letter(u32);

impl classic::Message for Letter {
    const KINDS: &'static [&'static str] = &["letter"];

    fn kind(&self) -> usize {
        0
    }

    fn bits(&self) -> u32 {
        classic::bits(self.0)
    }
}

impl std::fmt::Display for Letter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "letter {}", self.0)
    }
}

impl Automaton {
    fn go(&mut self, left: u32, right: u32, turn: &mut Turn<'_, Letter>) {
        let question = u64::from(self.state) << 16 | u64::from(left) << 8 | u64::from(right);
        let mut answer = Random::stream(u64::from(self.table) << 32 | question, "automaton");
        let mut draw = |bound: u64| u32::try_from(answer.below(bound)).unwrap_or(0);
        self.state = draw(STATES);
        // Now and then it says nothing, so that some automata come to rest.
        for port in [LEFT, RIGHT] {
            let letter = draw(LETTERS + 1);
            if u64::from(letter) < LETTERS {
                turn.send(port, Letter(letter));
            }
        }
    }
}

impl Node for Automaton {
    type Knows = Id;
    type Message = Letter;

    fn new(Id(table): Id, _ports: u32) -> Self {
        Self { table, state: 0, heard: [VecDeque::new(), VecDeque::new()], awake: false }
    }

    fn wake(&mut self, turn: &mut Turn<'_, Letter>) {
        self.awake = true;
        self.go(0, 0, turn);
    }

    fn receive(&mut self, from: Port, Letter(letter): Letter, turn: &mut Turn<'_, Letter>) {
        self.heard[from.0 as usize & 1].push_back(letter);
        if let [Some(left), Some(right)] = [self.heard[0].front(), self.heard[1].front()].map(|l| l.copied())
        {
            self.heard.iter_mut().for_each(|side| {
                side.pop_front();
            });
            self.go(left, right, turn);
        }
    }

    fn standing(&self) -> Standing {
        match (self.awake, self.state % 8) {
            (false, _) => Standing::Asleep,
            (true, 0) => Standing::Leader,
            (true, _) => Standing::Candidate,
        }
    }
}
