//! `tenure completions`: what a shell needs to complete the command line.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::{Arguments, Common};
use crate::failure::{Failure, messages};
use crate::output::Answer;

/// Print completions for a shell.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure completions bash > /usr/share/bash-completion/completions/tenure
  tenure completions zsh > /usr/share/zsh/vendor-completions/_tenure
  tenure completions fish > ~/.config/fish/completions/tenure.fish
  source <(tenure completions bash)     for this shell only

Exit codes: 0 printed, 2 there is no such shell.")]
pub(crate) struct Completions {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints them.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "tenure", &mut script);
        String::from_utf8(script).map(Answer::text).map_err(messages::script_not_text)
    }
}
