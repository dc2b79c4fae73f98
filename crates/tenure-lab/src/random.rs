//! The laboratory's own chance: whole numbers only, the same on every machine.

use tenure_proto::Chooser;

/// `count` seeds from `first` on; after the last number there is comes the first.
pub fn seeds(first: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |nth| first.wrapping_add(nth))
}

/// A generator (SplitMix64): small, quick, and split into independent streams by a label.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream `label` of a seed: adding draws to one stream changes no other.
    pub fn stream(seed: u64, label: &str) -> Self {
        let mut mixed = Self(seed ^ 0x7e6e_75e5_1ab0_7a70);
        for byte in label.bytes() {
            mixed.0 = mixed.bits() ^ u64::from(byte);
        }
        Self(mixed.bits())
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "there is no number below zero");
        let wide = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// A position below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }
}

impl Chooser for Random {
    fn choose(&mut self, bound: u32) -> u32 {
        u32::try_from(self.below(u64::from(bound))).unwrap_or(0)
    }
}

/// Chance as a trace recorded it. A number that was not recorded is zero.
#[derive(Clone, Debug, Default)]
pub struct Scripted<'a> {
    draws: &'a [u32],
}

impl<'a> Scripted<'a> {
    /// Repeats these draws.
    pub fn new(draws: &'a [u32]) -> Self {
        Self { draws }
    }
}

impl Chooser for Scripted<'_> {
    fn choose(&mut self, bound: u32) -> u32 {
        let Some((first, rest)) = self.draws.split_first() else { return 0 };
        self.draws = rest;
        (*first).min(bound - 1)
    }
}

/// Draws from another chooser and keeps what was drawn.
pub struct Recording<'a> {
    inner: &'a mut dyn Chooser,
    /// The numbers that were drawn.
    pub draws: Vec<u32>,
}

impl<'a> Recording<'a> {
    /// Records what `inner` gives.
    pub fn new(inner: &'a mut dyn Chooser) -> Self {
        Self { inner, draws: Vec::new() }
    }
}

impl Chooser for Recording<'_> {
    fn choose(&mut self, bound: u32) -> u32 {
        let drawn = self.inner.choose(bound);
        self.draws.push(drawn);
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_on_every_machine() {
        let mut random = Random::stream(7, "links");
        assert_eq!(
            [random.bits(), random.bits(), random.below(1000)],
            [17_021_641_703_200_660_139, 12_109_208_100_590_493_638, 861]
        );
    }

    #[test]
    fn as_many_seeds_as_were_asked_for_also_at_the_last_number_there_is() {
        assert_eq!(seeds(u64::MAX - 1, 3).collect::<Vec<_>>(), [u64::MAX - 1, u64::MAX, 0]);
    }

    #[test]
    fn streams_differ_by_label_and_by_seed() {
        let first = |seed, label| Random::stream(seed, label).bits();
        assert_ne!(first(1, "links"), first(1, "clocks"));
        assert_ne!(first(1, "links"), first(2, "links"));
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_both_ends() {
        let mut random = Random::stream(1, "range");
        let drawn: Vec<u64> = (0..1000).map(|_| random.between(3, 6)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&6)));
    }
}
