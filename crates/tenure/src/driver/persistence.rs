//! Persistence: on the disk by a thread of its own, and in memory that survives the process.

use tenure_proto::strong::Cell;
use tenure_proto::{NodeId, Ticket};

use tokio::sync::mpsc::UnboundedSender;

use super::Notice;
use crate::contact::Contact;
use crate::memory::Memory;
use crate::steady::Steady;
use crate::store::{Store, StoreError, StoreId, Writer};
#[cfg(any(test, feature = "test-util"))]
use crate::testing::KeptLife;
use crate::timing::Timing;

/// Store and memory of a node. A node that grants nothing has neither, and promises nothing that
/// would need them.
#[derive(Default)]
pub(crate) struct Persistence {
    writer: Option<Writer>,
    memory: Option<Memory>,
    /// Both, of a member in a cluster of `testing`.
    #[cfg(any(test, feature = "test-util"))]
    kept: Option<KeptLife>,
    /// Which store this is.
    pub(crate) store: Option<StoreId>,
    /// Up to here everything is on the disk.
    pub(crate) durable: Option<Ticket>,
    /// How many records were handed to the disk.
    pub(crate) persisted: u64,
}

impl Persistence {
    pub(crate) fn new(
        (store, id): (Store, StoreId),
        memory: Memory,
        notices: UnboundedSender<Notice>,
    ) -> Result<Self, StoreError> {
        let done = move |durable| drop(notices.send(Notice::Durable(durable)));
        let writer = Some(Writer::start(store, done)?);
        Ok(Self { writer, memory: Some(memory), store: Some(id), ..Self::default() })
    }

    /// Store and memory of a member in a cluster of `testing`: a record is durable at once.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn in_memory(id: StoreId, kept: KeptLife) -> Self {
        Self { kept: Some(kept), store: Some(id), ..Self::default() }
    }

    /// The machine has started and its first effects are carried out: from here on the memory
    /// speaks for this life.
    pub(crate) fn claim(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.claim();
        }
        #[cfg(any(test, feature = "test-util"))]
        if let Some(kept) = &self.kept {
            kept.claim();
        }
    }

    /// The clock was disturbed, and the machine knows: see [`Memory::claim_anew`].
    pub(crate) fn claim_anew(&mut self, steady: &Steady) {
        if let Some(memory) = &mut self.memory {
            memory.claim_anew(steady);
        }
        #[cfg(any(test, feature = "test-util"))]
        if let Some(kept) = &mut self.kept {
            kept.claim_anew(steady);
        }
    }

    /// How long writes of the store took.
    pub(crate) fn timing(&self) -> Timing {
        self.writer.as_ref().map(Writer::timing).unwrap_or_default()
    }

    /// Why a restart of this node will be silent, if it will.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.memory.as_ref().and_then(Memory::trouble).map(ToString::to_string)
    }

    /// Whether the record of a ticket is on the disk, or need not be.
    pub(crate) fn is_durable(&self, ticket: Ticket) -> bool {
        self.writer.is_none() || self.durable.is_some_and(|durable| ticket <= durable)
    }

    /// Hands a record to the writer's thread. A charter goes with the names of its members: without
    /// them its keys are not known.
    pub(crate) fn persist(
        &mut self,
        ticket: Ticket,
        cell: Cell,
        contacts: impl FnOnce(Vec<NodeId>) -> Vec<Contact>,
    ) {
        #[cfg(any(test, feature = "test-util"))]
        if let Some(kept) = &self.kept {
            self.persisted += 1;
            return kept.persist(cell, contacts);
        }
        let Some(writer) = &self.writer else { return };
        self.persisted += 1;
        let named = match &cell {
            Cell::Charter(charter) => Some(contacts(charter.members_and_former().collect())),
            _ => None,
        };
        writer.persist(ticket, cell, named);
    }

    /// Written before any later effect, without a system call. Says why, if the memory has just
    /// become void.
    pub(crate) fn remember(&mut self, cell: &Cell) -> Option<String> {
        #[cfg(any(test, feature = "test-util"))]
        if let Some(kept) = &self.kept {
            kept.remember(cell);
        }
        let memory = self.memory.as_mut().filter(|memory| memory.trouble().is_none())?;
        memory.remember(cell);
        memory.trouble().map(ToString::to_string)
    }

    /// Lets go of store and memory: when this returns another process can have them.
    pub(crate) fn close(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.finish();
        }
        self.memory = None;
    }
}
