//! The audit log: each act of an operator is one event, `tenure.act`, when it is known what came of
//! it.
//!
//! | result | means |
//! |---|---|
//! | `done` | it was done |
//! | `refused` | nothing was done: not allowed, or the order makes no sense as things are |
//! | `failed` | it was begun, and failed |
//! | `unknown` | nobody can say: no answer in time, or the caller went away before there was one |
//!
//! The middleware of `entry.rs` makes an [`Act`] before the handler runs and tells its end by the
//! answer. A handler whose work goes on after the answer takes the [`Story`] over. A story that is
//! dropped is told as `unknown`: whichever way a request ends, there is one event, and none says
//! `done` before it was.

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::response::Response;

use crate::api::Code;

use super::answer::Refused;

/// The most characters of what a caller wrote that go into the log.
const LONGEST: usize = 200;

/// The most refusals of unknown callers that are logged in a second. More are counted.
const MOST_REFUSALS: u64 = 10;

/// An operator, and what the operator does.
#[derive(Debug)]
pub(super) struct Story {
    /// This node.
    pub(super) node: String,
    /// `uid:0`, `token:7f3a9c21`, `certificate:CN=alice`, `session:0b1c2d3e (uid:0)` or `nobody`.
    pub(super) who: String,
    /// The address of the caller, where there is one.
    pub(super) from: Option<String>,
    /// The request: `resign`, `members add`, `token revoke` …
    pub(super) act: &'static str,
    /// The group that it is about.
    pub(super) group: Option<String>,
    /// More of it: members, the successor, the token.
    pub(super) detail: Option<String>,
    /// How many refusals before this one were only counted.
    pub(super) unlogged: Option<u64>,
    /// Whether its end was told, or shall not be.
    told: bool,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Refused,
    Failed,
    Unknown,
}

impl Outcome {
    /// As it is logged.
    fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// By the error that is answered.
    fn of(code: Code) -> Self {
        match code {
            Code::Timeout | Code::Stopped | Code::Internal => Self::Unknown,
            Code::NoLeader => Self::Failed,
            _ => Self::Refused,
        }
    }
}

impl Story {
    /// Somebody asks for something.
    pub(super) fn new(node: &str, act: &'static str, group: Option<String>) -> Self {
        Self {
            node: node.to_owned(),
            who: "nobody".to_owned(),
            from: None,
            act,
            group: group.map(|group| short(&group)),
            detail: None,
            unlogged: None,
            told: false,
        }
    }

    /// Writes down how it ended.
    pub(super) fn tell(mut self, outcome: Outcome, reason: Option<&str>) {
        self.log(outcome, reason);
    }

    /// Drops it without a word: it was counted instead.
    pub(super) fn forget(mut self) {
        self.told = true;
    }

    fn log(&mut self, outcome: Outcome, reason: Option<&str>) {
        self.told = true;
        let Self { node, who, act, .. } = &*self;
        let (from, group, detail) = (self.from.as_deref(), self.group.as_deref(), self.detail.as_deref());
        let (result, reason, unlogged) = (outcome.name(), reason.map(short), self.unlogged);
        let reason = reason.as_deref();
        match outcome {
            Outcome::Done => {
                tracing::info!(name: "tenure.act", node, who, from, act, group, detail, result, reason, unlogged, "an operator's act");
            }
            _ => {
                tracing::warn!(name: "tenure.act", node, who, from, act, group, detail, result, reason, unlogged, "an operator's act that was not done");
            }
        }
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        if !self.told {
            self.log(Outcome::Unknown, Some("it was not waited for to its end"));
        }
    }
}

/// An act whose end is not known yet. Handlers have it as an extension of the request.
#[derive(Clone, Debug)]
pub(super) struct Act(Arc<Mutex<Option<Story>>>);

impl Act {
    pub(super) fn new(story: Story) -> Self {
        Self(Arc::new(Mutex::new(Some(story))))
    }

    /// Says more of what it is about.
    pub(super) fn about(&self, detail: impl Display) {
        if let Some(story) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            story.detail = Some(short(&detail.to_string()));
        }
    }

    /// The identity that acts.
    pub(super) fn who(&self) -> String {
        let story = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        story.as_ref().map(|story| story.who.clone()).unwrap_or_default()
    }

    /// Takes it over: the caller tells its end, later than the answer.
    pub(super) fn take(&self) -> Option<Story> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Tells its end by the answer, unless somebody has taken it over.
    pub(super) fn end(&self, response: &Response) {
        let Some(story) = self.take() else { return };
        match response.extensions().get::<Refused>() {
            Some(refused) => story.tell(Outcome::of(refused.code()), Some(refused.message())),
            None if response.status().is_success() => story.tell(Outcome::Done, None),
            None => story.tell(Outcome::Refused, response.status().canonical_reason()),
        }
    }
}

/// Text of a caller, cut to a length that a log can bear.
fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// Keeps callers that nobody knows from filling the log: beyond a few a second their refusals are
/// only counted.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    second: u64,
    logged: u64,
    unlogged: u64,
}

impl Refusals {
    /// Whether one more may be logged now, by the boot clock, and how many before it were not.
    pub(super) fn admit(&mut self, now: Duration) -> Option<Option<u64>> {
        if now.as_secs() != self.second {
            (self.second, self.logged) = (now.as_secs(), 0);
        }
        if self.logged >= MOST_REFUSALS {
            self.unlogged += 1;
            return None;
        }
        self.logged += 1;
        let unlogged = std::mem::take(&mut self.unlogged);
        Some((unlogged > 0).then_some(unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_strangers_beyond_a_few_a_second_are_counted() {
        let mut refusals = Refusals::default();
        let now = Duration::from_secs(7);
        let logged = (0..1_000).filter(|_| refusals.admit(now).is_some()).count();
        assert_eq!(logged, 10);
        assert_eq!(refusals.admit(Duration::from_secs(8)), Some(Some(990)), "and the count is told");
        assert_eq!(refusals.admit(Duration::from_secs(8)), Some(None));
    }

    #[test]
    fn what_may_still_be_done_is_not_told_as_refused() {
        assert_eq!(Outcome::of(Code::Timeout), Outcome::Unknown);
        assert_eq!(Outcome::of(Code::Stopped), Outcome::Unknown);
        assert_eq!(Outcome::of(Code::Forbidden), Outcome::Refused);
        assert_eq!(Outcome::of(Code::NoLeader), Outcome::Failed);
    }
}
