//! Phi accrual by itself: exactness, bounds against floating point, and what it learns from what it
//! hears.

use super::*;
use crate::detect::tail::tests::reference;
use crate::detect::tests::{Chance, assert_crossing_is_exact, at, span};

const MILLI: u64 = 1_000_000;

/// Phi 8, 100 samples, a heartbeat a second, at least 50 ms of deviation, no pause.
fn settings() -> Settings {
    Settings {
        threshold: Phi::from_thousandths(8_000),
        window: 100,
        first_estimate: span(1000 * MILLI),
        least_deviation: span(50 * MILLI),
        acceptable_pause: LocalSpan::ZERO,
    }
}

fn detector(settings: Settings) -> PhiAccrual {
    PhiAccrual::new(&settings.validate().unwrap(), at(0))
}

/// Hears `count` heartbeats `interval` apart; returns the last instant and how many came after a
/// suspicion.
fn hear(detector: &mut PhiAccrual, from: u64, interval: u64, count: u64) -> (u64, u64) {
    let mut mistakes = 0;
    for beat in 1..=count {
        let now = at(from + beat * interval);
        mistakes += u64::from(detector.suspects(now));
        detector.heard(now);
    }
    (from + count * interval, mistakes)
}

/// Settings of a few nanoseconds, so that every instant can be asked.
fn tiny(chance: &mut Chance) -> Settings {
    Settings {
        threshold: Phi::from_thousandths(1_000 + u32::try_from(chance.below(29_001)).unwrap()),
        window: 2 + usize::try_from(chance.below(8)).unwrap(),
        first_estimate: span(1 + chance.below(60)),
        least_deviation: span(1 + chance.below(10)),
        acceptable_pause: span(chance.below(2) * chance.below(40)),
    }
}

#[test]
fn the_crossing_is_exact_whatever_was_heard() {
    let mut chance = Chance(3);
    for _ in 0..300 {
        let mut detector = detector(tiny(&mut chance));
        let mut now = 0;
        for _ in 0..12 {
            assert_crossing_is_exact(&detector, now, now + 700);
            now += chance.below(120);
            detector.heard(at(now));
            assert!(!detector.suspects(at(now)), "a process that is heard is trusted");
        }
    }
}

#[test]
fn suspicion_begins_exactly_when_phi_reaches_the_threshold() {
    let mut chance = Chance(4);
    for _ in 0..300 {
        let settings = tiny(&mut chance);
        let mut detector = detector(settings);
        for now in 0..600 {
            if chance.below(40) == 0 {
                detector.heard(at(now));
            }
            assert_eq!(detector.suspects(at(now)), detector.phi(at(now)) >= settings.threshold);
        }
    }
}

#[test]
fn phi_never_falls_in_silence() {
    let mut detector = detector(settings());
    hear(&mut detector, 0, 980 * MILLI, 30);
    let mut before = Phi::from_thousandths(0);
    for instant in (0..40_000 * MILLI).step_by(100_003) {
        let phi = detector.phi(at(instant));
        assert!(phi >= before, "at {instant}");
        before = phi;
    }
    assert_eq!(before, Phi::from_thousandths(32_750), "where it stays");
}

#[test]
fn suspicion_begins_within_the_stated_bound_of_exact_arithmetic() {
    let mut chance = Chance(5);
    for round in 0..200 {
        let threshold = Phi::from_thousandths(1_000 + 145 * round);
        let mut detector = detector(Settings { threshold, ..settings() });
        let mut now = 0;
        for _ in 0..100 {
            now += 900 * MILLI + chance.below(200 * MILLI);
            detector.heard(at(now));
        }
        let samples: Vec<_> = detector.window.samples.iter().map(|x| *x as f64).collect();
        let mean = samples.iter().sum::<f64>() / 100.0;
        let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 100.0;
        let deviation = variance.sqrt().max(50e6);
        let silence = detector.silence_to_suspect() as f64;
        let off = deviation / 3000.0 + 14.0;
        let wanted = f64::from(threshold.as_thousandths()) / 1000.0;
        assert!(reference((silence - off - mean) / deviation) < wanted, "{threshold}: too late");
        assert!(reference((silence + off - mean) / deviation) >= wanted, "{threshold}: too early");
    }
}

#[test]
fn the_sums_stay_exact_while_samples_come_and_go() {
    let mut chance = Chance(6);
    let mut window = Window::default();
    for _ in 0..50_000 {
        window.push(chance.below(LONGEST.as_nanos() + 1), 37);
    }
    let numbers = || window.samples.iter().copied().map(u128::from);
    assert_eq!(window.samples.len(), 37);
    assert_eq!(window.sum, numbers().sum());
    assert_eq!(window.squares, numbers().map(|x| x * x).sum());
}

#[test]
fn a_deviation_of_nanoseconds_on_intervals_of_days_is_not_lost() {
    let mut window = Window::default();
    for k in 0..1000 {
        window.push((1 << 49) + if k % 2 == 0 { 30 } else { 0 }, 1000);
    }
    assert_eq!((window.mean(), window.deviation()), ((1 << 49) + 15, 15));
}

#[test]
fn the_largest_window_of_the_longest_intervals_does_not_overflow() {
    let longest = LONGEST.as_nanos();
    let settings = Settings {
        threshold: Phi::LARGEST,
        window: MOST_SAMPLES,
        first_estimate: LONGEST,
        least_deviation: LONGEST,
        acceptable_pause: LONGEST,
    };
    let mut detector = detector(settings);
    hear(&mut detector, 0, longest, 16_000);
    assert_eq!((detector.samples(), detector.mean()), (MOST_SAMPLES, LONGEST));
    let mut window = Window::default();
    for k in 0..20_000 {
        window.push(if k % 2 == 0 { longest } else { 0 }, MOST_SAMPLES);
    }
    assert_eq!((window.mean(), window.deviation()), (longest / 2, longest / 2));
}

#[test]
fn the_first_estimate_stands_for_a_past_and_leaves_the_window() {
    let mut detector = detector(Settings { window: 4, ..settings() });
    assert_eq!((detector.mean(), detector.deviation()), (span(1000 * MILLI), span(250 * MILLI)));
    hear(&mut detector, 0, 700 * MILLI, 4);
    assert_eq!((detector.mean(), detector.deviation()), (span(700 * MILLI), span(50 * MILLI)));
}

#[test]
fn one_who_was_never_heard_is_suspected() {
    let detector = detector(settings());
    let at = detector.next_crossing(at(0)).expect("silence is noticed");
    assert!(detector.suspects(at));
    assert!(at.as_nanos() / MILLI / 2 == 1201, "1 s + 5.612 · 0.25 s: {at}");
}

#[test]
fn an_acceptable_pause_delays_suspicion_by_its_length() {
    let patient = Settings { acceptable_pause: span(3000 * MILLI), ..settings() };
    let [hasty, patient] = [settings(), patient].map(|s| detector(s).next_crossing(at(0)).unwrap());
    assert_eq!(patient.remaining(hasty), span(3000 * MILLI));
}

#[test]
fn a_steady_sender_is_never_suspected_of_a_delay_within_the_least_deviations() {
    let mut detector = detector(settings());
    let (now, mistakes) = hear(&mut detector, 0, 1000 * MILLI, 500);
    assert_eq!((mistakes, detector.deviation()), (0, span(50 * MILLI)));
    assert!(!detector.suspects(at(now + 1280 * MILLI)), "5.6 least deviations late");
    assert!(detector.suspects(at(now + 1281 * MILLI)));
}

#[test]
fn an_outage_of_an_hour_hardly_changes_the_timeout() {
    let mut detector = detector(settings());
    let (now, _) = hear(&mut detector, 0, 1000 * MILLI, 200);
    let before = detector.silence_to_suspect();
    detector.heard(at(now + 3_600_000 * MILLI));
    assert!(detector.silence_to_suspect() - before < 5 * MILLI);
}

#[test]
fn a_sender_that_slows_down_for_good_is_trusted_after_some_mistakes() {
    let mut detector = detector(settings());
    let (now, _) = hear(&mut detector, 0, 1000 * MILLI, 200);
    let (now, mistakes) = hear(&mut detector, now, 10_000 * MILLI, 60);
    assert!(mistakes > 0 && mistakes < 30, "{mistakes} mistakes");
    let (_, mistakes) = hear(&mut detector, now, 10_000 * MILLI, 1000);
    assert_eq!(mistakes, 0);
}

#[test]
fn an_old_reading_changes_nothing() {
    let mut detector = detector(settings());
    detector.heard(at(1000 * MILLI));
    let before = detector.clone();
    detector.heard(at(999 * MILLI));
    assert_eq!(detector, before);
}

#[test]
fn a_crossing_beyond_the_end_of_time_never_comes() {
    let detector = PhiAccrual::new(&settings().validate().unwrap(), at(u64::MAX - 5));
    assert_eq!((detector.next_crossing(at(0)), detector.suspects(at(u64::MAX))), (None, false));
}

#[test]
fn detectors_that_saw_the_same_window_are_equal() {
    let config = Settings { window: 5, ..settings() }.validate().unwrap();
    let [mut one, mut other] = [at(0), at(3000 * MILLI)].map(|now| PhiAccrual::new(&config, now));
    for second in 5..12 {
        one.heard(at(second * 1000 * MILLI));
    }
    for second in 4..12 {
        other.heard(at(second * 1000 * MILLI));
    }
    assert_eq!(one, other);
}

#[test]
fn settings_that_cannot_work_are_refused_with_a_reason() {
    let phi = Phi::from_thousandths;
    let refused = [
        (Settings { threshold: phi(999), ..settings() }, "threshold 0.999 is not within 1.000 and 30.000"),
        (Settings { threshold: phi(30_001), ..settings() }, "threshold 30.001 is not"),
        (Settings { window: 1, ..settings() }, "window 1 is not within 2 and 10000"),
        (Settings { window: 10_001, ..settings() }, "window 10001 is not"),
        (Settings { first_estimate: span(0), ..settings() }, "first-estimate must be more than zero"),
        (Settings { least_deviation: span(0), ..settings() }, "least-deviation must be more than zero"),
        (Settings { acceptable_pause: span(u64::MAX), ..settings() }, "acceptable-pause"),
    ];
    for (settings, reason) in refused {
        let error = settings.validate().unwrap_err().to_string();
        assert!(error.starts_with(reason), "{error}");
    }
}
