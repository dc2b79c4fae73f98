//! Daemons say nothing wrong of leaders: compared with the leader's own guard, in this process.
//!
//! Every check is one-sided, so that a slow machine accuses nobody: a daemon that answers "X leads"
//! must have been asked before X stopped.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tenure::{Node, Role, Tenure};
use tenure_testkit::binary::Binary;
use tenure_testkit::http_cluster::{HttpCluster, get};
use tenure_testkit::waiting::{LIMIT, now};
use tokio::runtime::Runtime;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

/// The status and the body of an answer.
fn ask(daemons: &HttpCluster, index: usize, path: &str) -> (u16, Value) {
    let answer = get(daemons.http[index], path).expect("the daemon answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (code, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn leader(daemons: &HttpCluster, index: usize, group: &str) -> (u16, Value) {
    ask(daemons, index, &format!("/leader/{group}"))
}

/// An application that may lead, and those of its guards that it still has.
struct Application {
    runtime: Runtime,
    node: Node,
}

impl Application {
    fn start(daemons: &HttpCluster) -> Self {
        Self::start_as(daemons, "app")
    }

    fn start_as(daemons: &HttpCluster, name: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let node = runtime.block_on(Node::start(daemons.cluster.outsider(name, Role::Candidate))).unwrap();
        Self { runtime, node }
    }

    fn lead(&self, group: &str) -> Tenure {
        let campaign = async { tokio::time::timeout(LIMIT, self.node.campaign(group)).await };
        self.runtime.block_on(campaign).expect("it is elected in time").unwrap()
    }
}

/// The state of a group in a list of groups.
fn state_in(list: &Value, group: &str) -> String {
    let groups = list["groups"].as_array().expect("a list");
    let found = groups.iter().find(|known| known["group"] == group);
    found.map_or_else(|| "unlisted".to_owned(), |known| known["state"].as_str().unwrap().to_owned())
}

#[test]
fn what_is_left_of_a_quorum_names_no_leader_whose_lease_is_over() {
    let mut daemons = HttpCluster::start(TENURE, 3, "");
    let app = Application::start(&daemons);
    let tenure = app.lead("jobs");
    let first = leader(&daemons, 0, "jobs");
    assert_eq!((first.0, &first.1["state"]), (200, &Value::from("leader")), "{first:?}");
    assert_eq!(first.1["term"], tenure.term().0);
    daemons.wait("the leader in the list", || {
        (state_in(&ask(&daemons, 0, "/v1/status").1, "jobs") == "leader").then_some(())
    });
    daemons.kill(1);
    daemons.kill(2);
    // For as long as its lease lasts it leads, and some time after.
    let (mut over, end) = (0, now() + LIMIT);
    while over < 40 {
        let led = tenure.is_leader();
        let (code, told) = leader(&daemons, 0, "jobs");
        assert!(led || code == 503, "{told}");
        assert!(code == 200 || told["state"] != "leader", "{told}");
        let led = tenure.is_leader();
        let list = ask(&daemons, 0, "/v1/status").1;
        assert!(led || state_in(&list, "jobs") != "leader", "{list}");
        let known = ask(&daemons, 0, "/v1/groups").1;
        assert!(led || state_in(&known, "jobs") != "leader", "{known}");
        over += usize::from(!led);
        assert!(now() < end, "its lease is not over");
        sleep(Duration::from_millis(20));
    }
    let said = daemons.ask(&["leader", "jobs", "--endpoint", &format!("http://{}", daemons.http[0])]);
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(matches!(said.status.code(), Some(1 | 69)) && said.stdout.is_empty(), "{text}");
}

#[test]
fn the_first_question_about_a_group_is_answered_by_a_quorum() {
    let daemons = HttpCluster::start(TENURE, 3, "");
    let app = Application::start(&daemons);
    for round in 0..4 {
        let group = format!("short{round}");
        let tenure = app.lead(&group);
        let term = tenure.term();
        // Nobody has asked yet, and the first of them names the leader.
        let (code, told) = leader(&daemons, 0, &group);
        assert_eq!((code, told["leader"].as_str()), (200, Some("app")), "{told}");
        drop(tenure);
        let over = daemons.wait("that nobody leads", || {
            let (code, told) = leader(&daemons, 0, &group);
            (code == 503 && told["state"] == "nobody").then_some(told)
        });
        assert_eq!(over["after"], term.0, "{over}");
        for index in [1, 2, 0] {
            let (code, told) = leader(&daemons, index, &group);
            assert_eq!((code, told["leader"].as_str()), (503, None), "daemon {index}: {told}");
            assert_eq!(state_in(&ask(&daemons, index, "/v1/groups").1, &group), "nobody");
        }
    }
}

#[test]
fn once_a_daemon_says_that_nobody_leads_none_names_that_leader_again() {
    let daemons = HttpCluster::start(TENURE, 3, "");
    let app = Application::start(&daemons);
    for _ in 0..10 {
        let tenure = app.lead("jobs");
        let term = tenure.term();
        for index in 0..3 {
            daemons.wait("the leader", || (leader(&daemons, index, "jobs").0 == 200).then_some(()));
        }
        drop(tenure);
        let (mut index, mut over) = (0, 0);
        while over < 3 {
            let (code, told) = leader(&daemons, index % 3, "jobs");
            assert!(
                over == 0 || code == 503,
                "daemon {} after another said {term} is over: {told}",
                index % 3
            );
            over += usize::from(over > 0 || (code == 503 && told["state"] == "nobody"));
            index += 1;
        }
    }
}

#[test]
fn a_load_balancer_finds_the_host_of_the_leader() {
    let daemons = HttpCluster::start(TENURE, 1, "");
    let app = Application::start(&daemons);
    let (code, told) = ask(&daemons, 0, "/leader/jobs?here");
    assert_eq!((code, &told["here"]), (503, &Value::from(false)), "{told}");
    let tenure = app.lead("jobs");
    let (code, told) = ask(&daemons, 0, "/leader/jobs?here");
    assert_eq!((code, &told["here"]), (200, &Value::from(true)), "{told}");
    assert!(tenure.is_leader());
}

#[test]
fn leaderships_of_processes_that_are_no_members_are_in_the_daemons_logs() {
    let daemons = HttpCluster::start(TENURE, 3, "");
    let app = Application::start(&daemons);
    let log = |index: usize| std::fs::read_to_string(daemons.path(&format!("n{}.log", index + 1))).unwrap();
    let wait_for = |parts: &[&str]| {
        let is_it = |line: &str| parts.iter().all(|part| line.contains(part));
        for index in 0..3 {
            daemons.wait(&format!("{parts:?}"), || log(index).lines().any(is_it).then_some(()));
        }
    };
    let tenure = app.lead("jobs");
    let term = format!("term={}", tenure.term());
    wait_for(&["event=leader ", "group=jobs", "leader=app", &term]);
    drop(tenure);
    wait_for(&["event=leader_gone", "group=jobs", "leader=app", &term, "how=resigned"]);
    let next = app.lead("jobs");
    let term = format!("term={}", next.term());
    wait_for(&["event=leader ", &term]);
    let other = Application::start_as(&daemons, "other");
    let node = other.node.clone();
    let campaign = other.runtime.spawn(async move { node.campaign("jobs").await });
    let to = tenure::NodeName::new("other").unwrap();
    let handed_over = || app.runtime.block_on(next.transfer(&to)).ok();
    daemons.wait("the hand-over", handed_over);
    let successor = other.runtime.block_on(campaign).unwrap().unwrap();
    wait_for(&["event=leader_gone", &term, "how=\"handed over\"", "successor=other"]);
    wait_for(&["event=leader ", "leader=other", &format!("term={}", successor.term())]);
}
