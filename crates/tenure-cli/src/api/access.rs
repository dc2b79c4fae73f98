//! Tokens, and sessions of browsers.

use serde::{Deserialize, Serialize};

use crate::tokens::Role;

/// The answer of `GET /v1/tokens`: the tokens that this daemon accepts, without their secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    /// In the order of the daemon's list.
    pub(crate) tokens: Vec<Token>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token {
    /// By which it is logged and revoked: 8 digits of 0-9 and a-f.
    pub(crate) id: String,
    /// Its use: `read`, `operate` or `admin`.
    pub(crate) role: Role,
    /// When it expires, as `2027-01-31T00:00:00Z`; null if it does not.
    pub(crate) not_after: Option<String>,
    /// For people.
    pub(crate) note: String,
}

/// The body of `POST /v1/tokens/add`: never the token, only its SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddTokenOrder {
    /// The id that is in the token.
    pub(crate) id: String,
    /// The role of the new token.
    pub(crate) role: Role,
    /// The SHA-256 of the whole token, as 64 digits of 0-9 and a-f.
    pub(crate) sha256: String,
    /// When it expires, as `2027-01-31T00:00:00Z`; absent or null if it does not.
    #[serde(default)]
    pub(crate) not_after: Option<String>,
    /// For people; at most 64 characters.
    #[serde(default)]
    pub(crate) note: Option<String>,
}

/// The body of `POST /v1/tokens/revoke`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RevokeTokenOrder {
    /// The id of the token.
    pub(crate) id: String,
}

/// A token that this daemon does not accept any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Revoked {
    /// Its id.
    pub(crate) id: String,
    /// Whether this daemon accepted it before.
    pub(crate) was_there: bool,
}

/// The body of `POST /v1/session/link`: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LinkOrder {}

/// A one-time code for a browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    /// To be exchanged for a session, once.
    pub(crate) code: String,
    /// The page with the code in its fragment; null if this daemon serves no page.
    pub(crate) url: Option<String>,
    /// For how many seconds it can be used.
    pub(crate) good_for_s: u64,
}

/// The body of `POST /v1/session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenOrder {
    /// The code of a link.
    pub(crate) code: String,
}

/// A session, whose cookie came with this answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionOpened {
    /// To be sent with every order, as the header `X-Tenure-Session`.
    pub(crate) proof: String,
    /// The role of the session.
    pub(crate) role: Role,
    /// For how many seconds.
    pub(crate) good_for_s: u64,
}
