//! Every path, once. The description in `openapi.json` has the same ones, or a test fails.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};

use crate::api::Code;

use super::answer::{LARGEST_BODY, Refused};
use super::desk::Desk;
use super::entry::{self, Entry};
use super::{groups, health, keys, members, metrics, page, status, streams};

/// Method, path and handler of everything that is served.
pub(super) fn routes() -> Vec<(&'static str, &'static str, MethodRouter<Desk>)> {
    let mut all = vec![
        ("get", "/v1/status", get(status::status)),
        ("get", "/v1/groups", get(groups::list)),
        ("get", "/v1/groups/{group}", get(groups::one)),
        ("get", "/v1/groups/{group}/watch", get(streams::group)),
        ("post", "/v1/groups/{group}/verify", post(groups::verify)),
        ("post", "/v1/groups/{group}/proclaim", post(groups::proclaim)),
        ("post", "/v1/groups/{group}/resign", post(groups::resign)),
        ("post", "/v1/groups/{group}/transfer", post(groups::transfer)),
        ("get", "/v1/members", get(status::members)),
        ("get", "/v1/watch", get(streams::whole)),
        ("get", "/v1/openapi.json", get(page::openapi)),
        ("get", "/metrics", get(metrics::metrics)),
        ("get", "/livez", get(health::live)),
        ("get", "/readyz", get(health::ready)),
        ("get", "/", get(page::page)),
        // The rest of the path is the group's name: whoever sets up a load balancer need not encode its slashes.
        ("get", "/leader/{*group}", get(health::leader)),
    ];
    all.extend(members::routes());
    all.extend(keys::routes());
    all
}

/// All of it, behind the rules of who may ask.
pub(super) fn router(desk: Desk, entry: Entry) -> Router {
    let mut router = Router::new();
    for (_, path, handler) in routes() {
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
