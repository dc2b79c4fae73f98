//! `tenure transfer`.

use clap::Args;

use super::act;
use crate::api::TransferOrder;
use crate::arguments::Common;
use crate::client::{Asking, group_name};
use crate::failure::Failure;
use crate::output::Answer;

/// Ask the leader of a group to hand over.
#[derive(Args, Debug)]
#[command(
    after_help = "The other process must campaign for the group. The gap is about one round trip after the
leader's work has ended.

Examples:
  tenure transfer jobs --to app-2

Exit codes: 0 it has handed over, 1 nobody leads, or the leader or the other declined, 2 error,
69 no daemon answers, 77 the token or the key does not allow it, 78 no daemon is known"
)]
pub(crate) struct Transfer {
    /// The group
    #[arg(value_parser = group_name)]
    group: String,
    /// The process that shall lead
    #[arg(long, value_name = "NODE", value_parser = node_name)]
    to: String,
    /// Whom to ask
    #[command(flatten)]
    asking: Asking,
}

fn node_name(text: &str) -> Result<String, String> {
    tenure::NodeName::new(text).map(|name| name.to_string()).map_err(|error| error.to_string())
}

impl Transfer {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let order = |within_ms| TransferOrder { to: self.to.clone(), within_ms };
        act::order(common, &self.asking, (&self.group, "transfer"), order, |done| {
            format!("{} has handed '{}' over to {} in term {}", done.leader, done.group, self.to, done.term)
        })
    }
}
