//! Hashes that are quick and the same on every machine.

use std::hash::{BuildHasherDefault, Hasher};

/// Spreads the bits of a number: two multiplications to twice the width, folded.
pub fn mix(number: u64) -> u64 {
    let fold = |wide: u128| {
        let (low, high) = (wide & u128::from(u64::MAX), wide >> 64);
        u64::try_from(low ^ high).unwrap_or(0)
    };
    let once = fold(u128::from(number ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15_u128);
    fold(u128::from(once ^ 0x1319_8a2e_0370_7344) * 0xd1b5_4a32_d192_ed03_u128)
}

/// The hash of some bytes.
pub(super) fn bytes(seed: u64, bytes: &[u8]) -> u64 {
    let start = mix(seed ^ (bytes.len() as u64).rotate_left(32));
    bytes.chunks(8).fold(start, |hash, chunk| {
        let word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        mix(hash ^ word)
    })
}

/// Hashes keys that are numbers already, or short bytes.
#[derive(Default)]
pub(super) struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, words: &[u8]) {
        self.0 = bytes(self.0, words);
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }
}

/// A map with quick hashes.
#[expect(clippy::disallowed_types, reason = "it is asked, and never walked in its order")]
pub(super) type Map<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Quick>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_get_hashes_that_share_nothing() {
        let hashes: Vec<u64> = (0..1000).map(mix).collect();
        let apart = hashes.windows(2).map(|two| (two[0] ^ two[1]).count_ones());
        let (least, most) = apart.fold((64, 0), |(least, most), bits| (bits.min(least), bits.max(most)));
        assert!(least >= 10 && most <= 54, "{least} to {most} bits differ");
        assert_ne!(bytes(0, &[1, 0]), bytes(0, &[1]));
    }
}
