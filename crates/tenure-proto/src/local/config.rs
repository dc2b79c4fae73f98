//! The settings of a local machine, and the constants that follow from them: every inequality once,
//! by name.
//!
//! Given are ρ, δ, δmin, Δ, σ and EP. Lengths of real time become readings of a clock and back by
//! [`Drift`], which rounds against the process that gains.
//!
//! | constant | is | why |
//! |---|---|---|
//! | EPa | `EP - σ(1+ρ)` | the alarm between two requests: even woken σ late they are at most EP apart |
//! | EPmax | `EPa/(1-ρ) + σ` | the most real time between two requests of a timely process |
//! | RT | `2Δ(1+ρ)`, along a tree of depth h `(h+1)Δ(1+ρ)` | by then every fast answer has come |
//! | LEAD | `RT + σ(1+ρ)` | a renewal begun so long before the end is done in time, woken late as it may be |
//! | lockTime | derived: the upper bound below | how long a supporter is bound |
//! | expires | derived: three times the lower bound | how long a sign of life counts |
//!
//! With Δ = 15 ms, σ = 30 ms and EP = 50 ms, as the paper measured, the lower bound of lockTime is
//! 60 ms. The upper one is 13 ms (δ = 7.5 ms, δmin = 1 ms): no value lies between them, and the set
//! is refused ([`Inequality::Lock`]). A lock time that is longer than the upper bound is safe; it
//! can be asked for, and costs one lock time more until there is a leader.

use std::fmt;
use std::sync::Arc;

use crate::NodeId;
use crate::detect::fail_aware::Link;
use crate::quorum::MAX_MEMBERS;
use crate::time::{Drift, LocalSpan, Span};

use super::rules::{Rules, Sound};

/// The assumptions about clocks, links and schedulers. Must be the same on every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// ρ: the bound on a clock's rate error. If a real clock is worse, logical partitions may
    /// overlap.
    pub drift: Drift,
    /// g: the tick of the clocks.
    pub tick: LocalSpan,
    /// δ: a message that takes longer has suffered a performance failure.
    pub delay: Span,
    /// δmin: no message between different processes takes less. Zero is always safe.
    pub least_delay: Span,
    /// Δ: a message known to have taken no longer is fast.
    pub fast: Span,
    /// σ: a process that is woken later than this has suffered a performance failure: its
    /// scheduling hole.
    pub hole: Span,
    /// EP: the longest time between two requests of one process, on its clock.
    pub pace: LocalSpan,
}

/// The settings of a machine, not yet checked: see [`Settings::validate`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings<R: Rules = Sound> {
    /// All processes that may take part. Their order by name is the order in which they are
    /// preferred.
    pub members: Vec<NodeId>,
    /// The assumed bounds on clocks, delays and scheduling.
    pub timing: Timing,
    /// The time for which a sign of life counts; `None` for three times the least.
    pub expires: Option<LocalSpan>,
    /// The time for which a supporter is bound; `None` for the longest that does not slow elections
    /// down.
    pub lock: Option<LocalSpan>,
    /// Whether more than half of all members must support a leader: then there is at most one in
    /// the whole system.
    pub majority: bool,
    /// The time after which a leader lets the next have its turn; `None` if it leads for as long as
    /// it can.
    pub turn: Option<Span>,
    /// The number of children of an inner node of the tree along which answers come; `None` if each
    /// member answers the asker itself.
    pub tree: Option<usize>,
    /// The rules. Outside the laboratory there is one choice.
    pub rules: R,
}

/// Settings that hold together, with the constants that follow from them. Cheap to copy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config<R: Rules = Sound>(Arc<Checked<R>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Checked<R: Rules> {
    settings: Settings<R>,
    constants: Constants,
}

/// The constants that follow from the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Constants {
    /// EPa: the time after which a process asks again.
    pub alarm: LocalSpan,
    /// RT: the time after which a request that not all have answered has failed.
    pub round: LocalSpan,
    /// LEAD: the time before the end of its lease at which a leader asks again, at the latest.
    pub lead: LocalSpan,
    /// The time for which a sign of life counts.
    pub expires: LocalSpan,
    /// lockTime: the time for which a supporter is bound.
    pub lock: LocalSpan,
    /// The oldest stamps that still make every message fast between connected processes.
    pub stamps: LocalSpan,
    /// The time within which a stable partition has a leader (T).
    pub kappa_leader: Span,
    /// The time after which a leader is supported by all that are connected to it (BI).
    pub kappa_support: Span,
    /// One number for all settings: processes whose numbers differ do not talk to each other.
    pub fingerprint: u64,
}

impl<R: Rules> Config<R> {
    /// The settings that were validated.
    pub fn settings(&self) -> &Settings<R> {
        &self.0.settings
    }

    /// The constants that follow from the settings.
    pub fn constants(&self) -> &Constants {
        &self.0.constants
    }

    /// The parameters of the datagram layer.
    pub fn link(&self) -> Link {
        let Timing { drift, tick, least_delay, fast, .. } = self.0.settings.timing;
        Link { drift, tick, least_delay, fast }
    }
}

/// The inequalities, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Inequality {
    /// There are 1 to 64 members, each once.
    Members,
    /// `ρ < 1/4`.
    Drift,
    /// `g > 0`.
    Tick,
    /// `δmin <= δ`.
    LeastDelay,
    /// `Δ >= 2δ(1+ρ)/(1-ρ) - δmin + 4ρ·EPmax/(1-ρ)`: else messages between connected processes may
    /// be slow.
    Fast,
    /// `EPa = EP - σ(1+ρ) >= 2δ(1+ρ)`: else a request leaves before the answers to the last one are
    /// there.
    Pace,
    /// `expires >= EP + 2(δ-δmin)(1+ρ)`, along a tree `2EP + ...`: else connected processes drop
    /// out between two requests.
    Expires,
    /// `lockTime(1-2ρ) > (max(2Δ, 4δ) + σ)(1+ρ)`: else a leader cannot renew in time. A renewal
    /// leaves after the answers to the last one, which take 2δ, and its own take 2δ; the paper's 2Δ
    /// alone is too short by up to 2δmin.
    ShortLock,
    /// `(max(2Δ, 4δ) + σ)(1+ρ)/(1-2ρ) < (1-ρ)(EPa/(1+ρ) - (δ-δmin))`: else no lock time is long
    /// enough to lead and short enough to be over by the next request.
    Lock,
    /// A turn lasts at least κ.
    Turn,
    /// An inner node of the tree has two children or more.
    Tree,
}

impl Inequality {
    /// The inequality as a formula.
    pub fn text(self) -> &'static str {
        match self {
            Self::Members => "1 <= members <= 64, each once",
            Self::Drift => "rho < 1/4",
            Self::Tick => "tick > 0",
            Self::LeastDelay => "delta_min <= delta",
            Self::Fast => "Delta >= 2 delta (1+rho)/(1-rho) - delta_min + 4 rho EPmax/(1-rho)",
            Self::Pace => "EP - sigma(1+rho) >= 2 delta (1+rho)",
            Self::Expires => "expires >= EP + 2(delta-delta_min)(1+rho)",
            Self::ShortLock => "lock(1-2rho) > (max(2 Delta, 4 delta) + sigma)(1+rho)",
            Self::Lock => {
                "(max(2 Delta, 4 delta) + sigma)(1+rho)/(1-2rho) < (1-rho)((EP-sigma(1+rho))/(1+rho) - (delta-delta_min))"
            }
            Self::Turn => "turn >= kappa",
            Self::Tree => "tree >= 2",
        }
    }
}

/// Why settings were refused: the inequality, its two sides, and sets nearby that hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The inequality that does not hold.
    pub inequality: Inequality,
    /// Its left side, in nanoseconds or plain numbers.
    pub left: u64,
    /// Its right side.
    pub right: u64,
    /// The nearest set with a longer EP, and a longer Δ if that is needed.
    pub slower: Option<Box<Timing>>,
    /// The nearest set with a shorter σ, if that alone helps.
    pub steadier: Option<Box<Timing>>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inequality, left, right, slower, steadier } = self;
        let plain = matches!(inequality, Inequality::Members | Inequality::Drift | Inequality::Tree);
        write!(f, "{} does not hold: ", inequality.text())?;
        match plain {
            true => write!(f, "{left} against {right}")?,
            false => write!(f, "{} against {}", Span::from_nanos(*left), Span::from_nanos(*right))?,
        }
        if let Some(timing) = slower {
            write!(f, "; it would with EP={} and Delta={}", timing.pace, timing.fast)?;
        }
        if let Some(timing) = steadier {
            write!(f, "{} with sigma={}", if slower.is_some() { ", or" } else { "; it would" }, timing.hole)?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}

/// An inequality that does not hold, with its sides.
type Broken = (Inequality, u64, u64);

fn holds(inequality: Inequality, left: u64, right: u64, holds: bool) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err((inequality, left, right)) }
}

impl<R: Rules> Settings<R> {
    /// Checks every inequality and derives the constants. Members are put in order.
    pub fn validate(mut self) -> Result<Config<R>, Refused> {
        self.members.sort_unstable();
        match self.check() {
            Ok(constants) => Ok(Config(Arc::new(Checked { settings: self, constants }))),
            Err((inequality, left, right)) => {
                let (slower, steadier) = (self.slower().map(Box::new), self.steadier().map(Box::new));
                Err(Refused { inequality, left, right, slower, steadier })
            }
        }
    }

    /// The constants that follow, or the first inequality that does not hold, with its two sides.
    /// Unlike [`Settings::validate`] it does not search for sets nearby that hold.
    pub fn check(&self) -> Result<Constants, (Inequality, u64, u64)> {
        self.check_plain()?;
        let Timing { drift, delay, least_delay, fast, hole, pace, .. } = self.timing;
        let alarm = pace.minus(drift.longest(hole));
        let answers = drift.longest(delay.times(2));
        holds(Inequality::Pace, alarm.as_nanos(), answers.as_nanos(), alarm >= answers)?;
        let needed = self.least_fast();
        holds(Inequality::Fast, fast.as_nanos(), needed.as_nanos(), fast >= needed)?;
        let jitter = drift.longest(delay.minus(least_delay).times(2));
        let paces = if self.tree.is_some() { pace.times(2) } else { pace };
        let back = paces.plus(jitter);
        let forth = drift.longest(self.timing.longest_pace().plus(delay.minus(least_delay)));
        let least = back.max(forth).plus(self.timing.tick);
        let expires = self.expires.unwrap_or(least.times(3));
        holds(Inequality::Expires, expires.as_nanos(), least.as_nanos(), expires >= least)?;
        let round = drift.longest(fast.times(self.hops()));
        let lead = round.plus(drift.longest(hole)).plus(self.timing.tick);
        // A renewal follows the last success, which takes as long as answers do, and takes as long
        // again.
        let twice = drift.longest(delay.times(2 * self.hops()).plus(hole)).plus(self.timing.tick);
        let shortest = lead.max(twice);
        let longest = self.timing.longest_lock();
        let lock = self.lock.unwrap_or(longest);
        if self.lock.is_none() {
            let least =
                lead.as_nanos().saturating_mul(1_000_000) / u64::from(1_000_000 - 2 * drift.as_ppm()).max(1);
            holds(Inequality::Lock, least, longest.as_nanos(), drift.within(longest) > lead)?;
        }
        let within = drift.within(lock);
        holds(Inequality::ShortLock, within.as_nanos(), shortest.as_nanos(), within > shortest)?;
        let (kappa_leader, kappa_support) = self.kappas(expires, lock, lock > longest);
        let kappa = kappa_leader.max(kappa_support);
        let turn = self.turn.unwrap_or(kappa);
        holds(Inequality::Turn, turn.as_nanos(), kappa.as_nanos(), turn >= kappa)?;
        let fingerprint = self.fingerprint(expires, lock);
        let stamps = drift.age(fast.minus(self.timing.freshest()));
        Ok(Constants { alarm, round, lead, expires, lock, stamps, kappa_leader, kappa_support, fingerprint })
    }

    fn check_plain(&self) -> Result<(), Broken> {
        let members = self.members.len();
        let each_once = self.members.windows(2).all(|pair| pair[0] != pair[1]);
        let few = (1..=MAX_MEMBERS).contains(&members) && each_once;
        holds(Inequality::Members, members as u64, MAX_MEMBERS as u64, few)?;
        let Timing { drift, tick, delay, least_delay, .. } = self.timing;
        holds(Inequality::Drift, u64::from(drift.as_ppm()), 250_000, drift.as_ppm() < 250_000)?;
        holds(Inequality::Tick, tick.as_nanos(), 0, tick > LocalSpan::ZERO)?;
        holds(Inequality::LeastDelay, least_delay.as_nanos(), delay.as_nanos(), least_delay <= delay)?;
        let arity = self.tree.unwrap_or(2);
        holds(Inequality::Tree, arity as u64, 2, arity >= 2)
    }

    /// The least Δ with which all is fast between connected processes. Stamps are as old as the
    /// last request at most; along a tree the asker hears most members only now and then, and its
    /// stamps of them are older.
    pub fn least_fast(&self) -> Span {
        self.timing.least_fast(if self.tree.is_some() { 2 } else { 1 })
    }

    /// How many fast messages follow one another from a request to the last answer.
    fn hops(&self) -> u32 {
        self.tree.map_or(2, |arity| super::collate::depth(self.members.len(), arity) + 1).max(2)
    }

    /// `κ_T = X + σ + 2EPmax + 2δ` with `X = max(expires, lockTime)/(1-ρ)`: outsiders are forgotten
    /// and their locks gone; the first request may find cold datagrams, the second is a probe's
    /// successor, and answers take 2δ (along a tree (h+1)Δ, as do the last signs of life of
    /// outsiders, and one request more). A lock time beyond its upper bound may cost itself once
    /// more. `κ_BI = (expires + lockTime(1-2ρ))/(1-ρ) + 2δ`.
    fn kappas(&self, expires: LocalSpan, lock: LocalSpan, long: bool) -> (Span, Span) {
        let Timing { drift, delay, hole, fast, .. } = self.timing;
        let pace = self.timing.longest_pace();
        let forgotten = drift.longest_real(expires.max(lock));
        let answered = match self.tree {
            Some(_) => fast.times(2 * self.hops()).plus(pace),
            None => delay.times(2),
        };
        let leader = forgotten.plus(hole).plus(pace.times(2)).plus(answered);
        let late = if long { delay.plus(drift.longest_real(lock)) } else { Span::from_nanos(0) };
        let support = drift.longest_real(expires.plus(drift.within(lock))).plus(delay.times(2));
        (leader.plus(late), support)
    }

    /// All that must be the same everywhere, mixed into one number (FNV-1a).
    fn fingerprint(&self, expires: LocalSpan, lock: LocalSpan) -> u64 {
        let Timing { drift, tick, delay, least_delay, fast, hole, pace } = self.timing;
        let members = self.members.iter().map(|node| node.0);
        let numbers = [
            u64::from(drift.as_ppm()),
            tick.as_nanos(),
            delay.as_nanos(),
            least_delay.as_nanos(),
            fast.as_nanos(),
            hole.as_nanos(),
            pace.as_nanos(),
            expires.as_nanos(),
            lock.as_nanos(),
            u64::from(self.majority),
            self.turn.map_or(0, Span::as_nanos),
            self.tree.unwrap_or(0) as u64,
        ];
        let bytes = numbers.into_iter().chain(members).flat_map(u64::to_le_bytes);
        bytes.fold(0xcbf2_9ce4_8422_2325, |mix, byte| (mix ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// Whether the set would hold with these assumptions, and derived constants.
    fn would_hold(&self, timing: Timing) -> bool {
        let derived = Self { timing, expires: None, lock: None, ..self.clone() };
        derived.check().is_ok()
    }

    /// The nearest set with a longer EP, to a millisecond, and the Δ that it needs.
    fn slower(&self) -> Option<Timing> {
        let with = |millis: u64| {
            let timing = Timing { pace: LocalSpan::from_nanos(millis * 1_000_000), ..self.timing };
            let needed = Self { timing, ..self.clone() }.least_fast();
            Timing { fast: timing.fast.max(needed), ..timing }
        };
        let start = self.timing.pace.as_nanos().div_ceil(1_000_000).max(1);
        let enough = (0..24).map(|double| start << double).find(|millis| self.would_hold(with(*millis)))?;
        let (mut low, mut high) = (start, enough);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.would_hold(with(middle)) { high = middle } else { low = middle + 1 }
        }
        Some(with(high))
    }

    /// The nearest set with a shorter σ, to a tenth of a millisecond.
    fn steadier(&self) -> Option<Timing> {
        let with = |tenths: u64| Timing { hole: Span::from_nanos(tenths * 100_000), ..self.timing };
        if !self.would_hold(with(0)) {
            return None;
        }
        let (mut low, mut high) = (0, self.timing.hole.as_nanos() / 100_000);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.would_hold(with(middle)) { low = middle } else { high = middle - 1 }
        }
        Some(with(low))
    }
}

impl Timing {
    /// EPmax.
    fn longest_pace(self) -> Span {
        let alarm = self.pace.minus(self.drift.longest(self.hole));
        self.drift.longest_real(alarm.plus(self.tick)).plus(self.hole)
    }

    /// The bound computed where both messages take δ and stamps have no age. Each of the four
    /// readings may be a tick old.
    fn freshest(self) -> Span {
        let round = self.drift.longest_real(self.drift.longest(self.delay.times(2)));
        let ticks = self.drift.longest_real(self.tick.times(4));
        round.minus(self.least_delay).plus(ticks)
    }

    /// The least Δ where stamps may be so many EPmax old.
    fn least_fast(self, paces: u32) -> Span {
        let oldest = self.drift.longest(self.longest_pace().times(paces));
        self.freshest().plus(self.drift.worsened(oldest))
    }

    /// The longest lock that is over when the next request comes: `(1-ρ)(EPa/(1+ρ) - (δ-δmin))`,
    /// rounded down. The lock itself is a tick longer.
    fn longest_lock(self) -> LocalSpan {
        let alarm = self.pace.minus(self.drift.longest(self.hole));
        let apart = self.drift.least_real(alarm).minus(self.delay.minus(self.least_delay));
        self.drift.shortest(apart).minus(self.tick.times(2))
    }
}
