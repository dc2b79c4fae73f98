//! Two clusters of one id and key: as soon as they hear of each other nobody leads in either, until
//! an operator decides.

use std::time::Duration;

use tenure::{Config, MemberChange, Node, NotReady, Role, StartError, Term};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::waiting::within;

/// A leader renews at half of it: one that is not run for two seconds, on a machine that does much
/// else, leads on.
const LEASE: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_secs(60);

fn is_split(why: &NotReady) -> bool {
    matches!(why, NotReady::SplitBrain { .. })
}

async fn stops(node: &Node) {
    let stopped = async {
        while !node.status().await.expect("it runs").not_ready.iter().any(is_split) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("the split brain to be seen", SOON, stopped).await;
}

/// A cluster of b and c who were founded with a; and a, who was founded alone under the same id and
/// key.
fn founded_twice() -> (Cluster, Config) {
    let cluster = Cluster::found(3, LEASE);
    let mut alone = cluster.member(0);
    alone.members.truncate(1);
    alone.store = Some(cluster.path("alone"));
    Node::found(&alone, cluster.id, Term(1000)).expect("it is founded");
    (cluster, alone)
}

#[tokio::test]
async fn clusters_that_were_founded_twice_have_no_leader_once_they_hear_of_each_other() {
    let (cluster, alone) = founded_twice();
    let a = Node::start(alone.clone()).await.expect("it starts");
    let led = within("a leader", SOON, a.campaign("jobs")).await.expect("it is elected");
    let b = Node::start(cluster.member(1)).await.expect("it starts");
    let c = Node::start(cluster.member(2)).await.expect("it starts");
    let mut campaign = Box::pin(b.campaign("jobs"));
    for node in [&a, &b, &c] {
        stops(node).await;
    }
    assert!(!led.is_leader());
    assert_eq!(within("the loss", SOON, led.lost()).await, tenure::Loss::SplitBrain);
    assert!(!a.status().await.expect("it runs").ready);
    drop(led);
    let mut again = Box::pin(a.campaign("jobs"));
    let two = async { tokio::join!(&mut campaign, &mut again) };
    tokio::time::timeout(LEASE, two).await.expect_err("nobody leads");
}

#[tokio::test]
async fn a_restart_does_not_forget_a_split_brain_and_an_operator_ends_it() {
    let (cluster, alone) = founded_twice();
    let a = Node::start(alone.clone()).await.expect("it starts");
    let b = Node::start(cluster.member(1)).await.expect("it starts");
    let c = Node::start(cluster.member(2)).await.expect("it starts");
    for node in [&a, &b, &c] {
        stops(node).await;
    }
    // The operator ends a's cluster; b and c do not go on by themselves.
    a.shutdown().await;
    b.shutdown().await;
    let b = Node::start(cluster.member(1)).await.expect("it starts");
    let status = b.status().await.expect("it runs");
    assert!(status.not_ready.iter().any(is_split), "{:?}", status.not_ready);
    assert_eq!(b.accept_lineage().await, Ok(true));
    assert_eq!(c.accept_lineage().await, Ok(true));
    assert_eq!(c.accept_lineage().await, Ok(false));
    drop(within("a leader", SOON, b.campaign("jobs")).await.expect("it is elected"));

    // If it was not ended, they stop again.
    let _a = Node::start(alone).await.expect("it starts");
    stops(&b).await;
}

#[tokio::test]
async fn two_halves_that_gave_each_other_up_both_stop() {
    let cluster = Cluster::found(2, LEASE);
    let mut nodes = cluster.start().await;
    drop(within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected"));
    let give_up = async |node: &Node, gone: &str| {
        let force = MemberChange::ForceRemove { powered_off: vec![gone.into()], floor: None };
        let changing = node.change_members(&force).expect("it can be asked for");
        within("the change", SOON, changing.done()).await.expect("it is done");
    };
    nodes.pop().expect("b").shutdown().await;
    give_up(&nodes[0], "b").await;
    nodes.pop().expect("a").shutdown().await;
    let b = Node::start(cluster.member(1)).await.expect("it starts");
    give_up(&b, "a").await;
    drop(within("a leader of b alone", SOON, b.campaign("jobs")).await.expect("it is elected"));

    let a = Node::start(cluster.member(0)).await.expect("it starts");
    stops(&a).await;
    stops(&b).await;
    let two = async { tokio::join!(a.campaign("jobs"), b.campaign("jobs")) };
    tokio::time::timeout(LEASE, two).await.expect_err("nobody leads");
}

#[tokio::test]
async fn a_candidate_refuses_members_of_another_founding_than_it_was_configured_for() {
    let cluster = Cluster::found(1, LEASE);
    let _node = cluster.start().await;
    let mut config = cluster.outsider("app", Role::Candidate);
    config.lineage = Some(7);
    let app = Node::start(config.clone()).await.expect("it starts");
    within("the refusal", SOON, async {
        let refused = |why: &NotReady| matches!(why, NotReady::OtherLineage { .. });
        while !app.status().await.expect("it runs").not_ready.iter().any(refused) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    app.shutdown().await;

    config.lineage = Some(Node::founding_lineage(&cluster.member(0), cluster.id).expect("it is founded"));
    let app = Node::start(config).await.expect("it starts");
    drop(within("a leader", SOON, app.campaign("jobs")).await.expect("it is elected"));
}

#[tokio::test]
async fn a_member_s_store_of_another_founding_than_configured_is_refused() {
    let cluster = Cluster::found(1, LEASE);
    let mut config = cluster.member(0);
    config.lineage = Some(7);
    let error = Node::start(config.clone()).await.expect_err("it is another");
    assert!(matches!(error, StartError::Config(tenure::ConfigError::Lineage { here: 7, .. })), "{error}");
    config.store = Some(cluster.path("anew"));
    let error = Node::found(&config, cluster.id, Term(1)).expect_err("it is another").to_string();
    assert!(error.contains("lineage"), "{error}");
}
