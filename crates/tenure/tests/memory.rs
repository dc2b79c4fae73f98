//! The memory of a running node in the hands of somebody else.

use std::fs;
use std::process::Command;
use std::time::Duration;

use tenure::Node;
use tenure_testkit::cluster::Cluster;
use tenure_testkit::waiting::within;

/// A leader renews at half of it: one that is not run for two seconds, on a machine that does much
/// else, leads on.
const LEASE: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(60);
const CHILD: &str = "TENURE_TEST_IS_CHILD";

/// In a process of its own: a signal that nobody handles would end it, and all other tests of this
/// program with it.
#[test]
fn a_node_whose_memory_is_cut_leads_on_and_is_silent_after_its_restart() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_whose_memory_is_cut", "--nocapture"]).env(CHILD, "1");
    let output = command.output().unwrap();
    let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    assert!(output.status.success() && said.contains("1 passed"), "{:?}: {said}", output.status);
}

/// Does nothing but as a child of the test above it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_whose_memory_is_cut() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let cluster = Cluster::found(1, LEASE);
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut config = cluster.member(0);
    config.memory = Some(memory.path().to_owned());
    let node = Node::start(config.clone()).await.unwrap();
    let tenure = within("the election", LIMIT, node.campaign("jobs")).await.unwrap();
    let file = fs::read_dir(memory.path()).unwrap().next().unwrap().unwrap().path();
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(0).unwrap();
    // Three renewals; each is remembered before it is answered.
    let mut until = tenure.until().expect("it leads");
    for _ in 0..3 {
        within("a renewal", LIMIT, async {
            while tenure.until().expect("it leads on") <= until {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        until = tenure.until().expect("it leads on");
    }
    tenure.resign();
    node.shutdown().await;
    let node = Node::start(config).await.unwrap();
    let status = node.status().await.unwrap();
    assert!(status.silent_for.is_some(), "what was cut is not believed");
    node.shutdown().await;
}
