//! A repair of absurd terms in the middle of a run: members stop and start at any moment, reports
//! are taken of those that are down, and a plan is applied to some of them, whenever that is. Two
//! operators have a plan each. Members are killed between any two effects; their clocks are
//! disturbed; they change the longest lease, lift bars, and accept lineages too early. Candidates
//! that are no members lead on by what they knew before.
//!
//! Never do two lead a group, and the terms of a group never fall: by the sound rules. Without the
//! bar on groups that hold an absurd term, or if a plan is applied to a store that was used since
//! its report, they do. `tenure_proto::strong::epoch::repair` has the argument.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_lab::protocols::strong::mutants::Broken;
use tenure_proto::boot::{self, BootId, Memory, overwrite};
use tenure_proto::detect::weak::{Choice, Watch};
use tenure_proto::quorum::Quorums;
use tenure_proto::strong::epoch::repair::{Stopped, Wish, applied, plan};
use tenure_proto::strong::epoch::{Change, Charter, Epoch, EpochTalk, StoreId};
use tenure_proto::strong::{Cell, Command, Event, Message, Nerio, Rules, Settings, Sound, Succession, Term};
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};
use tenure_proto::{
    Boot, Chooser, Context, Effect, Elects, GroupId, Incarnation, Input, LocalTime, NodeId, Protocol, Ticket,
};

const MEMBERS: usize = 3;
const GROUPS: u64 = 2;
const ABSURD: Term = Term(1 << 40);
const HERE: BootId = BootId { boot: 1, clock_offset: 0, slept: 0, marker: 0 };
const SEEDS: u64 = 200;

/// Candidates that are no members.
const OUTSIDERS: usize = 2;
const STEPS: usize = 4000;

/// A generator that is the same on every machine.
struct Luck(u64);

impl Luck {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

impl Chooser for Luck {
    fn choose(&mut self, bound: u32) -> u32 {
        u32::try_from(self.below(u64::from(bound.max(1)))).unwrap_or(0)
    }
}

/// One member: its store, its memory of grants, and its process if it runs.
struct Member<R: Rules> {
    life: Option<Incarnation>,
    cells: Vec<Cell>,
    memory: Option<Memory<Cell>>,
    process: Option<Nerio<R>>,
    tickets: Ticket,
    report: Option<Stopped>,
}

struct Cluster<R: Rules> {
    rules: R,
    members: Vec<Member<R>>,
    now: LocalTime,
    luck: Luck,
    sent: Vec<(NodeId, NodeId, Message)>,
    /// The newest term of each group, and which process led by it.
    newest: BTreeMap<GroupId, (Term, NodeId)>,
    /// The newest plan, and the reports that it was made of.
    plan: Option<(Arc<Charter>, Vec<Stopped>)>,
    /// The plan before that: another operator has it.
    other_plan: Option<(Arc<Charter>, Vec<Stopped>)>,
    plans: u64,
    /// Whether a plan is refused for a store that is not as reported.
    compares: bool,
    /// Elections by members that were repaired.
    after: usize,
}

fn node(index: usize) -> NodeId {
    NodeId(index as u64)
}

impl<R: Rules> Cluster<R> {
    fn new(rules: R, compares: bool, seed: u64) -> Self {
        let member = || Member {
            life: None,
            cells: Vec::new(),
            memory: None,
            process: None,
            tickets: Ticket(0),
            report: None,
        };
        let mut cluster = Self {
            rules,
            members: (0..MEMBERS + OUTSIDERS).map(|_| member()).collect(),
            now: LocalTime::from_nanos(10_000),
            luck: Luck(seed.wrapping_mul(7919) + 1),
            sent: Vec::new(),
            newest: BTreeMap::new(),
            plan: None,
            other_plan: None,
            plans: 0,
            compares,
            after: 0,
        };
        (0..MEMBERS).for_each(|index| cluster.start(index));
        // The founding charter is on no disk where a laboratory founds; a report needs it.
        for member in &mut cluster.members[..MEMBERS] {
            let charter = member.process.as_ref().expect("it was started").charter().clone();
            overwrite(&mut member.cells, Cell::Charter(charter));
        }
        cluster
    }

    fn settings(&self) -> Settings<R> {
        Settings {
            quorums: Quorums::majority((0..MEMBERS).map(node).collect()).expect("a majority"),
            clocks: Clockwork {
                bound: Bound::Drift(Drift::from_ppm(1000).expect("a drift")),
                tick: LocalSpan::from_nanos(1),
            },
            lease: Span::from_nanos(1000),
            reserve: Span::from_nanos(0),
            eager: false,
            longest_lease: Span::from_nanos(2000),
            window: Span::from_nanos(20),
            retry: Span::from_nanos(50),
            block: 4,
            succession: Succession::Adjacent,
            weak: Choice::Ring(Watch::Heartbeat),
            adapt: None,
            hold: None,
            rules: self.rules.clone(),
        }
    }

    fn start(&mut self, index: usize) {
        let config = self.settings().validate().expect("settings that hold");
        let told = self.any_charter();
        let member = &mut self.members[index];
        if member.process.is_some() {
            return;
        }
        if index >= MEMBERS {
            let Some(charter) = told else { return };
            member.cells = vec![Cell::Charter(charter)];
        }
        let store = match member.life {
            None => boot::Store::Founded(member.cells.clone()),
            Some(life) => boot::Store::Used(life, member.cells.clone()),
        };
        let boot = Boot::judge(store, member.memory.clone(), HERE);
        let (life, kept) = (boot.incarnation, kept(&boot));
        member.life = Some(life);
        let mut effects = Vec::new();
        let mut cx = Context::new(self.now, &mut self.luck, &mut member.tickets, &mut effects);
        member.process = Some(Nerio::start(&config, node(index), boot, &mut cx));
        // Signed with the new life when all effects of the start are carried out.
        member.memory = Some(Memory { boot: HERE, writer: Incarnation(0), records: kept });
        self.perform(index, effects);
        let member = &mut self.members[index];
        if member.process.is_none() {
            return;
        }
        if let Some(memory) = &mut member.memory {
            memory.writer = life;
        }
        for group in 0..GROUPS {
            self.handle(index, Input::Command(Command::Campaign(GroupId(group))));
        }
    }

    fn stop(&mut self, index: usize) {
        self.members[index].process = None;
    }

    fn handle(&mut self, index: usize, input: Input<Nerio<R>>) {
        let member = &mut self.members[index];
        let Some(process) = &mut member.process else { return };
        let mut effects = Vec::new();
        process.handle(input, &mut Context::new(self.now, &mut self.luck, &mut member.tickets, &mut effects));
        self.perform(index, effects);
    }

    /// A disk and a memory that do at once what they are told.
    fn perform(&mut self, index: usize, effects: Vec<Effect<Nerio<R>>>) {
        for effect in effects {
            // Killed between two effects.
            if self.luck.below(10_000) == 0 {
                return self.stop(index);
            }
            match effect {
                Effect::Persist { record, .. } => overwrite(&mut self.members[index].cells, record),
                Effect::Remember(record) => {
                    if let Some(memory) = &mut self.members[index].memory {
                        overwrite(&mut memory.records, record);
                    }
                }
                // A candidate with a key of its own is not heard when it speaks of charters.
                Effect::Send { message: Message::Epoch(talk), .. }
                    if index >= MEMBERS && !matches!(talk, EpochTalk::Unknown { .. }) => {}
                Effect::Send { to, message, .. } => self.sent.push((node(index), to, message)),
                Effect::Publish(Event::Leads { group, term, .. }) => self.leads(index, group, term),
                Effect::Publish(_) => {}
            }
        }
    }

    fn leads(&mut self, index: usize, group: GroupId, term: Term) {
        let repaired = self.members[index].process.as_ref().is_some_and(|it| it.epoch() >= Epoch(Epoch::ERA));
        self.after += usize::from(repaired);
        let (known, by) = self.newest.get(&group).copied().unwrap_or((Term(0), node(index)));
        let rises = term > known || term == known && by == node(index);
        assert!(rises, "terms fall: {group} was led in term {known}, and now in {term}");
        self.newest.insert(group, (term, node(index)));
    }

    fn judge(&self) {
        for group in (0..GROUPS).map(GroupId) {
            let leads = |member: &&Member<R>| {
                member.process.as_ref().is_some_and(|it| it.leadership(group, self.now).is_some())
            };
            assert!(self.members.iter().filter(leads).count() <= 1, "two leaders of {group}");
        }
    }

    fn report(&mut self, index: usize) {
        let member = &mut self.members[index];
        if member.process.is_none() {
            let cells = member.cells.clone();
            let store = StoreId(index as u128);
            member.report =
                Some(Stopped { node: node(index), store, life: member.life, cells, grants: Vec::new() });
        }
    }

    /// An operator that bars every group which holds a term above the floor.
    fn make_plan(&mut self) {
        let Some(reports) =
            self.members[..MEMBERS].iter().map(|it| it.report.clone()).collect::<Option<Vec<_>>>()
        else {
            return;
        };
        // Above all that was granted since the last repair.
        let floor = Term(1000 * (self.plans + 1));
        let held = self.newest.iter().filter(|(_, (term, _))| *term > floor);
        let barred = held.map(|(group, _)| *group).collect();
        let draw = self.luck.below(u64::MAX);
        if let Ok(charter) = plan(&reports, &Wish { floor, barred, draw }) {
            self.other_plan = self.plan.replace((charter, reports));
            self.plans += 1;
        }
    }

    /// As the library does: a store that goes by this plan already stays as it is, and one that is
    /// not as reported is refused.
    fn apply(&mut self, index: usize) {
        let others = self.luck.below(3) == 0;
        let plan = if others { self.other_plan.clone() } else { self.plan.clone() };
        let Some((charter, reports)) = plan else { return };
        let member = &mut self.members[index];
        let same = reports[index].cells == member.cells && reports[index].life == member.life;
        let goes_by = |cell: &Cell| matches!(cell, Cell::Charter(here) if here.lineage == charter.lineage);
        if member.process.is_some() || member.cells.iter().any(goes_by) || !same && self.compares {
            return;
        }
        member.cells = applied(&member.cells, &charter);
        member.life = member.life.map(|life| Incarnation(life.0 + 1));
    }

    /// Time passes, or a message arrives or is lost.
    fn pass(&mut self) {
        if self.luck.below(4) == 0 || self.sent.is_empty() {
            let by = 1 + self.luck.below(60);
            self.now = self.now.after(LocalSpan::from_nanos(by));
            self.judge();
            (0..MEMBERS + OUTSIDERS).for_each(|index| self.handle(index, Input::Deadline));
        } else {
            // Old ones are lost now and then, so that there is room for new ones.
            let recent = self.sent.len().min(16);
            let at = self.sent.len() - 1 - usize::try_from(self.luck.below(recent as u64)).unwrap_or(0);
            let (from, to, message) = self.sent.remove(at);
            let (received, lost) = (self.now, self.luck.below(20) == 0);
            if let (false, Some(to)) =
                (lost, usize::try_from(to.0).ok().filter(|to| *to < MEMBERS + OUTSIDERS))
            {
                self.handle(to, Input::Message { from, received, message });
            }
        }
        self.judge();
    }

    /// An operator repairs terms, more or less as the guide says.
    fn operate(&mut self) {
        let sloppy = self.luck.below(2) == 0;
        let does = |luck: &mut Luck, percent| !sloppy || luck.below(100) < percent;
        for index in 0..MEMBERS {
            if does(&mut self.luck, 90) {
                self.stop(index);
            }
        }
        (0..MEMBERS).for_each(|index| self.report(index));
        if self.luck.below(2) == 0 {
            self.make_plan(); // Another operator, from the same reports.
        }
        if sloppy {
            // Somebody starts them again after the reports.
            (0..MEMBERS).for_each(|index| self.start(index));
            (0..self.luck.below(400)).for_each(|_| self.pass());
            (0..MEMBERS).for_each(|index| self.stop(index));
        }
        self.make_plan();
        for index in 0..MEMBERS {
            if does(&mut self.luck, 70) {
                self.apply(index);
            }
        }
        for index in 0..MEMBERS {
            if does(&mut self.luck, 80) {
                self.start(index);
            }
        }
    }

    fn step(&mut self) {
        let index = usize::try_from(self.luck.below(MEMBERS as u64)).unwrap_or(0);
        match self.luck.below(1000) {
            0..=2 => self.stop(index),
            3..=12 => self.start(index),
            13 => self.report(index),
            14 => self.make_plan(),
            15..=17 => self.apply(index),
            18 => self.operate(),
            19 => self.make_absurd(),
            20..=23 => self.stop(MEMBERS + index % OUTSIDERS),
            24..=30 => self.start(MEMBERS + index % OUTSIDERS),
            31..=40 => self.handle(index, Input::Command(Command::AcceptLineage)),
            41 => self.change(index),
            42 => self.handle(index, Input::Command(Command::Disturbed)),
            _ => self.pass(),
        }
    }

    /// The charter of some member that runs.
    fn any_charter(&mut self) -> Option<Arc<Charter>> {
        let from = usize::try_from(self.luck.below(MEMBERS as u64)).unwrap_or(0);
        self.members[from].process.as_ref().map(|process| process.charter().clone())
    }

    /// Another longest lease, or a group whose fences were reset.
    fn change(&mut self, index: usize) {
        let change = match self.luck.below(3) {
            0 => {
                let group = GroupId(self.luck.below(GROUPS));
                let leads = |it: &Member<R>| {
                    it.process.as_ref().is_some_and(|it| it.leadership(group, self.now).is_some())
                };
                if self.members.iter().any(leads) {
                    return;
                }
                let barred = |it: &Member<R>| {
                    it.process.as_ref().is_some_and(|it| it.charter().body.barred.has(group))
                };
                if !self.members.iter().any(barred) {
                    return;
                }
                self.newest.remove(&group);
                Change::LiftBar(group)
            }
            1 => Change::LongestLease(Span::from_nanos(2000)),
            _ => Change::LongestLease(Span::from_nanos(4000)),
        };
        self.handle(index, Input::Command(Command::Change(change)));
    }

    /// An operator confirms an absurd term by mistake, and candidates ask for one.
    fn make_absurd(&mut self) {
        let group = GroupId(self.luck.below(GROUPS));
        for index in 0..MEMBERS {
            self.handle(index, Input::Command(Command::Confirm(Term(ABSURD.0 * 2))));
            self.handle(index, Input::Command(Command::Raise { group, above: ABSURD }));
        }
    }

    fn run(rules: R, compares: bool, seed: u64) -> usize {
        let mut cluster = Self::new(rules, compares, seed);
        (0..STEPS).for_each(|_| cluster.step());
        cluster.after
    }
}

/// The records of a memory stay in it if they are believed.
fn kept(boot: &Boot<Cell>) -> Vec<Cell> {
    match &boot.kind {
        tenure_proto::BootKind::SameBoot { remembered } => remembered.clone(),
        _ => Vec::new(),
    }
}

/// The first complaint of any seed.
fn complaint<R: Rules + std::panic::RefUnwindSafe + std::panic::UnwindSafe>(
    rules: &R,
    compares: bool,
) -> Option<String> {
    (0..SEEDS).find_map(|seed| {
        let rules = rules.clone();
        let run = std::panic::catch_unwind(move || Cluster::run(rules, compares, seed));
        run.err().map(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
    })
}

#[test]
fn however_a_repair_is_interrupted_nobody_leads_twice_and_no_term_falls() {
    let elected: usize = (0..SEEDS).map(|seed| Cluster::run(Sound, true, seed)).sum();
    assert!(elected > 100, "only {elected} elections came after a repair");
}

#[test]
fn if_a_barred_group_is_granted_its_terms_fall() {
    let said = complaint(&Broken::GrantsBarred, true).expect("it was found");
    assert!(said.contains("terms fall"), "{said}");
}

#[test]
fn if_a_store_that_was_used_since_its_report_is_repaired_something_breaks() {
    let said = complaint(&Sound, false).expect("it was found");
    assert!(said.contains("terms fall") || said.contains("two leaders"), "{said}");
}
