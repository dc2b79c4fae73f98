//! Eventual leaders: Omega, three ways, and two elections to compare with.

pub(crate) mod entry;
pub mod judge;
pub mod mutants;
pub mod race;
pub mod subject;
