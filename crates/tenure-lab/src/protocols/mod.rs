//! The protocols of the laboratory, a folder each.
//!
//! | file | holds |
//! |---|---|
//! | `subject` | the machine as the laboratory runs it: constants, commands, words, drawings |
//! | `judge` | its properties, and the ghosts that judge a run |
//! | `mutants` | its known-wrong variants, each with one broken rule |
//! | `entry` | its lines in the [catalogue](crate::catalogue) |
//! | `race` | the studies that compare it |
//!
//! A new protocol is such a folder and one line in the catalogue; `tests/own_protocol.rs` is one in
//! a single file. [`ring`] has elections on ports without addresses: they have a simulator and a
//! list of their own.

pub mod eventual;
pub mod local;
pub mod log;
pub mod named;
pub mod ring;
pub mod strong;
