//! The format of the file: a few lines that a person can read, and a checksum over them.
//!
//! ```text
//!   tenure fence 1
//!   resource prices
//!   rule in-order
//!   newest 36893488147419103237
//!   writer beta
//!   crc64 0b5e7a3c9d1f2468
//! ```
//!
//! `newest` is missing before the first write; `writer` wherever nobody may repeat the newest one.
//! A file is exactly what would be printed for what was read, or it is damaged.

use std::fmt::Write;
use std::path::Path;

use super::FileError;
use crate::fence::{Fence, Newest, Rule, Token};

/// The longest name of a resource or a writer, in bytes.
pub(super) const NAME_LONGEST: usize = 255;

/// No fence is longer than this, in bytes.
pub(super) const LONGEST: u64 = 1024;

const BEGINS: &str = "tenure fence ";
const VERSION: &str = "1";

/// The state that a file fence remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) resource: String,
    pub(super) fence: Fence<String>,
}

impl State {
    /// The whole content of the file.
    pub(super) fn print(&self) -> String {
        let rule = match self.fence.rule {
            Rule::ByTerm => "by-term",
            Rule::InOrder => "in-order",
        };
        let mut text = format!("{BEGINS}{VERSION}\nresource {}\nrule {rule}\n", self.resource);
        if let Some(newest) = &self.fence.newest {
            let _ = writeln!(text, "newest {}", newest.token);
            if let Some(writer) = &newest.writer {
                let _ = writeln!(text, "writer {writer}");
            }
        }
        let checksum = crc64(text.as_bytes());
        let _ = writeln!(text, "crc64 {checksum:016x}");
        text
    }

    /// Reads a whole file; `path` is for the errors.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self, FileError> {
        let damaged = |why| FileError::Damaged { path: path.to_path_buf(), why };
        if bytes.is_empty() {
            return Err(damaged("it is empty, as one whose creation was interrupted"));
        }
        if !bytes.starts_with(BEGINS.as_bytes()) {
            return Err(FileError::NotAFence { path: path.to_path_buf() });
        }
        let text = str::from_utf8(bytes).map_err(|_| damaged("it is not UTF-8"))?;
        let (first, rest) = text.split_once('\n').ok_or_else(|| damaged("it ends in its first line"))?;
        let version = first.strip_prefix(BEGINS).unwrap_or(first);
        if version != VERSION {
            return Err(FileError::Version { path: path.to_path_buf(), found: version.to_owned() });
        }
        let state = Self::parse_lines(rest).ok_or_else(|| damaged("a line is missing or makes no sense"))?;
        if state.print() == text { Ok(state) } else { Err(damaged("its checksum does not fit")) }
    }

    fn parse_lines(text: &str) -> Option<Self> {
        let mut lines = text.lines().peekable();
        let mut field = |name: &str| {
            let value = lines.peek()?.strip_prefix(name)?.strip_prefix(' ')?;
            lines.next();
            Some(value)
        };
        let resource = field("resource")?.to_owned();
        let rule = match field("rule")? {
            "by-term" => Rule::ByTerm,
            "in-order" => Rule::InOrder,
            _ => return None,
        };
        let newest = match field("newest") {
            None => None,
            Some(token) => {
                let token = Token::from_u128(token.parse().ok()?);
                Some(Newest { token, writer: field("writer").map(str::to_owned) })
            }
        };
        Some(Self { resource, fence: Fence { rule, newest } })
    }
}

/// A name is stored as the rest of a line.
pub(super) fn check_name(of: &'static str, name: &str) -> Result<(), FileError> {
    if name.is_empty() || name.len() > NAME_LONGEST || name.contains(char::is_control) {
        return Err(FileError::Name { of, name: name.to_owned() });
    }
    Ok(())
}

/// CRC-64/XZ: it finds every change that fits into 64 bits in a row, and others but for one in
/// 2^64.
fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0xc96c_5795_d787_0f42; // Its bits in reverse order.
    let mut crc = u64::MAX;
    for byte in bytes {
        crc ^= u64::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::Term;

    fn state(newest: Option<Newest<String>>) -> State {
        State { resource: "prices".to_owned(), fence: Fence { rule: Rule::InOrder, newest } }
    }

    fn full() -> State {
        state(Some(Newest { token: Token::new(Term(2), 5), writer: Some("beta".to_owned()) }))
    }

    fn parse(bytes: &[u8]) -> Result<State, FileError> {
        State::parse(bytes, Path::new("prices.fence"))
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc64(b"123456789"), 0x995d_c9bb_df19_39fa);
    }

    #[test]
    fn a_person_can_read_it() {
        let text = full().print();
        let (lines, checksum) = text.split_once("crc64 ").unwrap();
        let expected =
            "tenure fence 1\nresource prices\nrule in-order\nnewest 36893488147419103237\nwriter beta\n";
        assert_eq!((lines, checksum.len()), (expected, 17));
    }

    #[test]
    fn every_state_is_read_back_and_fits_the_limit() {
        let largest = Token::new(Term(u64::MAX), u64::MAX);
        let longest = "n".repeat(NAME_LONGEST);
        let newest = Newest { token: largest, writer: Some(longest.clone()) };
        let longest = State { resource: longest, ..state(Some(newest)) };
        let nobody = state(Some(Newest { token: Token::new(Term(0), 1), writer: None }));
        for state in [state(None), full(), nobody, longest] {
            let text = state.print();
            assert_eq!(parse(text.as_bytes()).unwrap(), state);
            assert!(text.len() as u64 <= LONGEST, "{}", text.len());
        }
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_refused() {
        let text = full().print().into_bytes();
        for at in 0..text.len() {
            assert!(parse(&text[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut flipped = text.clone();
                flipped[at] ^= 1 << bit;
                assert!(parse(&flipped).is_err(), "bit {bit} of byte {at}");
            }
        }
        assert!(parse(&[text.as_slice(), b"\n"].concat()).is_err(), "a line more");
    }

    #[test]
    fn a_file_of_something_else_is_told_from_damage_and_from_a_later_version() {
        assert!(matches!(parse(b""), Err(FileError::Damaged { .. })));
        assert!(matches!(parse(b"#!/bin/sh\n"), Err(FileError::NotAFence { .. })));
        assert!(
            matches!(parse(b"tenure fence 2\nanything"), Err(FileError::Version { found, .. }) if found == "2")
        );
    }

    #[test]
    fn names_that_do_not_fit_into_a_line_are_refused() {
        for name in ["", "two\nlines", "bell\u{7}", &"n".repeat(NAME_LONGEST + 1)] {
            let error = check_name("writer", name).unwrap_err();
            assert!(error.to_string().contains("writer"), "{error}");
        }
        check_name("writer", "beta 2 (eu/west)").unwrap();
    }
}
