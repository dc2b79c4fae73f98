//! Revoking keys, and listing those that are revoked. The member that is asked tells all others,
//! and answers who has it.

use axum::Json;
use axum::extract::State;
use axum::routing::{get, post};
use tenure::{NodeName, RevokeError, Serial};

use crate::api::Code;
use crate::api::keys::{RevokeOrder, RevokedEntry, RevokedKey, RevokedKeys};
use crate::tokens::Role;

use super::answer::{Order, Refused};
use super::desk::Desk;
use super::entry::Need;
use super::routes::Route;

/// Method, path and handler of everything about keys.
pub(super) fn routes() -> Vec<Route> {
    vec![
        ("get", "/v1/keys", Need { role: Some(Role::Admin), act: None }, get(list)),
        ("post", "/v1/keys/revoke", Need::admin("key revoke"), post(revoke)),
    ]
}

/// `GET /v1/keys`
async fn list(State(desk): State<Desk>) -> Result<Json<RevokedKeys>, Refused> {
    let entry =
        |key: tenure::RevokedKey| RevokedEntry { key: key.serial.to_string(), not_after: key.not_after };
    let revoked = desk.node.revoked_keys().await?;
    Ok(Json(RevokedKeys { revoked: revoked.into_iter().map(entry).collect() }))
}

async fn revoke(
    State(desk): State<Desk>,
    Order(order): Order<RevokeOrder>,
) -> Result<Json<RevokedKey>, Refused> {
    let serial: Serial = order.key.parse()?;
    let revoked = desk.node.revoke(serial, order.not_after).await.map_err(|error| match error {
        RevokeError::NotAMember => Refused::new(Code::NotAMember, RevokeError::NotAMember),
        RevokeError::Stopped(stopped) => stopped.into(),
        error => Refused::bad(error),
    })?;
    let texts = |names: Vec<NodeName>| names.iter().map(ToString::to_string).collect();
    Ok(Json(RevokedKey {
        key: revoked.serial.to_string(),
        held_by: texts(revoked.held_by),
        missing: texts(revoked.missing),
        quorum: revoked.is_quorum,
    }))
}
