//! `tenure members force-remove`: the operator's word in the place of votes that nobody can give
//! any more.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;

use super::change::{Waiting, change};
use crate::api;
use crate::api::members::ForceRemoveOrder;
use crate::arguments::Common;
use crate::client;
use crate::failure::{Failure, messages};
use crate::output::{self, Answer};

/// For a lost quorum: go on without members that are powered off forever.
#[derive(Args, Debug)]
#[command(
    after_help = "Only where so many members are lost that the others are no quorum; else use `members remove`.
All members that are not named must run and answer. They stop granting, wait until every lease
of before is over, and go on as a smaller cluster.

The risk: nothing but your word keeps two leaders apart then.
  - If a member that you name runs on, or is started again with its store, it may elect leaders
    of its own together with others that you name. Cut its power, or delete its store, first.
  - If those who are gone had added members that nobody who is left has heard of, the same holds
    for these.
  - If those who are gone had granted terms above all that the others know and above
    --term-floor, new tokens may be smaller than old ones, and fences refuse the new leader
    until terms have caught up. The default is far above any usual cluster's.

Examples:
  tenure members force-remove --powered-off n2 n3
  tenure members force-remove --powered-off n2 n3 --yes -o json

Exit codes: 0 done, 2 refused or error, 69 nobody answers, or not in time"
)]
pub(super) struct ForceRemove {
    /// Those who are powered off and will never run again with their stores
    #[arg(long, value_name = "NAME", num_args = 1.., required = true)]
    powered_off: Vec<String>,
    /// Terms go on above this [default: the seconds since 2024, or the largest term that is known,
    /// and 65536 more]
    #[arg(long, value_name = "N")]
    term_floor: Option<u64>,
    /// Do not ask back
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    waiting: Waiting,
}

impl ForceRemove {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        if !self.yes {
            self.confirm(common)?;
        }
        let order = ForceRemoveOrder { powered_off: self.powered_off, term_floor: self.term_floor };
        change("force-remove", &order, &self.waiting, common)
    }

    /// Says what will happen, and waits for the word itself.
    fn confirm(&self, common: &Common) -> Result<(), Failure> {
        require_terminal("force-remove", "the named members are powered off and never run again")?;
        let client = self.waiting.asking.client(common)?;
        let now: api::Members = client::block_on(client.get("/v1/members"))??;
        let gone = |name: &String| self.powered_off.contains(name);
        let left: Vec<String> =
            now.members.iter().map(|member| member.name.clone()).filter(|name| !gone(name)).collect();
        let question = format!(
            "Gone: {}. Left as the whole cluster: {}.\n\
             If one of the first runs on or is started again with its store, two may lead at once, and no wait and no vote prevents it.\n\
             Write 'powered off' if they are: ",
            self.powered_off.join(", "),
            output::in_line(&left.join(", "))
        );
        ask_back(&question, "powered off")
    }
}

/// Refuses to ask back where nobody can answer.
pub(super) fn require_terminal(command: &str, meaning: &str) -> Result<(), Failure> {
    let both = io::stdin().is_terminal() && io::stderr().is_terminal();
    if both { Ok(()) } else { Err(messages::no_terminal(command, meaning)) }
}

/// Asks on the terminal, and goes on only after this very answer.
pub(super) fn ask_back(question: &str, wanted: &str) -> Result<(), Failure> {
    let _ = write!(io::stderr(), "{question}");
    let mut word = String::new();
    io::stdin().lock().read_line(&mut word).map_err(messages::stdin_not_read)?;
    if word.trim() == wanted { Ok(()) } else { Err(messages::not_confirmed(wanted)) }
}
