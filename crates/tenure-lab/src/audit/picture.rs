//! Draws the traces of real nodes: who led, and which partitions there were.
//!
//! A lane for each node. A bar is the lease of a strong leader; lanes that support a local leader
//! have its colour for as long as it leads. Only lives that share the common clock are drawn, and
//! instants as early as they can have been.

use std::collections::BTreeSet;

use tenure_proto::local::Event as Said;
use tenure_proto::strong::{Event, Kind};
use tenure_proto::{GroupId, NodeId};

use super::locals::{self, Told};
use super::record::{Life, Record};
use super::timeline::Timeline;
use super::words::Names;
use super::{AuditError, File, Report};
use crate::draw::{Bar, BarKind, Mark, MarkKind, Minute, Picture, Shade};

/// The traces of one cluster as a picture, with what came of their audit. Where no life has a
/// common clock there is nothing to draw.
pub fn picture(files: &[File<'_>], report: &Report) -> Result<Picture, AuditError> {
    let record = Record::read(files)?;
    let timed: Vec<&Life> = record.lives.iter().filter(|life| life.timed).collect();
    if timed.is_empty() {
        return Err(AuditError::NothingToDraw);
    }
    let timeline = Timeline::new(timed);
    let mut canvas = Canvas::new(&record, &timeline, report);
    for life in 0..timeline.lives.len() {
        canvas.draw_strong(life);
        canvas.draw_outage(life);
    }
    canvas.draw_locals();
    canvas.picture.minutes.sort_by_key(|minute| minute.at);
    canvas.picture.marks.sort_by_key(|mark| mark.at);
    Ok(canvas.picture)
}

struct Canvas<'a> {
    timeline: &'a Timeline<'a>,
    names: Names,
    nodes: Vec<NodeId>,
    picture: Picture,
    /// The group of each bar and of each shade.
    bars: Vec<GroupId>,
    shades: Vec<GroupId>,
}

impl<'a> Canvas<'a> {
    fn new(record: &Record, timeline: &'a Timeline<'a>, report: &Report) -> Self {
        let names = Names::new(record);
        let nodes: BTreeSet<NodeId> = timeline.lives.iter().map(|life| life.holder.node).collect();
        let mut nodes: Vec<NodeId> = nodes.into_iter().collect();
        nodes.sort_by_cached_key(|node| names.node(*node));
        let broken = report.violations.first();
        let verdict = broken.map_or_else(
            || "everything holds that could be judged".to_owned(),
            |broken| format!("{}: {}", broken.property.name, broken.text),
        );
        let ends = timeline.lives.iter().map(|life| timeline.since(life.last().1.to).0);
        let picture = Picture {
            title: format!("{} nodes, audited", nodes.len()),
            verdict,
            broken: broken.is_some(),
            lanes: nodes.iter().map(|node| names.node(*node)).collect(),
            roles: vec![String::new(); nodes.len()],
            end: ends.max().unwrap_or(0),
            ..Picture::default()
        };
        let (bars, shades) = (Vec::new(), Vec::new());
        let mut canvas = Self { timeline, names, nodes, picture, bars, shades };
        for broken in &report.violations {
            if let Some(at) = broken.at {
                canvas.mark(None, at.0, MarkKind::Violation, broken.text.clone());
            }
        }
        canvas
    }

    fn lane(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|known| *known == node)
    }

    fn mark(&mut self, lane: Option<usize>, at: u64, kind: MarkKind, text: String) {
        self.picture.minutes.push(Minute { at, lane, text: text.clone(), outcomes: Vec::new() });
        self.picture.marks.push(Mark { lane, at, kind, text });
    }

    /// When a lease ends that is held at a position of a life's clock; never after the life.
    fn ends(&self, life: &Life, pair: usize, until: tenure_proto::LocalTime) -> u64 {
        let end = life.clock.stops(pair, until).min(life.last().1.from);
        self.timeline.since(end).0
    }

    fn draw_strong(&mut self, number: usize) {
        let life = self.timeline.lives[number];
        let Some(lane) = self.lane(life.holder.node) else { return };
        for step in &life.steps {
            let now = self.timeline.since(life.at(step.own, step.common).from).0;
            match &step.event {
                Event::Leads { group, term, kind, until, .. } => {
                    let until = self.ends(life, step.pair, *until);
                    let text = self.names.told(&format!("leads {group}, term {term}"));
                    self.open_bar((lane, *group), (now, until), text.clone());
                    if *kind == Kind::Acquire {
                        self.mark(Some(lane), now, MarkKind::Elected, text);
                    }
                }
                Event::Lost { group, .. } => {
                    let text = self.names.told(&format!("leads {group} no more"));
                    self.end_bars((lane, *group), now);
                    self.mark(Some(lane), now, MarkKind::Lost, text);
                }
                _ => {}
            }
        }
    }

    /// A renewal makes the bar longer that it goes on from.
    fn open_bar(&mut self, (lane, group): (usize, GroupId), (from, until): (u64, u64), text: String) {
        let bars = self.picture.bars.iter_mut().zip(&self.bars);
        let mut own = bars.filter(|(bar, of)| bar.lane == lane && **of == group && bar.text == text);
        match own.next_back().filter(|(bar, _)| bar.until >= from) {
            Some((bar, _)) => bar.until = bar.until.max(until),
            None => {
                self.picture.bars.push(Bar { lane, from, until, kind: BarKind::Lease, text });
                self.bars.push(group);
            }
        }
    }

    fn end_bars(&mut self, (lane, group): (usize, GroupId), now: u64) {
        for (bar, of) in self.picture.bars.iter_mut().zip(&self.bars) {
            if bar.lane == lane && *of == group && bar.from <= now {
                bar.until = bar.until.min(now);
            }
        }
    }

    /// From the last line of a life to the first of the next one.
    fn draw_outage(&mut self, number: usize) {
        let life = self.timeline.lives[number];
        let later = &self.timeline.lives[number + 1..];
        let next = later.iter().find(|next| next.holder.node == life.holder.node);
        if let (Some(next), Some(lane)) = (next, self.lane(life.holder.node)) {
            let [from, until] =
                [life.last().1.from, next.began().from].map(|instant| self.timeline.since(instant).0);
            let text = "down".to_owned();
            self.picture.bars.push(Bar { lane, from, until, kind: BarKind::Down, text });
            self.bars.push(GroupId(u64::MAX));
        }
    }

    fn draw_locals(&mut self) {
        let mut members: Vec<(usize, GroupId, Vec<NodeId>)> = Vec::new();
        for entry in locals::entries(self.timeline) {
            let (life, group) = (self.timeline.lives[entry.life], entry.step.group);
            let Some(lane) = self.lane(life.holder.node) else { continue };
            let now = self.timeline.since(entry.at.from).0;
            match &entry.step.told {
                Told::Start(start) => {
                    self.end_shades((lane, group), now);
                    members.retain(|(known, of, _)| (*known, *of) != (entry.life, group));
                    members.push((entry.life, group, start.members.clone()));
                }
                Told::Event(Said::Leads { lease, renewed }) => {
                    let known = members.iter().find(|(known, of, _)| (*known, *of) == (entry.life, group));
                    let Some((_, _, members)) = known else { continue };
                    let named = lease.supporters.positions().filter_map(|at| members.get(at).copied());
                    let set: Vec<usize> = named.filter_map(|node| self.lane(node)).collect();
                    let until = self.ends(life, entry.step.pair, lease.until);
                    self.open_shade((lane, group), (now, until), set, !renewed);
                }
                Told::Event(Said::Stepped { .. }) | Told::End => {
                    if self.end_shades((lane, group), now) {
                        let text = self.names.told(&format!("leads nobody in {group}"));
                        self.mark(Some(lane), now, MarkKind::Lost, text);
                    }
                }
                Told::Event(_) => {}
            }
        }
    }

    /// A renewal with the same supporters makes the shade longer that it goes on from.
    fn open_shade(
        &mut self,
        (leader, group): (usize, GroupId),
        (from, until): (u64, u64),
        members: Vec<usize>,
        elected: bool,
    ) {
        let shades = self.picture.shades.iter_mut().zip(&self.shades);
        let mut own = shades.filter(|(shade, of)| shade.leader == leader && **of == group);
        let goes_on = own.next_back().filter(|(shade, _)| shade.members == members && shade.until >= from);
        if let Some((shade, _)) = goes_on {
            shade.until = shade.until.max(until);
            return;
        }
        self.end_shades((leader, group), from);
        let mut whom: Vec<&str> = members.iter().map(|lane| self.picture.lanes[*lane].as_str()).collect();
        whom.sort_unstable();
        let text = format!("leads {} locally", whom.join(" "));
        if elected {
            self.mark(Some(leader), from, MarkKind::Elected, text);
        } else {
            self.picture.minutes.push(Minute { at: from, lane: Some(leader), text, outcomes: Vec::new() });
        }
        self.picture.shades.push(Shade { leader, members, from, until });
        self.shades.push(group);
    }

    /// Whether that cut one short.
    fn end_shades(&mut self, (leader, group): (usize, GroupId), now: u64) -> bool {
        let mut was_open = false;
        for (shade, of) in self.picture.shades.iter_mut().zip(&self.shades) {
            if shade.leader == leader && *of == group && shade.until > now {
                (shade.until, was_open) = (now, true);
            }
        }
        was_open
    }
}
