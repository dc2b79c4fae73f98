//! Performs a play: the same simulation, but what happens comes from a text, and nothing is left to
//! chance.

use tenure_proto::{Elects, GroupId, NodeId};

use super::forge::{Forged, Forgeries};
use super::network::{Fate, Links};
use super::pace::Pace;
use super::plan::Plan;
use super::{Doom, Pending, Simulation};
use crate::play::{Beliefs, Deed, Meddling, Play, What};
use crate::script::{Expect, Script};
use crate::stage::{Cast, Command, Outcome, Watch};
use crate::subject::Subject;
use crate::world::{Action, FlightId, RealTime, node_id};

/// A play on its way.
pub(super) struct Performance<'s> {
    play: &'s Play,
    /// The interferences with messages, and whether each is still to come.
    meddlings: Vec<(Meddling, bool)>,
    beliefs: Beliefs,
    /// The first line that could not be carried out.
    unfit: Option<usize>,
    /// Whether the play tells threads what to do.
    tells_threads: bool,
}

/// The outcome of a play.
pub(crate) struct Performed<C> {
    /// The run.
    pub(crate) outcome: Outcome<C>,
    /// All that happened, as a script.
    pub(crate) script: Script<C>,
    /// The processes that believed to lead, and when.
    pub(crate) beliefs: Beliefs,
}

/// Performs a play. An error says what is wrong with its head, or which line could not be carried
/// out.
pub(crate) fn perform<S: Subject>(
    subject: &S,
    play: &Play,
    watch: Watch<'_>,
) -> Result<Performed<Command<S>>, String> {
    let plan = Plan {
        cast: Cast::new::<S>(&play.quorums, play.members, play.constants.clone(), play.clocks.clone())?,
        rhythm: S::rhythm(&play.constants),
        adversary: None,
        links: Links::steady(play.delay),
        forgeries: Forgeries::none(),
        slowest_write: play.disk,
        latest_wake: 0,
        disasters: Vec::new(),
        heals: play.ends,
        owes: play.ends,
        ends: play.ends,
    };
    let pace = Pace::Steady { disk: play.disk };
    let mut simulation = Simulation::new(subject, plan, (play.seed.unwrap_or(1), pace), watch)?;
    simulation.open_play(play);
    simulation.run();
    let Some(mut performance) = simulation.performance.take() else {
        return Err("there is no play".to_owned());
    };
    if !simulation.stage.is_over() {
        let waits = simulation.desks.iter().filter_map(|desk| desk.doom?.cue).min();
        performance.unfit = performance.unfit.or(waits);
    }
    let outcome = simulation.end();
    if let Some(cue) = performance.unfit.map(|unfit| &play.cues[unfit]) {
        return Err(format!("line {}: at {} '{}' could not be carried out", cue.line, cue.at, cue.words));
    }
    let script = script(play, &outcome, watch);
    Ok(Performed { outcome, script, beliefs: performance.beliefs })
}

fn script<C: Clone>(play: &Play, outcome: &Outcome<C>, watch: Watch<'_>) -> Script<C> {
    let violation = outcome.violation.as_ref();
    Script {
        remarks: play.remarks.clone(),
        protocol: play.protocol.clone(),
        mutant: play.mutant.clone(),
        seed: play.seed,
        quorums: play.quorums.clone(),
        members: play.members,
        constants: play.constants.clone(),
        clocks: play.clocks.clone(),
        only: watch.only.map(str::to_owned),
        expect: violation.map_or(Expect::Holds, |broken| Expect::Broken(broken.property.to_owned())),
        heals: play.heals,
        ends: outcome.time,
        lines: outcome.record.as_ref().map(|record| record.lines.clone()).unwrap_or_default(),
    }
}

impl<'s, S: Subject> Simulation<'s, S> {
    fn open_play(&mut self, play: &'s Play) {
        self.expect_counts();
        self.count_clocks();
        for (i, cue) in play.cues.iter().enumerate() {
            self.enter(cue.at, Pending::Cue(i));
        }
        if let Some(heals) = play.heals {
            self.enter(heals, Pending::Owe);
        }
        for node in 0..self.desks.len() {
            self.attend(node_id(node));
        }
        let (meddlings, beliefs) = (Vec::new(), Beliefs::default());
        let mut deeds = play.cues.iter().flat_map(|cue| &cue.deeds);
        let tells_threads = deeds.any(|deed| matches!(deed, Deed::Work(..)));
        self.performance = Some(Performance { play, meddlings, beliefs, unfit: None, tells_threads });
    }

    /// Whether threads take a step only where a line says so.
    pub(super) fn tells_threads(&self) -> bool {
        self.performance.as_ref().is_some_and(|performance| performance.tells_threads)
    }

    /// Carries out a line of the play.
    pub(super) fn cue(&mut self, at: RealTime, i: usize) {
        let Some(play) = self.performance.as_ref().map(|performance| performance.play) else { return };
        for deed in &play.cues[i].deeds {
            let done = self.perform_deed(at, deed, i);
            self.look();
            if let (false, Some(performance)) = (done, &mut self.performance) {
                performance.unfit.get_or_insert(i);
            }
        }
    }

    fn perform_deed(&mut self, at: RealTime, deed: &Deed, cue: usize) -> bool {
        match deed {
            Deed::Kill(node, interrupt) => {
                let doom = Doom { interrupt: *interrupt, back: None, cue: Some(cue) };
                return self.desk(*node).doom.replace(doom).is_none();
            }
            Deed::Campaign(node) => return self.opening(at, *node),
            Deed::Crash(node) => return self.fall(at, *node),
            Deed::Thaw(node) => return self.thaw(at, *node),
            Deed::Start(node, how) => return self.act(at, &Action::Start(*node, *how), *node),
            Deed::Freeze(node, freeze) => return self.act(at, &Action::Freeze(*node, *freeze), *node),
            Deed::Step(node, dial, by) => {
                return self.act(at, &Action::Step { node: *node, dial: *dial, by: *by }, *node);
            }
            Deed::Work(node, thread) => {
                return self.stage.is_working(*node) && self.act(at, &Action::Work(*node, *thread), *node);
            }
            Deed::Tell(node, text) => {
                let Some(command) = S::parse_command(text) else { return false };
                return self.act(at, &Action::Tell(*node, command), *node);
            }
            Deed::Network(shape) => {
                if shape.kind != "whole" {
                    self.stage.counts.add(shape.kind);
                }
                self.network(at, shape.clone());
            }
            Deed::Meddle(meddling) => {
                let meddlings = self.performance.as_mut().map(|performance| &mut performance.meddlings);
                meddlings.into_iter().for_each(|all| all.push((meddling.clone(), true)));
            }
        }
        true
    }

    /// The play's interference with a message that has just left: nothing, unless it says so.
    pub(super) fn meddle(&mut self, now: RealTime, id: FlightId, fate: Fate) -> Fate {
        let Some(performance) = &mut self.performance else { return fate };
        let Some(flight) = self.stage.world.flight(id) else { return fate };
        let kind = S::message_kind(&flight.message);
        let concerns = |meddling: &Meddling| {
            now < meddling.until && meddling.concerns(flight.name.from, flight.name.to, kind)
        };
        let mut all = performance.meddlings.iter_mut();
        let Some((meddling, stands)) = all.find(|(meddling, stands)| *stands && concerns(meddling)) else {
            return fate;
        };
        *stands = !meddling.once;
        let delay = fate[0].unwrap_or_default();
        let (at, until) = (meddling.until, Some(delay.max(meddling.until.0 - now.0)));
        match meddling.what {
            What::Hold => [until, None],
            What::Lose => [None, None],
            What::Repeat => [fate[0], until],
            What::Forge { by, guise } => {
                self.enter(at, Pending::Forge(Forged { flight: id, by, guise }));
                fate
            }
        }
    }

    /// Notes who believes to lead the first group now, and until when.
    pub(super) fn look(&mut self) {
        let Some(performance) = &mut self.performance else { return };
        let world = &self.stage.world;
        let believes = |node: NodeId| {
            let host = world.host(node);
            let until = host.process.as_ref()?.leadership(GroupId(0), host.reading(world.now))?;
            Some((node, host.reading_reaches(until)))
        };
        performance.beliefs.note(world.now, world.nodes().filter_map(believes).collect());
    }
}
