//! The command `tenure`: leaders you can fence, and the laboratory that checks them.
//!
//! A command gives an [`Answer`](output::Answer): what goes to stdout, what goes to stderr, and a
//! verdict. Exit codes: 0 it holds, 1 the answer is no (nobody leads, a property is broken, a
//! mutant survives), 2 nothing was done, and one line says why; some failures have codes of their
//! own, see [`failure`].

mod api;
mod arguments;
mod client;
mod clock;
mod commands;
mod daemon;
mod failure;
mod files;
mod founding;
mod nearest;
mod output;
mod settings;
mod sockets;
mod tokens;
mod trust;

use std::process::ExitCode;

use failure::Failure;
use output::{Answer, Format, Verdict};

fn main() -> ExitCode {
    let (format, result) = run();
    match result {
        Ok(Verdict::Holds) => ExitCode::SUCCESS,
        Ok(Verdict::Broken) => ExitCode::from(1),
        Ok(Verdict::Code(code)) => ExitCode::from(code),
        Err(failure) => {
            output::note(&match format {
                Format::Table => failure.to_text(),
                Format::Json => failure.to_json().to_string(),
            });
            ExitCode::from(failure.code())
        }
    }
}

/// Does what was asked for, and says how its failure is to be printed.
fn run() -> (Format, Result<Verdict, Failure>) {
    match arguments::parse() {
        Ok(None) => (Format::Table, Ok(Verdict::Holds)), // It asked for help, and got it.
        Ok(Some(arguments)) => (arguments.common.output, arguments.run().and_then(Answer::print)),
        Err(failure) => (arguments::format_asked_for(), Err(failure)),
    }
}
