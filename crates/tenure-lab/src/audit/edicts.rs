//! Edicts of real handles: made by a leader (2), and in order (3), in both forms of their
//! timestamps.
//!
//! An edict was created between two readings. It is no leader's if even the first of them is not
//! below any E that its term can have had by the second. Of two edicts whose readings do not
//! overlap, the first must have the smaller timestamp.

use std::collections::BTreeMap;

use tenure_proto::strong::edict::ByTerm;
use tenure_proto::strong::{Edict, Event, Holder, Kind, Term};
use tenure_proto::trace::Common;
use tenure_proto::{GroupId, LocalTime};

use super::Findings;
use super::record::{Life, Record, Step, Written};
use crate::property::Mark;
use crate::protocols::strong::judge::{Moment, ORDERED, Stamped, VALID, misordered, misordered_text};
use crate::world::RealTime;

/// One term of one life, as its node saw it.
struct Reign {
    /// When it began to lead, by its own clock.
    from: LocalTime,
    /// Each E, and by which reading it was set.
    leases: Vec<(LocalTime, LocalTime)>,
    /// A reading by which the end of the term had been told to all handles.
    over: Option<LocalTime>,
    /// The run that began it, if that is known.
    first: Option<ByTerm>,
    mark: Mark,
}

type Reigns = BTreeMap<(Holder, GroupId, Term), Reign>;

/// Judges all edicts.
pub(super) fn judge(record: &Record, findings: &mut Findings) {
    let lives: BTreeMap<Holder, &Life> = record.lives.iter().map(|life| (life.holder, life)).collect();
    let mut reigns = Reigns::new();
    for life in &record.lives {
        note_reigns(life, &mut reigns);
    }
    for edict in &record.edicts {
        if let Some(life) = lives.get(&edict.by) {
            judge_valid(edict, life, &reigns, findings);
        }
    }
    judge_numbers(record, findings);
    judge_order(record, &lives, &reigns, findings);
}

fn note_reigns(life: &Life, reigns: &mut Reigns) {
    for (i, step) in life.steps.iter().enumerate() {
        match &step.event {
            Event::Leads { group, epoch, kind, term, until, stamps, .. } => {
                let reign = reigns.entry((life.holder, *group, *term)).or_insert_with(|| Reign {
                    from: step.own,
                    leases: Vec::new(),
                    over: None,
                    first: (*kind == Kind::Acquire).then(|| ByTerm { epoch: *epoch, first: stamps.clone() }),
                    mark: step.mark,
                });
                reign.leases.push((step.own, *until));
            }
            Event::Lost { group, term, .. } => {
                if let Some(reign) = reigns.get_mut(&(life.holder, *group, *term)) {
                    reign.over = reign.over.or(told_by(life, i, step));
                }
            }
            _ => {}
        }
    }
}

/// E := 0 is stored in the step that says so; by the next step's reading it is done.
fn told_by(life: &Life, at: usize, lost: &Step) -> Option<LocalTime> {
    let later = life.steps[at + 1..].iter().map(|step| step.own).find(|own| *own > lost.own);
    later.or_else(|| Some(life.last().0).filter(|last| life.has_stopped() && *last > lost.own))
}

/// (2), by the clock of the edict's own node alone.
fn judge_valid(edict: &Written, life: &Life, reigns: &Reigns, findings: &mut Findings) {
    if !life.clock.is_steady() {
        return;
    }
    let (node, name) = (edict.by.node, Edict { tag: edict.term, number: edict.number }.token());
    let Some(reign) = reigns.get(&(edict.by, edict.group, edict.term)) else {
        // Its node has told of all that it did up to its last line.
        if life.has_stopped() || edict.after < life.last().0 {
            findings.add(VALID, [edict.mark], || {
                format!("{node} created edict {name:?} of {}, but never led that term", edict.group)
            });
        }
        return;
    };
    let marks = [edict.mark, reign.mark];
    if edict.after < reign.from {
        let (after, from) = (edict.after, reign.from);
        findings.add(VALID, marks, || {
            format!("{node} created edict {name:?} by {after} on its clock, but leads only since {from}")
        });
    }
    let set = reign.leases.iter().filter(|(set, _)| *set <= edict.after);
    let until = set.map(|(_, until)| *until).max();
    if let Some(until) = until.filter(|until| edict.before >= *until) {
        let before = edict.before;
        findings.add(VALID, marks, || {
            format!("{node} created edict {name:?} after {before} on its clock, when its lease had ended at {until}")
        });
    }
    if reign.over.is_some_and(|over| edict.before > over) {
        let before = edict.before;
        findings.add(VALID, marks, || {
            format!(
                "{node} created edict {name:?} after {before} on its clock, when it had given the term up"
            )
        });
    }
}

/// Each number of a term is used once.
fn judge_numbers(record: &Record, findings: &mut Findings) {
    let mut all: Vec<&Written> = record.edicts.iter().collect();
    all.sort_by_key(|edict| (edict.group, edict.term, edict.number, edict.mark));
    for pair in all.windows(2) {
        let (one, other) = (pair[0], pair[1]);
        if (one.group, one.term, one.number) == (other.group, other.term, other.number) {
            findings.add(ORDERED, [other.mark, one.mark], || {
                let name = Edict { tag: one.term, number: one.number }.token();
                format!(
                    "edict {name:?} of {} was made twice, by {} and {}",
                    one.group, one.by.node, other.by.node
                )
            });
        }
    }
}

/// The clock by which an edict is compared with others: the common one, or that of its life.
type Timeline = Option<Holder>;

/// When an edict was created, if anything can be said about that.
fn created(edict: &Written, lives: &BTreeMap<Holder, &Life>) -> Option<(Timeline, Moment)> {
    let moment = |from: u64, to: u64| Moment { earliest: RealTime(from), latest: RealTime(to) };
    if let Some(Common { from, to }) = edict.common {
        return Some((None, moment(from, to)));
    }
    let life = lives.get(&edict.by).filter(|life| life.clock.is_steady())?;
    let timeline = (!life.timed).then_some(edict.by);
    Some((timeline, moment(life.clock.between(edict.before).0, life.clock.between(edict.after).1)))
}

/// (3): no edict has a timestamp as large as that of one which was certainly created after it.
fn judge_order(record: &Record, lives: &BTreeMap<Holder, &Life>, reigns: &Reigns, findings: &mut Findings) {
    let mut by_group: BTreeMap<(Timeline, GroupId), Vec<(Moment, &Written)>> = BTreeMap::new();
    for edict in &record.edicts {
        if let Some((timeline, created)) = created(edict, lives) {
            by_group.entry((timeline, edict.group)).or_default().push((created, edict));
        }
    }
    for edicts in by_group.into_values() {
        judge_sequence(edicts, reigns, findings);
    }
}

/// Looks at each edict beside the largest of those that were over before it began: if any of them
/// is out of order, that one is.
fn judge_sequence(mut edicts: Vec<(Moment, &Written)>, reigns: &Reigns, findings: &mut Findings) {
    edicts.sort_by_key(|(created, edict)| (created.earliest, edict.mark));
    let mut by_end: Vec<usize> = (0..edicts.len()).collect();
    by_end.sort_by_key(|i| edicts[*i].0.latest);
    let mut ended = by_end.into_iter().peekable();
    let mut largest: Option<(Moment, &Written)> = None;
    for (created, edict) in &edicts {
        while let Some(i) = ended.next_if(|i| edicts[*i].0.latest < created.earliest) {
            let is_larger = largest.is_none_or(|(_, other)| stamp(edicts[i].1) > stamp(other));
            largest = if is_larger { Some(edicts[i]) } else { largest };
        }
        let Some((before, other)) = largest else { continue };
        if other.by.node != edict.by.node {
            findings.see("edicts-of-two-leaders");
        }
        let (one, two) = (stamped(before, other, reigns), stamped(*created, edict, reigns));
        if let Some(form) = misordered(&one, &two) {
            findings.add(ORDERED, [edict.mark, other.mark], || {
                misordered_text((other.by.node, edict.by.node), one.by_term, two.by_term, form)
            });
        }
        judge_tag(edict, reigns, findings);
    }
}

fn stamp(edict: &Written) -> Edict {
    Edict { tag: edict.term, number: edict.number }
}

/// In all forms. The stamps that the edict itself carries count; else those of the run that began
/// its term.
fn stamped<'a>(created: Moment, edict: &'a Written, reigns: &'a Reigns) -> Stamped<'a> {
    let reign = reigns.get(&(edict.by, edict.group, edict.term));
    let first = edict.first.as_deref().or(reign.and_then(|reign| reign.first.as_ref()));
    Stamped { created, by_term: stamp(edict), first, by_instance: None }
}

/// (epoch, QT0) is that of the run that began the term, for all edicts of it.
fn judge_tag(edict: &Written, reigns: &Reigns, findings: &mut Findings) {
    let Some(reign) = reigns.get(&(edict.by, edict.group, edict.term)) else { return };
    let Some(first) = &reign.first else { return };
    if edict.epoch != first.epoch || edict.first.as_ref().is_some_and(|tag| **tag != *first) {
        findings.add(ORDERED, [edict.mark, reign.mark], || {
            let (node, name) = (edict.by.node, stamp(edict).token());
            format!("{node} tagged edict {name:?} with (epoch, QT0) of another run than the one that began its term")
        });
    }
}
