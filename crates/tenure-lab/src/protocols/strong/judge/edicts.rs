//! The properties of edicts: the creator of one leads (2), and they are ordered as they were
//! created (3).

use std::cmp::Ordering;

use tenure_proto::strong::Edict;
use tenure_proto::strong::edict::{ByInstance, ByTerm, Tag};

use super::*;
use crate::subject::Made;

/// With how many edicts on either side an edict is compared. Those further away follow: the orders
/// are transitive.
const COMPARED: usize = 12;

/// An edict in all the forms of its timestamp that are known.
#[derive(Clone, Copy, Debug)]
pub struct Stamped<'a> {
    /// When it was created.
    pub created: Moment,
    /// (term, counter).
    pub by_term: Edict,
    /// (epoch, QT0), to which the same counter belongs.
    pub first: Option<&'a ByTerm>,
    /// (epoch, QT, EC).
    pub by_instance: Option<&'a Edict<ByInstance>>,
}

impl<'a> Stamped<'a> {
    fn of(made: &'a Made, by_quorums: bool) -> Self {
        Self {
            created: Moment::exact(made.created),
            by_term: made.by_term,
            first: by_quorums.then_some(&made.by_first.tag),
            by_instance: made.by_instance.as_ref().filter(|_| by_quorums),
        }
    }
}

/// The form of timestamp that does not put two edicts in the order in which they were created. Of
/// two that may have been created at one instant, by two threads, either may be first.
pub fn misordered(first: &Stamped<'_>, second: &Stamped<'_>) -> Option<&'static str> {
    if !first.created.is_before(second.created) {
        return None;
    }
    if first.by_term >= second.by_term {
        return Some("(term, counter)");
    }
    if let (Some(one), Some(other)) = (first.first, second.first) {
        let numbers = first.by_term.number.cmp(&second.by_term.number);
        if one.order(other).map(|order| order.then(numbers)) != Ok(Ordering::Less) {
            return Some("(epoch, QT0, counter)");
        }
    }
    let (Some(one), Some(other)) = (first.by_instance, second.by_instance) else { return None };
    (one.order(other) != Ok(Ordering::Less)).then_some("(epoch, QT, EC)")
}

/// That an edict came before another, but its timestamp does not say so.
pub fn misordered_text(nodes: (NodeId, NodeId), first: Edict, second: Edict, form: &str) -> String {
    let ((node, other), (one, two)) = (nodes, (first.token(), second.token()));
    format!("of {node} and {other}, edict {one:?} came before {two:?}, but {form} does not say so")
}

impl StrongJudge {
    /// (2) and (3): an edict may be found valid long after its creation, so it is put where it
    /// belongs in time and compared with those around it.
    pub(super) fn judge_edict(&mut self, now: RealTime, node: NodeId, edict: Made) {
        if !edict.led {
            let (name, at) = (edict.by_term.token(), edict.created);
            self.break_at(VALID, now, || {
                format!("{node} created edict {name:?} at {at}, when it did not lead")
            });
        }
        let place = self.edicts.partition_point(|(_, other)| other.created <= edict.created);
        let around = place.saturating_sub(COMPARED)..(place + COMPARED).min(self.edicts.len());
        let wrong = self.edicts[around].iter().find_map(|(other, earlier)| {
            let (first, second) =
                if earlier.created <= edict.created { (earlier, &edict) } else { (&edict, earlier) };
            let by_quorums = self.stamps_compare(first, second);
            let form = misordered(&Stamped::of(first, by_quorums), &Stamped::of(second, by_quorums))?;
            Some((*other, first.by_term, second.by_term, form))
        });
        if let Some((other, first, second, form)) = wrong {
            self.break_at(ORDERED, now, || misordered_text((node, other), first, second, form));
        }
        if self.edicts.last().is_some_and(|(other, _)| *other != node) {
            self.see(EDICTS);
        }
        self.edicts.insert(place, (node, edict));
    }
}
