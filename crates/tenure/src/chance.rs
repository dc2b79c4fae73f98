//! Chance from the operating system: the one place where this crate draws any.

use crate::sys::random;

/// Random bytes. A system without any cannot run a node, nor anything else that is safe.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    random::fill(&mut bytes).expect("the system gives random numbers");
    bytes
}

/// 128 random bits.
pub(crate) fn wide() -> u128 {
    u128::from_be_bytes(bytes())
}

/// A number below `bound`, each as likely as any other.
pub(crate) fn below(bound: u32) -> u32 {
    // Of 2^32 numbers the last few are drawn again: they would make small ones a little more
    // likely.
    let usable = u32::MAX - u32::MAX % bound.max(1);
    loop {
        let drawn = u32::from_be_bytes(bytes());
        if drawn < usable {
            return drawn % bound.max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[below(7) as usize] = true;
        }
        assert_eq!(seen, [true; 7]);
        assert_eq!(below(1), 0);
    }
}
