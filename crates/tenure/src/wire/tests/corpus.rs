//! A hundred thousand datagrams that nobody would send, by the check that the fuzzer runs: see
//! `fuzz/`.

use super::{SEED, said, samples};
use crate::fuzzing;

const INPUTS: usize = 100_000;

/// SplitMix64: small, and the same on every machine.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).expect("below a usize")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }
}

/// One to four items, or noise, with a few changes.
fn input(chance: &mut Chance, items: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if chance.below(16) == 0 {
        let length = chance.below(200);
        bytes.extend((0..length).map(|_| chance.byte()));
    } else {
        for _ in 0..=chance.below(4) {
            bytes.extend(&items[chance.below(items.len())]);
        }
    }
    for _ in 0..chance.below(4) {
        change(chance, &mut bytes);
    }
    bytes
}

fn change(chance: &mut Chance, bytes: &mut Vec<u8>) {
    let at = chance.below(bytes.len());
    let until = (at + chance.below(16)).min(bytes.len());
    match chance.below(6) {
        _ if bytes.is_empty() => bytes.push(chance.byte()),
        0 => bytes[at] ^= 1 << chance.below(8),
        1 => bytes[at] = chance.byte(),
        2 => bytes.truncate(at),
        3 => bytes.insert(at, [0, 1, 0x7f, 0x80, 0xff][chance.below(5)]),
        4 => bytes.splice(at..at, [0xff; 9]).for_each(drop),
        _ => bytes.drain(at..until).for_each(drop),
    }
}

#[test]
fn a_hundred_thousand_generated_datagrams_break_nothing() {
    let items: Vec<Vec<u8>> = samples(1000).iter().map(said).collect();
    let mut chance = Chance(SEED);
    let mut understood = 0;
    println!("seed {SEED}");
    for number in 0..INPUTS {
        let bytes = input(&mut chance, &items);
        let count = std::panic::catch_unwind(|| fuzzing::datagram(&bytes));
        understood += count.unwrap_or_else(|_| panic!("seed {SEED}, input {number}: {bytes:02x?}"));
    }
    println!("{understood} items understood");
    assert!(understood > INPUTS, "most inputs must be nearly right, or little is tried: {understood}");
}
