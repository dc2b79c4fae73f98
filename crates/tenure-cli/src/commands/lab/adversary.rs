//! `tenure lab adversary`: the lower bound of uniform ring elections, executed.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tenure_lab::draw::siege;
use tenure_lab::protocols::ring::adversary::{Join, Siege};
use tenure_lab::protocols::ring::{self, Order, Setup};

use super::options;
use crate::failure::{Failure, messages};
use crate::files::Outputs;
use crate::output::{Answer, Format, Table, Verdict, grouped, pairs};

/// Attack a uniform ring algorithm: keep an edge open for as long as possible, and make it talk
/// meanwhile. At least n/4 (log2 n + 1) messages are heard before anybody may decide.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab adversary clockwise --nodes 1024
  tenure lab adversary peterson --nodes 1024 --order ascending --svg joins.svg
  tenure lab adversary lelann --nodes 1024 --mutant assumes-four     a cheat, caught: exit code 1

Exit codes: 0 the bound holds, 1 it does not, or a node decided with an edge open (the algorithm
is not uniform), 2 error.")]
pub(super) struct Adversary {
    /// The algorithm
    #[arg(value_name = "NAME")]
    name: String,
    /// How many nodes: a power of two
    #[arg(long, value_name = "N", default_value = "1024", value_parser = nodes, allow_negative_numbers = true)]
    nodes: u32,
    /// The seed of the order
    #[arg(long, value_name = "S", default_value = "1", value_parser = options::seed, allow_negative_numbers = true)]
    seed: u64,
    /// In which order ids stand: random, ascending, descending, bit-reversal
    #[arg(long, value_name = "ORDER", default_value = "random")]
    order: String,
    /// Attack a known-wrong variant; `tenure lab list NAME` knows which
    #[arg(long, value_name = "M")]
    mutant: Option<String>,
    /// Draw the joins as an image
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

fn nodes(text: &str) -> Result<u32, String> {
    let nodes =
        text.parse().ok().filter(|nodes: &u32| nodes.is_power_of_two() && (2..=1 << 20).contains(nodes));
    nodes.ok_or_else(|| "the ring is halved again and again: write 2, 4, 8, … up to 2^20".to_owned())
}

impl Adversary {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        let election = ring::find(&self.name)?;
        let outputs = Outputs::check(self.svg.iter())?;
        let setup = Setup { seed: self.seed, ..Setup::new(self.nodes) };
        let ids = Order::find(&self.order)?.ids(setup.nodes, setup.first_id, setup.seed);
        let siege = election
            .attack(&ids, self.mutant.as_deref())
            .map_err(|error| messages::lab_refused(format!("{}: {error}", self.name)))?;
        outputs.write(self.svg.iter().map(|_| siege::draw(&self.name, &siege)))?;
        let verdict = Verdict::broken_if(broken(&siege).is_some());
        let answer = Answer::new(format, || self.json(&siege, verdict), || self.text(&siege, verdict));
        Ok(Answer { verdict, ..answer })
    }

    fn json(&self, siege: &Siege, verdict: Verdict) -> Value {
        let level = |(size, joins): (usize, Vec<&Join>)| {
            let heard = joins.iter().map(|join| join.heard());
            json!({
                "size": size,
                "joins": joins.len(),
                "heard": heard.clone().sum::<u64>(),
                "least": heard.min(),
                "needed_each": size.div_ceil(4),
                "outer_edge": joins.iter().filter(|join| join.chose_outer).count(),
            })
        };
        json!({
            "protocol": self.name,
            "mutant": self.mutant,
            "nodes": siege.nodes,
            "seed": self.seed,
            "order": self.order,
            "verdict": verdict.name(),
            "receptions": siege.receptions,
            "bound": siege.bound,
            "decided_open": siege.decided_open.is_some(),
            "why": broken(siege),
            "total_receptions": siege.total,
            "histories_compared": siege.histories,
            "joins": levels(siege).map(level).collect::<Vec<_>>(),
        })
    }

    fn text(&self, siege: &Siege, verdict: Verdict) -> String {
        let mutant = self.mutant.as_ref().map(|mutant| format!(" ({mutant})")).unwrap_or_default();
        let mut text =
            format!("{}{mutant} against the open-schedule adversary: {}\n", self.name, verdict.name());
        text += &pairs(broken(siege).map(|why| ("broken", why)));
        text += &pairs([
            ("heard", format!("{} messages with an edge open", grouped(siege.receptions))),
            ("bound", format!("{} = n/4 (log2 n + 1), n = {}", grouped(siege.bound), siege.nodes)),
            ("total", format!("{} messages when the last edge is closed too", grouped(siege.total))),
            (
                "histories",
                format!("{} compared with those in the halves: all equal", grouped(siege.histories)),
            ),
        ]);
        let mut table = Table::new(["NODES", "JOINS", "HEARD", "LEAST", "NEEDED", "OUTER EDGE"]);
        for (size, joins) in levels(siege) {
            let heard = joins.iter().map(|join| join.heard());
            let outer = joins.iter().filter(|join| join.chose_outer).count();
            let numbers =
                [joins.len() as u64, heard.clone().sum(), heard.min().unwrap_or(0), size.div_ceil(4) as u64];
            let [joins, heard, least, needed] = numbers.map(grouped);
            table.row([grouped(size as u64), joins, heard, least, needed, outer.to_string()]);
        }
        text + "\n" + &table.render()
    }
}

/// The joins of each size.
fn levels(siege: &Siege) -> impl Iterator<Item = (usize, Vec<&Join>)> {
    (1..=siege.nodes.ilog2()).map(|level| {
        let size = 1 << level;
        (size, siege.joins.iter().filter(|join| join.size == size).collect())
    })
}

/// The evidence against the algorithm.
fn broken(siege: &Siege) -> Option<String> {
    let open = siege
        .decided_open
        .as_ref()
        .map(|what| format!("{what}: a larger id could sit there; it is not uniform"));
    let few =
        (siege.receptions < siege.bound).then(|| format!("only {} messages are heard", siege.receptions));
    open.or_else(|| siege.wrong.clone()).or_else(|| siege.too_quiet.clone()).or(few)
}
