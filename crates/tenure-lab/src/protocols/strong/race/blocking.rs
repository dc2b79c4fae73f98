//! How long a request that was late on its way blocks others: OQwBD against OQwBS (Nerio, section
//! 5).
//!
//! A process p asks for a lease of δ and crashes. Its request is on its way for a time d, then a
//! grantor q gets it and promises its support, to nobody's use. With bounded drift q counts from
//! the arrival: `F = T + (1+ρ)δ`, however late that is. With bounded skew it counts from the start:
//! `F = Start + δ + Δ`, and a request that is late enough binds nobody.
//!
//! ```text
//!   p   Start ├── would lead ──┤ gives up
//!   q             d ───────────────────→ arrives ├──────── bound (drift) ────────┤ free
//!   r                                            │←──────── blocked ────────────→│
//!                              │←───────────────── in vain ─────────────────────→│
//! ```
//!
//! Nothing is reckoned by a formula: the machine that nodes run is given the request, and another
//! candidate r asks q at one instant after the other, each time in a copy of the world, until the
//! first at which q grants. That instant is found to the nanosecond.

use tenure_proto::detect::weak::Choice;
use tenure_proto::quorum::Quorums;
use tenure_proto::strong::{Command, Config, Event, Failure, Nerio, Settings, Succession};
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};
use tenure_proto::{GroupId, NodeId, Protocol};

use crate::catalogue::Error;
use crate::draw::plot::{Axis, Panel, Plot, Scale, Series};
use crate::protocols::strong::mutants::Broken;
use crate::race::{Cell, Column, Race, Sheet, Shown, length};
use crate::random::Scripted;
use crate::world::{Action, Clock, Flaws, FlightId, Foundation, RealTime, Stretch, World, clock::MILLI};

/// δ.
const LEASE: u64 = 1_000 * MILLI;

/// The steps in which d grows, from nothing to three leases. The drawing shows every one.
const STEP: u64 = 10 * MILLI;
const STEPS: u64 = 300;

/// Every how many steps there is a row, and every how many people see one.
const ROWS: u64 = 5;
const SHOWN: u64 = 25;

const GROUP: GroupId = GroupId(0);
/// p: asked, and crashed.
const ASKER: NodeId = NodeId(0);
/// r: wants to lead now.
const OTHER: NodeId = NodeId(1);
/// q: the only grantor.
const GRANTOR: NodeId = NodeId(2);

/// The assumptions about the clocks, and how they keep to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    bound: Bound,
    /// Whether the clocks are as far off as the bound allows, p's fast or ahead and q's slow or
    /// behind; else they are exact.
    worst: bool,
}

/// The outcome of one delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measured {
    /// When p gives up: its lease would have been over.
    gives_up: RealTime,
    /// When the request arrives.
    arrives: RealTime,
    /// The first instant, from the arrival on, at which q grants another's request.
    free: RealTime,
}

impl Measured {
    /// From the arrival of the late request to the first instant at which somebody else is granted.
    fn blocked(self) -> u64 {
        self.free.0 - self.arrives.0
    }

    /// The same, from the instant at which the asker gave up; nothing if nobody is blocked at all.
    fn in_vain(self) -> u64 {
        if self.blocked() == 0 { 0 } else { self.free.0.saturating_sub(self.gives_up.0) }
    }
}

/// All cases, in the order of the table.
fn cases() -> Vec<Case> {
    let drifts = [100_000, 1_000].into_iter().filter_map(Drift::from_ppm).map(Bound::Drift);
    let skews = [100, 10].into_iter().map(|millis| Bound::Skew(LocalSpan::from_nanos(millis * MILLI)));
    let bounds: Vec<Bound> = drifts.chain(skews).collect();
    let both = |bound: &Bound| [true, false].map(|worst| Case { bound: *bound, worst });
    bounds.iter().flat_map(both).collect()
}

impl Case {
    fn protocol(self) -> &'static str {
        match self.bound {
            Bound::Drift(_) => "nerio-drift",
            Bound::Skew(_) => "nerio-skew",
        }
    }

    fn value(self) -> String {
        match self.bound {
            Bound::Drift(drift) => format!("{}ppm", drift.as_ppm()),
            Bound::Skew(skew) => skew.to_string(),
        }
    }

    /// With the paper's letters.
    fn short(self) -> String {
        match self.bound {
            Bound::Drift(drift) => format!("drift {}", f64::from(drift.as_ppm()) / 1e6),
            Bound::Skew(skew) => format!("skew {skew}"),
        }
    }

    /// Its column for people.
    fn column(self) -> Column {
        if !self.worst {
            let says =
                "the same with exact clocks; in the column before they are as far off as the bound allows";
            return Column::new("", "EXACT", says);
        }
        let (name, value) = (self.short(), self.value());
        match self.bound {
            Bound::Drift(_) => Column::new(&value, &name.replace("drift", "DRIFT"), "OQwBD with this rho"),
            Bound::Skew(_) => Column::new(&value, &name.replace("skew", "SKEW"), "OQwBS with this Delta"),
        }
    }

    fn clocks(self) -> &'static str {
        if self.worst { "worst" } else { "exact" }
    }

    /// The clocks of p, r and q.
    fn crystals(self) -> Vec<Clock> {
        let clock = |start: u64, ppm: i32| Clock::new(start, &[Stretch { from: RealTime(0), ppm }]);
        match self.bound {
            Bound::Drift(drift) => {
                let ppm = i32::try_from(drift.as_ppm()).unwrap_or(0) * i32::from(self.worst);
                vec![clock(5_000 * MILLI, ppm), clock(400 * MILLI, 0), clock(77_000 * MILLI, -ppm)]
            }
            Bound::Skew(skew) => {
                let off = if self.worst { skew.as_nanos() } else { 0 };
                let now = 1_000_000 * MILLI;
                vec![clock(now + off, 0), clock(now, 0), clock(now, 0)]
            }
        }
    }

    /// One grantor, and two candidates that grant nothing.
    fn config(self) -> Result<Config<Broken>, Error> {
        let quorums = Quorums::majority(vec![GRANTOR]).map_err(|error| Error::new(error.to_string()))?;
        let settings = Settings {
            quorums,
            clocks: Clockwork { bound: self.bound, tick: LocalSpan::from_nanos(1) },
            lease: Span::from_nanos(LEASE),
            reserve: Span::from_nanos(0),
            eager: false,
            longest_lease: Span::from_nanos(LEASE),
            window: Span::from_nanos(LEASE),
            retry: Span::from_nanos(10 * LEASE), // Nobody asks twice.
            block: 256,
            succession: Succession::Fixed,
            weak: Choice::Random,
            adapt: None,
            hold: None,
            rules: Broken::Nothing,
        };
        settings.validate().map_err(|error| Error::new(error.to_string()))
    }

    fn measure(self, delay: u64) -> Result<Measured, Error> {
        let mut bench = Bench::new(self)?;
        let late = bench.asks(ASKER, RealTime(0)).ok_or_else(|| Error::new("nobody asked"))?;
        let gives_up = bench.clone().gives_up().ok_or_else(|| Error::new("the asker never gives up"))?;
        bench.act(RealTime(0), &Action::Crash(ASKER));
        let arrives = RealTime(delay);
        if !bench.grants(arrives, late) {
            return Err(Error::new("the late request is not granted"));
        }
        let free = bench.first_free(arrives).ok_or_else(|| Error::new("the grantor is never free"))?;
        Ok(Measured { gives_up, arrives, free })
    }
}

/// A world with one grantor in it.
#[derive(Clone)]
struct Bench(World<Nerio<Broken>>);

impl Bench {
    fn new(case: Case) -> Result<Self, Error> {
        let foundation = Foundation {
            config: case.config()?,
            clocks: case.crystals(),
            tick: LocalSpan::from_nanos(1),
            synchronised: matches!(case.bound, Bound::Skew(_)),
            founding: Vec::new(),
            on_resume: None,
            forger: |_, _, _, _| None,
            flaws: Flaws::NONE,
            keeps_flights: true,
        };
        Ok(Self(World::new(foundation, &mut Scripted::default())))
    }

    fn act(&mut self, at: RealTime, action: &Action<Command, FlightId>) {
        self.0.act(at, action, &mut Scripted::default());
    }

    /// A process asks, out of turn. Names its request to the grantor.
    fn asks(&mut self, node: NodeId, at: RealTime) -> Option<FlightId> {
        let attempt = Command::Attempt { group: GROUP, lease: Span::from_nanos(LEASE) };
        self.act(at, &Action::Tell(node, attempt));
        self.0.sent.first().copied()
    }

    /// The grantor handles a request. Says whether it grants; its disk writes at once, and its
    /// answer arrives.
    fn grants(&mut self, at: RealTime, request: FlightId) -> bool {
        self.act(at, &Action::Deliver { flight: request, arrived: at });
        let granted = self.0.published.iter().any(|(_, _, event)| matches!(event, Event::Granted { .. }));
        let mut answers = self.0.sent.clone();
        self.act(at, &Action::Written { node: GRANTOR, given: at });
        answers.extend(&self.0.sent);
        for flight in answers {
            self.act(at, &Action::Deliver { flight, arrived: at });
        }
        granted
    }

    /// Whether another candidate that asks at `at` is granted: at once, or after it was told the
    /// term to beat.
    fn is_free(&self, at: RealTime) -> bool {
        let mut bench = self.clone();
        (0..2).any(|_| bench.asks(OTHER, at).is_some_and(|request| bench.grants(at, request)))
    }

    /// The first instant from `from` on at which another candidate is granted. A promise only runs
    /// out, so the instants at which it is not all lie before.
    fn first_free(&self, from: RealTime) -> Option<RealTime> {
        let (mut bound, mut free) = (from.0, from.0 + 3 * LEASE);
        if self.is_free(from) {
            return Some(from);
        }
        if !self.is_free(RealTime(free)) {
            return None;
        }
        while free - bound > 1 {
            let middle = bound + (free - bound) / 2;
            *(if self.is_free(RealTime(middle)) { &mut free } else { &mut bound }) = middle;
        }
        Some(RealTime(free))
    }

    /// When the asker, if it lives and hears nothing, gives its run up.
    fn gives_up(mut self) -> Option<RealTime> {
        loop {
            let host = self.0.host(ASKER);
            let at = host.reading_reaches(host.process.as_ref().and_then(Protocol::next_deadline)?);
            if at > RealTime(5 * LEASE) {
                return None;
            }
            self.act(at, &Action::Wake(ASKER));
            let failed = |event: &Event| matches!(event, Event::Failed { failure: Failure::TimedOut, .. });
            if self.0.published.iter().any(|(_, _, event)| failed(event)) {
                return Some(at);
            }
        }
    }
}

/// Runs the study; `progress` is told how many more delays are done.
pub fn run(progress: &dyn Fn(u64)) -> Result<Race, Error> {
    let mut all: Vec<(Case, Vec<Measured>)> = Vec::new();
    for case in cases() {
        let mut measured = Vec::new();
        for step in 0..=STEPS {
            measured.push(case.measure(step * STEP)?);
            progress(1);
        }
        all.push((case, measured));
    }
    Ok(Race {
        study: "blocking",
        parameters: vec![
            ("lease", Cell::text("1s")),
            ("tick", Cell::text("1ns")),
            ("delays", Cell::text("0 to 3 leases, in steps of 50ms; drawn in steps of 10ms")),
            ("drift", Cell::text("0.1 (100000ppm) and 0.001 (1000ppm)")),
            ("skew", Cell::text("100ms and 10ms")),
            (
                "clocks",
                Cell::text(
                    "worst: the asker's fast or ahead, the grantor's slow or behind, by all of the bound",
                ),
            ),
        ],
        rows: rows(&all),
        shown: shown(&all),
        broken: Vec::new(),
        plot: Some(plot(&all)),
    })
}

/// How many delays are tried in all.
pub fn schedules() -> u64 {
    cases().len() as u64 * (STEPS + 1)
}

/// Every N-th of the delays.
fn every(steps: u64, all: &[Measured]) -> impl Iterator<Item = &Measured> {
    all.iter().step_by(usize::try_from(steps).unwrap_or(1))
}

const BLOCKED: &str =
    "from the arrival of the late request to the first instant at which another candidate is granted";
const IN_VAIN: &str = "from the instant at which the asker gives up (its E would have come) to that instant; 0 if nobody is blocked";

fn rows(all: &[(Case, Vec<Measured>)]) -> Sheet {
    let columns = [
        ("protocol", "PROTOCOL", "nerio-drift is OQwBD, nerio-skew is OQwBS"),
        ("bound", "BOUND", "of the clocks"),
        ("clocks", "CLOCKS", "exact, or as far off as the bound allows"),
        ("delay_ms", "DELAY", "how long the request was on its way, in ms"),
        ("gives_up_ms", "GIVES UP", "when the asker gives up, in ms after its start"),
        ("blocked_ms", "BLOCKED", BLOCKED),
        ("in_vain_ms", "IN VAIN", IN_VAIN),
    ];
    let row = |case: Case, measured: &Measured| {
        vec![
            Cell::text(case.protocol()),
            Cell::Text(case.value()),
            Cell::text(case.clocks()),
            length(Some(measured.arrives.0), MILLI, 3),
            length(Some(measured.gives_up.0), MILLI, 3),
            length(Some(measured.blocked()), MILLI, 3),
            length(Some(measured.in_vain()), MILLI, 3),
        ]
    };
    Sheet {
        columns: columns.map(|(key, head, says)| Column::new(key, head, says)).into(),
        rows: all.iter().flat_map(|(case, all)| every(ROWS, all).map(|m| row(*case, m))).collect(),
    }
}

/// For people: a line for each delay, a column for each case.
fn shown(all: &[(Case, Vec<Measured>)]) -> Vec<Shown> {
    let columns = || {
        let delay = Column::new("delay_ms", "DELAY", "how long the request was on its way, in ms");
        [delay].into_iter().chain(all.iter().map(|(case, _)| case.column())).collect()
    };
    let line = |step: usize, what: fn(Measured) -> u64| {
        let cells: Vec<Measured> =
            all.iter().filter_map(|(_, all)| every(SHOWN, all).nth(step)).copied().collect();
        let delay = length(cells.first().map(|first| first.arrives.0), MILLI, 0);
        [delay].into_iter().chain(cells.into_iter().map(|m| length(Some(what(m)), MILLI, 1))).collect()
    };
    let table = |what: fn(Measured) -> u64| {
        let lines = all.first().map_or(0, |(_, all)| every(SHOWN, all).count());
        Sheet { columns: columns(), rows: (0..lines).map(|step| line(step, what)).collect() }
    };
    vec![
        Shown { name: "BLOCKED, in ms", says: BLOCKED, sheet: table(Measured::blocked) },
        Shown { name: "IN VAIN, in ms", says: IN_VAIN, sheet: table(Measured::in_vain) },
    ]
}

fn plot(all: &[(Case, Vec<Measured>)]) -> Plot {
    let panel = |title: &str, label: &str, what: fn(Measured) -> u64| Panel {
        title: title.to_owned(),
        x: Axis { label: "delay of the request, s".to_owned(), scale: Scale::Linear },
        y: Axis { label: label.to_owned(), scale: Scale::Linear },
        series: all
            .iter()
            .enumerate()
            .map(|(i, (case, measured))| series(i / 2, *case, measured, what))
            .collect(),
    };
    Plot {
        title: "How long a late request blocks others: bounded drift against bounded skew".to_owned(),
        note: "one grantor, lease 1 s; solid: clocks as far off as the bound allows, dashed: exact clocks"
            .to_owned(),
        panels: vec![
            panel("blocked, from the arrival of the request", "blocked, s", Measured::blocked),
            panel("in vain, from when the asker has given up", "in vain, s", Measured::in_vain),
        ],
    }
}

fn series(colour: usize, case: Case, measured: &[Measured], what: fn(Measured) -> u64) -> Series {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let exact = if case.worst { "" } else { ", exact clocks" };
    Series {
        name: format!("{}{exact}", case.short()),
        colour,
        dashed: !case.worst,
        points: measured.iter().map(|m| (seconds(m.arrives.0), seconds(what(*m)))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drift(ppm: u32, worst: bool) -> Case {
        Case { bound: Bound::Drift(Drift::from_ppm(ppm).unwrap()), worst }
    }

    fn skew(millis: u64, worst: bool) -> Case {
        Case { bound: Bound::Skew(LocalSpan::from_nanos(millis * MILLI)), worst }
    }

    #[test]
    fn with_bounded_drift_a_late_request_blocks_as_long_as_a_quick_one() {
        for delay in [0, LEASE, 3 * LEASE] {
            let exact = drift(100_000, false).measure(delay).unwrap();
            assert_eq!(exact.blocked(), 1_100 * MILLI + 1, "(1+rho) of the lease, and one tick");
            assert_eq!(exact.gives_up, RealTime(900 * MILLI), "(1-rho) of the lease");
            assert_eq!(exact.in_vain(), delay + 200 * MILLI + 1);
            let worst = drift(100_000, true).measure(delay).unwrap();
            let ideal = 1_100 * MILLI * 10 / 9;
            assert!(worst.blocked().abs_diff(ideal) <= 2, "(1+rho)/(1-rho) of it: {worst:?}");
        }
    }

    #[test]
    fn with_bounded_skew_a_late_request_blocks_until_its_own_lease_is_over_and_then_nobody() {
        let blocked = |delay, worst| skew(100, worst).measure(delay).unwrap().blocked();
        assert_eq!(blocked(0, false), 1_100 * MILLI, "the lease and Delta");
        assert_eq!(blocked(LEASE, false), 100 * MILLI);
        assert_eq!(blocked(LEASE, true), 200 * MILLI, "and Delta once more, by which q is behind");
        assert_eq!(blocked(LEASE + 100 * MILLI, false), 0);
        assert_eq!(skew(100, false).measure(LEASE).unwrap().in_vain(), 100 * MILLI);
        assert_eq!(skew(100, true).measure(3 * LEASE).unwrap().in_vain(), 0, "nobody is blocked");
    }

    #[test]
    fn the_instant_found_is_the_first_at_which_asking_succeeds() {
        let mut bench = Bench::new(drift(1_000, true)).unwrap();
        let late = bench.asks(ASKER, RealTime(0)).unwrap();
        assert!(bench.grants(RealTime(300 * MILLI), late));
        let free = bench.first_free(RealTime(300 * MILLI)).unwrap();
        let asked = (300..2_000).map(|milli| RealTime(milli * MILLI));
        for at in asked.chain([RealTime(free.0 - 1), free]) {
            assert_eq!(bench.is_free(at), at >= free, "at {at}");
        }
    }

    #[test]
    fn the_study_has_a_row_for_every_case_and_delay() {
        let race = run(&|_| ()).unwrap();
        assert_eq!(race.rows.rows.len() as u64, cases().len() as u64 * (STEPS / ROWS + 1));
        assert!(race.shown.iter().all(|shown| shown.sheet.rows.len() == 13));
        assert_eq!(race, run(&|_| ()).unwrap(), "nothing is left to chance");
        let plot = race.plot.unwrap();
        assert!(plot.panels.iter().all(|panel| panel.series.len() == cases().len()));
    }
}
