//! A node whose store is not what it should be does not start, says what is wrong and what to do,
//! and loses nothing.
//!
//! Needs root, for small file systems of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure::{ClusterId, Config, Node, StartError, StoreError, Term};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::mounts::{self, run, text, tmpfs};
use tenure_testkit::waiting::within;

const LEASE: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_secs(60);

/// Tries to start a node that must not, and returns the error with its text.
async fn refused(config: Config) -> (StoreError, String) {
    match Node::start(config).await {
        Err(StartError::Store(error)) => {
            let said = error.to_string();
            (error, said)
        }
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it has started"),
    }
}

/// Starts a node that must, leads once, and ends it.
async fn leads_once(config: Config) -> Term {
    let node = Node::start(config).await.expect("it starts");
    let tenure = within("a leader", SOON, node.campaign("jobs")).await.expect("it is elected");
    let term = tenure.term();
    tenure.resign();
    node.shutdown().await;
    term
}

/// The only file of a store.
fn file(store: &Path) -> PathBuf {
    store.join("store")
}

/// A cluster of one, whose store is on a file system of its own.
fn alone_on(disk: &Path, size: &str) -> (Cluster, Config) {
    tmpfs(disk, size);
    let cluster = Cluster::found(1, LEASE);
    let mut config = cluster.member(0);
    config.store = Some(disk.join("store-of-a"));
    (cluster, config)
}

#[tokio::test]
async fn a_missing_store_is_refused_and_none_is_made() {
    let cluster = Cluster::found(1, LEASE);
    let kept = cluster.path("kept");
    fs::rename(cluster.path("a"), &kept).unwrap();
    let (error, said) = refused(cluster.member(0)).await;
    assert!(matches!(error, StoreError::Missing { .. }), "{said}");
    assert!(said.contains("members replace"), "it says what to do: {said}");
    assert!(!cluster.path("a").exists());
    fs::rename(&kept, cluster.path("a")).unwrap();
    leads_once(cluster.member(0)).await;
}

#[tokio::test]
async fn a_damaged_store_is_refused_and_left_as_it_is() {
    let cluster = Cluster::found(1, LEASE);
    let file = file(&cluster.path("a"));
    let good = fs::read(&file).unwrap();
    let torn = good[..good.len() / 2].to_vec();
    for bad in [vec![0; good.len()], b"not a store".to_vec(), torn] {
        fs::write(&file, &bad).unwrap();
        let (error, said) = refused(cluster.member(0)).await;
        assert!(matches!(error, StoreError::Damaged { .. }), "{said}");
        assert!(said.contains("promises may be lost"), "{said}");
        assert_eq!(fs::read(&file).unwrap(), bad, "somebody may want to look at it");
    }
    fs::write(&file, &good).unwrap();
    leads_once(cluster.member(0)).await;
}

#[tokio::test]
async fn the_store_of_another_cluster_or_node_is_refused() {
    let cluster = Cluster::found(2, LEASE);
    let mut config = cluster.member(0);
    config.cluster = Some(ClusterId::draw());
    let (error, said) = refused(config).await;
    assert!(matches!(error, StoreError::OtherCluster { .. }), "{said}");
    let mut config = cluster.member(1);
    config.store = Some(cluster.path("a"));
    let (error, said) = refused(config).await;
    assert!(matches!(error, StoreError::OtherNode { .. }), "{said}");
    assert!(said.contains("'a'") && said.contains("'b'"), "{said}");
}

#[tokio::test]
async fn an_old_copy_of_the_store_is_refused() {
    let cluster = Cluster::found(1, LEASE);
    let file = file(&cluster.path("a"));
    leads_once(cluster.member(0)).await;
    let old = fs::read(&file).unwrap();
    leads_once(cluster.member(0)).await;
    let newest = fs::read(&file).unwrap();
    fs::write(&file, old).unwrap();
    let (error, said) = refused(cluster.member(0)).await;
    assert!(matches!(error, StoreError::WentBack { .. }), "{said}");
    fs::write(&file, newest).unwrap();
    leads_once(cluster.member(0)).await;
}

#[tokio::test]
async fn a_stale_memory_is_not_believed_and_waited_out_in_silence() {
    let cluster = Cluster::found(1, LEASE);
    let mut config = cluster.member(0);
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    config.memory = Some(folder.path().to_path_buf());
    let memory = folder.path().join(format!("tenure-{}-a", cluster.id));
    leads_once(config.clone()).await;
    let stale = fs::read(&memory).unwrap();

    let node = Node::start(config.clone()).await.expect("it starts");
    assert_eq!(node.status().await.unwrap().silent_for, None, "a restart within a boot is not silent");
    let tenure = within("a leader", SOON, node.campaign("jobs")).await.expect("it is elected");
    node.shutdown().await; // Grants to this life are remembered, and not in the copy.
    fs::write(&memory, stale).unwrap();

    let node = Node::start(config.clone()).await.expect("it starts");
    assert!(node.status().await.unwrap().silent_for.is_some(), "it has forgotten what it granted");
    let next =
        within("a leader", SOON, node.campaign("jobs")).await.expect("it is elected after the silence");
    assert!(next.term() > tenure.term());
    node.shutdown().await;
}

#[tokio::test]
async fn a_read_only_disk_is_refused() {
    if !mounts::inside("a_read_only_disk_is_refused") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let (cluster, config) = alone_on(&disk, "1m");
    Node::found(&config, cluster.id, Term(1000)).expect("it is founded");
    run("mount", &["-o", "remount,ro", text(&disk)]);
    let (_, said) = refused(config.clone()).await;
    assert!(said.contains("mount it writable"), "{said}");
    run("mount", &["-o", "remount,rw", text(&disk)]);
    leads_once(config).await;
}

#[tokio::test]
async fn a_full_disk_founds_nothing_and_does_not_harm_what_is_founded() {
    if !mounts::inside("a_full_disk_founds_nothing_and_does_not_harm_what_is_founded") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let (cluster, config) = alone_on(&disk, "256k");
    let filler = disk.join("filler");
    let fill = || fs::write(&filler, vec![1; 1 << 20]).expect_err("until nothing is left");

    fill();
    let error = Node::found(&config, cluster.id, Term(1000)).expect_err("there is no room");
    assert!(error.to_string().contains("make room there"), "{error}");
    let (error, said) = refused(config.clone()).await;
    assert!(matches!(error, StoreError::Missing { .. }), "half a store is none: {said}");
    fs::remove_file(&filler).unwrap();
    Node::found(&config, cluster.id, Term(1000)).expect("now there is room");

    fill();
    let first = leads_once(config.clone()).await; // Its file is as long as it will ever be for these members.
    assert!(leads_once(config).await > first, "and what it wrote there is kept");
}
