//! `tenure calc`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Compute what a lease costs: fail-over, messages, silence after a restart.
#[derive(Args, Debug)]
pub(crate) struct Calc {}

impl Calc {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
