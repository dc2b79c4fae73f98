//! Writes down what happens: the lines of a script, the minutes, and the picture.

use tenure_proto::{Elects, GroupId, NodeId};

use crate::draw::{Arrow, Bar, BarKind, Mark, MarkKind, Minute, Picture, Shade, Zone};
use crate::property::Violation;
use crate::script::{Line, how_text};
use crate::stage::Command;
use crate::subject::{Role, Shape, Subject};
use crate::world::{Action, Flight, FlightId, Freeze, Guise, RealTime, World};

/// The record of a run.
#[derive(Clone, Debug)]
pub struct Record<C> {
    /// Every action, in order, as a file can repeat it.
    pub lines: Vec<Line<C>>,
    /// The run, ready to be drawn.
    pub picture: Picture,
}

/// Writes a run down as it goes on.
pub struct Recorder<S: Subject> {
    lines: Vec<Line<Command<S>>>,
    picture: Picture,
    /// Which arrow belongs to which message.
    arrows: Vec<(FlightId, usize)>,
    /// Bars whose end is not yet certain, by lane and kind.
    open: Vec<usize>,
}

impl<S: Subject> Recorder<S> {
    /// An empty record of a world whose hosts have these roles.
    pub fn new(world: &World<S::Machine>, roles: &[Role]) -> Self {
        let lanes = world.nodes().map(|node| node.to_string()).collect();
        let roles = roles.iter().map(|role| role.label().unwrap_or_default().to_owned()).collect();
        let picture = Picture { lanes, roles, words: S::WORDS, ..Picture::default() };
        let mut recorder = Self { lines: Vec::new(), picture, arrows: Vec::new(), open: Vec::new() };
        recorder.note_sent(world);
        recorder
    }

    /// Notes an action that was carried out.
    pub fn note(
        &mut self,
        world: &World<S::Machine>,
        action: &Action<Command<S>, FlightId>,
        draws: Vec<u32>,
        words: Option<String>,
    ) {
        let events = world.published.iter().map(|(node, _, event)| S::event_text(*node, event));
        let outcomes: Vec<String> = events.chain(words).collect();
        self.draw_action(world, action);
        for (node, _, event) in &world.published {
            self.draw_event(world, *node, event);
        }
        self.note_sent(world);
        if let Some((node, _)) = world.killed {
            self.draw_crash(node, world.now.0, format!("{node} is killed inside a step"));
        }
        let Some(action) = action.rename(|id| Some(world.flight(*id)?.name)) else { return };
        let kind = match &action {
            Action::Deliver { flight, .. } | Action::Forge { flight, .. } => world
                .find(*flight)
                .and_then(|id| world.flight(id))
                .map_or("message", |flight| S::message_kind(&flight.message)),
            _ => "",
        };
        let kill = world.killed.map(|(_, kill)| kill);
        let line = Line { at: world.now, action, kill, kind: kind.to_owned(), draws, outcomes };
        self.picture.minutes.push(Minute {
            at: world.now.0,
            lane: line.node().map(lane),
            text: line.words::<S>(),
            outcomes: line.outcomes.clone(),
        });
        self.lines.push(line);
    }

    fn note_sent(&mut self, world: &World<S::Machine>) {
        for id in &world.sent {
            let Some(flight) = world.flight(*id) else { continue };
            if flight.name.from != flight.name.to {
                self.arrows.push((*id, self.picture.arrows.len()));
                self.picture.arrows.push(arrow::<S>(flight));
            }
        }
    }

    fn draw_action(&mut self, world: &World<S::Machine>, action: &Action<Command<S>, FlightId>) {
        let now = world.now.0;
        match action {
            Action::Deliver { flight, .. } => self.arrive(*flight, now),
            Action::Forge { flight, by, guise } => self.draw_forged(world, *flight, *by, *guise),
            Action::Crash(node) => self.draw_crash(*node, now, format!("{node} crashes")),
            Action::Start(node, how) => {
                self.end_bars(lane(*node), now, |kind| kind == BarKind::Down);
                let text = format!("{node} {}", how_text(*how));
                self.mark(Some(lane(*node)), now, MarkKind::Start, text);
            }
            Action::Freeze(node, Freeze::Pause) => {
                self.open_bar(lane(*node), now, u64::MAX, BarKind::Paused, "paused");
            }
            Action::Freeze(node, Freeze::Suspend | Freeze::Coarse(_)) => {
                self.open_bar(lane(*node), now, u64::MAX, BarKind::Suspended, "suspended");
            }
            Action::Thaw(node) => {
                self.end_bars(lane(*node), now, |kind| matches!(kind, BarKind::Paused | BarKind::Suspended));
            }
            Action::Network(text) => self.network(now, text),
            Action::Step { node, .. } => self.draw_step(world, *node),
            Action::Wake(_) | Action::Tell(..) | Action::Written { .. } | Action::Work(..) => {}
        }
    }

    /// A message said in another's name is an arrow of its own.
    fn draw_forged(&mut self, world: &World<S::Machine>, flight: FlightId, by: NodeId, guise: Guise) {
        let Some(flight) = world.flight(flight) else { return };
        let arrow = arrow::<S>(flight);
        let text = format!("in the name of {}{}: {}", flight.name.from, guise.text(), arrow.text);
        let (from, arrived) = (lane(by), Some(world.now.0));
        self.picture.arrows.push(Arrow { from, arrived, text, ..arrow });
    }

    /// A process ends. Its promise stands, where it promises.
    fn draw_crash(&mut self, node: NodeId, now: u64, text: String) {
        let lane = lane(node);
        self.end_bars(lane, now, |kind| !S::PROMISES || !matches!(kind, BarKind::Grant { .. }));
        self.end_shades(lane, now);
        self.open_bar(lane, now, u64::MAX, BarKind::Down, "down");
        self.mark(Some(lane), now, MarkKind::Crash, text);
    }

    /// A clock was set: who leads no more by what it shows now does not look as if it did.
    fn draw_step(&mut self, world: &World<S::Machine>, node: NodeId) {
        let host = world.host(node);
        let reading = host.reading(world.now);
        let leads = host.process.as_ref().and_then(|process| process.leadership(GroupId(0), reading));
        if leads.is_none() {
            self.end_bars(lane(node), world.now.0, |kind| kind == BarKind::Lease);
        }
    }

    /// A partition begins, ends, or all is healed.
    fn network(&mut self, now: u64, text: &str) {
        if let Some(last) = self.picture.zones.last_mut().filter(|zone| zone.until == u64::MAX) {
            last.until = now;
        }
        let calm = text.starts_with("calm");
        if calm || !text.starts_with("whole") {
            self.picture.zones.push(Zone { from: now, until: u64::MAX, text: text.to_owned(), calm });
        }
    }

    fn arrive(&mut self, flight: FlightId, now: u64) {
        let Some((_, index)) = self.arrows.iter().rev().find(|(id, _)| *id == flight) else { return };
        let arrow = &mut self.picture.arrows[*index];
        if arrow.arrived.is_none() {
            arrow.arrived = Some(now);
        } else {
            let again = Arrow { arrived: Some(now), ..arrow.clone() };
            self.picture.arrows.push(again);
        }
    }

    fn draw_event(
        &mut self,
        world: &World<S::Machine>,
        node: NodeId,
        event: &<S::Machine as tenure_proto::Protocol>::Event,
    ) {
        let text = S::event_text(node, event);
        match S::event_shape(node, event) {
            Shape::Nothing => {}
            Shape::Until { kind, until, label, mark } => {
                let until = world.host(node).instant(until).0;
                // An opinion replaces the one before it, whomever it is of.
                let opinion = |other| !S::PROMISES && matches!(other, BarKind::Lease | BarKind::Grant { .. });
                let alike = |other| std::mem::discriminant(&other) == std::mem::discriminant(&kind);
                let same = |other: BarKind| alike(other) || opinion(other);
                let mark = mark.filter(|_| !self.goes_on(lane(node), world.now.0, kind, &label));
                self.end_bars(lane(node), world.now.0, same);
                self.open_bar(lane(node), world.now.0, until, kind, &label);
                if let Some(mark) = mark {
                    self.mark(Some(lane(node)), world.now.0, mark, text);
                }
            }
            Shape::Partition { until, members, label, mark } => {
                let until = world.host(node).instant(until).0;
                self.end_bars(lane(node), world.now.0, |kind| kind == BarKind::Lease);
                self.end_shades(lane(node), world.now.0);
                self.open_bar(lane(node), world.now.0, until, BarKind::Lease, &label);
                self.picture.shades.push(Shade { leader: lane(node), members, from: world.now.0, until });
                if let Some(mark) = mark {
                    self.mark(Some(lane(node)), world.now.0, mark, text);
                }
            }
            Shape::Ends { kind, mark } => {
                if kind == BarKind::Lease {
                    self.end_shades(lane(node), world.now.0);
                }
                self.end_bars(lane(node), world.now.0, |other| other == kind);
                if let Some(mark) = mark {
                    self.mark(Some(lane(node)), world.now.0, mark, text);
                }
            }
        }
    }

    /// Whether a lane shows this already: what is said again is not marked again.
    fn goes_on(&self, lane: usize, now: u64, kind: BarKind, label: &str) -> bool {
        let mut open = self.open.iter().map(|index| &self.picture.bars[*index]);
        open.any(|bar| (bar.lane, bar.kind, bar.text.as_str()) == (lane, kind, label) && bar.until > now)
    }

    fn open_bar(&mut self, lane: usize, from: u64, until: u64, kind: BarKind, text: &str) {
        self.open.push(self.picture.bars.len());
        self.picture.bars.push(Bar { lane, from, until, kind, text: text.to_owned() });
    }

    fn end_bars(&mut self, lane: usize, now: u64, which: impl Fn(BarKind) -> bool) {
        let bars = &mut self.picture.bars;
        self.open.retain(|index| {
            let bar = &mut bars[*index];
            let ends = bar.lane == lane && which(bar.kind);
            if ends {
                bar.until = bar.until.min(now);
            }
            !ends
        });
    }

    /// The logical partition of this leader ends, if it has one.
    fn end_shades(&mut self, leader: usize, now: u64) {
        let shades = self.picture.shades.iter_mut().rev();
        if let Some(shade) = shades.into_iter().find(|shade| shade.leader == leader) {
            shade.until = shade.until.min(now);
        }
    }

    fn mark(&mut self, lane: Option<usize>, at: u64, kind: MarkKind, text: String) {
        self.picture.marks.push(Mark { lane, at, kind, text });
    }

    /// Closes the record at `end`.
    pub fn finish(
        mut self,
        world: &World<S::Machine>,
        end: RealTime,
        violation: Option<&Violation>,
    ) -> Record<Command<S>> {
        if let Some(violation) = violation {
            let text = format!("{}: {}", violation.property, violation.text);
            self.mark(None, violation.at.0, MarkKind::Violation, text);
        }
        let last = self.picture.minutes.last().map_or(0, |minute| minute.at).max(world.now.0).max(end.0);
        self.picture.end = last;
        for bar in &mut self.picture.bars {
            bar.until = bar.until.min(last);
        }
        for zone in &mut self.picture.zones {
            zone.until = zone.until.min(last);
        }
        for shade in &mut self.picture.shades {
            shade.until = shade.until.min(last);
        }
        Record { lines: self.lines, picture: self.picture }
    }
}

fn lane(node: NodeId) -> usize {
    node.index()
}

fn arrow<S: Subject>(flight: &Flight<<S::Machine as tenure_proto::Protocol>::Message>) -> Arrow {
    Arrow {
        from: lane(flight.name.from),
        to: lane(flight.name.to),
        sent: flight.name.sent.0,
        arrived: None,
        kind: S::message_kind(&flight.message).to_owned(),
        text: S::message_text(&flight.message),
    }
}
