//! Metrics as Prometheus text, without a daemon: [`Node::metrics`].
//!
//! Names are those of the daemon's `/metrics`, so that its dashboard and alerts work for embedded
//! nodes too. Groups have labels up to a number of them, those led here first.

use std::fmt::Write as _;

use crate::error::Stopped;
use crate::node::Node;
use crate::status::{GroupStatus, Status};
use crate::timing::Timing;

/// The most groups with labels of their own.
const MOST_GROUPS: usize = 200;

impl Node {
    /// Returns what this node counts and measures, as Prometheus text (version 0.0.4).
    ///
    /// Serve it as `text/plain; version=0.0.4`. `docs/reference/metrics.md` explains the names.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = std::env::temp_dir().join(format!("tenure-doc-{}", tenure::ClusterId::draw()));
    /// # let cluster = tenure::Cluster::plan(tenure::peers([("a", "127.0.0.1:0")])).found(&folder)?;
    /// # let node = tenure::Node::start(cluster.members().remove(0)).await?;
    /// let _tenure = node.campaign("jobs").await?;
    /// let text = node.metrics().await?;
    /// assert!(text.contains("tenure_elections_total 1\n"));
    /// assert!(text.contains("tenure_is_leader{group=\"jobs\"} 1\n"));
    /// # node.shutdown().await;
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok(()) }
    /// ```
    ///
    /// A dropped future changes nothing.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn metrics(&self) -> Result<String, Stopped> {
        let status = self.status().await?;
        let mut groups = self.groups_here(MOST_GROUPS).await?;
        let others = self.groups_after(None, MOST_GROUPS).await?;
        groups.extend(others.into_iter().filter(|group| !group.led_here && !group.campaigning_here));
        groups.truncate(MOST_GROUPS);
        let mut text = Text::default();
        text.node(&status);
        text.groups(self.groups_known().await?, &groups);
        Ok(text.0)
    }
}

/// Prometheus text, line by line.
#[derive(Default)]
pub(crate) struct Text(pub(crate) String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP tenure_{name} {help}\n# TYPE tenure_{name} {kind}");
    }

    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, "gauge", help);
        let _ = writeln!(self.0, "tenure_{name} {value}");
    }

    pub(crate) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        let _ = writeln!(self.0, "tenure_{name} {value}");
    }

    pub(crate) fn histogram(&mut self, name: &str, help: &str, timing: &Timing) {
        self.head(name, "histogram", help);
        for (bound, count) in timing.buckets() {
            let _ = writeln!(self.0, "tenure_{name}_bucket{{le=\"{}\"}} {count}", bound.as_secs_f64());
        }
        let (count, total) = (timing.count(), timing.total().as_secs_f64());
        let _ = writeln!(self.0, "tenure_{name}_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(self.0, "tenure_{name}_sum {total}\ntenure_{name}_count {count}");
    }

    /// A metric with one label. Names of groups and nodes have no characters that must be escaped;
    /// of reasons there is a fixed list.
    fn family(
        &mut self,
        (name, kind): (&str, &str),
        help: &str,
        label: &str,
        values: impl Iterator<Item = (String, String)>,
    ) {
        self.head(name, kind, help);
        for (of, value) in values {
            let _ = writeln!(self.0, "tenure_{name}{{{label}=\"{of}\"}} {value}");
        }
    }

    fn node(&mut self, status: &Status) {
        let Status { tally, timings, traffic, sessions, .. } = status;
        self.gauge("ready", "Whether this node can do its part: 1 or 0", u8::from(status.ready));
        self.gauge("epoch", "The newest epoch that this node knows", status.epoch.map_or(0, |epoch| epoch.0));
        self.gauge("members", "How many members there are", status.members.len());
        let silent = status.silent_for.unwrap_or_default().as_secs_f64();
        self.gauge(
            "silent_seconds",
            "For how much longer this node waits out what it may have promised",
            silent,
        );
        self.gauge("sessions", "With how many processes there are sessions", status.peers);
        for (name, help, value) in [
            ("elections_total", "Terms that this process has won", tally.terms_won),
            ("terms_lost_total", "Terms that this process has lost, for whatever reason", tally.terms_lost),
            ("renewals_total", "Renewals of this process's leases", tally.renewals),
            ("runs_failed_total", "Acquisitions and renewals that failed", tally.runs_failed),
            ("grants_total", "Grants that this node gave, renewals among them", tally.granted),
            ("grants_refused_total", "Requests that this node refused", tally.refused),
            ("epochs_total", "Epochs that this node has gone by", tally.epochs),
            ("clock_faults_total", "How often this node's clock was beyond its bound", tally.clock_faults),
            ("peer_clock_faults_total", "How often a peer's clock was", tally.peer_clock_faults),
            ("records_persisted_total", "Records handed to the disk", status.persisted),
            ("datagrams_sent_total", "Datagrams sent", traffic.datagrams_sent),
            ("datagrams_received_total", "Datagrams received", traffic.datagrams_received),
            ("sent_bytes_total", "Bytes of datagrams sent", traffic.bytes_sent),
            ("received_bytes_total", "Bytes of datagrams received", traffic.bytes_received),
            ("items_dropped_total", "Items that waited for a peer in vain", traffic.items_dropped),
            ("sessions_begun_total", "Sessions begun", sessions.begun),
            ("out_of_scope_total", "Messages that their sender was not entitled to", tally.out_of_scope),
            ("over_limit_total", "Requests refused because their key has as many", tally.over_limit),
        ] {
            self.counter(name, help, value);
        }
        let refused = sessions.refused().map(|(reason, count)| (reason.to_owned(), count.to_string()));
        let help = "Packets refused before anybody read them, by reason";
        self.family(("auth_failures_total", "counter"), help, "reason", refused);
        self.histogram("renew_duration_seconds", "How long a renewal took", &timings.renewals);
        self.histogram("acquire_duration_seconds", "How long it took to be elected", &timings.acquisitions);
        self.histogram("fsync_duration_seconds", "How long a write of the store took", &timings.store_writes);
        let peers = || status.peers_known.iter().filter(|peer| peer.is_member && !peer.is_me);
        let up = peers().map(|peer| (peer.name.to_string(), u8::from(peer.answers).to_string()));
        self.family(("peer_up", "gauge"), "Whether a member answers: 1 or 0", "peer", up);
        self.gauge("groups_led", "How many groups this process leads", status.led);
    }

    fn groups(&mut self, total: usize, groups: &[GroupStatus]) {
        self.gauge("groups", "How many groups this node knows", total);
        let help = "How many groups have no labels of their own here, for there are too many";
        self.gauge("groups_unlisted", help, total.saturating_sub(groups.len()));
        let name = |group: &GroupStatus| group.group.to_string();
        let led = groups.iter().map(|group| (name(group), u8::from(group.led_here).to_string()));
        self.family(("is_leader", "gauge"), "Whether this process leads the group: 1 or 0", "group", led);
        let left =
            |group: &GroupStatus| Some((name(group), group.lease_remaining?.as_secs_f64().to_string()));
        let help = "For how much longer this process leads the group if it renews no more";
        self.family(("lease_remaining_seconds", "gauge"), help, "group", groups.iter().filter_map(left));
        let term = |group: &GroupStatus| Some((name(group), group.term?.0.to_string()));
        let help = "The newest term of the group that this node knows";
        self.family(("term", "gauge"), help, "group", groups.iter().filter_map(term));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_histogram_is_written_as_prometheus_wants_it() {
        let mut timing = Timing::default();
        timing.note(Duration::from_millis(1));
        timing.note(Duration::from_secs(60));
        let mut text = Text::default();
        text.histogram("x_seconds", "An x", &timing);
        assert!(text.0.starts_with("# HELP tenure_x_seconds An x\n# TYPE tenure_x_seconds histogram\n"));
        assert!(text.0.contains("tenure_x_seconds_bucket{le=\"0.0005\"} 0\n"), "{}", text.0);
        assert!(text.0.contains("tenure_x_seconds_bucket{le=\"0.001\"} 1\n"), "{}", text.0);
        assert!(
            text.0
                .contains("_bucket{le=\"+Inf\"} 2\ntenure_x_seconds_sum 60.001\ntenure_x_seconds_count 2\n")
        );
    }
}
