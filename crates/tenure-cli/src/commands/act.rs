//! The common part of proclaim, resign and transfer: an order to the leader, wherever it is.
//!
//! Within the command of `tenure run`, the leader is the runner itself: it is asked by its socket,
//! which needs no daemon and no token.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::{self, Code, group_path};
use crate::arguments::Common;
use crate::client::{self, Asking, Client};
use crate::failure::{Failure, messages};
use crate::output::{Answer, Verdict};

/// How long a leader is waited for: it may have to end a command first.
const PATIENCE: Duration = Duration::from_secs(15);

/// Orders something of a group's leader and says what came of it. `order` is made with the time
/// that the leader has, in milliseconds; `did` tells in words what was done.
pub(super) fn order<O: Serialize>(
    common: &Common,
    asking: &Asking,
    (group, what): (&str, &str),
    order: impl FnOnce(Option<u64>) -> O,
    did: impl FnOnce(&api::Done) -> String,
) -> Result<Answer, Failure> {
    let ordered = done(common, asking, (group, what), order)?;
    Ok(ordered.map_or_else(|refusal| refusal, |(done, _)| done_answer(common, &done, did)))
}

/// Orders something of a group's leader: what was done and the client that ordered it, or the
/// answer that says why it was not.
pub(super) fn done<O: Serialize>(
    common: &Common,
    asking: &Asking,
    (group, what): (&str, &str),
    order: impl FnOnce(Option<u64>) -> O,
) -> Result<Result<(api::Done, Client), Answer>, Failure> {
    let client = asking.client_within(common, PATIENCE)?;
    // The daemon gives up a little earlier, so that it can say so.
    let within = client.timeout().saturating_sub(PATIENCE / 10).as_millis();
    let order = order(Some(u64::try_from(within).unwrap_or(u64::MAX)));
    let path = group_path(group, &format!("/{what}"));
    match client::block_on(client.post::<api::Done>(&path, &order))? {
        Ok(done) => Ok(Ok((done, client))),
        Err(trouble) if trouble.is(Code::NoLeader) || trouble.is(Code::Declined) => {
            Ok(Err(refused(&Failure::from(trouble).to_string())))
        }
        Err(trouble) => Err(trouble.into()),
    }
}

/// Asks the runner whose command this is part of, in one line; nothing if this is no command of a
/// runner, or of another group's.
pub(super) fn order_runner(
    common: &Common,
    asking: &Asking,
    group: &str,
    line: &str,
    did: impl FnOnce(&api::Done) -> String,
) -> Option<Result<Answer, Failure>> {
    let own = env::var("TENURE_GROUP").is_ok_and(|own| own == group);
    let socket = env::var("TENURE_SOCKET").ok().filter(|_| own && asking.endpoint.is_empty())?;
    if line.contains(['\n', '\r']) {
        return None; // It speaks in lines. A daemon takes any text.
    }
    let timeout = asking.timeout.unwrap_or(PATIENCE);
    Some(ask_runner(&socket, line, timeout).map(|answer| match told(&answer, group) {
        Ok(done) => done_answer(common, &done, did),
        Err(why) => refused(&why),
    }))
}

/// One line to the socket of a runner, one line of JSON back.
pub(super) fn ask_runner(socket: &str, line: &str, timeout: Duration) -> Result<Value, Failure> {
    let ask = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        stream.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        serde_json::from_str(&answer).map_err(std::io::Error::from)
    };
    ask().map_err(|error| messages::runner_silent(socket, error))
}

/// A runner's answer in the words of a daemon's.
fn told(answer: &Value, group: &str) -> Result<api::Done, String> {
    if let Some(message) = answer.pointer("/error/message").and_then(Value::as_str) {
        return Err(format!("the runner says: {message}"));
    }
    Ok(api::Done {
        group: group.to_owned(),
        leader: env::var("TENURE_NODE").unwrap_or_default(),
        term: env::var("TENURE_TERM").ok().and_then(|term| term.parse().ok()).unwrap_or_default(),
        token: answer["token"].as_str().map(str::to_owned),
    })
}

fn done_answer(common: &Common, done: &api::Done, did: impl FnOnce(&api::Done) -> String) -> Answer {
    Answer::new(common.output, || json!(done), || did(done) + "\n")
}

/// The answer is no, and why.
fn refused(why: &str) -> Answer {
    let mut answer = Answer::text(String::new());
    answer.verdict = Verdict::Broken;
    answer.notes.push(format!("tenure: {why}"));
    answer
}
