//! A day in ten minutes: three hosts, ten applications with two runners and a key each, Prometheus
//! with the alert rules that are shipped. Daemons are killed, stopped, cut off and replaced, keys
//! rotated, runners killed and stopped, leaderships handed over; meanwhile askers on every host ask
//! who leads.
//!
//! A referee (`tenure_testkit::referee`) knows which command was alive when. It finds two commands
//! of one group alive at once, and answers that were not true. `alerts.rs` says which alerts had to
//! fire and which could.
//!
//! `cargo xtask torture day [--minutes M] [--seed S]` runs it. `cargo xtask test` does not yet: the
//! day still finds answers that are not true, and not every one is understood. Needs root, for
//! namespaces of the network, and Prometheus. The order of what is done follows from the seed; its
//! effects depend on the machine as well.

mod alerts;
mod askers;
mod report;
mod script;
mod site;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, sleep};
use std::time::Duration;

use serde_json::Value;
use tenure::Clock;
use tenure_testkit::binary::Binary;
use tenure_testkit::chance::Chance;
use tenure_testkit::namespaces::Net;
use tenure_testkit::prometheus_server::{Prometheus, quicken};
use tenure_testkit::referee::judge::Claim;
use tenure_testkit::referee::{clock, command};
use tenure_testkit::waiting::until;

use script::Day;
use site::{HOSTS, Site, WATCH, http};

/// The command that is tested.
pub(crate) const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// Time in which the machine ran nobody, if it is longer than this.
const HOLE: u64 = 250_000_000;

/// For how long nothing is done at the end, so that alerts can end.
const EVENING: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["lead", folder] => match command::lead(Path::new(folder)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("a command of a runner: {error}");
                ExitCode::FAILURE
            }
        },
        ["--list", ..] => {
            println!("day: test");
            ExitCode::SUCCESS
        }
        _ => day(),
    }
}

/// Length and seed of a day.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
}

impl Plan {
    fn chosen() -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let full = std::env::var("TENURE_TORTURE").is_ok_and(|size| size == "full");
        let minutes = number("TENURE_DAY_MINUTES").unwrap_or(if full { 10 } else { 1 });
        let seed = number("TENURE_SEED").unwrap_or_else(|| Clock::real().read().as_nanos() % 1_000_000);
        Self { seconds: minutes * 60, seed }
    }

    /// Whether only few kinds of things happen.
    fn is_short(self) -> bool {
        self.seconds < 180
    }
}

fn day() -> ExitCode {
    let plan = Plan::chosen();
    println!("a day in {} s, seed {}", plan.seconds, plan.seed);
    let net = match Net::make(WATCH) {
        Ok(net) => net,
        Err(error) => {
            println!("not checked: this machine gives no namespaces of the network to this user ({error})");
            return ExitCode::SUCCESS;
        }
    };
    let folder = tempfile::Builder::new().prefix("tenure-day").tempdir_in("/dev/shm").expect("tmpfs");
    let folder = folder.keep(); // Also if something panics: the logs say why.
    println!("logs and files, until all was right: {}", folder.display());
    let seen = live(plan, net, &folder);
    report::chronicle(&seen, &folder.join("chronicle")).expect("it is written");
    if !report::tell(plan, &seen) {
        return ExitCode::FAILURE;
    }
    std::fs::remove_dir_all(folder).expect("it is ours");
    ExitCode::SUCCESS
}

/// All that is to be judged.
pub(crate) struct Seen {
    pub(crate) ledger: tenure_testkit::referee::Ledger,
    pub(crate) claims: Vec<Claim>,
    pub(crate) events: Vec<site::Event>,
    pub(crate) holes: Vec<(u64, u64)>,
    pub(crate) fired: Vec<alerts::Fired>,
    pub(crate) span: (u64, u64),
}

fn live(plan: Plan, net: Net, folder: &Path) -> Seen {
    let mut site = Site::open(net, folder);
    site.await_leaders();
    let (day, mut chance) = (Day::default(), Chance::new(plan.seed));
    let mut draw = || chance.number();
    let (site_ref, day_ref) = (&site, &day);
    let (claims, holes, charts, span) = thread::scope(|scope| {
        let (tell, ready) = channel();
        let (end_watch, ended) = channel();
        let watcher = scope.spawn(move || watch(site_ref, &tell, &ended));
        let _ = ready.recv(); // Prometheus scrapes.
        let witness = scope.spawn(move || witness(day_ref));
        let began = clock();
        let mut askers = Vec::new();
        for host in 1..=HOSTS {
            let (one, other) = (draw(), draw());
            askers.push(scope.spawn(move || askers::ask_http(site_ref, day_ref, host, one)));
            askers.push(scope.spawn(move || askers::ask_commands(site_ref, day_ref, host, other)));
        }
        let (one, other) = (draw(), draw());
        let threads = [
            scope.spawn(move || day_ref.trouble_the_cluster(site_ref, one, plan.is_short())),
            scope.spawn(move || day_ref.trouble_the_applications(site_ref, other)),
        ];
        while clock() < began + plan.seconds * 1_000_000_000 && !threads.iter().any(|one| one.is_finished()) {
            sleep(Duration::from_millis(100));
        }
        let span = (began, clock());
        day.over.store(true, Relaxed);
        let results = threads.map(|thread| thread.join());
        sleep(EVENING);
        drop(end_watch);
        let charts = watcher.join().expect("Prometheus answers");
        let claims: Vec<Claim> =
            askers.into_iter().flat_map(|asker| asker.join().expect("it asks")).collect();
        results.into_iter().for_each(|result| result.expect("what happened could be done"));
        (claims, witness.join().expect("it looks"), charts, span)
    });
    let events = site.events();
    let ledger = site.close();
    let holes = [holes, alerts::failed_scrapes(&charts.up, &events, charts.to_ours())].concat();
    let fired = alerts::fired(&charts.alerts, charts.to_ours());
    Seen { ledger, claims, events, holes, fired, span }
}

/// The observations of Prometheus.
struct Charts {
    alerts: Value,
    up: Value,
    /// Its clock less ours, in nanoseconds.
    ahead: i128,
}

impl Charts {
    fn to_ours(&self) -> impl Fn(f64) -> u64 + use<> {
        let ahead = self.ahead;
        move |seconds| {
            let theirs = Duration::from_secs_f64(seconds).as_nanos();
            u64::try_from(i128::try_from(theirs).unwrap_or(0) - ahead).unwrap_or(0)
        }
    }
}

/// Runs Prometheus on a host of its own until it is told to end, and asks it what it has seen.
fn watch(site: &Site, ready: &Sender<()>, ended: &Receiver<()>) -> Charts {
    site.net.enter(WATCH).expect("a thread may enter a namespace");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/alerts.yml");
    let rules = std::fs::read_to_string(path).expect("it is there");
    let targets: Vec<_> = (1..=HOSTS).map(http).collect();
    let prometheus = Prometheus::start(&targets, &quicken(&rules, alerts::TIMES));
    let wall = || Clock::real().read().as_nanos();
    let ahead = i128::from(wall()) - i128::from(clock());
    until("all daemons to be scraped, and no alert", || {
        let is_scraped = prometheus.query("sum(up)").first().is_some_and(|sum| sum["value"][1] == "3");
        is_scraped && prometheus.firing().is_empty()
    });
    let began = wall() / 1_000_000_000;
    let _ = ready.send(());
    let _ = ended.recv();
    let end = wall() / 1_000_000_000;
    let range = |what: &str| {
        prometheus.ask(&format!("/api/v1/query_range?query={what}&start={began}&end={end}&step=1"))
    };
    Charts { alerts: range("ALERTS%7Balertstate%3D%22firing%22%7D"), up: range("up"), ahead }
}

/// The times in which this machine did not run a thread that wanted to run.
fn witness(day: &Day) -> Vec<(u64, u64)> {
    let (mut holes, mut last) = (Vec::new(), clock());
    while !day.over.load(Relaxed) {
        sleep(Duration::from_millis(10));
        let now = clock();
        if now - last > HOLE {
            holes.push((last, now));
        }
        last = now;
    }
    holes
}
