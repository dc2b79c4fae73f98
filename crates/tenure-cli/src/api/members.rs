//! Changing the members. Each change is a `POST` to a member, answered by lines of progress; the
//! last is `done` or `failed`.

use serde::{Deserialize, Serialize};

/// The body of `POST /v1/members/add`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddOrder {
    /// The new member. It must run already, with a store that was made by joining.
    pub(crate) name: String,
    /// Where it is: `host:port`.
    pub(crate) address: String,
    /// Also if those that answer will be no quorum afterwards.
    #[serde(default)]
    pub(crate) force: bool,
}

/// The body of `POST /v1/members/remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveOrder {
    /// The member that leaves.
    pub(crate) name: String,
    /// Also if those that answer will be no quorum afterwards.
    #[serde(default)]
    pub(crate) force: bool,
}

/// The body of `POST /v1/members/replace`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplaceOrder {
    /// The member that leaves.
    pub(crate) old: String,
    /// The new member. It must run already, with a store that was made by joining.
    pub(crate) name: String,
    /// Where it is: `host:port`.
    pub(crate) address: String,
    /// Also if those that answer will be no quorum afterwards.
    #[serde(default)]
    pub(crate) force: bool,
}

/// The body of `POST /v1/members/set`: what is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SetOrder {
    /// By how much clocks' rates may be off, in parts per million.
    pub(crate) drift_ppm: Option<u32>,
    /// By how much synchronised clocks may differ.
    pub(crate) skew_us: Option<u64>,
    /// The longest lease.
    pub(crate) longest_lease_ms: Option<u64>,
    /// Which sets of members suffice, in the order of `GET /v1/members`: `majority`,
    /// `weights:3,1,1`, `grid:2x3`, `list:01,12,02`.
    pub(crate) quorums: Option<String>,
    /// Also if those that answer will be no quorum afterwards.
    pub(crate) force: bool,
}

/// The body of `POST /v1/members/force-remove`. See `docs/guides/backup.md` for what rests on this
/// word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForceRemoveOrder {
    /// Those who are powered off and will never run again with their stores. All others must
    /// answer.
    pub(crate) powered_off: Vec<String>,
    /// Terms go on above this; if absent, above the seconds since 2024 and all terms that are
    /// known, by a margin.
    #[serde(default)]
    pub(crate) term_floor: Option<u64>,
}

/// The answer of `POST /v1/members/accept-lineage`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineageAccepted {
    /// The node that was asked.
    pub(crate) name: String,
    /// Whether it had stopped for another cluster of its id and key, and goes on now.
    pub(crate) accepted: bool,
}

/// The body of `POST /v1/members/confirm-term`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmTermOrder {
    /// The term. The member that is asked believes terms up to it.
    pub(crate) term: u64,
}

/// The body of `POST /v1/members/lift-bar`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LiftBarOrder {
    /// The barred group, by name or as `id=NUMBER`. Its fences were reset.
    pub(crate) group: String,
}

/// One line of how a change goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    /// The kind of the step.
    pub(crate) event: StepKind,
    /// The epoch, for `epoch` and `done`; else null.
    pub(crate) epoch: Option<u64>,
    /// For how long still, for `waiting`; else null.
    pub(crate) left_ms: Option<u64>,
    /// Whose answers are out, for `unheard`; else null.
    pub(crate) unheard: Option<Vec<String>>,
    /// Why not and what to do, for `failed`; else null.
    pub(crate) message: Option<String>,
}

impl Step {
    /// One that says nothing but its event.
    pub(crate) fn new(event: StepKind) -> Self {
        Self { event, epoch: None, left_ms: None, unheard: None, message: None }
    }
}

/// The kinds of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StepKind {
    /// The cluster goes by this epoch now; there may be more to come.
    Epoch,
    /// The next step waits until leases of before are over.
    Waiting,
    /// Some have been asked and have not answered yet.
    Unheard,
    /// All of it is done. Nothing follows.
    Done,
    /// It stopped; what was done stays. Nothing follows.
    Failed,
}
