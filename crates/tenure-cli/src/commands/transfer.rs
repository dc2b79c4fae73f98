//! `tenure transfer`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Ask the leader of a group to hand over.
#[derive(Args, Debug)]
pub(crate) struct Transfer {}

impl Transfer {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
