//! Weak elections among real nodes: whichever advises candidates when to try, one is elected, and
//! after its end another.

use std::time::Duration;

use tenure::{Node, NodeName, Tenure, WeakElection};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::waiting::within;
use tokio::sync::mpsc::{self, UnboundedSender};

/// A leader renews at half of it: one that is not run for two seconds, on a machine that does much
/// else, leads on.
const LEASE: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_secs(60);

/// All nodes campaign, and go on for as long as they run. The elected one is told.
fn campaign(nodes: &[Node], elected: &UnboundedSender<(NodeName, Tenure)>) {
    for node in nodes {
        let (node, elected) = (node.clone(), elected.clone());
        tokio::spawn(async move {
            while let Ok(tenure) = node.campaign("jobs").await {
                let _ = elected.send((node.name().clone(), tenure.clone()));
                tenure.lost().await;
            }
        });
    }
}

#[tokio::test]
async fn by_omega_one_of_three_is_elected_and_when_it_stops_without_a_word_another() {
    let cluster = Cluster::found(3, LEASE);
    let (nodes, hands) = cluster.start_by_hand(WeakElection::Omega).await;
    let (elected, mut told) = mpsc::unbounded_channel();
    campaign(&nodes, &elected);
    let (first, tenure) = within("a leader", SOON, told.recv()).await.expect("they campaign");
    assert!(tenure.is_leader());

    let index = nodes.iter().position(|node| *node.name() == first).expect("it is one of them");
    // A node whose clock is broken has nothing more to say: its lease is not given back, it runs
    // out.
    hands[index].back(Duration::from_secs(10));
    let (second, next) = within("a successor", SOON, told.recv()).await.expect("they campaign");
    assert_ne!(second, first);
    assert!(next.is_leader() && !tenure.is_leader());
    assert!(next.term() > tenure.term());
}
