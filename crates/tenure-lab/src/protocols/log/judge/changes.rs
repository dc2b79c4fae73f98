//! The cost of changes of leader for the log. The paper counts one round trip for promises, 2(n-1)
//! messages, and one for each of u slots that the last leader left unfinished, 2u(n-1); here those
//! are one message for all slots, and what is not answered is said again.

use std::collections::BTreeMap;

use tenure_proto::NodeId;
use tenure_proto::log::{Ballot, Message, Rules, Slot};

use crate::protocols::log::subject::{Host, Talk};
use crate::world::World;

/// Counts of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// Up to where each ballot takes up what others began.
    known: BTreeMap<Ballot, Slot>,
    /// Slots that were taken up, over all changes.
    pub(super) unfinished: u64,
    /// Messages for promises, and for slots that were taken up.
    pub(super) messages: u64,
}

impl Changes {
    /// A process leads.
    pub(super) fn leads<R: Rules>(&mut self, world: &World<Host<R>>, node: NodeId, ballot: Ballot) {
        let process = world.hosts[node.index()].process.as_ref();
        self.known.extend(process.and_then(Host::takes_up).map(|known| (ballot, known)));
    }

    /// It proposes.
    pub(super) fn proposed(&mut self, slot: Slot, ballot: Ballot) {
        self.unfinished += u64::from(self.takes_up(ballot, Some(&slot)));
    }

    fn takes_up(&self, ballot: Ballot, slot: Option<&Slot>) -> bool {
        self.known.get(&ballot).is_some_and(|known| slot.is_some_and(|slot| slot <= known))
    }

    /// Counts what has just been sent to others.
    pub(super) fn sent<R: Rules>(&mut self, world: &World<Host<R>>) {
        for flight in world.sent.iter().filter_map(|id| world.flight(*id)) {
            let Talk::Log(message) = &flight.message else { continue };
            let is_of_change = match message {
                Message::Prepare { .. } | Message::Promise { .. } => true,
                Message::Accept { ballot, entries, .. } => {
                    self.takes_up(*ballot, entries.first().map(|(slot, _)| slot))
                }
                Message::Accepted { ballot, slots } => self.takes_up(*ballot, slots.first()),
                _ => false,
            };
            self.messages += u64::from(is_of_change && flight.name.from != flight.name.to);
        }
    }
}
