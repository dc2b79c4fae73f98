//! The answer of the leader-elector that pods of old had at their side: any GET gives
//! `{"name": "<leader>"}`, on a port of its own.
//!
//! The group is `daemon.sidecar_group`; if that is not set, the path names it: `GET /jobs`. It asks
//! for no token, and says no more than a name; an empty one if nobody leads, as the old one did.
//! The client must ask for `localhost` or a number: a page of another site whose name was made to
//! lead here (DNS rebinding) is refused.

use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde::Serialize;
use tenure::GroupName;

use crate::api::{self, Code};
use crate::failure::{Failure, messages};

use super::answer::Refused;
use super::desk::Desk;
use super::entry;

/// The answer.
#[derive(Debug, Serialize)]
struct Name {
    name: String,
}

/// The group that the settings name, if they do.
pub(super) fn group(name: Option<&str>) -> Result<Option<GroupName>, Failure> {
    let group = name.map(GroupName::new).transpose();
    group.map_err(|error| messages::setting_refused("daemon.sidecar_group", error))
}

/// The whole of it.
pub(super) fn router(desk: Desk, group: Option<GroupName>) -> Router {
    Router::new().fallback(answer).with_state((desk, group))
}

async fn answer(
    State((desk, group)): State<(Desk, Option<GroupName>)>,
    request: Request,
) -> Result<Response, Refused> {
    if !entry::names_this_host(&request) {
        return Err(Refused::new(
            Code::Forbidden,
            "this port answers only as localhost or by its IP address",
        ));
    }
    let method = request.method();
    if method != Method::GET && method != Method::HEAD {
        return Err(Refused::new(Code::BadMethod, "this port answers GET only"));
    }
    let group = match group {
        Some(group) => group,
        None => named(request.uri().path())?,
    };
    let known = desk.group(&group).await?;
    let name = known.leader.filter(|_| known.state == api::State::Leader).unwrap_or_default();
    Ok(Json(Name { name }).into_response())
}

/// The group that a path names.
fn named(path: &str) -> Result<GroupName, Refused> {
    let text = decoded(path.trim_start_matches('/'));
    if text.is_empty() {
        return Err(Refused::bad("which group? Ask for /GROUP, or set daemon.sidecar_group"));
    }
    Ok(GroupName::new(&text)?)
}

/// A path without its percent signs. A path that is no text afterwards is no group's name either.
pub(super) fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| byte == b'%') {
            Some(value) => {
                bytes.push(value);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_group_with_and_without_percent_signs() {
        assert_eq!(named("/app/jobs").unwrap().as_str(), "app/jobs");
        assert_eq!(named("/app%2Fjobs%3a1").unwrap().as_str(), "app/jobs:1");
        assert!(named("/").is_err() && named("/%zz").is_err() && named("/a%").is_err());
    }
}
