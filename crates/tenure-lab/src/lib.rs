//! The laboratory.

pub mod catalogue;
pub mod count;
pub mod draw;
pub mod mutant;
pub mod property;
pub mod random;
pub mod record;
pub mod script;
pub mod shrink;
pub mod simulate;
pub mod stage;
pub mod subject;
pub mod sweep;
pub mod world;
