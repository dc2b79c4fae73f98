//! Handles that come and go: campaigns that are cancelled, guards that outlive their node, losses
//! that are noticed early.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tenure::{CampaignError, Clock, Loss, Node};
use tenure_testkit::chance::Chance;
use tenure_testkit::cluster::Cluster;
use tenure_testkit::waiting::within;

const SOON: Duration = Duration::from_secs(60);
/// A leader renews at half of it: one that is not run for two seconds, on a machine that does much
/// else, leads on.
const LEASE: Duration = Duration::from_secs(5);

fn now() -> u64 {
    Clock::boot().read().as_nanos()
}

#[tokio::test]
async fn a_second_campaign_that_is_cancelled_leaves_the_first_alone() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let leader = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let other = nodes[1].clone();
    let first = tokio::spawn(async move { other.campaign("jobs").await });
    tokio::time::sleep(LEASE / 10).await;
    let mut unanswered = 0;
    for _ in 0..50 {
        let mut second = pin!(nodes[1].campaign("jobs"));
        let begun = second.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        unanswered += usize::from(begun.is_pending());
    }
    assert!(unanswered > 0, "each was answered before it could be dropped: this was no test");
    tokio::time::sleep(LEASE / 10).await;
    assert!(!first.is_finished(), "the first goes on waiting");
    leader.resign();
    assert!(within("the first", SOON, first).await.expect("no panic").expect("it is elected").is_leader());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaigns_that_are_cancelled_at_any_time_leave_nothing_behind() {
    let mut chance = Chance::new_and_tell();
    let cluster = Cluster::found(3, LEASE);
    let nodes = Arc::new(cluster.start().await);
    let tasks: Vec<_> = (0..6)
        .map(|task| {
            let (nodes, mut chance) = (nodes.clone(), Chance::new(chance.number()));
            tokio::spawn(async move {
                let mut won = 0;
                for _ in 0..60 {
                    won += usize::from(once(&nodes[task % 3], &mut chance).await);
                }
                won
            })
        })
        .collect();
    let mut won = 0;
    for task in tasks {
        won += within("the tasks", SOON * 4, task).await.expect("no panic");
    }
    assert!(won > 0, "nobody ever led: this was no test");
    for node in nodes.iter() {
        let tenure = within("a leader afterwards", SOON, node.campaign("jobs")).await.expect("it is free");
        assert!(tenure.is_leader());
    }
    for node in nodes.iter() {
        within("nobody leads", SOON, async {
            while node.status().await.expect("it runs").led > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
}

/// A campaign that is cancelled after a while, or else won and held for a little. Says whether it
/// was won.
async fn once(node: &Node, chance: &mut Chance) -> bool {
    let longest = 1 << chance.below(16);
    let patience = Duration::from_micros(chance.below(longest));
    match tokio::time::timeout(patience, node.campaign("jobs")).await {
        Err(_) => false,
        Ok(Err(CampaignError::AlreadyCampaigning { .. })) => {
            tokio::time::sleep(Duration::from_millis(1)).await;
            false
        }
        Ok(Err(error)) => panic!("nobody stopped this node: {error}"),
        Ok(Ok(tenure)) => {
            tokio::time::sleep(Duration::from_micros(chance.below(3000))).await;
            tenure.edict().is_ok()
        }
    }
}

#[tokio::test]
async fn a_node_that_is_dropped_ends_its_guards_and_lets_their_leases_run_out() {
    let cluster = Cluster::found(3, LEASE);
    let mut nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let other = nodes[1].clone();
    let next = tokio::spawn(async move { other.campaign("jobs").await });
    tokio::time::sleep(LEASE / 10).await;
    let at = now();
    let left = u64::try_from(tenure.remaining().expect("it leads").as_nanos()).expect("it is short");
    drop(nodes.remove(0));
    assert_eq!(within("the loss", SOON, tenure.lost()).await, Loss::Stopped);
    assert!(!tenure.is_leader() && tenure.edict().is_err());
    drop(within("the next", SOON, next).await.expect("no panic").expect("it is elected"));
    assert!(now() >= at + left, "work that held the guard might still have been writing");
}

#[tokio::test]
async fn a_node_that_is_shut_down_says_so_to_its_guards() {
    let cluster = Cluster::found(3, LEASE);
    let mut nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    nodes.remove(0).shutdown().await;
    assert!(!tenure.is_leader());
    assert_eq!(within("the loss", SOON, tenure.lost()).await, Loss::Stopped);
    assert!(within("the next", SOON, nodes[0].campaign("jobs")).await.expect("it is free").is_leader());
}

#[tokio::test]
async fn who_sees_by_the_clock_that_its_lease_is_over_may_campaign_again_at_once() {
    // Short: the clocks of others are not to be compared with this one before it is over.
    let lease = Duration::from_secs(1);
    let cluster = Cluster::found(3, lease);
    let (clock, hand) = Clock::by_hand();
    let mut config = cluster.member(0);
    config.time = clock;
    let node = Node::start(config).await.expect("it starts");
    let _others = [
        Node::start(cluster.member(1)).await.expect("it starts"),
        Node::start(cluster.member(2)).await.expect("it starts"),
    ];
    let first = within("a leader", SOON, node.campaign("jobs")).await.expect("it is elected");
    for _ in 0..5 {
        hand.suspend(lease * 2);
        assert!(!first.is_leader(), "the lease is over");
        let again = within("a leader", SOON, node.campaign("jobs")).await.expect("nothing is in the way");
        assert!(again.term() > first.term());
    }
}
