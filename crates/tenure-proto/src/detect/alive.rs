//! Independent assessment: the members that this process has heard of in time.
//!
//! Nobody is asked what others think. A member is **alive** for this process from a message that
//! came [fast](super::fail_aware) until `expires` later on its own clock, unless another comes.
//! Between processes that are connected the set is complete if `expires` covers the interval of
//! messages and what delays may add to it. A member that is reached only slowly drops out, as if it
//! had crashed: that is what makes a partition of slowness a partition.

use crate::LocalTime;
use crate::quorum::NodeSet;
use crate::time::LocalSpan;

/// The members heard of within the last `expires`, by position. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AliveSet {
    heard: Vec<Option<LocalTime>>,
    expires: LocalSpan,
}

impl AliveSet {
    /// Makes a set in which nobody has been heard of yet.
    pub fn new(members: usize, expires: LocalSpan) -> Self {
        Self { heard: vec![None; members], expires }
    }

    /// Notes a sign of life of `who` at `at`. One that is older than the last known changes
    /// nothing.
    pub fn heard(&mut self, who: usize, at: LocalTime) {
        if let Some(entry) = self.heard.get_mut(who) {
            *entry = (*entry).max(Some(at));
        }
    }

    /// Drops every member that was not heard of for `expires`.
    pub fn purge(&mut self, now: LocalTime) {
        let expires = self.expires;
        for entry in &mut self.heard {
            entry.take_if(|at| now >= at.after(expires));
        }
    }

    /// The members heard of, as of the last purge.
    pub fn members(&self) -> NodeSet {
        self.heard.iter().enumerate().filter(|(_, at)| at.is_some()).map(|(who, _)| who).collect()
    }

    /// When `who` was last heard of; `None` if it is not in.
    pub fn last(&self, who: usize) -> Option<LocalTime> {
        self.heard.get(who).copied().flatten()
    }

    /// When `who` drops out if nothing more is heard; `None` if it is not in.
    pub fn until(&self, who: usize) -> Option<LocalTime> {
        self.last(who).map(|at| at.after(self.expires))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::tests::{at, span};

    #[test]
    fn a_member_stays_for_as_long_as_its_signs_of_life_come() {
        let mut alive = AliveSet::new(3, span(100));
        alive.heard(1, at(50));
        alive.heard(1, at(40));
        assert_eq!(alive.until(1), Some(at(150)), "an older sign says nothing new");
        alive.purge(at(149));
        assert_eq!(alive.members(), [1].into_iter().collect());
        alive.purge(at(150));
        assert!(alive.members().is_empty(), "the deadline itself is too late");
        assert_eq!(alive.until(1), None);
    }
}
