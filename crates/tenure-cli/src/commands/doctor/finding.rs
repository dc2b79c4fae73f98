//! The result of a check.

use serde_json::{Value, json};

use crate::failure::concealed;

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// As it should be.
    Ok,
    /// It works, and somebody should know.
    Warn,
    /// It does not work, or what it promises rests on nothing.
    Bad,
}

impl State {
    /// In a word.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// The check: a stable word for programs.
    pub(super) check: &'static str,
    /// How it is.
    pub(super) state: State,
    /// The finding in words.
    pub(super) says: String,
    /// The advice, unless it is ok.
    pub(super) advice: Option<String>,
}

impl Finding {
    /// As it should be.
    pub(super) fn ok(check: &'static str, says: impl Into<String>) -> Self {
        Self { check, state: State::Ok, says: concealed(&says.into()), advice: None }
    }

    /// It works, but.
    pub(super) fn warn(check: &'static str, says: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, state: State::Warn, says: concealed(&says.into()), advice: Some(advice.into()) }
    }

    /// It does not work.
    pub(super) fn bad(check: &'static str, says: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, state: State::Bad, says: concealed(&says.into()), advice: Some(advice.into()) }
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        json!({ "check": self.check, "state": self.state.name(), "says": self.says, "do": self.advice })
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        match &self.advice {
            None => self.says.clone(),
            Some(advice) => format!("{} → {advice}", self.says),
        }
    }
}
