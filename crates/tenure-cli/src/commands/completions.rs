//! `tenure completions`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Print completions for a shell.
#[derive(Args, Debug)]
pub(crate) struct Completions {}

impl Completions {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
