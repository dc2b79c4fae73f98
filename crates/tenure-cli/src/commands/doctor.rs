//! `tenure doctor`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Look for what is wrong with this machine and its cluster, and say what to do.
#[derive(Args, Debug)]
pub(crate) struct Doctor {}

impl Doctor {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
