//! Stores: a member is a store, not a name, and a charter says which.
//!
//! A member that lost its disk has lost what it promised and accepted (T1, T6). If it came back
//! under its name, others would count its votes as those of the member that they knew. So a charter
//! names, beside each member, the store that holds its promises: drawn when the store is made. A
//! process goes by a charter as a member only if its own store is the one that is named. A member
//! that stays keeps its store, whatever a change says: only one that was removed can come back with
//! another, and then it is new, as anybody else would be.

use std::collections::BTreeMap;
use std::fmt;

use crate::NodeId;
use crate::strong::rules::Rules;

/// Names one store, drawn when it is made. A wiped disk that is set up again under the same node
/// name is another store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u128);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The stores of members. Where none is named a member is known by its name alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stores(BTreeMap<NodeId, StoreId>);

impl Stores {
    /// The store of a member, if it is named.
    pub fn get(&self, member: NodeId) -> Option<StoreId> {
        self.0.get(&member).copied()
    }

    /// Each member whose store is named.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, StoreId)> + '_ {
        self.0.iter().map(|(member, store)| (*member, *store))
    }

    /// How many are named.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stores of `members` after a change that says `others`: see [`Rules::store_after`].
    #[must_use]
    pub fn with(&self, others: &Self, members: &[NodeId], rules: &impl Rules) -> Self {
        let after = |member: NodeId| rules.store_after(self.get(member), others.get(member));
        members.iter().filter_map(|member| Some((*member, after(*member)?))).collect()
    }
}

impl FromIterator<(NodeId, StoreId)> for Stores {
    fn from_iter<I: IntoIterator<Item = (NodeId, StoreId)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}
