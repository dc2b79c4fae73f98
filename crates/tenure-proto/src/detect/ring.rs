//! Nerio's weak election (section 9 of the paper): neighbours on a ring, and the lowest of the
//! living.
//!
//! The members stand in a row, the first the lowest, and the row is closed to a ring. Each process
//! watches two others, whatever the size of the group: the closest member before it and the closest
//! after it that it does not suspect. A process that finds no living member below itself considers
//! itself the **weak leader**, and campaigns:
//!
//! ```text
//!   members     0    1    2    3    4        0 and 3 have crashed, and everybody knows
//!               ╳    ●    ●    ╳    ●
//!   predecessor      4    1         2
//!   weak leader      1: its predecessor, 4, is not lower than itself
//! ```
//!
//! The paper asks for a predecessor whose identifier is *larger*; it must be *not smaller*, for a
//! process alone on the ring is its own predecessor, and would never campaign.
//!
//! # Effects of a suspicion
//!
//! A process is weak leader exactly if it suspects every member below itself. It follows, for those
//! that live:
//!
//! | what the processes believe | weak leaders |
//! |---|---|
//! | the truth, all of them | exactly one: the lowest that lives |
//! | too much: all crashes, and some that live | at least one; several where somebody suspects all below itself |
//! | too little: crashes not yet noticed | at most one; none while the lowest that lives trusts a dead one below it |
//! | both at once | any number, also none, also the wrong one alone |
//!
//! None of this endangers safety: a weak leader has no authority, it only may try. Several make it
//! likely that runs collide; none means that nobody tries until a suspicion comes.
//!
//! Three things to keep in mind:
//!
//! * A member that was skipped is watched no more, but heard if it lives: it watches its own
//!   neighbours. A member that is heard is trusted again, even if it was not asked.
//! * A weak leader starts a run if its own grantor is free or supports itself (`A_q = q` or
//!   `C_q >= F_q`; the paper's condition is printed the wrong way round). Otherwise somebody leads,
//!   or soon will again.
//! * Alive is not the same as well connected. A process that its neighbours hear but that reaches
//!   no quorum is weak leader and never leader, and it keeps the others from trying. A process that
//!   fails again and again must step back, and the others must not wait for it forever.

use std::fmt;

use crate::NodeId;
use crate::quorum::{MAX_MEMBERS, NodeSet};

/// One process's place among the members. Its beliefs about the others are given with each
/// question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    members: Vec<NodeId>,
    me: usize,
}

impl Ring {
    /// The place of `me` among `members`. Their order is the order of the ring: the first is the
    /// lowest, and the first choice as weak leader. It must be the same on every process.
    pub fn new(members: Vec<NodeId>, me: NodeId) -> Result<Self, RingError> {
        if members.len() > MAX_MEMBERS {
            return Err(RingError::TooMany { members: members.len() });
        }
        if let Some(twice) = members.iter().enumerate().find(|(i, member)| members[..*i].contains(member)) {
            return Err(RingError::Twice { node: *twice.1 });
        }
        let position = members.iter().position(|member| *member == me);
        position.map(|me| Self { members, me }).ok_or(RingError::NotAMember { node: me })
    }

    /// The members, in the order of the ring.
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// The closest member before this one that is not suspected; oneself if no other is left.
    /// `suspected` is by position in [`Ring::members`]; nobody suspects itself.
    pub fn predecessor(&self, suspected: NodeSet) -> NodeId {
        self.members[self.position_before(suspected)]
    }

    /// The closest member after this one that is not suspected; oneself if no other is left.
    pub fn successor(&self, suspected: NodeSet) -> NodeId {
        let after = (self.me + 1..self.members.len()).chain(0..self.me);
        self.members[self.first_trusted(after, suspected)]
    }

    /// Whether this process should campaign: its predecessor is not lower than itself.
    pub fn is_weak_leader(&self, suspected: NodeSet) -> bool {
        self.position_before(suspected) >= self.me
    }

    /// How many members that are not suspected come before this one, in the row that begins at
    /// position `first` and goes round from there. Zero is the weak leader of that row.
    pub fn rank(&self, suspected: NodeSet, first: usize) -> usize {
        let count = self.members.len();
        let place = |position: usize| (position + count - first % count) % count;
        let before = |other: &usize| place(*other) < place(self.me) && !suspected.contains(*other);
        (0..count).filter(before).count()
    }

    fn position_before(&self, suspected: NodeSet) -> usize {
        let before = (0..self.me).rev().chain((self.me + 1..self.members.len()).rev());
        self.first_trusted(before, suspected)
    }

    fn first_trusted(&self, mut others: impl Iterator<Item = usize>, suspected: NodeSet) -> usize {
        others.find(|position| !suspected.contains(*position)).unwrap_or(self.me)
    }
}

/// Why a ring was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingError {
    /// This process is not on the ring.
    NotAMember {
        /// The process.
        node: NodeId,
    },
    /// A member is named twice.
    Twice {
        /// The member.
        node: NodeId,
    },
    /// More members than a set can hold.
    TooMany {
        /// How many were given.
        members: usize,
    },
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAMember { node } => write!(f, "{node} is not on the ring: add it to the members"),
            Self::Twice { node } => write!(f, "member {node} is named twice"),
            Self::TooMany { members } => write!(f, "a ring has at most {MAX_MEMBERS} members, not {members}"),
        }
    }
}

impl std::error::Error for RingError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rings of `count` members, each seen by one of them.
    fn rings(count: u32) -> Vec<Ring> {
        let members: Vec<_> = (0..u64::from(count)).map(NodeId).collect();
        members.iter().map(|me| Ring::new(members.clone(), *me).unwrap()).collect()
    }

    /// The members whose bits are set.
    fn set(bits: u32) -> NodeSet {
        (0..32).filter(|position| bits >> position & 1 == 1).collect()
    }

    fn living(count: u32, crashed: u32) -> impl Iterator<Item = usize> {
        (0..count as usize).filter(move |position| crashed >> position & 1 == 0)
    }

    #[test]
    fn with_the_truth_exactly_the_lowest_that_lives_is_weak_leader() {
        for count in 1..=6 {
            let rings = rings(count);
            for crashed in 0..(1 << count) - 1 {
                let leaders = living(count, crashed).filter(|me| rings[*me].is_weak_leader(set(crashed)));
                let leaders: Vec<_> = leaders.collect();
                assert_eq!(leaders, vec![crashed.trailing_ones() as usize], "{crashed:b} of {count}");
            }
        }
    }

    #[test]
    fn rank_nought_is_the_weak_leader_and_the_living_have_different_ranks() {
        for count in 1..=6 {
            let rings = rings(count);
            for crashed in 0..(1u32 << count) - 1 {
                for first in 0..count as usize {
                    let mut ranks: Vec<_> =
                        living(count, crashed).map(|me| rings[me].rank(set(crashed), first)).collect();
                    ranks.sort_unstable();
                    assert_eq!(ranks, (0..ranks.len()).collect::<Vec<_>>(), "{crashed:b}, from {first}");
                }
                for me in living(count, crashed) {
                    let leads = rings[me].is_weak_leader(set(crashed));
                    assert_eq!(rings[me].rank(set(crashed), 0) == 0, leads);
                }
            }
        }
    }

    #[test]
    fn with_the_truth_the_neighbours_form_one_ring_of_all_that_live() {
        for count in 1..=6 {
            let rings = rings(count);
            for crashed in 0..(1u32 << count) - 1 {
                let first = living(count, crashed).next().unwrap();
                let (mut here, mut seen) = (first, Vec::new());
                while seen.is_empty() || here != first {
                    seen.push(here);
                    let next = rings[here].successor(set(crashed));
                    assert_eq!(
                        rings[next.index()].predecessor(set(crashed)),
                        NodeId(u64::try_from(here).unwrap())
                    );
                    here = next.index();
                }
                assert_eq!(seen, living(count, crashed).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn alone_on_the_ring_one_is_ones_own_neighbour_and_weak_leader() {
        let ring = &rings(3)[2];
        let others = set(0b011);
        assert_eq!((ring.predecessor(others), ring.successor(others)), (NodeId(2), NodeId(2)));
        assert!(ring.is_weak_leader(others));
    }

    #[test]
    fn nobody_suspects_itself() {
        let ring = &rings(3)[0];
        assert_eq!(ring.predecessor(set(0b111)), NodeId(0));
        assert_eq!(ring.is_weak_leader(set(0b001)), ring.is_weak_leader(set(0b000)));
    }

    /// For every crash of some of four and every four beliefs: who of the living is weak leader.
    fn for_all_beliefs(mut judge: impl FnMut(u32, [u32; 4], usize)) {
        let rings = rings(4);
        for crashed in 0..15u32 {
            for beliefs in 0..1u32 << 16 {
                let beliefs = [0, 4, 8, 12].map(|shift| beliefs >> shift & 15);
                let leads = |me: &usize| rings[*me].is_weak_leader(set(beliefs[*me]));
                judge(crashed, beliefs, living(4, crashed).filter(leads).count());
            }
        }
    }

    #[test]
    fn who_suspects_too_much_still_leaves_a_weak_leader() {
        let mut most = 0;
        for_all_beliefs(|crashed, beliefs, leaders| {
            if living(4, crashed).all(|me| beliefs[me] & crashed == crashed) {
                assert!(leaders >= 1, "crashed {crashed:b}, believed {beliefs:?}");
                most = most.max(leaders);
            }
        });
        assert_eq!(most, 4, "and possibly as many as there are processes");
    }

    #[test]
    fn who_suspects_too_little_makes_no_second_weak_leader() {
        let mut least = 1;
        for_all_beliefs(|crashed, beliefs, leaders| {
            if living(4, crashed).all(|me| beliefs[me] & !crashed == 0) {
                assert!(leaders <= 1, "crashed {crashed:b}, believed {beliefs:?}");
                least = least.min(leaders);
            }
        });
        assert_eq!(least, 0, "and possibly none for a while");
    }

    #[test]
    fn who_errs_both_ways_may_make_the_wrong_one_weak_leader_alone() {
        let rings = rings(3);
        let crashed_unnoticed = set(0b000);
        assert!(!rings[1].is_weak_leader(crashed_unnoticed), "1 trusts 0, which has crashed");
        assert!(rings[2].is_weak_leader(set(0b011)), "2 suspects 1, which lives");
    }

    #[test]
    fn the_order_is_that_of_the_list_not_that_of_the_names() {
        let members = vec![NodeId(7), NodeId(3), NodeId(5)];
        let ring = |me| Ring::new(members.clone(), NodeId(me)).unwrap();
        assert!(ring(7).is_weak_leader(NodeSet::EMPTY));
        assert!(!ring(3).is_weak_leader(NodeSet::EMPTY));
        assert_eq!((ring(3).predecessor(set(0b001)), ring(3).successor(set(0b001))), (NodeId(5), NodeId(5)));
        assert!(ring(3).is_weak_leader(set(0b001)));
    }

    #[test]
    fn a_ring_without_this_process_is_refused() {
        let refused = [
            (vec![], RingError::NotAMember { node: NodeId(0) }),
            (vec![NodeId(1)], RingError::NotAMember { node: NodeId(0) }),
            (vec![NodeId(0), NodeId(1), NodeId(0)], RingError::Twice { node: NodeId(0) }),
            ((0..65).map(NodeId).collect(), RingError::TooMany { members: 65 }),
        ];
        for (members, error) in refused {
            assert_eq!(Ring::new(members, NodeId(0)), Err(error));
        }
    }
}
