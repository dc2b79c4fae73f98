//! `tenure members repair-terms`, with real daemons: an operator confirms an absurd term by
//! mistake, and mends it.

use std::fs;

use serde_json::Value;
use tenure::{Campaign, CampaignError, Node, Role, Term};
use tenure_testkit::binary::Binary;
use tenure_testkit::cluster::numbered;
use tenure_testkit::http_cluster::HttpCluster;
use tenure_testkit::waiting::{LIMIT, within};

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

const ABSURD: u64 = 1 << 40;
const PACKED: u64 = 1 << 31;

/// A candidate that asks the daemons.
struct Candidate {
    runtime: tokio::runtime::Runtime,
    node: Node,
}

impl Candidate {
    fn start(daemons: &HttpCluster, name: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let config = daemons.cluster.outsider(name, Role::Candidate);
        let node = runtime.block_on(Node::start(config)).expect("it starts");
        Self { runtime, node }
    }

    /// The term in which it is elected; it resigns at once.
    fn elect(&self, group: &str, above: u64) -> Result<u64, CampaignError> {
        let mut how = Campaign::default();
        how.above = (above > 0).then_some(Term(above));
        let campaign = within(group, LIMIT, self.node.campaign_with(group, how));
        let tenure = self.runtime.block_on(campaign)?;
        let term = tenure.term().0;
        tenure.resign();
        Ok(term)
    }

    fn end(self) {
        self.runtime.block_on(self.node.shutdown());
    }
}

/// Runs an offline command, and returns its exit code and what it said.
fn offline(daemons: &HttpCluster, words: &[&str], index: Option<usize>) -> (i32, String, String) {
    let mut command = TENURE.command();
    command.args(["members", "repair-terms"]).args(words);
    if let Some(index) = index {
        command.arg("-c").arg(daemons.file(index));
    }
    let output = command.current_dir(daemons.cluster.dir.path()).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Reports of all members, each in a file.
fn reports(daemons: &HttpCluster) -> Vec<String> {
    let report = |index| {
        let (code, text, said) = offline(daemons, &["report"], Some(index));
        assert_eq!(code, 0, "{said}");
        let file = format!("{}.report", numbered(index));
        fs::write(daemons.path(&file), text).expect("it is written");
        file
    };
    (0..3).map(report).collect()
}

/// A plan of all reports, in a file.
fn plan(daemons: &HttpCluster) -> String {
    let reports = reports(daemons);
    let words: Vec<&str> =
        ["plan", "--bar", "wild"].into_iter().chain(reports.iter().map(String::as_str)).collect();
    let (code, text, said) = offline(daemons, &words, None);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("apply it to n1, n2, n3"), "{said}");
    fs::write(daemons.path("terms.plan"), text).expect("it is written");
    "terms.plan".to_owned()
}

fn status(daemons: &HttpCluster, index: usize) -> Option<Value> {
    let endpoint = format!("http://{}", daemons.http[index]);
    let output = daemons.ask(&["status", "--endpoint", &endpoint, "-o", "json"]);
    serde_json::from_slice(&output.stdout).ok()
}

/// The cluster has elected in `jobs`, and in `wild` with an absurd term; then all are stopped.
fn made_absurd(daemons: &mut HttpCluster) -> u64 {
    let candidate = Candidate::start(daemons, "c1");
    let jobs = candidate.elect("jobs", 0).expect("it is elected");
    assert!(jobs < PACKED);
    for address in daemons.http.clone() {
        let endpoint = format!("http://{address}");
        let term = (2 * ABSURD).to_string();
        let output = daemons.ask(&["members", "confirm-term", &term, "--endpoint", &endpoint]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(candidate.elect("wild", ABSURD).expect("it is elected") > ABSURD);
    candidate.end();
    let (code, _, said) = offline(daemons, &["report"], Some(0));
    assert!(code == 78 && said.contains("is in use"), "a member that runs does not report: {said}");
    (0..3).for_each(|index| daemons.kill(index));
    jobs
}

#[test]
fn absurd_terms_are_repaired_and_the_group_that_holds_one_stays_barred() {
    let mut daemons = HttpCluster::start(TENURE, 3, "");
    let jobs = made_absurd(&mut daemons);

    let (code, _, said) = offline(&daemons, &["plan", &reports(&daemons)[0]], None);
    assert!(code == 2 && said.contains("is a member, and its report is missing"), "{said}");
    plan(&daemons);
    let (code, said, _) = offline(&daemons, &["apply", "terms.plan"], Some(0));
    assert!(code == 0 && said.contains("n1 is repaired"), "{said}");
    let (code, said, _) = offline(&daemons, &["apply", "terms.plan", "-o", "json"], Some(0));
    assert!(code == 0 && said.contains("\"applied\": false"), "{said}");

    // One that is repaired and one that is not are foreign to each other, and both stop.
    [0, 1].into_iter().for_each(|index| daemons.run(index));
    for index in [0, 1] {
        daemons.wait("a member that has stopped", || {
            let status = status(&daemons, index)?;
            let why = status["not_ready"].to_string();
            why.contains("split brain").then_some(())
        });
    }
    [0, 1].into_iter().for_each(|index| daemons.kill(index));
    let (code, _, said) = offline(&daemons, &["apply", "terms.plan"], Some(1));
    assert!(code == 78 && said.contains("not as in the report"), "it has run since: {said}");

    // A new plan, of reports of both sides.
    plan(&daemons);
    for index in 0..3 {
        let (code, said, _) = offline(&daemons, &["apply", "terms.plan"], Some(index));
        assert!(code == 0 && said.contains("is repaired"), "{said}");
    }
    (0..3).for_each(|index| daemons.run(index));
    for index in 0..3 {
        daemons.wait("a daemon that is ready", || {
            status(&daemons, index).filter(|status| status["ready"] == true)
        });
    }
    let candidate = Candidate::start(&daemons, "c2");
    let term = candidate.elect("jobs", 0).expect("it is elected");
    assert!(term > jobs && term < PACKED, "{term}");
    let refused = candidate.elect("wild", 0);
    assert!(matches!(refused, Err(CampaignError::Barred { .. })), "{refused:?}");
    let barred = status(&daemons, 0).expect("it answers")["terms"]["barred"].clone();
    assert_eq!(barred.as_array().map(Vec::len), Some(1), "{barred}");
    assert!(fs::read_to_string(daemons.path("n1.log")).expect("a log").contains("event=barred"));

    let output = daemons.ask(&["members", "repair-terms", "lift", "wild"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let term = candidate.elect("wild", 0).expect("it is elected");
    assert!(term < PACKED, "{term}");
    let output = daemons.ask(&["members", "repair-terms", "lift", "wild"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not barred"), "it was lifted");
    candidate.end();
}
