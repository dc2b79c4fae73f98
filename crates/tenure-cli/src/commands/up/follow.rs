//! Follows the leadership as it changes: heard from one of the daemons, from another if that one
//! ends.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;

use super::cluster::Cluster;
use crate::api::{Group, State, Status};
use crate::client::Client;
use crate::failure::Failure;

/// How long to wait before daemons are asked again that did not answer.
const AGAIN: Duration = Duration::from_millis(500);

/// How long a daemon on this machine may take to answer.
const ANSWER: Duration = Duration::from_secs(2);

/// Somebody leads a group, or nobody any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Which group.
    pub(super) group: String,
    /// The leader of it; `None` if there is none.
    pub(super) leader: Option<String>,
    /// In which term, or after which.
    pub(super) term: Option<u64>,
}

/// Listens, for as long as somebody wants to know.
pub(super) fn follow(cluster: &Cluster) -> Result<mpsc::UnboundedReceiver<Change>, Failure> {
    let endpoints: Vec<String> =
        cluster.members.iter().filter_map(|member| Some(format!("http://{}", member.http?))).collect();
    let client = Client::new(&cluster.settings()?, &endpoints, ANSWER)?;
    let (changes, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut known = Known::default();
        while !changes.is_closed() {
            // A daemon that ends, ends its streams; the next one is asked then.
            if let Ok(mut events) = client.events("/v1/watch").await {
                while let Ok(Some(event)) = events.next().await {
                    let groups = event.json::<Status>().map(|status| status.groups).unwrap_or_default();
                    known.learn(&groups).into_iter().for_each(|change| drop(changes.send(change)));
                }
            }
            sleep(AGAIN).await;
        }
    });
    Ok(heard)
}

/// The last state of each group that was told.
#[derive(Debug, Default)]
struct Known(BTreeMap<String, (Option<String>, Option<u64>)>);

impl Known {
    /// Returns the changes. A daemon that lags behind another brings nobody back: terms only rise.
    fn learn(&mut self, groups: &[Group]) -> Vec<Change> {
        let mut changes = Vec::new();
        for group in groups {
            let (name, term) = (group.group.clone(), group.term);
            let leader = match group.state {
                State::Leader if group.leader.is_some() => group.leader.clone(),
                State::Nobody => None,
                _ => continue,
            };
            let (before, at) = self.0.get(&name).cloned().unwrap_or_default();
            // A grantor without a grant does not report a term.
            let term = term.or(at.filter(|_| leader.is_none()));
            let is_new = term >= at && before != leader || term > at && leader.is_some();
            if is_new {
                self.0.insert(name.clone(), (leader.clone(), term));
                changes.push(Change { group: name, leader, term });
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(state: State, leader: Option<&str>, term: u64) -> Group {
        Group {
            group: "g".to_owned(),
            state,
            leader: leader.map(str::to_owned),
            term: Some(term),
            leads_for_ms: None,
            granted_for_ms: None,
            led_here: false,
            lease_remaining_ms: None,
            campaigned_here: false,
            edict: None,
            nearest: None,
        }
    }

    #[test]
    fn each_change_is_told_once_and_none_goes_back() {
        let mut known = Known::default();
        let mut learn = |state, leader, term| {
            let changes = known.learn(&[group(state, leader, term)]);
            changes.into_iter().map(|change| (change.leader, change.term)).next()
        };
        let told = |leader: Option<&str>, term| Some((leader.map(str::to_owned), Some(term)));
        assert_eq!(learn(State::Nobody, None, 1), None, "nobody was heard of before");
        assert_eq!(learn(State::Leader, Some("a"), 2), told(Some("a"), 2));
        assert_eq!(learn(State::Leader, Some("a"), 2), None);
        assert_eq!(learn(State::Nobody, None, 2), told(None, 2));
        assert_eq!(learn(State::Leader, Some("b"), 3), told(Some("b"), 3));
        assert_eq!(learn(State::Nobody, None, 2), None, "another daemon lags behind");
        assert_eq!(learn(State::Leader, Some("b"), 4), told(Some("b"), 4), "the same again, in a new term");
        assert_eq!(learn(State::Unknown, None, 4), None);
        let nobody = Group { term: None, ..group(State::Nobody, None, 0) };
        let changes = known.learn(&[nobody]);
        assert_eq!(changes.first().map(|change| (&change.leader, change.term)), Some((&None, Some(4))));
    }
}
