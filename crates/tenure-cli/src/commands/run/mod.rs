//! `tenure run`: runs a command only while this process leads, and sees it dead before anyone else
//! can lead.
//!
//! ```text
//!   runner ───── candidate of the cluster, publishes E, forwards signals, answers TENURE_SOCKET
//!     └─ sentinel ───── own session, one thread; counts backwards from E
//!          └─ command, hooks, and whatever descends from them
//! ```
//!
//! The sentinel is the parent of everything that runs, so nothing can run that it does not know of.
//! Both it and the runner are subreapers: if one of the two is killed, the family comes to the
//! other, which ends it. If one is stopped, the other sees the deadline come and keeps it.
//! `timing.rs` has the deadlines, `family.rs` how death is confirmed, `board.rs` how E gets from
//! one to the other, `supervise.rs` and `hold.rs` the life of a runner and of one term.
//! `docs/guides/run.md` says what is not covered.

pub(crate) mod board;
mod desk;
pub(crate) mod family;
mod hold;
mod key_file;
mod post;
mod scratch;
pub(crate) mod signals;
mod supervise;
pub(crate) mod timing;
mod waiting;
pub(crate) mod wire;

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use tenure::{ClusterId, Config, Key, NodeName, Role};
use toml::Value;

use crate::arguments::Common;
use crate::failure::{Failure, messages};
use crate::output::{Answer, Verdict};
use crate::settings::{Settings, Source, length};
use key_file::KeyFile;
use post::{Brief, Posted};
use scratch::Scratch;
use timing::Timing;

/// The exit code when the command could not be confirmed dead.
pub(crate) const UNDEAD: u8 = 80;

const HELP: &str = "\
Examples:
  tenure run -g jobs -- ./worker --verbose          run ./worker while this process leads 'jobs'
  tenure run -g jobs --grace 5s -- ./worker         it needs up to 5 s to stop
  tenure run -q -g nightly --once --wait 0s -- ./nightly
                                                    from cron, on each host: run it if no other
                                                    leads, else exit 75. For a short job see
                                                    docs/guides/run.md, Once a period
  tenure run -g db --health pg_isready --on-elected ./take-ip --on-lost ./drop-ip -- ./db

Environment of the command:
  TENURE_GROUP, TENURE_TERM, TENURE_NODE  which leadership this is, and whose
  TENURE_TOKEN                            the term's token, for receivers that fence
  TENURE_SOCKET                           fresh edicts and the time left: write `edict`, read a
                                          line of JSON
  and whatever the runner found in its own, but for TENURE_KEY

Guaranteed:
  If the lease is not renewed, the command's process group gets TERM at E - kill margin - grace,
  and the command and all its descendants get KILL at E - kill margin, where E is the end of the
  lease on this machine's clock. Nobody else leads before E. The lease is given back only when
  they are all dead. This holds when the runner is killed or stopped (its sentinel does it), and
  when the sentinel is killed or stopped (the runner does it).

Not guaranteed:
  Runner and sentinel both stopped, or both killed while descendants of the command live; a
  machine that is paused with its clocks; a clock worse than the cluster's bound; a command that
  hands its work to a process it did not start. There only a fence protects: give the token with
  each write. See docs/guides/run.md.

Events:
  go to standard error: a line each, or with -o json an object each (event, level, group, node,
  message; `waits` has more: docs/reference/events.md). -q keeps errors only; a 75 is none.

Exit codes:
  the command's own; 128+N if signal N ended it; 126, 127 it cannot be run or found
  69 no quorum within --wait     75 not elected within --wait
  77 the key forbids this group, was revoked or has expired
  78 the configuration, or a grace that does not fit the lease
  79 the lease was lost (with --once; see --lost-exit-code)
  80 the command could not be confirmed dead: the lease was left to run out
  2  anything else";

/// Run a command only while this process leads.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Run {
    /// The group to lead; it exists as soon as somebody campaigns for it
    #[arg(short, long)]
    pub(crate) group: String,
    /// How long a lease lasts [default: the file's, or as long as --grace needs, at least 2s]
    #[arg(long, value_name = "D", value_parser = length)]
    lease: Option<Duration>,
    /// How long the command has between TERM and KILL
    #[arg(long, value_name = "D", value_parser = length, default_value = "1s")]
    grace: Duration,
    /// How long before the end of the lease KILL is sent
    #[arg(long, value_name = "D", value_parser = length, default_value = "200ms")]
    kill_margin: Duration,
    /// The name of this candidate, unique in the cluster [default: host, process and chance; that
    /// of a scoped key]
    #[arg(long)]
    name: Option<String>,
    /// Give up if not elected within this time of the start: exit 75, or 69 if no quorum was
    /// reached
    #[arg(long, value_name = "D", value_parser = length)]
    pub(crate) wait: Option<Duration>,
    /// Exit when the leadership is lost or given up [default: campaign again and start the command
    /// anew]
    #[arg(long)]
    pub(crate) once: bool,
    /// The exit code for that
    #[arg(long, value_name = "CODE", default_value_t = 79, requires = "once")]
    pub(crate) lost_exit_code: u8,
    /// Start the command again when it ends while this process leads [default: resign and exit with
    /// its code]
    #[arg(long)]
    pub(crate) respawn: bool,
    /// For the shell, before the command starts; if it fails, this process stands down
    #[arg(long, value_name = "CMD")]
    pub(crate) on_elected: Option<String>,
    /// For the shell, after the command and all its descendants are dead
    #[arg(long, value_name = "CMD")]
    pub(crate) on_lost: Option<String>,
    /// How long each of those two may take
    #[arg(long, value_name = "D", value_parser = length, default_value = "10s")]
    pub(crate) hook_timeout: Duration,
    /// For the shell, every now and then: if it fails, the command is stopped and this process
    /// stands down
    #[arg(long, value_name = "CMD")]
    pub(crate) health: Option<String>,
    /// How long between two looks at its health
    #[arg(long, value_name = "D", value_parser = length, default_value = "5s", requires = "health")]
    pub(crate) health_every: Duration,
    /// How long one look may take
    #[arg(long, value_name = "D", value_parser = length, default_value = "2s", requires = "health")]
    pub(crate) health_timeout: Duration,
    /// Say nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Make no cgroup, as where that is not allowed
    #[arg(long, hide = true)]
    no_cgroup: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Run {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let timing = Timing { grace: self.grace, margin: self.kill_margin };
        let mut settings = common.settings()?;
        let config = self.config(&mut settings, timing)?;
        let key_file = KeyFile::of(&settings, common);
        timing.check(&config)?;
        family::adopt().map_err(|error| messages::system_refuses("to let a process adopt orphans", error))?;
        let scratch = Scratch::make().map_err(messages::run_no_folder)?;
        let brief = Brief {
            command: self.command.clone(),
            timing,
            scratch: scratch.path().to_owned(),
            cgroup: !self.no_cgroup,
        };
        // Before there is any thread: what follows can fail, and be killed, without the command
        // ever being alone.
        let posted = Posted::start(&brief).map_err(messages::run_no_sentinel)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| messages::system_refuses("an event loop", error))?;
        let code =
            runtime.block_on(supervise::supervise(self, (config, key_file, common.output), brief, posted))?;
        Ok(Answer { verdict: Verdict::Code(code), ..Answer::text(String::new()) })
    }

    /// The configuration of the candidate: the file's cluster, our name, our lease.
    fn config(&self, settings: &mut Settings, timing: Timing) -> Result<Config, Failure> {
        let named = self.name.clone().or_else(|| std::env::var("TENURE_NAME").ok());
        let wanted = named.clone().unwrap_or_else(draw_name);
        settings.put("name", Value::String(wanted.clone()), Source::Flag)?;
        let mut config = settings.node()?;
        // A key for one name has no choice; one for many (`client-*`) has a name for each process.
        if let Key::Scoped(key) = &config.key
            && (named.is_none() || key.names().prefix().is_some())
        {
            config.name = key.names().fit(&wanted);
        }
        config.role = Role::Candidate;
        config.listen = Vec::new();
        config.advertise = None;
        config.store = None;
        config.adapt = None; // E must not come closer than the deadlines allow.
        config.hold = None; // Nobody is handed the leadership while the command runs.
        config.lease = self.chosen_lease(settings, &config, timing);
        config.reserve = timing.reserve();
        Ok(config)
    }

    /// The lease that was asked for, or as long as the deadlines need, but no longer than the
    /// cluster allows.
    fn chosen_lease(&self, settings: &Settings, config: &Config, timing: Timing) -> Duration {
        match self.lease {
            Some(lease) => lease,
            None if settings.has("lease.length") => config.lease,
            None => config.lease.max(timing.shortest_lease(config)).min(config.longest_lease),
        }
    }
}

/// A name that no other runner has.
fn draw_name() -> String {
    let host: String = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-'))
        .take(tenure::MAX_NODE_NAME - 24)
        .collect();
    let chance = ClusterId::draw().to_string();
    let name = format!("{host}-{}-{}", std::process::id(), &chance[..8]);
    NodeName::new(&name).map_or(chance, |name| name.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_name_is_a_name_and_new_each_time() {
        let (one, two) = (draw_name(), draw_name());
        assert!(NodeName::new(&one).is_ok(), "{one}");
        assert_ne!(one, two);
    }
}
