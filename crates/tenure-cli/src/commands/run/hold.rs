//! One term: the hook, the command, its health, and how all of it comes to an end.
//!
//! While the term lasts this loop publishes E on the board and passes on what happens. Whether the
//! command must end, and when, is decided by the sentinel; this side decides only what it alone can
//! know: a failed look at the health, a request, a signal. And it keeps the last deadline, E -
//! margin/2, in case the sentinel does not.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use tenure::{Asked, Loss, NodeName, OperatorRequest, Tenure, TransferError};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::signals;
use super::supervise::Runner;
use super::timing::{nanos, now};
use super::wire::{How, Job, Order, Report, Why};

/// How often E is read from the guard and published.
const BEAT: Duration = Duration::from_millis(10);

/// How long a command that ended rests before `--respawn` starts it again.
const BREATH: Duration = Duration::from_secs(1);

/// How long after KILL was due those who were asked to end must be dead.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the sentinel is asked whether it is awake.
const PING: Duration = Duration::from_secs(1);

/// Why a term was ended before its command ended by itself.
#[derive(Debug)]
pub(super) enum Stop {
    /// It was not renewed in time.
    Lease,
    /// The guard is over for another reason.
    Lost(Loss),
    /// `--health` failed.
    Health(How),
    /// `--on-elected` failed.
    Hook(How),
    /// The command asked for it.
    Requested,
    /// An operator asked for it, and for whom; he is answered when it is done.
    Asked(Asked, Option<NodeName>),
    /// A signal asked us to end.
    Signal(i32),
    /// The sentinel would not start the command.
    Refused(String),
    /// The sentinel died, or does not answer.
    Sentinel,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lease => f.write_str("the lease was not renewed in time"),
            Self::Lost(loss) => write!(f, "leads no more: {loss}"),
            Self::Health(how) => write!(f, "--health {how}"),
            Self::Hook(how) => write!(f, "--on-elected {how}"),
            Self::Requested | Self::Asked(_, None) => f.write_str("asked to resign"),
            Self::Asked(_, Some(to)) => write!(f, "asked to hand over to {to}"),
            Self::Signal(signal) => write!(f, "stopped by signal {signal}"),
            Self::Refused(why) => write!(f, "the command was not started: {why}"),
            Self::Sentinel => f.write_str("the sentinel died, or sleeps"),
        }
    }
}

/// How a term ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The command's exit code, if it ran and that is known.
    pub(super) code: Option<u8>,
    /// `None` if the command ended by itself.
    pub(super) stop: Option<Stop>,
    /// Whether everybody is dead.
    pub(super) dead: bool,
}

/// The stage of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// `--on-elected` runs.
    Electing,
    /// The command runs.
    Working,
    /// Nothing runs until then.
    Pausing(u64),
}

/// The answer of a process that was asked whether it stands by.
type StandsBy<'a> = Pin<Box<dyn Future<Output = Result<(), TransferError>> + 'a>>;

/// A hand-over that was asked for, while the successor is asked whether it stands by. The command
/// runs on.
struct Planned<'a> {
    asked: Asked,
    to: NodeName,
    answer: StandsBy<'a>,
}

struct Hold<'a> {
    tenure: &'a Tenure,
    environment: &'a [(String, String)],
    /// E, as it was last published.
    end: u64,
    stage: Stage,
    stop: Option<Stop>,
    /// The command's last exit code.
    code: Option<u8>,
    /// When the sentinel has had its time to end what it was asked to.
    patience: u64,
    /// When to look at the health; never while a look is under way.
    health_at: u64,
    /// The guard is over: that is told once.
    guard_over: bool,
    /// When the sentinel was last asked whether it is awake, and whether it has said so.
    pinged: u64,
    awake: bool,
    planned: Option<Planned<'a>>,
}

enum Event {
    Beat,
    Report(Report),
    SentinelGone,
    Signal(i32),
    Lost(Loss),
    Resign,
    Asked(Asked),
    /// Whether the successor stands by.
    StandsBy(Result<(), TransferError>),
}

impl Runner {
    /// Runs the command for the length of a term, after the hook if the term is `new`. When this
    /// returns, either everybody is dead or that is said.
    pub(super) async fn hold(
        &mut self,
        tenure: &Tenure,
        environment: &[(String, String)],
        new: bool,
    ) -> Ended {
        let hook = self.run.on_elected.clone().filter(|_| new);
        let stage = if hook.is_some() { Stage::Electing } else { Stage::Working };
        let mut hold = Hold {
            tenure,
            environment,
            end: 0,
            stage,
            stop: None,
            code: None,
            patience: u64::MAX,
            health_at: u64::MAX,
            guard_over: false,
            pinged: now(),
            awake: true,
            planned: None,
        };
        hold.publish(self);
        match hook {
            Some(script) => hold.start(self, Job::Elected, Some(script), Some(self.run.hook_timeout)),
            None => hold.start(self, Job::Work, None, None),
        }
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let event = self.event(&mut beat, &mut hold).await;
            if let Some(ended) = hold.on(event, self) {
                return ended;
            }
        }
    }

    async fn event(&mut self, beat: &mut Interval, hold: &mut Hold<'_>) -> Event {
        let planned = async {
            match &mut hold.planned {
                Some(planned) => planned.answer.as_mut().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            report = self.post.report() => report.map_or(Event::SentinelGone, Event::Report),
            _ = beat.tick() => Event::Beat,
            Some(signal) = self.signals.recv() => Event::Signal(signal),
            Some(()) = self.resigned.recv() => Event::Resign,
            asked = hold.tenure.asked() => Event::Asked(asked),
            stands_by = planned => Event::StandsBy(stands_by),
            loss = hold.tenure.lost(), if !hold.guard_over => Event::Lost(loss),
        }
    }
}

impl Hold<'_> {
    fn on(&mut self, event: Event, runner: &mut Runner) -> Option<Ended> {
        match event {
            Event::Beat => return self.beat(runner),
            Event::Report(report) => return self.report(report, runner),
            Event::SentinelGone => {
                let dead = runner.take_over(self.end);
                return self.ended(Stop::Sentinel, dead);
            }
            Event::Signal(signal) => return self.signal(signal, runner),
            Event::Resign => self.stop(Stop::Requested, runner),
            Event::Asked(asked) => self.asked(asked, runner),
            Event::StandsBy(answer) => self.stands_by(answer, runner),
            Event::Lost(loss) => return self.lost(loss, runner),
        }
        None
    }

    /// Publishes E, rounded against ourselves: the clock is read before the guard is asked how much
    /// is left.
    fn publish(&mut self, runner: &Runner) {
        let now = now();
        let Some(left) = self.tenure.remaining() else { return };
        let end = now.saturating_add(nanos(left));
        // A reading that was interrupted gives an earlier E: never let it go back for that.
        if end > self.end && runner.post.board.publish(end).is_ok() {
            self.end = end;
        }
    }

    fn start(&self, runner: &Runner, job: Job, script: Option<String>, limit: Option<Duration>) {
        let (environment, limit) = (self.environment.to_vec(), limit.map(nanos));
        runner.post.order(&Order::Start { job, script, environment, limit });
    }

    fn beat(&mut self, runner: &mut Runner) -> Option<Ended> {
        self.publish(runner);
        runner.look_at_key();
        let now = now();
        if self.stop.is_some() && matches!(self.stage, Stage::Pausing(_)) {
            return Some(Ended { code: self.code, stop: self.stop.take(), dead: true });
        }
        if let Stage::Pausing(until) = self.stage {
            if now >= until {
                self.stage = Stage::Working;
                self.start(runner, Job::Work, None, None);
            }
            return None;
        }
        if now >= runner.timing.take_over_at(self.end) || now >= self.patience {
            // After a pause of our own, the sentinel may have done it long ago.
            while let Some(report) = runner.post.pending() {
                if let Some(ended) = self.report(report, runner) {
                    return Some(ended);
                }
            }
            let dead = runner.take_over(self.end);
            let stop = self.stop.take().unwrap_or(Stop::Lease);
            runner.note("take_over", "the sentinel did not end the command in time: the runner did");
            return Some(Ended { code: None, stop: Some(stop), dead });
        }
        if self.asleep(now, runner) {
            let dead = runner.take_over(self.end);
            return self.ended(Stop::Sentinel, dead);
        }
        if now >= self.health_at && self.stop.is_none() {
            self.health_at = u64::MAX;
            let (script, limit) = (runner.run.health.clone(), Some(runner.run.health_timeout));
            self.start(runner, Job::Health, script, limit);
        }
        None
    }

    /// Whether the sentinel has not answered for a whole lease. The deadline is still kept, by us,
    /// but by us alone.
    fn asleep(&mut self, now: u64, runner: &Runner) -> bool {
        let since = now.saturating_sub(self.pinged);
        if self.awake && since >= nanos(PING) {
            (self.pinged, self.awake) = (now, false);
            runner.post.order(&Order::Ping);
            return false;
        }
        !self.awake && since >= nanos(runner.lease)
    }

    fn report(&mut self, report: Report, runner: &mut Runner) -> Option<Ended> {
        match report {
            Report::Awake => self.awake = true,
            Report::Started { job: Job::Work, pid } => {
                runner.note("started", &format!("the command runs as process {pid}"));
                self.look_later(runner);
            }
            Report::Ended { job: Job::Elected, how: How::Code(0) } if self.stop.is_none() => {
                self.stage = Stage::Working;
                self.start(runner, Job::Work, None, None);
            }
            Report::Ended { job: Job::Elected, how } => self.stop(Stop::Hook(how), runner),
            Report::Ended { job: Job::Health, how: How::Code(0) } => self.look_later(runner),
            Report::Ended { job: Job::Health, how } => self.stop(Stop::Health(how), runner),
            Report::Refused { job: Job::Health, .. } => self.look_later(runner),
            Report::Refused { why, .. } => self.stop(Stop::Refused(why), runner),
            Report::Terminating(Why::Lease) => {
                runner
                    .note("expiring", "the lease is running out and was not renewed: the command gets TERM");
            }
            Report::Terminating(Why::Disturbed) => {
                runner.note(
                    "disturbed",
                    "this machine was suspended, or paused by its host: the command is ended",
                );
            }
            Report::Killing => runner.note("killing", "the command did not end in time: it gets KILL"),
            Report::Over { code, why } => return self.over(code, why, runner),
            Report::Ready { .. } | Report::Started { .. } | Report::Ended { .. } | Report::Terminating(_) => {
            }
        }
        None
    }

    fn look_later(&mut self, runner: &Runner) {
        if runner.run.health.is_some() {
            self.health_at = now().saturating_add(nanos(runner.run.health_every));
        }
    }

    /// Everybody is dead.
    fn over(&mut self, code: Option<u8>, why: Why, runner: &Runner) -> Option<Ended> {
        self.code = code.or(self.code);
        self.health_at = u64::MAX;
        let stop = match (self.stop.take(), why) {
            (Some(stop), _) => Some(stop),
            (None, Why::Exit) => None,
            (None, Why::Lease | Why::Disturbed) => Some(Stop::Lease),
            (None, Why::Asked | Why::Orphaned) => Some(Stop::Requested),
        };
        if stop.is_none() && runner.run.respawn && self.tenure.is_leader() {
            runner.note(
                "respawn",
                &format!("the command ended with {}; it is started again", self.code.unwrap_or(0)),
            );
            self.stage = Stage::Pausing(now().saturating_add(nanos(BREATH)));
            return None;
        }
        Some(Ended { code: self.code, stop, dead: true })
    }

    /// Asks the sentinel to end everything, for a reason of our own. The first reason stays.
    fn stop(&mut self, stop: Stop, runner: &Runner) {
        if self.stop.is_none() {
            self.stop = Some(stop);
            self.end_within(runner.timing.grace, false, runner);
        }
    }

    /// The sentinel ends everything within this time. If it does not, the runner does.
    fn end_within(&mut self, grace: Duration, told: bool, runner: &Runner) {
        runner.post.order(&Order::Stop { within: nanos(grace), told });
        self.patience = self.patience.min(now().saturating_add(nanos(grace + PATIENCE)));
    }

    /// An operator's request. The command ends first; a proclamation is nobody's end. Before it
    /// ends for a hand-over, the successor must say that it stands by.
    fn asked(&mut self, asked: Asked, runner: &Runner) {
        match asked.request().clone() {
            _ if self.stop.is_some() => asked.decline("the command is being stopped already"),
            OperatorRequest::Resign => self.stop(Stop::Asked(asked, None), runner),
            OperatorRequest::Transfer { to } if to == *runner.name() => {
                asked.decline(&format!("'{to}' leads already, and leads on"));
            }
            OperatorRequest::Transfer { .. } if self.planned.is_some() => {
                asked.decline("another hand-over is being prepared");
            }
            OperatorRequest::Transfer { to } => self.plan(asked, to),
            OperatorRequest::Proclaim { body } => match self.tenure.proclaim(&body) {
                Ok(edict) => asked.fulfil_as(edict),
                Err(error) => asked.decline(&error.to_string()),
            },
            _ => asked.decline("this runner does not know how"),
        }
    }

    fn plan(&mut self, asked: Asked, to: NodeName) {
        let (tenure, successor) = (self.tenure, to.clone());
        let answer = Box::pin(async move { tenure.stands_by(&successor).await });
        self.planned = Some(Planned { asked, to, answer });
    }

    /// The successor stands by: now the command may end. If it does not, nothing has happened.
    fn stands_by(&mut self, answer: Result<(), TransferError>, runner: &Runner) {
        let Some(Planned { asked, to, .. }) = self.planned.take() else { return };
        match answer {
            _ if self.stop.is_some() => asked.decline("the command is being stopped already"),
            Ok(()) => self.stop(Stop::Asked(asked, Some(to)), runner),
            Err(error) => {
                runner.note("not_handed_over", &format!("not handed over, and leads on: {error}"));
                asked.decline(&format!("{error}; the leader leads on"));
            }
        }
    }

    /// The command gets it first. One that asks to end gives it `--grace` for that; the next one
    /// that does, nothing.
    fn signal(&mut self, signal: i32, runner: &Runner) -> Option<Ended> {
        if signals::ends(signal) {
            return self.asked_to_end(signal, runner);
        }
        if self.stage == Stage::Working {
            runner.post.order(&Order::Signal(signal));
        }
        None
    }

    fn asked_to_end(&mut self, signal: i32, runner: &Runner) -> Option<Ended> {
        if matches!(self.stage, Stage::Pausing(_)) {
            return self.ended(Stop::Signal(signal), true);
        }
        let working = self.stage == Stage::Working;
        if matches!(self.stop, Some(Stop::Signal(_))) {
            runner.note("killing", "asked to end again: the command gets KILL");
            self.end_within(Duration::ZERO, working, runner);
            return None;
        }
        if working {
            runner.post.order(&Order::Signal(signal));
        }
        self.end_within(runner.timing.grace, working, runner);
        self.stop = Some(Stop::Signal(signal)); // Before any other reason: nothing comes after it.
        None
    }

    /// Authority is gone before E: nothing may run any more.
    fn lost(&mut self, loss: Loss, runner: &Runner) -> Option<Ended> {
        let stop = if loss == Loss::Lapsed { Stop::Lease } else { Stop::Lost(loss) };
        if matches!(self.stage, Stage::Pausing(_)) {
            return self.ended(stop, true);
        }
        self.guard_over = true;
        self.stop.get_or_insert(stop);
        runner.post.order(&Order::Stop { within: 0, told: false });
        None
    }

    fn ended(&mut self, stop: Stop, dead: bool) -> Option<Ended> {
        let stop = match self.stop.take() {
            Some(first @ Stop::Signal(_)) => first,
            _ => stop,
        };
        Some(Ended { code: self.code, stop: Some(stop), dead })
    }
}
