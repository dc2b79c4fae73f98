//! `tenure transfer`.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::act;
use crate::api::{self, TransferOrder, group_path};
use crate::arguments::Common;
use crate::client::{self, Asking, Client, group_name};
use crate::failure::Failure;
use crate::output::Answer;

/// How long a daemon may take to hear of the new leader.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// How often it is asked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ask the leader of a group to hand over.
#[derive(Args, Debug)]
#[command(
    after_help = "The other process must campaign for the group and say that it stands by; else nothing is
stopped, and the leader leads on. The gap is about one round trip after the leader's work has
ended. -o json has the term that has ended, and that of the new leader as \"new_term\" (null if no
daemon has heard of it within 2 s).

Examples:
  tenure status jobs                    who stands by
  tenure transfer jobs --to app-2

Exit codes: 0 it has handed over, 1 nobody leads, or the leader or the other declined, 2 error,
69 no daemon answers, 77 the token or the key does not allow it, 78 no daemon is known"
)]
pub(crate) struct Transfer {
    /// The group
    #[arg(value_parser = group_name)]
    group: String,
    /// The process that shall lead; the beginning of its name, if no other that stands by has it
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
        let this = Self { to: self.meant(common)?, ..self };
        this.hand_over(common)
    }

    /// The process that is meant: the one of this name, or the only one that stands by whose name
    /// begins so. The end of most names is drawn.
    fn meant(&self, common: &Common) -> Result<String, Failure> {
        let client = self.asking.client(common)?;
        let path = group_path(&self.group, "/candidates");
        let Ok(standing) = client::block_on(client.get::<api::Candidates>(&path))? else {
            return Ok(self.to.clone()); // A daemon that does not say: the leader asks the process.
        };
        let candidates = &standing.candidates;
        let begin: Vec<&String> = candidates.iter().filter(|name| name.starts_with(&self.to)).collect();
        match begin.as_slice() {
            [only] if !candidates.contains(&self.to) => Ok((*only).clone()),
            _ => Ok(self.to.clone()),
        }
    }

    fn hand_over(&self, common: &Common) -> Result<Answer, Failure> {
        let order = |within_ms| TransferOrder { to: self.to.clone(), within_ms };
        let (done, client) = match act::done(common, &self.asking, (&self.group, "transfer"), order)? {
            Ok(ordered) => ordered,
            Err(refusal) => return Ok(refusal),
        };
        let new_term =
            client::block_on(async { timeout(SEEN_WITHIN, self.new_term(&client, done.term)).await.ok() })?;
        let json = || {
            let mut value = json!(done);
            value["new_term"] = json!(new_term);
            value
        };
        Ok(Answer::new(common.output, json, || {
            let api::Done { leader, group, .. } = &done;
            match new_term {
                Some(term) => {
                    format!("{leader} has handed '{group}' over to {}, which leads in term {term}\n", self.to)
                }
                None => format!("{leader} has handed '{group}' over to {}\n", self.to),
            }
        }))
    }

    /// The term of the new leader, as soon as a daemon knows of it.
    async fn new_term(&self, client: &Client, before: u64) -> u64 {
        loop {
            if let Ok(group) = client.get::<api::Group>(&group_path(&self.group, "")).await
                && let Some(term) = group.term.filter(|term| *term > before)
                && group.leader.as_deref() == Some(&self.to)
            {
                return term;
            }
            sleep(LOOK_EVERY).await;
        }
    }
}
