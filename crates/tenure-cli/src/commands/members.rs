//! `tenure members`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// List and change the members of the cluster.
#[derive(Args, Debug)]
pub(crate) struct Members {}

impl Members {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
