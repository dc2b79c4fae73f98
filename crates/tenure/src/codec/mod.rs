//! How values become bytes and bytes values, on the wire and on the disk.
//!
//! Numbers are written in as many bytes as they need, seven bits a byte, the lowest first; lists
//! and texts after their length. Nothing says what comes next: the reader knows. So that a later
//! version can add to a thing, things that may grow are written as **boxes** ([`Writer::boxed`]): a
//! length, then the fields. A reader takes the fields that it knows and leaves the rest.
//!
//! The reader is total: any bytes give a value or a [`DecodeError`], it takes no more memory than
//! the bytes it was given account for, and it never reads twice.

mod cell;
mod parts;

use thiserror::Error;

pub(crate) use parts::{Wire, read_list, write_list};

/// Why bytes were not understood. Nothing has changed when it is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum DecodeError {
    /// They end before what they say is complete.
    #[error("ends too soon")]
    Truncated,
    /// A number is larger than its kind allows.
    #[error("a number is too large")]
    TooLarge,
    /// A list or text is longer than its kind allows.
    #[error("a list or text is too long")]
    TooLong,
    /// A choice is none of those known.
    #[error("unknown kind {0}")]
    Kind(u64),
    /// A text is not one of its kind, or a value breaks a rule of its type.
    #[error("a value is not valid")]
    Invalid,
}

/// Builds bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Builds bytes that need about this much room.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Builds in the room of bytes that are not needed any more.
    pub(crate) fn reusing(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self(bytes)
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    #[allow(clippy::cast_possible_truncation, reason = "seven bits are kept, the rest follows")]
    pub(crate) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// 128 bits, all of them: such numbers are mostly random.
    pub(crate) fn wide(&mut self, value: u128) {
        self.raw(&value.to_be_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// A thing that later versions may add to: its length, then what `fields` writes.
    pub(crate) fn boxed(&mut self, fields: impl FnOnce(&mut Self)) {
        let mut inner = Self::new();
        fields(&mut inner);
        self.bytes(&inner.0);
    }

    pub(crate) fn option<T>(&mut self, value: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Takes bytes apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes are not read yet.
    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn raw(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        self.raw(1).map(|bytes| bytes[0])
    }

    pub(crate) fn number(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(DecodeError::TooLarge);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::TooLarge)
    }

    /// A number that fits the type wanted.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, DecodeError> {
        T::try_from(self.number()?).map_err(|_| DecodeError::TooLarge)
    }

    pub(crate) fn wide(&mut self) -> Result<u128, DecodeError> {
        let bytes = self.raw(16)?;
        Ok(bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte)))
    }

    /// 64 bits, all of them.
    pub(crate) fn fixed(&mut self) -> Result<u64, DecodeError> {
        Ok(self.raw(8)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(crate) fn bytes(&mut self, most: usize) -> Result<&'a [u8], DecodeError> {
        let count = self.small::<usize>()?;
        if count > most {
            return Err(DecodeError::TooLong);
        }
        self.raw(count)
    }

    pub(crate) fn text(&mut self, most: usize) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes(most)?).map_err(|_| DecodeError::Invalid)
    }

    /// Reads the fields of a box; bytes that `fields` leaves belong to a later version.
    pub(crate) fn boxed<T>(
        &mut self,
        fields: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let inner = self.bytes(usize::MAX)?;
        fields(&mut Reader(inner))
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            other => Err(DecodeError::Kind(u64::from(other))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size_come_back() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut writer = Writer::new();
            writer.number(value);
            assert_eq!(Reader::new(&writer.into_bytes()).number(), Ok(value));
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        assert_eq!(Reader::new(&[0xff; 11]).number(), Err(DecodeError::TooLarge));
        let mut bytes = [0xff; 10];
        bytes[9] = 2;
        assert_eq!(Reader::new(&bytes).number(), Err(DecodeError::TooLarge));
    }

    #[test]
    fn a_length_beyond_the_bytes_is_refused_without_taking_memory() {
        let mut writer = Writer::new();
        writer.number(u64::MAX);
        assert_eq!(Reader::new(&writer.into_bytes()).bytes(usize::MAX), Err(DecodeError::Truncated));
    }

    #[test]
    fn fields_that_a_later_version_added_are_left_alone() {
        let mut writer = Writer::new();
        writer.boxed(|w| {
            w.number(7);
            w.text("new in version 2");
        });
        writer.number(9);
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.boxed(|r| r.number()), Ok(7));
        assert_eq!(reader.number(), Ok(9));
    }
}
