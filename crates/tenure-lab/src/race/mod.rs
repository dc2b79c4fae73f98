//! Races: protocols and parts of them compared, as tables and plots.
//!
//! A study runs the real machines very often, in worlds that differ in one respect, and puts what
//! came of it into rows. The same seeds give the same rows, to the last digit, on every machine.
//!
//! | study | asks |
//! |---|---|
//! | [`election`](crate::protocols::strong::race::election) | how long it takes until somebody leads, once nobody does and everybody wants to (Nerio, section 10.2) |
//! | [`detectors`] | how soon, and how wrongly, failure detectors suspect (Chen, Toueg and Aguilera's numbers) |
//! | [`eventual`](crate::protocols::eventual::race) | which elections of eventual leaders settle, and over how many links |
//! | [`blocking`](crate::protocols::strong::race::blocking) | how long a request that was late on its way blocks others (Nerio, section 5) |
//! | [`paxos`](crate::protocols::log::race) | how often the log asks for promises under each Omega, and what a change of its leader costs |
//! | [`local`](crate::protocols::local::race) | how long a local leader's round takes, answered directly and along a tree (Fetzer and Cristian, figures 28 and 29) |

pub mod detectors;
pub(crate) mod track;

use crate::catalogue::Error;
use crate::draw::plot::Plot;

/// A question with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Study {
    /// How long it takes until somebody leads.
    Election,
    /// [`detectors`]
    Detectors,
    /// How long a late request blocks others.
    Blocking,
    /// How often the log asks for promises.
    Paxos,
    /// How long a local leader's round takes.
    Local,
}

impl Study {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Election, Self::Detectors, Self::Blocking, Self::Paxos, Self::Local];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Election => "election",
            Self::Detectors => "detectors",
            Self::Blocking => "blocking",
            Self::Paxos => "paxos",
            Self::Local => "local",
        }
    }

    /// The study of a name, or the nearest names.
    pub fn find(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|study| study.name() == name);
        found.ok_or_else(|| Error::unknown("study", name, Self::ALL.iter().map(|study| study.name())))
    }
}

/// The runs of a study that only asks for how many processes and which seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many processes, each number in turn: at least two.
    pub nodes: Vec<usize>,
    /// How many seeds for each row.
    pub seeds: u64,
    /// The first of them.
    pub first: u64,
}

/// The result of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// The study's name.
    pub study: &'static str,
    /// The parameters fixed for all rows.
    pub parameters: Vec<(&'static str, Cell)>,
    /// Every row, for programs.
    pub rows: Sheet,
    /// The same for people, where that should look otherwise.
    pub shown: Vec<Shown>,
    /// Promises that were not kept, a line each. Nothing, usually.
    pub broken: Vec<String>,
    /// The drawing, if there is one.
    pub plot: Option<Plot>,
}

/// A table for people, of one measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The name of the measure.
    pub name: &'static str,
    /// The study in one line.
    pub says: &'static str,
    /// The table.
    pub sheet: Sheet,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// The columns of the table.
    pub columns: Vec<Column>,
    /// A cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name for programs.
    pub key: String,
    /// Its name for people.
    pub head: String,
    /// Its meaning, in one line; empty if its head says it all.
    pub says: &'static str,
}

impl Column {
    pub(crate) fn new(key: &str, head: &str, says: &'static str) -> Self {
        Self { key: key.to_owned(), head: head.to_owned(), says }
    }
}

/// The content of a cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A measure, with as many decimals as mean something.
    Number(f64, usize),
    /// There was nothing to measure.
    Nothing,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// Sorted lengths, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths(pub(crate) Vec<u64>);

impl Lengths {
    pub(crate) fn of(mut lengths: Vec<u64>) -> Self {
        lengths.sort_unstable();
        Self(lengths)
    }

    /// The least length that at least `percent` in a hundred do not exceed: one that occurred.
    pub(crate) fn quantile(&self, percent: usize) -> Option<u64> {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied()
    }

    pub(crate) fn max(&self) -> Option<u64> {
        self.0.last().copied()
    }

    /// The mean in units of `unit`.
    pub(crate) fn mean(&self, unit: u64) -> Option<f64> {
        let sum: u128 = self.0.iter().map(|length| u128::from(*length)).sum();
        (!self.0.is_empty()).then(|| sum as f64 / (self.0.len() as f64 * unit as f64))
    }
}

/// A length as a cell, in units of `unit` nanoseconds.
pub(crate) fn length(nanos: Option<u64>, unit: u64, places: usize) -> Cell {
    nanos.map_or(Cell::Nothing, |nanos| Cell::Number(nanos as f64 / unit as f64, places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_study_is_answered_with_the_nearest() {
        let error = Study::find("elections").map_err(|error| error.to_string());
        assert_eq!(error, Err("there is no study 'elections'; did you mean election?".to_owned()));
        assert_eq!(Study::find("blocking"), Ok(Study::Blocking));
    }

    #[test]
    fn a_quantile_is_a_length_that_occurred_and_that_enough_do_not_exceed() {
        let lengths = Lengths::of((1..=200).rev().collect());
        assert_eq!([1, 50, 99, 100].map(|percent| lengths.quantile(percent)), [2, 100, 198, 200].map(Some));
        assert_eq!((lengths.max(), lengths.mean(10)), (Some(200), Some(10.05)));
        assert_eq!((Lengths::default().quantile(50), Lengths::default().mean(1)), (None, None));
    }
}
