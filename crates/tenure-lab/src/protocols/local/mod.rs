//! Local leadership: a leader for every partition.

pub(crate) mod entry;
pub mod judge;
pub mod mutants;
pub mod race;
pub mod subject;
