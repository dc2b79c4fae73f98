//! `tenure lab check-history`: what clients saw, judged.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tenure_lab::linear::{self, Operation};

use crate::failure::{Failure, messages};
use crate::files;
use crate::output::{Answer, Format, Verdict, grouped, many, pairs};

/// Judge the history of a key-value store's clients: is it explained by one store, in real time?
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab check-history clients.history
  tenure lab check-history one.history other.history -o json

A line is an operation, in any order: `CLIENT CALL @ INVOKED RETURNED`. Times are whole numbers of
one clock; `?` stands where no answer came, and then it may have taken place or not. Calls:
`put K V`, `get K -> V`, `swap K V -> V`, `cas K V V -> yes|no`, `delete K`; `-` is no value.
Several files are one history.

Exit codes: 0 there is an order, 1 there is none for some key (which, and the operation that
fits nowhere), 2 a file cannot be read.")]
pub(super) struct CheckHistory {
    /// The histories that clients wrote
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl CheckHistory {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        let mut text = String::new();
        for path in &self.files {
            let read = files::read(path)?;
            linear::parse(&read).map_err(|flaw| messages::file_malformed(path.display(), flaw))?;
            text += &read;
            text.push('\n');
        }
        let history = linear::parse(&text).map_err(messages::lab_history_wrong)?;
        let verdict = linear::check(&history);
        let mut answer = Answer::new(format, || json(&verdict), || words(&verdict));
        answer.verdict = judged(&verdict);
        Ok(answer)
    }
}

fn judged(verdict: &linear::Verdict) -> Verdict {
    Verdict::broken_if(!verdict.is_linearizable())
}

fn json(verdict: &linear::Verdict) -> Value {
    let broken =
        |(key, operation): &(u32, Operation)| json!({ "key": key, "operation": operation.to_string() });
    json!({
        "verdict": judged(verdict).name(),
        "operations": verdict.operations,
        "unanswered": verdict.unanswered,
        "keys": verdict.keys,
        "steps": verdict.steps,
        "broken": verdict.broken.iter().map(broken).collect::<Vec<_>>(),
        "undecided": verdict.undecided,
    })
}

fn words(verdict: &linear::Verdict) -> String {
    let operations = many(verdict.operations as u64, "operation", "operations");
    let keys = many(verdict.keys as u64, "key", "keys");
    let mut text = format!("{operations} on {keys}: {}\n", judged(verdict).name());
    let mut facts = Vec::new();
    for (_, operation) in &verdict.broken {
        facts.push(("broken", format!("no order explains the {operation}")));
    }
    for key in &verdict.undecided {
        facts.push(("undecided", format!("key {key}: the search took too long")));
    }
    facts.push(("unanswered", grouped(verdict.unanswered as u64)));
    facts.push(("steps", grouped(verdict.steps)));
    text += &pairs(facts);
    text
}
