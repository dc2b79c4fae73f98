//! Revoking keys that are no cluster's keys.

use serde::{Deserialize, Serialize};

/// What `POST /v1/keys/revoke` is told.
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
