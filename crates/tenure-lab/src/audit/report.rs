//! The outcome of an audit: what is broken, what holds, and what nobody could judge.

use std::collections::{BTreeMap, BTreeSet};

use tenure_proto::local::Event;
use tenure_proto::{GroupId, NodeId};

use super::locals::Told;
use super::record::{Life, Record};
use super::words::{Names, line_words};
use super::{ADMITTED, File, Findings, Found, OWN};
use crate::property::{Kind, Property, Status};
use crate::protocols::local::judge::{COMPARED, LOCAL, MAJORITY, TRACED};
use crate::protocols::strong::judge::{
    ALL, CERTAIN, CHANGE_ENDS, ELECTED, ENDS, EPOCHS_FOLLOW, FLOORS, FOUND, GIVEN_TERMS, INSIDE, ORDERED,
    SPACED, STABLE, SUPPORT, UNIQUENESS, VALID, WAITED,
};
use crate::world::RealTime;

/// The outcome of an audit.
#[derive(Clone, Debug)]
pub struct Report {
    /// The properties that are broken, each with the lines that show it.
    pub violations: Vec<Broken>,
    /// The outcome of each property.
    pub properties: Vec<(Property, Status)>,
    /// Properties that were not judged, or only in part.
    pub unjudged: Vec<Unjudged>,
    /// The amount of evidence.
    pub counts: Counted,
    /// The nodes that have traces.
    pub nodes: Vec<NodeAbout>,
}

/// A broken property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub property: Property,
    /// When it was noticed, counted from the first line of all, where that can be said.
    pub at: Option<RealTime>,
    /// The violation in words.
    pub text: String,
    /// The lines that show it.
    pub places: Vec<Place>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which file.
    pub file: String,
    /// Which line, counted from 1.
    pub line: u32,
    /// The text of the line.
    pub text: String,
}

/// Something that was not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    /// What: the name of a property, or a part of the traces.
    pub what: String,
    /// Why not.
    pub why: String,
    /// Whether it was judged in part.
    pub partly: bool,
}

/// The amount of evidence that there was to judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Files.
    pub files: usize,
    /// Nodes that have a trace.
    pub nodes: usize,
    /// Lives of theirs.
    pub lives: usize,
    /// Elections.
    pub groups: usize,
    /// Local groups.
    pub local_groups: usize,
    /// How often somebody began to lead a partition.
    pub local_elections: usize,
    /// Events that machines published.
    pub events: usize,
    /// Terms that somebody began to lead.
    pub terms: usize,
    /// Edicts.
    pub edicts: usize,
    /// Writes that fenced resources admitted.
    pub admitted: usize,
    /// Writes that fenced resources refused.
    pub refused: usize,
    /// Lines that were cut off, and do not count.
    pub cut: usize,
    /// Lines of kinds that this version does not know.
    pub unknown: usize,
}

/// A node that has a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAbout {
    /// Its number.
    pub node: NodeId,
    /// Its name, as people call it.
    pub name: String,
    /// How many lives of it have a trace.
    pub lives: usize,
}

pub(super) fn report(files: &[File<'_>], record: &Record, findings: Findings) -> Report {
    let names = Names::new(record);
    let unjudged = unjudged(files, record, &names);
    let properties = statuses(record, &findings, &unjudged);
    let broken = |found: &Found| Broken {
        property: found.property,
        at: found.at,
        text: names.told(&found.text),
        places: found
            .marks
            .iter()
            .filter_map(|mark| {
                let file = files.get(mark.file as usize)?;
                let text = names.told(&line_words(file.bytes, *mark, record));
                Some(Place { file: file.name.to_owned(), line: mark.line, text })
            })
            .collect(),
    };
    let mut lives: BTreeMap<NodeId, usize> = BTreeMap::new();
    record.lives.iter().for_each(|life| *lives.entry(life.holder.node).or_default() += 1);
    Report {
        violations: findings.broken.iter().map(broken).collect(),
        properties,
        unjudged,
        counts: counted(files, record),
        nodes: lives
            .into_iter()
            .map(|(node, lives)| NodeAbout { node, name: names.node(node), lives })
            .collect(),
    }
}

fn counted(files: &[File<'_>], record: &Record) -> Counted {
    let steps = || record.lives.iter().flat_map(|life| &life.steps);
    let nodes: BTreeSet<NodeId> = record.lives.iter().map(|life| life.holder.node).collect();
    let groups: BTreeSet<_> = steps().filter_map(|step| super::timeline::group_of(&step.event)).collect();
    let locals = || record.lives.iter().flat_map(|life| &life.locals);
    let local_groups: BTreeSet<_> = locals().map(|step| step.group).collect();
    let elects = |event: &Event| matches!(event, Event::Leads { renewed: false, .. });
    let terms: BTreeSet<_> = record.acquisitions().map(|run| (run.group, run.term)).collect();
    Counted {
        files: files.len(),
        nodes: nodes.len(),
        lives: record.lives.len(),
        groups: groups.len(),
        local_groups: local_groups.len(),
        local_elections: locals()
            .filter(|step| matches!(&step.told, Told::Event(event) if elects(event)))
            .count(),
        events: steps().count() + locals().filter(|step| matches!(step.told, Told::Event(_))).count(),
        terms: terms.len(),
        edicts: record.edicts.len(),
        admitted: record.admitted.len(),
        refused: record.refused.len(),
        cut: record.cut,
        unknown: record.unknown,
    }
}

/// Every property with what became of it.
fn statuses(record: &Record, findings: &Findings, unjudged: &[Unjudged]) -> Vec<(Property, Status)> {
    let status = |property: &Property| {
        if findings.broken.iter().any(|found| found.property.name == property.name) {
            return Status::Broken;
        }
        let exempt = unjudged.iter().any(|left| left.what == property.name && !left.partly);
        match property.kind {
            _ if exempt => Status::Exempt,
            Kind::Always | Kind::Eventually => Status::Holds,
            Kind::Sometimes if findings.seen.contains(&property.name) => Status::Seen,
            Kind::Sometimes => Status::Unseen,
        }
    };
    let all = ALL.into_iter().chain(OWN).chain(local_properties(record));
    all.map(|property| (property, status(&property))).collect()
}

/// The properties of local groups, if there are any groups.
fn local_properties(record: &Record) -> impl Iterator<Item = Property> {
    let starts = record.local_starts();
    let [some, majority] = [false, true].map(|which| starts.iter().any(|start| start.majority == which));
    TRACED
        .into_iter()
        .filter(move |property| some && LOCAL.contains(property) || majority && MAJORITY.contains(property))
}

/// Properties that compare the times of different processes.
const TIMED: [Property; 8] = [UNIQUENESS, SUPPORT, INSIDE, CERTAIN, FOUND, SPACED, FLOORS, EPOCHS_FOLLOW];

fn unjudged(files: &[File<'_>], record: &Record, names: &Names) -> Vec<Unjudged> {
    let mut left = Vec::new();
    let mut leave = |what: &str, partly: bool, why: &str| {
        left.push(Unjudged { what: what.to_owned(), why: why.to_owned(), partly });
    };
    let healed = "a trace does not say when faults have healed";
    for name in [ELECTED.name, STABLE.name, CHANGE_ENDS.name, "change-interrupted"] {
        leave(name, false, healed);
    }
    let unknown = "a trace does not say when a node that was killed meanwhile came to its epoch";
    for name in [WAITED.name, "second-change"] {
        leave(name, false, unknown);
    }
    let gone = "within each life only: what a node granted in its last steps may never have left it";
    leave(GIVEN_TERMS.name, true, gone);
    leave(ENDS.name, true, "new grants only: what a node remembers over a restart is not in its trace");
    if record.edicts.is_empty() {
        for property in [VALID, ORDERED] {
            leave(property.name, false, "no edict was written down");
        }
        leave("edicts-of-two-leaders", false, "no edict was written down");
    } else {
        leave(
            ORDERED.name,
            true,
            "by (term, counter) and (epoch, QT0, counter): nodes do not use (epoch, QT, EC)",
        );
    }
    if record.admitted.is_empty() {
        leave(ADMITTED.name, false, "no fenced resource has written down what it admitted");
    }
    if !record.lives.iter().any(|life| life.timed) {
        for property in TIMED {
            leave(property.name, false, "no life has a common clock");
        }
    }
    left.extend(unjudged_locals(record, names));
    left.extend(unseen(files, record, names));
    left
}

/// Properties of local groups that were not judged.
fn unjudged_locals(record: &Record, names: &Names) -> Vec<Unjudged> {
    let starts = record.local_starts();
    let mut left = Vec::new();
    let mut leave = |what: &str, partly: bool, why: &str| {
        left.push(Unjudged { what: what.to_owned(), why: why.to_owned(), partly });
    };
    if starts.is_empty() {
        return left;
    }
    for name in ["leader-in-time", "connected-support"] {
        leave(name, false, "of local groups: a trace does not say who reached whom in time");
    }
    if !record.lives.iter().any(|life| life.timed && !life.locals.is_empty()) {
        for property in local_properties(record).filter(|property| COMPARED.contains(property)) {
            leave(property.name, false, "of local groups: none of their lives has a common clock");
        }
    }
    let constants: BTreeSet<(GroupId, u64)> =
        starts.iter().map(|start| (start.group, start.constants)).collect();
    let groups: BTreeSet<GroupId> = constants.iter().map(|(group, _)| *group).collect();
    for group in groups {
        if constants.iter().filter(|(of, _)| *of == group).count() > 1 {
            let why =
                "has several sets of constants: of leaders that differ in them only support-one is judged";
            leave(&names.told(&group.to_string()), true, why);
        }
    }
    left
}

/// Whose deeds are not known, or not known to have been at the same time as others'.
fn unseen(files: &[File<'_>], record: &Record, names: &Names) -> Vec<Unjudged> {
    let file = |life: &Life| files.get(life.mark.file as usize).map_or("", |file| file.name).to_owned();
    let life_of = |life: &Life| {
        format!("life {} of {} ({})", life.holder.incarnation.0, names.node(life.holder.node), file(life))
    };
    let mut left = Vec::new();
    let mut leave = |what: String, why: &str| left.push(Unjudged { what, why: why.to_owned(), partly: true });
    for life in record.lives.iter().filter(|life| !life.timed) {
        leave(life_of(life), "has no common clock: judged by its own clock, and by what needs none");
    }
    for life in record.lives.iter().filter(|life| !life.clock.is_steady()) {
        leave(life_of(life), "its clock went back: edicts are not judged by it");
    }
    let nodes: BTreeSet<NodeId> = record.lives.iter().map(|life| life.holder.node).collect();
    let members: BTreeSet<NodeId> =
        record.charters().flat_map(|(_, charter, _)| charter.members_and_former()).collect();
    for member in members.difference(&nodes) {
        leave(names.node(*member), "a member without a trace: what others say of its grants is believed");
    }
    for node in &nodes {
        let mut lives: Vec<&Life> = record.lives.iter().filter(|life| life.holder.node == *node).collect();
        lives.sort_by_key(|life| life.holder.incarnation);
        let missing = (1..).zip(&lives).find(|(number, life)| life.holder.incarnation.0 != *number);
        if let Some((number, _)) = missing.filter(|_| members.contains(node)) {
            let what = format!("life {number} of {}", names.node(*node));
            leave(what, "has no trace: from then on what others say of this node's grants is believed");
        }
        if let Some(last) = lives.last().filter(|life| !life.has_stopped()) {
            leave(life_of(last), "ends without 'stop': what it did after its last line is not known");
        }
    }
    let known: BTreeSet<_> = record.lives.iter().map(|life| life.holder).collect();
    let makers: BTreeSet<_> = record.edicts.iter().map(|edict| edict.by).collect();
    for life in makers.difference(&known) {
        let what = format!("edicts of life {} of {}", life.incarnation.0, names.node(life.node));
        leave(what, "its node has no trace: whether it led is not known");
    }
    left
}
