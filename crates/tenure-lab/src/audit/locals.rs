//! Local groups on one clock, shown to the judge of local leaders.
//!
//! Each group has a judge of its own, and one more for every other set of constants: machines that
//! differ in one do not hear each other. Processes are named by their positions in the group's
//! members, as in the machine; what the judge says is told by name. Nobody may support two leaders
//! at an instant even then: so far reigns of one group are held against each other over all its
//! judges.
//!
//! Which way it errs: a leader leads from its line, at the latest, until the earliest instant at
//! which its clock may show the end, and never after its last line; a supporter is bound until the
//! latest instant at which its clock may. For a process that has no line of the group, or may have
//! more lives than are known, the judge believes the leaders' lines.

use std::collections::{BTreeMap, BTreeSet};

use tenure_proto::local::{Event, Lease, View};
use tenure_proto::quorum::NodeSet;
use tenure_proto::trace::{Common, LocalStart};
use tenure_proto::{GroupId, LocalTime, NodeId};

use super::Findings;
use super::record::Life;
use super::timeline::{Timeline, merged};
use super::words::retold;
use crate::property::{Mark, Status};
use crate::protocols::local::judge::{LOCAL, LocalJudge, MAJORITY, SUPPORT_ONE, Sight};
use crate::world::{RealTime, node_id};

/// A line of a local group.
pub(super) struct LocalStep {
    pub(super) mark: Mark,
    pub(super) own: LocalTime,
    pub(super) common: Option<Common>,
    /// The position of its readings on the life's clock.
    pub(super) pair: usize,
    pub(super) group: GroupId,
    pub(super) told: Told,
}

/// The content of such a line.
pub(super) enum Told {
    /// A machine begins.
    Start(LocalStart),
    /// It has published this.
    Event(Event),
    /// It has ended.
    End,
}

/// A line, and whose it is.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) life: usize,
    pub(super) at: Common,
    pub(super) step: &'a LocalStep,
}

/// All lines of local groups, in order. Of what happened at one instant in different lives, causes
/// come before effects.
pub(super) fn entries<'a>(timeline: &Timeline<'a>) -> Vec<Entry<'a>> {
    let of = |(life, known): (usize, &&'a Life)| {
        let known: &'a Life = known;
        known.locals.iter().map(move |step| Entry { life, at: known.at(step.own, step.common), step })
    };
    let queues = timeline.lives.iter().enumerate().map(of).collect();
    merged(queues, |entry| (entry.at.from, rank(&entry.step.told), entry.life))
}

/// Causes before effects: what ends, then who is free, then who is bound, then who leads.
fn rank(told: &Told) -> u8 {
    match told {
        Told::Event(Event::Freed { .. }) => 1,
        Told::Event(Event::Locked { .. }) => 2,
        Told::Event(Event::Leads { .. }) => 3,
        Told::Event(Event::Members(_)) => 4,
        Told::Start(_) | Told::Event(_) | Told::End => 0,
    }
}

/// Judges all local groups of a timeline.
pub(super) fn judge(timeline: &Timeline<'_>, findings: &mut Findings) {
    let mut benches: BTreeMap<(GroupId, u64), Bench> = BTreeMap::new();
    // The machine that each life has in a group.
    let mut present: BTreeMap<(usize, GroupId), u64> = BTreeMap::new();
    for entry in entries(timeline) {
        let place = (entry.life, entry.step.group);
        let former = present.get(&place).copied();
        match &entry.step.told {
            Told::Start(start) => {
                if let Some(bench) = former.and_then(|key| benches.get_mut(&(start.group, key))) {
                    bench.show(timeline, entry, None);
                }
                present.insert(place, start.constants);
                let bench = benches.entry((start.group, start.constants));
                bench.or_insert_with(|| Bench::new(start)).starts(timeline, entry);
            }
            Told::Event(event) => {
                let key = former.map(|constants| (entry.step.group, constants));
                if let Some(bench) = key.and_then(|key| benches.get_mut(&key)) {
                    bench.show(timeline, entry, Some(event));
                }
                if let (Some(key), Event::Leads { .. }) = (key, event) {
                    judge_apart(timeline, entry, key, &benches, findings);
                }
            }
            Told::End => {
                if let Some(bench) = present.remove(&place).and_then(|key| benches.get_mut(&(place.1, key))) {
                    bench.show(timeline, entry, None);
                }
            }
        }
    }
    benches.into_values().for_each(|bench| bench.end(findings));
}

/// SO between machines of one group that go by different constants: a leader now shares no
/// supporter with those.
fn judge_apart(
    timeline: &Timeline<'_>,
    entry: Entry<'_>,
    key: (GroupId, u64),
    benches: &BTreeMap<(GroupId, u64), Bench>,
    findings: &mut Findings,
) {
    let Some(bench) = benches.get(&key) else { return };
    let own = bench.position(timeline, entry).and_then(|node| Some((node, bench.judge.reign(node)?)));
    let Some((node, reign)) = own else { return };
    let others = benches.iter().filter(|(other, _)| other.0 == key.0 && **other != key);
    for other in others.map(|(_, other)| other) {
        for (leader, member) in other.members.iter().enumerate().filter(|(_, it)| **it != bench.members[node])
        {
            let Some(theirs) = other.judge.reign(leader).filter(|theirs| theirs.meets(reign)) else {
                continue;
            };
            let supporters = other.named(theirs.set);
            let both: Vec<String> = bench
                .named(reign.set)
                .intersection(&supporters)
                .map(|supporter| supporter.to_string())
                .collect();
            if !both.is_empty() {
                let marks = [Some(entry.step.mark), theirs.mark].into_iter().flatten();
                findings.add_at(SUPPORT_ONE, Some(timeline.since(entry.at.from)), marks, || {
                    let (leader, both) = (bench.members[node], both.join(" "));
                    format!("{both} supports {leader} and {member}, which go by different constants")
                });
            }
        }
    }
}

/// A group's judge.
struct Bench {
    judge: LocalJudge,
    members: Vec<NodeId>,
    /// The lease by which each has said that it leads.
    said: Vec<Option<Lease>>,
    /// The processes that have begun here.
    begun: NodeSet,
    /// Where each violation was noticed.
    marks: Vec<Mark>,
}

impl Bench {
    fn new(start: &LocalStart) -> Self {
        let (members, majority) = (start.members.clone(), start.majority);
        let properties = if majority { &MAJORITY } else { &LOCAL };
        let judge = LocalJudge::of_traces(properties, members.len(), majority);
        Self { judge, said: vec![None; members.len()], members, begun: NodeSet::EMPTY, marks: Vec::new() }
    }

    fn position(&self, timeline: &Timeline<'_>, entry: Entry<'_>) -> Option<usize> {
        let node = timeline.lives[entry.life].holder.node;
        self.members.iter().position(|member| *member == node)
    }

    /// Members by their own numbers.
    fn named(&self, set: NodeSet) -> BTreeSet<NodeId> {
        set.positions().filter_map(|position| self.members.get(position).copied()).collect()
    }

    fn starts(&mut self, timeline: &Timeline<'_>, entry: Entry<'_>) {
        if let Some(position) = self.position(timeline, entry) {
            self.begun.insert(position);
            self.show(timeline, entry, None);
        }
    }

    /// A step of a machine, or its beginning or end: then it leads nobody.
    fn show(&mut self, timeline: &Timeline<'_>, entry: Entry<'_>, event: Option<&Event>) {
        let Some(node) = self.position(timeline, entry) else { return };
        let event = event.map(|event| placed(event, &self.members));
        let Some(event) = event.map_or(Some(None), |known| known.map(Some)) else { return };
        match &event {
            Some(Event::Leads { lease, .. }) => self.said[node] = Some(*lease),
            Some(Event::Stepped { .. }) | None => self.said[node] = None,
            Some(_) => {}
        }
        let view = LocalView {
            timeline,
            entry,
            members: &self.members,
            lease: self.said[node].filter(|lease| entry.step.own < lease.until),
            begun: self.begun,
        };
        self.judge.see_step(&view, node, event.as_ref());
        self.marks.resize(self.judge.found().len(), entry.step.mark);
    }

    fn end(self, findings: &mut Findings) {
        let statuses = self.judge.statuses();
        for (violation, mark) in self.judge.found().iter().zip(&self.marks) {
            let property = statuses.iter().find(|(known, _)| known.name == violation.property);
            let Some((property, _)) = property else { continue };
            let marks = [Some(*mark), violation.before].into_iter().flatten();
            findings.add_at(*property, Some(violation.at), marks, || told(&violation.text, &self.members));
        }
        for (property, _) in statuses.iter().filter(|(_, status)| *status == Status::Seen) {
            findings.see(property.name);
        }
    }
}

/// An event in which members are named by their positions; `None` if it names somebody else.
pub(super) fn placed(event: &Event, members: &[NodeId]) -> Option<Event> {
    let place = |node: NodeId| members.iter().position(|member| *member == node).map(node_id);
    let inside = |set: NodeSet| set.positions().all(|position| position < members.len());
    Some(match *event {
        Event::Declined { asker } => Event::Declined { asker: place(asker)? },
        Event::Freed { to } => Event::Freed { to: place(to)? },
        Event::Members(view) => Event::Members(View { leader: place(view.leader)?, ..view }),
        Event::Locked { lock, .. } if lock.to >= members.len() => return None,
        Event::Leads { lease, .. } if !inside(lease.supporters) => return None,
        event => event,
    })
}

/// Text in which `n0` is the first of some members, told by their own numbers.
pub(super) fn told(text: &str, members: &[NodeId]) -> String {
    retold(text, |word| {
        let position: usize = word.strip_prefix('n')?.parse().ok()?;
        members.get(position).map(NodeId::to_string)
    })
}

/// The judge's view when one line is read.
struct LocalView<'a> {
    timeline: &'a Timeline<'a>,
    entry: Entry<'a>,
    members: &'a [NodeId],
    /// The lease by which the writer of the line leads.
    lease: Option<Lease>,
    begun: NodeSet,
}

impl LocalView<'_> {
    fn life(&self) -> &Life {
        self.timeline.lives[self.entry.life]
    }
}

impl Sight for LocalView<'_> {
    fn now(&self) -> RealTime {
        self.timeline.since(self.entry.at.from)
    }

    fn latest(&self) -> RealTime {
        self.timeline.since(self.entry.at.to)
    }

    fn lease(&self, _node: usize) -> Option<Lease> {
        self.lease
    }

    /// A process that has said nothing more may have ended.
    fn stops(&self, _node: usize, until: LocalTime) -> RealTime {
        let life = self.life();
        let last = life.last().1.from.saturating_add(u64::from(!life.has_stopped()));
        self.timeline.since(life.clock.stops(self.entry.step.pair, until).min(last))
    }

    fn ends(&self, _node: usize, until: LocalTime) -> RealTime {
        self.timeline.since(self.life().clock.ends(self.entry.step.pair, until).1)
    }

    fn knows(&self, node: usize) -> bool {
        let member = self.members.get(node).filter(|_| self.begun.contains(node));
        member.is_some_and(|member| self.timeline.knows(*member, self.now()))
    }

    fn mark(&self) -> Option<Mark> {
        Some(self.entry.step.mark)
    }
}
