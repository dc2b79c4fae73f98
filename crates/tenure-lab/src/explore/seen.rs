//! The fingerprints of all states that were met, in one flat table.

/// A set of fingerprints with open addressing. Zero marks a free place.
#[derive(Debug)]
pub(super) struct Seen {
    places: Vec<u64>,
    len: usize,
}

impl Seen {
    /// An empty set.
    pub(super) fn new() -> Self {
        Self { places: vec![0; 1 << 12], len: 0 }
    }

    /// Adds a fingerprint; false if it is known.
    pub(super) fn insert(&mut self, fingerprint: u64) -> bool {
        if self.is_full() {
            self.grow();
        }
        let new = put(&mut self.places, fingerprint.max(1));
        self.len += usize::from(new);
        new
    }

    /// How much memory it takes, and while it grows next.
    pub(super) fn bytes(&self) -> (usize, usize) {
        (self.places.len() * 8, self.places.len() * 24)
    }

    /// Whether it grows with the next fingerprint.
    pub(super) fn is_full(&self) -> bool {
        self.len * 4 >= self.places.len() * 3
    }

    fn grow(&mut self) {
        let mut places = vec![0; self.places.len() * 2];
        for fingerprint in self.places.iter().filter(|place| **place != 0) {
            put(&mut places, *fingerprint);
        }
        self.places = places;
    }
}

fn put(places: &mut [u64], fingerprint: u64) -> bool {
    let mask = places.len() - 1;
    let mut at = usize::try_from(fingerprint & mask as u64).unwrap_or(0);
    loop {
        match places[at] {
            0 => {
                places[at] = fingerprint;
                return true;
            }
            known if known == fingerprint => return false,
            _ => at = (at + 1) & mask,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::mix;
    use super::*;

    #[test]
    fn every_fingerprint_is_new_once_while_the_table_grows() {
        let mut seen = Seen::new();
        for number in 0..20_000 {
            assert!(seen.insert(mix(number)), "{number}");
        }
        assert!((0..20_000).all(|number| !seen.insert(mix(number))));
    }
}
