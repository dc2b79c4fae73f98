//! A model of a disk and the system's cache before it: what a loss of power, a failed sync and a
//! kill leave, in any mixture and again and again, also in the middle of an open.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use proptest::prelude::*;

use super::*;

/// Far smaller than real ones, so that they are torn in many places.
const SECTOR: usize = 64;

/// The end of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The process alone: the cache goes on.
    Kill,
    /// The machine: the cache is gone. Sectors on their way are old, new or spoilt.
    PowerLoss,
    /// The disk fails for a moment. Sectors on their way are old, new or spoilt, and the cache
    /// takes them for written.
    FailedSync,
}

struct State {
    cache: Vec<u8>,
    disk: Vec<u8>,
    /// Sectors of the cache that are not on the disk.
    dirty: Vec<bool>,
    /// How this life ends, after how many operations.
    end: (End, u32),
    seed: u64,
}

impl State {
    fn new(file: Vec<u8>) -> Self {
        let dirty = vec![false; file.len() / SECTOR];
        Self { cache: file.clone(), disk: file, dirty, end: (End::Kill, 0), seed: 0 }
    }

    fn draw(&mut self) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize
    }

    /// Each operation of a life takes it nearer to its end.
    fn goes_on(&mut self) -> bool {
        self.end.1 = self.end.1.saturating_sub(1);
        self.end.1 > 0
    }

    /// Dirty sectors may or may not have reached the disk.
    fn lose(&mut self) {
        for at in 0..self.dirty.len() {
            let sector = at * SECTOR..(at + 1) * SECTOR;
            if std::mem::take(&mut self.dirty[at]) {
                match self.draw() % 3 {
                    0 => {}
                    1 => self.disk[sector.clone()].copy_from_slice(&self.cache[sector]),
                    _ => self.disk[sector].fill(0xdd),
                }
            }
        }
    }

    fn end_life(&mut self) {
        match self.end.0 {
            End::Kill => {}
            End::PowerLoss => {
                self.lose();
                self.cache.clone_from(&self.disk);
            }
            End::FailedSync => self.lose(),
        }
    }
}

#[derive(Clone)]
struct Model(Arc<Mutex<State>>);

impl Disk for Model {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.0.lock().unwrap().cache.clone())
    }
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let at = usize::try_from(at).unwrap();
        let goes_on = state.goes_on();
        let count = if goes_on { bytes.len() } else { state.draw() % bytes.len() };
        state.cache[at..at + count].copy_from_slice(&bytes[..count]);
        state.dirty[at / SECTOR..(at + count).div_ceil(SECTOR)].fill(true);
        if goes_on { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
    }
    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if !state.goes_on() {
            return Err(io::ErrorKind::Other.into());
        }
        state.disk = state.cache.clone();
        state.dirty.fill(false);
        Ok(())
    }
    /// Not used here: renames are atomic, and a new file is not torn by what happens to the old
    /// one.
    fn replace(&mut self, _bytes: &[u8]) -> io::Result<()> {
        unreachable!("nothing grows in these lives")
    }
}

/// Lives until its end comes. Says how far it got: the ceiling that was confirmed, and the
/// incarnation.
fn live(model: &Model, dir: &Path, confirmed: &mut (u64, u128)) {
    let lock = lock(dir).unwrap();
    match Store::open_on(dir, lock, Box::new(model.clone()), &name("a"), None) {
        Ok((mut store, opened)) => {
            let found = ceiling(&opened).0;
            assert!(found >= confirmed.0, "ceiling {} was confirmed, {found} is left", confirmed.0);
            assert!(opened.incarnation.0 > confirmed.1, "a life was given out twice: {confirmed:?}");
            *confirmed = (found, opened.incarnation.0);
            for term in found + 1.. {
                store.image.put(Cell::Ceiling(Term(term)));
                if store.commit().is_err() {
                    break;
                }
                confirmed.0 = term;
            }
        }
        Err(error) => assert!(matches!(error, StoreError::Io { .. }), "{error}"),
    }
    model.0.lock().unwrap().end_life();
}

fn ends() -> impl Strategy<Value = (End, u32)> {
    let end = prop_oneof![Just(End::Kill), Just(End::PowerLoss), Just(End::FailedSync)];
    (end, 1..16_u32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_confirmed_is_lost_and_nothing_is_refused(
        lives in proptest::collection::vec(ends(), 1..30),
        seed in any::<u64>(),
    ) {
        static FOUNDED: OnceLock<(TempDir, Vec<u8>)> = OnceLock::new();
        let (dir, bytes) = FOUNDED.get_or_init(|| {
            let dir = founded();
            let bytes = fs::read(file(&dir)).unwrap();
            (dir, bytes)
        });
        let model = Model(Arc::new(Mutex::new(State { seed, ..State::new(bytes.clone()) })));
        let mut confirmed = (FLOOR.0, 0);
        for end in lives {
            model.0.lock().unwrap().end = end;
            live(&model, dir.path(), &mut confirmed);
        }
    }
}
