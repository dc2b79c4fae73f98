//! Neighbouring quorum systems: when every quorum of one meets every quorum of the other, and how
//! to get from one system to another by steps that do.

use std::collections::BTreeMap;

use super::{NodeSet, QuorumError, Quorums, Rule};
use crate::NodeId;

/// Up to so many members of both together all splits are tried; beyond, only what arithmetic proves
/// counts as adjacent.
const MOST_TRIED: usize = 20;

/// Up to so much weight adjacency is decided exactly.
const MOST_WEIGHT: u64 = 10_000;

impl Quorums {
    /// Whether every quorum here meets every quorum of `next`. Where that is too much to compute
    /// the answer is no.
    ///
    /// ```
    /// # use tenure_proto::{NodeId, quorum::Quorums};
    /// let majority = |count| Quorums::majority((0..count).map(NodeId).collect());
    /// assert!(majority(3)?.adjacent(&majority(4)?)); // one more: always
    /// assert!(!majority(3)?.adjacent(&majority(5)?)); // two more: {0, 1} and {2, 3, 4} share nobody
    /// assert!(majority(4)?.adjacent(&majority(6)?)); // of an even number two more are borne
    /// # Ok::<(), tenure_proto::quorum::QuorumError>(())
    /// ```
    pub fn adjacent(&self, next: &Self) -> bool {
        if let (Some(one), Some(other)) = (self.weights(), next.weights()) {
            let total: u64 = one.values().chain(other.values()).fold(0, |sum, w| sum.saturating_add(*w));
            if total <= MOST_WEIGHT {
                return !outweighs(&one, &other);
            }
        }
        let gone = self.members.iter().filter(|node| next.position(**node).is_none());
        let union: Vec<NodeId> = next.members.iter().chain(gone).copied().collect();
        union.len() <= MOST_TRIED && !self.splits(next, &union)
    }

    /// Whether some split of all members is a quorum here on the one side and a quorum of `next` on
    /// the other. Quorums only grow, so if two do not meet, one of them and all others besides do
    /// not either.
    fn splits(&self, next: &Self, union: &[NodeId]) -> bool {
        let side = |quorums: &Self, bits: u32, wanted: u32| -> NodeSet {
            let picked = union.iter().enumerate().filter(|(i, _)| bits >> i & 1 == wanted);
            picked.filter_map(|(_, node)| quorums.position(*node)).collect()
        };
        (0..1u32 << union.len())
            .any(|bits| self.is_quorum(side(self, bits, 1)) && next.is_quorum(side(next, bits, 0)))
    }

    /// The members' weights, where more than half of the weight decides.
    pub fn weights(&self) -> Option<BTreeMap<NodeId, u64>> {
        match &self.rule {
            Rule::Majority => Some(self.members.iter().map(|node| (*node, 1)).collect()),
            Rule::Weighted(weights) => {
                Some(self.members.iter().copied().zip(weights.iter().copied()).collect())
            }
            Rule::Grid { .. } | Rule::List(_) => None,
        }
    }

    /// The system of these weights: a majority if they are all one.
    fn from_weights(weights: &BTreeMap<NodeId, u64>) -> Result<Self, QuorumError> {
        let (members, weights): (Vec<NodeId>, Vec<u64>) = weights.iter().map(|(n, w)| (*n, *w)).unzip();
        if weights.iter().all(|weight| *weight == 1) {
            return Self::majority(members);
        }
        Self::weighted(members, weights)
    }

    /// The same system with one member more, of weight one.
    pub fn with(&self, node: NodeId) -> Result<Self, QuorumError> {
        let mut weights = self.weights().ok_or(QuorumError::WholeSystem)?;
        if weights.insert(node, 1).is_some() {
            return Err(QuorumError::Twice { node });
        }
        Self::from_weights(&weights)
    }

    /// The same system with one member less.
    pub fn without(&self, node: NodeId) -> Result<Self, QuorumError> {
        let mut weights = self.weights().ok_or(QuorumError::WholeSystem)?;
        weights.remove(&node).ok_or(QuorumError::NotAMember { node })?;
        Self::from_weights(&weights)
    }

    /// A neighbour that is nearer to `target`, which is none itself: one member's weight is
    /// changed, wholly if that can be, else by one. New members come before old ones go.
    pub fn step_towards(&self, target: &Self) -> Option<Self> {
        let (here, there) = (self.weights()?, target.weights()?);
        let weight = |of: &BTreeMap<NodeId, u64>, node| of.get(&node).copied();
        let differ = |node: &NodeId| weight(&here, *node) != weight(&there, *node);
        let coming = there.keys().copied().filter(differ);
        let going = here.keys().copied().filter(|node| !there.contains_key(node));
        for node in coming.chain(going) {
            let (from, to) = (weight(&here, node), weight(&there, node));
            let by_one = if to > from { from.unwrap_or(0) + 1 } else { from.unwrap_or(0).saturating_sub(1) };
            for wanted in [to, Some(by_one)] {
                let mut weights = here.clone();
                match wanted {
                    Some(weight) => weights.insert(node, weight),
                    None => weights.remove(&node),
                };
                let Ok(step) = Self::from_weights(&weights) else { continue };
                if step != *self && self.adjacent(&step) {
                    return Some(step);
                }
            }
        }
        None
    }
}

/// Whether some split gives more than half of `one` to one side and more than half of `other` to
/// the other. For each weight that one side can have of `one`, the most that the other side can
/// then have of `other`.
fn outweighs(one: &BTreeMap<NodeId, u64>, other: &BTreeMap<NodeId, u64>) -> bool {
    let mut best = BTreeMap::from([(0u64, 0u64)]);
    let gone = one.keys().filter(|node| !other.contains_key(node));
    for node in other.keys().chain(gone) {
        let (here, there) = (one.get(node).copied().unwrap_or(0), other.get(node).copied().unwrap_or(0));
        let mut next = BTreeMap::new();
        for (held, opposed) in best {
            for (held, opposed) in [(held + here, opposed), (held, opposed + there)] {
                let most = next.entry(held).or_insert(0);
                *most = opposed.max(*most);
            }
        }
        best = next;
    }
    let (all_one, all_other): (u64, u64) = (one.values().sum(), other.values().sum());
    best.into_iter().any(|(held, opposed)| 2 * held > all_one && 2 * opposed > all_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn majority(nodes: &[u64]) -> Quorums {
        Quorums::majority(nodes.iter().map(|node| NodeId(*node)).collect()).unwrap()
    }

    fn weighted(weights: &[u64]) -> Quorums {
        Quorums::weighted((0..).map(NodeId).take(weights.len()).collect(), weights.to_vec()).unwrap()
    }

    #[test]
    fn one_member_more_or_less_is_a_neighbour_for_every_size() {
        for count in 1..12u64 {
            let (few, many): (Vec<u64>, Vec<u64>) = ((0..count).collect(), (0..=count).collect());
            assert!(majority(&few).adjacent(&majority(&many)) && majority(&many).adjacent(&majority(&few)));
        }
    }

    #[test]
    fn replacing_one_is_a_neighbour_of_an_even_number_only() {
        assert!(majority(&[0, 1, 2, 3]).adjacent(&majority(&[0, 1, 2, 9])));
        assert!(!majority(&[0, 1, 2]).adjacent(&majority(&[0, 1, 9])));
    }

    #[test]
    fn arithmetic_and_trying_all_splits_agree_on_weights() {
        let all = |n: u64| (0..n.pow(3)).map(move |i| [i % n, i / n % n, i / n / n % n]);
        let systems: Vec<Quorums> =
            all(4).filter(|w| w.iter().sum::<u64>() > 0).map(|w| weighted(&w)).collect();
        let union: Vec<NodeId> = (0..3).map(NodeId).collect();
        for one in &systems {
            for other in &systems {
                assert_eq!(one.adjacent(other), !one.splits(other, &union), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_grid_is_its_own_neighbour_and_a_disjoint_one_is_none() {
        let grid = |from: u64| Quorums::grid((from..from + 4).map(NodeId).collect(), 2, 2).unwrap();
        assert!(grid(0).adjacent(&grid(0)));
        assert!(!grid(0).adjacent(&grid(4)));
    }

    #[test]
    fn a_chain_of_neighbours_leads_from_any_majority_to_any_other() {
        let (start, target) = (majority(&[0, 1, 2]), majority(&[2, 3, 4, 5, 6]));
        let mut here = start;
        for _ in 0..20 {
            if here.adjacent(&target) {
                return;
            }
            let step = here.step_towards(&target).expect("there is always a step");
            assert!(here.adjacent(&step));
            here = step;
        }
        panic!("no end of the chain: {here:?}");
    }

    #[test]
    fn a_chain_of_neighbours_leads_from_weights_to_a_majority() {
        let (mut here, target) = (weighted(&[5, 1, 1]), majority(&[1, 2, 3, 4]));
        let mut steps = 0;
        while !here.adjacent(&target) {
            here = here.step_towards(&target).expect("there is always a step");
            steps += 1;
            assert!(steps < 30, "no end of the chain: {here:?}");
        }
    }

    #[test]
    fn a_grid_takes_no_single_member() {
        let grid = Quorums::grid((0..4).map(NodeId).collect(), 2, 2).unwrap();
        assert_eq!(grid.with(NodeId(7)), Err(QuorumError::WholeSystem));
        assert_eq!(majority(&[0]).without(NodeId(0)), Err(QuorumError::MemberCount { members: 0 }));
    }
}
