//! The deeds of the day, in two threads: one that does things to the cluster and one that does
//! things to the applications, each in an order that is drawn from the seed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use tenure_testkit::chance::Chance;
use tenure_testkit::namespaces::Cut;

use crate::site::{APPS, HOSTS, LEASE, Site, group, lock};

/// Things that happen to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Kill,
    KillLong,
    Restart,
    Reboot,
    CutBoth,
    CutIn,
    CutOut,
    StopTwo,
    StopTwoLong,
    KillTwo,
    Replace,
    Rotate,
}

const ALL: [Blow; 12] = [
    Blow::Kill,
    Blow::KillLong,
    Blow::Restart,
    Blow::Reboot,
    Blow::CutBoth,
    Blow::CutIn,
    Blow::CutOut,
    Blow::StopTwo,
    Blow::StopTwoLong,
    Blow::KillTwo,
    Blow::Replace,
    Blow::Rotate,
];

/// Those of a short day.
const FEW: [Blow; 4] = [Blow::Kill, Blow::CutBoth, Blow::StopTwo, Blow::Rotate];

/// Things that happen to an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mishap {
    KillRunner,
    StopRunner,
    KillSentinel,
    KillCommand,
    Transfer,
    Resign,
    /// Nobody runs it for a while.
    Retire,
}

const MISHAPS: [Mishap; 7] = [
    Mishap::KillRunner,
    Mishap::StopRunner,
    Mishap::KillSentinel,
    Mishap::KillCommand,
    Mishap::Transfer,
    Mishap::Resign,
    Mishap::Retire,
];

/// Draws from a deck until it is empty, then shuffles it anew: each kind comes as often as another.
struct Deck<T> {
    all: Vec<T>,
    left: Vec<T>,
}

impl<T: Copy> Deck<T> {
    fn new(all: &[T]) -> Self {
        Self { all: all.to_vec(), left: Vec::new() }
    }

    fn draw(&mut self, chance: &mut Chance) -> T {
        if self.left.is_empty() {
            self.left.clone_from(&self.all);
        }
        self.left.swap_remove(chance.index(self.left.len()))
    }
}

/// The day: how it is told to end, and what keeps the two threads apart where they must not meet.
#[derive(Default)]
pub(crate) struct Day {
    pub(crate) over: AtomicBool,
    /// Held while an application is in the middle of something.
    applications: Mutex<()>,
}

impl Day {
    fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// Sleeps, unless the day ends before.
    fn pause(&self, length: Duration) {
        let step = Duration::from_millis(100);
        let mut left = length;
        while left > Duration::ZERO && !self.is_over() {
            sleep(step.min(left));
            left = left.saturating_sub(step);
        }
    }

    /// Does things to the cluster, one after the other, with a calm while after each.
    pub(crate) fn trouble_the_cluster(&self, site: &Site, seed: u64, is_short: bool) {
        let mut chance = Chance::new(seed);
        let mut deck = Deck::new(if is_short { &FEW } else { &ALL });
        self.pause(Duration::from_secs(6));
        while !self.is_over() {
            let blow = deck.draw(&mut chance);
            self.strike(site, blow, &mut chance);
            self.pause(Duration::from_millis(6000 + chance.below(3000)));
        }
    }

    fn strike(&self, site: &Site, blow: Blow, chance: &mut Chance) {
        let host = host(chance);
        let others: Vec<u8> = (1..=HOSTS).filter(|other| *other != host).collect();
        match blow {
            Blow::Kill => self.kill(site, ("kill -9 a daemon", host), chance.below(3000)),
            Blow::KillLong => self.kill(site, ("kill -9 a daemon, for long", host), 22_000),
            Blow::Restart => {
                let event = site.begin("restart a daemon", &[host], None);
                site.stop(host);
                self.restart(site, &[host], event);
            }
            Blow::Reboot => {
                let event = site.begin("reboot a host", &[host], None);
                site.kill(host);
                site.forget(host);
                self.restart(site, &[host], event);
            }
            Blow::CutBoth => self.cut(site, ("cut a host off", host, Cut::Both), chance),
            Blow::CutIn => self.cut(site, ("cut: a host hears nothing", host, Cut::In), chance),
            Blow::CutOut => self.cut(site, ("cut: a host is not heard", host, Cut::Out), chance),
            Blow::StopTwo => self.stop_two(site, "stop two of three", &others, 8000 + chance.below(2000)),
            Blow::StopTwoLong => self.stop_two(site, "stop two of three, for long", &others, 24_000),
            Blow::KillTwo => {
                let event = site.begin("kill -9 two of three", &others, None);
                others.iter().for_each(|host| site.kill(*host));
                self.pause(Duration::from_millis(8000 + chance.below(2000)));
                self.restart(site, &others, event);
            }
            Blow::Replace => {
                let event = site.begin("replace a member", &[host], None);
                site.replace(host);
                site.mended(event);
            }
            Blow::Rotate => self.rotate(site),
        }
    }

    fn kill(&self, site: &Site, (kind, host): (&'static str, u8), millis: u64) {
        let event = site.begin(kind, &[host], None);
        site.kill(host);
        self.pause(Duration::from_millis(1000 + millis));
        self.restart(site, &[host], event);
    }

    fn restart(&self, site: &Site, hosts: &[u8], event: usize) {
        hosts.iter().for_each(|host| site.start(*host, &[]));
        hosts.iter().for_each(|host| site.await_ready(*host));
        site.mended(event);
    }

    fn cut(&self, site: &Site, (kind, host, cut): (&'static str, u8, Cut), chance: &mut Chance) {
        let event = site.begin(kind, &[host], None);
        site.net.cut(host, cut).expect("nft");
        self.pause(Duration::from_millis(5000 + chance.below(4000)));
        site.net.heal(host);
        site.await_ready(host);
        site.mended(event);
    }

    fn stop_two(&self, site: &Site, kind: &'static str, hosts: &[u8], millis: u64) {
        let event = site.begin(kind, hosts, None);
        hosts.iter().for_each(|host| site.signal(*host, Signal::STOP));
        self.pause(Duration::from_millis(millis));
        hosts.iter().for_each(|host| site.signal(*host, Signal::CONT));
        (1..=HOSTS).for_each(|host| site.await_ready(host));
        site.mended(event);
    }

    /// The three steps of docs/guides/keys.md.
    fn rotate(&self, site: &Site) {
        let event = site.begin("rotate the cluster's key", &[], None);
        let first = site.home(1) + "/key.new";
        for step in ["1", "2", "3"] {
            if step == "3" {
                self.give_new_keys(site);
            }
            let reloaded: Vec<usize> = (1..=HOSTS).map(|host| reloads(site, host)).collect();
            for host in 1..=HOSTS {
                let file = site.file(host);
                let mut words = vec!["key", "rotate", "--step", step, "-c", &file];
                if step == "1" && host > 1 {
                    words.extend(["--with", &first]);
                }
                let done = site.tenure(host, &words);
                assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
            }
            (1..=HOSTS).for_each(|host| site.signal(host, Signal::HUP));
            for (host, before) in (1..=HOSTS).zip(reloaded) {
                site.await_lines(host, "event=reloaded", before + 1);
            }
        }
        site.mended(event);
    }

    /// Gives every application a key that is made from the new one, and waits until all runners
    /// have taken it. Nothing is done to an application meanwhile: a runner that is stopped takes
    /// no key, and would be one of the forgotten clients of the guide.
    fn give_new_keys(&self, site: &Site) {
        let _quiet = lock(&self.applications);
        std::fs::copy(site.path(&(site.home(1) + "/key")), site.path("D/key")).expect("it is copied");
        let before: Vec<usize> = (0..APPS).map(|app| taken(site, app)).collect();
        site.tend();
        for app in 0..APPS {
            site.make_key(app, "key derive");
        }
        for (app, before) in before.into_iter().enumerate() {
            tenure_testkit::waiting::until(&format!("the new keys of app{app}"), || {
                taken(site, app) >= before + 2
            });
        }
    }
}

fn host(chance: &mut Chance) -> u8 {
    u8::try_from(chance.below(u64::from(HOSTS))).expect("a host") + 1
}

/// How often a member has read its files again.
fn reloads(site: &Site, host: u8) -> usize {
    let log = site.path(&format!("{}.log", site.member(host)));
    std::fs::read_to_string(log).unwrap_or_default().matches("event=reloaded").count()
}

/// How often the runners of an application have taken a key.
fn taken(site: &Site, app: usize) -> usize {
    let logs = (1..=HOSTS).map(|host| site.path(&format!("app{app}-h{host}.log")));
    logs.map(|log| std::fs::read_to_string(log).unwrap_or_default().matches("\"key_taken\"").count()).sum()
}

/// Applications.
impl Day {
    /// Does things to applications, one after the other.
    pub(crate) fn trouble_the_applications(&self, site: &Site, seed: u64) {
        let mut chance = Chance::new(seed);
        let mut deck = Deck::new(&MISHAPS);
        self.pause(Duration::from_secs(2));
        while !self.is_over() {
            {
                let _one = lock(&self.applications);
                self.harm(site, deck.draw(&mut chance), chance.index(APPS));
            }
            site.tend();
            self.pause(Duration::from_millis(1000 + chance.below(3000)));
        }
    }

    fn harm(&self, site: &Site, mishap: Mishap, app: usize) {
        let group = group(app);
        let leader = site.referee.ledger().working(&group).map(|life| life.runner.clone());
        let Some(leader) = leader else { return };
        let begin = |kind| site.begin(kind, &[], Some(&group));
        let event = match mishap {
            Mishap::KillRunner => {
                let event = begin("kill -9 a runner");
                site.end_runners(&[leader], Signal::KILL);
                event
            }
            Mishap::StopRunner => {
                let event = begin("stop a runner");
                site.signal_runner(&leader, Signal::STOP);
                self.pause(LEASE + Duration::from_secs(2));
                site.signal_runner(&leader, Signal::CONT);
                event
            }
            Mishap::KillSentinel => {
                let event = begin("kill -9 a sentinel");
                site.descendant(&leader, 1).map(|pid| kill_process(pid, Signal::KILL));
                event
            }
            Mishap::KillCommand => {
                let event = begin("kill -9 a command");
                site.descendant(&leader, 2).map(|pid| kill_process(pid, Signal::KILL));
                event
            }
            Mishap::Transfer => {
                let event = begin("transfer");
                let to = site.runners(app).into_iter().find(|name| *name != leader);
                ask(site, &["transfer", &group, "--to", &to.unwrap_or_default()]);
                event
            }
            Mishap::Resign => {
                let event = begin("resign");
                ask(site, &["resign", &group]);
                event
            }
            Mishap::Retire => {
                let event = begin("nobody runs an application");
                site.end_runners(&site.runners(app), Signal::TERM);
                self.pause(Duration::from_secs(15));
                event
            }
        };
        site.mended(event);
    }
}

/// Orders something, as an operator does. It may fail: the cluster may be in trouble.
fn ask(site: &Site, words: &[&str]) {
    let file = site.file(1);
    let _ = site.tenure(1, &[words, &["-c", &file]].concat());
}
