//! Keys that are no cluster's keys: revoking them, and the list of those that are.

use serde::{Deserialize, Serialize};

/// The body of `POST /v1/keys/revoke`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RevokeOrder {
    /// The key's id: 16 hexadecimal digits.
    pub(crate) key: String,
    /// When the key expires, in seconds since 1970, if that is known: the list can then be
    /// shortened later.
    #[serde(default)]
    pub(crate) not_after: Option<u64>,
}

/// The members that have a revocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RevokedKey {
    /// The key's id.
    pub(crate) key: String,
    /// Members that have it on their disks.
    pub(crate) held_by: Vec<String>,
    /// Members that did not say so in time. They get it when they are reached.
    pub(crate) missing: Vec<String>,
    /// Whether those that have it are a quorum: only then does the revocation hold.
    pub(crate) quorum: bool,
}

/// The answer of `GET /v1/keys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RevokedKeys {
    /// The keys that the member refuses because they were revoked, by id.
    pub(crate) revoked: Vec<RevokedEntry>,
}

/// A key that was revoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RevokedEntry {
    /// The key's id.
    pub(crate) key: String,
    /// When it expires, in seconds since 1970; null if that was not said when it was revoked.
    pub(crate) not_after: Option<u64>,
}
