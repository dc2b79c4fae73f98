//! `tenure verify`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Ask the leader itself, and say for how long it is certain.
#[derive(Args, Debug)]
pub(crate) struct Verify {}

impl Verify {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
