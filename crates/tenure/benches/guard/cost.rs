//! `is_leader()` and `edict()` beside a bare reading of the boot clock, in loops of one shape,
//! taken in turns.
//!
//! A round measures each once. The report has the median of the ratios within rounds: other load of
//! the machine hits neighbours alike.
#![allow(unsafe_code, reason = "the baseline is the bare call")]

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tenure::{Clock, Node, Suspends, Tenure};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::numbers::{Numbers, at_least, at_most};

const ROUNDS: usize = 600;
const CALLS: u32 = 10_000;

/// A reading of the boot clock, with nothing around it.
#[inline]
fn bare() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: there is room for one timespec, and the call fills it: Linux has this clock.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_BOOTTIME, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Nanoseconds a call.
#[inline]
fn time<T>(mut call: impl FnMut() -> T) -> f64 {
    let start = bare();
    for _ in 0..CALLS {
        black_box(call());
    }
    ns(bare() - start) / f64::from(CALLS)
}

fn ns(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64() * 1e9
}

pub(crate) async fn run() {
    for able in [Suspends::No, Suspends::Yes] {
        let kind = if able == Suspends::No { "cannot" } else { "can" };
        println!("\nthe guard, {ROUNDS} rounds of {CALLS} calls each, on a machine that {kind} be suspended");
        let cluster = Cluster::found(3, Duration::from_secs(20));
        let mut nodes = Vec::new();
        for index in 0..3 {
            let mut config = cluster.member(index);
            config.time = Clock::boot().suspending(able);
            nodes.push(Node::start(config).await.expect("it starts"));
        }
        let tenure = nodes[0].campaign("bench").await.expect("it is elected");
        tokio::time::sleep(Duration::from_secs(1)).await;
        one_thread(&tenure, able);
        if able == Suspends::No {
            two_threads(&tenure);
        }
    }
}

/// The targets: on a machine that can be suspended authority takes two readings.
fn targets(able: Suspends) -> (f64, f64) {
    if able == Suspends::No { (1.2, 1.5) } else { (2.4, 2.7) }
}

fn one_thread(tenure: &Tenure, able: Suspends) {
    let mut refused = 0;
    let (mut clock, mut leader, mut edict) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        clock.push(time(bare));
        leader.push(time(|| refused += u64::from(!tenure.is_leader())));
        edict.push(time(|| {
            let made = tenure.edict();
            refused += u64::from(made.is_err());
            made
        }));
    }
    assert_eq!(refused, 0, "the lease was lost meanwhile: these are not the figures of a leader");
    let ratio =
        |times: &[f64]| Numbers::new(times.iter().zip(&clock).map(|(own, bare)| own / bare).collect());
    let (leader_ratio, edict_ratio) = (ratio(&leader), ratio(&edict));
    let (clock, leader, edict) = (Numbers::new(clock), Numbers::new(leader), Numbers::new(edict));
    clock.row("bare CLOCK_BOOTTIME", "ns");
    leader.row("is_leader()", "ns");
    edict.row("edict()", "ns");
    let (most_leader, most_edict) = targets(able);
    at_most("is_leader() : bare clock", leader_ratio.median(), most_leader, "x");
    at_most("edict() : bare clock", edict_ratio.median(), most_edict, "x");
    if able == Suspends::No {
        at_least("edicts a second, one thread, median", 1e3 / edict.median(), 10.0, " M");
    }
    println!("{:<44} {:>9.2}  M", "  the most that this clock allows", 1e3 / clock.median());
}

/// Threads that share a record: how much they get in each other's way. Where there are no idle
/// cores, not at all.
fn two_threads(tenure: &Tenure) {
    beside(tenure, Tenure::is_leader, Tenure::is_leader)
        .row("is_leader(), another thread does the same", "ns");
    beside(tenure, Tenure::is_leader, makes_edict).row("is_leader(), another thread makes edicts", "ns");
    beside(tenure, makes_edict, makes_edict).row("edict(), another thread does the same", "ns");
}

fn makes_edict(tenure: &Tenure) -> bool {
    tenure.edict().is_ok()
}

/// Times one call while another thread does another without a pause.
fn beside(tenure: &Tenure, timed: fn(&Tenure) -> bool, other: fn(&Tenure) -> bool) -> Numbers {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                black_box(other(tenure));
            }
        });
        let times = (0..ROUNDS / 3).map(|_| time(|| timed(tenure))).collect();
        stop.store(true, Relaxed);
        Numbers::new(times)
    })
}
