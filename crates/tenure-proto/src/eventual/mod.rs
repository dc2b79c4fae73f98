//! Eventual leadership: Omega, from "Omega Meets Paxos" (Malkhi, Oprea and Zhou, 2005), with the
//! figures corrected.
//!
//! Each process always has a [`Hint`] which process leads. Hints may differ and may be wrong for
//! any length of time; in the end all living processes have the same one. No link need be timely
//! forever: it is enough that one process, with every message, reaches some f others that answer
//! within δ, and these may be others each time.
//!
//! # The idea
//!
//! A process stands for an [`Epoch`], (serial, id). Once a period it writes its [`State`], the
//! epoch and a count, to f+1 processes, itself among them. If they do not all answer in time it
//! takes a higher epoch. Every process reads, from n-f processes at a time, which states are still
//! getting newer, and follows the lowest epoch among those. A process that reaches enough others in
//! time keeps its epoch forever; one that does not, rises or falls silent; so the lowest epoch that
//! lasts is read by all.
//!
//! *No false expiry* (A.4). Say p refreshes at times at most P' apart and each round succeeds
//! within T'. The state of p that a read saw, if the read ended at `t`, was sent by `t`. The next
//! read begins after `t + P' + T'`: by then p has sent something newer after `t`, and f+1 have
//! written it down. n-f and f+1 meet.
//!
//! # The machines
//!
//! | module | election | promises besides | cost in the end |
//! |---|---|---|---|
//! | [`omega`] | Fig. 1, corrected | | all n(n-1) links |
//! | [`lean`] | its frugal form, which the paper sketches | | 2(n-1) links, once suspicion has ended |
//! | [`stable`] | Fig. 2, corrected | at most one process takes itself for leader, epochs rise, a leader with access is not demoted | all links |
//! | [`baseline`] | two elections that need timely links | nothing in a moving set | all links |
//!
//! All are made of `register` (write one's own state, keep those of others) and take part as `part`
//! says; the first and last read by `reader`. The waits are in [`config`], the rules that the
//! printed figures break in [`rules`]. Extensions beyond the paper: δ may be learnt (not by
//! `stable`), links may lose, repeat and reorder, clocks may drift and processes be late, any read
//! and write quorums that meet will do ([`access`]), and processes may restart: with the states
//! they kept, or after reading them anew.

pub mod access;
pub mod baseline;
pub mod config;
pub mod lean;
pub mod omega;
mod part;
mod reader;
mod register;
pub mod rules;
pub mod stable;
mod state;
#[cfg(test)]
mod tests;

pub use access::Access;
pub use config::{Config, ConfigError, Settings};
pub use lean::Lean;
pub use omega::Omega;
pub use rules::{Rules, Sound};
pub use stable::Stable;
pub use state::{Epoch, Event, Hint, Key, Message, Record, State};

use crate::{Elects, LocalTime, Protocol};

/// A request of the process's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Gives the present epoch up and stands behind the others, as after a round that was not
    /// answered.
    Abdicate,
}

/// A protocol that always has a hint which process leads.
pub trait Hints: Elects<Command = Command, Message = Message, Record = Record, Event = Event> {
    /// The process that this one takes for leader at `now`.
    fn hint(&self, now: LocalTime) -> Hint;

    /// The epoch for which it stands, if any.
    fn epoch(&self) -> Option<Epoch>;
}

/// A protocol whose steps the parts of this module can be: they speak, keep and tell the same.
trait Election: Protocol<Message = Message, Record = Record, Event = Event> {}
impl<P: Protocol<Message = Message, Record = Record, Event = Event>> Election for P {}
