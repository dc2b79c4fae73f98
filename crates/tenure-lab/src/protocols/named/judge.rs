//! The properties of elections among named processes.
//!
//! Safety and liveness of the lecture speak of the end of an election. A run here has many, one
//! after the other, with crashes in between; so safety is judged at every instant at which nobody
//! has crashed or started for as long as the algorithm says it needs ([`Algorithm::settle`]). Where
//! messages take at most D it then must hold. In an asynchronous world it need not, and does not.
//!
//! [`Algorithm::settle`]: tenure_proto::classic::named::Algorithm::settle

use std::collections::BTreeMap;

use tenure_proto::NodeId;
use tenure_proto::classic::named::{Config, Event, Named};

use crate::property::{Judge, Kind, Outside, Property, Status, Tenure, Violation};
use crate::protocols::named::subject::{Any, Lecture};
use crate::world::{RealTime, World};

const fn property(name: &'static str, kind: Kind, says: &'static str) -> Property {
    Property { name, kind, says }
}

/// Safety, one half.
pub const LIVES: Property = property(
    "elected-lives",
    Kind::Always,
    "whom a process has elected runs: judged when nobody has crashed or started for a while",
);
/// Safety, the other half.
pub const BEST: Property = property(
    "elected-best",
    Kind::Always,
    "a process has elected nobody, or the best of those that run: judged when nobody has crashed or started for a while",
);
/// The safety property of an election.
pub const ONE: Property = property(
    "one-coordinator",
    Kind::Always,
    "at most one process has elected itself: judged at every instant, unless somebody has started not long ago",
);
/// One open election a process.
pub const ONE_OPEN: Property =
    property("one-election-each", Kind::Always, "a process has at most one election open");
/// Agreement of consensus.
pub const ONE_A_TERM: Property =
    property("one-winner-a-term", Kind::Always, "no two processes elect different winners of one term");
/// Agreement of consensus by an election.
pub const AGREEMENT: Property = property("agreement", Kind::Always, "no two processes decide differently");
/// Validity of consensus by an election.
pub const VALIDITY: Property =
    property("validity", Kind::Always, "what is decided is the last bit of the name of a process that ran");
/// Liveness.
pub const ALL_ELECT: Property = property(
    "all-elect",
    Kind::Eventually,
    "in the end every process that runs has elected the best of those that run",
);
/// Liveness: an end.
pub const REST: Property = property(
    "comes-to-rest",
    Kind::Eventually,
    "once the faults have healed, no more elections are opened after a while",
);
/// Termination of consensus.
pub const DECIDES: Property =
    property("all-decide", Kind::Eventually, "in the end every process that never crashed has decided");
/// Shows that safety was put to the test.
pub const COORDINATOR_CRASHES: Property =
    property("coordinator-crashes", Kind::Sometimes, "a process crashes that others have elected");
/// Shows that the callers were several.
pub const SEVERAL_CALL: Property =
    property("several-open", Kind::Sometimes, "several processes have an election open at once");
/// Shows that the best changes.
pub const BETTER_STARTS: Property =
    property("better-starts", Kind::Sometimes, "a process starts that is better than the elected one");
/// Shows that elections were judged.
pub const JUDGED: Property = property(
    "judged",
    Kind::Sometimes,
    "safety is judged while every process that runs has elected somebody",
);

/// Of an election in the synchronous model.
pub const ELECTION: [Property; 10] =
    [LIVES, BEST, ONE, ONE_OPEN, ALL_ELECT, REST, COORDINATOR_CRASHES, SEVERAL_CALL, BETTER_STARTS, JUDGED];
/// Of an election by consensus.
pub const BY_CONSENSUS: [Property; 11] = [
    ONE_A_TERM,
    LIVES,
    BEST,
    ONE,
    ONE_OPEN,
    ALL_ELECT,
    REST,
    COORDINATOR_CRASHES,
    SEVERAL_CALL,
    BETTER_STARTS,
    JUDGED,
];
/// Of consensus by an election. A crashed process stays away, so that none comes back that is
/// better.
pub const BY_ELECTION: [Property; 12] = [
    AGREEMENT,
    VALIDITY,
    LIVES,
    BEST,
    ONE,
    ONE_OPEN,
    DECIDES,
    ALL_ELECT,
    REST,
    COORDINATOR_CRASHES,
    SEVERAL_CALL,
    JUDGED,
];

/// The judge's knowledge of a process.
#[derive(Clone, Debug, Default)]
struct Known {
    runs: bool,
    mute: bool,
    open: bool,
    crashed: bool,
    elected: Option<NodeId>,
    decided: Option<bool>,
}

/// Judges one run.
pub struct NamedJudge {
    properties: &'static [Property],
    config: Config<Lecture>,
    settle: u64,
    known: Vec<Known>,
    /// When somebody crashed or started last.
    stirred: RealTime,
    /// When somebody started last: who comes back and is better finds another coordinator.
    started: RealTime,
    /// Whether what is known now has been judged.
    judged: bool,
    owed: Option<RealTime>,
    last_opened: Option<(RealTime, NodeId)>,
    terms: BTreeMap<u64, (NodeId, NodeId)>,
    decision: Option<(NodeId, bool)>,
    seen: Vec<&'static str>,
    exempt: bool,
    ended: bool,
    violations: Vec<Violation>,
    tenures: Vec<Tenure>,
}

impl NamedJudge {
    /// Of a run with this configuration, in which safety is owed so long after the last crash or
    /// start.
    pub fn new(properties: &'static [Property], config: Config<Lecture>, settle: u64) -> Self {
        let known = vec![Known { runs: true, ..Known::default() }; config.size()];
        Self {
            properties,
            config,
            settle,
            known,
            stirred: RealTime(0),
            started: RealTime(0),
            judged: false,
            owed: None,
            last_opened: None,
            terms: BTreeMap::new(),
            decision: None,
            seen: Vec::new(),
            exempt: false,
            ended: false,
            violations: Vec::new(),
            tenures: Vec::new(),
        }
    }

    fn has(&self, property: Property) -> bool {
        self.properties.contains(&property)
    }

    fn break_at(&mut self, property: Property, at: RealTime, text: String) {
        let known = self.violations.iter().any(|violation| violation.property == property.name);
        if self.has(property) && !known {
            self.violations.push(Violation { property: property.name, at, text, before: None });
        }
    }

    fn see(&mut self, property: Property) {
        if !self.seen.contains(&property.name) {
            self.seen.push(property.name);
        }
    }

    fn running(&self) -> impl Iterator<Item = (NodeId, &Known)> {
        self.config.names().zip(&self.known).filter(|(_, known)| known.runs)
    }

    fn best(&self) -> Option<NodeId> {
        self.running().map(|(node, _)| self.config.rank(node)).max().map(|rank| rank.id)
    }

    fn runs(&self, node: NodeId) -> bool {
        self.known.get(node.index()).is_some_and(|known| known.runs)
    }

    /// Whether enough run that can vote: consensus owes nothing else.
    fn can_elect(&self) -> bool {
        let voters = self.running().filter(|(_, known)| !known.mute).count();
        !self.has(ONE_A_TERM) || voters > self.known.len() / 2
    }

    /// Safety, at an instant at which all has been quiet for long enough.
    fn judge_safety(&mut self, at: RealTime) {
        let best = self.best();
        let quiet = RealTime(at.0 - self.stirred.0);
        let elected: Vec<(NodeId, NodeId)> =
            self.running().filter_map(|(node, known)| Some((node, known.elected?))).collect();
        let all = elected.len() == self.running().count();
        if all {
            self.see(JUDGED);
        }
        if let Some((node, who)) = elected.iter().find(|(_, who)| !self.runs(*who)).copied() {
            let text =
                format!("{node} has elected {who}, which is down; nobody has crashed or started for {quiet}");
            self.break_at(LIVES, at, text);
        }
        let worse = elected.iter().find(|(_, who)| self.runs(*who) && Some(*who) != best).copied();
        if let (Some((node, who)), Some(best)) = (worse, best) {
            let text = format!(
                "{node} has elected {who}, and {best} runs, which is better; nobody has crashed or started for {quiet}"
            );
            self.break_at(BEST, at, text);
        }
    }

    /// Judges safety: at most one process thinks that it leads. A crashed process no longer thinks
    /// that it leads, so a crash need not be waited for.
    fn judge_coordinators(&mut self, at: RealTime) {
        if at < self.started.after(self.settle) {
            return;
        }
        let own = self.running().filter(|(node, known)| known.elected == Some(*node)).map(|(node, _)| node);
        if let [one, other, ..] = own.collect::<Vec<_>>()[..] {
            self.break_at(ONE, at, format!("{one} and {other} have elected themselves"));
        }
    }

    fn on_event(&mut self, at: RealTime, node: NodeId, event: Event) {
        let open = self.known[node.index()].open;
        match event {
            Event::Opened => {
                if open {
                    self.break_at(ONE_OPEN, at, format!("{node} opens an election while it has one open"));
                }
                self.known[node.index()].open = true;
                self.last_opened = Some((at, node));
                if self.known.iter().filter(|known| known.open).count() > 1 {
                    self.see(SEVERAL_CALL);
                }
            }
            Event::Closed => self.known[node.index()].open = false,
            Event::Elected { who, term } => {
                self.on_elected(at, node, who);
                if let Some(term) = term {
                    let (first, winner) = *self.terms.entry(term).or_insert((node, who));
                    if winner != who {
                        let text =
                            format!("in term {term} {node} elects {who}, and {first} elected {winner}");
                        self.break_at(ONE_A_TERM, at, text);
                    }
                }
            }
            Event::Decided { value } => self.on_decided(at, node, value),
            Event::Gone => self.known[node.index()].runs = false,
            Event::Mute => self.known[node.index()].mute = true,
            Event::Suspects(_) | Event::Trusts(_) => {}
        }
    }

    fn on_elected(&mut self, at: RealTime, node: NodeId, who: NodeId) {
        let before = self.known[node.index()].elected.replace(who);
        if before == Some(node) && who != node {
            self.end_tenure(at, node);
        }
        if who == node && before != Some(node) {
            let term = self.tenures.len() as u64 + 1;
            self.tenures.push(Tenure { node, term, from: at, until: RealTime(u64::MAX) });
        }
    }

    fn end_tenure(&mut self, at: RealTime, node: NodeId) {
        let open = |tenure: &&mut Tenure| tenure.node == node && tenure.until.0 == u64::MAX;
        if let Some(tenure) = self.tenures.iter_mut().rev().find(open) {
            tenure.until = at;
        }
    }

    fn on_decided(&mut self, at: RealTime, node: NodeId, value: bool) {
        self.known[node.index()].decided = Some(value);
        let (first, decided) = *self.decision.get_or_insert((node, value));
        let bit = u8::from;
        if decided != value {
            let text = format!("{node} decides {}, and {first} decided {}", bit(value), bit(decided));
            self.break_at(AGREEMENT, at, text);
        }
        if !self.config.names().any(|name| (name.0 % 2 == 1) == value) {
            self.break_at(VALIDITY, at, format!("{node} decides {}, which nobody proposed", bit(value)));
        }
    }

    fn on_crash(&mut self, at: RealTime, node: NodeId) {
        if self.running().any(|(other, known)| other != node && known.elected == Some(node)) {
            self.see(COORDINATOR_CRASHES);
        }
        self.end_tenure(at, node);
        let decided = self.known[node.index()].decided;
        self.known[node.index()] = Known { crashed: true, decided, ..Known::default() };
    }

    fn on_start(&mut self, node: NodeId) {
        self.known[node.index()].runs = true;
        let rank = self.config.rank(node);
        let worse = |(_, known): (NodeId, &Known)| {
            known.elected.is_some_and(|who| self.runs(who) && self.config.rank(who) < rank)
        };
        if self.running().any(worse) {
            self.see(BETTER_STARTS);
        }
    }

    fn judge_liveness(&mut self, at: RealTime) {
        let Some(owed) = self.owed.filter(|owed| at.0 > owed.0.saturating_add(2 * self.settle)) else {
            self.exempt = true;
            return;
        };
        let Some(best) = self.best() else { return self.exempt = true };
        let without = self.running().find(|(_, known)| known.elected != Some(best));
        if let Some((node, known)) = without {
            let whom = known.elected.map_or("nobody".to_owned(), |who| who.to_string());
            self.break_at(
                ALL_ELECT,
                at,
                format!("in the end {node} has elected {whom}, and the best is {best}"),
            );
        }
        if let Some((when, node)) = self.last_opened.filter(|(when, _)| when.0 > owed.0 + 2 * self.settle) {
            let since = RealTime(when.0 - owed.0);
            self.break_at(REST, at, format!("{node} opened an election {since} after all faults had healed"));
        }
        let undecided = self.running().find(|(_, known)| !known.crashed && known.decided.is_none());
        if let Some((node, _)) = undecided {
            self.break_at(DECIDES, at, format!("in the end {node} has decided nothing"));
        }
    }
}

impl Judge<Named<Any, Lecture>> for NamedJudge {
    fn pass(&mut self, world: &World<Named<Any, Lecture>>, to: RealTime) {
        let quiet = self.stirred.after(self.settle).max(world.now);
        if !self.judged && to > quiet && self.can_elect() {
            self.judged = true;
            self.judge_safety(quiet);
            self.judge_coordinators(quiet);
        }
    }

    fn observe(&mut self, world: &World<Named<Any, Lecture>>, node: NodeId, outside: Outside) {
        match outside {
            Outside::Step | Outside::Killed | Outside::ClockDisturbed => {}
            Outside::Started => self.on_start(node),
            Outside::Crashed => self.on_crash(world.now, node),
        }
        if matches!(outside, Outside::Started | Outside::Crashed) {
            (self.stirred, self.judged) = (world.now, false);
        }
        if outside == Outside::Started {
            self.started = world.now;
        }
        for (node, _, event) in &world.published {
            self.judged &= !matches!(event, Event::Elected { .. });
            self.on_event(world.now, *node, *event);
            if matches!(event, Event::Elected { who, .. } if who == node) {
                self.judge_coordinators(world.now);
            }
        }
    }

    fn healed(&mut self, world: &World<Named<Any, Lecture>>) {
        self.owed = self.can_elect().then_some(world.now);
    }

    fn end(&mut self, world: &World<Named<Any, Lecture>>) {
        self.ended = true;
        self.judge_liveness(world.now);
    }

    fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn leader(&self) -> Option<NodeId> {
        let mut own = self.running().filter(|(node, known)| known.elected == Some(*node));
        let first = own.next()?.0;
        own.next().is_none().then_some(first)
    }

    fn tenures(&self) -> &[Tenure] {
        &self.tenures
    }

    fn report(&self) -> Vec<(Property, Status)> {
        let status = |property: &Property| {
            let broken = self.violations.iter().any(|violation| violation.property == property.name);
            match property.kind {
                _ if broken => Status::Broken,
                Kind::Sometimes if self.seen.contains(&property.name) => Status::Seen,
                Kind::Sometimes => Status::Unseen,
                Kind::Eventually if self.exempt || !self.ended => Status::Exempt,
                Kind::Always | Kind::Eventually => Status::Holds,
            }
        };
        self.properties.iter().map(|property| (*property, status(property))).collect()
    }
}
