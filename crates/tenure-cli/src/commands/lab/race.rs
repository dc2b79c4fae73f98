//! `tenure lab race`: protocols and parts of them compared, in tables and plots.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use tenure_lab::catalogue::Error;
use tenure_lab::draw::plot;
use tenure_lab::race::{self, Cell, Column, Sheet, Shown, Study, blocking, detectors, election};

use super::options;
use crate::failure::Failure;
use crate::files::Outputs;
use crate::output::{Answer, Format, Progress, Table, Verdict, grouped, pairs};

/// Compare protocols, or parts of them, over many seeds. The same seeds print the same bytes.
#[derive(Args, Debug)]
#[command(after_help = "Studies:
  election   How long it takes until somebody leads, once no grantor is bound to anybody and everybody campaigns, against
             the bound W/(n+1) + 2v + (1/s-1)(W+4v), s = (1-v/W)^n, with v the longest one-way delay and W the window of
             starts: W = 2nv and W = nv. The machine that nodes run, no faults.
  detectors  How soon, and how wrongly, failure detectors suspect: detection time, mistake recurrence, mistake duration
             and query accuracy (Chen, Toueg, Aguilera) of fixed timeouts and of phi accrual, on five manners of link.
  blocking   How long a request that was late on its way blocks others: bounded drift (OQwBD) against bounded skew
             (OQwBS), over its delay. An asker asks for 1s and crashes; its request arrives after the delay and is granted.
             Blocked: from that arrival to the first instant at which another candidate that asks is granted. In vain: from
             the instant at which the asker gives up (its lease would have been over) to that same instant; 0 if nobody
             is blocked.

Examples:
  tenure lab race election
  tenure lab race election --nodes 3,7 --seeds 10000 --svg election.svg
  tenure lab race detectors --seeds 50 -o json
  tenure lab race blocking --svg blocking.svg

Exit codes: 0 what is promised holds, 1 it does not (a mean exceeds its bound, nobody is elected, a crash is missed), 2 error.")]
pub(super) struct Race {
    /// What to compare: election, detectors or blocking
    #[arg(value_name = "STUDY")]
    study: String,
    /// How many processes, each number in turn: 3,5,9 or --nodes 3 --nodes 5; for election [default: 3,5,9]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = nodes, allow_negative_numbers = true)]
    nodes: Vec<usize>,
    /// How many seeds a row; for election and detectors [default: 2000 and 200]
    #[arg(long, value_name = "K", value_parser = options::at_least_one, allow_negative_numbers = true)]
    seeds: Option<u64>,
    /// The first seed; for election and detectors [default: 0]
    #[arg(long, value_name = "S", value_parser = options::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Draw it as an image; for election and blocking
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Runs a study and tells how far it is.
type Runner<'a> = dyn Fn(&dyn Fn(u64)) -> Result<race::Race, Error> + 'a;

fn nodes(text: &str) -> Result<usize, String> {
    let nodes = text.parse().ok().filter(|nodes| (2..=64).contains(nodes));
    nodes.ok_or_else(|| "there must be 2 to 64 nodes".to_owned())
}

impl Race {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        let study = Study::find(&self.study)?;
        self.check(study)?;
        let outputs = Outputs::check(self.svg.iter())?;
        let race = self.race(study)?;
        outputs.write(race.plot.iter().map(plot::draw))?;
        let mut answer = Answer::new(format, || json(&race), || text(&race));
        answer.verdict = verdict(&race);
        Ok(answer)
    }

    /// A flag that would change nothing is a mistake.
    fn check(&self, study: Study) -> Result<(), Failure> {
        let idle = [
            ("--nodes", !self.nodes.is_empty(), &[Study::Election][..]),
            ("--seeds", self.seeds.is_some(), &[Study::Election, Study::Detectors]),
            ("--seed", self.seed.is_some(), &[Study::Election, Study::Detectors]),
            ("--svg", self.svg.is_some(), &[Study::Election, Study::Blocking]),
        ];
        let idle = idle.into_iter().find(|(_, given, of)| *given && !of.contains(&study));
        idle.map_or(Ok(()), |(flag, _, of)| {
            let names: Vec<&str> = of.iter().map(|study| study.name()).collect();
            let (name, of) = (study.name(), names.join(" and "));
            Err(Failure::new(format!(
                "{flag} means nothing to the study '{name}', only to {of}; leave it out"
            )))
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
                let options = detectors::Options { seeds: self.seeds.unwrap_or(200), first };
                raced(detectors::schedules(&options), &|progress| detectors::run(&options, progress))
            }
            Study::Blocking => raced(blocking::schedules(), &|progress| blocking::run(progress)),
        }?)
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
