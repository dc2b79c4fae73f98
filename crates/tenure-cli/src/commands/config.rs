//! `tenure config`: checks a configuration, or shows what it amounts to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tenure::{Key, Role};
use toml::{Table, Value};

use crate::arguments::Common;
use crate::client::Client;
use crate::daemon;
use crate::failure::Failure;
use crate::output::Answer;
use crate::settings::{Settings, Source, reference};

/// Check a configuration, or show what it amounts to.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure config check /var/lib/tenure/tenure.toml
  tenure config show --effective

Exit codes: 0 ok, 2 the command line makes no sense, 78 something must be changed: one line says
what")]
pub(crate) struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say whether a node would take it, without starting one
    Check(Check),
    /// Print what file and environment say
    Show(Show),
    /// Print every key that there is: type, default, meaning, how to choose
    Reference(Reference),
}

/// Say whether a node would take it, without starting one.
#[derive(Args, Debug)]
#[command(
    after_help = "Reads the file, TENURE_* in the environment, keys, tokens and certificates, and says what `tenure
node` would say, word for word, of everything that can be checked without the store and the
network; and what the commands that ask would say of [client]. A file for clients (role =
\"candidate\" or \"observer\", without daemon.http) is checked too, although no node runs by it.
Whether it agrees with the cluster's epoch is found out at the start.

Examples:
  tenure config check /var/lib/tenure/tenure.toml
  tenure config check && systemctl restart tenure

Exit codes: 0 ok, 2 the command line makes no sense, 78 something must be changed: one line says
what"
)]
struct Check {
    /// The configuration [default: as for every command]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Print what file and environment say.
#[derive(Args, Debug)]
#[command(
    after_help = "Secrets are left out: of a key only its short name is shown. Behind each value stands where it
comes from: file, the name of a variable, or default.

Examples:
  tenure config show
  tenure config show --effective -c /var/lib/tenure/tenure.toml
  TENURE_LEASE=1s tenure config show --effective -o json

Exit codes: 0 shown, 2 the command line makes no sense, 78 it cannot be read"
)]
struct Show {
    /// The configuration [default: as for every command]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// With the defaults of everything that is not set
    #[arg(long)]
    effective: bool,
}

/// Print every key that there is: type, default, meaning, how to choose.
#[derive(Args, Debug)]
#[command(after_help = "Markdown: the page docs/reference/configuration.md. It reads no file.

Examples:
  tenure config reference
  tenure config reference | less

Exit codes: 0 printed, 2 the command line makes no sense")]
struct Reference {}

impl Config {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        match self.command {
            Command::Check(check) => {
                let settings = settings(check.file.as_deref(), common)?;
                let role = whole_check(&settings)?;
                let path = settings.path().display().to_string();
                let json = || json!({ "config": path, "ok": true, "role": role.name() });
                Ok(Answer::new(common.output, json, || format!("{path}: ok ({})\n", role.name())))
            }
            Command::Show(show) => {
                let settings = settings(show.file.as_deref(), common)?;
                let rows = rows(&settings, show.effective)?;
                Ok(Answer::new(common.output, || to_json(&rows), || to_text(&rows)))
            }
            Command::Reference(Reference {}) => {
                let markdown = reference::markdown();
                Ok(Answer::new(common.output, || json!({ "markdown": markdown }), || markdown.clone()))
            }
        }
    }
}

fn settings(file: Option<&Path>, common: &Common) -> Result<Settings, Failure> {
    Settings::find(file.or(common.config.as_deref()))
}

/// Everything that a daemon would refuse for the configuration's sake alone, and the commands that
/// ask one.
fn whole_check(settings: &Settings) -> Result<Role, Failure> {
    let config = daemon::check(settings)?;
    if settings.has("client") {
        Client::new(settings, &[], Duration::from_secs(1))?; // Asks nobody yet.
    }
    Ok(config.role)
}

/// One value: its key, with the tables before dots.
struct Row {
    key: &'static str,
    value: Value,
    source: Source,
}

/// Every value that is set; with `effective`, the defaults of the others, and of the key its name.
fn rows(settings: &Settings, effective: bool) -> Result<Vec<Row>, Failure> {
    let mut rows: Vec<Row> = settings
        .shown(effective)
        .into_iter()
        .map(|(key, value, source)| Row { key: key.name, value, source })
        .collect();
    if effective {
        let name = match &settings.node()?.key {
            Key::Cluster(key) => format!("(the cluster's, {})", key.id()),
            Key::Scoped(key) => {
                format!("(of '{}', id {}, made from {})", key.names(), key.serial(), key.made_from())
            }
        };
        match rows.iter_mut().find(|row| row.key == "key") {
            Some(row) => row.value = Value::from(name),
            None => rows.extend(named_key(&rows, name)),
        }
    }
    Ok(rows)
}

/// The key that `key_file` names, as a row.
fn named_key(rows: &[Row], name: String) -> Option<Row> {
    let source = rows.iter().find(|row| row.key == "key_file")?.source;
    Some(Row { key: "key", value: Value::from(name), source })
}

/// The values as a TOML file that says behind each where it comes from.
fn to_text(rows: &[Row]) -> String {
    let parts = |row: &Row| row.key.split_once('.').unwrap_or(("", row.key));
    let mut tables: Vec<&str> = rows.iter().map(|row| parts(row).0).collect();
    tables.sort_by_key(|table| !table.is_empty()); // Keys before the first table come first.
    tables.dedup();
    let mut text = String::new();
    for table in tables {
        if !table.is_empty() {
            text += &format!("\n[{table}]\n");
        }
        for row in rows.iter().filter(|row| parts(row).0 == table) {
            text += &format!("{} = {}  # {}\n", parts(row).1, row.value, row.source);
        }
    }
    text
}

/// The values as the file has them, and `sources`, which names for each key where it comes from.
fn to_json(rows: &[Row]) -> serde_json::Value {
    let mut shown = Table::new();
    for row in rows {
        let (tables, last) = row.key.rsplit_once('.').unwrap_or(("", row.key));
        let inner = tables.split('.').filter(|part| !part.is_empty()).try_fold(&mut shown, |table, part| {
            table.entry(part).or_insert_with(|| Value::Table(Table::new())).as_table_mut()
        });
        inner.map(|table| table.insert(last.to_owned(), row.value.clone()));
    }
    let sources: serde_json::Map<_, _> =
        rows.iter().map(|row| (row.key.to_owned(), json!(row.source.to_string()))).collect();
    let mut json = json!(shown);
    json["sources"] = json!(sources);
    json
}
