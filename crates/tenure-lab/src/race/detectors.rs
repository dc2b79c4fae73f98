//! How soon, and how wrongly, failure detectors suspect: the numbers of Chen, Toueg and Aguilera.
//!
//! A process sends a heartbeat every T and crashes at some instant; each detector hears what the
//! link lets through. All detectors hear the same: a seed makes one record of arrivals for each
//! manner of link, and [`Record::replay`] lets every detector say its word on it. Times are those
//! of an exact clock.
//!
//! No detector is best: a shorter timeout finds a crash sooner (T_D) and errs more often (T_MR,
//! P_A). A fixed timeout must be chosen for the link; phi learns it, and pays for a jittery link by
//! a longer T_D. NFD-E counts from when the next heartbeat is expected, so that a late one does not
//! buy time for the next.

use tenure_proto::LocalTime;
use tenure_proto::detect::phi::{Config, Phi, PhiAccrual, Settings};
use tenure_proto::detect::quality::Detection;
use tenure_proto::detect::{Heartbeat, NfdE, Quality, Record};
use tenure_proto::time::LocalSpan;

use super::{Cell, Column, Lengths, Race, Sheet, length};
use crate::catalogue::Error;
use crate::random::{Random, seeds};
use crate::world::clock::MILLI;

/// T: between two heartbeats.
const PERIOD: u64 = 100 * MILLI;

/// How long the process lives at least; the crash comes within one more period.
const LIFE: u64 = 600_000 * MILLI;

/// How long the detectors go on listening after the crash.
const AFTER: u64 = 60_000 * MILLI;

const SECOND: u64 = 1_000 * MILLI;

/// The most that a heartbeat is held up on a jittery link.
const LONGEST_DELAY: u64 = 1_000 * MILLI;

/// Which seeds to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many seeds for each manner of link.
    pub seeds: u64,
    /// The first of them.
    pub first: u64,
    /// Which detectors, by name; all if none is named.
    pub only: Vec<String>,
}

/// The detectors that can be compared.
pub const NAMES: [&str; 3] = ["heartbeat", "phi", "nfd-e"];

/// How many records of arrivals the options ask for.
pub fn schedules(options: &Options) -> u64 {
    options.seeds.saturating_mul(LINKS.len() as u64)
}

/// The manner of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Calm,
    Jittery,
    Lossy { percent: u64 },
    Bursts,
}

const LINKS: [Link; 5] =
    [Link::Calm, Link::Jittery, Link::Lossy { percent: 5 }, Link::Lossy { percent: 20 }, Link::Bursts];

impl Link {
    fn name(self) -> String {
        match self {
            Self::Calm => "calm".to_owned(),
            Self::Jittery => "jittery".to_owned(),
            Self::Lossy { percent } => format!("loss {percent}%"),
            Self::Bursts => "bursts".to_owned(),
        }
    }

    fn says(self) -> String {
        match self {
            Self::Calm => "delays of 1 to 5 ms".to_owned(),
            Self::Jittery => {
                "delays of 1 to 20 ms, tripled again and again with a chance of 30%, up to 1 s".to_owned()
            }
            Self::Lossy { percent } => format!("calm, but {percent}% are lost, each by itself"),
            Self::Bursts => "calm, but every 5 to 55 s nothing gets through for 0.2 to 1.5 s".to_owned(),
        }
    }

    /// When the heartbeats of one life arrive, rising, until `end`, each with its number.
    fn arrivals(self, seed: u64, crash: u64, end: u64) -> Vec<(LocalTime, u64)> {
        let mut random = Random::stream(seed, &self.name());
        let mut silence = Silence::first(&mut random);
        let mut heard = Vec::new();
        let mut sent = PERIOD;
        while sent < crash {
            let lost = match self {
                Self::Lossy { percent } => random.percent(percent),
                Self::Bursts => silence.covers(sent, &mut random),
                Self::Calm | Self::Jittery => false,
            };
            let delay = self.delay(&mut random);
            if !lost && sent + delay <= end {
                heard.push((LocalTime::from_nanos(sent + delay), sent / PERIOD));
            }
            sent += PERIOD;
        }
        heard.sort_unstable();
        heard
    }

    fn delay(self, random: &mut Random) -> u64 {
        if self != Self::Jittery {
            return random.between(MILLI, 5 * MILLI);
        }
        let mut delay = random.between(MILLI, 20 * MILLI);
        while delay < LONGEST_DELAY && random.percent(30) {
            delay *= 3;
        }
        delay.min(LONGEST_DELAY)
    }
}

/// A time in which nothing gets through.
struct Silence {
    from: u64,
    until: u64,
}

impl Silence {
    fn first(random: &mut Random) -> Self {
        Self::after(0, random)
    }

    fn after(at: u64, random: &mut Random) -> Self {
        let from = at + random.between(5 * SECOND, 55 * SECOND);
        Self { from, until: from + random.between(200 * MILLI, 1_500 * MILLI) }
    }

    /// Whether what is sent at `at` is lost; later than all asked before.
    fn covers(&mut self, at: u64, random: &mut Random) -> bool {
        while at >= self.until {
            *self = Self::after(self.until, random);
        }
        at >= self.from
    }
}

/// A detector with its settings.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Suspects after a silence of more than T + D.
    Heartbeat { delay: u64 },
    /// Suspects from this phi on.
    Phi { config: Config },
    /// Suspects when the next heartbeat is overdue by this.
    NfdE { slack: u64 },
}

/// Over how many heartbeats NFD-E takes the mean.
const NFD_WINDOW: usize = 200;

fn kinds(only: &[String]) -> Result<Vec<Kind>, Error> {
    let mut kinds: Vec<Kind> = [50, 300].map(|millis| Kind::Heartbeat { delay: millis * MILLI }).into();
    for threshold in [8, 12] {
        let settings = Settings {
            threshold: Phi::from_thousandths(threshold * 1000),
            window: 200,
            first_estimate: LocalSpan::from_nanos(PERIOD),
            least_deviation: LocalSpan::from_nanos(10 * MILLI),
            acceptable_pause: LocalSpan::ZERO,
        };
        let config = settings.validate().map_err(|error| Error::new(error.to_string()))?;
        kinds.push(Kind::Phi { config });
    }
    kinds.extend([50, 300].map(|millis| Kind::NfdE { slack: millis * MILLI }));
    kinds.retain(|kind| only.is_empty() || only.iter().any(|name| name == kind.name()));
    Ok(kinds)
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Heartbeat { .. } => "heartbeat",
            Self::Phi { .. } => "phi",
            Self::NfdE { .. } => "nfd-e",
        }
    }

    fn settings(self) -> String {
        match self {
            Self::Heartbeat { delay } => format!("T=100ms D={}", LocalSpan::from_nanos(delay)),
            Self::Phi { config } => {
                let Settings { threshold, window, least_deviation, .. } = config.settings();
                format!("phi>={} sd>={least_deviation} window={window}", threshold.as_thousandths() / 1000)
            }
            Self::NfdE { slack } => {
                format!("eta=100ms alpha={} w={NFD_WINDOW}", LocalSpan::from_nanos(slack))
            }
        }
    }

    fn replay(self, end: LocalTime, numbered: Vec<(LocalTime, u64)>, crash: LocalTime) -> Record {
        let (begin, crash) = (LocalTime::ZERO, Some(crash));
        let heard = || numbered.iter().map(|(at, _)| *at).collect();
        match self {
            Self::Heartbeat { delay } => {
                let [period, delay] = [PERIOD, delay].map(LocalSpan::from_nanos);
                Record::replay(Heartbeat::new(period, delay, begin), (begin, end), heard(), crash)
            }
            Self::NfdE { slack } => {
                let [period, slack] = [PERIOD, slack].map(LocalSpan::from_nanos);
                let detector = NfdE::new(period, slack, NFD_WINDOW, begin);
                Record::replay_numbered(detector, (begin, end), numbered, crash, NfdE::heard_number)
            }
            Self::Phi { config } => {
                Record::replay(PhiAccrual::new(&config, begin), (begin, end), heard(), crash)
            }
        }
    }
}

/// The quality of one detector on one manner of link, over all seeds.
#[derive(Clone, Debug, Default)]
struct Worth {
    detections: Vec<u64>,
    missed: u64,
    recurrences: Vec<u64>,
    durations: Vec<u64>,
    /// In millionths, one for each seed.
    accuracies: Vec<u64>,
    lived: u64,
}

impl Worth {
    fn add(&mut self, record: &Record) {
        let quality = Quality::of(record);
        match quality.detection {
            Detection::After(span) => self.detections.push(span.as_nanos()),
            Detection::Missed | Detection::NoCrash => self.missed += 1,
        }
        self.recurrences.extend(record.mistake_recurrences().iter().map(|span| span.as_nanos()));
        self.durations.extend(record.mistake_durations().iter().map(|span| span.as_nanos()));
        self.accuracies.push(u64::from(quality.accuracy));
        self.lived += record.crash.map_or(0, LocalTime::as_nanos);
    }

    fn row(self, link: Link, kind: Kind) -> Vec<Cell> {
        let hours = self.lived as f64 / (3_600.0 * SECOND as f64);
        let mistakes = self.durations.len() as f64;
        let [detections, recurrences, durations, accuracies] =
            [self.detections, self.recurrences, self.durations, self.accuracies].map(Lengths::of);
        let percent =
            |millionths: Option<f64>| millionths.map_or(Cell::Nothing, |m| Cell::Number(m * 100.0, 3));
        let least = accuracies.0.first().map(|least| *least as f64 / 1e6);
        vec![
            Cell::Text(link.name()),
            Cell::text(kind.name()),
            length(detections.quantile(50), MILLI, 1),
            length(detections.quantile(99), MILLI, 1),
            length(detections.max(), MILLI, 1),
            Cell::Number(mistakes / hours, 1),
            length(recurrences.quantile(50), SECOND, 2),
            length(recurrences.quantile(1), SECOND, 2),
            length(durations.quantile(50), MILLI, 1),
            length(durations.quantile(99), MILLI, 1),
            percent(accuracies.mean(1_000_000)),
            percent(least),
            Cell::Text(kind.settings()),
        ]
    }
}

/// Runs the study; `progress` is told how many more records are done.
pub fn run(options: &Options, progress: &dyn Fn(u64)) -> Result<Race, Error> {
    let kinds = kinds(&options.only)?;
    let mut rows = Vec::new();
    let mut broken = Vec::new();
    for link in LINKS {
        let mut worths = vec![Worth::default(); kinds.len()];
        for seed in seeds(options.first, options.seeds) {
            let crash = LIFE + Random::stream(seed, "crash").below(PERIOD);
            let end = crash + AFTER;
            let heard = link.arrivals(seed, crash, end);
            for (worth, kind) in worths.iter_mut().zip(&kinds) {
                let [end, crash] = [end, crash].map(LocalTime::from_nanos);
                worth.add(&kind.replay(end, heard.clone(), crash));
            }
            progress(1);
        }
        for (worth, kind) in worths.into_iter().zip(&kinds) {
            if worth.missed > 0 {
                let (missed, name, settings) = (worth.missed, kind.name(), kind.settings());
                broken.push(format!("{}: {name} ({settings}) missed {missed} crashes", link.name()));
            }
            rows.push(worth.row(link, *kind));
        }
    }
    Ok(Race {
        study: "detectors",
        parameters: parameters(options),
        rows: Sheet { columns: columns(), rows },
        shown: Vec::new(),
        broken,
        plot: None,
    })
}

fn parameters(options: &Options) -> Vec<(&'static str, Cell)> {
    let links: Vec<String> = LINKS.iter().map(|link| format!("{}: {}", link.name(), link.says())).collect();
    vec![
        ("period", Cell::text("T = 100ms between two heartbeats")),
        ("life", Cell::text("10 minutes and a part of T, then a crash; 1 minute of listening after it")),
        ("links", Cell::Text(links.join("; "))),
        ("seeds", Cell::Count(options.seeds)),
        ("first_seed", Cell::Count(options.first)),
    ]
}

fn columns() -> Vec<Column> {
    [
        ("link", "LINK", "the manner of the link"),
        ("detector", "DETECTOR", "its settings are in the last column"),
        (
            "detection_median_ms",
            "T_D",
            "from the crash to the suspicion that stays, in ms: the median over all seeds",
        ),
        ("detection_p99_ms", "P99", "99 of 100 crashes were found no later"),
        ("detection_max_ms", "MAX", "the latest of all"),
        ("mistakes_per_hour", "MISTAKES/H", "how often a living process was suspected in an hour"),
        (
            "recurrence_median_s",
            "T_MR",
            "from the beginning of a mistake to that of the next, in s: the median of all",
        ),
        ("recurrence_p1_s", "P1", "1 of 100 came sooner than that"),
        ("duration_median_ms", "T_M", "how long a mistake lasted, in ms: the median of all"),
        ("duration_p99_ms", "P99", "99 of 100 lasted no longer"),
        (
            "accuracy_percent",
            "P_A",
            "how much of its life the process was rightly trusted, in percent: the mean",
        ),
        ("accuracy_least_percent", "LEAST", "the same for the worst seed"),
        (
            "settings",
            "SETTINGS",
            "T + D of a fixed timeout; threshold, least deviation and window of phi; eta + alpha of NFD-E",
        ),
    ]
    .map(|(key, head, says)| Column::new(key, head, says))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(cell: &Cell) -> f64 {
        match cell {
            Cell::Number(value, _) => *value,
            cell => panic!("{cell:?} is no number"),
        }
    }

    fn rows() -> Vec<Vec<Cell>> {
        let race = run(&Options { seeds: 3, first: 0, only: Vec::new() }, &|_| ()).expect("it runs");
        assert_eq!((race.broken, race.rows.rows.len()), (Vec::<String>::new(), 30));
        race.rows.rows
    }

    #[test]
    fn on_a_calm_link_nobody_errs_and_a_fixed_timeout_finds_a_crash_within_its_bound() {
        for row in rows().iter().filter(|row| row[0] == Cell::text("calm")) {
            assert_eq!((number(&row[5]), number(&row[10])), (0.0, 100.0), "{row:?}");
            assert_eq!((&row[6], &row[8]), (&Cell::Nothing, &Cell::Nothing), "{row:?}");
        }
        let first = &rows()[0];
        assert!(number(&first[4]) <= 155.0, "T + D after the last arrival: {first:?}");
    }

    #[test]
    fn the_longer_a_timeout_the_later_it_finds_a_crash_and_the_less_it_errs() {
        for link in rows().chunks(6) {
            for pair in link.chunks(2) {
                assert!(number(&pair[0][2]) < number(&pair[1][2]), "{pair:?}");
                assert!(number(&pair[0][5]) >= number(&pair[1][5]), "{pair:?}");
                assert!(number(&pair[0][10]) <= number(&pair[1][10]), "{pair:?}");
            }
        }
    }

    #[test]
    fn some_detectors_alone_say_on_the_same_traces_what_they_say_among_all() {
        let only = vec!["nfd-e".to_owned(), "phi".to_owned()];
        let some = run(&Options { seeds: 3, first: 0, only }, &|_| ()).expect("it runs").rows.rows;
        let all = rows();
        assert_eq!(some.len(), 20);
        assert!(some.iter().all(|row| all.contains(row)));
    }

    #[test]
    fn where_nothing_is_late_nfd_e_finds_a_crash_within_eta_and_alpha_and_a_delay() {
        let rows = rows();
        let calm = |row: &&Vec<Cell>| row[0] == Cell::text("calm") && row[1] == Cell::text("nfd-e");
        for (row, bound) in rows.iter().filter(calm).zip([100.0 + 50.0 + 5.0, 100.0 + 300.0 + 5.0]) {
            assert!(number(&row[4]) <= bound, "{row:?}");
        }
    }

    #[test]
    fn the_same_seeds_give_the_same_rows() {
        assert_eq!(rows(), rows());
    }

    #[test]
    fn links_do_what_their_names_say() {
        let crash = LIFE;
        let heard = |link: Link| link.arrivals(1, crash, crash + AFTER).len() as f64 / (LIFE / PERIOD) as f64;
        assert!(heard(Link::Calm) > 0.999 && heard(Link::Jittery) > 0.999);
        assert!((heard(Link::Lossy { percent: 20 }) - 0.8).abs() < 0.03);
        assert!((heard(Link::Lossy { percent: 5 }) - 0.95).abs() < 0.02);
        let bursts = Link::Bursts.arrivals(1, crash, crash + AFTER);
        let gap = bursts.windows(2).map(|pair| pair[1].0.remaining(pair[0].0).as_nanos()).max();
        assert!(gap.is_some_and(|gap| gap > SECOND && gap < 2 * SECOND), "{gap:?}");
    }
}
