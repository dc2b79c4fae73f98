//! `tenure config`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Check a configuration, or show what it amounts to.
#[derive(Args, Debug)]
pub(crate) struct Config {}

impl Config {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
