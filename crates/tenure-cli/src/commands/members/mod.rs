//! `tenure members`: who grants, and how that changes.

mod change;
mod confirm;
mod force;
mod lineage;
mod list;
mod repair;

use clap::{Args, Subcommand};

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Answer;
use change::{Add, Remove, Replace, Set};
use confirm::ConfirmTerm;
use force::ForceRemove;
use lineage::AcceptLineage;
use list::List;
use repair::RepairTerms;

/// List and change the members of the cluster.
#[derive(Args, Debug)]
#[command(
    after_help = "Any member can be asked. Every group goes on being led while members change. A change that is
interrupted is finished by the members, or can be asked for again; `members list` shows whether
one is under way.

Examples:
  tenure members list
  tenure members add n4 10.0.0.4:7400            n4 runs already: tenure node -c FILE --join
  tenure members remove n2
  tenure members replace n2 n4 10.0.0.4:7400     after a lost disk
  tenure members set --drift-ppm 1000 --longest-lease 3s
  tenure members force-remove --powered-off n2 n3
  tenure members confirm-term 1099511627776
  tenure members repair-terms report -c FILE > n1.report

Exit codes: 0 done, 2 refused or error, 69 nobody answers, 77 not allowed, 78 the configuration
must be changed first"
)]
pub(crate) struct Members {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show members, epoch, quorums and bounds
    List(List),
    /// Add a member that runs already
    Add(Add),
    /// Remove a member
    Remove(Remove),
    /// Put a new member in the place of another: after a lost disk, say
    Replace(Replace),
    /// Change the bounds on clocks and leases, or the quorums
    Set(Set),
    /// For a lost quorum: go on without members that are powered off forever
    ForceRemove(ForceRemove),
    /// After a split brain: let a member go on, when the other cluster was ended
    AcceptLineage(AcceptLineage),
    /// Confirm a term that lies far above all that a member knows
    ConfirmTerm(ConfirmTerm),
    /// Repair terms that are absurd already, while all members are stopped
    RepairTerms(RepairTerms),
}

impl Members {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        match self.command {
            Command::List(list) => list.run(common),
            Command::Add(add) => add.run(common),
            Command::Remove(remove) => remove.run(common),
            Command::Replace(replace) => replace.run(common),
            Command::Set(set) => set.run(common),
            Command::ForceRemove(force) => force.run(common),
            Command::AcceptLineage(accept) => accept.run(common),
            Command::ConfirmTerm(confirm) => confirm.run(common),
            Command::RepairTerms(repair) => repair.run(common),
        }
    }
}
