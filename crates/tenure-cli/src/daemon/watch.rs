//! Looks at the node every second: for the service manager, and for what an operator should hear
//! of.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tenure::{Node, NotReady, Status};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::notify::Manager;
use crate::clock::clock;

/// How often the node is asked how it is.
const LOOK: Duration = Duration::from_secs(1);

/// How often at most one thing is said again while it goes on.
const AGAIN: Duration = Duration::from_secs(60);

/// How long a node may take to become ready before that is worth a line.
const PATIENCE: Duration = Duration::from_secs(5);

/// The state that was seen so far.
#[derive(Debug)]
pub(super) struct Watcher {
    ticks: tokio::time::Interval,
    period: Duration,
    ready: bool,
    /// Since when it is neither ready nor silent.
    waiting: Option<Instant>,
    /// Packets that were refused when it was last said, and when that was.
    refused: BTreeMap<&'static str, (u64, Instant)>,
    waited: Option<Instant>,
}

impl Watcher {
    /// Looks at least as often as the service manager wants a sign of life.
    pub(super) fn new(within: Option<Duration>) -> Self {
        let period = within.unwrap_or(LOOK).clamp(Duration::from_millis(10), LOOK);
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticks, period, ready: false, waiting: None, refused: BTreeMap::new(), waited: None }
    }

    /// Whether the node was ready when it was last looked at.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Waits for the next time to look, or until the node is ready, and looks.
    pub(super) async fn next(&mut self, node: &Node, manager: &mut Manager) {
        let ready = self.ready;
        tokio::select! {
            _ = self.ticks.tick() => {}
            // A node that stops will not be ready; that is for others to tell.
            Ok(()) = node.ready(), if !ready => {}
        }
        // A driver that does not answer gives no sign of life, and the service manager draws its
        // conclusions.
        let Ok(Ok(status)) = timeout(self.period, node.status()).await else { return };
        manager.alive();
        if status.not_ready.contains(&NotReady::NotAMember) {
            manager.no_member();
        }
        self.tell_ready(&status, manager);
        self.tell_waiting(&status);
        self.tell_refused(&status);
        manager.status(in_words(&status));
    }

    fn tell_ready(&mut self, status: &Status, manager: &Manager) {
        if status.ready == self.ready {
            return;
        }
        self.ready = status.ready;
        if self.ready {
            manager.ready();
            tracing::info!(name: "tenure.ready", node = %status.name, epoch = status.epoch.map(|epoch| epoch.0), "can do its part");
        } else {
            tracing::warn!(name: "tenure.unready", node = %status.name, "reaches no quorum, or is no member any more");
        }
    }

    fn tell_waiting(&mut self, status: &Status) {
        if status.ready || status.silent_for.is_some() {
            (self.waiting, self.waited) = (None, None);
            return;
        }
        let now = clock();
        let since = *self.waiting.get_or_insert(now);
        let due = self.waited.is_none_or(|said| now.duration_since(said) >= AGAIN);
        if now.duration_since(since) < PATIENCE || !due {
            return;
        }
        self.waited = Some(now);
        let reason = reasons(status);
        tracing::warn!(name: "tenure.waiting", node = %status.name, reason, "is not ready; if that lasts, check that the others run, addresses, firewall (UDP and TCP) and key");
    }

    /// Anybody can send packets that are refused: counted, and said now and then where an operator
    /// can do something about it.
    fn tell_refused(&mut self, status: &Status) {
        let now = clock();
        for (reason, total) in status.sessions.refused() {
            let Some(advice) = advice(reason) else { continue };
            let (before, due) = match self.refused.get(reason) {
                Some((before, at)) => (*before, now.duration_since(*at) >= AGAIN),
                None => (0, true),
            };
            if total > before && due {
                self.refused.insert(reason, (total, now));
                let from = status.sessions.refused_from(reason).map(|address| address.to_string());
                tracing::warn!(name: "tenure.refused", node = %status.name, reason, from, packets = total - before, total, "{advice}");
            }
        }
    }
}

/// The advice about refused packets, where something can be done.
fn advice(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "unknown_key" => {
            "somebody speaks a key that this node does not have: one of the two has a wrong key_file, or a rotation of keys is half done"
        }
        "other_cluster" => {
            "somebody of another cluster speaks to this node: compare cluster_id and addresses"
        }
        "not_for_me" => "somebody takes this node for another: the address of one of the two is wrong",
        "name_taken" => {
            "a second process goes by the name of this node, or of a member: each needs a name of its own"
        }
        "versions" => {
            "a peer speaks only versions of the protocol that this node does not: update the older one"
        }
        "forged" => "packets were not sealed by whom they claim to come from",
        "full" => "there is no room for one more session",
        _ => return None,
    })
}

/// Why a node is not ready.
fn reasons(status: &Status) -> String {
    status.not_ready.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The state in a few words.
fn in_words(status: &Status) -> String {
    if !status.ready {
        return match status.silent_for {
            Some(left) => format!("silent for {} s more, after a restart", left.as_secs() + 1),
            None => format!("not ready: {}", reasons(status)),
        };
    }
    match status.led {
        0 => "ready".to_owned(),
        1 => "ready, leads 1 group".to_owned(),
        many => format!("ready, leads {many} groups"),
    }
}

/// Writes the state to the log.
pub(super) async fn dump(node: &Node) {
    match timeout(LOOK, node.status()).await {
        Ok(Ok(status)) => {
            let members = status.members.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let silent = status.silent_for.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
            tracing::info!(
                name: "tenure.state",
                node = %status.name,
                cluster = %status.cluster,
                epoch = status.epoch.map(|epoch| epoch.0),
                members,
                member = status.is_member,
                ready = status.ready,
                silent_ms = silent,
                led = status.led,
                terms_won = status.tally.terms_won,
                renewals = status.tally.renewals,
                granted = status.tally.granted,
                refused = status.sessions.refusals(),
                persisted = status.persisted,
                "{}",
                in_words(&status)
            );
        }
        _ => tracing::error!(name: "tenure.state", node = %node.name(), "the node does not answer"),
    }
}
