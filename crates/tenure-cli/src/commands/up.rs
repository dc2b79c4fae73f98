//! `tenure up`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Run a whole cluster on this machine: the place to start.
#[derive(Args, Debug)]
pub(crate) struct Up {}

impl Up {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
