//! What this machine does to those who wait: δ and σ follow from it.

use std::net::UdpSocket;
use std::time::Duration;

use tenure::{Clock, Locality};

use crate::numbers::Numbers;

/// How often it is looked.
const LOOKS: usize = 3_000;

fn now() -> u64 {
    Clock::boot().read().as_nanos()
}

fn line(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Sleeps of a millisecond, and datagrams to oneself. σ is the 99.9th percentile of lateness, δ that of the way of a datagram, each
/// doubled and with a millisecond more: what is later is a performance failure, and costs a round.
pub(crate) fn measure() -> Locality {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("machine: {cores} cores, load {}", line("/proc/loadavg"));
    let nap = Duration::from_millis(1);
    let late = |_| {
        let before = now();
        std::thread::sleep(nap);
        millis(now().saturating_sub(before).saturating_sub(1_000_000))
    };
    let late: Vec<f64> = (0..LOOKS).map(late).collect();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let here = socket.local_addr().expect("an address");
    let mut buffer = [0; 64];
    let way = |_| {
        let before = now();
        socket.send_to(&[0; 64], here).and_then(|_| socket.recv_from(&mut buffer)).expect("it comes");
        millis(now() - before)
    };
    let way: Vec<f64> = (0..LOOKS).map(way).collect();
    let (hole, delay) = (tail(&late), tail(&way));
    let mut assumed = Locality::default();
    assumed.hole = round_up(hole * 2.0 + 1.0);
    assumed.delay = round_up(delay * 2.0 + hole + 1.0);
    println!(
        "woken late by {:.2} ms (median), {hole:.2} ms (99.9 %); a datagram takes {:.3} ms, {delay:.3} ms",
        Numbers::new(late).median(),
        Numbers::new(way).median()
    );
    println!("assumed: sigma {:?}, delta {:?}, rho {} ppm", assumed.hole, assumed.delay, assumed.drift_ppm);
    assumed
}

#[allow(clippy::cast_precision_loss, reason = "for people to read")]
pub(crate) fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn tail(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) * 999 / 1000]
}

fn round_up(millis: f64) -> Duration {
    Duration::from_secs_f64(millis.ceil() / 1e3)
}
