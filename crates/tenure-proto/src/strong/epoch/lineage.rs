//! Lineage: the founding that a charter comes from, and the operator's words that lie between.
//!
//! A charter is decided by the members of the one before it, so all charters of a cluster are one
//! chain. Two acts begin a chain that nobody voted for: a founding, and a force-remove (`force`).
//! Done twice, each may give a quorum of its own, and then two processes lead at once: a split
//! brain. No rule about quorums can see that, because the two halves share no member that would
//! refuse.
//!
//! So each of these acts draws a random number, and a charter carries all numbers that lead to it:
//! its [`Lineage`]. Comparing two charters then says how they are related:
//!
//! | lineages | epochs | [`Relation`] |
//! |---|---|---|
//! | equal | equal | `Same` if the charters are equal, else `Foreign` |
//! | equal | differ | `Older` or `Newer`: one chain of votes (T6) |
//! | one begins with the other | the longer one is later | `Older` or `Newer`: a force-remove lies between |
//! | of different repairs | any | `Foreign`: see `repair` |
//! | anything else | | `Foreign` |
//!
//! **The consequence of `Foreign`** ([`Rules::stops_for_foreign`]). The member stops granting and
//! leading, durably, until an operator decides which side goes on. To refuse the other's messages
//! is not enough: {a} and {b, c} are each a quorum of their own charter. Both sides stop, because
//! each tells the other what it goes by.
//!
//! **The way out** ([`Command::AcceptLineage`]). The operator ends the other side and tells each
//! member of this one. Leases that the other side granted may still be in force, so the member
//! keeps silent for a longest lease, as after a reboot. If it hears of the other side again, it
//! stops again.
//!
//! [`Command::AcceptLineage`]: crate::strong::Command::AcceptLineage
//! [`Rules::stops_for_foreign`]: crate::strong::Rules::stops_for_foreign

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::member::say;
use super::{ChangeError, Charter, Epoch, EpochTalk};
use crate::strong::message::{Cell, Event};
use crate::strong::rules::Rules;
use crate::strong::{Nerio, Succession};
use crate::trace;
use crate::{Context, GroupId, NodeId};

/// The draws that a charter comes from: its founding's first, then one for each force-remove and
/// each repair of terms.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Lineage(Vec<u128>);

impl Lineage {
    /// The largest number of draws of a lineage. Each beyond the first is a lost quorum or a
    /// repair.
    pub const MOST: usize = 64;

    /// The lineage of a cluster that is founded.
    pub fn founding(draw: u128) -> Self {
        Self(vec![draw])
    }

    /// The lineage after a force-remove; refused where there were too many.
    pub fn forced(&self, draw: u128) -> Result<Self, ChangeError> {
        let mut draws = self.0.clone();
        draws.push(draw);
        Self::new(draws).ok_or(ChangeError::LineageFull)
    }

    /// The lineage after a repair of absurd terms (`repair`); refused where there were too many
    /// draws. Its draw is marked, so that charters on the two sides of a repair are foreign to each
    /// other: a member comes over by being repaired, never by hearing of it.
    pub fn repaired(&self, draw: u64) -> Result<Self, ChangeError> {
        self.forced(Self::REPAIR << 64 | u128::from(draw))
    }

    /// The upper half of the draw of a repair. The draws of foundings and force-removes are random,
    /// so one of them has these bits once in 2^64.
    const REPAIR: u128 = 0x7265_7061_6972_6564;

    /// Whether terms were repaired on the way to this lineage.
    pub fn is_repaired(&self) -> bool {
        self.repairs().next().is_some()
    }

    /// The draws of the repairs on the way to this lineage.
    pub(super) fn repairs(&self) -> impl Iterator<Item = u128> + '_ {
        self.0.iter().copied().filter(|draw| draw >> 64 == Self::REPAIR)
    }

    /// A lineage of these draws; `None` if there are none, or too many.
    pub fn new(draws: Vec<u128>) -> Option<Self> {
        (1..=Self::MOST).contains(&draws.len()).then_some(Self(draws))
    }

    /// The number that the founding drew.
    pub fn founder(&self) -> u128 {
        self.0.first().copied().unwrap_or_default()
    }

    /// All draws, the founding's first.
    pub fn draws(&self) -> &[u128] {
        &self.0
    }

    /// Whether this lineage is the other's, or one that the other comes from.
    pub fn begins(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, draw) in self.0.iter().enumerate() {
            write!(f, "{}{draw:032x}", if i > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Names a charter, as short as it can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CharterId {
    /// Where the charter comes from.
    pub lineage: Lineage,
    /// Its number.
    pub epoch: Epoch,
    /// A digest of the whole charter: see [`Charter::digest`].
    pub digest: u128,
}

/// How another charter is related to one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// It is the same.
    Same,
    /// One's own comes from it.
    Older,
    /// It comes from one's own.
    Newer,
    /// Neither comes from the other: there are two clusters of one name and key.
    Foreign,
}

impl CharterId {
    /// How `other` is related to this.
    pub fn relation(&self, other: &Self) -> Relation {
        if self.lineage == other.lineage {
            return match other.epoch.cmp(&self.epoch) {
                Ordering::Equal if self.digest == other.digest => Relation::Same,
                Ordering::Equal => Relation::Foreign,
                Ordering::Less => Relation::Older,
                Ordering::Greater => Relation::Newer,
            };
        }
        if !self.lineage.repairs().eq(other.lineage.repairs()) {
            Relation::Foreign
        } else if self.lineage.begins(&other.lineage) && self.epoch < other.epoch {
            Relation::Newer
        } else if other.lineage.begins(&self.lineage) && other.epoch < self.epoch {
            Relation::Older
        } else {
            Relation::Foreign
        }
    }
}

impl Charter {
    /// A number for all that this charter says, the same on every host and for every build: of its
    /// text, as a trace has it. The floor of a founding is left out: members that found a cluster
    /// one by one each take the time of day.
    pub fn digest(&self) -> u128 {
        let mut text = String::new();
        match self.before {
            Some(_) => trace::write_charter(&mut text, self),
            None => trace::write_charter(&mut text, &Self { floor: super::Term(0), ..self.clone() }),
        }
        fnv(text.as_bytes())
    }

    /// The id by which charters are compared.
    pub fn id(&self) -> CharterId {
        CharterId { lineage: self.lineage.clone(), epoch: self.epoch, digest: self.digest() }
    }
}

/// FNV-1a of 128 bits. It tells charters apart that differ by mistake; those who have the key do
/// not lie.
fn fnv(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

impl<R: Rules> Nerio<R> {
    /// The charter of another cluster that this member has heard of: it grants nothing and leads
    /// nothing until an operator decides.
    pub fn split_brain(&self) -> Option<&CharterId> {
        self.process.split.as_ref()
    }

    /// A charter that is said to be decided: adopted if it comes after this process's own.
    pub(super) fn on_decided(&mut self, from: NodeId, charter: &Arc<Charter>, cx: &mut Context<'_, Self>) {
        let here = self.process.charter();
        let equal = *here == **charter;
        if !equal && self.is_foreign(&charter.id()) {
            if self.stop_for(charter.id(), cx) {
                // The other side must stop too.
                say(from, EpochTalk::GoesBy(self.process.charter().id()), None, cx);
            }
            return;
        }
        if !self.process.doubts_floor(from, charter, cx) {
            self.adopt(charter, cx);
        }
    }

    /// Another process tells what it goes by.
    pub(super) fn on_goes_by(&mut self, from: NodeId, other: CharterId, cx: &mut Context<'_, Self>) {
        if self.is_foreign(&other) {
            self.stop_for(other, cx);
        } else if other.epoch != self.process.membership.epoch() {
            self.process.admits(from, other.epoch, cx); // A process that is behind is told, or asks.
        }
    }

    /// Whether a charter is of another cluster, by the rules. Where an epoch is ended before the
    /// next begins, floors are no part of what is decided, and charters of one epoch may differ in
    /// them.
    fn is_foreign(&self, other: &CharterId) -> bool {
        let settings = self.process.config.settings();
        let relation = self.process.charter().id().relation(other);
        settings.succession == Succession::Adjacent && self.process.rules().stops_for_foreign(relation)
    }

    /// A member stops, and says whether it is one. Everybody else only goes on without the other
    /// charter.
    fn stop_for(&mut self, other: CharterId, cx: &mut Context<'_, Self>) -> bool {
        if self.process.position.is_none() {
            return false;
        }
        if self.process.split.is_some() {
            return true;
        }
        self.process.split = Some(other.clone());
        // Before anything else of this step: a leader here stops first.
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for group in groups {
            self.with_group(group, cx, |candidate, around| candidate.stop_for_foreign(around));
        }
        cx.persist(Cell::SplitBrain(Some(other.clone())));
        cx.publish(Event::SplitBrain { other });
        true
    }

    /// An operator has ended the other side. Leases that the other side granted may be in force for
    /// a longest lease.
    pub(in crate::strong) fn accept_lineage(&mut self, cx: &mut Context<'_, Self>) {
        if self.process.split.is_none() {
            return;
        }
        let until = self.process.silence_from(cx.now()).max(self.process.silent_until);
        self.process.assert_silence(until);
        self.process.silent_until = until;
        cx.remember(Cell::Silence(until));
        cx.publish(Event::Silent { until });
        self.process.split = None;
        cx.persist(Cell::SplitBrain(None));
        cx.publish(Event::LineageAccepted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(draws: &[u128], epoch: u64, digest: u128) -> CharterId {
        CharterId { lineage: Lineage::new(draws.to_vec()).unwrap(), epoch: Epoch(epoch), digest }
    }

    #[test]
    fn charters_of_one_lineage_are_one_chain() {
        let here = at(&[1], 3, 7);
        assert_eq!(here.relation(&at(&[1], 3, 7)), Relation::Same);
        assert_eq!(here.relation(&at(&[1], 2, 9)), Relation::Older);
        assert_eq!(here.relation(&at(&[1], 5, 9)), Relation::Newer);
        assert_eq!(here.relation(&at(&[1], 3, 8)), Relation::Foreign, "two charters of one epoch");
    }

    #[test]
    fn a_force_remove_is_a_descendant_and_two_of_them_are_strangers() {
        let (here, era) = (at(&[1], 3, 7), Epoch::ERA);
        assert_eq!(here.relation(&at(&[1, 2], era, 9)), Relation::Newer);
        assert_eq!(at(&[1, 2], era, 9).relation(&here), Relation::Older);
        assert_eq!(at(&[1, 2], era, 9).relation(&at(&[1, 3], era, 9)), Relation::Foreign);
        assert_eq!(at(&[1, 2], era, 9).relation(&at(&[1, 3], 2 * era, 9)), Relation::Foreign);
        assert_eq!(at(&[1], era, 9).relation(&at(&[1, 2], 3, 9)), Relation::Foreign, "it cannot be earlier");
    }

    #[test]
    fn the_two_sides_of_a_repair_are_strangers_and_what_follows_it_is_not() {
        let (before, era) = (Lineage::founding(1), Epoch::ERA);
        let after = before.repaired(7).unwrap();
        let (old, new) = (at(&[1], 3, 7), at(after.draws(), era, 9));
        assert_eq!(old.relation(&new), Relation::Foreign, "an unrepaired member does not go by it");
        assert_eq!(new.relation(&old), Relation::Foreign);
        assert_eq!(new.relation(&at(after.draws(), era + 1, 9)), Relation::Newer);
        let forced = after.forced(5).unwrap();
        assert_eq!(new.relation(&at(forced.draws(), 2 * era, 9)), Relation::Newer);
        let (again, other) = (after.repaired(7).unwrap(), before.repaired(8).unwrap());
        assert_eq!(new.relation(&at(again.draws(), 2 * era, 9)), Relation::Foreign);
        assert_eq!(new.relation(&at(other.draws(), era, 9)), Relation::Foreign, "two plans");
    }

    #[test]
    fn two_foundings_are_strangers_in_any_epoch() {
        for epoch in [0, 1, 2, Epoch::ERA] {
            assert_eq!(at(&[1], 1, 7).relation(&at(&[2], epoch, 7)), Relation::Foreign);
        }
    }

    #[test]
    fn a_relation_seen_from_the_other_side_is_its_mirror() {
        let all: Vec<CharterId> = [&[1][..], &[2], &[1, 2], &[1, 3], &[1, 2, 3]]
            .iter()
            .flat_map(|draws| [0, 1, Epoch::ERA].map(|epoch| at(draws, epoch, 7)))
            .collect();
        for one in &all {
            for other in &all {
                let mirrored = match one.relation(other) {
                    Relation::Older => Relation::Newer,
                    Relation::Newer => Relation::Older,
                    same => same,
                };
                assert_eq!(other.relation(one), mirrored, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_lineage_has_an_end() {
        let full = (1..Lineage::MOST)
            .fold(Lineage::founding(0), |lineage, draw| lineage.forced(draw as u128).unwrap());
        assert_eq!(full.forced(1), Err(ChangeError::LineageFull));
        assert_eq!(Lineage::new(Vec::new()), None);
    }
}
