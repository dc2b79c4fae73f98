//! Changing the members. The node does it, and goes on with it also when nobody listens any more.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use futures_util::stream::unfold;
use tenure::{Changing, ClockBound, MemberChange, MembersError, Peer, Progress, Term};
use tokio::time::timeout;

use crate::api::members::{
    AddOrder, ConfirmTermOrder, ForceRemoveOrder, LineageAccepted, RemoveOrder, ReplaceOrder, SetOrder, Step,
    StepKind,
};
use crate::api::{Code, segment};

use super::answer::{Order, Refused};
use super::desk::Desk;
use super::status::millis;

/// How often a stream without news gives a sign of life. Clients wait for three.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Method, path and handler of every change.
pub(super) fn routes() -> Vec<(&'static str, &'static str, MethodRouter<Desk>)> {
    vec![
        ("post", "/v1/members/add", post(add)),
        ("post", "/v1/members/remove", post(remove)),
        ("post", "/v1/members/replace", post(replace)),
        ("post", "/v1/members/set", post(set)),
        ("post", "/v1/members/force-remove", post(force_remove)),
        ("post", "/v1/members/accept-lineage", post(accept_lineage)),
        ("post", "/v1/members/confirm-term", post(confirm_term)),
    ]
}

async fn add(State(desk): State<Desk>, Order(order): Order<AddOrder>) -> Result<Response, Refused> {
    let peer = Peer { name: order.name, address: order.address };
    begin(&desk, &MemberChange::Add(peer), order.force).await
}

async fn remove(State(desk): State<Desk>, Order(order): Order<RemoveOrder>) -> Result<Response, Refused> {
    begin(&desk, &MemberChange::Remove(order.name), order.force).await
}

async fn replace(State(desk): State<Desk>, Order(order): Order<ReplaceOrder>) -> Result<Response, Refused> {
    let new = Peer { name: order.name, address: order.address };
    begin(&desk, &MemberChange::Replace { old: order.old, new }, order.force).await
}

async fn set(State(desk): State<Desk>, Order(order): Order<SetOrder>) -> Result<Response, Refused> {
    let bound = match (order.drift_ppm, order.skew_us) {
        (Some(_), Some(_)) => {
            return Err(Refused::bad("drift_ppm or skew_us, not both: clocks are of one kind"));
        }
        (Some(ppm), None) => Some(ClockBound::Drift { ppm }),
        (None, Some(skew)) => Some(ClockBound::Skew { bound: Duration::from_micros(skew) }),
        (None, None) => None,
    };
    let longest_lease = order.longest_lease_ms.map(Duration::from_millis);
    if bound.is_none() && longest_lease.is_none() && order.quorums.is_none() {
        return Err(Refused::bad(
            "nothing to set: there are drift_ppm, skew_us, longest_lease_ms and quorums",
        ));
    }
    if longest_lease.is_some_and(|length| length.is_zero()) {
        return Err(Refused::bad("longest_lease_ms must be more than zero"));
    }
    begin(&desk, &MemberChange::Adjust { quorums: order.quorums, bound, longest_lease }, order.force).await
}

async fn force_remove(
    State(desk): State<Desk>,
    Order(order): Order<ForceRemoveOrder>,
) -> Result<Response, Refused> {
    let ForceRemoveOrder { powered_off, term_floor } = order;
    if powered_off.is_empty() {
        return Err(Refused::bad("powered_off: name at least one member"));
    }
    tracing::warn!(name: "tenure.force_remove", node = %desk.node.name(), powered_off = powered_off.join(","), "members are removed by an operator's word");
    let change = MemberChange::ForceRemove { powered_off, floor: term_floor.map(Term) };
    begin(&desk, &change, false).await
}

async fn accept_lineage(State(desk): State<Desk>) -> Result<Json<LineageAccepted>, Refused> {
    let accepted = desk.node.accept_lineage().await?;
    Ok(Json(LineageAccepted { name: desk.node.name().to_string(), accepted }))
}

/// Takes effect at this member alone, and at once.
async fn confirm_term(
    State(desk): State<Desk>,
    Order(order): Order<ConfirmTermOrder>,
) -> Result<Response, Refused> {
    let status = desk.node.status().await?;
    if !status.is_member {
        return Err(Refused::new(Code::NotAMember, format!("{} is no member", status.name)));
    }
    if order.term == 0 {
        return Err(Refused::bad("term must be more than zero"));
    }
    desk.node.confirm_term(Term(order.term));
    let done = Step { epoch: status.epoch.map(|epoch| epoch.0), ..Step::new(StepKind::Done) };
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], line(&done)).into_response())
}

/// Begins a change, and tells how it goes on.
async fn begin(desk: &Desk, change: &MemberChange, force: bool) -> Result<Response, Refused> {
    let status = desk.node.status().await?;
    if !status.is_member {
        let members: Vec<String> = status.members.iter().map(|name| segment(name.as_str())).collect();
        let (name, members) = (&status.name, members.join(", "));
        let whom = if members.is_empty() { "a member".to_owned() } else { format!("one of {members}") };
        return Err(Refused::new(Code::NotAMember, format!("{name} is no member: ask {whom}")));
    }
    let begun =
        if force { desk.node.change_members_anyway(change) } else { desk.node.change_members(change) };
    let changing = begun.map_err(Refused::bad)?;
    let stopping = desk.stopping.clone();
    let lines = unfold(Some((changing, stopping)), async |state| {
        let (mut changing, mut stopping) = state?;
        let step = tokio::select! {
            step = next(&mut changing) => step,
            _ = stopping.wait_for(|stop| *stop) => return None,
        };
        let last = step.as_ref().is_some_and(|step| matches!(step.event, StepKind::Done | StepKind::Failed));
        let line = step.map_or_else(|| "\n".to_owned(), |step| line(&step));
        Some((Ok::<_, Infallible>(line), (!last).then_some((changing, stopping))))
    });
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}

fn line(step: &Step) -> String {
    serde_json::to_string(step).map(|text| text + "\n").unwrap_or_default()
}

/// The next step; `None` if none came for a while.
async fn next(changing: &mut Changing) -> Option<Step> {
    let step = match timeout(HEARTBEAT, changing.next()).await.ok()? {
        Some(Progress::Epoch(epoch)) => Step { epoch: Some(epoch.0), ..Step::new(StepKind::Epoch) },
        Some(Progress::Done(epoch)) => Step { epoch: Some(epoch.0), ..Step::new(StepKind::Done) },
        Some(Progress::Waiting { left }) => {
            Step { left_ms: Some(millis(left)), ..Step::new(StepKind::Waiting) }
        }
        Some(Progress::Unheard { members }) => {
            let names = members.iter().map(ToString::to_string).collect();
            Step { unheard: Some(names), ..Step::new(StepKind::Unheard) }
        }
        Some(Progress::Failed(error)) => failed(&error),
        Some(_) => return None,
        None => failed(&MembersError::Stopped(tenure::Stopped::ShutDown)),
    };
    Some(step)
}

fn failed(error: &MembersError) -> Step {
    let message = match error {
        MembersError::NoQuorumLeft { .. } => format!("{error} with --force"),
        error => error.to_string(),
    };
    Step { message: Some(message), ..Step::new(StepKind::Failed) }
}
