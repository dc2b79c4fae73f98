//! The quality of a detector: the three numbers of Chen, Toueg and Aguilera (2002).
//!
//! A detector is judged by its verdicts, not by how it works. Over time its verdict changes between
//! trust and suspicion:
//!
//! ```text
//!   process    lives ─────────────────────────────────────── crash ╳
//!   word       trust ────┐suspect┌── trust ──┐suspect┌── trust ────────┐ suspect, for good
//!                        │← T_M →│           │← T_M →│             │←T_D→│
//!                        │←────── T_MR ─────→│
//! ```
//!
//! | number | is the time | wanted |
//! |---|---|---|
//! | T_D, detection | from the crash to the suspicion that stays | short |
//! | T_MR, recurrence | from one mistake's beginning to the next one's | long |
//! | T_M, duration | from a mistake's beginning to its end | short |
//!
//! A timeout trades the first against the others, so a detector is judged by all three at once, on
//! one and the same [`Record::heard`]: [`Record::replay`] lets any detector judge it.
//!
//! All instants are of the watching host's clock. Only an observer that sees both hosts can say
//! when the crash was: the laboratory, which puts it on that clock.

use crate::LocalTime;
use crate::time::LocalSpan;

use super::Detector;

const MILLION: u32 = 1_000_000;

/// A time during which a detector suspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Suspicion {
    /// The first instant of it.
    pub from: LocalTime,
    /// The first instant of trust after it; `None` if it lasted to the end of the record.
    pub until: Option<LocalTime>,
}

/// The events of a run and a detector's verdicts on them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// When the watch began.
    pub begin: LocalTime,
    /// When it ended.
    pub end: LocalTime,
    /// When heartbeats arrived, rising. Some may arrive after the crash.
    pub heard: Vec<LocalTime>,
    /// When the watched process crashed, if it did.
    pub crash: Option<LocalTime>,
    /// When it was suspected, rising and disjoint.
    pub suspicions: Vec<Suspicion>,
}

impl Record {
    /// Replays `heard` to a detector that was made at `begin`, and records its suspicions. A
    /// heartbeat at the very instant at which suspicion would begin prevents it.
    ///
    /// # Panics
    ///
    /// If `heard` does not rise, or leaves the time from `begin` to `end`.
    pub fn replay<D: Detector>(
        detector: D,
        span: (LocalTime, LocalTime),
        heard: Vec<LocalTime>,
        crash: Option<LocalTime>,
    ) -> Self {
        let heard = heard.into_iter().map(|at| (at, 0)).collect();
        Self::replay_numbered(detector, span, heard, crash, |detector, _, at| detector.heard(at))
    }

    /// Replays heartbeats with sequence numbers, for a detector that wants to be told them.
    ///
    /// # Panics
    ///
    /// As [`Record::replay`].
    pub fn replay_numbered<D: Detector>(
        mut detector: D,
        (begin, end): (LocalTime, LocalTime),
        heard: Vec<(LocalTime, u64)>,
        crash: Option<LocalTime>,
        hears: impl Fn(&mut D, u64, LocalTime),
    ) -> Self {
        assert!(heard.is_sorted_by_key(|(at, _)| *at), "heartbeats are heard in the order of time");
        assert!(heard.iter().all(|(at, _)| (begin..=end).contains(at)), "what is heard is within the record");
        let mut suspicions: Vec<Suspicion> = Vec::new();
        let mut suspected = |from: LocalTime, until: Option<LocalTime>| match suspicions.last_mut() {
            // This message ended nothing: it was not fresh.
            Some(last) if last.until == Some(from) => last.until = until,
            _ => suspicions.push(Suspicion { from, until }),
        };
        let mut now = begin;
        for (at, number) in &heard {
            if let Some(from) = beginning(&detector, now).filter(|from| from < at) {
                suspected(from, Some(*at));
            }
            hears(&mut detector, *number, *at);
            now = *at;
        }
        if let Some(from) = beginning(&detector, now).filter(|from| *from <= end) {
            suspected(from, None);
        }
        let heard = heard.into_iter().map(|(at, _)| at).collect();
        Self { begin, end, heard, crash, suspicions }
    }

    /// The crash, if it came within the record.
    fn crash(&self) -> Option<LocalTime> {
        self.crash.filter(|crash| *crash <= self.end)
    }

    /// T_M of every mistake, in order. A mistake that was not over is counted up to the crash or
    /// the end of the record: it lasted at least so long.
    pub fn mistake_durations(&self) -> Vec<LocalSpan> {
        let lived_until = self.lived_until();
        let lasted =
            |mistake: &Suspicion| mistake.until.unwrap_or(self.end).min(lived_until).remaining(mistake.from);
        self.mistakes().map(lasted).collect()
    }

    /// T_MR of every mistake after the first, in order.
    pub fn mistake_recurrences(&self) -> Vec<LocalSpan> {
        let begun: Vec<_> = self.mistakes().map(|mistake| mistake.from).collect();
        gaps(&begun).collect()
    }

    /// Until the crash, or the end of the record.
    fn lived_until(&self) -> LocalTime {
        self.crash().unwrap_or(self.end)
    }

    /// Suspicions that began while the process lived.
    fn mistakes(&self) -> impl Iterator<Item = &Suspicion> {
        let crash = self.crash();
        self.suspicions.iter().filter(move |suspicion| crash.is_none_or(|crash| suspicion.from < crash))
    }
}

/// When the detector begins to suspect if it hears nothing more.
fn beginning<D: Detector>(detector: &D, now: LocalTime) -> Option<LocalTime> {
    if detector.suspects(now) { Some(now) } else { detector.next_crossing(now) }
}

/// Whether and how soon a crash was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detection {
    /// There was nothing to notice.
    NoCrash,
    /// T_D: the time from the crash to the suspicion that stayed. Zero if it was there before.
    After(LocalSpan),
    /// At the end of the record the crashed process was trusted.
    Missed,
}

/// Least, middle and greatest of some lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Summary {
    /// How many there were.
    pub count: usize,
    /// The shortest.
    pub min: LocalSpan,
    /// The middle one; for an even number the shorter of the two, so that it is one that occurred.
    pub median: LocalSpan,
    /// The longest.
    pub max: LocalSpan,
}

impl Summary {
    /// Summarises these lengths, in any order; `None` if there are none. Also for detection times
    /// of many runs.
    pub fn of(lengths: impl IntoIterator<Item = LocalSpan>) -> Option<Self> {
        let mut lengths: Vec<_> = lengths.into_iter().collect();
        lengths.sort_unstable();
        let (min, max) = (*lengths.first()?, *lengths.last()?);
        let median = lengths[(lengths.len() - 1) / 2];
        Some(Self { count: lengths.len(), min, median, max })
    }
}

/// How good a detector was on one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quality {
    /// T_D.
    pub detection: Detection,
    /// T_M of every mistake. A mistake that was not over is counted up to the crash or the end of
    /// the record: it lasted at least so long.
    pub mistake_duration: Option<Summary>,
    /// T_MR of every mistake after the first.
    pub mistake_recurrence: Option<Summary>,
    /// The probability that at a random instant before the crash the verdict was right, in
    /// millionths (Chen's P_A).
    pub accuracy: u32,
    /// The silences between heartbeats, by which the detector had to judge.
    pub silence: Option<Summary>,
}

impl Quality {
    /// Computes the quality from one record.
    pub fn of(record: &Record) -> Self {
        let durations = record.mistake_durations();
        Self {
            detection: detection(record),
            accuracy: accuracy(record.lived_until().remaining(record.begin), &durations),
            mistake_duration: Summary::of(durations),
            mistake_recurrence: Summary::of(record.mistake_recurrences()),
            silence: Summary::of(gaps(&record.heard)),
        }
    }
}

fn detection(record: &Record) -> Detection {
    let Some(crash) = record.crash() else { return Detection::NoCrash };
    match record.suspicions.last() {
        Some(Suspicion { from, until: None }) => Detection::After(from.remaining(crash)),
        _ => Detection::Missed,
    }
}

/// The part of `lived` that is not in a mistake, in millionths, rounded down. Of no time at all
/// nothing was wrong.
fn accuracy(lived: LocalSpan, mistakes: &[LocalSpan]) -> u32 {
    let wrong: u128 = mistakes.iter().map(|span| u128::from(span.as_nanos())).sum();
    let lived = u128::from(lived.as_nanos());
    let right = lived.saturating_sub(wrong) * u128::from(MILLION);
    right.checked_div(lived).and_then(|part| u32::try_from(part).ok()).unwrap_or(MILLION)
}

fn gaps(instants: &[LocalTime]) -> impl Iterator<Item = LocalSpan> {
    instants.windows(2).map(|pair| pair[1].remaining(pair[0]))
}

#[cfg(test)]
mod tests {
    use super::super::phi::{Phi, Settings};
    use super::super::tests::{Chance, at, span};
    use super::super::{Heartbeat, PhiAccrual};
    use super::*;

    fn suspicion(from: u64, until: u64) -> Suspicion {
        Suspicion { from: at(from), until: Some(at(until)) }
    }

    fn for_good(from: u64) -> Suspicion {
        Suspicion { from: at(from), until: None }
    }

    /// From 0 to 1000, without heartbeats.
    fn record(crash: Option<u64>, suspicions: Vec<Suspicion>) -> Record {
        Record { begin: at(0), end: at(1000), heard: vec![], crash: crash.map(at), suspicions }
    }

    fn summary(count: usize, min: u64, median: u64, max: u64) -> Option<Summary> {
        Some(Summary { count, min: span(min), median: span(median), max: span(max) })
    }

    #[test]
    fn the_three_numbers_come_from_the_ends_of_suspicions() {
        let suspicions = vec![suspicion(100, 130), suspicion(300, 310), suspicion(350, 400), for_good(820)];
        let quality = Quality::of(&record(Some(800), suspicions));
        assert_eq!(quality.detection, Detection::After(span(20)));
        assert_eq!(quality.mistake_duration, summary(3, 10, 30, 50));
        assert_eq!(quality.mistake_recurrence, summary(2, 50, 50, 200));
        assert_eq!(quality.accuracy, 887_500, "90 of 800 were wrong");
    }

    #[test]
    fn a_suspicion_that_was_there_before_the_crash_detects_it_at_once_and_was_a_mistake_until_then() {
        let quality = Quality::of(&record(Some(800), vec![for_good(750)]));
        assert_eq!(quality.detection, Detection::After(LocalSpan::ZERO));
        assert_eq!(quality.mistake_duration, summary(1, 50, 50, 50));
    }

    #[test]
    fn a_suspicion_withdrawn_after_the_crash_is_no_mistake_and_no_detection() {
        let quality = Quality::of(&record(Some(500), vec![suspicion(600, 650), for_good(900)]));
        assert_eq!((quality.detection, quality.mistake_duration), (Detection::After(span(400)), None));
    }

    #[test]
    fn a_crash_that_is_not_suspected_at_the_end_was_missed() {
        assert_eq!(Quality::of(&record(Some(500), vec![])).detection, Detection::Missed);
        assert_eq!(Quality::of(&record(Some(500), vec![suspicion(600, 990)])).detection, Detection::Missed);
    }

    #[test]
    fn without_a_crash_every_suspicion_is_a_mistake_and_an_open_one_lasts_to_the_end() {
        for crash in [None, Some(1001)] {
            let quality = Quality::of(&record(crash, vec![suspicion(10, 20), for_good(900)]));
            assert_eq!(quality.detection, Detection::NoCrash);
            assert_eq!(quality.mistake_duration, summary(2, 10, 10, 100));
            assert_eq!(quality.mistake_recurrence, summary(1, 890, 890, 890));
        }
    }

    #[test]
    fn a_detector_without_mistakes_is_right_all_the_time() {
        let quality = Quality::of(&record(None, vec![]));
        assert_eq!((quality.accuracy, quality.mistake_recurrence), (1_000_000, None));
        let empty = Record { end: at(0), ..record(None, vec![]) };
        assert_eq!(Quality::of(&empty).accuracy, 1_000_000);
    }

    #[test]
    fn a_replay_writes_down_when_a_detector_began_and_ceased_to_suspect() {
        let heard = [10, 20, 33, 46, 90].map(at).to_vec();
        let detector = Heartbeat::new(span(10), span(2), at(0));
        let record = Record::replay(detector, (at(0), at(200)), heard, None);
        assert_eq!(
            record.suspicions,
            vec![suspicion(59, 90), for_good(103)],
            "13 of silence is one too many"
        );
    }

    #[test]
    fn a_replay_agrees_with_asking_at_every_instant() {
        let mut chance = Chance(7);
        for _ in 0..200 {
            let mut heard: Vec<_> = (0..20).map(|_| at(chance.below(400))).collect();
            heard.sort_unstable();
            let fresh = Heartbeat::new(span(chance.below(20)), span(chance.below(20)), at(0));
            let record = Record::replay(fresh.clone(), (at(0), at(400)), heard.clone(), None);
            let mut detector = fresh;
            for now in 0..=400 {
                (0..heard.iter().filter(|instant| **instant == at(now)).count())
                    .for_each(|_| detector.heard(at(now)));
                let said = record
                    .suspicions
                    .iter()
                    .any(|s| s.from <= at(now) && s.until.is_none_or(|u| at(now) < u));
                assert_eq!(said, detector.suspects(at(now)), "at {now}: {record:?}");
            }
        }
    }

    /// A heartbeat a second for an hour, each up to `jitter` milliseconds late; then a crash.
    fn hour(jitter: u64) -> (Vec<LocalTime>, LocalTime) {
        const MILLI: u64 = 1_000_000;
        let mut chance = Chance(8);
        let heard = (1..=3600).map(|second| at((second * 1000 + chance.below(jitter)) * MILLI)).collect();
        (heard, at(3_600_500 * MILLI))
    }

    #[test]
    fn on_a_calm_network_phi_detects_sooner_than_a_careful_timeout_and_errs_as_little() {
        let (heard, crash) = hour(100);
        let whole = (at(0), at(4_000_000_000_000));
        let settings = Settings {
            threshold: Phi::from_thousandths(8_000),
            window: 200,
            first_estimate: span(1_000_000_000),
            least_deviation: span(20_000_000),
            acceptable_pause: LocalSpan::ZERO,
        };
        let phi = PhiAccrual::new(&settings.validate().unwrap(), at(0));
        let fixed = Heartbeat::new(span(1_000_000_000), span(1_000_000_000), at(0));
        let phi = Quality::of(&Record::replay(phi, whole, heard.clone(), Some(crash)));
        let fixed = Quality::of(&Record::replay(fixed, whole, heard, Some(crash)));
        assert_eq!((phi.mistake_duration, fixed.mistake_duration), (None, None));
        let (Detection::After(phi), Detection::After(fixed)) = (phi.detection, fixed.detection) else {
            panic!("both notice the crash");
        };
        assert!(phi.times(3) < fixed.times(2), "{phi} against {fixed}");
    }
}
