//! `tenure status`: the cluster, as one daemon sees it.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::api::{self, DoubtedTerm, Packed, State, group_path};
use crate::arguments::Common;
use crate::client::{self, Asking, Client, Trouble, group_name};
use crate::failure::Failure;
use crate::output::{Answer, Table, Verdict, drift, many, pairs, readable};

/// Show the cluster: nodes, epoch, groups.
#[derive(Args, Debug)]
#[command(
    after_help = "One daemon answers, and says how it sees the others. `tenure top` shows the same as it changes.
With GROUP: who leads it, and which processes stand by, to which `tenure transfer` can hand over.

Examples:
  tenure status
  tenure status jobs
  tenure status -o json
  tenure status --all
  tenure status --endpoint http://127.0.0.1:7403      as the second node of `tenure up` sees it

Exit codes: 0 the daemon is ready, 1 it is not (it says why), or nobody leads GROUP, 2 error,
69 no daemon answers, 77 the token is refused, 78 no daemon is known"
)]
pub(crate) struct Status {
    /// One group [default: the whole cluster]
    #[arg(value_parser = group_name)]
    group: Option<String>,
    /// Also the groups that nobody has led or asked about for an hour
    #[arg(long)]
    all: bool,
    /// Whom to ask
    #[command(flatten)]
    asking: Asking,
}

impl Status {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let client = self.asking.client(common)?;
        if let Some(group) = &self.group {
            return one(&client, group, common);
        }
        let status: api::Status =
            client::block_on(client.get(if self.all { "/v1/status?all" } else { "/v1/status" }))??;
        let mut answer = Answer::new(common.output, || json!(status), || table(&status));
        answer.verdict = Verdict::broken_if(!status.ready);
        Ok(answer)
    }
}

/// One group: its leader, and those that stand by.
fn one(client: &Client, group: &str, common: &Common) -> Result<Answer, Failure> {
    let (group, standing): (api::Group, api::Candidates) = client::block_on(async {
        let known = client.get(&group_path(group, "")).await?;
        Ok::<_, Trouble>((known, client.get(&group_path(group, "/candidates")).await?))
    })??;
    let json = || {
        let mut value = json!(group);
        value["candidates"] = json!(standing.candidates);
        value
    };
    let mut answer = Answer::new(common.output, json, || {
        let nobody = || "nobody that is no member".to_owned();
        let stand_by = Some(standing.candidates.join(", ")).filter(|names| !names.is_empty());
        let mut lines = vec![("group", group.group.clone()), ("leader", leader(&group).to_owned())];
        lines.extend(group.term.map(|term| ("term", term.to_string())));
        lines.push(("stands by", stand_by.unwrap_or_else(nobody)));
        pairs(lines)
    });
    answer.verdict = Verdict::broken_if(group.state != State::Leader);
    Ok(answer)
}

fn table(status: &api::Status) -> String {
    let mut text = head(status);
    text += &format!("\n{}", members(&status.members).render());
    let idle = status.groups_idle;
    if status.groups.is_empty() && idle == 0 {
        return text + "\n  no groups yet: `tenure run -g GROUP -- COMMAND` makes one\n";
    }
    text += &format!("\n{}", groups(&status.groups).render());
    let shown = status.groups.len() as u64 + idle;
    if shown < status.groups_total {
        text += &format!("  … of {}\n", many(status.groups_total, "group", "groups"));
    }
    if idle > 0 {
        let groups = many(idle, "group", "groups");
        text +=
            &format!("  {groups} more that nobody has led or asked about for an hour: --all shows them\n");
    }
    text
}

fn head(status: &api::Status) -> String {
    let state = match (status.ready, status.not_ready.is_empty()) {
        (true, _) => "ready".to_owned(),
        (false, true) => "not ready".to_owned(),
        (false, false) => format!("not ready: {}", status.not_ready.join("; ")),
    };
    let epoch = status.epoch.map_or("none known yet".to_owned(), |epoch| epoch.to_string());
    let mut lines = vec![
        ("node", format!("{} ({}, version {}): {state}", status.name, status.role, status.version)),
        ("cluster", status.cluster.clone()),
        ("epoch", epoch),
    ];
    if let Some(charter) = &status.charter {
        let clocks = match (charter.drift_ppm, charter.skew_us) {
            (Some(ppm), _) => format!("clocks off by less than {}", drift(ppm)),
            (None, skew) => format!("clocks within {}", us(skew.unwrap_or_default())),
        };
        let changing = if charter.changing { "; a change is under way" } else { "" };
        let lease = format!("leases of at most {}", ms(charter.longest_lease_ms));
        lines.push(("agreed", format!("{}, {clocks}, {lease}{changing}", charter.quorums)));
    }
    lines.extend(terms(&status.terms).map(|text| ("terms", text)));
    lines.extend(barred(&status.terms).map(|text| ("barred", text)));
    pairs(lines)
}

/// The warning about terms, if there is one.
pub(super) fn terms(terms: &api::Terms) -> Option<String> {
    if let Some(DoubtedTerm { member, term }) = &terms.doubted {
        return Some(format!("{member} speaks of term {term}, far above all that is known here"));
    }
    let left = terms.packed_left_days.map_or_else(String::new, |days| format!(", the rest in {days} days"));
    match terms.packed {
        Packed::Plenty => None,
        Packed::Half => {
            Some(format!("{} and more: half of what packed tokens hold is used{left}", terms.top))
        }
        Packed::Exhausted => Some(format!("{}: new terms do not fit into packed tokens", terms.top)),
    }
}

/// The groups that nobody leads since terms were repaired, if there are any.
pub(super) fn barred(terms: &api::Terms) -> Option<String> {
    let text = || format!("{}: nobody leads them since terms were repaired", terms.barred.join(", "));
    (!terms.barred.is_empty()).then(text)
}

fn ms(length: u64) -> String {
    readable(Duration::from_millis(length))
}

fn us(length: u64) -> String {
    readable(Duration::from_micros(length))
}

fn members(members: &[api::Member]) -> Table {
    let mut table = Table::new(["member", "address", "answers", "heard", "round trip"]);
    for member in members {
        let answers = match (member.me, member.answers, member.clock_trusted) {
            _ if member.condemned => "condemned: replace it",
            (true, ..) => "(asked)",
            (_, false, _) => "no",
            (_, true, true) => "yes",
            (_, true, false) => "yes, but its clock is off",
        };
        let heard = member.heard_ago_ms.map(|ago| format!("{} ago", ms(ago)));
        let trip = member.round_trip_us.map(us);
        table.row([
            member.name.clone(),
            member.address.clone().unwrap_or_default(),
            answers.to_owned(),
            heard.unwrap_or_default(),
            trip.unwrap_or_default(),
        ]);
    }
    table
}

fn leader(group: &api::Group) -> &str {
    match group.state {
        State::Leader => group.leader.as_deref().unwrap_or("?"),
        State::Nobody => "nobody",
        State::Weak => "nobody: too few members hear each other",
        State::Unknown => "not known",
    }
}

fn groups(groups: &[api::Group]) -> Table {
    let mut table = Table::new(["group", "leader", "term", "leads for"]);
    for group in groups {
        let leader = leader(group);
        let left = group.leads_for_ms.map(ms);
        table.row([
            group.group.clone(),
            leader.to_owned(),
            group.term.map_or_else(String::new, |term| term.to_string()),
            left.unwrap_or_default(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_spoken_of_only_where_there_is_something_to_do() {
        let of = |packed, doubted: bool| {
            let doubted = doubted.then(|| DoubtedTerm { member: "n2".to_owned(), term: 1 << 40 });
            terms(&api::Terms { top: 5, packed, packed_left_days: Some(9), doubted, barred: Vec::new() })
        };
        assert_eq!(of(Packed::Plenty, false), None);
        assert!(of(Packed::Half, false).is_some_and(|text| text.ends_with("the rest in 9 days")));
        assert!(of(Packed::Exhausted, false).is_some());
        assert!(
            of(Packed::Plenty, true).is_some_and(|text| text.contains("n2 speaks of term 1099511627776"))
        );
    }
}
