//! The processes that must, and that may, lead where timeliness of links is not transitive.
//!
//! The paper's oracle (Fig. 24) names exactly those that are elected. That is not so, whichever way
//! its figure is read: on the chain 0-1-2-3 nobody supports 3, and on 0-1-3-2 process 2 leads. An
//! envelope can be proved:
//!
//! ```text
//! C      = {l : l = min N[l]}                                      the only ones that may ever lead for long
//! MUST   = {l : nobody smaller within two hops}                    elected within κ, and kept
//! silent = {z : some c in C and N[z] is smaller}                   never asks
//! PERM   = {l in C : every smaller z with N[z] ∩ N[l] ≠ {} is silent}    elected in the end, and kept
//! MAY    = {l in C : no smaller c in C with N[c] ∩ N[l] ≠ {}}       nobody else is elected
//! MUST ⊆ PERM ⊆ elected ⊆ MAY
//! ```

use tenure_proto::quorum::NodeSet;

/// The processes that must, will and may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Elected within κ, and kept.
    pub must: NodeSet,
    /// Elected in the end, and kept.
    pub perm: NodeSet,
    /// Nobody else is elected.
    pub may: NodeSet,
}

/// The envelope of a graph: for each node of `stable` those that it is connected to, itself
/// included.
pub fn envelope(stable: NodeSet, links: &[NodeSet]) -> Envelope {
    let meets = |one: usize, other: usize| !links[one].intersection(links[other]).is_empty();
    let smaller = |l: usize| stable.positions().take_while(move |z| *z < l);
    let minimum: NodeSet = stable.positions().filter(|l| links[*l].positions().next() == Some(*l)).collect();
    let is_silent = |z: usize| minimum.intersection(links[z]).positions().any(|c| c < z);
    let of = |keeps: &dyn Fn(usize) -> bool| minimum.positions().filter(|l| keeps(*l)).collect();
    Envelope {
        must: of(&|l| !smaller(l).any(|z| meets(z, l))),
        perm: of(&|l| smaller(l).all(|z| !meets(z, l) || is_silent(z))),
        may: of(&|l| !smaller(l).any(|c| minimum.contains(c) && meets(c, l))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(nodes: &[usize]) -> NodeSet {
        nodes.iter().copied().collect()
    }

    fn chain(order: &[usize]) -> Envelope {
        let mut links: Vec<NodeSet> = (0..order.len()).map(|node| set(&[node])).collect();
        for pair in order.windows(2) {
            links[pair[0]].insert(pair[1]);
            links[pair[1]].insert(pair[0]);
        }
        envelope((0..order.len()).collect(), &links)
    }

    #[test]
    fn the_chains_on_which_the_oracle_of_the_paper_is_wrong() {
        let only = |must: &[usize], perm: &[usize], may: &[usize]| Envelope {
            must: set(must),
            perm: set(perm),
            may: set(may),
        };
        assert_eq!(chain(&[0, 1, 2, 3]), only(&[0], &[0], &[0]), "one reading says 0 and 3");
        assert_eq!(chain(&[0, 1, 3, 2]), only(&[0], &[0, 2], &[0, 2]), "the other reading says 0 alone");
        assert_eq!(chain(&[0, 1, 2, 4, 3]), only(&[0], &[0], &[0, 3]), "3 leads in gaps");
    }

    #[test]
    fn must_is_within_perm_and_perm_within_may() {
        let mut random = crate::random::Random::stream(7, "graphs");
        for _ in 0..20_000 {
            let nodes = 1 + random.index(8);
            let mut links: Vec<NodeSet> = (0..nodes).map(|node| set(&[node])).collect();
            for one in 0..nodes {
                for other in 0..one {
                    if random.percent(40) {
                        links[one].insert(other);
                        links[other].insert(one);
                    }
                }
            }
            let Envelope { must, perm, may } = envelope((0..nodes).collect(), &links);
            assert!(may.is_superset(perm) && perm.is_superset(must), "{links:?}");
            assert!(must.contains(0), "the first of all is always elected");
        }
    }
}
