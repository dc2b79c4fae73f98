//! How much is said, over which links, and until when.

use tenure_proto::Protocol;

use crate::world::{RealTime, World};

/// Links and messages of a run.
pub(super) struct Traffic {
    members: usize,
    /// When each directed link was last used.
    used: Vec<Option<RealTime>>,
    /// How many messages left in each stretch of time.
    messages: Vec<u64>,
    stretch: u64,
}

impl Traffic {
    pub(super) fn new(members: usize, stretch: u64) -> Self {
        Self { members, used: vec![None; members * members], messages: Vec::new(), stretch: stretch.max(1) }
    }

    /// Notes what has just left.
    pub(super) fn note<P: Protocol>(&mut self, world: &World<P>) {
        for id in &world.sent {
            let Some(name) = world.flight(*id).map(|flight| flight.name) else { continue };
            if name.from == name.to {
                continue;
            }
            self.used[name.from.index() * self.members + name.to.index()] = Some(name.sent);
            let stretch = usize::try_from(name.sent.0 / self.stretch).unwrap_or(0);
            if self.messages.len() <= stretch {
                self.messages.resize(stretch + 1, 0);
            }
            self.messages[stretch] += 1;
        }
    }

    /// Links, messages and periods of the last quarter, whole stretches of time only.
    pub(super) fn last_quarter(&self, ended: RealTime, period: u64) -> [(&'static str, u64); 3] {
        let last = usize::try_from(ended.0 / self.stretch).unwrap_or(0);
        let first = last - last / 4;
        let from = RealTime(first as u64 * self.stretch);
        let links = self.used.iter().filter(|used| used.is_some_and(|used| used >= from)).count() as u64;
        let messages = (first..last).map(|stretch| self.messages.get(stretch).copied().unwrap_or(0)).sum();
        [
            ("links-in-last-quarter", links),
            ("messages-in-last-quarter", messages),
            ("periods-in-last-quarter", (last - first) as u64 * self.stretch / period),
        ]
    }
}
