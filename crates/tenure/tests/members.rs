//! Members change while a leader goes on leading.

mod support;

use std::time::Duration;

use support::{Cluster, free_addresses, within};
use tenure::{ClockBound, Config, MemberChange, MembersError, Node, Peer, Progress, Role, Tenure};

const LEASE: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_secs(20);

/// A node that is to become a member: joined, and running.
async fn newcomer(cluster: &Cluster, name: &str) -> (Node, Peer) {
    let address = free_addresses(1)[0];
    let mut config: Config = cluster.outsider(name, Role::Member);
    config.listen = vec![address];
    config.store = Some(cluster.path(name));
    Node::join(&config, cluster.id).expect("a new store");
    let node = Node::start(config).await.expect("it starts");
    (node, Peer { name: name.to_owned(), address: address.to_string() })
}

async fn change(node: &Node, change: MemberChange) -> u64 {
    let changing = node.change_members(&change).expect("it can be asked for");
    within("the change", SOON, changing.done()).await.expect("it is done").0
}

fn leads_on(tenure: &Tenure) {
    assert!(tenure.is_leader(), "the leader of term {} was deposed", tenure.term());
}

#[tokio::test]
async fn members_come_and_go_and_the_leader_stays() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let (d, peer) = newcomer(&cluster, "d").await;
    assert!(!d.status().await.expect("it runs").is_member, "nobody has added it");

    assert_eq!(change(&nodes[0], MemberChange::Add(peer)).await, 1);
    leads_on(&tenure);
    within("the newcomer", SOON, d.ready()).await.expect("it runs");
    let status = d.status().await.expect("it runs");
    assert!(status.is_member);
    assert_eq!(status.members.len(), 4);

    assert!(change(&nodes[1], MemberChange::Remove("c".into())).await >= 2);
    leads_on(&tenure);
    let (_e, peer) = newcomer(&cluster, "e").await;
    assert!(change(&nodes[1], MemberChange::Replace { old: "b".into(), new: peer }).await >= 3);
    tokio::time::sleep(LEASE * 3).await;
    leads_on(&tenure);

    // b and c are gone: a, d and e are the cluster.
    let members = nodes[0].status().await.expect("it runs").members;
    let names: Vec<&str> = members.iter().map(tenure::NodeName::as_str).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(["a", "d", "e"].iter().all(|name| names.contains(name)), "{names:?}");
}

#[tokio::test]
async fn a_change_tells_its_progress_and_what_is_wrong_with_it() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let mut changing = nodes[0].change_members(&MemberChange::LongestLease(LEASE * 3)).expect("it can be asked for");
    assert!(matches!(within("a step", SOON, changing.next()).await, Some(Progress::Epoch(epoch)) if epoch.0 == 1));
    assert!(matches!(within("the end", SOON, changing.next()).await, Some(Progress::Done(epoch)) if epoch.0 == 1));

    let twice = nodes[0].change_members(&MemberChange::Add(Peer { name: "b".into(), address: "127.0.0.1:1".into() }));
    let refused = within("an answer", SOON, twice.expect("it can be asked for").done()).await;
    assert!(matches!(refused, Err(MembersError::Halted { .. })), "{refused:?}");

    let never = MemberChange::Bound(ClockBound::Drift { ppm: 1_000_000 });
    assert!(matches!(nodes[0].change_members(&never), Err(MembersError::Halted { .. })));
}

#[tokio::test]
async fn who_is_no_member_cannot_change_them() {
    let cluster = Cluster::found(3, LEASE);
    let _nodes = cluster.start().await;
    let app = Node::start(cluster.outsider("app", Role::Candidate)).await.expect("it starts");
    let refused = app.change_members(&MemberChange::Remove("a".into())).expect("it can be asked for").done().await;
    assert_eq!(refused, Err(MembersError::NotAMember));
}

#[tokio::test]
async fn a_member_whose_file_contradicts_the_cluster_does_not_start() {
    let cluster = Cluster::found(3, LEASE);
    let mut config = cluster.member(0);
    config.longest_lease = LEASE * 10;
    let error = Node::start(config).await.expect_err("the cluster rules").to_string();
    assert!(error.contains("longest_lease") && error.contains("members set"), "{error}");
}
