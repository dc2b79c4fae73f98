//! `/metrics`, for Prometheus: what the node counts, written down as it is at that moment, as
//! OpenMetrics text or as Prometheus text.
//!
//! A group that is known stays here with zeros while nobody leads it: an alert can be made of that.
//!
//! Sets of labels are bounded. Groups have labels of their own up to [`MOST_GROUPS`] of them, those
//! led here first; how many there are is `tenure_groups`, and how many of them have no labels
//! `tenure_groups_unlisted`. Peers are the members. Reasons of refusals are a fixed list.

use std::fmt;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use tenure::{GroupStatus, Leadership, Status, Timing};

use super::answer::Refused;
use super::desk::Desk;
use crate::clock::clock;

/// The most groups with labels of their own.
pub(super) const MOST_GROUPS: usize = 200;

/// The type of OpenMetrics text, for those who accept it.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The type of Prometheus text, for all others.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`: OpenMetrics text for those who prefer it, Prometheus text for all others.
pub(super) async fn metrics(State(desk): State<Desk>, headers: HeaderMap) -> Result<Response, Refused> {
    let status = desk.node.status().await?;
    let total = desk.node.groups_known().await?;
    // A group is listed with what a quorum reports of it, and for that it is observed.
    desk.look_at_all(&listed(&desk).await?).await?;
    let groups = listed(&desk).await?;
    let uptime = clock() - desk.since;
    let mut registry = Registry::with_prefix("tenure");
    registry.register_collector(Box::new(Snapshot { status, groups, total, uptime }));
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|_| Refused::new(crate::api::Code::Internal, "no metrics"))?;
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (kind, text) =
        if prefers_open_metrics(accepted) { (OPEN_METRICS, text) } else { (PLAIN, plain(&text)) };
    Ok(([(CONTENT_TYPE, kind)], text).into_response())
}

/// The groups that have labels of their own, those led or campaigned for here first.
async fn listed(desk: &Desk) -> Result<Vec<GroupStatus>, Refused> {
    let mut groups = desk.node.groups_here(MOST_GROUPS).await?;
    let others = desk.node.groups_after(None, MOST_GROUPS).await?;
    let others = others.into_iter().filter(|group| !group.led_here && !group.campaigning_here);
    groups.extend(others);
    groups.sort_by_key(|group| (!group.led_here, !group.campaigning_here));
    groups.truncate(MOST_GROUPS);
    Ok(groups)
}

/// Whether a client would rather have OpenMetrics text than Prometheus text.
fn prefers_open_metrics(accepted: &str) -> bool {
    let weight = |wanted: &str| {
        let ranges = accepted.split(',').filter(|range| range.trim().starts_with(wanted));
        let quality = |range: &str| {
            let given = range.split(';').find_map(|part| part.trim().strip_prefix("q=")?.parse::<f32>().ok());
            given.unwrap_or(1.0)
        };
        ranges.map(quality).fold(0.0, f32::max)
    };
    let open = weight("application/openmetrics-text");
    open > 0.0 && open >= weight("text/plain")
}

/// Prometheus text from OpenMetrics text: it has no units, no end and no infos, and names counters
/// as their samples.
fn plain(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(_), _) => help = Some(line),
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let (ending, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    other => ("", other),
                };
                let told = help.take().and_then(|help| help.splitn(4, ' ').nth(3)).unwrap_or_default();
                lines += &format!("# HELP {name}{ending} {told}\n# TYPE {name}{ending} {kind}\n");
            }
            (Some("#"), ..) => {}
            _ => lines += &format!("{line}\n"),
        }
    }
    lines
}

/// A node at one moment.
#[derive(Debug)]
struct Snapshot {
    status: Status,
    /// Those with labels of their own.
    groups: Vec<GroupStatus>,
    total: usize,
    uptime: Duration,
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet(encoder);
        self.node(&mut sheet)?;
        self.counts(&mut sheet)?;
        self.traffic(&mut sheet)?;
        self.peers(&mut sheet)?;
        self.of_groups(&mut sheet)
    }
}

impl Snapshot {
    fn node(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let Self { status, uptime, .. } = self;
        let labels = [("version", env!("CARGO_PKG_VERSION")), ("node", status.name.as_str())];
        sheet
            .0
            .encode_descriptor("build", "Version and name of this node", None, MetricType::Info)?
            .encode_info(&labels)?;
        sheet.seconds("uptime", "How long this node has run", *uptime)?;
        sheet.gauge(
            "ready",
            "Whether this node can do its part: 1 or 0; says nothing about leading",
            status.ready.into(),
        )?;
        sheet.gauge(
            "epoch",
            "The newest epoch that this node knows",
            status.epoch.map_or(0, |epoch| epoch.0),
        )?;
        sheet.gauge("members", "How many members there are", size(status.members.len()))?;
        sheet.seconds(
            "silent",
            "For how much longer this node waits out what it may have promised before a restart",
            status.silent_for.unwrap_or_default(),
        )?;
        sheet.gauge("sessions", "With how many processes there are sessions", size(status.peers))
    }

    fn counts(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let Status { tally, timings, leaders, .. } = &self.status;
        let whose = "by this process, and by leaders that are no members and told this one";
        let won = tally.terms_won.saturating_add(leaders.terms_won);
        sheet.counter("elections", &format!("Terms won {whose}"), won)?;
        let lost = tally.terms_lost.saturating_add(leaders.terms_lost);
        sheet.counter("terms_lost", &format!("Terms lost {whose}, for whatever reason"), lost)?;
        let renewals = tally.renewals.saturating_add(leaders.renewals);
        sheet.counter("renewals", &format!("Renewals of leases {whose}"), renewals)?;
        let failed = tally.runs_failed.saturating_add(leaders.runs_failed);
        sheet.counter("runs_failed", &format!("Acquisitions and renewals {whose} that failed"), failed)?;
        sheet.counter("grants", "Grants that this node gave, renewals among them", tally.granted)?;
        sheet.counter("grants_refused", "Requests that this node refused", tally.refused)?;
        sheet.counter("epochs", "Epochs that this node has gone by", tally.epochs)?;
        sheet.counter(
            "clock_faults",
            "How often this node's clock was found beyond its bound",
            tally.clock_faults,
        )?;
        sheet.counter(
            "peer_clock_faults",
            "How often a peer's clock was found beyond its bound",
            tally.peer_clock_faults,
        )?;
        sheet.counter("records_persisted", "Records handed to the disk", self.status.persisted)?;
        let renewals = timings.renewals.plus(&leaders.renew_times);
        sheet.histogram("renew_duration", &format!("How long a renewal {whose} took"), &renewals)?;
        let acquisitions = timings.acquisitions.plus(&leaders.acquire_times);
        sheet.histogram("acquire_duration", &format!("How long an election {whose} took"), &acquisitions)?;
        sheet.histogram(
            "fsync_duration",
            "How long a write of the store took, fsync included",
            &timings.store_writes,
        )
    }

    fn traffic(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let Status { traffic, sessions, tally, .. } = &self.status;
        sheet.counter("datagrams_sent", "Datagrams sent", traffic.datagrams_sent)?;
        sheet.counter("datagrams_received", "Datagrams received", traffic.datagrams_received)?;
        sheet.counter(
            "datagrams_unsent",
            "Datagrams that the kernel had no room for",
            traffic.datagrams_unsent,
        )?;
        sheet.bytes("sent", "Bytes of datagrams sent", traffic.bytes_sent)?;
        sheet.bytes("received", "Bytes of datagrams received", traffic.bytes_received)?;
        sheet.counter("bulk_sent", "Packets sent over a stream", traffic.bulk_sent)?;
        sheet.counter("items_dropped", "Items that waited for a peer in vain", traffic.items_dropped)?;
        sheet.counter("items_unreadable", "Items that were not understood", traffic.items_unreadable)?;
        sheet.counter("sessions_begun", "Sessions begun", sessions.begun)?;
        sheet.counter("sessions_evicted", "Peers forgotten to make room for others", sessions.evicted)?;
        sheet.counter(
            "out_of_scope",
            "Messages that their sender was not entitled to",
            tally.out_of_scope,
        )?;
        sheet.counter(
            "over_limit",
            "Requests and watches refused because their key has as many as it may",
            tally.over_limit,
        )?;
        sheet.counter("groups_forgotten", "Groups forgotten because nobody used them", tally.forgotten)?;
        let help = "Packets refused before anybody read them, by reason";
        let refused = sessions.refused().map(|(reason, count)| ([("reason", reason)], count));
        sheet.family("auth_failures", help, None, MetricType::Counter, refused, counter)
    }

    fn peers(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        let peers = || self.status.peers_known.iter().filter(|peer| peer.is_member && !peer.is_me);
        let answers = peers().map(|peer| ([("peer", peer.name.as_str())], u64::from(peer.answers)));
        sheet.family(
            "peer_up",
            "Whether a member answers: 1 or 0",
            None,
            MetricType::Gauge,
            answers,
            gauge,
        )?;
        let trips =
            peers().filter_map(|peer| Some(([("peer", peer.name.as_str())], peer.round_trip?.as_secs_f64())));
        let help = "The last round trip to a member";
        sheet.family("peer_rtt", help, Some(Unit::Seconds), MetricType::Gauge, trips, |encoder, value| {
            encoder.encode_gauge(&value)
        })
    }

    fn of_groups(&self, sheet: &mut Sheet<'_>) -> fmt::Result {
        sheet.gauge("groups", "How many groups this node knows", size(self.total))?;
        sheet.gauge(
            "groups_unlisted",
            "How many groups have no labels of their own here, for there are too many",
            size(self.total.saturating_sub(self.groups.len())),
        )?;
        sheet.gauge("groups_led", "How many groups this process leads", size(self.status.led))?;
        let shown = &self.groups;
        let label = |group: &'_ GroupStatus| [("group", group.group.to_string())];
        let led = shown.iter().map(|group| (label(group), u64::from(group.led_here)));
        let help = "Whether this process leads the group: 1 or 0";
        sheet.family("is_leader", help, None, MetricType::Gauge, led, gauge)?;
        let left =
            shown.iter().filter_map(|group| Some((label(group), group.lease_remaining?.as_secs_f64())));
        let help = "For how much longer this process leads the group if it renews no more";
        let seconds = |encoder: &mut MetricEncoder<'_>, value: f64| encoder.encode_gauge(&value);
        sheet.family("lease_remaining", help, Some(Unit::Seconds), MetricType::Gauge, left, seconds)?;
        let granted =
            shown.iter().map(|group| (label(group), group.grant_remaining.unwrap_or_default().as_secs_f64()));
        let help = "For how much longer this node supports the leader of the group; 0 if it supports none";
        sheet.family("grant_remaining", help, Some(Unit::Seconds), MetricType::Gauge, granted, seconds)?;
        let terms = shown.iter().map(|group| (label(group), term(group)));
        let help = "The term in which the group is led, as a quorum reports; 0 if nobody leads it";
        sheet.family("term", help, None, MetricType::Gauge, terms, gauge)
    }
}

/// The term in which a group is led; zero if nobody leads it, or if no quorum reports.
fn term(group: &GroupStatus) -> u64 {
    match &group.leadership {
        Leadership::Leader { term, .. } => term.0,
        Leadership::Unknown | Leadership::Nobody { .. } | Leadership::Weak { .. } => 0,
    }
}

/// Where metrics are written down, one way for each kind.
struct Sheet<'a>(DescriptorEncoder<'a>);

impl Sheet<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        gauge(&mut self.0.encode_descriptor(name, help, None, MetricType::Gauge)?, value)
    }

    fn seconds(&mut self, name: &str, help: &str, value: Duration) -> fmt::Result {
        let unit = Some(&Unit::Seconds);
        self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?.encode_gauge(&value.as_secs_f64())
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        counter(&mut self.0.encode_descriptor(name, help, None, MetricType::Counter)?, value)
    }

    fn bytes(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        counter(&mut self.0.encode_descriptor(name, help, Some(&Unit::Bytes), MetricType::Counter)?, value)
    }

    fn histogram(&mut self, name: &str, help: &str, timing: &Timing) -> fmt::Result {
        let mut before = 0;
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        for (bound, up_to) in timing.buckets() {
            buckets.push((bound.as_secs_f64(), up_to - before));
            before = up_to;
        }
        buckets.push((f64::INFINITY, timing.count() - before));
        let unit = Some(&Unit::Seconds);
        self.0.encode_descriptor(name, help, unit, MetricType::Histogram)?.encode_histogram::<NoLabelSet>(
            timing.total().as_secs_f64(),
            timing.count(),
            &buckets,
            None,
        )
    }

    fn family<L: prometheus_client::encoding::EncodeLabelSet, V>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        kind: MetricType,
        values: impl Iterator<Item = (L, V)>,
        write: impl Fn(&mut MetricEncoder<'_>, V) -> fmt::Result,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        for (labels, value) in values {
            write(&mut metric.encode_family(&labels)?, value)?;
        }
        Ok(())
    }
}

fn gauge(encoder: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    encoder.encode_gauge(&value)
}

fn counter(encoder: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    encoder.encode_counter::<NoLabelSet, u64, u64>(&value, None)
}

fn size(number: usize) -> u64 {
    super::status::count(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_the_client_would_rather_have() {
        for (accepted, open) in [
            ("", false),
            ("*/*", false),
            ("text/plain", false),
            ("application/openmetrics-text", true),
            ("application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", true),
            ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.8", false),
            ("application/openmetrics-text;q=0", false),
        ] {
            assert_eq!(prefers_open_metrics(accepted), open, "{accepted}");
        }
    }

    #[test]
    fn prometheus_text_names_counters_as_their_samples_and_has_no_infos() {
        let open = "# HELP a_build Version.\n# TYPE a_build info\na_build_info{v=\"1\"} 1\n\
            # HELP a_sent_bytes Bytes sent.\n# TYPE a_sent_bytes counter\n# UNIT a_sent_bytes bytes\n\
            a_sent_bytes_total 5\n# HELP a_up Up.\n# TYPE a_up gauge\na_up 1\n# EOF\n";
        let expected = "# HELP a_build_info Version.\n# TYPE a_build_info gauge\na_build_info{v=\"1\"} 1\n\
            # HELP a_sent_bytes_total Bytes sent.\n# TYPE a_sent_bytes_total counter\n\
            a_sent_bytes_total 5\n# HELP a_up Up.\n# TYPE a_up gauge\na_up 1\n";
        assert_eq!(plain(open), expected);
    }
}
