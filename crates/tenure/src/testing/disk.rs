//! Store and memory of a member, in memory: they outlive the process, as files do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_proto::boot::{Boot, BootId, BootKind, Memory};
use tenure_proto::strong::Cell;
use tenure_proto::{Incarnation, NodeId, Record};

use crate::contact::Contact;
use crate::steady::Steady;
use crate::store::{Image, Opened};

/// The files of a member that are kept from life to life.
#[derive(Clone, Debug)]
pub(crate) struct Kept(Arc<Mutex<Files>>);

#[derive(Debug)]
struct Files {
    store: Image,
    /// Which life the memory is of, and which boot; `None` if it is nobody's.
    owner: Option<(BootId, Incarnation)>,
    remembered: Vec<Cell>,
}

/// The files of a member, open for one life.
#[derive(Debug)]
pub(crate) struct KeptLife {
    kept: Kept,
    owner: (BootId, Incarnation),
}

impl Kept {
    pub(super) fn new(store: Image) -> Self {
        Self(Arc::new(Mutex::new(Files { store, owner: None, remembered: Vec::new() })))
    }

    /// Opens them for a new life, as [`Store::open`](crate::store::Store::open) and
    /// [`Memory::open`](crate::memory::Memory::open) do.
    pub(crate) fn open(&self, steady: &Steady) -> (Opened, KeptLife, Boot<Cell>) {
        let mut files = self.files();
        let opened = Opened::from_image(&files.store);
        files.store.incarnation = Some(opened.incarnation);
        let here = steady.in_boot(BootId { boot: 1, clock_offset: 0, slept: 0, marker: 0 });
        let memory = |(boot, writer)| Memory { boot, writer, records: files.remembered.clone() };
        let boot = Boot::judge(opened.boot_store.clone(), files.owner.map(memory), here);
        if !matches!(boot.kind, BootKind::SameBoot { .. }) {
            (files.owner, files.remembered) = (None, Vec::new());
        }
        let owner = (here, opened.incarnation);
        (opened, KeptLife { kept: self.clone(), owner }, boot)
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptLife {
    /// The memory is this life's from here on.
    pub(crate) fn claim(&self) {
        self.kept.files().owner = Some(self.owner);
    }

    /// It is of the time after a disturbance of the clock.
    pub(crate) fn claim_anew(&mut self, steady: &Steady) {
        self.owner.0 = steady.in_boot(self.owner.0);
        self.claim();
    }

    pub(crate) fn persist(&self, cell: Cell, contacts: impl FnOnce(Vec<NodeId>) -> Vec<Contact>) {
        let mut files = self.kept.files();
        if let Cell::Charter(charter) = &cell {
            files.store.contacts = contacts(charter.members_and_former().collect());
        }
        files.store.put(cell);
    }

    pub(crate) fn remember(&self, cell: &Cell) {
        let remembered = &mut self.kept.files().remembered;
        remembered.retain(|known| known.key() != cell.key());
        if !matches!(cell, Cell::Grant(_, None)) {
            remembered.push(cell.clone());
        }
    }
}
