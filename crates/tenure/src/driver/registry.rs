//! The groups that a node knows, who made it know them, and which of them it may forget.
//!
//! Each group that a process without the cluster's key brings up is charged to that process's key
//! until it is forgotten, and a key has a limit ([`Limits`]). All such keys together fill at most
//! half of the places, so that members find one at any time.
//!
//! A name that was only asked about, and that nobody has campaigned for, is not worth as much: it
//! may come from a daemon's HTTP port, where anybody may read. Such names have places of their own
//! ([`MOST_ASKED`]), and are looked at each [`ASKED`].
//!
//! **Forgetting.** Each group is looked at once in `forget_after`. If nobody has to do with it then
//! nor at the next look, it is forgotten. Nothing is noted when a group is used: a look asks the
//! machine, the campaigns and the observers themselves. So the path of a renewal is as short as
//! without limits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tenure_proto::{GroupId, LocalTime};

use crate::board::Row;
use crate::config::Limits;
use crate::name::GroupName;

/// The most groups that are known.
const MOST: usize = 1_000_000;

/// The most groups that all keys but the cluster's own make a node know.
const MOST_CHARGED: usize = MOST / 2;

/// The most of them that were only asked about.
const MOST_ASKED: usize = MOST / 4;

/// How often a group is looked at that was only asked about, if that is not longer than
/// `forget_after`.
const ASKED: Duration = Duration::from_secs(10);

/// The key by which a group is brought up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// This process, or one with the cluster's key.
    Cluster,
    /// A process with a key of its own, by a number for that key: all names under one key share one
    /// limit.
    Key(u64),
}

/// The purpose for which a group is brought up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// Somebody campaigns for it, or has done.
    Election,
    /// Somebody asks about it.
    Question,
}

/// A group was not added: there is no room, or none for this key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// The knowledge of a group that somebody brings up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Learnt {
    /// Its name was not.
    pub(super) name_is_new: bool,
    /// Somebody had campaigned for it.
    pub(super) was_election: bool,
}

#[derive(Debug)]
struct Known {
    /// Members speak of groups by number; their name comes with the next acquisition.
    name: Option<GroupName>,
    /// Where it is shown, if it is.
    row: Option<Arc<Row>>,
    charged: Option<u64>,
    /// Somebody has campaigned for it. The others were only asked about.
    is_election: bool,
    /// Nobody had to do with it at the last look.
    was_idle: bool,
    look_at: LocalTime,
    /// Until when the holder of the newest grant leads at least, as far as this grantor can tell.
    led_until: LocalTime,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Registry {
    limits: Limits,
    known: BTreeMap<GroupId, Known>,
    shares: BTreeMap<u64, usize>,
    charged: usize,
    /// How many were only asked about.
    asked: usize,
    /// How many were forgotten whose memory the allocator may still hold.
    unreturned: usize,
    /// When to look at each of them.
    looks: BTreeSet<(LocalTime, GroupId)>,
}

impl Registry {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    pub(super) fn name(&self, group: GroupId) -> Option<&GroupName> {
        self.known.get(&group)?.name.as_ref()
    }

    /// The name of a group, and where it is shown, if both are so.
    pub(super) fn shown(&self, group: GroupId) -> Option<(&GroupName, Option<&Arc<Row>>)> {
        let known = self.known.get(&group)?;
        Some((known.name.as_ref()?, known.row.as_ref()))
    }

    /// Where a group is shown.
    pub(super) fn row(&self, group: GroupId) -> Option<&Row> {
        self.known.get(&group)?.row.as_deref()
    }

    /// A group is shown there from now on.
    pub(super) fn set_row(&mut self, group: GroupId, row: Arc<Row>) {
        if let Some(known) = self.known.get_mut(&group) {
            known.row = Some(row);
        }
    }

    /// This grantor has granted: until then the holder leads at least, if a quorum has too.
    pub(super) fn note_led_until(&mut self, group: GroupId, until: LocalTime) {
        if let Some(known) = self.known.get_mut(&group) {
            known.led_until = until;
        }
    }

    /// Until when the holder of this grantor's grant leads at least, as far as it can tell.
    pub(super) fn led_until(&self, group: GroupId) -> LocalTime {
        self.known.get(&group).map_or(LocalTime::ZERO, |known| known.led_until)
    }

    pub(super) fn is_election(&self, group: GroupId) -> bool {
        self.known.get(&group).is_some_and(|known| known.is_election)
    }

    /// Somebody campaigns for a group that is known. Says whether that is new.
    pub(super) fn note_election(&mut self, group: GroupId) -> bool {
        let known = self.known.get_mut(&group).filter(|known| !known.is_election);
        let Some(known) = known else { return false };
        known.is_election = true;
        self.asked -= 1;
        true
    }

    /// Adds a group, or only its name. Says what was known of it.
    pub(super) fn learn(
        &mut self,
        group: GroupId,
        name: Option<GroupName>,
        (by, purpose): (By, For),
        now: LocalTime,
    ) -> Result<Learnt, Full> {
        if let Some(known) = self.known.get_mut(&group) {
            let name_is_new = known.name.is_none() && name.is_some();
            if name_is_new {
                known.name = name;
            }
            return Ok(Learnt { name_is_new, was_election: known.is_election });
        }
        let charged = self.charge(by, purpose)?;
        let name_is_new = name.is_some();
        let look_at = self.next_look(false, now);
        self.asked += 1;
        let known = Known {
            name,
            row: None,
            charged,
            is_election: false,
            was_idle: false,
            look_at,
            led_until: LocalTime::ZERO,
        };
        self.known.insert(group, known);
        self.looks.insert((look_at, group));
        Ok(Learnt { name_is_new, was_election: false })
    }

    fn charge(&mut self, by: By, purpose: For) -> Result<Option<u64>, Full> {
        if self.known.len() >= MOST || purpose == For::Question && self.asked >= MOST_ASKED {
            return Err(Full);
        }
        let By::Key(key) = by else { return Ok(None) };
        let share = self.shares.get(&key).copied().unwrap_or(0);
        if share >= self.limits.groups_per_key || self.charged >= MOST_CHARGED {
            return Err(Full);
        }
        self.shares.insert(key, share + 1);
        self.charged += 1;
        Ok(Some(key))
    }

    fn next_look(&self, is_election: bool, now: LocalTime) -> LocalTime {
        let long = self.limits.forget_after;
        let after = if is_election { long } else { long.min(ASKED) };
        let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        LocalTime::from_nanos(now.as_nanos().saturating_add(after))
    }

    pub(super) fn next_wake(&self) -> Option<LocalTime> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// A group at which to look now.
    pub(super) fn due(&self, now: LocalTime) -> Option<GroupId> {
        self.looks.first().filter(|(at, _)| *at <= now).map(|(_, group)| *group)
    }

    /// A group was looked at. Says whether it is to be forgotten: nobody had to do with it, now and
    /// at the look before.
    pub(super) fn looked(&mut self, group: GroupId, is_idle: bool, now: LocalTime) -> bool {
        let next = self.next_look(self.is_election(group), now);
        let Some(known) = self.known.get_mut(&group) else { return false };
        self.looks.remove(&(known.look_at, group));
        known.look_at = next;
        self.looks.insert((next, group));
        std::mem::replace(&mut known.was_idle, is_idle) && is_idle
    }

    /// Whether the memory of at least so many forgotten groups is to be returned to the system. It
    /// counts as returned then.
    pub(super) fn has_memory_of(&mut self, so_many: usize) -> bool {
        let has = self.unreturned >= so_many;
        if has {
            self.unreturned = 0;
        }
        has
    }

    pub(super) fn forget(&mut self, group: GroupId) -> Option<GroupName> {
        let known = self.known.remove(&group)?;
        self.looks.remove(&(known.look_at, group));
        self.asked -= usize::from(!known.is_election);
        self.unreturned += 1;
        if let Some(key) = known.charged {
            self.charged -= 1;
            match self.shares.get_mut(&key) {
                Some(share) if *share > 1 => *share -= 1,
                _ => _ = self.shares.remove(&key),
            }
        }
        known.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: By = By::Key(7);

    fn at(seconds: u64) -> LocalTime {
        LocalTime::from_nanos(seconds * 1_000_000_000)
    }

    fn few() -> Registry {
        let limits = Limits { groups_per_key: 3, forget_after: Duration::from_secs(10), ..Limits::default() };
        Registry::new(limits)
    }

    fn name(number: u64) -> GroupName {
        GroupName::new(&format!("g{number}")).unwrap()
    }

    fn learn(registry: &mut Registry, number: u64, by: By) -> Result<bool, Full> {
        let learnt = registry.learn(name(number).id(), Some(name(number)), (by, For::Question), at(0));
        learnt.map(|learnt| learnt.name_is_new)
    }

    #[test]
    fn a_key_has_so_many_groups_and_others_are_not_touched_by_that() {
        let mut registry = few();
        assert!((0..3).all(|number| learn(&mut registry, number, KEY) == Ok(true)));
        assert_eq!(learn(&mut registry, 3, KEY), Err(Full));
        assert_eq!(learn(&mut registry, 2, KEY), Ok(false), "one that it has already");
        assert_eq!(learn(&mut registry, 3, By::Key(8)), Ok(true));
        assert_eq!(learn(&mut registry, 3, KEY), Ok(false), "it is charged to the key that brought it up");
        assert!((10..20).all(|number| learn(&mut registry, number, By::Cluster) == Ok(true)));
    }

    #[test]
    fn a_group_is_forgotten_at_the_second_look_at_which_nobody_has_to_do_with_it() {
        let mut registry = few();
        let group = name(1).id();
        learn(&mut registry, 1, KEY).unwrap();
        assert_eq!((registry.due(at(9)), registry.due(at(10))), (None, Some(group)));
        assert!(!registry.looked(group, true, at(10)));
        assert!(!registry.looked(group, false, at(20)), "somebody has");
        assert!(!registry.looked(group, true, at(30)));
        assert_eq!((registry.due(at(39)), registry.next_wake()), (None, Some(at(40))));
        assert!(registry.looked(group, true, at(40)));
        assert_eq!(registry.forget(group), Some(name(1)));
        assert!(registry.known.is_empty() && registry.looks.is_empty() && registry.shares.is_empty());
        assert_eq!((registry.charged, registry.asked), (0, 0));
    }

    #[test]
    fn a_name_that_was_only_asked_about_is_forgotten_sooner_than_an_election() {
        let limits = Limits { forget_after: Duration::from_secs(600), ..Limits::default() };
        let mut registry = Registry::new(limits);
        let (asked, election) = (name(1).id(), name(2).id());
        learn(&mut registry, 1, By::Cluster).unwrap();
        learn(&mut registry, 2, By::Cluster).unwrap();
        assert!(registry.note_election(election) && !registry.note_election(election));
        registry.looked(election, true, at(0));
        assert_eq!((registry.due(at(9)), registry.due(at(10))), (None, Some(asked)));
        assert!(!registry.looked(asked, true, at(10)));
        assert_eq!((registry.due(at(19)), registry.due(at(20))), (None, Some(asked)));
        assert!(registry.looked(asked, true, at(20)));
        registry.forget(asked);
        assert_eq!((registry.due(at(599)), registry.due(at(600))), (None, Some(election)));
        assert_eq!(registry.asked, 0);
    }

    #[test]
    fn names_that_were_only_asked_about_leave_room_for_elections() {
        let mut registry = Registry::new(Limits::default());
        let most = u64::try_from(MOST_ASKED).unwrap();
        let ask = |registry: &mut Registry, number, purpose| {
            let learnt = registry.learn(GroupId(number), None, (By::Cluster, purpose), at(0));
            learnt.map(|learnt| learnt.name_is_new)
        };
        for number in 0..most {
            ask(&mut registry, number, For::Question).unwrap();
        }
        assert_eq!(ask(&mut registry, most, For::Question), Err(Full));
        assert_eq!(ask(&mut registry, most, For::Election), Ok(false));
        registry.note_election(GroupId(most));
        assert_eq!(ask(&mut registry, most + 1, For::Question), Err(Full));
        registry.forget(GroupId(0));
        assert_eq!(ask(&mut registry, most + 1, For::Question), Ok(false));
    }

    #[test]
    fn what_is_forgotten_makes_room() {
        let mut registry = few();
        assert!(!registry.has_memory_of(1));
        (0..3).for_each(|number| _ = learn(&mut registry, number, KEY));
        registry.forget(name(0).id());
        assert_eq!(learn(&mut registry, 3, KEY), Ok(true));
        assert_eq!(learn(&mut registry, 0, KEY), Err(Full));
        assert!(!registry.has_memory_of(2) && registry.has_memory_of(1) && !registry.has_memory_of(1));
    }
}
