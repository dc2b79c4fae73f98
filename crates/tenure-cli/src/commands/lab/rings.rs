//! `tenure lab run` for ring algorithms: one election, all orders, a search, or lock step.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tenure_lab::draw::ring as drawing;
use tenure_lab::protocols::ring::exact::{self, Exact, Found};
use tenure_lab::protocols::ring::lockstep::Steps;
use tenure_lab::protocols::ring::{self, Delays, Election, Order, Outcome, Setup, Waking};
use tenure_lab::simulate::Faults;

use super::options::Common;
use super::run::Drawings;
use crate::failure::{Failure, messages};
use crate::files::Outputs;
use crate::output::{Answer, Format, Progress, Table, Verdict, grouped, pairs};

/// Which orders to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// One.
    Order(Order),
    /// Every circular one.
    All,
    /// Look for a bad one.
    Search,
}

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::Order(order) => order.name(),
            Self::All => "all",
            Self::Search => "search",
        }
    }
}

/// An order as `--order` takes it.
pub(super) fn order(text: &str) -> Result<Case, String> {
    match text {
        "all" => Ok(Case::All),
        "search" => Ok(Case::Search),
        _ => Order::find(text).map(Case::Order).map_err(|error| error.to_string()),
    }
}

/// A ring algorithm and what was asked of it.
pub(super) struct Trial {
    pub(super) election: &'static dyn Election,
    pub(super) common: Common,
    pub(super) case: Case,
    pub(super) drawings: Drawings,
    pub(super) trace: Option<PathBuf>,
}

/// The constants that `--set` asked for.
#[derive(Clone, Debug)]
struct Wishes {
    setup: Setup,
    same_ids: bool,
    rounds: u64,
    runs: u64,
    schedules: bool,
}

impl Trial {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        self.check()?;
        let wishes = self.wishes()?;
        let outputs = self.drawings.check(self.trace.as_ref())?;
        let drawn = self.trace.is_some() || self.drawings.are_wanted();
        let lock_step = wishes.same_ids || self.name() == "automaton";
        if drawn && (lock_step || !matches!(self.case, Case::Order(_))) {
            return Err(messages::lab_not_drawn());
        }
        match self.case {
            _ if lock_step => self.lock_step(&wishes, format),
            Case::Order(order) => self.one(order, &wishes, outputs, format),
            Case::All => self.all_orders(&wishes, format),
            Case::Search => self.search(&wishes, format),
        }
    }

    fn name(&self) -> &'static str {
        self.election.about().name
    }

    /// A flag that would change nothing is a mistake.
    fn check(&self) -> Result<(), Failure> {
        let common = &self.common;
        let idle = [
            ("--faults", common.faults.is_some_and(|faults| faults != Faults::NONE)),
            ("--world", common.world.is_some()),
            ("--quorums", common.quorums != "majority"),
            ("--horizon", common.horizon.is_some()),
            ("--property", common.property.is_some()),
            ("--mutant", common.mutant.is_some()),
        ];
        match idle.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                let to = format!("the ring algorithm '{}'", self.name());
                Err(messages::flag_means_nothing(flag, to, "it is for protocols of processes that fail"))
            }
            None => Ok(()),
        }
    }

    fn wishes(&self) -> Result<Wishes, Failure> {
        let nodes = u32::try_from(self.common.nodes).unwrap_or(u32::MAX);
        let setup = Setup { seed: self.common.seed.unwrap_or(1), ..Setup::new(nodes) };
        let mut wishes = Wishes { setup, same_ids: false, rounds: 1000, runs: 20_000, schedules: false };
        for (key, value) in &self.common.sets {
            let wrong = |what: &str| messages::flag_refused(format!("--set {key}={value}"), what);
            let number = || value.parse::<u32>().map_err(|_| wrong("write a whole number from 0"));
            match key.as_str() {
                "delays" => {
                    let found = Delays::NAMED.iter().find(|(name, _)| name == value);
                    wishes.setup.delays =
                        found.ok_or_else(|| wrong("write unit, random, chaos or newest"))?.1;
                }
                "wake" => {
                    wishes.setup.wake = match value.as_str() {
                        "all" => Waking::All,
                        "some" => Waking::Some,
                        _ => Waking::One(
                            number().map_err(|_| wrong("write all, some, or the place of a node"))?,
                        ),
                    }
                }
                "first-id" => wishes.setup.first_id = number()?,
                "ids" if value == "same" => wishes.same_ids = true,
                "ids" => return Err(wrong("write ids=same to make the nodes anonymous")),
                "rounds" => wishes.rounds = u64::from(number()?),
                "runs" => wishes.runs = u64::from(number()?.max(1)),
                "schedules" => wishes.schedules = value == "yes",
                _ => {
                    let known = "delays, wake, first-id, ids, rounds, runs, schedules";
                    return Err(wrong(&format!("a ring has no such constant; it has {known}")));
                }
            }
        }
        Ok(wishes)
    }

    fn command(&self) -> String {
        let seed = self.common.seed.unwrap_or(1);
        let (name, nodes, order) = (self.name(), self.common.nodes, self.case.name());
        let mut words = format!("tenure lab run {name} --nodes {nodes} --order {order} --seed {seed}");
        self.common.sets.iter().for_each(|(key, value)| words += &format!(" --set {key}={value}"));
        words
    }

    fn one(
        &self,
        order: Order,
        wishes: &Wishes,
        outputs: Outputs,
        format: Format,
    ) -> Result<Answer, Failure> {
        let setup = &wishes.setup;
        let ids = self.election.ids(order, setup)?;
        let (outcome, files) = if self.trace.is_some() || self.drawings.are_wanted() {
            self.drawn(&ids, setup)?
        } else {
            let about =
                self.election.theory().map_or(0.0, |theory| (theory.messages)(f64::from(setup.nodes)));
            let progress =
                Progress::of(at_least_one(about) + u64::from(setup.nodes), self.name(), "messages");
            let outcome = self.election.run(&ids, setup, &mut |done| progress.add(done));
            progress.end();
            (outcome?, Vec::new())
        };
        outputs.write(files)?;
        let expected = ring::expected(self.name(), &ids, setup);
        let verdict = Verdict::broken_if(
            outcome.broken().is_some() || expected.is_some_and(|expected| expected != outcome.election),
        );
        let told = Told { trial: self, setup, outcome: &outcome, expected, verdict };
        let answer = Answer::new(format, || told.json(), || told.text());
        Ok(Answer { verdict, ..answer })
    }

    /// Runs it, written down; what the files get, in their order.
    fn drawn(&self, ids: &[u32], setup: &Setup) -> Result<(Outcome, Vec<String>), Failure> {
        drawing::check(setup.nodes)?;
        let (outcome, trace) = self.election.record(ids, setup)?;
        let leader = match (outcome.leader, outcome.leader_id) {
            (Some(place), Some(id)) => format!("n{place} leads with id {id}"),
            (Some(place), None) => format!("n{place} leads"),
            _ => "nobody leads".to_owned(),
        };
        let (election, announcement) = (grouped(outcome.election), grouped(outcome.announcement));
        let picture = drawing::Picture {
            title: format!("{}, {} nodes, {} order", self.name(), setup.nodes, self.case.name()),
            verdict: format!(
                "{leader}; {election} messages to elect, {announcement} to tell, time {}",
                time_text(&outcome)
            ),
            broken: outcome.broken().is_some(),
            ids: self.election.has_ids().then_some(ids),
            nodes: setup.nodes,
            star: !self.election.on_ring(),
            trace: &trace,
            unit: outcome.unit,
        };
        let mut files = Vec::new();
        files.extend(self.drawings.svg.as_ref().map(|_| drawing::svg(&picture)));
        if self.drawings.html.is_some() {
            files.push(drawing::page(&picture)?);
        }
        files.extend(self.trace.as_ref().map(|_| trace.text(ids)));
        Ok((outcome, files))
    }

    fn all_orders(&self, wishes: &Wishes, format: Format) -> Result<Answer, Failure> {
        let exact = exact::all_orders(self.election, &wishes.setup)?;
        let harmonic = exact::n_harmonic(exact.nodes);
        let is_clockwise = self.name() == "clockwise" && wishes.setup.wake == Waking::All;
        let broken = exact.broken.clone().or_else(|| {
            (is_clockwise && exact.mean != harmonic)
                .then(|| format!("the mean is {}, not n·H_n = {harmonic}", exact.mean))
        });
        let verdict = Verdict::broken_if(broken.is_some());
        let answer = Answer::new(
            format,
            || {
                json!({
                    "protocol": self.name(), "nodes": exact.nodes, "order": "all", "verdict": verdict.name(), "broken": broken,
                    "orders": exact.orders, "mean": exact.mean.to_string(), "mean_approximately": exact.mean.approximately(),
                    "n_harmonic": harmonic.to_string(), "best": case_json(&exact.best), "worst": case_json(&exact.worst),
                    "slowest": exact.slowest, "command": self.command(),
                })
            },
            || self.exact_text(&exact, verdict, broken.as_ref()),
        );
        Ok(Answer { verdict, ..answer })
    }

    fn exact_text(&self, exact: &Exact, verdict: Verdict, broken: Option<&String>) -> String {
        let case = |(count, ids): &(u64, Vec<u32>)| format!("{} messages: {}", grouped(*count), list(ids));
        let mean = format!("{} = {:.4}", exact.mean, exact.mean.approximately());
        let mut facts = vec![
            ("orders", format!("{}, all that there are", grouped(exact.orders))),
            ("mean", format!("{mean} messages to elect, exactly")),
            ("n·H_n", exact::n_harmonic(exact.nodes).to_string()),
            ("best", case(&exact.best)),
            ("worst", case(&exact.worst)),
            ("time", format!("{} at most until somebody leads", exact.slowest)),
        ];
        facts.extend(broken.map(|what| ("broken", what.clone())));
        format!("{}, {} nodes, all orders: {}\n{}", self.name(), exact.nodes, verdict.name(), pairs(facts))
    }

    fn search(&self, wishes: &Wishes, format: Format) -> Result<Answer, Failure> {
        let progress = Progress::of(wishes.runs, self.name(), "runs");
        let found = exact::search(self.election, &wishes.setup, (wishes.runs, wishes.schedules), &|done| {
            progress.add(done);
        });
        progress.end();
        let Found { messages, ids, priorities, runs } = found?;
        let theory = self.election.theory().filter(|theory| theory.bound);
        let bound = theory.map(|theory| (theory.messages)(f64::from(wishes.setup.nodes)));
        Ok(Answer::new(
            format,
            || {
                json!({
                    "protocol": self.name(), "nodes": wishes.setup.nodes, "seed": wishes.setup.seed, "order": "search",
                    "verdict": "holds", "messages": { "election": messages }, "ids": ids, "slow_links": priorities,
                    "found_after": runs, "runs": wishes.runs, "bound": bound, "command": self.command(),
                })
            },
            || {
                let mut facts = vec![
                    (
                        "messages",
                        format!("{} to elect, found after {} runs", grouped(messages), grouped(runs)),
                    ),
                    ("order", list(&ids)),
                ];
                facts.extend(
                    priorities.as_ref().map(|links| ("links", format!("from the quickest: {}", list(links)))),
                );
                facts.extend(
                    theory
                        .zip(bound)
                        .map(|(theory, bound)| ("bound", format!("{bound:.0} = {}", theory.says))),
                );
                format!(
                    "{}, {} nodes: the worst of {} runs\n{}",
                    self.name(),
                    wishes.setup.nodes,
                    wishes.runs,
                    pairs(facts)
                )
            },
        ))
    }

    fn lock_step(&self, wishes: &Wishes, format: Format) -> Result<Answer, Failure> {
        let steps = self.election.lock_step(wishes.setup.nodes, wishes.rounds, wishes.setup.seed)?;
        let holds = steps.coins || steps.apart().is_none();
        let verdict = Verdict::broken_if(!holds);
        let answer = Answer::new(
            format,
            || {
                json!({
                    "protocol": self.name(), "nodes": steps.nodes, "seed": wishes.setup.seed, "verdict": verdict.name(),
                    "lock_step": true, "rounds": steps.rounds, "quiet": steps.quiet, "coins": steps.coins,
                    "states_equal": steps.apart().is_none(), "apart_after": steps.apart(), "leaders": steps.leaders(),
                    "properties": [{ "name": "states-equal", "kind": "always", "status": if holds { "holds" } else { "broken" } }],
                    "command": self.command(),
                })
            },
            || lock_step_text(self.name(), &steps, verdict),
        );
        Ok(Answer { verdict, ..answer })
    }
}

fn lock_step_text(name: &str, steps: &Steps, verdict: Verdict) -> String {
    let equal = match (steps.apart(), steps.coins) {
        (None, _) => format!("after every one of {} rounds", steps.rounds + 1),
        (Some(round), true) => {
            format!("until round {round}: the nodes toss coins, and that is what coins are for")
        }
        (Some(round), false) => format!("until round {round}: the network itself is not symmetric"),
    };
    let leaders = match steps.leaders() {
        0 => "nobody leads".to_owned(),
        all if all == steps.nodes => format!("all {all} lead: no election"),
        some => format!("{some} of {}", steps.nodes),
    };
    let end = if steps.quiet { "all is quiet" } else { "it goes on; stopped here" };
    let facts = [("equal", equal), ("leaders", leaders), ("end", end.to_owned())];
    format!(
        "{name}, {} nodes that do not differ, in lock step: {}\n{}",
        steps.nodes,
        verdict.name(),
        pairs(facts)
    )
}

/// An outcome with what is said about it.
struct Told<'a> {
    trial: &'a Trial,
    setup: &'a Setup,
    outcome: &'a Outcome,
    expected: Option<u64>,
    verdict: Verdict,
}

impl Told<'_> {
    fn json(&self) -> Value {
        let outcome = self.outcome;
        let kinds: Map<String, Value> =
            outcome.kinds.iter().map(|(kind, count)| ((*kind).to_owned(), json!(count))).collect();
        let mut properties: Vec<Value> = outcome
            .verdicts
            .iter()
            .map(|v| json!({ "name": v.name, "kind": v.kind, "status": status(v.broken.is_none()), "seen": v.broken }))
            .collect();
        properties.extend(self.expected.map(|expected| {
            let holds = expected == outcome.election;
            json!({ "name": "next-larger", "kind": "finally", "status": status(holds), "expected": expected })
        }));
        let n = f64::from(self.setup.nodes);
        let theory = self.trial.election.theory().map(
            |theory| json!({ "says": theory.says, "bound": theory.bound, "messages": (theory.messages)(n) }),
        );
        json!({
            "protocol": self.trial.name(),
            "nodes": self.setup.nodes,
            "seed": self.setup.seed,
            "order": self.trial.case.name(),
            "delays": self.setup.delays.name(),
            "verdict": self.verdict.name(),
            "leader": outcome.leader.map(|place| format!("n{place}")),
            "leader_id": outcome.leader_id,
            "messages": {
                "total": outcome.messages(),
                "election": outcome.election,
                "announcement": outcome.announcement,
                "kinds": kinds,
            },
            "bits": outcome.bits,
            "time": units(outcome.time, outcome.unit),
            "elected_at": outcome.elected_at.map(|at| units(at, outcome.unit)),
            "events": outcome.events,
            "local_steps": { "largest": outcome.most_steps, "mean": outcome.steps as f64 / n },
            "next_larger": self.expected,
            "theory": theory,
            "memory_bytes": outcome.memory + 4 * u64::from(self.setup.nodes),
            "properties": properties,
            "command": self.trial.command(),
        })
    }

    fn text(&self) -> String {
        let outcome = self.outcome;
        let (name, nodes, order) =
            (self.trial.name(), grouped(u64::from(self.setup.nodes)), self.trial.case.name());
        let mut text = format!(
            "{name}, {nodes} nodes, {order} order, seed {}: {}\n",
            self.setup.seed,
            self.verdict.name()
        );
        let broken =
            outcome.broken().and_then(|v| v.broken.as_ref().map(|what| format!("{}: {what}", v.name)));
        text += &pairs(broken.map(|what| ("broken", what)));
        text.push('\n');
        text += &pairs(self.facts());
        let mut table = Table::new(["PROPERTY", "KIND", "STATUS", "SAYS"]);
        for v in &outcome.verdicts {
            table.row([v.name, v.kind, status(v.broken.is_none()), v.says].map(str::to_owned));
        }
        if let Some(expected) = self.expected {
            let says = "messages are the sum of distances to the next larger id, by a stack";
            table.row(
                ["next-larger", "finally", status(expected == outcome.election), says].map(str::to_owned),
            );
        }
        text + "\n" + &table.render()
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let outcome = self.outcome;
        let n = f64::from(self.setup.nodes);
        let leader = match (outcome.leader, outcome.leader_id) {
            (Some(place), Some(id)) => format!("n{place}, id {id}"),
            (Some(place), None) => format!("n{place}"),
            _ => "nobody".to_owned(),
        };
        let kinds: Vec<String> =
            outcome.kinds.iter().map(|(kind, count)| format!("{kind} {}", grouped(*count))).collect();
        let elected = outcome
            .elected_at
            .map(|at| format!("; elected at {}", units(at, outcome.unit)))
            .unwrap_or_default();
        let mut facts = vec![
            ("leader", leader),
            (
                "messages",
                format!(
                    "{}: election {}, announcement {} ({})",
                    grouped(outcome.messages()),
                    grouped(outcome.election),
                    grouped(outcome.announcement),
                    kinds.join(", "),
                ),
            ),
            ("bits", grouped(outcome.bits)),
            ("time", format!("{}{elected}, one unit a message at most", time_text(outcome))),
            (
                "steps",
                format!(
                    "{} at most, {:.2} on average",
                    grouped(u64::from(outcome.most_steps)),
                    outcome.steps as f64 / n
                ),
            ),
        ];
        facts.extend(self.expected.map(|expected| {
            ("expected", format!("{} to elect, by a stack over the same order", grouped(expected)))
        }));
        facts.extend(self.trial.election.theory().map(|theory| {
            let value = (theory.messages)(n);
            let apart = if theory.bound {
                String::new()
            } else {
                format!("; {:+.3} n from it", (outcome.election as f64 - value) / n)
            };
            ("theory", format!("{value:.0} to elect: {}{apart}", theory.says))
        }));
        let bytes = outcome.memory + 4 * u64::from(self.setup.nodes);
        facts.push((
            "memory",
            format!("{:.3} GiB for nodes, messages and ids", bytes as f64 / f64::from(1 << 30)),
        ));
        facts
    }
}

fn status(holds: bool) -> &'static str {
    if holds { "holds" } else { "broken" }
}

/// A time in units: whole, except with random delays.
fn units(time: u64, unit: u64) -> Value {
    if unit == 1 { json!(time) } else { json!(time as f64 / unit as f64) }
}

fn time_text(outcome: &Outcome) -> String {
    match outcome.unit {
        1 => grouped(outcome.time),
        unit => format!("{:.3}", outcome.time as f64 / unit as f64),
    }
}

fn case_json((count, ids): &(u64, Vec<u32>)) -> Value {
    json!({ "election": count, "ids": ids })
}

fn list(ids: &[u32]) -> String {
    let shown: Vec<String> = ids.iter().take(64).map(ToString::to_string).collect();
    let more = if ids.len() > 64 { " …" } else { "" };
    format!("{}{more}", shown.join(" "))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a guess for the progress bar")]
fn at_least_one(guess: f64) -> u64 {
    guess.max(1.0) as u64
}
