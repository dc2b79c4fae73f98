//! Acts of a process that belong to no single group: its silence, its runs, its last word.

use super::epoch::Body;
use super::message::{Cell, Event, InstanceId};
use super::rules::Rules;
use super::term::Ceiling;
use super::{Nerio, Process, Succession};
use crate::{BootKind, Context, LocalTime};

impl<R: Rules> Process<R> {
    /// The safety rules that this process keeps to.
    pub(super) fn rules(&self) -> &R {
        self.config.rules()
    }

    /// The last word of a clean stop. A process that has lost its disk, or reads what was on it,
    /// has nothing to write.
    pub(super) fn close(&mut self, cx: &mut Context<'_, Nerio<R>>) {
        if self.recovery.is_none() {
            Ceiling::close(self.heights.granted.max(self.largest_term), cx);
        }
        self.closed = self.rules().ends_with_close();
    }

    /// Whether this process takes no part: its disk was lost, or it has said its last word.
    pub(super) fn is_deaf(&self) -> bool {
        self.mute || self.closed
    }

    pub(super) fn is_silent(&self, now: LocalTime) -> bool {
        now < self.silent_until || self.recovery.is_some()
    }

    /// When the process itself wants to be woken.
    pub(super) fn next_deadline(&self) -> Option<LocalTime> {
        let reads = self.recovery.as_ref().map(|recovery| recovery.asks_at);
        let all = [self.membership.next_deadline(), self.wedging.next_deadline(), reads];
        all.into_iter().flatten().min()
    }

    pub(super) fn next_instance(&mut self) -> InstanceId {
        self.seq += 1;
        self.newest_instance()
    }

    /// The newest run that this life has begun, of any group.
    pub(super) fn newest_instance(&self) -> InstanceId {
        InstanceId { holder: self.holder, seq: self.seq }
    }

    /// When all is over that this grantor may have promised before `start`, in its epoch or the one
    /// before.
    pub(super) fn silence_from(&self, start: LocalTime) -> LocalTime {
        let rules = self.rules();
        let end = |body: &Body| rules.silence_end(body.clocks, start, body.longest_lease);
        let here = end(&self.charter().body);
        self.charter().before.as_ref().map_or(here, |before| end(before).max(here))
    }

    /// Decides between silence and memory, and says so.
    pub(super) fn recall(&mut self, kind: &BootKind<Cell>, cx: &mut Context<'_, Nerio<R>>) {
        let settings = self.config.settings();
        match kind {
            BootKind::Founding => {}
            BootKind::SameBoot { remembered } => {
                let silences = remembered.iter().filter_map(|cell| match cell {
                    Cell::Silence(until) => Some(self.rules().silence_remembered(*until)),
                    _ => None,
                });
                self.silent_until = silences.max().unwrap_or(LocalTime::ZERO);
            }
            BootKind::Rebooted => {
                self.silent_until = self.silence_from(cx.now());
            }
            BootKind::Amnesia if settings.succession == Succession::Fixed => self.begin_recovery(cx),
            BootKind::Amnesia => {
                self.mute = true;
                cx.publish(Event::Mute);
            }
        }
        if self.is_silent(cx.now()) {
            cx.remember(Cell::Silence(self.silent_until));
            cx.publish(Event::Silent { until: self.silent_until });
        }
    }
}
