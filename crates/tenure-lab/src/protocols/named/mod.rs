//! Elections among named processes: the lectures.

pub(crate) mod entry;
pub mod judge;
pub mod mutants;
pub mod subject;
