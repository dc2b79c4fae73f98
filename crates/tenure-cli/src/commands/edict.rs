//! `tenure edict`: a fresh token, for a shell script that `tenure run` runs.

use std::env;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::act;
use crate::arguments::Common;
use crate::failure::{Failure, messages};
use crate::output::{Answer, Verdict};
use crate::settings::length;

/// Print a fresh token of the leader whose command this is part of.
#[derive(Args, Debug)]
#[command(
    after_help = "For the command and the hooks of `tenure run`, in a shell: prints a new edict's token, larger than
all before. The runner compares its clock with the end of the lease for each: a token that is
printed was made by a leader. TENURE_TOKEN, in contrast, is the same for the whole term.

Examples:
  token=$(tenure edict) && curl -H \"Tenure-Token: $token\" -d @job.json https://store.example/jobs
  psql -c \"SELECT tenure.admit_by_term('jobs', $(tenure edict --packed))\"

Exit codes: 0 a token was printed, 1 this process does not lead any more, 2 error, 69 the runner
does not answer"
)]
pub(crate) struct Edict {
    /// Print the token for a signed column of 64 bits
    #[arg(long)]
    packed: bool,
    /// How long the runner may take
    #[arg(long, value_name = "D", value_parser = length, default_value = "2s")]
    timeout: Duration,
}

impl Edict {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let socket = env::var("TENURE_SOCKET").map_err(|_| messages::edict_outside_run())?;
        let answer = act::ask_runner(&socket, "edict", self.timeout)?;
        if let Some(why) = answer.pointer("/error/message").and_then(Value::as_str) {
            let mut refused = Answer::text(String::new());
            refused.verdict = Verdict::Broken;
            refused.notes.push(format!("tenure: {why}"));
            return Ok(refused);
        }
        let field = if self.packed { "packed" } else { "token" };
        let token = answer[field].as_str().ok_or_else(messages::edict_too_wide)?;
        let line = format!("{token}\n");
        Ok(Answer::new(common.output, || answer.clone(), || line))
    }
}
