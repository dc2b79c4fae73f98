//! `tenure proclaim`.

use clap::Args;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Let the leader of a group say something to those who watch.
#[derive(Args, Debug)]
pub(crate) struct Proclaim {}

impl Proclaim {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        Err(Failure::new("this is not built yet"))
    }
}
