//! `tenure sentinel`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Ends the command of a runner that died (started by `tenure run`).
#[derive(Args, Debug)]
pub(crate) struct Sentinel {}

impl Sentinel {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
