//! The part that all protocols' faces have in common: run, sweep, shrink, replay, report.

use super::{About, Error, Replay, Report, Seeds, Small, Trial};
use crate::play;
use crate::property::Violation;
use crate::random;
use crate::record::Record;
use crate::script::{self, Expect, Line, Script};
use crate::shrink::shrink;
use crate::simulate::{Fault, Performed, perform, simulate};
use crate::stage::{Command, Outcome, Watch};
use crate::subject::{Subject, company};
use crate::sweep::{Range, Swept, sweep};
use crate::world::{Action, Dial};

/// The most replays that a shrink may take.
const MOST_REPLAYS: u64 = 20_000;

/// A protocol, or a mutant of it, ready to be tried.
pub(super) struct Bench<S> {
    pub(super) about: About,
    pub(super) subject: S,
    /// The flaw in it, if it is a mutant.
    pub(super) wrong: Option<&'static str>,
}

impl<S: Subject> Bench<S> {
    fn watch<'t>(&self, trial: &'t Trial) -> Result<Watch<'t>, Error> {
        let only = trial.property.as_deref();
        let known = || self.subject.properties().iter().map(|property| property.name);
        if let Some(name) = only.filter(|name| !known().any(|known| known == *name)) {
            return Err(Error::unknown("property", name, known()));
        }
        // Where the assumption itself is broken, one violation is no news: see all that follow.
        let go_on = trial.setup.faults.has(Fault::ClockBeyondRho) && only.is_none();
        let unowed = trial.setup.world.is_some_and(|world| !world.of.contains(&self.about.name));
        Ok(Watch { properties: true, record: false, only, go_on, unowed })
    }

    pub(super) fn sweep(
        &self,
        trial: &Trial,
        seeds: Seeds,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Swept, Error>
    where
        S: Sync,
    {
        let Seeds { first, count, stop_at_first, threads } = seeds;
        let range = Range { first, seeds: count, stop_at_first, threads, watch: self.watch(trial)? };
        Ok(sweep(&self.subject, &trial.setup, range, progress)?)
    }

    pub(super) fn exercise(
        &self,
        trial: &Trial,
        first: u64,
        seeds: u64,
        properties: bool,
    ) -> Result<u64, Error> {
        let watch = Watch { properties, ..Watch::default() };
        let mut events = 0;
        for seed in random::seeds(first, seeds) {
            events += simulate(&self.subject, &trial.setup, seed, watch)?.outcome.events;
        }
        Ok(events)
    }

    pub(super) fn run(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        let watch = Watch { record: true, ..self.watch(trial)? };
        let simulated = simulate(&self.subject, &trial.setup, seed, watch)?;
        let script = simulated.script.ok_or_else(|| Error::new("nothing was recorded"))?;
        let script = self.named(script, trial.mutant.clone());
        Ok(self.report(simulated.outcome, &script))
    }

    pub(super) fn unrecorded(&self, trial: &Trial, seed: u64) -> Result<Report, Error> {
        let watch = self.watch(trial)?;
        let simulated = simulate(&self.subject, &trial.setup, seed, watch)?;
        let outcome = simulated.outcome;
        // A script without lines: what the run was made of, and nothing of what happened.
        let script = Script {
            remarks: Vec::new(),
            protocol: self.about.name.to_owned(),
            mutant: trial.mutant.clone(),
            seed: Some(seed),
            members: trial.setup.nodes,
            quorums: trial.setup.quorums.clone(),
            constants: simulated.cast.constants,
            clocks: simulated.cast.clocks,
            only: watch.only.map(str::to_owned),
            expect: Expect::Holds,
            heals: None,
            ends: outcome.time,
            lines: Vec::new(),
        };
        Ok(self.report(outcome, &script))
    }

    pub(super) fn shrink(&self, trial: &Trial, seed: u64, property: &str) -> Result<Small, Error> {
        if self.subject.properties().iter().any(|known| known.name == property && S::rests_on_network(known))
        {
            return Err(Error::new(format!(
                "{property} rests on what the network grants, and is not made small: see the whole run"
            )));
        }
        let watch = Watch { properties: true, record: true, only: Some(property), ..Watch::default() };
        let whole = simulate(&self.subject, &trial.setup, seed, watch)?;
        let script = whole.script.ok_or_else(|| Error::new("nothing was recorded"))?;
        let before = script.lines.len();
        let shrunk = shrink(&self.subject, script, property, MOST_REPLAYS);
        // Once more, for the words: what came of each line that is left.
        let again = script::replay(&self.subject, &shrunk.script, watch)?;
        let violation =
            again.outcome.violation.ok_or_else(|| Error::new("the small script breaks nothing"))?;
        let mut script = self.named(shrunk.script, trial.mutant.clone());
        script.lines = again.outcome.record.map(|record| record.lines).unwrap_or_default();
        script.expect = Expect::Broken(violation.property.to_owned());
        script.only = None;
        let assumption = self.broken_assumption(&script);
        script.remarks = self.remarks(&violation.text, assumption.as_deref());
        Ok(Small {
            seed,
            violation,
            lines: (script.lines.len(), before),
            script: script.write::<S>(),
            replays: shrunk.replays,
            assumption,
        })
    }

    pub(super) fn replay(&self, text: &str, mutant: Option<&str>, instead: bool) -> Result<Replay, Error> {
        if play::is_play(text) {
            return self.play(text, mutant, instead);
        }
        let mut script = script::parse(&self.subject, text).map_err(|error| Error::new(error.to_string()))?;
        let watch = Watch {
            properties: true,
            record: true,
            only: only(&script.expect, script.only.as_deref(), instead),
            ..Watch::default()
        };
        let replayed = script::replay(&self.subject, &script, watch)?;
        let skipped = replayed.skipped.iter().filter(|line| **line < replayed.used).count();
        if let (Some(line), false) = (replayed.skipped.first().map(|i| &script.lines[*i]), instead) {
            let words = line.words::<S>();
            let at = line.at;
            return Err(Error::new(format!(
                "the trace does not fit: at {at} '{words}' could not be carried out"
            )));
        }
        let violation = replayed.outcome.violation.as_ref();
        let (expected, as_expected) = verdict(&script.expect, violation, instead);
        let came = came(violation);
        script.mutant = mutant.map(str::to_owned);
        let mut outcome = replayed.outcome;
        script.lines =
            outcome.record.as_mut().map(|record| std::mem::take(&mut record.lines)).unwrap_or_default();
        Ok(Replay { report: self.report(outcome, &script), expected, as_expected, came, skipped })
    }

    fn play(&self, text: &str, mutant: Option<&str>, instead: bool) -> Result<Replay, Error> {
        let play = play::parse(&self.subject, text).map_err(|error| Error::new(error.to_string()))?;
        let only = only(&play.expect, None, instead);
        let watch = Watch { properties: true, record: true, only, ..Watch::default() };
        let Performed { outcome, script, beliefs } = perform(&self.subject, &play, watch)?;
        let (mut expected, mut as_expected) = verdict(&play.expect, outcome.violation.as_ref(), instead);
        let mut came = came(outcome.violation.as_ref());
        let unseen = play.checks.iter().find_map(|check| {
            let failure = check.failure(&beliefs, &outcome.counts)?;
            Some((check.words.clone(), failure))
        });
        if let (Some((words, failure)), true, false) = (unseen, as_expected, instead) {
            (expected, as_expected, came) = (Some(words), false, failure);
        }
        let script = Script { mutant: mutant.map(str::to_owned), ..script };
        Ok(Replay { report: self.report(outcome, &script), expected, as_expected, came, skipped: 0 })
    }

    fn named<C>(&self, script: Script<C>, mutant: Option<String>) -> Script<C> {
        Script { protocol: self.about.name.to_owned(), mutant, ..script }
    }

    fn report(&self, outcome: Outcome<Command<S>>, script: &Script<Command<S>>) -> Report {
        let assumption = self.broken_assumption(script);
        let recorded = outcome.record.is_some();
        let mut picture = outcome.record.map(|Record { picture, .. }| picture).unwrap_or_default();
        picture.title = self.title(script);
        picture.broken = outcome.violation.is_some();
        picture.verdict = match (&outcome.violation, &script.only) {
            (Some(violation), _) => format!("{} is broken: {}", violation.property, violation.text),
            (None, Some(only)) => format!("{only} holds; others were not looked at"),
            (None, None) => "every property holds".to_owned(),
        };
        Report {
            protocol: self.about.name,
            mutant: script.mutant.clone(),
            nodes: script.members,
            hosts: script.clocks.len(),
            quorums: script.quorums.clone(),
            seed: script.seed,
            constants: script.constants.to_string(),
            violation: outcome.violation,
            assumption,
            properties: outcome.properties,
            leader: outcome.leader,
            tenures: outcome.tenures,
            calm: outcome.calm,
            messages: outcome.messages,
            counts: outcome.counts,
            time: outcome.time,
            events: outcome.events,
            title: self.title(script),
            picture,
            trace: if recorded { script.write::<S>() } else { String::new() },
        }
    }

    /// How clocks broke what is assumed of them: by their rates, or by being set.
    fn broken_assumption(&self, script: &Script<Command<S>>) -> Option<String> {
        let rates = self.subject.assumption(&script.constants).broken_by(&script.clocks);
        let is_set = |line: &&Line<_>| matches!(line.action, Action::Step { dial: Dial::Clock, .. });
        let set =
            script.lines.iter().filter(is_set).map(|line| format!("{} at {}", line.words::<S>(), line.at));
        let broken: Vec<String> = rates.into_iter().chain(set).collect();
        (!broken.is_empty()).then(|| broken.join(", "))
    }

    fn remarks(&self, violation: &str, assumption: Option<&str>) -> Vec<String> {
        let mut remarks = Vec::new();
        remarks.extend(self.wrong.map(|wrong| format!("Mistake: {wrong}.")));
        remarks.extend(assumption.map(|what| format!("The assumption is broken, not the protocol: {what}.")));
        remarks.push(format!("Seen: {violation}."));
        remarks
    }

    fn title<C>(&self, script: &Script<C>) -> String {
        let mutant = script.mutant.as_ref().map(|name| format!(", mutant {name}")).unwrap_or_default();
        let seed = script.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
        let who = company(&S::roles(&script.constants, script.members).unwrap_or_default());
        format!("{}{mutant}, {who}{seed}", self.about.name)
    }
}

/// The property that a file is about: others may break on the way.
fn only<'a>(expect: &'a Expect, only: Option<&'a str>, instead: bool) -> Option<&'a str> {
    match expect {
        Expect::Broken(property) if !instead => Some(property),
        _ => only,
    }
}

/// The outcome that a file expects, if it is repeated as it stands, and whether that came.
fn verdict(expect: &Expect, violation: Option<&Violation>, instead: bool) -> (Option<String>, bool) {
    match expect {
        _ if instead => (None, true),
        Expect::Holds => (Some("holds".to_owned()), violation.is_none()),
        Expect::Broken(property) => {
            let same = violation.is_some_and(|violation| violation.property == property);
            (Some(format!("broken {property}")), same)
        }
    }
}

fn came(violation: Option<&Violation>) -> String {
    match violation {
        None => "every property holds".to_owned(),
        Some(violation) => format!("{} is broken at {}", violation.property, violation.at),
    }
}
