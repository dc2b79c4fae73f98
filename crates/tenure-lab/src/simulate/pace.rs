//! How quickly things happen that nobody ordered: drawn from a seed, or, in a play, always the
//! same.

use crate::random::Random;
use crate::world::clock::MILLI;

/// How long a process takes to hear itself in a play, in nanoseconds.
const TO_ONESELF: u64 = 10_000;

/// No disk takes less, in nanoseconds.
pub(super) const LEAST_WRITE: u64 = MILLI / 20;

/// The pace of disks, threads and wake-ups.
#[derive(Clone, Debug)]
pub(super) enum Pace {
    /// From a seed.
    Drawn(Random),
    /// Without chance: a disk takes this long, in nanoseconds, and wake-ups are never late.
    Steady { disk: u64 },
}

impl Pace {
    /// How long after the start of a process its user speaks first.
    pub(super) fn until_opening(&mut self) -> u64 {
        match self {
            Self::Drawn(random) => random.below(MILLI),
            Self::Steady { .. } => 0,
        }
    }

    /// How long a message to oneself takes.
    pub(super) fn to_oneself(&self, links: &mut Random) -> u64 {
        match self {
            Self::Drawn(_) => links.between(1_000, 50_000),
            Self::Steady { .. } => TO_ONESELF,
        }
    }

    /// When a thread takes its next step: soon, or, between two edicts or now and then within one,
    /// much later.
    pub(super) fn next_step(&mut self, lease: u64, thread: u8) -> u64 {
        match self {
            Self::Drawn(random) => {
                let longest = if random.percent(20) { lease * 2 } else { lease / 2 };
                random.below(longest) + 1
            }
            Self::Steady { .. } => lease / (u64::from(thread) + 4) + 1,
        }
    }

    /// How long a disk takes.
    pub(super) fn write(&mut self, slowest: u64) -> u64 {
        match self {
            Self::Drawn(random) => random.below(slowest) + LEAST_WRITE,
            Self::Steady { disk } => *disk,
        }
    }

    /// How much later than wanted a process is woken, and whether that is unusual.
    pub(super) fn lateness(&mut self, latest: u64) -> (u64, bool) {
        let Self::Drawn(random) = self else { return (0, false) };
        let usual = random.below(MILLI / 20);
        if latest == 0 || random.percent(70) {
            return (usual, false);
        }
        (random.below(latest), true)
    }
}
