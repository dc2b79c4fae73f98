//! `tenure members`, against real daemons.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tenure_testkit::binary::Binary;
use tenure_testkit::changing_cluster::ChangingCluster;
use tenure_testkit::ports::free_addresses;
use tenure_testkit::waiting::until;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

const LEASE: Duration = Duration::from_millis(1500);

fn running(count: usize) -> ChangingCluster {
    let mut daemons = ChangingCluster::found(TENURE, count, LEASE);
    let names: Vec<String> = (1..=count).map(|number| format!("n{number}")).collect();
    names.iter().for_each(|name| daemons.start(name));
    names.iter().for_each(|name| daemons.await_ready(name));
    daemons
}

#[test]
fn members_are_listed_added_replaced_and_removed() {
    let mut daemons = running(3);
    let list = daemons.json(&["members", "list"]);
    assert_eq!((&list["epoch"], &list["charter"]["changing"]), (&json!(0), &json!(false)));
    let keys =
        |value: &serde_json::Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&list), ["charter", "epoch", "members"]);
    assert_eq!(
        keys(&list["members"][0]),
        [
            "address",
            "answers",
            "clock_trusted",
            "condemned",
            "heard_ago_ms",
            "me",
            "name",
            "round_trip_us",
            "store"
        ]
    );

    daemons.join("n4");
    daemons.await_http("n4");
    let address = daemons.udp("n4");
    assert_eq!(daemons.json(&["members", "add", "n4", &address]), json!({ "change": "add", "epoch": 1 }));
    daemons.await_ready("n4");
    assert_eq!(daemons.members("n4"), ["n1", "n2", "n3", "n4"]);
    doctor_finds(&daemons, 4);
    daemons.json(&["members", "remove", "n2"]);
    assert_eq!(daemons.members("n1"), ["n1", "n3", "n4"]);
    daemons.join("n5");
    daemons.await_http("n5");
    let done = daemons.json(&["members", "replace", "n3", "n5", &daemons.udp("n5")]);
    let epoch = done["epoch"].as_u64().expect("an epoch");
    ["n4", "n5"].iter().for_each(|name| daemons.await_epoch(name, epoch));
    assert_eq!(daemons.members("n5"), ["n1", "n4", "n5"]);

    // One that is no member any more says so; the command asks the next.
    until("n2 to learn", || !daemons.is_ready("n2"));
    let said = daemons.refused(&["members", "remove", "n1", "--endpoint", &daemons.url("n2")], 2);
    assert!(said.contains("n2 is no member: ask one of"), "{said}");
    let elsewhere = ["--endpoint", &daemons.url("n2"), "--endpoint", &daemons.url("n4")];
    let words =
        [&["members", "set", "--longest-lease", "2s", "--drift-ppm", "50000"], &elsewhere[..]].concat();
    assert_eq!(daemons.json(&words)["change"], "set");
    let list = daemons.json(&["members", "list", "--endpoint", &daemons.url("n4")]);
    assert_eq!(list["charter"]["longest_lease_ms"], 2000);
    assert_eq!(list["charter"]["drift_ppm"], 50_000);
    let table = daemons.tenure(&["members", "list"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("longest lease") && table.contains("n5"), "{table}");
}

/// The doctor reaches all members, those too that the file of a founder lacks, and says
/// that it lacks them.
fn doctor_finds(daemons: &ChangingCluster, members: usize) {
    let mut command = TENURE.command();
    let said = command.args(["doctor", "-o", "json", "-c"]).arg(daemons.path("n1/tenure.toml")).output();
    let said = said.expect("it runs");
    let report: serde_json::Value = serde_json::from_slice(&said.stdout).expect("a report");
    let of =
        |check: &str| report["findings"].as_array().into_iter().flatten().find(|one| one["check"] == check);
    let udp = of("udp").expect("a finding");
    let all = format!("{members} of {members} members answer");
    assert!(udp["state"] == "ok" && udp["says"].as_str().is_some_and(|text| text.starts_with(&all)), "{udp}");
    let named = of("members").expect("a finding");
    assert!(named["state"] == "warn" && named["says"].to_string().contains("lacks members: n4"), "{named}");
}

#[test]
fn what_is_wrong_with_a_change_is_told_in_one_line() {
    let mut daemons = running(3);
    let nowhere = free_addresses(1)[0].to_string();
    for (words, says) in [
        (vec!["add", "n2", nowhere.as_str()], "is a member already"),
        (vec!["add", "n9", nowhere.as_str()], "'n9' does not answer: it must have joined and run"),
        (vec!["remove", "n9"], "'n9' is no member"),
        (vec!["replace", "n9", "n8", nowhere.as_str()], "'n9' is no member"),
        (vec!["add", "a b", nowhere.as_str()], "a b"),
        (vec!["set"], "required"),
        (vec!["set", "--quorums", "weights:1,1"], "weights"),
        (vec!["set", "--skew", "5ms"], "clock"),
        (vec!["force-remove", "--powered-off", "n2", "n3"], "--yes"),
        (vec!["force-remove", "--powered-off", "n2", "--yes"], "n2 was heard within the longest lease"),
        (vec!["force-remove", "--powered-off", "n9", "--yes"], "none of those who are named is a member"),
    ] {
        let said = daemons.refused(&[&["members"], &words[..]].concat(), 2);
        assert!(said.contains(says), "{words:?}: {said}");
    }
    daemons.end("n3", Signal::KILL);
    until("n3's end to be seen", || {
        let list = daemons.json(&["members", "list"]);
        list["members"].as_array().is_some_and(|all| all.iter().any(|member| member["answers"] == false))
    });
    let said = daemons.refused(&["members", "remove", "n2"], 2);
    assert!(said.contains("no quorum") && said.contains("--force"), "{said}");
    daemons.json(&["members", "remove", "n3"]);
    daemons.json(&["members", "remove", "n2"]);
    let said = daemons.refused(&["members", "remove", "n1"], 2);
    assert!(said.contains("'n1' is the last member"), "{said}");
}

#[test]
fn a_change_that_no_quorum_can_decide_is_refused_instead_of_waited_for() {
    let mut daemons = running(2);
    daemons.end("n2", Signal::KILL);
    until("the loss to be seen", || !daemons.is_ready("n1"));
    let said = daemons.refused(&["members", "remove", "n2"], 2);
    assert!(said.contains("only 1 answer, which is no quorum") && said.contains("force-remove"), "{said}");
}

#[test]
fn a_member_that_was_removed_while_it_was_down_never_says_that_it_is_ready() {
    let mut daemons = running(3);
    daemons.end("n3", Signal::TERM);
    daemons.json(&["members", "remove", "n3"]);
    let before = daemons.log("n3").matches("event=ready").count();
    daemons.start("n3");
    until("n3 to learn that it is no member", || daemons.log("n3").contains("event=epoch"));
    daemons.await_http("n3");
    assert!(!daemons.is_ready("n3"));
    assert_eq!(daemons.log("n3").matches("event=ready").count(), before, "{}", daemons.log("n3"));
}

#[test]
fn those_who_are_left_of_a_lost_quorum_go_on_alone() {
    let mut daemons = running(3);
    daemons.end("n2", Signal::KILL);
    daemons.end("n3", Signal::KILL);
    until("the loss to be seen", || !daemons.is_ready("n1"));
    until("nobody to have been heard for a longest lease", || {
        let list = daemons.json(&["members", "list"]);
        let longest = list["charter"]["longest_lease_ms"].as_u64();
        let silent = |member: &serde_json::Value| {
            let is_past = member["heard_ago_ms"].as_u64().is_none_or(|ago| Some(ago) > longest);
            member["me"] == true || member["answers"] == false && is_past
        };
        list["members"].as_array().is_some_and(|all| all.iter().all(silent))
    });
    let done = daemons.json(&["members", "force-remove", "--powered-off", "n2", "n3", "--yes"]);
    assert_eq!(done["epoch"], 1 << 20);
    daemons.await_ready("n1");
    assert_eq!(daemons.members("n1"), ["n1"]);
    // One that was given up comes back, and is never ready by the epoch that it remembers.
    let before = daemons.log("n3").matches("event=ready").count();
    daemons.start("n3");
    until("n3 to learn of the change", || daemons.log("n3").contains("event=epoch"));
    daemons.await_http("n3");
    assert!(!daemons.is_ready("n3"));
    assert_eq!(daemons.log("n3").matches("event=ready").count(), before, "{}", daemons.log("n3"));
    daemons.join("n4");
    daemons.await_http("n4");
    daemons.json(&["members", "add", "n4", &daemons.udp("n4")]);
    daemons.await_ready("n4");
    assert_eq!(daemons.members("n4"), ["n1", "n4"]);
}

#[test]
fn a_standby_takes_the_place_of_a_member_that_is_gone() {
    let mut daemons = ChangingCluster::found(TENURE, 3, LEASE);
    // Nobody is at the first standby's address.
    let nowhere = free_addresses(1)[0];
    daemons.join("n9");
    let standby = daemons.udp("n9");
    let extra = format!(
        "replace_after = \"3s\"\nstandbys = [{{ name = \"n8\", address = \"{nowhere}\" }}, {{ name = \"n9\", address = \"{standby}\" }}]"
    );
    for name in ["n1", "n2", "n3"] {
        daemons.write_file(name, &extra);
        daemons.start(name);
    }
    ["n1", "n2", "n3"].iter().for_each(|name| daemons.await_ready(name));
    daemons.end("n2", Signal::KILL);
    until("n9 to be a member", || daemons.members("n1") == ["n1", "n3", "n9"]);
    daemons.await_ready("n9");
    let log = daemons.log("n1");
    assert!(log.contains("event=replacing") && log.contains("event=replaced"), "{log}");
    assert!(!daemons.log("n3").contains("event=replacing"), "only one acts");
}
