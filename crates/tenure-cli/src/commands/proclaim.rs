//! `tenure proclaim`.

use clap::Args;

use super::act;
use crate::api::{Done, ProclaimOrder};
use crate::arguments::Common;
use crate::client::{Asking, group_name};
use crate::failure::{Failure, messages};
use crate::output::Answer;

/// Let the leader of a group say something to those who watch.
#[derive(Args, Debug)]
#[command(
    after_help = "The leader proclaims it with an edict of its own, and observers hear it in order (`tenure leader
GROUP --watch`). The newest replaces what was said before; it is gone after a restart of all
members. In a command of `tenure run` the runner is asked, and no daemon is needed.

Examples:
  tenure proclaim jobs 'primary at 10.0.0.7:5432'

Exit codes: 0 proclaimed, 1 nobody leads, or the leader declined, 2 error, 69 no daemon answers,
77 the token or the key does not allow it, 78 no daemon is known"
)]
pub(crate) struct Proclaim {
    /// The group
    #[arg(value_parser = group_name)]
    group: String,
    /// The text, at most 512 bytes
    text: String,
    /// Whom to ask
    #[command(flatten)]
    asking: Asking,
}

impl Proclaim {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        if self.text.len() > tenure::MAX_PROCLAIM {
            return Err(messages::proclaim_too_long(self.text.len(), tenure::MAX_PROCLAIM));
        }
        let did = |done: &Done| {
            let token = done.token.as_deref().unwrap_or("?");
            format!("{} proclaimed it in term {} with token {token}", done.leader, done.term)
        };
        let line = format!("proclaim {}", self.text);
        if let Some(answer) = act::order_runner(common, &self.asking, &self.group, &line, did) {
            return answer;
        }
        let order = |within_ms| ProclaimOrder { text: self.text, within_ms };
        act::order(common, &self.asking, (&self.group, "proclaim"), order, did)
    }
}
