//! `tenure members add|remove|replace|set`, and what all changes have in common.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use crate::api::members::{AddOrder, RemoveOrder, ReplaceOrder, SetOrder, Step, StepKind};
use crate::arguments::Common;
use crate::client::{self, Asking, Client};
use crate::failure::{Failure, messages};
use crate::output::{Answer, in_line, readable};
use crate::settings;

/// The flags of every change.
#[derive(Args, Debug)]
pub(super) struct Waiting {
    /// How long to wait for the end. A change that takes longer goes on by itself
    #[arg(long, value_name = "D", default_value = "2m", value_parser = settings::length)]
    pub(super) within: Duration,
    #[command(flatten)]
    pub(super) asking: Asking,
}

/// Add a member that runs already.
#[derive(Args, Debug)]
#[command(
    after_help = "The new node must run before it is added, with a store that was made by `tenure node -c FILE
--join`, and with the cluster's key. It grants from the epoch on that names it; every group goes
on being led meanwhile. Tell clients of it by their files.

Examples:
  tenure members add n4 10.0.0.4:7400

Exit codes: 0 done, 2 refused or error, 69 nobody answers, or not in time"
)]
pub(super) struct Add {
    /// Its name, as its file has it
    name: String,
    /// Where the members reach it
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// Also if those that answer will be no quorum afterwards
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    waiting: Waiting,
}

/// Remove a member.
#[derive(Args, Debug)]
#[command(
    after_help = "Its node may run on: it is told that it is no member any more, and can be added again later.

Examples:
  tenure members remove n2

Exit codes: 0 done, 2 refused or error, 69 nobody answers, or not in time"
)]
pub(super) struct Remove {
    /// The member that goes
    name: String,
    /// Also if those that answer will be no quorum afterwards
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    waiting: Waiting,
}

/// Put a new member in the place of another.
#[derive(Args, Debug)]
#[command(
    after_help = "This is what to do after a lost disk: a member that lost its store never comes back under its
old name, for what it had promised is gone. Make a store under a new name with `tenure node -c
FILE --join`, let it run, then replace.

Examples:
  tenure members replace n2 n4 10.0.0.4:7400

Exit codes: 0 done, 2 refused or error, 69 nobody answers, or not in time"
)]
pub(super) struct Replace {
    /// The member that goes
    old: String,
    /// The name of the new member, as its file has it
    #[arg(value_name = "NEW")]
    name: String,
    /// Where the members reach it
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// Also if those that answer will be no quorum afterwards
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    waiting: Waiting,
}

/// Change the bounds on clocks and leases, or the quorums.
#[derive(Args, Debug)]
#[command(
    after_help = "Values that are not given stay. Afterwards change the members' files too: a file that differs
from what the cluster has agreed on is an error at the next start. Quorums speak of the members
in the order of `tenure members list`.

Examples:
  tenure members set --drift-ppm 1000
  tenure members set --longest-lease 3s --quorums weights:2,1,1

Exit codes: 0 done, 2 refused or error, 69 nobody answers, or not in time"
)]
#[group(id = "what", required = true, multiple = true, args = ["drift_ppm", "skew", "longest_lease", "quorums"])]
pub(super) struct Set {
    /// By how much the rates of clocks may be off, in parts per million. If a clock is worse, two
    /// may lead
    #[arg(long, value_name = "PPM", conflicts_with = "skew")]
    drift_ppm: Option<u32>,
    /// By how much synchronised clocks may differ, where the cluster counts on that
    #[arg(long, value_name = "D", value_parser = settings::length)]
    skew: Option<Duration>,
    /// The longest lease that is granted to anybody
    #[arg(long, value_name = "D", value_parser = settings::length)]
    longest_lease: Option<Duration>,
    /// Which sets of members suffice: majority, weights:3,1,1, grid:2x3 or list:01,12,02
    #[arg(long, value_name = "QUORUMS")]
    quorums: Option<String>,
    /// Also if those that answer will be no quorum afterwards
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    waiting: Waiting,
}

impl Add {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let Self { name, address, force, waiting } = self;
        change("add", &AddOrder { name, address, force }, &waiting, common)
    }
}

impl Remove {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let Self { name, force, waiting } = self;
        change("remove", &RemoveOrder { name, force }, &waiting, common)
    }
}

impl Replace {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let Self { old, name, address, force, waiting } = self;
        change("replace", &ReplaceOrder { old, name, address, force }, &waiting, common)
    }
}

impl Set {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let whole = |flag: &str, length: Duration, unit: u128| {
            let number = length.as_nanos() / unit;
            u64::try_from(number).ok().filter(|_| length.as_nanos().is_multiple_of(unit)).ok_or_else(|| {
                let unit = if unit == 1_000 { "microseconds" } else { "milliseconds" };
                messages::set_not_whole(flag, unit)
            })
        };
        let order = SetOrder {
            drift_ppm: self.drift_ppm,
            skew_us: self.skew.map(|skew| whole("--skew", skew, 1_000)).transpose()?,
            longest_lease_ms: self
                .longest_lease
                .map(|length| whole("--longest-lease", length, 1_000_000))
                .transpose()?,
            quorums: self.quorums,
            force: self.force,
        };
        change("set", &order, &self.waiting, common)
    }
}

/// Asks for a change, shows how it goes on, and says how it ended.
pub(super) fn change(
    what: &str,
    order: &impl Serialize,
    waiting: &Waiting,
    common: &Common,
) -> Result<Answer, Failure> {
    let client = waiting.asking.client(common)?;
    let path = format!("/v1/members/{what}");
    let ended = client::block_on(async { timeout(waiting.within, follow(&client, &path, order)).await })?;
    let epoch = ended.unwrap_or_else(|_| Err(messages::change_late(readable(waiting.within))))?;
    let json = || json!({ "change": what, "epoch": epoch });
    Ok(Answer::new(common.output, json, || format!("done: the cluster goes by epoch {epoch}\n")))
}

async fn follow(client: &Client, path: &str, order: &impl Serialize) -> Result<u64, Failure> {
    let mut lines = client.lines(path, order).await?;
    let shown = Shown::new();
    while let Some(step) = lines.next::<Step>().await? {
        match (step.event, step.epoch) {
            (StepKind::Done, Some(epoch)) => return Ok(epoch),
            (StepKind::Failed, _) => {
                return Err(messages::change_failed(
                    step.message.as_deref().unwrap_or("the daemon does not say why"),
                ));
            }
            _ => shown.show(&step),
        }
    }
    Err(messages::change_interrupted(lines.endpoint()))
}

/// How the change goes on, on a terminal.
struct Shown(ProgressBar);

impl Shown {
    fn new() -> Self {
        if !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.set_message("asking the members");
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    fn show(&self, step: &Step) {
        match step.event {
            StepKind::Epoch => {
                let epoch = step.epoch.unwrap_or_default();
                self.0.println(format!("the cluster goes by epoch {epoch}"));
                self.0.set_message("asking the members");
            }
            StepKind::Waiting => {
                let left = readable(Duration::from_millis(step.left_ms.unwrap_or_default()));
                self.0.set_message(format!("waiting until leases of before are over: {left} left"));
            }
            StepKind::Unheard => {
                let names = step.unheard.clone().unwrap_or_default().join(", ");
                self.0.set_message(format!("no answer yet from {}", in_line(&names)));
            }
            StepKind::Done | StepKind::Failed => {}
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
