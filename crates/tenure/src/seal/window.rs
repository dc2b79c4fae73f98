//! Which packets of a session have been accepted already.
//!
//! A ring of bits, one for each of the last counters. A counter that is older than the ring reaches
//! is refused: it may have been accepted, nobody knows. Words are cleared when the newest counter
//! enters them, so one of them is always partly in the future, and the window is one word shorter
//! than the ring.

const WORDS: usize = 32;

/// How far a packet may be behind the newest one and still be accepted.
pub(super) const WINDOW: u64 = (WORDS as u64 - 1) * 64;

/// The counters of one direction of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// One more than the largest counter accepted.
    next: u64,
    words: [u64; WORDS],
}

impl Window {
    /// Whether this counter was not accepted before, for certain.
    pub(super) fn is_new(&self, counter: u64) -> bool {
        if counter >= self.next {
            return counter < u64::MAX;
        }
        self.next - counter <= WINDOW && self.words[word(counter)] & bit(counter) == 0
    }

    /// Remembers a counter that [is new](Self::is_new), and says whether it is the largest.
    pub(super) fn accept(&mut self, counter: u64) -> bool {
        let newest = counter >= self.next;
        if newest {
            let before = self.next.saturating_sub(1) / 64;
            for entered in (before + 1..=counter / 64).rev().take(WORDS) {
                self.words[word(entered * 64)] = 0;
            }
            self.next = counter + 1;
        }
        self.words[word(counter)] |= bit(counter);
        newest
    }
}

fn word(counter: u64) -> usize {
    usize::try_from(counter / 64 % WORDS as u64).expect("less than the number of words")
}

fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_counter_is_accepted_once() {
        let mut window = Window::default();
        assert!(window.is_new(0) && window.accept(0));
        assert!(!window.is_new(0));
        assert!(window.is_new(5) && window.accept(5));
        assert!(window.is_new(3) && !window.accept(3), "late, but not seen");
        assert!(!window.is_new(3) && !window.is_new(5));
    }

    #[test]
    fn what_is_older_than_the_window_is_refused() {
        let mut window = Window::default();
        window.accept(WINDOW);
        assert!(!window.is_new(0));
        assert!(window.is_new(1));
    }

    #[test]
    fn a_jump_over_the_whole_ring_leaves_nothing_behind() {
        let mut window = Window::default();
        (0..3000).for_each(|counter| assert!(window.accept(counter)));
        assert!(window.accept(1 << 40));
        assert!((1..WINDOW).all(|back| window.is_new((1 << 40) - back)));
        assert!(
            !window.is_new(u64::MAX),
            "the last counter is never used, so that there is always a next one"
        );
        assert!(window.accept(u64::MAX - 1));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set_of_all_counters(steps in prop::collection::vec((0u64..3, 0u64..5000), 0..600)) {
            let (mut window, mut seen, mut newest) = (Window::default(), BTreeSet::new(), 0u64);
            for (kind, offset) in steps {
                let counter = match kind {
                    0 => newest + offset % 70,
                    1 => newest.saturating_sub(offset),
                    _ => newest + offset,
                };
                let in_reach = counter > newest || newest - counter < WINDOW;
                prop_assert_eq!(window.is_new(counter), in_reach && !seen.contains(&counter));
                if window.is_new(counter) {
                    window.accept(counter);
                    seen.insert(counter);
                    newest = newest.max(counter);
                }
            }
        }
    }
}
