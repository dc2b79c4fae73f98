//! `tenure lab check`: every reachable state of a small scope.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tenure_lab::catalogue;
use tenure_lab::explore::{
    Bounds, Budget, Checked, Clocks, Counterexample, Ended, Progress, Wanted, Witness,
};

use super::options;
use crate::failure::Failure;
use crate::files::Outputs;
use crate::output::{self, Answer, Format, Table, Verdict, grouped, many, pairs, quoted};

/// Walk every reachable state of the shipped machine, in a small scope: a few processes, requests
/// and faults. The shortest way to a broken property is printed, and saved as a scenario.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab check nerio-drift                                  the smallest scope
  tenure lab check nerio-drift --scope two                      two acquisitions
  tenure lab check nerio-drift --scope two --cuts 1             and a kill between two effects
  tenure lab check nerio-drift --scope two --mutant aborted-ok  a rule broken on purpose
  tenure lab check nerio-drift --scope release --seconds 600 --memory 8 -o json

Scopes of nerio-drift, the smallest first: one, renewal, ticks, two, release, two-free, restart,
cut, reboot. A walk that met every state says 'exhausted'; then the verdict is about all runs of
the scope. A walk that never saw what its scope is there for has failed, whatever it met.

Only nerio-drift has scopes. Not walked yet: other protocols, clocks with bounded skew, changes of
the members, hand-over, verification, candidates that are members.

Exit codes: 0 exhausted and every property holds, 1 one is broken or something that must be seen
was not, 2 error, 3 a bound was reached and nothing is broken so far.")]
pub(super) struct Check {
    /// The protocol
    #[arg(value_name = "NAME")]
    name: String,
    /// The scope [default: the smallest]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// The rates of clocks in each step: free (each slow or fast) or worst (members fast, others
    /// slow: fewer states, and less is seen) [default: the scope's]
    #[arg(long, value_name = "RATES", value_parser = rates)]
    clocks: Option<Clocks>,
    /// How many requests of processes that do not lead [default: the scope's, as for all of these]
    #[arg(long, value_name = "N")]
    acquisitions: Option<u8>,
    /// How many requests of leaders
    #[arg(long, value_name = "N")]
    renewals: Option<u8>,
    /// How many leaderships or requests are given up
    #[arg(long, value_name = "N")]
    releases: Option<u8>,
    /// How many restarts within one boot
    #[arg(long, value_name = "N")]
    restarts: Option<u8>,
    /// How many reboots
    #[arg(long, value_name = "N")]
    reboots: Option<u8>,
    /// How many kills between two effects of a step
    #[arg(long, value_name = "N")]
    cuts: Option<u8>,
    /// How many messages are delivered twice
    #[arg(long, value_name = "N")]
    duplicates: Option<u8>,
    /// Break one rule on purpose; `tenure lab list NAME` knows which
    #[arg(long, value_name = "M")]
    mutant: Option<String>,
    /// Stop at so many states
    #[arg(long, value_name = "N", value_parser = options::at_least_one, allow_negative_numbers = true)]
    states: Option<u64>,
    /// Stop after so many seconds
    #[arg(long, value_name = "N", value_parser = options::at_least_one, allow_negative_numbers = true)]
    seconds: Option<u64>,
    /// Stop when the states take so many GiB
    #[arg(long, value_name = "GIB", value_parser = options::at_least_one, allow_negative_numbers = true)]
    memory: Option<u64>,
    /// Compare machines that look alike, by every input: slower, and it must find nothing
    #[arg(long)]
    test_views: bool,
    /// The folder in which a way to a broken property is saved, as NAME[-MUTANT]-SCOPE.scenario
    #[arg(long, value_name = "DIR", default_value = ".")]
    save: PathBuf,
}

fn rates(text: &str) -> Result<Clocks, String> {
    match text {
        "free" => Ok(Clocks::Free),
        "worst" => Ok(Clocks::Worst),
        _ => Err("write free or worst".to_owned()),
    }
}

/// A walk that is over, and where its way to a broken property is saved.
struct Walked<'a> {
    check: &'a Check,
    checked: Checked,
    saved: Option<PathBuf>,
}

impl Check {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        let experiment = catalogue::find(&self.name)?;
        Outputs::check([&self.path("scope")])?;
        let mut teller = Teller::default();
        let mutant = self.mutant.as_deref();
        let checked = experiment.check(mutant, &self.wanted(), &mut |progress| teller.tell(progress))?;
        let saved = self.save(&checked)?;
        let walked = Walked { check: &self, checked, saved };
        let answer = Answer::new(format, || walked.json(), || walked.text());
        Ok(Answer { notes: walked.notes(), verdict: walked.verdict(), ..answer })
    }

    fn wanted(&self) -> Wanted {
        let budgets = [
            (Budget::Acquisitions, self.acquisitions),
            (Budget::Renewals, self.renewals),
            (Budget::Releases, self.releases),
            (Budget::Restarts, self.restarts),
            (Budget::Reboots, self.reboots),
            (Budget::Cuts, self.cuts),
            (Budget::Duplicates, self.duplicates),
        ];
        let memory = self.memory.map(|gibibytes| gibibytes.saturating_mul(1 << 30));
        let time = self.seconds.map(Duration::from_secs);
        Wanted {
            scope: self.scope.clone(),
            clocks: self.clocks,
            budgets: budgets.into_iter().filter_map(|(budget, many)| Some((budget, many?))).collect(),
            tests_views: self.test_views,
            bounds: Bounds { states: self.states.unwrap_or(u64::MAX), time, memory },
        }
    }

    fn path(&self, scope: &str) -> PathBuf {
        let mutant = self.mutant.as_ref().map(|mutant| format!("-{mutant}")).unwrap_or_default();
        let file = format!("{}{mutant}-{scope}.scenario", self.name);
        if self.save == Path::new(".") { PathBuf::from(file) } else { self.save.join(file) }
    }

    /// Saves the way to what is broken, if the laboratory could carry it out.
    fn save(&self, checked: &Checked) -> Result<Option<PathBuf>, Failure> {
        let Some(Counterexample { trail: Ok(trail), .. }) = &checked.counterexample else { return Ok(None) };
        let path = self.path(checked.scope.name);
        Outputs::check([&path])?.write([trail.script.clone()])?;
        Ok(Some(path))
    }
}

/// Says now and then how far a walk has come, where somebody looks.
#[derive(Default)]
struct Teller {
    told: Duration,
}

impl Teller {
    fn tell(&mut self, progress: Progress) {
        if progress.time < self.told + Duration::from_secs(2) || !io::stderr().is_terminal() {
            return;
        }
        self.told = progress.time;
        let Progress { states, frontier, depth, .. } = progress;
        output::note(&format!(
            "depth {depth}: {} states, {} of them still to leave, {} states/s, {}",
            grouped(states),
            grouped(frontier),
            grouped(rate(&progress)),
            mebibytes(&progress),
        ));
    }
}

fn rate(progress: &Progress) -> u64 {
    let micros = u64::try_from(progress.time.as_micros()).unwrap_or(u64::MAX).max(1);
    progress.states.saturating_mul(1_000_000) / micros
}

fn mebibytes(progress: &Progress) -> String {
    format!("{} MiB", grouped(progress.memory.div_ceil(1 << 20)))
}

fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::Exhausted => "exhausted",
        Ended::Broken => "not exhausted: a property is broken",
        Ended::States => "not exhausted: as many states as were allowed",
        Ended::Time => "not exhausted: as long as was allowed",
        Ended::Memory => "not exhausted: as much memory as was allowed",
    }
}

impl Walked<'_> {
    fn verdict(&self) -> Verdict {
        use tenure_lab::explore::Verdict::{Bounded, Broken, Holds, Unexercised};
        match self.checked.verdict {
            Holds => Verdict::Holds,
            Broken | Unexercised => Verdict::Broken,
            Bounded => Verdict::Code(3),
        }
    }

    fn complete(&self) -> bool {
        self.checked.found.ended == Ended::Exhausted
    }

    fn missing(&self) -> Vec<&'static str> {
        let unseen = self.checked.witnesses.iter().filter(|(_, seen, must)| *must && !seen);
        unseen.map(|(Witness { name, .. }, ..)| *name).collect()
    }

    fn notes(&self) -> Vec<String> {
        let missing = self.missing();
        let mut notes = Vec::new();
        if self.complete() && !missing.is_empty() {
            notes.push(format!("{} must be seen in this scope, and never was", missing.join(", ")));
        }
        match self.checked.counterexample.as_ref().map(|found| &found.trail) {
            Some(Err(why)) => notes.push(format!("warning: no scenario is saved: {why}")),
            Some(Ok(trail)) if trail.confirmed.is_none() => {
                notes.push("note: the laboratory's judge does not see it in the saved scenario".to_owned());
            }
            _ => {}
        }
        notes
    }

    fn json(&self) -> Value {
        let Checked { scope, clocks, budget, found, verdict, witnesses, sizes, .. } = &self.checked;
        let [local_states, messages, local_steps, views_compared] = sizes;
        let budgets: serde_json::Map<String, Value> =
            budget.iter().map(|(budget, many)| (budget.name().to_owned(), json!(many))).collect();
        let witness = |(witness, seen, must): &(Witness, bool, bool)| json!({ "name": witness.name, "says": witness.says, "seen": seen, "required": must });
        json!({
            "protocol": self.check.name,
            "mutant": self.check.mutant,
            "scope": scope.name,
            "clocks": clocks.name(),
            "budgets": budgets,
            "verdict": verdict.name(),
            "complete": self.complete(),
            "ended": ended(found.ended),
            "states": found.progress.states,
            "depth": found.progress.depth,
            "steps": found.steps,
            "seconds": found.progress.time.as_secs_f64(),
            "states_per_second": rate(&found.progress),
            "memory_bytes": found.progress.memory,
            "local_states": local_states,
            "messages": messages,
            "local_steps": local_steps,
            "views_compared": views_compared,
            "witnesses": witnesses.iter().map(witness).collect::<Vec<_>>(),
            "violation": self.checked.counterexample.as_ref().map(violation_json),
            "scenario": self.saved.as_ref().map(|path| path.display().to_string()),
        })
    }

    fn text(&self) -> String {
        let Checked { scope, clocks, found, .. } = &self.checked;
        let mutant = self.check.mutant.as_ref().map(|m| format!(", mutant {m}")).unwrap_or_default();
        let title = format!("{}{mutant}, scope {}", self.check.name, scope.name);
        let progress = &found.progress;
        let facts = [
            ("scope", format!("{}; clocks {}", scope.says, clocks.name())),
            ("walk", ended(found.ended).to_owned()),
            ("states", format!("{}, {} a second", grouped(progress.states), grouped(rate(progress)))),
            ("depth", progress.depth.to_string()),
            ("steps", grouped(found.steps)),
            ("memory", mebibytes(progress)),
        ];
        let mut text = format!("{title}: {}\n{}", self.checked.verdict.name(), pairs(facts));
        text += &self.counterexample_text();
        format!("{text}\n{}", self.witnesses_text())
    }

    fn counterexample_text(&self) -> String {
        let Some(found) = &self.checked.counterexample else { return String::new() };
        let mut facts = vec![
            ("broken", found.broken.property.to_owned()),
            ("because", found.broken.text.clone()),
            ("after", many(found.length as u64, "step", "steps")),
        ];
        if let Some(path) = &self.saved {
            let file = quoted(&path.display().to_string());
            facts.push(("saved", file.clone()));
            facts.push(("replay it", format!("tenure lab replay {file}")));
        }
        let steps = found.trail.as_ref().map(|trail| trail.steps.as_slice()).unwrap_or_default();
        let steps: String = steps.iter().map(|step| format!("  {step}\n")).collect();
        format!("\n{}\n{steps}", pairs(facts))
    }

    fn witnesses_text(&self) -> String {
        let mut table = Table::new(["SEEN", "MUST", "WHAT", "MEANS"]);
        for (witness, seen, must) in &self.checked.witnesses {
            let yes = |yes: bool| if yes { "yes" } else { "" }.to_owned();
            table.row([yes(*seen), yes(*must), witness.name.to_owned(), witness.says.to_owned()]);
        }
        table.render()
    }
}

fn violation_json(found: &Counterexample) -> Value {
    let confirmed = found.trail.as_ref().is_ok_and(|trail| trail.confirmed.is_some());
    json!({
        "property": found.broken.property,
        "text": found.broken.text,
        "length": found.length,
        "confirmed": confirmed,
        "steps": found.trail.as_ref().map(|trail| trail.steps.clone()).unwrap_or_default(),
    })
}
