//! `tenure resign`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Ask the leader of a group to step down.
#[derive(Args, Debug)]
pub(crate) struct Resign {}

impl Resign {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
