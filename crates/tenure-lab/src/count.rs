//! Counts of what really happened. A sweep that exercised nothing must be visible as such.

/// How often each kind of thing happened; and of some things not how often, but the most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    sums: Vec<(&'static str, u64)>,
    peaks: Vec<(&'static str, u64)>,
}

impl Counts {
    /// One more of `kind`.
    pub fn add(&mut self, kind: &'static str) {
        self.add_many(kind, 1);
    }

    /// `many` more of `kind`.
    pub fn add_many(&mut self, kind: &'static str, many: u64) {
        match self.sums.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += many,
            None => self.sums.push((kind, many)),
        }
    }

    /// `kind` was as much as this. Of several such, the largest stays.
    pub fn raise(&mut self, kind: &'static str, height: u64) {
        match self.peaks.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, peak)) => *peak = height.max(*peak),
            None => self.peaks.push((kind, height)),
        }
    }

    /// Makes kinds appear even if they never happen.
    pub fn expect(&mut self, kinds: &[&'static str]) {
        for kind in kinds {
            self.add_many(kind, 0);
        }
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Self) {
        for (kind, many) in &other.sums {
            self.add_many(kind, *many);
        }
        for (kind, height) in &other.peaks {
            self.raise(kind, *height);
        }
    }

    /// How often `kind` happened, or its peak.
    pub fn get(&self, kind: &str) -> u64 {
        self.sums.iter().chain(&self.peaks).find(|(known, _)| *known == kind).map_or(0, |(_, count)| *count)
    }

    /// All together, without peaks.
    pub fn total(&self) -> u64 {
        self.sums.iter().map(|(_, count)| count).sum()
    }

    /// All kinds with their counts or peaks, by name.
    pub fn sorted(&self) -> Vec<(&'static str, u64)> {
        let mut kinds: Vec<_> = self.sums.iter().chain(&self.peaks).copied().collect();
        kinds.sort_unstable();
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_of_peaks_the_largest_stays() {
        let (mut one, mut other) = (Counts::default(), Counts::default());
        one.add_many("crashes", 2);
        one.raise("longest", 7);
        other.add("crashes");
        other.raise("longest", 5);
        one.merge(&other);
        assert_eq!((one.get("crashes"), one.get("longest"), one.total()), (3, 7, 3));
        assert_eq!(one.sorted(), [("crashes", 3), ("longest", 7)]);
    }
}
