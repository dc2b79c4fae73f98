//! The outcome of one run, for people and for programs.

use serde_json::{Map, Value, json};
use tenure_lab::catalogue::Report;
use tenure_lab::count::Counts;
use tenure_lab::property::{Status, Tenure, Violation};
use tenure_lab::stage::Calm;
use tenure_lab::world::RealTime;

use crate::output::{Table, Verdict, grouped, many, pairs};

/// A report with what the laboratory does not know about it.
pub(super) struct Told<'a> {
    /// The outcome of the run.
    pub(super) report: &'a Report,
    /// The faults that were asked for, if it came from a seed.
    pub(super) faults: Option<String>,
    /// The scenario, where it has a name.
    pub(super) scenario: Option<Scenario>,
    /// The command that does it again.
    pub(super) command: String,
}

/// A scenario by name.
pub(super) struct Scenario {
    /// As it was asked for.
    pub(super) name: String,
    /// Its description, in one paragraph: empty, if it has no remarks.
    pub(super) says: String,
}

impl Scenario {
    /// Reads the remarks at the head of a file.
    pub(super) fn new(name: &str, text: &str) -> Self {
        let remarks = text.lines().skip(1).map_while(|line| line.strip_prefix('#')).map(str::trim);
        let words: Vec<&str> = remarks.filter(|remark| !remark.is_empty()).collect();
        Self { name: name.to_owned(), says: words.join(" ") }
    }
}

impl Told<'_> {
    /// Holds or broken.
    pub(super) fn verdict(&self) -> Verdict {
        Verdict::broken_if(self.report.violation.is_some())
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let report = self.report;
        let properties = report.properties.iter();
        let properties =
            properties.map(|(p, s)| json!({ "name": p.name, "kind": p.kind.name(), "status": s.name() }));
        json!({
            "protocol": report.protocol,
            "mutant": report.mutant,
            "nodes": report.nodes,
            "hosts": report.hosts,
            "quorums": report.quorums,
            "seed": report.seed,
            "faults": self.faults,
            "scenario": self.scenario.as_ref().map(|scenario| &scenario.name),
            "says": self.scenario.as_ref().map(|scenario| &scenario.says),
            "constants": constants_json(&report.constants),
            "verdict": self.verdict().name(),
            "violation": report.violation.as_ref().map(violation_json),
            "assumption": report.assumption,
            "leader": report.leader.map(|node| node.to_string()),
            "tenures": report.tenures.iter().map(tenure_json).collect::<Vec<_>>(),
            "calm": report.calm.as_ref().map(calm_json),
            "messages": messages_json(&report.messages),
            "counts": counts_json(&with_changes(report)),
            "time": report.time.to_string(),
            "time_ns": report.time.0,
            "events": report.events,
            "properties": properties.collect::<Vec<_>>(),
            "command": self.command,
        })
    }

    /// For people: the verdict first.
    pub(super) fn text(&self) -> String {
        let report = self.report;
        let mut text = format!(
            "{}: {}
",
            report.title,
            self.verdict().name()
        );
        if let Some(scenario) = self.scenario.as_ref().filter(|scenario| !scenario.says.is_empty()) {
            text += &pairs([("says", scenario.says.clone())]);
        }
        if let Some(violation) = &report.violation {
            let draw = ("draw it", format!("{} --html run.html", self.command));
            let facts = broken_facts(violation, report.assumption.as_deref()).into_iter();
            text += &pairs(facts.chain(self.also_broken(violation.property)).chain([draw]));
        } else if let Some(what) = &report.assumption {
            text +=
                &pairs([("note", format!("the assumption is broken, though nothing came of it: {what}"))]);
        }
        text.push('\n');
        text += &pairs(self.facts());
        text.push('\n');
        text += &tenures_text(report);
        let mut table = Table::new(["PROPERTY", "KIND", "STATUS"]);
        for (property, status) in &report.properties {
            table.row([property.name, property.kind.name(), status.name()].map(str::to_owned));
        }
        text + &table.render()
    }

    /// The next violation: where a run goes on after its first, more follow.
    fn also_broken(&self, first: &str) -> Option<(&'static str, String)> {
        let broken = self.report.properties.iter().filter(|(p, s)| *s == Status::Broken && p.name != first);
        let names: Vec<&str> = broken.map(|(property, _)| property.name).collect();
        (!names.is_empty()).then(|| ("broken too", names.join(", ")))
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let report = self.report;
        let leader = report.leader.map_or("nobody".to_owned(), |node| node.to_string());
        let mut facts = vec![
            ("leader", format!("{leader}, at the end")),
            ("time", format!("{}, simulated", report.time)),
            ("events", grouped(report.events)),
            ("messages", messages_text(&report.messages)),
        ];
        facts.extend(report.calm.map(|calm| ("stability", calm_text(&calm, report.time))));
        facts.extend(self.faults.as_ref().map(|faults| ("faults", faults.clone())));
        facts.push(("quorums", report.quorums.clone()));
        facts.push(("constants", report.constants.clone()));
        facts
    }
}

/// The facts of a violation, and whether it says anything about the protocol.
pub(super) fn broken_facts(violation: &Violation, assumption: Option<&str>) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("broken", format!("{} at {}", violation.property, violation.at)),
        ("seen", violation.text.clone()),
    ];
    // Without this, a broken assumption would read like a broken protocol.
    facts.extend(
        assumption.map(|what| ("ASSUMPTION", format!("the assumption is broken, not the protocol: {what}"))),
    );
    facts
}

/// A violation for programs.
pub(super) fn violation_json(violation: &Violation) -> Value {
    json!({
        "property": violation.property,
        "at": violation.at.to_string(),
        "text": violation.text,
    })
}

/// Counts for programs, by name.
pub(super) fn counts_json(counts: &Counts) -> Value {
    counts
        .sorted()
        .into_iter()
        .map(|(kind, count)| (kind.to_owned(), json!(count)))
        .collect::<Map<_, _>>()
        .into()
}

/// The counts of a run, and among them how often a leader changed that had to stay: nothing, if
/// that was owed at all.
fn with_changes(report: &Report) -> Counts {
    let mut counts = report.counts.clone();
    if let Some(calm) = &report.calm {
        counts.add_many("leader-changes", calm.changes);
    }
    counts
}

/// Messages for programs: all together, and by kind.
pub(super) fn messages_json(messages: &Counts) -> Value {
    let mut json = counts_json(messages);
    json["total"] = json!(messages.total());
    json
}

/// Messages for people.
pub(super) fn messages_text(messages: &Counts) -> String {
    let kinds: Vec<String> =
        messages.sorted().iter().map(|(kind, count)| format!("{kind} {}", grouped(*count))).collect();
    let total = grouped(messages.total());
    if kinds.is_empty() { total } else { format!("{total} ({})", kinds.join(", ")) }
}

/// Datagrams a renewal: for a steady group two for each other member.
fn per_renewal(calm: &Calm) -> Option<f64> {
    let thousandths = (calm.messages * 1000).checked_div(calm.renewals)?;
    Some(thousandths as f64 / 1000.0)
}

fn calm_json(calm: &Calm) -> Value {
    json!({
        "from": calm.from.to_string(),
        "leader_changes": calm.changes,
        "renewals": calm.renewals,
        "datagrams": calm.messages,
        "datagrams_per_renewal": per_renewal(calm),
    })
}

/// (4) in one line: from when on leaders must stay, and whether they did.
fn calm_text(calm: &Calm, end: RealTime) -> String {
    let (from, lasted) = (readable(calm.from.0), readable(end.0.saturating_sub(calm.from.0)));
    let changes = match calm.changes {
        0 => "no leader change".to_owned(),
        number => many(number, "LEADER CHANGE", "LEADER CHANGES"),
    };
    let cost = per_renewal(calm).map(|cost| format!(", {cost:.3} datagrams each")).unwrap_or_default();
    let renewals = many(calm.renewals, "renewal", "renewals");
    format!("{changes} in the {lasted} from {from} on; {renewals}{cost}")
}

fn constants_json(constants: &str) -> Value {
    let pairs = constants.split(' ').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), json!(value))).collect::<Map<_, _>>().into()
}

fn tenure_json(tenure: &Tenure) -> Value {
    json!({
        "node": tenure.node.to_string(),
        "from": tenure.from.to_string(),
        "until": tenure.until.to_string(),
        "text": tenure_words(tenure),
    })
}

fn tenure_words(tenure: &Tenure) -> String {
    format!("{} leads, term {}", tenure.node, tenure.term)
}

/// The most tenures that are shown to people: the last ones, since a violation ends a run.
const MOST_TENURES: usize = 12;

fn tenures_text(report: &Report) -> String {
    let tenures = &report.tenures;
    if tenures.is_empty() {
        return "  nobody led\n\n".to_owned();
    }
    let earlier = tenures.len().saturating_sub(MOST_TENURES);
    let many_groups = report.constants.split(' ').any(|c| c.starts_with("groups=") && c != "groups=1");
    let who = if many_groups { "WHO (FIRST GROUP)" } else { "WHO" };
    let mut table = Table::new(["FROM", "UNTIL", "LASTED", who]);
    for tenure in &tenures[earlier..] {
        let times = [tenure.from.0, tenure.until.0, tenure.until.0.saturating_sub(tenure.from.0)];
        let [from, until, lasted] = times.map(readable);
        table.row([from, until, lasted, tenure_words(tenure)]);
    }
    let left_out = match earlier {
        0 => String::new(),
        _ => format!("  ... and {earlier} before; --html shows them all\n"),
    };
    format!("{}{left_out}\n", table.render())
}

/// A time for the eye: to the microsecond.
fn readable(nanos: u64) -> String {
    RealTime(nanos / 1_000 * 1_000).to_string()
}
