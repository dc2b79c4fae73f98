//! Items as an earlier tree has written them: what members of two releases say to each other while
//! they are upgraded one by one.

use super::*;
use crate::formats::{from_hex, kept, to_hex};

/// How many items are kept: with this many every kind occurs.
const KEPT: usize = 384;

fn lines() -> Vec<Vec<u8>> {
    let written = kept("wire-1.txt", || {
        let lines = samples(KEPT).iter().map(|item| to_hex(&said(item)) + "\n").collect::<String>();
        lines.into_bytes()
    });
    let text = String::from_utf8(written).expect("hexadecimal digits");
    text.lines().map(from_hex).collect()
}

/// If this fails, members of the last release do not understand this tree, or this tree does not
/// understand them: the change needs a new number in `VERSIONS`, and a peer that speaks the old one
/// must be spoken to in the old one.
#[test]
fn items_of_wire_version_1_are_read_and_written_as_they_were() {
    let lines = lines();
    assert_eq!(lines.len(), KEPT);
    for bytes in lines {
        let found = heard(&bytes);
        let [Ok(item)] = &found[..] else { panic!("{}: {found:?}", to_hex(&bytes)) };
        assert_eq!(to_hex(&said(item)), to_hex(&bytes), "{item:?}");
    }
}
