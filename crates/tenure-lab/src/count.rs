//! Counts of what really happened. A sweep that exercised nothing must be visible as such.

/// How often each kind of thing happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(Vec<(&'static str, u64)>);

impl Counts {
    /// One more of `kind`.
    pub fn add(&mut self, kind: &'static str) {
        self.add_many(kind, 1);
    }

    /// `many` more of `kind`.
    pub fn add_many(&mut self, kind: &'static str, many: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += many,
            None => self.0.push((kind, many)),
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
        for (kind, many) in &other.0 {
            self.add_many(kind, *many);
        }
    }

    /// How often `kind` happened.
    pub fn get(&self, kind: &str) -> u64 {
        self.0.iter().find(|(known, _)| *known == kind).map_or(0, |(_, count)| *count)
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// All kinds with their counts, by name.
    pub fn sorted(&self) -> Vec<(&'static str, u64)> {
        let mut kinds = self.0.clone();
        kinds.sort_unstable();
        kinds
    }
}
