//! `tenure members accept-lineage`: the operator's decision after a split brain.

use std::time::Duration;

use clap::Args;
use serde_json::{json, to_value};

use crate::api::members::LineageAccepted;
use crate::arguments::Common;
use crate::client::{self, Asking};
use crate::failure::Failure;
use crate::output::Answer;

/// The daemon only writes down that it goes on.
const PATIENCE: Duration = Duration::from_secs(5);

/// After a split brain: let one member go on, when the other cluster was ended.
#[derive(Args, Debug)]
#[command(
    after_help = "Two clusters have the same id and key: founded twice, or each half was told by force-remove that
the other is powered off. Members of both stop granting and leading when they hear of each other.
Decide which one goes on. Stop every daemon of the other one and delete its stores; they can join
again (`tenure node --join`, `members add`). Then give this command at each member of the one that
goes on. Each keeps silent for a longest lease first. A member that hears of the other cluster
again stops again.

Examples:
  tenure members accept-lineage --endpoint http://127.0.0.1:7401

Exit codes: 0 done, or there was nothing to decide, 2 error, 69 nobody answers, 77 not allowed"
)]
pub(super) struct AcceptLineage {
    #[command(flatten)]
    asking: Asking,
}

impl AcceptLineage {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let client = self.asking.client_within(common, PATIENCE)?;
        let done: LineageAccepted = client::block_on(client.post("/v1/members/accept-lineage", &json!({})))??;
        let text = || match done.accepted {
            true => format!("{} goes on after a silence; ask every other member too\n", done.name),
            false => format!("{} had not stopped for another cluster: nothing was done\n", done.name),
        };
        Ok(Answer::new(common.output, || to_value(&done).unwrap_or_default(), text))
    }
}
