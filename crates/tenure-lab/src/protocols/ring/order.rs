//! In which order the ids stand round the ring.
//!
//! A random order is drawn evenly from all of them. With a hundred million ids, swapping each with
//! any other would miss the cache every time; so they are first dealt out to piles, each into one
//! drawn evenly, and then each pile, which fits into the cache, is shuffled by itself. Every order
//! is as likely as any other: a pile gets each set of that size alike, and within it every order.

use crate::catalogue::Error;
use crate::random::Random;

/// An order by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The one for which the algorithm is known to send the fewest messages.
    Best,
    /// The one for which it is known to send the most, or very many.
    Worst,
    /// Drawn from the seed.
    Random,
    /// Rising clockwise.
    Ascending,
    /// Falling clockwise.
    Descending,
    /// Bits reversed: far from sorted at every scale.
    BitReversal,
}

impl Order {
    /// The orders that `--order` takes.
    pub const NAMED: [Self; 6] =
        [Self::Best, Self::Worst, Self::Random, Self::Ascending, Self::Descending, Self::BitReversal];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Worst => "worst",
            Self::Random => "random",
            Self::Ascending => "ascending",
            Self::Descending => "descending",
            Self::BitReversal => "bit-reversal",
        }
    }

    /// The order of a name.
    pub fn find(name: &str) -> Result<Self, Error> {
        let found = Self::NAMED.into_iter().find(|order| order.name() == name);
        found.ok_or_else(|| Error::unknown("order", name, Self::NAMED.iter().map(|order| order.name())))
    }

    /// The ids of so many nodes, clockwise, from `first` on. Best and worst are an algorithm's own:
    /// see [`Election`](super::Election).
    pub fn ids(self, nodes: u32, first: u32, seed: u64) -> Vec<u32> {
        let mut ids: Vec<u32> = match self {
            Self::Random => shuffled(nodes, &mut Random::stream(seed, "order")),
            Self::Best | Self::Ascending => (0..nodes).collect(),
            Self::Worst | Self::Descending => (0..nodes).rev().collect(),
            Self::BitReversal => bit_reversed(nodes),
        };
        if first > 0 {
            ids.iter_mut().for_each(|id| *id += first);
        }
        ids
    }
}

/// The numbers below the next power of two, bits reversed, without those that are too large.
fn bit_reversed(nodes: u32) -> Vec<u32> {
    let bits = nodes.next_power_of_two().trailing_zeros();
    let all = 0..nodes.next_power_of_two();
    let reversed = all.map(|number| if bits == 0 { 0 } else { number.reverse_bits() >> (u32::BITS - bits) });
    reversed.filter(|number| *number < nodes).collect()
}

/// A pile of this size fits into the cache of any machine.
const PILE: u32 = 1 << 16;

/// All numbers below `nodes`, in an order drawn evenly.
fn shuffled(nodes: u32, random: &mut Random) -> Vec<u32> {
    let piles = nodes.div_ceil(PILE).next_power_of_two();
    if piles == 1 {
        let mut ids: Vec<u32> = (0..nodes).collect();
        shuffle(&mut ids, random);
        return ids;
    }
    // The same draws twice: first to know how large each pile gets, then to deal.
    let dealt = |deal: &mut dyn FnMut(u32, usize)| {
        let mut random = random.clone();
        (0..nodes).for_each(|id| deal(id, random.index(piles as usize)));
    };
    let mut next = vec![0_usize; piles as usize + 1];
    dealt(&mut |_, pile| next[pile + 1] += 1);
    (1..next.len()).for_each(|pile| next[pile] += next[pile - 1]);
    let ends: Vec<usize> = next[1..].to_vec();
    let mut ids = vec![0; nodes as usize];
    dealt(&mut |id, pile| {
        ids[next[pile]] = id;
        next[pile] += 1;
    });
    // Another stream, so that no draw is used twice.
    let mut inside = Random::stream(random.bits(), "piles");
    let mut from = 0;
    for end in ends {
        shuffle(&mut ids[from..end], &mut inside);
        from = end;
    }
    ids
}

fn shuffle(ids: &mut [u32], random: &mut Random) {
    for last in (1..ids.len()).rev() {
        ids.swap(last, random.index(last + 1));
    }
}

/// How many messages `clockwise` sends if all wake at once, without running it: the sum of the
/// distances from each id to the next larger one clockwise, and n for the largest. One pass with a
/// stack of the ids that still look for a larger one.
pub fn distances_to_the_next_larger(ids: &[u32]) -> u64 {
    let Some(top) = (0..ids.len()).max_by_key(|place| ids[*place]) else { return 0 };
    let mut looking: Vec<usize> = Vec::new();
    let mut sum = 0;
    for step in 1..=ids.len() {
        let id = ids[(top + step) % ids.len()];
        while let Some(earlier) = looking.last().copied().filter(|at| ids[(top + at) % ids.len()] < id) {
            sum += (step - earlier) as u64;
            looking.pop();
        }
        looking.push(step);
    }
    sum + ids.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_permutation(ids: &[u32], first: u32) -> bool {
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        sorted.iter().zip(first..).all(|(id, expected)| *id == expected)
    }

    #[test]
    fn every_order_has_every_id_once() {
        for order in Order::NAMED {
            for nodes in [1, 2, 3, 7, 16, 100] {
                let ids = order.ids(nodes, 3, 5);
                assert!(ids.len() == nodes as usize && is_permutation(&ids, 3), "{order:?} {nodes}: {ids:?}");
            }
        }
    }

    #[test]
    fn a_large_order_is_dealt_into_piles_and_still_has_every_id_once() {
        let ids = Order::Random.ids(300_000, 0, 1);
        assert!(is_permutation(&ids, 0));
        // Neighbours differ by a third of all on average, wherever they stand.
        for part in ids.chunks(50_000) {
            let apart: u64 = part.windows(2).map(|pair| u64::from(pair[0].abs_diff(pair[1]))).sum();
            let mean = apart / (part.len() as u64 - 1);
            assert!((95_000..105_000).contains(&mean), "{mean}");
        }
    }

    #[test]
    fn small_orders_are_drawn_evenly() {
        let mut seen = std::collections::BTreeMap::new();
        (0..6000).for_each(|seed| *seen.entry(Order::Random.ids(3, 0, seed)).or_insert(0) += 1);
        assert!(seen.len() == 6 && seen.values().all(|count| (880..1120).contains(count)), "{seen:?}");
    }

    #[test]
    fn the_stack_finds_the_sums_that_are_known() {
        for n in 1..50_u32 {
            let sum = |order: Order| distances_to_the_next_larger(&order.ids(n, 0, 0));
            let n = u64::from(n);
            assert_eq!((sum(Order::Ascending), sum(Order::Descending)), (2 * n - 1, n * (n + 1) / 2));
        }
    }

    #[test]
    fn the_stack_agrees_with_looking_at_every_pair() {
        for seed in 0..200 {
            let ids = Order::Random.ids(17, 0, seed);
            let far = |at: usize| (1..17).find(|step| ids[(at + step) % 17] > ids[at]).unwrap_or(17) as u64;
            assert_eq!(distances_to_the_next_larger(&ids), (0..17).map(far).sum::<u64>());
        }
    }
}
