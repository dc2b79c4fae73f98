//! Eventual groups among real nodes: a hint that comes to be the same everywhere.

use std::time::Duration;

use tenure::{Eventual, Hand, Hint, KindError, MemberChange, Node, NodeName, Role, WeakElection};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::waiting::within;

/// δ is a fortieth of the longest lease, which is twice this: round trips of 200 ms are in time,
/// also on a busy machine.
const LEASE: Duration = Duration::from_secs(4);
const SOON: Duration = Duration::from_secs(60);

async fn take_part(nodes: &[Node]) -> Vec<Eventual> {
    let mut handles = Vec::new();
    for node in nodes {
        handles.push(node.eventual("pilot").await.expect("a member takes part"));
    }
    handles
}

/// Waits until all handles name one leader, which is one of `among`, and gives it with its epoch.
async fn agreement(handles: &[Eventual], among: &[&NodeName]) -> (NodeName, u128) {
    let agreed = async {
        loop {
            let hints: Vec<_> = handles.iter().map(Eventual::hint).collect();
            let same = hints.windows(2).all(|pair| pair[0] == pair[1]);
            match &hints[0].leader {
                Some(leader) if same && among.contains(&leader) => return (leader.clone(), hints[0].epoch),
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    within("one opinion", SOON, agreed).await
}

/// Waits until a member says of itself that it leads.
async fn leadership(handle: &Eventual) {
    let leads = async {
        while !handle.leads() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within("the agreed leader says that it leads", SOON, leads).await;
}

#[tokio::test]
async fn all_members_come_to_name_one_leader_and_after_its_end_another_of_a_larger_epoch() {
    let cluster = Cluster::found(3, LEASE);
    let mut nodes = cluster.start().await;
    let mut handles = take_part(&nodes).await;
    let names: Vec<NodeName> = nodes.iter().map(|node| node.name().clone()).collect();
    let (first, epoch) = agreement(&handles, &names.iter().collect::<Vec<_>>()).await;
    let index = names.iter().position(|name| *name == first).expect("it is one of them");
    leadership(&handles[index]).await;
    let leading: Vec<bool> = handles.iter().map(Eventual::leads).collect();
    assert!(leading.iter().enumerate().all(|(i, leads)| !leads || i == index), "{leading:?}");

    nodes.remove(index).shutdown().await;
    let mut handle = handles.remove(index);
    let over = async { while handle.changed().await.is_some() {} };
    within("a node that has ended has no opinion", SOON, over).await;
    let others: Vec<&NodeName> = names.iter().filter(|name| **name != first).collect();
    let (_, later) = agreement(&handles, &others).await;
    assert!(later > epoch, "{later} after {epoch}");
}

#[tokio::test]
async fn a_member_that_was_never_asked_takes_part_all_the_same() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let mut handle = nodes[0].eventual("pilot").await.expect("a member takes part");
    let leader = within("a leader, by the answers of the others", SOON, handle.leader()).await;
    assert!(leader.is_some());
}

#[tokio::test]
async fn a_member_that_is_restarted_agrees_with_the_others_again() {
    let cluster = Cluster::found(3, LEASE * 2); // A leader that is not run for a while is to be kept.
    let mut nodes = cluster.start().await;
    let handles = take_part(&nodes).await;
    let names: Vec<NodeName> = nodes.iter().map(|node| node.name().clone()).collect();
    let (leader, epoch) = agreement(&handles, &names.iter().collect::<Vec<_>>()).await;
    let index = names.iter().position(|name| *name != leader).expect("there are others");
    nodes.remove(index).shutdown().await;
    nodes.insert(index, Node::start(cluster.member(index)).await.expect("it starts again"));
    let handles = take_part(&nodes).await;
    let (after, later) = agreement(&handles, &names.iter().collect::<Vec<_>>()).await;
    assert_eq!((after, later), (leader, epoch), "a good leader is not demoted");
}

#[tokio::test]
async fn after_a_restart_of_all_with_one_gone_for_good_the_others_agree() {
    let cluster = Cluster::found(3, LEASE);
    let all = cluster.start().await;
    let handles = take_part(&all).await;
    agreement(&handles, &all.iter().map(Node::name).collect::<Vec<_>>()).await;
    for node in all {
        node.shutdown().await;
    }

    let nodes = vec![
        Node::start(cluster.member(0)).await.expect("it starts"),
        Node::start(cluster.member(1)).await.expect("it starts"),
    ];
    let handles = take_part(&nodes).await;
    let names: Vec<&NodeName> = nodes.iter().map(Node::name).collect();
    agreement(&handles, &names).await;
}

#[tokio::test]
async fn after_a_small_step_back_of_its_clock_a_member_comes_to_have_an_opinion_again() {
    let cluster = Cluster::found(3, LEASE * 2); // A leader that is not run for a while is to be kept.
    let (nodes, hands) = cluster.start_by_hand(WeakElection::default()).await;
    let mut handles = take_part(&nodes).await;
    let names: Vec<NodeName> = nodes.iter().map(|node| node.name().clone()).collect();
    let all: Vec<&NodeName> = names.iter().collect();
    let (leader, epoch) = agreement(&handles, &all).await;
    let place = |name: &NodeName| names.iter().position(|other| other == name).expect("it is one of them");
    let other = (place(&leader) + 1) % 3;

    lose_opinion(&mut handles[other], &hands[other]).await;
    assert_eq!(agreement(&handles, &all).await, (leader.clone(), epoch), "its leader has done nothing wrong");

    lose_opinion(&mut handles[place(&leader)], &hands[place(&leader)]).await;
    let (after, later) = agreement(&handles, &all).await;
    leadership(&handles[place(&after)]).await;
    assert!(later > epoch, "{after} by {later} after {leader} by {epoch}");
}

/// Turns a member's clock back a little, so that it must not go by what it knew.
async fn lose_opinion(handle: &mut Eventual, hand: &Hand) {
    while within("an opinion", SOON, handle.changed()).await.expect("it runs").leader.is_none() {}
    // A node that reads the clock only after it is back sees no step: then it steps once more.
    let mut lost = None;
    for _ in 0..20 {
        hand.back(Duration::from_millis(40));
        lost = tokio::time::timeout(Duration::from_millis(1500), handle.changed()).await.ok().flatten();
        if lost.is_some() {
            break;
        }
    }
    assert_eq!(lost, Some(Hint::default()), "no reading vouches for what was shown");
    assert!(!handle.leads());
}

async fn change(node: &Node, change: MemberChange) {
    let changing = node.change_members(&change).expect("it can be asked for");
    within("the change", SOON, changing.done()).await.expect("it is done");
}

#[tokio::test]
async fn epochs_rise_over_changes_of_members_and_of_the_longest_lease() {
    let cluster = Cluster::found(4, LEASE);
    let nodes = cluster.start().await;
    let mut handles = take_part(&nodes).await;
    let names: Vec<NodeName> = nodes.iter().map(|node| node.name().clone()).collect();
    let (_, first) = agreement(&handles, &names.iter().collect::<Vec<_>>()).await;

    change(&nodes[0], MemberChange::Remove(names[3].to_string())).await;
    let mut removed = handles.pop().expect("four");
    // The handle ends. Whether it tells of the lost leader before depends on which came first, the
    // removal or this first call.
    let over = async { while removed.changed().await.is_some() {} };
    within("the handle of a removed member ends", SOON, over).await;
    assert_eq!((removed.hint(), removed.leads()), (Hint::default(), false), "it has no opinion");
    let left: Vec<&NodeName> = names[..3].iter().collect();
    let (_, second) = agreement(&handles, &left).await;

    change(&nodes[0], MemberChange::LongestLease(LEASE)).await;
    let (leader, third) = agreement(&handles, &left).await;
    assert_eq!([first, second, third].map(|epoch| epoch >> 96), [0, 1, 2], "the cluster's epoch comes first");
    leadership(&handles[left.iter().position(|name| **name == leader).expect("it is one of them")]).await;
}

#[tokio::test]
async fn a_member_that_was_down_while_the_cluster_changed_learns_of_it_from_hints_alone() {
    let cluster = Cluster::found(3, LEASE);
    let mut nodes = cluster.start().await;
    let names: Vec<NodeName> = nodes.iter().map(|node| node.name().clone()).collect();
    nodes.pop().expect("three").shutdown().await;
    change(&nodes[0], MemberChange::LongestLease(LEASE)).await;
    nodes.push(Node::start(cluster.member(2)).await.expect("it starts again"));

    let mut handles = take_part(&nodes).await;
    agreement(&handles, &names.iter().collect::<Vec<_>>()).await;
    // With the first gone, nobody leads without it.
    nodes.remove(0).shutdown().await;
    handles.remove(0);
    let (_, epoch) = agreement(&handles, &[&names[1], &names[2]]).await;
    assert_eq!(epoch >> 96, 1, "by the charter that it missed");
}

#[tokio::test]
async fn only_members_take_part() {
    let cluster = Cluster::found(1, LEASE);
    let _nodes = cluster.start().await;
    let outsider = Node::start(cluster.outsider("app", Role::Candidate)).await.expect("it starts");
    let refused = outsider.eventual("pilot").await.expect_err("it is no member");
    assert_eq!(refused, KindError::NotAMember { role: "candidate" });
    assert!(matches!(outsider.eventual("").await, Err(KindError::Name(_))));
}
