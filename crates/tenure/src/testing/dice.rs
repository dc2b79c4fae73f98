//! Chance from a seed.

/// A generator of numbers that look random: SplitMix64. The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another generator, independent of what this one draws afterwards.
    pub(super) fn fork(&mut self) -> Self {
        Self(self.draw())
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`; zero if there is none.
    #[allow(clippy::cast_possible_truncation, reason = "it is below a number of 32 bits")]
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (((self.draw() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence_and_all_numbers_below_the_bound() {
        let drawn = |seed| (0..200).map(|_| 0).scan(Dice::new(seed), |dice, _| Some(dice.below(7)));
        let numbers: Vec<u32> = drawn(1).collect();
        assert_eq!(numbers, drawn(1).collect::<Vec<_>>());
        assert_ne!(numbers, drawn(2).collect::<Vec<_>>());
        assert!((0..7).all(|number| numbers.contains(&number)) && numbers.iter().all(|number| *number < 7));
    }
}
