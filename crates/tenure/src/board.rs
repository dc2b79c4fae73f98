//! The board: a node's view of its groups, readable without asking the thread that grants.
//!
//! The driver writes down what changed about a group at the end of the turn in which it changed.
//! Readers look at it on threads of their own and compare what they find with the clock there. A
//! reader keeps the lock for [`SLICE`] groups at most; the driver never waits for it: what it
//! cannot write now it writes in a later turn. So a million groups and any number of readers cost a
//! leader nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tenure_proto::LocalTime;
use tenure_proto::strong::Term;

use crate::clock::Clock;
use crate::name::{GroupName, NodeName};
use crate::observe::Proclaimed;
use crate::status::GroupStatus;

/// How many groups are read under the lock at a time.
const SLICE: usize = 128;

/// All that is known about one group. Ends are readings of the node's clock: readers compare them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The term led here, and E.
    pub(crate) led: Option<(Term, LocalTime)>,
    pub(crate) grant: Option<GrantFacts>,
    /// The leader, as observers were told.
    pub(crate) told: Option<(Option<NodeName>, Term)>,
    pub(crate) is_campaigning: bool,
    pub(crate) proclaimed: Option<Proclaimed>,
}

/// A grantor's promise.
#[derive(Clone, Debug)]
pub(crate) struct GrantFacts {
    pub(crate) holder: Option<NodeName>,
    pub(crate) term: Term,
    pub(crate) until: LocalTime,
    pub(crate) leads: bool,
}

#[derive(Debug, Default)]
struct Groups {
    all: BTreeMap<GroupName, Facts>,
    /// Those that are led or campaigned for here.
    here: BTreeSet<GroupName>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Board {
    me: NodeName,
    clock: Clock,
    groups: Mutex<Groups>,
}

/// The driver's hold of the board, for as long as it writes.
pub(crate) struct Pen<'a>(MutexGuard<'a, Groups>);

impl Pen<'_> {
    pub(crate) fn write(&mut self, group: &GroupName, facts: Facts) {
        let is_here = facts.led.is_some() || facts.is_campaigning;
        if is_here != self.0.here.contains(group) {
            if is_here { _ = self.0.here.insert(group.clone()) } else { _ = self.0.here.remove(group) }
        }
        match self.0.all.get_mut(group) {
            Some(known) => *known = facts,
            None => _ = self.0.all.insert(group.clone(), facts),
        }
    }

    pub(crate) fn erase(&mut self, group: &GroupName) {
        self.0.all.remove(group);
        self.0.here.remove(group);
    }

    pub(crate) fn has(&self, group: &GroupName) -> bool {
        self.0.all.contains_key(group)
    }
}

impl Board {
    pub(crate) fn new(me: NodeName, clock: Clock) -> Self {
        Self { me, clock, groups: Mutex::default() }
    }

    /// For the driver: `None` if somebody reads at this moment.
    pub(crate) fn try_write(&self) -> Option<Pen<'_>> {
        match self.groups.try_lock() {
            Ok(groups) => Some(Pen(groups)),
            Err(TryLockError::Poisoned(groups)) => Some(Pen(groups.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn read(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the driver from writing, as a reader does.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> impl Sized + '_ {
        self.read()
    }

    /// How many groups there are.
    pub(crate) fn count(&self) -> usize {
        self.read().all.len()
    }

    /// At most `limit` groups with names after `after`, by name.
    pub(crate) fn page(&self, after: Option<&GroupName>, limit: usize) -> Vec<GroupStatus> {
        let mut page: Vec<GroupStatus> = Vec::new();
        while page.len() < limit {
            let last = page.last().map(|status| &status.group).or(after);
            let from = last.map_or(Bound::Unbounded, |last| Bound::Excluded(last.clone()));
            let wanted = SLICE.min(limit - page.len());
            let slice: Vec<(GroupName, Facts)> = {
                let groups = self.read();
                let next = groups.all.range((from, Bound::Unbounded)).take(wanted);
                next.map(|(name, facts)| (name.clone(), facts.clone())).collect()
            };
            let is_last = slice.len() < wanted;
            page.extend(slice.into_iter().map(|(name, facts)| self.status(name, facts)));
            if is_last {
                break;
            }
        }
        page
    }

    /// At most `limit` of the groups that are led or campaigned for here.
    pub(crate) fn here(&self, limit: usize) -> Vec<GroupStatus> {
        let names: Vec<GroupName> = self.read().here.iter().take(limit).cloned().collect();
        names.iter().filter_map(|name| self.one(name)).collect()
    }

    pub(crate) fn one(&self, group: &GroupName) -> Option<GroupStatus> {
        let facts = self.read().all.get(group).cloned()?;
        Some(self.status(group.clone(), facts))
    }

    /// The status that follows from the facts now.
    fn status(&self, group: GroupName, facts: Facts) -> GroupStatus {
        let now = self.clock.read();
        let left = |until: LocalTime| Duration::from_nanos(until.remaining(now).as_nanos());
        let led = facts.led.filter(|(_, until)| now < *until);
        let grant = facts.grant.filter(|grant| now < grant.until);
        let own = led.map(|(term, _)| (Some(self.me.clone()), term, true));
        let granted = grant.as_ref().map(|grant| (grant.holder.clone(), grant.term, grant.leads));
        let told = facts.told.map(|(leader, term)| (leader, term, true));
        let holder = own.or(granted).or(told);
        GroupStatus {
            group,
            holder_known_to_lead: holder.as_ref().is_some_and(|(.., leads)| *leads),
            term: holder.as_ref().map(|(_, term, _)| *term),
            holder: holder.and_then(|(holder, ..)| holder),
            grant_remaining: grant.map(|grant| left(grant.until)),
            led_here: led.is_some(),
            lease_remaining: led.map(|(_, until)| left(until)),
            campaigning_here: facts.is_campaigning,
            proclaimed: facts.proclaimed,
        }
    }
}
