//! Real processes, killed, paused and restarted: at a real fenced resource nothing is ever out of
//! order, in both forms of timestamp, and the audit of what all of them wrote down finds nothing.
//!
//! `cargo test` runs a small size of it. `cargo xtask torture` runs it at full size, and prints the
//! figures: how long it takes until somebody else leads after a kill, and how long a hand-over
//! takes, beside the largest hole in time that a thread saw that did nothing but look at the clock.

mod judge;
mod resource;
mod stage;

use std::env;
use std::time::Duration;

use tenure_testkit::member_files::NAMES;
use tenure_testkit::programs;
use tenure_testkit::witnesses::Witness;

use judge::Record;
use stage::{DRIFT_PPM, LEASE, Stage, nanos, now, sleep};

/// How much is done.
#[derive(Clone, Copy)]
struct Size {
    kills: u32,
    pauses: u32,
    handovers: u32,
}

impl Size {
    fn of_environment() -> Self {
        match env::var("TENURE_TORTURE").as_deref() {
            Ok("full") => Self { kills: 50, pauses: 20, handovers: 100 },
            Ok(other) => panic!("TENURE_TORTURE is '{other}'; there is only `full`"),
            Err(_) => Self { kills: 6, pauses: 3, handovers: 10 },
        }
    }
}

/// An event to look up in the traces: an instant, and the first term after it.
type Break = (u64, u64);

#[test]
fn whatever_happens_to_leaders_and_grantors_nothing_is_written_out_of_order() {
    let size = Size::of_environment();
    let seed = now();
    println!("seed {seed}");
    let mut stage = Stage::set(seed);
    stage.settled();
    let witness = Witness::start();
    let kills: Vec<Break> =
        (0..size.kills).map(|round| kill_the_leader(&mut stage, round % 2 == 0)).collect();
    let refused = (0..size.pauses).filter(|_| pause_the_leader(&mut stage)).count();
    restart_each(&mut stage, &witness);
    let restarts = [restart_all(&mut stage, false), restart_all(&mut stage, true)];
    let resigned: Vec<Break> = (0..size.handovers).map(|_| resign(&mut stage)).collect();
    let transferred: Vec<Break> = (0..size.handovers).map(|_| transfer(&mut stage)).collect();
    let hole = witness.largest_hole();
    drop(witness);
    stage.end();

    let seen = stage.resource.seen();
    let record = Record::read(stage.folder());
    println!("{} edicts in {} terms, {} lapsed; {seen:?}", record.edicts(), record.terms(), record.lapses);
    println!("{} pauses: {refused} ended by the fence, the others by the clock", size.pauses);
    assert!(seen.faults.is_empty(), "the fences disagree");
    record.must_be_in_order();
    println!("{}", record.must_pass_audit(&programs::tenure()));

    let until_led = |(at, term): &Break| record.began(*term) - at;
    let trip = Times::of(record.trips.clone());
    let bound = bound(trip.median());
    println!("a renewal takes {trip}; the largest hole of the witness is {}", ms(nanos(hole)));
    let kills = Times::of(kills.iter().map(until_led).collect());
    println!("take-over after kill -9: {kills}; bound {}", ms(bound));
    let [again, forgetful] = restarts.map(|restart| ms(until_led(&restart)));
    println!("total restart: {again}; without memory, as after a reboot: {forgetful}");
    let resigned = Times::of(resigned.iter().map(until_led).collect());
    println!("hand-over by resign: {resigned}");
    let from_end = |(old, new): &Break| record.began(*new) - record.handed_over(*old);
    let transferred = Times::of(transferred.iter().map(from_end).collect());
    println!("hand-over by transfer: {transferred}");
    // A small machine with other work has holes of its own, which are nobody's fault.
    let allowed = if size.kills >= 50 { 0 } else { nanos(hole) };
    assert!(kills.median() <= bound + allowed, "the take-over is too slow");
    assert!(resigned.median() < 5_000_000 + allowed, "the hand-over by resign is too slow");
    assert!(transferred.median() < 5_000_000 + allowed, "the hand-over by transfer is too slow");
}

/// Kills the leader, and starts it again at once or when another leads.
fn kill_the_leader(stage: &mut Stage, at_once: bool) -> Break {
    stage.settled();
    stage.rest_a_while();
    let leader = stage.settled();
    let at = stage.kill(leader.who);
    if at_once {
        stage.start(leader.who);
    }
    let next = stage.successor(leader.term);
    if !at_once {
        stage.start(leader.who);
    }
    (at, next.term)
}

/// Pauses the leader until another has written, and wakes it. Says whether a write of it was
/// refused; otherwise it saw by its clock that it led no more.
fn pause_the_leader(stage: &mut Stage) -> bool {
    stage.settled();
    stage.rest_a_while();
    let leader = stage.settled();
    stage.process(leader.who).pause();
    let next = stage.successor(leader.term);
    assert_ne!(next.who, leader.who, "it stands still");
    sleep(LEASE / 4);
    stage.process(leader.who).wake();
    stage.end_of(leader.who, leader.term).word() == "deposed"
}

/// Kills and starts each copy in turn. One that does not lead is not missed; where the machine
/// itself stood still for so long that a renewal may have been late, nothing is said about that.
fn restart_each(stage: &mut Stage, witness: &Witness) {
    for who in 0..NAMES.len() {
        let leader = stage.settled();
        stage.kill(who);
        stage.rest(LEASE);
        stage.start(who);
        let after = stage.settled();
        let kept = leader.who == who || after.term == leader.term;
        assert!(kept || witness.largest_hole() > LEASE / 5, "a leader lost its tenure by another's restart");
    }
}

/// Kills all copies and starts them; with what they remember, or, as after a reboot, without.
fn restart_all(stage: &mut Stage, reboot: bool) -> Break {
    let leader = stage.settled();
    let at = stage.kill(leader.who);
    for who in (0..NAMES.len()).filter(|who| *who != leader.who) {
        stage.kill(who);
    }
    if reboot {
        stage.forget_memory().expect("it can be forgotten");
    }
    for who in 0..NAMES.len() {
        stage.start(who);
    }
    (at, stage.successor(leader.term).term)
}

/// The leader resigns.
fn resign(stage: &mut Stage) -> Break {
    loop {
        let leader = stage.settled();
        stage.rest(Duration::from_millis(100)); // The one that resigned is a candidate again by now.
        let ended = stage.tell(leader, "resign").expect("nobody is kept from resigning");
        let next = stage.successor(leader.term);
        if ended.word() == "resigned" {
            assert_ne!(next.who, leader.who, "another was waiting");
            return (ended.number("at"), next.term);
        }
    }
}

/// The leader hands over to another. Returns both terms.
fn transfer(stage: &mut Stage) -> Break {
    loop {
        let leader = stage.settled();
        stage.rest(Duration::from_millis(20)); // The former leader is a candidate again by now.
        let other = 1 + usize::try_from(stage.random.below(2)).expect("it is small");
        let to = (leader.who + other) % NAMES.len();
        let ended = stage.tell(leader, &format!("transfer {}", NAMES[to]));
        if ended.is_some_and(|ended| ended.word() == "transferred") {
            let next = stage.successor(leader.term);
            assert_eq!(next.who, to, "the one that was chosen");
            return (leader.term, next.term);
        }
    }
}

/// δ·(1+ρ)/(1-ρ), three round trips, and 5 ms.
fn bound(trip: u64) -> u64 {
    let (million, drift) = (1_000_000, u64::from(DRIFT_PPM));
    nanos(LEASE) * (million + drift) / (million - drift) + 3 * trip + 5_000_000
}

/// Lengths of time, sorted.
struct Times(Vec<u64>);

impl Times {
    fn of(mut times: Vec<u64>) -> Self {
        assert!(!times.is_empty(), "something was measured");
        times.sort_unstable();
        Self(times)
    }

    fn at(&self, percent: usize) -> u64 {
        self.0[(self.0.len() * percent).div_ceil(100).max(1) - 1]
    }

    fn median(&self) -> u64 {
        self.at(50)
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [median, p90, p99, most] = [50, 90, 99, 100].map(|percent| ms(self.at(percent)));
        write!(f, "median {median}, p90 {p90}, p99 {p99}, most {most}, of {}", self.0.len())
    }
}

fn ms(nanos: u64) -> String {
    format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1000 % 1000)
}
