//! The site: three hosts, each with a member of the cluster and runners of ten applications; a
//! fourth from which Prometheus looks.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure_testkit::binary;
use tenure_testkit::daemons::Daemon;
use tenure_testkit::http_cluster::get_within;
use tenure_testkit::namespaces::{Net, address};
use tenure_testkit::referee::{Ledger, Referee, clock};
use tenure_testkit::waiting::until;

use crate::TENURE;

/// How many hosts have a member.
pub(crate) const HOSTS: u8 = 3;
/// The host of Prometheus.
pub(crate) const WATCH: u8 = 4;
/// How many applications there are, with two runners each.
pub(crate) const APPS: usize = 10;
/// The lease of every runner.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// Half of the lease has room for grace, margin and three tries to renew. The margin is more than
/// the default, for a machine that does much else.
const TIMES: [&str; 3] = ["--lease=3s", "--grace=300ms", "--kill-margin=500ms"];
/// How long an answer over HTTP may take.
const ANSWER: Duration = Duration::from_secs(4);

/// Something that was done.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) kind: &'static str,
    /// The hosts that it is done to; none for an application's own.
    pub(crate) hosts: Vec<u8>,
    /// The group that it is done to; none if to the cluster.
    pub(crate) group: Option<String>,
    pub(crate) from: u64,
    /// When all was mended; the end of time while it is not.
    pub(crate) to: u64,
}

/// The member on a host: a name, and the process.
pub(crate) struct Seat {
    pub(crate) name: String,
    /// How many members had this place before.
    generation: u16,
    daemon: Option<Daemon>,
}

/// A runner's place. The process changes.
struct Place {
    app: usize,
    host: u8,
    /// How many processes it has had.
    count: usize,
    name: String,
    child: Option<Child>,
}

pub(crate) struct Site {
    pub(crate) net: Net,
    pub(crate) referee: Referee,
    folder: PathBuf,
    seats: Mutex<Vec<Seat>>,
    places: Mutex<Vec<Place>>,
    events: Mutex<Vec<Event>>,
}

/// A file of the founders, in which HTTP is served to other hosts and grants are remembered in a
/// folder of the member's own.
fn opened(text: &str, host: u8) -> String {
    text.replace("http = \"127.0.0.1:7401\"", &format!("http = \"{}\"\nopen_reads = true", http(host)))
        .replace("store = \"store\"", "memory = \"memory\"\nstore = \"store\"")
}

/// Where a host's daemon answers.
pub(crate) fn http(host: u8) -> SocketAddr {
    format!("{}:7401", address(host)).parse().expect("an address")
}

/// The group of an application.
pub(crate) fn group(app: usize) -> String {
    format!("app{app}/jobs")
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Site {
    /// Founds the cluster, makes the applications' keys, and starts everything.
    pub(crate) fn open(net: Net, folder: &Path) -> Self {
        let referee = Referee::open(folder).expect("a referee");
        let seat = |host| Seat { name: format!("h{host}"), generation: 0, daemon: None };
        let place = |index: usize| {
            let (app, second) = (index % APPS, index / APPS);
            let host = u8::try_from((app + second) % usize::from(HOSTS)).expect("a host") + 1;
            Place { app, host, count: 0, name: String::new(), child: None }
        };
        let site = Self {
            net,
            referee,
            folder: folder.to_owned(),
            seats: Mutex::new((1..=HOSTS).map(seat).collect()),
            places: Mutex::new((0..2 * APPS).map(place).collect()),
            events: Mutex::default(),
        };
        site.found();
        (1..=HOSTS).for_each(|host| site.start(host, &[]));
        (1..=HOSTS).for_each(|host| site.await_ready(host));
        site.tend();
        site
    }

    fn found(&self) {
        let members: Vec<String> =
            (1..=HOSTS).map(|host| format!("--member h{host}={}:7400", address(host))).collect();
        TENURE.succeeds(&self.folder, &format!("init --dir D {}", members.join(" ")));
        for host in 1..=HOSTS {
            self.rewrite(&format!("D/h{host}/tenure.toml"), |text| opened(text, host));
            fs::create_dir(self.path(&format!("D/h{host}/memory"))).expect("a folder");
        }
        let endpoints: Vec<String> = (1..=HOSTS).map(|host| format!("\"http://{}\"", http(host))).collect();
        self.rewrite("D/tenure.toml", |text| {
            text.replace("\"http://127.0.0.1:7401\"", &endpoints.join(", "))
        });
        for app in 0..APPS {
            self.make_key(app, "key");
            let text = fs::read_to_string(self.path("D/tenure.toml")).expect("it is there");
            let own = text
                .replace("key_file = \"client.key\"", &format!("key_file = \"app{app}.key\""))
                .replace("cluster_key_file = \"key\"", "");
            fs::write(self.path(&format!("D/app{app}.toml")), own).expect("it is written");
        }
    }

    /// Makes the key of an application, by `tenure key` or `tenure key derive`, and puts it in the
    /// place of the one before.
    pub(crate) fn make_key(&self, app: usize, how: &str) {
        let words =
            format!("{how} --candidate app{app} --groups app{app}/* --out D/app{app}.new -c D/tenure.toml");
        TENURE.succeeds(&self.folder, &words);
        let (new, own) = (format!("D/app{app}.new"), format!("D/app{app}.key"));
        fs::rename(self.path(&new), self.path(&own)).expect("it is ours");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Changes a text file.
    fn rewrite(&self, name: &str, change: impl Fn(&str) -> String) {
        let path = self.path(name);
        let text = fs::read_to_string(&path).expect("it is there");
        fs::write(path, change(&text)).expect("it is written");
    }

    /// A program on a host, in the folder of the site, without what the environment of tests says.
    pub(crate) fn command(&self, host: u8, words: &[&str]) -> Command {
        let mut command = self.net.command(host, TENURE.0);
        binary::clear(&mut command);
        command.args(words).current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// Runs `tenure` on a host, to its end.
    pub(crate) fn tenure(&self, host: u8, words: &[&str]) -> Output {
        self.command(host, words).output().expect("it starts")
    }

    /// The folder of the member on a host, from that of the site.
    pub(crate) fn home(&self, host: u8) -> String {
        format!("D/{}", self.member(host))
    }

    /// The file of the member on a host.
    pub(crate) fn file(&self, host: u8) -> String {
        self.home(host) + "/tenure.toml"
    }

    /// The name of the member on a host.
    pub(crate) fn member(&self, host: u8) -> String {
        lock(&self.seats)[usize::from(host) - 1].name.clone()
    }

    /// Notes that something begins. Returns its place.
    pub(crate) fn begin(&self, kind: &'static str, hosts: &[u8], group: Option<&str>) -> usize {
        let (hosts, group) = (hosts.to_vec(), group.map(str::to_owned));
        let mut events = lock(&self.events);
        events.push(Event { kind, hosts, group, from: clock(), to: u64::MAX });
        events.len() - 1
    }

    /// Notes that all is mended.
    pub(crate) fn mended(&self, event: usize) {
        lock(&self.events)[event].to = clock();
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        lock(&self.events).clone()
    }
}

/// Members.
impl Site {
    fn with_seat<T>(&self, host: u8, work: impl FnOnce(&mut Seat) -> T) -> T {
        work(&mut lock(&self.seats)[usize::from(host) - 1])
    }

    pub(crate) fn start(&self, host: u8, flags: &[&str]) {
        let file = self.file(host);
        let parent = std::process::id().to_string();
        let words = [&["node", "-c", &file, "--parent-pid", &parent], flags].concat();
        let log = self.path(&format!("{}.log", self.member(host)));
        let daemon = Daemon::start(self.command(host, &words), &log);
        self.with_seat(host, |seat| seat.daemon = Some(daemon));
    }

    pub(crate) fn signal(&self, host: u8, signal: Signal) {
        self.with_seat(host, |seat| seat.daemon.as_ref().expect("it runs").signal(signal));
    }

    /// Kills a member's process.
    pub(crate) fn kill(&self, host: u8) {
        self.with_seat(host, |seat| drop(seat.daemon.take()));
    }

    /// Asks a member's process to end, and waits for that.
    pub(crate) fn stop(&self, host: u8) {
        let daemon = self.with_seat(host, |seat| seat.daemon.take()).expect("it runs");
        daemon.signal(Signal::TERM);
        let _ = daemon.end();
    }

    /// Forgets the grants of a member that has ended, as a reboot of its host does.
    pub(crate) fn forget(&self, host: u8) {
        let memory = self.path(&(self.home(host) + "/memory"));
        fs::remove_dir_all(&memory).expect("it is there");
        fs::create_dir(memory).expect("a folder");
    }

    /// Waits until the daemon of a host is ready. Asks from that very host.
    pub(crate) fn await_ready(&self, host: u8) {
        let is_ready =
            || get_within(http(host), "/readyz", ANSWER).is_some_and(|said| said.starts_with("HTTP/1.1 200"));
        self.on(host, || until(&format!("{} to be ready", self.member(host)), is_ready));
    }

    /// Waits for so many lines with this in them in the log of a member.
    pub(crate) fn await_lines(&self, host: u8, part: &str, count: usize) {
        let log = self.path(&format!("{}.log", self.member(host)));
        until(&format!("{count} of {part} in {}", log.display()), || {
            fs::read_to_string(&log).unwrap_or_default().matches(part).count() >= count
        });
    }

    /// Does something on a thread of its own that is on a host.
    pub(crate) fn on<T: Send>(&self, host: u8, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let there = scope.spawn(|| {
                self.net.enter(host).expect("a thread may enter a namespace");
                work()
            });
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Replaces the member of a host, whose disk is lost, by a new one, as docs/guides/members.md
    /// says.
    pub(crate) fn replace(&self, host: u8) {
        let other = host % HOSTS + 1;
        let (old, old_port) = self.with_seat(host, |seat| (seat.name.clone(), 7400 + 10 * seat.generation));
        self.kill(host);
        let (name, port) = self.with_seat(host, |seat| {
            seat.generation += 1;
            seat.name = format!("h{host}-{}", seat.generation);
            (seat.name.clone(), 7400 + 10 * seat.generation)
        });
        let udp = |port| format!("{}:{port}", address(host));
        let home = self.path(&format!("D/{name}"));
        fs::create_dir_all(home.join("memory")).expect("a folder");
        for file in ["key", "tokens"] {
            fs::copy(self.path(&self.home(other)).join(file), home.join(file)).expect("it is copied");
        }
        let text = fs::read_to_string(self.path(&self.file(other))).expect("it is there");
        let (other_name, listen) = (self.member(other), text.lines().find(|line| line.starts_with("listen")));
        let text = text
            .replacen(&format!("name = \"{other_name}\""), &format!("name = \"{name}\""), 1)
            .replacen(listen.expect("a line"), &format!("listen = \"{}\"", udp(port)), 1)
            .replacen(&format!("http = \"{}\"", http(other)), &format!("http = \"{}\"", http(host)), 1);
        fs::write(home.join("tenure.toml"), text).expect("it is written");
        self.start(host, &["--join"]);
        self.await_lines(host, "event=started", 1);
        let asked = self.file(other);
        let words = ["members", "replace", &old, &name, &udp(port), "-c", &asked];
        let done = self.tenure(other, &words);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        self.await_ready(host);
        self.update_files((&old, &udp(old_port)), (&name, &udp(port)));
    }

    /// Puts a new member's name and address in the place of an old one's in every file.
    fn update_files(&self, old: (&str, &str), new: (&str, &str)) {
        let members = (1..=HOSTS).map(|host| self.file(host));
        let applications = (0..APPS).map(|app| format!("D/app{app}.toml"));
        for file in members.chain(applications).chain(["D/tenure.toml".to_owned()]) {
            let entry = |(name, address): (&str, &str)| format!("name = \"{name}\"\naddress = \"{address}\"");
            self.rewrite(&file, |text| text.replace(&entry(old), &entry(new)));
        }
    }
}

/// Runners.
impl Site {
    /// Starts the runners that do not run. Notes those that have ended by themselves.
    pub(crate) fn tend(&self) {
        for index in 0..2 * APPS {
            let mut places = lock(&self.places);
            let place = &mut places[index];
            if place.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None))) {
                self.referee.ledger().runner_ended(&place.name, clock());
                place.child = None;
            }
            if place.child.is_none() {
                self.start_runner(place);
            }
        }
    }

    fn start_runner(&self, place: &mut Place) {
        place.count += 1;
        let (app, host) = (place.app, place.host);
        place.name = format!("app{app}-h{host}-{}", place.count);
        let (group, file) = (group(app), format!("D/app{app}.toml"));
        self.referee.ledger().runner_begins(&place.name, &group, host, clock());
        let own = std::env::current_exe().expect("this program");
        let words = ["run", "-o", "json", "-c", &file, "-g", &group, "--name", &place.name, "--no-cgroup"];
        let mut command = self.command(host, &words);
        command.args(TIMES).arg("--").arg(own).arg("lead").arg(&self.folder);
        let log = self.path(&format!("app{app}-h{host}.log"));
        let log = fs::File::options().create(true).append(true).open(log).expect("a log");
        command.stdout(log.try_clone().expect("a file")).stderr(log);
        place.child = Some(command.spawn().expect("it starts"));
    }

    /// Sends a signal to a runner, if it is there.
    pub(crate) fn signal_runner(&self, name: &str, signal: Signal) {
        let places = lock(&self.places);
        if let Some(child) = places.iter().find(|place| place.name == name).and_then(|p| p.child.as_ref()) {
            let _ = kill_process(Pid::from_child(child), signal); // It may have ended.
        }
    }

    /// The first child of a runner: its sentinel. The sentinel's: the command.
    pub(crate) fn descendant(&self, name: &str, generations: usize) -> Option<Pid> {
        let places = lock(&self.places);
        let mut pid = places.iter().find(|place| place.name == name)?.child.as_ref()?.id();
        for _ in 0..generations {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            pid = children.split_whitespace().next()?.parse().ok()?;
        }
        Pid::from_raw(i32::try_from(pid).ok()?)
    }

    /// Ends runners by a signal and waits for their ends.
    pub(crate) fn end_runners(&self, names: &[String], signal: Signal) {
        names.iter().for_each(|name| self.signal_runner(name, signal));
        for name in names {
            let child = {
                let mut places = lock(&self.places);
                places.iter_mut().find(|place| place.name == *name).and_then(|place| place.child.take())
            };
            if let Some(mut child) = child {
                let _ = child.wait();
                self.referee.ledger().runner_ended(name, clock());
            }
        }
    }

    /// The names of an application's runners.
    pub(crate) fn runners(&self, app: usize) -> Vec<String> {
        let places = lock(&self.places);
        places.iter().filter(|place| place.app == app).map(|place| place.name.clone()).collect()
    }

    /// Waits until every application has a leader that works.
    pub(crate) fn await_leaders(&self) {
        for app in 0..APPS {
            let group = group(app);
            until(&format!("a leader of {group}"), || {
                self.tend();
                self.referee.ledger().working(&group).is_some()
            });
        }
    }

    /// Ends all, runners first, so that nothing runs on. Gives what the referee knows.
    pub(crate) fn close(&mut self) -> Ledger {
        let names: Vec<String> = lock(&self.places).iter().map(|place| place.name.clone()).collect();
        self.end_runners(&names, Signal::TERM);
        (1..=HOSTS).for_each(|host| self.kill(host));
        self.referee.close()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for place in lock(&self.places).iter_mut() {
            if let Some(mut child) = place.child.take() {
                let _ = kill_process(Pid::from_child(&child), Signal::CONT);
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
