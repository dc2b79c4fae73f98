//! `tenure node`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Run one daemon.
#[derive(Args, Debug)]
pub(crate) struct Node {}

impl Node {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
