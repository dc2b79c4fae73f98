//! The node and its cluster.

use std::time::Duration;

use axum::Json;
use axum::extract::{RawQuery, State};
use tenure::{CharterStatus, ClockBound, NodeName, PackedTerms, PeerStatus, Status, TermStatus};

use crate::api;
use crate::clock::clock;

use super::answer::Refused;
use super::desk::Desk;
use super::health::asks_for;

/// The most groups in one status.
const MOST_GROUPS: usize = 1_000;

/// `GET /v1/status`
pub(super) async fn status(
    State(desk): State<Desk>,
    RawQuery(query): RawQuery,
) -> Result<Json<api::Status>, Refused> {
    desk.status(asks_for(query.as_deref(), "all")).await.map(Json)
}

/// `GET /v1/members`
pub(super) async fn members(State(desk): State<Desk>) -> Result<Json<api::Members>, Refused> {
    let status = desk.node.status().await?;
    Ok(Json(api::Members {
        epoch: status.epoch.map(|epoch| epoch.0),
        charter: status.charter.as_ref().map(charter),
        members: members_of(&status),
    }))
}

impl Desk {
    /// How the node is, with all groups or those that were used lately.
    pub(super) async fn status(&self, all: bool) -> Result<api::Status, Refused> {
        let status = self.node.status().await?;
        let (groups, groups_idle) = self.listed(all, MOST_GROUPS).await?;
        let groups_total = count(self.node.groups_known().await?);
        Ok(api::Status {
            name: status.name.to_string(),
            role: status.role.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster: status.cluster.to_string(),
            epoch: status.epoch.map(|epoch| epoch.0),
            is_member: status.is_member,
            ready: status.ready,
            not_ready: status.not_ready.iter().map(ToString::to_string).collect(),
            silent_for_ms: status.silent_for.map(millis),
            uptime_ms: millis(clock() - self.since),
            addresses: self.node.addresses().iter().map(ToString::to_string).collect(),
            lease_ms: millis(status.lease),
            charter: status.charter.as_ref().map(charter),
            members: members_of(&status),
            groups,
            groups_total,
            groups_idle,
            led: count(status.led),
            terms: terms(&status.terms),
            counts: counts(&status),
        })
    }
}

fn charter(charter: &CharterStatus) -> api::Charter {
    let (drift_ppm, skew_us) = match charter.bound {
        ClockBound::Drift { ppm } => (Some(u64::from(ppm)), None),
        ClockBound::Skew { bound } => (None, Some(micros(bound))),
    };
    api::Charter {
        lineage: charter.lineage.clone(),
        quorums: charter.quorums.clone(),
        drift_ppm,
        skew_us,
        longest_lease_ms: millis(charter.longest_lease),
        changing: charter.changing,
    }
}

/// The members, in the order that the quorums speak of.
fn members_of(status: &Status) -> Vec<api::Member> {
    let seen = |name: &NodeName| status.peers_known.iter().find(|peer| peer.name == *name);
    status.members.iter().filter_map(seen).map(member).collect()
}

fn member(peer: &PeerStatus) -> api::Member {
    api::Member {
        name: peer.name.to_string(),
        address: peer.address.clone(),
        me: peer.is_me,
        answers: peer.is_me || peer.answers,
        heard_ago_ms: peer.heard.map(millis).filter(|_| !peer.is_me),
        round_trip_us: peer.round_trip.map(micros).filter(|_| !peer.is_me),
        clock_trusted: peer.clock_trusted,
        store: peer.store.map(|store| store.to_string()),
        condemned: peer.condemned,
    }
}

fn terms(terms: &TermStatus) -> api::Terms {
    let doubted = terms.doubted.as_ref();
    api::Terms {
        top: terms.top.0,
        packed: match terms.packed {
            PackedTerms::Exhausted => api::Packed::Exhausted,
            PackedTerms::HalfUsed => api::Packed::Half,
            _ => api::Packed::Plenty,
        },
        packed_left_days: terms.packed_left.map(|left| left.as_secs() / (24 * 3600)),
        doubted: doubted.map(|(member, term)| api::DoubtedTerm { member: member.clone(), term: term.0 }),
        barred: terms.barred.clone(),
    }
}

fn counts(status: &Status) -> api::Counts {
    let (tally, traffic) = (&status.tally, &status.traffic);
    api::Counts {
        terms_won: tally.terms_won,
        terms_lost: tally.terms_lost,
        renewals: tally.renewals,
        granted: tally.granted,
        refused: tally.refused,
        clock_faults: tally.clock_faults,
        datagrams_sent: traffic.datagrams_sent,
        datagrams_received: traffic.datagrams_received,
        persisted: status.persisted,
    }
}

/// Whole milliseconds.
pub(super) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// Whole microseconds.
fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

/// A number of things.
pub(super) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
