//! `tenure lab list`: what can be tried.

use clap::Args;
use serde_json::{Value, json};
use tenure_lab::catalogue::{self, About, Experiment};
use tenure_lab::simulate::FAULTS;

use crate::failure::Failure;
use crate::output::{Answer, Format, Table, pairs};

/// List the protocols: what they assume, what they promise, where they come from.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab list
  tenure lab list nerio-drift
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
            let abouts: Vec<About> = catalogue::all().iter().map(|experiment| experiment.about()).collect();
            let json = || json!({ "protocols": abouts.iter().map(about_json).collect::<Vec<_>>() });
            let table = || abouts.iter().map(|about| about_text(about, None)).collect::<Vec<_>>().join("\n");
            return Ok(Answer::new(format, json, table));
        };
        let experiment = catalogue::find(&name)?;
        Ok(Answer::new(format, || details_json(experiment), || details_text(experiment)))
    }
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
    format!("{about}\n{}", [properties, constants, mutants].map(|table| table.render()).join("\n"))
}
