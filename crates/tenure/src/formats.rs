//! Bytes that an earlier tree has written, for the tests of compatibility.
//!
//! `tests/formats/` has them, named after the format and its number. A test reads what is there and
//! never writes over it. For a format with a new number, or for kinds that are new in a format, add
//! a file: with `TENURE_WRITE_FORMATS=1` a test writes the file that it misses.

use std::path::PathBuf;
use std::{env, fs};

/// The bytes of a file in `tests/formats/`. A missing one is an error, unless the maintainer asked
/// for it to be written.
pub(crate) fn kept(name: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(name);
    if !path.exists() && env::var_os("TENURE_WRITE_FORMATS").is_some() {
        fs::write(&path, make()).expect("the folder of formats");
    }
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("two hexadecimal digits");
    (0..text.len()).step_by(2).map(digits).collect()
}
