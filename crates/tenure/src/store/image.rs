//! All that a store says.

use std::sync::Arc;

use tenure_proto::Incarnation;
use tenure_proto::boot::{self, overwrite};
use tenure_proto::strong::Cell;
use tenure_proto::strong::epoch::{Charter, StoreId};

use crate::codec::{DecodeError, Reader, Wire, Writer, read_list, write_list};
use crate::contact::Contact;
use crate::name::{ClusterId, NodeName};

/// The content of a store, whole: each generation of the file is one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) cluster: ClusterId,
    pub(crate) me: NodeName,
    pub(crate) id: StoreId,
    /// The last life that used it; none yet after it was made.
    pub(crate) incarnation: Option<Incarnation>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) contacts: Vec<Contact>,
}

impl Image {
    /// The bytes of it. None if they could not be read again, as where an address is longer than
    /// addresses are.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut to = Writer::new();
        self.write(&mut to);
        let bytes = to.into_bytes();
        (Self::from_bytes(&bytes).as_ref() == Ok(self)).then_some(bytes)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut from = Reader::new(bytes);
        let image = Self::read(&mut from)?;
        if from.is_empty() { Ok(image) } else { Err(DecodeError::TooLong) }
    }

    /// The record by which a start is judged.
    pub(crate) fn boot_store(&self) -> boot::Store<Cell> {
        match self.incarnation {
            None => boot::Store::Founded(self.cells.clone()),
            Some(incarnation) => boot::Store::Used(incarnation, self.cells.clone()),
        }
    }

    /// The newest charter, if this node has ever been told one.
    pub(crate) fn charter(&self) -> Option<&Arc<Charter>> {
        self.cells.iter().find_map(|cell| match cell {
            Cell::Charter(charter) => Some(charter),
            _ => None,
        })
    }

    /// Puts a cell in the place of the one with its key.
    pub(crate) fn put(&mut self, cell: Cell) {
        overwrite(&mut self.cells, cell);
    }
}

impl Wire for Image {
    fn write(&self, to: &mut Writer) {
        to.wide(self.cluster.0);
        self.me.write(to);
        to.wide(self.id.0);
        to.option(self.incarnation.as_ref(), |to, incarnation| incarnation.write(to));
        write_list(to, &self.cells);
        write_list(to, &self.contacts);
    }
    /// As long as the file may be: what a store cannot read it does not write.
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            cluster: ClusterId(from.wide()?),
            me: NodeName::read(from)?,
            id: StoreId(from.wide()?),
            incarnation: from.option(Incarnation::read)?,
            cells: read_list(from, usize::MAX)?,
            contacts: read_list(from, usize::MAX)?,
        })
    }
}
