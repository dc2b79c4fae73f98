//! Access sets: which answers suffice to write one's own state, and to read those of others.
//!
//! Every state has one writer, so two writes need not meet. A read must meet every write, and that
//! is all: f+1 for a write and n-f for a read will do, although for n > 2f+1 two writes may have
//! nobody in common. (A footnote of the paper asks for that too; its own sets break it, and nothing
//! needs it.)
//!
//! | system | writes | reads | they meet because |
//! |---|---|---|---|
//! | counts | f+1 | n-f | f+1 + n-f > n |
//! | grid | a full row | one of each row | the read has one of that row |
//! | quorums | a quorum | a quorum | any two meet |

use crate::NodeId;
use crate::quorum::{NodeSet, Quorums, Rule};

/// The members, and which sets of them suffice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    quorums: Quorums,
    /// The number that may fail, where only the number counts.
    failures: Option<usize>,
}

impl Access {
    /// Makes a system with f+1 for a write, n-f for a read. `None` if not 2f < n.
    pub fn counted(quorums: Quorums, failures: usize) -> Option<Self> {
        (2 * failures < quorums.members().len()).then_some(Self { quorums, failures: Some(failures) })
    }

    /// Makes a system from quorums: rows and transversals of a grid; for a majority the counts for
    /// the most failures; else quorums for both.
    pub fn by(quorums: Quorums) -> Self {
        let failures = (quorums.members().len().saturating_sub(1)) / 2;
        let failures = (*quorums.rule() == Rule::Majority).then_some(failures);
        Self { quorums, failures }
    }

    /// The members, in the order that all know.
    pub fn members(&self) -> &[NodeId] {
        self.quorums.members()
    }

    /// The position of a member.
    pub fn position(&self, node: NodeId) -> Option<usize> {
        self.quorums.position(node)
    }

    /// Whether a state that these members have written down will be read.
    pub fn is_write(&self, set: NodeSet) -> bool {
        match (self.failures, self.quorums.rule()) {
            (Some(failures), _) => set.len() > failures,
            (None, Rule::Grid { rows, columns }) => {
                (0..*rows).any(|row| (0..*columns).all(|column| set.contains(row * columns + column)))
            }
            (None, _) => self.quorums.is_quorum(set),
        }
    }

    /// Whether these members together know of everything that was written.
    pub fn is_read(&self, set: NodeSet) -> bool {
        match (self.failures, self.quorums.rule()) {
            (Some(failures), _) => set.len() + failures >= self.members().len(),
            (None, Rule::Grid { rows, columns }) => {
                (0..*rows).all(|row| (0..*columns).any(|column| set.contains(row * columns + column)))
            }
            (None, _) => self.quorums.is_quorum(set),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(count: u64) -> Vec<NodeId> {
        (0..count).map(NodeId).collect()
    }

    /// Every set that suffices for a write shares a member with every set that suffices for a read.
    fn always_meet(access: &Access) -> bool {
        let sets = || (0u64..1 << access.members().len()).map(NodeSet::from_bits);
        sets().filter(|set| access.is_write(*set)).all(|write| {
            sets().filter(|set| access.is_read(*set)).all(|read| !write.intersection(read).is_empty())
        })
    }

    #[test]
    fn every_read_meets_every_write() {
        let majority = |count| Quorums::majority(members(count)).unwrap();
        for (count, failures) in [(1, 0), (3, 1), (5, 2), (7, 2), (7, 3)] {
            assert!(always_meet(&Access::counted(majority(count), failures).unwrap()), "{count}/{failures}");
        }
        assert!(always_meet(&Access::by(majority(6))));
        assert!(always_meet(&Access::by(Quorums::grid(members(6), 2, 3).unwrap())));
        assert!(always_meet(&Access::by(Quorums::parse("list:01,12,02", members(3)).unwrap())));
    }

    #[test]
    fn half_of_the_members_cannot_be_allowed_to_fail() {
        assert_eq!(Access::counted(Quorums::majority(members(4)).unwrap(), 2), None);
    }
}
