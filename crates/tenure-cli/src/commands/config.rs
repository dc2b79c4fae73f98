//! `tenure config`: checks a configuration, or shows what it amounts to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tenure::{ClockBound, Key, Role};
use toml::{Table, Value};

use crate::arguments::Common;
use crate::client::Client;
use crate::daemon;
use crate::failure::Failure;
use crate::founding::length;
use crate::output::Answer;
use crate::settings::Settings;

/// Check a configuration, or show what it amounts to.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure config check /var/lib/tenure/tenure.toml
  tenure config show --effective

Exit codes: 0 ok, 2 the command line makes no sense, 78 something must be changed: one line says
what")]
pub(crate) struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say whether a node would take it, without starting one
    Check(Check),
    /// Print what file and environment say
    Show(Show),
}

/// Say whether a node would take it, without starting one.
#[derive(Args, Debug)]
#[command(
    after_help = "Reads the file, TENURE_* in the environment, keys, tokens and certificates, and says what `tenure
node` would say, word for word, of everything that can be checked without the store and the
network; and what the commands that ask would say of [client]. A file for clients (role =
\"candidate\" or \"observer\", without daemon.http) is checked too, although no node runs by it.
Whether it agrees with the cluster's epoch is found out at the start.

Examples:
  tenure config check /var/lib/tenure/tenure.toml
  tenure config check && systemctl restart tenure

Exit codes: 0 ok, 2 the command line makes no sense, 78 something must be changed: one line says
what"
)]
struct Check {
    /// The configuration [default: as for every command]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Print what file and environment say.
#[derive(Args, Debug)]
#[command(after_help = "Secrets are left out: of a key only its short name is shown.

Examples:
  tenure config show
  tenure config show --effective -c /var/lib/tenure/tenure.toml
  TENURE_LEASE=1s tenure config show --effective -o json

Exit codes: 0 shown, 2 the command line makes no sense, 78 it cannot be read")]
struct Show {
    /// The configuration [default: as for every command]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// With the defaults of everything that is not set
    #[arg(long)]
    effective: bool,
}

impl Config {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        match self.command {
            Command::Check(check) => {
                let settings = settings(check.file.as_deref(), common)?;
                let role = whole_check(&settings)?;
                let path = settings.path().display().to_string();
                let json = || json!({ "config": path, "ok": true, "role": role.name() });
                Ok(Answer::new(common.output, json, || format!("{path}: ok ({})\n", role.name())))
            }
            Command::Show(show) => {
                let settings = settings(show.file.as_deref(), common)?;
                let table = if show.effective { effective(&settings)? } else { settings.shown() };
                let text = || toml::to_string_pretty(&table).unwrap_or_default();
                Ok(Answer::new(common.output, || json!(table), text))
            }
        }
    }
}

fn settings(file: Option<&Path>, common: &Common) -> Result<Settings, Failure> {
    Settings::find(file.or(common.config.as_deref()))
}

/// Everything that a daemon would refuse for the configuration's sake alone, and the commands that
/// ask one.
fn whole_check(settings: &Settings) -> Result<Role, Failure> {
    let config = daemon::check(settings)?;
    if settings.has("client") {
        Client::new(settings, &[], Duration::from_secs(1))?; // Asks nobody yet.
    }
    Ok(config.role)
}

fn count(number: usize) -> Value {
    Value::from(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The settings of the file, and the defaults of the others.
fn effective(settings: &Settings) -> Result<Table, Failure> {
    let config = settings.node()?;
    let key = match &config.key {
        Key::Cluster(key) => format!("(the cluster's, {})", key.id()),
        Key::Scoped(key) => {
            format!("(of '{}', id {}, made from {})", key.names(), key.serial(), key.made_from())
        }
    };
    let mut cluster = vec![
        ("cluster.quorums", Value::from(config.quorums.as_str())),
        ("cluster.longest_lease", Value::from(length(config.longest_lease))),
    ];
    match config.bound {
        ClockBound::Drift { ppm } => cluster.push(("cluster.drift_ppm", Value::from(i64::from(ppm)))),
        ClockBound::Skew { bound } => cluster.push(("cluster.skew", Value::from(length(bound)))),
    }
    let own = [
        ("role", Value::from(config.role.name())),
        ("lease.length", Value::from(length(config.lease))),
        ("lease.retry", Value::from(length(config.retry))),
        ("lease.window", Value::from(length(config.window))),
        ("lease.longest_pledge", Value::from(length(config.longest_pledge))),
        ("limits.groups_per_key", count(config.limits.groups_per_key)),
        ("limits.watches_per_key", count(config.limits.watches_per_key)),
        ("limits.forget_after", Value::from(length(config.limits.forget_after))),
        ("election.weak", Value::from(config.weak.name())),
        ("daemon.log", Value::from("info")),
        ("daemon.log_format", Value::from(settings.daemon.log_format.name())),
    ];
    let mut all = settings.clone();
    for (name, value) in cluster.into_iter().chain(own) {
        if !settings.has(name) {
            all.put(name, value)?;
        }
    }
    let mut table = all.shown();
    table.insert("key".to_owned(), Value::from(key));
    Ok(table)
}
