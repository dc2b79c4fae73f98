//! Puts a standby in the place of a member that is gone (`[daemon] replace_after`, `standbys`).
//!
//! Off unless it is asked for, and slow to act: a member that is away too long costs less than one
//! that is replaced while it was only restarted. This node acts if
//!
//! * it is a ready member, so a quorum answers, and has been for as long as `replace_after`;
//! * of the members that answer it has the smallest name, so that of several only one acts (two
//!   would not hurt: one charter an epoch);
//! * one member has not answered all that time, and no change is under way.
//!
//! Then it proposes the first standby of its list that answers and is no member yet, by an ordinary
//! change: nothing of what keeps two leaders apart depends on this judgement. One at a time; after
//! a failure it waits for `replace_after` again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tenure::{MemberChange, MembersError, Node, Peer, Status};
use tokio::time::{MissedTickBehavior, interval};

use crate::clock::clock;
use crate::failure::{Failure, messages};
use crate::settings::{Settings, Standby};

/// The missing members, and since when they are missing.
#[derive(Debug)]
pub(super) struct Replacer {
    after: Duration,
    standbys: Vec<Standby>,
    missing: BTreeMap<String, Instant>,
}

impl Replacer {
    /// By the settings; `None` if members are never replaced.
    pub(super) fn new(settings: &Settings) -> Result<Option<Self>, Failure> {
        let Some(after) = settings.daemon.replace_after else { return Ok(None) };
        let longest = settings.node()?.longest_lease;
        if after.0 < longest * 2 {
            return Err(messages::replace_too_soon());
        }
        if settings.daemon.standbys.is_empty() {
            return Err(messages::replace_without_standbys());
        }
        let standbys = settings.daemon.standbys.clone();
        Ok(Some(Self { after: after.0, standbys, missing: BTreeMap::new() }))
    }

    /// Looks and acts until the node has stopped.
    pub(super) async fn run(mut self, node: Node) {
        let mut ticks = interval((self.after / 10).clamp(Duration::from_millis(50), Duration::from_secs(10)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Ok(status) = node.status().await else { return };
            if let Some(gone) = self.look(&status, clock()) {
                self.replace(&node, &status, &gone).await;
                self.missing.clear();
            }
        }
    }

    /// Whom to replace, if anybody and by this node.
    fn look(&mut self, status: &Status, now: Instant) -> Option<String> {
        if !status.is_member || !status.ready {
            self.missing.clear();
            return None;
        }
        let members = || status.peers_known.iter().filter(|peer| peer.is_member);
        let silent: Vec<String> =
            members().filter(|peer| !peer.answers).map(|peer| peer.name.to_string()).collect();
        self.missing.retain(|name, _| silent.contains(name));
        for name in silent {
            self.missing.entry(name).or_insert(now);
        }
        let first = members().filter(|peer| peer.answers).map(|peer| &peer.name).min() == Some(&status.name);
        let changing = status.charter.as_ref().is_none_or(|charter| charter.changing);
        if !first || changing {
            return None;
        }
        let long = self.missing.iter().filter(|(_, since)| now - **since >= self.after);
        long.min_by_key(|(_, since)| **since).map(|(name, _)| name.clone())
    }

    async fn replace(&self, node: &Node, status: &Status, old: &str) {
        let free = |standby: &&Standby| status.members.iter().all(|member| member.as_str() != standby.name);
        for Standby { name, address } in self.standbys.iter().filter(free) {
            tracing::warn!(name: "tenure.replacing", node = %status.name, old, new = name, after_s = self.after.as_secs(), "a member has not answered for long and is replaced");
            let new = Peer { name: name.clone(), address: address.clone() };
            let change = MemberChange::Replace { old: old.to_owned(), new };
            let ended = match node.change_members(&change) {
                Ok(changing) => changing.done().await,
                Err(error) => Err(error),
            };
            match ended {
                Ok(epoch) => {
                    tracing::warn!(name: "tenure.replaced", node = %status.name, old, new = name, epoch = epoch.0, "a standby is a member now");
                    return;
                }
                Err(error) => {
                    tracing::error!(name: "tenure.replace_failed", node = %status.name, old, new = name, reason = %error, "a member was not replaced");
                    if !matches!(error, MembersError::Unreachable { .. }) {
                        return;
                    }
                }
            }
        }
    }
}
