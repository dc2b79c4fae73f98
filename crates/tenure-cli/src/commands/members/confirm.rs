//! `tenure members confirm-term`: an operator's word that terms may be as high as that.

use clap::Args;

use super::change::{Waiting, change};
use crate::api::members::ConfirmTermOrder;
use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;

/// Confirm a term that lies far above all that a member knows.
#[derive(Args, Debug)]
#[command(
    after_help = "A member does not believe a term that is 2^24 above all that it has heard of: neither as a term
to grant, nor as the top of another member, nor as the floor of a new epoch. Its log says
event=term_doubted, and `tenure doctor` names it. Find out first who granted such a term.

It takes effect at the member that is asked: name the one that doubts with --endpoint. It cannot
be taken back while the members run, for terms never fall. Packed tokens end at 2147483647. If
it was wrong: tenure members repair-terms.

Examples:
  tenure members confirm-term 1099511627776 --endpoint http://10.0.0.2:7401

Exit codes: 0 done, 2 refused or error, 69 nobody answers, or not in time"
)]
pub(super) struct ConfirmTerm {
    /// The member believes terms up to this one
    #[arg(value_name = "TERM", value_parser = clap::value_parser!(u64).range(1..))]
    term: u64,
    #[command(flatten)]
    waiting: Waiting,
}

impl ConfirmTerm {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        change("confirm-term", &ConfirmTermOrder { term: self.term }, &self.waiting, common)
    }
}
