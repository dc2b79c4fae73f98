//! Elections among named processes, counted exactly: the same machines as in the catalogue, without
//! heartbeats, with one unit of time a message, and messages before deadlines of the same instant.
//!
//! They stand behind the same face as the algorithms on ports. The number that an order gives a
//! place is the attribute of the process there, so that the largest wins; one process calls, the
//! first one unless another is woken. A bully's best process has crashed, everybody has elected it,
//! and the caller is told so: N counts it.

use std::collections::{BTreeSet, VecDeque};
use std::marker::PhantomData;

use tenure_proto::boot::{Boot, BootKind};
use tenure_proto::classic::named::{
    Bully, ByConsensus, ByElection, Command, Config, Event, Message, Named, Repair, Ring, Sight, Trivial,
};
use tenure_proto::time::LocalSpan;
use tenure_proto::{Context, Effect, Incarnation, Input, LocalTime, NodeId, Protocol, Ticket};

use super::adversary::Siege;
use super::lockstep::Steps;
use super::outcome::Verdict;
use super::watch::Trace;
use super::{Delays, Election, Order, Outcome, Setup, Theory, Waking};
use crate::catalogue::{About, Error, find as find_protocol};
use crate::protocols::named::mutants::Wrong;
use crate::protocols::named::subject::{Lecture, Lesson};
use crate::random::Random;
use crate::world::node_id;

/// All elections among named processes that are counted.
#[inline(never)] // See `catalogue::all`.
pub fn all() -> &'static [&'static dyn Election] {
    &[&TRIVIAL, &RING, &BULLY, &BY_CONSENSUS, &BY_ELECTION]
}

/// The one of a name.
pub fn find(name: &str) -> Option<&'static dyn Election> {
    all().iter().find(|election| election.about().name == name).copied()
}

/// An election and what is known of its cost.
struct Tally<A> {
    name: &'static str,
    theory: Theory,
    /// Whether the best process has crashed, and the caller knows.
    bereaved: bool,
    most: u32,
    election: PhantomData<fn() -> A>,
}

/// Where everybody talks to everybody, N² messages wait at once: with more processes that is
/// gigabytes.
const MOST: u32 = 1 << 12;

const TRIVIAL: Tally<Trivial> = Tally {
    name: "trivial",
    theory: Theory { says: "N²-1 always", messages: |n| n * n - 1.0, bound: true },
    bereaved: false,
    most: MOST,
    election: PhantomData,
};

const RING: Tally<Ring> = Tally {
    name: "ring",
    theory: Theory { says: "2N-1 at most, and N to tell", messages: |n| 2.0 * n - 1.0, bound: true },
    bereaved: false,
    most: 1 << 20,
    election: PhantomData,
};

const BULLY: Tally<Bully> = bully("bully");

const BY_CONSENSUS: Tally<ByConsensus> = Tally {
    name: "by-consensus",
    theory: Theory {
        says: "4(N-1)+1 at most, and N-1 to tell",
        messages: |n| 4.0 * (n - 1.0) + 1.0,
        bound: true,
    },
    bereaved: false,
    most: 1 << 15,
    election: PhantomData,
};

const BY_ELECTION: Tally<ByElection> = bully("consensus-by-election");

/// An election that costs as much as the bully's.
const fn bully<A>(name: &'static str) -> Tally<A> {
    Tally {
        name,
        theory: Theory {
            says: "(N-1)² at most, and N-2 to tell",
            messages: |n| (n - 1.0) * (n - 1.0),
            bound: true,
        },
        bereaved: true,
        most: MOST,
        election: PhantomData,
    }
}

/// Processes, and what is on its way.
struct Town<A: Lesson> {
    now: u64,
    processes: Vec<Option<Named<A, Lecture>>>,
    /// All messages take one unit: the first to leave is the first to arrive.
    flights: VecDeque<(u64, NodeId, NodeId, Message<A::Message>)>,
    deadlines: BTreeSet<(u64, usize)>,
    kinds: Vec<u64>,
    bits: u64,
    events: u64,
    steps: Vec<u32>,
    /// The process that has elected itself, and when that was first so.
    elected_at: Option<u64>,
    most_leaders: usize,
    memory: u64,
}

impl<A: Lesson> Town<A> {
    fn new(ids: &[u32], dead: Option<usize>) -> Self {
        let config = Config {
            attrs: ids.iter().map(|id| u64::from(*id)).collect(),
            delay: LocalSpan::from_nanos(1),
            period: LocalSpan::ZERO,
            sight: Sight::Sharp,
            repair: Repair::Detector,
            rules: Lecture { which: A::WHICH, rules: Wrong::Nothing },
        };
        let mut town = Self {
            now: 0,
            processes: Vec::with_capacity(ids.len()),
            flights: VecDeque::new(),
            deadlines: BTreeSet::new(),
            kinds: vec![0; A::KINDS.len()],
            bits: 0,
            events: 0,
            steps: vec![0; ids.len()],
            elected_at: None,
            most_leaders: 0,
            memory: 0,
        };
        for place in 0..ids.len() {
            let boot = Boot { incarnation: Incarnation(1), durable: Vec::new(), kind: BootKind::Founding };
            let (mut chance, mut tickets, mut effects) = (Random::stream(0, "none"), Ticket(0), Vec::new());
            let mut cx = Context::new(LocalTime::ZERO, &mut chance, &mut tickets, &mut effects);
            let lives = dead != Some(place);
            let process = lives.then(|| Named::start(&config, node_id(place), boot, &mut cx));
            town.processes.push(process);
        }
        town
    }

    fn handle(&mut self, place: usize, input: Input<Named<A, Lecture>>) {
        let Some(process) = self.processes.get_mut(place).and_then(Option::as_mut) else { return };
        self.events += 1;
        self.steps[place] += 1;
        let before = process.next_deadline();
        let (mut chance, mut tickets, mut effects) = (Random::stream(0, "none"), Ticket(0), Vec::new());
        let now = LocalTime::from_nanos(self.now);
        process.handle(input, &mut Context::new(now, &mut chance, &mut tickets, &mut effects));
        let after = process.next_deadline();
        if before != after {
            before.into_iter().for_each(|at| _ = self.deadlines.remove(&(at.as_nanos(), place)));
            after.into_iter().for_each(|at| _ = self.deadlines.insert((at.as_nanos(), place)));
        }
        let mut heard = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send { to, message, .. } if to.index() == place => heard.push(message),
                Effect::Send { to, message, .. } => self.send(node_id(place), to, message),
                Effect::Publish(Event::Elected { who, .. }) if who.index() == place => self.on_leader(),
                _ => {}
            }
        }
        let from = node_id(place);
        for message in heard {
            self.handle(place, Input::Message { from, received: now, message });
        }
    }

    fn on_leader(&mut self) {
        self.elected_at.get_or_insert(self.now);
        let leads = |(place, process): (usize, &Option<Named<A, Lecture>>)| {
            process.as_ref().is_some_and(|process| process.elected() == Some(node_id(place)))
        };
        let leaders = self.processes.iter().enumerate().filter(|(place, p)| leads((*place, p))).count();
        self.most_leaders = self.most_leaders.max(leaders);
    }

    fn send(&mut self, from: NodeId, to: NodeId, message: Message<A::Message>) {
        if let Message::Word(word) = &message {
            let kind = A::KINDS.iter().position(|kind| *kind == A::kind(word));
            kind.into_iter().for_each(|kind| self.kinds[kind] += 1);
            self.bits += A::bits(word);
        }
        self.flights.push_back((self.now + 1, from, to, message));
        let waiting = self.flights.len() * size_of::<(u64, NodeId, NodeId, Message<A::Message>)>();
        self.memory = self.memory.max(waiting as u64);
    }

    /// Until nothing is left to do.
    fn run(&mut self, limit: u64, progress: &mut dyn FnMut(u64)) -> bool {
        while self.events < limit {
            let deadline = self.deadlines.first().copied();
            let due = self.flights.front().map(|(at, ..)| *at);
            if due.is_some_and(|at| deadline.is_none_or(|(deadline, _)| at <= deadline)) {
                let Some((at, from, to, message)) = self.flights.pop_front() else { continue };
                self.now = at;
                progress(1);
                let received = LocalTime::from_nanos(at);
                self.handle(to.index(), Input::Message { from, received, message });
            } else if let Some((at, place)) = deadline {
                self.now = at;
                self.handle(place, Input::Deadline);
            } else {
                return true;
            }
        }
        false
    }

    /// The only process that has elected itself.
    fn leader(&self) -> Option<usize> {
        let own = |place: &usize| {
            self.processes[*place].as_ref().is_some_and(|process| process.elected() == Some(node_id(*place)))
        };
        let mut leaders = (0..self.processes.len()).filter(own);
        leaders.next().filter(|_| leaders.next().is_none())
    }

    fn outcome(&self, ids: &[u32], ended: bool) -> Outcome {
        let leader = self.leader();
        let counted = A::KINDS.iter().copied().zip(self.kinds.iter().copied());
        let told = |kind: &str| A::ANNOUNCEMENTS.contains(&kind);
        let sum = |announced: bool| {
            counted.clone().filter(|(kind, _)| told(kind) == announced).map(|(_, count)| count).sum()
        };
        let states = size_of::<Named<A, Lecture>>() as u64 * ids.len() as u64;
        Outcome {
            nodes: u32::try_from(ids.len()).unwrap_or(u32::MAX),
            leader: leader.and_then(|place| u32::try_from(place).ok()),
            leader_id: leader.map(|place| ids[place]),
            kinds: counted.clone().collect(),
            election: sum(false),
            announcement: sum(true),
            bits: self.bits,
            elected_at: self.elected_at,
            time: self.now,
            unit: 1,
            events: self.events,
            most_steps: self.steps.iter().copied().max().unwrap_or(0),
            steps: self.steps.iter().map(|steps| u64::from(*steps)).sum(),
            memory: self.memory + states,
            verdicts: self.verdicts(ids, ended),
        }
    }

    fn verdicts(&self, ids: &[u32], ended: bool) -> Vec<Verdict> {
        let living = || self.processes.iter().enumerate().filter_map(|(place, p)| Some((place, p.as_ref()?)));
        let best = living().map(|(place, _)| place).max_by_key(|place| ids[*place]);
        let wrong = living().find(|(_, process)| process.elected().map(NodeId::index) != best);
        let other = wrong.map(|(place, process)| {
            let whom = process.elected().map_or("nobody".to_owned(), |who| who.to_string());
            format!("n{place} has elected {whom}")
        });
        let two = self.most_leaders > 1;
        let verdict = |name, kind, says, broken| Verdict { name, kind, says, broken };
        vec![
            verdict(
                "one-leader",
                "always",
                "at no time two processes have elected themselves",
                two.then(|| format!("{} have", self.most_leaders)),
            ),
            verdict(
                "elected",
                "finally",
                "when all is quiet, somebody leads",
                (!ended || self.leader().is_none()).then(|| "nobody does, or it goes on".to_owned()),
            ),
            verdict("largest", "finally", "all have elected the best of those that live", other),
        ]
    }
}

impl<A: Lesson> Election for Tally<A> {
    fn about(&self) -> About {
        let nothing = About { name: self.name, model: "", promises: "", source: "" };
        find_protocol(self.name).map_or(nothing, |protocol| protocol.about())
    }

    fn theory(&self) -> Option<Theory> {
        Some(self.theory)
    }

    fn mutants(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn is_uniform(&self) -> bool {
        false
    }

    fn has_ids(&self) -> bool {
        true
    }

    fn in_rounds(&self) -> bool {
        false
    }

    fn on_ring(&self) -> bool {
        self.name == "ring"
    }

    fn most_nodes(&self) -> u32 {
        self.most
    }

    /// The first calls. Best: it is the one that wins. Worst: for a ring it stands just after that
    /// one, for a bully it is the lowest.
    fn ids(&self, order: Order, setup: &Setup) -> Result<Vec<u32>, Error> {
        if setup.nodes < 2 || setup.nodes > self.most {
            return Err(Error::new(format!("{} is counted with 2 to {} processes", self.name, self.most)));
        }
        Ok(match order {
            Order::Best if self.bereaved => {
                let mut ids = Order::Descending.ids(setup.nodes, setup.first_id, setup.seed);
                ids.rotate_left(1);
                ids
            }
            Order::Best => Order::Descending.ids(setup.nodes, setup.first_id, setup.seed),
            Order::Worst => Order::Ascending.ids(setup.nodes, setup.first_id, setup.seed),
            other => other.ids(setup.nodes, setup.first_id, setup.seed),
        })
    }

    fn run(&self, ids: &[u32], setup: &Setup, progress: &mut dyn FnMut(u64)) -> Result<Outcome, Error> {
        if setup.delays != Delays::Unit {
            return Err(Error::new("with other delays than one unit: tenure lab run without --order"));
        }
        let top = (0..ids.len()).max_by_key(|place| ids[*place]);
        let dead = top.filter(|_| self.bereaved);
        let mut town: Town<A> = Town::new(ids, dead);
        let mut callers: Vec<usize> = match setup.wake {
            Waking::All => vec![0],
            Waking::One(place) => vec![place as usize % ids.len()],
            Waking::Some => {
                let mut random = Random::stream(setup.seed, "wake");
                (0..ids.len()).filter(|_| random.percent(30)).collect()
            }
        };
        callers.retain(|place| Some(*place) != dead);
        if callers.is_empty() {
            callers.push((dead.unwrap_or(0) + 1) % ids.len());
        }
        for caller in callers {
            // A process that is told of a crash calls because of it; a bully then knows that nobody
            // is higher, if it is so.
            let suspect = dead.map(|dead| Input::Command(Command::Suspect(node_id(dead))));
            suspect.into_iter().for_each(|suspect| town.handle(caller, suspect));
            town.handle(caller, Input::Command(Command::Call));
        }
        let ended = town.run(setup.limit, progress);
        Ok(town.outcome(ids, ended))
    }

    fn run_with(&self, _ids: &[u32], _priorities: &[u32], _setup: &Setup) -> Result<Outcome, Error> {
        Err(Error::new(format!("{} has no links that are always slower", self.name)))
    }

    fn record(&self, _ids: &[u32], _setup: &Setup) -> Result<(Outcome, Trace), Error> {
        Err(Error::new(format!(
            "to draw {0}, leave --order out: tenure lab run {0} --html run.html",
            self.name
        )))
    }

    fn attack(&self, _ids: &[u32], _mutant: Option<&str>) -> Result<Siege, Error> {
        Err(Error::new("the adversary attacks uniform algorithms on anonymous ports"))
    }

    fn lock_step(&self, _nodes: u32, _rounds: u64, _seed: u64) -> Result<Steps, Error> {
        Err(Error::new("processes with names differ from the start"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(name: &str, nodes: u32, order: Order) -> Outcome {
        let (election, setup) = (find(name).expect("it is there"), Setup::new(nodes));
        let ids = election.ids(order, &setup).expect("there are such ids");
        let outcome = election.run(&ids, &setup, &mut |_| ()).expect("it runs");
        assert_eq!(outcome.broken(), None, "{name} with {nodes}");
        outcome
    }

    #[test]
    fn everybody_telling_everybody_costs_n_squared_less_one_in_any_order() {
        for n in 2..=40 {
            for order in [Order::Best, Order::Worst, Order::Random] {
                let outcome = counted("trivial", n, order);
                assert_eq!((outcome.messages(), outcome.time), (u64::from(n * n) - 1, 2), "{n}");
            }
        }
    }

    #[test]
    fn a_ring_costs_2n_at_best_and_3n_less_one_at_worst_and_as_much_time() {
        for n in 2..=200 {
            let (best, worst) = (counted("ring", n, Order::Best), counted("ring", n, Order::Worst));
            let n = u64::from(n);
            assert_eq!((best.election, best.announcement, best.time), (n, n, 2 * n));
            assert_eq!((worst.election, worst.announcement, worst.time), (2 * n - 1, n, 3 * n - 1));
        }
    }

    #[test]
    fn a_ring_costs_j_and_2n_wherever_it_is_called() {
        let election = find("ring").expect("it is there");
        for n in 2..=32 {
            for caller in 0..n {
                let setup = Setup { wake: Waking::One(caller), ..Setup::new(n) };
                let ids = election.ids(Order::Ascending, &setup).expect("there are such ids");
                let outcome = election.run(&ids, &setup, &mut |_| ()).expect("it runs");
                let expected = u64::from(n - 1 - caller + 2 * n);
                assert_eq!((outcome.messages(), outcome.time), (expected, expected), "{n}, {caller}");
            }
        }
    }

    #[test]
    fn bullies_cost_n_less_two_at_best_and_n_squared_less_n_and_one_at_worst() {
        for n in 3..=60 {
            let (best, worst) = (counted("bully", n, Order::Best), counted("bully", n, Order::Worst));
            let n = u64::from(n);
            assert_eq!((best.messages(), best.announcement, best.time), (n - 2, n - 2, 1), "{n}");
            assert_eq!((worst.messages(), worst.announcement, worst.time), (n * n - n - 1, n - 2, 4), "{n}");
            let kinds: Vec<u64> = worst.kinds.iter().map(|(_, count)| *count).collect();
            assert_eq!(kinds, [n * (n - 1) / 2, (n - 1) * (n - 2) / 2, n - 2], "{n}");
        }
    }

    #[test]
    fn an_election_by_consensus_costs_five_messages_for_each_other_process() {
        for n in 2..=40 {
            let best = counted("by-consensus", n, Order::Best);
            assert_eq!((best.messages(), best.time), (5 * (u64::from(n) - 1), 5), "{n}");
        }
    }

    #[test]
    fn a_million_processes_on_a_ring_are_counted() {
        let worst = counted("ring", 1_000_000, Order::Worst);
        assert_eq!(worst.messages(), 2_999_999);
    }
}
