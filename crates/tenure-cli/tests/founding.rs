//! `tenure init`, `tenure key` and `tenure config`: what they write, and what they refuse.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::Value;
use tenure_testkit::binary::{Binary, one_line};
use tenure_testkit::daemons::Daemons;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_cluster_is_founded_with_a_folder_for_each_member() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let words = "init --member a=10.0.0.1:7400 --member b=b.example:7400 --dir prod --term-floor 7 -o json";
    let said: Value = serde_json::from_str(&TENURE.succeeds(dir, words)).unwrap();
    assert_eq!((&said["term_floor"], said["cluster_id"].as_str().unwrap().len()), (&Value::from(7), 32));
    assert_eq!(said["members"][1]["folder"], "prod/b", "{said:#}");
    for secret in ["prod/key", "prod/client.key", "prod/token", "prod/a/key", "prod/b/key", "prod/a/tokens"] {
        assert_eq!(mode(&dir.join(secret)), 0o600, "{secret}");
    }
    for private in ["prod", "prod/a", "prod/b/store"] {
        assert_eq!(mode(&dir.join(private)), 0o700, "{private}");
    }
    let b = fs::read_to_string(dir.join("prod/b/tenure.toml")).unwrap();
    assert!(b.contains("listen = \"0.0.0.0:7400\"") && b.contains("advertise = \"b.example:7400\""), "{b}");
    for file in ["prod/tenure.toml", "prod/a/tenure.toml", "prod/b/tenure.toml"] {
        assert!(TENURE.succeeds(dir, &format!("config check {file}")).contains("ok"));
    }
    assert_eq!(fs::read_dir(dir.join("prod")).unwrap().count(), 6, "nothing else");
}

#[test]
fn clients_are_given_a_key_of_their_own_and_never_the_clusters() {
    let cluster = Daemons::found(TENURE, 1, "");
    let shown =
        |words: &str| -> Value { serde_json::from_str(&TENURE.succeeds(cluster.path(), words)).unwrap() };
    let client = shown("key show -c tenure.toml -o json");
    assert_eq!((&client["kind"], &client["groups"]), (&Value::from("candidate"), &Value::from("*")));
    assert_eq!((&client["name"], &client["expires"]), (&Value::from("client-*"), &Value::from("never")));
    assert_eq!(shown("key show key -o json")["kind"], "cluster");
    // The operator still makes keys here; a client without the file of the cluster's key cannot.
    TENURE.succeeds(
        cluster.path(),
        "key --candidate app --groups app/* --days 30 --out app.key -c tenure.toml",
    );
    let app = shown("key show app.key -o json");
    assert!(app["expires"].as_str().unwrap().ends_with('Z') && app["id"] != client["id"], "{app:#}");
    fs::rename(cluster.path().join("key"), cluster.path().join("elsewhere")).unwrap();
    let said = TENURE.fails(cluster.path(), "key --candidate app --groups app/* -c tenure.toml", 78);
    assert!(said.contains("key"), "{said}");
    assert!(TENURE.succeeds(cluster.path(), "config check tenure.toml").contains("ok"));
}

#[test]
fn a_second_founding_in_the_same_folder_is_refused() {
    let cluster = Daemons::found(TENURE, 1, "");
    let before = fs::read(cluster.file(0)).unwrap();
    let said = TENURE.fails(cluster.path(), "init --member n1=127.0.0.1:7400 --dir .", 78);
    assert!(said.contains("there already") && said.contains("--dir"), "{said}");
    let said = TENURE.fails(cluster.path(), "init --member other=127.0.0.1:7400 --dir .", 78);
    assert!(said.contains("there already"), "{said}");
    assert_eq!(fs::read(cluster.file(0)).unwrap(), before);
}

#[test]
fn nothing_is_written_if_anything_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    for (words, named) in [
        ("--member a=10.0.0.1", "NAME=HOST:PORT"),
        ("--member a=10.0.0.1:0", "NAME=HOST:PORT"),
        ("--member a=:7400", "no address"),
        ("--member ../a=10.0.0.1:7400", "../a"),
        ("--member key=10.0.0.1:7400", "'key'"),
        ("--member token=10.0.0.1:7400", "'token'"),
        ("--member a=10.0.0.1:7400 --member a=10.0.0.2:7400", "two members"),
        ("--member a=127.0.0.1:7400 --member b=127.0.0.1:7401", "share a port"),
        ("--member a=127.0.0.1:7400 --http-port 7400", "--http-port"),
        ("--member a=10.0.0.1:7400 --quorums most", "quorums"),
        ("--member a=10.0.0.1:7400 --drift-ppm 1000000", "drift"),
        ("--member a=10.0.0.1:7400 --lease 6s", "longest-lease"),
    ] {
        let said = TENURE.fails(folder.path(), &format!("init --dir made {words}"), 78);
        assert!(said.contains(named), "{words}: {said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{words} leaves nothing");
    }
    TENURE.fails(folder.path(), "init --dir made", 2);
    TENURE.fails(folder.path(), "init --dir made/deep --member a=10.0.0.1:7400", 78);
}

#[test]
fn a_key_is_derived_in_both_spellings_and_shown_without_its_secret() {
    let cluster = Daemons::found(TENURE, 1, "");
    let dir = cluster.path();
    let long = TENURE.succeeds(dir, "key derive --candidate app1 --groups app1/* -c tenure.toml");
    let short = TENURE.succeeds(dir, "key --candidate app1 --groups app1/* -c tenure.toml");
    for text in [&long, &short] {
        assert!(text.starts_with("tenure-candidate-1:app1-*:app1/*:"), "{text}");
    }
    let one = TENURE.succeeds(dir, "key derive --candidate app1 --exact --groups app1/* -c tenure.toml");
    assert!(one.starts_with("tenure-candidate-1:app1:app1/*:"), "{one}");
    assert_ne!(long, short, "each has an id of its own");
    TENURE.succeeds(dir, "key --observer eye --groups * --out eye.key -c tenure.toml");
    TENURE.succeeds(dir, "key derive --operator alice --out alice.key -c n1/tenure.toml");
    assert_eq!(mode(&dir.join("eye.key")), 0o600);
    let secret = fs::read_to_string(dir.join("alice.key")).unwrap();
    let shown: Value = serde_json::from_str(&TENURE.succeeds(dir, "key show alice.key -o json")).unwrap();
    assert_eq!(
        (&shown["kind"], &shown["name"]),
        (&Value::from("operator"), &Value::from("alice")),
        "{shown}"
    );
    let text = TENURE.succeeds(dir, "key show alice.key");
    assert!(!text.contains(secret.trim().rsplit(':').next().unwrap()), "{text}");
    let shown: Value =
        serde_json::from_str(&TENURE.succeeds(dir, "key show -o json -c n1/tenure.toml")).unwrap();
    assert_eq!(shown["kind"], "cluster");
    let made: Value = {
        TENURE.succeeds(dir, "key new --out other.key");
        serde_json::from_str(&TENURE.succeeds(dir, "key show other.key -o json")).unwrap()
    };
    assert_ne!(made["key_id"], shown["key_id"]);
}

#[test]
fn the_operator_derives_keys_without_that_of_clients() {
    let cluster = Daemons::found(TENURE, 1, "");
    let dir = cluster.path();
    let before = TENURE.succeeds(dir, "key show client.key -o json");
    let before: Value = serde_json::from_str(&before).unwrap();
    fs::remove_file(dir.join("client.key")).unwrap();
    TENURE.succeeds(dir, "key derive --candidate client --groups * --out client.key -c tenure.toml");
    let after: Value = serde_json::from_str(&TENURE.succeeds(dir, "key show client.key -o json")).unwrap();
    for field in ["name", "groups", "cluster_id", "key_id", "lineage"] {
        assert_eq!(before[field], after[field], "{field}");
    }
}

#[test]
fn keys_that_cannot_be_made_are_refused() {
    let cluster = Daemons::found(TENURE, 1, "");
    let dir = cluster.path();
    for (words, code, named) in [
        ("key -c tenure.toml", 2, "--candidate"),
        ("key --candidate app1 -c tenure.toml", 2, "--groups"),
        ("key --candidate app1 --observer b --groups x -c tenure.toml", 2, "cannot be used with"),
        ("key --operator a --groups x -c tenure.toml", 2, "cannot be used with"),
        ("key --candidate a:b --groups x -c tenure.toml", 2, "a:b"),
        ("key new --out key", 78, "there already"),
        ("key show tenure.toml", 78, "no cluster key"),
        ("key rotate --step 2 -c n1/tenure.toml", 78, "--step 1"),
        ("key rotate --step 2 --with key -c n1/tenure.toml", 2, "--with"),
        ("key rotate --step 4 -c n1/tenure.toml", 2, "--step"),
    ] {
        let said = TENURE.fails(dir, words, code);
        assert!(said.contains(named), "{words}: {said}");
    }
    fs::write(dir.join("app.toml"), "name = \"app1\"\nrole = \"candidate\"\nkey_file = \"app.key\"\n")
        .unwrap();
    TENURE.succeeds(dir, "key --candidate app1 --groups x --out app.key -c tenure.toml");
    let said = TENURE.fails(dir, "key --operator a -c app.toml", 78);
    assert!(said.contains("only the cluster's"), "{said}");
}

#[test]
fn a_rotation_leaves_the_rest_of_the_file_alone() {
    let cluster = Daemons::found(TENURE, 1, "");
    let dir = cluster.path();
    let read = || fs::read_to_string(cluster.file(0)).unwrap();
    let before = read();
    for step in 1..=3 {
        TENURE.succeeds(dir, &format!("key rotate --step {step} -c n1/tenure.toml"));
        TENURE.succeeds(dir, &format!("key rotate --step {step} -c n1/tenure.toml")); // Again, as after an interruption.
        TENURE.succeeds(dir, "config check n1/tenure.toml");
    }
    let differs = |(a, b): &(&str, &str)| a != b;
    let changed: Vec<String> =
        before.lines().zip(read().lines()).filter(differs).map(|(line, _)| line.to_owned()).collect();
    assert!(changed.iter().all(|line| line.starts_with("old_key_files")), "{changed:?}");
    assert!(!dir.join("n1/key.old").exists() && !dir.join("n1/key.new").exists());
    assert_eq!(mode(&dir.join("n1/key")), 0o600);
}

#[test]
fn the_second_step_of_a_rotation_is_refused_before_the_first_is_complete() {
    let cluster = Daemons::found(TENURE, 1, "");
    let dir = cluster.path();
    let key = || fs::read_to_string(dir.join("n1/key")).unwrap();
    let before = key();
    // The first step stopped half-way: the key is drawn, and nobody was told to understand it.
    cluster.edit(0, "old_key_files = []", "# old_key_files = []");
    let said = TENURE.fails(dir, "key rotate --step 1 -c n1/tenure.toml", 78);
    assert!(said.contains("no line `old_key_files = […]`"), "{said}");
    let said = TENURE.fails(dir, "key rotate --step 2 -c n1/tenure.toml", 78);
    assert!(said.contains("step 1 is not complete"), "{said}");
    assert_eq!(key(), before);
    cluster.edit(0, "# old_key_files = []", "old_key_files = []");
    TENURE.succeeds(dir, "key rotate --step 1 -c n1/tenure.toml");
    TENURE.succeeds(dir, "key rotate --step 2 -c n1/tenure.toml");
    assert_ne!(key(), before);
}

#[test]
fn root_that_rotates_a_key_leaves_the_files_to_their_owner() {
    let cluster = Daemons::found(TENURE, 1, "");
    let dir = cluster.path();
    for file in ["n1", "n1/key", "n1/tenure.toml"] {
        std::os::unix::fs::chown(dir.join(file), Some(12_345), Some(12_345)).unwrap();
    }
    for step in 1..=2 {
        TENURE.succeeds(dir, &format!("key rotate --step {step} -c n1/tenure.toml"));
        for file in ["key", "key.new", "key.old", "tenure.toml"].map(|file| dir.join("n1").join(file)) {
            if let Ok(about) = fs::metadata(&file) {
                assert_eq!((about.uid(), about.gid()), (12_345, 12_345), "{}", file.display());
            }
        }
        assert_eq!(mode(&dir.join("n1/key")), 0o600);
    }
}

#[test]
fn what_the_library_would_refuse_is_found_without_a_start() {
    let cluster = Daemons::found(TENURE, 1, "");
    let output = TENURE
        .command_in(cluster.path())
        .args(["config", "check", "n1/tenure.toml"])
        .env("TENURE_LEASE", "1m")
        .output()
        .unwrap();
    assert!(one_line(&output, 78, "config check").contains("lease"));
    cluster.edit(0, "tokens_file = \"tokens\"", "tokens_file = \"nothing\"");
    assert!(TENURE.fails(cluster.path(), "config check n1/tenure.toml", 78).contains("daemon.tokens_file"));
    TENURE.fails(cluster.path(), "config check missing.toml", 78);
}

#[test]
fn what_is_in_force_is_shown_without_secrets() {
    let cluster = Daemons::found(TENURE, 1, "--lease 1s");
    let secret = fs::read_to_string(cluster.path().join("key")).unwrap();
    let all = TENURE.succeeds(cluster.path(), "config show --effective -c n1/tenure.toml");
    for line in [
        "length = \"1s\"",
        "retry = \"50ms\"",
        "drift_ppm = 100000",
        "quorums = \"majority\"",
        "role = \"member\"",
        "weak = \"ring\"",
    ] {
        assert!(all.contains(line), "{line} in {all}");
    }
    assert!(!all.contains(secret.trim()), "{all}");
    let plain: Value =
        serde_json::from_str(&TENURE.succeeds(cluster.path(), "config show -o json -c n1/tenure.toml"))
            .unwrap();
    assert!(plain["lease"]["retry"].is_null() && plain["lease"]["length"] == "1s", "{plain:#}");
    let output = TENURE.run(cluster.path(), "config show -c n1/tenure.toml");
    assert!(output.stderr.is_empty());
}
