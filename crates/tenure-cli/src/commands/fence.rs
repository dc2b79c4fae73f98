//! `tenure fence`: what file fences have admitted.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tenure::fence::{FileFence, FileFenceState, Rule};

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::{Answer, Table};

/// Look at fences in files.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure fence list prices.fence
  tenure fence list --above 100000000 /var/lib/jobs/*.fence

Exit codes: 0 all files are fences, 2 error, and nothing was listed")]
pub(crate) struct Fence {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show which token each fence in a file has admitted last
    List(List),
}

/// Show which token each fence in a file has admitted last.
#[derive(Args, Debug)]
#[command(
    after_help = "The files are read, not locked and not changed: the process that uses a fence may go on.
With --above only those fences are shown that have admitted a higher term. Ask databases in SQL:
  PostgreSQL: SELECT resource, term FROM tenure.fence WHERE term > TERM;
  SQLite:     SELECT resource, term FROM tenure_fence WHERE term > TERM;

Examples:
  tenure fence list prices.fence
  tenure fence list --above 100000000 /var/lib/jobs/*.fence -o json

Exit codes: 0 all files are fences, 2 error, and nothing was listed"
)]
struct List {
    /// Only fences that have admitted a term above this
    #[arg(long, value_name = "TERM")]
    above: Option<u64>,
    /// The files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Fence {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let Command::List(list) = self.command;
        list.run(common)
    }
}

impl List {
    fn run(self, common: &Common) -> Result<Answer, Failure> {
        let mut fences = Vec::new();
        for path in &self.files {
            let state = FileFence::look(path).map_err(|error| Failure::new(error.to_string()))?;
            let term = state.newest.as_ref().map_or(0, |newest| newest.token.term().0);
            if self.above.is_none_or(|above| term > above) {
                fences.push((path, state));
            }
        }
        let json =
            || json!({ "fences": fences.iter().map(|(path, state)| shown(path, state)).collect::<Vec<_>>() });
        let text = || {
            let mut table = Table::new(["file", "resource", "rule", "term", "number", "writer"]);
            for (path, state) in &fences {
                let part = |key: &str| match &shown(path, state)[key] {
                    Value::Null => "-".to_owned(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                table.row(["file", "resource", "rule", "term", "number", "writer"].map(part));
            }
            table.render()
        };
        Ok(Answer::new(common.output, json, text))
    }
}

/// One fence, for programs.
fn shown(path: &Path, state: &FileFenceState) -> Value {
    let rule = match state.rule {
        Rule::ByTerm => "by_term",
        Rule::InOrder => "in_order",
    };
    let newest = state.newest.as_ref();
    json!({
        "file": path.display().to_string(),
        "resource": state.resource,
        "rule": rule,
        "term": newest.map(|newest| newest.token.term().0),
        "number": newest.map(|newest| newest.token.number()),
        "writer": newest.and_then(|newest| newest.writer.clone()),
    })
}
