//! Nerio: a quorum grants leases.

pub(crate) mod entry;
pub mod explore;
pub mod judge;
pub mod mutants;
pub mod race;
pub mod subject;
