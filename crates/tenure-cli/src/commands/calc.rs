//! `tenure calc`: what a lease costs, before anybody waits for it.
//!
//! The leader asked at `Start` for a lease of δ. It leads until E, its grantors are bound until F;
//! everything follows from the two, and from when it renews:
//!
//! ```text
//!   Start ├───────── (1-ρ)·δ, by the leader's clock ────────┤ E
//!         ├──────────── (1+ρ)·δ, by each grantor's clock ──────────────┤ F ├─ rounds ─┤ somebody else leads
//!         ├───── half ─────┤ renews                                                    at worst δ·(1+ρ)/(1-ρ) later
//! ```
//!
//! The arithmetic is that of the machine (`tenure_proto::time`), with its rounding.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tenure_proto::LocalTime;
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};

use crate::arguments::Common;
use crate::failure::{Failure, messages};
use crate::output::{self, Answer, grouped, pairs, readable};
use crate::settings::{Settings, length};

/// Rounds after F, at worst: the dead leader's last renewal was half a round on its way; a
/// candidate asks one grantor too early and is refused; then it is granted.
const ROUNDS: u32 = 3;

/// A candidate that is no member lets members go first, a step each, and draws its start in a
/// window. While it is refused again and again, because somebody leads, the window grows to this
/// many times its length.
const WIDEST_WINDOW: u32 = 8;

/// How often every process asks each member for its clock, in seconds.
const CLOCK_ASKED_EVERY: f64 = 10.0;

/// How many tries to renew `tenure run` wants to survive before it begins to stop its command.
const TRIES: u32 = 3;

/// The time that `tenure run` leaves between KILL and the end of the lease, unless it is told
/// otherwise.
const KILL_MARGIN: Duration = Duration::from_millis(200);

/// Compute what a lease costs: failover, messages, silence after a restart.
///
/// Values without a flag come from the configuration, if there is one, otherwise from the
/// defaults.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure calc                                          for the configuration found here
  tenure calc --lease 2s --drift 1000ppm --rtt 5ms     three nodes, clocks good to a thousandth
  tenure calc --lease 500ms --drift 10% --groups 200   two hundred leaders at once
  tenure calc --lease 4s --grace 1s                    does the grace of `tenure run` fit?
  tenure calc --lease 2s -o json | jq .failover.worst_ms

JSON: lengths are in milliseconds (_ms). given: what was computed with; usable_lease_ms,
renewal_every_ms; failover and failover_outside (usual_ms, worst_ms): candidates that are
members, and those of `tenure run`; handover and handover_outside (the same); messages and
messages_outside (per_renewal, per_second); restart_silence_ms; grace (longest_ms, fits,
lease_for_it_ms); clock_bound_cost (failover_ms, lease_ms).

Exit codes: 0 computed, 2 a flag makes no sense, 78 the configuration cannot be read.")]
pub(crate) struct Calc {
    /// δ: how long a lease lasts [default: 2s]
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    lease: Option<Duration>,
    /// ρ: how far clocks' rates may be off: 1000ppm, 10%, 0.1 [default: 10%]
    #[arg(long, value_name = "RHO", value_parser = drift, conflicts_with = "skew")]
    drift: Option<Drift>,
    /// Δ, instead of ρ: by how much synchronised clocks may differ
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    skew: Option<Duration>,
    /// The round trip between nodes
    #[arg(long, value_name = "LENGTH", value_parser = length, default_value = "1ms")]
    rtt: Duration,
    /// How many members grant [default: 3]
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// How many groups have a leader
    #[arg(long, value_name = "N", default_value_t = 1)]
    groups: u32,
    /// δ_max: the longest lease that a member grants [default: 5s]
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    longest_lease: Option<Duration>,
    /// How long to wait for an answer before asking again [default: 50ms]
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    retry: Option<Duration>,
    /// The window in which candidates that are no members spread out [default: 200ms]
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    window: Option<Duration>,
    /// How long the command of `tenure run` may take to stop
    #[arg(long, value_name = "LENGTH", value_parser = length, default_value = "1s")]
    grace: Duration,
}

impl Calc {
    /// Computes.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let settings = Settings::find_any(common.config.as_deref())?;
        let given = self.given(settings.as_ref())?;
        let figures = Figures::of(&given);
        Ok(Answer::new(common.output, || figures.json(&given), || figures.text(&given)))
    }

    fn given(&self, settings: Option<&Settings>) -> Result<Given, Failure> {
        let file = File(settings);
        let skew = match self.drift {
            Some(_) => None,
            None => file.is_skewed().then(|| file.length("cluster.skew")).transpose()?.flatten(),
        };
        let bound = match (self.skew.or(skew), self.drift) {
            (Some(skew), None) => Bound::Skew(LocalSpan::from_nanos(nanos(skew))),
            (_, Some(drift)) => Bound::Drift(drift),
            (None, None) => Bound::Drift(file.drift()?),
        };
        let or = |flag: Option<Duration>, key: &str, default: u64| -> Result<Duration, Failure> {
            let file = if flag.is_none() { file.length(key)? } else { None };
            Ok(flag.or(file).unwrap_or(Duration::from_millis(default)))
        };
        let given = Given {
            from: settings.map(|settings| settings.path().display().to_string()),
            clocks: Clockwork { bound, tick: LocalSpan::from_nanos(1) },
            lease: or(self.lease, "lease.length", 2000)?,
            longest_lease: or(self.longest_lease, "cluster.longest_lease", 5000)?,
            retry: or(self.retry, "lease.retry", 50)?,
            window: or(self.window, "lease.window", 200)?,
            rtt: self.rtt,
            grace: self.grace,
            nodes: self.nodes.or_else(|| file.members()).unwrap_or(3),
            groups: self.groups,
        };
        given.check()
    }
}

/// `1000ppm`, `10%` or `0.1`.
fn drift(text: &str) -> Result<Drift, String> {
    let wrong = || format!("'{text}' is no bound on a clock's rate: write 1000ppm, 0.1% or 0.001");
    let (number, millionths) = match (text.strip_suffix("ppm"), text.strip_suffix('%')) {
        (Some(number), _) => (number, 1.0),
        (_, Some(number)) => (number, 1e4),
        (None, None) => (text, 1e6),
    };
    let ppm = number.trim().parse::<f64>().map_err(|_| wrong())? * millionths;
    if !(0.0..1e6).contains(&ppm) {
        return Err(format!(
            "'{text}' is not below 1: a clock that is off by all of it stands still; {}",
            wrong()
        ));
    }
    // Rounded up: a bound may be wider than was asked for, never narrower.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to a million")]
    Drift::from_ppm((ppm - 1e-6).ceil() as u32).ok_or_else(wrong)
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

fn span(length: Duration) -> Span {
    Span::from_nanos(nanos(length))
}

/// The settings of the file, if there is one. Read by itself: to compute, nobody needs the key.
struct File<'a>(Option<&'a Settings>);

impl File<'_> {
    fn length(&self, key: &str) -> Result<Option<Duration>, Failure> {
        let Some((settings, value)) = self.0.and_then(|settings| Some((settings, settings.get(key)?))) else {
            return Ok(None);
        };
        let wrong = |flaw: &str| messages::calc_setting_refused(settings.path().display(), key, flaw);
        let text = value.as_str().ok_or_else(|| wrong("write a length of time, as in \"250ms\""))?;
        length(text).map(Some).map_err(|what| wrong(&what))
    }

    fn is_skewed(&self) -> bool {
        let clock = self.0.and_then(|settings| settings.get("cluster.clock"));
        clock.is_some_and(|clock| clock.as_str() == Some("skew"))
    }

    fn drift(&self) -> Result<Drift, Failure> {
        let value = self.0.and_then(|settings| settings.get("cluster.drift_ppm"));
        let ppm =
            value.map_or(Some(100_000), |value| value.as_integer().and_then(|ppm| u32::try_from(ppm).ok()));
        ppm.and_then(Drift::from_ppm).ok_or_else(|| {
            messages::setting_refused(
                "cluster.drift_ppm",
                "write parts per million below 1000000, as in 1000",
            )
        })
    }

    fn members(&self) -> Option<u32> {
        let members = self.0?.get("cluster.members")?.as_array()?.len();
        u32::try_from(members).ok().filter(|members| *members > 0)
    }
}

/// The inputs of the computation.
struct Given {
    from: Option<String>,
    clocks: Clockwork,
    lease: Duration,
    longest_lease: Duration,
    retry: Duration,
    window: Duration,
    rtt: Duration,
    grace: Duration,
    nodes: u32,
    groups: u32,
}

impl Given {
    fn check(self) -> Result<Self, Failure> {
        if self.nodes == 0 {
            return Err(messages::calc_no_nodes());
        }
        if self.lease > self.longest_lease {
            return Err(messages::calc_lease_too_long(readable(self.lease), readable(self.longest_lease)));
        }
        if self.rtt * 2 >= self.usable(self.lease) {
            return Err(messages::calc_lease_too_short(readable(self.lease), readable(self.rtt)));
        }
        Ok(self)
    }

    /// For how long its holder may count on a lease.
    fn usable(&self, lease: Duration) -> Duration {
        Duration::from_nanos(self.clocks.usable(span(lease)).as_nanos())
    }

    /// How long grantors are bound, by their own clocks.
    fn bound(&self) -> Duration {
        let start = LocalTime::ZERO;
        Duration::from_nanos(self.clocks.grant_end(start, start, span(self.lease)).as_nanos())
    }

    /// How long that may be in real time.
    fn bound_at_worst(&self) -> Duration {
        bound_at_worst(self.clocks, self.lease)
    }

    fn silence(&self) -> Duration {
        let end = self.clocks.silence_end(LocalTime::ZERO, span(self.longest_lease));
        Duration::from_nanos(end.as_nanos())
    }
}

/// How long grantors are bound to the holder of a lease at most, in real time.
pub(crate) fn bound_at_worst(clocks: Clockwork, lease: Duration) -> Duration {
    match clocks.bound {
        Bound::Drift(_) => Duration::from_nanos(clocks.lease_for(span(lease).nominal()).as_nanos()),
        Bound::Skew(skew) => lease + Duration::from_nanos(skew.times(2).as_nanos()),
    }
}

/// From the usual to the worst.
struct Range {
    usual: Duration,
    worst: Duration,
}

/// The results.
struct Figures {
    usable: Duration,
    renewal: Duration,
    failover: Range,
    outside: Range,
    handover: Range,
    handover_outside: Range,
    silence: Duration,
    longest_grace: Duration,
    lease_for_grace: Duration,
    cost_in_failover: Duration,
    cost_in_lease: Duration,
}

impl Figures {
    fn of(given: &Given) -> Self {
        let usable = given.usable(given.lease);
        // As the machine does: after half of what its holder may count on, from the start of the
        // last run.
        let renewal = usable / 2;
        // A leader dies, on average, halfway between two renewals.
        let usual = given.bound().saturating_sub(renewal / 2) + given.rtt + given.rtt / 2;
        let worst = given.bound_at_worst() + given.rtt * ROUNDS;
        let window = given.window * WIDEST_WINDOW;
        let turns = given.retry * given.nodes;
        let needed = given.grace + KILL_MARGIN + given.retry.max(given.rtt) * TRIES;
        let spare = KILL_MARGIN + given.retry.max(given.rtt) * TRIES;
        Self {
            usable,
            renewal,
            failover: Range { usual, worst },
            outside: Range { usual: usual + window / 2, worst: worst + turns.max(window) },
            handover: Range { usual: given.rtt * 2, worst: given.rtt * ROUNDS },
            handover_outside: Range {
                usual: given.rtt * 2 + turns + given.window / 2,
                worst: given.rtt * ROUNDS + turns + window,
            },
            silence: given.silence(),
            longest_grace: renewal.saturating_sub(spare),
            lease_for_grace: lease_with_usable(given, needed * 2),
            cost_in_failover: given.bound_at_worst().saturating_sub(given.lease),
            cost_in_lease: given.lease.saturating_sub(usable),
        }
    }

    fn fits(&self, given: &Given) -> bool {
        given.grace <= self.longest_grace
    }

    /// A leader asks everybody but itself, and everybody answers.
    fn per_renewal(given: &Given, outside: bool) -> u32 {
        2 * if outside { given.nodes } else { given.nodes - 1 }
    }

    fn per_second(&self, given: &Given, outside: bool) -> f64 {
        f64::from(Self::per_renewal(given, outside)) * f64::from(given.groups) / self.renewal.as_secs_f64()
    }

    /// Members ask each other for their clocks.
    fn clock_checks(given: &Given) -> f64 {
        f64::from(2 * given.nodes * (given.nodes - 1)) / CLOCK_ASKED_EVERY
    }

    fn json(&self, given: &Given) -> Value {
        let (drift, skew) = match given.clocks.bound {
            Bound::Drift(drift) => (Some(drift.as_ppm()), None),
            Bound::Skew(skew) => (None, Some(millis(Duration::from_nanos(skew.as_nanos())))),
        };
        let range =
            |range: &Range| json!({ "usual_ms": millis(range.usual), "worst_ms": millis(range.worst) });
        let messages = |outside| {
            let (renewal, second) = (Self::per_renewal(given, outside), self.per_second(given, outside));
            json!({ "per_renewal": renewal, "per_second": rounded(second) })
        };
        json!({
            "given": {
                "from": given.from,
                "lease_ms": millis(given.lease),
                "drift_ppm": drift,
                "skew_ms": skew,
                "rtt_ms": millis(given.rtt),
                "nodes": given.nodes,
                "groups": given.groups,
                "longest_lease_ms": millis(given.longest_lease),
                "retry_ms": millis(given.retry),
                "window_ms": millis(given.window),
                "grace_ms": millis(given.grace),
            },
            "usable_lease_ms": millis(self.usable),
            "renewal_every_ms": millis(self.renewal),
            "failover": range(&self.failover),
            "failover_outside": range(&self.outside),
            "handover": range(&self.handover),
            "handover_outside": range(&self.handover_outside),
            "messages": messages(false),
            "messages_outside": messages(true),
            "clock_checks_per_second": rounded(Self::clock_checks(given)),
            "restart_silence_ms": millis(self.silence),
            "grace": {
                "longest_ms": millis(self.longest_grace),
                "fits": self.fits(given),
                "lease_for_it_ms": millis(self.lease_for_grace),
            },
            "clock_bound_cost": {
                "failover_ms": millis(self.cost_in_failover),
                "lease_ms": millis(self.cost_in_lease),
            },
        })
    }

    fn text(&self, given: &Given) -> String {
        let range =
            |range: &Range| format!("{} usually, {} at worst", readable(range.usual), readable(range.worst));
        let messages = |outside| {
            let second = self.per_second(given, outside);
            format!("{second:.1} a second, {} a renewal", Self::per_renewal(given, outside))
        };
        let grace = if self.fits(given) {
            format!("up to {}; {} fits", readable(self.longest_grace), readable(given.grace))
        } else {
            let (longest, lease) = (readable(self.longest_grace), readable(self.lease_for_grace));
            format!("up to {longest}; {} does not fit: it needs a lease of {lease}", readable(given.grace))
        };
        let rows = [
            ("leads", format!("{} of each lease, by its own clock", readable(self.usable))),
            ("renews", format!("every {}", readable(self.renewal))),
            ("failover", format!("{} (kill -9 of a leader; candidates are members)", range(&self.failover))),
            ("", format!("{} (candidates are not, as with `tenure run`)", range(&self.outside))),
            (
                "hand-over",
                format!("{} (resign, a clean stop; candidates are members)", range(&self.handover)),
            ),
            ("", format!("{} (candidates are not)", range(&self.handover_outside))),
            ("messages", format!("{} (a member leads)", messages(false))),
            ("", format!("{} (it is no member, as with `tenure run`)", messages(true))),
            (
                "",
                format!(
                    "{:.1} a second more, by which members watch each other's clocks",
                    Self::clock_checks(given)
                ),
            ),
            (
                "silence",
                format!("{} of a member after a reboot; none after a restart", readable(self.silence)),
            ),
            ("run --grace", grace),
            (
                "clock bound",
                format!(
                    "costs {} of the worst failover, and {} of each lease",
                    readable(self.cost_in_failover),
                    readable(self.cost_in_lease)
                ),
            ),
        ];
        format!("{}\n{}", given.headline(), pairs(rows))
    }
}

impl Given {
    fn headline(&self) -> String {
        let bound = match self.clocks.bound {
            Bound::Drift(drift) => format!("clocks off by at most {}", output::drift(drift.as_ppm())),
            Bound::Skew(skew) => {
                format!("clocks at most {} apart", readable(Duration::from_nanos(skew.as_nanos())))
            }
        };
        let from = self.from.as_ref().map(|from| format!(" ({from})")).unwrap_or_default();
        format!(
            "lease {}, {bound}, round trip {}, {} nodes, {} groups{from}",
            readable(self.lease),
            readable(self.rtt),
            self.nodes,
            grouped(self.groups.into())
        )
    }
}

/// The shortest lease that gives its holder `usable` time.
fn lease_with_usable(given: &Given, usable: Duration) -> Duration {
    match given.clocks.bound {
        Bound::Drift(drift) => {
            Duration::from_nanos(drift.longest_real(LocalSpan::from_nanos(nanos(usable))).as_nanos())
        }
        Bound::Skew(skew) => usable + Duration::from_nanos(skew.as_nanos()),
    }
}

/// With a thousandth, so that JSON stays readable.
fn millis(length: Duration) -> f64 {
    rounded(length.as_secs_f64() * 1000.0)
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::run::timing::Timing;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        calc: Calc,
    }

    #[test]
    fn a_bound_may_be_written_in_three_ways() {
        let ppm = |text| drift(text).map(Drift::as_ppm);
        assert_eq!([ppm("1000ppm"), ppm("0.1%"), ppm("0.001")], [Ok(1000), Ok(1000), Ok(1000)]);
        assert_eq!([ppm("10%"), ppm("0.1"), ppm("0")], [Ok(100_000), Ok(100_000), Ok(0)]);
        assert_eq!(ppm("0.5ppm"), Ok(1), "a bound is rounded up");
        for wrong in ["1000", "1", "100%", "-1ppm", "fast", "NaN", ""] {
            assert!(ppm(wrong).unwrap_err().contains("ppm"), "{wrong}");
        }
    }
    #[test]
    fn the_lease_that_a_grace_needs_is_the_one_that_run_asks_for() {
        for (drift, retry, grace) in
            [("10%", "50ms", "1s"), ("1000ppm", "20ms", "300ms"), ("0", "50ms", "10s")]
        {
            let words =
                ["calc", "--longest-lease", "60s", "--drift", drift, "--retry", retry, "--grace", grace];
            let calc = Line::try_parse_from(words).unwrap().calc;
            let given = calc.given(None).unwrap();
            let key = tenure::Key::Cluster(tenure::ClusterKey::generate());
            let mut config = tenure::Config::new("a", key);
            let Bound::Drift(ppm) = given.clocks.bound else { panic!("it is a bound on drift") };
            config.bound = tenure::ClockBound::Drift { ppm: ppm.as_ppm() };
            (config.retry, config.longest_lease) = (given.retry, given.longest_lease);
            let run = Timing { grace: given.grace, margin: KILL_MARGIN }.shortest_lease(&config);
            let computed = Figures::of(&given).lease_for_grace;
            let rounded = run.checked_sub(computed).expect("run rounds up");
            assert!(rounded < Duration::from_millis(10), "{run:?}, computed {computed:?}");
        }
    }
}
