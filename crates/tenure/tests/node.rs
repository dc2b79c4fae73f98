//! A cluster in one process: what users of the library see.

use std::time::Duration;

use tenure::{CampaignError, Leadership, Loss, Node, NodeName, Role, Sight, TransferError};
use tenure_testkit::cluster::{Cluster, renewed};
use tenure_testkit::waiting::within;

/// A leader renews at half of it: one that is not run for two seconds, on a machine that does much
/// else, leads on.
const LEASE: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn one_of_three_leads_and_its_edicts_rise() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    assert!(tenure.is_leader());
    let (one, two) = (tenure.edict().expect("it leads"), tenure.edict().expect("it leads"));
    assert!(one.token() < two.token());
    assert!(tenure.token() < one.token());
}

#[tokio::test]
async fn a_leader_renews_for_as_long_as_it_is_held() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[1].campaign("jobs")).await.expect("it is elected");
    renewed(&nodes[1], 4).await;
    assert!(tenure.is_leader());
}

#[tokio::test]
async fn a_second_campaign_wins_when_the_first_guard_is_dropped() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let first = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let other = nodes[1].clone();
    let second = tokio::spawn(async move { other.campaign("jobs").await });
    tokio::time::sleep(LEASE / 10).await;
    assert!(!second.is_finished(), "somebody leads");
    let term = first.term();
    drop(first);
    let second = within("a successor", SOON, second).await.expect("no panic").expect("it is elected");
    assert!(second.term() > term);
}

#[tokio::test]
async fn a_guard_that_resigned_is_over_for_all_its_clones() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let clone = tenure.clone();
    tenure.resign();
    assert!(!clone.is_leader());
    assert!(clone.edict().is_err());
    assert_eq!(within("the loss", SOON, clone.lost()).await, Loss::Resigned);
}

#[tokio::test]
async fn one_node_campaigns_once_for_a_group() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let again = nodes[0].campaign("jobs").await;
    assert!(matches!(again, Err(CampaignError::AlreadyCampaigning { .. })), "{again:?}");
    assert!(within("another group", SOON, nodes[0].campaign("others")).await.expect("elected").is_leader());
    drop(tenure);
}

#[tokio::test]
async fn a_campaign_whose_future_is_dropped_leaves_nothing_behind() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let first = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    assert!(tokio::time::timeout(LEASE / 10, nodes[1].campaign("jobs")).await.is_err(), "somebody leads");
    drop(first);
    let third = within("a leader", SOON, nodes[2].campaign("jobs")).await.expect("nobody else wants to");
    renewed(&nodes[2], 2).await;
    assert!(third.is_leader());
    assert_eq!(nodes[1].status().await.expect("it runs").led, 0);
}

#[tokio::test]
async fn a_second_campaign_that_is_dropped_leaves_the_first_alone() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let first = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let waiting = nodes[1].clone();
    let waiting = tokio::spawn(async move { waiting.campaign("jobs").await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    for _ in 0..20 {
        tokio::select! {
            biased;
            again = nodes[1].campaign("jobs") => assert!(matches!(again, Err(CampaignError::AlreadyCampaigning { .. }))),
            () = std::future::ready(()) => {} // Mostly nobody has answered yet, and the future is dropped.
        }
    }
    drop(first);
    let second = within("the next leader", SOON, waiting).await.expect("no panic").expect("it is elected");
    assert!(second.is_leader());
}

#[tokio::test]
async fn leadership_is_handed_over_to_whom_the_leader_chooses() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let first = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let nobody = first.transfer(&NodeName::new("b").unwrap()).await;
    assert!(matches!(nobody, Err(TransferError::Declined { .. })), "b does not campaign: {nobody:?}");
    assert!(first.is_leader(), "it goes on");
    let other = nodes[2].clone();
    let second = tokio::spawn(async move { other.campaign("jobs").await });
    let successor = NodeName::new("c").unwrap();
    let handed = async {
        // Declined until the leader has heard that c campaigns.
        while first.transfer(&successor).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("the hand-over", SOON, handed).await;
    assert!(!first.is_leader());
    let second = within("the successor", SOON, second).await.expect("no panic").expect("it is elected");
    assert!(second.is_leader() && second.term() > first.term());
}

#[tokio::test]
async fn work_that_leads_is_run_and_resigns_when_it_ends() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let work = nodes[0].lead("jobs", async |tenure| tenure.edict().map(|edict| edict.number));
    assert_eq!(within("the work", SOON, work).await.expect("it leads"), Ok(1));
    assert!(within("the next", SOON, nodes[1].campaign("jobs")).await.expect("it is free").is_leader());
}

#[tokio::test]
async fn an_outsider_leads_by_the_quorum_of_others() {
    let cluster = Cluster::found(3, LEASE);
    let _nodes = cluster.start().await;
    let app = tenure::Node::start(cluster.outsider("app1", Role::Candidate)).await.expect("it starts");
    let tenure = within("a leader", SOON, app.campaign("app/main")).await.expect("it is elected");
    renewed(&app, 2).await;
    assert!(tenure.is_leader());
}

#[tokio::test]
async fn an_observer_sees_leaders_and_what_they_proclaim() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let observer = tenure::Node::start(cluster.outsider("eye", Role::Observer)).await.expect("it starts");
    let mut watch = observer.observe("jobs").await.expect("it observes");
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    let seen = loop {
        match within("a sight", SOON, watch.next()).await {
            Some(Sight::Leadership(Leadership::Leader { name, term })) => break (name, term),
            Some(_) => {}
            None => panic!("the observer has stopped"),
        }
    };
    assert_eq!(seen, (Some(NodeName::new("a").unwrap()), tenure.term()));
    let edict = tenure.proclaim(b"hear ye").expect("it leads");
    let Some(Sight::Edict(heard)) = within("the word", SOON, watch.next()).await else {
        panic!("not an edict")
    };
    assert_eq!((heard.token, heard.body.as_slice()), (edict.token(), b"hear ye".as_slice()));
    drop(tenure);
    let over = within("the end", SOON, watch.next()).await;
    assert!(matches!(over, Some(Sight::Leadership(Leadership::Nobody { .. }))), "{over:?}");
}

#[tokio::test]
async fn that_nobody_leads_any_more_is_heard_where_no_member_campaigns() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    for node in &nodes {
        within("readiness", SOON, node.ready()).await.expect("it runs");
    }
    let app = tenure::Node::start(cluster.outsider("app", Role::Candidate)).await.expect("it starts");
    let tenure = within("a leader", SOON, app.campaign("app/main")).await.expect("it is elected");
    let term = tenure.term();
    let mut watch = nodes[1].observe("app/main").await.expect("it observes");
    let mut next = async || loop {
        match within("a sight", SOON, watch.next()).await {
            Some(Sight::Leadership(Leadership::Weak { .. })) => {} // Before a quorum has answered.
            Some(Sight::Leadership(leadership)) => return leadership,
            Some(Sight::Edict(_)) => {}
            None => panic!("the node has stopped"),
        }
    };
    assert!(matches!(next().await, Leadership::Leader { term: seen, .. } if seen == term));
    tenure.resign();
    assert_eq!(next().await, Leadership::Nobody { after: term });
    // The others may have been told sooner: what this member has granted itself is given back by a
    // word of its own, or runs out. That the word comes first is not looked at here.
    let given_back = async {
        loop {
            let groups = nodes[1].groups().await.expect("it runs");
            let group = groups.iter().find(|group| group.group.as_str() == "app/main").expect("it is known");
            if group.holder.is_none() && !group.holder_known_to_lead {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("the end of its grant", SOON, given_back).await;
}

#[tokio::test]
async fn a_leader_that_is_asked_is_certain_for_a_while() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    for node in &nodes {
        // The answer may be older than that when it is read, on a machine that does much else: then
        // it is asked for again.
        let lasts = async {
            loop {
                let certain = node.verify("jobs", Duration::from_millis(80)).await.expect("somebody leads");
                assert_eq!((certain.leader.as_str(), certain.term), ("a", tenure.term()));
                if certain.remaining().is_some() {
                    return;
                }
            }
        };
        within("an answer that is certain for a while", SOON, lasts).await;
    }
    assert!(nodes[1].verify("nobody", Duration::from_millis(80)).await.is_err());
}

#[tokio::test]
async fn work_that_hangs_loses_its_tenure() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = cluster.start().await;
    let gate = tenure::Campaign::default().health(LEASE);
    let tenure = within("a leader", SOON, nodes[0].campaign_with("jobs", gate)).await.expect("it is elected");
    // For longer than it may be silent.
    for _ in 0..12 {
        tokio::time::sleep(LEASE / 10).await;
        tenure.heartbeat();
    }
    assert!(tenure.is_leader(), "it gave signs of life");
    assert_eq!(within("the loss", SOON, tenure.lost()).await, Loss::Unhealthy);
    assert!(!tenure.is_leader());
    assert!(
        within("the next", SOON, nodes[1].campaign("jobs")).await.expect("the lease ran out").is_leader()
    );
}

#[tokio::test]
async fn restarts_that_end_cleanly_cost_no_terms() {
    let cluster = Cluster::found(1, LEASE);
    let mut terms = Vec::new();
    for _ in 0..5 {
        let node = Node::start(cluster.member(0)).await.expect("it starts");
        let tenure = within("a leader", SOON, node.campaign("jobs")).await.expect("it is elected");
        terms.push(tenure.token().term().0);
        let top = node.status().await.expect("it runs").terms.top;
        assert_eq!(top, tenure.token().term());
        tenure.resign();
        node.shutdown().await;
    }
    let first = terms[0];
    assert_eq!(terms, (first..first + 5).collect::<Vec<u64>>(), "one term an election");
}
