//! `tenure members list`

use std::time::Duration;

use clap::Args;
use serde_json::to_value;

use crate::api;
use crate::arguments::Common;
use crate::client::{self, Asking};
use crate::failure::Failure;
use crate::output::{Answer, Table, drift, pairs, readable};

/// Show members, epoch, quorums and bounds, as the daemon that answers sees them.
#[derive(Args, Debug)]
#[command(after_help = "Quorums speak of the members in the order of the list.

Examples:
  tenure members list
  tenure members list -o json --endpoint http://127.0.0.1:7403

Exit codes: 0 done, 2 error, 69 nobody answers")]
pub(super) struct List {
    #[command(flatten)]
    asking: Asking,
}

impl List {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let client = self.asking.client(common)?;
        let members: api::Members = client::block_on(client.get("/v1/members"))??;
        Ok(Answer::new(common.output, || to_value(&members).unwrap_or_default(), || table(&members)))
    }
}

fn table(members: &api::Members) -> String {
    let unknown = || "not known yet".to_owned();
    let mut head = vec![("epoch", members.epoch.map_or_else(unknown, |epoch| epoch.to_string()))];
    if let Some(charter) = &members.charter {
        let clocks = match (charter.drift_ppm, charter.skew_us) {
            (Some(ppm), _) => format!("rates within {}", drift(ppm)),
            (None, Some(skew)) => format!("within {} of each other", readable(Duration::from_micros(skew))),
            (None, None) => unknown(),
        };
        head.push(("lineage", charter.lineage.clone()));
        head.push(("quorums", charter.quorums.clone()));
        head.push(("clocks", clocks));
        head.push(("longest lease", readable(Duration::from_millis(charter.longest_lease_ms))));
        head.push(("change", if charter.changing { "under way" } else { "none under way" }.to_owned()));
    }
    let mut table = Table::new(["member", "address", "answers", "heard", "round trip", "store"]);
    for member in &members.members {
        let time = |length: Option<Duration>| length.map_or_else(|| "-".to_owned(), readable);
        table.row([
            member.name.clone(),
            member.address.clone().unwrap_or_else(|| "-".to_owned()),
            answers(member).to_owned(),
            time(member.heard_ago_ms.map(Duration::from_millis)),
            time(member.round_trip_us.map(Duration::from_micros)),
            member.store.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    format!("{}\n{}", pairs(head), table.render())
}

fn answers(member: &api::Member) -> &'static str {
    match (member.answers, member.me, member.clock_trusted) {
        _ if member.condemned => "condemned: an older copy of its store was used; replace it",
        (_, true, _) => "asked",
        (true, _, true) => "yes",
        (true, _, false) => "yes, but its clock is wrong",
        (false, ..) => "no",
    }
}
