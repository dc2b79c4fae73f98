//! The durable ceiling: one number on disk that stands for the largest term of every group.

use crate::{Context, Protocol, Ticket};

use super::message::{Cell, Term};

/// A block of terms that may be granted once its record is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Block {
    upto: Term,
    /// The write that makes it durable; `None` if it was on disk at the start.
    ticket: Option<Ticket>,
}

/// Which terms the disk covers, and by which write. The ceiling is raised a block at a time, before it is reached: an
/// acquisition normally waits for no disk, and never for more than one write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ceiling {
    size: u64,
    older: Block,
    newer: Block,
}

impl Ceiling {
    /// For who has lost its disk and grants nothing: not a word is written.
    pub(super) fn unwritten(size: u64) -> Self {
        let none = Block { upto: Term(0), ticket: None };
        Self { size, older: none, newer: none }
    }

    /// Begins at what the disk says, and asks at once for the first block of this life.
    pub(super) fn start<P: Protocol<Record = Cell>>(
        durable: Term,
        size: u64,
        cx: &mut Context<'_, P>,
    ) -> Self {
        let found = Block { upto: durable, ticket: None };
        let mut ceiling = Self { size, older: found, newer: found };
        ceiling.raise(durable, cx);
        ceiling
    }

    /// The write that must be durable before `term` may be granted. Raises the ceiling if `term` is above it, and in
    /// the background if `term` has used half of the last block.
    pub(super) fn cover<P: Protocol<Record = Cell>>(
        &mut self,
        term: Term,
        cx: &mut Context<'_, P>,
    ) -> Option<Ticket> {
        if term > self.newer.upto {
            self.raise(term, cx);
        } else if term.0 > self.newer.upto.0 - self.size / 2 {
            self.raise(self.newer.upto, cx);
        }
        // The older block may be durable already. Where it was forgotten the wait is for the newer one: longer, safe.
        if term <= self.older.upto { self.older.ticket } else { self.newer.ticket }
    }

    fn raise<P: Protocol<Record = Cell>>(&mut self, above: Term, cx: &mut Context<'_, P>) {
        let upto = Term(above.0.saturating_add(self.size));
        self.older = self.newer;
        self.newer = Block { upto, ticket: Some(cx.persist(Cell::Ceiling(upto))) };
    }
}
