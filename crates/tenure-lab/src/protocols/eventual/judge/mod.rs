//! The properties of eventual leaders: agreement in the end, and for the stable ones that nobody
//! else leads and that a good one stays.

mod figures;
mod list;

pub(crate) use list::GRANTED;
pub use list::{ALL, Promises};

use tenure_proto::eventual::{Epoch, Event, Hint, Hints, Message, Rules, Sound};
use tenure_proto::quorum::NodeSet;
use tenure_proto::{Elects, GroupId, NodeId};

use self::figures::Traffic;
use self::list::{
    AGREEMENT, ALONE, KEEPS_EPOCH, LOST_ACCESS, OWN_EPOCH, RISING, RIVALS, SELDOM, STABLE, SUCCEEDED,
};
use crate::property::{Judge, Outside, Property, Status, Tenure, Violation};
use crate::protocols::eventual::subject::Elector;
use crate::simulate::worlds::parse_accessible;
use crate::subject::Constants;
use crate::world::{Flight, Found, RealTime, World, clock::MILLI, node_id};

/// A process that takes itself for leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    epoch: Epoch,
    until: RealTime,
}

/// All that is known about a process.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Its hint, while it is up.
    hint: Option<Hint>,
    epoch: Option<Epoch>,
    claim: Option<Claim>,
    /// Whether the network grants it access, and since when it has been able to make use of it
    /// without a break.
    granted: bool,
    since: Option<RealTime>,
    /// Since when it has stood for no epoch, and how often it has asked for one since.
    adrift: RealTime,
    asked: u64,
}

/// Judges a run of an election.
pub struct EventualJudge {
    promises: Promises,
    /// For how long a process must have had access for a failed round to be its own fault.
    window: u64,
    period: u64,
    drift: u64,
    /// Whether the time for an answer is learnt: then it may be too short at first.
    learns: bool,
    /// Whether what is acknowledged is on the disk first.
    durable: bool,
    known: Vec<Known>,
    /// The processes that have lost their states, and have not said that they have read them anew.
    recovering: NodeSet,
    /// The processes that have lost them at any time.
    forgot: NodeSet,
    /// Whether more had lost it at one time than may fail: then an epoch may be forgotten by all,
    /// and nobody can rise above it.
    forgotten: bool,
    /// The highest epoch by which anybody has led.
    highest: Option<Epoch>,
    /// When a process changed its mind about who leads.
    changes: Vec<RealTime>,
    /// When a process allowed itself a longer round.
    lengthened: Vec<RealTime>,
    owed: Option<RealTime>,
    ended: Option<RealTime>,
    seen: Vec<&'static str>,
    violations: Vec<Violation>,
    tenures: Vec<Tenure>,
    traffic: Traffic,
}

impl EventualJudge {
    /// The judge of a run with these constants.
    pub fn new(promises: Promises, members: usize, constants: &Constants) -> Self {
        let (round, drift) = (constants.get("round"), constants.get("drift"));
        // T' and a step: see the waits of the machines. A wake-up is late by a twentieth of a
        // millisecond in any case.
        let stretched = round + round * 3 * drift.min(300_000) / 1_000_000;
        let window = stretched + 4 * constants.get("tick") + 2 * constants.get("step") + MILLI / 10;
        Self {
            promises,
            window,
            period: constants.get("period").max(1),
            drift,
            learns: constants.get("learn") > 0,
            durable: constants.get("durable") > 0,
            known: vec![Known::default(); members],
            recovering: NodeSet::EMPTY,
            forgot: NodeSet::EMPTY,
            forgotten: false,
            highest: None,
            changes: Vec::new(),
            lengthened: Vec::new(),
            owed: None,
            ended: None,
            seen: Vec::new(),
            violations: Vec::new(),
            tenures: Vec::new(),
            traffic: Traffic::new(members, 8 * constants.get("period")),
        }
    }

    fn break_at(&mut self, property: Property, at: RealTime, text: impl FnOnce() -> String) {
        let known = self.violations.iter().any(|violation| violation.property == property.name);
        if self.promises.include(property) && !known {
            self.violations.push(Violation { property: property.name, at, text: text(), before: None });
        }
    }

    fn see(&mut self, property: Property) {
        if !self.seen.contains(&property.name) {
            self.seen.push(property.name);
        }
    }

    /// Whether a process had access for so long that no round of its can have failed.
    fn has_access(&self, node: usize, at: RealTime) -> bool {
        let Known { granted, since, .. } = self.known[node];
        granted && since.is_some_and(|since| since.after(self.window) <= at)
    }

    fn step(&mut self, world: &World<Elector>, node: usize, outside: Outside) {
        let host = world.host(node_id(node));
        let Some(process) = &host.process else { return };
        let (now, reading) = (world.now, host.reading(world.now));
        let (hint, epoch) = (process.hint(reading), process.epoch());
        let before = self.known[node];
        // Forgotten states are no fault of the present rounds; but a process that never forgot
        // anything is not outrun.
        let outrun = world.published.iter().any(|(_, _, event)| matches!(event, Event::Outrun { .. }))
            && self.forgot.contains(node);
        let by_itself = outside == Outside::Step && !outrun;
        if before.hint.is_none_or(|before| before.leader != hint.leader) {
            self.changes.push(now);
        }
        if before.epoch.is_some() && before.epoch != epoch && by_itself {
            self.judge_dropped(node, before.epoch, now);
        }
        if hint.leader == Some(node_id(node)) && epoch != Some(hint.epoch) {
            let by = hint.epoch;
            self.break_at(OWN_EPOCH, now, || format!("n{node} leads by {by}, and stands for {epoch:?}"));
        }
        self.known[node].hint = Some(hint);
        self.known[node].epoch = epoch;
        let until = process.leadership(GroupId(0), reading).map(|until| host.reading_reaches(until));
        match until.filter(|until| *until > now) {
            Some(until) => self.claims(node, Claim { epoch: hint.epoch, until }, now),
            None if before.claim.is_some() => self.claim_ends(node, now, by_itself),
            None => {}
        }
    }

    fn note_events(&mut self, world: &World<Elector>, node: usize) {
        let this = NodeSet::from_iter([node]);
        for (_, _, event) in &world.published {
            match event {
                Event::Recovers => self.recovering = self.recovering.union(this),
                Event::Recovered => self.recovering = self.recovering.difference(this),
                Event::Allows { .. } => self.lengthened.push(world.now),
                Event::Adrift => (self.known[node].adrift, self.known[node].asked) = (world.now, 0),
                _ => {}
            }
        }
        self.forgotten |= self.recovering.len() > (self.known.len() - 1) / 2;
    }

    /// A process that starts with neither memory nor disk has forgotten, whether or not it says so.
    fn note_start(&mut self, found: Found, node: usize) {
        let forgot = match found {
            Found::Founding | Found::Memory => false,
            Found::Disk => !self.durable,
            Found::Nothing => true,
        };
        if forgot {
            self.recovering.insert(node);
            self.forgot.insert(node);
        }
    }

    /// C7. A few questions at once, one for each period that its clock may have shown since, and
    /// one that was begun.
    fn judge_asked(&mut self, world: &World<Elector>, node: usize) {
        let asks = |flight: &Flight<Message>| matches!(flight.message, Message::GetEpoch { .. });
        if !world.sent.iter().filter_map(|id| world.flight(*id)).any(asks) {
            return;
        }
        let Known { adrift, asked, .. } = self.known[node];
        self.known[node].asked = asked + 1;
        let elapsed = world.now.0 - adrift.0;
        let shown = elapsed + elapsed * 3 * self.drift.min(300_000) / 1_000_000;
        let most = u64::from(Sound.rests_after()) + 1 + shown / self.period + 1;
        if asked + 1 > most {
            self.break_at(SELDOM, world.now, || {
                format!("n{node} asks for an epoch for the {}th time since {adrift}", asked + 1)
            });
        }
    }

    fn judge_dropped(&mut self, node: usize, epoch: Option<Epoch>, now: RealTime) {
        if self.has_access(node, now) && !self.learns {
            let epoch = epoch.unwrap_or_default();
            self.break_at(KEEPS_EPOCH, now, || format!("n{node} gives {epoch} up although it had access"));
        }
    }

    fn claims(&mut self, node: usize, claim: Claim, now: RealTime) {
        let rival = (0..self.known.len()).filter(|other| *other != node).find_map(|other| {
            let rival = self.known[other].claim.filter(|rival| rival.until > now)?;
            Some((other, rival))
        });
        if let Some((other, rival)) = rival {
            let (mine, theirs) = (claim.epoch, rival.epoch);
            self.break_at(ALONE, now, || {
                format!(
                    "n{node} takes itself for leader by {mine}, and n{other} by {theirs} until {}",
                    rival.until
                )
            });
        }
        let anew = self.known[node].claim.is_none_or(|before| before.epoch != claim.epoch);
        self.known[node].claim = Some(claim);
        if !anew {
            if let Some(tenure) = self.tenures.iter_mut().rfind(|tenure| tenure.node == node_id(node)) {
                tenure.until = claim.until;
            }
            return;
        }
        let highest = self.highest.filter(|highest| *highest >= claim.epoch && !self.forgotten);
        if let Some(highest) = highest {
            self.break_at(RISING, now, || format!("n{node} leads by {} after {highest}", claim.epoch));
        }
        if self.tenures.last().is_some_and(|last| last.node != node_id(node)) {
            self.see(SUCCEEDED);
        }
        let others = self.known.iter().enumerate().filter(|(other, _)| *other != node);
        if others.filter_map(|(_, known)| known.epoch).next().is_some() {
            self.see(RIVALS);
        }
        self.highest = self.highest.max(Some(claim.epoch));
        let (node, term) = (node_id(node), claim.epoch.serial);
        self.tenures.push(Tenure { node, term, from: now, until: claim.until });
    }

    /// Def. 6: who leads and has access goes on leading.
    fn claim_ends(&mut self, node: usize, at: RealTime, by_itself: bool) {
        self.known[node].claim = None;
        if let Some(tenure) = self.tenures.iter_mut().rfind(|tenure| tenure.node == node_id(node)) {
            tenure.until = at;
        }
        if by_itself && self.has_access(node, at) {
            self.break_at(STABLE, at, || format!("n{node} leads no more although it had access"));
        } else if by_itself {
            self.see(LOST_ACCESS);
        }
    }

    /// The one whom all that are up take for leader, if there is one and it is up.
    fn agreed(&self) -> Option<NodeId> {
        let mut leaders = self.known.iter().filter_map(|known| known.hint).map(|hint| hint.leader);
        let leader = leaders.next()??;
        let up = self.known.get(leader.index())?.hint.is_some();
        (up && leaders.all(|other| other == Some(leader))).then_some(leader)
    }

    /// Since when nobody has changed its mind, if all agree.
    fn agreed_since(&self) -> Option<RealTime> {
        self.agreed()?;
        self.changes.last().copied()
    }
}

impl Judge<Elector> for EventualJudge {
    fn pass(&mut self, world: &World<Elector>, to: RealTime) {
        for node in 0..self.known.len() {
            if let Some(claim) = self.known[node].claim.filter(|claim| claim.until < to) {
                let runs = world.host(node_id(node)).is_up();
                self.claim_ends(node, claim.until, runs);
            }
        }
    }

    fn observe(&mut self, world: &World<Elector>, node: NodeId, outside: Outside) {
        self.traffic.note(world);
        let i = node.index();
        if outside == Outside::Started {
            self.note_start(world.host(node).found, i);
        }
        self.note_events(world, i);
        self.judge_asked(world, i);
        match outside {
            Outside::Crashed => {
                if self.known[i].claim.is_some() {
                    self.claim_ends(i, world.now, false);
                }
                let granted = self.known[i].granted;
                self.known[i] = Known { granted, ..Known::default() };
                return;
            }
            Outside::Started => self.known[i].since = Some(world.now),
            Outside::ClockDisturbed => {
                self.known[i].since = world.host(node).frozen.is_none().then_some(world.now);
            }
            Outside::Killed => return,
            Outside::Step => {}
        }
        self.step(world, i, outside);
    }

    fn network(&mut self, world: &World<Elector>, text: &str) {
        let Some(granted) = parse_accessible(text) else { return };
        for (node, known) in self.known.iter_mut().enumerate() {
            let now = granted.contains(node);
            if now && !known.granted && world.host(node_id(node)).is_up() {
                known.since = Some(world.now);
            }
            known.granted = now;
        }
        debug_assert!(granted.difference(all(self.known.len())).is_empty(), "only members have access");
    }

    fn healed(&mut self, world: &World<Elector>) {
        self.owed = Some(world.now);
    }

    fn end(&mut self, world: &World<Elector>) {
        self.ended = Some(world.now);
        let Some(owed) = self.owed else { return };
        let settled = RealTime(world.now.0 - world.now.0.saturating_sub(owed.0) / 10);
        if self.agreed_since().is_none_or(|since| since > settled) {
            let hints: Vec<String> = self
                .known
                .iter()
                .enumerate()
                .filter_map(|(node, known)| Some(format!("n{node}: {:?}", known.hint?.leader)))
                .collect();
            let last = self.changes.last().copied().unwrap_or_default();
            self.break_at(AGREEMENT, world.now, || {
                format!("in the end {}; the last change was at {last}", hints.join(", "))
            });
        }
    }

    fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn leader(&self) -> Option<NodeId> {
        self.agreed()
    }

    fn tenures(&self) -> &[Tenure] {
        &self.tenures
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        let Some(ended) = self.ended else { return Vec::new() };
        let in_last_half = |times: &[RealTime]| times.iter().filter(|at| at.0 > ended.0 / 2).count() as u64;
        let late = in_last_half(&self.changes);
        let owed = self.owed.unwrap_or_default();
        let mut figures =
            vec![("changes-in-last-half", late), ("lengthened-in-last-half", in_last_half(&self.lengthened))];
        if let Some(since) = self.agreed_since() {
            figures.push(("runs-agreed", 1));
            figures.push(("runs-quiet-in-last-half", u64::from(late == 0)));
            figures.push(("periods-to-agreement", since.0.saturating_sub(owed.0) / self.period));
        }
        figures.extend(self.traffic.last_quarter(ended, self.period));
        figures
    }

    fn report(&self) -> Vec<(Property, Status)> {
        let status = |property: Property| {
            if self.violations.iter().any(|violation| violation.property == property.name) {
                return Status::Broken;
            }
            match property.kind {
                crate::property::Kind::Sometimes if self.seen.contains(&property.name) => Status::Seen,
                crate::property::Kind::Sometimes => Status::Unseen,
                crate::property::Kind::Eventually if self.owed.is_none() => Status::Exempt,
                _ => Status::Holds,
            }
        };
        let promised = ALL.iter().filter(|property| self.promises.include(**property));
        promised.map(|property| (*property, status(*property))).collect()
    }
}

fn all(members: usize) -> NodeSet {
    (0..members).collect()
}
