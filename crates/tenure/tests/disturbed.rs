//! Machines that sleep, and virtual machines whose host disrupts their clocks.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure::{Clock, Config, Hand, Locality, Loss, Node, Suspends, Tenure, WeakElection};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::waiting::within;

/// A leader renews at half of it: one that is not run for two seconds, on a machine that does much
/// else, leads on.
const LEASE: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_secs(60);
/// Far less than a lease: by the clock alone it would be nothing.
const BLINK: Duration = Duration::from_millis(1);

async fn led() -> (Cluster, Vec<Node>, Vec<Hand>, Tenure) {
    let cluster = Cluster::found(3, LEASE);
    let (nodes, hands) = cluster.start_by_hand(WeakElection::default()).await;
    let tenure = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    (cluster, nodes, hands, tenure)
}

async fn is_silent(node: &Node) -> bool {
    node.status().await.expect("it runs").silent_for.is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_machine_slept_for_an_instant_leads_no_more() {
    let (_cluster, nodes, hands, tenure) = led().await;
    assert!(tenure.is_leader() && tenure.edict().is_ok());
    hands[0].suspend(BLINK);
    assert!(
        !tenure.is_leader() && tenure.edict().is_err(),
        "seen where it is used, whatever the driver knows"
    );
    assert_eq!(within("the loss", SOON, tenure.lost()).await, Loss::Disturbed);
    assert!(is_silent(&nodes[0]).await);
    let next = within("a successor", SOON, nodes[1].campaign("jobs")).await.expect("it is elected");
    assert!(next.is_leader() && next.term() > tenure.term() && !tenure.is_leader());
    // It is no fault: the very same node may lead again.
    next.resign();
    let again = within("a leader", SOON, nodes[0].campaign("jobs")).await.expect("it is elected");
    assert!(again.is_leader());
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_ends_because_its_lease_is_over_begins_anew_in_a_later_term() {
    let cluster = Cluster::found(3, LEASE);
    let (nodes, hands) = cluster.start_by_hand(WeakElection::default()).await;
    let mut terms = Vec::new();
    let work = nodes[0].lead("jobs", async |tenure| {
        if terms.is_empty() {
            hands[0].suspend(BLINK);
        }
        terms.push(tenure.term());
        tenure.edict().is_ok()
    });
    assert_eq!(within("the second run", SOON, work).await, Ok(true));
    assert!(terms.len() == 2 && terms[0] < terms[1], "{terms:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grantor_whose_machine_slept_is_silent_and_the_leader_leads_on_by_the_others() {
    let (_cluster, nodes, hands, tenure) = led().await;
    hands[1].suspend(BLINK);
    within("the silence", SOON, async {
        while !is_silent(&nodes[1]).await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(tenure.is_leader());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_verified_before_the_machine_slept_is_not_certain_any_more() {
    let (_cluster, nodes, hands, _tenure) = led().await;
    let certain = within("an answer", SOON, nodes[1].verify("jobs", LEASE)).await.expect("somebody leads");
    assert!(certain.remaining().is_some());
    hands[1].suspend(BLINK);
    assert_eq!(certain.remaining(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_leader_whose_machine_slept_leads_again_only_after_it_has_asked_anew() {
    let (_cluster, nodes, hands, _tenure) = led().await;
    let mut locals = Vec::new();
    for node in &nodes {
        locals.push(node.local("cache", &Locality::default()).await.expect("it takes part"));
    }
    let leads = async {
        loop {
            match locals.iter().position(tenure::Local::leads) {
                Some(index) => return index,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let leader = within("a local leader", SOON, leads).await;
    hands[leader].suspend(BLINK);
    assert!(!locals[leader].leads());
    within("a local leader", SOON, async {
        while !locals.iter().any(tenure::Local::leads) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_restarts_after_its_machine_slept_is_silent_and_one_that_only_restarts_is_not() {
    let cluster = Cluster::found(1, LEASE);
    let (clock, hand) = Clock::by_hand();
    let mut config = cluster.member(0);
    config.time = clock;
    for (sleeps, silent) in [(false, false), (true, true)] {
        let node = Node::start(config.clone()).await.expect("it starts");
        within("all is ready", SOON, node.ready()).await.expect("it runs");
        node.shutdown().await;
        if sleeps {
            hand.suspend(BLINK);
        }
        let node = Node::start(config.clone()).await.expect("it starts");
        assert_eq!(is_silent(&node).await, silent);
        node.shutdown().await;
    }
}

/// A page of our own with the layout of `/dev/vmclock0`.
fn page(path: &Path) -> File {
    let mut bytes = vec![0; 4096];
    bytes[0..4].copy_from_slice(b"VCLK");
    bytes[8..10].copy_from_slice(&1u16.to_le_bytes());
    bytes[16..24].copy_from_slice(&7u64.to_le_bytes());
    fs::write(path, bytes).unwrap();
    File::options().write(true).open(path).unwrap()
}

fn config(cluster: &Cluster, vmclock: PathBuf) -> Config {
    let mut config = cluster.member(0);
    config.time = Clock::boot().suspending(Suspends::No);
    config.vmclock = Some(vmclock);
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_virtual_machine_was_moved_leads_no_more_and_its_member_is_silent() {
    let cluster = Cluster::found(1, LEASE);
    let path = cluster.path("vmclock");
    let page = page(&path);
    let node = Node::start(config(&cluster, path)).await.expect("it starts");
    let tenure = within("a leader", SOON, node.campaign("jobs")).await.expect("it is elected");
    assert!(tenure.is_leader());
    page.write_all_at(&8u64.to_le_bytes(), 16).unwrap();
    assert!(!tenure.is_leader() && tenure.edict().is_err());
    assert_eq!(within("the loss", SOON, tenure.lost()).await, Loss::Disturbed);
    assert!(is_silent(&node).await);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_restarts_on_a_moved_virtual_machine_is_silent() {
    let cluster = Cluster::found(1, LEASE);
    let path = cluster.path("vmclock");
    let page = page(&path);
    let node = Node::start(config(&cluster, path.clone())).await.expect("it starts");
    within("all is ready", SOON, node.ready()).await.expect("it runs");
    node.shutdown().await;
    page.write_all_at(&8u64.to_le_bytes(), 16).unwrap();
    let node = Node::start(config(&cluster, path)).await.expect("it starts");
    assert!(is_silent(&node).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_device_all_is_as_ever() {
    let cluster = Cluster::found(1, LEASE);
    let node = Node::start(config(&cluster, cluster.path("nothing"))).await.expect("it starts");
    let tenure = within("a leader", SOON, node.campaign("jobs")).await.expect("it is elected");
    assert!(tenure.is_leader());
}
