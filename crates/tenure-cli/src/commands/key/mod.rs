//! `tenure key`: makes, derives, shows and changes keys.

mod list;
mod revoke;
mod rotate;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tenure::{CandidateKey, Claims, Clock, ClusterId, ClusterKey, Key as AnyKey, KeyKind, Names, Scope};

use crate::arguments::Common;
use crate::failure::{Failure, messages};
use crate::founding::write_file;
use crate::output::{Answer, pairs};
use list::List;
use revoke::Revoke;
use rotate::Rotate;

/// Make and derive keys.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Members have the cluster's key, which can do everything. Others have a key of their own, derived
from it: good for some names and groups only, perhaps for some time only. Each has an id, by which
it can be revoked. `tenure key --candidate …` is short for `tenure key derive --candidate …`.

Examples:
  tenure key --candidate app1 --groups 'app1/*' --out app1.key
  tenure key derive --operator alice --days 30
  tenure key show app1.key
  tenure key revoke app1.key
  tenure key list
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
    /// Let all members refuse a key, without a restart
    Revoke(Revoke),
    /// List the keys that members refuse because they were revoked
    List(List),
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
    after_help = "The cluster's key and id come from the configuration: key_file, or cluster_key_file of [client]
where that is no cluster's key. Members need not be told: they derive the same key anew.

A candidate's key is for an application, on as many hosts as it has: each process takes a name of
its own, NAME-… (so does one for a name that ends with '*': each name begins so). With --exact it
is for one process, called NAME; of two at once, the members serve the one that began last.

Without --days a key does not expire. Members judge that by a date that follows their wall clocks,
but not when these jump (docs/guides/keys.md).

Examples:
  tenure key derive --candidate app1 --groups 'app1/*'
  tenure key derive --candidate 'web-*' --groups 'web/*' --days 90 --out web.key
  tenure key derive --observer dashboard --groups '*' --out dashboard.key
  tenure key derive --operator alice

Exit codes: 0 done, 2 error, 78 the configuration has no cluster's key, or the file is there
already"
)]
struct Derive {
    /// For an application whose processes lead groups, under names that begin with this
    #[arg(long, value_name = "NAME", conflicts_with_all = ["observer", "operator"], requires = "groups")]
    candidate: Option<Names>,
    /// For a process that only watches
    #[arg(long, value_name = "NAME", conflicts_with = "operator", requires = "groups")]
    observer: Option<Names>,
    /// For exactly this name, and so for one process at a time
    #[arg(long, requires = "candidate")]
    exact: bool,
    /// For a person or tool that watches everything and asks leaders to act
    #[arg(long, value_name = "NAME", conflicts_with = "groups")]
    operator: Option<Names>,
    /// The groups it is for: names and patterns with commas between, as in 'app1/*,clock'
    #[arg(long, value_name = "PATTERNS")]
    groups: Option<Scope>,
    /// For how many days it is good, from now on [default: it does not expire]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=36500))]
    days: Option<u64>,
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
            Some(Command::Revoke(revoke)) => revoke.run(common),
            Some(Command::List(list)) => list.run(common),
            Some(Command::Rotate(rotate)) => rotate.run(common),
            None => self.derive.run(common),
        }
    }
}

impl Derive {
    fn run(self, common: &Common) -> Result<Answer, Failure> {
        let (cluster, key, lineage) = cluster_key(common)?;
        let scope = |groups: Option<Scope>| groups.ok_or_else(messages::key_without_groups);
        let claims = match (self.candidate, self.observer, self.operator) {
            (Some(names), None, None) => {
                let names = if self.exact { names } else { of_application(&names)? };
                Claims::candidate(names, scope(self.groups)?)
            }
            (None, Some(names), None) => Claims::observer(names, scope(self.groups)?),
            (None, None, Some(names)) => Claims::operator(names),
            _ => return Err(messages::key_of_whom()),
        };
        let claims = match self.days {
            Some(days) => claims.not_after(today().saturating_add(days * 86_400)),
            None => claims,
        };
        let claims = match lineage {
            Some(lineage) => claims.lineage(lineage),
            None => claims,
        };
        let key = key.derive(cluster, claims);
        let mut answer = hand_out(&key.reveal(), self.out.as_deref())?;
        answer.notes.push(format!("the key's id is {}", key.serial()));
        Ok(answer)
    }
}

/// The names of an application's processes: each begins with that of the application.
fn of_application(names: &Names) -> Result<Names, Failure> {
    if names.prefix().is_some() {
        return Ok(names.clone());
    }
    Ok(Names::new(&format!("{names}-*"))?)
}

/// The cluster's id, key and founding, as the configuration has them. The operator's file names the
/// cluster's key beside that of clients, which is not needed here and may be lost.
fn cluster_key(common: &Common) -> Result<(ClusterId, ClusterKey, Option<u128>), Failure> {
    let settings = common.settings()?;
    let path = settings.path().display();
    let no_cluster = || messages::key_without_cluster(&path);
    if let Some(file) = settings.client.cluster_key_file.as_deref() {
        let file = settings.resolve(file);
        let AnyKey::Cluster(key) = read(&file)? else {
            return Err(messages::key_not_the_clusters(file.display()));
        };
        let id = settings.text("cluster_id").ok_or_else(no_cluster)?;
        let cluster =
            id.parse().map_err(|error: tenure::NameError| messages::setting_refused("cluster_id", error))?;
        let lineage = settings.text("lineage").map(|text| u128::from_str_radix(&text, 16)).transpose();
        let lineage = lineage.map_err(|error| messages::setting_refused("lineage", error))?;
        return Ok((cluster, key, lineage));
    }
    let config = settings.node()?;
    let AnyKey::Cluster(key) = config.key else {
        return Err(messages::key_not_the_clusters(path));
    };
    Ok((config.cluster.ok_or_else(no_cluster)?, key, config.lineage))
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
            Some(path) => read(path)?,
            None => common.settings()?.node()?.key,
        };
        let facts = facts(&key);
        let json = || facts.iter().map(|(name, fact)| ((*name).to_owned(), json!(fact))).collect::<Value>();
        Ok(Answer::new(common.output, json, || pairs(facts.clone())))
    }
}

/// The key in a file.
fn read(path: &Path) -> Result<AnyKey, Failure> {
    let unread = |error| messages::key_file_unreadable(path.display(), error);
    let text = std::fs::read_to_string(path).map_err(unread)?;
    text.trim().parse::<AnyKey>().map_err(|flaw| messages::key_file_malformed(path.display(), flaw))
}

/// The second that this machine's wall clock shows, since 1970.
pub(crate) fn today() -> u64 {
    Clock::real().read().as_nanos() / 1_000_000_000
}

/// When a key expires, in words.
pub(crate) fn expiry(key: &CandidateKey) -> String {
    match key.expires() {
        Some(last) => crate::clock::date(last),
        None => "never".to_owned(),
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
                ("expires", expiry(key)),
                (
                    "lineage",
                    key.lineage().map_or_else(|| "any".to_owned(), |lineage| format!("{lineage:032x}")),
                ),
            ]
        }
    }
}
