//! `tenure key`: makes, derives, shows and changes keys.

mod rotate;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tenure::{ClusterId, ClusterKey, Key as AnyKey, KeyKind, NodeName, Scope};

use crate::arguments::Common;
use crate::failure::Failure;
use crate::founding::write_file;
use crate::output::{Answer, pairs};
use rotate::Rotate;

/// Make and derive keys.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Members have the cluster's key, which can do everything. Others should have a key of their own,
derived from it: good for one name and some groups only. `tenure key --candidate …` is short for
`tenure key derive --candidate …`.

Examples:
  tenure key --candidate app1 --groups 'app1/*' --out app1.key
  tenure key derive --operator alice
  tenure key show app1.key
  tenure key rotate --step 1

Exit codes: 0 done, 2 error, 78 the configuration or a key will not do"
)]
pub(crate) struct Key {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    derive: Derive,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Draw a new key for a cluster
    New(New),
    /// Derive a key for one that is no member
    Derive(Derive),
    /// Say what a key is, without its secret
    Show(Show),
    /// Change the cluster's key without anybody noticing, in three steps
    Rotate(Rotate),
}

/// Draw a new key for a cluster.
#[derive(Args, Debug)]
#[command(after_help = "`tenure init` does this by itself.

Examples:
  tenure key new --out key

Exit codes: 0 done, 2 error, 78 the file is there already")]
struct New {
    /// Where to write it, readable by its owner only [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Derive a key for one that is no member.
#[derive(Args, Debug)]
#[command(
    after_help = "The cluster's key and id come from the configuration. Members need not be told: they derive the
same key anew.

Examples:
  tenure key derive --candidate app1 --groups 'app1/*'
  tenure key derive --observer dashboard --groups '*' --out dashboard.key
  tenure key derive --operator alice

Exit codes: 0 done, 2 error, 78 the configuration has no cluster's key, or the file is there
already"
)]
struct Derive {
    /// For a process that leads groups under this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["observer", "operator"], requires = "groups")]
    candidate: Option<NodeName>,
    /// For a process that only watches
    #[arg(long, value_name = "NAME", conflicts_with = "operator", requires = "groups")]
    observer: Option<NodeName>,
    /// For a person or tool that watches everything and changes the members
    #[arg(long, value_name = "NAME", conflicts_with = "groups")]
    operator: Option<NodeName>,
    /// The groups it is for: names and patterns with commas between, as in 'app1/*,clock'
    #[arg(long, value_name = "PATTERNS")]
    groups: Option<Scope>,
    /// Where to write it, readable by its owner only [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Say what a key is, without its secret.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure key show                 that of the configuration
  tenure key show app1.key -o json

Exit codes: 0 shown, 2 error, 78 this is no key")]
struct Show {
    /// A file with a key [default: that of the configuration]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Key {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        match self.command {
            Some(Command::New(new)) => hand_out(&ClusterKey::generate().reveal(), new.out.as_deref()),
            Some(Command::Derive(derive)) => derive.run(common),
            Some(Command::Show(show)) => show.run(common),
            Some(Command::Rotate(rotate)) => rotate.run(common),
            None => self.derive.run(common),
        }
    }
}

impl Derive {
    fn run(self, common: &Common) -> Result<Answer, Failure> {
        let (cluster, key) = cluster_key(common)?;
        let scope = |groups: Option<Scope>| groups.ok_or_else(|| Failure::new("--groups is missing"));
        let derived = match (self.candidate, self.observer, self.operator) {
            (Some(name), None, None) => key.candidate(cluster, name, scope(self.groups)?),
            (None, Some(name), None) => key.observer(cluster, name, scope(self.groups)?),
            (None, None, Some(name)) => key.operator(cluster, name),
            _ => {
                return Err(Failure::new(
                    "for whom? Write --candidate NAME --groups PATTERNS, --observer NAME --groups PATTERNS or --operator NAME; `tenure key new` makes a cluster's key",
                ));
            }
        };
        hand_out(&derived.reveal(), self.out.as_deref())
    }
}

/// The cluster's id and key, as the configuration has them.
fn cluster_key(common: &Common) -> Result<(ClusterId, ClusterKey), Failure> {
    let settings = common.settings()?;
    let config = settings.node()?;
    let path = settings.path().display();
    let AnyKey::Cluster(key) = config.key else {
        return Err(Failure::config(format!(
            "{path} has a derived key, and only the cluster's can derive others: name a configuration that has it with -c FILE"
        )));
    };
    let cluster = config.cluster.ok_or_else(|| {
        Failure::config(format!(
            "{path} does not say which cluster: write cluster_id, which `tenure init` printed"
        ))
    })?;
    Ok((cluster, key))
}

/// To a file that only its owner may read, or to stdout.
fn hand_out(secret: &str, out: Option<&Path>) -> Result<Answer, Failure> {
    let text = format!("{secret}\n");
    let Some(path) = out else { return Ok(Answer::text(text)) };
    write_file(path, &text, 0o600)?;
    let mut answer = Answer::text(String::new());
    answer.notes.push(format!("wrote {}", path.display()));
    Ok(answer)
}

impl Show {
    fn run(self, common: &Common) -> Result<Answer, Failure> {
        let key = match &self.file {
            Some(path) => {
                let wrong =
                    |what: &dyn std::fmt::Display| Failure::config(format!("{}: {what}", path.display()));
                let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
                text.trim().parse::<AnyKey>().map_err(|error| wrong(&error))?
            }
            None => common.settings()?.node()?.key,
        };
        let facts = facts(&key);
        let json = || facts.iter().map(|(name, fact)| ((*name).to_owned(), json!(fact))).collect::<Value>();
        Ok(Answer::new(common.output, json, || pairs(facts.clone())))
    }
}

fn facts(key: &AnyKey) -> Vec<(&'static str, String)> {
    match key {
        AnyKey::Cluster(key) => vec![("kind", "cluster".to_owned()), ("key_id", key.id().to_string())],
        AnyKey::Scoped(key) => {
            let kind = match key.kind() {
                KeyKind::Candidate => "candidate",
                KeyKind::Observer => "observer",
                KeyKind::Operator => "operator",
            };
            vec![
                ("kind", kind.to_owned()),
                ("id", key.serial().to_string()),
                ("name", key.names().to_string()),
                ("groups", key.scope().map_or_else(|| "*".to_owned(), ToString::to_string)),
                ("cluster_id", key.cluster().to_string()),
                ("key_id", key.made_from().to_string()),
            ]
        }
    }
}
