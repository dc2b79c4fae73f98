//! Properties judged without any common clock: terms, charters and stamps compare by themselves,
//! and each node by its own clock.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_proto::strong::Event;
use tenure_proto::strong::epoch::{Charter, Epoch};
use tenure_proto::{LocalTime, NodeId};

use super::record::{Acquired, Life, Record, Step};
use super::{Findings, LIVES, NEIGHBOURS, NODE_EPOCHS, WAITED};
use crate::property::Mark;
use crate::protocols::strong::judge::{EPOCHS_FOLLOW, INSTANCES, ONE_CHARTER, ORDERED, STAMPS, TERMS};

/// Judges all that lasts.
pub(super) fn judge(record: &Record, findings: &mut Findings) {
    judge_names(record, findings);
    judge_terms(record, findings);
    judge_charters(record, findings);
    for life in &record.lives {
        judge_stamps(life, findings);
        judge_runs(life, findings);
        judge_epochs(life, findings);
    }
}

/// No two lives of a node have one name: else a store was copied, or two processes use one.
fn judge_names(record: &Record, findings: &mut Findings) {
    let mut known = BTreeMap::new();
    for life in &record.lives {
        let Some(other) = known.insert(life.holder, life.mark) else { continue };
        findings.add(LIVES, [life.mark, other], || {
            format!("{} begins its life {} twice", life.holder.node, life.holder.incarnation.0)
        });
    }
}

/// I7: terms are unique, and their order is that of their epochs and of the stamps of those who
/// granted them.
fn judge_terms(record: &Record, findings: &mut Findings) {
    let mut all: Vec<Acquired<'_>> = record.acquisitions().collect();
    all.sort_by_key(|run| (run.group, run.term, run.id, run.mark));
    for pair in all.windows(2) {
        if let [one, other] = pair
            && one.group == other.group
        {
            judge_two_terms(one, other, findings);
        }
    }
}

/// Judges two acquisitions of one group; the second has the larger term, or the same.
fn judge_two_terms(one: &Acquired<'_>, other: &Acquired<'_>, findings: &mut Findings) {
    let marks = [other.mark, one.mark];
    let (first, second, group) = (one.id.holder.node, other.id.holder.node, one.group);
    let (small, large) = (one.term, other.term);
    if small == large {
        return findings.add(TERMS, marks, || match one.id == other.id {
            true => format!("{first} completes term {small} of {group} twice"),
            false => format!("{first} and {second} both complete term {small} of {group}"),
        });
    }
    match one.epoch.cmp(&other.epoch) {
        Ordering::Less => return,
        Ordering::Equal => {}
        Ordering::Greater => {
            let (early, late) = (other.epoch, one.epoch);
            return findings.add(EPOCHS_FOLLOW, marks, || {
                format!(
                    "term {small} of {group} is of epoch {late}, and the later term {large} of epoch {early}"
                )
            });
        }
    }
    match one.stamps.order(other.stamps) {
        Ok(Ordering::Less) => {}
        Ok(_) => findings.add(TERMS, marks, || {
            format!(
                "by the stamps of those who granted them, {second} completed term {large} of {group} before \
                 {first} completed term {small}"
            )
        }),
        Err(error) => {
            findings.add(ORDERED, marks, || format!("terms {small} and {large} of {group}: {error}"));
        }
    }
}

/// T6, and ADJ.
fn judge_charters(record: &Record, findings: &mut Findings) {
    let mut known: BTreeMap<Epoch, (&Charter, Mark)> = BTreeMap::new();
    for (node, charter, mark) in record.charters() {
        let (other, told) = *known.entry(charter.epoch).or_insert((charter, mark));
        if other != &**charter {
            findings.add(ONE_CHARTER, [mark, told], || {
                let (epoch, members) = (charter.epoch, charter.members());
                format!("{node} goes by an epoch {epoch} of {members:?}, others by another epoch {epoch}")
            });
        }
    }
    for (epoch, (charter, mark)) in &known {
        // A charter by an operator's word need not meet anything: it has waited instead.
        let Some(before) = charter.before.as_ref().filter(|_| !epoch.begins_era()) else { continue };
        if !before.quorums.adjacent(&charter.body.quorums) {
            findings.add(NEIGHBOURS, [*mark], || {
                let (old, new) = (before.quorums.members(), charter.members());
                format!("epoch {epoch} of {new:?} follows one of {old:?}, and their quorums need not meet")
            });
        }
        let former = epoch.0.checked_sub(1).and_then(|former| known.get(&Epoch(former)));
        if let Some((former, told)) = former.filter(|(former, _)| &former.body != before) {
            findings.add(ONE_CHARTER, [*mark, *told], || {
                let (epoch, members) = (former.epoch, before.quorums.members());
                format!("a charter follows an epoch {epoch} of {members:?}, but epoch {epoch} is another")
            });
        }
    }
}

/// The stamps of one life rise, whatever the group.
fn judge_stamps(life: &Life, findings: &mut Findings) {
    let mut last = None;
    for step in &life.steps {
        let Event::Granted { at, .. } = step.event else { continue };
        let node = life.holder.node;
        if at.incarnation != life.holder.incarnation {
            findings.add(STAMPS, [step.mark, life.mark], || {
                format!("{node} stamps {at:?}, though this is its life {}", life.holder.incarnation.0)
            });
        }
        if let Some((former, mark)) = last.replace((at, step.mark)).filter(|(former, _)| *former >= at) {
            findings.add(STAMPS, [step.mark, mark], || format!("{node} stamped {at:?} after {former:?}"));
        }
    }
}

/// The runs of one life have names of their own, whatever the group.
fn judge_runs(life: &Life, findings: &mut Findings) {
    let mut last: Option<(u64, Mark)> = None;
    for step in &life.steps {
        let Event::Asked(request) = &step.event else { continue };
        let (node, id) = (life.holder.node, request.id);
        if id.holder != life.holder {
            findings.add(INSTANCES, [step.mark, life.mark], || {
                format!(
                    "{node} began {id:?}, which is no name of a run of its life {}",
                    life.holder.incarnation.0
                )
            });
        }
        if let Some((former, mark)) = last.replace((id.seq, step.mark)).filter(|(seq, _)| *seq >= id.seq) {
            findings.add(INSTANCES, [step.mark, mark], || {
                format!("{node} began {id:?} after run {former} of the same name")
            });
        }
    }
}

/// MONO, W and SEAL, within one life.
fn judge_epochs(life: &Life, findings: &mut Findings) {
    let node = life.holder.node;
    // The charter that the node goes by, where it says so, and since when, if it adopted it in this
    // life.
    let (mut here, mut told, mut since): (&Charter, Mark, Option<LocalTime>) =
        (&life.charter, life.mark, None);
    let mut seal = Seal::default();
    for step in &life.steps {
        seal.judge(node, step, here.epoch, findings);
        match &step.event {
            Event::Adopted { charter, .. } => {
                let epoch = charter.epoch;
                if epoch <= here.epoch {
                    let old = here.epoch;
                    findings.add(NODE_EPOCHS, [step.mark, told], || {
                        format!("{node} adopts epoch {epoch} when it goes by epoch {old}")
                    });
                }
                (here, told, since) = (charter, step.mark, Some(step.own));
            }
            Event::Granted { request, .. } if request.epoch < here.epoch => {
                let (epoch, newest) = (request.epoch, here.epoch);
                findings.add(NODE_EPOCHS, [step.mark, told], || {
                    format!("{node} grants in epoch {epoch} when it goes by epoch {newest}")
                });
            }
            Event::Accepted { charter, .. } if !charter.epoch.begins_era() => {
                let from = since.map(|since| here.spacing(since)).filter(|_| here.epoch > Epoch(0));
                if let Some(from) = from.filter(|from| step.own < *from) {
                    let (next, epoch, at) = (charter.epoch, here.epoch, step.own);
                    findings.add(WAITED, [step.mark, told], || {
                        format!("{node} accepts epoch {next} at {at} on its clock, but may not before {from}: it has adopted {epoch} so lately")
                    });
                }
            }
            _ => {}
        }
    }
}

/// The charter that a life has accepted by an operator's word: from then on it grants nothing
/// before it goes by it (SEAL), and decides it only after the wait.
#[derive(Default)]
struct Seal<'a>(Option<(&'a Arc<Charter>, &'a Step)>);

impl<'a> Seal<'a> {
    fn judge(&mut self, node: NodeId, step: &'a Step, here: Epoch, findings: &mut Findings) {
        let sealed = self.0.filter(|(charter, _)| charter.epoch > here);
        match (&step.event, sealed) {
            (Event::Accepted { charter, .. }, _)
                if charter.epoch.begins_era() && sealed.is_none_or(|(known, _)| known != charter) =>
            {
                self.0 = Some((charter, step));
            }
            (Event::Granted { request, .. }, Some((charter, accepted))) => {
                let (epoch, next) = (request.epoch, charter.epoch);
                findings.add(WAITED, [step.mark, accepted.mark], || {
                    format!("{node} grants in epoch {epoch} after it has accepted epoch {next} by an operator's word")
                });
            }
            (Event::Decided { charter }, Some((known, accepted))) if charter == known => {
                let from = charter.spacing(accepted.own);
                if step.own < from {
                    let (next, at) = (charter.epoch, step.own);
                    findings.add(WAITED, [step.mark, accepted.mark], || {
                        format!("{node} decides epoch {next} at {at} on its clock, but may not before {from}: leases of before may be in force")
                    });
                }
            }
            _ => {}
        }
    }
}
