//! Groups: what is known of them, and what can be asked of their leaders.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use serde::Deserialize;
use tenure::{
    AskError, ClockBound, GroupName, GroupStatus, Leadership, NodeName, OperatorRequest, Proclaimed,
    VerifyError,
};

use crate::api::{self, Code};
use crate::nearest::nearest;

use super::answer::{Order, Refused};
use super::audit::Act;
use super::desk::{Desk, UNUSED};
use super::status::{count, millis};

/// How many groups are listed if nobody says.
const USUAL_LIMIT: usize = 1_000;

/// With how many groups a name is compared that nobody leads.
const COMPARED: usize = 1_000;

/// A group that nobody has led or asked about for so long is left out of a status.
const IDLE: Duration = Duration::from_secs(3600);

/// How long a leader may take to do what it is asked, if nobody says.
const ASK_WITHIN: Duration = Duration::from_secs(10);

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
    let after = part.after.as_deref().filter(|after| !after.is_empty()).map(GroupName::new).transpose()?;
    let limit = part.limit.unwrap_or(USUAL_LIMIT).clamp(1, USUAL_LIMIT);
    let mut groups = desk.groups(after.as_ref(), limit + 1).await?;
    let total = count(desk.node.groups_known().await?);
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

/// `GET /v1/groups/{group}/candidates`
pub(super) async fn candidates(
    State(desk): State<Desk>,
    Path(group): Path<String>,
) -> Result<Json<api::Candidates>, Refused> {
    let candidates = desk.node.candidates(&GroupName::new(&group)?).await?;
    let candidates = candidates.iter().map(ToString::to_string).collect();
    Ok(Json(api::Candidates { group, candidates }))
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
    let charter = desk.node.status().await?.charter;
    let bound = charter.map_or(desk.bound, |charter| charter.bound);
    let left = certain.remaining().map_or(Duration::ZERO, |left| countable(left, bound));
    Ok(Json(api::Verified {
        group,
        leader: certain.leader.to_string(),
        term: certain.term.0,
        certain_for_ms: millis(left),
    }))
}

/// `POST /v1/groups/{group}/proclaim`
pub(super) async fn proclaim(
    State(desk): State<Desk>,
    Path(group): Path<String>,
    Extension(act): Extension<Act>,
    Order(order): Order<api::ProclaimOrder>,
) -> Result<Json<api::Done>, Refused> {
    act.about(format_args!("{} bytes", order.text.len()));
    let request = OperatorRequest::Proclaim { body: order.text.into_bytes() };
    desk.ask(group, request, order.within_ms).await.map(Json)
}

/// `POST /v1/groups/{group}/resign`
pub(super) async fn resign(
    State(desk): State<Desk>,
    Path(group): Path<String>,
    Order(order): Order<api::ResignOrder>,
) -> Result<Json<api::Done>, Refused> {
    desk.ask(group, OperatorRequest::Resign, order.within_ms).await.map(Json)
}

/// `POST /v1/groups/{group}/transfer`
pub(super) async fn transfer(
    State(desk): State<Desk>,
    Path(group): Path<String>,
    Extension(act): Extension<Act>,
    Order(order): Order<api::TransferOrder>,
) -> Result<Json<api::Done>, Refused> {
    act.about(format_args!("to {}", order.to));
    let request = OperatorRequest::Transfer { to: NodeName::new(&order.to)? };
    desk.ask(group, request, order.within_ms).await.map(Json)
}

/// The part of a length, measured by this host's clock, that another host may count on. Ours may be
/// fast by ρ and theirs slow by ρ, so that (1 - ρ)/(1 + ρ) of it is left; of synchronised clocks,
/// two readings that differ by Δ in all.
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
    /// The groups of a status: those that somebody has led or asked about lately, or all; and how
    /// many are left out for that.
    pub(super) async fn listed(&self, all: bool, limit: usize) -> Result<(Vec<api::Group>, u64), Refused> {
        let is_shown = |known: &GroupStatus| all || known.idle < IDLE || self.was_asked_about(&known.group);
        let known = self.node.groups_after(None, limit).await?;
        let (mut shown, idle): (Vec<_>, Vec<_>) = known.into_iter().partition(is_shown);
        self.look_at_all(&shown).await?;
        for group in &mut shown {
            if let Some(newest) = self.node.group(&group.group).await? {
                *group = newest;
            }
        }
        Ok((shown.iter().map(granted).collect(), count(idle.len())))
    }

    /// At most `limit` groups that the node knows, by name, each as a quorum reports it.
    pub(super) async fn groups(
        &self,
        after: Option<&GroupName>,
        limit: usize,
    ) -> Result<Vec<api::Group>, Refused> {
        self.look_at_all(&self.node.groups_after(after, limit).await?).await?;
        Ok(self.node.groups_after(after, limit).await?.iter().map(granted).collect())
    }

    /// Asks the leader of a group for something, wherever it is.
    async fn ask(
        &self,
        group: String,
        request: OperatorRequest,
        within_ms: Option<u64>,
    ) -> Result<api::Done, Refused> {
        let within = within_ms.map_or(ASK_WITHIN, Duration::from_millis);
        let granted = self.node.ask_within(&group, request, within).await.map_err(|error| match error {
            AskError::NoLeader { .. } => Refused::new(Code::NoLeader, error),
            AskError::Declined { .. } | AskError::NotListening => Refused::new(Code::Declined, error),
            AskError::NotAllowed => Refused::new(Code::Forbidden, error),
            AskError::Timeout => Refused::new(Code::Timeout, error),
            AskError::Stopped(stopped) => stopped.into(),
            error => Refused::bad(error),
        })?;
        Ok(api::Done {
            group,
            leader: granted.leader.to_string(),
            term: granted.term.0,
            token: granted.token.map(|token| token.to_string()),
        })
    }

    /// One group, as a quorum answers; waits a little if none does.
    pub(super) async fn group(&self, group: &GroupName) -> Result<api::Group, Refused> {
        self.group_and_place(group).await.map(|(group, _)| group)
    }

    /// The same, and whether its leader runs on this host.
    pub(super) async fn group_and_place(&self, group: &GroupName) -> Result<(api::Group, bool), Refused> {
        let (answer, scene) = self.look(group).await?;
        let known = self.node.group(group).await?;
        let mut shown = known.as_ref().map_or_else(|| unknown(group), granted);
        // The knowledge of this process about its own lease is newer than what others say of it.
        if !shown.led_here {
            (shown.state, shown.leader, shown.term) = told(&answer.leadership);
            shown.leads_for_ms = answer.leads_for.map(millis);
        }
        let state = shown.state;
        let is_mine = shown.leader.as_deref() == Some(self.node.name().as_str());
        let is_here = state == api::State::Leader && (is_mine || answer.address.is_some_and(is_of_this_host));
        if let Some(proclaimed) = &scene.edict {
            shown.edict = Some(edict(proclaimed));
        }
        if state != api::State::Leader {
            let known = self.node.groups_after(None, COMPARED).await?;
            let led = known.iter().filter(|known| known.term.is_some() && known.group != *group);
            shown.nearest = nearest(group.as_str(), led.map(|known| known.group.as_str())).map(str::to_owned);
        }
        Ok((shown, is_here))
    }
}

/// Whether a process whose datagrams come from there runs on this host: the kernel lets a socket
/// have only addresses of its own.
fn is_of_this_host(mut address: SocketAddr) -> bool {
    address.set_port(0);
    address.ip().to_canonical().is_loopback() || UdpSocket::bind(address).is_ok()
}

/// A group as this node observes it, granted it, led it or campaigned for it.
fn granted(known: &GroupStatus) -> api::Group {
    let (told_state, leader, term) = told(&known.leadership);
    let is_unused = known.idle >= UNUSED && known.grant_remaining.is_none();
    let state = match told_state {
        api::State::Unknown if is_unused => api::State::Nobody,
        other => other,
    };
    api::Group {
        state,
        leader,
        term,
        leads_for_ms: known.leads_for.map(millis),
        granted_for_ms: known.grant_remaining.map(millis),
        led_here: known.led_here,
        lease_remaining_ms: known.lease_remaining.map(millis),
        campaigned_here: known.campaigning_here,
        edict: known.proclaimed.as_ref().map(edict),
        ..unknown(&known.group)
    }
}

/// A group that is known by its name alone.
fn unknown(group: &GroupName) -> api::Group {
    api::Group {
        group: group.to_string(),
        state: api::State::Unknown,
        leader: None,
        term: None,
        leads_for_ms: None,
        granted_for_ms: None,
        led_here: false,
        lease_remaining_ms: None,
        campaigned_here: false,
        edict: None,
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

/// The proclamation, as JSON has it.
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
    fn an_address_is_of_this_host_if_a_socket_can_have_it() {
        for (address, is_here) in [
            ("127.0.0.1:5", true),
            ("127.9.9.9:5", true),
            ("[::1]:5", true),
            ("[::ffff:127.0.0.1]:5", true),
            ("192.0.2.7:5", false),
            ("[2001:db8::7]:5", false),
        ] {
            assert_eq!(is_of_this_host(address.parse().unwrap()), is_here, "{address}");
        }
    }

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
