//! Grants that were given back lately: a late request must not grant them again.
//!
//! A candidate that lost gives its grants back; its request may still be on the way to a grantor
//! and would bind it to nobody's use until F. So a grantor remembers each release for twice δ_max.
//! No argument rests on it: a tombstone that is forgotten too soon costs time, never safety.
//!
//! A group has one tombstone for each life that gave something back, and at most [`LIVES`] for each
//! process. Both lookups and burials take time logarithmic in their number: a flood of releases
//! by one key costs the grantor no more for each of them than the first one did.

use std::collections::{BTreeMap, BTreeSet};

use crate::explore::View;
use crate::time::LocalSpan;
use crate::{Incarnation, LocalTime, NodeId};

use super::message::{Holder, InstanceId};

/// The most lives of one process whose releases are remembered. A live process has one session, so
/// one life; requests of earlier ones can only be on their way still.
const LIVES: usize = 8;

/// The releases of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tombs {
    /// For each life: all its runs up to this one were given back, which is forgotten then.
    by_life: BTreeMap<Holder, (u64, LocalTime)>,
    /// The same, by when it is forgotten.
    by_end: BTreeSet<(LocalTime, Holder)>,
}

impl Tombs {
    /// All runs up to `upto` were given back. Forgets what is over, and what this covers.
    pub(super) fn bury(&mut self, upto: InstanceId, forget: LocalTime, now: LocalTime) {
        self.expire(now);
        let holder = upto.holder;
        match self.by_life.get(&holder) {
            Some((seq, _)) if *seq > upto.seq => return, // The remembered number covers more.
            Some((_, end)) => _ = self.by_end.remove(&(*end, holder)),
            None => self.make_room(holder.node),
        }
        self.by_life.insert(holder, (upto.seq, forget));
        self.by_end.insert((forget, holder));
    }

    /// Runs that lives of `node` gave back, as far as they are not forgotten at `now`.
    pub(super) fn of(&self, node: NodeId, now: LocalTime) -> impl Iterator<Item = InstanceId> + '_ {
        let known = self.by_life.range(lives(node)).filter(move |(_, (_, forget))| now < *forget);
        known.map(|(holder, (seq, _))| InstanceId { holder: *holder, seq: *seq })
    }

    /// When the last of them is forgotten.
    pub(super) fn latest(&self) -> Option<LocalTime> {
        self.by_end.last().map(|(end, _)| *end)
    }

    fn expire(&mut self, now: LocalTime) {
        while let Some((end, holder)) = self.by_end.first().copied().filter(|(end, _)| *end <= now) {
            self.by_end.remove(&(end, holder));
            self.by_life.remove(&holder);
        }
    }

    /// One more life of `node` gives something back: the one that ends soonest makes room.
    fn make_room(&mut self, node: NodeId) {
        let known = || self.by_life.range(lives(node));
        if known().count() < LIVES {
            return;
        }
        if let Some((end, holder)) = known().map(|(holder, (_, end))| (*end, *holder)).min() {
            self.by_end.remove(&(end, holder));
            self.by_life.remove(&holder);
        }
    }
}

/// All lives of a process.
fn lives(node: NodeId) -> std::ops::RangeInclusive<Holder> {
    let life = |incarnation| Holder { node, incarnation };
    life(Incarnation(0))..=life(Incarnation(u128::MAX))
}

impl Tombs {
    /// See [`Explore`](crate::explore::Explore). `by_end` says the same once more.
    pub(super) fn view(&self, v: &mut View<'_>) {
        let now = v.now();
        let known = self.by_life.iter().filter(|(_, (_, forget))| now < *forget);
        let mut known: Vec<_> = known.map(|(holder, tomb)| (v.name(holder.node), holder, tomb)).collect();
        known.sort_unstable_by_key(|(name, holder, _)| (*name, holder.incarnation));
        v.num(known.len() as u64);
        for (_, holder, (seq, forget)) in known {
            holder.view(v);
            v.num(*seq);
            v.deadline(*forget);
        }
    }

    /// See [`LocalTime::shifted`].
    pub(super) fn shift(&mut self, by: LocalSpan) {
        for (_, forget) in self.by_life.values_mut() {
            *forget = forget.shifted(by);
        }
        self.by_end = self.by_life.iter().map(|(holder, (_, forget))| (*forget, *holder)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(node: u64, life: u128, seq: u64) -> InstanceId {
        InstanceId { holder: Holder { node: NodeId(node), incarnation: Incarnation(life) }, seq }
    }

    fn at(nanos: u64) -> LocalTime {
        LocalTime::from_nanos(nanos)
    }

    fn known(tombs: &Tombs, node: u64, now: u64) -> Vec<InstanceId> {
        tombs.of(NodeId(node), at(now)).collect()
    }

    #[test]
    fn the_newest_release_of_a_life_covers_the_older_ones() {
        let mut tombs = Tombs::default();
        tombs.bury(run(1, 7, 5), at(100), at(0));
        tombs.bury(run(1, 7, 3), at(200), at(1));
        assert_eq!((known(&tombs, 1, 2), tombs.latest()), (vec![run(1, 7, 5)], Some(at(100))));
        tombs.bury(run(1, 7, 6), at(150), at(2));
        assert_eq!((known(&tombs, 1, 2), tombs.latest()), (vec![run(1, 7, 6)], Some(at(150))));
        assert_eq!(known(&tombs, 2, 2), []);
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let mut tombs = Tombs::default();
        tombs.bury(run(1, 7, 5), at(100), at(0));
        assert_eq!(known(&tombs, 1, 100), []);
        tombs.bury(run(2, 1, 1), at(300), at(100));
        assert_eq!((tombs.by_life.len(), tombs.by_end.len()), (1, 1));
    }

    #[test]
    fn one_process_fills_a_group_with_few_tombstones_and_leaves_those_of_others_alone() {
        let mut tombs = Tombs::default();
        tombs.bury(run(2, 1, 1), at(10_000), at(0));
        for life in 0..1_000 {
            tombs.bury(run(1, life, 1), at(10_000 + u64::try_from(life).unwrap()), at(1));
        }
        assert_eq!((known(&tombs, 1, 2).len(), tombs.by_life.len()), (LIVES, LIVES + 1));
        assert_eq!(known(&tombs, 1, 2).last(), Some(&run(1, 999, 1)), "the newest is among them");
        assert_eq!(known(&tombs, 2, 2), [run(2, 1, 1)]);
    }
}
