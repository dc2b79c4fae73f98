//! The settings of a strong machine, checked once.

use std::fmt;
use std::sync::Arc;

use crate::detect::weak::{Choice, Timing};
use crate::quorum::Quorums;
use crate::time::{Clockwork, LocalSpan, Span};

use super::epoch::{Barred, Body, Stores};
use super::rules::{Rules, Sound};

/// The settings of a machine, not yet checked: see [`Settings::validate`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings<R: Rules = Sound> {
    /// The grantors, and which sets of them are quorums, when the cluster is founded; afterwards
    /// the epoch says. Must be the same on every process, like all that is part of an epoch.
    pub quorums: Quorums,
    /// The bound on the clocks (ρ or Δ) and their tick. Part of the epoch. If a real clock is
    /// worse, two processes may lead at once.
    pub clocks: Clockwork,
    /// δ: the length of a lease, or of the first one if `adapt` is set. More than two round trips,
    /// or a leader cannot renew in time; failover takes about this long.
    pub lease: Span,
    /// The last part of a lease that a leader must not come to without a renewal: it needs that
    /// time to stop its work. It renews at half of what lies before. Zero if the work needs none;
    /// more makes renewals more frequent. Leases that adapt do not look at it.
    pub reserve: Span,
    /// δ_max: the longest lease that a grantor promises to anybody. Part of the epoch. A grantor
    /// that lost its memory is silent this long.
    pub longest_lease: Span,
    /// W: the length of the window in which candidates start, at a random time. A few round trips a
    /// candidate: shorter, and they meet; longer, and elections wait.
    pub window: Span,
    /// The time to wait for an answer before a retransmission. About one round trip.
    pub retry: Span,
    /// Whether a process that is no member asks at once when its campaign begins, before its turn:
    /// see `turn`. It saves such a process a window where nobody leads.
    pub eager: bool,
    /// The number of terms by which the durable ceiling is raised. More means fewer writes and
    /// larger steps of the term at a restart.
    pub block: u64,
    /// How one epoch follows another. Must be the same on every process.
    pub succession: Succession,
    /// Which weak election advises when to try.
    pub weak: Choice,
    /// How the length of leases follows the network; `None` for leases of one length.
    pub adapt: Option<Adapt>,
    /// The time for which a process of better priority must be heard without a break before a
    /// leader hands over to it; `None` if leaders do not.
    pub hold: Option<Span>,
    /// The safety rules. Outside the laboratory there is one choice.
    pub rules: R,
}

/// How members change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Succession {
    /// Gaplessly, to neighbours whose quorums meet, as many groups as there may be: see
    /// [`epoch`](super::epoch).
    #[default]
    Adjacent,
    /// To any members whatever, but every group is without a leader in between: see
    /// [`wedge`](super::wedge).
    Wedge,
    /// Never. Then, and only then, a grantor that lost its disk can come back under its own name:
    /// see `recovery`.
    Fixed,
}

/// How the length of leases follows the network: see `pace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Adapt {
    /// δ_min: no lease is shorter. About as long as users can bear to wait for a failover.
    pub shortest: Span,
    /// i: the time between two renewals.
    pub interval: Span,
    /// r: the number of further tries that a renewal should survive. Two or three.
    pub retries: u32,
}

/// Settings that hold together. Cheap to copy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config<R: Rules = Sound>(Arc<Settings<R>>);

impl<R: Rules> Config<R> {
    /// The settings that were validated.
    pub fn settings(&self) -> &Settings<R> {
        &self.0
    }

    /// The safety rules of this process.
    pub(super) fn rules(&self) -> &R {
        &self.0.rules
    }
}

impl<R: Rules> Settings<R> {
    /// The content of the founding charter.
    pub(super) fn founding(&self) -> Body {
        let Self { quorums, clocks, longest_lease, .. } = self;
        let stores = Stores::default();
        let barred = Barred::default();
        Body { quorums: quorums.clone(), clocks: *clocks, longest_lease: *longest_lease, stores, barred }
    }

    /// The timing that the weak election needs. Between two renewals a leader is silent for at most
    /// a lease.
    pub(super) fn timing(&self) -> Timing {
        let longest = if self.adapt.is_some() { self.longest_lease } else { self.lease };
        Timing { renewal: longest.nominal(), interval: self.retry.nominal() }
    }

    /// Checks that these settings can elect anybody at all.
    pub fn validate(self) -> Result<Config<R>, ConfigError> {
        for (key, span) in [("window", self.window), ("retry", self.retry)] {
            if span.as_nanos() == 0 {
                return Err(ConfigError::Zero { key });
            }
        }
        let optional = [
            ("hold", self.hold),
            ("interval", self.adapt.map(|adapt| adapt.interval)),
            ("shortest-lease", self.adapt.map(|adapt| adapt.shortest)),
        ];
        if let Some((key, _)) = optional.into_iter().find(|(_, span)| *span == Some(Span::from_nanos(0))) {
            return Err(ConfigError::Zero { key });
        }
        if self.block == 0 {
            return Err(ConfigError::Zero { key: "block" });
        }
        if self.clocks.tick == LocalSpan::ZERO {
            return Err(ConfigError::Zero { key: "tick" });
        }
        if self.lease > self.longest_lease {
            return Err(ConfigError::LeaseTooLong { lease: self.lease, longest: self.longest_lease });
        }
        let shortest = self.adapt.map_or(self.lease, |adapt| adapt.shortest.min(self.lease));
        let usable = self.clocks.usable(shortest);
        if usable < self.clocks.tick.times(2) {
            return Err(ConfigError::LeaseTooShort { lease: shortest, usable, tick: self.clocks.tick });
        }
        Ok(Config(Arc::new(self)))
    }
}

/// Why settings were refused. Each names the setting to change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting must be more than zero.
    Zero {
        /// The setting.
        key: &'static str,
    },
    /// The lease is longer than the longest lease.
    LeaseTooLong {
        /// δ.
        lease: Span,
        /// δ_max.
        longest: Span,
    },
    /// After drift and rounding nothing is left of the lease.
    LeaseTooShort {
        /// δ.
        lease: Span,
        /// (1-ρ)·δ.
        usable: LocalSpan,
        /// g.
        tick: LocalSpan,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { key } => write!(f, "{key} must be more than zero"),
            Self::LeaseTooLong { lease, longest } => write!(
                f,
                "lease {lease} is longer than longest-lease {longest}: every grantor would refuse it; \
                 shorten the one or lengthen the other"
            ),
            Self::LeaseTooShort { lease, usable, tick } => write!(
                f,
                "of lease {lease} only {usable} can be counted on, less than two ticks of {tick}: lengthen lease"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}
