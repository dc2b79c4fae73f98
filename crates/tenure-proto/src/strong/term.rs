//! The durable ceiling: one number on disk that stands for the largest term of every group.
//!
//! ```text
//!   start      the disk says c: no term up to c is granted in this life. A first, small block above c is asked for
//!   grants     up to the block's end; the next block, twice as long up to the configured length, is asked for at half of it
//!   crash      the next life begins at the end of the last block: what was not granted of it is lost
//!   clean stop the exact largest term is written, below the block's end; this life grants nothing after that
//! ```
//!
//! The assertions in [`Ceiling::cover`] hold of any term that somebody may ask for: a block that is
//! raised ends no lower than that term, also where no term is left above it.
//!
//! So a start costs no terms after a clean stop, and after a crash no more than about as many as
//! were granted.

use crate::explore::View;
use crate::{Context, Protocol, Ticket};

use super::message::{Cell, Term};
use super::rules::Rules;

/// How long the first block of a life is.
const FIRST_BLOCK: u64 = 16;

/// A block of terms that may be granted once its record is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Block {
    upto: Term,
    /// The write that makes it durable; `None` if it was on disk at the start.
    ticket: Option<Ticket>,
}

/// Which terms the disk covers, and by which write. The ceiling is raised a block at a time, before
/// it is reached: an acquisition normally waits for no disk, and never for more than one write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ceiling {
    /// How long blocks become.
    size: u64,
    /// How long the newer block is.
    length: u64,
    older: Block,
    newer: Block,
}

impl Ceiling {
    /// For who has lost its disk and grants nothing: not a word is written.
    pub(super) fn unwritten(size: u64) -> Self {
        let none = Block { upto: Term(0), ticket: None };
        Self { size, length: 0, older: none, newer: none }
    }

    /// Begins at what the disk says, and asks at once for the first block of this life.
    pub(super) fn start<P: Protocol<Record = Cell>>(
        durable: Term,
        size: u64,
        cx: &mut Context<'_, P>,
    ) -> Self {
        let found = Block { upto: durable, ticket: None };
        let mut ceiling = Self { size, length: 0, older: found, newer: found };
        ceiling.raise(durable, cx);
        ceiling
    }

    /// The write that must be durable before `term` may be granted. Raises the ceiling if `term` is
    /// above it, and in the background if `term` has used half of the last block. Where no term is
    /// left above the block it stays as it is.
    pub(super) fn cover<P: Protocol<Record = Cell>>(
        &mut self,
        term: Term,
        rules: &impl Rules,
        cx: &mut Context<'_, P>,
    ) -> Option<Ticket> {
        let last = self.newer.upto == Term(u64::MAX);
        if term > self.newer.upto {
            self.raise(term, cx);
        } else if !last && term.0 > self.newer.upto.0.saturating_sub(self.length / 2) {
            self.raise(self.newer.upto, cx);
        }
        assert!(self.reaches(term), "the ceiling is raised before a term is granted");
        assert!(self.older.upto <= self.newer.upto, "a ceiling never falls within a life");
        assert!(self.older.ticket <= self.newer.ticket, "the record of the newer block is written later");
        // Where the block below the older one is forgotten the wait is longer, which is safe.
        rules.covered_by(term <= self.older.upto, (self.older.ticket, self.newer.ticket))
    }

    /// Whether a term lies within the blocks: its Ok waits for one of them at most.
    pub(super) fn reaches(&self, term: Term) -> bool {
        term <= self.newer.upto
    }

    fn raise<P: Protocol<Record = Cell>>(&mut self, above: Term, cx: &mut Context<'_, P>) {
        let least = FIRST_BLOCK.min(self.size);
        self.length = self.length.saturating_mul(2).clamp(least, self.size);
        let upto = Term(above.0.saturating_add(self.length));
        self.older = self.newer;
        self.newer = Block { upto, ticket: Some(cx.persist(Cell::Ceiling(upto))) };
    }

    /// The last write of a life: the exact largest term, which is below the block's end. Nothing is
    /// covered by this ceiling any more, so nothing may be granted by it: see
    /// [`Rules::ends_with_close`](super::Rules::ends_with_close).
    pub(super) fn close<P: Protocol<Record = Cell>>(exact: Term, cx: &mut Context<'_, P>) {
        cx.persist(Cell::Ceiling(exact));
    }
}

impl Ceiling {
    /// See [`Explore`](crate::explore::Explore). `size` never changes.
    pub(super) fn view(&self, v: &mut View<'_>) {
        v.num(self.length);
        for block in [self.older, self.newer] {
            v.num(block.upto.0);
            v.ticket(block.ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Nerio, Sound, tests::First};
    use super::*;
    use crate::{Effect, LocalTime};

    /// A ceiling with what it has written.
    struct Disk(Vec<Effect<Nerio>>, Ticket);

    impl Disk {
        fn with<T>(&mut self, step: impl FnOnce(&mut Context<'_, Nerio>) -> T) -> T {
            step(&mut Context::new(LocalTime::ZERO, &mut First, &mut self.1, &mut self.0))
        }

        /// The ceiling on the disk once the write of a ticket is done.
        fn at(&self, upto: Option<Ticket>) -> Term {
            let mut written = self.0.iter().filter_map(|effect| match effect {
                Effect::Persist { ticket, record: Cell::Ceiling(term) } if Some(*ticket) <= upto => {
                    Some(*term)
                }
                _ => None,
            });
            written.next_back().unwrap_or_default()
        }
    }

    #[test]
    fn the_write_that_is_waited_for_covers_the_term_up_to_the_last_there_is() {
        for size in [1, 2, 4, 256] {
            for durable in [0, 1, 1000, u64::MAX - 300, u64::MAX - 1, u64::MAX] {
                let mut disk = Disk(Vec::new(), Ticket(0));
                let mut ceiling = disk.with(|cx| Ceiling::start(Term(durable), size, cx));
                for step in [1, 1, 2, 3, 100, 100, 400, u64::MAX / 2, u64::MAX] {
                    let term = Term(disk.at(Some(Ticket(u64::MAX))).0.saturating_add(step));
                    for term in [Term(durable.saturating_add(1)), term] {
                        let ticket = disk.with(|cx| ceiling.cover(term, &Sound, cx));
                        assert!(disk.at(ticket).max(Term(durable)) >= term, "{term} of {durable}, {size}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_life_in_which_little_is_granted_takes_a_small_block() {
        let mut disk = Disk(Vec::new(), Ticket(0));
        let mut ceiling = disk.with(|cx| Ceiling::start(Term(1000), 256, cx));
        assert_eq!(disk.at(Some(Ticket(u64::MAX))), Term(1016));
        for term in 1001..=2000 {
            disk.with(|cx| ceiling.cover(Term(term), &Sound, cx));
        }
        assert!(disk.0.len() < 16, "blocks grow: {} writes for 1000 terms", disk.0.len());
    }

    #[test]
    fn where_no_term_is_left_nothing_more_is_written() {
        let mut disk = Disk(Vec::new(), Ticket(0));
        let mut ceiling = disk.with(|cx| Ceiling::start(Term(u64::MAX), 256, cx));
        let written = disk.0.len();
        for _ in 0..10 {
            disk.with(|cx| ceiling.cover(Term(u64::MAX), &Sound, cx));
        }
        assert_eq!(disk.0.len(), written);
    }
}
