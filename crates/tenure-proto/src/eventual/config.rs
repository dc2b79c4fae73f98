//! Settings of eventual elections, and the waits that follow from them (D3: drift and step time).
//!
//! Real times and clock readings are different types, and each wait is rounded against the process
//! that gains. Let `T` be the longest time on a clock for which an answer counts, `P` the time on a
//! clock between two refreshes, `g` a tick, and `s = (1+ρ)·σ + g` how late a process can find
//! itself.
//!
//! | wait | length | because |
//! |---|---|---|
//! | answers count for | `T = (1+ρ)·δ + g` on the asker's clock | an answer in time is never refused |
//! | which is at most | `T' = (T+g)/(1-ρ)` real time | nobody relies on a later one |
//! | refreshes are at most | `P' = (P+s+g)/(1-ρ)` real time apart | a later one counts as a round that failed |
//! | a read is followed by the next after | `(1+ρ)·(P'+T') + g` | within `P'+T'` a new state was sent and written (A.4) |
//! | a leader is made by a read begun after | `(1+ρ)·(2P'+3T') + g` | then lower epochs are visible or gone (C.1) |
//! | a round vouches for | `P+s+T` after it was sent | the next one, if it succeeds, has succeeded by then |

use std::fmt;

use crate::time::{Drift, LocalSpan, Span};

use super::Access;
use super::rules::{Rules, Sound};

/// The settings of an election. [`Settings::validate`] makes a [`Config`] of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings<R: Rules = Sound> {
    /// The members, and which sets of them suffice.
    pub access: Access,
    /// Δ: the time between two refreshes.
    pub period: Span,
    /// δ: the longest round trip that is in time.
    pub round: Span,
    /// ρ: the bound on a clock's rate error.
    pub drift: Drift,
    /// The tick: the step in which clocks advance.
    pub tick: LocalSpan,
    /// σ: the longest time by which a process is late.
    pub step: Span,
    /// Whether an expired state stays out until its process takes a higher epoch, as in the figure.
    /// One pause is then never forgiven.
    pub sticky: bool,
    /// Whether an acknowledged state is on the disk first: then a reboot forgets nothing. Must be
    /// the same in all lives of a process: states that it acknowledges without it are missing on
    /// the disk later.
    pub durable: bool,
    /// The least step by which δ is raised when a round was not answered in time; `None` if δ is
    /// known. [`Stable`](super::Stable) needs one that is known.
    pub learns: Option<Span>,
    /// The rules.
    pub rules: R,
}

/// Settings that fit together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config<R: Rules = Sound>(Settings<R>);

/// Why settings do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A refresh is sent before the last one can have failed: a process cut off forever would never
    /// notice.
    PeriodTooShort {
        /// The length that it must exceed.
        than: LocalSpan,
    },
    /// δ is zero.
    NoRound,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeriodTooShort { than } => {
                write!(
                    f,
                    "the period must be longer than {than:?}, the time in which a round trip is answered"
                )
            }
            Self::NoRound => f.write_str("the time for a round trip must not be zero"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl<R: Rules> Settings<R> {
    /// Checks that they fit together.
    pub fn validate(self) -> Result<Config<R>, ConfigError> {
        if self.round.as_nanos() == 0 {
            return Err(ConfigError::NoRound);
        }
        let config = Config(self);
        let answered = config.pace(config.0.round).timeout;
        let period = config.0.period.nominal();
        let than = answered.plus(config.step());
        if period <= than {
            return Err(ConfigError::PeriodTooShort { than });
        }
        Ok(config)
    }
}

/// How fast a process goes: fixed by δ and Δ, or by what it has learnt of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pace {
    /// δ.
    pub(super) round: Span,
    /// T: how long an answer counts.
    pub(super) timeout: LocalSpan,
    /// P: from one refresh to the next.
    pub(super) period: LocalSpan,
    /// P'+T': for how long readers may see nothing new.
    pub(super) bound: Span,
    /// For how long a round vouches for its process, from when it was sent.
    pub(super) vouches: LocalSpan,
}

impl<R: Rules> Config<R> {
    /// The members, and which sets of them suffice.
    pub fn access(&self) -> &Access {
        &self.0.access
    }

    /// Δ: the time between two refreshes.
    pub fn period(&self) -> Span {
        self.0.period
    }

    pub(super) fn rules(&self) -> &R {
        &self.0.rules
    }

    /// s: how much later than it wanted to be woken a process finds itself at most, on its own
    /// clock.
    pub(super) fn step(&self) -> LocalSpan {
        self.0.drift.longest(self.0.step).plus(self.0.tick)
    }

    pub(super) fn is_sticky(&self) -> bool {
        self.0.sticky
    }

    pub(super) fn is_durable(&self) -> bool {
        self.0.durable
    }

    /// Whether δ is learnt.
    pub(super) fn learns(&self) -> bool {
        self.0.learns.is_some()
    }

    /// The pace at the beginning.
    pub(super) fn first_pace(&self) -> Pace {
        self.pace(self.0.round)
    }

    /// How long after the end of a read the next begins. The first pace, also where a slower one
    /// was learnt: a read in which somebody was not due yet decides nothing about it, and one's own
    /// bad luck in writing is no reason to see late who leads.
    pub(super) fn reads_after(&self) -> LocalSpan {
        self.gap(self.first_pace().bound)
    }

    /// How long those who have not answered a read are left alone at first; at most eight times as
    /// long. The first pace, as before.
    pub(super) fn asks_again_after(&self) -> LocalSpan {
        self.first_pace().period
    }

    /// A slower pace, after answers came too late, if δ is learnt: by a little, and by the least
    /// step at least.
    ///
    /// Small steps, because a process out of luck should go on failing, and stand behind those that
    /// are not. With large ones it soon allows itself so much time that it fails once in a thousand
    /// rounds: it leads for a very long time, and then does not.
    pub(super) fn slower(&self, pace: Pace) -> Option<Pace> {
        let least = self.0.learns?;
        let more = least.as_nanos().max(pace.round.as_nanos() / 32);
        Some(self.pace(Span::from_nanos(pace.round.as_nanos().saturating_add(more))))
    }

    fn drift(&self) -> Drift {
        self.0.rules.allows_for(self.0.drift)
    }

    fn pace(&self, round: Span) -> Pace {
        let (drift, tick, step) = (self.drift(), self.0.tick, self.step());
        let timeout = self.0.drift.longest(round).plus(tick);
        let least = timeout.plus(step).plus(tick).plus(LocalSpan::from_nanos(1));
        let period =
            self.0.period.nominal().max(if self.0.learns.is_some() { least } else { LocalSpan::ZERO });
        let apart = drift.longest_real(period.plus(step).plus(tick));
        let answered = drift.longest_real(timeout.plus(tick));
        Pace {
            round,
            timeout,
            period,
            bound: Span::from_nanos(apart.as_nanos().saturating_add(answered.as_nanos())),
            vouches: period.plus(step).plus(timeout),
        }
    }

    /// How long after the end of a read the next begins, if what it looks for has this bound: a
    /// tick more than that can take.
    pub(super) fn gap(&self, bound: Span) -> LocalSpan {
        let needed = self.drift().longest(bound).plus(self.0.tick).plus(LocalSpan::from_nanos(1));
        self.rules().gap(needed)
    }

    /// How long after taking an epoch the read that makes a leader begins.
    pub(super) fn wait(&self, pace: Pace) -> LocalSpan {
        let answered = self.drift().longest_real(pace.timeout.plus(self.0.tick)).as_nanos();
        let twice = pace.bound.as_nanos().saturating_mul(2).saturating_add(answered);
        let needed = self.drift().longest(Span::from_nanos(twice)).plus(self.0.tick);
        self.rules().wait(needed)
    }

    /// How long after its start a process that lost what it had acknowledged begins to read: what
    /// relied on it has succeeded or failed.
    pub(super) fn silence(&self, pace: Pace) -> LocalSpan {
        self.drift().longest(self.drift().longest_real(pace.timeout.plus(self.0.tick))).plus(self.0.tick)
    }
}
