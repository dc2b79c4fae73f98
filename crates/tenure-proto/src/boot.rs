//! Judges which records of its former life a starting process may believe.
//!
//! A restarted grantor that forgets a grant and grants again makes two leaders: split brain. So
//! every start is judged here, once, for the laboratory and for the real node alike: the records on
//! the disk, the records left in memory, and whether that memory is really the last word of the
//! life before.

use crate::{Data, Incarnation, Record};

/// Names one run of one machine. Memory written under another is worthless, because its clock began
/// anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BootId {
    /// The kernel's boot id.
    pub boot: u128,
    /// The offset of this time namespace's boot clock, in nanoseconds: readings of another
    /// namespace do not compare.
    pub clock_offset: i64,
    /// How long the machine had been suspended since its boot, in nanoseconds, as its clocks say:
    /// the boot clock minus the monotonic one. Exact to within [`SLACK`](Self::SLACK).
    pub slept: u64,
    /// Number that the host of a virtual machine changes when it disrupts the guest's clocks; zero
    /// where the host tells nothing.
    pub marker: u128,
}

impl BootId {
    /// Two measurements of one [`slept`](Self::slept) differ by at most this. Time slept is counted
    /// in coarser steps.
    pub const SLACK: u64 = 20_000;

    /// Whether both name the same boot and clock: then lives are in order.
    pub fn is_same_boot(&self, other: &Self) -> bool {
        (self.boot, self.clock_offset) == (other.boot, other.clock_offset)
    }

    /// Whether both name the same boot and clock, and the clock was not disturbed in between:
    /// readings of both belong together.
    pub fn continues(&self, earlier: &Self) -> bool {
        let undisturbed = self.slept.abs_diff(earlier.slept) <= Self::SLACK && self.marker == earlier.marker;
        self.is_same_boot(earlier) && undisturbed
    }
}

/// The state of the disk at the start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Store<R> {
    /// No records, and nobody said that this is a founding: the disk was lost.
    Missing,
    /// Made by founding the cluster, never used.
    Founded(Vec<R>),
    /// Last used by this incarnation.
    Used(Incarnation, Vec<R>),
}

/// The memory that outlives a process, as the driver found it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Memory<R> {
    /// The boot under which it was written.
    pub boot: BootId,
    /// The life of the process that wrote it.
    pub writer: Incarnation,
    /// The records in it.
    pub records: Vec<R>,
}

/// Everything that a machine is told at its start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Boot<R> {
    /// This life: larger than any before it, and durable already.
    pub incarnation: Incarnation,
    /// The records on the disk.
    pub durable: Vec<R>,
    /// How much of the former life is known.
    pub kind: BootKind<R>,
}

/// How much of the former life is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BootKind<R> {
    /// There was no former life: the cluster has just been founded, no promise was ever made.
    Founding,
    /// All of it: the machine did not reboot and the memory is the last life's. The memory counts
    /// only if the effects of that life's start were all carried out, such as to remember a
    /// silence; until then a driver does not sign it with its incarnation.
    SameBoot {
        /// The memory.
        remembered: Vec<R>,
    },
    /// The disk alone: the machine rebooted.
    Rebooted,
    /// Nothing: promises may stand that this process knows nothing about.
    Amnesia,
}

impl<R: Data> Boot<R> {
    /// Judges the store and the memory that were found. Any doubt about the memory makes it
    /// worthless: a file that an earlier life left behind, on a host to which the process has come
    /// back, knows nothing of the grants given in between.
    pub fn judge(store: Store<R>, memory: Option<Memory<R>>, here: BootId) -> Self {
        match store {
            Store::Missing => {
                Self { incarnation: Incarnation(0), durable: Vec::new(), kind: BootKind::Amnesia }
            }
            Store::Founded(durable) => {
                Self { incarnation: Incarnation(1), durable, kind: BootKind::Founding }
            }
            Store::Used(former, durable) => {
                let kind = match memory {
                    Some(memory) if here.continues(&memory.boot) && memory.writer == former => {
                        BootKind::SameBoot { remembered: memory.records }
                    }
                    _ => BootKind::Rebooted,
                };
                Self { incarnation: Incarnation(former.0 + 1), durable, kind }
            }
        }
    }
}

/// Writes `record` into `cells`, in place of the cell of the same key and of those that it makes
/// worthless.
pub fn overwrite<R: Record>(cells: &mut Vec<R>, record: R) {
    cells.retain(|cell| !record.makes_worthless(&cell.key()));
    match cells.iter_mut().find(|cell| cell.key() == record.key()) {
        Some(cell) => *cell = record,
        None => cells.push(record),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: BootId = BootId { boot: 7, clock_offset: 0, slept: 1_000_000, marker: 5 };

    fn memory(boot: BootId, writer: u128) -> Option<Memory<u8>> {
        Some(Memory { boot, writer: Incarnation(writer), records: vec![1] })
    }

    fn kind(memory: Option<Memory<u8>>) -> BootKind<u8> {
        Boot::judge(Store::Used(Incarnation(4), vec![]), memory, HERE).kind
    }

    #[test]
    fn memory_of_the_last_life_in_this_boot_is_believed() {
        assert_eq!(kind(memory(HERE, 4)), BootKind::SameBoot { remembered: vec![1] });
    }

    #[test]
    fn memory_of_another_boot_namespace_or_life_is_not() {
        assert_eq!(kind(memory(BootId { boot: 8, ..HERE }, 4)), BootKind::Rebooted);
        assert_eq!(kind(memory(BootId { clock_offset: 1, ..HERE }, 4)), BootKind::Rebooted);
        assert_eq!(kind(memory(HERE, 3)), BootKind::Rebooted);
        assert_eq!(kind(None), BootKind::Rebooted);
    }

    #[test]
    fn memory_from_before_a_suspend_or_a_disruption_is_not() {
        let slept = |slept| kind(memory(BootId { slept, ..HERE }, 4));
        let believed = BootKind::SameBoot { remembered: vec![1] };
        assert_eq!(slept(HERE.slept + BootId::SLACK), believed, "it cannot be measured any better");
        assert_eq!(slept(HERE.slept - BootId::SLACK), believed);
        assert_eq!(slept(HERE.slept - BootId::SLACK - 1), BootKind::Rebooted);
        assert_eq!(slept(0), BootKind::Rebooted);
        assert_eq!(kind(memory(BootId { marker: 6, ..HERE }, 4)), BootKind::Rebooted);
    }

    #[test]
    fn a_missing_store_is_amnesia_whatever_the_memory_says() {
        assert_eq!(Boot::judge(Store::Missing, memory(HERE, 4), HERE).kind, BootKind::Amnesia);
    }

    #[test]
    fn every_start_is_a_new_life() {
        assert_eq!(
            Boot::<u8>::judge(Store::Used(Incarnation(4), vec![]), None, HERE).incarnation,
            Incarnation(5)
        );
    }
}
