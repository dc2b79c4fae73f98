//! The state of `top`: nodes, groups and changes, merged from what each daemon says.
//!
//! No daemon knows all. Of a group the one counts that tells of the newest term; how much is left
//! of its lease is the most that any member has granted.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use crate::api;
use crate::commands::asked::Asked;

/// How many events are kept.
const KEPT: usize = 200;

/// A daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeRow {
    /// Its name; where it is asked, if it never answered.
    pub(super) name: String,
    pub(super) endpoint: String,
    /// In a word: `ready`, `not ready`, `silent`, `no answer`.
    pub(super) state: &'static str,
    /// Why, if it is not ready.
    pub(super) why: String,
    pub(super) version: String,
    pub(super) epoch: Option<u64>,
    /// How many of the other members answer it, and how many there are.
    pub(super) peers: Option<(usize, usize)>,
    /// The slowest round trip to one of them.
    pub(super) trip: Option<Duration>,
    /// How many groups it leads itself.
    pub(super) led: u64,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupRow {
    pub(super) group: String,
    /// The leader; `None` if there is none.
    pub(super) leader: Option<String>,
    /// It speaks for a minority, without authority.
    pub(super) weak: bool,
    /// No daemon can tell: none of them hears a quorum.
    pub(super) unknown: bool,
    pub(super) term: Option<u64>,
    /// The rest of the lease, by what members have granted.
    pub(super) left: Option<Duration>,
    /// The most that was left of it so far: a full bar.
    pub(super) full: Duration,
}

/// By what groups are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Name,
    /// The shortest lease first.
    Left,
    Leader,
    /// The newest term first.
    Term,
}

impl Sort {
    /// The next one, round and round.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Name => Self::Left,
            Self::Left => Self::Leader,
            Self::Leader => Self::Term,
            Self::Term => Self::Name,
        }
    }

    /// In a word.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Left => "lease left",
            Self::Leader => "leader",
            Self::Term => "term",
        }
    }
}

/// All that is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) nodes: Vec<NodeRow>,
    groups: BTreeMap<String, GroupRow>,
    /// The newest first: when, and what.
    pub(super) events: VecDeque<(String, String)>,
    pub(super) sort: Sort,
    pub(super) filter: String,
    /// Whether keys go into the filter.
    pub(super) typing: bool,
    /// The group that is marked.
    pub(super) chosen: usize,
    seen: bool,
}

impl View {
    /// Takes over the daemons' answers.
    pub(super) fn update(&mut self, asked: &[Asked], time: &str) {
        let nodes: Vec<NodeRow> = asked.iter().map(|one| node_row(one, &self.nodes)).collect();
        let statuses: Vec<&api::Status> = asked.iter().filter_map(|one| one.status.as_ref().ok()).collect();
        let groups = merged(&statuses, &self.groups);
        if self.seen {
            let mut news = changes_of_nodes(&self.nodes, &nodes);
            news.extend(changes_of_groups(&self.groups, &groups));
            for what in news {
                self.events.push_front((time.to_owned(), what));
            }
            self.events.truncate(KEPT);
        }
        // A view without an answer yet knows of no change.
        self.seen |= !statuses.is_empty();
        (self.nodes, self.groups) = (nodes, groups);
        self.chosen = self.chosen.min(self.shown().len().saturating_sub(1));
    }

    /// The groups that the filter lets through, sorted.
    pub(super) fn shown(&self) -> Vec<&GroupRow> {
        let wanted = self.filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&wanted);
        let matches = |row: &&GroupRow| has(&row.group) || row.leader.as_deref().is_some_and(has);
        let mut rows: Vec<&GroupRow> = self.groups.values().filter(matches).collect();
        match self.sort {
            Sort::Name => {}
            Sort::Left => rows.sort_by_key(|row| row.left),
            Sort::Leader => rows.sort_by_key(|row| row.leader.clone()),
            Sort::Term => rows.sort_by_key(|row| std::cmp::Reverse(row.term)),
        }
        rows
    }

    /// How many groups there are.
    pub(super) fn total(&self) -> usize {
        self.groups.len()
    }

    /// Marks another group.
    pub(super) fn step(&mut self, by: isize) {
        let last = self.shown().len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(by).min(last);
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let node = |row: &NodeRow| {
            json!({
                "name": row.name,
                "endpoint": row.endpoint,
                "state": row.state,
                "why": if row.why.is_empty() { Value::Null } else { row.why.clone().into() },
                "version": if row.version.is_empty() { Value::Null } else { row.version.clone().into() },
                "epoch": row.epoch,
                "peers_answering": row.peers.map(|(answer, _)| answer),
                "peers": row.peers.map(|(_, all)| all),
                "round_trip_us": row.trip.map(|trip| u64::try_from(trip.as_micros()).unwrap_or(u64::MAX)),
                "led": row.led,
            })
        };
        let group = |row: &&GroupRow| {
            json!({
                "group": row.group,
                "leader": row.leader,
                "weak": row.weak,
                "unknown": row.unknown,
                "term": row.term,
                "lease_left_ms": row.left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
            })
        };
        json!({
            "nodes": self.nodes.iter().map(node).collect::<Vec<_>>(),
            "groups": self.shown().iter().map(group).collect::<Vec<_>>(),
        })
    }
}

fn node_row(asked: &Asked, before: &[NodeRow]) -> NodeRow {
    let endpoint = asked.endpoint.clone();
    let known = before.iter().find(|row| row.endpoint == endpoint);
    match &asked.status {
        Ok(status) => {
            let others = || status.members.iter().filter(|member| !member.me);
            let trip = others().filter_map(|member| member.round_trip_us).max();
            let state = match (status.ready, status.silent_for_ms) {
                (true, _) => "ready",
                (false, Some(_)) => "silent",
                (false, None) => "not ready",
            };
            NodeRow {
                name: status.name.clone(),
                endpoint,
                state,
                why: status.not_ready.join("; "),
                version: status.version.clone(),
                epoch: status.epoch,
                peers: Some((others().filter(|member| member.answers).count(), others().count())),
                trip: trip.map(Duration::from_micros),
                led: status.led,
            }
        }
        Err(failure) => NodeRow {
            name: known.map_or_else(|| endpoint.clone(), |row| row.name.clone()),
            endpoint,
            state: "no answer",
            why: failure.to_string(),
            version: String::new(),
            epoch: None,
            peers: None,
            trip: None,
            led: 0,
        },
    }
}

/// The groups as all daemons together describe them.
fn merged(statuses: &[&api::Status], before: &BTreeMap<String, GroupRow>) -> BTreeMap<String, GroupRow> {
    let mut told: BTreeMap<&str, Vec<&api::Group>> = BTreeMap::new();
    for group in statuses.iter().flat_map(|status| &status.groups) {
        told.entry(&group.group).or_default().push(group);
    }
    let row = |(name, told): (&str, Vec<&api::Group>)| {
        let full = before.get(name).map_or(Duration::ZERO, |row| row.full);
        (name.to_owned(), group_row(name, &told, full))
    };
    told.into_iter().map(row).collect()
}

fn group_row(name: &str, told: &[&api::Group], full: Duration) -> GroupRow {
    let leads = |group: &&&api::Group| matches!(group.state, api::State::Leader | api::State::Weak);
    // A leader of an older term is history; one that somebody else does not know of yet is not.
    let newest =
        told.iter().filter(leads).max_by_key(|group| (group.state == api::State::Leader, group.term));
    let last_term = told.iter().filter_map(|group| group.term).max();
    let over =
        |group: &&api::Group| group.state == api::State::Nobody && group.term >= newest.and_then(|n| n.term);
    let newest = newest.filter(|_| !told.iter().any(over));
    let of_newest = told.iter().filter(|group| newest.is_some_and(|newest| group.term == newest.term));
    let left = of_newest.filter_map(|group| group.leads_for_ms).max();
    let left = left.map(Duration::from_millis);
    GroupRow {
        group: name.to_owned(),
        leader: newest.and_then(|group| group.leader.clone()),
        weak: newest.is_some_and(|group| group.state == api::State::Weak),
        unknown: told.iter().all(|group| group.state == api::State::Unknown),
        term: newest.and_then(|group| group.term).or(last_term),
        left,
        full: full.max(left.unwrap_or_default()),
    }
}

fn changes_of_nodes(before: &[NodeRow], now: &[NodeRow]) -> Vec<String> {
    let mut news = Vec::new();
    for row in now {
        let Some(old) = before.iter().find(|old| old.endpoint == row.endpoint) else { continue };
        if old.state != row.state {
            let why = if row.why.is_empty() { String::new() } else { format!(": {}", row.why) };
            news.push(format!("{} is {}{why}", row.name, state_told(row.state)));
        }
        if row.epoch.is_some() && old.epoch.is_some() && old.epoch != row.epoch {
            news.push(format!("{} goes by epoch {}", row.name, row.epoch.unwrap_or_default()));
        }
    }
    news
}

fn state_told(state: &'static str) -> &'static str {
    if state == "no answer" { "gone" } else { state }
}

fn changes_of_groups(before: &BTreeMap<String, GroupRow>, now: &BTreeMap<String, GroupRow>) -> Vec<String> {
    let mut news = Vec::new();
    for (name, row) in now {
        let old = before.get(name);
        let (led, leads) = (old.and_then(|old| old.leader.as_ref()), row.leader.as_ref());
        if led == leads && old.is_some_and(|old| old.term == row.term || leads.is_none()) {
            continue;
        }
        match leads {
            Some(leader) if row.weak => news.push(format!("{name}: {leader} speaks for a minority")),
            Some(leader) => {
                news.push(format!("{name}: {leader} leads, term {}", row.term.unwrap_or_default()));
            }
            None if led.is_some() && row.unknown => {
                news.push(format!("{name}: it is not known who leads"));
            }
            None if led.is_some() => news.push(format!("{name}: nobody leads")),
            None => {}
        }
    }
    news
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::failure::messages;

    /// A daemon that knows of these groups: name, leader, term, what is left.
    pub(in crate::commands::top) fn daemon(name: &str, groups: &[(&str, Option<&str>, u64, u64)]) -> Asked {
        let group = |(name, leader, term, left): &(&str, Option<&str>, u64, u64)| {
            json!({
                "group": name, "state": if leader.is_some() { "leader" } else { "nobody" }, "leader": leader, "term": term,
                "leads_for_ms": leader.map(|_| left), "granted_for_ms": null, "led_here": false, "lease_remaining_ms": null,
                "campaigned_here": false, "edict": null, "nearest": null,
            })
        };
        let member = |peer: &str| {
            json!({
                "name": peer, "address": "127.0.0.1:7400", "me": peer == name, "answers": true, "heard_ago_ms": 3,
                "round_trip_us": if peer == name { None } else { Some(450) }, "clock_trusted": true,
                "store": null, "condemned": false,
            })
        };
        let members = ["n1", "n2", "n3"].map(member);
        let told: Vec<Value> = groups.iter().map(group).collect();
        let status = json!({
            "name": name, "role": "member", "version": "0.1.0", "cluster": "c", "epoch": 1, "is_member": true,
            "ready": true, "not_ready": [], "silent_for_ms": null, "uptime_ms": 5, "addresses": [], "lease_ms": 2000, "charter": null,
            "members": members, "groups": told,
            "groups_total": groups.len(), "led": 0,
            "terms": { "top": 8, "packed": "plenty", "packed_left_days": null, "doubted": null, "barred": [] },
            "counts": {
                "terms_won": 0, "terms_lost": 0, "renewals": 0, "granted": 0, "refused": 0, "clock_faults": 0,
                "datagrams_sent": 0, "datagrams_received": 0, "persisted": 0,
            },
        });
        Asked { endpoint: format!("http://{name}"), status: Ok(serde_json::from_value(status).unwrap()) }
    }

    pub(in crate::commands::top) fn dead(name: &str) -> Asked {
        Asked { endpoint: format!("http://{name}"), status: Err(messages::no_daemon("refused")) }
    }

    fn events(view: &View) -> Vec<&str> {
        view.events.iter().rev().map(|(_, what)| what.as_str()).collect()
    }

    #[test]
    fn the_newest_term_that_any_daemon_knows_is_shown_with_the_longest_grant() {
        let mut view = View::default();
        let asked = [
            daemon("n1", &[("jobs", Some("a"), 7, 900)]),
            daemon("n2", &[("jobs", Some("b"), 8, 1200)]),
            daemon("n3", &[("jobs", Some("b"), 8, 1500)]),
        ];
        view.update(&asked, "12:00:00");
        let row = view.shown()[0].clone();
        assert_eq!(
            (row.leader.as_deref(), row.term, row.left),
            (Some("b"), Some(8), Some(Duration::from_millis(1500)))
        );
        assert!(view.events.is_empty(), "what was so from the beginning is no event");
    }

    #[test]
    fn a_leader_of_whom_a_member_says_that_it_is_over_leads_no_more() {
        let mut view = View::default();
        let asked = [daemon("n1", &[("jobs", Some("a"), 7, 5)]), daemon("n2", &[("jobs", None, 7, 0)])];
        view.update(&asked, "12:00:00");
        assert_eq!(view.shown()[0].leader, None);
    }

    #[test]
    fn changes_become_events() {
        let mut view = View::default();
        view.update(&[daemon("n1", &[("jobs", Some("a"), 7, 900)]), daemon("n2", &[])], "12:00:00");
        view.update(&[daemon("n1", &[("jobs", None, 7, 0)]), dead("n2")], "12:00:01");
        view.update(
            &[daemon("n1", &[("jobs", Some("b"), 8, 900), ("more", Some("b"), 9, 1)]), daemon("n2", &[])],
            "12:00:02",
        );
        assert_eq!(
            events(&view),
            [
                "n2 is gone: no daemon answers: refused; start one with `tenure up` or `tenure node`, or name another with --endpoint URL",
                "jobs: nobody leads",
                "n2 is ready",
                "jobs: b leads, term 8",
                "more: b leads, term 9"
            ]
        );
    }

    #[test]
    fn groups_are_filtered_by_group_and_leader_and_sorted() {
        let mut view = View::default();
        let groups =
            [("app/a", Some("zoe"), 3, 700), ("app/b", Some("amy"), 9, 300), ("other", Some("zoe"), 5, 500)];
        view.update(&[daemon("n1", &groups)], "12:00:00");
        let names = |view: &View| view.shown().iter().map(|row| row.group.clone()).collect::<Vec<_>>();
        assert_eq!(names(&view), ["app/a", "app/b", "other"]);
        view.sort = view.sort.next();
        assert_eq!(names(&view), ["app/b", "other", "app/a"], "by what is left");
        view.sort = view.sort.next();
        assert_eq!(names(&view), ["app/b", "app/a", "other"], "by leader");
        view.sort = view.sort.next();
        assert_eq!(names(&view), ["app/b", "other", "app/a"], "the newest term first");
        view.filter = "ZO".to_owned();
        assert_eq!(names(&view), ["other", "app/a"]);
        view.step(5);
        assert_eq!(view.chosen, 1);
        view.step(-9);
        assert_eq!(view.chosen, 0);
    }
}
