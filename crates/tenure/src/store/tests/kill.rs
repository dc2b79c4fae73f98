//! A real process that persists and remembers as fast as it can, and is killed at a moment it does
//! not choose, two hundred times over one store and one memory.
//!
//! It says on its standard output what it is about to do and what was done. Whatever it said was
//! confirmed must be found afterwards; beyond that, at most the one step that it was about to do.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_proto::strong::CellKey;
use tenure_proto::{GroupId, Record, Ticket};

use super::child::{child, folder};
use super::*;
use crate::memory::tests::grant;
use crate::memory::{Memory, here};

const KILLS: u32 = 200;
const GROUPS: u64 = 40;
const SEED: u64 = 4;

/// A life, as the next one hears of it.
struct Life {
    store: Store,
    opened: Opened,
    memory: Memory,
    kind: BootKind<Cell>,
}

/// Starts a life as a node does, up to the point at which it would handle messages.
fn begin(dir: &Path) -> Life {
    let (store, opened) = Store::open(&dir.join("store"), &name("a"), None).unwrap();
    let here = here().unwrap();
    let (mut memory, found) = Memory::open(&dir.join("memory"), opened.id, here, opened.incarnation).unwrap();
    assert!(memory.trouble().is_none(), "{:?}", memory.trouble());
    let kind = Boot::judge(opened.boot_store.clone(), found, here).kind;
    memory.claim();
    Life { store, opened, memory, kind }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
}

/// Does nothing but as a child of the test below: there it goes on until it is killed.
#[test]
fn child_is_killed() {
    let Some(dir) = folder() else { return };
    let Life { store, opened, mut memory, .. } = begin(&dir);
    say("claimed");
    let durable = Arc::new(AtomicU64::new(ceiling(&opened).0));
    let noted = durable.clone();
    let writer = Writer::start(store, move |it| match it {
        Durable::Upto(ticket) => {
            say(&format!("durable {}", ticket.0));
            noted.store(ticket.0, Ordering::Release);
        }
        Durable::Failed(error) => panic!("{error}"),
    });
    let writer = writer.unwrap();
    let mut asked = durable.load(Ordering::Acquire);
    for step in 1.. {
        if asked < durable.load(Ordering::Acquire) + 3 {
            asked += 1;
            say(&format!("persist {asked}"));
            writer.persist(Ticket(asked), Cell::Ceiling(Term(asked)), None);
        }
        let group = step * 7 % GROUPS;
        let until = if step % 5 == 0 { 0 } else { step };
        say(&format!("remember {group} {until}"));
        memory.remember(&cell(group, until));
        say(&format!("kept {group} {until}"));
    }
}

/// Zero for a grant that was given back.
fn cell(group: u64, until: u64) -> Cell {
    if until == 0 { Cell::Grant(GroupId(group), None) } else { grant(group, until) }
}

/// The words of a life before it was killed.
#[derive(Default)]
struct Said {
    claimed: bool,
    asked: u64,
    durable: u64,
    kept: Vec<Cell>,
    pending: Option<Cell>,
}

impl Said {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |text: &str| text.parse::<u64>().unwrap();
        match words[..] {
            ["claimed"] => self.claimed = true,
            ["persist", term] => self.asked = number(term),
            ["durable", term] => self.durable = number(term),
            ["remember", group, until] => self.pending = Some(cell(number(group), number(until))),
            ["kept", ..] => self.kept.extend(self.pending.take()),
            _ => {} // Of the test harness.
        }
    }
}

/// Runs a child until it has said this many lines, kills it, and hears the rest of what it had
/// said.
fn run_and_kill(dir: &Path, lines: usize) -> Said {
    let mut command = child("store::tests::kill::child_is_killed", dir);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(process.stdout.take().unwrap());
    let mut said = Said::default();
    let mut heard = 0;
    if lines == 0 {
        process.kill().unwrap();
    }
    for line in out.split(b'\n').map(|line| String::from_utf8(line.unwrap()).unwrap()) {
        said.hear(&line);
        heard += 1;
        if heard == lines {
            if said.claimed {
                let other = Store::open(&dir.join("store"), &name("a"), None).err();
                assert!(
                    matches!(other, Some(StoreError::InUse { .. })),
                    "two processes on one store: {other:?}"
                );
            }
            process.kill().unwrap();
        }
    }
    let status = process.wait().unwrap();
    assert!(!status.success(), "it was killed: {status}");
    said
}

fn draw(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

type Grants = BTreeMap<CellKey, Cell>;

fn apply(grants: &mut Grants, cell: &Cell) {
    match cell {
        Cell::Grant(_, None) => grants.remove(&cell.key()),
        _ => grants.insert(cell.key(), cell.clone()),
    };
}

#[test]
fn nothing_that_was_confirmed_is_lost_when_a_process_is_killed() {
    println!("seed {SEED}");
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let disk = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(disk.path(), dir.path().join("store")).unwrap();
    Store::found(&dir.path().join("store"), &founding()).unwrap();
    drop(begin(dir.path()));
    let (mut grants, mut floor, mut believed) = (Grants::new(), FLOOR.0, 0);
    let mut seed = SEED;
    for kill in 0..KILLS {
        let scale = [1, 20, 1000, 10_000, 30_000][draw(&mut seed) % 5];
        let said = run_and_kill(dir.path(), draw(&mut seed) % scale);
        let Life { opened, kind, .. } = begin(dir.path());
        let found = ceiling(&opened).0;
        assert!(found >= floor.max(said.durable), "kill {kill}: {found} of {}", said.durable);
        assert!(found <= floor.max(said.asked), "kill {kill}: {found} was never asked for");
        floor = found;
        said.kept.iter().for_each(|cell| apply(&mut grants, cell));
        let mut also = grants.clone();
        said.pending.iter().for_each(|cell| apply(&mut also, cell));
        match kind {
            BootKind::SameBoot { remembered } => {
                let found: Grants = remembered.into_iter().map(|cell| (cell.key(), cell)).collect();
                assert!(found == grants || found == also, "kill {kill}: {found:?}, not {grants:?}");
                grants = found;
                believed += 1;
            }
            _ => {
                assert!(!said.claimed, "kill {kill}: the memory was claimed, and is worthless");
                grants.clear();
            }
        }
    }
    println!("{believed} of {KILLS} memories were believed, the ceiling rose to {floor}");
    assert!(believed > KILLS / 2 && floor > FLOOR.0 + u64::from(KILLS));
}
