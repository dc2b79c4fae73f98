//! `tenure init`: founds a cluster.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure::{Term, term_floor};

use crate::arguments::Common;
use crate::failure::{Failure, messages};
use crate::founding::{CLIENT_KEY, FILE, Founded, Founder, Plan};
use crate::output::{Answer, quoted};
use crate::settings::length;

/// Found a cluster: make its key and every founding member's store.
#[derive(Args, Debug)]
#[command(
    after_help = "Writes DIR/NAME with configuration, key and store for each member, to be copied to its host, and
DIR/tenure.toml with DIR/client.key for clients, which may lead all groups and are no members,
and DIR/token for the commands, where they do not run on the host of a daemon.
DIR/key is the cluster's key: it makes further keys (`tenure key`) and stays with the operator.
Nothing is written if anything is wrong. A cluster is founded once: members that come later start
with `tenure node --join`.

Examples:
  tenure init --dir prod --member a=10.0.0.1:7400 --member b=10.0.0.2:7400 \\
      --member c=10.0.0.3:7400
  tenure init --member a=a.example:7400 --drift-ppm 1000 --lease 1s
  scp -r prod/a 10.0.0.1:/var/lib/tenure     # then there: systemctl start tenure

Exit codes: 0 founded, 2 the command line makes no sense, 78 the members or the folder will not
do"
)]
pub(crate) struct Init {
    /// A founding member and where the others reach it; once for each
    #[arg(long = "member", value_name = "NAME=HOST:PORT", required = true)]
    members: Vec<String>,
    /// Where the folders go
    #[arg(long, value_name = "DIR", default_value = ".tenure")]
    dir: PathBuf,
    /// The port of the daemons' HTTP, on loopback [default: the port after the member's]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    http_port: Option<u16>,
    /// ρ: how far the rates of clocks may be off [default: 100000, a tenth]
    #[arg(long, value_name = "PPM")]
    drift_ppm: Option<u32>,
    /// δ_max: no lease of any group is longer [default: 5s]
    #[arg(long, value_name = "D", value_parser = length)]
    longest_lease: Option<Duration>,
    /// δ: how long leases last [default: 2s]
    #[arg(long, value_name = "D", value_parser = length)]
    lease: Option<Duration>,
    /// Which sets of members suffice: majority, weights:3,1,1, grid:2x3 or list:01,12,02 [default:
    /// majority]
    #[arg(long, value_name = "QUORUMS")]
    quorums: Option<String>,
    /// Terms begin above this: larger than any that fences remember [default: seconds since 2024]
    #[arg(long, value_name = "N")]
    term_floor: Option<u64>,
}

impl Init {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let founder = |text: &String| Founder::new(text, self.http_port);
        let founders = self.members.iter().map(founder).collect::<Result<Vec<_>, _>>();
        let founders = founders.map_err(messages::founding_member_malformed)?;
        let plan = Plan {
            folder: self.dir,
            founders,
            quorums: self.quorums,
            drift_ppm: self.drift_ppm,
            longest_lease: self.longest_lease,
            lease: self.lease,
            floor: self.term_floor.map_or_else(term_floor, Term),
        };
        let founded = plan.carry_out()?;
        Ok(Answer::new(common.output, || to_json(&plan, &founded), || to_text(&plan, &founded)))
    }
}

fn to_json(plan: &Plan, founded: &Founded) -> serde_json::Value {
    let member = |founder: &Founder| {
        json!({
            "name": founder.name,
            "address": founder.address,
            "http": founder.http.to_string(),
            "folder": plan.folder.join(&founder.name),
        })
    };
    json!({
        "cluster_id": founded.cluster.to_string(),
        "key_id": founded.key,
        "term_floor": plan.floor.0,
        "config": plan.folder.join(FILE),
        "members": plan.founders.iter().map(member).collect::<Vec<_>>(),
    })
}

fn to_text(plan: &Plan, founded: &Founded) -> String {
    let folder = |name: &str| quoted(&plan.folder.join(name).to_string_lossy());
    let mut text = format!(
        "Cluster {} is founded, with key {} and {}.\n\n",
        founded.cluster,
        founded.key,
        crate::output::many(plan.founders.len() as u64, "member", "members")
    );
    text += "Next, copy each member's folder to its host and start it there; the copy here must never be started:\n";
    for founder in &plan.founders {
        let (from, name) = (folder(&founder.name), &founder.name);
        match founder.address.rsplit_once(':') {
            Some((host, _)) if !founder.is_local() => {
                text += &format!("  {from}, to {host}:  tenure node -c {name}/{FILE}\n");
            }
            _ => text += &format!("  {from}, stays here:  tenure node -c {from}/{FILE}\n"),
        }
    }
    // Daemons answer over HTTP on their own hosts only; leading needs none of that.
    match plan.founders.iter().find(|founder| !founder.is_local()) {
        Some(Founder { name, .. }) => {
            text += &format!("\nThen, on the host of a member:\n  tenure status -c {name}/{FILE}\n");
        }
        None => text += &format!("\nThen:\n  tenure status -c {}\n", folder(FILE)),
    }
    text += &format!(
        "\nAnd from here or wherever {} and {} are copied to:\n  tenure run -g hello -c {} -- echo leads\n",
        folder(FILE),
        folder(CLIENT_KEY),
        folder(FILE)
    );
    text
}
