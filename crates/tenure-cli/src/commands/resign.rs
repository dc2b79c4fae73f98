//! `tenure resign`.

use clap::Args;

use super::act;
use crate::api::{Done, ResignOrder};
use crate::arguments::Common;
use crate::client::{Asking, group_name};
use crate::failure::Failure;
use crate::output::Answer;

/// Ask the leader of a group to step down.
#[derive(Args, Debug)]
#[command(
    after_help = "The leader ends its work first, then it resigns, and another candidate is elected; without
another, the same one may come back. To say who shall follow, use `tenure transfer`. In a
command of `tenure run` the runner is asked, and no daemon is needed; it stops the command.

Examples:
  tenure resign jobs

Exit codes: 0 it has resigned, 1 nobody leads, or the leader declined, 2 error, 69 no daemon
answers, 77 the token or the key does not allow it, 78 no daemon is known"
)]
pub(crate) struct Resign {
    /// The group
    #[arg(value_parser = group_name)]
    group: String,
    /// Whom to ask
    #[command(flatten)]
    asking: Asking,
}

impl Resign {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let did =
            |done: &Done| format!("{} has resigned from term {} of '{}'", done.leader, done.term, done.group);
        let resigns =
            |done: &Done| format!("{} resigns from term {} of '{}'", done.leader, done.term, done.group);
        if let Some(answer) = act::order_runner(common, &self.asking, &self.group, "resign", resigns) {
            return answer;
        }
        let order = |within_ms| ResignOrder { within_ms };
        act::order(common, &self.asking, (&self.group, "resign"), order, did)
    }
}
