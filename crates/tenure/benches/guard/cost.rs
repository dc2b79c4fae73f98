//! `is_leader()` and `edict()` beside a bare reading of the boot clock, in loops of one shape, taken in turns.
//!
//! A round measures each once. What is told is the median of the ratios within rounds: whatever else the machine does
//! hits neighbours alike.
#![allow(unsafe_code, reason = "the baseline is the bare call")]

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::time::Duration;

use tenure::Tenure;

use crate::numbers::{Numbers, at_least, at_most};
use crate::support::Cluster;

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
    println!("\nthe guard, {ROUNDS} rounds of {CALLS} calls each");
    let cluster = Cluster::found(3, Duration::from_secs(20));
    let nodes = cluster.start().await;
    let tenure = nodes[0].campaign("bench").await.expect("it is elected");
    tokio::time::sleep(Duration::from_secs(1)).await;
    one_thread(&tenure);
    two_threads(&tenure);
}

fn one_thread(tenure: &Tenure) {
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
    at_most("is_leader() : bare clock", leader_ratio.median(), 1.2, "x");
    at_most("edict() : bare clock", edict_ratio.median(), 1.5, "x");
    at_least("edicts a second, one thread, median", 1e3 / edict.median(), 10.0, " M");
    println!("{:<44} {:>9.2}  M", "  of which this clock allows at most", 1e3 / clock.median());
}

/// Two threads share a counter: how much they get in each other's way.
fn two_threads(tenure: &Tenure) {
    let both = |call: fn(&Tenure) -> bool| {
        std::thread::scope(|scope| {
            let threads = [0, 1].map(|_| {
                scope.spawn(move || {
                    let times = (0..ROUNDS / 4).map(|_| time(|| call(tenure)));
                    times.collect::<Vec<f64>>()
                })
            });
            Numbers::new(threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect())
        })
    };
    both(Tenure::is_leader).row("is_leader(), two threads at once", "ns");
    both(|tenure| tenure.edict().is_ok()).row("edict(), two threads at once", "ns");
}
