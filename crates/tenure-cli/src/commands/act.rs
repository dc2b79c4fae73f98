//! What proclaim, resign and transfer have in common: an order to the leader, wherever it is.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use crate::api::{self, Code, group_path};
use crate::arguments::Common;
use crate::client::{self, Asking};
use crate::failure::Failure;
use crate::output::{Answer, Verdict};

/// How long a leader is waited for: it may have to end a command first.
const PATIENCE: Duration = Duration::from_secs(15);

/// Orders something of a group's leader and says what came of it. `order` is made with the time that the leader has, in milliseconds; `did` tells
/// in words what was done.
pub(super) fn order<O: Serialize>(
    common: &Common,
    asking: &Asking,
    (group, what): (&str, &str),
    order: impl FnOnce(Option<u64>) -> O,
    did: impl FnOnce(&api::Done) -> String,
) -> Result<Answer, Failure> {
    let client = asking.client_within(common, PATIENCE)?;
    // The daemon gives up a little earlier, so that it can say so.
    let within = client.timeout().saturating_sub(PATIENCE / 10).as_millis();
    let order = order(Some(u64::try_from(within).unwrap_or(u64::MAX)));
    let path = group_path(group, &format!("/{what}"));
    match client::block_on(client.post::<api::Done>(&path, &order))? {
        Ok(done) => Ok(Answer::new(common.output, || json!(done), || did(&done) + "\n")),
        Err(trouble) if trouble.is(Code::NoLeader) || trouble.is(Code::Declined) => {
            let mut answer = Answer::text(String::new());
            answer.verdict = Verdict::Broken;
            answer.notes.push(format!("tenure: {}", Failure::from(trouble)));
            Ok(answer)
        }
        Err(trouble) => Err(trouble.into()),
    }
}
