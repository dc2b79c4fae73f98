//! Checks the text of `/metrics`, line by line, by the rules of Prometheus and OpenMetrics.

use std::collections::{BTreeMap, BTreeSet};

use super::Daemon;
use crate::daemon::http::metrics::MOST_GROUPS;

/// Endings of names of measures in a base unit.
const UNITS: [&str; 2] = ["seconds", "bytes"];

/// Words that name a unit that is no base unit.
const NO_UNITS: [&str; 8] = ["ms", "us", "ns", "millis", "minutes", "kilobytes", "percent", "milliseconds"];

/// A family of metrics, as its HELP and TYPE lines describe it.
#[derive(Debug, Default)]
struct Family {
    kind: Option<String>,
    help: Option<String>,
    samples: usize,
}

/// Everything that is wrong with an exposition.
fn lint(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (word, name, value) = (words.next(), words.next(), words.next());
            if word == Some("EOF") {
                continue;
            }
            let family = families.entry(name.unwrap_or_default().to_owned()).or_default();
            let slot = match word {
                Some("HELP") => &mut family.help,
                Some("TYPE") => &mut family.kind,
                Some("UNIT") => continue,
                _ => {
                    wrong.push(format!("neither HELP, TYPE, UNIT nor EOF: {line}"));
                    continue;
                }
            };
            if slot.replace(value.unwrap_or_default().to_owned()).is_some() {
                wrong.push(format!("twice: {line}"));
            }
            name.unwrap_or_default().clone_into(&mut current);
            continue;
        }
        let Some((series, value)) = line.rsplit_once(' ') else {
            wrong.push(format!("no sample: {line}"));
            continue;
        };
        if !seen.insert(series.to_owned()) {
            wrong.push(format!("twice: {series}"));
        }
        if value.parse::<f64>().is_err() {
            wrong.push(format!("no number: {line}"));
        }
        let name = series.split('{').next().unwrap_or_default();
        if !name.starts_with(&current) {
            wrong.push(format!("{name} stands under {current}"));
        }
        families.entry(current.clone()).or_default().samples += 1;
        wrong.extend(lint_name(name, families[&current].kind.as_deref()));
    }
    for (name, family) in families {
        match (family.kind, family.help) {
            (Some(_), Some(help)) if help.len() > 10 => {}
            _ => wrong.push(format!("{name} has no type or no help")),
        }
        if !text.contains(&format!("# UNIT {name} ")) && UNITS.iter().any(|unit| name.ends_with(unit)) {
            wrong.push(format!("{name} has no unit"));
        }
    }
    if !text.ends_with("# EOF\n") {
        wrong.push("no end".to_owned());
    }
    wrong
}

fn lint_name(name: &str, kind: Option<&str>) -> Vec<String> {
    let mut wrong = Vec::new();
    if !name.starts_with("tenure_")
        || !name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
    {
        wrong.push(format!("{name} is no name of ours"));
    }
    if name.split('_').any(|word| NO_UNITS.contains(&word)) {
        wrong.push(format!("{name} is not in base units"));
    }
    let fits = match kind {
        Some("counter") => name.ends_with("_total"),
        Some("gauge") => !name.ends_with("_total"),
        Some("info") => name.ends_with("_info"),
        Some("histogram") => {
            ["_seconds_bucket", "_seconds_sum", "_seconds_count"].iter().any(|end| name.ends_with(end))
        }
        _ => false,
    };
    if !fits {
        wrong.push(format!("{name} does not end as a {} does", kind.unwrap_or("nothing")));
    }
    wrong
}

#[tokio::test]
async fn every_line_of_the_metrics_is_as_prometheus_wants_it() {
    let daemon = Daemon::start("").await;
    let _tenure = daemon.node.campaign("app/jobs").await.unwrap();
    let answer = daemon.metrics().await;
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    let wrong = lint(text);
    assert!(wrong.is_empty(), "{wrong:#?}\n{text}");
    for line in [
        "tenure_is_leader{group=\"app/jobs\"} 1",
        "tenure_ready 1",
        "tenure_elections_total 1",
        "tenure_groups_led 1",
        "tenure_silent_seconds 0.0",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line} is not in\n{text}");
    }
    for name in [
        "tenure_lease_remaining_seconds{group=\"app/jobs\"}",
        "tenure_renew_duration_seconds_bucket{le=\"+Inf\"}",
        "tenure_fsync_duration_seconds_count",
        "tenure_auth_failures_total{reason=",
        "tenure_build_info{version=",
        "tenure_epoch ",
        "tenure_sent_bytes_total ",
    ] {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
    daemon.end().await;
}

#[tokio::test]
async fn every_metric_is_documented() {
    let documented = include_str!("../../../../../../docs/reference/metrics.md");
    let daemon = Daemon::start("").await;
    let text = daemon.metrics().await;
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let end = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let listed = ["`", "{"].iter().any(|after| documented.contains(&format!("`{name}{end}{after}")));
        assert!(listed, "{name}{end} is not in docs/reference/metrics.md");
    }
    daemon.end().await;
}

#[test]
fn the_lint_finds_what_is_wrong() {
    let good = "# HELP tenure_x_seconds Something long.\n# TYPE tenure_x_seconds gauge\n# UNIT tenure_x_seconds seconds\ntenure_x_seconds 1.0\n# EOF\n";
    assert_eq!(lint(good), Vec::<String>::new());
    for (from, to) in [
        ("tenure_x_seconds 1.0", "tenure_x_seconds 1.0\ntenure_x_seconds 2.0"),
        ("# HELP tenure_x_seconds Something long.\n", ""),
        ("gauge", "counter"),
        ("tenure_x", "other_x"),
        ("seconds", "ms"),
        ("# EOF\n", ""),
        ("1.0", "one"),
    ] {
        assert!(!lint(&good.replace(from, to)).is_empty(), "{from} -> {to}");
    }
}

#[tokio::test]
async fn the_number_of_groups_with_labels_is_bounded() {
    let daemon = Daemon::start("").await;
    let mut held = Vec::new();
    for number in 0..MOST_GROUPS + 20 {
        held.push(daemon.node.campaign(&format!("g{number}")).await.unwrap());
    }
    let text = daemon.metrics().await;
    assert_eq!(text.matches("\ntenure_is_leader{").count(), MOST_GROUPS);
    assert!(text.contains(&format!("\ntenure_groups {}\n", MOST_GROUPS + 20)));
    daemon.end().await;
}
