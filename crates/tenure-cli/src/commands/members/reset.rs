//! `tenure members reset-terms`: the way back from terms that are absurdly high.

use clap::Args;

use super::change::{Waiting, change};
use super::force::{ask_back, require_terminal};
use crate::api::members::ResetTermsOrder;
use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::{Answer, in_line};

/// Set terms anew that are absurdly high, and bar the groups that hold them.
#[derive(Args, Debug)]
#[command(
    after_help = "Terms only rise, and one ceiling serves all groups: once an absurd term was granted to one group,
all of them go on above it. This command lowers terms again. All members must run and answer.
They stop granting, wait until every lease is over, and go on above the floor: nobody leads for
about a longest lease.

Name every group that ever held a term above the floor with --bar. Nobody leads such a group
again: use one of another name. A member that has granted a higher term to a group that is not
barred says so, and nothing is changed; after a restart it no longer knows.

A fence that has admitted a term above the floor refuses every later leader. List those fences:
  tenure fence list --above FLOOR FILE...
  PostgreSQL: SELECT resource, term FROM tenure.fence WHERE term > FLOOR;
  SQLite:     SELECT resource, term FROM tenure_fence WHERE term > FLOOR;

Examples:
  tenure members reset-terms --bar evil/x
  tenure members reset-terms --bar evil/x --term-floor 100000000 --yes -o json

Exit codes: 0 done, 2 refused or error, 69 nobody answers, or not in time"
)]
pub(super) struct ResetTerms {
    /// A group that holds a term above the floor, and is never led again; may be given more than
    /// once, up to 8 in all
    #[arg(long, value_name = "GROUP")]
    bar: Vec<String>,
    /// Terms go on above this [default: the seconds since 2024 and 65536 more]
    #[arg(long, value_name = "N")]
    term_floor: Option<u64>,
    /// Do not ask back
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    waiting: Waiting,
}

impl ResetTerms {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        if !self.yes {
            self.confirm()?;
        }
        let order = ResetTermsOrder { term_floor: self.term_floor, barred: self.bar };
        let mut answer = change("reset-terms", &order, &self.waiting, common)?;
        let floor = order.term_floor.map_or_else(|| "FLOOR".to_owned(), |floor| floor.to_string());
        answer.notes.push(format!(
            "fences that have admitted a higher term refuse every new leader: look with `tenure fence list --above {floor} FILE...`, and in databases as `--help` shows"
        ));
        Ok(answer)
    }

    /// Says what will happen, and waits for the word itself.
    fn confirm(&self) -> Result<(), Failure> {
        require_terminal(
            "reset-terms asks back on a terminal; give --yes if only the barred groups held higher terms",
        )?;
        let barred = match self.bar.as_slice() {
            [] => "No group is barred.".to_owned(),
            groups => format!("Never led again: {}.", in_line(&groups.join(", "))),
        };
        let question = format!(
            "{barred} Nobody leads any group for about a longest lease.\n\
             If another group ever held a term above the new floor, fences refuse its new leaders.\n\
             Write 'reset' to go on: "
        );
        ask_back(&question, "reset")
    }
}
