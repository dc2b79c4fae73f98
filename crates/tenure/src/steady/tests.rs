//! Suspends and preemption at any point between readings.

use super::*;
use crate::vmclock::page::Page;

/// A machine in a test: both clocks, and what happens just before each reading.
struct Machine {
    now: u64,
    slept: u64,
    /// Before the reading of that number: so long off the processor, and so long asleep.
    events: Vec<(usize, u64, u64)>,
    readings: usize,
    /// Time slept by the last reading of the boot clock.
    seen: u64,
}

impl Machine {
    fn new(events: &[(usize, u64, u64)]) -> Self {
        Self { now: 1_000_000_000, slept: SLEPT, events: events.to_vec(), readings: 0, seen: 0 }
    }

    fn pass(&mut self) {
        self.now += 25;
        for (_, preempted, slept) in self.events.iter().filter(|(at, ..)| *at == self.readings) {
            self.now += preempted;
            self.slept += slept;
        }
        self.readings += 1;
    }

    fn monotonic(&mut self) -> u64 {
        self.pass();
        self.now
    }

    fn boot(&mut self) -> u64 {
        self.pass();
        self.seen = self.slept;
        self.now + self.slept
    }

    /// As a [`Clock`] reads it: monotonic, boot, monotonic.
    fn interval(&mut self) -> (u64, u64) {
        let (m, b, n) = (self.monotonic(), self.boot(), self.monotonic());
        (b - n, b - m)
    }
}

const SECOND: u64 = 1_000_000_000;

/// Time slept at the beginning: far from zero, as a [`Clock`] counts it.
const SLEPT: u64 = 1 << 62;

#[test]
fn the_interval_holds_what_was_slept_whatever_happens_between_the_readings() {
    for at in 0..3 {
        for (preempted, slept) in [(0, 0), (300_000_000, 0), (0, SECOND), (300_000_000, SECOND)] {
            let mut machine = Machine::new(&[(at, preempted, slept)]);
            let (at_least, at_most) = machine.interval();
            assert!((at_least..=at_most).contains(&machine.seen), "{at}: {preempted}, {slept}");
        }
    }
}

#[test]
fn preemption_fakes_no_suspend() {
    for at in 0..6 {
        for long in [100, 50_000, SECOND, 3600 * SECOND] {
            let mut machine = Machine::new(&[(at, long, 0)]);
            let before = machine.slept;
            assert_eq!(
                judge(before, || machine.interval()),
                Verdict::Awake,
                "before reading {at}: {long} ns"
            );
        }
    }
}

#[test]
fn preemption_hides_no_suspend() {
    for (slept_at, off_at) in (0..2).flat_map(|slept| (0..6).map(move |off| (slept, off))) {
        for long in [0, 50_000, SECOND, 3600 * SECOND] {
            // Asleep before the boot clock is read first, and off the processor anywhere besides.
            let mut machine = Machine::new(&[(slept_at, 0, SECOND), (off_at, long, 0)]);
            let verdict = judge(SLEPT, || machine.interval());
            assert!(matches!(verdict, Verdict::Slept(_)), "{slept_at}, {off_at}, {long}: {verdict:?}");
        }
    }
}

#[test]
fn who_is_preempted_at_every_reading_is_not_sure_and_says_so() {
    let always: Vec<_> = (0..1000).map(|at| (at, 10 * SECOND, 0)).collect();
    let mut machine = Machine::new(&always);
    assert_eq!(judge(SLEPT, || machine.interval()), Verdict::Unsure);
    let mut machine = Machine::new(&always);
    assert!(slept_now(|| machine.interval()) <= SLEPT, "too little, which hides nothing");
}

#[test]
fn what_was_slept_is_measured_well_although_the_first_readings_are_torn_apart() {
    let mut machine = Machine::new(&[(1, SECOND, 0), (5, SECOND, 0)]);
    let slept = slept_now(|| machine.interval());
    assert!((SLEPT..=SLEPT + SLACK).contains(&slept), "{slept}");
}

#[test]
fn a_clock_that_slept_is_later_than_any_lease_and_a_new_beginning_is_not() {
    let (clock, hand) = Clock::by_hand();
    let steady = Steady::begin(&clock, None);
    assert!(steady.read() < NEVER && steady.disturbance().is_none());
    hand.suspend(Duration::from_millis(1));
    assert_eq!(steady.read(), NEVER);
    assert!(matches!(steady.disturbance(), Some(Disturbance::Slept(_))));
    let anew = steady.anew();
    assert!(anew.read() < NEVER && anew.disturbance().is_none());
    assert_eq!(steady.read(), NEVER, "the old one stays over");
}

#[test]
fn a_machine_that_cannot_suspend_is_not_watched() {
    let steady = Steady::begin(&Clock::boot().suspending(Suspends::No), None);
    assert!(steady.watched.is_none() && steady.read() < NEVER);
    for able in [Suspends::Yes, Suspends::Unknown] {
        let steady = Steady::begin(&Clock::boot().suspending(able), None);
        assert!(steady.watched.is_some() && steady.read() < NEVER, "{able:?}");
    }
}

#[test]
fn an_ability_that_the_kernel_does_not_tell_counts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state");
    assert_eq!(Suspends::by(&path), Suspends::Unknown);
    std::fs::write(&path, "\n").unwrap();
    assert_eq!(Suspends::by(&path), Suspends::No);
    std::fs::write(&path, "freeze mem disk\n").unwrap();
    assert_eq!(Suspends::by(&path), Suspends::Yes);
    let possible = [Suspends::Yes, Suspends::No, Suspends::Unknown].map(Suspends::is_possible);
    assert_eq!(possible, [true, false, true]);
}

#[test]
fn a_disrupted_virtual_machine_is_seen_where_authority_is_used() {
    let page = Page::new(7);
    let open = || VmClock::open(&page.path()).unwrap().map(Arc::new);
    let steady = Steady::begin(&Clock::boot().suspending(Suspends::No), open());
    assert!(steady.read() < NEVER && steady.disturbance().is_none());
    page.disrupt(8);
    assert_eq!((steady.read(), steady.disturbance()), (NEVER, Some(Disturbance::Disrupted)));
    let anew = steady.anew();
    assert!(anew.read() < NEVER && anew.disturbance().is_none());
    page.cut();
    assert_eq!((anew.read(), anew.disturbance()), (NEVER, Some(Disturbance::PageGone)));
    assert!(anew.anew().read() < NEVER, "without the page all is as on any other machine");
}

#[test]
fn a_memory_is_of_what_was_slept_and_said() {
    let here = BootId { boot: 1, clock_offset: 0, slept: 0, marker: 0 };
    let page = Page::new(7);
    let (clock, hand) = Clock::by_hand();
    let steady = Steady::begin(&clock, VmClock::open(&page.path()).unwrap().map(Arc::new));
    let before = steady.in_boot(here);
    assert!(steady.anew().in_boot(here).continues(&before));
    hand.suspend(Duration::from_millis(1));
    assert!(!steady.anew().in_boot(here).continues(&before));
    page.disrupt(8);
    let slept = steady.anew().in_boot(here);
    page.disrupt(9);
    assert!(!steady.anew().in_boot(here).continues(&slept));
}

#[test]
fn a_process_without_a_guard_is_told_of_each_suspend_once() {
    let (clock, hand) = Clock::by_hand();
    let mut seen = Disturbances::since_now(&clock, None);
    assert_eq!(seen.take(), None);
    for _ in 0..2 {
        hand.suspend(Duration::from_millis(1500));
        assert!(matches!(seen.take(), Some(Disturbance::Slept(by)) if by >= Duration::from_millis(1400)));
        assert_eq!(seen.take(), None);
    }
}
