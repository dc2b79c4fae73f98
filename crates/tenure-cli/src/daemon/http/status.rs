//! The node and its cluster.

use std::time::Duration;

use axum::Json;
use axum::extract::State;

use crate::api;
use crate::clock::clock;

use super::answer::Refused;
use super::desk::Desk;

/// The most groups in one status.
const MOST_GROUPS: usize = 1_000;

/// `GET /v1/status`
pub(super) async fn status(State(desk): State<Desk>) -> Result<Json<api::Status>, Refused> {
    desk.status().await.map(Json)
}

impl Desk {
    /// How the node is.
    pub(super) async fn status(&self) -> Result<api::Status, Refused> {
        let status = self.node.status().await?;
        let mut groups = self.groups().await?;
        let groups_total = count(groups.len());
        groups.truncate(MOST_GROUPS);
        let member = |name: &tenure::NodeName| api::Member {
            name: name.to_string(),
            address: None,
            me: *name == status.name,
            answers: *name == status.name,
            heard_ago_ms: None,
            round_trip_us: None,
            clock_trusted: true,
        };
        Ok(api::Status {
            name: status.name.to_string(),
            role: self.role.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster: status.cluster.to_string(),
            epoch: status.epoch.map(|epoch| epoch.0),
            is_member: status.is_member,
            ready: status.ready,
            not_ready: Vec::new(),
            silent_for_ms: status.silent_for.map(millis),
            uptime_ms: millis(clock() - self.since),
            addresses: self.node.addresses().iter().map(ToString::to_string).collect(),
            charter: None,
            members: status.members.iter().map(member).collect(),
            groups,
            groups_total,
            led: count(status.led),
            counts: counts(&status),
        })
    }
}

fn counts(status: &tenure::Status) -> api::Counts {
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

/// A number of things.
pub(super) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
