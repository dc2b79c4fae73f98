//! Groups: what is known of them, and what can be asked of their leaders.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use tenure::{ClockBound, GroupName, Leadership, Proclaimed, Scene, VerifyError};

use crate::api::{self, Code};

use super::answer::{Order, Refused};
use super::desk::Desk;
use super::status::{count, millis};

/// How many groups are listed if nobody says.
const USUAL_LIMIT: usize = 1_000;

/// Which part of the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    after: Option<String>,
    limit: Option<usize>,
}

/// `GET /v1/groups`
pub(super) async fn list(
    State(desk): State<Desk>,
    part: Result<Query<Part>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<api::Groups>, Refused> {
    let Query(part) =
        part.map_err(|error| Refused::bad(format!("{error}; there are ?after= and ?limit=")))?;
    let mut groups = desk.groups().await?;
    let total = count(groups.len());
    if let Some(after) = &part.after {
        groups.retain(|group| group.group > *after);
    }
    let limit = part.limit.unwrap_or(USUAL_LIMIT).clamp(1, USUAL_LIMIT);
    let more = groups.len() > limit;
    groups.truncate(limit);
    let next = groups.last().filter(|_| more).map(|group| group.group.clone());
    Ok(Json(api::Groups { groups, total, next }))
}

/// `GET /v1/groups/{group}`
pub(super) async fn one(
    State(desk): State<Desk>,
    Path(group): Path<String>,
) -> Result<Json<api::Group>, Refused> {
    desk.group(&GroupName::new(&group)?).await.map(Json)
}

/// `POST /v1/groups/{group}/verify`
pub(super) async fn verify(
    State(desk): State<Desk>,
    Path(group): Path<String>,
    Order(order): Order<api::VerifyOrder>,
) -> Result<Json<api::Verified>, Refused> {
    let wanted = Duration::from_millis(order.for_ms.unwrap_or(100));
    let certain = desk.node.verify(&group, wanted).await.map_err(|error| match error {
        VerifyError::NoLeader { .. } => Refused::new(Code::NoLeader, error),
        VerifyError::Stopped(stopped) => stopped.into(),
        error => Refused::bad(error),
    })?;
    let left = certain.remaining().map_or(Duration::ZERO, |left| countable(left, desk.bound));
    Ok(Json(api::Verified {
        group,
        leader: certain.leader.to_string(),
        term: certain.term.0,
        certain_for_ms: millis(left),
    }))
}

/// What another host may count of a length that this host's clock has measured. Ours may be fast by ρ and theirs slow by ρ, so that
/// (1 - ρ)/(1 + ρ) of it is left; of synchronised clocks, two readings that differ by Δ in all.
fn countable(length: Duration, bound: ClockBound) -> Duration {
    match bound {
        ClockBound::Drift { ppm } => {
            let (slow, fast) = (1_000_000 - u128::from(ppm), 1_000_000 + u128::from(ppm));
            Duration::from_nanos(u64::try_from(length.as_nanos() * slow / fast).unwrap_or(0))
        }
        ClockBound::Skew { bound } => length.saturating_sub(bound * 2),
    }
}

impl Desk {
    /// Every group that the node knows, by name.
    pub(super) async fn groups(&self) -> Result<Vec<api::Group>, Refused> {
        Ok(self.asked_about().into_iter().map(|(group, scene)| shown(&group, &scene)).collect())
    }

    /// One group; waits a little if nothing is known of it.
    pub(super) async fn group(&self, group: &GroupName) -> Result<api::Group, Refused> {
        let scene = self.look(group).await?;
        Ok(shown(group, &scene))
    }
}

/// What is seen of a group, as JSON has it.
fn shown(group: &GroupName, scene: &Scene) -> api::Group {
    let (state, leader, term) = told(&scene.leadership);
    api::Group {
        group: group.to_string(),
        state,
        leader,
        term,
        granted_for_ms: None,
        led_here: false,
        lease_remaining_ms: None,
        campaigned_here: false,
        edict: scene.edict.as_ref().map(edict),
        nearest: None,
    }
}

/// State, leader and term.
pub(super) fn told(leadership: &Leadership) -> (api::State, Option<String>, Option<u64>) {
    let text = |name: &Option<tenure::NodeName>| name.as_ref().map(ToString::to_string);
    match leadership {
        Leadership::Unknown => (api::State::Unknown, None, None),
        Leadership::Leader { name, term } => (api::State::Leader, text(name), Some(term.0)),
        Leadership::Nobody { after } => (api::State::Nobody, None, Some(after.0)),
        Leadership::Weak { name } => (api::State::Weak, text(name), None),
    }
}

/// What was proclaimed.
pub(super) fn edict(proclaimed: &Proclaimed) -> api::Edict {
    let text = String::from_utf8(proclaimed.body.clone()).ok();
    let hex = text.is_none().then(|| proclaimed.body.iter().map(|byte| format!("{byte:02x}")).collect());
    api::Edict {
        token: proclaimed.token.to_string(),
        term: proclaimed.token.term().0,
        number: proclaimed.token.number(),
        text,
        hex,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_clock_may_count_is_shorter_by_what_both_may_be_off() {
        let second = Duration::from_secs(1);
        let drift = |ppm| countable(second, ClockBound::Drift { ppm });
        assert_eq!(drift(0), second);
        assert_eq!(drift(100_000), Duration::from_nanos(818_181_818));
        let skew = ClockBound::Skew { bound: Duration::from_millis(100) };
        assert_eq!(countable(second, skew), Duration::from_millis(800));
        assert_eq!(countable(Duration::from_millis(1), skew), Duration::ZERO);
    }
}
