//! For those who probe: is it alive, can it do its part, who leads.
//!
//! Three questions, three paths. A node that is not alive should be restarted; one that is not
//! ready should not be followed by the next in a rolling restart; neither says anything about who
//! leads, for that load balancers ask `/leader/{group}`.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tenure::{GroupName, NotReady, Status};

use crate::api;

use super::answer::{Refused, text};
use super::desk::Desk;

/// `GET /livez`: the node's thread answers.
pub(super) async fn live(State(desk): State<Desk>) -> Response {
    match desk.node.status().await {
        Ok(_) => text(StatusCode::OK, "ok\n"),
        Err(stopped) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{stopped}\n")),
    }
}

/// `GET /readyz`, with `?verbose` each check by name.
pub(super) async fn ready(State(desk): State<Desk>, RawQuery(query): RawQuery) -> Response {
    let verbose = asks_for(query.as_deref(), "verbose");
    let status = match desk.node.status().await {
        Ok(status) => status,
        Err(stopped) => return text(StatusCode::SERVICE_UNAVAILABLE, format!("{stopped}\n")),
    };
    let (code, verdict) =
        if status.ready { (StatusCode::OK, "ready") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready") };
    if !verbose {
        return text(code, format!("{verdict}\n"));
    }
    let line = |(name, wrong): (&str, Option<String>)| match wrong {
        None => format!("[+] {name} ok\n"),
        Some(why) => format!("[-] {name} {why}\n"),
    };
    text(code, checks(&status).into_iter().map(line).collect::<String>() + verdict + "\n")
}

/// Every check, and what is wrong if something is. A clock or a disk that fails stops the node,
/// which says so at once.
fn checks(status: &Status) -> [(&'static str, Option<String>); 6] {
    let why = |wanted: fn(&NotReady) -> bool| {
        status.not_ready.iter().find(|reason| wanted(reason)).map(ToString::to_string)
    };
    let faults = status.tally.clock_faults;
    [
        ("store", why(|reason| matches!(reason, NotReady::Mute))),
        ("clock", (faults > 0).then(|| format!("it was found beyond its bound {faults} times; see the log"))),
        (
            "members",
            why(|reason| {
                matches!(
                    reason,
                    NotReady::NoCharter
                        | NotReady::NotAMember
                        | NotReady::Outdated { .. }
                        | NotReady::KeyRefused { .. }
                )
            }),
        ),
        (
            "lineage",
            why(|reason| matches!(reason, NotReady::SplitBrain { .. } | NotReady::OtherLineage { .. })),
        ),
        ("silence", why(|reason| matches!(reason, NotReady::Silent { .. }))),
        ("quorum", why(|reason| matches!(reason, NotReady::NoQuorum { .. }))),
    ]
}

/// `GET /leader/{group}`: 200 if somebody leads, 503 if not or if that is not known. With `?here`
/// 200 only if the leader runs on this host, so that a load balancer finds it.
pub(super) async fn leader(
    State(desk): State<Desk>,
    Path(group): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let only_here = asks_for(query.as_deref(), "here");
    let (known, here) = desk.group_and_place(&GroupName::new(&group)?).await?;
    let leads = known.state == api::State::Leader;
    let (term, after) = if leads { (known.term, None) } else { (None, known.term) };
    let leader = known.leader.filter(|_| leads);
    let answer = api::Leader { group, state: known.state, leader, term, after, here };
    let is_found = if only_here { here } else { leads };
    let code = if is_found { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((code, Json(answer)).into_response())
}

/// Whether a query has a word, with or without a value.
pub(super) fn asks_for(query: Option<&str>, word: &str) -> bool {
    let is_it = |part: &str| part.split('=').next() == Some(word);
    query.is_some_and(|query| query.split('&').any(is_it))
}
