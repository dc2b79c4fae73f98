//! `tenure fence`: what file fences have admitted, and the SQL of those in databases.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use tenure::fence::{FileFence, FileFenceState, Rule, postgres, sqlite};

use crate::arguments::Common;
use crate::failure::{Failure, messages};
use crate::output::{Answer, Table};

/// Look at fences in files, and print the SQL of those in databases.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure fence list prices.fence
  tenure fence list --above 100000000 /var/lib/jobs/*.fence
  tenure fence sql postgres | psql prices

Exit codes: 0 done, 2 error, and nothing was printed")]
pub(crate) struct Fence {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show which token each fence in a file has admitted last
    List(List),
    /// Print the SQL that installs a fence in a database
    Sql(Sql),
}

/// Print the SQL that installs a fence in a database.
#[derive(Args, Debug)]
#[command(after_help = "It can be run again: what is there stays. docs/guides/fence.md shows how to use it.

Examples:
  tenure fence sql postgres | psql prices
  tenure fence sql sqlite | sqlite3 prices.db

Exit codes: 0 printed, 2 error")]
struct Sql {
    /// For which database
    #[arg(value_enum)]
    database: Database,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Database {
    /// PostgreSQL
    Postgres,
    /// SQLite
    Sqlite,
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
        match self.command {
            Command::List(list) => list.run(common),
            Command::Sql(sql) => Ok(sql.run(common)),
        }
    }
}

impl Sql {
    fn run(&self, common: &Common) -> Answer {
        let sql = match self.database {
            Database::Postgres => postgres::INSTALL,
            Database::Sqlite => sqlite::INSTALL,
        };
        Answer::new(common.output, || json!({ "sql": sql }), || sql.to_owned())
    }
}

impl List {
    fn run(self, common: &Common) -> Result<Answer, Failure> {
        let mut fences = Vec::new();
        for path in &self.files {
            let state = FileFence::look(path).map_err(messages::fence_unreadable)?;
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
