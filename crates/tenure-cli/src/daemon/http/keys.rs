//! Revoking keys. The member that is asked tells all others, and answers who has it.

use axum::Json;
use axum::extract::State;
use axum::routing::post;
use tenure::{NodeName, RevokeError, Serial};

use crate::api::Code;
use crate::api::keys::{RevokeOrder, RevokedKey};

use super::answer::{Order, Refused};
use super::desk::Desk;
use super::entry::Need;
use super::routes::Route;

/// Method, path and handler of everything about keys.
pub(super) fn routes() -> Vec<Route> {
    vec![("post", "/v1/keys/revoke", Need::admin("key revoke"), post(revoke))]
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
