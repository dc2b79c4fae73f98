//! `tenure status`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Show the cluster: nodes, epoch, groups.
#[derive(Args, Debug)]
pub(crate) struct Status {}

impl Status {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
