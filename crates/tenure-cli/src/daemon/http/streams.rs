//! Streams: events as they happen, for as long as somebody listens (SSE).
//!
//! A slow client misses the states in between and sees the newest: nothing is queued for anybody. A
//! comment every few seconds tells a listener that the daemon lives, and the daemon that the
//! listener does. When the daemon ends, streams end.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use tenure::{GroupName, Leadership, Sight, Watch};
use tokio::time::sleep;

use crate::api::{self, Seen};

use super::answer::Refused;
use super::desk::Desk;
use super::groups::{edict, told};
use super::listen;

/// How often a stream without news gives a sign of life. Clients wait for three.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How often the node is looked at while somebody watches it.
const LOOK: Duration = Duration::from_millis(100);

/// How often a status is told although nothing but times and counts has changed.
const REFRESH: Duration = Duration::from_secs(1);

/// `GET /v1/groups/{group}/watch`
pub(super) async fn group(
    State(desk): State<Desk>,
    Path(group): Path<String>,
) -> Result<impl IntoResponse, Refused> {
    let group = GroupName::new(&group)?;
    let watch = desk.node.observe(group.as_str()).await?;
    let stopping = desk.stopping.clone();
    // The node is let go: a stream that nobody reads must not keep it running.
    Ok(stream(unfold((watch, group, stopping), async |(mut watch, group, mut stopping)| {
        let event = tokio::select! {
            event = next_sight(&mut watch, &group) => event?,
            () = listen::told(&mut stopping) => return None,
        };
        Some((event, (watch, group, stopping)))
    })))
}

async fn next_sight(watch: &mut Watch, group: &GroupName) -> Option<Result<Event, Infallible>> {
    let sight = seen(group, &watch.next().await?);
    Some(Ok(event(sight.event.name(), &sight)))
}

/// The news as JSON has it.
fn seen(group: &GroupName, sight: &Sight) -> api::Sight {
    let group = group.to_string();
    match sight {
        Sight::Edict(proclaimed) => {
            let edict = edict(proclaimed);
            let term = Some(edict.term);
            api::Sight { group, event: Seen::Edict, leader: None, term, edict: Some(edict) }
        }
        Sight::Leadership(leadership) => {
            let event = match leadership {
                Leadership::Unknown => Seen::Unknown,
                Leadership::Leader { .. } => Seen::Leader,
                Leadership::Nobody { .. } => Seen::Nobody,
                Leadership::Weak { .. } => Seen::Weak,
            };
            let (_, leader, term) = told(leadership);
            api::Sight { group, event, leader, term, edict: None }
        }
    }
}

/// `GET /v1/watch`: the node's whole status whenever it changes, and each second anyway.
pub(super) async fn whole(State(desk): State<Desk>) -> Result<impl IntoResponse, Refused> {
    let stopping = desk.stopping.clone();
    Ok(stream(unfold((desk, None, stopping), async |(desk, last, mut stopping)| {
        let news = tokio::select! {
            news = next_status(&desk, last.as_ref()) => news?,
            () = listen::told(&mut stopping) => return None,
        };
        let event = Ok(event("status", &news));
        Some((event, (desk, Some(news), stopping)))
    })))
}

async fn next_status(desk: &Desk, last: Option<&api::Status>) -> Option<api::Status> {
    let Some(last) = last else { return desk.status(false).await.ok() };
    let looks = REFRESH.as_millis() / LOOK.as_millis();
    for look in 1..=looks {
        sleep(LOOK).await;
        let status = desk.status(false).await.ok()?;
        if look == looks || essence(&status) != essence(last) {
            return Some(status);
        }
    }
    None
}

/// A status without what changes all the time.
fn essence(status: &api::Status) -> api::Status {
    let mut status = status.clone();
    status.counts = api::Counts::default();
    (status.uptime_ms, status.silent_for_ms) = (0, status.silent_for_ms.map(|_| 0));
    status.terms.packed_left_days = None;
    for member in &mut status.members {
        (member.heard_ago_ms, member.round_trip_us) = (None, None);
    }
    for group in &mut status.groups {
        (group.granted_for_ms, group.lease_remaining_ms) = (None, None);
        group.leads_for_ms = None;
    }
    status
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let text = serde_json::to_string(data).unwrap_or_default();
    Event::default().event(name).data(text)
}

fn stream(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> impl IntoResponse {
    Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("alive"))
}
