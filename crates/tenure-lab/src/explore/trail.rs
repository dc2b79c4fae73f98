//! The way to a broken state, as a scenario: the same actions in the laboratory's own world, with
//! its clocks, disks and judge.
//!
//! A walk leaves out what nothing depends on, and calls every machine at one reading. So the
//! scenario is a check as well: where the laboratory's judge sees the same property broken on the
//! exact machine, the walk has not deceived itself.

use std::collections::BTreeMap;

use tenure_proto::Chooser;
use tenure_proto::explore::Explore;

use super::scope::BASE;
use super::world::{Act, Input, World};
use super::{Broken, Machine, State, Walk};
use crate::property::Violation;
use crate::script::{Expect, Line, Script};
use crate::stage::{Cast, Command, Stage, Watch};
use crate::subject::Subject;
use crate::world::clock::MILLI;
use crate::world::{Action, Clock, FlightId, How, Interrupt, Kill, RealTime, Stretch, node_id};

/// A way to a broken state, carried out in the laboratory.
#[derive(Clone, Debug)]
pub struct Trail {
    /// The scenario as a file.
    pub script: String,
    /// Its lines, with what came of each.
    pub steps: Vec<String>,
    /// The verdict of the laboratory's judge: the same property, if it sees it too.
    pub confirmed: Option<Violation>,
}

/// How long a scenario goes on after the last step: until all leases are over.
const AFTER: u64 = 1000 * MILLI;

struct Least;

impl Chooser for Least {
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}

/// A run of the laboratory that follows a walk.
struct Follower<'w, W: Walk>
where
    Machine<W>: Explore,
{
    stage: Stage<'w, W::Subject>,
    /// The real time of the last step in which clocks advanced.
    base: u64,
    /// The present: a little later, so that no two actions fall together.
    now: u64,
    /// The messages of the walk, by number.
    flights: BTreeMap<u16, FlightId>,
}

/// Follows a path from the initial state. An error says what could not be carried out.
pub fn trail<W: Walk>(
    world: &mut World<W>,
    acts: &[Act],
    broken: &Broken,
    (protocol, mutant): (&str, Option<&str>),
    subject: &W::Subject,
) -> Result<Trail, String>
where
    Machine<W>: Explore,
{
    let scope = world.scope.clone();
    let clocks: Vec<Clock> = (0..scope.hosts).map(|host| clock(world, host, acts)).collect();
    let constants = scope.constants.clone();
    let cast = Cast::new::<W::Subject>("majority", scope.members, constants.clone(), clocks.clone())?;
    let watch =
        Watch { properties: true, record: true, only: Some(broken.property), go_on: true, unowed: false };
    let stage = Stage::new(subject, &cast, watch, true, &mut Least)?;
    let mut follower = Follower::<W> { stage, base: 0, now: 0, flights: BTreeMap::new() };
    follower.open(world)?;
    let mut state = world.initial();
    for (at, act) in acts.iter().enumerate() {
        follower.follow(world, &state, *act, &acts[at + 1..])?;
        let mut successors = Vec::new();
        world.successors(&state, &mut successors);
        let next = successors.into_iter().find(|successor| successor.act == *act);
        state = next.ok_or("the path of the walk does not repeat")?.state;
    }
    // The laboratory looks at a lease when something happens, and in its last instant.
    let end = RealTime(follower.now.saturating_add(AFTER));
    let outcome = follower.stage.end(end);
    let lines = outcome.record.map(|record| record.lines).unwrap_or_default();
    let confirmed = outcome.violation;
    let expect = match &confirmed {
        Some(violation) => Expect::Broken(violation.property.to_owned()),
        None => Expect::Holds,
    };
    let steps = lines.iter().flat_map(step_words::<W::Subject>).collect();
    let script = Script {
        remarks: vec![format!("found by walking the scope '{}': {}", scope.name, broken.text)],
        protocol: protocol.to_owned(),
        mutant: mutant.map(str::to_owned),
        seed: None,
        quorums: "majority".to_owned(),
        members: scope.members,
        constants,
        clocks,
        only: Some(broken.property.to_owned()),
        expect,
        heals: None,
        ends: end,
        lines,
    };
    Ok(Trail { script: script.write::<W::Subject>(), steps, confirmed })
}

/// A line of a scenario, and what came of it.
fn step_words<S: Subject>(line: &Line<Command<S>>) -> Vec<String> {
    let first = format!("{}  {}", line.at, line.words::<S>());
    let outcomes = line.outcomes.iter().map(|outcome| format!("    {outcome}"));
    std::iter::once(first).chain(outcomes).collect()
}

/// The clock of a host: in each step as fast as the path says.
fn clock<W: Walk>(world: &World<W>, host: usize, acts: &[Act]) -> Clock
where
    Machine<W>: Explore,
{
    let grain = world.scope.grain;
    let ahead = if host < world.scope.members { u64::from(grain.ahead) } else { 0 };
    let passes = acts.iter().filter_map(|act| match act {
        Act::Pass(fast) => Some(*fast),
        Act::Step { .. } => None,
    });
    let stretches: Vec<Stretch> = passes
        .enumerate()
        .map(|(nth, fast)| {
            let from = RealTime(nth as u64 * grain.real * MILLI);
            Stretch { from, ppm: grain.rates[usize::from(fast >> host & 1)] }
        })
        .collect();
    let still = [Stretch { from: RealTime(0), ppm: 0 }];
    let stretches = if stretches.is_empty() { &still[..] } else { &stretches };
    Clock::new(BASE.as_nanos() + ahead * grain.quantum(), stretches)
}

impl<W: Walk> Follower<'_, W>
where
    Machine<W>: Explore,
{
    /// Makes durable all that processes gave their disks at their starts, and gives the first
    /// commands.
    fn open(&mut self, world: &World<W>) -> Result<(), String> {
        for host in 0..world.scope.hosts {
            self.settle(host)?;
            for (_, command) in world.scope.before.iter().filter(|(who, _)| *who == host) {
                self.act(Action::Tell(node_id(host), command.clone()), None)?;
                self.settle(host)?;
            }
        }
        Ok(())
    }

    /// Carries out one action a little later than the last; the messages that leave.
    fn act(
        &mut self,
        action: Action<Command<W::Subject>, FlightId>,
        kill: Option<Kill>,
    ) -> Result<Vec<FlightId>, String> {
        self.now += 1;
        self.stage.world.interrupt = kill.map(Interrupt::Now);
        if !self.stage.act(RealTime(self.now), &action, &mut Least) {
            return Err(format!("the laboratory cannot carry out {action:?}"));
        }
        Ok(std::mem::take(&mut self.stage.world.sent))
    }

    /// The disk writes all that it was given.
    fn settle(&mut self, host: usize) -> Result<Vec<FlightId>, String> {
        if self.stage.world.host(node_id(host)).oldest_unwritten().is_none() {
            return Ok(Vec::new());
        }
        self.act(Action::Written { node: node_id(host), given: RealTime(self.now) }, None)
    }

    /// Does what the path does.
    fn follow(
        &mut self,
        world: &mut World<W>,
        state: &State<W::Ghost>,
        act: Act,
        rest: &[Act],
    ) -> Result<(), String> {
        let Act::Step { host, input, cut, .. } = act else {
            self.base += world.scope.grain.real * MILLI;
            self.now = self.base;
            return Ok(());
        };
        let index = usize::from(host);
        let kill = (cut > 0)
            .then(|| Kill { effects: u32::from(cut), durable: u32::from(durable_later(host, rest)) });
        let mut sent = self.step(world, (index, input), kill)?;
        if kill.is_none() && !world.scope.late_disks {
            sent.extend(self.settle(index)?);
        }
        let outcome = world.step(state.hosts[index], input, cut);
        for flight in world.outcomes[outcome as usize].sends.clone() {
            let found = sent.iter().position(|id| self.is_same(world, *id, flight));
            let id = found.map(|at| sent.remove(at)).ok_or("a message of the walk was not sent")?;
            self.flights.insert(flight, id);
        }
        Ok(())
    }

    fn step(
        &mut self,
        world: &World<W>,
        (host, input): (usize, Input),
        kill: Option<Kill>,
    ) -> Result<Vec<FlightId>, String> {
        let node = node_id(host);
        match input {
            Input::Deliver(flight) => {
                let id = *self.flights.get(&flight).ok_or("a message of the walk was never sent")?;
                let arrived = RealTime(self.now + 1);
                self.act(Action::Deliver { flight: id, arrived }, kill)
            }
            Input::Tell(wish) => {
                let command = world.scope.wishes[usize::from(wish)].command.clone();
                self.act(Action::Tell(node, command), kill)
            }
            Input::Wake => self.act(Action::Wake(node), kill),
            Input::Pass(_) => Ok(Vec::new()),
            Input::Write => {
                let given = self.stage.world.host(node).oldest_unwritten().unwrap_or_default();
                self.act(Action::Written { node, given }, None)
            }
            Input::Start { reboot, durable } => {
                let up = self.stage.world.host(node).process.is_some();
                if up && durable > 0 {
                    let kill = Kill { effects: 0, durable: u32::from(durable) };
                    self.act(Action::Wake(node), Some(kill))?;
                } else if up {
                    self.act(Action::Crash(node), None)?;
                }
                self.act(Action::Start(node, if reboot { How::Reboot } else { How::Restart }), kill)
            }
        }
    }

    /// Whether a message of the laboratory is one of the walk, but for what means nothing.
    fn is_same(&self, world: &World<W>, id: FlightId, flight: u16) -> bool {
        let (from, to, wanted) = world.flight_parts(flight);
        let Some(sent) = self.stage.world.flight(id) else { return false };
        let same = (sent.name.from, sent.name.to) == (node_id(from), node_id(to));
        same && world.without_stamp(&sent.message) == world.without_stamp(wanted)
    }
}

/// How many records of a killed process its next start finds.
fn durable_later(host: u8, rest: &[Act]) -> u8 {
    let start = rest.iter().find_map(|act| match act {
        Act::Step { host: who, input: Input::Start { durable, .. }, .. } if *who == host => Some(*durable),
        _ => None,
    });
    start.unwrap_or(0)
}
