//! Phi accrual (Hayashibara and others, 2004): a timeout learnt from the intervals seen.
//!
//! The detector keeps the last intervals between heartbeats and takes them for samples of a normal
//! distribution with mean μ and standard deviation σ. After a silence of t, the probability that
//! the next heartbeat is merely late is `Q((t-μ)/σ)`, and
//!
//! ```text
//!     phi(t) = -log10 Q((t - μ - pause) / σ)
//! ```
//!
//! says how unlikely that is: at phi = 8 a sender that follows the model is wrongly suspected once
//! in 10⁸ intervals. Real networks follow no normal distribution; the number is a scale, not a
//! promise.
//!
//! # In integers
//!
//! The state is compared and hashed, and runs must be the same on every machine, so there is no
//! floating point:
//!
//! | quantity | kept as | off by |
//! |---|---|---|
//! | Σx and Σx² over the window | 128-bit integers, updated as samples come and go | nothing: they do not drift |
//! | μ = Σx/n | whole nanoseconds, rounded down | less than 1 ns |
//! | σ = √(nΣx² - (Σx)²)/n | whole nanoseconds, rounded down | less than 1 ns |
//! | y = (t-μ-pause)/σ | 65536ths, rounded down | less than 1/65536 |
//! | phi as a function of y | a table with straight lines between | 0.00022 too high at most |
//!
//! In floating point the two sums would have to be replaced by Welford's method; exact sums need no
//! cure. Phi is monotone in t, so it reaches the threshold at one score `y*`, found once by
//! bisection when the settings are checked. From then on suspicion is a comparison, `y >= y*`, and
//! its beginning a sum, `μ + pause + ⌈y*·σ⌉`: both exact, and both the same condition. Compared
//! with exact arithmetic suspicion begins less than σ/3000 + 14 ns off.
//!
//! # Additions from practice
//!
//! * σ is never taken to be less than a **least deviation**: on a quiet network it would tend to
//!   nothing, and the first small delay would be a mistake.
//! * An **acceptable pause** is allowed beyond the mean: collections of garbage, stalls of a disk.
//! * The window begins with two made-up samples, `e - e/4` and `e + e/4` for a **first estimate**
//!   e: mean e, deviation e/4. They leave it like all others.
//! * **An interval counts for no more than the silence at which suspicion began.** An outage is no
//!   sample of the network, and one of an hour would blind the detector for a whole window. But to
//!   leave such intervals out altogether (as is often done) is a trap: a sender that slows down for
//!   good is then suspected before every single heartbeat, forever, because nothing is learnt from
//!   it. Shortened, each mistake teaches a little, and the mistakes end. The price is a σ that
//!   comes out too small where mistakes are common: at a threshold of 1, 15 intervals in 100 are
//!   mistakes instead of 10; from 2 on it hardly matters.
//!
//! # Example
//!
//! ```
//! use tenure_proto::LocalTime;
//! use tenure_proto::detect::phi::{Phi, PhiAccrual, Settings};
//! use tenure_proto::detect::Detector;
//! use tenure_proto::time::LocalSpan;
//!
//! let millis = |millis: u64| LocalSpan::from_nanos(millis * 1_000_000);
//! let config = Settings {
//!     threshold: Phi::from_thousandths(8_000),
//!     window: 200,
//!     first_estimate: millis(100),
//!     least_deviation: millis(5),
//!     acceptable_pause: millis(0),
//! }
//! .validate()?;
//!
//! let mut now = LocalTime::ZERO;
//! let mut detector = PhiAccrual::new(&config, now);
//! for _ in 0..1000 {
//!     now = now.after(millis(100));
//!     detector.heard(now);
//! }
//! assert_eq!(detector.phi(now.after(millis(100))).to_string(), "0.301"); // due now: half of them come later
//! let deadline = detector.next_crossing(now).expect("silence will be noticed");
//! assert_eq!(deadline.remaining(now).as_nanos() / 1_000_000, 128); // 100 ms + 5.612 · 5 ms
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;

use crate::LocalTime;
use crate::time::LocalSpan;

use super::Detector;
use super::tail::{self, DEVIATION, Score};

/// The longest interval that is told from longer ones: about 13 days. With [`MOST_SAMPLES`] it
/// keeps `n²·x²` within 128 bits.
pub const LONGEST: LocalSpan = LocalSpan::from_nanos(1 << 50);

/// The most samples that a window can have.
pub const MOST_SAMPLES: usize = 10_000;

/// The suspicion of a silent process: `-log10` of the probability that it is merely late, in
/// thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phi(u32);

impl Phi {
    /// The least threshold: one interval in ten is a mistake, and more.
    pub const LEAST: Self = Self(1_000);

    /// The largest threshold. Phi itself is reported up to 32.75 and stays there.
    pub const LARGEST: Self = Self(30_000);

    /// Makes a phi from thousandths: 8000 is a phi of 8.
    pub const fn from_thousandths(thousandths: u32) -> Self {
        Self(thousandths)
    }

    /// The phi in thousandths.
    pub const fn as_thousandths(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Phi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

impl fmt::Display for Phi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The settings of a detector, not yet checked: see [`Settings::validate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The phi from which on a process is suspected. Each 1 more makes mistakes ten times rarer, if
    /// the model holds, and detection a little slower. 8 is usual within a site, 12 between sites.
    pub threshold: Phi,
    /// The number of intervals that are remembered. More are steadier, fewer adapt sooner; a sample
    /// takes eight bytes.
    pub window: usize,
    /// The interval to expect until some were seen. About the period of the sender; rather too long
    /// than too short.
    pub first_estimate: LocalSpan,
    /// The least σ that is assumed. Too small, and a quiet network makes the detector nervous.
    pub least_deviation: LocalSpan,
    /// The time beyond the mean that a silence may take before it counts. Adds in full to the
    /// detection time.
    pub acceptable_pause: LocalSpan,
}

/// Settings that hold together, and the score at which they suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    settings: Settings,
    /// y*: the least score whose phi reaches the threshold, in 65536ths of a deviation.
    crossing: u32,
}

impl Settings {
    /// Checks the settings and finds the score that belongs to the threshold.
    pub fn validate(self) -> Result<Config, ConfigError> {
        if !(Phi::LEAST..=Phi::LARGEST).contains(&self.threshold) {
            return Err(ConfigError::Threshold { threshold: self.threshold });
        }
        if !(2..=MOST_SAMPLES).contains(&self.window) {
            return Err(ConfigError::Window { window: self.window });
        }
        for (key, span) in
            [("first-estimate", self.first_estimate), ("least-deviation", self.least_deviation)]
        {
            if span == LocalSpan::ZERO {
                return Err(ConfigError::Zero { key });
            }
        }
        let spans = [
            ("first-estimate", self.first_estimate),
            ("least-deviation", self.least_deviation),
            ("acceptable-pause", self.acceptable_pause),
        ];
        if let Some((key, span)) = spans.into_iter().find(|(_, span)| *span > LONGEST) {
            return Err(ConfigError::TooLong { key, span });
        }
        let crossing = tail::least_reaching(self.threshold.0 * 1000);
        // Thresholds begin at 1, and phi is 0.3 at the mean: the crossing lies after it.
        Ok(Config { settings: self, crossing: u32::try_from(crossing).unwrap_or(0) })
    }
}

impl Config {
    /// The settings that were validated.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// Suspects when phi reaches a threshold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PhiAccrual {
    config: Config,
    last: LocalTime,
    window: Window,
}

impl PhiAccrual {
    /// Watches from `now` on, with the first estimate for a past.
    pub fn new(config: &Config, now: LocalTime) -> Self {
        let estimate = config.settings.first_estimate.as_nanos();
        let mut window = Window::default();
        window.push(estimate - estimate / 4, config.settings.window);
        window.push(estimate.saturating_add(estimate / 4).min(LONGEST.as_nanos()), config.settings.window);
        Self { config: *config, last: now, window }
    }

    /// The suspicion at `now`, rounded down to a thousandth. `suspects(now)` if and only if this
    /// has reached the threshold.
    pub fn phi(&self, now: LocalTime) -> Phi {
        Phi(tail::millionths(self.score(now)) / 1000)
    }

    /// μ: the mean interval of the window.
    pub fn mean(&self) -> LocalSpan {
        LocalSpan::from_nanos(self.window.mean())
    }

    /// σ: the standard deviation of the window, or the least deviation if that is more.
    pub fn deviation(&self) -> LocalSpan {
        let least = self.config.settings.least_deviation.as_nanos();
        LocalSpan::from_nanos(self.window.deviation().max(least))
    }

    /// How many intervals the window holds.
    pub fn samples(&self) -> usize {
        self.window.samples.len()
    }

    /// By how much the silence exceeds what is expected: `⌊(t - μ - pause) / σ⌋` in 65536ths,
    /// within the table.
    fn score(&self, now: LocalTime) -> Score {
        let silence = i128::from(now.remaining(self.last).as_nanos());
        let excess = silence - i128::from(self.expected());
        let deviation = i128::from(self.deviation().as_nanos());
        let score = (excess * i128::from(DEVIATION)).div_euclid(deviation);
        Score::try_from(score.min(i128::from(tail::LAST))).unwrap_or(Score::MIN)
    }

    fn expected(&self) -> u64 {
        self.window.mean() + self.config.settings.acceptable_pause.as_nanos()
    }

    /// The least silence whose score reaches y*: `⌊a/σ⌋ >= y*` if and only if `a >= y*·σ`.
    fn silence_to_suspect(&self) -> u64 {
        let above = u128::from(self.config.crossing) * u128::from(self.deviation().as_nanos());
        // Below 12 deviations of at most LONGEST, 2^50: nothing here reaches 64 bits.
        self.expected() + u64::try_from(above.div_ceil(u128::from(DEVIATION))).unwrap_or(u64::MAX >> 1)
    }
}

impl Detector for PhiAccrual {
    fn heard(&mut self, now: LocalTime) {
        if now < self.last {
            return;
        }
        let interval = now.remaining(self.last).as_nanos();
        let counted = interval.min(self.silence_to_suspect()).min(LONGEST.as_nanos());
        self.window.push(counted, self.config.settings.window);
        self.last = now;
    }

    fn suspects(&self, now: LocalTime) -> bool {
        self.score(now) >= Score::from(self.config.crossing)
    }

    fn next_crossing(&self, now: LocalTime) -> Option<LocalTime> {
        let at = LocalTime::from_nanos(self.last.as_nanos().checked_add(self.silence_to_suspect())?);
        (at > now).then_some(at)
    }
}

/// The last intervals, in nanoseconds, with their exact sums. Equal if the same intervals came in
/// the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Window {
    samples: VecDeque<u64>,
    sum: u128,
    squares: u128,
}

impl Window {
    /// Takes a sample in, and the oldest out if there were `room` of them.
    fn push(&mut self, sample: u64, room: usize) {
        if self.samples.len() >= room {
            let oldest = u128::from(self.samples.pop_front().unwrap_or(0));
            self.sum -= oldest;
            self.squares -= oldest * oldest;
        }
        self.samples.push_back(sample);
        let sample = u128::from(sample);
        self.sum += sample;
        self.squares += sample * sample;
    }

    /// ⌊Σx/n⌋.
    fn mean(&self) -> u64 {
        u64::try_from(self.sum / self.count()).unwrap_or(u64::MAX)
    }

    /// `⌊√(nΣx² - (Σx)²) / n⌋`. The difference is never negative (Cauchy and Schwarz).
    fn deviation(&self) -> u64 {
        let count = self.count();
        let scaled = count * self.squares - self.sum * self.sum;
        u64::try_from((scaled / (count * count)).isqrt()).unwrap_or(u64::MAX)
    }

    fn count(&self) -> u128 {
        self.samples.len().max(1) as u128
    }
}

/// Why settings were refused. Each names the setting to change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The threshold is outside of the range that the detector can tell apart.
    Threshold {
        /// The threshold that was asked for.
        threshold: Phi,
    },
    /// The window is too small for a deviation, or too large for its sums.
    Window {
        /// The window that was asked for.
        window: usize,
    },
    /// A setting must be more than zero.
    Zero {
        /// The setting.
        key: &'static str,
    },
    /// A setting is longer than any interval that the detector tells from longer ones.
    TooLong {
        /// The setting.
        key: &'static str,
        /// The length that was asked for.
        span: LocalSpan,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threshold { threshold } => {
                write!(f, "threshold {threshold} is not within {} and {}", Phi::LEAST, Phi::LARGEST)
            }
            Self::Window { window } => write!(f, "window {window} is not within 2 and {MOST_SAMPLES}"),
            Self::Zero { key } => write!(f, "{key} must be more than zero"),
            Self::TooLong { key, span } => write!(f, "{key} {span} is longer than {LONGEST}"),
        }
    }
}

impl std::error::Error for ConfigError {}
