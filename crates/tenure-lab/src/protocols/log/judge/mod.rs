//! The properties of the log: one entry a slot, applied in order, with the same outcome everywhere,
//! asked for by a client; and clients that see one store (linearizable reads). The judge remembers
//! what was chosen and asked for, whatever processes forget.

mod changes;
mod commits;

use std::collections::{BTreeMap, BTreeSet};

use tenure_proto::NodeId;
use tenure_proto::log::{Applied, Ballot, Event, Rules, Slot};

use self::changes::Changes;
use self::commits::Commits;
use crate::linear::{self, Call, Operation};
use crate::property::{Judge, Kind, Outside, Property, Status, Violation};
use crate::protocols::log::subject::{AskId, Happening, Host, Wish, Write};
use crate::simulate::worlds::parse_accessible;
use crate::subject::Rhythm;
use crate::world::{RealTime, World};

const fn property(name: &'static str, kind: Kind, says: &'static str) -> Property {
    Property { name, kind, says }
}

pub(crate) const AGREEMENT: &str = "agreement";
pub(crate) const OUTCOME: &str = "same-outcome";
const VALIDITY: &str = "validity";
pub(crate) const ORDER: &str = "in-order";
pub(crate) const LINEARIZABLE: &str = "linearizable";
pub(crate) const TIMELY: &str = "timely-commit";
const PROGRESS: &str = "progress";
pub(crate) const DURABILITY: &str = "durability";
const SEEN: [&str; 9] = [
    "rivals",
    "adopted",
    "gap-filled",
    "write-repeated",
    "session-expired",
    "snapshot-installed",
    "read-by-round",
    "read-by-lease",
    COMMITTED,
];
const COMMITTED: &str = "committed-in-time";

/// The peak that says how long the longest commit took that was owed in time.
pub(crate) const LONGEST_COMMIT: &str = "longest-commit-thousandths-of-delta";

/// All properties of the log.
pub const ALL: [Property; 17] = [
    property(AGREEMENT, Kind::Always, "no two processes ever apply different entries in one slot"),
    property(OUTCOME, Kind::Always, "an entry has the same outcome wherever it is applied"),
    property(VALIDITY, Kind::Always, "whatever is applied was asked for by a client"),
    property(ORDER, Kind::Always, "each process applies one slot after the other, from where its state ends"),
    property(LINEARIZABLE, Kind::Always, "what clients saw is explained by one store, in real time"),
    property(
        TIMELY,
        Kind::Always,
        "who leads, and reaches f others in time with a proposal that no higher promise forestalls, commits it within delta",
    ),
    property(PROGRESS, Kind::Eventually, "clients are answered"),
    property(DURABILITY, Kind::Eventually, "whatever was applied anywhere is applied everywhere"),
    property(SEEN[0], Kind::Sometimes, "two processes hold themselves for leader of the log at once"),
    property(SEEN[1], Kind::Sometimes, "an entry proposed in one ballot is chosen in a later one"),
    property(SEEN[2], Kind::Sometimes, "a gap is filled with a no-op"),
    property(SEEN[3], Kind::Sometimes, "a write is in the log twice, and carried out once"),
    property(SEEN[4], Kind::Sometimes, "a write of a closed session is refused"),
    property(SEEN[5], Kind::Sometimes, "a process is brought up to date by a snapshot"),
    property(SEEN[6], Kind::Sometimes, "a read is answered after a round"),
    property(SEEN[7], Kind::Sometimes, "a read is answered under a lease"),
    property(SEEN[8], Kind::Sometimes, "a value is committed within delta, where that is owed"),
];

/// The judge of one run.
#[derive(Clone, Debug)]
pub struct LogJudge {
    members: usize,
    prepare_quorum: usize,
    longest: u64,
    /// The entry first applied in each slot, and when.
    chosen: BTreeMap<Slot, (Applied, RealTime)>,
    /// Up to where each member has applied, in its present life.
    applied: Vec<Slot>,
    /// The ballots in which members lead.
    leading: Vec<bool>,
    /// The numbers that clients asked with.
    nonces: BTreeSet<u128>,
    writes: BTreeSet<(u8, u64)>,
    history: Vec<Operation>,
    /// Which entry of the history an operation is.
    open: BTreeMap<AskId, usize>,
    values: BTreeMap<u64, u32>,
    /// Counts what happens: the time of the history.
    clock: u64,
    /// Since when liveness is owed.
    owed: Option<RealTime>,
    /// When each host was last answered.
    answered: Vec<Option<RealTime>>,
    proposed: BTreeSet<Slot>,
    commits: Commits,
    changes: Changes,
    leader: Option<NodeId>,
    seen: BTreeSet<&'static str>,
    liveness: [Status; 2],
    violations: Vec<Violation>,
}

impl LogJudge {
    /// For a run with this many members; this many may fail.
    pub fn new(members: usize, faults: usize, rhythm: Rhythm) -> Self {
        Self {
            members,
            prepare_quorum: members.saturating_sub(faults).max(members / 2 + 1),
            longest: rhythm.longest,
            chosen: BTreeMap::new(),
            applied: vec![Slot(0); members],
            leading: vec![false; members],
            nonces: BTreeSet::new(),
            writes: BTreeSet::new(),
            history: Vec::new(),
            open: BTreeMap::new(),
            values: BTreeMap::new(),
            clock: 0,
            owed: None,
            answered: Vec::new(),
            proposed: BTreeSet::new(),
            commits: Commits::new(rhythm.round),
            changes: Changes::default(),
            leader: None,
            seen: BTreeSet::new(),
            liveness: [Status::Exempt; 2],
            violations: Vec::new(),
        }
    }

    fn break_at(&mut self, property: &'static str, at: RealTime, text: impl FnOnce() -> String) {
        if self.violations.iter().all(|violation| violation.property != property) {
            self.violations.push(Violation { property, at, text: text(), before: None });
        }
    }

    fn on_applied(&mut self, at: RealTime, node: NodeId, slot: Slot, applied: &Applied) {
        let before = std::mem::replace(&mut self.applied[node.index()], slot);
        if slot != before.next() {
            self.break_at(ORDER, at, || format!("{node} applies slot {slot} after slot {before}"));
        }
        match applied {
            Applied::Noop => _ = self.seen.insert("gap-filled"),
            Applied::Again { .. } => _ = self.seen.insert("write-repeated"),
            Applied::Expired { .. } => _ = self.seen.insert("session-expired"),
            Applied::Opened { nonce, .. } if !self.nonces.contains(nonce) => {
                self.break_at(VALIDITY, at, || format!("nobody asked for the session of slot {slot}"));
            }
            Applied::Write { bytes, .. } => {
                let write = Write::decode(bytes).map(|write| (write.key, write.value));
                if write.is_none_or(|write| !self.writes.contains(&write)) {
                    self.break_at(VALIDITY, at, || format!("nobody asked for the write of slot {slot}"));
                }
            }
            Applied::Opened { .. } => {}
        }
        let (first, _) = self.chosen.entry(slot).or_insert_with(|| (applied.clone(), at));
        if first != applied {
            let property = if named(first) == named(applied) { OUTCOME } else { AGREEMENT };
            let first = first.clone();
            self.break_at(property, at, || {
                format!("in slot {slot} {node} applies {applied:?}, another {first:?}")
            });
        }
    }

    fn on_log<R: Rules>(&mut self, world: &World<Host<R>>, node: NodeId, event: &Event) {
        let at = world.now;
        match event {
            Event::Applied { slot, applied } => {
                self.commits.chosen(at, node, *slot);
                self.on_applied(at, node, *slot, applied);
            }
            Event::Restore { upto, .. } => {
                if self.applied[node.index()] > Slot(0) {
                    self.seen.insert("snapshot-installed");
                }
                self.commits.restored(node, *upto, self.leading[node.index()]);
                self.applied[node.index()] = *upto;
            }
            Event::Leading(ballot) => {
                self.leading[node.index()] = true;
                self.leader = Some(node);
                self.changes.leads(world, node, *ballot);
                if self.leading.iter().filter(|leads| **leads).count() > 1 {
                    self.seen.insert("rivals");
                }
            }
            Event::Passive(_) => {
                self.leading[node.index()] = false;
                self.leader = self.leader.filter(|leader| *leader != node);
            }
            Event::Proposed { slot, ballot } => {
                if !self.proposed.insert(*slot) {
                    self.seen.insert("adopted");
                }
                self.changes.proposed(*slot, *ballot);
                self.commits.proposed(at, (node, *slot), (*ballot, highest_promise(world)));
            }
            Event::Chosen { slot, .. } => self.commits.chosen(at, node, *slot),
            Event::Readable { .. } => _ = self.seen.insert("read-by-round"),
            Event::ReadStands { .. } => _ = self.seen.insert("read-by-lease"),
            _ => {}
        }
    }

    /// Every entry that is owed by this instant must be chosen.
    fn judge_commits(&mut self, to: RealTime) {
        if let Some((node, slot, at)) = self.commits.overdue(to) {
            self.break_at(TIMELY, to, || {
                format!("{node} was accessible at {at}, and slot {slot} that it proposed then is not chosen")
            });
        }
    }

    fn on_invoked(&mut self, id: AskId, wish: &Wish) {
        let (key, call) = match wish {
            Wish::Open { .. } => return,
            Wish::Read { key } => (*key, Call::Get { saw: None }),
            Wish::Write { write, .. } => {
                self.writes.insert((write.key, write.value));
                (write.key, Call::Swap { to: self.number(write.value), saw: None })
            }
        };
        let (client, invoked) = (id.client.0, self.clock);
        self.open.insert(id, self.history.len());
        self.history.push(Operation { client, key: u32::from(key), call, invoked, returned: None });
    }

    fn number(&mut self, value: u64) -> u32 {
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        *self.values.entry(value).or_insert(next)
    }

    fn on_returned(&mut self, at: RealTime, id: AskId, answer: Option<u64>) {
        let client = id.client.index();
        if self.answered.len() <= client {
            self.answered.resize(client + 1, None);
        }
        self.answered[client] = Some(at);
        let answer = answer.map(|value| self.number(value));
        let Some(operation) = self.open.remove(&id).and_then(|place| self.history.get_mut(place)) else {
            return;
        };
        operation.returned = Some(self.clock);
        if let Call::Get { saw } | Call::Swap { saw, .. } = &mut operation.call {
            *saw = answer;
        }
    }

    /// Whether those that can promise and accept, and elect, are enough.
    fn can_choose<R: Rules>(&self, world: &World<Host<R>>) -> bool {
        let votes = |node: &usize| world.hosts[*node].process.as_ref().is_some_and(Host::votes);
        (0..self.members).filter(votes).count() >= self.prepare_quorum
    }

    fn judge_liveness<R: Rules>(&mut self, world: &World<Host<R>>) {
        let Some(owed) = self.owed else { return };
        if world.now.0 < owed.0.saturating_add(self.longest * 15) {
            return; // Too short to tell.
        }
        self.liveness = [Status::Holds; 2];
        let due = owed.after(self.longest * 10);
        let clients = if world.hosts.len() > self.members { self.members } else { 0 };
        for node in clients..world.hosts.len() {
            let answered = self.answered.get(node).copied().flatten();
            if world.hosts[node].is_up() && answered.is_none_or(|at| at < due) {
                self.liveness[0] = Status::Broken;
                self.break_at(PROGRESS, world.now, || format!("n{node} was not answered since {due}"));
            }
        }
        // Where nothing heals, what is slow takes some of these each way, and may be lost.
        let pauses = if self.commits.granted { 60 } else { 4 };
        let before = world.now.0.saturating_sub(self.longest * pauses);
        let old = self.chosen.iter().rev().find(|(_, (_, at))| at.0 <= before).map(|(slot, _)| *slot);
        for node in 0..self.members {
            let applied = world.hosts[node].process.as_ref().and_then(Host::applied);
            if let (Some(applied), Some(old)) = (applied.filter(|_| world.hosts[node].is_up()), old)
                && applied < old
            {
                self.liveness[1] = Status::Broken;
                let text = || format!("n{node} has applied {applied} slots, others {old} long since");
                self.break_at(DURABILITY, world.now, text);
            }
        }
    }
}

/// The highest ballot that a process promised which runs.
fn highest_promise<R: Rules>(world: &World<Host<R>>) -> Ballot {
    let running = world.hosts.iter().filter_map(|host| host.process.as_ref());
    running.filter_map(Host::promised).max().unwrap_or(Ballot::NONE)
}

/// The content of a slot, whatever came of it.
fn named(applied: &Applied) -> (u8, u128, u64) {
    match applied {
        Applied::Noop => (0, 0, 0),
        Applied::Opened { nonce, .. } => (1, *nonce, 0),
        Applied::Write { session, number, .. }
        | Applied::Again { session, number }
        | Applied::Expired { session, number } => (2, u128::from(session.0), *number),
    }
}

impl<R: Rules> Judge<Host<R>> for LogJudge {
    fn pass(&mut self, _world: &World<Host<R>>, to: RealTime) {
        self.judge_commits(to);
    }

    fn observe(&mut self, world: &World<Host<R>>, node: NodeId, outside: Outside) {
        if matches!(outside, Outside::Started | Outside::Crashed) && node.index() < self.members {
            self.applied[node.index()] = Slot(0);
            self.leading[node.index()] = false;
        }
        if !matches!(outside, Outside::Step | Outside::Killed) {
            self.commits.disturbed(node);
        }
        if outside == Outside::Crashed && self.owed.is_some() {
            self.owed = self.can_choose(world).then_some(world.now);
        }
        for (node, _, event) in &world.published {
            self.clock += 1;
            match event {
                Happening::Log(event) => self.on_log(world, *node, event),
                Happening::Invoked { id, wish } => self.on_invoked(*id, wish),
                Happening::Returned { id, saw } => self.on_returned(world.now, *id, *saw),
                Happening::Asked(nonce) => _ = self.nonces.insert(*nonce),
                Happening::Strong(_) | Happening::Omega(_) | Happening::Hinted(_) => {}
            }
        }
        self.changes.sent(world);
        if let Some(promised) = world.hosts[node.index()].process.as_ref().and_then(Host::promised) {
            self.commits.promised(promised);
        }
    }

    fn network(&mut self, _world: &World<Host<R>>, text: &str) {
        if let Some(accessible) = parse_accessible(text) {
            self.commits.grant(accessible);
        }
    }

    fn healed(&mut self, world: &World<Host<R>>) {
        self.owed = self.can_choose(world).then_some(world.now);
    }

    fn end(&mut self, world: &World<Host<R>>) {
        let verdict = linear::check(&self.history);
        if let Some((_, operation)) = verdict.broken.first() {
            self.break_at(LINEARIZABLE, world.now, || format!("no order explains the {operation}"));
        }
        if let Some(key) = verdict.undecided.first() {
            self.break_at(LINEARIZABLE, world.now, || {
                format!("the search for an order of key {key} gave up")
            });
        }
        self.judge_liveness(world);
    }

    fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("commits-owed-in-time", self.commits.timed),
            ("unfinished-slots", self.changes.unfinished),
            ("leader-change-messages", self.changes.messages),
        ]
    }

    fn peaks(&self) -> Vec<(&'static str, u64)> {
        self.commits.longest().map(|longest| (LONGEST_COMMIT, longest)).into_iter().collect()
    }

    fn report(&self) -> Vec<(Property, Status)> {
        let status = |property: &Property| {
            let broken = self.violations.iter().any(|violation| violation.property == property.name);
            match property.kind {
                _ if broken => Status::Broken,
                Kind::Always => Status::Holds,
                Kind::Sometimes if property.name == COMMITTED && self.commits.timed > 0 => Status::Seen,
                Kind::Sometimes if self.seen.contains(property.name) => Status::Seen,
                Kind::Sometimes => Status::Unseen,
                Kind::Eventually if property.name == PROGRESS => self.liveness[0],
                Kind::Eventually => self.liveness[1],
            }
        };
        ALL.iter().map(|property| (*property, status(property))).collect()
    }
}
