//! Cells in a memory that may be left at any instruction.
//!
//! ```text
//!   header | slot 0: first copy, second copy | slot 1: first copy, second copy | …
//! ```
//!
//! A cell has a slot, and a slot two copies of 128 bytes: a checksum, a number that rises with
//! every write, and the cell. The newest whole copy counts. A write goes to the older copy:
//!
//! 1. *writing* := this slot; 2. *mark* := past this slot, if it is new; 3. the copy's checksum :=
//!    none, then its words, then its checksum; 4. *writing* := none.
//!
//! Left anywhere in between, the slot says what it said before or what it was to say. To say what
//! it said before is right: the write was not finished, so nothing that relies on it has left this
//! process.
//!
//! Everything else is doubt, and then nothing here is believed: a copy that is neither whole nor
//! empty in any slot but the one being written; a slot below the mark without a whole copy; a slot
//! above the mark with anything in it; one cell in two slots; a cell that is not understood.

use std::collections::BTreeMap;
use std::io;

use tenure_proto::Incarnation;
use tenure_proto::Record;
use tenure_proto::boot::BootId;
use tenure_proto::strong::{Cell, CellKey};

use crate::codec::{Reader, Wire, Writer};
use crate::store::StoreId;

/// Words before the first slot.
pub(super) const HEADER_WORDS: usize = 512;
pub(super) const SLOT_WORDS: usize = 2 * COPY_WORDS;
const COPY_WORDS: usize = 16;

/// The room of a copy beside its checksum and its number: the longest remembered cell has 100
/// bytes.
const ROOM: usize = (COPY_WORDS - 2) * 8;

const FORMAT: u64 = u64::from_be_bytes(*b"tenure\0\x02");
const NAMED: usize = 11;
const HEADER_SUM: usize = NAMED;
const MARK: usize = 16;
const WRITING: usize = 17;

/// The memory, as words. Stores are done in the order in which they are made.
pub(super) trait Words {
    fn load(&self, at: usize) -> u64;
    fn store(&self, at: usize, value: u64);
    /// For how many slots there is room.
    fn slots(&self) -> usize;
    /// Makes room for more, all zeros.
    fn grow(&mut self) -> io::Result<()>;
}

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) owner: StoreId,
    pub(super) boot: BootId,
    pub(super) writer: Incarnation,
}

impl Header {
    /// Reads the header, if it is whole.
    pub(super) fn read(words: &impl Words) -> Option<Self> {
        let named: [u64; NAMED] = std::array::from_fn(|at| words.load(at));
        let [format, owner_high, owner_low, boot_high, boot_low, offset, rest @ ..] = named;
        let [slept, marker_high, marker_low, writer_high, writer_low] = rest;
        let whole = format == FORMAT && words.load(HEADER_SUM) == checksum(0, &named);
        whole.then(|| Self {
            owner: StoreId(wide(owner_high, owner_low)),
            boot: BootId {
                boot: wide(boot_high, boot_low),
                clock_offset: offset.cast_signed(),
                slept,
                marker: wide(marker_high, marker_low),
            },
            writer: Incarnation(wide(writer_high, writer_low)),
        })
    }

    /// Writes it. Left in between, there is none.
    pub(super) fn write(&self, words: &impl Words) {
        let (owner, boot) = (halves(self.owner.0), halves(self.boot.boot));
        let (offset, slept) = (self.boot.clock_offset.cast_unsigned(), self.boot.slept);
        let (marker, writer) = (halves(self.boot.marker), halves(self.writer.0));
        let named =
            [FORMAT, owner.0, owner.1, boot.0, boot.1, offset, slept, marker.0, marker.1, writer.0, writer.1];
        Self::erase(words);
        named.into_iter().enumerate().for_each(|(at, word)| words.store(at, word));
        words.store(HEADER_SUM, checksum(0, &named));
    }

    /// From here on nothing in this memory is believed.
    pub(super) fn erase(words: &impl Words) {
        words.store(HEADER_SUM, 0);
    }
}

fn wide(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

#[allow(clippy::cast_possible_truncation, reason = "the other half is kept beside it")]
fn halves(value: u128) -> (u64, u64) {
    ((value >> 64) as u64, value as u64)
}

/// Never zero. It knows its place, so that no copy is taken for another.
fn checksum(place: usize, words: &[u64]) -> u64 {
    const START: u64 = 0x51_7c_c1_b7_27_22_0a_95;
    const ODD: u64 = 0x9e_37_79_b9_7f_4a_7c_15;
    let sum = words.iter().fold(START ^ place as u64, |sum, word| {
        let mixed = (sum ^ word).wrapping_mul(ODD);
        mixed ^ mixed >> 32
    });
    sum | 1
}

/// The contents of one copy of a slot.
enum Copy {
    /// Never written.
    Empty,
    Whole {
        number: u64,
        bytes: Vec<u8>,
    },
    Spoilt,
}

fn start_of(slot: usize, copy: usize) -> usize {
    HEADER_WORDS + slot * SLOT_WORDS + copy * COPY_WORDS
}

fn read_copy(words: &impl Words, slot: usize, copy: usize) -> Copy {
    let start = start_of(slot, copy);
    let [sum, rest @ ..]: [u64; COPY_WORDS] = std::array::from_fn(|at| words.load(start + at));
    let (number, length) = (rest[0] >> 8, (rest[0] & 0xff) as usize);
    if sum == checksum(start, &rest) && length <= ROOM {
        let bytes = rest[1..].iter().flat_map(|word| word.to_le_bytes()).take(length).collect();
        Copy::Whole { number, bytes }
    } else if sum == 0 && rest.iter().all(|word| *word == 0) {
        Copy::Empty
    } else {
        Copy::Spoilt
    }
}

/// The cells of a memory. To write one takes a look-up and some thirty stores.
pub(super) struct Table<W> {
    words: W,
    slots: BTreeMap<CellKey, usize>,
    /// Slots whose cell was given back.
    free: Vec<usize>,
    /// Of each slot below the mark, which copy counts.
    newest: Vec<usize>,
    /// The number of the last write.
    number: u64,
    /// Room for the next cell's bytes.
    buffer: Vec<u8>,
}

impl<W: Words> Table<W> {
    /// For a memory that is all zeros.
    pub(super) fn blank(words: W) -> Self {
        Self {
            words,
            slots: BTreeMap::new(),
            free: Vec::new(),
            newest: Vec::new(),
            number: 0,
            buffer: Vec::new(),
        }
    }

    /// Loads a memory; `None` where there is any doubt.
    pub(super) fn load(words: W) -> Option<(Self, Vec<Cell>)> {
        let mark = usize::try_from(words.load(MARK)).ok().filter(|mark| *mark <= words.slots())?;
        let mut table = Self::blank(words);
        let mut cells = Vec::new();
        for slot in 0..table.words.slots() {
            let copies = [0, 1].map(|copy| read_copy(&table.words, slot, copy));
            if slot < mark {
                cells.extend(table.load_slot(slot, copies)?);
            } else if !copies.iter().all(|copy| matches!(copy, Copy::Empty)) {
                return None;
            }
        }
        Some((table, cells))
    }

    fn load_slot(&mut self, slot: usize, copies: [Copy; 2]) -> Option<Option<Cell>> {
        let is_written = self.words.load(WRITING) == slot as u64 + 1;
        let spoilt = copies.iter().filter(|copy| matches!(copy, Copy::Spoilt)).count();
        if spoilt > usize::from(is_written) {
            return None;
        }
        let whole = copies.into_iter().enumerate().filter_map(|(copy, found)| match found {
            Copy::Whole { number, bytes } => Some((number, copy, bytes)),
            Copy::Empty | Copy::Spoilt => None,
        });
        let newest = whole.max_by_key(|(number, ..)| *number);
        if newest.is_none() && !is_written {
            return None;
        }
        let (number, copy, bytes) = newest.unwrap_or((0, 1, Vec::new()));
        self.newest.push(copy);
        self.number = self.number.max(number);
        if bytes.is_empty() {
            self.free.push(slot);
            return Some(None);
        }
        let mut reader = Reader::new(&bytes);
        let cell = Cell::read(&mut reader).ok().filter(|_| reader.is_empty())?;
        let twice = self.slots.insert(cell.key(), slot).is_some();
        (!twice).then_some(Some(cell))
    }

    /// Finishes what the former life left unfinished, so that no slot but the one being written is
    /// ever spoilt.
    pub(super) fn repair(&mut self) {
        let Some(slot) = usize::try_from(self.words.load(WRITING)).ok().and_then(|slot| slot.checked_sub(1))
        else {
            return;
        };
        match self.newest.get(slot).map(|copy| read_copy(&self.words, slot, *copy)) {
            Some(Copy::Whole { bytes, .. }) => self.write(slot, &bytes),
            Some(Copy::Empty | Copy::Spoilt) => self.write(slot, &[]),
            None => self.words.store(WRITING, 0),
        }
    }

    pub(super) fn words(&self) -> &W {
        &self.words
    }

    /// Writes a cell in the place of the one with its key. A grant that was given back makes room
    /// for another.
    pub(super) fn put(&mut self, cell: &Cell) -> io::Result<()> {
        let key = cell.key();
        if let Cell::Grant(_, None) = cell {
            if let Some(slot) = self.slots.remove(&key) {
                self.write(slot, &[]);
                self.free.push(slot);
            }
            return Ok(());
        }
        let mut writer = Writer::reusing(std::mem::take(&mut self.buffer));
        cell.write(&mut writer);
        let bytes = writer.into_bytes();
        if bytes.len() > ROOM {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such record is remembered"));
        }
        let slot = match self.slots.get(&key) {
            Some(slot) => *slot,
            None => self.take_slot(key)?,
        };
        self.write(slot, &bytes);
        self.buffer = bytes;
        Ok(())
    }

    fn take_slot(&mut self, key: CellKey) -> io::Result<usize> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                if self.newest.len() == self.words.slots() {
                    self.words.grow()?;
                }
                self.newest.push(1);
                self.newest.len() - 1
            }
        };
        self.slots.insert(key, slot);
        Ok(slot)
    }

    fn write(&mut self, slot: usize, bytes: &[u8]) {
        let copy = 1 - self.newest[slot];
        let start = start_of(slot, copy);
        self.number += 1;
        let mut rest = [0; COPY_WORDS - 1];
        rest[0] = self.number << 8 | bytes.len() as u64;
        for (word, bytes) in rest[1..].iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        self.words.store(WRITING, slot as u64 + 1);
        if self.words.load(MARK) <= slot as u64 {
            self.words.store(MARK, slot as u64 + 1);
        }
        self.words.store(start, 0);
        rest.iter().enumerate().for_each(|(at, word)| self.words.store(start + 1 + at, *word));
        self.words.store(start, checksum(start, &rest));
        self.words.store(WRITING, 0);
        self.newest[slot] = copy;
    }
}
