//! The plain page at `/`, and the description of the interface.
//!
//! The page is one file without anything from elsewhere, and the same for everybody: what it shows
//! it asks for by `/v1/watch`, with a token if the daemon wants one.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::IntoResponse;

/// The content policy of the page: only its own scripts and styles run, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /`
pub(super) async fn page() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, include_str!("page.html"))
}

/// `GET /v1/openapi.json`
pub(super) async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], include_str!("openapi.json"))
}
