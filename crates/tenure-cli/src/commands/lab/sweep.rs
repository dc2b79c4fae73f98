//! `tenure lab sweep`: many seeds.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tenure_lab::catalogue::{self, Experiment, Seeds, Small, Trial};
use tenure_lab::property::{Property, Status, Violation};
use tenure_lab::simulate::{FAULTS, Fault, Faults};
use tenure_lab::sweep::Swept;

use super::options::{self, Common, faults_text};
use super::report::{broken_facts, counts_json, messages_json, messages_text, violation_json};
use crate::failure::Failure;
use crate::files::Outputs;
use crate::output::{Answer, Format, Progress, Table, Verdict, grouped, many, pairs, quoted};

/// Run many seeds on all cores. The first violation is made small and saved. The result does not
/// depend on the number of threads.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab sweep nerio-drift --seeds 10000
  tenure lab sweep nerio-drift --seeds 10000 --seed 500000 --nodes 7
  tenure lab sweep nerio-drift --seeds 10000 --mutant swap-rho --save /tmp
  tenure lab sweep nerio-drift --seeds 1000 --faults clock-beyond-rho --keep-going
  tenure lab sweep nerio-drift --seeds 1000 --quorums grid:3x3 --nodes 9 -o json

With clock-beyond-rho the assumption itself is broken: the sweep then goes on by itself, and
counts what follows.

Exit codes: 0 every property holds, 1 one is broken, 2 error.")]
pub(super) struct Sweep {
    /// The protocol
    #[arg(value_name = "NAME")]
    name: String,
    /// How many seeds to run, from --seed on
    #[arg(long, value_name = "K", value_parser = options::at_least_one, allow_negative_numbers = true)]
    seeds: u64,
    #[command(flatten)]
    common: Common,
    /// On how many cores [default: all]
    #[arg(long, value_name = "N", value_parser = options::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Go on after a violation, and count them all
    #[arg(long)]
    keep_going: bool,
    /// The folder in which the first violation is saved, as NAME[-MUTANT]-SEED.scenario
    #[arg(long, value_name = "DIR", default_value = ".")]
    save: PathBuf,
    /// Neither make a violation small nor save it
    #[arg(long)]
    no_shrink: bool,
}

/// The result of a sweep, and the evaluation of it.
struct Found<'a> {
    sweep: &'a Sweep,
    faults: Faults,
    swept: &'a Swept,
    /// The violation that was made small, with the path of its script.
    saved: Option<(Small, PathBuf)>,
}

impl Sweep {
    pub(super) fn run(mut self, format: Format) -> Result<Answer, Failure> {
        let experiment = catalogue::find(&self.name)?;
        self.common = self.common.at_home(experiment);
        let faults = self.common.faults_or(experiment.bears());
        let trial = self.common.trial(faults)?;
        if !self.no_shrink {
            // Any name will do: the seed is not known yet, but the folder is.
            Outputs::check([&self.path(self.first())])?;
        }
        let bar = Progress::new(self.seeds, &self.name);
        let seeds = self.seeds(faults);
        let swept = experiment.sweep(&trial, seeds, &|done| bar.add(done));
        bar.end();
        let swept = swept?;
        // A sweep that a violation ended was not meant to see everything.
        let ended = seeds.stop_at_first && !swept.violations.is_empty();
        let mut notes = if ended { Vec::new() } else { unexercised(&swept, faults) };
        let saved = match telling(&swept.violations, faults).filter(|_| !self.no_shrink) {
            Some((seed, violation)) => self.shrink(experiment, &trial, *seed, violation, &mut notes)?,
            None => None,
        };
        let found = Found { sweep: &self, faults, swept: &swept, saved };
        let answer = Answer::new(format, || found.json(), || found.text());
        Ok(Answer { notes, verdict: found.verdict(), ..answer })
    }

    fn first(&self) -> u64 {
        self.common.seed.unwrap_or(0)
    }

    fn seeds(&self, faults: Faults) -> Seeds {
        Seeds {
            first: self.first(),
            count: self.seeds,
            stop_at_first: !self.keep_going && !faults.has(Fault::ClockBeyondRho),
            threads: self.threads.unwrap_or_else(options::all_cores),
        }
    }

    fn path(&self, seed: u64) -> PathBuf {
        let mutant = self.common.mutant.as_ref().map(|mutant| format!("-{mutant}")).unwrap_or_default();
        let file = format!("{}{mutant}-{seed}.scenario", self.name);
        if self.save == Path::new(".") { PathBuf::from(file) } else { self.save.join(file) }
    }

    /// Makes a violation small and saves it. That it cannot be made small must not hide that it was
    /// found.
    fn shrink(
        &self,
        experiment: &dyn Experiment,
        trial: &Trial,
        seed: u64,
        violation: &Violation,
        notes: &mut Vec<String>,
    ) -> Result<Option<(Small, PathBuf)>, Failure> {
        let small = match experiment.shrink(trial, seed, violation.property) {
            Ok(small) => small,
            Err(error) => {
                notes.push(format!("warning: seed {seed} could not be made small: {error}"));
                return Ok(None);
            }
        };
        let path = self.path(seed);
        Outputs::check([&path])?.write([small.script.clone()])?;
        Ok(Some((small, path)))
    }
}

/// The violation to show: the first. Where the assumption is broken, much follows; two leaders at
/// once say most.
fn telling(violations: &[(u64, Violation)], faults: Faults) -> Option<&(u64, Violation)> {
    let two_leaders = |(_, violation): &&(u64, Violation)| violation.property == "leader-uniqueness";
    let beyond = faults.has(Fault::ClockBeyondRho);
    violations.iter().find(two_leaders).filter(|_| beyond).or(violations.first())
}

/// The counts that show that a kind of fault really happened.
fn signs(fault: Fault) -> &'static [&'static str] {
    match fault {
        Fault::Clock => &["clocks-at-extreme", "clock-rate-changes"],
        Fault::Delay => &["delays-constant", "delays-heavy-tailed", "delays-in-blocks", "wakes-late"],
        Fault::Loss => &["messages-lost"],
        Fault::Dup => &["messages-duplicated"],
        Fault::Reorder => &["messages-reordered"],
        Fault::Partition => &[
            "partitions-split",
            "partitions-one-way",
            "partitions-bridge",
            "partitions-chain",
            "partitions-isolated",
            "partitions-moving-set",
        ],
        Fault::Crash => &["crashes"],
        Fault::Amnesia => &["disks-lost"],
        Fault::Pause => &["pauses", "suspends"],
        Fault::Disk => &["writes-slow"],
        Fault::Members => &["epochs-decided"],
        Fault::Forgery => &["messages-forged"],
        Fault::ClockBeyondRho => &[], // One clock of every run: nothing to count.
    }
}

/// Faults that were asked for and never happened: the verdict says nothing about them.
fn unexercised(swept: &Swept, faults: Faults) -> Vec<String> {
    let never = |kinds: &[&str]| !kinds.is_empty() && kinds.iter().all(|kind| swept.counts.get(kind) == 0);
    let asked = FAULTS.iter().filter(|(fault, _)| faults.has(*fault) && never(signs(*fault)));
    let faults: Vec<&str> = asked.map(|(_, name)| *name).collect();
    let unseen: Vec<&str> = swept.unseen().collect();
    let lacks =
        [(faults, "faults that were asked for"), (unseen, "properties that are to be seen sometimes")];
    let lacks = lacks.into_iter().filter(|(names, _)| !names.is_empty());
    lacks
        .map(|(names, why)| {
            format!("warning: nothing exercised {} ({why}); run more seeds or more faults", names.join(", "))
        })
        .collect()
}

/// The most violations that are listed.
const MOST_VIOLATIONS: usize = 100;

impl Found<'_> {
    fn verdict(&self) -> Verdict {
        Verdict::broken_if(!self.swept.violations.is_empty())
    }

    fn assumption(&self) -> Option<String> {
        let beyond = self.faults.has(Fault::ClockBeyondRho);
        beyond.then(|| {
            "in every run one clock breaks its bound, as --faults clock-beyond-rho asks for".to_owned()
        })
    }

    fn json(&self) -> Value {
        let (swept, sweep) = (self.swept, self.sweep);
        let violations = swept.violations.iter().take(MOST_VIOLATIONS).map(|(seed, violation)| {
            let mut json = violation_json(violation);
            json["seed"] = json!(seed);
            json
        });
        json!({
            "protocol": sweep.name,
            "mutant": sweep.common.mutant,
            "nodes": sweep.common.nodes,
            "quorums": sweep.common.quorums,
            "faults": faults_text(self.faults),
            "first_seed": sweep.first(),
            "schedules": swept.schedules,
            "verdict": self.verdict().name(),
            "violations": violations.collect::<Vec<_>>(),
            "violations_total": swept.violations.len(),
            "assumption": self.assumption(),
            "counts": counts_json(&swept.counts),
            "messages": messages_json(&swept.messages),
            "events": swept.events,
            "properties": properties_json(swept),
            "unseen": swept.unseen().collect::<Vec<_>>(),
            "scenario": self.saved.as_ref().map(|(_, path)| path.display().to_string()),
            "scenario_lines": self.saved.as_ref().map(|(small, _)| small.lines.0),
        })
    }

    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.title(), self.verdict().name());
        text += &self.violations_text();
        let facts = [
            ("schedules", grouped(self.swept.schedules)),
            ("events", grouped(self.swept.events)),
            ("messages", messages_text(&self.swept.messages)),
            ("faults", faults_text(self.faults)),
            ("quorums", self.sweep.common.quorums.clone()),
        ];
        format!("{text}\n{}\n{}\n{}", pairs(facts), properties_text(self.swept), counts_text(self.swept))
    }

    fn title(&self) -> String {
        let Common { nodes, mutant, .. } = &self.sweep.common;
        let mutant = mutant.as_ref().map(|mutant| format!(", mutant {mutant}")).unwrap_or_default();
        let first = self.sweep.first();
        let last = first.wrapping_add(self.swept.schedules.saturating_sub(1));
        let seeds = if first == last { format!("seed {first}") } else { format!("seeds {first} to {last}") };
        format!("{}{mutant}, {}, {seeds}", self.sweep.name, many(*nodes as u64, "node", "nodes"))
    }

    fn violations_text(&self) -> String {
        let Some((seed, violation)) = telling(&self.swept.violations, self.faults) else {
            let kept = |what: String| pairs([("note", format!("{what}; nothing came of it"))]);
            return self.assumption().map(kept).unwrap_or_default();
        };
        let mut text = String::new();
        if let Some(what) = self.assumption() {
            text += &format!("  THE ASSUMPTION IS BROKEN, NOT THE PROTOCOL: {what}\n");
        }
        if self.swept.violations.len() > 1 {
            text += &pairs([("broken", broken_counts(self.swept))]);
        }
        let mut facts = vec![("seed", seed.to_string())];
        let command = self.sweep.common.command(&self.sweep.name, *seed, self.faults);
        match &self.saved {
            None => facts.extend(broken_facts(violation, None)),
            Some((small, path)) => {
                facts.extend(broken_facts(&small.violation, small.assumption.as_deref()));
                facts.extend(saved_facts(small, path));
            }
        }
        facts.push(("whole run", command));
        text + "\n" + &pairs(facts)
    }
}

/// Where a violation is, and how to look at it.
fn saved_facts(small: &Small, path: &Path) -> [(&'static str, String); 3] {
    let file = quoted(&path.display().to_string());
    let html = quoted(&path.with_extension("html").display().to_string());
    let (lines, before) = small.lines;
    let lines = format!("{} of {}", many(lines as u64, "line", "lines"), grouped(before as u64));
    [
        ("saved", format!("{file}: {lines}, after {} replays", grouped(small.replays))),
        ("replay it", format!("tenure lab replay {file}")),
        ("draw it", format!("tenure lab replay {file} --html {html}")),
    ]
}

/// How many runs broke each property.
fn broken_counts(swept: &Swept) -> String {
    let broken = swept.properties.iter().filter(|(_, runs)| runs[Status::Broken as usize] > 0);
    let counts: Vec<String> = broken
        .map(|(p, runs)| format!("{} in {}", p.name, many(runs[Status::Broken as usize], "run", "runs")))
        .collect();
    counts.join(", ")
}

const STATUSES: [Status; 5] = [Status::Holds, Status::Seen, Status::Unseen, Status::Exempt, Status::Broken];

fn properties_json(swept: &Swept) -> Value {
    let property = |(property, runs): &(Property, [u64; 5])| {
        let mut json = json!({ "name": property.name, "kind": property.kind.name() });
        for status in STATUSES {
            json[status.name()] = json!(runs[status as usize]);
        }
        json
    };
    swept.properties.iter().map(property).collect()
}

/// Each property with the number of runs that showed it, kept it, or broke it.
fn properties_text(swept: &Swept) -> String {
    let mut table = Table::new(["PROPERTY", "KIND", "HOLDS", "SEEN", "UNSEEN", "EXEMPT", "BROKEN"]);
    for (property, runs) in &swept.properties {
        let cells = STATUSES.map(|status| match runs[status as usize] {
            0 => String::new(),
            runs => grouped(runs),
        });
        let [holds, seen, unseen, exempt, broken] = cells;
        let (name, kind) = (property.name.to_owned(), property.kind.name().to_owned());
        table.row([name, kind, holds, seen, unseen, exempt, broken]);
    }
    table.render()
}

/// The counts of events, in two columns of kinds.
fn counts_text(swept: &Swept) -> String {
    let counts = swept.counts.sorted();
    let half = counts.len().div_ceil(2);
    let mut table = Table::new(["WHAT HAPPENED", "TIMES", "WHAT HAPPENED", "TIMES"]);
    for i in 0..half {
        let cells = |at: usize| {
            let count = counts.get(at);
            count
                .map_or([String::new(), String::new()], |(kind, times)| [(*kind).to_owned(), grouped(*times)])
        };
        let ([left, times], [right, more]) = (cells(i), cells(i + half));
        table.row([left, times, right, more]);
    }
    table.render()
}
