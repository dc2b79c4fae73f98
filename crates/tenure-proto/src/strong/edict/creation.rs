//! Creation of an edict: the number first, then the clock, then E.

use std::fmt;

use super::Edict;
use super::token::{Exhausted, PackedToken, Part};
use crate::LocalTime;

/// Hands out the numbers of one term, each once, rising from 1. Where there is none left it says
/// so, forever: a number that began anew would make a new edict look old.
///
/// A handle shared by threads keeps it as an atomic. One that adds without looking wraps: stop it
/// at the last number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counter {
    /// `None` when all are used.
    next: Option<u64>,
    last: u64,
}

impl Counter {
    /// For tokens of 128 bits: as many numbers as can be counted.
    pub const fn new() -> Self {
        Self { next: Some(1), last: u64::MAX }
    }

    /// For packed tokens: 2^32 - 1 numbers. Then a leader acquires a new term, which it may do
    /// while it leads.
    pub const fn packed() -> Self {
        Self { next: Some(1), last: PackedToken::LAST_NUMBER }
    }

    /// Just before its end, without counting up to there.
    #[cfg(test)]
    pub(super) const fn ending(next: u64, last: u64) -> Self {
        Self { next: Some(next), last }
    }

    /// Takes the next number. The instant at which it is taken is the creation of the edict.
    pub fn take(&mut self) -> Result<u64, Exhausted> {
        let number = self.next.ok_or(Exhausted { what: Part::Counter })?;
        self.next = if number < self.last { Some(number + 1) } else { None };
        Ok(number)
    }

    /// The number of edicts left: a leader looks at it to acquire its next term in time.
    pub fn left(&self) -> u64 {
        self.next.map_or(0, |next| self.last - next + 1)
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

/// The term as a handle found it when it looked. Only the driver writes E; handles can close, never
/// extend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// E of the term that the tag names: it grows by renewals, and drops to zero for good when the
    /// term ends.
    pub until: LocalTime,
    /// Whether a holder of the handle has resigned: authority ends with it, before the driver has
    /// heard of it.
    pub closed: bool,
}

/// Judges whether an edict was created by a leader.
///
/// `tag` and all three values belong to **one** term, and were obtained in this order:
///
/// ```text
///   1  take    number  := counter, which goes up by one       this instant is the creation
///   2  sample  reading := the clock
///   3  load    loaded  := E and whether the handle is closed
/// ```
///
/// Then the edict is valid iff `reading < E` and nobody closed the handle. Why: a term's record is
/// published when its first run has completed. From then on its E only grows, and does so unbroken
/// (rule U), until it drops to zero for good. So an E that is found above a reading taken before it
/// was in force at that reading, and at every instant since the term began; the creation is one of
/// them (2). Numbers are in the order of the creations because both are the same step (3). The
/// paper dates an edict by its sample instead; then two threads can sample in one order and count
/// in the other. No lock is needed, and it does not matter where the thread pauses: whatever
/// happens between 1 and 3 either leaves the creation valid, or is seen.
///
/// # Failures of other orders
///
/// * **The clock before the number** (sample, take, load, or with the load anywhere else): the
///   thread pauses after the sample, the lease ends, another leads and issues; then the thread
///   takes a number. Nobody looks at the clock again: an edict of no leader.
/// * **E before the number** (load, take, sample): the thread pauses after the load, the leader
///   resigns, another leads and issues; then the thread takes a number, and its sample is still
///   below the E that it remembers.
/// * **E of another term**: the thread takes the tag of its term and pauses, the term ends, another
///   leads and issues, this process leads again. Checked against its new E the edict passes, with
///   the old tag. This is the order in which the paper's text can be read ("tags … before sending
///   checks", erratum E16).
///
/// To swap the last two steps (take, load, sample) is safe, since the E that was found stood after
/// the creation. But it refuses where a renewal falls in between, and after a resignation it lets
/// pass what it could have known to be late.
///
/// With a [`ByInstance`](super::ByInstance) tag a renewal changes the tag, so that the tag too must
/// be read in the step that takes the number: all of it under one lock, which renewals take as
/// well.
///
/// # Order on the machine
///
/// Order in the text of a program is not enough where threads run on several cores: the increment
/// must acquire and the driver's stores of E release, and the clock must not be read ahead of the
/// increment. This function cannot see that; it is what a handle is tested against.
pub fn create<T>(tag: T, number: u64, reading: LocalTime, loaded: Authority) -> Result<Edict<T>, NotLeader> {
    if loaded.closed {
        return Err(NotLeader::Closed);
    }
    if reading >= loaded.until {
        return Err(NotLeader::Over { reading, until: loaded.until });
    }
    Ok(Edict { tag, number })
}

/// No edict was created: its creator may not have been leader. The number is lost, and nobody will
/// miss it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotLeader {
    /// The handle was closed: its process has resigned.
    Closed,
    /// The leadership had run out by the clock, or was given up (E is zero then).
    Over {
        /// The reading of the clock.
        reading: LocalTime,
        /// E.
        until: LocalTime,
    },
}

impl fmt::Display for NotLeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("not leader: this process has resigned"),
            Self::Over { until: LocalTime::ZERO, .. } => f.write_str("not leader: the term has ended"),
            Self::Over { reading, until } => {
                write!(
                    f,
                    "not leader: the lease ended at {until} of this host's clock, which reads {reading}"
                )
            }
        }
    }
}

impl std::error::Error for NotLeader {}
