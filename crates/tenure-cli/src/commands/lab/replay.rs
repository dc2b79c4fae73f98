//! `tenure lab replay`: a trace or a scenario, once more.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tenure_lab::catalogue::{self, Experiment};
use tenure_lab::script;

use super::report::Told;
use super::run::Drawings;
use crate::failure::{Failure, messages};
use crate::files;
use crate::output::{Answer, Format, many, quoted};

/// Repeat a trace or a scenario, or perform a play, and judge it again.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure lab replay run.trace
  tenure lab replay nerio-drift-swap-rho-3.scenario --html run.html
  tenure lab replay nerio-drift-swap-rho-3.scenario --sound    the same, with every rule kept

A file is a list of all that happened (`tenure scenario 1`), or a play written by hand, in which
only what matters is said (`tenure play 1`). As it stands, it must come out as it says (`expect
...`). With --mutant or --sound it need not: lines that cannot be carried out then, such as the
delivery of a message that was never sent, are left out and counted.

Exit codes: 0 every property holds, 1 one is broken, 2 it cannot be read, does not fit, or comes
out differently.")]
pub(super) struct Replay {
    /// The trace, scenario or play
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Break this rule instead of the one that the file names
    #[arg(long, value_name = "M", conflicts_with = "sound")]
    mutant: Option<String>,
    /// Break no rule, whatever the file names
    #[arg(long)]
    sound: bool,
    #[command(flatten)]
    drawings: Drawings,
}

impl Replay {
    pub(super) fn run(self, format: Format) -> Result<Answer, Failure> {
        let (experiment, text) = open(&self.file)?;
        let instead = match &self.mutant {
            Some(mutant) => Some(Some(mutant.as_str())),
            None => self.sound.then_some(None),
        };
        let outputs = self.drawings.check(None)?;
        let replay = self::replay(experiment, &self.file, &text, instead)?;
        self.drawings.write(outputs, &replay.report, false)?;
        let told = Told { report: &replay.report, faults: None, scenario: None, command: self.command() };
        let json = || {
            let mut json = told.json();
            json["file"] = json!(self.file.display().to_string());
            json["expected"] = json!(replay.expected);
            json["as_expected"] = json!(replay.as_expected);
            json["skipped"] = json!(replay.skipped);
            json
        };
        let mut answer = Answer::new(format, json, || told.text());
        answer.verdict = told.verdict();
        if replay.skipped > 0 {
            let lines = many(replay.skipped as u64, "line", "lines");
            answer
                .notes
                .push(format!("note: {lines} of the file could not be carried out, and were left out"));
        }
        Ok(answer)
    }

    fn command(&self) -> String {
        let mut command = format!("tenure lab replay {}", quoted(&self.file.display().to_string()));
        if let Some(mutant) = &self.mutant {
            command += &format!(" --mutant {mutant}");
        }
        if self.sound {
            command += " --sound";
        }
        command
    }
}

/// Reads a script or a play and finds the protocol that it names.
pub(super) fn open(path: &Path) -> Result<(&'static dyn Experiment, String), Failure> {
    let text = files::read(path)?;
    let (protocol, _) =
        script::subject_of(&text).map_err(|flaw| messages::file_malformed(path.display(), flaw))?;
    let experiment =
        catalogue::find(&protocol).map_err(|flaw| messages::file_malformed(path.display(), flaw))?;
    Ok((experiment, text))
}

/// Repeats a script or performs a play. It is a failure if it does not come out as it says.
pub(super) fn replay(
    experiment: &dyn Experiment,
    path: &Path,
    text: &str,
    instead: Option<Option<&str>>,
) -> Result<catalogue::Replay, Failure> {
    let replay =
        experiment.replay(text, instead).map_err(|flaw| messages::file_malformed(path.display(), flaw))?;
    if replay.as_expected {
        return Ok(replay);
    }
    let expected = replay.expected.as_deref().unwrap_or("nothing");
    let came = &replay.came;
    Err(messages::lab_not_as_expected(path.display(), expected, came))
}
