//! The words of a memory, in a file in memory.
//!
//! The file has a header, then pieces of a thousand slots, each mapped by itself: to grow moves
//! nothing. A piece is written with zeros before it is mapped. So a full tmpfs is an error here and
//! not, later, a signal at some store.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::table::{HEADER_WORDS, SLOT_WORDS, Words};
use crate::sys::bus;
use crate::sys::map::{ALIGNMENT, Map};

const PIECE_SLOTS: usize = 1024;
const PIECE_WORDS: usize = PIECE_SLOTS * SLOT_WORDS;
const PIECE_BYTES: u64 = PIECE_WORDS as u64 * 8;

/// A mapped file.
pub(super) struct Mapped {
    file: File,
    header: Map,
    pieces: Vec<Map>,
    /// How many mappings of this process had been lost when this one was made.
    losses: usize,
}

impl Mapped {
    /// Maps what the file has; `None` if that is not even a header.
    pub(super) fn existing(file: &File) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        if length < HEADER_WORDS as u64 * 8 {
            return Ok(None);
        }
        let mut mapped = Self::headed(file)?;
        while length >= mapped.end() + PIECE_BYTES {
            mapped.map_piece()?;
        }
        Ok(Some(mapped))
    }

    /// Forgets all that the file says: at every instant of it there is no header.
    pub(super) fn wiped(file: &File) -> io::Result<Self> {
        file.set_len(0)?;
        file.write_all_at(&[0; HEADER_WORDS * 8], 0)?;
        let mut mapped = Self::headed(file)?;
        mapped.grow()?;
        Ok(mapped)
    }

    /// Whether the file was cut while it was mapped. Readings since then mean nothing.
    pub(super) fn is_lost(&self) -> bool {
        // Of a million groups there are a thousand pieces: they are asked only if any mapping was
        // lost at all.
        bus::losses() != self.losses && (self.header.is_lost() || self.pieces.iter().any(Map::is_lost))
    }

    fn headed(file: &File) -> io::Result<Self> {
        let losses = bus::losses();
        let header = Map::new(file, 0, HEADER_WORDS)?;
        Ok(Self { file: file.try_clone()?, header, pieces: Vec::new(), losses })
    }

    /// Where the next piece begins in the file.
    fn end(&self) -> u64 {
        ALIGNMENT + self.pieces.len() as u64 * PIECE_BYTES
    }

    fn map_piece(&mut self) -> io::Result<()> {
        let piece = Map::new(&self.file, self.end(), PIECE_WORDS)?;
        self.pieces.push(piece);
        Ok(())
    }
}

impl Words for Mapped {
    fn load(&self, at: usize) -> u64 {
        match at.checked_sub(HEADER_WORDS) {
            None => self.header.load(at),
            Some(at) => self.pieces[at / PIECE_WORDS].load(at % PIECE_WORDS),
        }
    }
    fn store(&self, at: usize, value: u64) {
        match at.checked_sub(HEADER_WORDS) {
            None => self.header.store(at, value),
            Some(at) => self.pieces[at / PIECE_WORDS].store(at % PIECE_WORDS, value),
        }
    }
    fn slots(&self) -> usize {
        self.pieces.len() * PIECE_SLOTS
    }
    fn grow(&mut self) -> io::Result<()> {
        let zeros = vec![0; PIECE_WORDS * 8];
        self.file.write_all_at(&zeros, self.end())?;
        self.map_piece()
    }
}
