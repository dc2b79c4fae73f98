//! `tenure doctor`, on this machine and on clusters that are as they should be and that are not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tenure::ClusterKey;
use tenure_testkit::cluster::{Cluster, numbered};
use tenure_testkit::ports::free_addresses;
use tenure_testkit::waiting::{LIMIT, within};

fn doctor(folder: &Path, words: &[&str]) -> (Output, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(["doctor", "-o", "json"]).args(words).current_dir(folder).env_remove("TENURE_CONFIG");
    let output = command.output().unwrap();
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output, report)
}

/// The same, without holding up the nodes that run in this process.
async fn examine(folder: &Path) -> (Output, Value) {
    let folder = folder.to_owned();
    tokio::task::spawn_blocking(move || doctor(&folder, &["-c", "tenure.toml"])).await.unwrap()
}

/// The state of a check, and all that is said of it.
fn found<'a>(report: &'a Value, check: &str) -> (&'a str, String) {
    let findings = report["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["check"] == check);
    let finding = finding.unwrap_or_else(|| panic!("no check {check} in {report:#}"));
    let text =
        format!("{} {}", finding["says"].as_str().unwrap(), finding["do"].as_str().unwrap_or_default());
    (finding["state"].as_str().unwrap(), text)
}

/// Writes the file of a client of this cluster, and its key.
fn client_file(folder: &Path, cluster: &Cluster, key: &ClusterKey) {
    let members: String = cluster
        .addresses
        .iter()
        .enumerate()
        .map(|(i, address)| {
            format!("[[cluster.members]]\nname = \"{}\"\naddress = \"{address}\"\n", numbered(i))
        })
        .collect();
    let text = format!(
        "name = \"client\"\nrole = \"candidate\"\nkey_file = \"key\"\ncluster_id = \"{}\"\n{members}",
        cluster.id
    );
    fs::write(folder.join("tenure.toml"), text).unwrap();
    fs::write(folder.join("key"), key.reveal()).unwrap();
    fs::set_permissions(folder.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn without_a_configuration_the_machine_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let (output, report) = doctor(folder.path(), &[]);
    for check in [
        "clock source",
        "suspend",
        "slew limit",
        "kernel clock",
        "clock rate",
        "scheduling",
        "machine",
        "limits",
    ] {
        found(&report, check);
    }
    assert_eq!(found(&report, "configuration").0, "warn");
    let wrong = report["counts"]["bad"].as_u64().unwrap() > 0;
    assert_eq!(output.status.code(), Some(i32::from(wrong)));
    assert_eq!(report["verdict"], if wrong { "wrong" } else { "fine" });
    let text =
        Command::new(env!("CARGO_BIN_EXE_tenure")).arg("doctor").current_dir(&folder).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("clock source") && text.contains("WHAT TO DO"), "{text}");
}

#[test]
fn the_json_has_the_keys_of_the_contract_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let (_, report) = doctor(folder.path(), &[]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&report), "counts findings verdict");
    assert_eq!(keys(&report["counts"]), "bad ok warn");
    assert!(report["findings"].as_array().unwrap().iter().all(|one| keys(one) == "check do says state"));
}

#[test]
fn a_configuration_that_is_named_and_missing_is_exit_code_78() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tenure")).args(["doctor", "-c", "/nowhere/tenure.toml"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(78));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_answers_is_fine_and_a_member_that_is_gone_is_named() {
    let cluster = Cluster::found_numbered(3, Duration::from_secs(1));
    let mut nodes = cluster.start().await;
    for node in &nodes {
        within("a node is ready", LIMIT, node.ready()).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    client_file(folder.path(), &cluster, &cluster.key);
    let (_, report) = examine(folder.path()).await;
    let (state, text) = found(&report, "udp");
    assert!(state == "ok" && text.contains("3 of 3"), "{text}");
    assert_eq!(found(&report, "key").0, "ok");
    assert!(found(&report, "key").1.contains(&cluster.key.id().to_string()));
    assert_eq!(found(&report, "permissions").0, "ok");
    assert!(found(&report, "lease").1.contains("round trip"), "{report:#}");
    assert!(found(&report, "slew limit").1.contains("ρ"), "the bound is learnt from the members: {report:#}");

    let third = nodes.pop().unwrap();
    third.shutdown().await;
    let (output, report) = examine(folder.path()).await;
    assert_eq!(output.status.code(), Some(1));
    let (state, text) = found(&report, "udp");
    assert!(state == "bad" && text.contains("2 of 3") && text.contains("n3 (127.0.0.1:"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_reaches_nobody_and_an_open_one_is_bad() {
    let cluster = Cluster::found_numbered(1, Duration::from_secs(1));
    let nodes = cluster.start().await;
    within("a node is ready", LIMIT, nodes[0].ready()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    client_file(folder.path(), &cluster, &ClusterKey::generate());
    let (output, report) = examine(folder.path()).await;
    assert_eq!(output.status.code(), Some(1));
    let (state, text) = found(&report, "udp");
    assert!(state == "bad" && text.contains("the same key"), "{text}");
    fs::set_permissions(folder.path().join("key"), fs::Permissions::from_mode(0o644)).unwrap();
    let (_, report) = examine(folder.path()).await;
    for check in ["configuration", "permissions"] {
        let (state, text) = found(&report, check);
        assert!(state == "bad" && text.contains("chmod 600"), "{text}");
    }
}

#[test]
fn a_member_whose_store_is_missing_or_in_memory_is_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_addresses(1)[0];
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let write = |store: &str| {
        let text = format!(
            "name = \"n1\"\nlisten = \"{address}\"\nstore = \"{store}\"\nkey = \"{}\"\n[cluster]\ndrift_ppm = 10\n\
             [[cluster.members]]\nname = \"n1\"\naddress = \"{address}\"\n",
            ClusterKey::generate().reveal()
        );
        fs::write(folder.path().join("tenure.toml"), text).unwrap();
        doctor(folder.path(), &["-c", "tenure.toml"])
    };
    let (output, report) = write("missing");
    assert_eq!(output.status.code(), Some(1));
    let (state, text) = found(&report, "store");
    assert!(state == "bad" && text.contains("--join"), "{text}");
    let (state, text) = found(&report, "slew limit");
    assert!(state != "ok" && text.contains("ppm"), "no host keeps to 10 ppm: {text}");
    assert!(found(&report, "fsync").1.contains("at most"), "{report:#}");
    let (_, report) = write(memory.path().to_str().unwrap());
    assert!(found(&report, "store").1.contains("forgotten"), "{report:#}");
}

#[test]
fn a_daemon_that_does_not_answer_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = format!("http://{}", free_addresses(1)[0]);
    let (output, report) = doctor(folder.path(), &["--endpoint", &endpoint]);
    assert_eq!(output.status.code(), Some(1));
    let (state, text) = found(&report, "daemon");
    assert!(state == "bad" && text.contains(&endpoint), "{text}");
}
