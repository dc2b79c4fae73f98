//! The processes that watch groups at this member, what each key may have of that, and when to look
//! at a group.
//!
//! **Limits.** A watch is one process that is told of one group. It is charged to the key of that
//! process, under whichever name it speaks: a key has a limit of its own, and all keys but the
//! cluster's share [`MOST`] places. Where these are taken, the key that has most of them gives one
//! up to a key that has fewer. So no key can use up the places of another.
//!
//! **Looks.** Each watched group has one time at which to look at it: when the grant that was told
//! runs out, or when an observer that does not ask again is dropped. All other changes are events,
//! and are told when they happen. So a turn costs what is due in it, however many groups are
//! watched, and at most [`LOOKS`] of them: the rest is for the next turn.

use std::collections::{BTreeMap, BTreeSet};

use tenure_proto::{GroupId, LocalTime, NodeId};

use super::registry::{By, Full};
use crate::wire::GroupState;

/// The most watches of all keys but the cluster's: about 20 MB.
const MOST: usize = 100_000;

/// How many groups are looked at in one turn.
pub(super) const LOOKS: usize = 256;

/// A process that is told of a group.
#[derive(Clone, Copy, Debug)]
struct Watcher {
    until: LocalTime,
    key: Option<u64>,
    /// It wants to be told when reports are of.
    timed: bool,
}

/// A group that is watched.
#[derive(Debug)]
struct Watched {
    watchers: BTreeMap<NodeId, Watcher>,
    last: Option<GroupState>,
    look_at: LocalTime,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Watches {
    /// How many watches one key has.
    limit: usize,
    groups: BTreeMap<GroupId, Watched>,
    /// When to look at each of them.
    looks: BTreeSet<(LocalTime, GroupId)>,
    /// The watches of each key, and the keys by how many they have.
    shares: BTreeMap<u64, BTreeSet<(GroupId, NodeId)>>,
    ranks: BTreeSet<(usize, u64)>,
    charged: usize,
}

impl Watches {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// A process asks to be told of a group until then, anew or again.
    pub(super) fn ask(
        &mut self,
        (from, by): (NodeId, By),
        group: GroupId,
        now: LocalTime,
        until: LocalTime,
    ) -> Result<(), Full> {
        let key = match by {
            By::Cluster => None,
            By::Key(key) => Some(key),
        };
        let known = self.groups.get_mut(&group).and_then(|watched| watched.watchers.get_mut(&from));
        if let Some(watcher) = known.filter(|watcher| watcher.key == key) {
            watcher.until = until;
            return Ok(());
        }
        self.leave(from, group);
        if let Some(key) = key {
            self.charge(key, group, from)?;
        }
        let looks = &mut self.looks;
        let watched = self.groups.entry(group).or_insert_with(|| {
            looks.insert((now, group));
            Watched { watchers: BTreeMap::new(), last: None, look_at: now }
        });
        watched.watchers.insert(from, Watcher { until, key, timed: false });
        Ok(())
    }

    fn charge(&mut self, key: u64, group: GroupId, from: NodeId) -> Result<(), Full> {
        let own = self.share(key);
        if own >= self.limit || self.charged >= MOST && !self.make_room(own) {
            return Err(Full);
        }
        self.shares.entry(key).or_default().insert((group, from));
        self.rank(key, own, own + 1);
        self.charged += 1;
        Ok(())
    }

    /// The key with most watches gives up one, if it has more than a key with `own` will have.
    fn make_room(&mut self, own: usize) -> bool {
        let Some((most, busiest)) = self.ranks.last().copied() else { return false };
        if most <= own + 1 {
            return false;
        }
        let Some((group, watcher)) = self.shares.get(&busiest).and_then(|share| share.first().copied())
        else {
            return false;
        };
        self.leave(watcher, group);
        true
    }

    fn share(&self, key: u64) -> usize {
        self.shares.get(&key).map_or(0, BTreeSet::len)
    }

    fn rank(&mut self, key: u64, before: usize, now: usize) {
        self.ranks.remove(&(before, key));
        if now > 0 {
            self.ranks.insert((now, key));
        }
    }

    /// A process is told of a group no more. A group that nobody watches any more is forgotten.
    pub(super) fn leave(&mut self, from: NodeId, group: GroupId) {
        let Some(watched) = self.groups.get_mut(&group) else { return };
        let Some(watcher) = watched.watchers.remove(&from) else { return };
        if watched.watchers.is_empty() {
            self.looks.remove(&(watched.look_at, group));
            self.groups.remove(&group);
        }
        let Some(key) = watcher.key else { return };
        let before = self.share(key);
        if let Some(share) = self.shares.get_mut(&key) {
            share.remove(&(group, from));
            if share.is_empty() {
                self.shares.remove(&key);
            }
        }
        self.rank(key, before, before.saturating_sub(1));
        self.charged = self.charged.saturating_sub(1);
    }

    /// Drops the watchers of a group that have not asked for a while. Says when the next of them is
    /// to be dropped.
    pub(super) fn drop_late(&mut self, group: GroupId, now: LocalTime) -> Option<LocalTime> {
        let watched = self.groups.get(&group)?;
        let late: Vec<NodeId> =
            watched.watchers.iter().filter(|(_, watcher)| watcher.until <= now).map(|(id, _)| *id).collect();
        for watcher in late {
            self.leave(watcher, group);
        }
        self.groups.get(&group)?.watchers.values().map(|watcher| watcher.until).min()
    }

    /// A process that watches a group wants to be told when reports are of.
    pub(super) fn is_timed(&mut self, from: NodeId, group: GroupId) {
        let watched = self.groups.get_mut(&group);
        if let Some(watcher) = watched.and_then(|watched| watched.watchers.get_mut(&from)) {
            watcher.timed = true;
        }
    }

    /// Those to be told of a group, and whether they want to be told when reports are of.
    pub(super) fn timed(&self, group: GroupId) -> impl Iterator<Item = (NodeId, bool)> + '_ {
        let watchers = self.groups.get(&group).into_iter().flat_map(|watched| &watched.watchers);
        watchers.map(|(node, watcher)| (*node, watcher.timed))
    }

    /// Those to be told of a group.
    pub(super) fn of(&self, group: GroupId) -> impl Iterator<Item = NodeId> + '_ {
        self.groups.get(&group).into_iter().flat_map(|watched| watched.watchers.keys().copied())
    }

    pub(super) fn has(&self, group: GroupId) -> bool {
        self.groups.contains_key(&group)
    }

    /// Notes what is told of a watched group. Says whether that is news.
    pub(super) fn is_news(&mut self, group: GroupId, state: GroupState) -> bool {
        let watched = self.groups.get_mut(&group);
        watched.is_some_and(|watched| watched.last.replace(state) != Some(state))
    }

    /// When to look at any group.
    pub(super) fn next_look(&self) -> Option<LocalTime> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// A group at which to look now.
    pub(super) fn due(&self, now: LocalTime) -> Option<GroupId> {
        self.looks.first().filter(|(at, _)| *at <= now).map(|(_, group)| *group)
    }

    /// A group is looked at again then.
    pub(super) fn look_again(&mut self, group: GroupId, at: LocalTime) {
        let Some(watched) = self.groups.get_mut(&group) else { return };
        self.looks.remove(&(watched.look_at, group));
        watched.look_at = at;
        self.looks.insert((at, group));
    }

    /// All groups are looked at as soon as possible: what is said of each may have changed.
    pub(super) fn look_at_all(&mut self, now: LocalTime) {
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        groups.into_iter().for_each(|group| self.look_again(group, now));
    }

    /// Nobody has to do with a group any more.
    pub(super) fn forget(&mut self, group: GroupId) {
        let watchers: Vec<NodeId> = self.of(group).collect();
        watchers.into_iter().for_each(|watcher| self.leave(watcher, group));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> LocalTime {
        LocalTime::from_nanos(seconds * 1_000_000_000)
    }

    fn ask(watches: &mut Watches, (node, by): (u64, By), group: u64) -> Result<(), Full> {
        watches.ask((NodeId(node), by), GroupId(group), at(0), at(5))
    }

    fn is_empty(watches: &Watches) -> bool {
        watches.groups.is_empty()
            && watches.looks.is_empty()
            && watches.shares.is_empty()
            && watches.ranks.is_empty()
            && watches.charged == 0
    }

    #[test]
    fn the_names_of_one_key_share_its_limit_and_no_other_key_feels_it() {
        let mut watches = Watches::new(3);
        let (one, other) = (By::Key(7), By::Key(8));
        assert!((0..3).all(|number| ask(&mut watches, (number, one), number) == Ok(())));
        assert_eq!(ask(&mut watches, (9, one), 9), Err(Full), "another name of the same key");
        assert_eq!(ask(&mut watches, (0, one), 9), Err(Full), "another group");
        assert_eq!(ask(&mut watches, (0, one), 0), Ok(()), "one that it has already");
        assert!((0..3).all(|number| ask(&mut watches, (20, other), number) == Ok(())));
        assert!((0..9).all(|number| ask(&mut watches, (30, By::Cluster), number) == Ok(())));
        watches.leave(NodeId(1), GroupId(1));
        assert_eq!(ask(&mut watches, (9, one), 9), Ok(()), "one place is free again");
    }

    #[test]
    fn a_process_that_comes_back_with_another_key_is_charged_to_that() {
        let mut watches = Watches::new(1);
        ask(&mut watches, (1, By::Key(7)), 1).unwrap();
        ask(&mut watches, (1, By::Key(8)), 1).unwrap();
        assert_eq!((watches.share(7), watches.share(8), watches.charged), (0, 1, 1));
        ask(&mut watches, (1, By::Cluster), 1).unwrap();
        assert_eq!((watches.share(8), watches.charged), (0, 0));
    }

    #[test]
    fn where_all_places_are_taken_the_key_with_most_makes_room() {
        let mut watches = Watches::new(MOST);
        let most = u64::try_from(MOST).unwrap();
        for group in 0..most - 2 {
            ask(&mut watches, (1, By::Key(7)), group).unwrap();
        }
        for group in 0..2 {
            ask(&mut watches, (2, By::Key(8)), group).unwrap();
        }
        assert_eq!(ask(&mut watches, (1, By::Key(7)), most), Err(Full), "it has most itself");
        for group in 2..50 {
            ask(&mut watches, (2, By::Key(8)), group).unwrap();
        }
        assert_eq!((watches.share(7), watches.share(8), watches.charged), (MOST - 50, 50, MOST));
        assert_eq!(ask(&mut watches, (3, By::Cluster), most + 1), Ok(()), "members are not counted");
    }

    #[test]
    fn a_turn_looks_only_at_what_is_due() {
        let mut watches = Watches::new(MOST);
        for group in 0..10_000 {
            ask(&mut watches, (1, By::Cluster), group).unwrap();
            watches.look_again(GroupId(group), at(100 + group));
        }
        assert_eq!((watches.due(at(99)), watches.next_look()), (None, Some(at(100))));
        let mut looked = 0;
        while let Some(group) = watches.due(at(106)) {
            watches.look_again(group, at(200_000));
            looked += 1;
        }
        assert_eq!(looked, 7);
        watches.look_at_all(at(107));
        assert!(watches.due(at(107)).is_some());
    }

    #[test]
    fn watchers_that_ask_no_more_are_dropped_and_nothing_is_left_of_them() {
        let mut watches = Watches::new(10);
        ask(&mut watches, (1, By::Key(7)), 1).unwrap();
        watches.ask((NodeId(2), By::Key(8)), GroupId(1), at(1), at(7)).unwrap();
        assert_eq!(watches.drop_late(GroupId(1), at(4)), Some(at(5)));
        assert_eq!(watches.drop_late(GroupId(1), at(5)), Some(at(7)));
        assert_eq!(watches.of(GroupId(1)).collect::<Vec<_>>(), [NodeId(2)]);
        assert_eq!(watches.drop_late(GroupId(1), at(7)), None);
        assert!(is_empty(&watches), "{watches:?}");
        ask(&mut watches, (1, By::Key(7)), 1).unwrap();
        ask(&mut watches, (2, By::Cluster), 1).unwrap();
        watches.forget(GroupId(1));
        assert!(is_empty(&watches), "{watches:?}");
    }
}
