//! `tenure init`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Found a cluster: make its key and every founding member's store.
#[derive(Args, Debug)]
pub(crate) struct Init {}

impl Init {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
