//! `tenure sentinel`: the second pair of eyes of `tenure run`, and the parent of all that it runs.
//! Not for people.
//!
//! The runner starts it before anything else. It is a session of its own, so that neither a
//! terminal's signals nor a hang-up reach it, and one thread that only waits: for a word of the
//! runner, for the runner's death, for the end of a child, for a deadline counted backwards from
//! the end of the lease. See `watch.rs`.
//!
//! `--exec` is what stands between its fork and the command: it asks the kernel for death with the
//! parent, looks whether that parent is still there, joins the cgroup, and becomes the command. The
//! number of the process stays the same.

mod cgroup;
mod sleep;
mod watch;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use rustix::process::{Signal, getppid, set_parent_process_death_signal, setpriority_process};

use crate::arguments::Common;
use crate::failure::{Failure, messages};
use crate::output::{Answer, Verdict};

/// Ends the command of a runner that died (started by `tenure run`).
#[derive(Args, Debug)]
pub(crate) struct Sentinel {
    /// Become the command, unless this is not the parent any more
    #[arg(long, value_name = "PID")]
    exec: Option<i32>,
    /// The cgroup to join first
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    /// The priority of the command
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    nice: Option<i32>,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Sentinel {
    /// Does it.
    pub(crate) fn run(self, _common: &Common) -> Result<Answer, Failure> {
        match self.exec {
            Some(parent) => Err(self.become_command(parent)),
            None => {
                watch::run(self.command).map_err(messages::sentinel_failed)?;
                Ok(Answer { verdict: Verdict::Holds, ..Answer::text(String::new()) })
            }
        }
    }

    /// Returns only if that is impossible.
    fn become_command(self, parent: i32) -> Failure {
        if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
            return messages::system_refuses("to end a process with its parent", error);
        }
        // A parent that died before the line above is not noticed by the kernel.
        if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
            return messages::sentinel_gone();
        }
        if let Some(nice) = self.nice {
            let _ = setpriority_process(None, nice); // Less than the sentinel's: everybody may.
        }
        if let Some(cgroup) = &self.cgroup {
            let _ = fs::write(cgroup.join("cgroup.procs"), "0"); // If it is refused: the family is found in other ways too.
        }
        let [program, arguments @ ..] = self.command.as_slice() else {
            return messages::sentinel_no_command();
        };
        let error = Command::new(program).args(arguments).exec();
        match error.kind() {
            io::ErrorKind::NotFound => messages::command_not_found(program.display(), error),
            _ => messages::command_not_run(program.display(), error),
        }
    }
}
