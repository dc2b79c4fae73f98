//! Every path, once. The description in `openapi.json` has the same ones, or a test fails.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};

use crate::api::Code;
use crate::tokens::Role;

use super::answer::{LARGEST_BODY, Refused};
use super::desk::Desk;
use super::entry::{self, Entry, Need};
use super::{access, groups, health, keys, members, metrics, page, status, streams};

/// Method, path, what it needs, and handler.
pub(super) type Route = (&'static str, &'static str, Need, MethodRouter<Desk>);

/// Everything that is served. A path without a need does not compile.
pub(super) fn routes() -> Vec<Route> {
    let mut all = vec![
        ("get", "/v1/status", Need::READ, get(status::status)),
        ("get", "/v1/groups", Need::READ, get(groups::list)),
        ("get", "/v1/groups/{group}", Need::READ, get(groups::one)),
        ("get", "/v1/groups/{group}/candidates", Need::READ, get(groups::candidates)),
        ("get", "/v1/groups/{group}/watch", Need::READ, get(streams::group)),
        ("post", "/v1/groups/{group}/verify", Need::READ, post(groups::verify)),
        ("post", "/v1/groups/{group}/proclaim", Need::operate("proclaim"), post(groups::proclaim)),
        ("post", "/v1/groups/{group}/resign", Need::operate("resign"), post(groups::resign)),
        ("post", "/v1/groups/{group}/transfer", Need::operate("transfer"), post(groups::transfer)),
        ("get", "/v1/members", Need::READ, get(status::members)),
        ("get", "/v1/watch", Need::READ, get(streams::whole)),
        ("get", "/v1/openapi.json", Need::READ, get(page::openapi)),
        ("get", "/metrics", Need::OPEN, get(metrics::metrics)),
        ("get", "/livez", Need::OPEN, get(health::live)),
        ("get", "/readyz", Need::OPEN, get(health::ready)),
        ("get", "/", Need::OPEN, get(page::page)),
        ("get", "/v1/tokens", Need { role: Some(Role::Admin), act: None }, get(access::list)),
        ("post", "/v1/tokens/add", Need::admin("token add"), post(access::add)),
        ("post", "/v1/tokens/revoke", Need::admin("token revoke"), post(access::revoke)),
        ("post", "/v1/session/link", Need::operate("session link"), post(access::link)),
        // The code of a link suffices: nothing else is needed.
        ("post", "/v1/session", Need { role: None, act: Some("session open") }, post(access::open)),
        // The rest of the path is the group's name: the configuration of a load balancer need not
        // encode its slashes.
        ("get", "/leader/{*group}", Need::READ, get(health::leader)),
    ];
    all.extend(members::routes());
    all.extend(keys::routes());
    all
}

/// The requirement of each path.
pub(super) fn needs() -> BTreeMap<&'static str, Need> {
    routes().into_iter().map(|(_, path, need, _)| (path, need)).collect()
}

/// All of it, behind the rules of who may ask.
pub(super) fn router(desk: Desk, entry: Entry) -> Router {
    let mut router = Router::new();
    for (_, path, _, handler) in routes() {
        router = router.route(path, handler);
    }
    router
        .fallback(async || Refused::new(Code::NotFound, "there is no such path: see /v1/openapi.json"))
        .method_not_allowed_fallback(async || {
            Refused::new(Code::BadMethod, "the path knows no such method: see /v1/openapi.json")
        })
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(from_fn_with_state(entry, entry::admit))
        .with_state(desk)
}
