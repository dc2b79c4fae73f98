//! `tenure members repair-terms`: terms that are absurd already, while all members are stopped.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use tenure::Term;
use tenure::repair::{Applied, Plan, Report};

use super::change::{Waiting, change};
use crate::api::members::LiftBarOrder;
use crate::arguments::Common;
use crate::failure::{Failure, messages};
use crate::output::Answer;

/// Repair terms that are absurd already, while all members are stopped.
#[derive(Args, Debug)]
#[command(
    after_help = "Terms never fall, and one number stands for those of all groups: an absurd term stays for good.
With all members stopped their stores can go on above a lower floor. Read
docs/guides/members.md, \"When terms are absurd already\", first.

  1. Stop every daemon of the cluster, and every process that has its key or leads by it.
  2. On each member's host, as the node's user: `report` reads its store, and changes nothing.
  3. Anywhere: `plan` makes a plan of all reports, or says what is in the way.
  4. On each member's host: `apply` replaces its store, in one step.
  5. Start the daemons. Each is silent for a longest lease. Daemons with and without the repair
     are foreign to each other, and stop.
  6. Reset the fences of each barred group, then `lift` it. Nobody leads it before.

Examples:
  tenure members repair-terms report -c /var/lib/tenure/tenure.toml > n1.report
  tenure members repair-terms plan n1.report n2.report n3.report --bar jobs > terms.plan
  tenure members repair-terms apply terms.plan -c /var/lib/tenure/tenure.toml
  tenure members repair-terms lift jobs

Exit codes: 0 done, 2 refused or error, 69 nobody answers, 77 not allowed, 78 the configuration
or the store must be changed first"
)]
pub(super) struct RepairTerms {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Read the store of a member that is stopped, and print it for a plan
    Report(ReportTerms),
    /// Make a plan of the reports of all members
    Plan(PlanTerms),
    /// Replace the store of a member that is stopped, by a plan
    Apply(ApplyTerms),
    /// Let a barred group be led again, when its fences were reset
    Lift(Lift),
}

/// Read the store of a member that is stopped, and print it for a plan.
#[derive(Args, Debug)]
#[command(
    after_help = "It changes nothing. If the daemon runs it is refused. Run it as the user of the node, so that the
grants that the member remembers can be read: a group with an absurd one is barred by the plan.
The report has addresses and names of the cluster, and no keys.

Examples:
  tenure members repair-terms report -c /var/lib/tenure/tenure.toml > n1.report

Exit codes: 0 done, 2 error, 78 the daemon runs, or the configuration or the store will not do"
)]
struct ReportTerms {}

/// Make a plan of the reports of all members.
#[derive(Args, Debug)]
#[command(
    after_help = "It needs exactly one report of each member, made after all of them were stopped. Barred are the
groups of --bar, and those for which a member remembers a term above the floor. A member does
not remember all: name every group whose fences have seen an absurd term (`tenure fence list
--above TERM`), unless you reset these fences before the members start.

It refuses a change of members that may be half done, members that are missing, and terms above
the floor that are not absurd (less than 2^24 above it).

Examples:
  tenure members repair-terms plan n1.report n2.report n3.report --bar jobs > terms.plan

Exit codes: 0 done, 2 refused or error"
)]
struct PlanTerms {
    /// Terms go on above this; it must be above every term that any other group ever held
    /// [default: the seconds since 2024 by the latest clock, and 65536 more]
    #[arg(long, value_name = "TERM")]
    floor: Option<u64>,
    /// A group that holds an absurd term; may be repeated
    #[arg(long, value_name = "GROUP")]
    bar: Vec<String>,
    /// The reports
    #[arg(value_name = "REPORT", required = true)]
    reports: Vec<PathBuf>,
}

/// Replace the store of a member that is stopped, by a plan.
#[derive(Args, Debug)]
#[command(
    after_help = "The store must be exactly as in its report: if the daemon has run since, it is refused, and new
reports and a new plan are needed. To apply a plan twice is fine, and so is a kill meanwhile.
Apply it to all members before you start any.

Examples:
  tenure members repair-terms apply terms.plan -c /var/lib/tenure/tenure.toml

Exit codes: 0 done, or done before, 2 refused or error, 78 the daemon runs, or the configuration
or the store will not do"
)]
struct ApplyTerms {
    /// The plan
    plan: PathBuf,
}

/// Let a barred group be led again, when its fences were reset.
#[derive(Args, Debug)]
#[command(
    after_help = "Tokens of the group are smaller than the absurd one from now on. First end every process that
has led the group with an absurd term, and reset the fences of its resources: a fence that has
seen the absurd term refuses all new leaders, and one that has not lets an old leader in.
`tenure status` shows the barred groups; id=NUMBER is one whose name no daemon knows.

Examples:
  tenure members repair-terms lift jobs
  tenure members repair-terms lift id=1311768467463790320

Exit codes: 0 done, 2 refused or error, 69 nobody answers, or not in time, 77 not allowed, 78 no
daemon is known"
)]
struct Lift {
    /// The group, or id=NUMBER
    group: String,
    #[command(flatten)]
    waiting: Waiting,
}

impl RepairTerms {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        match self.command {
            Command::Report(ReportTerms {}) => report(common),
            Command::Plan(plan) => plan.run(),
            Command::Apply(apply) => apply.run(common),
            Command::Lift(lift) => {
                change("lift-bar", &LiftBarOrder { group: lift.group }, &lift.waiting, common)
            }
        }
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| messages::file_unreadable(path.display(), error))
}

fn report(common: &Common) -> Result<Answer, Failure> {
    let report = Report::read(&common.settings()?.node()?)?;
    let mut answer = Answer::text(report.to_text());
    let remembered = report.groups_above(Plan::lowest_floor()).len();
    answer.notes.push(format!(
        "{}: terms up to {}, and {remembered} groups with a remembered term above {}",
        report.name(),
        report.ceiling(),
        Plan::lowest_floor()
    ));
    if let Some(trouble) = report.memory_trouble() {
        answer.notes.push(format!(
            "which groups hold an absurd term is not known here: {trouble}; name them to `plan` with --bar"
        ));
    }
    Ok(answer)
}

impl PlanTerms {
    fn run(self) -> Result<Answer, Failure> {
        let parse = |path: &PathBuf| {
            Report::parse(&read(path)?).map_err(|error| messages::file_malformed(path.display(), error))
        };
        let reports = self.reports.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let plan = Plan::new(&reports, self.floor.map(Term), &self.bar)?;
        let mut answer = Answer::text(plan.to_text());
        let members: Vec<&str> = plan.members().map(tenure::NodeName::as_str).collect();
        answer.notes.push(format!(
            "terms go on above {} in epoch {}; apply it to {}, then start them",
            plan.floor(),
            plan.epoch(),
            members.join(", ")
        ));
        let barred = plan.barred();
        answer.notes.push(match barred.len() {
            0 => "no group is barred: the fences of all groups that hold an absurd term must be reset first"
                .to_owned(),
            _ => format!("barred: {} ({})", barred.join(", "), self.bar.join(", ")),
        });
        Ok(answer)
    }
}

impl ApplyTerms {
    fn run(self, common: &Common) -> Result<Answer, Failure> {
        let plan = Plan::parse(&read(&self.plan)?)
            .map_err(|error| messages::file_malformed(self.plan.display(), error))?;
        let config = common.settings()?.node()?;
        let (applied, name) = (plan.apply(&config)?, &config.name);
        let (epoch, floor) = (plan.epoch().0, plan.floor().0);
        let now = applied == Applied::Now;
        let json = || json!({ "name": name, "applied": now, "epoch": epoch, "floor": floor });
        let text = || {
            let word = if now { "is repaired" } else { "was repaired by this plan before" };
            format!("{name} {word}: epoch {epoch}, terms above {floor}\n")
        };
        Ok(Answer::new(common.output, json, text))
    }
}
