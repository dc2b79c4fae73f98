//! Bars: groups that are granted to nobody since terms were repaired.
//!
//! A repair (`repair`) lets terms begin again at a floor below a term that was granted. A group
//! that holds such a term must have no further leader: its tokens would be smaller than those that
//! fences have seen, or may still see. So the charter names these groups, and every grantor refuses
//! them (BAR, [`Rules::is_barred`](crate::strong::Rules::is_barred)). Every later charter carries
//! the names on, so a member that joins later refuses them too. When an operator has reset the
//! fences of a group's resources, an ordinary change of the members lifts its bar
//! ([`Change::LiftBar`](super::Change::LiftBar)).

use super::ChangeError;
use crate::GroupId;

/// The groups that are granted to nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Barred(Vec<GroupId>);

impl Barred {
    /// How many groups a charter can bar: it is said in few packets.
    pub const MOST: usize = 64;

    /// These groups, in any order; refused if they are too many.
    pub fn new(mut groups: Vec<GroupId>) -> Result<Self, ChangeError> {
        groups.sort_unstable();
        groups.dedup();
        if groups.len() > Self::MOST { Err(ChangeError::TooManyBarred) } else { Ok(Self(groups)) }
    }

    /// Whether a group is barred.
    pub fn has(&self, group: GroupId) -> bool {
        self.0.binary_search(&group).is_ok()
    }

    /// The groups, sorted.
    pub fn groups(&self) -> &[GroupId] {
        &self.0
    }

    /// Whether none is barred.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All others of them.
    pub(super) fn without(&self, group: GroupId) -> Self {
        Self(self.0.iter().copied().filter(|barred| *barred != group).collect())
    }
}
