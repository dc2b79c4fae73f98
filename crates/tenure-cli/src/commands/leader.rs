//! `tenure leader`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Say who leads a group (exit code 1: nobody).
#[derive(Args, Debug)]
pub(crate) struct Leader {}

impl Leader {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
