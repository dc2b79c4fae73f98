//! The board: a node's view of its groups, readable without asking the thread that grants.
//!
//! The driver writes down what changed about a group at the end of the turn in which it changed.
//! Readers look at it on threads of their own and compare what they find with the clock there. A
//! reader keeps the lock for [`SLICE`] groups at most; the driver never waits for it: what it
//! cannot write now it writes in a later turn. So a million groups and any number of readers cost a
//! leader nothing.
//!
//! Almost all changes are renewals, which move the end of a lease and nothing else. The driver has
//! the [`Row`] of each group at hand and moves the end there, without a search by name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tenure_proto::LocalTime;
use tenure_proto::strong::Term;

use crate::clock::Clock;
use crate::name::{GroupName, NodeName};
use crate::observe::{Leadership, Proclaimed};
use crate::status::GroupStatus;

/// How many groups are read under the lock at a time.
const SLICE: usize = 128;

/// All that is known about one group. Ends are readings of the node's clock: readers compare them.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The term led here, and E.
    pub(crate) led: Option<(Term, LocalTime)>,
    pub(crate) grant: Option<GrantFacts>,
    pub(crate) is_campaigning: bool,
    /// When somebody was last known to lead it or to ask for it, before what stands here.
    pub(crate) used: LocalTime,
    /// In a box, for most groups have none of it.
    pub(crate) heard: Option<Box<Heard>>,
}

impl Default for Facts {
    fn default() -> Self {
        Self { led: None, grant: None, is_campaigning: false, used: LocalTime::ZERO, heard: None }
    }
}

impl Facts {
    /// When somebody was last known to lead the group or to ask for it.
    fn last_used(&self, now: LocalTime) -> LocalTime {
        let led = self.led.map(|(_, until)| until.min(now));
        let granted = self.grant.as_ref().map(|grant| grant.until.min(now));
        let here = self.is_campaigning.then_some(now);
        [led, granted, here].into_iter().flatten().fold(self.used, LocalTime::max)
    }

    fn is_here(&self) -> bool {
        self.led.is_some() || self.is_campaigning
    }
}

/// Statements of the leader of a group, or of members, about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// The result of reports, where the group is observed, and until when that may be said.
    pub(crate) told: Option<(Leadership, LocalTime)>,
    pub(crate) proclaimed: Option<Proclaimed>,
}

impl Heard {
    /// Whether somebody is said to lead.
    pub(crate) fn tells_of_a_leader(&self) -> bool {
        matches!(self.told, Some((Leadership::Leader { .. }, _)))
    }
}

/// A grantor's promise.
#[derive(Clone, Debug)]
pub(crate) struct GrantFacts {
    pub(crate) holder: Option<NodeName>,
    pub(crate) term: Term,
    pub(crate) until: LocalTime,
    pub(crate) leads: bool,
}

/// One group on the board. Readers lock it only while they have the board's own lock, so a driver
/// that has the [`Pen`] waits for nobody here.
#[derive(Debug)]
pub(crate) struct Row(Mutex<Facts>);

impl Row {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process leads on, until then. Returns whether that is all that is new here, and noted.
    pub(crate) fn leads_on(&self, term: Term, until: LocalTime) -> bool {
        let Some(mut facts) = free(&self.0) else { return false };
        let led = facts.led.as_mut().filter(|(led, _)| *led == term);
        led.map(|(_, end)| *end = until).is_some()
    }

    /// A grant is extended until then. Returns whether that is all that is new here, and noted.
    pub(crate) fn grants_on(&self, term: Term, until: LocalTime) -> bool {
        let Some(mut facts) = free(&self.0) else { return false };
        // The name of a holder may be known by now, and a holder that renews is known to lead.
        let is_same = |grant: &&mut GrantFacts| grant.term == term && grant.leads && grant.holder.is_some();
        facts.grant.as_mut().filter(is_same).map(|grant| grant.until = until).is_some()
    }
}

/// The lock, if nobody has it at this moment.
fn free<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match lock.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[derive(Debug, Default)]
struct Groups {
    all: BTreeMap<GroupName, Arc<Row>>,
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
    /// Writes the first row of a group.
    pub(crate) fn add(&mut self, group: &GroupName, facts: Facts) -> Arc<Row> {
        if facts.is_here() {
            self.0.here.insert(group.clone());
        }
        let row = Arc::new(Row(Mutex::new(facts)));
        self.0.all.insert(group.clone(), row.clone());
        row
    }

    /// Writes the row of a group anew.
    pub(crate) fn rewrite(&mut self, group: &GroupName, row: &Row, mut facts: Facts, now: LocalTime) {
        let is_here = facts.is_here();
        let mut known = row.facts();
        facts.used = facts.used.max(known.last_used(now));
        let was_here = std::mem::replace(&mut *known, facts).is_here();
        drop(known);
        if is_here && !was_here {
            self.0.here.insert(group.clone());
        } else if was_here && !is_here {
            self.0.here.remove(group);
        }
    }

    pub(crate) fn erase(&mut self, group: &GroupName) {
        self.0.all.remove(group);
        self.0.here.remove(group);
    }
}

impl Board {
    pub(crate) fn new(me: NodeName, clock: Clock) -> Self {
        Self { me, clock, groups: Mutex::default() }
    }

    /// For the driver: `None` if somebody reads at this moment.
    pub(crate) fn try_write(&self) -> Option<Pen<'_>> {
        free(&self.groups).map(Pen)
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
                next.map(|(name, row)| (name.clone(), row.facts().clone())).collect()
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
        let facts = self.read().all.get(group)?.facts().clone();
        Some(self.status(group.clone(), facts))
    }

    /// The status that follows from the facts now.
    fn status(&self, group: GroupName, facts: Facts) -> GroupStatus {
        let now = self.clock.read();
        let idle = Duration::from_nanos(now.remaining(facts.last_used(now)).as_nanos());
        let left = |until: LocalTime| Duration::from_nanos(until.remaining(now).as_nanos());
        let led = facts.led.filter(|(_, until)| now < *until);
        let grant = facts.grant.filter(|grant| now < grant.until);
        let own = led.map(|(term, _)| (Some(self.me.clone()), term, true));
        let granted = grant.as_ref().map(|grant| (grant.holder.clone(), grant.term, grant.leads));
        let heard = facts.heard.map(|heard| *heard).unwrap_or_default();
        let told = heard.told.filter(|(_, until)| now < *until);
        let leads_for = match (&led, &told) {
            (Some((_, until)), _) | (None, Some((Leadership::Leader { .. }, until))) => Some(left(*until)),
            _ => None,
        };
        let told = told.map(|(told, _)| told);
        let leadership = match led {
            Some((term, _)) => Leadership::Leader { name: Some(self.me.clone()), term },
            None => told.unwrap_or_default(),
        };
        let told = match &leadership {
            Leadership::Leader { name, term } => Some((name.clone(), *term, true)),
            _ => None,
        };
        let holder = own.or(granted).or(told);
        GroupStatus {
            group,
            leadership,
            leads_for,
            idle,
            holder_known_to_lead: holder.as_ref().is_some_and(|(.., leads)| *leads),
            term: holder.as_ref().map(|(_, term, _)| *term),
            holder: holder.and_then(|(holder, ..)| holder),
            grant_remaining: grant.map(|grant| left(grant.until)),
            led_here: led.is_some(),
            lease_remaining: led.map(|(_, until)| left(until)),
            campaigning_here: facts.is_campaigning,
            proclaimed: heard.proclaimed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> LocalTime {
        LocalTime::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_group_is_idle_since_its_last_grant_ended_however_it_is_rewritten() {
        let grant = GrantFacts { holder: None, term: Term(1), until: at(20), leads: true };
        let granted = Facts { grant: Some(grant), ..Facts::default() };
        assert_eq!((granted.last_used(at(10)), granted.last_used(at(90))), (at(10), at(20)));
        let (row, clock) = (Row(Mutex::new(granted)), Clock::boot());
        let board = Board::new(NodeName::new("a").unwrap(), clock);
        let group = GroupName::new("g").unwrap();
        board.try_write().unwrap().rewrite(&group, &row, Facts::default(), at(15));
        assert_eq!(row.facts().last_used(at(99)), at(15), "given back");
        let campaigning = Facts { is_campaigning: true, ..Facts::default() };
        board.try_write().unwrap().rewrite(&group, &row, campaigning, at(30));
        assert_eq!(row.facts().last_used(at(99)), at(99));
        board.try_write().unwrap().rewrite(&group, &row, Facts::default(), at(40));
        assert_eq!(row.facts().last_used(at(99)), at(40));
    }
}
