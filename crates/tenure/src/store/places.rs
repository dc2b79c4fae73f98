//! The four places of the file, and how what is found there is judged. Pure: bytes in, bytes out.
//!
//! ```text
//!   | even, first | odd, first | even, second | odd, second |        generation n is written to both places of its kind
//! ```
//!
//! Why a confirmed generation is never silently lost, and a crash never refused:
//!
//! * **A crash** interrupts the writing of one generation, n+1. It can spoil both places of n+1, in
//!   any way. But n had been confirmed before, so both places of n are whole. Found: n, twice. Or a
//!   place of n+1 is whole: then n+1 counts, which promises more than was confirmed, and that is
//!   always safe.
//! * **Rot** of one place of a confirmed generation leaves the other place.
//! * **Rot** of a stretch of the file that takes both places of a confirmed generation takes the
//!   place between them too, which belongs to the generation before. So that generation is not
//!   found twice, and no crash explains it: refused.
//! * The remaining case is rot in just the two places of the newest generation and in neither of
//!   the others. It looks like a crash, and goes back behind a confirmed promise. This is assumed
//!   not to happen: the places are kilobytes apart, and one would have to lose two separate blocks
//!   of a file that has four.
//!
//! Both copies are written before one sync: to have a promise twice costs bytes, and no second wait
//! for the disk.

use aws_lc_rs::digest::{SHA256, digest};

/// The newest format that is understood. A later one may change all but the frame.
pub(super) const FORMAT: u64 = 1;

pub(super) const PLACES: usize = 4;

/// Places begin at multiples of this: no block of a disk holds parts of two.
const BLOCK: usize = 4096;

const MAGIC: [u8; 8] = *b"tenure: ";
/// Magic, format, place, room, generation, length: eight bytes each.
const HEAD: usize = 6 * 8;
const SUM: usize = 32;

/// The newest generation of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) generation: u64,
    /// How long each place is.
    pub(super) room: usize,
    pub(super) format: u64,
    pub(super) content: Vec<u8>,
    /// Where it must be written once more before anything else is written, in this order: see
    /// [`judge`].
    pub(super) again: Vec<usize>,
}

/// The two places of a generation.
pub(super) fn places_of(generation: u64) -> [usize; 2] {
    if generation.is_multiple_of(2) { [0, 2] } else { [1, 3] }
}

/// How long places must be for this content: twice as long as needed, so that they seldom have to
/// grow.
pub(super) fn room_for(content: &[u8]) -> usize {
    ((HEAD + content.len() + SUM) * 2).next_multiple_of(BLOCK)
}

/// Whether content fits places of this length.
pub(super) fn fits(content: &[u8], room: usize) -> bool {
    HEAD + content.len() + SUM <= room
}

/// The bytes of one place. They say where they belong: bytes of another place, or of a file whose
/// places are longer, are not taken for these.
pub(super) fn frame(generation: u64, place: usize, room: usize, content: &[u8]) -> Vec<u8> {
    let numbers = [FORMAT, place as u64, room as u64, generation, content.len() as u64];
    let mut bytes = Vec::with_capacity(HEAD + content.len() + SUM);
    bytes.extend(MAGIC);
    numbers.iter().for_each(|number| bytes.extend(number.to_be_bytes()));
    bytes.extend(content);
    let sum = digest(&SHA256, &bytes);
    bytes.extend(sum.as_ref());
    bytes
}

/// A whole new file: the content as two generations, so that every place is whole.
pub(super) fn fresh(generation: u64, content: &[u8]) -> Vec<u8> {
    let room = room_for(content);
    let mut bytes = vec![0; PLACES * room];
    for generation in [generation, generation + 1] {
        for place in places_of(generation) {
            let frame = frame(generation, place, room, content);
            bytes[place * room..][..frame.len()].copy_from_slice(&frame);
        }
    }
    bytes
}

/// The contents of one place, if it is whole.
fn unframe(place: usize, bytes: &[u8]) -> Option<Found> {
    let head = bytes.get(..HEAD).filter(|head| head.starts_with(&MAGIC))?;
    let number = |at: usize| head[8 * at..].iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let [format, at, room, generation, length] = [1, 2, 3, 4, 5].map(number);
    let end = HEAD.checked_add(usize::try_from(length).ok()?)?;
    let sum = bytes.get(end..end.checked_add(SUM)?)?;
    let belongs = at == place as u64 && room == bytes.len() as u64 && places_of(generation).contains(&place);
    let whole = belongs && digest(&SHA256, &bytes[..end]).as_ref() == sum;
    let content = bytes[HEAD..end].to_vec();
    whole.then_some(Found { generation, room: bytes.len(), format, content, again: Vec::new() })
}

/// Finds the newest generation, or says why that would be a guess.
///
/// The contents that are found may be in the system's cache alone, where a sync has failed: the
/// disk then holds the generation before it, which must not be overwritten yet. So the newest is to
/// be written again, first to the place where it is not whole, if there is one. Not so if it has no
/// whole neighbour: only a crash of the machine leaves a file like that, and then the cache has
/// nothing but what is on the disk. The places to write next are those that are spoilt.
pub(super) fn judge(file: &[u8]) -> Result<Found, &'static str> {
    if file.is_empty() || !file.len().is_multiple_of(PLACES * BLOCK) {
        return Err("its length is wrong");
    }
    let room = file.len() / PLACES;
    let found: Vec<Option<Found>> =
        file.chunks(room).enumerate().map(|(place, bytes)| unframe(place, bytes)).collect();
    let newest = found.iter().flatten().max_by_key(|found| found.generation);
    let newest = newest.ok_or("nothing in it is whole")?;
    let is_newest =
        |place: &usize| found[*place].as_ref().is_some_and(|it| it.generation == newest.generation);
    let mut again = places_of(newest.generation).to_vec();
    let twice = again.iter().all(is_newest);
    if places_of(newest.generation + 1).into_iter().all(|place| found[place].is_none()) {
        if !twice {
            return Err("more of it is spoilt than a crash explains");
        }
        again.clear();
    }
    again.sort_by_key(is_newest);
    Ok(Found { again, ..newest.clone() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROOM: usize = BLOCK;

    /// A file in which generations 6 and 7 are confirmed.
    fn file() -> Vec<u8> {
        let mut file = fresh(5, b"five, six");
        write(&mut file, 7, &content(7), usize::MAX);
        file
    }

    fn content(generation: u64) -> Vec<u8> {
        format!("content of generation {generation}").into_bytes()
    }

    /// Writes both places of a generation, but no more than `most` bytes.
    fn write(file: &mut [u8], generation: u64, content: &[u8], mut most: usize) {
        for place in places_of(generation) {
            let frame = frame(generation, place, ROOM, content);
            let count = frame.len().min(most);
            file[place * ROOM..][..count].copy_from_slice(&frame[..count]);
            most -= count;
        }
    }

    fn generation(file: &[u8]) -> Result<u64, &'static str> {
        judge(file).map(|found| found.generation)
    }

    #[test]
    fn a_confirmed_generation_is_found() {
        let found = judge(&file()).unwrap();
        assert_eq!((found.generation, found.content, found.room), (7, content(7), ROOM));
        assert_eq!(generation(&fresh(0, b"x")), Ok(1));
    }

    #[test]
    fn a_write_that_stops_at_any_byte_leaves_the_old_generation_or_the_new() {
        let length = frame(8, 0, ROOM, &content(8)).len();
        for stop in 0..=2 * length {
            let mut torn = file();
            write(&mut torn, 8, &content(8), stop);
            let expected = if stop < length { 7 } else { 8 };
            assert_eq!(generation(&torn), Ok(expected), "stopped after {stop} bytes");
        }
    }

    #[test]
    fn one_spoilt_byte_anywhere_loses_nothing() {
        for at in 0..PLACES * ROOM {
            let mut rotten = file();
            rotten[at] ^= 0x10;
            assert_eq!(generation(&rotten), Ok(7), "byte {at}");
        }
    }

    #[test]
    fn a_spoilt_stretch_loses_nothing_or_is_refused() {
        let step = 97;
        for start in (0..PLACES * ROOM).step_by(step) {
            for end in (start..=PLACES * ROOM).step_by(step) {
                let mut rotten = file();
                rotten[start..end].fill(0xaa);
                let found = generation(&rotten);
                assert!(matches!(found, Ok(7) | Err(_)), "{start}..{end}: {found:?}");
            }
        }
    }

    #[test]
    fn a_cut_lengthened_or_empty_file_is_refused() {
        let whole = file();
        for length in (0..whole.len()).step_by(64) {
            assert!(judge(&whole[..length]).is_err(), "cut to {length}");
        }
        let mut longer = whole;
        longer.resize(2 * PLACES * ROOM, 0);
        assert!(judge(&longer).is_err());
        assert!(judge(&[0; PLACES * BLOCK]).is_err());
    }

    #[test]
    fn places_put_in_another_order_are_not_believed() {
        let mut file = file();
        let (left, right) = file.split_at_mut(2 * ROOM);
        left.swap_with_slice(right);
        assert!(judge(&file).is_err());
    }

    #[test]
    fn content_that_does_not_fit_is_known_beforehand() {
        let content = vec![0; BLOCK - HEAD - SUM];
        assert!(fits(&content, BLOCK));
        assert!(!fits(&[&content[..], &[0]].concat(), BLOCK));
        assert_eq!(room_for(&content), 2 * BLOCK);
    }

    proptest! {
        /// Blocks reach the disk in any order: any part of a write that was not confirmed may be
        /// there.
        #[test]
        fn whatever_a_crash_leaves_of_a_write_the_confirmed_one_is_found(
            written in proptest::collection::vec(any::<bool>(), 2 * 8),
            length in 0..ROOM - HEAD - SUM,
        ) {
            let (old, mut torn) = (file(), file());
            write(&mut torn, 8, &vec![b'x'; length], usize::MAX);
            const SECTOR: usize = ROOM / 8;
            for (at, written) in written.iter().enumerate() {
                let start = places_of(8)[at / 8] * ROOM + at % 8 * SECTOR;
                if !written {
                    torn[start..start + SECTOR].copy_from_slice(&old[start..start + SECTOR]);
                }
            }
            prop_assert!(matches!(generation(&torn), Ok(7 | 8)));
        }

        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..3 * BLOCK)) {
            prop_assert!(judge(&bytes).is_err());
        }
    }
}
