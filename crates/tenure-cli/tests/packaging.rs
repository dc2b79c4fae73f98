//! Files shipped beside the command: dashboards and alerts that name only metrics there are, and
//! a package that is whole.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_testkit::binary::Binary;
use tenure_testkit::up::Up;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join("packaging").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The metrics that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).filter(|word| word.starts_with("tenure_")).map(str::to_owned).collect()
}

/// The metrics that a daemon has, by the names under which Prometheus stores them.
fn exported(endpoint: &str) -> BTreeSet<String> {
    let authority = endpoint.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {authority}\r\nAccept: application/openmetrics-text\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let family = |line: &str| {
        let mut words = line.strip_prefix("# TYPE ")?.split(' ');
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    let mut names = BTreeSet::new();
    for (name, kind) in text.lines().filter_map(family) {
        let endings: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            "info" => &["_info"],
            _ => &[""],
        };
        names.extend(endings.iter().map(|ending| format!("{name}{ending}")));
    }
    assert!(names.len() > 30, "{text}");
    names
}

#[test]
fn the_dashboard_and_the_alerts_name_only_metrics_that_a_daemon_exports() {
    let up = Up::start(TENURE);
    let there_are = exported(&up.endpoint(0));
    for file in ["grafana-dashboard.json", "alerts.yml"] {
        let names = named(&read(file));
        assert!(names.len() > 10, "{file}: {names:?}");
        let unknown: Vec<&String> = names.difference(&there_are).collect();
        assert!(unknown.is_empty(), "{file} names what no daemon exports: {unknown:?}");
    }
}

#[test]
fn there_is_an_alert_for_everything_that_somebody_should_be_woken_for() {
    let text = read("alerts.yml");
    for name in [
        "NoLeader",
        "NoQuorum",
        "NotReady",
        "Flapping",
        "LeaseCloseToExpiry",
        "ClockFault",
        "AuthFailures",
        "FsyncSlow",
        "VersionSkew",
    ] {
        assert!(text.contains(&format!("- alert: Tenure{name}\n")), "{name}");
    }
    let rules: Vec<&str> = text.split("- alert: ").skip(1).collect();
    for rule in rules {
        let name = rule.lines().next().unwrap_or_default();
        for part in ["expr:", "severity:", "summary:", "description:"] {
            assert!(rule.contains(part), "{name} has no {part}");
        }
    }
}

#[test]
fn the_dashboard_is_json_whose_panels_all_ask_something_and_do_not_overlap() {
    let dashboard: Value = serde_json::from_str(&read("grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut taken = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty() && targets.iter().all(|target| target["expr"].is_string()), "{title}");
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{title} is too wide");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(taken.insert((x, y)), "{title} lies over another panel");
            }
        }
    }
}

#[test]
fn every_file_that_the_package_lists_is_there_or_is_made_by_xtask() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    let deb = &manifest["package"]["metadata"]["deb"];
    for asset in deb["assets"].as_array().unwrap() {
        let source = asset[0].as_str().unwrap();
        let made = source.starts_with("target/release/");
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(source.trim_end_matches("*.md").trim_end_matches("*.svg"));
        assert!(made || path.exists(), "{source}");
    }
    for file in deb["conf-files"].as_array().unwrap() {
        let file = file.as_str().unwrap().trim_start_matches('/');
        let installs = |asset: &&toml::Value| {
            let (source, target) = (Path::new(asset[0].as_str().unwrap()), asset[1].as_str().unwrap());
            target == file || Path::new(target).join(source.file_name().unwrap()) == Path::new(file)
        };
        assert!(deb["assets"].as_array().unwrap().iter().any(|asset| installs(&asset)), "{file}");
    }
}
