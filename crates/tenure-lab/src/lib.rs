//! The laboratory.

pub mod draw;
