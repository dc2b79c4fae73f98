//! Measures scheduling holes of this machine: δ and σ follow from them, and a witness says whether
//! it stayed so.

use std::fmt;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tenure::Clock;
use tenure_testkit::numbers::Numbers;

/// How often it is looked.
const LOOKS: usize = 4_000;

/// For how long it is slept each time.
const NAP: Duration = Duration::from_millis(1);

/// The assumptions about this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// σ.
    pub(crate) hole: Duration,
    /// δ.
    pub(crate) delay: Duration,
}

/// The boot clock, in nanoseconds.
pub(crate) fn now() -> u64 {
    Clock::boot().read().as_nanos()
}

/// The load of the last minute, as the kernel says.
fn load() -> String {
    let line = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    line.split(' ').next().unwrap_or_default().to_owned()
}

/// How late a nap ends, in nanoseconds.
fn nap() -> u64 {
    let before = now();
    std::thread::sleep(NAP);
    now().saturating_sub(before).saturating_sub(1_000_000)
}

/// Sleeps of a millisecond, and datagrams to oneself. σ is the 99.9th percentile of lateness,
/// doubled and with a millisecond more; δ that of the way of a datagram, doubled, and a hole at its
/// end: what is later is a performance failure, and costs a round.
pub(crate) fn measure() -> (Machine, String) {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let late: Vec<f64> = (0..LOOKS).map(|_| millis(nap())).collect();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let here = socket.local_addr().expect("an address");
    let mut buffer = [0; 64];
    let way = |_| {
        let before = now();
        socket.send_to(&[0; 64], here).and_then(|_| socket.recv_from(&mut buffer)).expect("it comes");
        millis(now() - before)
    };
    let way: Vec<f64> = (0..LOOKS).map(way).collect();
    let (late, way) = (Numbers::new(late), Numbers::new(way));
    let (hole, delay) = (late.at_thousandths(999), way.at_thousandths(999));
    let machine = Machine { hole: round_up(hole * 2.0 + 1.0), delay: round_up(delay * 2.0 + hole + 1.0) };
    let says = format!(
        "{cores} cores, load {}; woken late by {:.2} ms (median), {hole:.2} ms (99.9 %), {:.2} ms (most of {LOOKS}); \
         a datagram takes {:.3} ms, {delay:.3} ms, {:.3} ms",
        load(),
        late.median(),
        late.at(100),
        way.median(),
        way.at(100)
    );
    (machine, says)
}

/// Somebody who does nothing but sleep and look how late it was woken.
pub(crate) struct Witness(Arc<Seen>);

#[derive(Default)]
struct Seen {
    looks: AtomicU64,
    beyond: AtomicU64,
    largest: AtomicU64,
}

impl Witness {
    /// Watches for holes longer than σ, until this program ends.
    pub(crate) fn start(machine: Machine) -> Self {
        let seen = Arc::new(Seen::default());
        let (told, hole) = (seen.clone(), machine.hole);
        std::thread::spawn(move || {
            loop {
                let late = nap();
                told.looks.fetch_add(1, Relaxed);
                told.beyond.fetch_add(u64::from(u128::from(late) > hole.as_nanos()), Relaxed);
                told.largest.fetch_max(late, Relaxed);
            }
        });
        Self(seen)
    }

    /// The holes seen since the last call.
    pub(crate) fn meanwhile(&self) -> Meanwhile {
        let Seen { looks, beyond, largest } = &*self.0;
        let [looks, beyond, largest] = [looks, beyond, largest].map(|number| number.swap(0, Relaxed));
        Meanwhile { looks, beyond, largest, load: load() }
    }
}

/// The holes of the machine during a measurement.
pub(crate) struct Meanwhile {
    looks: u64,
    beyond: u64,
    largest: u64,
    load: String,
}

impl fmt::Display for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { looks, beyond, largest, load } = self;
        let largest = millis(*largest);
        write!(f, "load {load}, largest hole {largest:.1} ms, {beyond} of {looks} looks later than sigma")
    }
}

#[allow(clippy::cast_precision_loss, reason = "for people to read")]
pub(crate) fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn round_up(millis: f64) -> Duration {
    Duration::from_secs_f64(millis.ceil() / 1e3)
}
