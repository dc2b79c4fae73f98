//! Left at every single store, changed in every single bit.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use tenure_proto::Record;
use tenure_proto::quorum::Quorums;
use tenure_proto::strong::CellKey;
use tenure_proto::strong::epoch::{Body, Charter};

use super::super::table::{HEADER_WORDS, SLOT_WORDS, Words};
use super::*;
use crate::store::tests::founding;

const PIECE: usize = 4;

/// Words that note every store, so that a test can stop after any of them.
#[derive(Clone, Debug)]
struct Noted {
    words: RefCell<Vec<u64>>,
    stores: RefCell<Vec<(usize, u64)>>,
}

impl Noted {
    fn new() -> Self {
        Self::with(vec![0; HEADER_WORDS + PIECE * SLOT_WORDS])
    }

    fn with(words: Vec<u64>) -> Self {
        Self { words: RefCell::new(words), stores: RefCell::default() }
    }
}

impl Words for Noted {
    fn load(&self, at: usize) -> u64 {
        self.words.borrow()[at]
    }
    fn store(&self, at: usize, value: u64) {
        self.words.borrow_mut()[at] = value;
        self.stores.borrow_mut().push((at, value));
    }
    fn slots(&self) -> usize {
        (self.words.borrow().len() - HEADER_WORDS) / SLOT_WORDS
    }
    fn grow(&mut self) -> io::Result<()> {
        self.words.borrow_mut().extend([0; PIECE * SLOT_WORDS]);
        Ok(())
    }
}

type Model = BTreeMap<CellKey, Cell>;

fn model(cells: Vec<Cell>) -> Model {
    cells.into_iter().map(|cell| (cell.key(), cell)).collect()
}

fn apply(model: &mut Model, cell: &Cell) {
    match cell {
        Cell::Grant(_, None) => model.remove(&cell.key()),
        _ => model.insert(cell.key(), cell.clone()),
    };
}

fn load(words: &[u64]) -> Option<(Table<Noted>, Model)> {
    Table::load(Noted::with(words.to_vec())).map(|(table, cells)| (table, model(cells)))
}

/// Every state of the words while `step` runs, first and last included.
fn states(table: &mut Table<Noted>, step: impl FnOnce(&mut Table<Noted>)) -> Vec<Vec<u64>> {
    let mut words = table.words().words.borrow().clone();
    table.words().stores.borrow_mut().clear();
    step(table);
    let length = table.words().words.borrow().len();
    words.resize(length, 0); // Growing adds zeros, which say nothing.
    let mut states = vec![words.clone()];
    for (at, value) in table.words().stores.borrow().iter() {
        words[*at] = *value;
        states.push(words.clone());
    }
    states
}

/// A new cell, a change, a cell given back, its slot used again, and so many that the memory grows.
fn steps() -> Vec<Cell> {
    let freed = |group| Cell::Grant(GroupId(group), None);
    let mut steps =
        vec![silence(1), grant(1, 10), grant(1, 20), grant(1, 30), freed(1), grant(2, 40), silence(2)];
    steps.extend((3..8).map(|group| grant(group, group)));
    steps.extend([freed(4), freed(5), grant(9, 50), grant(9, 60), grant(3, 70)]);
    steps
}

#[test]
fn a_write_that_stops_at_any_store_leaves_the_old_cell_or_the_new() {
    let mut table = Table::blank(Noted::new());
    let mut before = Model::new();
    for step in steps() {
        let mut after = before.clone();
        apply(&mut after, &step);
        for (at, words) in states(&mut table, |table| table.put(&step).unwrap()).iter().enumerate() {
            let (_, found) = load(words).unwrap_or_else(|| panic!("{step:?} stopped at {at}: doubt"));
            assert!(found == before || found == after, "{step:?} stopped at {at}: {found:?}");
        }
        let finished = table.words().words.borrow().clone();
        assert_eq!(load(&finished).unwrap().1, after, "{step:?} is done");
        before = after;
    }
}

#[test]
fn a_repair_that_stops_at_any_store_changes_nothing_and_a_finished_one_leaves_no_doubt() {
    let mut table = Table::blank(Noted::new());
    for step in steps() {
        for words in states(&mut table, |table| table.put(&step).unwrap()) {
            let (mut repaired, found) = load(&words).unwrap();
            for words in states(&mut repaired, Table::repair) {
                assert_eq!(load(&words).unwrap().1, found, "{step:?}");
            }
            let mut expected = found;
            for later in [grant(3, 80), grant(77, 90)] {
                apply(&mut expected, &later);
                repaired.put(&later).unwrap();
            }
            let finished = repaired.words().words.borrow().clone();
            assert_eq!(load(&finished).unwrap().1, expected, "{step:?}");
        }
    }
}

#[test]
fn a_header_that_stops_at_any_store_is_the_old_one_the_new_one_or_none() {
    let words = Noted::new();
    let old = Header { owner: OWNER, boot: HERE, writer: Incarnation(3) };
    old.write(&words);
    let new = Header { writer: Incarnation(4 << 70), boot: BootId { clock_offset: -5, ..HERE }, ..old };
    let mut table = Table::blank(words);
    let states = states(&mut table, |table| new.write(table.words()));
    let found: Vec<Option<Header>> =
        states.into_iter().map(|words| Header::read(&Noted::with(words))).collect();
    let (first, last) = (found.first().unwrap(), found.last().unwrap());
    assert_eq!((*first, *last), (Some(old), Some(new)));
    assert!(found[1..found.len() - 1].iter().all(Option::is_none));
    Header::erase(table.words());
    assert_eq!(Header::read(table.words()), None);
}

#[test]
fn a_change_of_any_bit_is_noticed() {
    let mut table = Table::blank(Noted::new());
    steps().iter().for_each(|step| table.put(step).unwrap());
    let words = table.words().words.borrow().clone();
    let expected = load(&words).unwrap().1;
    for at in 0..words.len() {
        for bit in 0..64 {
            let mut changed = words.clone();
            changed[at] ^= 1 << bit;
            let found = load(&changed).map(|(_, found)| found);
            // The header is not looked at here, but for the mark, and the slot that is said to be
            // written.
            let in_header = at < HEADER_WORDS && found.as_ref() == Some(&expected);
            assert!(found.is_none() || in_header, "word {at}, bit {bit}: {found:?}");
        }
    }
}

#[test]
fn a_record_that_is_too_long_for_a_slot_is_refused_whole() {
    let mut table = Table::blank(Noted::new());
    table.put(&silence(1)).unwrap();
    let quorums = Quorums::majority((0..30).map(NodeId).collect()).unwrap();
    let body = Body { quorums, ..founding().body };
    assert!(table.put(&Cell::Charter(Charter::founding(body))).is_err());
    let words = table.words().words.borrow().clone();
    assert_eq!(load(&words).unwrap().1, model(vec![silence(1)]));
}

proptest! {
    /// Any run of writes with kills in between: every life goes on from what the one before left.
    #[test]
    fn lives_that_are_killed_anywhere_go_on_from_what_was_written(
        steps in proptest::collection::vec((0..12_u64, 0..4_u64, any::<prop::sample::Index>(), any::<bool>()), 1..60),
    ) {
        let mut table = Table::blank(Noted::new());
        let mut expected = Model::new();
        for (number, (group, until, stop, killed)) in steps.into_iter().enumerate() {
            let cell = match until {
                0 => Cell::Grant(GroupId(group), None),
                _ => grant(group, until + 4 * number as u64),
            };
            let states = states(&mut table, |table| table.put(&cell).unwrap());
            if killed {
                let (mut next, found) = load(&states[stop.index(states.len())]).unwrap();
                let before = expected.clone();
                apply(&mut expected, &cell);
                prop_assert!(found == before || found == expected);
                next.repair();
                (table, expected) = (next, found);
            } else {
                apply(&mut expected, &cell);
            }
        }
        let words = table.words().words.borrow().clone();
        prop_assert_eq!(load(&words).unwrap().1, expected);
    }
}
