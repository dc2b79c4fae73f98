//! The detector of a process: a heartbeat to every other every T, and a timeout of T + D for each
//! of them.

use std::collections::BTreeSet;

use super::{Config, Rules};
use crate::detect::{Detector, Heartbeat};
use crate::time::LocalSpan;
use crate::{LocalTime, NodeId};

/// The quality of a detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sight {
    /// Silence for more than T + D: complete and accurate, where messages take at most D.
    Sharp,
    /// No silence is long enough: it misses crashes, and so is incomplete.
    Blind,
    /// Silence for more than T, as if messages took no time: it suspects living processes, and so
    /// is inaccurate.
    Nervous,
}

/// The heartbeats heard, and the processes that seem to have crashed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    me: NodeId,
    period: LocalSpan,
    next_beat: LocalTime,
    /// One for each process, by name; nobody where there are no heartbeats.
    timeouts: Vec<Heartbeat>,
    suspected: BTreeSet<NodeId>,
}

impl Watch {
    /// Watches everybody from `now` on.
    pub fn new<R: Rules>(config: &Config<R>, me: NodeId, now: LocalTime) -> Self {
        let delay = match config.sight {
            Sight::Sharp => config.delay,
            Sight::Blind => LocalSpan::from_nanos(u64::MAX),
            Sight::Nervous => LocalSpan::ZERO,
        };
        let beats = config.period > LocalSpan::ZERO;
        let watched = if beats { config.size() } else { 0 };
        Self {
            me,
            period: config.period,
            next_beat: now.after(config.period),
            timeouts: vec![Heartbeat::new(config.period, delay, now); watched],
            suspected: BTreeSet::new(),
        }
    }

    /// The processes that seem to have crashed.
    pub fn suspected(&self) -> &BTreeSet<NodeId> {
        &self.suspected
    }

    /// Notes a heartbeat of a process. Returns whether it is trusted only from now on.
    pub fn heard(&mut self, whom: NodeId, now: LocalTime) -> bool {
        if let Some(timeout) = self.timeouts.get_mut(whom.index()) {
            timeout.heard(now);
        }
        self.suspected.remove(&whom)
    }

    /// Notes that a process is said to have crashed. Returns whether that is news.
    pub fn suspect(&mut self, whom: NodeId) -> bool {
        self.suspected.insert(whom)
    }

    /// A process that has been silent for too long, and was not suspected before.
    pub fn next_suspect(&mut self, now: LocalTime) -> Option<NodeId> {
        let late = self.trusted().find(|(_, timeout)| timeout.suspects(now)).map(|(whom, _)| whom)?;
        self.suspected.insert(late);
        Some(late)
    }

    /// Whether a heartbeat is due. The next is due T after this one was, or after now if that is
    /// past.
    pub fn is_beat_due(&mut self, now: LocalTime) -> bool {
        let due = !self.timeouts.is_empty() && self.next_beat <= now;
        if due {
            let next = self.next_beat.after(self.period);
            self.next_beat = if next > now { next } else { now.after(self.period) };
        }
        due
    }

    /// The next instant at which something is to be done.
    pub fn next_deadline(&self) -> Option<LocalTime> {
        let beat = (!self.timeouts.is_empty()).then_some(self.next_beat);
        let crossings = self.trusted().filter_map(|(_, timeout)| timeout.next_crossing(LocalTime::ZERO));
        crossings.chain(beat).min()
    }

    fn trusted(&self) -> impl Iterator<Item = (NodeId, &Heartbeat)> {
        let named = self.timeouts.iter().enumerate().map(|(name, timeout)| (NodeId(name as u64), timeout));
        named.filter(|(name, _)| *name != self.me && !self.suspected.contains(name))
    }
}
