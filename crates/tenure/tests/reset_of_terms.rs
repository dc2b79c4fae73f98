//! Terms that are absurdly high are set anew by an operator.

mod support;

use std::time::Duration;

use support::{Cluster, within};
use tenure::{Campaign, CampaignError, MemberChange, MembersError, Node, Term};

const LEASE: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(30);
const ABSURD: Term = Term(1 << 40);

/// Three members of which one has led `evil` in an absurd term: an operator had confirmed it
/// everywhere, by mistake.
async fn absurd(cluster: &Cluster) -> Vec<Node> {
    let nodes = cluster.start().await;
    for node in &nodes {
        within("readiness", SOON, node.ready()).await.expect("it runs");
        node.confirm_term(ABSURD);
    }
    let how = Campaign::default().above(Term(ABSURD.0 - 1));
    let tenure = within("a leader", SOON, nodes[0].campaign_with("evil", how)).await.expect("it is elected");
    assert_eq!(tenure.term(), ABSURD);
    tenure.resign();
    nodes
}

async fn reset(node: &Node, barred: &[&str]) -> Result<u64, MembersError> {
    let barred = barred.iter().map(|name| (*name).to_owned()).collect();
    let change = MemberChange::ResetTerms { floor: None, barred };
    let changing = node.change_members(&change).expect("it can be asked for");
    within("the change", SOON, changing.done()).await.map(|epoch| epoch.0)
}

#[tokio::test]
async fn terms_fall_again_for_all_groups_but_the_barred_one_which_nobody_leads_again() {
    let cluster = Cluster::found(3, LEASE);
    let nodes = absurd(&cluster).await;
    // Restarted members know of no group any more: all of them would go on above the ceiling.
    for node in nodes {
        node.shutdown().await;
    }
    let nodes = cluster.start().await;
    for node in &nodes {
        within("readiness", SOON, node.ready()).await.expect("it runs");
    }
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    assert!(tenure.term() > ABSURD, "{}", tenure.term());
    tenure.resign();

    let said = reset(&nodes[1], &["evil"]).await.expect_err("jobs has an absurd term too").to_string();
    assert!(said.contains("'jobs'") && said.contains("bar"), "{said}");
    reset(&nodes[1], &["evil", "jobs"]).await.expect("it is done");
    for node in &nodes {
        let low = async {
            while node.status().await.expect("it runs").terms.top >= Term(1 << 31) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within("low terms at every member", SOON, low).await;
    }
    let tenure = within("a leader", SOON, nodes[2].campaign("others")).await.expect("it is elected");
    assert!(tenure.term() > tenure::term_floor() && tenure.term() < Term(1 << 31), "{}", tenure.term());
    let refused = within("an answer", SOON, nodes[0].campaign("evil")).await.expect_err("it is barred");
    assert!(matches!(refused, CampaignError::Barred { .. }), "{refused}");
}

#[tokio::test]
async fn without_all_members_nothing_is_reset_and_the_others_go_on() {
    let cluster = Cluster::found(3, LEASE);
    let mut nodes = absurd(&cluster).await;
    nodes.pop().expect("three").shutdown().await;
    let barred = vec!["evil".to_owned()];
    let change = MemberChange::ResetTerms { floor: None, barred };
    let mut changing = nodes[0].change_members(&change).expect("it can be asked for");
    let unheard = async {
        while let Some(progress) = changing.next().await {
            if matches!(&progress, tenure::Progress::Unheard { members } if members.len() == 1) {
                return;
            }
        }
        panic!("it ended");
    };
    within("word of the silent one", SOON, unheard).await;
    let tenure = within("a leader", SOON, nodes[1].campaign("jobs")).await.expect("it is elected");
    assert!(tenure.is_leader(), "nobody is sealed before all have promised");
}
