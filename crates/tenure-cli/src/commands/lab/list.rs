//! `tenure lab list`: what can be tried.

use clap::Args;
use serde_json::{Value, json};
use tenure_lab::catalogue::{self, About, Experiment};
use tenure_lab::protocols::ring::{self, Election};
use tenure_lab::simulate::{FAULTS, Named};

use crate::failure::Failure;
use crate::output::{Answer, Format, Table, pairs};

/// List the protocols: what they assume, what they promise, where they come from.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab list
  tenure lab list nerio-drift
  tenure lab list clockwise
  tenure lab list nerio-drift -o json

Exit codes: 0 listed, 2 there is no such protocol.")]
pub(super) struct List {
    /// A protocol, to see its properties, constants, mutants and faults too
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

impl List {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        let Some(name) = self.name else {
            let rings = ring::all().iter().map(|election| election.about());
            let abouts: Vec<About> = catalogue::all().iter().map(|it| it.about()).chain(rings).collect();
            let json = || json!({ "protocols": abouts.iter().map(about_json).collect::<Vec<_>>() });
            let table = || abouts.iter().map(|about| about_text(about, None)).collect::<Vec<_>>().join("\n");
            return Ok(Answer::new(format, json, table));
        };
        if let Ok(election) = ring::find(&name) {
            return Ok(Answer::new(format, || ring_json(election), || ring_text(election)));
        }
        let experiment = catalogue::find(&name)?;
        Ok(Answer::new(format, || details_json(experiment), || details_text(experiment)))
    }
}

/// The constants that `--set` takes for a ring.
const RING_CONSTANTS: [(&str, &str); 7] = [
    ("delays", "unit, random (up to one unit), chaos (any link next), newest (the last message first)"),
    ("wake", "all, some (drawn from the seed), or the place of the one node that wakes by itself"),
    ("first-id", "the smallest id; 1 if not set"),
    ("ids", "same: all nodes get one id and run in lock step"),
    ("rounds", "how many rounds of lock step; 1000 if not set"),
    ("runs", "how many runs --order search makes; 20000 if not set"),
    ("schedules", "yes: --order search looks for slow links too"),
];

fn ring_json(election: &dyn Election) -> Value {
    let mut protocol = about_json(&election.about());
    protocol["uniform"] = json!(election.is_uniform());
    protocol["ids"] = json!(election.has_ids());
    protocol["rounds"] = json!(election.in_rounds());
    protocol["theory"] = json!(election.theory().map(|theory| theory.says));
    protocol["properties"] =
        ["one-leader", "elected", "known"].map(|name| json!({ "name": name })).into_iter().collect();
    protocol["constants"] =
        RING_CONSTANTS.map(|(name, says)| json!({ "name": name, "says": says })).into_iter().collect();
    protocol["mutants"] =
        election.mutants().iter().map(|(name, says)| json!({ "name": name, "says": says })).collect();
    protocol["faults"] = json!([]);
    json!({ "protocols": [protocol] })
}

fn ring_text(election: &dyn Election) -> String {
    let mut constants = Table::new(["CONSTANT", "SAYS"]);
    RING_CONSTANTS.iter().for_each(|(name, says)| constants.row([name, says].map(|text| (*text).to_owned())));
    let mut text = format!("{}\n{}", about_text(&election.about(), None), constants.render());
    if !election.mutants().is_empty() {
        let mut mutants = Table::new(["MUTANT", "WHAT IT DOES WRONG (tenure lab adversary --mutant)"]);
        election
            .mutants()
            .iter()
            .for_each(|(name, says)| mutants.row([name, says].map(|text| (*text).to_owned())));
        text += &format!("\n{}", mutants.render());
    }
    text
}

fn about_json(about: &About) -> Value {
    json!({
        "name": about.name,
        "model": about.model,
        "promises": about.promises,
        "source": about.source,
    })
}

fn about_text(about: &About, faults: Option<String>) -> String {
    let facts = [("model", about.model), ("promises", about.promises), ("source", about.source)];
    let facts = facts.map(|(label, value)| (label, value.to_owned())).into_iter();
    format!("{}\n{}", about.name, pairs(facts.chain(faults.map(|faults| ("faults", faults)))))
}

fn details_json(experiment: &dyn Experiment) -> Value {
    let mut protocol = about_json(&experiment.about());
    let properties = experiment.properties().iter();
    protocol["properties"] =
        properties.map(|p| json!({ "name": p.name, "kind": p.kind.name(), "says": p.says })).collect();
    let constants = experiment.constants().into_iter();
    protocol["constants"] = constants.map(|c| json!({ "name": c.name, "says": c.says })).collect();
    let mutants = experiment.mutants().into_iter();
    protocol["mutants"] = mutants.map(|m| json!({ "name": m.name, "says": m.says })).collect();
    protocol["faults"] = FAULTS.iter().map(|(_, name)| *name).collect();
    protocol["worlds"] =
        worlds(experiment).map(|world| json!({ "name": world.name, "says": world.says })).collect();
    json!({ "protocols": [protocol] })
}

fn details_text(experiment: &dyn Experiment) -> String {
    let mut properties = Table::new(["PROPERTY", "KIND", "SAYS"]);
    for property in experiment.properties() {
        let cells = [property.name, property.kind.name(), property.says];
        properties.row(cells.map(str::to_owned));
    }
    let mut constants = Table::new(["CONSTANT", "SAYS"]);
    for constant in experiment.constants() {
        constants.row([constant.name, constant.says].map(str::to_owned));
    }
    let mut mutants = Table::new(["MUTANT", "WHAT IT DOES WRONG"]);
    for mutant in experiment.mutants() {
        mutants.row([mutant.name, mutant.says].map(str::to_owned));
    }
    let faults: Vec<&str> = FAULTS.iter().map(|(_, name)| *name).collect();
    let about = about_text(&experiment.about(), Some(faults.join(", ")));
    let mut tables = vec![properties, constants, mutants];
    if worlds(experiment).next().is_some() {
        let mut table = Table::new(["WORLD", "WHAT IT IS LIKE (tenure lab run --world)"]);
        worlds(experiment).for_each(|world| table.row([world.name, world.says].map(str::to_owned)));
        tables.push(table);
    }
    let tables: Vec<String> = tables.iter().map(Table::render).collect();
    format!("{about}\n{}", tables.join("\n"))
}

/// The worlds in which a protocol can be tried.
fn worlds(experiment: &dyn Experiment) -> impl Iterator<Item = &'static Named> {
    Named::of(experiment.about().name)
}
