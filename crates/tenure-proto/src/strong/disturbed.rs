//! A clock that cannot be trusted: it went back, or the machine slept or was paused.
//!
//! Everything here rests on (15): from one reading to the next a clock shows between (1-ρ) and
//! (1+ρ) of what has passed. A clock that went back, or one that stood still or was set while its
//! machine slept, breaks it. Then no comparison with E or F proves anything, so leaderships end and
//! grantors wait.

use super::message::{Cell, Event};
use super::rules::Rules;
use super::{Nerio, Process};
use crate::time::LocalSpan;
use crate::{Context, GroupId, Input, LocalTime};

impl<R: Rules> Process<R> {
    /// All waits of a grantor begin anew: its silence, which ends at `silent`, rule W, the wait
    /// before a charter that an operator forced, and the reading after a lost disk. A process that
    /// is no member and holds no grant promised nothing.
    pub(super) fn wait_anew(&mut self, silent: LocalTime, granted: bool, cx: &mut Context<'_, Nerio<R>>) {
        if self.position.is_none() && !granted {
            return;
        }
        let until = self.silent_until.max(silent);
        self.assert_silence(until);
        self.silent_until = until;
        cx.remember(Cell::Silence(self.silent_until));
        let now = self.clock.latest().max(cx.now());
        self.adopted_anew(now, cx);
        let asks_from = self.rules().reads_from(now, self.silent_until);
        if let Some(recovery) = &mut self.recovery {
            recovery.asks_at = recovery.asks_at.max(asks_from);
        }
        cx.publish(Event::Silent { until: self.silent_until });
    }
}

impl<R: Rules> Nerio<R> {
    /// A command outlasts a clock that is behind: its caller waits for what comes of it. A message
    /// may be lost at any time, and deadlines are looked at when the clock has caught up.
    pub(super) fn keep_command(&mut self, input: Input<Self>) {
        if let Input::Command(command) = input
            && self.process.rules().keeps_commands()
        {
            self.process.kept.push(command);
        }
    }

    /// Nothing that was measured up to now counts: leaderships are over, and a grantor waits as
    /// after a reboot.
    pub(super) fn on_disturbed(&mut self, cx: &mut Context<'_, Self>) {
        let silent = self.process.silence_from(self.process.clock.latest().max(cx.now()));
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for group in groups {
            self.with_group(group, cx, |candidate, around| candidate.on_disturbed(silent, around));
        }
        let granted = self.groups.values().any(|group| group.grantor.grant.is_some());
        if self.process.rules().waits_anew() {
            self.with_process(|process| process.wait_anew(silent, granted, cx));
        }
    }

    /// A clock that went back breaks (15): what it measured cannot be trusted. Nobody leads by it,
    /// nothing is granted by it, until it has caught up; grants given before then only last longer,
    /// which is safe.
    pub(super) fn on_clock_went_back(&mut self, by: LocalSpan, cx: &mut Context<'_, Self>) {
        if std::mem::replace(&mut self.process.clock_is_behind, true) {
            return; // Said already.
        }
        cx.publish(Event::ClockWentBack { by });
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for group in groups {
            self.with_group(group, cx, |candidate, around| candidate.distrust_clock(around));
        }
    }
}
