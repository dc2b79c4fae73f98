//! Lives on one clock, put in order, shown to the judge.
//!
//! All lives that share the common clock are one timeline; each other life is one by itself, by its
//! own clock. Every group has a judge of its own, which hears of its group alone and of what
//! concerns the node as a whole.

use std::collections::{BTreeMap, BTreeSet};

use tenure_proto::strong::{Event, Holder, Kind};
use tenure_proto::time::Stamp;
use tenure_proto::trace::Common;
use tenure_proto::{GroupId, LocalTime, NodeId};

use super::record::{Life, Record, Step};
use super::{Findings, LIVES};
use crate::property::{Mark, Status};
use crate::protocols::strong::judge::{ALL, Moment, Sight, StrongJudge};
use crate::world::RealTime;

/// Judges all that has a time.
pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let (timed, alone): (Vec<&Life>, Vec<&Life>) = record.lives.iter().partition(|life| life.timed);
    let timelines = [timed].into_iter().chain(alone.into_iter().map(|life| vec![life]));
    for lives in timelines.filter(|lives| !lives.is_empty()) {
        let timeline = Timeline::new(lives);
        timeline.judge(record, findings);
        super::locals::judge(&timeline, findings);
    }
}

/// Up to when all is known of a node.
pub(super) struct Known {
    /// Before this instant. Nothing, if its first life has no trace here.
    until: Option<RealTime>,
}

/// Lives on one clock.
pub(super) struct Timeline<'a> {
    /// In the order in which they began.
    pub(super) lives: Vec<&'a Life>,
    /// The first instant: time is counted from here.
    origin: u64,
    known: BTreeMap<NodeId, Known>,
}

/// Something that happened in a life: its beginning, or a step.
#[derive(Clone, Copy)]
struct Entry<'a> {
    life: usize,
    /// The position of its readings on the life's clock.
    pair: usize,
    at: Common,
    /// The step, if it is one.
    step: Option<&'a Step>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(mut lives: Vec<&'a Life>) -> Self {
        lives.sort_by_key(|life| (life.began(), life.mark));
        let origin = lives.first().map_or(0, |life| life.began().from);
        let mut timeline = Self { lives, origin, known: BTreeMap::new() };
        let nodes: BTreeSet<NodeId> = timeline.lives.iter().map(|life| life.holder.node).collect();
        timeline.known = nodes.into_iter().map(|node| (node, timeline.known_of(node))).collect();
        timeline
    }

    /// Of members lives are counted from one. Where a number is missing, what was promised in that
    /// life is not known.
    fn known_of(&self, node: NodeId) -> Known {
        let mut lives = self.lives.iter().filter(|life| life.holder.node == node).peekable();
        let mut expected = 1;
        while let Some(life) = lives.next() {
            let known = life.holder.incarnation.0 == expected;
            if !known {
                let until = (expected > 1).then(|| self.since(life.began().from));
                return Known { until };
            }
            expected += 1;
            if lives.peek().is_none() && !life.has_stopped() {
                return Known { until: Some(self.since(life.last().1.from)) };
            }
        }
        Known { until: Some(RealTime(u64::MAX)) }
    }

    /// Counted from the first instant.
    pub(super) fn since(&self, nanos: u64) -> RealTime {
        RealTime(nanos.saturating_sub(self.origin))
    }

    /// Whether all is known that a node has done up to an instant.
    pub(super) fn knows(&self, node: NodeId, at: RealTime) -> bool {
        let known = self.known.get(&node).and_then(|known| known.until);
        known.is_some_and(|until| at < until)
    }

    /// All that happened, in order. Of what happened at one instant in different lives, causes come
    /// before effects.
    fn entries(&self) -> Vec<Entry<'a>> {
        let queues = (0..self.lives.len()).map(|life| self.entries_of(life)).collect();
        merged(queues, |entry| (entry.at.from, rank(entry.step), entry.life))
    }

    fn entries_of(&self, number: usize) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let life = self.lives[number];
        let begins = Entry { life: number, pair: 0, at: life.began(), step: None };
        let steps = life.steps.iter().map(move |step| Entry {
            life: number,
            pair: step.pair,
            at: life.at(step.own, step.common),
            step: Some(step),
        });
        [begins].into_iter().chain(steps)
    }

    fn judge(&self, record: &Record, findings: &mut Findings) {
        let Some(founding) = record.founding() else { return };
        let steps = self.lives.iter().flat_map(|life| &life.steps);
        let mut groups: BTreeSet<GroupId> = steps.filter_map(|step| group_of(&step.event)).collect();
        if groups.is_empty() {
            groups.insert(GroupId(0)); // Members may change though nobody leads.
        }
        let bench = |group| (group, Bench::new(StrongJudge::new(founding.clone(), 1, Vec::new())));
        let mut benches: BTreeMap<GroupId, Bench> = groups.into_iter().map(bench).collect();
        self.judge_lives(findings);
        for entry in self.entries() {
            match entry.step.and_then(|step| group_of(&step.event)) {
                Some(group) => benches.get_mut(&group).into_iter().for_each(|bench| bench.show(self, entry)),
                None => benches.values_mut().for_each(|bench| bench.show(self, entry)),
            }
        }
        for bench in benches.into_values() {
            bench.end(self, findings);
        }
    }

    /// No life begins before the one before it has ended, as far as it was written down.
    fn judge_lives(&self, findings: &mut Findings) {
        for (i, life) in self.lives.iter().enumerate() {
            let holder = life.holder;
            let former = self.lives[..i].iter().rev().find(|former| former.holder.node == holder.node);
            let Some(former) = former.filter(|former| former.last().1.from > life.began().to) else {
                continue;
            };
            let marks = [Some(life.mark), former.steps.last().map(|step| step.mark)];
            findings.add(LIVES, marks.into_iter().flatten(), || {
                let (node, new, old) = (holder.node, holder.incarnation.0, former.holder.incarnation.0);
                format!("life {new} of {node} begins when its life {old} has not ended")
            });
        }
    }
}

/// Puts the events of all lives, each in order, in one order by a key whose last part is the life.
pub(super) fn merged<T>(
    queues: Vec<impl Iterator<Item = T>>,
    key: impl Fn(&T) -> (u64, u8, usize),
) -> Vec<T> {
    let mut queues: Vec<_> = queues.into_iter().map(Iterator::peekable).collect();
    let mut heads: BTreeSet<(u64, u8, usize)> = BTreeSet::new();
    heads.extend(queues.iter_mut().filter_map(|queue| queue.peek().map(&key)));
    let mut entries = Vec::new();
    while let Some((_, _, life)) = heads.pop_first() {
        entries.extend(queues[life].next());
        heads.extend(queues[life].peek().map(&key));
    }
    entries
}

/// One group's judge, and up to when it has been shown what happened.
struct Bench {
    judge: StrongJudge,
    last: RealTime,
    /// Where each violation was noticed.
    marks: Vec<Option<Mark>>,
}

impl Bench {
    fn new(judge: StrongJudge) -> Self {
        Self { judge, last: RealTime(0), marks: Vec::new() }
    }

    fn show(&mut self, timeline: &Timeline<'_>, entry: Entry<'_>) {
        let life = timeline.lives[entry.life];
        let (now, latest) = (timeline.since(entry.at.from), timeline.since(entry.at.to));
        self.pass(timeline, now);
        let mark = Some(entry.step.map_or(life.mark, |step| step.mark));
        let view = View { timeline, life: entry.life, pair: entry.pair, now, latest, mark };
        match entry.step {
            None => self.judge.on_started(now, life.holder.node, &life.charter, mark),
            Some(step) => {
                self.judge.on_event(&view, life.holder.node, step.own, &step.event);
                if let Event::Granted { request, .. } = &step.event {
                    self.judge.on_passed(now, life.holder.node, request.group, request.id);
                }
            }
        }
        self.note(mark);
        self.last = now;
    }

    /// Time goes on, and what runs out meanwhile is judged.
    fn pass(&mut self, timeline: &Timeline<'_>, to: RealTime) {
        let view = View { timeline, life: 0, pair: 0, now: self.last, latest: self.last, mark: None };
        self.judge.run_out(&view, to);
        self.note(None);
    }

    fn note(&mut self, mark: Option<Mark>) {
        self.marks.resize(self.judge.violations().len(), mark);
    }

    fn end(mut self, timeline: &Timeline<'_>, findings: &mut Findings) {
        self.pass(timeline, RealTime(u64::MAX));
        for (violation, mark) in self.judge.violations().iter().zip(&self.marks) {
            let Some(property) = ALL.iter().find(|known| known.name == violation.property) else { continue };
            let marks = [*mark, violation.before].into_iter().flatten();
            findings.add_at(*property, Some(violation.at), marks, || violation.text.clone());
        }
        for (property, _) in self.judge.report().iter().filter(|(_, status)| *status == Status::Seen) {
            findings.see(property.name);
        }
    }
}

/// The judge's view when one line is read.
struct View<'a> {
    timeline: &'a Timeline<'a>,
    life: usize,
    pair: usize,
    now: RealTime,
    latest: RealTime,
    mark: Option<Mark>,
}

impl View<'_> {
    fn clock(&self) -> &super::clock::Clock {
        &self.timeline.lives[self.life].clock
    }

    /// Whether all that a life has done is known that others can have noticed by now.
    fn covers(&self, life: Holder, is_later: impl Fn(&Life) -> bool) -> bool {
        let mut lives = self.timeline.lives.iter().filter(|known| known.holder.node == life.node);
        let Some(known) = lives.find(|known| known.holder == life) else { return false };
        known.has_stopped() || lives.next().is_some() || !is_later(known)
    }
}

impl Sight for View<'_> {
    fn now(&self) -> RealTime {
        self.now
    }

    fn latest(&self) -> RealTime {
        self.latest
    }

    fn stops(&self, _node: NodeId, until: LocalTime) -> RealTime {
        self.timeline.since(self.clock().stops(self.pair, until))
    }

    fn heard_until(&self, _node: NodeId) -> RealTime {
        let life = self.timeline.lives[self.life];
        match self.covers(life.holder, |_| true) {
            true => RealTime(u64::MAX),
            false => self.timeline.since(life.last().1.from).after(1),
        }
    }

    fn ends(&self, _node: NodeId, until: LocalTime) -> Moment {
        let (earliest, latest) = self.clock().ends(self.pair, until);
        Moment { earliest: self.timeline.since(earliest), latest: self.timeline.since(latest) }
    }

    /// Nothing is known beyond its lines: it leads if it has said so in time.
    fn leadership(
        &self,
        _node: NodeId,
        _group: GroupId,
        reading: LocalTime,
        until: LocalTime,
    ) -> Option<LocalTime> {
        (reading < until).then_some(until)
    }

    fn sees_all(&self) -> bool {
        false
    }

    fn knows(&self, node: NodeId, at: RealTime) -> bool {
        self.timeline.knows(node, at)
    }

    fn follows(&self, life: Holder) -> bool {
        self.covers(life, |known| self.timeline.since(known.last().1.from) <= self.now)
    }

    fn has_stamped(&self, grantor: NodeId, stamp: Stamp) -> bool {
        let life = Holder { node: grantor, incarnation: stamp.incarnation };
        self.covers(life, |known| known.last().0 <= stamp.at && known.last_stamp() < Some(stamp))
    }

    fn mark(&self) -> Option<Mark> {
        self.mark
    }
}

/// Causes before effects: what ends, then who is free, then who grants, then who leads.
fn rank(step: Option<&Step>) -> u8 {
    match step.map(|step| &step.event) {
        Some(Event::Freed { .. } | Event::Accepted { .. }) => 1,
        Some(Event::Granted { .. } | Event::Decided { .. }) => 2,
        Some(Event::Leads { kind: Kind::Acquire | Kind::Renew, .. } | Event::Adopted { .. }) => 3,
        Some(Event::Verified { .. } | Event::Found { .. }) => 4,
        _ => 0,
    }
}

/// The election that an event is about, if it is about one.
pub(super) fn group_of(event: &Event) -> Option<GroupId> {
    match event {
        Event::Asked(request) | Event::Granted { request, .. } | Event::Refused { request, .. } => {
            Some(request.group)
        }
        Event::Leads { group, .. }
        | Event::GaveBack { group, .. }
        | Event::Freed { group, .. }
        | Event::Pledged { group, .. }
        | Event::Verified { group, .. }
        | Event::Sought { group, .. }
        | Event::Found { group, .. }
        | Event::NotFound { group, .. }
        | Event::WeakLeader { group, .. }
        | Event::Paced { group, .. }
        | Event::Strained { group, .. }
        | Event::Yields { group, .. }
        | Event::Failed { group, .. }
        | Event::HeldBack { group, .. }
        | Event::Lost { group, .. } => Some(*group),
        Event::Silent { .. }
        | Event::Mute
        | Event::Recovering
        | Event::Recovered { .. }
        | Event::Wedged { .. }
        | Event::Adopted { .. }
        | Event::Accepted { .. }
        | Event::Decided { .. }
        | Event::Changed { .. }
        | Event::ChangeHalted { .. }
        | Event::SplitBrain { .. }
        | Event::LineageAccepted
        | Event::Implausible { .. }
        | Event::Confirmed { .. }
        | Event::ClockWentBack { .. } => None,
    }
}
