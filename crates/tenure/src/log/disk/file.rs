//! The bytes of the file, and how what is found there is judged. Pure: bytes in, bytes out.
//!
//! ```text
//!   | head | frame 1 | frame 2 | … | frame n |       each frame: what it is, number, length, sum, records
//! ```
//!
//! A frame is what one sync made durable: frame n+1 is written after frame n was synced. So
//!
//! * **a crash** spoils the last frame alone, in any way. Nothing rests on it: answers leave after
//!   the sync. It is cut off.
//! * **rot** in a frame with a whole frame behind it is told from a crash, and refused: what it
//!   said was confirmed.
//! * rot in just the last frame looks like a crash. This is assumed not to happen between a sync
//!   and the next one.
//!
//! Where a life began without room for a new file, a frame ends with the number of that life.
//!
//! The head is written with the first frames and synced before the file gets its name: it is never
//! torn. It has a number that was drawn for this file, and every sum is over that too: bytes of
//! another file, or of clients, are not taken for frames.

use aws_lc_rs::digest::{Context, SHA256};
use tenure_proto::Incarnation;
use tenure_proto::log::Record;

use crate::codec::{DecodeError, Reader, Wire, Writer, read_list, write_list};
use crate::name::{ClusterId, GroupName, NodeName};

/// The newest format that is understood.
/// 2: snapshots are in files of their own.
const FORMAT: u64 = 2;

const MAGIC: [u8; 4] = *b"tlog";
const SUM: usize = 16;
const FRAME: usize = 4 + 8 + 4 + SUM;

/// The head of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Drawn for this file.
    pub(super) salt: u128,
    pub(super) cluster: ClusterId,
    pub(super) log: GroupName,
    pub(super) me: NodeName,
    pub(super) members: Vec<NodeName>,
    pub(super) faults: u64,
    /// Whether promises may have been forgotten: made by `relearn`. For good.
    pub(super) amnesiac: bool,
    /// The life that wrote it, or the last that went on with it; none yet after it was made.
    pub(super) life: Option<Incarnation>,
}

impl Wire for Head {
    fn write(&self, to: &mut Writer) {
        to.number(FORMAT);
        to.wide(self.salt);
        to.wide(self.cluster.0);
        self.log.write(to);
        self.me.write(to);
        write_list(to, &self.members);
        to.number(self.faults);
        to.byte(u8::from(self.amnesiac));
        to.option(self.life.as_ref(), |to, life| life.write(to));
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if from.number()? > FORMAT {
            return Err(DecodeError::Kind(FORMAT));
        }
        Ok(Self {
            salt: from.wide()?,
            cluster: ClusterId(from.wide()?),
            log: GroupName::read(from)?,
            me: NodeName::read(from)?,
            members: read_list(from, usize::MAX)?,
            faults: from.number()?,
            amnesiac: from.byte()? != 0,
            life: from.option(Incarnation::read)?,
        })
    }
}

/// The first frame of a file.
pub(super) fn head_frame(head: &Head) -> Vec<u8> {
    let mut to = Writer::new();
    head.write(&mut to);
    frame(0, 0, &to.into_bytes())
}

/// The frame of these records.
pub(super) fn records_frame(salt: u128, number: u64, records: &[Record]) -> Vec<u8> {
    let mut to = Writer::new();
    write_list(&mut to, records);
    frame(salt, number, &to.into_bytes())
}

/// The frame that begins a life.
pub(super) fn life_frame(salt: u128, number: u64, life: Incarnation) -> Vec<u8> {
    let mut to = Writer::new();
    write_list::<Record>(&mut to, &[]);
    life.write(&mut to);
    frame(salt, number, &to.into_bytes())
}

fn frame(salt: u128, number: u64, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("a frame is shorter than 4 GiB");
    let mut bytes = Vec::with_capacity(FRAME + content.len());
    bytes.extend(MAGIC);
    bytes.extend(number.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(sum(salt, number, content));
    bytes.extend(content);
    bytes
}

fn sum(salt: u128, number: u64, content: &[u8]) -> [u8; SUM] {
    let mut context = Context::new(&SHA256);
    context.update(&salt.to_be_bytes());
    context.update(&number.to_be_bytes());
    context.update(content);
    *context.finish().as_ref().first_chunk().expect("SHA-256 has 32 bytes")
}

/// The whole frame that begins these bytes, if one does: its number and content.
fn unframe(salt: u128, bytes: &[u8]) -> Option<(u64, &[u8])> {
    let head = bytes.get(..FRAME).filter(|head| head.starts_with(&MAGIC))?;
    let number = u64::from_be_bytes(*head[4..].first_chunk()?);
    let length = u32::from_be_bytes(*head[12..].first_chunk()?);
    let content = bytes.get(FRAME..FRAME.checked_add(usize::try_from(length).ok()?)?)?;
    (sum(salt, number, content) == head[16..]).then_some((number, content))
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) head: Head,
    pub(super) records: Vec<Record>,
    /// Where the last frame begins, and where it ends: behind it is what a crash has spoilt.
    pub(super) last: std::ops::Range<usize>,
    /// How many bytes at the end a crash has spoilt.
    pub(super) torn: usize,
    /// The number of the next frame.
    pub(super) next: u64,
}

/// Reads a file, or says why that would be a guess.
pub(super) fn judge(bytes: &[u8]) -> Result<Found, &'static str> {
    let (number, content) = unframe(0, bytes).ok_or("it does not begin like a log")?;
    let mut from = Reader::new(content);
    let mut head = Head::read(&mut from).map_err(|_| "a later version of this program wrote it")?;
    if number != 0 {
        return Err("it does not begin like a log");
    }
    let mut at = FRAME + content.len();
    let mut last = at..at;
    let (mut records, mut next) = (Vec::new(), 1);
    while let Some((number, content)) = unframe(head.salt, &bytes[at..]) {
        if number != next {
            return Err("its frames are out of order");
        }
        let mut from = Reader::new(content);
        let frame: Vec<Record> =
            read_list(&mut from, usize::MAX).map_err(|_| "a record in it is not understood")?;
        records.extend(frame);
        if !from.is_empty() {
            head.life = Some(Incarnation::read(&mut from).map_err(|_| "a life in it is not understood")?);
        }
        last = at..at + FRAME + content.len();
        at = last.end;
        next += 1;
    }
    if has_frame(head.salt, &bytes[at..]) {
        return Err("a frame in it is spoilt that had been confirmed");
    }
    Ok(Found { head, records, last, torn: bytes.len() - at, next })
}

/// Whether a whole frame is anywhere in these bytes.
fn has_frame(salt: u128, bytes: &[u8]) -> bool {
    let begins = |at: &usize| bytes[*at..].starts_with(&MAGIC);
    (0..bytes.len()).filter(begins).any(|at| unframe(salt, &bytes[at..]).is_some())
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use tenure_proto::log::{Ballot, Entry, Slot};

    use super::*;

    pub(in super::super) fn head() -> Head {
        Head {
            salt: 77,
            cluster: ClusterId(1),
            log: GroupName::new("kv").unwrap(),
            me: NodeName::new("a").unwrap(),
            members: vec![NodeName::new("a").unwrap()],
            faults: 0,
            amnesiac: false,
            life: Some(Incarnation(3)),
        }
    }

    pub(in super::super) fn record(slot: u64) -> Record {
        let entry = Entry::Open { nonce: u128::from(slot) << 64 };
        Record::Accepted { slot: Slot(slot), ballot: Ballot::NONE, entry }
    }

    /// A file of three confirmed frames, and where each ends.
    fn file() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = head_frame(&head());
        let mut ends = vec![bytes.len()];
        for number in 1..=3 {
            bytes.extend(records_frame(77, number, &[record(number), record(number + 10)]));
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn slots(bytes: &[u8]) -> Result<usize, &'static str> {
        judge(bytes).map(|found| found.records.len())
    }

    #[test]
    fn what_was_written_is_read() {
        let found = judge(&file().0).unwrap();
        assert_eq!((found.head, found.torn), (head(), 0));
        assert_eq!(found.records, [1, 11, 2, 12, 3, 13].map(record));
    }

    #[test]
    fn a_file_cut_at_any_byte_has_all_frames_before_the_cut() {
        let (bytes, ends) = file();
        for length in ends[0]..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= length).count() - 1;
            let found = judge(&bytes[..length]).unwrap();
            assert_eq!(found.records.len(), 2 * whole, "cut at {length}");
            assert_eq!(found.torn, length - ends[whole]);
        }
        assert!(judge(&bytes[..ends[0] - 1]).is_err(), "a head is never torn");
    }

    #[test]
    fn rot_before_the_last_frame_is_refused_and_never_taken_for_a_crash() {
        let (bytes, ends) = file();
        for at in 0..ends[2] {
            let mut rotten = bytes.clone();
            rotten[at] ^= 0x10;
            assert!(judge(&rotten).is_err(), "byte {at}");
        }
    }

    #[test]
    fn bytes_of_another_file_are_no_frames_of_this_one() {
        let (mut bytes, _) = file();
        bytes.extend(records_frame(78, 4, &[record(4)]));
        assert_eq!(slots(&bytes), Ok(6));
        let (mut bytes, _) = file();
        bytes.extend(records_frame(77, 5, &[record(5)]));
        assert!(slots(&bytes).is_err(), "frame 4 is missing");
    }

    #[test]
    fn the_last_life_that_went_on_with_a_file_is_found() {
        let (mut bytes, ends) = file();
        bytes.extend(life_frame(77, 4, Incarnation(4)));
        bytes.extend(records_frame(77, 5, &[record(5)]));
        bytes.extend(life_frame(77, 6, Incarnation(5)));
        let found = judge(&bytes).unwrap();
        assert_eq!((found.head.life, found.records.len(), found.next), (Some(Incarnation(5)), 7, 7));
        assert_eq!(found.last.end, bytes.len());
        assert_eq!(judge(&bytes[..ends[3]]).unwrap().last, ends[2]..ends[3]);
    }

    proptest! {
        /// The blocks of a frame reach the disk in any order, and what a crash leaves of it may be
        /// anything.
        #[test]
        fn whatever_a_crash_leaves_of_a_frame_the_confirmed_ones_are_found(
            tail in proptest::collection::vec(any::<u8>(), 0..300),
            kept in proptest::collection::vec(any::<bool>(), 300),
        ) {
            let (mut bytes, _) = file();
            let next = records_frame(77, 4, &[record(4), record(5), record(6)]);
            let torn: Vec<u8> = next.iter().zip(&kept).enumerate()
                .map(|(at, (byte, kept))| if *kept { *byte } else { tail.get(at).copied().unwrap_or(0) })
                .collect();
            let whole = torn == next;
            bytes.extend(torn);
            prop_assert_eq!(slots(&bytes), Ok(if whole { 9 } else { 6 }));
        }

        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            prop_assert!(judge(&bytes).is_err());
        }
    }
}
