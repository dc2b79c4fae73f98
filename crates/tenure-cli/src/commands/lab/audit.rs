//! `tenure lab audit`: what real nodes have written down, judged.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tenure_lab::audit::{self, Broken, Counted, File, Place, Report, Unjudged};

use super::run::Drawings;
use crate::failure::{Failure, messages};
use crate::files;
use crate::output::{Answer, Format, Table, Verdict, grouped, many, pairs};

/// Judge the traces of real nodes by the laboratory's properties.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab audit alpha.trace beta.trace gamma.trace
  tenure lab audit traces/*.trace -o json
  tenure lab audit traces/*.trace --svg leaders.svg

Give all files of one cluster: of every node, of every life of it, of users' threads and of
fenced resources, in any order. They are put in order by the clock that their writers shared; a
file without one is judged by what needs none. Missing parts are believed and named, so that
nothing is called broken that might be right; a last line that was cut off, by kill -9 say, does
not count. Drawings show strong leaders as bars, and the partitions of local leaders as shades.

Exit codes: 0 everything holds that could be judged, 1 a property is broken (which, and the lines
that show it), 2 a file cannot be read or is of another cluster.")]
pub(super) struct Audit {
    /// The files that nodes, threads and fenced resources wrote
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    drawings: Drawings,
}

impl Audit {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        let mut read = Vec::new();
        for path in &self.files {
            read.push((path.display().to_string(), files::read_bytes(path)?));
        }
        let given: Vec<File<'_>> = read.iter().map(|(name, bytes)| File { name, bytes }).collect();
        let outputs = self.drawings.check(None)?;
        let report = audit::audit(&given).map_err(messages::lab_not_audited)?;
        if self.drawings.are_wanted() {
            let picture = audit::picture(&given, &report).map_err(messages::lab_not_audited)?;
            self.drawings.draw(outputs, &picture)?;
        }
        let mut answer = Answer::new(format, || json(&report), || text(&report));
        answer.verdict = verdict(&report);
        Ok(answer)
    }
}

fn verdict(report: &Report) -> Verdict {
    Verdict::broken_if(!report.violations.is_empty())
}

fn json(report: &Report) -> Value {
    let Counted { files, nodes, lives, groups, local_groups, local_elections, .. } = report.counts;
    let Counted { events, terms, edicts, admitted, refused, cut, unknown, .. } = report.counts;
    let properties = report.properties.iter();
    let properties =
        properties.map(|(p, s)| json!({ "name": p.name, "kind": p.kind.name(), "status": s.name() }));
    let nodes_json = report.nodes.iter();
    let nodes_json =
        nodes_json.map(|n| json!({ "node": n.node.to_string(), "name": n.name, "lives": n.lives }));
    json!({
        "verdict": verdict(report).name(),
        "violations": report.violations.iter().map(broken_json).collect::<Vec<_>>(),
        "counts": {
            "files": files,
            "nodes": nodes,
            "lives": lives,
            "groups": groups,
            "local-groups": local_groups,
            "local-elections": local_elections,
            "events": events,
            "terms": terms,
            "edicts": edicts,
            "admitted": admitted,
            "refused": refused,
            "lines-cut": cut,
            "lines-unknown": unknown,
        },
        "nodes": nodes_json.collect::<Vec<_>>(),
        "not_judged": report.unjudged.iter().map(unjudged_json).collect::<Vec<_>>(),
        "properties": properties.collect::<Vec<_>>(),
    })
}

fn broken_json(broken: &Broken) -> Value {
    let place = |place: &Place| json!({ "file": place.file, "line": place.line, "text": place.text });
    json!({
        "property": broken.property.name,
        "says": broken.property.says,
        "at": broken.at.map(|at| at.to_string()),
        "text": broken.text,
        "lines": broken.places.iter().map(place).collect::<Vec<_>>(),
    })
}

fn unjudged_json(left: &Unjudged) -> Value {
    json!({ "what": left.what, "why": left.why, "partly": left.partly })
}

fn text(report: &Report) -> String {
    let Counted { files, nodes, lives, .. } = report.counts;
    let files = many(files as u64, "file", "files");
    let nodes = format!("{} in {}", many(nodes as u64, "node", "nodes"), many(lives as u64, "life", "lives"));
    let mut text = format!("{files}, {nodes}: {}\n", verdict(report).name());
    for broken in &report.violations {
        text += &pairs(broken_facts(broken));
    }
    text.push('\n');
    text += &pairs(facts(report));
    text.push('\n');
    let mut table = Table::new(["NOT JUDGED", "WHY"]);
    for left in &report.unjudged {
        let what = if left.partly { format!("{}, in part", left.what) } else { left.what.clone() };
        table.row([what, left.why.clone()]);
    }
    text += &table.render();
    text.push('\n');
    let mut table = Table::new(["PROPERTY", "KIND", "STATUS"]);
    for (property, status) in &report.properties {
        table.row([property.name, property.kind.name(), status.name()].map(str::to_owned));
    }
    text + &table.render()
}

fn broken_facts(broken: &Broken) -> Vec<(&'static str, String)> {
    let at = broken.at.map(|at| format!(", {at} after the first line")).unwrap_or_default();
    let mut facts = vec![
        ("broken", format!("{}{at}", broken.property.name)),
        ("says", broken.property.says.to_owned()),
        ("seen", broken.text.clone()),
    ];
    let place = |place: &Place| format!("{}:{}: {}", place.file, place.line, place.text);
    facts.extend(broken.places.iter().map(|at| ("line", place(at))));
    facts
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let Counted { groups, events, terms, edicts, admitted, refused, cut, unknown, .. } = report.counts;
    let Counted { local_groups, local_elections, .. } = report.counts;
    let nodes: Vec<&str> = report.nodes.iter().map(|node| node.name.as_str()).collect();
    let number = |count: usize| grouped(count as u64);
    let mut facts = vec![
        ("nodes", nodes.join(", ")),
        ("events", format!("{} in {}", number(events), many(groups as u64, "group", "groups"))),
        ("terms", number(terms)),
        ("edicts", number(edicts)),
        ("fences", format!("{} admitted, {} refused", number(admitted), number(refused))),
    ];
    if local_groups > 0 {
        let groups = many(local_groups as u64, "group", "groups");
        let elections = many(local_elections as u64, "election", "elections");
        facts.push(("local", format!("{elections} in {groups}")));
    }
    if cut > 0 {
        facts.push(("cut off", many(cut as u64, "line, which does not count", "lines, which do not count")));
    }
    if unknown > 0 {
        facts.push(("unknown", many(unknown as u64, "line of an unknown kind", "lines of unknown kinds")));
    }
    facts
}
