//! The life of a runner: campaign, hold a term, campaign again.

use std::time::Duration;

use tenure::{CampaignError, Config, Node, Stopped, Tenure};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};

use super::desk::Desk;
use super::hold::{Ended, Stop};
use super::post::{Brief, Post, Posted};
use super::timing::{Timing, nanos, now};
use super::wire::{Job, Order, Report};
use super::{Run, UNDEAD, family, signals};
use crate::failure::Failure;
use crate::output;

/// How long to wait for the last words of others when all is done.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long those are killed who should have been dead.
const INSIST: Duration = Duration::from_secs(2);

/// How often in a row a lease may turn out too short for the command before that is a mistake and
/// not bad luck.
const REFUSALS: u32 = 3;

/// A candidate and its sentinel.
pub(super) struct Runner {
    pub(super) run: Run,
    pub(super) timing: Timing,
    pub(super) post: Post,
    pub(super) signals: UnboundedReceiver<i32>,
    pub(super) resigned: UnboundedReceiver<()>,
    brief: Brief,
    node: Node,
    desk: Desk,
    pub(super) lease: Duration,
    refused: u32,
}

/// The next step after a term.
enum Next {
    Exit(u8),
    /// Campaign again, after a while.
    Again(Duration),
}

/// Runs the command whenever this process leads. Returns the exit code.
pub(super) async fn supervise(run: Run, config: Config, brief: Brief, posted: Posted) -> Result<u8, Failure> {
    let system =
        |error: std::io::Error| Failure::new(format!("the system refuses what a runner needs: {error}"));
    let signals = signals::listen().map_err(system)?;
    let post = Post::listen(posted).await.map_err(no_sentinel)?;
    let (lease, timing) = (config.lease, brief.timing);
    let (desk, resigned) = Desk::open(&brief.scratch.join("socket"), &config.name, timing).map_err(system)?;
    let node = Node::start(config).await?;
    let mut runner = Runner { run, timing, post, signals, resigned, brief, node, desk, lease, refused: 0 };
    let result = runner.live().await;
    runner.post.order(&Order::Quit);
    let _ = timeout(FAREWELL, runner.node.clone().shutdown()).await;
    runner.dismiss().await;
    result
}

impl Runner {
    /// The sentinel was told to quit, and tidies up. A sentinel that does not go is killed.
    async fn dismiss(&mut self) {
        let limit = now().saturating_add(nanos(FAREWELL));
        while !family::reap(|_, _| {}) && now() < limit {
            sleep(Duration::from_millis(1)).await;
        }
        family::end(self.post.cgroup.as_deref(), limit);
        self.post.tidy();
    }

    /// Writes a note to the terminal or log of the caller.
    pub(super) fn note(&self, what: &str) {
        if !self.run.quiet {
            output::note(&format!("tenure: {}: {what}", self.run.group));
        }
    }

    async fn live(&mut self) -> Result<u8, Failure> {
        let mut wait = self.run.wait;
        loop {
            let tenure = match self.elected(wait.take()).await? {
                Ok(tenure) => tenure,
                Err(signal) => return Ok(by_signal(signal)),
            };
            match self.lead(tenure).await? {
                Next::Exit(code) => return Ok(code),
                Next::Again(rest) => {
                    if let Some(signal) = self.rest(rest).await {
                        return Ok(by_signal(signal));
                    }
                }
            }
        }
    }

    /// Waits until this process leads, or a signal asks it to end.
    async fn elected(&mut self, wait: Option<Duration>) -> Result<Result<Tenure, i32>, Failure> {
        let node = self.node.clone();
        let campaign = node.campaign(&self.run.group);
        let limit = async {
            match wait {
                Some(wait) => sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(campaign, limit);
        loop {
            tokio::select! {
                biased;
                won = &mut campaign => return won.map(Ok).map_err(|error| refusal(&error)),
                signal = self.signals.recv() => {
                    if let Some(signal) = signal.filter(|signal| signals::ends(*signal)) {
                        return Ok(Err(signal));
                    }
                }
                () = &mut limit => return Err(self.not_elected(wait.unwrap_or_default()).await),
            }
        }
    }

    async fn not_elected(&self, wait: Duration) -> Failure {
        let group = &self.run.group;
        if timeout(Duration::from_millis(1), self.node.ready()).await.is_ok() {
            return Failure::new(format!("not elected in '{group}' within {wait:?}: another leads; try again later, or wait longer with --wait")).with_code(75);
        }
        Failure::unavailable(format!(
            "no quorum of the cluster was reached within {wait:?}: start its nodes, or mend the addresses under [[cluster.members]]"
        ))
    }

    /// Lets others have their turn. Says if a signal asks us to end.
    async fn rest(&mut self, rest: Duration) -> Option<i32> {
        let end = sleep(rest);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return None,
                signal = self.signals.recv() => {
                    if signal.is_some_and(signals::ends) {
                        return signal;
                    }
                }
            }
        }
    }

    /// One term, from its first instant to the lease given back.
    async fn lead(&mut self, tenure: Tenure) -> Result<Next, Failure> {
        if self.post.is_gone() {
            self.replace_post().await?;
        }
        while self.resigned.try_recv().is_ok() {} // Requests of the last command.
        self.note(&format!("leads in term {} as {}", tenure.term().0, self.node.name()));
        let environment = self.environment(&tenure);
        self.desk.place(Some(tenure.clone()));
        let ended = self.hold(&tenure, &environment).await;
        self.desk.place(None);
        if !ended.dead {
            self.give_up(tenure);
        }
        let _ = self.post.board.publish(0);
        if self.run.on_lost.is_some() && self.post.is_gone() {
            self.replace_post().await?;
        }
        if let Some(stop) = &ended.stop {
            self.note(&format!("{stop}; everything that ran is dead, the leadership is given back"));
        }
        let ended = self.give_back(tenure, ended).await;
        self.farewell(&environment).await;
        self.next(&ended).await
    }

    /// Everybody is dead: others may lead. An operator who requested it is answered.
    async fn give_back(&mut self, tenure: Tenure, mut ended: Ended) -> Ended {
        let Some(Stop::Asked(asked, to)) = ended.stop else {
            tenure.resign();
            return ended;
        };
        ended.stop = Some(Stop::Requested);
        let Some(to) = to else {
            tenure.resign();
            asked.fulfil();
            return ended;
        };
        match tenure.transfer(&to).await {
            Ok(()) => asked.fulfil(),
            Err(error) => {
                self.note(&format!("not handed over: {error}"));
                asked.decline(&format!("{error}; it has resigned instead"));
                tenure.resign();
            }
        }
        ended
    }

    async fn next(&mut self, ended: &Ended) -> Result<Next, Failure> {
        let own = ended.code.unwrap_or(0);
        self.refused = if matches!(ended.stop, Some(Stop::Refused(_))) { self.refused + 1 } else { 0 };
        Ok(match &ended.stop {
            None => Next::Exit(own),
            Some(Stop::Signal(signal)) => Next::Exit(ended.code.unwrap_or_else(|| by_signal(*signal))),
            Some(Stop::Lost(tenure::Loss::Stopped)) => return Err(stopped(&self.node.stopped().await)),
            Some(Stop::Refused(why)) if self.refused >= REFUSALS => {
                return Err(Failure::config(format!(
                    "the command was not started, {REFUSALS} times: {why}; the cluster may allow no lease of {:?}: shorten --grace, or raise longest_lease by `tenure members set`",
                    self.lease
                )));
            }
            Some(_) if self.run.once => Next::Exit(self.run.lost_exit_code),
            Some(Stop::Lease | Stop::Lost(_)) => Next::Again(Duration::ZERO),
            Some(_) => Next::Again(self.lease),
        })
    }

    /// The environment of the command and the hooks.
    fn environment(&self, tenure: &Tenure) -> Vec<(String, String)> {
        let socket = self.brief.scratch.join("socket").to_string_lossy().into_owned();
        [
            ("GROUP", tenure.group().to_string()),
            ("TERM", tenure.term().0.to_string()),
            ("TOKEN", tenure.token().to_string()),
            ("NODE", self.node.name().to_string()),
            ("SOCKET", socket),
        ]
        .map(|(name, value)| (format!("TENURE_{name}"), value))
        .into()
    }

    /// Kills everybody ourselves, the sentinel too. Says whether they are dead.
    pub(super) fn take_over(&mut self, end: u64) -> bool {
        let limit = end.max(now().saturating_add(nanos(INSIST)));
        family::end(self.post.cgroup.as_deref(), limit)
    }

    async fn replace_post(&mut self) -> Result<(), Failure> {
        family::reap(|_, _| {});
        self.post.tidy();
        let posted = Posted::start(&self.brief).map_err(no_sentinel)?;
        self.post = Post::listen(posted).await.map_err(no_sentinel)?;
        Ok(())
    }

    /// `--on-lost`.
    async fn farewell(&mut self, environment: &[(String, String)]) {
        let Some(script) = self.run.on_lost.clone() else { return };
        let limit = Some(nanos(self.run.hook_timeout));
        let environment = environment.to_vec();
        self.post.order(&Order::Start { job: Job::Lost, script: Some(script), environment, limit });
        let done = async {
            loop {
                match self.post.report().await {
                    Some(Report::Ended { job: Job::Lost, code }) => return Some(code),
                    Some(Report::Refused { job: Job::Lost, .. }) | None => return None,
                    Some(_) => {}
                }
            }
        };
        match timeout(self.run.hook_timeout + FAREWELL, done).await {
            Ok(Some(0)) => {}
            Ok(Some(code)) => self.note(&format!("--on-lost ended with {code}")),
            Ok(None) | Err(_) => self.note("--on-lost could not be run"),
        }
    }

    /// Somebody cannot be killed. Nothing is given back: the lease runs out, and nobody leads
    /// before.
    fn give_up(&mut self, tenure: Tenure) -> ! {
        output::note(&format!(
            "tenure: {}: the command cannot be confirmed dead (uninterruptible, or another user's): the lease is left to run out; look for its processes",
            self.run.group
        ));
        tenure.clone().resign(); // No more renewals; what the grantors promised stands as long as a clone is left.
        std::mem::forget(tenure);
        let _ = std::fs::remove_dir_all(&self.brief.scratch);
        std::process::exit(i32::from(UNDEAD));
    }
}

fn no_sentinel(error: std::io::Error) -> Failure {
    Failure::new(format!("the sentinel cannot be started: {error}"))
}

/// As a shell would say it.
fn by_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Why a campaign was refused, with its exit code.
fn refusal(error: &CampaignError) -> Failure {
    match error {
        CampaignError::OutOfScope { .. } | CampaignError::KeyRefused { .. } => Failure::denied(error),
        CampaignError::Stopped(why) => stopped(why),
        CampaignError::Name(_) | CampaignError::NotACandidate { .. } => Failure::config(error),
        _ => Failure::new(error.to_string()),
    }
}

fn stopped(why: &Stopped) -> Failure {
    match why {
        Stopped::Config { .. } | Stopped::NameTaken { .. } => Failure::config(why),
        _ => Failure::new(why.to_string()),
    }
}
