//! Askers on every host: over HTTP and by the commands, round after round. The
//! answers are kept for the referee.

use std::process::Output;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::chance::Chance;
use tenure_testkit::http_cluster::get_within;
use tenure_testkit::referee::clock;
use tenure_testkit::referee::judge::{Claim, Says};

use crate::script::Day;
use crate::site::{APPS, Site, group, http};

/// How long an answer over HTTP may take: longer than the second for which a daemon waits for a
/// quorum, shorter than members are stopped.
const ANSWER: Duration = Duration::from_secs(4);

/// Asks `/leader/GROUP` of the host's daemon, with and without `?here`.
pub(crate) fn ask_http(site: &Site, day: &Day, host: u8, seed: u64) -> Vec<Claim> {
    site.net.enter(host).expect("a thread may enter a namespace");
    let (mut chance, mut told) = (Chance::new(seed), Vec::new());
    while !day.over.load(Relaxed) {
        let group = group(chance.index(APPS));
        let only_here = chance.below(3) == 0;
        let path = format!("/leader/{group}{}", if only_here { "?here" } else { "" });
        let asked = clock();
        let answer = get_within(http(host), &path, ANSWER);
        let (says, here) = of_probe(answer.as_deref(), only_here);
        let kind = if only_here { "/leader/GROUP?here" } else { "/leader/GROUP" };
        told.push(Claim { kind, host, group, asked, told: clock(), says, here, listed: false });
        sleep(Duration::from_millis(20 + chance.below(40)));
    }
    told
}

/// Runs `tenure leader` and `tenure status`, by the file of the host's daemon or by the clients'.
pub(crate) fn ask_commands(site: &Site, day: &Day, host: u8, seed: u64) -> Vec<Claim> {
    let (mut chance, mut told) = (Chance::new(seed), Vec::new());
    while !day.over.load(Relaxed) {
        let own = site.file(host);
        let file = if chance.below(4) == 0 { "D/tenure.toml" } else { &own };
        if chance.below(3) == 0 {
            let asked = clock();
            let output = site.tenure(host, &["status", "-o", "json", "-c", file]);
            told.extend(of_status(&output, host, asked, clock()));
        } else {
            let group = group(chance.index(APPS));
            let asked = clock();
            let output = site.tenure(host, &["leader", &group, "-o", "json", "-c", file]);
            let (says, told_at) = (of_leader(&output), clock());
            let kind = "tenure leader";
            told.push(Claim { kind, host, group, asked, told: told_at, says, here: None, listed: false });
        }
        sleep(Duration::from_millis(100 + chance.below(300)));
    }
    told
}

/// The state, the leader's name and the term, as JSON has them.
fn of_state(json: &Value, after: &str) -> Says {
    let term = json["term"].as_u64();
    match (json["state"].as_str(), json["leader"].as_str(), term) {
        (Some("leader"), Some(name), Some(term)) => Says::Leader { name: name.to_owned(), term },
        (Some("leader"), None, Some(_)) => Says::Unknown, // A leader whose name nobody has told yet.
        (Some("nobody"), None, _) => Says::Nobody { after: json[after].as_u64() },
        (Some("unknown" | "weak"), ..) => Says::Unknown,
        _ => Says::Nonsense(json.to_string()),
    }
}

fn of_probe(answer: Option<&str>, only_here: bool) -> (Says, Option<bool>) {
    let Some((head, body)) = answer.and_then(|answer| answer.split_once("\r\n\r\n")) else {
        return (Says::Silence, None);
    };
    let code: u16 = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    if json["error"]["code"] == "stopped" {
        return (Says::Silence, None);
    }
    let says = of_state(&json, "after");
    let leads = json["state"] == "leader";
    let here = json["here"].as_bool().filter(|_| leads);
    let yes = leads && (!only_here || here == Some(true));
    if code != if yes { 200 } else { 503 } {
        return (Says::Nonsense(format!("{code} {body}")), here);
    }
    (says, here)
}

fn of_leader(output: &Output) -> Says {
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let said = || format!("{:?} {json} {}", output.status, String::from_utf8_lossy(&output.stderr));
    match (output.status.code(), of_state(&json, "term")) {
        (Some(0), says @ Says::Leader { .. }) => says,
        (Some(0 | 1), says @ (Says::Nobody { .. } | Says::Unknown)) => says,
        (Some(69), _) if json.is_null() => Says::Silence,
        _ => Says::Nonsense(said()),
    }
}

/// One claim for each group of the list; one in all if there is none.
fn of_status(output: &Output, host: u8, asked: u64, told: u64) -> Vec<Claim> {
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let claim = |group: String, says| {
        let kind = "tenure status";
        Claim { kind, host, group, asked, told, says, here: None, listed: true }
    };
    match (output.status.code(), json["groups"].as_array()) {
        (Some(0 | 1), Some(groups)) => {
            let name = |known: &Value| known["group"].as_str().unwrap_or_default().to_owned();
            groups.iter().map(|known| claim(name(known), of_state(known, "term"))).collect()
        }
        (Some(69), None) => vec![claim(String::new(), Says::Silence)],
        (code, _) => {
            let said = format!("{code:?} {}", String::from_utf8_lossy(&output.stderr));
            vec![claim(String::new(), Says::Nonsense(said))]
        }
    }
}
