//! The sentinel's one loop: hear, reap, decide, wait.
//!
//! It decides by two readings, taken anew each time: the boot clock, and E from the board. It
//! believes no timer: one that comes late finds a clock that is later still. Its decisions:
//!
//! | seen | done |
//! |---|---|
//! | E - margin - grace has come | TERM to the process groups |
//! | E - margin has come | KILL to everybody, again and again, until the kernel says that there is no child |
//! | the machine slept, or its clocks were disrupted | KILL at once: E means nothing any more |
//! | the runner is dead | TERM at once, KILL after the grace, never later than E - margin |
//! | the command has ended | what it left behind: TERM, KILL after the grace, never later than E - margin |
//! | the runner asks | the same, with the grace that it names; no TERM if another signal went before |
//!
//! A suspend is looked for at each turn ([`Sleep`]), for the boot clock may have counted too little
//! of it (`tenure::Disturbances`), and the runner, which notices it too, may be stuck. The kernel
//! wakes the loop up: a timer of the wall clock is cancelled when the machine resumes.
//!
//! "Over" is reported when nobody is left, not when KILL was sent.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, getpriority_process, kill_process_group, pidfd_open,
    setpriority_process, setsid,
};
use rustix::stdio::stdin;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use tenure::{Clock, VMCLOCK};

use super::cgroup::Cgroup;
use super::sleep::{Alarm, Sleep};
use crate::commands::run::board::Board;
use crate::commands::run::timing::{Timing, now};
use crate::commands::run::wire::{How, Inbox, Job, Order, Report, Why, say};
use crate::commands::run::{family, signals};

/// How soon to look again while somebody is being killed.
const SOON: Duration = Duration::from_millis(1);

/// The highest priority of a process that shares the processor with others.
const HURRY: i32 = -20;

/// Watches until there is nothing left to watch.
pub(super) fn run(command: Vec<OsString>) -> io::Result<()> {
    let runner = getppid().ok_or_else(|| io::Error::other("it is started by `tenure run`"))?;
    let runner = pidfd_open(runner, PidfdFlags::empty())?;
    setsid()?;
    family::adopt()?;
    signals::survive()?;
    let mut inbox = Inbox::default();
    let hello = hear_hello(&mut inbox)?;
    let Some((Order::Hello { grace, margin, scratch, cgroup }, input, board)) = hello else {
        return Ok(()); // The runner has gone before it said anything.
    };
    let timing = Timing { grace: Duration::from_nanos(grace), margin: Duration::from_nanos(margin) };
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    let cgroup = if cgroup { Cgroup::make() } else { None };
    let sleep = Sleep::since_now(&Clock::boot(), Some(Path::new(VMCLOCK)));
    let mut watch = Watch {
        command,
        nice: hurry(),
        input,
        board,
        timing,
        scratch,
        cgroup,
        runner,
        timer,
        resumed: Alarm::set(),
        sleep,
        inbox,
        jobs: Vec::new(),
        ending: None,
        quit: false,
    };
    watch.tell(&Report::Ready { cgroup: watch.cgroup.as_ref().map(|cgroup| cgroup.path().to_owned()) });
    watch.watch()
}

/// Raises the priority of this process where that is allowed (root, `CAP_SYS_NICE`), and returns
/// the one before: KILL must not wait until a host that is busy, perhaps with the command itself,
/// has time.
fn hurry() -> Option<i32> {
    let before = getpriority_process(None).ok()?;
    setpriority_process(None, HURRY).ok().map(|()| before)
}

fn hear_hello(inbox: &mut Inbox) -> io::Result<Option<(Order, OwnedFd, Board)>> {
    loop {
        inbox.fill(stdin());
        if let Some(hello) = inbox.next() {
            let mut files = inbox.files.drain(..);
            let (Some(input), Some(board)) = (files.next(), files.next()) else {
                return Err(io::Error::other("the runner sent no board"));
            };
            return Ok(Some((hello, input, Board::of(board))));
        }
        if inbox.closed {
            return Ok(None);
        }
        let control = stdin();
        let _ = poll(&mut [PollFd::new(&control, PollFlags::IN)], None);
    }
}

/// Something that runs.
struct Running {
    job: Job,
    pid: Pid,
    /// Readable when it has ended.
    file: OwnedFd,
    /// When it must have ended, whatever the lease.
    limit: u64,
    /// How it ended; once that is known its number may be another's.
    code: Option<u8>,
    /// It was killed because it took longer than it may.
    timed_out: bool,
}

impl Running {
    fn signal(&self, signal: Signal) {
        if self.code.is_none() {
            let _ = kill_process_group(self.pid, signal);
        }
    }
}

/// Everything is to end.
struct Ending {
    why: Why,
    /// When KILL is due, if the lease does not demand it before.
    kill_at: u64,
    killing: bool,
    /// The command has ended, and TERM was sent to those that it left behind.
    swept: bool,
}

struct Watch {
    command: Vec<OsString>,
    /// The priority of the command and of hooks, if this process has raised its own.
    nice: Option<i32>,
    input: OwnedFd,
    board: Board,
    timing: Timing,
    scratch: PathBuf,
    cgroup: Option<Cgroup>,
    runner: OwnedFd,
    timer: OwnedFd,
    /// Readable when the machine has resumed.
    resumed: Option<Alarm>,
    sleep: Sleep,
    inbox: Inbox,
    jobs: Vec<Running>,
    ending: Option<Ending>,
    quit: bool,
}

impl Watch {
    fn watch(&mut self) -> io::Result<()> {
        loop {
            self.obey();
            let alone = self.reap();
            self.decide(alone);
            if self.jobs.is_empty() && self.ending.is_none() && (self.quit || self.inbox.closed) {
                if !self.quit {
                    let _ = fs::remove_dir_all(&self.scratch); // The runner could not.
                }
                return Ok(());
            }
            self.wait()?;
        }
    }

    fn tell(&self, report: &Report) {
        let _ = say(stdin(), report); // A runner that is gone, or stopped forever, needs no reports.
    }

    fn obey(&mut self) {
        self.inbox.fill(stdin());
        let mut runner = [PollFd::new(&self.runner, PollFlags::IN)];
        if poll(&mut runner, Some(&timespec(0))).is_ok_and(|dead| dead > 0) {
            self.inbox.closed = true;
        }
        while let Some(order) = self.inbox.next() {
            match order {
                Order::Hello { .. } => {}
                Order::Start { job, script, environment, limit } => {
                    self.start(job, script, environment, limit);
                }
                Order::Signal(number) => {
                    if let Some(signal) = Signal::from_named_raw(number) {
                        self.work().into_iter().for_each(|work| work.signal(signal));
                    }
                }
                Order::Stop { within, told } => {
                    self.end_told(Why::Asked, now().saturating_add(within), told);
                }
                Order::Ping => self.tell(&Report::Awake),
                Order::Quit => {
                    self.quit = true;
                    self.end(Why::Asked, now());
                }
            }
        }
    }

    fn work(&self) -> Option<&Running> {
        self.jobs.iter().find(|running| running.job == Job::Work)
    }

    /// The end of the lease, if anything runs that needs one.
    fn lease(&self) -> Option<u64> {
        self.jobs.iter().any(|running| running.job != Job::Lost).then(|| self.board.end())
    }

    fn start(
        &mut self,
        job: Job,
        script: Option<String>,
        environment: Vec<(String, String)>,
        limit: Option<u64>,
    ) {
        let end = self.board.end();
        let late = job != Job::Lost && (now() >= self.timing.term_at(end) || self.sleep.voids(end));
        let started = if late || self.ending.is_some() {
            Err(io::Error::other("the lease has no room for it"))
        } else {
            self.spawn(script, environment)
        };
        match started {
            Ok((pid, file)) => {
                let limit = limit.map_or(u64::MAX, |limit| now().saturating_add(limit));
                self.jobs.push(Running { job, pid, file, limit, code: None, timed_out: false });
                self.tell(&Report::Started { job, pid: pid.as_raw_nonzero().get() });
            }
            Err(error) => self.tell(&Report::Refused { job, why: error.to_string() }),
        }
    }

    fn spawn(
        &self,
        script: Option<String>,
        environment: Vec<(String, String)>,
    ) -> io::Result<(Pid, OwnedFd)> {
        // The very file that we are, whatever has been installed in its place since.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("tenure").arg("sentinel").arg(format!("--exec={}", getpid().as_raw_nonzero()));
        if let Some(cgroup) = &self.cgroup {
            command.arg("--cgroup").arg(cgroup.path());
        }
        if let Some(nice) = self.nice {
            command.arg(format!("--nice={nice}"));
        }
        command.arg("--");
        match script {
            Some(script) => command.args(["/bin/sh", "-c", &script]).stdin(Stdio::null()),
            None => command.args(&self.command).stdin(self.input.try_clone()?),
        };
        let child = command.envs(environment).process_group(0).spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::Other)?;
        // It cannot have been reaped: that is done here alone.
        Ok((pid, pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Notes who has ended. Says whether nobody is left at all.
    fn reap(&mut self) -> bool {
        let jobs = &mut self.jobs;
        family::reap(|pid, status| {
            if let Some(running) =
                jobs.iter_mut().find(|running| running.pid == pid && running.code.is_none())
            {
                running.code = family::code(status).or(Some(1));
            }
        })
    }

    fn decide(&mut self, alone: bool) {
        let now = now();
        let (timing, orphaned) = (self.timing, self.inbox.closed);
        if self.sleep.was_there(self.board.end()) && self.lease().is_some() {
            self.end(Why::Disturbed, now);
        }
        if self.ending.is_none() {
            if orphaned && !alone {
                self.end(Why::Orphaned, now.saturating_add(nanos(timing.grace)));
            } else if self.work().is_some_and(|work| work.code.is_some()) {
                self.end(Why::Exit, now.saturating_add(nanos(timing.grace)));
            } else if self.lease().is_some_and(|end| now >= timing.term_at(end)) {
                self.end(Why::Lease, u64::MAX);
            }
        }
        self.limit(now);
        if alone {
            return self.settle();
        }
        self.sweep();
        let due = self.deadline();
        let Some(ending) = &mut self.ending else { return };
        if now >= due {
            let first = !std::mem::replace(&mut ending.killing, true);
            self.kill();
            if first {
                self.tell(&Report::Killing);
            }
        }
    }

    /// Once the command has ended: TERM to all that it left behind, in whatever process group.
    fn sweep(&mut self) {
        let ended = self.work().is_some_and(|work| work.code.is_some());
        if let Some(ending) = self.ending.as_mut().filter(|ending| ended && !ending.swept) {
            ending.swept = true;
            family::signal_all(Signal::TERM);
        }
    }

    /// When KILL is due.
    fn deadline(&self) -> u64 {
        let by_lease = self.lease().map_or(u64::MAX, |end| self.timing.kill_at(end));
        self.ending.as_ref().map_or(u64::MAX, |ending| ending.kill_at).min(by_lease)
    }

    /// Asks everybody to end, once; a later reason can only make it sooner.
    fn end(&mut self, why: Why, kill_at: u64) {
        self.end_told(why, kill_at, false);
    }

    /// The same; the command gets no TERM if it was `told` by another signal.
    fn end_told(&mut self, why: Why, kill_at: u64, told: bool) {
        if let Some(ending) = &mut self.ending {
            ending.kill_at = ending.kill_at.min(kill_at);
            return;
        }
        self.ending = Some(Ending { why, kill_at, killing: false, swept: false });
        for running in &self.jobs {
            if !told || running.job != Job::Work {
                running.signal(Signal::TERM);
            }
            running.signal(Signal::CONT); // A stopped process could not end otherwise.
        }
        self.tell(&Report::Terminating(why));
    }

    fn kill(&self) {
        self.jobs.iter().for_each(|running| running.signal(Signal::KILL));
        if let Some(cgroup) = &self.cgroup {
            family::kill_cgroup(cgroup.path());
        }
        family::signal_all(Signal::KILL);
    }

    /// Ends hooks that take too long, and tells how those ended that did.
    fn limit(&mut self, now: u64) {
        for running in self.jobs.iter_mut().filter(|running| now >= running.limit && running.code.is_none()) {
            running.signal(Signal::KILL);
            running.timed_out = true;
        }
        let hooks = |running: &mut Running| running.job != Job::Work && running.code.is_some();
        for running in self.jobs.extract_if(.., hooks).collect::<Vec<_>>() {
            let how = if running.timed_out { How::TimedOut } else { How::Code(running.code.unwrap_or(1)) };
            self.tell(&Report::Ended { job: running.job, how });
        }
    }

    /// Nobody is left.
    fn settle(&mut self) {
        let Some(ending) = self.ending.take() else { return };
        let code = self.work().and_then(|work| work.code);
        self.jobs.clear();
        self.tell(&Report::Over { code, why: ending.why });
    }

    /// Until something happens, or the next deadline.
    fn wait(&self) -> io::Result<()> {
        let limits = self.jobs.iter().map(|running| running.limit).min().unwrap_or(u64::MAX);
        let by_lease = self.lease().filter(|_| self.ending.is_none());
        let term_at = by_lease.map_or(u64::MAX, |end| self.timing.term_at(end));
        let next = self.deadline().min(limits).min(term_at);
        let at = Itimerspec {
            it_interval: timespec(0),
            it_value: timespec(if next == u64::MAX { 0 } else { next.max(1) }),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &at)?;
        let mut files = vec![PollFd::new(&self.timer, PollFlags::IN)];
        files.extend(self.resumed.iter().map(|alarm| PollFd::new(alarm, PollFlags::IN)));
        let control = stdin();
        if !self.inbox.closed {
            files.push(PollFd::new(&control, PollFlags::IN));
            files.push(PollFd::new(&self.runner, PollFlags::IN));
        }
        files.extend(
            self.jobs
                .iter()
                .filter(|running| running.code.is_none())
                .map(|running| PollFd::from_borrowed_fd(running.file.as_fd(), PollFlags::IN)),
        );
        // While something ends, orphans end whom no file here stands for.
        let soon =
            self.ending.as_ref().map(|ending| timespec(nanos(SOON) * if ending.killing { 1 } else { 5 }));
        let polled = poll(&mut files, soon.as_ref());
        drop(files);
        self.resumed.iter().for_each(Alarm::reset);
        match polled {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn nanos(length: Duration) -> u64 {
    crate::commands::run::timing::nanos(length)
}

fn timespec(nanos: u64) -> Timespec {
    let part = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    Timespec { tv_sec: part(nanos / 1_000_000_000), tv_nsec: part(nanos % 1_000_000_000) }
}
