//! Metrics, alerts and dashboard against a real Prometheus: an alert fires when it should, and only
//! then; every panel has something to show.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tenure::{Node, Role, Tenure};
use tenure_testkit::binary::Binary;
use tenure_testkit::http_cluster::HttpCluster;
use tenure_testkit::prometheus_server::{Prometheus, promtool};
use tenure_testkit::waiting::{LIMIT, look_for, now};
use tokio::runtime::Runtime;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

fn packaged(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The alerts, with waits of two seconds instead of minutes.
fn quick_alerts() -> String {
    let is_wait = |line: &&str| line.trim_start().starts_with("for: ");
    let text = packaged("alerts.yml");
    assert!(text.lines().filter(is_wait).count() > 5);
    let quick = |line: &str| if is_wait(&line) { "        for: 2s" } else { line }.to_owned() + "\n";
    text.lines().map(quick).collect()
}

struct Application {
    runtime: Runtime,
    node: Node,
}

impl Application {
    fn start(daemons: &HttpCluster) -> Self {
        let runtime = Runtime::new().unwrap();
        let node = runtime.block_on(Node::start(daemons.cluster.outsider("app", Role::Candidate))).unwrap();
        Self { runtime, node }
    }

    fn lead(&self, group: &str) -> Tenure {
        let campaign = async { tokio::time::timeout(LIMIT, self.node.campaign(group)).await };
        self.runtime.block_on(campaign).expect("it is elected in time").unwrap()
    }
}

/// The metrics of a daemon, as a client gets them that accepts this.
fn metrics(address: SocketAddr, accept: &str) -> (String, String) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

/// The value of a series in Prometheus text.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

#[test]
fn the_rules_of_every_alert_hold_in_their_cases() {
    let folder = tempfile::tempdir().unwrap();
    let cases = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/prometheus/alerts.test.yml");
    fs::copy(cases, folder.path().join("alerts.test.yml")).unwrap();
    fs::write(folder.path().join("alerts.yml"), packaged("alerts.yml")).unwrap();
    let (code, said) = promtool(folder.path(), &["check", "rules", "alerts.yml"], "");
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = promtool(folder.path(), &["test", "rules", "alerts.test.yml"], "");
    assert_eq!(code, Some(0), "{said}");
    let tested = fs::read_to_string(folder.path().join("alerts.test.yml")).unwrap();
    for name in packaged("alerts.yml").lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tested.contains(name), "{name} has no case");
    }
}

#[test]
fn the_text_is_lint_free_and_as_the_client_wants_it() {
    let daemons = HttpCluster::start(TENURE, 1, "");
    let app = Application::start(&daemons);
    let tenure = app.lead("jobs");
    let (head, text) = metrics(daemons.http[0], "text/plain");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let (code, said) = promtool(daemons.cluster.dir.path(), &["check", "metrics"], &text);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{text}");
    let (head, open) =
        metrics(daemons.http[0], "application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
    assert!(head.contains("content-type: application/openmetrics-text"), "{head}");
    assert!(open.ends_with("# EOF\n") && open.contains("# TYPE tenure_build info"), "{open}");
    assert_eq!(value(&text, "tenure_term{group=\"jobs\"}"), Some(tenure.term().0 as f64), "{text}");
    drop(tenure);
    // A group that is known stays, and says that nobody leads it.
    look_for("the end of the leadership", || {
        let (_, text) = metrics(daemons.http[0], "text/plain");
        let term = value(&text, "tenure_term{group=\"jobs\"}");
        assert!(term.is_some(), "the group is gone from the metrics: {text}");
        (term == Some(0.0)).then_some(())
    });
}

#[test]
fn what_leaders_count_that_are_no_members_is_in_the_metrics_of_a_daemon() {
    let daemons = HttpCluster::start(TENURE, 3, "");
    let app = Application::start(&daemons);
    drop(app.lead("jobs"));
    let tenure = app.lead("jobs");
    let sum = |series: &str| -> f64 {
        let all = daemons.http.iter().map(|address| metrics(*address, "text/plain").1);
        all.filter_map(|text| value(&text, series)).sum()
    };
    look_for("the elections and renewals of the application", || {
        let elections = sum("tenure_elections_total ");
        assert!(elections <= 2.0, "each is counted once: {elections}");
        let timed = sum("tenure_acquire_duration_seconds_count ");
        let renewed = sum("tenure_renewals_total ").min(sum("tenure_renew_duration_seconds_count "));
        let lost = sum("tenure_terms_lost_total ");
        (elections == 2.0 && timed == 2.0 && renewed >= 1.0 && lost == 1.0).then_some(())
    });
    assert!(tenure.is_leader());
}

/// Waits until the rules have been evaluated so many times, all of them after this call.
fn evaluated(prometheus: &Prometheus, rounds: usize) {
    let mut seen = std::collections::BTreeSet::new();
    look_for("more evaluations", || {
        let rules = prometheus.ask("/api/v1/rules");
        seen.insert(rules["data"]["groups"][0]["lastEvaluation"].to_string());
        (seen.len() > rounds).then_some(())
    });
}

#[test]
fn alerts_fire_when_they_should_and_only_then() {
    let mut daemons = HttpCluster::start(TENURE, 3, "");
    let app = Application::start(&daemons);
    let tenure = app.lead("jobs");
    let other = app.lead("mail");
    daemons.wait("the leader in the metrics", || {
        let (_, text) = metrics(daemons.http[0], "text/plain");
        value(&text, "tenure_term{group=\"jobs\"}").filter(|term| *term > 0.0)
    });
    let prometheus = Prometheus::start(&daemons.http, &quick_alerts());
    look_for("three targets", || (prometheus.query("sum(up)").first()?["value"][1] == "3").then_some(()));
    panels_have_data(&prometheus);
    evaluated(&prometheus, 10);
    assert_eq!(prometheus.firing(), [""; 0], "a healthy cluster");

    drop(tenure);
    look_for("the alert that matters", || {
        let firing = prometheus.firing();
        assert!(firing.iter().all(|alert| alert == "TenureNoLeader jobs"), "{firing:?}");
        (!firing.is_empty()).then_some(())
    });
    let again = app.lead("jobs");
    look_for("its end", || prometheus.firing().is_empty().then_some(()));

    // Two of three are gone: nobody can be elected, and those who lead stop.
    daemons.kill(1);
    daemons.kill(2);
    let wanted =
        ["TenureNoLeader jobs", "TenureNoLeader mail", "TenureNoQuorum", "TenureNotReady", "TenurePeerDown"];
    look_for("the loss of the quorum", || {
        let firing = prometheus.firing();
        assert!(firing.iter().all(|alert| wanted.contains(&alert.as_str())), "{firing:?}");
        (firing == wanted).then_some(())
    });
    assert!(!again.is_leader() && !other.is_leader(), "as the alerts say");
}

/// Every panel of the dashboard asks what Prometheus can answer, and has something to show.
fn panels_have_data(prometheus: &Prometheus) {
    let dashboard: Value = serde_json::from_str(&packaged("grafana-dashboard.json")).unwrap();
    let mut empty = Vec::new();
    let end = now() + LIMIT;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let (title, text) = (panel["title"].as_str().unwrap(), target["expr"].as_str().unwrap());
            let expression =
                text.replace("$__rate_interval", "1m").replace("$instance", ".+").replace("$group", ".+");
            // Only refusals have nothing to show where nothing is refused.
            let may_be_empty = title == "Packets refused";
            while prometheus.query(&expression).is_empty() && !may_be_empty {
                if now() > end {
                    empty.push(format!("{title}: {text}"));
                    break;
                }
                sleep(Duration::from_millis(200));
            }
        }
    }
    assert!(empty.is_empty(), "panels without data: {empty:#?}");
    let nobody = prometheus.query("count(max by (group) (tenure_term) == 0) or vector(0)");
    assert_eq!(nobody[0]["value"][1], "0", "{nobody:?}");
}
