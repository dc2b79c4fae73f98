//! Changing the members. The node does it, and goes on with it also when nobody listens any more.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Json};
use futures_util::stream::unfold;
use tenure::{Changing, ClockBound, MemberChange, MembersError, Peer, PeerStatus, Progress, Status, Term};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::api::members::{
    AddOrder, ConfirmTermOrder, ForceRemoveOrder, LiftBarOrder, LineageAccepted, RemoveOrder, ReplaceOrder,
    SetOrder, Step, StepKind,
};
use crate::api::{Code, segment};

use super::answer::{Order, Refused};
use super::audit::{Act, Outcome, Story};
use super::desk::Desk;
use super::entry::Need;
use super::routes::Route;
use super::status::millis;

/// How often a stream without news gives a sign of life. Clients wait for three.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Every change.
pub(super) fn routes() -> Vec<Route> {
    vec![
        ("post", "/v1/members/add", Need::admin("members add"), post(add)),
        ("post", "/v1/members/remove", Need::admin("members remove"), post(remove)),
        ("post", "/v1/members/replace", Need::admin("members replace"), post(replace)),
        ("post", "/v1/members/set", Need::admin("members set"), post(set)),
        ("post", "/v1/members/force-remove", Need::admin("members force-remove"), post(force_remove)),
        ("post", "/v1/members/accept-lineage", Need::admin("members accept-lineage"), post(accept_lineage)),
        ("post", "/v1/members/confirm-term", Need::admin("members confirm-term"), post(confirm_term)),
        ("post", "/v1/members/lift-bar", Need::admin("members lift-bar"), post(lift_bar)),
    ]
}

async fn add(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(order): Order<AddOrder>,
) -> Result<Response, Refused> {
    act.about(format_args!("{} at {}", order.name, order.address));
    let peer = Peer { name: order.name, address: order.address };
    begin(&desk, &act, &MemberChange::Add(peer), order.force).await
}

async fn remove(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(order): Order<RemoveOrder>,
) -> Result<Response, Refused> {
    act.about(&order.name);
    begin(&desk, &act, &MemberChange::Remove(order.name), order.force).await
}

async fn replace(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(order): Order<ReplaceOrder>,
) -> Result<Response, Refused> {
    act.about(format_args!("{} by {} at {}", order.old, order.name, order.address));
    let new = Peer { name: order.name, address: order.address };
    begin(&desk, &act, &MemberChange::Replace { old: order.old, new }, order.force).await
}

async fn set(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(order): Order<SetOrder>,
) -> Result<Response, Refused> {
    act.about(serde_json::to_string(&order).unwrap_or_default());
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
    let change = MemberChange::Adjust { quorums: order.quorums, bound, longest_lease };
    begin(&desk, &act, &change, order.force).await
}

async fn force_remove(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(order): Order<ForceRemoveOrder>,
) -> Result<Response, Refused> {
    let ForceRemoveOrder { powered_off, term_floor } = order;
    act.about(powered_off.join(", "));
    if powered_off.is_empty() {
        return Err(Refused::bad("powered_off: name at least one member"));
    }
    let status = desk.node.status().await?;
    if let Some(name) = still_heard(&status, &powered_off) {
        return Err(Refused::new(
            Code::StillHeard,
            format!(
                "{name} was heard within the longest lease, so it is not powered off and could elect leaders of its own: cut its power, wait until `members list` shows that it does not answer, and ask again; or use `members remove`"
            ),
        ));
    }
    let change = MemberChange::ForceRemove { powered_off, floor: term_floor.map(Term) };
    begin(&desk, &act, &change, false).await
}

async fn accept_lineage(State(desk): State<Desk>) -> Result<Json<LineageAccepted>, Refused> {
    let accepted = desk.node.accept_lineage().await?;
    Ok(Json(LineageAccepted { name: desk.node.name().to_string(), accepted }))
}

async fn lift_bar(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(order): Order<LiftBarOrder>,
) -> Result<Response, Refused> {
    act.about(&order.group);
    begin(&desk, &act, &MemberChange::LiftBar(order.group), false).await
}

/// Takes effect at this member alone, and at once.
async fn confirm_term(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(order): Order<ConfirmTermOrder>,
) -> Result<Response, Refused> {
    act.about(order.term);
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

/// One of `named` that this node has heard within a longest lease, or that answers as far as it was
/// asked.
///
/// A member that runs may hold grants for a longest lease, and may grant again. To go on without it
/// is split brain, whatever the operator says. Members that have nothing to tell each other are
/// asked about each ten seconds only, so that a short longest lease alone would not do. A silent
/// member may run too: of that only the operator can be sure.
fn still_heard<'a>(status: &Status, named: &'a [String]) -> Option<&'a String> {
    let longest = status.charter.as_ref().map(|charter| charter.longest_lease);
    let is_heard =
        |peer: &PeerStatus| peer.is_me || peer.answers || peer.heard.is_some_and(|ago| Some(ago) <= longest);
    named
        .iter()
        .find(|name| status.peers_known.iter().any(|peer| peer.name.as_str() == **name && is_heard(peer)))
}

/// Begins a change, and tells how it goes on. It is followed to its end also if nobody listens any
/// more: the audit log has what came of it.
async fn begin(desk: &Desk, act: &Act, change: &MemberChange, force: bool) -> Result<Response, Refused> {
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
    let (steps, told) = mpsc::unbounded_channel();
    tokio::spawn(follow(changing, act.take(), steps));
    let stopping = desk.stopping.clone();
    let lines = unfold(Some((told, stopping)), async |state| {
        let (mut told, mut stopping) = state?;
        let step = tokio::select! {
            step = timeout(HEARTBEAT, told.recv()) => step,
            _ = stopping.wait_for(|stop| *stop) => return None,
        };
        let (line, last) = match step {
            Ok(Some(step)) => (line(&step), is_last(&step)),
            Ok(None) => return None,
            Err(_) => ("\n".to_owned(), false), // No news: a sign of life.
        };
        Some((Ok::<_, Infallible>(line), (!last).then_some((told, stopping))))
    });
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}

/// Follows a change to its end and writes that down.
async fn follow(mut changing: Changing, story: Option<Story>, steps: mpsc::UnboundedSender<Step>) {
    loop {
        let progress = changing.next().await;
        let stopped = matches!(progress, None | Some(Progress::Failed(MembersError::Stopped(_))));
        let Some(step) = step_of(progress) else { continue };
        let _ = steps.send(step.clone()); // Perhaps nobody listens any more.
        if !is_last(&step) {
            continue;
        }
        let Some(mut story) = story else { return };
        return match (step.event, step.epoch) {
            (StepKind::Done, Some(epoch)) => {
                story.detail = Some(format!("{} (epoch {epoch})", story.detail.take().unwrap_or_default()));
                story.tell(Outcome::Done, None);
            }
            // The others may go on with it.
            _ if stopped => story.tell(Outcome::Unknown, step.message.as_deref()),
            _ => story.tell(Outcome::Failed, step.message.as_deref()),
        };
    }
}

fn is_last(step: &Step) -> bool {
    matches!(step.event, StepKind::Done | StepKind::Failed)
}

fn line(step: &Step) -> String {
    serde_json::to_string(step).map(|text| text + "\n").unwrap_or_default()
}

/// A step as it is told; `None` if it is not.
fn step_of(progress: Option<Progress>) -> Option<Step> {
    let step = match progress {
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
