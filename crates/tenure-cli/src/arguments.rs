//! The command line as a whole: what is common to all commands, and what a mistake looks like.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::commands::calc::Calc;
use crate::commands::completions::Completions;
use crate::commands::config::Config;
use crate::commands::doctor::Doctor;
use crate::commands::edict::Edict;
use crate::commands::fence::Fence;
use crate::commands::init::Init;
use crate::commands::key::Key;
use crate::commands::lab::Lab;
use crate::commands::leader::Leader;
use crate::commands::man::Man;
use crate::commands::members::Members;
use crate::commands::node::Node;
use crate::commands::proclaim::Proclaim;
use crate::commands::resign::Resign;
use crate::commands::run::Run;
use crate::commands::sentinel::Sentinel;
use crate::commands::status::Status;
use crate::commands::token::Token;
use crate::commands::top::Top;
use crate::commands::transfer::Transfer;
use crate::commands::up::Up;
use crate::commands::verify::Verify;
use crate::failure::{Failure, messages};
use crate::output::{Answer, Format, quoted};
use crate::settings::Settings;

/// Elects leaders you can fence
#[derive(Debug, Parser)]
#[command(
    name = "tenure",
    version,
    disable_help_subcommand = true,
    after_help = "Examples:
  tenure up                                    a cluster on this machine
  tenure run -g jobs -- ./worker               the worker runs while this process leads
  tenure leader jobs --watch                   who leads, as it changes
  tenure status                                nodes, epoch, groups
  tenure lab run nerio-drift --html run.html   one election with faults, drawn

Exit codes: 0 yes, 1 the answer is no (nobody leads, a property is broken), 2 error, 69 nobody
answers, 77 not allowed, 78 the configuration must be changed first; `tenure run --help` has
those of run."
)]
pub(crate) struct Arguments {
    /// The command
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Flags of every command
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The flags of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// The configuration [default: .tenure/tenure.toml, then /etc/tenure/tenure.toml] [env:
    /// TENURE_CONFIG]
    #[arg(short, long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How to print: a table for people, or JSON for programs (errors too, on standard error)
    #[arg(short, long, global = true, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

impl Common {
    /// The settings that the file and the environment give.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        Settings::find(self.config.as_deref())
    }
}

/// The commands of `tenure`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole cluster on this machine: the place to start
    Up(Up),
    /// Run a command only while this process leads
    Run(Run),
    /// Say who leads a group (exit code 1: nobody)
    Leader(Leader),
    /// Show the cluster: nodes, epoch, groups
    Status(Status),
    /// Watch the cluster live
    Top(Top),
    /// Ask the leader itself, and say for how long it is certain
    Verify(Verify),
    /// Let the leader of a group say something to those who watch
    Proclaim(Proclaim),
    /// Ask the leader of a group to step down
    Resign(Resign),
    /// Ask the leader of a group to hand over
    Transfer(Transfer),
    /// List and change the members of the cluster
    Members(Members),
    /// Print a fresh token, in a command of `tenure run`
    Edict(Edict),
    /// Look at fences in files, and print the SQL of those in databases
    Fence(Fence),
    /// Run one daemon
    Node(Node),
    /// Found a cluster: make its key and every founding member's store
    Init(Init),
    /// Make and derive keys
    Key(Key),
    /// Make, list and revoke tokens for HTTP
    Token(Token),
    /// Check a configuration, or show what it amounts to
    Config(Config),
    /// Compute what a lease costs: failover, messages, silence after a restart
    Calc(Calc),
    /// Look for what is wrong with this machine and its cluster, and say what to do
    Doctor(Doctor),
    /// Print completions for a shell
    Completions(Completions),
    /// Write the manual pages
    Man(Man),
    /// Ends the command of a runner that died (started by `tenure run`)
    #[command(hide = true)]
    Sentinel(Sentinel),
    /// Try protocols in the laboratory: run, sweep, replay, draw
    Lab(Lab),
}

impl Arguments {
    /// Does what was asked for.
    pub(crate) fn run(self) -> Result<Answer, Failure> {
        let common = self.common;
        match self.command {
            Command::Up(up) => up.run(&common),
            Command::Run(run) => run.run(&common),
            Command::Leader(leader) => leader.run(&common),
            Command::Status(status) => status.run(&common),
            Command::Top(top) => top.run(&common),
            Command::Verify(verify) => verify.run(&common),
            Command::Proclaim(proclaim) => proclaim.run(&common),
            Command::Resign(resign) => resign.run(&common),
            Command::Transfer(transfer) => transfer.run(&common),
            Command::Members(members) => members.run(&common),
            Command::Edict(edict) => edict.run(&common),
            Command::Fence(fence) => fence.run(&common),
            Command::Node(node) => node.run(&common),
            Command::Init(init) => init.run(&common),
            Command::Key(key) => key.run(&common),
            Command::Token(token) => token.run(&common),
            Command::Config(config) => config.run(&common),
            Command::Calc(calc) => calc.run(&common),
            Command::Doctor(doctor) => doctor.run(&common),
            Command::Completions(completions) => completions.run(&common),
            Command::Man(man) => man.run(&common),
            Command::Sentinel(sentinel) => sentinel.run(&common),
            Command::Lab(lab) => lab.run(common.output),
        }
    }
}

/// Reads the command line; `None` if it asked for help or the version, which is printed then.
pub(crate) fn parse() -> Result<Option<Arguments>, Failure> {
    let error = match Arguments::try_parse() {
        Ok(arguments) => return Ok(Some(arguments)),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print(); // A reader that has gone away wants no more help.
            Ok(None)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Answer::text(error.to_string()).print()?;
            Ok(None)
        }
        _ => {
            let words: Vec<String> =
                std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
            Err(mistake(&error, &words))
        }
    }
}

/// How to print, for a command line that makes no sense as a whole.
pub(crate) fn format_asked_for() -> Format {
    let words: Vec<_> = std::env::args_os().collect();
    let is_json = |at: usize| words.get(at).is_some_and(|word| word == "json");
    let asks = |(at, word): (usize, &std::ffi::OsString)| match word.to_str() {
        Some("-o" | "--output") => is_json(at + 1),
        Some(word) => matches!(word, "-ojson" | "-o=json" | "--output=json"),
        None => false,
    };
    if words.iter().enumerate().any(asks) { Format::Json } else { Format::Table }
}

/// The mistake in a command line, by clap's paragraph, with its tip.
fn mistake(error: &clap::Error, words: &[String]) -> Failure {
    let (mut said, mut tip) = (String::new(), String::new());
    for line in error.to_string().lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(line) = line.strip_prefix("tip: ") {
            tip += &format!("; {line}");
        } else if !line.starts_with("Usage: ") && !line.starts_with("For more information") {
            let line = line.strip_prefix("error: ").unwrap_or(line);
            said += &format!("{}{line}", if said.is_empty() { "" } else { " " });
        }
    }
    let command = innermost(words);
    match error.kind() {
        ErrorKind::UnknownArgument if command == "tenure run" => {
            without_dashes(error, words).unwrap_or_else(|| messages::usage_unknown(said, command, tip))
        }
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            messages::usage_unknown(said, command, tip)
        }
        ErrorKind::MissingRequiredArgument | ErrorKind::MissingSubcommand => {
            messages::usage_missing(said, command)
        }
        _ => messages::usage_refused(said, command, tip),
    }
}

/// A command for `tenure run` that was written without the two dashes before it.
fn without_dashes(error: &clap::Error, words: &[String]) -> Option<Failure> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let at = words.iter().position(|other| other == word).filter(|_| !word.starts_with('-'))?;
    let line = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let line = format!("`tenure {} -- {}`", line(words.get(1..at)?), line(&words[at..]));
    Some(messages::run_without_dashes(word, line))
}

/// The innermost command that was named.
fn innermost(words: &[String]) -> String {
    let root = Arguments::command();
    let (mut command, mut page) = (&root, "tenure".to_owned());
    for word in words {
        if let Some(inner) = command.find_subcommand(word) {
            command = inner;
            page += &format!(" {word}");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_line_of_a_help_text_is_broken_by_the_width_of_the_page() {
        fn check(command: &clap::Command) {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in after.lines() {
                assert!(line.chars().count() <= 98, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Arguments::command());
    }

    #[test]
    fn a_mistake_is_told_in_one_line_with_its_tip_and_the_page_to_read() {
        let said = |words: &[&str]| {
            let error = Arguments::try_parse_from(words).unwrap_err();
            mistake(&error, &words.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string()
        };
        assert_eq!(
            said(&["tenure", "lab", "swep"]),
            "unrecognized subcommand 'swep': `tenure lab` knows no such word; a similar subcommand exists: 'sweep'; see tenure lab --help"
        );
        assert_eq!(
            said(&["tenure", "lab", "sweep", "nerio-drift"]),
            "something is missing on the command line: the following required arguments were not provided: --seeds <K>; see tenure lab sweep --help"
        );
        assert_eq!(
            said(&["tenure", "lab", "run", "nerio-drift", "--seed", "-1"]),
            "the command line makes no sense: invalid value '-1' for '--seed <S>': write a whole number from 0; see tenure lab run --help"
        );
        assert_eq!(
            said(&["tenure", "run", "-g", "jobs", "sh", "-c", "echo it's"]),
            "'sh' is no flag of tenure run: the command that is to run comes after two dashes, so that its own \
             flags are not taken for ours; write `tenure run -g jobs -- sh -c 'echo it'\\''s'`"
        );
    }
}
