//! `tenure lab race`: protocols and parts of them compared, in tables and plots.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use tenure_lab::catalogue::{self, Error, Experiment};
use tenure_lab::draw::{chart, plot};
use tenure_lab::protocols::eventual::race::{self as eventual, Variant};
use tenure_lab::protocols::local::race as local;
use tenure_lab::protocols::log::race as paxos;
use tenure_lab::protocols::ring::{self, Order};
use tenure_lab::protocols::strong::race::{blocking, election};
use tenure_lab::race::{self, Cell, Column, Sheet, Shown, Study, detectors};
use tenure_lab::simulate::Named;
use tenure_lab::world::RealTime;

use super::options;
use crate::failure::{Failure, messages};
use crate::files::Outputs;
use crate::output::{Answer, Format, Progress, Table, Verdict, grouped, pairs};

/// Compare protocols, or parts of them, over many seeds. The same seeds print the same bytes.
#[derive(Args, Debug)]
#[command(after_help = "Studies:
  election   How long it takes until somebody leads, once no grantor is bound to anybody and
             everybody campaigns, against the bound W/(n+1) + 2v + (1/s-1)(W+4v), s = (1-v/W)^n,
             with v the longest one-way delay and W the window of starts: W = 2nv and W = nv.
             The machine that nodes run, no faults.
  detectors  How soon, and how wrongly, failure detectors suspect: detection time, mistake
             recurrence, mistake duration and query accuracy (Chen, Toueg, Aguilera) of fixed
             timeouts, of phi accrual and of NFD-E, on the same traces of five manners of link;
             or of some of them alone: heartbeat,phi,nfd-e.
  blocking   How long a request that was late on its way blocks others: bounded drift (OQwBD)
             against bounded skew (OQwBS), over its delay. An asker asks for 1s and crashes; its
             request arrives after the delay and is granted. Blocked: from that arrival to the
             first instant at which another candidate that asks is granted. In vain: from the
             instant at which the asker gives up (its lease would have been over) to that same
             instant; 0 if nobody is blocked.
  local      How long a round of a local leader takes, and how many messages it hears, where
             everybody answers it directly and where answers come along a tree of three children a
             node; over what handling a message costs.
  rings      Ring algorithms over their sizes, and elections among named processes: messages,
             bits, time, steps; named, or all of them with --all. Sizes grow until an algorithm
             has used up its budget of events; what was left out is said.
  eventual   Elections of eventual leaders by name (omega, omega-lean, omega-stable, lowest-id,
             accusation): who agrees, how soon, how often minds change, over how many links; with
             bounded delays, or in the world of --world, in each --variant of it: plain (up to f
             crash), loss (60 % of what is slow, 20 % comes twice), drift (1000 ppm, wake-ups 1 ms
             late), grid (quorums), kept and lost (restarts with what was written and with
             nothing), learn (the round, from a fiftieth), fewer (one less may fail, as 7/2).
  paxos      The log under each Omega (omega, lean, stable) on the same schedules: prepares per
             1,000 commits, what a change of leader costs against the 2(n-1)(1+u) messages that
             the paper counts for u unfinished slots, and the longest commit that is owed within
             delta; in the world of --world.

Examples:
  tenure lab race paxos --nodes 3,5 --seeds 100
  tenure lab race omega,omega-lean,omega-stable --nodes 3,5,9
  tenure lab race omega,accusation --world blocks --horizon 250s --seeds 20
  tenure lab race omega,omega-lean,omega-stable --world moving-set --variant all
  tenure lab race --all --svg race.svg --csv race.csv
  tenure lab race clockwise,peterson,franklin --nodes 64,1024,16384 --seeds 20
  tenure lab race election
  tenure lab race election --nodes 3,7 --seeds 10000 --svg election.svg
  tenure lab race detectors --seeds 50 -o json
  tenure lab race heartbeat,nfd-e
  tenure lab race blocking --svg blocking.svg
  tenure lab race local --nodes 8,16,32,64 --svg local.svg

Exit codes: 0 what is promised holds, 1 it does not (a mean exceeds its bound, nobody is
elected, a crash is missed, a round fails), 2 error.")]
pub(super) struct Race {
    /// The study: election, detectors, blocking, local, paxos, or ring algorithms or
    /// elections of eventual leaders by name: clockwise,peterson or omega,omega-lean
    #[arg(value_name = "STUDY", required_unless_present = "all")]
    study: Option<String>,
    /// All ring algorithms, and all elections among named processes
    #[arg(long, conflicts_with = "study")]
    all: bool,
    /// How many processes, each number in turn: 3,5,9 or --nodes 3 --nodes 5; not for detectors and
    /// blocking [default: 3,5,9 for election and eventual leaders, 3,5 for paxos, 8,16,32,64 for
    /// local, 16,32,…,2^20 for rings]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = nodes, allow_negative_numbers = true)]
    nodes: Vec<usize>,
    /// How many seeds a row; not for blocking [default: 2000 for election, 200 for detectors, 20
    /// for local and paxos, 10 for rings and eventual leaders]
    #[arg(long, value_name = "K", value_parser = options::at_least_one, allow_negative_numbers = true)]
    seeds: Option<u64>,
    /// The first seed; not for blocking [default: 0]
    #[arg(long, value_name = "S", value_parser = options::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Draw it as an image; for election, blocking, local and rings
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the rows as comma-separated values; for rings
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// In which order ids stand; for rings [default: random]
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// In which world; for eventual leaders [default: bounded delays] and paxos [default:
    /// moving-set]
    #[arg(long, value_name = "WORLD")]
    world: Option<String>,
    /// How long each run lasts; for eventual leaders [default: 30s] and paxos [default: as the
    /// world says]
    #[arg(long, value_name = "D", value_parser = options::length)]
    horizon: Option<RealTime>,
    /// In which variants of the world, each in turn, or all; for eventual leaders [default: plain]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    variant: Vec<String>,
    /// On how many cores; for rings and eventual leaders [default: all]
    #[arg(long, value_name = "N", value_parser = options::threads)]
    threads: Option<usize>,
}

/// The subject of the comparison, as far as flags are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Study(Study),
    Rings,
    Eventual,
}

impl Subject {
    const ELECTION: Self = Self::Study(Study::Election);
    const DETECTORS: Self = Self::Study(Study::Detectors);
    const BLOCKING: Self = Self::Study(Study::Blocking);
    const PAXOS: Self = Self::Study(Study::Paxos);
    const LOCAL: Self = Self::Study(Study::Local);

    fn name(self) -> &'static str {
        match self {
            Self::Study(study) => study.name(),
            Self::Rings => "ring algorithms",
            Self::Eventual => "eventual leaders",
        }
    }
}

/// Runs a study and tells how far it is.
type Runner<'a> = dyn Fn(&dyn Fn(u64)) -> Result<race::Race, Error> + 'a;

fn nodes(text: &str) -> Result<usize, String> {
    let nodes = text.parse().ok().filter(|nodes| (2..=1 << 30).contains(nodes));
    nodes.ok_or_else(|| "there must be 2 to 64 nodes, on a ring up to 2^30".to_owned())
}

impl Race {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        if let Some(elections) = self.elections()? {
            return self.rings(elections, format);
        }
        if let Some(elections) = self.eventual() {
            return self.settle(elections, format);
        }
        let study = match self.detectors().is_empty() {
            true => Study::find(self.study.as_deref().unwrap_or_default())?,
            false => Study::Detectors,
        };
        self.check(Subject::Study(study))?;
        let outputs = Outputs::check(self.svg.iter())?;
        let race = self.race(study)?;
        outputs.write(race.plot.iter().map(plot::draw))?;
        let mut answer = Answer::new(format, || json(&race), || text(&race));
        answer.verdict = verdict(&race);
        Ok(answer)
    }

    /// The failure detectors that were named, if nothing else was.
    fn detectors(&self) -> Vec<String> {
        let names: Vec<&str> = self.study.as_deref().unwrap_or_default().split(',').collect();
        let all = names.iter().all(|name| detectors::NAMES.contains(name));
        names.into_iter().filter(|_| all).map(str::to_owned).collect()
    }

    /// The ring algorithms that were named, if any were.
    fn elections(&self) -> Result<Option<Vec<&'static dyn ring::Election>>, Failure> {
        let counted = |election: &&&'static dyn ring::Election| election.about().name != "automaton";
        if self.all {
            let named = ring::named::all().iter();
            return Ok(Some(ring::all().iter().filter(counted).chain(named).copied().collect()));
        }
        let names: Vec<&str> = self.study.as_deref().unwrap_or_default().split(',').collect();
        if names == ["rings"] {
            return Ok(Some(ring::all().iter().filter(counted).copied().collect()));
        }
        let find = |name: &str| ring::named::find(name).map_or_else(|| ring::find(name), Ok);
        if !names.iter().any(|name| find(name).is_ok()) {
            return Ok(None);
        }
        Ok(Some(names.into_iter().map(find).collect::<Result<_, _>>()?))
    }

    /// The elections of eventual leaders that were named, if only such were.
    fn eventual(&self) -> Option<Vec<&'static dyn Experiment>> {
        let names = self.study.as_deref()?.split(',');
        let found = names.map(|name| catalogue::find(name).ok().filter(|it| it.home().is_some()));
        found.collect()
    }

    fn settle(&self, elections: Vec<&'static dyn Experiment>, format: Format) -> Result<Answer, Failure> {
        self.check(Subject::Eventual)?;
        if !self.variant.is_empty() && self.world.is_none() {
            return Err(messages::flag_means_nothing(
                "--variant",
                "eventual leaders",
                "without --world they have no variants",
            ));
        }
        let plain = ["plain".to_owned()];
        let options = eventual::Options {
            elections,
            nodes: if self.nodes.is_empty() { vec![3, 5, 9] } else { self.nodes.clone() },
            seeds: self.seeds.unwrap_or(10),
            first: self.seed.unwrap_or(0),
            world: self.world.as_deref().map(Named::find).transpose()?,
            variants: Variant::find(if self.variant.is_empty() { &plain } else { &self.variant })?,
            horizon: self.horizon.unwrap_or(eventual::HORIZON),
            threads: self.threads.unwrap_or_else(options::all_cores),
        };
        if options.nodes.iter().any(|nodes| *nodes > 64) {
            return Err(messages::lab_too_many_nodes(2));
        }
        let progress = Progress::new(eventual::schedules(&options), "eventual");
        let race = eventual::run(&options, &|done| progress.add(done));
        progress.end();
        let race = race?;
        let mut answer = Answer::new(format, || json(&race), || text(&race));
        answer.verdict = verdict(&race);
        Ok(answer)
    }

    fn rings(&self, elections: Vec<&'static dyn ring::Election>, format: Format) -> Result<Answer, Failure> {
        self.check(Subject::Rings)?;
        let outputs = Outputs::check([self.svg.as_ref(), self.csv.as_ref()].into_iter().flatten())?;
        let nodes = self.nodes.iter().map(|nodes| u32::try_from(*nodes).unwrap_or(u32::MAX)).collect();
        let sizes: Vec<u32> =
            if self.nodes.is_empty() { (4..=20).map(|power| 1 << power).collect() } else { nodes };
        let total = (elections.len() * sizes.len()) as u64;
        let options = ring::race::Options {
            elections,
            sizes,
            seeds: self.seeds.unwrap_or(10),
            first: self.seed.unwrap_or(0),
            order: Order::find(self.order.as_deref().unwrap_or("random"))?,
            budget: ring::race::BUDGET,
            threads: self.threads.unwrap_or_else(options::all_cores),
        };
        let progress = Progress::of(total, "rings", "sizes");
        let contest = ring::race::run(&options, &|done| progress.add(done));
        progress.end();
        let contest = contest?;
        let drawn = self.svg.as_ref().map(|_| chart::draw(&contest.chart));
        let listed = self.csv.as_ref().map(|_| ring::race::csv(&contest.race));
        outputs.write([drawn, listed].into_iter().flatten())?;
        let mut answer = Answer::new(format, || json(&contest.race), || text(&contest.race));
        answer.verdict = verdict(&contest.race);
        Ok(answer)
    }

    /// A flag that would change nothing is a mistake.
    fn check(&self, subject: Subject) -> Result<(), Failure> {
        use Subject as S;
        const DRAWN: &[S] = &[S::ELECTION, S::DETECTORS, S::PAXOS, S::LOCAL, S::Rings, S::Eventual];
        let flags = [
            (
                "--nodes",
                !self.nodes.is_empty(),
                &[S::ELECTION, S::PAXOS, S::LOCAL, S::Rings, S::Eventual][..],
            ),
            ("--seeds", self.seeds.is_some(), DRAWN),
            ("--seed", self.seed.is_some(), DRAWN),
            ("--svg", self.svg.is_some(), &[S::ELECTION, S::BLOCKING, S::LOCAL, S::Rings]),
            ("--csv", self.csv.is_some(), &[S::Rings]),
            ("--order", self.order.is_some(), &[S::Rings]),
            ("--threads", self.threads.is_some(), &[S::Rings, S::Eventual]),
            ("--world", self.world.is_some(), &[S::Eventual, S::PAXOS]),
            ("--variant", !self.variant.is_empty(), &[S::Eventual]),
            ("--horizon", self.horizon.is_some(), &[S::Eventual, S::PAXOS]),
        ];
        let idle = flags.into_iter().find(|(_, given, of)| *given && !of.contains(&subject));
        idle.map_or(Ok(()), |(flag, _, of)| {
            let (to, of) = (subject.name(), listed(of));
            Err(messages::flag_means_nothing(flag, to, format!("only to {of}")))
        })
    }

    fn race(&self, study: Study) -> Result<race::Race, Failure> {
        let first = self.seed.unwrap_or(0);
        let raced = |schedules: u64, run: &Runner<'_>| {
            let progress = Progress::new(schedules, study.name());
            let race = run(&|done| progress.add(done));
            progress.end();
            race
        };
        Ok(match study {
            Study::Election => {
                let nodes = if self.nodes.is_empty() { vec![3, 5, 9] } else { self.nodes.clone() };
                let options = election::Options { nodes, seeds: self.seeds.unwrap_or(2000), first };
                raced(election::schedules(&options), &|progress| election::run(&options, progress))
            }
            Study::Detectors => {
                let options =
                    detectors::Options { seeds: self.seeds.unwrap_or(200), first, only: self.detectors() };
                raced(detectors::schedules(&options), &|progress| detectors::run(&options, progress))
            }
            Study::Blocking => raced(blocking::schedules(), &|progress| blocking::run(progress)),
            Study::Paxos => {
                let options = self.log(first)?;
                raced(paxos::schedules(&options), &|progress| paxos::run(&options, progress))
            }
            Study::Local => {
                let nodes = if self.nodes.is_empty() { vec![8, 16, 32, 64] } else { self.nodes.clone() };
                let options = local::Options { nodes, seeds: self.seeds.unwrap_or(20), first };
                raced(local::schedules(&options), &|progress| local::run(&options, progress))
            }
        }?)
    }

    fn log(&self, first: u64) -> Result<paxos::Options, Failure> {
        let nodes = if self.nodes.is_empty() { vec![3, 5] } else { self.nodes.clone() };
        let world = Named::find(self.world.as_deref().unwrap_or("moving-set"))?;
        let (seeds, horizon) = (self.seeds.unwrap_or(20), self.horizon);
        Ok(paxos::Options { nodes, seeds, first, world: Some(world), horizon })
    }
}

/// Names as people list them: a, b and c.
fn listed(subjects: &[Subject]) -> String {
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

fn verdict(race: &race::Race) -> Verdict {
    Verdict::broken_if(!race.broken.is_empty())
}

fn json(race: &race::Race) -> Value {
    let row = |row: &Vec<Cell>| -> Map<String, Value> {
        race.rows.columns.iter().zip(row).map(|(column, cell)| (column.key.clone(), value(cell))).collect()
    };
    json!({
        "study": race.study,
        "parameters": race.parameters.iter().map(|(key, cell)| ((*key).to_owned(), value(cell))).collect::<Map<_, _>>(),
        "rows": race.rows.rows.iter().map(row).collect::<Vec<_>>(),
        "verdict": verdict(race).name(),
        "broken": race.broken,
    })
}

/// A cell for programs: a number as precise as people see it.
fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Text(text) => json!(text),
        Cell::Count(count) => json!(count),
        Cell::Number(number, places) => json!(format!("{number:.places$}").parse::<f64>().ok()),
        Cell::Nothing => Value::Null,
    }
}

fn words(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Count(count) => grouped(*count),
        Cell::Number(number, places) => format!("{number:.places$}"),
        Cell::Nothing => String::new(),
    }
}

fn text(race: &race::Race) -> String {
    let mut text = format!("{}: {}\n", race.study, verdict(race).name());
    text += &pairs(race.broken.iter().map(|what| ("broken", what.clone())));
    text.push('\n');
    text += &pairs(race.parameters.iter().map(|(key, cell)| (*key, words(cell))));
    if race.shown.is_empty() {
        text += &format!("\n{}\n{}", table(&race.rows), explained(&race.rows));
    }
    for Shown { name, says, sheet } in &race.shown {
        text += &format!("\n{}\n{}", pairs([(*name, (*says).to_owned())]), table(sheet));
    }
    text + &race.shown.first().map(|shown| format!("\n{}", explained(&shown.sheet))).unwrap_or_default()
}

fn table(sheet: &Sheet) -> String {
    let head = sheet.columns.iter().map(|column| column.head.clone()).collect();
    Table::of(head, sheet.rows.iter().map(|row| row.iter().map(words).collect())).render()
}

fn explained(sheet: &Sheet) -> String {
    let mut columns: Vec<&Column> = Vec::new();
    for column in sheet.columns.iter().filter(|column| !column.says.is_empty()) {
        if !columns.iter().any(|known| (&known.head, known.says) == (&column.head, column.says)) {
            columns.push(column);
        }
    }
    pairs(columns.iter().map(|column| (column.head.as_str(), column.says.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_hold_is_exit_code_1() {
        let (parameters, rows, shown) = (Vec::new(), Sheet::default(), Vec::new());
        let mut race =
            race::Race { study: "election", parameters, rows, shown, broken: Vec::new(), plot: None };
        assert_eq!(verdict(&race), Verdict::Holds);
        race.broken.push("the mean exceeds its bound".to_owned());
        assert_eq!(verdict(&race), Verdict::Broken, "which is exit code 1");
    }
}
