//! `tenure verify`: asks the leader itself, and counts from before the question was sent.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::api::{self, Code, group_path};
use crate::arguments::Common;
use crate::client::{self, Asking, group_name};
use crate::clock::boottime;
use crate::failure::Failure;
use crate::output::{Answer, Verdict, pairs, readable};
use crate::settings;

/// Ask the leader itself, and say for how long it is certain.
#[derive(Args, Debug)]
#[command(
    after_help = "Until the time that is printed nobody else leads the group; the leader itself may have stopped.
The time is counted on this machine's clock from before the question was sent, so that nothing
on the way can make it too long, and it is shortened by what two clocks may differ.

In JSON, certain_for_ms is as of the moment of printing, and certain_until_boottime_ns is the
same as a reading of this machine's CLOCK_BOOTTIME: a program compares that with its own reading
when it acts, and not before.

Examples:
  tenure verify jobs
  tenure verify jobs --for 50ms -o json

Exit codes: 0 certain, 1 nobody leads or answers, or it was over before it could be printed, 2
error, 69 no daemon answers, 77 the token is refused, 78 no daemon is known"
)]
pub(crate) struct Verify {
    /// The group
    #[arg(value_parser = group_name)]
    group: String,
    /// For how long it should be certain; a leader pledges at most its `longest_pledge`
    #[arg(long = "for", value_name = "D", default_value = "100ms", value_parser = settings::length)]
    wanted: Duration,
    /// Whom to ask
    #[command(flatten)]
    asking: Asking,
}

impl Verify {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let client = self.asking.client(common)?;
        let for_ms = u64::try_from(self.wanted.as_millis()).unwrap_or(u64::MAX);
        let order = api::VerifyOrder { for_ms: Some(for_ms) };
        // Before anything is sent: what is certain is certain from here. Connecting to a second
        // daemon only makes it shorter.
        let start = boottime();
        let path = group_path(&self.group, "/verify");
        let verified: api::Verified = match client::block_on(client.query(&path, &order))? {
            Err(trouble) if trouble.is(Code::NoLeader) => {
                let mut answer = Answer::text(String::new());
                answer.verdict = Verdict::Broken;
                answer.notes.push(format!("tenure: {}", Failure::from(trouble)));
                return Ok(answer);
            }
            answer => answer?,
        };
        let until = start + Duration::from_millis(verified.certain_for_ms);
        let left = until.saturating_sub(boottime());
        // Rounded down: it is not certain for longer.
        let whole = Duration::from_millis(left.as_millis().try_into().unwrap_or(u64::MAX));
        let shown = || {
            pairs([
                ("leader", verified.leader.clone()),
                ("term", verified.term.to_string()),
                ("certain for", format!("{} more", readable(whole))),
                (
                    "until",
                    format!(
                        "{}.{:09} s on this machine's CLOCK_BOOTTIME",
                        until.as_secs(),
                        until.subsec_nanos()
                    ),
                ),
            ])
        };
        let object = || {
            json!({
                "group": verified.group,
                "leader": verified.leader,
                "term": verified.term,
                "certain_for_ms": u64::try_from(left.as_millis()).unwrap_or(0),
                "certain_until_boottime_ns": u64::try_from(until.as_nanos()).unwrap_or(0),
            })
        };
        let mut answer = Answer::new(common.output, object, shown);
        if left.is_zero() {
            answer.verdict = Verdict::Broken;
            answer
                .notes
                .push("tenure: it is not certain any more: ask again, with a longer --for".to_owned());
        }
        Ok(answer)
    }
}
