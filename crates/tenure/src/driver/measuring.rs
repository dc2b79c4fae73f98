//! Leaders that are no members tell a member what they have counted.

use std::time::Duration;

use tenure_proto::{LocalTime, NodeId};

use super::Driver;
use super::questions::later;
use crate::measures::Measures;
use crate::wire::Item;

/// How often a leader tells at most.
const TELL: Duration = Duration::from_secs(1);

/// The counts that were told, and those that others have told.
#[derive(Debug)]
pub(super) struct Measuring {
    told: Measures,
    tell_at: LocalTime,
    /// The sum of all that leaders which are no members have told this node.
    pub(super) heard: Measures,
}

impl Default for Measuring {
    fn default() -> Self {
        Self { told: Measures::default(), tell_at: LocalTime::ZERO, heard: Measures::default() }
    }
}

impl Driver {
    /// Tells what was counted, now and then, if this process is no member.
    pub(super) fn tell_measures(&mut self, now: LocalTime) {
        if self.measuring.tell_at <= now {
            self.tell_measures_now(now);
        }
    }

    /// The same at once, before the process ends.
    pub(super) fn tell_measures_now(&mut self, now: LocalTime) {
        let all = Measures::of(&self.tally, &self.stopwatch.timings);
        if self.config.role.grants() || all == self.measuring.told {
            return;
        }
        let Some(member) = self.confidant() else { return };
        self.net.send(member, &Item::Measures(Box::new(all.since(&self.measuring.told))));
        self.measuring.told = all;
        self.measuring.tell_at = later(now, TELL);
    }

    /// The member that is told: one with a session, another for each process, so that no daemon
    /// counts for all.
    fn confidant(&self) -> Option<NodeId> {
        let members = self.members();
        let first = usize::try_from(self.me.0 % members.len().max(1) as u64).ok()?;
        let (before, after) = members.split_at_checked(first)?;
        let mut turns = after.iter().chain(before);
        turns.find(|member| self.net.answers(**member)).copied()
    }

    /// A leader that is no member has told what it counted.
    pub(super) fn on_measures(&mut self, measures: &Measures) {
        if measures.is_plausible() {
            self.measuring.heard = self.measuring.heard.plus(measures);
        } else {
            self.tally.out_of_scope += 1;
        }
    }
}
