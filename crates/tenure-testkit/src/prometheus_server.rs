//! A Prometheus server of the test's own: Debian's, with a folder and a port of its own, gone with
//! the test.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::http_cluster::get;
use crate::ports::free_addresses;
use crate::waiting::look_for;

/// A running server. It ends when it is dropped.
pub struct Prometheus {
    folder: tempfile::TempDir,
    address: SocketAddr,
    child: Child,
}

impl Prometheus {
    /// Starts one that scrapes these addresses and goes by these rules, both each second, and waits
    /// until it answers.
    pub fn start(targets: &[SocketAddr], rules: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let list = targets.iter().map(|target| format!("'{target}'")).collect::<Vec<_>>().join(", ");
        let config = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\n\
             rule_files: [rules.yml]\n\
             scrape_configs:\n  - {{ job_name: tenure, static_configs: [{{ targets: [{list}] }}] }}\n"
        );
        fs::write(folder.path().join("prometheus.yml"), config).expect("it is written");
        fs::write(folder.path().join("rules.yml"), rules).expect("it is written");
        let address = free_addresses(1)[0];
        let log = fs::File::create(folder.path().join("log")).expect("a log");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("Prometheus starts");
        let server = Self { folder, address, child };
        look_for(&format!("Prometheus at {address}"), || {
            get(address, "/-/ready").filter(|answer| answer.starts_with("HTTP/1.1 200"))
        });
        server
    }

    /// The answer of its interface to a path, as JSON.
    pub fn ask(&self, path: &str) -> serde_json::Value {
        let answer = get(self.address, path).unwrap_or_default();
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        // Long answers come in pieces, each after its length: what is left is the JSON.
        let json = match answer.contains("Transfer-Encoding: chunked") {
            true => unchunked(body),
            false => body.to_owned(),
        };
        serde_json::from_str(&json)
            .unwrap_or_else(|error| panic!("{path}: {error}: {answer}\n{}", self.log()))
    }

    /// The value of each series that an expression gives now.
    pub fn query(&self, expression: &str) -> Vec<serde_json::Value> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = self.ask(&format!("/api/v1/query?query={encoded}"));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().expect("a list").clone()
    }

    /// The alerts that fire, each with its labels, sorted.
    pub fn firing(&self) -> Vec<String> {
        let answer = self.ask("/api/v1/alerts");
        let alerts = answer["data"]["alerts"].as_array().expect("a list").iter();
        let mut names: Vec<String> = alerts
            .filter(|alert| alert["state"] == "firing")
            .map(|alert| {
                let label = |name: &str| alert["labels"][name].as_str().unwrap_or_default().to_owned();
                let group = label("group");
                let name = label("alertname");
                if group.is_empty() { name } else { format!("{name} {group}") }
            })
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Alert rules in which every length after `for:` and in `[…]` is divided, down to a second: time
/// runs that many times as fast. Thresholds stay as they are.
pub fn quicken(rules: &str, times: u64) -> String {
    let mut quick = String::new();
    for line in rules.lines() {
        let (head, rest) = match line.trim_start().strip_prefix("for: ") {
            Some(length) => (line.trim_end_matches(length).to_owned(), shorter(length, times)),
            None => (String::new(), in_brackets(line, times)),
        };
        quick += &format!("{head}{rest}\n");
    }
    quick
}

fn in_brackets(line: &str, times: u64) -> String {
    let mut parts = line.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((lengths, rest)) = part.split_once(']') else {
            text += &format!("[{part}");
            continue;
        };
        let quick: Vec<String> = lengths.split(':').map(|length| shorter(length, times)).collect();
        text += &format!("[{}]{rest}", quick.join(":"));
    }
    text
}

/// A length such as `10m`, divided; anything else as it is.
fn shorter(length: &str, times: u64) -> String {
    let unit = match length.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        _ => return length.to_owned(),
    };
    match length[..length.len() - 1].parse::<u64>() {
        Ok(number) => format!("{}s", (number * unit / times).max(1)),
        Err(_) => length.to_owned(),
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        let Some(piece) = rest.get(..length).filter(|piece| !piece.is_empty()) else { break };
        whole += piece;
        body = rest.get(length + 2..).unwrap_or("");
    }
    whole
}

/// Runs `promtool` with an input. Returns its exit code and its words.
pub fn promtool(folder: &Path, words: &[&str], input: &str) -> (Option<i32>, String) {
    use std::io::Write;
    let mut child = Command::new("promtool")
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let mut said = String::new();
    let mut out = child.stdout.take().expect("a pipe");
    let _ = out.read_to_string(&mut said);
    let mut err = child.stderr.take().expect("a pipe");
    let _ = err.read_to_string(&mut said);
    (child.wait().expect("it ends").code(), said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_quickened_in_their_lengths_and_nowhere_else() {
        let rules = "        for: 1m\n        expr: changes((max by (group) (a) > 0)[10m:15s]) > 5\n\
                     expr: rate(b[5m]) > 1 and max_over_time(c{d=\"15m\"}[1h]) > 0.5\n        for: 30s\n";
        let quick = "        for: 4s\n        expr: changes((max by (group) (a) > 0)[40s:1s]) > 5\n\
                     expr: rate(b[20s]) > 1 and max_over_time(c{d=\"15m\"}[240s]) > 0.5\n        for: 2s\n";
        assert_eq!(quicken(rules, 15), quick);
    }
}
