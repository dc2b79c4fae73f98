//! The constants: chosen from what was measured of the machine, and beside them those of the paper.
//!
//! EP is the least that δ and σ allow and [`GAP`] more. A leader renews no later than LEAD before
//! its lease ends, so that GAP is about the time between two of its rounds: rounds do not run into
//! each other, and five thousand of them take half a minute.

use std::time::Duration;

use tenure::Locality;
use tenure_proto::NodeId;
use tenure_proto::local::{Config, Constants, Refused, Settings, Sound, Timing};
use tenure_proto::time::{Drift, LocalSpan, Span};

use crate::holes::Machine;

const GAP: Duration = Duration::from_millis(5);

/// The settings of the members, and the constants that follow.
pub(crate) struct Plan {
    pub(crate) how: Locality,
    config: Config,
}

fn span(length: Duration) -> Span {
    Span::from_nanos(u64::try_from(length.as_nanos()).expect("it is short"))
}

fn settings(timing: Timing, members: usize, tree: Option<usize>) -> Settings {
    Settings {
        members: (0..members as u64).map(NodeId).collect(),
        timing,
        expires: None,
        lock: None,
        majority: false,
        turn: None,
        tree,
        rules: Sound,
    }
}

impl Plan {
    pub(crate) fn choose(machine: Machine, members: usize, tree: Option<usize>) -> Self {
        let mut how = Locality::default();
        (how.hole, how.delay, how.tree) = (machine.hole, machine.delay, tree);
        let timing = Timing {
            drift: Drift::from_ppm(how.drift_ppm).expect("it is below one"),
            tick: LocalSpan::from_nanos(1),
            delay: span(how.delay),
            least_delay: Span::from_nanos(0),
            fast: span(how.delay),
            hole: span(how.hole),
            pace: LocalSpan::from_nanos(1),
        };
        let slower = |timing| match settings(timing, members, tree).validate() {
            Ok(config) => config.settings().timing,
            Err(refused) => *refused.slower.expect("a longer EP always helps"),
        };
        let least = slower(timing);
        let timing = slower(Timing { pace: least.pace.plus(span(GAP).nominal()), ..least });
        let config = settings(timing, members, tree).validate().expect("it was said to hold");
        how.pace = Some(Duration::from_nanos(timing.pace.as_nanos()));
        how.fast = Some(Duration::from_nanos(timing.fast.as_nanos()));
        Self { how, config }
    }

    pub(crate) fn pace(&self) -> Duration {
        self.how.pace.unwrap_or_default()
    }

    /// Δ.
    pub(crate) fn fast(&self) -> Duration {
        self.how.fast.unwrap_or_default()
    }

    pub(crate) fn expires(&self) -> Duration {
        Duration::from_nanos(self.config.constants().expires.as_nanos())
    }

    /// κ_T.
    pub(crate) fn bound(&self) -> Duration {
        Duration::from_nanos(self.config.constants().kappa_leader.as_nanos())
    }
}

const HEAD: &str =
    "| constants | δ | Δ | σ | EP | lockTime | expires | κ_T | κ_BI |\n|---|---|---|---|---|---|---|---|---|";

/// As a table: the paper's, which are refused; the paper's with the lock time that they need; a set
/// that holds with the paper's σ; and those that are measured with here.
pub(crate) fn table(plan: &Plan) -> String {
    let paper = Timing {
        drift: Drift::from_ppm(100).expect("it is below one"),
        tick: LocalSpan::from_nanos(1),
        delay: Span::from_nanos(7_500_000),
        least_delay: Span::from_nanos(1_000_000),
        fast: Span::from_nanos(15_000_000),
        hole: Span::from_nanos(30_000_000),
        pace: LocalSpan::from_nanos(50_000_000),
    };
    let refused = settings(paper, 8, None).validate().expect_err("no lock time fits");
    let Refused { left, right, .. } = refused;
    let expires = Some(LocalSpan::from_nanos(230_000_000));
    let with = |pace: u64, lock: Option<u64>| {
        let timing = Timing { pace: LocalSpan::from_nanos(pace * 1_000_000), ..paper };
        let lock = lock.map(|lock| LocalSpan::from_nanos(lock * 1_000_000));
        Settings { expires, lock, ..settings(timing, 8, None) }.validate().expect("it holds")
    };
    let [longer, slower] = [with(50, Some(61)), with(100, None)];
    let none = format!("none: at least {}, at most {} ms", length(left), length(right));
    [
        HEAD.to_owned(),
        format!("| 1999: refused | 7.5 | 15 | 30 | 50 | {none} | 230 | | |"),
        line("1999, bound for longer than EP", &longer),
        line("1999, asking half as often", &slower),
        line("here", &plan.config),
    ]
    .join("\n")
}

fn line(name: &str, config: &Config) -> String {
    let Timing { delay, fast, hole, pace, .. } = config.settings().timing;
    let Constants { lock, expires, kappa_leader, kappa_support, .. } = *config.constants();
    let numbers = [
        delay.as_nanos(),
        fast.as_nanos(),
        hole.as_nanos(),
        pace.as_nanos(),
        lock.as_nanos(),
        expires.as_nanos(),
        kappa_leader.as_nanos(),
        kappa_support.as_nanos(),
    ];
    format!("| {name} | {} |", numbers.map(length).join(" | "))
}

/// In milliseconds, with a tenth where there is one.
fn length(nanos: u64) -> String {
    let tenths = nanos.div_ceil(100_000);
    if tenths.is_multiple_of(10) {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}
