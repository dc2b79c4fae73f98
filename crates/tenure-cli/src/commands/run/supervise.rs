//! The life of a runner: campaign, hold a term, campaign again.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tenure::{CampaignError, Config, Key, Leadership, Node, NodeName, NotReady, Stopped, Tenure};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, interval, sleep, sleep_until, timeout};

use super::desk::Desk;
use super::hold::{Ended, Stop};
use super::key_file::KeyFile;
use super::post::{Brief, Post, Posted};
use super::timing::{Timing, nanos, now};
use super::waiting::{LOOK, RESPITE, Waiting, no_quorum};
use super::wire::{How, Job, Order, Report};
use super::{Run, UNDEAD, family, signals};
use crate::failure::{Failure, messages};
use crate::founding::length;
use crate::output::{self, Format};

/// The exit code when `--wait` is over, a quorum answers, and this process does not lead.
const NOT_ELECTED: u8 = 75;

/// How long to wait for the last words of others when all is done.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long a process stands back that the members refuse, for its name or its key.
const STAND_BACK: Duration = Duration::from_secs(15);

/// How often the file of the key is looked at.
const KEY_EVERY: Duration = Duration::from_secs(2);

/// How long those are killed who should have been dead.
const INSIST: Duration = Duration::from_secs(2);

/// The longest that a process stands back whose `--on-elected` fails again and again.
const LONGEST_REST: Duration = Duration::from_secs(300);

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
    /// How often in a row `--on-elected` has failed.
    hook_failed: u32,
    key: Key,
    key_file: Option<KeyFile>,
    /// When to look at the file of the key again.
    key_at: u64,
    /// The members have taken the key, at least once.
    was_taken: bool,
    /// How events are written.
    format: Format,
}

/// The next step after a term.
enum Next {
    Exit(u8),
    /// Campaign again, after a while.
    Again(Duration),
}

/// The end of a campaign.
enum Outcome {
    Won(Tenure),
    /// A signal asks us to end.
    Signal(i32),
    /// `--wait` is over.
    Late,
    Refused(CampaignError),
}

/// Runs the command whenever this process leads. Returns the exit code.
pub(super) async fn supervise(
    run: Run,
    (config, key_file, format): (Config, Option<KeyFile>, Format),
    brief: Brief,
    posted: Posted,
) -> Result<u8, Failure> {
    let system = |error: std::io::Error| messages::system_refuses("what a runner needs", error);
    let signals = signals::listen().map_err(system)?;
    let post = Post::listen(posted).await.map_err(messages::run_no_sentinel)?;
    let (lease, timing, key) = (config.lease, brief.timing, config.key.clone());
    let (desk, resigned) = Desk::open(&brief.scratch.join("socket"), &config.name, timing).map_err(system)?;
    let node = Node::start(config).await?;
    let mut runner = Runner {
        run,
        timing,
        post,
        signals,
        resigned,
        brief,
        node,
        desk,
        lease,
        refused: 0,
        hook_failed: 0,
        key,
        key_file,
        key_at: 0,
        was_taken: false,
        format,
    };
    let result = runner.live().await;
    runner.post.order(&Order::Quit);
    let _ = timeout(FAREWELL, runner.node.clone().shutdown()).await;
    runner.dismiss().await;
    match result {
        // An answer, and not an error: cron would send it by mail.
        Err(failure) if failure.code() == NOT_ELECTED && runner.run.quiet => Ok(NOT_ELECTED),
        result => result,
    }
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

    /// The candidate.
    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Its key.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// The name of this candidate.
    pub(super) fn name(&self) -> &NodeName {
        self.node.name()
    }

    /// Writes an event to the terminal or log of the caller: a line for people, or an object.
    pub(super) fn note(&self, event: &str, what: &str) {
        self.note_with(event, what, Map::new());
    }

    /// The same, with more fields for those that want objects.
    pub(super) fn note_with(&self, event: &str, what: &str, fields: Map<String, Value>) {
        if !self.run.quiet {
            self.write("info", event, what, fields);
        }
    }

    /// Writes an error, also where the caller wants nothing else.
    pub(super) fn warn(&self, event: &str, what: &str) {
        self.write("error", event, what, Map::new());
    }

    fn write(&self, level: &str, event: &str, message: &str, fields: Map<String, Value>) {
        let group = &self.run.group;
        output::note(&match self.format {
            Format::Table => format!("tenure: {group}: {message}"),
            Format::Json => {
                let node = self.node.name().as_str();
                let mut all = json!({ "event": event, "level": level, "group": group, "node": node });
                if let Value::Object(all) = &mut all {
                    all.insert("message".to_owned(), json!(message));
                    all.extend(fields);
                }
                all.to_string()
            }
        });
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
        let limit = wait.map(|wait| Instant::now() + wait);
        let (mut waiting, mut told) = (Waiting::begin(), None);
        loop {
            let node = self.node.clone();
            let outcome = self.campaign(&node, limit, &mut waiting).await;
            let error = match outcome {
                Outcome::Won(tenure) => return Ok(Ok(tenure)),
                Outcome::Signal(signal) => return Ok(Err(signal)),
                Outcome::Late => return Err(self.not_elected(wait.unwrap_or_default(), &mut waiting).await),
                Outcome::Refused(error) => error,
            };
            let may_change = match &error {
                CampaignError::NameInUse { .. } => true,
                CampaignError::KeyRefused { .. } => self.was_taken && !self.run.once,
                _ => false,
            };
            if !may_change {
                return Err(refusal(&error));
            }
            let left = limit.map_or(Duration::MAX, |limit| limit.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(refusal(&error));
            }
            if told.as_ref() != Some(&error) {
                self.warn("stands_back", &format!("stands back: {error}"));
            }
            if let Some(signal) = self.stand_back(left.min(STAND_BACK)).await {
                return Ok(Err(signal));
            }
            told = Some(error);
        }
    }

    /// Campaigns once, and says meanwhile what it waits for.
    async fn campaign(&mut self, node: &Node, limit: Option<Instant>, waiting: &mut Waiting) -> Outcome {
        let group = self.run.group.clone();
        let campaign = node.campaign(&group);
        let late = sleep_until(limit.unwrap_or_else(Instant::now));
        let mut look = interval(LOOK);
        tokio::pin!(campaign, late);
        loop {
            tokio::select! {
                biased;
                won = &mut campaign => return self.decided(won),
                signal = self.signals.recv() => {
                    if let Some(signal) = signal.filter(|signal| signals::ends(*signal)) {
                        return Outcome::Signal(signal);
                    }
                }
                () = &mut late, if limit.is_some() => {
                    let Some(end) = waiting.respite(self).await else { return Outcome::Late };
                    late.as_mut().reset(end.min(Instant::now() + RESPITE)); // Somebody may lead by then.
                }
                _ = look.tick() => {
                    self.was_taken |= self.node.is_ready();
                    self.look_at_key();
                    // To look may take a round trip: a command that may start does not wait for it.
                    tokio::select! {
                        biased;
                        won = &mut campaign => return self.decided(won),
                        () = waiting.look(self) => {}
                    }
                }
            }
        }
    }

    fn decided(&mut self, won: Result<Tenure, CampaignError>) -> Outcome {
        self.was_taken |= won.is_ok();
        won.map_or_else(Outcome::Refused, Outcome::Won)
    }

    /// Waits until the members may take this process again: for a while, or for a new key. Says if
    /// a signal asks us to end.
    async fn stand_back(&mut self, rest: Duration) -> Option<i32> {
        let end = Instant::now() + rest;
        while !self.look_at_key() && Instant::now() < end {
            if let Some(signal) = self.rest(LOOK).await {
                return Some(signal);
            }
        }
        None
    }

    /// Takes another key from its file, if there is one. Says whether it did.
    pub(super) fn look_at_key(&mut self) -> bool {
        let now = now();
        let Some(file) = self.key_file.as_mut().filter(|_| now >= self.key_at) else { return false };
        self.key_at = now.saturating_add(nanos(KEY_EVERY));
        let Some(read) = file.changed() else { return false };
        let path = file.path().display().to_string();
        match read {
            Ok(Key::Scoped(key)) if !key.names().has(self.node.name()) => {
                let (names, name) = (key.names(), self.node.name());
                self.warn("key_not_taken", &format!("{path}: the new key is for {names}, and this process is called {name}: restart it to take the key"));
                false
            }
            Ok(key) => {
                self.node.set_keys(&key, &[]);
                self.key = key;
                self.note("key_taken", &format!("has taken a new key from {path}"));
                true
            }
            Err(failure) => {
                self.warn("key_not_taken", &format!("the key has changed, and cannot be used: {failure}"));
                false
            }
        }
    }

    async fn not_elected(&self, wait: Duration, waiting: &mut Waiting) -> Failure {
        let group = &self.run.group;
        let status = match self.node.status().await {
            Ok(status) => status,
            Err(why) => return stopped(&why),
        };
        if !status.ready {
            let why = no_quorum(&status, &self.key);
            let refused = status.not_ready.iter().any(|why| matches!(why, NotReady::KeyRefused { .. }));
            return match refused {
                true => messages::run_key_refused(group, length(wait), why),
                false => messages::run_no_quorum(group, length(wait), why),
            };
        }
        match waiting.reported(self).await {
            Leadership::Leader { name, .. } => {
                let name = name.map_or_else(|| "another process".to_owned(), |name| format!("'{name}'"));
                messages::run_other_leads(group, length(wait), name)
            }
            _ => messages::run_not_over(group, length(wait)),
        }
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
        while self.resigned.try_recv().is_ok() {} // Requests of the last command.
        self.note("leads", &format!("leads in term {} as {}", tenure.term().0, self.node.name()));
        let environment = self.environment(&tenure);
        let mut new = true;
        let ended = loop {
            if self.post.is_gone() {
                self.replace_post().await?;
            }
            self.desk.place(Some(tenure.clone()));
            let ended = self.hold(&tenure, &environment, new).await;
            self.desk.place(None);
            if !ended.dead {
                self.give_up(tenure);
            }
            let _ = self.post.board.publish(0);
            match &ended.stop {
                Some(stop @ (Stop::Hook(_) | Stop::Health(_))) => self.warn("stopped", &stop.to_string()),
                Some(stop) => self.note("stopped", &format!("{stop}; everything that ran is dead")),
                None => {}
            }
            match self.hand_over(&tenure, ended).await {
                Some(ended) => break ended,
                None => new = false,
            }
        };
        if self.run.on_lost.is_some() && self.post.is_gone() {
            self.replace_post().await?;
        }
        let ended = self.give_back(tenure, ended);
        self.farewell(&environment).await;
        self.next(&ended).await
    }

    /// If a hand-over was asked for, hands over: everybody is dead. `None` if the successor has
    /// gone since it said that it stands by: then this process leads on, and the command starts
    /// again, for the lease is not given up before another is ready to have it.
    async fn hand_over(&mut self, tenure: &Tenure, mut ended: Ended) -> Option<Ended> {
        let Some(Stop::Asked(asked, Some(to))) = ended.stop else { return Some(ended) };
        let result = tenure.transfer(&to).await;
        ended.stop = Some(Stop::Requested);
        let Err(error) = result else {
            asked.fulfil();
            return Some(ended);
        };
        let leads_on = tenure.is_leader();
        let then = if leads_on { "it leads on, and starts the command again" } else { "it leads no more" };
        self.note("not_handed_over", &format!("not handed over: {error}; {then}"));
        asked.decline(&format!("{error}; {then}"));
        (!leads_on).then_some(ended)
    }

    /// Everybody is dead: others may lead. An operator who requested it is answered.
    fn give_back(&mut self, tenure: Tenure, mut ended: Ended) -> Ended {
        tenure.resign();
        if let Some(Stop::Asked(asked, _)) = ended.stop {
            ended.stop = Some(Stop::Requested);
            asked.fulfil();
        }
        ended
    }

    async fn next(&mut self, ended: &Ended) -> Result<Next, Failure> {
        let own = ended.code.unwrap_or(0);
        self.refused = if matches!(ended.stop, Some(Stop::Refused(_))) { self.refused + 1 } else { 0 };
        self.hook_failed = if matches!(ended.stop, Some(Stop::Hook(_))) { self.hook_failed + 1 } else { 0 };
        Ok(match &ended.stop {
            None => Next::Exit(own),
            Some(Stop::Signal(signal)) => Next::Exit(ended.code.unwrap_or_else(|| by_signal(*signal))),
            Some(Stop::Lost(tenure::Loss::Stopped)) => return Err(stopped(&self.node.stopped().await)),
            Some(Stop::Refused(why)) if self.refused >= REFUSALS => {
                return Err(messages::run_never_started(REFUSALS, why, length(self.lease)));
            }
            Some(_) if self.run.once => Next::Exit(self.run.lost_exit_code),
            Some(Stop::Hook(_)) => Next::Again(self.back_off()),
            Some(Stop::Lease | Stop::Lost(_)) => Next::Again(Duration::ZERO),
            Some(_) => Next::Again(self.lease),
        })
    }

    /// How long this process stands back after `--on-elected` has failed: a lease, and twice as
    /// long each time that it fails again.
    fn back_off(&self) -> Duration {
        let doublings = self.hook_failed.saturating_sub(1).min(16);
        let rest = (self.lease * (1 << doublings)).min(LONGEST_REST);
        self.warn("stands_back", &format!("campaigns again in {} s", rest.as_secs()));
        rest
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
        let posted = Posted::start(&self.brief).map_err(messages::run_no_sentinel)?;
        self.post = Post::listen(posted).await.map_err(messages::run_no_sentinel)?;
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
                    Some(Report::Ended { job: Job::Lost, how }) => return Some(how),
                    Some(Report::Refused { job: Job::Lost, .. }) | None => return None,
                    Some(_) => {}
                }
            }
        };
        match timeout(self.run.hook_timeout + FAREWELL, done).await {
            Ok(Some(How::Code(0))) => {}
            Ok(Some(how)) => self.warn("hook_failed", &format!("--on-lost {how}")),
            Ok(None) | Err(_) => self.warn("hook_failed", "--on-lost could not be run"),
        }
    }

    /// Somebody cannot be killed. Nothing is given back: the lease runs out, and nobody leads
    /// before.
    fn give_up(&mut self, tenure: Tenure) -> ! {
        self.warn(
            "undead",
            "the command cannot be confirmed dead (uninterruptible, or another user's): the lease is left to run out; look for its processes",
        );
        tenure.clone().resign(); // No more renewals; what the grantors promised stands as long as a clone is left.
        std::mem::forget(tenure);
        let _ = std::fs::remove_dir_all(&self.brief.scratch);
        std::process::exit(i32::from(UNDEAD));
    }
}

/// As a shell would say it.
fn by_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Why a campaign was refused, with its exit code.
fn refusal(error: &CampaignError) -> Failure {
    match error {
        CampaignError::Stopped(why) => stopped(why),
        error => error.into(),
    }
}

/// Codes of a daemon that has ended are no codes of a runner.
fn stopped(why: &Stopped) -> Failure {
    let failure = Failure::from(why);
    if failure.code() == 78 { failure } else { failure.with_code(2) }
}
