//! `tenure doctor`: what is wrong with this machine and its cluster, and what to do.
//!
//! One function a check; each gives a [`Finding`]. Without a configuration only the machine is
//! looked at.

mod clocks;
mod daemons;
mod disk;
mod finding;
mod host;
mod key;
mod members;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tenure::{ClockBound, Config, Discipline};

use crate::arguments::Common;
use crate::client;
use crate::commands::asked::{self, Asked};
use crate::failure::Failure;
use crate::output::{Answer, Table, Verdict, readable};
use crate::settings::Settings;
use clocks::{Host, Second};
use finding::{Finding, State};

/// How long a daemon has to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Look for what is wrong with this machine and its cluster, and say what to do.
///
/// Looks at the clocks of this machine and who corrects them, at the store's disk, the key, the
/// daemons and the way to them. Changes nothing; takes one to four seconds. Run it on every member.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure doctor                                   this machine, and the configuration found here
  tenure doctor -c /etc/tenure/tenure.toml        on a member
  tenure doctor --endpoint http://10.0.0.1:7401   ask this daemon
  tenure doctor -o json | jq '.findings[] | select(.state != \"ok\")'

JSON: verdict (\"fine\" or \"wrong\"), counts (ok, warn, bad), findings (check, state, says,
do).

Exit codes: 0 nothing is wrong (there may be warnings), 1 something is, 2 the command line makes
no sense, 78 the configuration that was named cannot be read.")]
pub(crate) struct Doctor {
    /// A daemon to ask, in place of `[client] endpoints`; may be repeated
    #[arg(long, value_name = "URL")]
    endpoint: Vec<String>,
    /// Greet the members with a candidate's own key too: only while that candidate does not run
    #[arg(long)]
    greet: bool,
}

impl Doctor {
    /// Looks.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let found = Settings::find_any(common.config.as_deref())?.is_some();
        let settings = Settings::find_or_none(common.config.as_deref())?;
        let findings = client::block_on(self.examine(&settings, found))?;
        let bad = findings.iter().any(|finding| finding.state == State::Bad);
        let answer = Answer::new(common.output, || report_json(&findings), || report_text(&findings));
        Ok(Answer { verdict: Verdict::broken_if(bad), ..answer })
    }

    async fn examine(&self, settings: &Settings, found: bool) -> Vec<Finding> {
        let host = Host::here();
        let second = Second::watch();
        let mut cluster = Cluster::default();
        let endpoints = asked::endpoints(settings, &self.endpoint);
        let asked = asked::ask_all(settings, &endpoints, PATIENCE).await;
        let mut about = if found {
            self.examine_node(settings, &asked, second, &mut cluster).await
        } else {
            vec![Finding::warn(
                "configuration",
                "none was found: only this machine was looked at",
                "name one with -c FILE, or start a cluster with `tenure up`",
            )]
        };
        let discipline = Discipline::read();
        let keeper = clocks::keeper(&host, discipline);
        let mut findings = vec![
            clocks::source(&host),
            clocks::suspend(),
            clocks::slew(&keeper, cluster.bound),
            clocks::kernel(discipline, cluster.bound),
            clocks::rate(second, cluster.bound),
            clocks::scheduling(second),
            host::machine(&host),
            host::limits(),
            host::memory(cluster.memory.as_deref(), &cluster.silence()),
        ];
        findings.append(&mut about);
        findings.extend(daemons::ready(&asked));
        findings.extend(daemons::terms(&asked));
        findings.extend(daemons::barred(&asked));
        findings.extend(daemons::versions(&asked, env!("CARGO_PKG_VERSION")));
        findings
    }

    /// Checks the needs of a node with this configuration, and whether it finds the members.
    async fn examine_node(
        &self,
        settings: &Settings,
        asked: &[Asked],
        second: Second,
        cluster: &mut Cluster,
    ) -> Vec<Finding> {
        let path = settings.path().display();
        let config = settings.node();
        let mut findings = vec![match &config {
            Ok(_) => Finding::ok("configuration", path.to_string()),
            Err(failure) => Finding::bad(
                "configuration",
                failure.to_string(),
                format!("change {path}; `tenure config check` says when it is right"),
            ),
        }];
        findings.push(key::key(settings));
        let config = config.ok();
        let granting = config.as_ref().filter(|config| config.role.grants());
        let store = granting.and_then(|config| config.store.as_deref());
        findings.push(disk::permissions(settings, store));
        if let Some(config) = &config {
            cluster.learn_from(config);
            findings.extend(store.map(disk::store));
            findings.extend(store.map(|store| disk::fsync(store, config.lease)));
        }
        let Some(config) = config else { return findings };
        let greeting = match members::may_greet(&config, self.greet) {
            Ok(()) => members::greet(&config).await,
            Err(finding) => Err(finding),
        };
        let mut trip = daemons::slowest_trip(asked);
        match greeting {
            Ok(greeting) => {
                findings.push(members::udp(&greeting, &daemons::answering(asked)));
                findings.extend(members::named(&greeting));
                trip = trip.or(greeting.slowest());
                if let Some(charter) = greeting.charter {
                    (cluster.bound, cluster.longest_lease) = (Some(charter.bound), charter.longest_lease);
                }
            }
            Err(finding) => findings.push(finding),
        }
        findings.push(members::lease(config.lease, cluster.bound, trip, second));
        findings
    }
}

/// All that is known about the cluster.
struct Cluster {
    /// ρ or Δ; `None` if nobody said.
    bound: Option<ClockBound>,
    longest_lease: Duration,
    memory: Option<PathBuf>,
}

impl Default for Cluster {
    fn default() -> Self {
        Self { bound: None, longest_lease: Duration::from_secs(5), memory: None }
    }
}

impl Cluster {
    fn learn_from(&mut self, config: &Config) {
        self.memory.clone_from(&config.memory);
        self.longest_lease = config.longest_lease;
        // Only a member's file must agree with the cluster.
        self.bound = config.role.grants().then_some(config.bound);
    }

    fn silence(&self) -> String {
        let ppm = match self.bound {
            Some(ClockBound::Drift { ppm }) => ppm,
            Some(ClockBound::Skew { .. }) => 0,
            None => 100_000,
        };
        readable(self.longest_lease.mul_f64(1.0 + f64::from(ppm) / 1e6))
    }
}

fn report_json(findings: &[Finding]) -> Value {
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    json!({
        "verdict": if count(State::Bad) == 0 { "fine" } else { "wrong" },
        "counts": { "ok": count(State::Ok), "warn": count(State::Warn), "bad": count(State::Bad) },
        "findings": findings.iter().map(Finding::json).collect::<Vec<_>>(),
    })
}

fn report_text(findings: &[Finding]) -> String {
    let row =
        |finding: &Finding| vec![finding.state.name().to_owned(), finding.check.to_owned(), finding.text()];
    let head = ["", "CHECK", "FOUND → WHAT TO DO"].map(str::to_owned).to_vec();
    Table::of(head, findings.iter().map(row)).render()
}
