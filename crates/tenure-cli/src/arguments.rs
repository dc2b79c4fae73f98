//! The command line as a whole: what is common to all commands, and what a mistake looks like.

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::lab::Lab;
use crate::failure::Failure;
use crate::output::{Answer, Format};

/// Elects leaders you can fence
#[derive(Debug, Parser)]
#[command(
    name = "tenure",
    version,
    disable_help_subcommand = true,
    after_help = "Examples:
  tenure lab list                              what can be tried
  tenure lab run nerio-drift --html run.html   one election with faults, drawn
  tenure lab sweep nerio-drift --seeds 1000    a thousand of them, judged

Exit codes: 0 it holds, 1 the answer is no (a property is broken), 2 error."
)]
pub(crate) struct Arguments {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
    /// How to print: a table for people, or JSON for programs
    #[arg(short, long, global = true, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

/// What `tenure` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try protocols in the laboratory: run, sweep, replay, draw
    Lab(Lab),
}

impl Command {
    /// Does it.
    pub(crate) fn run(self, format: Format) -> Result<Answer, Failure> {
        match self {
            Self::Lab(lab) => lab.run(format),
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
            Err(Failure::new(one_line(&error.to_string(), &words)))
        }
    }
}

/// What clap says in a paragraph, in one line: the mistake, the tip, and where to read on.
fn one_line(paragraph: &str, words: &[String]) -> String {
    let mut said = String::new();
    for line in paragraph.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(tip) = line.strip_prefix("tip: ") {
            said += &format!("; {tip}");
        } else if !line.starts_with("Usage: ") && !line.starts_with("For more information") {
            let line = line.strip_prefix("error: ").unwrap_or(line);
            said += &format!("{}{line}", if said.is_empty() { "" } else { " " });
        }
    }
    format!("{said}; see {}", help_page(words))
}

/// The help of the innermost command that was named.
fn help_page(words: &[String]) -> String {
    let root = Arguments::command();
    let (mut command, mut page) = (&root, "tenure".to_owned());
    for word in words {
        if let Some(inner) = command.find_subcommand(word) {
            command = inner;
            page += &format!(" {word}");
        }
    }
    page + " --help"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_mistake_is_told_in_one_line_with_its_tip_and_the_page_to_read() {
        let said = |words: &[&str]| {
            let error = Arguments::try_parse_from(words).unwrap_err().to_string();
            one_line(&error, &words.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(
            said(&["tenure", "lab", "swep"]),
            "unrecognized subcommand 'swep'; a similar subcommand exists: 'sweep'; see tenure lab --help"
        );
        assert_eq!(
            said(&["tenure", "lab", "sweep", "nerio-drift"]),
            "the following required arguments were not provided: --seeds <K>; see tenure lab sweep --help"
        );
        assert_eq!(
            said(&["tenure", "lab", "run", "nerio-drift", "--seed", "-1"]),
            "invalid value '-1' for '--seed <S>': write a whole number from 0; see tenure lab run --help"
        );
    }
}
