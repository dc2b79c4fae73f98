//! Work that leads: async closures, authorities, time to clean up, and what leaders publish.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tenure::{Campaign, CampaignError, Clock, Loss, MAX_PROCLAIM, NodeName, OperatorRequest, Role, Stopped};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::waiting::within;

const SOON: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn work_is_an_async_closure_that_borrows() {
    let cluster = Cluster::found(1, LEASE);
    let nodes = cluster.start().await;
    let (mut terms, names) = (Vec::new(), vec!["of the caller".to_owned()]);
    for _ in 0..2 {
        let work = nodes[0].lead("jobs", async |tenure| {
            terms.push(tenure.term());
            tokio::task::yield_now().await;
            names[0].as_str()
        });
        assert_eq!(within("the work", SOON, work).await, Ok("of the caller"));
    }
    assert!(terms[0] < terms[1], "{terms:?}");
}

#[tokio::test]
async fn work_may_be_spawned() {
    let cluster = Cluster::found(1, LEASE);
    let node = cluster.start().await.remove(0);
    let mut count = 0;
    let work = tokio::spawn(node.lead("jobs", async move |tenure| {
        count += 1;
        tokio::task::yield_now().await;
        (tenure.is_leader(), count)
    }));
    assert_eq!(within("the work", SOON, work).await.expect("no panic"), Ok((true, 1)));
}

#[tokio::test]
async fn an_authority_that_is_held_delays_no_hand_over() {
    let cluster = Cluster::found(3, Duration::from_secs(60));
    let nodes = cluster.start().await;
    let first = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let authority = first.authority();
    assert!(authority.is_leader() && nodes[0].leads("jobs") && !nodes[1].leads("jobs"));
    assert!(authority.edict().expect("it leads").number < first.edict().expect("it leads").number);
    let until = first.until().expect("it leads");
    first.resign();
    let second = within("the next", SOON, nodes[1].campaign("jobs")).await.expect("it is elected");
    assert!(Clock::boot().read() < until, "the grants were released before the lease ran out");
    assert!(!authority.is_leader() && authority.edict().is_err() && authority.term() < second.term());
    assert_eq!(authority.lost().await, Loss::Resigned);
    assert!(!nodes[0].leads("jobs") && nodes[1].leads("jobs"));
    assert!(nodes[0].authority("jobs").is_none() && nodes[1].authority("jobs").is_some());
}

#[tokio::test]
async fn work_that_is_cancelled_by_an_operator_cleans_up_before_the_leadership_is_given_up() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let led_meanwhile = Arc::new(AtomicBool::new(false));
    let (node, noted) = (nodes[0].clone(), led_meanwhile.clone());
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let how = Campaign::default().cleanup(SOON);
    let _work = tokio::spawn(node.lead_with("jobs", how, async move |tenure| {
        let _ = begun.send(());
        tenure.cancelled().await;
        tokio::time::sleep(Duration::from_millis(50)).await; // It takes several polls to clean up.
        noted.store(tenure.is_leader(), SeqCst);
    }));
    within("the work", SOON, begins.recv()).await.expect("it begins");
    within("the order", SOON, nodes[1].ask("jobs", OperatorRequest::Resign)).await.expect("it is done");
    assert!(led_meanwhile.load(SeqCst), "it led until it had cleaned up");
}

#[tokio::test]
async fn work_that_is_lost_cleans_up_and_work_that_does_not_end_is_dropped_in_time() {
    let cluster = Cluster::found(1, LEASE);
    let node = cluster.start().await.remove(0);
    let cleaned = Arc::new(AtomicBool::new(false));
    for (cleanup, hangs) in [(SOON, false), (Duration::from_millis(50), true)] {
        cleaned.store(false, SeqCst);
        let (ours, noted) = (node.clone(), cleaned.clone());
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let how = Campaign::default().cleanup(cleanup);
        let work = tokio::spawn(ours.lead_with("jobs", how, async move |tenure| {
            let _ = begun.send(tenure.clone());
            tenure.cancelled().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
            noted.store(true, SeqCst);
            if hangs {
                std::future::pending::<()>().await;
            }
        }));
        let tenure = within("the work", SOON, begins.recv()).await.expect("it begins");
        if hangs {
            node.clone().shutdown().await;
            let over = within("the end", SOON, work).await.expect("no panic");
            assert_eq!(over, Err(CampaignError::Stopped(Stopped::ShutDown)));
        } else {
            tenure.resign();
            assert_eq!(within("the end", SOON, work).await.expect("no panic"), Ok(()));
        }
        assert!(cleaned.load(SeqCst));
    }
}

#[tokio::test]
async fn what_a_leader_publishes_is_found_beside_its_name_and_term() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let observer = tenure::Node::start(cluster.outsider("eye", Role::Observer)).await.expect("it starts");
    let watch = observer.observe("jobs").await.expect("it observes");
    assert_eq!(watch.leader(), None);
    let too_long = Campaign::default().publish(vec![0; MAX_PROCLAIM + 1]);
    let refused = nodes[0].campaign_with("jobs", too_long).await.map(|_| ());
    assert_eq!(refused, Err(CampaignError::TooLong { length: MAX_PROCLAIM + 1 }));
    for (node, name, address) in [(0, "a", "10.0.0.1:80"), (1, "b", "10.0.0.2:80")] {
        let how = Campaign::default().publish(address);
        let elected = nodes[node].campaign_with("jobs", how);
        let tenure = within("a leader", SOON, elected).await.expect("it is elected");
        let leader = within("its address", SOON, async {
            loop {
                let leader = watch.published().await.expect("it runs");
                if leader.term >= tenure.term() {
                    break leader;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!((leader.name, leader.term), (NodeName::new(name).ok(), tenure.term()));
        assert_eq!(leader.published.as_deref(), Some(address.as_bytes()));
    }
}
